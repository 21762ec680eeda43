//! Engines: the tools that apply Peers, and the order in which they delete some and apply others.

use std::collections::{BTreeMap, BTreeSet};

use crate::name::ClusterName;

mod argo_application;

pub use argo_application::ArgoApplication;

/// A tool that applies Peers.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub enum Engine {
    /// Flux.
    Flux,
    /// Argo CD.
    ArgoCd,
}

/// The order of the steps of a delivery. Steps of one kind have no order among themselves.
#[derive(Clone, Copy, Debug, Eq, Ord, PartialEq, PartialOrd)]
pub enum StepOrder {
    /// Everything is applied before anything is deleted: Flux, and Argo CD with `PruneLast`.
    AppliesFirst,
    /// Everything is deleted before anything is applied: Argo CD with `PrunePropagationPolicy=background`.
    DeletesFirst,
    /// No order: Argo CD's default, `PrunePropagationPolicy=foreground`. It only marks Peers as deleted, and the
    /// garbage collector deletes them while it applies the others.
    Mixed,
}

/// The known facts about the tools that apply the Peers.
#[derive(Clone, Debug, Default)]
pub struct Engines {
    /// The tool; without one, it may be any.
    pub applied_by: Option<Engine>,
    /// The order of Argo CD, by the cluster that gets the Peers; for all others its default.
    pub argo_cd: BTreeMap<ClusterName, StepOrder>,
}

impl Engines {
    /// Returns the orders in which the Peers of a cluster may change.
    pub fn orders(&self, target: &ClusterName) -> BTreeSet<StepOrder> {
        let argo_cd = self.argo_cd.get(target).copied();
        let argo_cd = argo_cd.unwrap_or(StepOrder::Mixed);
        match self.applied_by {
            Some(Engine::Flux) => [StepOrder::AppliesFirst].into(),
            Some(Engine::ArgoCd) => [argo_cd].into(),
            None => [StepOrder::AppliesFirst, argo_cd].into(),
        }
    }
}

#[cfg(test)]
mod tests;
