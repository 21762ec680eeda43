//! Controls: what people forbid, and what a change of that allows.
//!
//! A control is a file or field by which a person limits what the mesh may do: policies, expectations, guards, limits,
//! levels. The paths that old controls refuse in a new version are found by [`crate::proof::old_controls`], regardless of
//! which file was edited; the comparison here explains them.
//!
//! ```text
//!  old version ─┐                  ┌─ of_meshes, of_guards, of_config: all limits as values
//!               ├─ lineage ────────┤     │ limit
//!  new version ─┘  which clusters  └─ of_expectations
//!                  are the same          │
//!                                  what changed, and whether it is weaker
//! ```

use std::collections::BTreeSet;

use crate::agent::fabric::Fabric;
use crate::config::{Config, Date};
use crate::expectations::Expectations;
use crate::mesh::{Mesh, Range};
use crate::name::ClusterName;
use crate::net::Cidr;
use crate::net::prefixes::Prefixes;
use crate::place::Place;
use crate::policy::Policy;
use crate::proof::old_controls::{AcceptedNetworks, PathControl, RefusedPaths};
use crate::rules::Finding;
use crate::rules::gitops::GuardFile;
use lineage::Lineage;

mod limit;
mod lineage;
mod of_config;
mod of_expectations;
mod of_guards;
mod of_meshes;

/// The controls of a version.
#[derive(Clone, Copy, Debug)]
pub struct Controls<'c> {
    /// The meshes, narrowed by the policies.
    pub meshes: &'c [Mesh],
    /// The policies.
    pub policies: &'c [Policy],
    /// The expectations.
    pub expectations: &'c Expectations,
    /// The config.
    pub config: &'c Config,
    /// The config's document.
    pub config_place: Option<&'c Place>,
    /// The file of the expectations and the folder of the policies, each by its field in the config.
    pub paths: &'c [(&'static str, String)],
    /// The guards that the repository records.
    pub guards: &'c [GuardFile],
}

/// The result of a comparison with old controls.
#[derive(Clone, Debug, Default)]
pub struct JudgedChange<'c> {
    /// The controls of the old version that refuse or require paths.
    pub controls: Vec<PathControl<'c>>,
    /// The paths that they refuse in the new version and did not refuse in the old one.
    pub refused: Vec<RefusedPaths>,
    /// Those of them that are about nothing in the new version.
    pub unjudged: Vec<usize>,
    /// The controls that changed.
    pub changes: Vec<ControlChange>,
    /// Old controls that cannot be read.
    pub unread: Vec<Finding>,
    /// Set if a proof would take too many steps, so it is not known what the old controls refuse.
    pub is_unproven: bool,
}

/// A control that one version has otherwise than the other.
#[derive(Clone, Debug, Eq, PartialEq)]
pub struct ControlChange {
    /// Its name for people.
    pub subject: String,
    /// Whether it forbids less than before.
    pub is_weaker: bool,
    /// Its old values and their place, if it was there.
    pub before: Option<WrittenValues>,
    /// Its new values and their place, if it is there.
    pub after: Option<WrittenValues>,
}

/// The values of a control as people write them.
#[derive(Clone, Debug, Eq, PartialEq)]
pub struct WrittenValues {
    /// The values.
    pub values: Vec<String>,
    /// Their place, if they have one: a default has none.
    pub place: Option<Place>,
}

impl JudgedChange<'_> {
    /// Returns whether the old controls refuse something, or one is weaker or unreadable.
    pub fn is_weaker(&self) -> bool {
        !self.refused.is_empty()
            || !self.unread.is_empty()
            || self.is_unproven
            || self.changes.iter().any(|it| it.is_weaker)
    }

    /// Returns whether there is nothing to report.
    pub fn is_empty(&self) -> bool {
        !self.is_weaker() && self.changes.is_empty() && self.unjudged.is_empty()
    }
}

impl<'c> Controls<'c> {
    /// Returns the controls that refuse or require paths, as they hold on a day.
    pub fn of_paths(&self, today: Date) -> Vec<PathControl<'c>> {
        let expectations = self.expectations;
        let all = expectations.expectations.iter().map(PathControl::Expectation);
        let denied = expectations.denied.as_ref();
        let denied = denied.map(|it| PathControl::Undeclared {
            allowed: it.allowed(&expectations.expectations, today),
            place: &it.place,
        });
        let strict = self.policies.iter().filter_map(|policy| {
            let (_, _, place) =
                policy.limits().into_iter().find(|it| it.0 == "acceptedClusters")?;
            Some(PathControl::AcceptedClusters { policy, place })
        });
        let limits = self.members().into_iter().flat_map(|it| {
            AcceptedNetworks::of(self.meshes, it)
                .map(PathControl::AcceptedNetworks)
                .into_iter()
                .chain(self.local_networks(it))
        });
        all.chain(denied).chain(strict).chain(limits).collect()
    }

    fn local_networks(&self, cluster: &'c ClusterName) -> Option<PathControl<'c>> {
        let entries = self.meshes.iter().filter_map(|mesh| mesh.entry(cluster));
        let networks: Vec<&Range> = entries.flat_map(|it| &it.local_networks).collect();
        let place = &networks.first()?.place;
        let networks = Prefixes::union(networks.iter().map(|it| it.cidr));
        Some(PathControl::LocalNetworks { cluster, networks, place })
    }

    /// Returns what changed in the controls of an old version, those that are weaker first. The Peers of both versions show
    /// which clusters have other names now.
    pub fn changes(&self, new: &Self, fabrics: Option<(&Fabric, &Fabric)>) -> Vec<ControlChange> {
        let lineage = Lineage::new(self, new, fabrics);
        let levels = [self, new]
            .into_iter()
            .flat_map(|it| of_config::rules_with_levels(it.config))
            .collect();
        let old_keys = of_guards::old_keys(new, &lineage);
        let versions =
            [(self, new, &lineage.before, Some(&old_keys)), (new, self, &lineage.now, None)];
        let [had, has] = versions.map(|(it, other, counted, old_keys)| {
            let mut limits = of_meshes::limits(it, other, counted);
            limits.extend(self.expectations.denied.as_ref().map(|_| of_meshes::links(it, self)));
            limits.extend(of_guards::limits(it, old_keys));
            limits.extend(of_config::limits(it, &levels));
            limits
        });
        let mut changes = of_expectations::changes(self, new, &lineage);
        changes.extend(limit::changes(&had, &has, &lineage));
        changes.sort_by_key(|it| !it.is_weaker);
        changes
    }

    /// Returns the clusters of the meshes, without external peers.
    fn members(&self) -> BTreeSet<&'c ClusterName> {
        self.meshes.iter().flat_map(|it| &it.entries).map(|it| &it.name).collect()
    }

    /// Returns the clusters that have a policy or a guard, also those that join later.
    fn limited(&self) -> impl Iterator<Item = &'c ClusterName> {
        let policies = self.policies.iter().map(|it| &it.cluster);
        policies.chain(self.guards.iter().map(|it| &it.cluster))
    }

    /// Returns the clusters of the meshes, and those that join later and have a policy or a guard.
    fn clusters(&self) -> BTreeSet<&'c ClusterName> {
        self.members().into_iter().chain(self.limited()).collect()
    }
}

/// Returns whether all addresses of some ranges are in others.
fn are_covered(ranges: &[Cidr], others: &[Cidr]) -> bool {
    let others = Prefixes::union(others.iter().copied());
    ranges.iter().all(|it| others.contain(*it))
}

#[cfg(test)]
mod tests;
