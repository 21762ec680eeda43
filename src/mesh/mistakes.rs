//! Mistakes: what all checks of a mesh share.

use crate::diagnostic::{Finding, Mistakes, Quoted, escaped, mistake};
use crate::name::NameError;
use crate::place::Place;

/// The remedy for what is written twice.
pub(super) const REMOVE_ONE: &str = "remove one of the two";

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
            let reason = escaped(&error.to_string(), 240);
            let message = format!("{} is not a valid {whose} name: {reason}", Quoted(text));
            let finding = Finding::new(&mistake::INVALID_VALUE, message).at(place.clone(), "");
            findings.push(if text.is_empty() {
                finding.shadow()
            } else {
                finding
            });
            None
        }
    }
}
