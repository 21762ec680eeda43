//! Words for what a plan cuts: what a target does not get, and why.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt;

use by_address::ByAddress;

use super::command::{annotate_endpoint, blank};
use super::endpoints::NO_ANCHOR;
use super::identity::{KEY_IN_TWO_CLUSTERS, KEY_OF_TARGET_NODE};
use super::kilo::UNROUTABLE_FAMILY;
use super::ranges::{RANGELESS_PEER, UNACCEPTED_RANGE};
use super::{Finding, Rule};
use crate::diagnostic::{FindingCause, Message, Quoted, Severity};
use crate::fleet::Fleet;
use crate::kilo::node::annotation;
use crate::name::ClusterName;
use crate::net::{Cidr, Family};
use crate::packet::rule::NO_INITIATOR;
use crate::place::Place;
use crate::plan::{Plan, TargetReason, Withheld, WithheldRanges};
use crate::text::{self, count, listed};

mod anchors;
mod captured;
pub(super) mod cut_off;
mod loops;

/// The label of the line that declares ranges.
const DECLARED: &str = "declared here";

/// One cut of a source, and the targets in which it is made.
struct AlikeWithheld<'p> {
    withheld: &'p Withheld,
    targets: Vec<&'p ClusterName>,
}

/// The rules by which something is withheld only because other rules withhold the rest.
const CONSEQUENCES: [&Rule; 2] = [&RANGELESS_PEER, &NO_ANCHOR];

/// A finding and its targets.
type FindingOfTargets<'p> = (Finding, Vec<&'p ClusterName>);

/// Returns the findings about the targets; similar cuts of many targets are combined.
pub(super) fn findings(plan: &Plan) -> Vec<Finding> {
    let mut by_message: BTreeMap<(Option<String>, Message), FindingOfTargets> = BTreeMap::new();
    for AlikeWithheld { withheld, targets } in alike(plan) {
        let finding = finding(withheld);
        let key = (finding.subject(), finding.message.clone());
        let entry = by_message.entry(key).or_insert_with(|| (finding, Vec::new()));
        entry.1.extend(targets);
    }
    let no_initiator_of: BTreeSet<FindingCause> = by_message
        .values()
        .filter(|it| it.0.rule == &NO_INITIATOR)
        .map(|it| it.0.as_cause())
        .collect();
    by_message
        .into_values()
        .map(|(mut finding, mut targets)| {
            targets.sort();
            if finding.rule == &UNACCEPTED_RANGE && 1 < targets.len() {
                finding.help = finding.help.map(|it| format!("{it}, and so for each other target"));
            }
            let targets: Vec<String> = targets.iter().map(ToString::to_string).collect();
            finding.message = format!("{} {}", finding.message, within(&targets)).into();
            // No node that could carry a range can be dialled.
            let undialled = finding.as_cause();
            let undialled = FindingCause { rule: &NO_INITIATOR, ..undialled };
            if finding.rule == &NO_ANCHOR && no_initiator_of.contains(&undialled) {
                finding.cause = Some(undialled);
            }
            finding
        })
        .collect()
}

/// Adds the endpoints that nodes of a cluster without any need to a finding about them.
pub(super) fn with_endpoints(finding: Finding, fleet: &Fleet) -> Finding {
    if finding.rule != &NO_INITIATOR && finding.rule != &NO_ANCHOR {
        return finding;
    }
    let cluster = finding.cluster.clone();
    let members = fleet.first_memberships();
    let member = members.filter(|it| cluster.as_deref() == Some(it.entry.name.as_str()));
    let change = blank(annotation::CLUSTERMESH_ENDPOINT);
    member.fold(finding, |finding, it| {
        let candidates = it.membership.candidates.iter();
        let undialled = candidates.filter(|it| it.endpoint.is_none());
        finding.resolved_by(&change, &it.entry.name, undialled.map(|it| it.leader.as_str()))
    })
}

/// Returns the cuts that targets share, each once: words are made once for all of them.
fn alike(plan: &Plan) -> Vec<AlikeWithheld<'_>> {
    let mut known: BTreeMap<ByAddress<&TargetReason>, usize> = BTreeMap::new();
    let mut alike: Vec<AlikeWithheld> = Vec::new();
    for withheld in &plan.withheld {
        let at = *known.entry(ByAddress(&*withheld.reason)).or_insert(alike.len());
        match alike.get_mut(at) {
            Some(alike) => alike.targets.push(&withheld.target),
            None => alike.push(AlikeWithheld { withheld, targets: vec![&withheld.target] }),
        }
    }
    alike
}

/// Lists the affected targets: the first few, and how many more.
pub(super) fn within(targets: &[String]) -> String {
    let noun = text::noun(targets.len(), "target");
    format!("({noun} {})", listed(targets))
}

/// Returns the rule that something is withheld by.
pub(super) fn rule_of(withheld: &Withheld) -> &'static Rule {
    finding(withheld).rule
}

/// Lists the rules by which something is withheld. That no range is left follows from the others.
pub(super) fn rules_of<'p>(withheld: impl Iterator<Item = &'p Withheld>) -> String {
    let rules: BTreeSet<&Rule> = withheld.filter(|it| it.reason.withholds()).map(rule_of).collect();
    let causes = || rules.iter().filter(|it| !CONSEQUENCES.contains(it));
    let shown = if causes().next().is_some() { causes().copied().collect() } else { rules.clone() };
    text::list(shown.iter().map(|it| it.name()))
}

/// Returns the finding about something that is withheld, if one rule withholds all of it.
pub(super) fn cause_of<'p>(withheld: impl Iterator<Item = &'p Withheld>) -> Option<FindingCause> {
    let withheld = withheld.filter(|it| it.reason.withholds());
    let causes = withheld.map(|it| finding(it).as_cause());
    let mut causes = causes.filter(|it| !CONSEQUENCES.contains(&it.rule));
    // Different families have a finding of their own.
    let first = causes.next().filter(|it| it.rule != &UNROUTABLE_FAMILY)?;
    causes.all(|it| it.rule == first.rule).then_some(first)
}

pub(super) fn finding(withheld: &Withheld) -> Finding {
    let source = &withheld.source;
    match &*withheld.reason {
        TargetReason::OwnKey { node, place, own, own_place, .. } => {
            let holder = format!("node {} of the target", Quoted(own));
            let finding =
                Finding::on_node(&KEY_OF_TARGET_NODE, source, node.as_str(), same_key(&holder));
            let finding = finding.at(key(place), "").at(key(own_place), "");
            // The target's node is left out in the same way, which is one mistake.
            let other_side = (withheld.target < *source).then(|| FindingCause {
                node: Some(own.clone()),
                ..FindingCause::of(&KEY_OF_TARGET_NODE, &withheld.target)
            });
            finding.with_cause(other_side).help(new_key([source, &withheld.target]))
        }
        TargetReason::SharedKey { node, place, keeper, keeper_node, keeper_place, .. } => {
            let holder = if keeper.is_external() {
                format!("{keeper}, which ranks higher")
            } else {
                format!("{keeper}/{keeper_node}, whose cluster ranks higher")
            };
            let finding =
                Finding::on_node(&KEY_IN_TWO_CLUSTERS, source, node.as_str(), same_key(&holder));
            let finding = finding.at(key(place), "").at(key(keeper_place), "");
            let other_side = FindingCause {
                node: Some(keeper_node.to_string()),
                ..FindingCause::of(&KEY_OF_TARGET_NODE, keeper)
            };
            finding.of_name(keeper.as_str()).with_cause(other_side).help(new_key([source, keeper]))
        }
        TargetReason::LoopingPeer(peer) => loops::peer(source, peer),
        TargetReason::LoopingRanges(ranges) => loops::ranges(source, ranges),
        TargetReason::Captured(captured) => captured::finding(source, &withheld.target, captured),
        TargetReason::Local(network) => captured::local(source, &withheld.target, network),
        TargetReason::NoAnchor { ranges } => anchors::none(source, ranges),
        TargetReason::DistantAnchor(distant) => anchors::distant(source, distant),
        TargetReason::UnknownAnchor(unknown) => anchors::unknown(source, unknown),
        TargetReason::FewerAnchors(fewer) => anchors::fewer(source, fewer),
        TargetReason::SilentAnchor(silent) => anchors::silent(source, silent),
        TargetReason::PerNodePods(pods) => anchors::per_node(source, pods),
        TargetReason::Unaccepted { ranges, accepted, whole, is_pathless } => {
            let list = AcceptingList { target: &withheld.target, place: accepted };
            let finding = unaccepted(source, ranges, *is_pathless);
            let finding = finding.at(accepted.clone(), "does not contain it");
            finding.help(acceptance(&list, &ranges.cidrs, *whole))
        }
        TargetReason::Rangeless { peers } => rangeless(source, *peers),
        TargetReason::Family { family, ranges } => unroutable(source, *family, *ranges),
        TargetReason::NoInitiator { peers } => no_initiator(source, &withheld.target, *peers),
    }
}

/// Returns what gives two machines a key each.
fn new_key(clusters: [&ClusterName; 2]) -> String {
    let [one, other] = clusters;
    let (host, rest) = if one.is_external() { (one, other) } else { (other, one) };
    if host.is_external() {
        return format!(
            "if `{host}` is that node, remove it from `externalPeers`; otherwise write the `publicKey` that `wg pubkey` \
             prints on `{host}`; if the private key was copied, delete `/var/lib/kilo/key` on the node, restart Kilo, \
             and run `clustermesh snapshot {rest}`"
        );
    }
    format!(
        "on one of the two machines, delete `/var/lib/kilo/key` and restart Kilo, then run `clustermesh snapshot {one} \
         {other}`; if it is one machine that moved, this snapshot is enough"
    )
}

fn same_key(holder: &str) -> String {
    format!("left out: same public key as {holder}")
}

fn unroutable(source: &ClusterName, family: Family, ranges: usize) -> Finding {
    let ranges = count(ranges, &format!("{family} range"));
    let other = family.other();
    let message = format!("{ranges} left out, where Kilo routes only {other}");
    Finding::on_cluster(&UNROUTABLE_FAMILY, source, message)
}

fn rangeless(source: &ClusterName, peers: usize) -> Finding {
    let message = format!("{} left out: no ranges remain", count(peers, "Peer"));
    Finding::on_cluster(&RANGELESS_PEER, source, message)
        .help("correct what is reported about the ranges of this cluster")
}

fn no_initiator(source: &ClusterName, target: &ClusterName, peers: usize) -> Finding {
    let nodes = if peers == 1 { "its node" } else { "their nodes" };
    let message = format!(
        "{} left out: {nodes} and most nodes of the target have no endpoint, so neither side can dial",
        count(peers, "Peer")
    );
    let finding = Finding::on_cluster(&NO_INITIATOR, source, message);
    if source.is_external() {
        return finding.help(format!(
            "remove `{target}` from `clusters` of the external peer, or add an `endpoint` if the clusters can dial the host"
        ));
    }
    // The host has the same finding about the cluster.
    let of_host = target.is_external().then(|| FindingCause::of(&NO_INITIATOR, target));
    let finding = finding.with_cause(of_host);
    finding.help(format!(
        "annotate every node of {source}, or most nodes of the target, with an address that can be dialled, \
         for example `{}`, then run `clustermesh snapshot {source}`",
        annotate_endpoint("NODE")
    ))
}

fn key(node: &Place) -> Place {
    node.key("annotations").key(annotation::KEY)
}

fn unaccepted(source: &ClusterName, ranges: &WithheldRanges, is_pathless: bool) -> Finding {
    let so = if is_pathless { ", so no path works between the linked clusters" } else { "" };
    let message = format!("{} left out: not in `acceptedNetworks`{so}", listed_ranges(ranges));
    let mut finding = Finding::on_cluster(&UNACCEPTED_RANGE, source, message);
    if is_pathless {
        finding.severity = Severity::Warning;
    }
    finding.at(ranges.declared.clone(), DECLARED)
}

/// Returns what makes a list contain ranges: the whole declared range, because nodes come and go, unless the list chose
/// among its parts.
fn acceptance(list: &AcceptingList, ranges: &[Cidr], whole: Option<Cidr>) -> String {
    let added = match whole {
        Some(whole) => whole.to_string(),
        None if ranges.len() <= text::NAMED => listed(ranges.iter()),
        None => return format!("to accept them, {}", accept_ranges(list)),
    };
    let it = if ranges.len() == 1 { "it" } else { "them" };
    format!("to accept {it}, add {added} to {list}")
}

/// The list of ranges that a target accepts.
pub(super) struct AcceptingList<'l> {
    pub(super) target: &'l ClusterName,
    /// Its first range.
    pub(super) place: &'l Place,
}

impl fmt::Display for AcceptingList<'_> {
    fn fmt(&self, formatter: &mut fmt::Formatter) -> fmt::Result {
        let file = Quoted(&self.place.source);
        write!(formatter, "`acceptedNetworks` of `{}` in {file}", self.target)
    }
}

/// Returns what accepts ranges that a list does not contain.
pub(super) fn accept_ranges(list: &AcceptingList) -> String {
    format!("add ranges to {list} that contain all their addresses")
}

/// Names the first few ranges.
fn listed_ranges(ranges: &WithheldRanges) -> String {
    listed(ranges.cidrs.iter())
}
