//! Mistakes: what all checks of a mesh share.

use std::net::IpAddr;

use crate::diagnostic::{Finding, Mistakes, Quoted, Slip, mistake};
use crate::name::{ClusterName, NameError, nearest_label};
use crate::place::Place;

/// The remedy for what is written twice.
pub(super) const REMOVE_ONE: &str = "remove one of the two";

/// Returns the finding about an invalid name.
pub fn invalid_name(whose: &str, text: &str, error: &NameError, place: Place) -> Finding {
    let message = format!("{} is not a valid {whose} name: {error}", Quoted(text));
    let finding = Finding::new(&mistake::INVALID_VALUE, message).at(place, "");
    match nearest_label(text).filter(|it| it != text) {
        Some(meant) => finding.corrected(&meant, format!("write `{meant}`")),
        None => finding,
    }
}

/// Returns the finding about a text that is not an address, with this remedy unless it is almost one.
pub(super) fn invalid_address(text: &str, place: Place, help: &str) -> Finding {
    let (problem, help) = match Slip::find::<IpAddr>(text) {
        Some(Slip { problem, help }) => {
            (format!("invalid address: {} {problem}", Quoted(text)), help)
        }
        None => (format!("{} is not an IP address", Quoted(text)), help.to_owned()),
    };
    Finding::new(&mistake::INVALID_VALUE, problem).at(place, "").help(help)
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
