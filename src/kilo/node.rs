//! A node as Kilo's agent reads it (`kilo.md` §3, `translateNode` in `pkg/k8s/backend.go`).

use std::net::{IpAddr, Ipv6Addr};

use crate::granularity::Granularity;
use crate::kilo::peer::translation::{AllowedIp, NANOSECONDS};
use crate::net::{Cidr, CidrError, Interface};
use crate::snapshot::Node;
use crate::wireguard::{Endpoint, EndpointError, Host, PublicKey};

/// Annotations that Kilo's agent writes, or that people write for it.
pub mod annotation {
    /// The public key.
    pub const KEY: &str = "kilo.squat.ai/key";
    /// The node's address in Kilo's subnet; empty where the node does not lead.
    pub const WIREGUARD_IP: &str = "kilo.squat.ai/wireguard-ip";
    /// The endpoint that Kilo uses; mirrors [`FORCE_ENDPOINT`] where that is set.
    pub const ENDPOINT: &str = "kilo.squat.ai/endpoint";
    /// The endpoint that a person wants.
    pub const FORCE_ENDPOINT: &str = "kilo.squat.ai/force-endpoint";
    /// The operator's own: the endpoint for other clusters only.
    pub const CLUSTERMESH_ENDPOINT: &str = "kilo.squat.ai/clustermesh-endpoint";
    /// The address on the nodes' network that Kilo found.
    pub const INTERNAL_IP: &str = "kilo.squat.ai/internal-ip";
    /// The address on the nodes' network that a person wants; empty or `-` for none.
    pub const FORCE_INTERNAL_IP: &str = "kilo.squat.ai/force-internal-ip";
    /// The location; its presence counts, even when empty.
    pub const LOCATION: &str = "kilo.squat.ai/location";
    /// Volunteers to lead; its presence counts, with any value.
    pub const LEADER: &str = "kilo.squat.ai/leader";
    /// The granularity of the cluster.
    pub const GRANULARITY: &str = "kilo.squat.ai/granularity";
    /// The interval of the node's keepalives, in seconds.
    pub const PERSISTENT_KEEPALIVE: &str = "kilo.squat.ai/persistent-keepalive";
    /// Ranges beside the nodes' own that its location reaches, with commas between.
    pub const ALLOWED_LOCATION_IPS: &str = "kilo.squat.ai/allowed-location-ips";
    /// The node's address for some network plugins.
    pub(crate) const CNI_COMPATIBILITY_IP: &str = "kilo.squat.ai/cni-compatibility-ip";
    /// The time of the agent's last heartbeat.
    const LAST_SEEN: &str = "kilo.squat.ai/last-seen";
    /// Endpoints of other nodes that the agent has learned.
    const DISCOVERED_ENDPOINTS: &str = "kilo.squat.ai/discovered-endpoints";

    /// The common prefix of all of them.
    pub const PREFIX: &str = "kilo.squat.ai/";

    /// Those that people write.
    pub const BY_PEOPLE: [&str; 7] = [
        FORCE_ENDPOINT,
        CLUSTERMESH_ENDPOINT,
        FORCE_INTERNAL_IP,
        LOCATION,
        LEADER,
        PERSISTENT_KEEPALIVE,
        ALLOWED_LOCATION_IPS,
    ];

    /// Those that the agent writes.
    pub const BY_AGENT: [&str; 8] = [
        KEY,
        WIREGUARD_IP,
        ENDPOINT,
        INTERNAL_IP,
        GRANULARITY,
        CNI_COMPATIBILITY_IP,
        LAST_SEEN,
        DISCOVERED_ENDPOINTS,
    ];
}

/// A node as Kilo's agent reads it.
#[derive(Clone, Debug)]
#[expect(clippy::struct_excessive_bools, reason = "each is a mark of its own, in any combination")]
pub struct KiloNode {
    /// Its name, as it claims.
    pub name: String,
    /// The key's bytes, however they were written; zero counts as none.
    pub key: Option<[u8; 32]>,
    /// The endpoint that Kilo uses for it, or would use.
    pub endpoint: Option<Endpoint>,
    /// Its address on the nodes' network.
    pub internal_ip: InternalIp,
    /// The network in which that address stands.
    pub lan: Option<Cidr>,
    /// The first pod CIDR, the only one Kilo reads.
    pub pod_cidr: Option<Cidr>,
    /// Pod CIDRs that only Kubernetes knows of, at most one of each other family.
    pub further_pod_cidrs: Vec<Cidr>,
    /// Its address in Kilo's subnet, which only leaders have.
    pub wireguard: WireguardAddress,
    /// The ranges that it wants to be reachable behind it; unfiltered.
    pub location_ranges: Vec<AllowedIp>,
    /// Its location; empty for none.
    pub location: String,
    /// Whether it volunteers to lead.
    pub volunteers: bool,
    /// The cluster's granularity as the node reports it.
    pub granularity: Option<Granularity>,
    /// The interval of its keepalives, in seconds; zero for never.
    pub keepalive: u16,
    /// Whether it stopped checking in.
    pub stale: bool,
    /// Whether it led its location until its agent fell silent or stopped.
    pub lost_lead: bool,
    /// Whether its values are those of an earlier snapshot.
    pub carried_over: bool,
}

/// The node's address in Kilo's subnet, as it reports it.
#[derive(Clone, Debug, Eq, PartialEq)]
pub enum WireguardAddress {
    /// Nothing: it does not lead, or Kilo does not run there.
    None,
    /// This one, with the length of the subnet.
    Announced(Interface),
    /// Something that is not `address/length`.
    Malformed {
        /// The text.
        text: String,
        /// The problem.
        error: CidrError,
    },
}

/// Kilo's idea of a node's internal address.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub enum InternalIp {
    /// This one.
    Known(IpAddr),
    /// Kilo has none, or has not reported it.
    Unknown,
    /// An administrator disabled it.
    Disabled,
}

impl KiloNode {
    /// Reads a node whose location may come from the label `topology_label`.
    pub fn read(node: &Node, topology_label: &str) -> Self {
        let annotation = |key: &str| node.annotations.get(key);
        let (internal_ip, lan) = internal(
            annotation(annotation::FORCE_INTERNAL_IP),
            annotation(annotation::INTERNAL_IP),
        );
        let (pod_cidr, further_pod_cidrs) = pods(node);
        Self {
            name: node.name.clone(),
            key: annotation(annotation::KEY)
                .and_then(PublicKey::bytes_as_kilo_reads)
                .filter(|key| *key != [0; 32]),
            endpoint: listening(node).map(|(_, endpoint)| endpoint),
            internal_ip,
            lan,
            pod_cidr,
            further_pod_cidrs,
            wireguard: WireguardAddress::read(annotation(annotation::WIREGUARD_IP)),
            location_ranges: annotation(annotation::ALLOWED_LOCATION_IPS)
                .unwrap_or_default()
                .split(',')
                .filter_map(AllowedIp::read)
                .collect(),
            location: annotation(annotation::LOCATION)
                .or_else(|| node.labels.get(topology_label))
                .unwrap_or_default()
                .to_owned(),
            volunteers: annotation(annotation::LEADER).is_some(),
            granularity: annotation(annotation::GRANULARITY).and_then(Granularity::from_annotation),
            keepalive: annotation(annotation::PERSISTENT_KEEPALIVE)
                .and_then(keepalive)
                .unwrap_or_default(),
            stale: node.stale,
            lost_lead: node.lost_lead,
            carried_over: node.carried_over,
        }
    }

    /// Returns whether Kilo counts the node (`Node.Ready`), as far as a snapshot shows.
    pub fn is_ready(&self) -> bool {
        !self.is_silent() && self.is_complete()
    }

    /// Returns whether its agent is away, so that Kilo does not count it.
    pub fn is_silent(&self) -> bool {
        self.stale || self.lost_lead
    }

    /// Returns whether it has all that Kilo needs of a node.
    pub fn is_complete(&self) -> bool {
        self.key.is_some() && self.pod_cidr.is_some() && self.endpoint.is_some()
    }

    /// Returns its internal address, that in Kilo's subnet, and the first one of each of its pod CIDRs.
    pub fn addresses(&self) -> impl Iterator<Item = IpAddr> {
        let wireguard = self.wireguard_ip().map(|it| it.address);
        let own = self.internal_address().into_iter().chain(wireguard);
        own.chain(self.pods().map(Cidr::first))
    }

    /// Returns its address in Kilo's subnet.
    pub fn wireguard_ip(&self) -> Option<Interface> {
        match self.wireguard {
            WireguardAddress::Announced(interface) => Some(interface),
            WireguardAddress::None | WireguardAddress::Malformed { .. } => None,
        }
    }

    /// Returns whether it reports an address in Kilo's subnet, and so leads a segment.
    pub fn has_wireguard_ip(&self) -> bool {
        self.wireguard != WireguardAddress::None
    }

    /// Returns whether its address shows that it leads a location. In another granularity, each node leads itself.
    pub fn claims_lead(&self) -> bool {
        let is_of_location = self.granularity.is_none_or(|it| it == Granularity::Location);
        self.has_wireguard_ip() && is_of_location
    }

    /// Returns its pod CIDRs, that which Kilo reads first.
    pub fn pods(&self) -> impl Iterator<Item = Cidr> {
        self.pod_cidr.into_iter().chain(self.further_pod_cidrs.iter().copied())
    }

    /// Returns whether its endpoint is a name, which Kilo resolves before it elects leaders.
    pub fn has_name(&self) -> bool {
        let host = self.endpoint.as_ref().map(|it| &it.host);
        matches!(host, Some(Host::Dns(_)))
    }

    /// Returns the address on the nodes' network that Kilo works with.
    pub fn internal_address(&self) -> Option<IpAddr> {
        match self.internal_ip {
            InternalIp::Known(address) => Some(address),
            InternalIp::Unknown | InternalIp::Disabled => None,
        }
    }

    /// Returns whether Kilo takes the node's endpoint for reachable from everywhere.
    ///
    /// A name counts as not, since nothing resolves it here; `kgctl` reads it the same way.
    pub fn has_public_endpoint(&self) -> bool {
        match &self.endpoint {
            Some(Endpoint { host: Host::Ip(address), .. }) => !is_private(*address),
            _ => false,
        }
    }
}

impl WireguardAddress {
    fn read(text: Option<&str>) -> Self {
        match text.filter(|text| !text.is_empty()) {
            None => Self::None,
            Some(text) => text.parse().map_or_else(
                |error| Self::Malformed { text: text.to_owned(), error },
                Self::Announced,
            ),
        }
    }
}

/// Returns the pod CIDR that Kilo reads, and the first one of the other family.
fn pods(node: &Node) -> (Option<Cidr>, Vec<Cidr>) {
    let Some((first, others)) = node.pod_cidrs.split_first() else {
        return (None, Vec::new());
    };
    let Ok(first) = first.parse::<Cidr>() else {
        return (None, Vec::new());
    };
    let others = others.iter().filter_map(|text| text.parse().ok());
    let mut of_other = others.filter(|it: &Cidr| it.family() != first.family());
    (Some(first), of_other.next().into_iter().collect())
}

/// Returns the endpoint that Kilo works with and the annotation that has it. Its port is the one
/// that Kilo listens on.
pub fn listening(node: &Node) -> Option<(&'static str, Endpoint)> {
    [annotation::FORCE_ENDPOINT, annotation::ENDPOINT]
        .into_iter()
        .find_map(|key| Some((key, endpoint(node.annotations.get(key)?).ok()?)))
}

/// Reads an endpoint as Kilo does.
///
/// # Errors
/// Kilo ignores what is not `host:port` with an address or a lowercase name.
pub fn endpoint(text: &str) -> Result<Endpoint, EndpointError> {
    let endpoint: Endpoint = text.parse()?;
    match &endpoint.host {
        Host::Dns(name) if !crate::name::is_dns_subdomain(name) => {
            Err(EndpointError::Dns(name.clone()))
        }
        _ => Ok(endpoint),
    }
}

/// Reads the seconds that a node's WireGuard gets. Kilo ignores text that is not a number (and a
/// negative one has no effect), computes nanoseconds in 64 bits without checking for an overflow,
/// and WireGuard keeps 16 bits of the seconds.
pub fn keepalive(text: &str) -> Option<u16> {
    let seconds = text.parse::<i64>().ok()?.max(0);
    let nanoseconds = seconds.wrapping_mul(NANOSECONDS);
    let [low, high, ..] = (nanoseconds / NANOSECONDS).to_le_bytes();
    Some(u16::from_le_bytes([low, high]))
}

/// Returns what Kilo takes for the node's internal address, and the network of that.
fn internal(forced: Option<&str>, found: Option<&str>) -> (InternalIp, Option<Cidr>) {
    if matches!(forced, Some("" | "-")) {
        return (InternalIp::Disabled, None);
    }
    let interface = |text: &str| text.parse::<Interface>().ok();
    match forced.and_then(interface).or_else(|| found.and_then(interface)) {
        Some(interface) => (InternalIp::Known(interface.address), Some(interface.network)),
        None => (InternalIp::Unknown, None),
    }
}

/// The private ranges according to Kilo: RFC 1918 and `fd00::/16` (`kilo.md` §3.2).
fn is_private(address: IpAddr) -> bool {
    match address {
        IpAddr::V4(v4) => v4.is_private(),
        IpAddr::V6(v6) => Ipv6Addr::segments(&v6).first() == Some(&0xfd00),
    }
}

#[cfg(test)]
mod tests;
