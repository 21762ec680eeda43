//! Changes: how one version of a fleet differs from another, what causes each difference, what it costs
//! every cluster, and how severe it is.
//!
//! Causes come from the meshes and snapshots of both versions. Effects and grades come from the Peers
//! alone, by the same model of Kilo as every proof (`docs/internals/changes.md`).
//!
//! ```text
//!  Peers of two versions                 meshes and snapshots of two versions
//!     │                                     │
//!  clusters: which old cluster is which new one
//!     │                                     │
//!  cluster_transition: each cluster      settings, nodes: what people changed
//!  with its old Peers, its new Peers,    and what nodes report, as causes
//!  or a table in between                    │
//!  (rollout_states, rollout_tables)         │
//!     │                                     │
//!     ├───────────────────┐                 │
//!  paths: which work   target: what         │
//!  in all stages       becomes of Peers     │
//!  (prover,            and ranges           │
//!  state_proof)        (peer_change,        │
//!     │                carrier_move,        │
//!     │                forgotten_sessions)  │
//!  path_summary: how      │                 │
//!  many are lost or       │                 │
//!  interrupted            │                 │
//!  (path_change)          │                 │
//!     └──────┬────────────┴───────┬─────────┘
//!     reasons: the grade       attribution: which cause
//!     of a target (grade)      changes which Peer
//! ```
//!
//! Paths lead from one of the `blocks` of a cluster to one of another; a `path_set` has many of them.
//! `must_stay_closed` looks for paths that no change should open, and `service_change` compares the Services.

use std::collections::{BTreeMap, BTreeSet};

use rayon::prelude::*;

use crate::agent::applied::AppliedFile;
use crate::agent::fabric::{AwakeClusters, Fabric, SiteId};
use crate::config::Capacity;
use crate::engine::Engines;
use crate::fleet::Fleet;
use crate::name::ClusterName;
use crate::proof::verify::Asked;

mod rollout_states;
mod rollout_tables;
mod attribution;
pub(crate) mod blocks;
mod carrier_move;
mod changed_ports;
pub mod cause;
mod clusters;
mod grade;
mod nodes;
mod cluster_transition;
mod path_change;
pub(crate) mod path_set;
mod path_summary;
mod paths;
mod forgotten_sessions;
mod peer_change;
mod prover;
mod reasons;
mod service_change;
mod settings;
pub(crate) mod state_proof;
mod target;
mod must_stay_closed;

pub use carrier_move::CarrierMove;
pub use cause::{Cause, CauseEffect, CauseList, NamedNode, NodeChange, PeerCounts};
pub use changed_ports::{ChangedPorts, DialledPort};
pub use clusters::renamed_clusters;
pub use forgotten_sessions::{FORGOTTEN_IDLE_SECONDS, FORGOTTEN_SECONDS, ForgottenAddresses};
pub use grade::{Grade, PathReason, PeerReason, Reason};
pub use must_stay_closed::{NewPaths, WatchedPaths};
pub use path_change::{
    ChangedLink, EndedPaths, LinkEffect, LinkPaths, OpenedPaths, PathChange, PathCounts,
};
pub use peer_change::{ChangedPeer, Difference, PeerChange, PeerChangeKind, foreign_peers};
pub use reasons::{BRIEF_SECONDS, SILENCE_SECONDS};
pub use rollout_states::{KeyMove, KeyMoveKind};
pub use service_change::{ServiceChange, ServiceChangeKind};
pub use target::{LoadChange, TargetChange};

use attribution::attribute;
use blocks::FollowedAddresses;
use cluster_transition::{AffectedPairs, ClusterTransitions};
use clusters::Counterparts;
use paths::PathProof;
use reasons::cut_off;
use state_proof::ProofBudget;

/// One of two versions of a fleet.
#[derive(Clone, Copy, Debug)]
pub struct Version<'v, 'a> {
    /// The meshes with their snapshots, from which the Peers were rendered; none if only the Peers are
    /// known. Causes are found only between two fleets.
    pub fleet: Option<&'v Fleet<'v>>,
    /// The Peers of every cluster.
    pub fabric: &'v Fabric<'a>,
    /// The declared paths.
    pub asked: Asked<'v>,
}

/// The delivery of the changes, and the limits of the clusters.
#[derive(Clone, Copy, Debug)]
pub struct Delivery<'d> {
    /// The tools that apply the Peers. Of several orders, the worst counts.
    pub engines: &'d Engines,
    /// The limits of a cluster.
    pub capacity: &'d Capacity,
    /// Foreign Peers, by cluster and name: see [`foreign_peers`].
    pub foreign: &'d [(ClusterName, String)],
    /// The Peers of clusters that left, if only the Peers of the old version are known.
    pub left: &'d BTreeMap<ClusterName, Vec<AppliedFile>>,
    /// The paths that no change should open.
    pub watched: &'d [WatchedPaths],
    /// The largest number of steps of the proof; with more, paths count as unproven.
    pub most_steps: u64,
}

/// All differences between two versions.
#[derive(Clone, Debug)]
pub struct Changes {
    /// The causes, each once, in order of cluster and node.
    pub causes: Vec<CauseEffect>,
    /// Every target with differences, by name: of its Peers, or of what proves its paths.
    pub targets: Vec<TargetChange>,
    /// The changes of the paths between clusters, where any path is gained, lost or interrupted.
    pub paths: Vec<PathChange>,
    /// The differences of the Services that clusters get of others, which [`ServiceChange::all`] finds.
    pub services: Vec<ServiceChange>,
    /// The endpoints that clusters dial in one version only.
    pub ports: ChangedPorts,
    /// The number of states that were proved: of two clusters each, with old or new Peers or those in
    /// between on either side.
    pub states: usize,
    /// The clusters whose watched paths could not be proved in every state.
    pub unwatched: BTreeSet<ClusterName>,
}

impl Changes {
    /// Returns the grade of all changes together: that of the worst.
    pub fn grade(&self) -> Grade {
        let grades = self.targets.iter().map(TargetChange::grade);
        grades.chain(self.service_grades()).max().unwrap_or(Grade::None)
    }

    /// Returns the grade that they have once every node sends keepalives, so that nothing pauses.
    pub fn grade_without_pause(&self) -> Grade {
        let grades = self.targets.iter().map(TargetChange::grade_without_pause);
        grades.chain(self.service_grades()).max().unwrap_or(Grade::None)
    }

    fn service_grades(&self) -> impl Iterator<Item = Grade> {
        self.services.iter().map(ServiceChange::grade)
    }

    /// Proves the paths on the way, and judges the targets by them.
    fn prove(
        &mut self,
        versions: Versions<&Version, &Version>,
        counterparts: &Counterparts,
        transitions: &ClusterTransitions,
        affected: &AffectedPairs,
        delivery: &Delivery,
    ) {
        let fabric = versions.after.fabric;
        let most = delivery.most_steps;
        let mut steps = ProofBudget(most);
        let proof = PathProof::new(transitions, affected, &[], fabric, &mut steps);
        self.states = proof.proved.iter().map(|it| it.states).sum();
        let paths = path_summary::summarize(versions, counterparts, transitions, &proof, most);
        let is_counted = paths.is_some();
        self.paths = paths.unwrap_or_default();
        self.add_weakened(fabric, transitions);
        let cut = match versions.before.fleet {
            None => cut_off(transitions, fabric, &proof),
            Some(_) => BTreeSet::new(),
        };
        let mut of_clusters: BTreeMap<&ClusterName, Vec<&PathChange>> = BTreeMap::new();
        for path in &self.paths {
            for end in [&path.from, &path.to] {
                of_clusters.entry(end).or_default().push(path);
            }
        }
        self.targets.par_iter_mut().for_each(|target| {
            let transition = target::transition(target, fabric, transitions);
            let is_unproven =
                !is_counted || transition.is_some_and(|it| proof.unproven.contains(&it.0));
            let paths = of_clusters.get(&target.cluster).map_or(&[][..], Vec::as_slice);
            target.judge(transition.map(|it| it.1), paths, is_unproven);
            let others = cut.iter().filter(|it| transition.is_some_and(|of| of.0 == it.0));
            target.add_cut_off(others.map(|it| fabric.site(it.1).cluster));
        });
    }

    /// Adds the two clusters of paths that are lost or no longer proved although no Peer of either changes, because a mesh
    /// declares something else about one. A change is not the cause of what nodes report.
    fn add_weakened(&mut self, after: &Fabric, transitions: &ClusterTransitions) {
        let known: BTreeSet<&ClusterName> = self.targets.iter().map(|it| &it.cluster).collect();
        let site = |it: &ClusterName| after.site_named(it.as_str());
        let weakened = self.paths.iter().filter(|it| it.is_weakened());
        let pairs = weakened.filter(|it| !known.contains(&it.from) && !known.contains(&it.to));
        let pairs = pairs.filter_map(|it| Some([site(&it.from)?, site(&it.to)?]));
        let declared = pairs.filter(|it| it.iter().any(|it| transitions.0[*it].has_new_premises));
        let sites: BTreeSet<SiteId> = declared.flatten().collect();
        self.targets.extend(sites.into_iter().map(|it| TargetChange::unchanged(after.site(it))));
        self.targets.sort_by(|a, b| a.cluster.cmp(&b.cluster));
        if self.targets.is_empty() {
            self.paths.clear();
        }
    }

    /// Finds the watched paths that the change opens. A path is open if all tables let its packets through: a node with
    /// the keys can dial in from any address, so it makes no difference who can dial whom today, or whose agent is silent.
    fn watch(
        &mut self,
        versions: Versions<&Version, &Version>,
        counterparts: &Counterparts,
        transitions: &ClusterTransitions,
        affected: &AffectedPairs,
        delivery: &Delivery,
    ) {
        let fabrics = versions.fabrics();
        let (was_awake, is_awake) =
            (AwakeClusters::find(fabrics.before), AwakeClusters::find(fabrics.after));
        let before = Version { fabric: &was_awake.open(fabrics.before), ..*versions.before };
        let after = Version { fabric: &is_awake.open(fabrics.after), ..*versions.after };
        let open = Versions::new(&before, &after);
        let are_all_awake = was_awake.are_none() && is_awake.are_none();
        let awakened = (!are_all_awake).then(|| {
            let followed = FollowedAddresses::new(after.fabric);
            let (fabrics, engines) = (open.fabrics(), delivery.engines);
            let transitions = ClusterTransitions::new(fabrics, counterparts, &followed, engines);
            let affected = AffectedPairs::new(&transitions, fabrics, &followed);
            (transitions, affected)
        });
        let (transitions, affected) =
            awakened.as_ref().map_or((transitions, affected), |it| (&it.0, &it.1));
        let most = delivery.most_steps;
        let steps = &mut ProofBudget(most);
        let proof = PathProof::new(transitions, affected, delivery.watched, after.fabric, steps);
        let paths = path_summary::summarize(open, counterparts, transitions, &proof, most);
        let sites = after.fabric.sites.ids();
        let unwatched = sites.filter(|it| paths.is_none() || proof.unwatched.contains(it));
        let clusters = unwatched.map(|it| after.fabric.site(it).cluster.clone());
        self.unwatched = clusters.collect();
        self.add_opened(paths.unwrap_or_default());
    }

    /// Adds the paths that a change opens.
    fn add_opened(&mut self, paths: Vec<PathChange>) {
        let mut others = Vec::new();
        for open in paths {
            let order = |it: &PathChange| (&it.from, &it.to).cmp(&(&open.from, &open.to));
            match self.paths.binary_search_by(order) {
                Ok(place) => self.paths[place].opened = open.opened,
                Err(_) if open.opened.is_empty() => {}
                Err(_) => others.push(open.only_opened()),
            }
        }
        self.paths.extend(others);
        self.paths.sort_by(|a, b| (&a.from, &a.to).cmp(&(&b.from, &b.to)));
    }

    /// Returns whether only missing annotations keep the grade from being [`Grade::Additive`] or [`Grade::Cleanup`].
    pub fn is_pause_only(&self) -> bool {
        self.grade() == Grade::Brief && self.grade_without_pause() <= Grade::Cleanup
    }
}

/// Compares two versions.
pub fn compare(before: &Version, after: &Version, delivery: &Delivery) -> Changes {
    let versions = Versions::new(before, after);
    let counterparts = Counterparts::find(versions.fabrics());
    let followed = FollowedAddresses::new(after.fabric);
    let transitions =
        ClusterTransitions::new(versions.fabrics(), &counterparts, &followed, delivery.engines);
    let mut changes = Changes {
        causes: Vec::new(),
        targets: target::changes(versions, &counterparts, &transitions, delivery),
        paths: Vec::new(),
        services: Vec::new(),
        ports: ChangedPorts::find(versions.fabrics()),
        states: 0,
        unwatched: BTreeSet::new(),
    };
    let have_new_peers = !changes.targets.is_empty();
    if have_new_peers || transitions.0.iter().any(|it| it.has_new_premises) {
        let affected = AffectedPairs::new(&transitions, versions.fabrics(), &followed);
        changes.prove(versions, &counterparts, &transitions, &affected, delivery);
        if have_new_peers && !delivery.watched.is_empty() {
            changes.watch(versions, &counterparts, &transitions, &affected, delivery);
        }
    }
    let fleets = before.fleet.zip(after.fleet);
    let causes = fleets.map(|(before, after)| {
        let fleets = Versions::new(before, after);
        let moves: BTreeSet<&CarrierMove> =
            changes.targets.iter().flat_map(|it| &it.carriers).collect();
        let mut causes = counterparts.causes(versions);
        causes.extend(settings::causes(versions, fleets, &counterparts));
        causes.extend(nodes::causes(fleets, &counterparts));
        causes.extend(moves.into_iter().filter_map(CarrierMove::cause));
        causes
    });
    changes.causes = attribute(causes, &mut changes.targets);
    let foreign = delivery.foreign.iter().map(|(target, peer)| CauseEffect {
        cause: Cause::ForeignPeer { target: target.clone(), peer: peer.clone() },
        targets: Vec::new(),
    });
    changes.causes.extend(foreign);
    changes
}

/// Something in both versions. Each keeps its own lifetime, so there are two types.
#[derive(Clone, Copy, Debug, Eq, Ord, PartialEq, PartialOrd)]
struct Versions<Old, New = Old> {
    before: Old,
    after: New,
}

impl<'o, 'p, 'n, 'q> Versions<&Version<'o, 'p>, &Version<'n, 'q>> {
    /// Returns the Peers of every cluster.
    fn fabrics(self) -> Versions<&'o Fabric<'p>, &'n Fabric<'q>> {
        Versions::new(self.before.fabric, self.after.fabric)
    }
}

impl<Old, New> Versions<Old, New> {
    fn new(before: Old, after: New) -> Self {
        Self { before, after }
    }
}

impl<T> Versions<T> {
    /// Applies a function to each version.
    fn map<U>(self, mut make: impl FnMut(T) -> U) -> Versions<U> {
        Versions::new(make(self.before), make(self.after))
    }
}

#[cfg(test)]
mod tests;
