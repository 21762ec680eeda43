//! Words for who carries what belongs to a cluster as a whole.

use crate::diagnostic::{Cause, Quoted};
use crate::name::ClusterName;
use crate::net::Cidr;
use crate::plan::{DistantAnchor, FewerAnchors, UnknownAnchor};
use crate::rules::endpoints::{DISTANT_ANCHOR, FEWER_ANCHORS, NO_ANCHOR, UNKNOWN_ANCHOR};
use crate::rules::nodes::SILENT_CLUSTER;
use crate::rules::{Finding, bare, listed};

pub(super) fn none(source: &ClusterName, ranges: &[Cidr]) -> Finding {
    let ranges = listed(ranges.iter().map(ToString::to_string));
    let message = format!("{ranges} left out: no segment that is left has an endpoint");
    let silence = Cause {
        rule: &SILENT_CLUSTER,
        cluster: Some(source.to_string()),
        node: None,
    };
    Finding::on_cluster(&NO_ANCHOR, source, message)
        .with_cause(silence)
        .help(
            "one segment carries such ranges for all, and only one that can be dialled: give a node an \
             endpoint, or leave the ranges out of the mesh",
        )
}

pub(super) fn unknown(source: &ClusterName, unknown: &UnknownAnchor) -> Finding {
    let node = Quoted(&unknown.node);
    let (why, help) = match &unknown.node_place {
        Some(_) => (
            format!("{node} leads no segment that is left and has an endpoint"),
            "other findings may say why; name the node that leads its segment",
        ),
        None => (
            format!("the snapshot has no node {node}"),
            "correct the name, or take it out of `anchors`",
        ),
    };
    let message = format!("anchor passed over: {why}");
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
            format!("{range} has no more equal parts"),
            "lower `count`, or name the range in an anchor of its own",
        )
    } else {
        (
            "no more segments are left that have an endpoint".to_owned(),
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
    let shown = listed(ranges.iter().map(ToString::to_string));
    let message = format!(
        "{shown} carried by {carrier}, although the LAN is that of {}",
        bare(node)
    );
    let quoted: Vec<String> = ranges.iter().map(|it| format!("'{it}'")).collect();
    Finding::on_cluster(&DISTANT_ANCHOR, source, message)
        .at(place.clone(), "this node")
        .help(format!(
            "if the LAN is real, add `anchors: [{{ ranges: [{}], nodes: [{leader}] }}]` to \
             `{source}` in the mesh",
            quoted.join(", ")
        ))
}
