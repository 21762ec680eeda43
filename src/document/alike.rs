//! Names that look alike: the one that was probably meant.

use crate::diagnostic::{Finding, Quoted};
use crate::text;

/// Longer texts are not typing errors, and comparing them would take long.
const LONGEST: usize = 64;

/// The number of characters that make the beginning or the end of a name.
const SHORTEST_PART: usize = 3;

/// Adds the names to a finding that were probably meant.
///
/// # Errors
/// The finding as it is, if there are none, or too many for a question.
pub(crate) fn suggesting<'a>(
    name: &str,
    candidates: impl IntoIterator<Item = &'a str>,
    finding: Finding,
) -> Result<Finding, Finding> {
    match &alike(name, candidates)[..] {
        [meant] => Ok(finding.meant(meant)),
        names if (1..=text::NAMED).contains(&names.len()) => {
            let names = text::joined(names.iter().map(|it| Quoted(it)), "or");
            Ok(finding.help(format!("did you mean {names}?")))
        }
        _ => Err(finding),
    }
}

/// Returns the candidate that `name` looks like, the first of several.
pub fn nearest<'a>(name: &str, candidates: impl IntoIterator<Item = &'a str>) -> Option<&'a str> {
    alike(name, candidates).first().copied()
}

/// Returns the candidates that `name` looks like most: spelled alike but for case and underscores, a few mistakes away, or
/// cut short. Of those that only end alike, as `ada` and `tenant-ada`, there may be one.
fn alike<'a>(name: &str, candidates: impl IntoIterator<Item = &'a str>) -> Vec<&'a str> {
    let name = letters(name);
    if LONGEST < name.len() {
        return Vec::new();
    }
    let slips = (name.len() / 3).clamp(1, 3);
    let mut with_end = Vec::new();
    let near = candidates.into_iter().filter_map(|candidate| {
        let letters = letters(candidate);
        if are_opposite(&name, &letters) {
            return None;
        }
        if let Some(distance) = distance_within(slips, &name, &letters)
            && distance < name.len()
        {
            return Some((distance, candidate));
        }
        let is_part = SHORTEST_PART <= name.len();
        if is_part && has_last_words(&letters, &name) {
            with_end.push(candidate);
        }
        let is_start = is_part && letters.starts_with(&name);
        is_start.then(|| (letters.len() - name.len(), candidate))
    });
    let mut least = usize::MAX;
    let mut alike: Vec<&str> = Vec::new();
    for (distance, candidate) in near {
        if distance < least {
            (least, alike) = (distance, Vec::new());
        }
        if distance == least && !alike.contains(&candidate) {
            alike.push(candidate);
        }
    }
    if alike.is_empty() && with_end.len() == 1 { with_end } else { alike }
}

/// Returns the letters of a name by which it is compared.
fn letters(name: &str) -> Vec<char> {
    name.chars().flat_map(char::to_lowercase).map(|it| if it == '_' { '-' } else { it }).collect()
}

fn has_last_words(letters: &[char], words: &[char]) -> bool {
    let before = letters.strip_suffix(words).and_then(<[char]>::last);
    before.is_some_and(|it| !it.is_alphanumeric())
}

/// Returns whether two names differ only by a `not`.
fn are_opposite(one: &[char], other: &[char]) -> bool {
    const NOT: [char; 3] = ['n', 'o', 't'];
    let (short, long) = if one.len() < other.len() { (one, other) } else { (other, one) };
    let start = short.iter().zip(long).take_while(|(one, other)| one == other).count();
    // The letters before it may be the first ones of `not`, too, as in `not` + `notable`.
    long.len() == short.len() + NOT.len()
        && (start.saturating_sub(NOT.len())..=start)
            .any(|at| long[at..].starts_with(&NOT) && long[at + NOT.len()..] == short[at..])
}

/// Returns how many letters must be changed, added, left out or exchanged with the next one to get from one name to
/// another, if they are at most `most`. Only the pairs of letters whose places are that close are compared, so that it
/// takes as long as the names and not as their square.
fn distance_within(most: usize, one: &[char], other: &[char]) -> Option<usize> {
    if most < one.len().abs_diff(other.len()) {
        return None;
    }
    let beyond = most + 1;
    let at = |row: &[usize], column: usize| row.get(column).copied().unwrap_or(beyond);
    // The distances of all beginnings of `other` to a beginning of `one`: without its last two letters, without the last
    // one, and whole. All other distances are beyond `most`.
    let mut before = vec![beyond; other.len() + 1];
    let mut last: Vec<usize> = (0..=other.len()).map(|it| it.min(beyond)).collect();
    let mut own = before.clone();
    for (row, letter) in one.iter().enumerate() {
        let first = row.saturating_sub(most);
        if let Some(cell) = own.get_mut(first) {
            *cell = if first == 0 { beyond.min(row + 1) } else { beyond };
        }
        let mut smallest = at(&own, first);
        for column in first..other.len().min(row + most + 1) {
            let is_same = other.get(column) == Some(letter);
            let mut distance = (at(&last, column) + usize::from(!is_same))
                .min(at(&last, column + 1) + 1)
                .min(at(&own, column) + 1);
            let is_exchanged = 0 < row.min(column)
                && other.get(column - 1) == Some(letter)
                && other.get(column) == one.get(row - 1);
            if is_exchanged {
                distance = distance.min(at(&before, column - 1) + 1);
            }
            if let Some(cell) = own.get_mut(column + 1) {
                *cell = distance.min(beyond);
            }
            smallest = smallest.min(distance);
        }
        if most < smallest {
            return None;
        }
        (before, last, own) = (last, own, before);
    }
    last.last().copied().filter(|it| *it <= most)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn finds_what_was_meant() {
        let fields = ["podCIDRs", "wireguardCIDR", "name"];
        assert_eq!(nearest("podCidrs", fields), Some("podCIDRs"));
        assert_eq!(nearest("podCIDR", fields), Some("podCIDRs"));
        assert_eq!(nearest("wiregaurdCIDR", fields), Some("wireguardCIDR"));
        assert_eq!(nearest("nmae", fields), Some("name"));
        assert_eq!(nearest("wireguard", fields), Some("wireguardCIDR"));
        let names = ["tenant-ada", "tenant-bell", "external.laptop", "dns-endpoint", "no-endpoint"];
        assert_eq!(nearest("no_endpoint", names), Some("no-endpoint"));
        assert_eq!(nearest("ada", names), Some("tenant-ada"));
        assert_eq!(nearest("laptop", names), Some("external.laptop"));
        assert_eq!(alike("weast", ["east", "north", "west", "east"]), ["east", "west"]);
    }

    #[test]
    fn a_close_distance_is_that_of_all_pairs_of_letters() {
        let words: Vec<String> = (0..4_u32.pow(5))
            .map(|number| {
                let letters = (0..5).map(|it| number >> (2 * it) & 3);
                letters.filter_map(|it| ['a', 'b', 'c'].get(it as usize)).collect()
            })
            .collect();
        let letters = |word: &str| -> Vec<char> { word.chars().collect() };
        for (one, other) in
            words.iter().step_by(7).flat_map(|it| words.iter().map(move |other| (it, other)))
        {
            let distance = strsim::osa_distance(one, other);
            let found = distance_within(3, &letters(one), &letters(other));
            assert_eq!(found, (distance <= 3).then_some(distance), "{one} {other}");
        }
    }

    #[test]
    fn does_not_guess_wildly() {
        assert_eq!(nearest("topology", ["podCIDRs", "name"]), None);
        assert_eq!(nearest("acceptedNetworks", ["allowedNetworks"]), None);
        assert_eq!(nearest("", ["a"]), None);
        assert_eq!(nearest("x", ["a"]), None);
        assert_eq!(nearest("endpoint", ["dns-endpoint", "no-endpoint"]), None);
        assert_eq!(nearest("point", ["dns-endpoint"]), None);
    }
}
