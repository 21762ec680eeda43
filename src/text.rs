//! Lists and counts as people read them in a sentence.

use std::fmt::{Display, Write as _};
use std::ops::Range;

/// Returns a number with its noun: `1 node`, `2 nodes`.
pub fn count<N: Copy + Display + From<u8> + PartialEq>(number: N, noun: &str) -> String {
    format!("{number} {}", self::noun(number, noun))
}

/// Returns a noun as it stands behind a number.
pub fn noun<N: Copy + From<u8> + PartialEq>(number: N, noun: &str) -> String {
    let plural = if number == N::from(1) { "" } else { "s" };
    format!("{noun}{plural}")
}

/// Returns a number of things out of all: `2 of 3 nodes`, `all 3 nodes`, `both nodes`, `the only node`.
pub fn share(some: usize, all: usize, noun: &str) -> String {
    match (some, all) {
        (1, 1) => format!("the only {noun}"),
        (2, 2) => format!("both {noun}s"),
        (some, all) if some == all => format!("all {}", count(all, noun)),
        (some, all) => format!("{some} of {}", count(all, noun)),
    }
}

/// Returns all names with commas between them.
pub fn list(names: impl IntoIterator<Item = impl Display>) -> String {
    let mut text = String::new();
    for name in names {
        let comma = if text.is_empty() { "" } else { ", " };
        let _ = write!(text, "{comma}{name}");
    }
    text
}

/// Returns all names in backticks, with commas between them.
pub fn quoted(names: impl IntoIterator<Item = impl Display>) -> String {
    list(names.into_iter().map(|name| format!("`{name}`")))
}

/// The beginnings of error messages of kubectl, which scripts write into files instead of its output.
const KUBECTL_ERRORS: [&str; 4] = [
    "Error from server",
    "error: ",
    "Unable to connect to the server",
    "The connection to the server ",
];

/// Returns whether a text is an error message of kubectl.
pub fn is_kubectl_error(text: &str) -> bool {
    KUBECTL_ERRORS.iter().any(|it| text.starts_with(it))
}

/// The remedy for a comment that YAML does not read as one.
pub const GLUED_COMMENT: &str = "write a space before `#`, and no quotes around the comment";

/// Returns the value before a comment without a space before it, which YAML reads as part of the value.
pub fn uncommented(text: &str) -> Option<&str> {
    text.split_once('#').map(|(value, _)| value.trim_end())
}

/// The words for a text with [`conflict`] markers.
pub const CONFLICT: &str = "git's conflict markers: two versions of the file were not merged";

/// Returns the first line that git writes where it cannot merge two versions of a text.
pub fn conflict(text: &str) -> Option<Range<usize>> {
    const MARKER: &str = "<<<<<<< ";
    let start = if text.starts_with(MARKER) { 0 } else { text.find(&format!("\n{MARKER}"))? + 1 };
    let line = text.get(start..)?.lines().next()?;
    Some(start..start + line.len())
}

/// The largest number of names in a message.
pub const NAMED: usize = 3;

/// Returns the first few names, and how many more there are.
pub fn listed(names: impl IntoIterator<Item = impl Display>) -> String {
    first(NAMED, names)
}

/// Returns at most this many names, and how many more there are: `a, b and 3 more`.
pub fn first(most: usize, names: impl IntoIterator<Item = impl Display>) -> String {
    first_of(most, names, 0)
}

/// Returns at most this many names, and how many more there are, with some of which only the number is
/// known.
pub fn first_of(
    most: usize,
    names: impl IntoIterator<Item = impl Display>,
    unnamed: usize,
) -> String {
    let mut names = names.into_iter();
    let mut text = list(names.by_ref().take(most));
    let more = names.count() + unnamed;
    if 0 < more {
        let _ = write!(text, " and {more} more");
    }
    text
}

/// Returns names with a word such as `or` between them; of many names the first few, and how many more there
/// are: `a, b, c or 4 more`.
pub fn joined(names: impl IntoIterator<Item = impl Display>, word: &str) -> String {
    let mut names = names.into_iter();
    let few: Vec<String> = names.by_ref().take(NAMED + 1).map(|it| it.to_string()).collect();
    match names.count() {
        0 => few.join(&format!(" {word} ")),
        more => {
            let first = list(few.iter().take(NAMED));
            format!("{first} {word} {} more", more + few.len() - NAMED)
        }
    }
}

/// Returns how many more there are, to put behind the first one: ` (and 3 more nodes)`. Without
/// more there is nothing.
pub fn and_more(more: usize, noun: &str) -> String {
    match (more, noun) {
        (0, _) => String::new(),
        (more, "") => format!(" (and {more} more)"),
        (more, noun) => format!(" (and {})", count(more, &format!("more {noun}"))),
    }
}

/// Returns a text as one word of a command that people copy into a shell.
pub fn shell_word(text: &str) -> String {
    let is_plain = |it: char| it.is_ascii_alphanumeric() || "-_./:@%+,".contains(it);
    if !text.is_empty() && text.chars().all(is_plain) {
        return text.to_owned();
    }
    format!("'{}'", text.replace('\'', "'\\''"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sentences_stay_short() {
        assert_eq!([0, 1, 2].map(|it| count(it, "node")).join("; "), "0 nodes; 1 node; 2 nodes");
        let shares = [(1, 1), (2, 2), (1, 2)].map(|(some, all)| share(some, all, "node"));
        assert_eq!(shares.join("; "), "the only node; both nodes; 1 of 2 nodes");
        let names = ["a", "b", "c"];
        assert_eq!(list(names), "a, b, c");
        assert_eq!(quoted(names), "`a`, `b`, `c`");
        assert_eq!(
            [1, 2, 3].map(|it| first(it, names)).join("; "),
            "a and 2 more; a, b and 1 more; a, b, c"
        );
        assert_eq!(joined(names, "or"), "a or b or c");
        assert_eq!(joined(["a"; 9], "or"), "a, a, a or 6 more");
        let more = [0, 1, 2].map(|it| and_more(it, "node") + &and_more(it, ""));
        assert_eq!(
            more.join(";"),
            "; (and 1 more node) (and 1 more); (and 2 more nodes) (and 2 more)"
        );
    }

    #[test]
    fn a_shell_reads_one_word() {
        let words = ["east", "arn:aws:eks:eu:1:cluster/a", "", "a b", "$(x)", "it's"];
        assert_eq!(
            words.map(shell_word).join(" "),
            r"east arn:aws:eks:eu:1:cluster/a '' 'a b' '$(x)' 'it'\''s'"
        );
    }
}
