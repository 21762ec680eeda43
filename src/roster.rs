//! Rosters: who of one cluster speaks in one mesh, with which ranges, and who is left out.

use std::collections::{BTreeMap, BTreeSet};
use std::net::IpAddr;
use std::sync::Arc;

use crate::granularity::Granularity;
use crate::kilo::node::KiloNode;
use crate::kilo::segment::{self, Segment};
use crate::mesh::{Entry, Networks, Range};
use crate::name::NodeName;
use crate::net::{Cidr, Family};
use crate::place::Place;
use crate::snapshot::{Node, Snapshot};
use crate::wireguard::{Endpoint, PublicKey};

mod check;
mod claims;
mod reason;

pub use check::ENDPOINT_ANNOTATIONS;
pub use reason::{EndpointProblem, Origin, RangeReason, Reason, Unready};

/// One cluster in one mesh, as its snapshot bears out what the mesh says.
#[derive(Clone, Debug)]
pub struct Roster {
    /// How it is cut into segments.
    pub granularity: Granularity,
    /// One for each segment that can be given to others, in order of their leaders' names.
    pub speakers: Vec<Speaker>,
    /// Ranges of the cluster as a whole, which one speaker carries for all.
    pub shared: Vec<Cidr>,
    /// Nodes that are not given to anyone, in order of name.
    pub left_out: Vec<LeftOut>,
    /// Ranges of nodes that are, or of a segment that is.
    pub lost: Vec<LostRange>,
    /// Nodes that contradict the granularity.
    pub dissenters: Vec<Dissenter>,
    /// What more than half of the nodes contradict.
    pub contradictions: Vec<Contradiction>,
    /// What the cluster's Kilo routes, if most of its usable nodes say one thing.
    pub internal_family: Option<Family>,
    /// How many nodes pass the node checks.
    pub usable: usize,
}

/// A tunnel end, and what lies behind it.
#[derive(Clone, Debug)]
pub struct Speaker {
    /// The node that speaks.
    pub leader: NodeName,
    /// Where the snapshot has it.
    pub place: Place,
    /// Its key.
    pub key: PublicKey,
    /// Where it can be dialled; none for one behind NAT.
    pub endpoint: Option<Endpoint>,
    /// What its nodes own: pod CIDRs, the WireGuard address, internal addresses.
    pub claims: Vec<Cidr>,
}

/// A node that is not given to anyone.
#[derive(Clone, Debug)]
pub struct LeftOut {
    /// Its name, as it claims.
    pub node: String,
    /// Where the snapshot has it.
    pub place: Place,
    /// Why.
    pub reason: Reason,
    /// Whether Kilo itself has an endpoint for it, which the mesh does not ask for.
    pub kilo_has_endpoint: bool,
}

/// A range that is not given to anyone although its node is.
#[derive(Clone, Debug)]
pub struct LostRange {
    /// The node that claims it.
    pub node: String,
    /// Where the snapshot has the node.
    pub place: Place,
    /// The claim as text.
    pub range: String,
    /// Why.
    pub reason: RangeReason,
}

/// A node that says another granularity than the one used.
#[derive(Clone, Debug)]
pub struct Dissenter {
    /// Its name, as it claims.
    pub node: String,
    /// Where the snapshot has it.
    pub place: Place,
    /// What it says.
    pub says: Granularity,
}

/// A line of the mesh that more than half of the nodes contradict.
#[derive(Clone, Debug)]
pub struct Contradiction {
    /// What the line says.
    pub what: Declared,
    /// The line.
    pub place: Place,
    /// How many nodes contradict it.
    pub against: usize,
    /// Out of how many.
    pub of: usize,
}

/// What a line of the mesh says about nodes.
#[derive(Clone, Copy, Debug, Eq, Ord, PartialEq, PartialOrd)]
pub enum Declared {
    /// Where pod CIDRs lie.
    PodRanges,
    /// Where WireGuard addresses lie.
    WireguardRange,
    /// How the cluster is cut.
    Granularity(Granularity),
    /// Which nodes take part.
    NodeSelector,
}

/// A node, read twice: as the snapshot has it, and as Kilo reads it.
struct Candidate<'a> {
    node: &'a Node,
    kilo: KiloNode,
    place: Place,
}

/// A segment on its way to becoming a speaker.
struct Draft<'a> {
    leader: usize,
    /// Members whose ranges are given, in order of name, with their pod CIDRs.
    members: Vec<(usize, Vec<Cidr>)>,
    name: NodeName,
    key: PublicKey,
    endpoint: Option<Endpoint>,
    wireguard: IpAddr,
    segment: &'a Segment,
}

/// Reads `snapshot`, whose file is `source`, as `entry` wants it read.
pub fn roster(entry: &Entry, snapshot: &Snapshot, source: &Arc<str>) -> Roster {
    let candidates: Vec<Candidate> = snapshot
        .nodes
        .iter()
        .enumerate()
        .map(|(index, node)| Candidate {
            node,
            kilo: KiloNode::read(node, &entry.topology_label),
            place: Snapshot::place(source, index),
        })
        .collect();
    let voted = vote(entry, &candidates);
    let granularity = entry.granularity.or(voted).unwrap_or(Granularity::Location);
    let readings: Vec<(&str, KiloNode)> = candidates
        .iter()
        .map(|it| (it.node.name.as_str(), it.kilo.clone()))
        .collect();
    let segments = segment::segments(&readings, granularity);

    let mut survey = Survey::new(entry, &candidates);
    survey.leave_out_unready(&segments.unready);
    let drafts: Vec<Draft> = segments
        .formed
        .iter()
        .filter_map(|segment| survey.draft(segment))
        .collect();
    let drafts = claims::settle_keys(drafts, &mut survey);
    let drafts = claims::settle_pod_cidrs(drafts, &mut survey);
    let speakers = claims::speakers(drafts, &mut survey);
    survey.finish(granularity, voted, speakers)
}

/// Returns the granularity that more than half of the annotated nodes name.
///
/// Nodes that could not be peered in any granularity have no say.
fn vote(entry: &Entry, candidates: &[Candidate]) -> Option<Granularity> {
    let mut votes: BTreeMap<Granularity, usize> = BTreeMap::new();
    for candidate in candidates {
        if let Some(granularity) = candidate.kilo.granularity
            && candidate.kilo.key.is_some()
            && check::pod_cidrs(entry, candidate.node).is_ok()
        {
            *votes.entry(granularity).or_default() += 1;
        }
    }
    let all: usize = votes.values().sum();
    votes
        .into_iter()
        .find(|(_, count)| all < 2 * count)
        .map(|(granularity, _)| granularity)
}

/// What has been found out about a cluster so far.
struct Survey<'a> {
    entry: &'a Entry,
    candidates: &'a [Candidate<'a>],
    left_out: BTreeMap<usize, Reason>,
    lost: Vec<LostRange>,
    /// Nodes that pass every check that applies to them.
    usable: Vec<usize>,
}

impl<'a> Survey<'a> {
    fn new(entry: &'a Entry, candidates: &'a [Candidate<'a>]) -> Self {
        Self {
            entry,
            candidates,
            left_out: BTreeMap::new(),
            lost: Vec::new(),
            usable: Vec::new(),
        }
    }

    fn name(&self, index: usize) -> &str {
        self.candidates
            .get(index)
            .map_or("", |candidate| &candidate.node.name)
    }

    fn is_selected(&self, index: usize) -> bool {
        self.candidates
            .get(index)
            .is_some_and(|candidate| self.entry.selector.matches(&candidate.node.labels))
    }

    /// Leaves a node out, unless it was already for a better reason.
    fn leave_out(&mut self, index: usize, reason: Reason) {
        self.left_out.entry(index).or_insert(reason);
    }

    fn lose(&mut self, index: usize, range: String, reason: RangeReason) {
        if let Some(candidate) = self.candidates.get(index) {
            self.lost.push(LostRange {
                node: candidate.node.name.clone(),
                place: candidate.place.clone(),
                range,
                reason,
            });
        }
    }

    fn leave_out_unready(&mut self, unready: &[usize]) {
        for &index in unready {
            let Some(candidate) = self.candidates.get(index) else {
                continue;
            };
            let reason = if self.is_selected(index) {
                check::unready(self.entry, candidate.node, &candidate.kilo)
            } else {
                Reason::NotSelected
            };
            self.leave_out(index, reason);
        }
    }

    /// Applies the node checks to a segment; `None` if nobody of it can be given to others.
    fn draft<'s>(&mut self, segment: &'s Segment) -> Option<Draft<'s>> {
        let selected: Vec<usize> = segment
            .members
            .iter()
            .copied()
            .filter(|&index| {
                let selected = self.is_selected(index);
                if !selected {
                    self.leave_out(index, Reason::NotSelected);
                }
                selected
            })
            .collect();
        if selected.is_empty() {
            return None;
        }
        let candidate = self.candidates.get(segment.leader)?;
        let checked = match check::speaker(self.entry, candidate.node) {
            Ok(checked) => checked,
            Err(reason) => {
                self.fall(segment, reason);
                return None;
            }
        };
        let members = selected
            .into_iter()
            .filter_map(|index| Some((index, self.member(index)?)))
            .collect();
        Some(Draft {
            leader: segment.leader,
            members,
            name: checked.name,
            key: checked.key,
            endpoint: checked.endpoint,
            wireguard: checked.wireguard,
            segment,
        })
    }

    /// Returns the pod CIDRs of a selected member of a segment that speaks.
    fn member(&mut self, index: usize) -> Option<Vec<Cidr>> {
        let candidate = self.candidates.get(index)?;
        match check::pod_cidrs(self.entry, candidate.node) {
            Ok(pods) => {
                self.usable.push(index);
                for (range, reason) in pods.lost {
                    self.lose(index, range, reason);
                }
                Some(pods.used)
            }
            Err(reason) => {
                self.leave_out(index, reason);
                None
            }
        }
    }

    /// Leaves out a segment whose leader is left out for `reason`.
    fn fall(&mut self, segment: &Segment, reason: Reason) {
        let leader = self.name(segment.leader).to_owned();
        // A leader that was not selected is still needed, so its own reason is worth more.
        self.left_out.insert(segment.leader, reason);
        for &index in &segment.members {
            self.leave_out(index, Reason::LeaderLeftOut(leader.clone()));
        }
    }

    fn finish(
        mut self,
        granularity: Granularity,
        voted: Option<Granularity>,
        speakers: Vec<Speaker>,
    ) -> Roster {
        // A leader that was not selected speaks all the same.
        let leaders: BTreeSet<&str> = speakers.iter().map(|it| it.leader.as_str()).collect();
        let candidates = self.candidates;
        let speaks = |index: usize| {
            let candidate = candidates.get(index);
            candidate.is_some_and(|candidate| leaders.contains(candidate.node.name.as_str()))
        };
        self.left_out.retain(|&index, _| !speaks(index));
        let left_out = &self.left_out;
        self.usable.retain(|index| !left_out.contains_key(index));
        let contradictions = self.contradictions(voted);
        let dissenters = self.dissenters(granularity);
        let internal_family = self.internal_family();
        let shared = shared(&self.entry.networks, &speakers);
        let left_out = self.left_out.into_iter().filter_map(|(index, reason)| {
            let candidate = self.candidates.get(index)?;
            Some(LeftOut {
                node: candidate.node.name.clone(),
                place: candidate.place.clone(),
                reason,
                kilo_has_endpoint: candidate.kilo.endpoint.is_some(),
            })
        });
        Roster {
            granularity,
            shared,
            left_out: left_out.collect(),
            lost: self.lost,
            dissenters,
            contradictions,
            internal_family,
            usable: self.usable.len(),
            speakers,
        }
    }

    fn dissenters(&self, granularity: Granularity) -> Vec<Dissenter> {
        self.candidates
            .iter()
            .filter_map(|candidate| {
                let says = candidate.kilo.granularity.filter(|&it| it != granularity)?;
                Some(Dissenter {
                    node: candidate.node.name.clone(),
                    place: candidate.place.clone(),
                    says,
                })
            })
            .collect()
    }

    /// Returns the family of more than half of the usable nodes' internal addresses.
    fn internal_family(&self) -> Option<Family> {
        let families: Vec<Family> = self
            .usable
            .iter()
            .filter_map(|&index| self.candidates.get(index)?.kilo.internal_address())
            .map(crate::net::family)
            .collect();
        [Family::V4, Family::V6]
            .into_iter()
            .find(|family| families.len() < 2 * families.iter().filter(|it| *it == family).count())
    }

    fn contradictions(&self, voted: Option<Granularity>) -> Vec<Contradiction> {
        let of = (0..self.candidates.len())
            .filter(|&index| self.is_selected(index))
            .count();
        let mut found = Vec::new();
        let mut judge = |what: Declared, place: Place, against: usize, of: usize| {
            if of < 2 * against {
                found.push(Contradiction {
                    what,
                    place,
                    against,
                    of,
                });
            }
        };
        let count =
            |test: fn(&Reason) -> bool| self.left_out.values().filter(|it| test(it)).count();
        let (pods, wireguard) = match &self.entry.networks {
            Networks::Typed { .. } => ("podCIDRs", "wireguardCIDR"),
            Networks::Flat { .. } => ("allowedNetworks", "allowedNetworks"),
        };
        let entry = &self.entry.place;
        let outside = count(|it| matches!(it, Reason::PodCidrOutOfRange { .. }));
        judge(Declared::PodRanges, entry.key(pods), outside, of);
        let outside = count(|it| matches!(it, Reason::WireguardIpOutOfRange { .. }));
        judge(Declared::WireguardRange, entry.key(wireguard), outside, of);
        if let (Some(declared), Some(voted)) = (self.entry.granularity, voted)
            && declared != voted
        {
            let all: Vec<_> = self
                .candidates
                .iter()
                .filter_map(|it| it.kilo.granularity)
                .collect();
            let against = all.iter().filter(|&&it| it != declared).count();
            let place = entry.key("granularity");
            judge(Declared::Granularity(declared), place, against, all.len());
        }
        let nodes = self.candidates.len();
        if of == 0 && 0 < nodes && !self.entry.selector.is_everything() {
            judge(
                Declared::NodeSelector,
                entry.key("nodeSelector"),
                nodes,
                nodes,
            );
        }
        found
    }
}

/// Returns the ranges that belong to the cluster and not to a node.
///
/// A flat list does not say which these are: an entry counts as the nodes' if more than half of the
/// segments have an address in it. (The operator asks for any, so that one node can withdraw a
/// range: its weakness 15.)
fn shared(networks: &Networks, speakers: &[Speaker]) -> Vec<Cidr> {
    let cidrs = |ranges: &[Range]| ranges.iter().map(|range| range.cidr).collect::<Vec<_>>();
    match networks {
        Networks::Typed {
            services,
            additional,
            ..
        } => services
            .iter()
            .chain(additional)
            .map(|range| range.cidr)
            .collect(),
        Networks::Flat { allowed } => cidrs(allowed)
            .into_iter()
            .filter(|range| {
                let inside = speakers
                    .iter()
                    .filter(|speaker| speaker.claims.iter().any(|claim| range.contains(*claim)));
                2 * inside.count() <= speakers.len()
            })
            .collect(),
    }
}

#[cfg(test)]
mod tests;
