//! Changes: how one version of a fleet differs from another, what causes each difference, what it costs
//! every cluster, and how severe it is.
//!
//! Causes come from the meshes and snapshots of both versions. Effects and grades come from the Peers
//! alone, by the same model of Kilo as every proof (`docs/internals/changes.md`).

use crate::agent::fabric::Fabric;
use crate::config::Capacity;
use crate::fleet::Fleet;
use crate::proof::verify::Asked;

pub mod cause;
pub mod grade;
pub mod peer_change;

mod attribution;
mod clusters;
mod nodes;
mod settings;
mod target;

pub use cause::{Cause, CauseEffect, NodeRef, PeerCounts};
pub use grade::{Engine, Grade, Reason};
pub use peer_change::{Difference, PeerChange, PeerChangeKind};
pub use target::TargetChange;

use attribution::attribute;
use clusters::Counterparts;

/// One of two versions of a fleet.
#[derive(Clone, Copy, Debug)]
pub struct Version<'a> {
    /// The meshes with their snapshots, from which the Peers were rendered; none if only the Peers are
    /// known. Causes are found only between two fleets.
    pub fleet: Option<&'a Fleet<'a>>,
    /// The Peers of every cluster.
    pub fabric: &'a Fabric<'a>,
    /// What the meshes declare.
    pub asked: Asked<'a>,
}

/// How the changes are delivered, and the limits of the clusters.
#[derive(Clone, Copy, Debug)]
pub struct Delivery<'d> {
    /// The engine that applies the Peers; without one, the worse of both counts.
    pub applied_by: Option<Engine>,
    /// What is too much for a cluster.
    pub capacity: &'d Capacity,
}

/// All differences between two versions.
#[derive(Clone, Debug)]
pub struct Changes {
    /// What causes them, each cause once, in order of cluster and node.
    pub causes: Vec<CauseEffect>,
    /// Every target with differences, by name.
    pub targets: Vec<TargetChange>,
}

impl Changes {
    /// Returns the grade of all changes together: that of the worst.
    pub fn grade(&self) -> Grade {
        let grades = self.targets.iter().map(TargetChange::grade);
        grades.max().unwrap_or(Grade::None)
    }
}

/// Compares two versions.
pub fn compare(before: &Version, after: &Version, delivery: &Delivery) -> Changes {
    let counterparts = Counterparts::find(before, after);
    let mut targets = target::changes((before, after), &counterparts, delivery);
    let mut causes = Vec::new();
    if let (Some(old), Some(new)) = (before.fleet, after.fleet) {
        causes.extend(counterparts.causes((before, after)));
        causes.extend(settings::causes((old, new), &counterparts));
        causes.extend(nodes::causes((old, new), &counterparts));
        causes.extend(target::anchor_causes(&targets));
    }
    let causes = attribute(causes, &mut targets);
    Changes { causes, targets }
}
