//! Words for levels and ignores of the config that have expired or match nothing.

use super::Finding;
use crate::config::{Date, Ignore, RuleLevel};
use crate::diagnostic::{Quoted, escaped};

rules! {
    "Levels and ignores in the config" in "levels" about Files;
    EXPIRED_IGNORE = "expired-ignore" Warning;
    EXPIRED_LEVEL = "expired-level" Warning;
    UNUSED_IGNORE = "unused-ignore" Warning;
}

/// The longest part of a reason that is shown, in characters.
const MAX_LENGTH: usize = 200;

/// Returns a finding about a level whose time is over, and what follows.
pub(super) fn expired_level(level: &RuleLevel, until: Date, then: &str) -> Finding {
    let (rule, meant) = (Quoted(&level.rule), level.level);
    let message = format!("level `{meant}` of {rule} expired on {until}; {then}");
    Finding::new(&EXPIRED_LEVEL, message)
        .at(level.place.key("until"), "")
        .help(still_meant(level.reason.as_deref()))
}

/// Returns a finding about an ignore whose time is over, and what follows.
pub(super) fn expired_ignore(ignore: &Ignore, until: Date, then: &str) -> Finding {
    let message = format!("ignore of {} expired on {until}; {then}", what(ignore));
    Finding::new(&EXPIRED_IGNORE, message)
        .at(ignore.place.key("until"), "")
        .help(still_meant(Some(&ignore.reason)))
}

/// Returns a finding about an ignore that matches no finding.
pub(super) fn unused_ignore(ignore: &Ignore) -> Finding {
    let message = format!("unused ignore: no finding matches {}", what(ignore));
    Finding::new(&UNUSED_IGNORE, message)
        .at(ignore.place.key("rule"), "")
        .help("remove it, or correct its cluster and node")
}

/// Names the ignored finding: `missing-endpoint` of east/n1.
fn what(ignore: &Ignore) -> String {
    let rule = Quoted(&ignore.rule);
    match (&ignore.cluster, &ignore.node) {
        (None, None) => rule.to_string(),
        (Some(cluster), None) => format!("{rule} of `{cluster}`"),
        (None, Some(node)) => format!("{rule} of any node {}", Quoted(node)),
        (Some(cluster), Some(node)) => format!("{rule} of {} of `{cluster}`", Quoted(node)),
    }
}

fn still_meant(reason: Option<&str>) -> String {
    let now = "set a new date, or remove it";
    match reason {
        Some(reason) => format!("{now} (reason given: {})", escaped(reason, MAX_LENGTH)),
        None => now.to_owned(),
    }
}
