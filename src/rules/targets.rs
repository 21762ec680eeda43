//! What does a target not get, and why?

use std::collections::BTreeMap;

use super::{Finding, Rule, rule};
use crate::diagnostic::{Label, Quoted, Severity};
use crate::name::ClusterName;
use crate::plan::{Cut, CutOff, Plan};

static UNROUTABLE_FAMILY: Rule = rule("unroutable-family", Severity::Notice);
static KEY_OF_TARGET_NODE: Rule = rule("key-of-target-node", Severity::Warning);
static KEY_IN_TWO_CLUSTERS: Rule = rule("key-in-two-clusters", Severity::Warning);
static NO_INITIATOR: Rule = rule("no-initiator", Severity::Warning);
static NO_ANCHOR: Rule = rule("no-anchor", Severity::Warning);

/// Returns what there is to tell about the targets, alike cuts of many targets as one.
pub(super) fn findings(plan: &Plan) -> Vec<Finding> {
    let mut alike: BTreeMap<(String, String), (Finding, Vec<String>)> = BTreeMap::new();
    for cut in &plan.cuts {
        let finding = finding(cut);
        let key = (finding.subject.clone(), finding.message.clone());
        let entry = alike.entry(key).or_insert_with(|| (finding, Vec::new()));
        entry.1.push(cut.target.to_string());
    }
    alike
        .into_values()
        .map(|(mut finding, targets)| {
            let shown = targets
                .iter()
                .take(3)
                .cloned()
                .collect::<Vec<_>>()
                .join(", ");
            let more = targets.len().saturating_sub(3);
            let and_more = match more {
                0 => String::new(),
                more => format!(" and {more} more"),
            };
            finding.message = format!("{} (in {shown}{and_more})", finding.message);
            finding
        })
        .collect()
}

fn finding(cut: &Cut) -> Finding {
    let source = &cut.source;
    let (rule, subject, message) = match &cut.what {
        CutOff::OwnKey {
            node, own, kept, ..
        } => {
            let message = own_key(own, *kept, source);
            (&KEY_OF_TARGET_NODE, format!("{source}/{node}"), message)
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
            (&KEY_IN_TWO_CLUSTERS, format!("{source}/{node}"), message)
        }
        CutOff::Family { family, ranges } => {
            let ranges = count(*ranges, &format!("{family} range"));
            let message = format!("{ranges} left out: not of the family that Kilo routes there");
            (&UNROUTABLE_FAMILY, source.to_string(), message)
        }
        CutOff::NoInitiator { peers } => {
            let peers = count(*peers, "Peer");
            let message =
                format!("{peers} left out: neither side has an endpoint, so neither can dial");
            (&NO_INITIATOR, source.to_string(), message)
        }
        CutOff::NoAnchor { ranges } => {
            let ranges: Vec<String> = ranges.iter().map(ToString::to_string).collect();
            let ranges = ranges.join(", ");
            let message = format!("{ranges} left out: no segment that is left has an endpoint");
            (&NO_ANCHOR, source.to_string(), message)
        }
    };
    let mut finding = Finding::new(rule, source.to_string(), subject, message);
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
            place: place.clone(),
            text: String::new(),
        })
        .collect()
}

fn count(number: usize, noun: &str) -> String {
    match number {
        1 => format!("1 {noun}"),
        number => format!("{number} {noun}s"),
    }
}
