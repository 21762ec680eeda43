//! Handshakes: the keys in the `discovered-endpoints` of a node. The endpoints, which are addresses of homes, are not
//! kept.

use std::collections::BTreeSet;
use std::fmt;

use serde::de::{Error as _, IgnoredAny, MapAccess, Visitor};
use serde::{Deserialize, Deserializer};

use crate::wireguard::PublicKey;

/// The keys with which a node reports handshakes.
pub type HandshakeKeys = BTreeSet<[u8; 32]>;

/// The longest report that is read, in bytes. The API server accepts no longer annotations.
const LONGEST: usize = 256 << 10;

/// The most keys of a report: with some 2,800, the annotations of a node are full.
const KEYS: usize = 4096;

/// Returns the keys of a report; none if it cannot be read. Kilo writes an empty text if it has nothing to report. Keys
/// that are not valid are skipped.
pub(super) fn keys(text: &str) -> Option<HandshakeKeys> {
    if text.is_empty() {
        return Some(HandshakeKeys::new());
    }
    if LONGEST < text.len() {
        return None;
    }
    serde_json::from_str(text).ok().map(|ReportedKeys(keys)| keys)
}

struct ReportedKeys(HandshakeKeys);

impl<'de> Deserialize<'de> for ReportedKeys {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct KeysVisitor;

        impl<'de> Visitor<'de> for KeysVisitor {
            type Value = HandshakeKeys;

            fn expecting(&self, formatter: &mut fmt::Formatter) -> fmt::Result {
                write!(formatter, "a map of at most {KEYS} keys")
            }

            // Go writes an empty map in this way too.
            fn visit_unit<E>(self) -> Result<Self::Value, E> {
                Ok(HandshakeKeys::new())
            }

            fn visit_map<A: MapAccess<'de>>(self, mut access: A) -> Result<Self::Value, A::Error> {
                let mut keys = HandshakeKeys::new();
                while let Some((key, _)) = access.next_entry::<String, IgnoredAny>()? {
                    keys.extend(PublicKey::bytes_as_kilo_reads(&key));
                    if KEYS < keys.len() {
                        return Err(A::Error::invalid_length(keys.len(), &self));
                    }
                }
                Ok(keys)
            }
        }

        deserializer.deserialize_any(KeysVisitor).map(Self)
    }
}

#[cfg(test)]
mod tests {
    use base64::Engine as _;
    use base64::engine::general_purpose::STANDARD;

    use super::*;

    fn entry(number: usize, value: &str) -> String {
        let mut key = [0; 32];
        key[..8].copy_from_slice(&number.to_le_bytes());
        format!("\"{}\":{value}", STANDARD.encode(key))
    }

    fn count(text: &str) -> Option<usize> {
        keys(text).map(|it| it.len())
    }

    #[test]
    fn keys_are_read_and_endpoints_are_not() {
        let endpoint = r#"{"IP":"203.0.113.24","Port":51820,"Zone":""}"#;
        let text = format!("{{{},{}}}", entry(1, endpoint), entry(2, endpoint));
        assert_eq!(count(&text), Some(2));
        for text in ["", "{}", "null"] {
            assert_eq!(count(text), Some(0), "{text}");
        }
        let odd = format!("{{\"short\":1,\"\":{{}},{},{}}}", entry(1, "null"), entry(1, "[]"));
        assert_eq!(count(&odd), Some(1), "other keys, repeated keys and wrong values");
    }

    #[test]
    fn hostile_reports_are_not_read() {
        for text in ["[]", "1", "{", "{}{}", "{\"a\"}", "{1:2}", "\u{0}"] {
            assert_eq!(count(text), None, "{text}");
        }
        let deep =
            format!("{{{}}}", entry(1, &format!("{}{}", "[".repeat(100_000), "]".repeat(100_000))));
        assert_eq!(count(&deep), Some(1), "depth costs nothing");
        let many = |number: usize| {
            let entries: Vec<String> = (0..number).map(|it| entry(it, "0")).collect();
            format!("{{{}}}", entries.join(","))
        };
        assert_eq!(count(&many(KEYS)), Some(KEYS));
        assert_eq!(count(&many(KEYS + 1)), None);
        let long = format!("{{\"{}\":0}}", "a".repeat(LONGEST));
        assert_eq!(count(&long), None);
    }
}
