//! Differences between two Peers in words.

use crate::agent::difference::Difference;
use crate::diagnostic::escaped;
use crate::net::Cidr;
use crate::text::first;
use crate::wireguard::Endpoint;

/// The longest name that is shown, in characters.
const SHOWN: usize = 300;

/// The largest number of ranges of a list that are shown.
const LISTED: usize = 4;

/// Returns a difference as a phrase.
pub fn difference(difference: &Difference) -> String {
    let seconds = |seconds: u64| match seconds {
        0 => "none".to_owned(),
        seconds => format!("{seconds} s"),
    };
    match difference {
        Difference::Key => "another key".to_owned(),
        Difference::Endpoint { from, to } => {
            format!("endpoint {}", moved(from.as_ref(), to.as_ref()))
        }
        Difference::Keepalive { from, to } => {
            format!("keepalive {} → {}", seconds(*from), seconds(*to))
        }
        Difference::PresharedKey => "another preshared key".to_owned(),
        Difference::RangesGained(ranges) => format!("gains {}", self::ranges(ranges)),
        Difference::RangesLost(ranges) => format!("loses {}", self::ranges(ranges)),
        Difference::Spelling => "the same ranges in another order or form".to_owned(),
        Difference::Validity => "whether Kilo accepts it".to_owned(),
    }
}

/// Returns how an endpoint changes.
pub fn moved(from: Option<&Endpoint>, to: Option<&Endpoint>) -> String {
    let shown = |endpoint: Option<&Endpoint>| match endpoint {
        Some(endpoint) => escaped(&endpoint.to_string(), SHOWN),
        None => "none".to_owned(),
    };
    format!("{} → {}", shown(from), shown(to))
}

/// Lists the first ranges.
pub fn ranges(ranges: &[Cidr]) -> String {
    if ranges.is_empty() {
        return "no range".to_owned();
    }
    first(LISTED, ranges)
}
