//! The judgement: which rules of a guard a Peer breaks, as its fields are written, and what an API server spends on one
//! Peer before it gives up. Each line of the judgement has its counterpart in `templates/admission/policy.yaml.j2`.

use std::borrow::Cow;
use std::collections::{BTreeMap, BTreeSet};
use std::net::IpAddr;
use std::num::NonZeroU64;

use serde_json::Value;

use super::{ANY, Guard, MOST_COMPARED, MOST_RANGES, Refusal};
use crate::agent::applied::Applied;
use crate::kilo::peer::Peer;
use crate::kilo::peer::loose::LoosePeer;
use crate::name::{ClusterName, MeshName, is_dns_subdomain};
use crate::net::{Cidr, Family, Interface};
use crate::wireguard::{Endpoint, Host, PublicKey, text_of_key};

/// A Peer, and what a guard declares about its labels.
struct Judgement<'g> {
    guard: &'g Guard,
    form: &'g PeerForm<'g>,
    /// The mesh and the source in its labels.
    key: String,
    /// Its ranges, if all of them can be read.
    ranges: Vec<Interface>,
    /// Those that are not accepted of its source.
    outside: Vec<Cidr>,
    address: Option<IpAddr>,
}

impl Guard {
    /// Returns the rules that a Peer breaks, in order of weight. The rules about its writer are not checked.
    pub fn refusals(&self, form: &PeerForm) -> Vec<Refusal> {
        let judgement = Judgement::new(self, form);
        Refusal::ALL.iter().copied().filter(|it| judgement.breaks(*it)).collect()
    }

    /// Returns the ranges that are accepted of a Peer.
    fn accepted(&self, form: &PeerForm, key: &str) -> &[Cidr] {
        let accepted = if form.is_ours() {
            self.declared.sources.get(key)
        } else {
            self.access.peers.get(form.name)
        };
        accepted.map_or(&[], Vec::as_slice)
    }
}

impl<'g> Judgement<'g> {
    fn new(guard: &'g Guard, form: &'g PeerForm<'g>) -> Self {
        let key = form.key();
        let read = form.ranges.iter().map(|it| match it {
            RangeForm::Range(range) => Some(*range),
            RangeForm::Mapped | RangeForm::Unreadable => None,
        });
        let ranges: Option<Vec<Interface>> =
            (form.ranges.len() <= MOST_RANGES).then(|| read.collect()).flatten();
        let ranges = ranges.unwrap_or_default();
        let accepted = guard.accepted(form, &key);
        let networks = ranges.iter().map(|it| it.network);
        let outside = networks.filter(|it| !accepted.iter().any(|range| range.contains(*it)));
        let endpoint = form.endpoint.as_ref();
        Self {
            guard,
            form,
            outside: outside.collect(),
            ranges,
            address: endpoint.and_then(|it| address(&it.ip)),
            key,
        }
    }

    /// Returns whether the Peer breaks a rule.
    fn breaks(&self, rule: Refusal) -> bool {
        let form = self.form;
        let is_small = form.ranges.len() <= MOST_RANGES;
        match rule {
            // A person or a program writes it, which is not known here.
            Refusal::Writer | Refusal::PeerWriter => false,
            Refusal::Unlisted => !form.is_ours() && !self.is_listed(),
            Refusal::Source => form.is_ours() && !self.declared_source(),
            Refusal::Name => form.is_ours() && !form.is_named_as_labelled(),
            Refusal::ManyRanges => !is_small,
            Refusal::NoRange => form.ranges.is_empty(),
            Refusal::MappedRange => is_small && form.ranges.contains(&RangeForm::Mapped),
            Refusal::UnreadableRange => {
                let is_range = |it: &RangeForm| matches!(it, RangeForm::Range(_));
                is_small && !form.ranges.iter().all(is_range)
            }
            Refusal::DefaultRoute => {
                self.ranges.iter().map(|it| it.network.prefix_length()).any(|it| it == 0)
            }
            Refusal::OwnRange => {
                let own = self.of_mesh(&self.guard.declared.own);
                let is_own = |it: &Cidr| own.iter().any(|own| own.overlaps(*it));
                self.outside.iter().any(is_own)
            }
            Refusal::Family => {
                let families = &self.guard.declared.families;
                self.outside.iter().any(|it| !families.contains(&it.family()))
            }
            Refusal::Outside => !self.outside.is_empty(),
            Refusal::HostBits => !self.ranges.iter().all(|it| it.is_network()),
            Refusal::Twice => {
                let different: BTreeSet<&Interface> = self.ranges.iter().collect();
                self.ranges.len() <= MOST_COMPARED && different.len() < self.ranges.len()
            }
            Refusal::Key => {
                let key = PublicKey::bytes_as_kilo_reads(&form.key);
                key.is_none_or(|it| text_of_key(&it) != *form.key)
            }
            Refusal::Keepalive => u16::try_from(form.keepalive).is_err(),
            _ => self.breaks_of_endpoint(rule),
        }
    }

    /// Returns whether the endpoint breaks a rule.
    fn breaks_of_endpoint(&self, rule: Refusal) -> bool {
        let Some(endpoint) = &self.form.endpoint else {
            return rule == Refusal::NoEndpoint && (self.form.is_ours() || !self.is_listed());
        };
        let is_inside = |ranges: &[Cidr]| {
            let address = self.address.into_iter();
            address.flat_map(|it| ranges.iter().map(move |range| range.holds(it))).any(|it| it)
        };
        match rule {
            Refusal::Address => endpoint.dns.is_empty() && self.address.is_none(),
            Refusal::NameAndAddress => !endpoint.dns.is_empty() && !endpoint.ip.is_empty(),
            Refusal::Domain => !endpoint.dns.is_empty() && !self.is_declared_name(endpoint.dns),
            Refusal::Undialable => self.address.is_some_and(|it| Host::Ip(it).check().is_err()),
            Refusal::Loop => {
                let networks: Vec<Cidr> = self.ranges.iter().map(|it| it.network).collect();
                is_inside(&networks)
            }
            Refusal::OwnEndpoint => is_inside(self.of_mesh(&self.guard.declared.closed)),
            Refusal::IdlePlaceholder => {
                let placeholder = Endpoint::PLACEHOLDER;
                let is_port = i64::from(placeholder.port.get()) == endpoint.port;
                let is_placeholder = is_port && self.address == placeholder.address();
                is_placeholder && self.form.keepalive == 0
            }
            Refusal::Port => !(1..=65535).contains(&endpoint.port),
            _ => false,
        }
    }

    fn is_listed(&self) -> bool {
        self.guard.access.peers.contains_key(self.form.name)
    }

    fn declared_source(&self) -> bool {
        // The value of the other label could look like an external peer.
        let looks_external = self.form.source.as_ref();
        let looks_external = looks_external.is_some_and(|it| it.starts_with("external."));
        let is_consistent = self.form.is_external == looks_external;
        is_consistent && self.guard.declared.sources.contains_key(&self.key)
    }

    /// Returns the ranges of the mesh in the labels.
    fn of_mesh(&self, ranges: &'g BTreeMap<String, Vec<Cidr>>) -> &'g [Cidr] {
        let mesh = self.form.mesh.unwrap_or(ANY);
        ranges.get(mesh).map_or(&[], Vec::as_slice)
    }

    /// Returns whether a name is under a domain of its source.
    fn is_declared_name(&self, name: &str) -> bool {
        let domains = self.guard.declared.domains.get(&self.key);
        let is_under = |domain: &String| {
            name.strip_suffix(domain.as_str()).is_some_and(|it| it.is_empty() || it.ends_with('.'))
        };
        let is_name = is_dns_subdomain(name) && address(name).is_none();
        is_name && domains.into_iter().flatten().any(is_under)
    }
}

/// A Peer as it is written.
#[derive(Clone, Debug, PartialEq)]
pub struct PeerForm<'p> {
    /// The name of the object.
    pub name: &'p str,
    pub(super) mesh: Option<&'p str>,
    pub(super) source: Option<Cow<'p, str>>,
    /// Whether its label names an external peer.
    is_external: bool,
    is_managed: bool,
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
    dns: &'p str,
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
    fn is_named_as_labelled(&self) -> bool {
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
    fn is_ours(&self) -> bool {
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
    text.to_ascii_lowercase()
        .split_once("ffff:")
        .map(|it| it.0)
        .is_some_and(|it| it.ends_with(':') && it.bytes().all(|it| matches!(it, b'0' | b':')))
}

/// Reads what Go's `netip.ParseAddr` reads, but for zones and IPv4-mapped addresses.
pub(super) fn address(text: &str) -> Option<IpAddr> {
    let address: IpAddr = text.parse().ok()?;
    (address.to_canonical() == address).then_some(address)
}

/// The cost at which an API server refuses a Peer instead of judging it (`PerCallLimit` in
/// `k8s.io/apiserver/pkg/apis/cel`).
pub const MOST_COST: usize = 1_000_000;

/// The cost of an allowed IP, without its comparisons. `tests/cluster` compares this cost and those of comparisons
/// with an API server.
const ALLOWED_IP: usize = 34;

/// The cost of the expression that costs most: each allowed IP of a Peer is compared with each range of its source.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub struct GuardCost {
    /// The cost of the expression.
    pub cost: usize,
    /// The number of allowed IPs of the Peer.
    pub allowed_ips: usize,
    /// The number of accepted ranges of its source.
    pub ranges: usize,
}

impl GuardCost {
    /// Returns the cost of a Peer.
    pub fn of(guard: &Guard, form: &PeerForm) -> Self {
        let ranges = guard.declared.sources.get(&form.key());
        let ranges = ranges.map_or(&[][..], Vec::as_slice);
        let comparisons = ranges.iter().map(|it| match it.family() {
            Family::V4 => 4,
            Family::V6 => 5,
        });
        let allowed_ips = form.ranges.len();
        Self {
            cost: allowed_ips * (ALLOWED_IP + comparisons.sum::<usize>()),
            allowed_ips,
            ranges: ranges.len(),
        }
    }
}
