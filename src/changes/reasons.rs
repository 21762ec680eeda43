//! Reasons: why a target is not graded better.

use std::collections::BTreeSet;

use super::cluster_transition::{ClusterTransition, ClusterTransitions};
use super::forgotten_sessions::rewrites;
use super::grade::{Grade, PathReason, PeerReason, Reason};
use super::path_change::{EndedPaths, PathChange, PathCounts};
use super::paths::PathProof;
use super::peer_change::{ChangedPeer, Difference, PeerChange};
use super::rollout_states::KeyMove;
use super::rollout_tables::RolloutTables;
use super::target::TargetChange;
use crate::agent::comparison::Pair;
use crate::agent::fabric::{Fabric, Holding, SiteId, SitePair};
use crate::agent::unapplied::Unapplied;
use crate::name::ClusterName;

/// The time for which requests get no answer when a node has forgotten its sessions, in seconds: WireGuard's own
/// timeouts on the other side (`kilo.md` §2.10).
pub const SILENCE_SECONDS: f64 = 15.0;

/// The longest interruption of a brief change.
pub const BRIEF_SECONDS: f64 = 30.0;

impl TargetChange {
    /// Finds the reasons, the worst first, given the paths from and to it.
    pub(super) fn judge(
        &mut self,
        transition: Option<&ClusterTransition>,
        paths: &[&PathChange],
        is_unproven: bool,
    ) {
        let mut reasons = Vec::new();
        let is_emptied =
            self.peers_after == 0 && 0 < self.peers_before && !self.cluster.is_external();
        if is_emptied {
            reasons.push(Reason::Emptied);
        } else {
            reasons.extend(self.sources_gone.iter().cloned().map(Reason::SourceGone));
        }
        let of_paths = of_paths(&self.cluster, paths);
        reasons.extend(of_paths.into_iter().filter(|it| match it {
            // All of it is lost because all Peers are.
            Reason::AllPathsLost(cluster) => !is_emptied && !self.sources_gone.contains(cluster),
            _ => true,
        }));
        if let Some(transition) = transition {
            reasons.extend(of_rollout(&transition.rollout));
            reasons.extend(unapplied(transition, &self.peers));
        }
        reasons.extend(
            (!self.pausing.is_empty()).then_some(Reason::Pause { nodes: self.pausing.len() }),
        );
        reasons.extend(self.forgotten.iter().cloned().map(Reason::AddressesForgotten));
        reasons.extend(is_unproven.then_some(Reason::UnprovenPaths));
        reasons.extend(self.of_peers());
        // A target without Peers has lost these with them.
        reasons.retain(|it| {
            !is_emptied || !matches!(it, Reason::Peers(PeerReason::RangesUnproved, _))
        });
        if let Some(load) = &self.load {
            reasons.extend(load.passed().map(Reason::LimitPassed));
            let silence = if self.disturbs_peers() { SILENCE_SECONDS } else { 0.0 };
            let is_brief = reasons.iter().any(|it| Grade::Cleanup < it.grade());
            if is_brief && BRIEF_SECONDS < load.seconds + silence {
                reasons.push(Reason::Busy(load.seconds));
            }
        }
        if reasons.is_empty() {
            reasons.push(Reason::Added);
        }
        let assumed = sum(paths, |it| it.assumed);
        reasons
            .extend((!assumed.is_empty()).then_some(Reason::Paths(PathReason::Assumed, assumed)));
        reasons.sort_by_key(|it| std::cmp::Reverse(it.grade()));
        self.reasons = reasons;
    }

    /// Adds clusters with which it has no path any more.
    pub(super) fn add_cut_off<'c>(&mut self, others: impl Iterator<Item = &'c ClusterName>) {
        for other in others {
            let reason = Reason::AllPathsLost(other.clone());
            if !self.reasons.contains(&reason) {
                self.reasons.insert(0, reason);
            }
        }
        self.reasons.sort_by_key(|it| std::cmp::Reverse(it.grade()));
    }

    /// Returns whether a Peer that was there changes or goes.
    fn disturbs_peers(&self) -> bool {
        let counts = self.counts();
        0 < counts.changed + counts.removed
    }

    /// Finds the reasons in the Peers themselves.
    fn of_peers(&self) -> Vec<Reason> {
        let count = |is_meant: &dyn Fn(&ChangedPeer) -> bool| {
            self.peers.iter().map(|it| &*it.peer).filter(|it| is_meant(it)).count()
        };
        let with = |is_meant: fn(&Difference) -> bool| {
            count(&|peer| peer.differences().iter().any(is_meant))
        };
        let left = self.carriers.iter().filter(|it| it.leaves_network).count();
        let counted = [
            (count(&ChangedPeer::is_removed_stranger), PeerReason::StrangersRemoved),
            (self.lost_ranges, PeerReason::RangesLost),
            (self.unproved_ranges, PeerReason::RangesUnproved),
            (with(|it| *it == Difference::Key), PeerReason::KeysChanged),
            (with(|it| matches!(it, Difference::Endpoint { .. })), PeerReason::EndpointsChanged),
            (left, PeerReason::NetworksLeft),
            (self.carriers.len() - left, PeerReason::CarriersMoved),
            (count(&has_others), PeerReason::OthersChanged),
            (with(is_toggled), PeerReason::RoamingChanged),
            (count(&|it| it.holder.is_some() && it.replaces_ranges()), PeerReason::RangesReplaced),
            (
                count(&|it| it.holder.is_some() && it.loses_ranges() && !it.replaces_ranges()),
                PeerReason::RangesRemoved,
            ),
            (self.counts().removed, PeerReason::Removed),
            (
                count(&|peer| !rewrites(peer) && !peer.differences().iter().any(is_toggled)),
                PeerReason::KeepalivesChanged,
            ),
        ];
        let counted = counted.into_iter().filter(|it| 0 < it.0);
        counted.map(|(number, reason)| Reason::Peers(reason, number)).collect()
    }
}

/// Returns whether a Peer that stays differs in a way for which there is no other reason.
fn has_others(peer: &ChangedPeer) -> bool {
    peer.differences().iter().any(|it| match it {
        Difference::PresharedKey | Difference::Spelling | Difference::Validity => true,
        // No proof shows what is behind a Peer that no node is.
        Difference::RangesLost(_) => peer.holder.is_none(),
        Difference::Key
        | Difference::Endpoint { .. }
        | Difference::Keepalive { .. }
        | Difference::RangesGained(_) => false,
    })
}

/// Returns whether a Peer gets a keepalive, or loses it.
fn is_toggled(difference: &Difference) -> bool {
    let Difference::Keepalive { from, to } = *difference else {
        return false;
    };
    (from == 0) != (to == 0)
}

/// Finds the reasons in the paths from and to a cluster.
fn of_paths(cluster: &ClusterName, paths: &[&PathChange]) -> Vec<Reason> {
    let sum = |of: fn(&PathChange) -> PathCounts| sum(paths, of);
    let mut ended = EndedPaths::default();
    for path in paths {
        ended.add(&path.ended);
    }
    let are_lost = |it: &PathChange| !it.lost.is_empty() || !it.ended.paths.is_empty();
    let all_lost = paths.iter().filter(|it| are_lost(it) && !it.holds_any);
    let others = all_lost.map(|it| if it.from == *cluster { &it.to } else { &it.from });
    let others: BTreeSet<&ClusterName> = others.collect();
    let mut reasons: Vec<Reason> = others.into_iter().cloned().map(Reason::AllPathsLost).collect();
    let counted = [
        (sum(|it| it.lost), PathReason::Lost),
        (sum(|it| it.no_longer_proved), PathReason::NoLongerProved),
        (sum(|it| it.apart), PathReason::Apart),
        (sum(|it| it.stuck), PathReason::Stuck),
        (sum(|it| it.paused), PathReason::Paused),
        (sum(|it| it.repaired), PathReason::Repaired),
    ];
    let counted = counted.into_iter().filter(|it| !it.0.is_empty());
    reasons.extend(counted.map(|(counts, reason)| Reason::Paths(reason, counts)));
    if !ended.paths.is_empty() {
        reasons.push(Reason::PathsEnded(ended));
    }
    reasons
}

/// Adds up a number of paths.
fn sum(paths: &[&PathChange], of: fn(&PathChange) -> PathCounts) -> PathCounts {
    let mut sum = PathCounts::default();
    for path in paths {
        sum.add(of(path));
    }
    sum
}

/// Finds the reasons in the orders in which Peers can arrive.
fn of_rollout(tables: &RolloutTables) -> Vec<Reason> {
    let lost = tables.key_moves.iter().flat_map(|it: &KeyMove| &it.lost);
    let lost: BTreeSet<&String> = lost.collect();
    let names = |names: BTreeSet<&String>| names.into_iter().cloned().collect::<Vec<String>>();
    let mut reasons = Vec::new();
    if !lost.is_empty() {
        reasons.push(Reason::KeysLost(names(lost)));
    }
    if !tables.unproven.is_empty() {
        reasons.push(Reason::Unproven(names(tables.unproven.iter().collect())));
    }
    reasons
}

/// Finds changes that Kilo's comparison of configurations never sees, in either version.
fn unapplied(transition: &ClusterTransition, changes: &[PeerChange]) -> Option<Reason> {
    let is_altered = |name: &String| {
        // They are in the order of names.
        let start = changes.partition_point(|it| it.peer.name < *name);
        let named = changes.iter().skip(start).take_while(|it| it.peer.name == *name);
        let mut differences = named.flat_map(|it| it.peer.differences());
        differences.any(|it| !matches!(it, Difference::Keepalive { .. }))
    };
    let (mut peers, mut because_of) = (BTreeSet::new(), BTreeSet::new());
    for site in [&transition.peers.now, &transition.peers.after] {
        let Some(found) = site.model.unapplied() else {
            continue;
        };
        let Unapplied { because_of: hiding, peers: hidden, .. } = found;
        let name = |peer| site.model.peers[peer].applied.name.clone();
        let hidden = hidden.into_iter().map(name);
        let hidden: Vec<String> = hidden.filter(is_altered).collect();
        if !hidden.is_empty() {
            peers.extend(hidden);
            because_of.extend(hiding.into_iter().map(name));
        }
    }
    (!peers.is_empty()).then(|| Reason::Unapplied {
        peers: peers.into_iter().collect(),
        because_of: because_of.into_iter().collect(),
    })
}

/// Returns the clusters with which one has no path any more, each pair in both directions: their nodes have new keys, and
/// no path works with these. Without the snapshots of the old version, the paths with the old keys count as working.
pub(super) fn cut_off(
    transitions: &ClusterTransitions,
    after: &Fabric,
    proof: &PathProof,
) -> BTreeSet<(SiteId, SiteId)> {
    let mut cut: BTreeSet<(SiteId, SiteId)> = BTreeSet::new();
    for (target, transition) in transitions.0.numbered() {
        for pair in &transition.peers.pairs {
            let Pair::Changed { before, after: is } = *pair else {
                continue;
            };
            let old = &transition.peers.now.model.peers[before].applied.spec;
            let is_unknown = |it: &[u8; 32]| after.holders(it).is_empty();
            let had_other_key = old.as_ref().is_ok_and(|it| is_unknown(&it.key));
            if let (true, Holding::One(at)) = (had_other_key, after.holding(target, is)) {
                cut.extend([(target, at.site), (at.site, target)]);
            }
        }
    }
    for proved in proof.proved.iter().filter(|it| !it.new.is_empty()) {
        let SitePair { from, to } = proved.pair;
        cut.remove(&(from, to));
        cut.remove(&(to, from));
    }
    cut
}
