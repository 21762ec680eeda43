//! Targets: what becomes of the Peers of each cluster.

use std::collections::{BTreeMap, BTreeSet};

use rayon::prelude::*;

use super::cause::{Cause, PeerCounts};
use super::clusters::Counterparts;
use super::grade::{Grade, Reason};
use super::peer_change::{PeerChange, PeerChangeKind};
use super::{Delivery, Version};
use crate::agent::comparison::compare;
use crate::agent::fabric::{Site, SiteId};
use crate::agent::peers::{ClusterPeer, Peers};
use crate::name::ClusterName;

/// The differences of a target.
#[derive(Clone, Debug)]
pub struct TargetChange {
    /// The cluster; if it left, by its old name.
    pub cluster: ClusterName,
    /// Its old name, if that was another one.
    pub renamed_from: Option<ClusterName>,
    /// How many Peers it had.
    pub peers_before: usize,
    /// How many Peers it has.
    pub peers_after: usize,
    /// Its Peers that change, by name.
    pub peers: Vec<PeerChange>,
    /// Why it is not graded better, the worst first.
    pub reasons: Vec<Reason>,
}

impl TargetChange {
    /// Returns the grade: that of the worst reason.
    pub fn grade(&self) -> Grade {
        let grades = self.reasons.iter().map(Reason::grade);
        grades.max().unwrap_or(Grade::None)
    }

    /// Returns how many Peers change.
    pub fn counts(&self) -> PeerCounts {
        let mut counts = PeerCounts::default();
        for change in &self.peers {
            counts.count(change);
        }
        counts
    }
}

/// Compares all targets.
pub(super) fn changes(
    (before, after): (&Version, &Version),
    counterparts: &Counterparts,
    _delivery: &Delivery,
) -> Vec<TargetChange> {
    let new = after.fabric.sites.ids();
    let pairs = new.map(|it| (counterparts.before(it), Some(it)));
    let left = counterparts.left().map(|it| (Some(it), None));
    let pairs: Vec<_> = pairs.chain(left).collect();
    let changed = pairs
        .into_par_iter()
        .filter_map(|sites| change((before, after), sites));
    let mut changed: Vec<TargetChange> = changed.collect();
    changed.sort_by(|a, b| a.cluster.cmp(&b.cluster));
    changed
}

fn change(
    (before, after): (&Version, &Version),
    (old, new): (Option<SiteId>, Option<SiteId>),
) -> Option<TargetChange> {
    let (old, new) = (
        old.map(|it| before.fabric.site(it)),
        new.map(|it| after.fabric.site(it)),
    );
    let none = Peers::default();
    let peers = |site: Option<&'_ Site>| site.map_or(0, |it| it.model.peers.len());
    let pairs = {
        let had = old.map_or(&none, |it| &it.model.peers);
        let has = new.map_or(&none, |it| &it.model.peers);
        compare(had, has)
    };
    let fabrics = (before.fabric, after.fabric);
    let mut changes: Vec<PeerChange> = pairs
        .iter()
        .filter_map(|pair| PeerChange::find(pair, fabrics))
        .collect();
    if changes.is_empty() {
        return None;
    }
    find_renamed(&mut changes, (old, new));
    let site = new.or(old)?;
    let mut target = TargetChange {
        cluster: site.cluster.clone(),
        renamed_from: old
            .filter(|it| it.cluster != site.cluster)
            .map(|it| it.cluster.clone()),
        peers_before: peers(old),
        peers_after: peers(new),
        peers: changes,
        reasons: Vec::new(),
    };
    target.reasons = reasons(&target);
    Some(target)
}

/// Finds Peers that only have another name: one goes and one comes with the same key.
fn find_renamed(changes: &mut [PeerChange], (old, new): (Option<&Site>, Option<&Site>)) {
    let keys = |site: Option<&Site>, is_meant: &dyn Fn(&PeerChangeKind) -> bool| {
        let meant: BTreeSet<&str> = changes
            .iter()
            .filter(|it| is_meant(&it.kind))
            .map(|it| it.name.as_str())
            .collect();
        let peers = site.map(|it| it.model.peers.iter()).into_iter().flatten();
        let meant = peers.filter(|it| meant.contains(it.applied.name.as_str()));
        let keyed = meant.filter_map(|it: &ClusterPeer| {
            let key = it.applied.spec.as_ref().ok()?.key;
            Some((key, it.applied.name.clone()))
        });
        keyed.collect::<BTreeMap<[u8; 32], String>>()
    };
    let gone = keys(old, &|it| matches!(it, PeerChangeKind::Removed { .. }));
    let come = keys(new, &|it| matches!(it, PeerChangeKind::Added { .. }));
    let mut names: BTreeMap<&str, &str> = BTreeMap::new();
    for (key, from) in &gone {
        if let Some(to) = come.get(key) {
            names.insert(from, to);
            names.insert(to, from);
        }
    }
    for change in changes {
        let other = names.get(change.name.as_str()).map(|it| (*it).to_owned());
        match &mut change.kind {
            PeerChangeKind::Added { renamed_from, .. } => *renamed_from = other,
            PeerChangeKind::Removed { renamed_to, .. } => *renamed_to = other,
            PeerChangeKind::Changed(_) => {}
        }
    }
}

/// Returns why a target is not graded better, the worst first.
fn reasons(target: &TargetChange) -> Vec<Reason> {
    if target.peers_after == 0 {
        return vec![Reason::Emptied];
    }
    let counts = target.counts();
    let disturbed = counts.changed + counts.removed;
    vec![Reason::Unproven {
        peers: disturbed.max(counts.added),
    }]
}

/// Finds the ranges of clusters as a whole that another node carries.
pub(super) fn anchor_causes(_targets: &[TargetChange]) -> Vec<Cause> {
    Vec::new()
}
