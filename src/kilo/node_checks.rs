//! The node checks: what a node must bring to be given to others, in the operator's order.

use std::net::IpAddr;

use super::node::{InternalIp, KiloNode, WireguardAddress, annotation};
use super::reason::{EndpointProblem, ExcludedReason, Origin, Unready, WithheldReason};
use crate::mesh::{EndpointSource, Entry, Networks, Range, WireguardAddresses};
use crate::name::NodeName;
use crate::net::{Cidr, family};
use crate::snapshot::{AddressKind, Node};
use crate::wireguard::{Endpoint, EndpointError, Host, KeyError, PublicKey};

/// The annotations that people and the operator write an endpoint into, first to last.
pub const ENDPOINT_ANNOTATIONS: [&str; 2] =
    [annotation::CLUSTERMESH_ENDPOINT, annotation::FORCE_ENDPOINT];

/// A node that can lead a segment.
#[derive(Debug)]
pub struct Checked {
    /// Its name.
    pub name: NodeName,
    /// Its address in Kilo's subnet, if its cluster advertises any.
    pub wireguard: Option<IpAddr>,
    /// Its key.
    pub key: PublicKey,
    /// Its endpoint; none for a node behind NAT.
    pub endpoint: Option<Endpoint>,
    /// The source of the endpoint.
    pub origin: Option<Origin>,
}

/// The number of pod CIDRs of a node that are examined; Kubernetes assigns one or two.
const POD_CIDRS: usize = 8;

/// The pod CIDRs of a node that are used, at most one of a family, and those that are not.
#[derive(Debug)]
pub struct PodCidrs {
    /// Those that are used.
    pub used: Vec<Cidr>,
    /// Those that are not, as text, and why.
    pub withheld: Vec<(String, WithheldReason)>,
}

/// The result of each check of a node, requested or not.
#[derive(Debug)]
pub struct NodeChecks {
    /// Its pod CIDRs.
    pub pods: Result<PodCidrs, ExcludedReason>,
    /// Its address in Kilo's subnet.
    pub wireguard: Result<IpAddr, ExcludedReason>,
    key: Result<PublicKey, ExcludedReason>,
    endpoint: Result<Option<(Endpoint, Origin)>, ExcludedReason>,
}

impl NodeChecks {
    /// Checks a node under an entry.
    pub fn new(entry: &Entry, node: &Node, kilo: &KiloNode) -> Self {
        Self {
            pods: pod_cidrs(entry, node),
            wireguard: wireguard_ip(entry, kilo),
            key: public_key(node),
            endpoint: endpoint(entry, node),
        }
    }

    /// Returns its public key, or why no handshake can use it.
    ///
    /// # Errors
    /// The reason for which a node without this key is left out.
    pub fn key(&self) -> Result<&PublicKey, &ExcludedReason> {
        self.key.as_ref()
    }

    /// Returns where the node is dialled, if that is anywhere.
    pub fn endpoint(&self) -> Option<&Endpoint> {
        let (endpoint, _) = self.endpoint.as_ref().ok()?.as_ref()?;
        Some(endpoint)
    }

    /// Returns whether all values of the node are well-formed, declared or not: it has a pod CIDR
    /// and a key, and neither its `WireGuard` address nor its endpoint is malformed.
    pub fn is_sound(&self) -> bool {
        let no_pod_cidr = matches!(
            self.pods,
            Err(ExcludedReason::NoPodCidr | ExcludedReason::PodCidrInvalid { .. })
        );
        let bad_wireguard =
            matches!(self.wireguard, Err(ExcludedReason::WireguardIpInvalid { .. }));
        !no_pod_cidr && !bad_wireguard && self.key.is_ok() && self.endpoint.is_ok()
    }
}

/// Returns what a segment needs of its leader, or the first reason why it cannot lead.
///
/// # Errors
/// The first check that fails.
pub fn candidate(
    entry: &Entry,
    node: &Node,
    checked: &NodeChecks,
) -> Result<Checked, ExcludedReason> {
    checked.pods.as_ref().map_err(ExcludedReason::clone)?;
    let wireguard = match entry.advertise.wireguard {
        WireguardAddresses::None => None,
        WireguardAddresses::PerNode | WireguardAddresses::Carrier => {
            Some(checked.wireguard.clone()?)
        }
    };
    let key = checked.key.clone()?;
    let (endpoint, origin) = dialled(entry, checked)?.unzip();
    let name = node.name.parse().map_err(ExcludedReason::NameInvalid)?;
    Ok(Checked { name, wireguard, key, endpoint, origin })
}

/// Returns where others dial a leader, with its source; nothing for a node behind NAT, which dials itself.
///
/// # Errors
/// The endpoint with the highest rank cannot be dialled. Or the node has no endpoint, and its entry has no keepalive.
pub fn dialled(
    entry: &Entry,
    checked: &NodeChecks,
) -> Result<Option<(Endpoint, Origin)>, ExcludedReason> {
    let endpoint = checked.endpoint.clone()?;
    if endpoint.is_none() && entry.keepalive.is_none() {
        return Err(ExcludedReason::NoEndpoint(entry.endpoint_from.clone()));
    }
    Ok(endpoint)
}

/// Returns the pod CIDRs of a node; the first one decides whether it can take part.
fn pod_cidrs(entry: &Entry, node: &Node) -> Result<PodCidrs, ExcludedReason> {
    let pool = entry.pod_ranges();
    let (first, rest) = node.pod_cidrs.split_first().ok_or(ExcludedReason::NoPodCidr)?;
    let cidr: Cidr = first
        .parse()
        .map_err(|error| ExcludedReason::PodCidrInvalid { text: first.clone(), error })?;
    if !is_within(pool, cidr) {
        return Err(ExcludedReason::PodCidrOutOfRange { cidr });
    }
    let mut pods = PodCidrs { used: vec![cidr], withheld: Vec::new() };
    for text in rest.iter().take(POD_CIDRS) {
        match further_pod_cidr(pool, &pods.used, text) {
            Ok(cidr) => pods.used.push(cidr),
            Err(reason) => pods.withheld.push((text.clone(), reason)),
        }
    }
    Ok(pods)
}

fn further_pod_cidr(pool: &[Range], used: &[Cidr], text: &str) -> Result<Cidr, WithheldReason> {
    let cidr: Cidr = text.parse().map_err(WithheldReason::Invalid)?;
    if used.iter().any(|other| other.family() == cidr.family()) {
        return Err(WithheldReason::SecondOfFamily);
    }
    if !is_within(pool, cidr) {
        return Err(WithheldReason::OutOfRange);
    }
    Ok(cidr)
}

/// Returns the node's address in Kilo's subnet, if it is a declared one.
fn wireguard_ip(entry: &Entry, kilo: &KiloNode) -> Result<IpAddr, ExcludedReason> {
    let address = match &kilo.wireguard {
        WireguardAddress::None => return Err(ExcludedReason::NoWireguardIp),
        WireguardAddress::Announced(interface) => interface.address,
        WireguardAddress::Malformed { text, error } => {
            return Err(ExcludedReason::WireguardIpInvalid {
                text: text.clone(),
                error: error.clone(),
            });
        }
    };
    let inside = match &entry.networks {
        Networks::Typed { wireguard, .. } => wireguard.cidr.holds(address),
        Networks::Flat { allowed } => allowed.iter().any(|range| range.cidr.holds(address)),
    };
    if !inside {
        return Err(ExcludedReason::WireguardIpOutOfRange { address });
    }
    Ok(address)
}

fn public_key(node: &Node) -> Result<PublicKey, ExcludedReason> {
    let text = present(node, annotation::KEY).ok_or(ExcludedReason::NoPublicKey)?;
    text.parse().map_err(|error: KeyError| ExcludedReason::PublicKeyInvalid {
        text: text.to_owned(),
        error,
    })
}

/// Returns the endpoint of the first source that has one; a malformed one is not passed over.
fn endpoint(entry: &Entry, node: &Node) -> Result<Option<(Endpoint, Origin)>, ExcludedReason> {
    for source in &entry.endpoint_from {
        let found = match source {
            EndpointSource::Annotation => {
                ENDPOINT_ANNOTATIONS.into_iter().find_map(|key| annotated(node, key))
            }
            EndpointSource::Kilo => annotated(node, annotation::ENDPOINT),
            EndpointSource::ExternalIP => reported(entry, node, AddressKind::ExternalIP),
            EndpointSource::InternalIP => reported(entry, node, AddressKind::InternalIP),
        };
        if let Some(found) = found {
            let origin = found.origin;
            return dialable(entry, found).map(|endpoint| Some((endpoint, origin)));
        }
    }
    Ok(None)
}

/// An endpoint that wins, in the words of its source.
struct FoundEndpoint {
    origin: Origin,
    text: String,
    endpoint: Result<Endpoint, EndpointError>,
}

fn annotated(node: &Node, key: &'static str) -> Option<FoundEndpoint> {
    let text = present(node, key)?;
    Some(FoundEndpoint {
        origin: Origin::Annotation(key),
        text: text.to_owned(),
        endpoint: text.parse(),
    })
}

/// Returns the first IPv4 address of that kind, else the first IPv6 one, as the operator does.
fn reported(entry: &Entry, node: &Node, kind: AddressKind) -> Option<FoundEndpoint> {
    let addresses: Vec<IpAddr> = node
        .addresses
        .iter()
        .filter(|it| it.kind == kind)
        .filter_map(|it| it.address.parse().ok())
        .map(|address: IpAddr| address.to_canonical())
        .collect();
    let address = *addresses.iter().find(|address| address.is_ipv4()).or(addresses.first())?;
    Some(FoundEndpoint {
        origin: match kind {
            AddressKind::ExternalIP => Origin::ExternalIP,
            AddressKind::InternalIP => Origin::InternalIP,
        },
        text: address.to_string(),
        endpoint: Ok(Endpoint { host: Host::Ip(address), port: entry.port }),
    })
}

fn dialable(entry: &Entry, found: FoundEndpoint) -> Result<Endpoint, ExcludedReason> {
    let FoundEndpoint { origin, text, endpoint } = found;
    endpoint
        .and_then(|endpoint| endpoint.check().map(|()| endpoint))
        .map_err(EndpointProblem::Endpoint)
        .and_then(|endpoint| match &endpoint.host {
            Host::Dns(name) if !entry.declares_domain(name) => Err(EndpointProblem::UndeclaredName),
            _ => Ok(endpoint),
        })
        .map_err(|error| ExcludedReason::EndpointInvalid { origin, text, error })
}

/// Returns why a node that Kilo does not count is left out: what a check finds, else why Kilo
/// does not count it.
pub fn unready(checked: &NodeChecks, kilo: &KiloNode) -> ExcludedReason {
    match (&checked.pods, &checked.key) {
        (Err(reason), _) | (_, Err(reason)) => reason.clone(),
        _ => ExcludedReason::NotReady(not_counted(kilo).unwrap_or(Unready::NoEndpoint)),
    }
}

/// Returns the reason why Kilo does not count a node with a key and a pod CIDR, if it does not.
pub fn not_counted(kilo: &KiloNode) -> Option<Unready> {
    if kilo.is_silent() {
        return Some(Unready::Stale);
    }
    (!kilo.is_ready()).then_some(Unready::NoEndpoint)
}

/// Returns the addresses by which a node itself is reached, at most one of a family: Kilo's, else
/// what Kubernetes knows.
pub fn internal_addresses(node: &Node, kilo: &KiloNode) -> Vec<IpAddr> {
    let mut addresses: Vec<IpAddr> = Vec::new();
    for address in all_internal_addresses(node, kilo) {
        if addresses.iter().all(|it| family(*it) != family(address)) {
            addresses.push(address);
        }
    }
    addresses
}

/// Returns the addresses that Kubernetes knows beyond one of a family.
pub fn second_addresses(node: &Node, kilo: &KiloNode) -> Vec<IpAddr> {
    let used = internal_addresses(node, kilo);
    let mut all = all_internal_addresses(node, kilo);
    all.retain(|address| !used.contains(address));
    all.dedup();
    all
}

fn all_internal_addresses(node: &Node, kilo: &KiloNode) -> Vec<IpAddr> {
    if kilo.internal_ip == InternalIp::Disabled {
        return Vec::new();
    }
    let reported = node
        .addresses
        .iter()
        .filter(|it| it.kind == AddressKind::InternalIP)
        .filter_map(|it| it.address.parse::<IpAddr>().ok())
        .map(|address| address.to_canonical());
    kilo.internal_address().into_iter().chain(reported).collect()
}

fn is_within(pool: &[Range], cidr: Cidr) -> bool {
    pool.iter().any(|range| range.cidr.contains(cidr))
}

/// Returns an annotation that is there and not empty.
fn present<'a>(node: &'a Node, key: &str) -> Option<&'a str> {
    let text = node.annotations.get(key)?;
    (!text.is_empty()).then_some(text)
}
