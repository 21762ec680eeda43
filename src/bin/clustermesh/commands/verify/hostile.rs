//! Clusters that a verification takes for hostile.

use std::collections::BTreeSet;

use anyhow::bail;
use clustermesh::agent::fabric::{Fabric, SiteId};
use clustermesh::proof::bounded_list::APART;
use clustermesh::proof::hostile::{Hostile, assume_hostile};

use crate::allowed_losses::without_site;
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
            bail!("--assume-hostile: {}", without_site(inputs, name));
        };
        sites.insert(site);
    }
    let sites: Vec<SiteId> = sites.into_iter().collect();
    Ok(assume_hostile(fabric, &inputs.meshes, &sites, APART))
}
