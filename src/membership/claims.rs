//! Claims: which node of a cluster keeps what two of them claim.

use std::collections::{BTreeMap, BTreeSet};
use std::net::IpAddr;

use super::survey::{CandidateDraft, NodeSurvey};
use super::{ExcludedReason, PeerCandidate, PodOverlap, WithheldReason};
use crate::kilo::cluster::ClusterNode;
use crate::kilo::id::NodeId;
use crate::kilo::node_checks;
use crate::kilo::seen::SeenAddress;
use crate::mesh::{Entry, Networks};
use crate::name::{MeshName, PeerName};
use crate::net::{Cidr, family};

/// A pod CIDR that a node claims.
#[derive(Clone, Copy)]
struct PodClaim {
    cidr: Cidr,
    node: NodeId,
    /// Its segment, by leader.
    segment: NodeId,
    /// Whether it is the node's first pod CIDR, without which the node cannot take part.
    first: bool,
}

/// Leaves out all but the first candidate whose Peer has a name: a long one is cut and hashed, and
/// another node may be called what comes of that.
pub(super) fn settle_names<'s>(
    drafts: Vec<CandidateDraft<'s>>,
    mesh: &MeshName,
    survey: &mut NodeSurvey,
) -> Vec<CandidateDraft<'s>> {
    let cluster = &survey.entry.name;
    let name = |draft: &CandidateDraft| PeerName::new(mesh, cluster, &draft.name);
    settle(drafts, survey, name, ExcludedReason::DuplicateName)
}

/// Leaves out all but the first candidate with a key.
pub(super) fn settle_keys<'s>(
    drafts: Vec<CandidateDraft<'s>>,
    survey: &mut NodeSurvey,
) -> Vec<CandidateDraft<'s>> {
    settle(drafts, survey, |draft| draft.key, ExcludedReason::DuplicateKey)
}

/// Leaves out all but the first candidate, by name, of those that share an identity.
fn settle<'s, Identity: Ord>(
    mut drafts: Vec<CandidateDraft<'s>>,
    survey: &mut NodeSurvey,
    identity: impl Fn(&CandidateDraft) -> Identity,
    reason: fn(String) -> ExcludedReason,
) -> Vec<CandidateDraft<'s>> {
    let mut owners: BTreeMap<Identity, NodeId> = BTreeMap::new();
    drafts.sort_by_key(|draft| draft.leader);
    drafts
        .into_iter()
        .filter(|draft| {
            let owner = *owners.entry(identity(draft)).or_insert(draft.leader);
            if owner != draft.leader {
                let owner = survey.name(owner).to_owned();
                survey.exclude_segment(draft.segment, reason(owner));
            }
            survey.speaks(draft)
        })
        .collect()
}

/// Of pod CIDRs that share addresses, lets the narrower keep them, then the earlier node.
///
/// One that loses its first pod CIDR is left out; a leader takes its segment along.
pub(super) fn settle_pod_cidrs<'s>(
    mut drafts: Vec<CandidateDraft<'s>>,
    survey: &mut NodeSurvey,
) -> Vec<CandidateDraft<'s>> {
    let claims: Vec<PodClaim> = drafts.iter().flat_map(pod_claims).collect();
    let losses = losses(claims);
    for draft in &mut drafts {
        for (node, pods) in &mut draft.members {
            let node = *node;
            pods.retain(|cidr| {
                let Some((claim, winner)) = losses.get(&(node, *cidr)) else {
                    return true;
                };
                survey.lose_pod_cidr(*claim, *winner);
                false
            });
        }
        if draft.leads_itself()
            && let Some(reason) = survey.excluded.get(&draft.leader).cloned()
        {
            survey.exclude_segment(draft.segment, reason);
        }
        let excluded = &survey.excluded;
        draft.members.retain(|(node, _)| !excluded.contains_key(node));
    }
    drafts.retain(|draft| survey.speaks(draft));
    drafts
}

/// Finds pod CIDRs of excluded nodes that share addresses with those of candidates. Kilo routes them as
/// long as it counts their nodes, so packets may end at either node. An excluded node takes nothing from
/// another one.
pub(super) fn overlaps_of_excluded(
    drafts: &[CandidateDraft],
    survey: &NodeSurvey,
) -> Vec<PodOverlap> {
    let given: BTreeSet<NodeId> =
        drafts.iter().flat_map(|draft| draft.members.iter().map(|it| it.0)).collect();
    let claims = drafts.iter().flat_map(pod_claims);
    losses(claims.chain(survey.excluded_pod_claims(&given)).collect())
        .into_values()
        .filter(|(loser, winner)| given.contains(&loser.node) != given.contains(&winner.node))
        .map(|(loser, winner)| {
            let is_given = given.contains(&loser.node);
            let excluded = if is_given { winner.node } else { loser.node };
            survey.overlap([loser, winner], Some(excluded))
        })
        .collect()
}

/// Finds pod CIDRs of nodes of one location that share addresses. All lead to the same Peer, whose leader sends
/// packets to one of the nodes.
pub(super) fn overlaps_in_locations(survey: &NodeSurvey) -> Vec<PodOverlap> {
    let lost = survey.cluster.segments.formed.iter().filter(|it| 1 < it.members.len()).flat_map(
        |segment| {
            let claims = segment.members.iter().filter_map(|&node| {
                let cidr = survey.nodes[node].kilo.pod_cidr?;
                Some(PodClaim { cidr, node, segment: node, first: true })
            });
            losses(claims.collect()).into_values()
        },
    );
    lost.map(|(loser, winner)| survey.overlap([loser, winner], None)).collect()
}

/// Makes the candidates: settles who keeps which host route, and lists what is left of each.
pub(super) fn candidates(
    drafts: Vec<CandidateDraft>,
    survey: &mut NodeSurvey,
) -> Vec<PeerCandidate> {
    let pod_owners = PodOwners::new(&drafts);
    let owners = host_owners(&drafts, survey);
    drafts
        .into_iter()
        .enumerate()
        .map(|(position, draft)| {
            let mut known = BTreeSet::new();
            let pods = draft.members.iter().flat_map(|it| &it.1).copied();
            let pods: Vec<Cidr> = pods.filter(|cidr| known.insert(*cidr)).collect();
            let mut hosts = Vec::new();
            for (node, address) in draft.host_routes(survey) {
                let route = Cidr::host(address);
                let owner = owners.get(&address).copied().unwrap_or(node);
                if let Some(reason) = survey.objection(&pod_owners, node, owner, address, position)
                {
                    survey.withhold(node, route.to_string(), reason);
                } else if known.insert(route) {
                    hosts.push(route);
                }
            }
            draft.lose_second_addresses(survey);
            let leader = &survey.nodes[draft.leader];
            PeerCandidate {
                place: survey.place(leader.node),
                unready: node_checks::not_counted(&leader.kilo),
                nodes: draft.members.len(),
                members: draft.members.iter().map(|it| it.0).collect(),
                leader: draft.name,
                key: draft.key,
                endpoint: draft.endpoint,
                origin: draft.origin,
                seen: SeenAddress::of(&survey.nodes[draft.leader].kilo),
                pods,
                hosts,
            }
        })
        .collect()
}

fn pod_claims<'a>(draft: &'a CandidateDraft) -> impl Iterator<Item = PodClaim> + 'a {
    draft.members.iter().flat_map(|(node, pods)| {
        pods.iter().enumerate().map(|(position, &cidr)| PodClaim {
            cidr,
            node: *node,
            segment: draft.leader,
            first: position == 0,
        })
    })
}

/// Returns the claims that lose to one of another segment, each with that. Within a segment all
/// lead to the same Peer, so that nothing can be lost.
///
/// Sorted by address, a range is followed by those inside it, so only the next claim of another
/// segment must be checked: the cost does not grow with the number of conflicts.
fn losses(mut claims: Vec<PodClaim>) -> BTreeMap<(NodeId, Cidr), (PodClaim, PodClaim)> {
    claims.sort_by_key(|claim| (claim.cidr.first(), claim.cidr.prefix_length(), claim.node));
    let mut losses = BTreeMap::new();
    for equal in claims.chunk_by(|a, b| a.cidr == b.cidr) {
        let Some((winner, others)) = equal.split_first() else {
            continue;
        };
        let losers = others.iter().filter(|it| it.segment != winner.segment);
        losses.extend(losers.map(|it| ((it.node, it.cidr), (*it, *winner))));
    }
    let mut next: Option<PodClaim> = None;
    let mut stranger: Option<PodClaim> = None;
    let mut winners = claims.clone();
    winners.dedup_by_key(|claim| claim.cidr);
    for claim in winners.iter().rev() {
        if next.is_some_and(|next| next.segment != claim.segment) {
            stranger = next;
        }
        let narrower = stranger.filter(|it| claim.cidr.contains(it.cidr));
        losses.extend(narrower.map(|it| ((claim.node, claim.cidr), (*claim, it))));
        next = Some(*claim);
    }
    losses
}

/// Returns which node keeps each host route: the first that claims it.
fn host_owners(drafts: &[CandidateDraft], survey: &NodeSurvey) -> BTreeMap<IpAddr, NodeId> {
    let mut owners: BTreeMap<IpAddr, NodeId> = BTreeMap::new();
    for draft in drafts {
        for (node, address) in draft.host_routes(survey) {
            let owner = owners.entry(address).or_insert(node);
            *owner = node.min(*owner);
        }
    }
    owners
}

/// The owner of each pod CIDR. At this point, the pod CIDRs of two segments are disjoint.
struct PodOwners {
    by_first: BTreeMap<IpAddr, (Cidr, usize, NodeId)>,
}

impl PodOwners {
    fn new(drafts: &[CandidateDraft]) -> Self {
        let mut claims: Vec<(Cidr, usize, NodeId)> = drafts
            .iter()
            .enumerate()
            .flat_map(|(position, draft)| {
                pod_claims(draft).map(move |claim| (claim.cidr, position, claim.node))
            })
            .collect();
        claims.sort_by_key(|(cidr, ..)| (cidr.first(), cidr.prefix_length()));
        // A range inside another one now belongs to the same segment, so the wider one is
        // sufficient.
        claims.dedup_by(|later, earlier| earlier.0.contains(later.0));
        Self { by_first: claims.into_iter().map(|it| (it.0.first(), it)).collect() }
    }

    /// Returns the pod CIDR of another segment that holds `address`, and its node.
    fn stranger(&self, address: IpAddr, position: usize) -> Option<(Cidr, NodeId)> {
        let (_, &(cidr, owner, node)) = self.by_first.range(..=address).next_back()?;
        (owner != position && cidr.holds(address)).then_some((cidr, node))
    }
}

impl CandidateDraft<'_> {
    /// Returns the host routes it claims, as far as its cluster advertises them: its WireGuard address, then
    /// those internal addresses of its members that a declared range holds.
    fn host_routes(&self, survey: &NodeSurvey) -> Vec<(NodeId, IpAddr)> {
        let mut routes: Vec<(NodeId, IpAddr)> =
            self.wireguard.map(|it| (self.leader, it)).into_iter().collect();
        for &(node, _) in self.addressed(survey) {
            let ClusterNode { node: read, kilo, .. } = &survey.nodes[node];
            for address in node_checks::internal_addresses(read, kilo) {
                if is_declared(survey.entry, address) {
                    routes.push((node, address));
                }
            }
        }
        routes
    }

    /// Returns the members whose internal addresses are given: all or none.
    fn addressed(&self, survey: &NodeSurvey) -> &[(NodeId, Vec<Cidr>)] {
        let is_given = survey.entry.advertise.node_addresses;
        if is_given { &self.members } else { &[] }
    }

    /// Reports internal addresses that are declared, but the second of their family.
    fn lose_second_addresses(&self, survey: &mut NodeSurvey) {
        for &(node, _) in self.addressed(survey) {
            let ClusterNode { node: read, kilo, .. } = &survey.nodes[node];
            let used = node_checks::internal_addresses(read, kilo);
            for address in node_checks::second_addresses(read, kilo) {
                if is_declared(survey.entry, address) {
                    let mut undeclared = used.iter().filter(|it| {
                        family(**it) == family(address) && !is_declared(survey.entry, **it)
                    });
                    let reason = match undeclared.next() {
                        Some(&by) => WithheldReason::Overridden { by },
                        None => WithheldReason::SecondAddress,
                    };
                    survey.withhold(node, Cidr::host(address).to_string(), reason);
                }
            }
        }
    }

    /// Returns whether the leader's own ranges are given too, not only those of its members.
    fn leads_itself(&self) -> bool {
        self.members.iter().any(|(node, _)| *node == self.leader)
    }
}

/// Returns whether a declared range makes room for a node's own address.
fn is_declared(entry: &Entry, address: IpAddr) -> bool {
    let declared = match &entry.networks {
        Networks::Typed { additional, .. } => additional,
        Networks::Flat { allowed } => allowed,
    };
    declared.iter().any(|range| range.cidr.holds(address))
}

impl NodeSurvey<'_> {
    /// Describes a pod CIDR that loses to another one.
    fn overlap(&self, [loser, winner]: [PodClaim; 2], excluded: Option<NodeId>) -> PodOverlap {
        PodOverlap {
            node: self.name(loser.node).to_owned(),
            cidr: loser.cidr,
            other_node: self.name(winner.node).to_owned(),
            other: winner.cidr,
            excluded: excluded.map(|it| self.name(it).to_owned()),
        }
    }

    /// Returns why a host route of a node is not its segment's to give, if so.
    fn objection(
        &self,
        pods: &PodOwners,
        node: NodeId,
        owner: NodeId,
        address: IpAddr,
        position: usize,
    ) -> Option<WithheldReason> {
        if owner != node {
            let node = self.name(owner).to_owned();
            return Some(WithheldReason::Taken { node });
        }
        let (cidr, other) = pods.stranger(address, position)?;
        let node = self.name(other).to_owned();
        Some(WithheldReason::InPodCidr { cidr, node })
    }

    /// Returns whether a segment still has a leader and a node whose ranges are given.
    fn speaks(&self, draft: &CandidateDraft) -> bool {
        !draft.members.is_empty()
            && !matches!(
                self.excluded.get(&draft.leader),
                Some(reason) if *reason != ExcludedReason::NotSelected
            )
    }

    /// Returns the first pod CIDRs, which are the ones that Kilo reads, of the nodes that Kilo counts and
    /// that are not given to others. Nodes that lost theirs to another one have a finding already.
    fn excluded_pod_claims(&self, given: &BTreeSet<NodeId>) -> impl Iterator<Item = PodClaim> {
        let counted = &self.cluster.topology.nodes;
        let is_meant = |node: &NodeId| {
            let reason = self.excluded.get(node);
            let is_settled = matches!(reason, Some(ExcludedReason::PodCidrTaken { .. }));
            counted[*node].segment.is_some() && !given.contains(node) && !is_settled
        };
        let formed = self.cluster.segments.formed.iter();
        let members = formed.flat_map(|it| it.members.iter().map(|node| (*node, it.leader)));
        members.filter(move |(node, _)| is_meant(node)).filter_map(|(node, segment)| {
            Some(PodClaim { cidr: self.nodes[node].kilo.pod_cidr?, node, segment, first: true })
        })
    }

    fn lose_pod_cidr(&mut self, claim: PodClaim, winner: PodClaim) {
        let node = self.name(winner.node).to_owned();
        if claim.first {
            self.exclude(
                claim.node,
                ExcludedReason::PodCidrTaken { cidr: claim.cidr, other: winner.cidr, node },
            );
        } else {
            let other = winner.cidr;
            let reason = WithheldReason::PodCidrTaken { other, node };
            self.withhold(claim.node, claim.cidr.to_string(), reason);
        }
    }
}
