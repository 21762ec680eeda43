//! Guards that the repository records: which Peers each cluster accepts.

use std::collections::{BTreeMap, BTreeSet};

use super::Controls;
use super::limit::{GuardRules, Limit, Passing};
use super::lineage::{Lineage, old_names};
use crate::place::Place;
use crate::rules::gitops::GuardFile;

/// The keys that declarations had in guards of the old version, by those that they have in guards of the new one.
pub(super) type OldKeys<'c> = BTreeMap<&'c str, BTreeSet<String>>;

/// Returns the old keys of all declarations in the guards of the new version.
pub(super) fn old_keys<'c>(new: &Controls<'c>, lineage: &Lineage) -> OldKeys<'c> {
    let keys = new.guards.iter().filter_map(GuardFile::guard).flat_map(|it| it.guard.keys());
    let old_mesh = |it| *lineage.meshes.get(it).unwrap_or(&it);
    let old = keys.map(|key| {
        let old = match key.split_once('/') {
            None => BTreeSet::from([old_mesh(key).to_owned()]),
            Some((mesh, source)) => old_names(&lineage.now, &[source.to_owned()])
                .into_iter()
                .map(|it| format!("{}/{it}", old_mesh(mesh)))
                .collect(),
        };
        (key, old)
    });
    old.collect()
}

/// Returns the guard of each cluster of a version, or that it has none. Those of the old version are
/// compared under the keys of the new one.
pub(super) fn limits<'c>(controls: &Controls<'c>, old_keys: Option<&OldKeys>) -> Vec<Limit<'c>> {
    let clusters = controls.clusters().into_iter();
    let limits = clusters.map(|cluster| {
        let file = controls.guards.iter().find(|it| it.cluster == *cluster);
        let recorded = file.and_then(GuardFile::guard);
        let place = file.zip(recorded).map(|(file, it)| Place::document(&file.source, it.policy));
        let rules = recorded.map(|it| GuardRules {
            guard: match old_keys {
                Some(keys) => it.guard.renamed(keys),
                None => it.guard.clone(),
            },
            others: it.other_rules.as_ref().map(|it| it.text.clone()),
        });
        let passing = Passing::Peers(rules.map(Box::new));
        let limit = Limit::new(format!("guard of {cluster}"), [""; 0], place, passing);
        Limit {
            kind: "guard".to_owned(),
            cluster: Some(cluster),
            written: limit.written.filter(|_| recorded.is_some()),
            ..limit
        }
    });
    limits.collect()
}
