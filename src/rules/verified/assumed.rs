//! Words for declared paths that work only under a condition that no snapshot shows.

use super::between;
use crate::agent::fabric::Fabric;
use crate::agent::model::Tunnel;
use crate::packet::premise::{Distant, Premise, Stranger, Unencapsulated};
use crate::packet::{Unseen, messages};
use crate::proof::rule::ASSUMED_REACH;
use crate::proof::verify::Assumption;
use crate::rules::{Finding, bare};
use crate::text::listed;

/// The paths that share a condition, in words.
struct AssumedGroup {
    /// The number of paths, and the clusters.
    paths: String,
    /// The nodes that must meet the condition.
    nodes: String,
    /// Whether that is one node.
    is_one: bool,
}

/// Reports promises that hold only under a premise. A route of an anchor into a network that no node shows
/// is listed elsewhere: such routes are normal, and no change of the mesh can confirm them.
pub(super) fn assumed(fabric: &Fabric, assumption: &Assumption) -> Option<Finding> {
    let nodes = assumption.nodes.iter();
    let number = match assumption.pairs {
        1 => "1 declared path is assumed to work".to_owned(),
        pairs => format!("{pairs} declared paths are assumed to work"),
    };
    let assumed = AssumedGroup {
        paths: format!("{number} ({})", between(fabric, &assumption.between)),
        nodes: listed(nodes.map(|it| messages::called(fabric, *it))),
        is_one: assumption.nodes.len() == 1,
    };
    match assumption.premise {
        Premise::Family(it) => assumed.family(fabric, it),
        Premise::Stranger(it) => Some(assumed.stranger(fabric, it)),
        Premise::Distant(it) => assumed.distant(fabric, it),
        Premise::Unencapsulated(it) => Some(assumed.unencapsulated(fabric, it)),
        Premise::Route(_) => None,
    }
}

impl AssumedGroup {
    fn family(&self, fabric: &Fabric, Unseen { at, peer, family }: Unseen) -> Option<Finding> {
        let Self { paths, nodes, .. } = self;
        let site = fabric.site(at.site);
        let endpoint = site.model.endpoint(Tunnel::Peer(peer))?;
        let peer = &site.model.peers[peer];
        let (their, they) = if self.is_one {
            ("its snapshot shows", "the node has")
        } else {
            ("their snapshot shows", "the nodes have")
        };
        let message = format!(
            "{paths}: {nodes} must dial {family} endpoints such as {endpoint}, and {their} no {family} \
             address"
        );
        let finding = Finding::on_cluster(&ASSUMED_REACH, site.cluster, message)
            .at(peer.place().key("spec").key("endpoint"), "this endpoint");
        Some(finding.help(format!(
            "ignore this rule for `{}` if {they} {family} addresses; otherwise annotate the \
             other nodes with `kilo.squat.ai/clustermesh-endpoint` and an {} address",
            site.cluster,
            family.other()
        )))
    }

    fn stranger(&self, fabric: &Fabric, Stranger { by, address }: Stranger) -> Finding {
        let Self { paths, nodes, .. } = self;
        let cluster = fabric.site(by.site).cluster;
        let message = format!(
            "{paths}: {nodes} dials endpoints such as {address}, which is not the address of any node"
        );
        let finding = Finding::on_cluster(&ASSUMED_REACH, cluster, message);
        finding.help(
            "run `clustermesh render`; if the address is that of a load balancer or NAT in front of a node, \
             annotate this node with `kilo.squat.ai/clustermesh-endpoint` and the address",
        )
    }

    fn distant(&self, fabric: &Fabric, distant: Distant) -> Option<Finding> {
        let Self { paths, nodes, .. } = self;
        let Distant { node, carrier, range } = distant;
        let site = fabric.site(carrier.site);
        let leader = site.leader(site.segment(node.node)?).node();
        let leader = bare(&site.node(leader).kilo.name);
        let message = format!(
            "{paths}: {nodes} carries {range}, but only {} is on that LAN",
            messages::called(fabric, node)
        );
        let finding = Finding::on_cluster(&ASSUMED_REACH, site.cluster, message);
        Some(finding.help(format!(
            "if the LAN exists, add `anchors: [{{ ranges: ['{range}'], nodes: [{leader}] }}]` \
             to `{}` in the mesh",
            site.cluster
        )))
    }

    fn unencapsulated(&self, fabric: &Fabric, unencapsulated: Unencapsulated) -> Finding {
        let Self { paths, nodes, .. } = self;
        let Unencapsulated { leader, peer, range, .. } = unencapsulated;
        let site = fabric.site(leader.site);
        let peer = &site.model.peers[peer];
        let message = format!(
            "{paths}: {} hands packets to the pods of {nodes} over a LAN that the Peer {} takes with {range}, \
             so they are lost if Kilo encapsulates them",
            messages::called(fabric, leader),
            bare(&peer.applied.name)
        );
        let finding = Finding::on_cluster(&ASSUMED_REACH, site.cluster, message)
            .at(peer.place().key("spec").key("allowedIPs"), "takes the LAN");
        finding.help(format!("remove {range} from the Peer"))
    }
}
