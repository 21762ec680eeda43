//! Words for what a verification finds: promises that do not hold, and what holds without a promise.

use std::collections::{BTreeMap, BTreeSet};

use super::command::with_access;
use super::gitops::{PEER_WITHOUT_ENDPOINT, twin_peers};
use super::nodes::CONTRADICTED;
use super::rendered::PlannedFleet;
use super::{Finding, bare};
use crate::agent::fabric::{DialPremise, Fabric, NodeRef, Owner, Site, SiteId, SitePair};
use crate::agent::peers::{ClusterPeer, PeerId, Prize};
use crate::config::Config;
use crate::diagnostic::mistake::OVERLAPPING_RANGES;
use crate::diagnostic::{FindingCause, Severity};
use crate::fleet::{Fleet, Member, MissingSnapshot};
use crate::kilo::topology::Leader;
use crate::mesh::Mesh;
use crate::name::ClusterName;
use crate::net::Cidr;
use crate::packet::premise::{MaskedPod, Premise};
use crate::packet::{AssumedDial, Doubt, Ending, messages};
use crate::place::Place;
use crate::plan::Plan;
use crate::proof::rule::{EMPTY_EXPECTATION, NOTHING_PROVED, UNREACHED_PODS};
use crate::proof::verify::{Assumption, Failure, Verification};
use crate::text::{NAMED, count, listed};
use crate::wireguard::Endpoint;

mod assumed;
mod leaks;
mod left_out;
mod outdated_tree;
mod outsiders;
mod unproved;
pub mod unproved_nodes;

pub use left_out::LackedAddress;
pub use outdated_tree::{OutdatedTree, RenderDoubts};

use assumed::{assumed, mismatched_pods};
use leaks::leaks;
use outsiders::outsiders;
use unproved::unproved;
use unproved_nodes::unproved_nodes;

/// The gaps in the inputs of a proof. If nothing is proved, that follows from them.
#[derive(Clone, Copy)]
pub struct InputGaps<'a> {
    /// The mistakes, which leave entries out.
    pub mistakes: &'a [Finding],
    /// The clusters whose entries are left out because of mistakes.
    pub broken: &'a BTreeSet<&'a str>,
    /// The clusters without a usable snapshot. The keys of their nodes are unknown.
    pub missing: &'a [MissingSnapshot],
    /// Whether one node's claim leaves nothing of a cluster, see [`silenced`].
    pub are_silenced: bool,
    /// The Peers that a render would write, if they are known.
    pub planned: Option<PlannedFleet<'a>>,
    /// The config, with the contexts for commands.
    pub config: &'a Config,
}

/// Returns whether a claim of one node is why some cluster gives nothing to another one, why it has no path to prove, or
/// makes its only leader uncertain.
pub fn silenced(fleet: &Fleet, plan: Option<&Plan>) -> bool {
    // With several such clusters, several nodes are the reason.
    let is_unled = |it: &Member| {
        let topology = &it.cluster.topology;
        let mut segments = topology.segments.iter();
        match topology.segments.len() {
            0 => topology.nodes.len() == 1,
            1 => segments.all(|it| matches!(it.leader, Leader::Ambiguous(_))),
            _ => false,
        }
    };
    let unled = fleet.members().iter().filter(|it| is_unled(it));
    let unproved = unproved_nodes(fleet, plan);
    plan.is_some_and(|it| it.lost_to_one().next().is_some())
        || unled.count() == 1
        || unproved.iter().filter(|it| it.are_all_left_out_for_one()).count() == 1
}

impl InputGaps<'_> {
    /// Sets the cause of findings about expectations whose external peers are unknown because a mistake prevents a plan.
    pub fn explain_unchecked(self, meshes: &[Mesh], findings: &mut [Finding]) {
        let externals = meshes.iter().flat_map(|it| &it.externals);
        let externals: BTreeSet<&str> = externals.map(|it| it.entry.name.as_str()).collect();
        let mistake = self.mistakes.first().filter(|_| self.planned.is_none());
        let is_meant = |it: &&mut Finding| {
            let is_named = it.named.as_deref().is_some_and(|it| externals.contains(it));
            it.rule == &EMPTY_EXPECTATION && is_named
        };
        for finding in findings.iter_mut().filter(is_meant) {
            finding.cause = mistake.map(Finding::as_cause);
        }
    }

    fn are_none(self) -> bool {
        self.mistakes.is_empty() && self.missing.is_empty()
    }
}

/// Returns the findings: failures, leaks, and unknown Peers.
pub fn findings(fabric: &Fabric, verification: &Verification, gaps: InputGaps) -> Vec<Finding> {
    let failures = failures(fabric, verification, gaps);
    let unproved_pairs = unproved_pairs(verification);
    let assumptions = verification.assumptions.iter().filter_map(|assumption| {
        let mut finding = assumed(fabric, assumption)?;
        if !unproved_pairs.is_disjoint(&assumption.between) {
            finding.severity = finding.severity.max(Severity::Warning);
        }
        Some(finding)
    });
    let leaks = leaks(fabric, &verification.leaks, gaps.mistakes);
    let outsiders = outsiders(fabric, verification, gaps);
    let unapplied = fabric.sites.iter().filter_map(|it| unapplied(it));
    let uncarried =
        verification.uncarried.iter().map(|(site, pods)| unreached(fabric, *site, pods));
    let total = verification.total();
    let is_claimed = verification.failures.iter().all(|it| it.is_claimed);
    let is_idle = verification.is_idle;
    // The next hop of an anchor is outside of what can be proved.
    let is_proved = 0 < total.kept + total.routed || !is_claimed || is_idle || !gaps.are_none();
    let unproved = unproved(fabric, verification);
    let nothing = (!is_proved).then(|| {
        let cause =
            unproved.first().filter(|_| verification.failures.is_empty() && total.assumed == 0);
        nothing_proved(fabric, verification, gaps.are_silenced)
            .with_cause(cause.map(Finding::as_cause))
    });
    failures
        .into_iter()
        .chain(mismatched_pods(fabric, &verification.assumptions))
        .chain(assumptions)
        .chain(leaks)
        .chain(outsiders)
        .chain(unapplied)
        .chain(uncarried)
        .chain(nothing)
        .chain(unproved)
        .chain(fabric.sites.iter().flat_map(|it| twins(it)))
        .collect()
}

/// Returns the pairs of clusters between which paths are declared, and none of either direction is proved.
fn unproved_pairs(verification: &Verification) -> BTreeSet<SitePair> {
    let mut proved: BTreeMap<SitePair, u64> = BTreeMap::new();
    for pairing in verification.pairings.iter().filter(|it| it.is_linked) {
        let kept: u64 = pairing.tallies.values().map(|it| it.kept + it.routed).sum();
        let pair = SitePair { from: pairing.from, to: pairing.to };
        *proved.entry(pair).or_default() += kept;
        *proved.entry(pair.back()).or_default() += kept;
    }
    let unproved = proved.into_iter().filter(|it| it.1 == 0);
    unproved.map(|it| it.0).collect()
}

/// Returns which Peers of a cluster have one key.
fn twins(site: &Site) -> Vec<Finding> {
    let contests = site.model.contests.iter();
    let findings = contests.filter(|it| it.over == Prize::Key).map(|contest| {
        let peers = contest.peers.iter().map(|it| &site.model.peers[*it]);
        let place = |it: &ClusterPeer| it.place().key("spec").key("publicKey");
        let peers: Vec<_> = peers.map(|it| (it.applied.name.clone(), place(it))).collect();
        // Of one name, there is only one Peer.
        let names: BTreeSet<&str> = peers.iter().map(|it| it.0.as_str()).collect();
        (1 < names.len()).then(|| twin_peers(site.cluster.as_str(), &peers))
    });
    findings.flatten().collect()
}

/// Returns what a cluster's agents do not apply while a Peer without endpoint has not connected.
fn unapplied(site: &Site) -> Option<Finding> {
    let unapplied = site.model.unapplied()?;
    let peers = |peers: &[PeerId]| -> Vec<&ClusterPeer> {
        peers.iter().map(|it| &site.model.peers[*it]).collect()
    };
    let names = |peers: &[&ClusterPeer]| listed(peers.iter().map(|it| bare(&it.applied.name)));
    let (mute, hidden) = (peers(&unapplied.because_of), peers(&unapplied.peers));
    let nodes: Vec<String> =
        unapplied.segments.iter().map(|it| bare(&site.model.leader(*it).kilo.name)).collect();
    let mut waiting = Vec::new();
    if !hidden.is_empty() {
        let count = count(hidden.len(), "Peer");
        waiting.push(format!("{count} ({})", names(&hidden)));
    }
    if !nodes.is_empty() {
        let count = count(nodes.len(), "node");
        waiting.push(format!("{count} of {} ({})", site.cluster, listed(nodes)));
    }
    let what = if waiting.is_empty() {
        "changes of Peers and nodes whose keys sort after its own".to_owned()
    } else {
        format!("changes of {}", waiting.join(" and of "))
    };
    let (whose, it) = match mute.len() {
        1 => (format!("the Peer {} has", names(&mute)), "it"),
        _ => (format!("the Peers {} have", names(&mute)), "they"),
    };
    let connects = if mute.len() == 1 { "connects" } else { "connect" };
    let message =
        format!("{whose} no endpoint: until {it} {connects}, WireGuard does not get {what}");
    let finding = Finding::on_cluster(&PEER_WITHOUT_ENDPOINT, site.cluster, message);
    let places = mute.iter().take(NAMED).map(|it| it.place().key("spec"));
    let finding = finding.at_each(places.map(|it| (it, "has no endpoint")));
    Some(finding.help(format!(
        "set the endpoint `{}` and a `persistentKeepalive` above 0, like `clustermesh render`",
        Endpoint::PLACEHOLDER
    )))
}

fn cluster<'a>(fabric: &Fabric<'a>, site: SiteId) -> &'a ClusterName {
    fabric.site(site).cluster
}

/// Returns what fails, and what each follows from.
fn failures(fabric: &Fabric, verification: &Verification, gaps: InputGaps) -> Vec<Finding> {
    let failures = &verification.failures;
    let otherwise: Vec<Option<FindingCause>> =
        failures.iter().map(|it| declared_otherwise(fabric, it, gaps.mistakes)).collect();
    let left_out: Vec<Option<Finding>> = failures
        .iter()
        .zip(&otherwise)
        .map(|(failure, otherwise)| {
            let is_explained = failure.follows.is_some() || otherwise.is_some();
            let planned = gaps.planned.filter(|_| !is_explained)?;
            let cause = left_out::cause(fabric, &failure.trace, planned)?;
            Some(with_access(cause, gaps.config))
        })
        .collect();
    let findings: Vec<Option<Finding>> = failures
        .iter()
        .zip(&left_out)
        .map(|(failure, left_out)| failed(fabric, failure, left_out.as_ref()))
        .collect();
    let causes = failures.iter().zip(otherwise).zip(&left_out);
    let causes = causes.map(|((failure, otherwise), left_out)| {
        let other = || findings.get(failure.follows?)?.as_ref();
        other().or(left_out.as_ref()).map(Finding::as_cause).or(otherwise)
    });
    findings
        .iter()
        .zip(causes)
        .filter_map(|(finding, cause)| Some(finding.clone()?.with_cause(cause)))
        .collect()
}

/// Returns the cause of a failure in what people declare.
fn declared_otherwise(
    fabric: &Fabric,
    failure: &Failure,
    mistakes: &[Finding],
) -> Option<FindingCause> {
    rendered_otherwise(fabric, failure).or_else(|| overlapping(fabric, failure, mistakes))
}

/// Returns the finding about overlapping ranges, if the packet or the answer that fails is for an address in one of them.
fn overlapping(fabric: &Fabric, failure: &Failure, mistakes: &[Finding]) -> Option<FindingCause> {
    let packet = &failure.trace.packet;
    let (site, address) = match failure.trace.back {
        None => (packet.to.site(), packet.destination),
        Some(_) => (packet.from.site, packet.source),
    };
    let ranges = fabric.site(site).entry.networks.all().into_iter();
    let around: Vec<&Place> =
        ranges.filter(|it| it.cidr.holds(address)).map(|it| &it.place).collect();
    let mut overlaps = mistakes.iter().filter(|it| it.rule == &OVERLAPPING_RANGES);
    let cause = overlaps.find(|it| it.labels.iter().any(|it| around.contains(&&it.place)))?;
    Some(cause.as_cause())
}

/// Returns the cause of a failure between clusters of which one is rendered with another granularity than
/// that of its agents.
fn rendered_otherwise(fabric: &Fabric, failure: &Failure) -> Option<FindingCause> {
    let packet = &failure.trace.packet;
    let sites = [packet.from.site, packet.to.site()];
    let mut sites = sites.iter().map(|it| fabric.site(*it));
    let site = sites.find(|it| it.reading.is_rendered_otherwise())?;
    Some(FindingCause::of(&CONTRADICTED, site.cluster))
}

/// Reports a failed path by the smallest packet that shows it, and how many more fail for the same
/// reason, given the finding about what a render leaves out if that is the reason.
fn failed(fabric: &Fabric, failed: &Failure, left_out: Option<&Finding>) -> Option<Finding> {
    let trace = &failed.trace;
    let packet = &trace.packet;
    let from = cluster(fabric, packet.from.site);
    let mut finding = messages::verdict(fabric, trace)?.about(from);
    if failed.is_claimed {
        finding.severity = Severity::Warning;
        // These messages name the node and its value.
        let is_named = matches!(
            trace.ending(),
            Ending::NotReady { .. } | Ending::Ambiguous { doubt: Doubt::Refused(_), .. }
        );
        if !is_named {
            finding.help =
                Some("run `clustermesh validate` to see which node's claim causes this".to_owned());
        }
    }
    let mut because = String::new();
    if let Some(cause) = left_out {
        let of = cause.subject().map(|it| format!(" of {it}"));
        because = format!(", because of {}{}", cause.rule.name(), of.unwrap_or_default());
        finding.labels.splice(..0, cause.labels.iter().cloned());
        finding.help.clone_from(&cause.help);
    }
    let to = cluster(fabric, packet.to.site());
    let pairs = match failed.pairs {
        1 => "1 declared path fails".to_owned(),
        pairs => format!("{pairs} declared paths fail"),
    };
    let receivers = failed.receivers.iter().map(|&(site, owner)| whose(fabric, site, owner));
    finding.message = format!(
        "{} → {} ({from} → {to}): {}{because}; {pairs} like this ({}; to {})",
        packet.source,
        packet.destination,
        finding.message,
        between(fabric, &failed.between),
        listed(receivers),
    )
    .into();
    Some(finding)
}

/// Lists pairs of clusters.
fn between(fabric: &Fabric, pairs: &BTreeSet<SitePair>) -> String {
    let between = pairs.iter().map(|it| {
        let [from, to] = it.both().map(|it| cluster(fabric, it));
        format!("{from} → {to}")
    });
    listed(between)
}

/// Names an owner: a node with its cluster, or what a cluster has as a whole.
pub fn whose(fabric: &Fabric, site: SiteId, owner: Owner) -> String {
    let name = cluster(fabric, site);
    let is_host = fabric.site(site).cluster.is_external();
    match owner {
        Owner::Pods(node) if !is_host => {
            format!("pods of {}", messages::called(fabric, NodeRef { site, node }))
        }
        Owner::Pods(node) | Owner::Node(node) | Owner::Tunnel(node) => {
            messages::called(fabric, NodeRef { site, node })
        }
        Owner::Services => format!("services of {name}"),
        Owner::Network | Owner::Pool => format!("ranges of {name}"),
    }
}

/// Reports pod CIDRs to which the Kilo of their cluster carries nothing from others.
fn unreached(fabric: &Fabric, site: SiteId, pods: &[Cidr]) -> Finding {
    let cluster = cluster(fabric, site);
    let ranges = listed(pods.iter());
    let message = format!(
        "other clusters cannot reach {} that Kilo does not route: {ranges}",
        count(pods.len(), "pod CIDR")
    );
    Finding::on_cluster(&UNREACHED_PODS, cluster, message)
}

fn nothing_proved(fabric: &Fabric, verification: &Verification, are_silenced: bool) -> Finding {
    let assumed = verification.total().assumed;
    if 0 < assumed {
        let pairs = count(assumed, "path");
        let message = format!("no declared path is proved: {pairs} work only under assumptions");
        let mut finding = Finding::new(&NOTHING_PROVED, message);
        // The only node of a cluster alone shows the addresses of its pods, and no claim of one node fails a merge.
        let is_only = |site: SiteId| fabric.site(site).reading.nodes.len() == 1;
        let is_claim = |it: &Assumption| match it.premise {
            Premise::Pods(site) => is_only(site),
            Premise::Masqueraded(MaskedPod { at, .. }) => {
                is_only(at.site) && fabric.site(at.site).entry.pod_source.is_none()
            }
            // The only leader of a cluster reports its endpoint, or a few nodes do and all other paths fail for claims.
            Premise::Dial(AssumedDial { premise, at, peer }) => {
                let dialled = fabric.held_by(at.site, peer).map(|it| fabric.site(it.site));
                dialled.is_some_and(|it| match premise {
                    DialPremise::Private => it.has_few_private_endpoints(),
                    DialPremise::Claimed if !verification.failures.is_empty() => true,
                    _ => it.model.topology.segments.len() == 1,
                })
            }
            // Nodes report their addresses themselves.
            Premise::Plugin(_) => true,
            _ => false,
        };
        if verification.assumptions.iter().any(is_claim) {
            finding.severity = Severity::Warning;
        }
        return finding;
    }
    let message = "no declared path between linked clusters works";
    let help = "run `clustermesh validate` to see why nodes are left out";
    let mut finding = Finding::new(&NOTHING_PROVED, message).help(help);
    if are_silenced || !verification.failures.is_empty() {
        // Only claims of nodes are left, and none of them fails a merge.
        finding.severity = Severity::Warning;
    }
    finding
}
