//! Lineage: which clusters and meshes of a version are those of the old one, under any name.

use std::collections::{BTreeMap, BTreeSet};

use super::Controls;
use crate::agent::fabric::Fabric;
use crate::mesh::Mesh;
use crate::name::ClusterName;
use crate::proof::old_controls::OldClusters;

/// The old clusters as which each cluster of a version counts.
pub(super) type CountedClusters<'c> = BTreeMap<&'c ClusterName, BTreeSet<&'c ClusterName>>;

/// The clusters and meshes of both versions that are the same.
pub(super) struct Lineage<'c> {
    pub(super) before: CountedClusters<'c>,
    pub(super) now: CountedClusters<'c>,
    /// The new clusters that count as each old one.
    heirs: CountedClusters<'c>,
    /// The old mesh of each new one.
    pub(super) meshes: BTreeMap<&'c str, &'c str>,
    /// The old meshes that each old cluster is still in.
    pub(super) kept: BTreeSet<(&'c str, &'c ClusterName)>,
}

impl<'c> Lineage<'c> {
    /// Compares the names, the keys of the nodes and the declared ranges of both versions.
    pub(super) fn new(
        old: &Controls<'c>,
        new: &Controls<'c>,
        fabrics: Option<(&Fabric, &Fabric)>,
    ) -> Self {
        let clusters = OldClusters::new(old.meshes, fabrics, new.meshes);
        let mut before = clusters.counted(old.meshes, fabrics.map(|it| it.0));
        let mut now = clusters.counted(new.meshes, fabrics.map(|it| it.1));
        for cluster in old.limited() {
            for counted in [&mut before, &mut now] {
                counted.entry(cluster).or_default().insert(cluster);
            }
        }
        let mut heirs = CountedClusters::new();
        for (cluster, counted) in &now {
            for old in counted {
                heirs.entry(old).or_default().insert(cluster);
            }
        }
        let meshes = meshes(old.meshes, new.meshes, &now);
        let mut kept = BTreeSet::new();
        for mesh in new.meshes {
            if let Some(old) = meshes.get(mesh.name.as_str()) {
                let counted = mesh.all_entries().filter_map(|it| now.get(&it.name)).flatten();
                kept.extend(counted.map(|it| (*old, *it)));
            }
        }
        Self { before, now, heirs, meshes, kept }
    }

    /// Returns whether a list of the new version has everything that counts as an old cluster.
    pub(super) fn has_all(
        &self,
        cluster: &ClusterName,
        has: impl Fn(&ClusterName) -> bool,
    ) -> bool {
        match self.heirs.get(cluster) {
            Some(heirs) => heirs.iter().all(|it| has(it)),
            None => self.before.contains_key(cluster) || has(cluster),
        }
    }
}

/// Returns the old clusters as which a cluster of a version counts; what is about no cluster stays so.
pub(super) fn counted<'c>(
    all: &CountedClusters<'c>,
    cluster: Option<&'c ClusterName>,
) -> Vec<Option<&'c ClusterName>> {
    match cluster {
        None => vec![None],
        Some(it) => all.get(it).into_iter().flatten().map(|it| Some(*it)).collect(),
    }
}

/// Returns names of a version by the old clusters as which they count.
pub(super) fn old_names(all: &CountedClusters, names: &[String]) -> BTreeSet<String> {
    let old = names.iter().flat_map(|name| {
        let cluster: Option<ClusterName> = name.parse().ok();
        match cluster.and_then(|it| all.get(&it)) {
            Some(counted) if !counted.is_empty() => {
                counted.iter().map(ToString::to_string).collect()
            }
            _ => vec![name.clone()],
        }
    });
    old.collect()
}

/// Returns the old mesh of each new one: that of its name, else the one with the most of its clusters among those whose
/// names are gone, and rather one that no other new mesh has.
fn meshes<'c>(
    old: &'c [Mesh],
    new: &'c [Mesh],
    now: &CountedClusters<'c>,
) -> BTreeMap<&'c str, &'c str> {
    let is_in = |all: &[Mesh], mesh: &Mesh| all.iter().any(|it| it.name == mesh.name);
    let same = new.iter().filter(|it| is_in(old, it)).map(|it| it.name.as_str());
    let mut meshes: BTreeMap<&str, &str> = same.map(|it| (it, it)).collect();
    let gone: Vec<&Mesh> = old.iter().filter(|it| !is_in(new, it)).collect();
    for mesh in new.iter().filter(|it| !is_in(old, it)) {
        let counted = mesh.all_entries().filter_map(|it| now.get(&it.name)).flatten();
        let counted: BTreeSet<&ClusterName> = counted.copied().collect();
        let common = |it: &Mesh| it.all_entries().filter(|it| counted.contains(&it.name)).count();
        let is_free = |it: &Mesh| meshes.values().all(|used| *used != it.name.as_str());
        let ranked = gone.iter().map(|it| (common(it), is_free(it), it));
        let nearest = ranked.filter(|it| 0 < it.0).max_by_key(|it| (it.0, it.1));
        if let Some((_, _, nearest)) = nearest {
            meshes.insert(mesh.name.as_str(), nearest.name.as_str());
        }
    }
    meshes
}
