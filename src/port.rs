//! Ports of Services.

use std::fmt;
use std::num::NonZeroU16;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// A port of a Service.
#[derive(Clone, Debug, Deserialize, Eq, JsonSchema, Ord, PartialEq, PartialOrd, Serialize)]
#[serde(deny_unknown_fields, rename_all = "camelCase")]
pub struct ServicePort {
    /// The application protocol.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub app_protocol: Option<String>,
    /// The name, which may be empty if it is the only port.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub name: String,
    /// The number.
    pub port: NonZeroU16,
    /// The protocol.
    pub protocol: Protocol,
}

/// The protocol of a port.
#[derive(
    Clone, Copy, Debug, Deserialize, Eq, JsonSchema, Ord, PartialEq, PartialOrd, Serialize,
)]
#[serde(rename_all = "UPPERCASE")]
pub enum Protocol {
    /// TCP.
    Tcp,
    /// UDP.
    Udp,
    /// SCTP.
    Sctp,
}

impl ServicePort {
    /// Returns whether another port has the same number and protocol, so that both are one for packets.
    pub fn is_same(&self, other: &Self) -> bool {
        (self.port, self.protocol) == (other.port, other.protocol)
    }
}

impl fmt::Display for ServicePort {
    fn fmt(&self, formatter: &mut fmt::Formatter) -> fmt::Result {
        let protocol = match self.protocol {
            Protocol::Tcp => "TCP",
            Protocol::Udp => "UDP",
            Protocol::Sctp => "SCTP",
        };
        write!(formatter, "{}/{protocol}", self.port)
    }
}
