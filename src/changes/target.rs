//! Targets: what becomes of each cluster that gets Peers.

use std::collections::BTreeSet;

use rayon::prelude::*;

use super::carrier_move::{CarrierMove, is_proved, lost_ranges};
use super::cause::PeerCounts;
use super::cluster_transition::{ClusterTransition, ClusterTransitions};
use super::clusters::Counterparts;
use super::forgotten_sessions::{ForgottenAddresses, pausing};
use super::grade::{Grade, Reason};
use super::peer_change::{DescribedPeers, PeerChange, RenamedPeers};
use super::rollout_states::KeyMove;
use super::{Delivery, Version, Versions};
use crate::agent::applied::AppliedFile;
use crate::agent::comparison::Pair;
use crate::agent::fabric::{Fabric, Holding, Site, SiteId, Sites};
use crate::agent::peers::{AppliedPeers, ClusterPeer, PeerId, Peers};
use crate::capacity::{Estimate, KnownBundles, Load, PeerDelta, estimates};
use crate::config::Capacity;
use crate::config::capacity::Quantity;
use crate::diagnostic::Severity;
use crate::name::ClusterName;
use crate::net::Cidr;

/// The differences of a target.
#[derive(Clone, Debug)]
pub struct TargetChange {
    /// The cluster; if it left, by its old name.
    pub cluster: ClusterName,
    /// Its old name, if that was another one.
    pub renamed_from: Option<ClusterName>,
    /// The number of Peers before.
    pub peers_before: usize,
    /// The number of Peers now.
    pub peers_after: usize,
    /// Its Peers that change, by name.
    pub peers: Vec<PeerChange>,
    /// Sources that gave it Peers and give it none any more; those that left by their old names.
    pub sources_gone: Vec<ClusterName>,
    /// The number of ranges that a Peer loses and no other of its source has, if the old version has no
    /// snapshots.
    pub lost_ranges: usize,
    /// The number of such ranges of which no proof shows what was there, if it has snapshots.
    pub unproved_ranges: usize,
    /// The names of its nodes at which traffic pauses because they have no annotation
    /// `kilo.squat.ai/persistent-keepalive`.
    pub pausing: Vec<String>,
    /// Nodes behind NAT whose addresses may be forgotten.
    pub forgotten: Option<ForgottenAddresses>,
    /// Peers whose keys move between them.
    pub key_moves: Vec<KeyMove>,
    /// Addresses that it reaches through another node.
    pub carriers: Vec<CarrierMove>,
    /// The load of its Kilo; none if it left or if it is an external peer.
    pub load: Option<LoadChange>,
    /// The reasons for the grade, the worst first.
    pub reasons: Vec<Reason>,
}

impl TargetChange {
    /// Returns the grade: that of the worst reason.
    pub fn grade(&self) -> Grade {
        self.reasons.iter().map(Reason::grade).max().unwrap_or(Grade::None)
    }

    /// Returns the grade that it has once every node of it sends keepalives, so that nothing pauses.
    pub fn grade_without_pause(&self) -> Grade {
        let others = self.reasons.iter();
        let others = others.filter(|it| !matches!(it, Reason::Pause { .. }));
        let grade = others.map(Reason::grade).max();
        // Nodes pause only if Peers change.
        grade.unwrap_or(self.grade().min(Grade::Additive))
    }

    /// Returns whether only missing annotations keep the grade from being [`Grade::Additive`] or [`Grade::Cleanup`].
    pub fn is_pause_only(&self) -> bool {
        self.grade() == Grade::Brief && self.grade_without_pause() <= Grade::Cleanup
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

/// Facts about Peers that several targets get.
#[derive(Default)]
struct KnownPeers<'v, 'a> {
    described: DescribedPeers<'v>,
    bundles: KnownBundles<'a>,
}

/// Compares all targets, by name; they are not graded yet.
pub(super) fn changes(
    versions: Versions<&Version, &Version>,
    counterparts: &Counterparts,
    transitions: &ClusterTransitions,
    delivery: &Delivery,
) -> Vec<TargetChange> {
    let fabrics = versions.fabrics();
    let sites: Vec<SiteId> = fabrics.after.sites.ids().collect();
    let sites = sites.into_par_iter();
    let changed = sites.map_init(KnownPeers::default, |known, number| {
        let transition = &transitions.0[number];
        if !transition.has_new_peers {
            return None;
        }
        let sites = Versions::new(counterparts.before(number), Some(number));
        let differences = transition.peers.pairs.iter().copied();
        let described = &mut known.described;
        let change = TargetChange::find(sites, fabrics, differences, counterparts, described)?;
        let lost = lost_ranges(&change.peers, fabrics.after, number);
        // With the nodes of the old version, the proof shows what was there.
        let is_unproved = |it: &&Cidr| !is_proved(**it, versions, counterparts);
        let (lost, unproved) = match versions.before.fleet {
            None => (lost.len(), 0),
            Some(_) => (0, lost.iter().filter(is_unproved).count()),
        };
        Some(TargetChange {
            lost_ranges: lost,
            unproved_ranges: unproved,
            pausing: pausing(transition, &change.peers),
            forgotten: ForgottenAddresses::find(number, transition, &change.peers, fabrics.after),
            key_moves: transition.rollout.key_moves.clone(),
            carriers: CarrierMove::find(transition, fabrics, counterparts),
            load: (!change.cluster.is_external())
                .then(|| LoadChange::new(transition, delivery.capacity, &mut known.bundles)),
            ..change
        })
    });
    let mut changed: Vec<TargetChange> = changed.flatten().collect();
    changed.extend(counterparts.left().filter_map(|it| {
        let sites = Versions::new(Some(it), None);
        let peers = fabrics.before.site(it).model.peers.ids();
        let peers = peers.map(Pair::Removed);
        let described = &mut DescribedPeers::default();
        TargetChange::find(sites, fabrics, peers, counterparts, described)
    }));
    let left = delivery.left.iter();
    changed.extend(left.filter_map(|(cluster, files)| {
        TargetChange::left(cluster, files, fabrics, counterparts, delivery)
    }));
    changed.sort_by(|a, b| a.cluster.cmp(&b.cluster));
    changed
}

impl TargetChange {
    fn new(cluster: ClusterName, peers: Vec<PeerChange>) -> Self {
        Self {
            cluster,
            renamed_from: None,
            peers_before: 0,
            peers_after: 0,
            peers,
            sources_gone: Vec::new(),
            lost_ranges: 0,
            unproved_ranges: 0,
            pausing: Vec::new(),
            forgotten: None,
            key_moves: Vec::new(),
            carriers: Vec::new(),
            load: None,
            reasons: Vec::new(),
        }
    }

    /// Describes a cluster whose Peers stay the same.
    pub(super) fn unchanged(site: &Site) -> Self {
        let peers = site.model.peers.len();
        Self {
            peers_before: peers,
            peers_after: peers,
            ..Self::new(site.cluster.clone(), Vec::new())
        }
    }

    /// Describes a cluster that left. Only its Peers are known.
    fn left(
        cluster: &ClusterName,
        files: &[AppliedFile],
        fabrics: Versions<&Fabric, &Fabric>,
        counterparts: &Counterparts,
        delivery: &Delivery,
    ) -> Option<Self> {
        let had = AppliedPeers::decided(files, &[]).all;
        let mut foreign = delivery.foreign.iter().filter(|it| it.0 == *cluster);
        let foreign: BTreeSet<&str> = foreign.by_ref().map(|it| it.1.as_str()).collect();
        let mut described = DescribedPeers::default();
        let is_own = |it: &&ClusterPeer| !foreign.contains(it.applied.name.as_str());
        let own: Vec<&ClusterPeer> = had.iter().filter(is_own).collect();
        let removed = own.iter().filter_map(|it| {
            let pair = Pair::Removed(*it);
            PeerChange::find(pair, fabrics, counterparts, &RenamedPeers::default(), &mut described)
        });
        let peers: Vec<PeerChange> = removed.collect();
        (!peers.is_empty())
            .then(|| Self { peers_before: own.len(), ..Self::new(cluster.clone(), peers) })
    }

    fn find<'f>(
        sites: Versions<Option<SiteId>>,
        fabrics: Versions<&'f Fabric, &'f Fabric>,
        differences: impl Iterator<Item = Pair<PeerId>>,
        counterparts: &Counterparts,
        described: &mut DescribedPeers<'f>,
    ) -> Option<Self> {
        let old = sites.before.map(|it| fabrics.before.site(it));
        let new = sites.after.map(|it| fabrics.after.site(it));
        let none = Peers::default();
        let had = old.map_or(&none, |it| &*it.model.peers);
        let has = new.map_or(&none, |it| &*it.model.peers);
        let pairs: Vec<Pair<&ClusterPeer>> = differences.map(|it| it.among(had, has)).collect();
        let renamed = RenamedPeers::find(pairs.iter().copied());
        let peers: Vec<PeerChange> = pairs
            .into_iter()
            .filter_map(|it| PeerChange::find(it, fabrics, counterparts, &renamed, described))
            .collect();
        if peers.is_empty() {
            return None;
        }
        let cluster = new.or(old)?.cluster.clone();
        let gave = sources(fabrics.before, sites.before);
        let gives = sources(fabrics.after, sites.after);
        let gone = gave.numbered().filter(|it| *it.1);
        let gone = gone.filter_map(|(source, _)| match counterparts.after(source) {
            None => Some(fabrics.before.site(source).cluster.clone()),
            Some(it) => (!gives[it]).then(|| fabrics.after.site(it).cluster.clone()),
        });
        let mut claimed = claimed_sources_gone(&peers, had, has);
        for (source, _) in gives.numbered().filter(|it| *it.1) {
            claimed.remove(fabrics.after.site(source).cluster);
        }
        // The sources of an external peer that left are there for others.
        let is_there = new.is_some() || !cluster.is_external();
        let gone = gone.chain(claimed).filter(|_| is_there);
        let gone: BTreeSet<ClusterName> = gone.collect();
        Some(Self {
            sources_gone: gone.into_iter().collect(),
            renamed_from: old.map(|it| it.cluster.clone()).filter(|it| *it != cluster),
            peers_before: had.len(),
            peers_after: has.len(),
            ..Self::new(cluster, peers)
        })
    }
}

/// Returns the sources that Peers name which go with keys of no known node, and that no Peer names any
/// more. Of an old version without a mesh, nothing else shows which clusters left. A false name makes the
/// grade only worse.
fn claimed_sources_gone(
    changes: &[PeerChange],
    had: &Peers<ClusterPeer>,
    has: &Peers<ClusterPeer>,
) -> BTreeSet<ClusterName> {
    let strangers = changes.iter().filter(|it| it.peer.is_removed_stranger());
    let strangers: BTreeSet<&str> = strangers.map(|it| it.peer.name.as_str()).collect();
    if strangers.is_empty() {
        return BTreeSet::new();
    }
    let named = |peer: &ClusterPeer| peer.applied.claims.source.clone();
    let gone = had.iter().filter(|it| strangers.contains(it.applied.name.as_str()));
    let mut gone: BTreeSet<ClusterName> = gone.filter_map(named).collect();
    for source in has.iter().filter_map(named) {
        gone.remove(&source);
    }
    gone
}

/// Returns whether a cluster gets a Peer of each source, whose node alone has the key.
fn sources(fabric: &Fabric, target: Option<SiteId>) -> Sites<bool> {
    let mut sources = fabric.sites.map(|_| false);
    let Some(target) = target else {
        return sources;
    };
    for (id, peer) in fabric.site(target).model.peers.numbered() {
        // Of Peers that Kilo configures it is known who has their keys.
        let holder = match (peer.share(), &peer.applied.spec) {
            (Some(_), _) => match fabric.holding(target, id) {
                Holding::One(at) => Some(at),
                Holding::Nobody | Holding::Many => None,
            },
            (None, Ok(spec)) => fabric.only_holder(&spec.key),
            (None, Err(_)) => None,
        };
        if let Some(at) = holder {
            sources[at.site] = true;
        }
    }
    sources
}

/// Returns a target's cluster on its way.
pub(super) fn transition<'p, 's>(
    target: &TargetChange,
    after: &Fabric,
    transitions: &'p ClusterTransitions<'s>,
) -> Option<(SiteId, &'p ClusterTransition<'s>)> {
    let site = after.site_named(target.cluster.as_str())?;
    Some((site, &transitions.0[site]))
}

/// The load of a target, before and after.
#[derive(Clone, Debug, PartialEq)]
pub struct LoadChange {
    /// The estimates for the old Peers.
    pub before: Vec<Estimate>,
    /// The estimates for the new Peers.
    pub after: Vec<Estimate>,
    /// The seconds for which Kilo is busy with the change on the busiest node.
    pub seconds: f64,
}

impl LoadChange {
    /// Estimates the load of a target.
    pub(super) fn new<'s>(
        transition: &ClusterTransition<'s>,
        capacity: &Capacity,
        known: &mut KnownBundles<'s>,
    ) -> Self {
        let (old, new) = (&transition.peers.now.model, &transition.peers.after.model);
        let delta = PeerDelta::count(old, new, transition.peers.pairs.iter().copied());
        let load = Load::count_knowing(new, None, known);
        Self {
            before: estimates(&Load::count_knowing(old, None, known), capacity),
            seconds: delta.seconds(&load.nodes, &capacity.costs),
            after: estimates(&load, capacity),
        }
    }

    /// Returns the quantities that pass a warning, or a more severe limit, by the change.
    pub fn passed(&self) -> impl Iterator<Item = Quantity> {
        let before = |quantity: Quantity| {
            self.before.iter().find(move |it| it.quantity == quantity).and_then(|it| it.grade)
        };
        self.after
            .iter()
            .filter(move |it| Some(Severity::Warning) <= it.grade && before(it.quantity) < it.grade)
            .map(|it| it.quantity)
    }
}
