//! Fingerprints: what findings are known again by when lines have moved or messages were reworded.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt::Write as _;

use crate::place::Pointer;
use crate::rules::Finding;
use sha2::{Digest as _, Sha256};

use super::repository_place::RepositoryPlace;

/// Makes fingerprints, no two of which are the same.
#[derive(Default)]
pub(super) struct Fingerprints {
    seen: BTreeMap<String, usize>,
}

impl Fingerprints {
    /// Returns the fingerprint of a finding: its rule, its place, the values in its message, and a
    /// number if there are several.
    pub(super) fn next(&mut self, finding: &Finding, place: &RepositoryPlace) -> String {
        let label = finding.labels.first();
        let pointer = label.map(|it| pointer(finding, &it.place.pointer));
        let parts = [
            finding.rule.name(),
            &place.path,
            &finding.subject().unwrap_or_default(),
            &pointer.unwrap_or_default(),
            &values(finding.lasting()),
        ];
        let mut fingerprint = digest(&parts);
        let count = self.seen.entry(fingerprint.clone()).or_default();
        *count += 1;
        let _ = write!(fingerprint, ":{count}");
        fingerprint
    }
}

/// Returns where in a file a finding is. A node is known by its name: what number it has changes
/// with every other node.
fn pointer(finding: &Finding, pointer: &Pointer) -> String {
    if finding.node.is_none() && finding.alike.is_none() {
        return pointer.to_string();
    }
    let is_number = |step: &str| step.bytes().all(|it| it.is_ascii_digit());
    let steps = pointer
        .steps()
        .map(|step| if is_number(&step) { "/*".to_owned() } else { format!("/{step}") });
    steps.collect()
}

/// Returns the values in a message: what is quoted in code, numbers, addresses and paths. The words
/// between them may change from version to version, and so may the order.
fn values(message: &str) -> String {
    let mut values = BTreeSet::new();
    for (number, part) in message.split('`').enumerate() {
        if number % 2 == 1 {
            values.insert(part);
        } else {
            values.extend(values_in(part));
        }
    }
    values.into_iter().collect::<Vec<_>>().join("\n")
}

/// Returns the values among words, without the lines and columns that parsers put into messages.
fn values_in(words: &str) -> impl Iterator<Item = &str> {
    let mut last = "";
    words
        .split_whitespace()
        .map(|word| word.trim_matches(|it: char| !it.is_alphanumeric() && it != '/'))
        .filter(move |word| {
            let is_number = word.starts_with(|it: char| it.is_ascii_digit());
            let is_position = is_number && matches!(last, "line" | "column");
            last = word;
            !is_position && (is_number || word.contains(['/', ':', '@']))
        })
}

fn digest(parts: &[&str]) -> String {
    let mut hash = Sha256::new();
    for part in parts {
        // The borders between parts belong to it.
        hash.update(part.len().to_be_bytes());
        hash.update(part);
    }
    let mut digest = String::new();
    for byte in hash.finalize().iter().take(16) {
        let _ = write!(digest, "{byte:02x}");
    }
    digest
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn words_and_positions_do_not_count() {
        let at = |line| format!("not valid YAML: bad indent at line {line}, column 3");
        assert_eq!(values(&at(4)), values(&at(50)));
        assert_ne!(values("3 of 4 nodes"), values("3 of 5 nodes"));
        assert_eq!(
            values("pod CIDR `10.0.0.0/8` overlaps 10.1.0.0/16 of east/n1"),
            values("10.1.0.0/16 (east/n1) is within the pod CIDR `10.0.0.0/8`."),
        );
        assert_ne!(values("the key `a` is wrong"), values("the key `b` is wrong"));
        assert_ne!(values("east/a is lost"), values("east/b is lost"));
        assert_eq!(values("there is no mesh"), values("no mesh was found"));
    }
}
