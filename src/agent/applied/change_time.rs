//! Change times: when the spec of a Peer was last changed, as its API server shows it.

use std::fmt;

use jiff::Timestamp;
use serde::de::{IgnoredAny, MapAccess, SeqAccess, Visitor};
use serde::{Deserialize, Deserializer};

/// A time in Unix seconds; none if it is missing or not a time.
#[derive(Clone, Copy, Debug, Default, Eq, Ord, PartialEq, PartialOrd)]
pub(super) struct ChangeTime(pub(super) Option<i64>);

/// The newest time of the managers of a spec. An apply without a change does not move it.
#[derive(Default)]
pub(super) struct ManagedChanges(pub(super) ChangeTime);

#[derive(Deserialize)]
struct ManagedFields {
    #[serde(default)]
    time: ChangeTime,
    #[serde(default, rename = "fieldsV1")]
    fields: HasSpec,
}

/// Whether a manager has fields of the spec.
#[derive(Default)]
struct HasSpec(bool);

impl ChangeTime {
    /// Returns this time, or else another one.
    pub(super) fn or(self, other: Self) -> Self {
        Self(self.0.or(other.0))
    }
}

impl<'de> Deserialize<'de> for ChangeTime {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let text: Option<String> = Option::deserialize(deserializer)?;
        let time = text.and_then(|it| it.parse::<Timestamp>().ok());
        Ok(Self(time.map(Timestamp::as_second)))
    }
}

impl<'de> Deserialize<'de> for ManagedChanges {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct ChangesVisitor;

        impl<'de> Visitor<'de> for ChangesVisitor {
            type Value = ChangeTime;

            fn expecting(&self, formatter: &mut fmt::Formatter) -> fmt::Result {
                formatter.write_str("a list of managed fields")
            }

            fn visit_unit<E>(self) -> Result<ChangeTime, E> {
                Ok(ChangeTime::default())
            }

            fn visit_seq<A: SeqAccess<'de>>(self, mut access: A) -> Result<ChangeTime, A::Error> {
                let mut newest = ChangeTime::default();
                while let Some(manager) = access.next_element::<ManagedFields>()? {
                    if manager.fields.0 {
                        newest = newest.max(manager.time);
                    }
                }
                Ok(newest)
            }
        }

        deserializer.deserialize_any(ChangesVisitor).map(Self)
    }
}

impl<'de> Deserialize<'de> for HasSpec {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct FieldsVisitor;

        impl<'de> Visitor<'de> for FieldsVisitor {
            type Value = bool;

            fn expecting(&self, formatter: &mut fmt::Formatter) -> fmt::Result {
                formatter.write_str("a map of fields")
            }

            fn visit_unit<E>(self) -> Result<bool, E> {
                Ok(false)
            }

            fn visit_map<A: MapAccess<'de>>(self, mut access: A) -> Result<bool, A::Error> {
                let mut has_spec = false;
                while let Some((key, _)) = access.next_entry::<String, IgnoredAny>()? {
                    has_spec |= key == "f:spec";
                }
                Ok(has_spec)
            }
        }

        deserializer.deserialize_any(FieldsVisitor).map(Self)
    }
}
