//! Words for who carries what belongs to a cluster as a whole.

use crate::diagnostic::{FindingCause, Quoted};
use crate::name::ClusterName;
use crate::net::Cidr;
use crate::plan::{DistantAnchor, FewerAnchors, UnknownAnchor};
use crate::rules::command::annotate_endpoint;
use crate::rules::endpoints::{DISTANT_ANCHOR, FEWER_ANCHORS, NO_ANCHOR, UNKNOWN_ANCHOR};
use crate::rules::nodes::SILENT_CLUSTER;
use crate::rules::{Finding, bare};
use crate::text::listed;

pub(super) fn none(source: &ClusterName, ranges: &[Cidr]) -> Finding {
    let ranges = listed(ranges.iter());
    let message = format!("{ranges} left out: no node with an endpoint is left to carry it");
    let silence = FindingCause {
        rule: &SILENT_CLUSTER,
        cluster: Some(source.to_string()),
        node: None,
    };
    Finding::on_cluster(&NO_ANCHOR, source, message)
        .with_cause(silence)
        .help(format!(
            "give a node an endpoint: `{}`; or remove the ranges from the mesh",
            annotate_endpoint("NODE")
        ))
}

pub(super) fn unknown(source: &ClusterName, unknown: &UnknownAnchor) -> Finding {
    let node = Quoted(&unknown.node);
    let (why, help) = match &unknown.node_place {
        Some(_) => (
            format!("{node} does not lead a segment with an endpoint"),
            "write the node that leads its segment",
        ),
        None => (
            format!("the snapshot has no node {node}"),
            "correct the name, or remove it from `anchors`",
        ),
    };
    let message = format!("anchor ignored: {why}");
    let mut finding = Finding::on_cluster(&UNKNOWN_ANCHOR, source, message);
    finding = finding.at(unknown.place.clone(), "");
    if let Some(place) = &unknown.node_place {
        finding = finding.at(place.clone(), "the node");
    }
    finding.help(help)
}

pub(super) fn fewer(source: &ClusterName, fewer: &FewerAnchors) -> Finding {
    let FewerAnchors {
        range, wanted, got, ..
    } = fewer;
    let (why, help) = if fewer.is_narrow {
        (
            format!("{range} cannot be split further"),
            "lower `count`, or give the range its own anchor",
        )
    } else {
        (
            "no other segment has an endpoint".to_owned(),
            "lower `count`, or give more nodes an endpoint",
        )
    };
    let message = format!("{range} is spread over {got} of {wanted} anchors: {why}");
    Finding::on_cluster(&FEWER_ANCHORS, source, message)
        .at(fewer.place.clone(), "")
        .help(help)
}

pub(super) fn distant(source: &ClusterName, distant: &DistantAnchor) -> Finding {
    let DistantAnchor {
        ranges,
        node,
        place,
        leader,
        carrier,
    } = distant;
    let shown = listed(ranges.iter());
    let message = format!(
        "{shown} is carried by {carrier}, but this LAN belongs to {}",
        bare(node)
    );
    let quoted: Vec<String> = ranges.iter().map(|it| format!("'{it}'")).collect();
    Finding::on_cluster(&DISTANT_ANCHOR, source, message)
        .at(place.clone(), "this node")
        .help(format!(
            "if the LAN exists, add `anchors: [{{ ranges: [{}], nodes: [{leader}] }}]` to \
             `{source}` in the mesh",
            quoted.join(", ")
        ))
}
