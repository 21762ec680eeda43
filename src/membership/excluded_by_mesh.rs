//! Nodes and endpoints that people leave out of a cluster: by a selector, or because `endpointFrom`
//! does not list the source of the endpoints.

use std::net::IpAddr;

use super::{ExcludedReason, Membership};
use crate::kilo::cluster::{Cluster, ClusterNode};
use crate::kilo::node::endpoint;
use crate::kilo::node_checks::ENDPOINT_ANNOTATIONS;
use crate::net::Cidr;
use crate::snapshot::{AddressKind, Node};
use crate::wireguard::Host;

/// The nodes and endpoints that people leave out of a cluster.
#[derive(Clone, Debug, Default, Eq, PartialEq)]
pub struct ExcludedByMesh {
    /// The number of nodes.
    pub nodes: usize,
    /// The ranges that these claim.
    pub claims: Vec<Cidr>,
    /// Whether a candidate without an endpoint has one from a source that `endpointFrom` does not
    /// list.
    pub is_unasked: bool,
}

impl ExcludedByMesh {
    /// Finds it in a membership, given what that was made of.
    pub fn find(cluster: &Cluster, membership: &Membership) -> Self {
        let node = |name: &str| cluster.nodes.iter().find(|it| it.node.name == name);
        let mut by_people = Self::default();
        for excluded in &membership.excluded {
            let Some(node) = node(&excluded.node) else {
                continue;
            };
            let is_by_people = match excluded.reason {
                ExcludedReason::NotSelected => true,
                ExcludedReason::NoEndpoint(_) => is_dialable(node.node),
                _ => false,
            };
            if is_by_people {
                by_people.nodes += 1;
                by_people.claims.extend(claims(node));
            }
        }
        let mut silent = membership
            .candidates
            .iter()
            .filter(|it| it.endpoint.is_none())
            .filter_map(|it| node(it.leader.as_str()));
        by_people.is_unasked = silent.any(|it| is_dialable(it.node));
        by_people
    }
}

/// Returns whether a node has an endpoint for all clusters: in an annotation that an administrator
/// writes, or as an external address.
fn is_dialable(node: &Node) -> bool {
    let keys = ENDPOINT_ANNOTATIONS.iter();
    let mut written = keys.filter_map(|key| node.annotations.get(*key));
    let is_address = |it: &str| endpoint(it).is_ok_and(|it| matches!(it.host, Host::Ip(_)));
    let mut external = node.addresses.iter();
    written.any(is_address)
        || external
            .any(|it| it.kind == AddressKind::ExternalIP && it.address.parse::<IpAddr>().is_ok())
}

/// Returns the ranges that a node claims.
fn claims(ClusterNode { node, kilo, .. }: &ClusterNode) -> Vec<Cidr> {
    let addresses =
        kilo.internal_address().into_iter().chain(kilo.wireguard_ip().map(|it| it.address));
    let pods = node.pod_cidrs.iter().filter_map(|it| it.parse().ok());
    pods.chain(addresses.map(Cidr::host)).collect()
}
