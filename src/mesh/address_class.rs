//! Classes of addresses: what a cluster uses them for.

use std::fmt;

use schemars::JsonSchema;
use serde::Serialize;

/// The class of a source or destination.
#[derive(Clone, Copy, Debug, Eq, Hash, JsonSchema, Ord, PartialEq, PartialOrd, Serialize)]
#[schemars(rename = "Class")]
#[serde(rename_all = "lowercase")]
pub enum AddressClass {
    /// Pods.
    Pod,
    // They send from the internal address since Kilo 0.7 (`kilo.md` §6.3).
    /// Nodes, including the pods in their host network.
    Node,
    // The anchor of their cluster carries packets to them (`kilo.md` §6.4).
    /// Services.
    Service,
    // The anchor carries packets to these too.
    /// Other networks that a cluster declares.
    Network,
}

impl AddressClass {
    /// Returns its name, as people and programs write it.
    pub fn name(self) -> &'static str {
        match self {
            Self::Pod => "pod",
            Self::Node => "node",
            Self::Service => "service",
            Self::Network => "network",
        }
    }
}

impl fmt::Display for AddressClass {
    fn fmt(&self, formatter: &mut fmt::Formatter) -> fmt::Result {
        formatter.write_str(self.name())
    }
}
