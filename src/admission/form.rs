//! The form of a Peer: its fields as they are written, of which any may be wrong.

use std::borrow::Cow;
use std::net::IpAddr;
use std::num::NonZeroU64;

use serde_json::Value;

use super::ANY;
use crate::agent::applied::Applied;
use crate::kilo::peer::Peer;
use crate::kilo::peer::loose::LoosePeer;
use crate::name::{ClusterName, MeshName};
use crate::net::{Cidr, Interface};
use crate::wireguard::{Endpoint, Host, text_of_key};

/// A Peer as it is written.
#[derive(Clone, Debug, PartialEq)]
pub struct PeerForm<'p> {
    /// The name of the object.
    pub name: &'p str,
    pub(super) mesh: Option<&'p str>,
    pub(super) source: Option<Cow<'p, str>>,
    /// Whether its label names an external peer.
    pub(super) is_external: bool,
    pub(super) is_managed: bool,
    pub(super) ranges: Vec<RangeForm>,
    pub(super) endpoint: Option<EndpointForm<'p>>,
    pub(super) keepalive: i64,
    pub(super) key: Cow<'p, str>,
}

/// An allowed IP.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(super) enum RangeForm {
    /// A range, perhaps with host bits.
    Range(Interface),
    /// An IPv4 range written as IPv6, or a text that begins so.
    Mapped,
    /// Anything else.
    Unreadable,
}

#[derive(Clone, Debug, PartialEq)]
pub(super) struct EndpointForm<'p> {
    pub(super) dns: &'p str,
    pub(super) ip: Cow<'p, str>,
    pub(super) port: i64,
}

impl<'p> PeerForm<'p> {
    /// Reads a Peer of a manifest or of a cluster.
    pub fn read(name: &'p str, object: LoosePeer<'p>) -> Self {
        let spec = object.spec;
        let ranges = spec.get("allowedIPs").and_then(Value::as_array);
        let texts = ranges.into_iter().flatten().map(Value::as_str);
        let number = |value: &Value| value.as_i64().unwrap_or(i64::MAX);
        let endpoint = spec.get("endpoint").filter(|it| !it.is_null());
        Self {
            name,
            mesh: object.mesh(),
            source: object.source(),
            is_external: object.external().is_some(),
            is_managed: object.is_rendered(),
            ranges: texts.map(|it| RangeForm::read(it.unwrap_or_default())).collect(),
            endpoint: endpoint.map(|endpoint| {
                let host = |field: &str| endpoint.get("dnsOrIP")?.get(field)?.as_str();
                EndpointForm {
                    dns: host("dns").unwrap_or_default(),
                    ip: host("ip").unwrap_or_default().into(),
                    port: endpoint.get("port").map_or(1, number),
                }
            }),
            keepalive: spec.get("persistentKeepalive").map_or(0, number),
            key: spec.get("publicKey").and_then(Value::as_str).unwrap_or_default().into(),
        }
    }

    /// Returns the form of a Peer that is rendered.
    pub fn rendered(peer: &'p Peer) -> Self {
        let ranges = peer.allowed_ips.iter();
        let endpoint = peer.endpoint.as_ref();
        Self {
            name: peer.name.as_str(),
            mesh: Some(peer.mesh.as_str()),
            source: Some(peer.cluster.as_str().into()),
            is_external: peer.cluster.is_external(),
            is_managed: true,
            ranges: ranges.map(|it| RangeForm::new(*it)).collect(),
            endpoint: endpoint.map(EndpointForm::new),
            keepalive: peer.keepalive.map_or(0, |it| it.0.get().into()),
            key: peer.key.to_string().into(),
        }
    }

    /// Returns the form of a Peer that was read from a manifest or a cluster.
    pub fn applied(peer: &'p Applied) -> Self {
        if let Some(written) = peer.written.loose() {
            return Self::read(&peer.name, written);
        }
        let spec = peer.spec.as_ref().ok();
        let ranges = spec.into_iter().flat_map(|it| it.allowed_ips.iter());
        let endpoint = spec.and_then(|it| it.endpoint.as_ref());
        let keepalive = spec.and_then(|it| it.keepalive).map_or(0, NonZeroU64::get);
        Self {
            name: &peer.name,
            mesh: peer.claims.mesh.as_ref().map(MeshName::as_str),
            source: peer.claims.source.as_ref().map(|it| it.as_str().into()),
            is_external: peer.claims.source.as_ref().is_some_and(ClusterName::is_external),
            is_managed: peer.claims.is_rendered,
            ranges: ranges.map(|it| RangeForm::Range(it.interface)).collect(),
            endpoint: endpoint.map(EndpointForm::new),
            keepalive: keepalive.try_into().unwrap_or(i64::MAX),
            key: spec.map_or_else(String::new, |it| text_of_key(&it.key)).into(),
        }
    }

    /// Returns the mesh and the source in its labels, as a guard looks them up.
    pub(super) fn key(&self) -> String {
        let (mesh, source) = self.labels();
        format!("{mesh}/{source}")
    }

    /// Returns whether its name is one that fits its labels. An external peer has one Peer.
    pub(super) fn is_named_as_labelled(&self) -> bool {
        let (mesh, source) = self.labels();
        let set = format!("{mesh}--{source}");
        if self.is_external {
            return self.name == set;
        }
        self.name.starts_with(&format!("{set}--"))
    }

    fn labels(&self) -> (&str, &str) {
        let source = self.source.as_deref().unwrap_or_default();
        (self.mesh.unwrap_or(ANY), source)
    }

    /// Returns whether it has a label of clustermesh.
    pub(super) fn is_ours(&self) -> bool {
        self.mesh.is_some() || self.source.is_some() || self.is_managed
    }
}

impl<'p> EndpointForm<'p> {
    fn new(endpoint: &'p Endpoint) -> Self {
        let (dns, ip) = match &endpoint.host {
            Host::Ip(address) => ("", address.to_string()),
            Host::Dns(name) => (name.as_str(), String::new()),
        };
        Self { dns, ip: ip.into(), port: endpoint.port.get().into() }
    }
}

impl RangeForm {
    fn new(range: Cidr) -> Self {
        Self::Range(Interface { address: range.first(), network: range })
    }

    /// Reads what Go's `netip.ParsePrefix` reads. `Interface` also takes leading zeros of a length.
    fn read(text: &str) -> Self {
        let length = text.rsplit_once('/').map_or("", |it| it.1);
        let has_zeros = 1 < length.len() && length.starts_with('0');
        match text.parse() {
            Ok(interface) if !has_zeros => Self::Range(interface),
            _ if is_mapped(text) => Self::Mapped,
            _ => Self::Unreadable,
        }
    }
}

/// Returns whether a text begins as an IPv4 address that is written as IPv6.
fn is_mapped(text: &str) -> bool {
    let text = text.to_ascii_lowercase();
    let zeros = text.split_once("ffff:").map(|it| it.0);
    zeros.is_some_and(|it| it.ends_with(':') && it.bytes().all(|it| matches!(it, b'0' | b':')))
}

/// Reads what Go's `netip.ParseAddr` reads, but for zones and IPv4-mapped addresses.
pub(super) fn address(text: &str) -> Option<IpAddr> {
    let address: IpAddr = text.parse().ok()?;
    (address.to_canonical() == address).then_some(address)
}
