//! Words for who carries what belongs to a cluster as a whole.

use crate::diagnostic::{FindingCause, Quoted};
use crate::membership::Unready;
use crate::name::ClusterName;
use crate::net::Cidr;
use crate::plan::{
    AnchorProblem, DistantAnchor, FewerAnchors, PerNodePods, SilentAnchor, UnknownAnchor,
};
use crate::rules::command::annotate_endpoint;
use crate::rules::endpoints::{
    DISTANT_ANCHOR, FEWER_ANCHORS, MISSING_CARRIER, NO_ANCHOR, SILENT_ANCHOR, UNKNOWN_ANCHOR,
};
use crate::rules::nodes::SILENT_CLUSTER;
use crate::rules::{Finding, bare};
use crate::text::{count, listed};

pub(super) fn none(source: &ClusterName, ranges: &[Cidr]) -> Finding {
    let ranges = listed(ranges.iter());
    let message = format!("{ranges} left out: no node of {source} with an endpoint can carry it");
    let silence = FindingCause::of(&SILENT_CLUSTER, source);
    Finding::on_cluster(&NO_ANCHOR, source, message)
        .with_cause(silence)
        .help(format!(
            "if {source} is behind NAT, remove {ranges} from its entry; otherwise give a node an endpoint: `{}`, then run \
             `clustermesh snapshot {source}`",
            annotate_endpoint("NODE")
        ))
}

pub(super) fn unknown(source: &ClusterName, unknown: &UnknownAnchor) -> Finding {
    let node = Quoted(&unknown.node);
    let (why, help) = match unknown.problem {
        AnchorProblem::NoSegment => (
            "neither this node nor the leader of its location has an endpoint".to_owned(),
            "write a node that has an endpoint, or whose leader has one".to_owned(),
        ),
        AnchorProblem::NotSelected => (
            "`nodeSelector` does not select this node".to_owned(),
            "write a node that `nodeSelector` selects".to_owned(),
        ),
        AnchorProblem::NoNode => (
            "the snapshot has no node of this name".to_owned(),
            "correct the name; if the node is gone, write another one".to_owned(),
        ),
        AnchorProblem::LeftOut => (
            "the Peer of this node is left out".to_owned(),
            "correct what the other findings about this node report".to_owned(),
        ),
        AnchorProblem::NotReady(why) => (
            match why {
                Unready::Stale => "the Kilo agent of this node stopped sending heartbeats",
                Unready::NoEndpoint => "Kilo has no endpoint for this node",
            }
            .to_owned(),
            revive(source),
        ),
    };
    let message = format!("anchor {node} is ignored: {why}");
    let mut finding = Finding::on_cluster(&UNKNOWN_ANCHOR, source, message);
    finding = finding.at(unknown.place.clone(), "");
    if let Some(place) = &unknown.node_place {
        finding = finding.at(place.clone(), "the node");
    }
    finding.help(help)
}

pub(super) fn silent(source: &ClusterName, silent: &SilentAnchor) -> Finding {
    let message = format!(
        "only {} can carry {}, and its Kilo agent has stopped sending heartbeats",
        silent.node,
        listed(silent.ranges.iter())
    );
    Finding::on_cluster(&SILENT_ANCHOR, source, message)
        .at(silent.place.key("stale"), "")
        .help(revive(source))
}

pub(super) fn per_node(source: &ClusterName, pods: &PerNodePods) -> Finding {
    let ranges = listed(pods.ranges.iter());
    let message = format!(
        "no node that `anchors` names for {ranges} can carry it, so only the pod CIDRs of each node are rendered"
    );
    Finding::on_cluster(&MISSING_CARRIER, source, message)
        .at(pods.place.clone(), "")
        .help(format!(
            "write a running node of the location that should carry the range in `nodes`, or correct what other \
             findings report about the named nodes and run `clustermesh snapshot {source}`"
        ))
}

fn revive(source: &ClusterName) -> String {
    format!("start the node and its Kilo agent, then run `clustermesh snapshot {source}`")
}

pub(super) fn fewer(source: &ClusterName, fewer: &FewerAnchors) -> Finding {
    let FewerAnchors { range, wanted, got, carriers, .. } = fewer;
    let can = format!("only {} of {source} can carry it", count(*carriers, "node"));
    let (why, help) = if fewer.is_narrow {
        (format!("{range} cannot be split further"), ", or give the range its own anchor")
    } else if 0 < fewer.unready {
        let why = format!("{can}, and {} not ready", are(fewer.unready));
        (why, ", or start the nodes that are not ready and their Kilo agents")
    } else {
        (can, "")
    };
    let help = format!("write `count: {got}`{help}");
    let message = format!("{range} is spread over {got} instead of {wanted} nodes: {why}");
    Finding::on_cluster(&FEWER_ANCHORS, source, message).at(fewer.place.key("count"), "").help(help)
}

fn are(segments: usize) -> String {
    let verb = if segments == 1 { "is" } else { "are" };
    format!("{} with an endpoint {verb}", count(segments, "segment"))
}

pub(super) fn distant(source: &ClusterName, distant: &DistantAnchor) -> Finding {
    let DistantAnchor { ranges, node, place, leader, carrier } = distant;
    let shown = listed(ranges.iter());
    let message = format!("{carrier} carries {shown}, but {} is on this LAN", bare(node));
    let quoted: Vec<String> = ranges.iter().map(|it| format!("'{it}'")).collect();
    Finding::on_cluster(&DISTANT_ANCHOR, source, message).at(place.clone(), "this node").help(
        format!(
            "if the LAN exists, add `anchors: [{{ ranges: [{}], nodes: [{leader}] }}]` to \
             `{source}` in the mesh",
            quoted.join(", ")
        ),
    )
}
