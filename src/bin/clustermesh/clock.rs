//! The clock: what time it is, and which day.

use std::time::{SystemTime, UNIX_EPOCH};

use clustermesh::config::Date;

/// Returns the time in Unix seconds.
pub(crate) fn now() -> i64 {
    let since = SystemTime::now().duration_since(UNIX_EPOCH);
    since.map_or(0, |since| {
        i64::try_from(since.as_secs()).unwrap_or(i64::MAX)
    })
}

/// Returns the day, in UTC: the same on every machine.
pub(crate) fn today() -> Date {
    Date::from_unix_seconds(now())
}
