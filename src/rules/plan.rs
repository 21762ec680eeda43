//! Words for what a plan cuts: what a target does not get, and why.

use std::collections::BTreeMap;

use super::Finding;
use super::endpoints::{NO_ANCHOR, NO_INITIATOR};
use super::identity::{KEY_IN_TWO_CLUSTERS, KEY_OF_TARGET_NODE};
use super::kilo::UNROUTABLE_FAMILY;
use crate::diagnostic::{Label, Quoted};
use crate::kilo::node::annotation;
use crate::name::ClusterName;
use crate::plan::{Cut, CutOff, Plan};

/// Returns what there is to tell about the targets, alike cuts of many targets as one.
pub(super) fn findings(plan: &Plan) -> Vec<Finding> {
    let mut alike: BTreeMap<(Option<String>, String), (Finding, Vec<String>)> = BTreeMap::new();
    for cut in &plan.cuts {
        let finding = finding(cut);
        let key = (finding.subject(), finding.message.clone());
        let entry = alike.entry(key).or_insert_with(|| (finding, Vec::new()));
        entry.1.push(cut.target.to_string());
    }
    alike
        .into_values()
        .map(|(mut finding, targets)| {
            finding.message = format!("{} {}", finding.message, within(&targets));
            finding
        })
        .collect()
}

/// Says in which targets something is so: the first few, and how many more.
pub(super) fn within(targets: &[String]) -> String {
    let shown: Vec<&str> = targets.iter().take(3).map(String::as_str).collect();
    let shown = shown.join(", ");
    match targets.len().saturating_sub(3) {
        0 => format!("(in {shown})"),
        more => format!("(in {shown} and {more} more)"),
    }
}

fn finding(cut: &Cut) -> Finding {
    let source = &cut.source;
    let (rule, node, message) = match &cut.what {
        CutOff::OwnKey {
            node, own, kept, ..
        } => {
            let message = own_key(own, *kept, source);
            (&KEY_OF_TARGET_NODE, Some(node), message)
        }
        CutOff::SharedKey {
            node,
            keeper,
            keeper_node,
            ..
        } => {
            let message = format!(
                "left out: same public key as {keeper}/{keeper_node}, whose cluster ranks first"
            );
            (&KEY_IN_TWO_CLUSTERS, Some(node), message)
        }
        CutOff::Family { family, ranges } => {
            let ranges = count(*ranges, &format!("{family} range"));
            let message = format!("{ranges} left out: not of the family that Kilo routes there");
            (&UNROUTABLE_FAMILY, None, message)
        }
        CutOff::NoInitiator { peers } => {
            let peers = count(*peers, "Peer");
            let message =
                format!("{peers} left out: neither side has an endpoint, so neither can dial");
            (&NO_INITIATOR, None, message)
        }
        CutOff::NoAnchor { ranges } => {
            let ranges: Vec<String> = ranges.iter().map(ToString::to_string).collect();
            let ranges = ranges.join(", ");
            let message = format!("{ranges} left out: no segment that is left has an endpoint");
            (&NO_ANCHOR, None, message)
        }
    };
    let mut finding = match node {
        Some(node) => Finding::on_node(rule, source, node.as_str(), message),
        None => Finding::on_cluster(rule, source, message),
    };
    finding.labels = labels(&cut.what);
    if matches!(cut.what, CutOff::NoAnchor { .. }) {
        let help = "one segment carries such ranges for all, and only one that can be dialled: give a \
             node an endpoint, or leave the ranges out of the mesh";
        finding.help = Some(help.to_owned());
    }
    finding
}

fn own_key(own: &str, kept: bool, source: &ClusterName) -> String {
    let own = Quoted(own);
    if kept {
        return format!(
            "the target's own node {own} has its public key; the Peer stays, as {source} ranks first"
        );
    }
    format!("left out: same public key as the target's own node {own}")
}

fn labels(what: &CutOff) -> Vec<Label> {
    let places = match what {
        CutOff::OwnKey {
            place, own_place, ..
        } => vec![place, own_place],
        CutOff::SharedKey {
            place,
            keeper_place,
            ..
        } => vec![place, keeper_place],
        CutOff::Family { .. } | CutOff::NoInitiator { .. } | CutOff::NoAnchor { .. } => Vec::new(),
    };
    places
        .into_iter()
        .map(|place| Label {
            place: place.key("annotations").key(annotation::KEY),
            text: String::new(),
        })
        .collect()
}

pub(super) fn count(number: usize, noun: &str) -> String {
    match number {
        1 => format!("1 {noun}"),
        number => format!("{number} {noun}s"),
    }
}
