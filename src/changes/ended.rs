//! Ended ends: addresses of nodes that the new version of their cluster does not have. Paths to them are not lost.

use std::collections::BTreeMap;

use crate::agent::fabric::Site;
use crate::fleet::{Fleet, Member};
use crate::kilo::cluster::ClusterNode;
use crate::net::Cidr;
use crate::net::prefixes::{Prefixes, Span};

/// The reason why a node of the old version does not have some addresses any more.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(super) enum EndKind {
    NodeLeft,
    /// The node has other addresses.
    NodeMoved,
}

/// The addresses of all nodes of a cluster in the new version, also of those that do not take part in the mesh.
pub(super) struct PresentEnds<'f> {
    addresses: Prefixes<()>,
    /// Whether each node takes part, by its name.
    takes_part: BTreeMap<&'f str, bool>,
}

impl<'f> PresentEnds<'f> {
    /// Finds them. Without a fleet, no node is known to take part.
    pub(super) fn new(site: &'f Site, fleet: Option<&Fleet>) -> Self {
        let nodes = &site.reading.nodes;
        let members: Vec<&Member> =
            fleet.iter().flat_map(|it| it.memberships(site.cluster)).collect();
        let is_usable = |name: &str| members.iter().all(|it| it.membership.usable.contains(name));
        let addresses: Vec<(Cidr, ())> =
            nodes.iter().flat_map(addresses).map(|it| (it, ())).collect();
        let takes_part = nodes.iter().map(|it| {
            let name = it.node.name.as_str();
            (name, !members.is_empty() && is_usable(name))
        });
        Self { addresses: Prefixes::new(addresses), takes_part: takes_part.collect() }
    }

    /// Returns why a node of the old version does not have its addresses any more; none if any node of the cluster has
    /// them, or if the node is still there and left out: then its addresses are lost.
    pub(super) fn end(&self, node: &str, addresses: Span) -> Option<EndKind> {
        let kind = match self.takes_part.get(node) {
            None => EndKind::NodeLeft,
            Some(true) => EndKind::NodeMoved,
            Some(false) => return None,
        };
        (!self.addresses.meets(addresses)).then_some(kind)
    }

    /// Returns whether a node takes part, and any node still has some addresses.
    pub(super) fn takes_part(&self, node: &str, addresses: Span) -> bool {
        self.takes_part.get(node) == Some(&true) && self.addresses.meets(addresses)
    }
}

/// Returns everything that a node reports as its own, in any form.
fn addresses(node: &ClusterNode) -> Vec<Cidr> {
    let written = node.node.pod_cidrs.iter();
    let written = written.filter_map(|it| it.parse::<Cidr>().ok());
    let tunnel = node.kilo.wireguard_ip().map(|it| it.address);
    let hosts = node.doors().map(|it| it.0).chain(tunnel);
    written.chain(hosts.map(Cidr::host)).collect()
}
