//! Services: those that meshes name, in a cluster or in a dump of it.

use std::collections::BTreeSet;
use std::path::Path;

use anyhow::{bail, ensure};
use clustermesh::mesh::Mesh;
use clustermesh::name::{ClusterName, ServiceName};
use clustermesh::snapshot::services::{FoundServices, found};

use super::{dump_name, read_list};
#[cfg(feature = "snapshot")]
use crate::cluster::ServiceNames;

/// Returns the Services of a cluster that meshes name: those that it has, and those that it gets.
///
/// # Errors
/// No mesh names one.
pub(crate) fn named(
    meshes: &[Mesh],
    cluster: &ClusterName,
) -> anyhow::Result<BTreeSet<ServiceName>> {
    let services = meshes.iter().flat_map(|it| it.services_of(cluster));
    let services: BTreeSet<ServiceName> = services.cloned().collect();
    ensure!(
        !services.is_empty(),
        "`spec.services` of the meshes names no Service that `{cluster}` has or gets"
    );
    Ok(services)
}

/// Returns the Services of all clusters that have any.
///
/// # Errors
/// No mesh names one.
#[cfg(feature = "snapshot")]
pub(super) fn all_named(
    meshes: &[Mesh],
    clusters: &BTreeSet<&ClusterName>,
) -> anyhow::Result<ServiceNames> {
    let of = |it: &&ClusterName| Some(((*it).clone(), named(meshes, it).ok()?));
    let all: ServiceNames = clusters.iter().filter_map(of).collect();
    ensure!(
        !all.is_empty(),
        "no mesh names a Service in `spec.services`"
    );
    Ok(all)
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
