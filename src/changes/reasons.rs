//! Reasons: why a target is not graded better.

use std::collections::BTreeSet;

use super::arriving::Arriving;
use super::grade::Reason;
use super::key_move::KeyMove;
use super::path_change::{PathChange, PathCounts};
use super::peer_change::{Difference, PeerChange};
use super::stages::Passage;
use super::target::TargetChange;
use crate::agent::fabric::Site;
use crate::agent::unapplied::Unapplied;
use crate::name::ClusterName;

/// The time for which a stream in one direction is silent when the other side has forgotten the
/// session: WireGuard's own timeouts (`kilo.md` §2.10).
pub const SILENCE_SECONDS: f64 = 15.0;

/// The longest interruption of a brief change.
pub const BRIEF_SECONDS: f64 = 30.0;

impl TargetChange {
    /// Finds the reasons, the worst first.
    pub(super) fn judge(
        &mut self,
        passage: Option<&Passage>,
        paths: &[PathChange],
        is_unproven: bool,
    ) {
        let mut reasons = Vec::new();
        let is_emptied = self.peers_after == 0 && 0 < self.peers_before;
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
        if let Some(passage) = passage {
            reasons.extend(of_arriving(&passage.arriving));
            reasons.extend(unapplied(passage, &self.peers));
            let leaders = silent_leaders(&passage.peers.after);
            reasons.extend((0 < leaders).then_some(Reason::SilentStreams(leaders)));
        }
        reasons.extend(is_unproven.then_some(Reason::UnprovenPaths));
        reasons.extend(self.of_peers());
        if let Some(load) = &self.load {
            let seconds = load.seconds + SILENCE_SECONDS;
            let disturbs = reasons.iter().any(|it| Reason::Added.grade() < it.grade());
            if disturbs && self.disturbs_peers() && BRIEF_SECONDS < seconds {
                reasons.push(Reason::Busy(load.seconds));
            }
            reasons.extend(load.passed().map(Reason::LimitPassed));
        }
        if reasons.is_empty() {
            reasons.push(Reason::Added);
        }
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
        let with = |is_meant: &dyn Fn(&Difference) -> bool| {
            let changes = self.peers.iter();
            changes
                .filter(|it| it.peer.differences().iter().any(is_meant))
                .count()
        };
        let is_other = |it: &Difference| {
            !matches!(
                it,
                Difference::Key | Difference::Endpoint { .. } | Difference::RangesGained(_)
            )
        };
        let strangers = self.peers.iter().filter(|it| it.peer.is_removed_stranger());
        let counted = [
            (
                strangers.count(),
                Reason::StrangersRemoved as fn(usize) -> Reason,
            ),
            (self.lost_ranges, Reason::RangesLost),
            (with(&|it| *it == Difference::Key), Reason::KeysChanged),
            (
                with(&|it| matches!(it, Difference::Endpoint { .. })),
                Reason::EndpointsChanged,
            ),
            (self.carriers.len(), Reason::CarriersMoved),
            (with(&is_other), Reason::OthersChanged),
            (self.counts().removed, Reason::Removed),
        ];
        let counted = counted.into_iter().filter(|it| 0 < it.0);
        counted.map(|(number, reason)| reason(number)).collect()
    }
}

/// Finds the reasons in the paths from and to a cluster.
fn of_paths(cluster: &ClusterName, paths: &[PathChange]) -> Vec<Reason> {
    let own = paths.iter();
    let own = own.filter(|it| it.from == *cluster || it.to == *cluster);
    let own: Vec<&PathChange> = own.collect();
    let sum = |of: fn(&PathChange) -> PathCounts| {
        let mut sum = PathCounts::default();
        for path in &own {
            sum.add(of(path));
        }
        sum
    };
    let all_lost = own.iter().filter(|it| !it.lost.is_empty() && !it.holds_any);
    let others = all_lost.map(|it| {
        if it.from == *cluster {
            &it.to
        } else {
            &it.from
        }
    });
    let others: BTreeSet<&ClusterName> = others.collect();
    let mut reasons: Vec<Reason> = others
        .into_iter()
        .cloned()
        .map(Reason::AllPathsLost)
        .collect();
    let counted = [
        (
            sum(|it| it.lost),
            Reason::PathsLost as fn(PathCounts) -> Reason,
        ),
        (sum(|it| it.apart), Reason::PathsApart),
        (sum(|it| it.stuck), Reason::PathsStuck),
        (sum(|it| it.paused), Reason::PathsPaused),
    ];
    let counted = counted.into_iter().filter(|it| !it.0.is_empty());
    reasons.extend(counted.map(|(counts, reason)| reason(counts)));
    reasons
}

/// Finds the reasons in the orders in which Peers can arrive.
fn of_arriving(arriving: &Arriving) -> Vec<Reason> {
    let lost = arriving.key_moves.iter().flat_map(|it: &KeyMove| &it.lost);
    let lost: BTreeSet<&String> = lost.collect();
    let names = |names: BTreeSet<&String>| names.into_iter().cloned().collect::<Vec<String>>();
    let mut reasons = Vec::new();
    if !lost.is_empty() {
        reasons.push(Reason::KeysLost(names(lost)));
    }
    if !arriving.unproven.is_empty() {
        let unproven = arriving.unproven.iter().collect();
        reasons.push(Reason::Unproven(names(unproven)));
    }
    reasons
}

/// Finds changes that Kilo's comparison of configurations never sees, in either version.
fn unapplied(passage: &Passage, changes: &[PeerChange]) -> Option<Reason> {
    let is_altered = |name: &String| {
        // They are in the order of names.
        let start = changes.partition_point(|it| it.peer.name < *name);
        let named = changes
            .iter()
            .skip(start)
            .take_while(|it| it.peer.name == *name);
        let mut differences = named.flat_map(|it| it.peer.differences());
        differences.any(|it| !matches!(it, Difference::Keepalive { .. }))
    };
    let (mut peers, mut because_of) = (BTreeSet::new(), BTreeSet::new());
    for site in [&passage.peers.now, &passage.peers.after] {
        let Some(found) = site.model.unapplied() else {
            continue;
        };
        let Unapplied {
            because_of: hiding,
            peers: hidden,
            ..
        } = found;
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

/// Returns how many leaders of a cluster send no keepalives, so that a stream in one direction waits.
fn silent_leaders(site: &Site) -> usize {
    let topology = &site.model.topology;
    let leaders = topology.segments.ids().map(|it| topology.leader(it));
    leaders.filter(|it| it.kilo.keepalive == 0).count()
}
