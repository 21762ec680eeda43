//! The Peers that carry the pods of a node in other clusters, and why a cluster has none.

use std::collections::BTreeMap;
use std::net::IpAddr;

use schemars::JsonSchema;
use serde::Serialize;

use super::{GateResult, PlannedFleet};
use crate::config::Config;
use crate::diagnostic::bare;
use crate::fleet::Member;
use crate::kilo::id::NodeId;
use crate::kilo::node_checks;
use crate::kilo::peer::Peer;
use crate::membership::ExcludedReason;
use crate::name::ClusterName;
use crate::net::Cidr;
use crate::rules::verified::LackedAddress;
use crate::rules::verified::unproved_nodes::unproved_nodes;
use crate::rules::{self, Finding, node_left_out, with_access};
use crate::text::{and_more, list};

/// Linked clusters with the same result.
#[derive(Debug, JsonSchema, Serialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct NodePeers {
    /// The clusters.
    pub(super) clusters: Vec<String>,
    /// Whether their Peers carry the pods of the node.
    pub(super) result: GateResult,
    /// The Peer that carries them, if there is one.
    #[serde(skip_serializing_if = "Option::is_none")]
    peer: Option<String>,
    /// The ranges of the Peer that contain addresses of the node.
    #[serde(rename = "allowedIPs")]
    allowed_ips: Vec<String>,
    /// The number of its other ranges.
    #[serde(skip)]
    others: usize,
    /// The reason why no Peer carries them, if none does.
    #[serde(skip_serializing_if = "Option::is_none")]
    message: Option<String>,
    /// The rule that reports the reason.
    #[schemars(with = "Option<&str>", example = &"not-accepted")]
    #[serde(skip_serializing_if = "Option::is_none")]
    rule: Option<&'static str>,
}

impl NodePeers {
    /// Returns the Peer or the reason, for people.
    pub(super) fn shown(&self) -> String {
        let rule = self.rule.map(|it| format!(" [{it}]")).unwrap_or_default();
        match (&self.peer, &self.message) {
            (Some(peer), _) => {
                let others = and_more(self.others, "range");
                format!("{peer} with {}{others}", list(&self.allowed_ips))
            }
            (None, Some(message)) => format!("{message}{rule}"),
            (None, None) => "no Peer carries its pods".to_owned(),
        }
    }
}

/// The result for one cluster, which others may share.
#[derive(Eq, Ord, PartialEq, PartialOrd)]
enum NodeShare {
    Given { peer: String, allowed_ips: Vec<String>, others: usize },
    Lacked { rule: Option<&'static str>, message: Option<String> },
}

/// Returns the result for each linked cluster, and the remedy if a cluster gets no pods of the node.
pub(super) fn of_node(
    (planned, config): (PlannedFleet, &Config),
    member: &Member,
    id: NodeId,
) -> (Vec<NodePeers>, Option<String>) {
    let node = &member.cluster.nodes[id];
    let mut excluded = member.membership.excluded.iter();
    let excluded = excluded.find(|it| it.node == node.node.name);
    let left_out = excluded.map(|it| with_leader(node_left_out(member, it), member, &it.reason));
    let mut help = None;
    let mut shares: BTreeMap<NodeShare, Vec<String>> = BTreeMap::new();
    for target in member.targets() {
        let share = match &left_out {
            Some(finding) => Err(Some(finding.clone())),
            None => share(planned, member, id, target),
        };
        let share = share.unwrap_or_else(|reason: Option<Finding>| {
            let reason = reason.map(|it| with_access(it, config));
            help = help.take().or_else(|| reason.as_ref()?.help.clone());
            NodeShare::Lacked {
                rule: reason.as_ref().map(|it| it.rule.name()),
                message: reason.map(|it| it.message.shown().to_owned()),
            }
        });
        shares.entry(share).or_default().push(target.to_string());
    }
    (shares.into_iter().map(|(share, clusters)| written(share, clusters)).collect(), help)
}

/// Returns why `verify` proves no path of a node that has a Peer, and the remedy of the finding about that.
pub(super) fn doubt(
    (planned, config): (PlannedFleet, &Config),
    member: &Member,
    id: NodeId,
) -> Option<(String, Option<String>)> {
    let (cluster, mesh) = (&member.entry.name, &member.mesh.name);
    let node = &member.cluster.nodes[id].node.name;
    let clusters = unproved_nodes(planned.fleet, Some(planned.plan));
    let mut own = clusters
        .iter()
        .filter(|it| it.member.entry.name == *cluster && it.member.mesh.name == *mesh);
    let unproved = own.next()?.nodes.iter().find(|it| it.node.name == *node)?;
    let is_meant = |it: &Finding| {
        it.rule == unproved.rule()
            && it.cluster.as_deref() == Some(cluster.as_str())
            && it.node.as_ref().is_none_or(|it| it == node)
    };
    let findings = rules::findings(planned.fleet, Some(planned.plan)).into_iter();
    let meant: Vec<Finding> = findings.filter(is_meant).collect();
    // Of several locations with an uncertain leader, no finding names this node.
    let finding = meant.iter().find(|it| it.node.is_some() || meant.len() == 1);
    let help = finding.and_then(|it| with_access(it.clone(), config).help);
    Some((format!("{} [{}]", unproved.reason(), unproved.rule().name()), help))
}

/// Adds where to read on if the leader of a node is why it is left out.
fn with_leader(finding: Finding, member: &Member, reason: &ExcludedReason) -> Finding {
    match reason {
        ExcludedReason::LeaderExcluded(leader) => {
            let leader = bare(leader);
            finding.help(format!("run `clustermesh explain {}/{leader}`", member.entry.name))
        }
        _ => finding,
    }
}

fn written(share: NodeShare, clusters: Vec<String>) -> NodePeers {
    match share {
        NodeShare::Given { peer, allowed_ips, others } => NodePeers {
            clusters,
            result: GateResult::Passed,
            peer: Some(peer),
            allowed_ips,
            others,
            message: None,
            rule: None,
        },
        NodeShare::Lacked { rule, message } => NodePeers {
            clusters,
            result: GateResult::Failed,
            peer: None,
            allowed_ips: Vec::new(),
            others: 0,
            message,
            rule,
        },
    }
}

/// Returns the Peer of a target that carries the pods of a node, or the finding about why none does.
fn share(
    planned: PlannedFleet,
    member: &Member,
    id: NodeId,
    target: &ClusterName,
) -> Result<NodeShare, Option<Finding>> {
    let node = &member.cluster.nodes[id];
    let pods = node.checked.pods.iter().flat_map(|it| &it.used);
    let pods: Vec<Cidr> = pods.copied().collect();
    let is_of_source = |it: &&Peer| it.cluster == member.entry.name && it.mesh == member.mesh.name;
    let mut peers = planned.plan.peers_of(target).filter(is_of_source);
    let carries =
        |peer: &Peer, address: IpAddr| peer.allowed_ips.iter().any(|it| it.holds(address));
    let giving = peers.find(|peer| pods.iter().any(|it| carries(peer, it.first())));
    let Some(peer) = giving else {
        let reasons = pods.iter().filter_map(|it| {
            let source = &member.entry.name;
            let node = Some(node.node.name.as_str());
            LackedAddress { target, source, node, address: it.first() }.cause(planned)
        });
        return Err(reasons.into_iter().next());
    };
    let hosts = node_checks::internal_addresses(node.node, &node.kilo).into_iter();
    let hosts = hosts.chain(node.checked.wireguard.iter().copied()).map(Cidr::host);
    let own: Vec<Cidr> = pods.iter().copied().chain(hosts).collect();
    let given = peer.allowed_ips.iter().filter(|range| own.iter().any(|it| it.overlaps(**range)));
    let allowed_ips: Vec<String> = given.map(ToString::to_string).collect();
    let others = peer.allowed_ips.len() - allowed_ips.len();
    Ok(NodeShare::Given { peer: peer.name.to_string(), allowed_ips, others })
}
