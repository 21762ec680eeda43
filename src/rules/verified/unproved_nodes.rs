//! Unproved nodes: those of which no declared path can be proved, although no person left them out.

use std::collections::{BTreeMap, BTreeSet};

use crate::config::Limits;
use crate::diagnostic::FindingCause;
use crate::fleet::{Fleet, Member};
use crate::kilo::cluster::ClusterNode;
use crate::kilo::id::NodeId;
use crate::kilo::node_checks;
use crate::kilo::topology::Leader;
use crate::membership::{Contradicted, ExcludedReason, PeerCandidate, Unready, causing_nodes};
use crate::mesh::State;
use crate::name::ClusterName;
use crate::plan::{Plan, TargetReason, Withheld};
use crate::proof::rule::UNPROVED_NODES;
use crate::rules::kilo::{MIXED_GRANULARITY, UNCERTAIN_LEADER};
use crate::rules::membership::rule_of;
use crate::rules::nodes::{CONTRADICTED, contradicted};
use crate::rules::snapshots::STALE_NODE;
use crate::rules::{Finding, Rule, bare, excluded, membership, plan};
use crate::snapshot::Node;
use crate::text::{NAMED, and_more, count, first};
use crate::wireguard::PublicKey;

/// The number of nodes with the same reason that are named.
const SHOWN: usize = 20;

/// The nodes of a cluster of which no path can be proved.
#[derive(Debug)]
pub struct UnprovedNodes<'f> {
    /// The cluster in a mesh.
    pub member: &'f Member<'f>,
    /// The nodes, in order of name; never none.
    pub nodes: Vec<UnprovedNode<'f>>,
    /// The number of its nodes that `nodeSelector` selects.
    of: usize,
}

/// A node of which no path can be proved.
#[derive(Debug)]
pub struct UnprovedNode<'f> {
    /// Its number.
    id: NodeId,
    /// The node.
    pub node: &'f Node,
    /// The reason.
    why: Unproved<'f>,
}

/// The reason why no path of a node can be proved.
#[derive(Clone, Debug)]
enum Unproved<'f> {
    /// It is left out.
    Excluded(ExcludedReason),
    /// Kilo does not count it. It has a Peer, as it may be back at any time.
    NotCounted(ExcludedReason),
    /// No target gets its Peer.
    Withheld(&'f Withheld),
    /// The leader of its location is uncertain.
    UncertainLeader,
    /// Its agent divides the cluster with another granularity than most agents.
    OtherGranularity,
    /// Its agent has the granularity that the mesh declares, and most agents have another one.
    DeclaredGranularity,
}

/// Returns a finding for each cluster with such nodes: an error if more are left out than the limits of
/// lost nodes allow.
pub(in crate::rules) fn findings(
    fleet: &Fleet,
    plan: Option<&Plan>,
    limits: &Limits,
) -> Vec<Finding> {
    let found = unproved_nodes(fleet, plan);
    found.iter().map(|it| it.finding(limits)).collect()
}

/// Finds the nodes of all clusters that exchange Peers with others. Without a plan, nothing is known of
/// Peers that targets do not get.
pub fn unproved_nodes<'f>(fleet: &'f Fleet<'f>, plan: Option<&'f Plan>) -> Vec<UnprovedNodes<'f>> {
    let withheld = plan.map(WithheldPeers::new);
    let members = fleet.members().iter();
    let exchanging =
        members.filter(|it| it.entry.state == State::Joined && it.targets().next().is_some());
    exchanging.filter_map(|member| of_member(member, withheld.as_ref())).collect()
}

impl UnprovedNode<'_> {
    /// Returns the rule of the finding of `validate` about the reason.
    pub fn rule(&self) -> &'static Rule {
        match &self.why {
            Unproved::NotCounted(ExcludedReason::NotReady(Unready::Stale)) => &STALE_NODE,
            Unproved::Excluded(reason) | Unproved::NotCounted(reason) => rule_of(reason),
            Unproved::Withheld(withheld) => plan::rule_of(withheld),
            Unproved::UncertainLeader => &UNCERTAIN_LEADER,
            Unproved::OtherGranularity => &MIXED_GRANULARITY,
            Unproved::DeclaredGranularity => &CONTRADICTED,
        }
    }

    /// Describes why no path of it can be proved.
    pub fn reason(&self) -> String {
        match &self.why {
            Unproved::Excluded(reason) | Unproved::NotCounted(reason) => excluded(reason),
            Unproved::Withheld(withheld) => {
                format!("no cluster gets its Peer ({})", plan::rule_of(withheld).name())
            }
            Unproved::UncertainLeader => "the leader of its location is uncertain".to_owned(),
            Unproved::OtherGranularity => {
                "its agent has another granularity than most agents".to_owned()
            }
            Unproved::DeclaredGranularity => {
                "its agent has the declared granularity, unlike most agents".to_owned()
            }
        }
    }
}

impl Unproved<'_> {
    fn is_of_granularity(&self) -> bool {
        matches!(self, Self::OtherGranularity | Self::DeclaredGranularity)
    }
}

impl UnprovedNodes<'_> {
    fn finding(&self, limits: &Limits) -> Finding {
        let Self { member, nodes, of } = self;
        let (verb, agents) =
            if nodes.len() == 1 { ("is", "its agent") } else { ("are", "their agents") };
        let what = if nodes.iter().all(|it| it.why.is_of_granularity()) {
            let granularity = member.cluster.topology.granularity;
            format!("proved as if {agents} had granularity {granularity}")
        } else {
            "not part of this proof".to_owned()
        };
        let of_nodes = match *of {
            1 => "its only node".to_owned(),
            of => format!("{} of {}", nodes.len(), count(of, "node")),
        };
        let is_left_out =
            |it: &UnprovedNode| matches!(it.why, Unproved::Excluded(_) | Unproved::Withheld(_));
        // An older tree may still have their Peers, and these are proved.
        let message = if nodes.iter().all(is_left_out) {
            format!("`render` leaves out {of_nodes}: {}", reasons(nodes))
        } else {
            format!("{of_nodes} {verb} {what}: {}", reasons(nodes))
        };
        let mut finding = Finding::on_cluster(&UNPROVED_NODES, &member.entry.name, message)
            .with_alike(format!("nodes are {what}"), None)
            .with_cause(contradicted(member, |it| matches!(it, Contradicted::Granularity(_))));
        let causes = self.causes().unwrap_or_default();
        let first = causes.first().filter(|first| causes.iter().all(|it| it.rule == first.rule));
        if finding.cause.is_none() {
            finding.cause = first.map(|it| FindingCause::of(it.rule, &member.entry.name));
        }
        for it in nodes {
            finding = finding.at(member.node_at(it.id).1.key("name"), "");
        }
        if limits.are_exceeded(100 * self.left_out(), *of) {
            finding = finding.of_nodes();
        }
        let has_one_remedy = |first: &&Finding| causes.iter().all(|it| it.help == first.help);
        finding.help = match first.filter(has_one_remedy) {
            Some(it) => it.help.clone(),
            None => Some(self.advice()),
        };
        finding
    }

    /// Returns the findings of `validate` about the nodes, if each has one.
    fn causes(&self) -> Option<Vec<Finding>> {
        let findings = self.nodes.iter().map(|it| match &it.why {
            Unproved::Excluded(_) => {
                let mut excluded = self.member.membership.excluded.iter();
                let node = excluded.find(|excluded| excluded.node == it.node.name)?;
                Some(membership::excluded(self.member, node))
            }
            Unproved::Withheld(withheld) => Some(plan::finding(withheld)),
            _ => None,
        });
        findings.collect()
    }

    fn advice(&self) -> String {
        let cluster = &self.member.entry.name;
        let are_all = |is_it: fn(&Unproved) -> bool| self.nodes.iter().all(|node| is_it(&node.why));
        let snapshot = format!("then run `clustermesh snapshot {cluster}`");
        if are_all(|why| matches!(why, Unproved::UncertainLeader)) {
            format!("wait until Kilo has elected its leaders, {snapshot}")
        } else if are_all(|why| matches!(why, Unproved::UncertainLeader) || why.is_of_granularity())
        {
            format!("give all Kilo agents of `{cluster}` the same `--mesh-granularity`, {snapshot}")
        } else if are_all(|why| {
            let (Unproved::Excluded(reason) | Unproved::NotCounted(reason)) = why else {
                return false;
            };
            *reason == ExcludedReason::NotReady(Unready::Stale)
        }) {
            format!("check that Kilo runs on these nodes, {snapshot}")
        } else if self.nodes.len() == self.of {
            format!(
                "run `clustermesh validate`, which names the cause for each node of `{cluster}`"
            )
        } else {
            format!(
                "run `clustermesh validate`, which names the cause for each of these nodes, or leave them out with the \
                 `nodeSelector` of `{cluster}`"
            )
        }
    }

    /// Returns whether one of several nodes is why all of them are left out.
    pub(super) fn are_all_left_out_for_one(&self) -> bool {
        let mut nodes = self.nodes.iter();
        let ends_by_itself =
            |it: &Unproved| matches!(it, Unproved::UncertainLeader) || it.is_of_granularity();
        1 < self.of
            && self.nodes.len() == self.of
            && !nodes.any(|it| ends_by_itself(&it.why))
            && self.left_out() <= 1
    }

    /// Returns the number of nodes that are left out for what they report themselves. An election of a leader and the
    /// roll-out of a granularity end by themselves; several leaders in one location, because the mesh has the wrong label,
    /// do not.
    fn left_out(&self) -> usize {
        let mut contradictions = self.member.membership.contradictions.iter();
        let is_label_wrong =
            contradictions.any(|it| it.what == Contradicted::TopologyLabel && 1 < it.against);
        let topology = &self.member.cluster.topology;
        let leads = |id: NodeId| {
            let segment = topology.nodes[id].segment;
            segment.is_some_and(|it| topology.segments[it].leader.node() == id)
        };
        let left_out = self.nodes.iter().filter_map(|it| match &it.why {
            Unproved::Excluded(reason) | Unproved::NotCounted(reason) => {
                Some((&*it.node.name, Some(reason)))
            }
            Unproved::Withheld(_) => leads(it.id).then_some((&*it.node.name, None)),
            Unproved::UncertainLeader => is_label_wrong.then_some((&*it.node.name, None)),
            Unproved::OtherGranularity | Unproved::DeclaredGranularity => None,
        });
        causing_nodes(self.member.cluster.granularity, left_out)
    }
}

/// Names the nodes with the reasons: those with the same reason together.
fn reasons(nodes: &[UnprovedNode]) -> String {
    let mut by_reason: BTreeMap<String, Vec<String>> = BTreeMap::new();
    for node in nodes {
        by_reason.entry(node.reason()).or_default().push(bare(&node.node.name));
    }
    let shown = by_reason.iter().take(NAMED);
    let groups: Vec<String> =
        shown.map(|(reason, names)| format!("{} ({reason})", first(SHOWN, names))).collect();
    let more = by_reason.values().skip(NAMED).map(Vec::len).sum();
    groups.join(", ") + &and_more(more, "node")
}

fn of_member<'f>(
    member: &'f Member<'f>,
    withheld: Option<&WithheldPeers<'f>>,
) -> Option<UnprovedNodes<'f>> {
    let membership = &member.membership;
    let excluded: BTreeMap<&str, &ExcludedReason> =
        membership.excluded.iter().map(|it| (it.node.as_str(), &it.reason)).collect();
    let mut ungiven: BTreeMap<NodeId, &Withheld> = BTreeMap::new();
    for candidate in &membership.candidates {
        if let Some(reason) = withheld.and_then(|it| it.reason(member, candidate)) {
            ungiven.extend(candidate.members.iter().map(|node| (*node, reason)));
        }
    }
    let is_selected = |it: &ClusterNode| member.entry.selector.matches(&it.node.labels);
    let cluster = &member.cluster;
    let why = |id: NodeId, node: &ClusterNode| {
        let excluded = excluded.get(node.node.name.as_str()).copied().cloned();
        excluded
            .map(Unproved::Excluded)
            .or_else(|| not_counted(member, id, node))
            .or_else(|| divides_otherwise(member, node))
            .or_else(|| is_uncertainly_led(member, id).then_some(Unproved::UncertainLeader))
            .or_else(|| ungiven.get(&id).copied().map(Unproved::Withheld))
    };
    let nodes: Vec<UnprovedNode> = cluster
        .nodes
        .numbered()
        .filter(|(_, it)| is_selected(it))
        .filter_map(|(id, node)| Some(UnprovedNode { id, node: node.node, why: why(id, node)? }))
        .collect();
    (!nodes.is_empty()).then(|| UnprovedNodes {
        member,
        nodes,
        of: cluster.nodes.iter().filter(|it| is_selected(it)).count(),
    })
}

/// Returns whether the agent of a node forms other segments than the agents that the proof follows. A node that reports no
/// granularity does not deny any.
fn divides_otherwise<'f>(member: &Member, node: &ClusterNode) -> Option<Unproved<'f>> {
    let cluster = &member.cluster;
    let reported = node.kilo.granularity.filter(|it| *it != cluster.topology.granularity)?;
    Some(if reported == cluster.granularity {
        Unproved::DeclaredGranularity
    } else {
        Unproved::OtherGranularity
    })
}

/// Returns why Kilo does not count a node that is not left out, if it does not.
fn not_counted<'f>(member: &Member, id: NodeId, node: &ClusterNode) -> Option<Unproved<'f>> {
    let is_counted = member.cluster.topology.nodes[id].segment.is_some();
    let why = || Unproved::NotCounted(node_checks::unready(&node.checked, &node.kilo));
    (!is_counted).then(why)
}

/// Returns whether it is uncertain who leads the segment of a node.
fn is_uncertainly_led(member: &Member, id: NodeId) -> bool {
    let topology = &member.cluster.topology;
    let segment = topology.nodes[id].segment.map(|it| &topology.segments[it]);
    segment.is_some_and(|it| matches!(it.leader, Leader::Ambiguous(_)))
}

/// The Peers that targets get, and why they do not get others.
struct WithheldPeers<'f> {
    given: BTreeSet<(&'f ClusterName, &'f PublicKey)>,
    /// By source.
    reasons: BTreeMap<&'f ClusterName, Vec<&'f Withheld>>,
}

impl<'f> WithheldPeers<'f> {
    fn new(plan: &'f Plan) -> Self {
        let given = plan.peer_sets.iter().flat_map(|set| {
            let peers = set.peers.iter();
            peers.map(|peer| (&set.source, &peer.key))
        });
        let mut reasons: BTreeMap<&ClusterName, Vec<&Withheld>> = BTreeMap::new();
        for withheld in &plan.withheld {
            reasons.entry(&withheld.source).or_default().push(withheld);
        }
        Self { given: given.collect(), reasons }
    }

    /// Returns why no target gets a candidate; none if one does, or if that is not for claims of nodes.
    fn reason(&self, member: &Member, candidate: &PeerCandidate) -> Option<&'f Withheld> {
        let source = &member.entry.name;
        if self.given.contains(&(source, &candidate.key)) {
            return None;
        }
        let mut reasons = self.reasons.get(source)?.iter().copied();
        reasons.find(|it| match &*it.reason {
            TargetReason::OwnKey { node, .. } | TargetReason::SharedKey { node, .. } => {
                *node == candidate.leader
            }
            TargetReason::LoopingPeer(peer) => peer.node == candidate.leader,
            TargetReason::NoInitiator { .. } => candidate.endpoint.is_none(),
            _ => false,
        })
    }
}
