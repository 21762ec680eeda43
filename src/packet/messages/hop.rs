//! Hops in words: what keeps a leader and another node of its location from reaching each other.

use super::called;
use crate::agent::fabric::{Fabric, NodeRef};
use crate::agent::model::{Tunnel, TunnelClaim};
use crate::diagnostic::Finding;
use crate::kilo::id::NodeId;
use crate::net::Cidr;
use crate::packet::rule;
use crate::text::listed;

const OWN_ADDRESS: &str = "annotate each node with its own address, such as \
    `kilo.squat.ai/force-internal-ip: 192.168.1.1/24`";

const OWN_PODS: &str = "`clustermesh validate` names the node with the wrong pod CIDR";

/// Reports that Kilo sets no route between two nodes of a location.
pub(super) fn no_hop(fabric: &Fabric, from: NodeRef, to: NodeRef) -> Finding {
    let [here, there] = [from, to].map(|it| called(fabric, it));
    let address = fabric.node(to).kilo.internal_address();
    let address = address.map_or_else(String::new, |it| format!(" {it}"));
    let message =
        format!("{here} has no route to {there}: both have the internal address{address}");
    Finding::new(&rule::NO_ROUTE, message).help(OWN_ADDRESS)
}

/// Reports that several nodes have an internal address, or a pod CIDR in one location.
pub(super) fn shared(fabric: &Fabric, at: NodeRef, nodes: &[NodeId], range: Cidr) -> Finding {
    let here = called(fabric, at);
    let names = listed(nodes.iter().map(|node| called(fabric, NodeRef { node: *node, ..at })));
    let (what, help) = if range.is_host() {
        (format!("internal address {}", range.first()), OWN_ADDRESS)
    } else {
        (format!("pod CIDR {range}"), OWN_PODS)
    };
    let message = format!("{here} reaches only one of the nodes with the {what}: {names}");
    Finding::new(&rule::AMBIGUOUS, message).help(help)
}

/// Reports that another node of the location has a narrower pod CIDR, if that is what takes a packet.
pub(super) fn taken(
    fabric: &Fabric,
    at: NodeRef,
    (claim, range): (TunnelClaim, Cidr),
    [thief, meant]: [NodeRef; 2],
) -> Option<Finding> {
    let own = fabric.site(at.site).segment(at.node).map(Tunnel::Segment);
    let [here, thief, meant] = [at, thief, meant].map(|it| called(fabric, it));
    let message = format!(
        "{here} routes {range} to {thief} of the same location, although it is inside the pod CIDR of {meant}"
    );
    let finding = Finding::new(&rule::STOLEN_BY, message).help(OWN_PODS);
    (own == Some(claim.tunnel)).then_some(finding)
}
