//! Clusters that a verification takes for hostile.

use std::collections::BTreeSet;

use anyhow::bail;
use clustermesh::agent::fabric::{Fabric, SiteId};
use clustermesh::diagnostic::Quoted;
use clustermesh::mesh::Mesh;
use clustermesh::name::ClusterName;
use clustermesh::proof::bounded_list::APART;
use clustermesh::proof::hostile::{Hostile, assume_hostile};

use crate::allowance::unknown_cluster;
use crate::inputs::Inputs;

/// Finds what each of the clusters of these names could do, in their own order.
///
/// # Errors
/// The cluster does not exist, or its keys are unknown because it has no snapshot.
pub(super) fn read(
    inputs: &Inputs,
    fabric: &Fabric,
    names: &[String],
) -> anyhow::Result<Vec<Hostile>> {
    let mut sites = BTreeSet::new();
    for name in names {
        let Some(site) = fabric.site_named(name) else {
            bail!("--assume-hostile: {}", unknown(inputs, name));
        };
        sites.insert(site);
    }
    let sites: Vec<SiteId> = sites.into_iter().collect();
    Ok(assume_hostile(fabric, &inputs.meshes, &sites, APART))
}

/// Returns the error about a cluster without a site.
pub(super) fn unknown(inputs: &Inputs, name: &str) -> String {
    let entries = inputs.meshes.iter().flat_map(Mesh::all_entries);
    let known: BTreeSet<&str> = entries
        .map(|it| &it.name)
        .map(ClusterName::as_str)
        .collect();
    let shown = Quoted(name);
    if known.contains(name) {
        return format!("{shown} has no snapshot; run `clustermesh snapshot`");
    }
    unknown_cluster(name, known.iter().copied()).to_string()
}
