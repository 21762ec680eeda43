//! The clock: what time it is, and which day.

#[cfg(feature = "snapshot")]
use std::time::Duration;
use std::time::{SystemTime, UNIX_EPOCH};

use clustermesh::config::Date;

/// Returns the time in Unix seconds.
pub(crate) fn now() -> i64 {
    let since = SystemTime::now().duration_since(UNIX_EPOCH);
    since.map_or(0, |since| i64::try_from(since.as_secs()).unwrap_or(i64::MAX))
}

/// Returns the day, in UTC: the same on every machine.
pub(crate) fn today() -> Date {
    Date::from_unix_seconds(now())
}

/// Reads a time, such as 90s, 5m or 1h.
#[cfg(feature = "snapshot")]
pub(crate) fn duration(text: &str) -> Result<Duration, String> {
    let units = [("s", 1), ("m", 60), ("h", 3600)];
    let unit = units.iter().find_map(|(unit, seconds)| {
        let number = text.strip_suffix(unit)?.parse::<u64>().ok()?;
        number.checked_mul(*seconds)
    });
    let most = 24 * 3600;
    match unit {
        Some(seconds) if seconds <= most => Ok(Duration::from_secs(seconds)),
        Some(_) => Err("at most 24h".to_owned()),
        None => Err("expected a number with s, m or h, such as 90s or 5m".to_owned()),
    }
}
