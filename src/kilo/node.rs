//! A node as Kilo's agent reads it (`kilo.md` §3, `translateNode` in `pkg/k8s/backend.go`).

use std::net::{IpAddr, Ipv6Addr};

use crate::granularity::Granularity;
use crate::net::{Cidr, Interface};
use crate::snapshot::Node;
use crate::wireguard::{Endpoint, Host, PublicKey};

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
    /// Volunteers to lead; its presence counts, whatever the value.
    pub const LEADER: &str = "kilo.squat.ai/leader";
    /// How finely the cluster is cut.
    pub const GRANULARITY: &str = "kilo.squat.ai/granularity";
    /// Ranges behind the node's location that the rest of its cluster may reach.
    pub const ALLOWED_LOCATION_IPS: &str = "kilo.squat.ai/allowed-location-ips";
    /// Seconds between keepalive packets to all of the node's peers.
    pub const PERSISTENT_KEEPALIVE: &str = "kilo.squat.ai/persistent-keepalive";
}

/// What Kilo's agent knows of a node.
#[derive(Clone, Debug)]
pub struct KiloNode {
    /// The key's bytes, however they were written; zero counts as none.
    pub key: Option<[u8; 32]>,
    /// Where Kilo dials it, or would.
    pub endpoint: Option<Endpoint>,
    /// Its address on the nodes' network.
    pub internal_ip: InternalIp,
    /// The first pod CIDR, the only one Kilo reads.
    pub pod_cidr: Option<Cidr>,
    /// Whether it holds a WireGuard address, and so leads a segment.
    pub has_wireguard_ip: bool,
    /// Its location; empty for none.
    pub location: String,
    /// Whether it volunteers to lead.
    pub volunteers: bool,
    /// What it says of the cluster's granularity.
    pub granularity: Option<Granularity>,
    /// Whether it stopped checking in.
    pub stale: bool,
}

/// Kilo's idea of a node's internal address.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub enum InternalIp {
    /// This one.
    Known(IpAddr),
    /// Kilo has none, or has not said.
    Unknown,
    /// A person said that there is none.
    Disabled,
}

impl KiloNode {
    /// Reads a node whose location may come from the label `topology_label`.
    pub fn read(node: &Node, topology_label: &str) -> Self {
        let annotation = |key: &str| node.annotations.get(key).map(String::as_str);
        let endpoint = |key: &str| annotation(key).and_then(endpoint);
        Self {
            key: annotation(annotation::KEY)
                .and_then(PublicKey::bytes_as_kilo_reads)
                .filter(|key| *key != [0; 32]),
            endpoint: endpoint(annotation::FORCE_ENDPOINT)
                .or_else(|| endpoint(annotation::ENDPOINT)),
            internal_ip: internal_ip(
                annotation(annotation::FORCE_INTERNAL_IP),
                annotation(annotation::INTERNAL_IP),
            ),
            pod_cidr: node.pod_cidrs.first().and_then(|text| text.parse().ok()),
            has_wireguard_ip: annotation(annotation::WIREGUARD_IP)
                .is_some_and(|text| !text.is_empty()),
            location: annotation(annotation::LOCATION)
                .or_else(|| node.labels.get(topology_label).map(String::as_str))
                .unwrap_or_default()
                .to_owned(),
            volunteers: annotation(annotation::LEADER).is_some(),
            granularity: annotation(annotation::GRANULARITY).and_then(Granularity::from_annotation),
            stale: node.stale,
        }
    }

    /// Returns whether Kilo counts the node (`Node.Ready`), as far as a snapshot can tell.
    pub fn is_ready(&self) -> bool {
        !self.stale && self.key.is_some() && self.pod_cidr.is_some() && self.endpoint.is_some()
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
            Some(Endpoint {
                host: Host::Ip(address),
                ..
            }) => !is_private(*address),
            _ => false,
        }
    }
}

/// Kilo ignores an endpoint that is not `host:port` with an address or a lowercase name.
fn endpoint(text: &str) -> Option<Endpoint> {
    let endpoint: Endpoint = text.parse().ok()?;
    let known = match &endpoint.host {
        Host::Ip(_) => true,
        Host::Dns(name) => crate::name::is_dns_subdomain(name),
    };
    known.then_some(endpoint)
}

fn internal_ip(forced: Option<&str>, found: Option<&str>) -> InternalIp {
    if matches!(forced, Some("" | "-")) {
        return InternalIp::Disabled;
    }
    let address = |text: &str| text.parse::<Interface>().ok().map(|it| it.address);
    forced
        .and_then(address)
        .or_else(|| found.and_then(address))
        .map_or(InternalIp::Unknown, InternalIp::Known)
}

/// What Kilo calls private: RFC 1918 and `fd00::/16` (`kilo.md` §3.2).
fn is_private(address: IpAddr) -> bool {
    match address {
        IpAddr::V4(v4) => v4.is_private(),
        IpAddr::V6(v6) => Ipv6Addr::segments(&v6).first() == Some(&0xfd00),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(annotations: &[(&str, &str)]) -> KiloNode {
        let node = Node {
            annotations: annotations
                .iter()
                .map(|&(key, value)| (format!("kilo.squat.ai/{key}"), value.to_owned()))
                .collect(),
            labels: [("region".to_owned(), "eu".to_owned())].into(),
            ..Node::default()
        };
        KiloNode::read(&node, "region")
    }

    #[test]
    fn a_malformed_force_endpoint_falls_back() {
        let node = read(&[("force-endpoint", "10.0.0.1"), ("endpoint", "1.2.3.4:5")]);
        assert_eq!(node.endpoint.unwrap().to_string(), "1.2.3.4:5");
    }

    #[test]
    fn presence_of_a_location_hides_the_label() {
        assert_eq!(read(&[]).location, "eu");
        assert_eq!(read(&[("location", "")]).location, "");
    }

    #[test]
    fn a_dash_disables_the_internal_address() {
        let found = ("internal-ip", "10.0.0.1/24");
        assert_eq!(
            read(&[("force-internal-ip", "-"), found]).internal_ip,
            InternalIp::Disabled
        );
        assert_eq!(
            read(&[("force-internal-ip", "nonsense"), found]).internal_address(),
            Some("10.0.0.1".parse().unwrap())
        );
        assert_eq!(
            read(&[("internal-ip", "")]).internal_ip,
            InternalIp::Unknown
        );
    }

    #[test]
    fn shared_address_space_is_public_to_kilo() {
        let public = |text| read(&[("endpoint", text)]).has_public_endpoint();
        assert!(public("100.64.0.1:1") && public("[fd12::1]:1") && public("127.0.0.1:1"));
        assert!(!public("192.168.0.1:1") && !public("[fd00::1]:1") && !public("wg.example:1"));
    }
}
