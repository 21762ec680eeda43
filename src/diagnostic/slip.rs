//! Texts that one wrong character keeps from being a range or an address.

use std::collections::BTreeSet;
use std::str::FromStr;

use super::{Quoted, character};
use crate::text::{GLUED_COMMENT, uncommented};

/// The wrong character of a text, and the remedy.
pub(crate) struct Slip {
    /// The problem: a verb with its object.
    pub(crate) problem: String,
    /// The remedy.
    pub(crate) help: String,
}

impl Slip {
    /// Looks for a character in a text that is not a `T`, without which it is one.
    pub(crate) fn find<T: FromStr>(text: &str) -> Option<Self> {
        let is_valid = |it: &str| it.parse::<T>().is_ok();
        if uncommented(text).is_some_and(is_valid) {
            let problem = "has no space before `#`".to_owned();
            return Some(Self { problem, help: GLUED_COMMENT.to_owned() });
        }
        let is_foreign = |it: char| !it.is_ascii_hexdigit() && !matches!(it, '.' | ':' | '/');
        let parts = || text.split(is_foreign).filter(|it| !it.is_empty());
        let (problem, candidates) = match text.chars().find(|it| is_foreign(*it)) {
            Some(foreign) => {
                let joined = ["", ".", ":", "/"].map(|it| parts().collect::<Vec<_>>().join(it));
                (format!("contains {}", character(foreign)), joined.to_vec())
            }
            None => ("has a leading zero".to_owned(), vec![without_leading_zeros(text)]),
        };
        let meant: BTreeSet<String> =
            candidates.into_iter().filter(|it| it != text && is_valid(it)).collect();
        let [meant] = &Vec::from_iter(meant)[..] else { return None };
        Some(Self { problem, help: format!("write {}", Quoted(meant)) })
    }
}

fn without_leading_zeros(text: &str) -> String {
    let parts = text.split('.').map(|mut part| {
        while let Some(rest) = part.strip_prefix('0')
            && rest.starts_with(|it: char| it.is_ascii_digit())
        {
            part = rest;
        }
        part
    });
    parts.collect::<Vec<_>>().join(".")
}

#[cfg(test)]
mod tests {
    use super::Slip;
    use crate::net::Cidr;

    fn report(text: &str) -> Option<String> {
        Slip::find::<Cidr>(text).map(|it| format!("{}; {}", it.problem, it.help))
    }

    #[test]
    fn a_wrong_character_is_named() {
        let all = [
            "10.74,0.0/24",
            "10.0.0.0 /8",
            " 10.0.0.0/8,",
            "10.0.0.0\\8",
            "10.60\u{a0}.0.0/15",
            "fd00\u{ff1a}42::/56",
            "010.070.000.0/16",
            "10.43.0.0/16# k3s",
        ];
        let reports: Vec<String> = all.into_iter().filter_map(report).collect();
        insta::assert_snapshot!(reports.join("\n"), @r"
        contains a comma; write `10.74.0.0/24`
        contains a space; write `10.0.0.0/8`
        contains a space; write `10.0.0.0/8`
        contains `\`; write `10.0.0.0/8`
        contains U+00A0; write `10.60.0.0/15`
        contains U+FF1A; write `fd00:42::/56`
        has a leading zero; write `10.70.0.0/16`
        has no space before `#`; write a space before `#`, and no quotes around the comment
        ");
    }

    #[test]
    fn only_what_is_certain_is_proposed() {
        for text in [
            "10.0.0.0/8,10.2.0.0/16",
            "f0;42::/56",
            "10.0.0.0",
            "::ffff:10.1.0.0/112",
            "10.0.0/8",
            "text",
            "",
        ] {
            assert_eq!(report(text), None, "{text}");
        }
    }
}
