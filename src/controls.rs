//! Controls: what people forbid, and what a change of that allows.
//!
//! A control is a file or field by which a person limits what the mesh may do: policies, expectations, guards, limits,
//! levels. The paths that old controls refuse in a new version are found by [`crate::proof::old_controls`], regardless of
//! which file was edited; the comparison here explains them. Every version names its controls alike, so that two lists can
//! be compared: what only the old list has was removed.

use std::collections::{BTreeMap, BTreeSet};

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

/// A control of one version.
struct Control {
    written: WrittenValues,
    value: ControlValue,
}

/// The value of a control, by what makes it weaker.
#[derive(Clone, Debug, PartialEq)]
enum ControlValue {
    /// Ranges that are accepted; without them, all are.
    AcceptedRanges(Vec<Cidr>),
    /// Names that are accepted; without them, all are.
    AcceptedNames(BTreeSet<String>),
    /// Names that are accepted; without them, none is.
    AllowedNames(BTreeSet<String>),
    /// Ranges that are protected.
    Protected(Vec<Cidr>),
    /// Names that must stay.
    KeptNames(BTreeSet<String>),
    /// A number that may not grow.
    AtMost(u64),
    /// A number that may not become less.
    AtLeast(u64),
    /// A rank of severity, and the last day of a lower one than the default.
    Level(u8, Option<Date>),
    /// Weaker if it differs at all.
    Fixed,
    /// Weaker if it is there.
    Exemption,
    /// It decides nothing.
    Other,
}

/// Controls by their names.
type NamedControls = BTreeMap<String, Control>;

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
            let mut limits = policy.limits().into_iter();
            let (_, _, place) = limits.find(|it| it.0 == "acceptedClusters")?;
            Some(PathControl::AcceptedClusters { policy, place })
        });
        let entries = self.meshes.iter().flat_map(|it| &it.entries);
        let clusters: BTreeSet<&ClusterName> = entries.map(|it| &it.name).collect();
        let limits = clusters.into_iter().flat_map(|it| {
            let accepted = AcceptedNetworks::of(self.meshes, it);
            let accepted = accepted.map(PathControl::AcceptedNetworks);
            accepted.into_iter().chain(self.local_networks(it))
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

    /// Returns what changed in the controls of an old version, those that are weaker first.
    pub fn changes(&self, new: &Controls) -> Vec<ControlChange> {
        let mut changes = of_expectations::changes(self, new);
        changes.extend(of_guards::changes(self, new));
        let lists: [fn(&Controls, &Controls) -> [NamedControls; 2]; 2] =
            [of_meshes::controls, of_config::controls];
        for controls in lists {
            let [old, new] = controls(self, new);
            changes.extend(compared(old, new));
        }
        changes.sort_by_key(|it| !it.is_weaker);
        changes
    }
}

/// Compares the controls of two versions.
fn compared(old: NamedControls, mut new: NamedControls) -> Vec<ControlChange> {
    let mut changes = Vec::new();
    for (subject, had) in old {
        let has = new.remove(&subject);
        changes.extend(ControlChange::between(subject, Some(had), has));
    }
    let added = new.into_iter();
    changes.extend(added.filter_map(|it| ControlChange::between(it.0, None, Some(it.1))));
    changes
}

impl ControlChange {
    fn between(subject: String, old: Option<Control>, new: Option<Control>) -> Option<Self> {
        let is_same = old.as_ref().zip(new.as_ref()).is_some_and(|(old, new)| {
            old.value == new.value && old.written.values == new.written.values
        });
        let value = |it: &Option<Control>| it.as_ref().map(|it| it.value.clone());
        let is_weaker = is_weaker(value(&old).as_ref(), value(&new).as_ref());
        (!is_same).then(|| Self {
            subject,
            is_weaker,
            before: old.map(|it| it.written),
            after: new.map(|it| it.written),
        })
    }
}

impl Control {
    fn new(
        values: impl IntoIterator<Item = impl ToString>,
        place: Option<Place>,
        value: ControlValue,
    ) -> Self {
        let values = values.into_iter().map(|it| it.to_string()).collect();
        Self { written: WrittenValues { values, place }, value }
    }
}

/// Returns whether a control forbids less than before.
fn is_weaker(old: Option<&ControlValue>, new: Option<&ControlValue>) -> bool {
    use ControlValue::{
        AcceptedNames, AcceptedRanges, AllowedNames, AtLeast, AtMost, Exemption, KeptNames, Level,
        Other, Protected,
    };
    match (old, new) {
        (Some(AcceptedRanges(old)), Some(AcceptedRanges(new))) => !are_covered(new, old),
        (Some(Protected(old)), Some(Protected(new))) => !are_covered(old, new),
        (Some(AcceptedNames(old)), Some(AcceptedNames(new)))
        | (Some(AllowedNames(old)), Some(AllowedNames(new))) => !new.is_subset(old),
        (Some(KeptNames(old)), Some(KeptNames(new))) => !old.is_subset(new),
        (Some(AtMost(old)), Some(AtMost(new))) => old < new,
        (Some(AtLeast(old)), Some(AtLeast(new))) => new < old,
        (Some(Level(old, until)), Some(Level(new, later))) => {
            let is_later = until.is_some_and(|until| later.is_none_or(|later| until < later));
            new < old || new == old && is_later
        }
        (Some(Other), _) | (Some(AllowedNames(_) | Exemption) | None, None) => false,
        (None, Some(new)) => matches!(new, AllowedNames(_) | Exemption),
        (Some(_), _) => true,
    }
}

/// Returns whether all addresses of some ranges are in others.
fn are_covered(ranges: &[Cidr], others: &[Cidr]) -> bool {
    let others = Prefixes::union(others.iter().copied());
    ranges.iter().all(|it| others.contain(*it))
}

#[cfg(test)]
mod tests;
