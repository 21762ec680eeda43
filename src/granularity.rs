//! The granularity: how Kilo divides a cluster into segments.

use std::fmt;

use schemars::JsonSchema;
use serde::Deserialize;

/// Kilo's `--mesh-granularity`.
#[derive(Clone, Copy, Debug, Deserialize, Eq, JsonSchema, Ord, PartialEq, PartialOrd)]
pub enum Granularity {
    /// One tunnel end per location, held by its leader. Kilo's default.
    Location,
    /// One tunnel end per node.
    Full,
    /// One tunnel end per node, but none between nodes of one location (squat/kilo#490).
    Cross,
}

impl Granularity {
    /// Reads what Kilo's agent writes into `kilo.squat.ai/granularity`.
    pub fn from_annotation(text: &str) -> Option<Self> {
        match text {
            "location" => Some(Self::Location),
            "full" => Some(Self::Full),
            "cross" => Some(Self::Cross),
            _ => None,
        }
    }
}

impl fmt::Display for Granularity {
    fn fmt(&self, formatter: &mut fmt::Formatter) -> fmt::Result {
        formatter.write_str(match self {
            Self::Location => "Location",
            Self::Full => "Full",
            Self::Cross => "Cross",
        })
    }
}
