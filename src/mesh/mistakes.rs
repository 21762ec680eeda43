//! Mistakes: what all checks of a mesh share.

use crate::diagnostic::{Finding, Mistakes, Quoted, mistake};
use crate::name::{ClusterName, NameError};
use crate::place::Place;

/// The remedy for what is written twice.
pub(super) const REMOVE_ONE: &str = "remove one of the two";

/// Returns the finding about an invalid name.
pub fn invalid_name(whose: &str, text: &str, error: &NameError, place: Place) -> Finding {
    let message = format!("{} is not a valid {whose} name: {error}", Quoted(text));
    Finding::new(&mistake::INVALID_VALUE, message).at(place, "")
}

/// Returns the name of a cluster, or reports why it is invalid.
pub(crate) fn cluster_name(
    text: &str,
    place: &Place,
    findings: &mut Mistakes,
) -> Option<ClusterName> {
    name_or_finding("cluster", text, text.parse(), place, findings)
}

/// Returns the name of a cluster or of an external peer, or reports why it is invalid.
pub(crate) fn member_name(
    text: &str,
    place: &Place,
    findings: &mut Mistakes,
) -> Option<ClusterName> {
    let parsed = ClusterName::of_member(text);
    name_or_finding("cluster", text, parsed, place, findings)
}

/// Returns a name, or reports why it is invalid.
pub(super) fn name_or_finding<T>(
    whose: &str,
    text: &str,
    parsed: Result<T, NameError>,
    place: &Place,
    findings: &mut Mistakes,
) -> Option<T> {
    match parsed {
        Ok(name) => Some(name),
        Err(error) => {
            let finding = invalid_name(whose, text, &error, place.clone());
            findings.push(if text.is_empty() { finding.shadow() } else { finding });
            None
        }
    }
}
