//! Near misses: the name that was probably meant.

/// Longer texts are not typing errors, and comparing them would take long.
const LONGEST: usize = 64;

/// The number of characters that make the beginning of a name.
const SHORTEST_START: usize = 3;

/// Returns the candidate that `name` looks like: spelled alike but for case, a few mistakes away,
/// or cut short.
pub fn nearest<'a>(name: &str, candidates: impl IntoIterator<Item = &'a str>) -> Option<&'a str> {
    let name = name.to_lowercase();
    let length = name.chars().count();
    if LONGEST < length {
        return None;
    }
    let slips = (length / 3).clamp(1, 3);
    let is_near = |distance: usize, candidate: &str| {
        distance <= slips && distance < length
            || SHORTEST_START <= length && candidate.to_lowercase().starts_with(&name)
    };
    candidates
        .into_iter()
        .map(|candidate| {
            let distance = strsim::osa_distance(&name, &candidate.to_lowercase());
            (distance, candidate)
        })
        .filter(|(distance, candidate)| is_near(*distance, candidate))
        .min_by_key(|(distance, _)| *distance)
        .map(|(_, candidate)| candidate)
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
    }

    #[test]
    fn does_not_guess_wildly() {
        assert_eq!(nearest("topology", ["podCIDRs", "name"]), None);
        assert_eq!(nearest("acceptedNetworks", ["allowedNetworks"]), None);
        assert_eq!(nearest("", ["a"]), None);
        assert_eq!(nearest("x", ["a"]), None);
    }
}
