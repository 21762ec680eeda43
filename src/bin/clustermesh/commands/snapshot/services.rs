//! Services: those that meshes name, in a cluster or in a dump of it.

use std::collections::BTreeSet;
use std::path::Path;

use anyhow::{bail, ensure};
use clustermesh::mesh::Mesh;
use clustermesh::name::{ClusterName, ServiceName};
use clustermesh::snapshot::services::{FoundServices, found};
use clustermesh::text::listed;

use super::{dump_name, read_list};
#[cfg(feature = "snapshot")]
use crate::cluster::ServiceNames;
use crate::inputs::services::concerned;

/// The message if there is nothing to save.
pub(super) const NONE: &str = "no mesh names a Service in `spec.services`";

/// Returns the Services of a cluster that meshes name: those that it has, and those that it gets.
///
/// # Errors
/// No mesh names one.
pub(crate) fn named(
    meshes: &[Mesh],
    cluster: &ClusterName,
) -> anyhow::Result<BTreeSet<ServiceName>> {
    let concerned = concerned(meshes);
    ensure!(!concerned.is_empty(), NONE);
    ensure!(
        concerned.contains(cluster),
        "`spec.services` names no Service that `{cluster}` has or gets, only Services of {}",
        listed(concerned.iter().map(|it| format!("`{it}`")))
    );
    Ok(meshes.iter().flat_map(|it| it.services_of(cluster)).cloned().collect())
}

/// Returns the Services of all clusters that have or get any.
#[cfg(feature = "snapshot")]
pub(super) fn all_named(meshes: &[Mesh], clusters: &BTreeSet<&ClusterName>) -> ServiceNames {
    let of = |it: &&ClusterName| Some(((*it).clone(), named(meshes, it).ok()?));
    clusters.iter().filter_map(of).collect()
}

/// Reads the Services of a dump, in which these are expected.
pub(super) fn read_dump(
    dump: &Path,
    names: &BTreeSet<ServiceName>,
) -> anyhow::Result<FoundServices> {
    let found = read_list(dump, "list of Services", found)?;
    // Every cluster has Services in several namespaces.
    let namespaces: BTreeSet<_> = found.keys().map(|it| &it.namespace).collect();
    if let Some(missing) = names.iter().find(|it| !found.contains_key(it))
        && namespaces.len() < 2
    {
        bail!(
            "{} has no Service `{missing}`, but may not list all namespaces; use the output of `kubectl get services \
             -A -o json`",
            dump_name(dump)
        );
    }
    Ok(found)
}
