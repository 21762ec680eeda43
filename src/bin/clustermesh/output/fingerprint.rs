//! Fingerprints: what findings are known again by when lines have moved.

use std::collections::BTreeMap;
use std::fmt::Write as _;

use clustermesh::place::Pointer;
use clustermesh::rules::Finding;
use sha2::{Digest as _, Sha256};

use super::site::RepositorySite;

/// Makes fingerprints, no two of which are the same.
#[derive(Default)]
pub(super) struct Fingerprints {
    seen: BTreeMap<String, usize>,
}

impl Fingerprints {
    /// Returns the fingerprint of a finding: its message, the value, the file, and a number if
    /// there are several.
    pub(super) fn next(&mut self, finding: &Finding, site: &RepositorySite) -> String {
        let place = finding.labels.first().map(|label| &label.place);
        let pointer = place.map(|place| pointer(finding, &place.pointer));
        let parts = [
            finding.rule.name,
            &site.path,
            &finding.subject().unwrap_or_default(),
            &pointer.unwrap_or_default(),
            &unplaced(finding.lasting()),
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
    let steps = pointer.steps().map(|step| {
        if is_number(&step) {
            "/*".to_owned()
        } else {
            format!("/{step}")
        }
    });
    steps.collect()
}

/// Returns a message without the lines and columns that parsers put into theirs.
fn unplaced(message: &str) -> String {
    let mut last = "";
    let words = message.split(' ').map(|word| {
        let is_number = word.starts_with(|it: char| it.is_ascii_digit());
        let is_place = is_number && matches!(last, "line" | "column");
        last = word;
        if is_place { "" } else { word }
    });
    words.collect::<Vec<_>>().join(" ")
}

fn digest(parts: &[&str]) -> String {
    let mut hash = Sha256::new();
    for part in parts {
        // Where one part ends and the next begins is part of it.
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
    fn positions_in_messages_do_not_count() {
        let fingerprint_at = |line| {
            unplaced(&format!(
                "not valid YAML: bad indent at line {line}, column 3"
            ))
        };
        assert_eq!(fingerprint_at(4), fingerprint_at(50));
        assert_ne!(unplaced("3 of 4 nodes"), unplaced("3 of 5 nodes"));
    }
}
