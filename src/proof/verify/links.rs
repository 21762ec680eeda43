//! Links: which clusters a mesh joins, and what they take from each other.

use std::collections::{BTreeMap, BTreeSet};

use crate::agent::fabric::{Fabric, Site, SiteId, Sites};
use crate::mesh::{Mesh, Range};
use crate::name::ClusterName;

/// What is asked of a fabric.
#[derive(Clone, Copy, Debug)]
pub struct Asked<'a> {
    /// Which clusters are linked, and what they take from each other.
    pub meshes: &'a [Mesh],
    /// The ranges that clusters accept from others, in addition to the limits of their meshes.
    pub accepted: &'a BTreeMap<ClusterName, Vec<Range>>,
    /// Whether what holds without a promise is to be listed by range.
    pub lists_undeclared: bool,
}

impl<'a> Asked<'a> {
    /// Returns the lists in which everything must be that `site` takes by a mesh.
    pub(super) fn accepted(self, mesh: Option<&'a Mesh>, site: &Site) -> Vec<&'a [Range]> {
        let mut entries = mesh.iter().flat_map(|mesh| &mesh.entries);
        let entry = entries.find(|it| it.name == *site.cluster);
        let of_mesh = entry.and_then(|entry| entry.accepted.as_deref());
        let of_config = self.accepted.get(site.cluster).map(Vec::as_slice);
        of_mesh.into_iter().chain(of_config).collect()
    }
}

impl<'a> Asked<'a> {
    /// Returns the networks that no Peer may take over in `site`, by a mesh.
    pub(super) fn local(mesh: Option<&'a Mesh>, site: &Site) -> &'a [Range] {
        let mut entries = mesh.iter().flat_map(|mesh| &mesh.entries);
        let entry = entries.find(|it| it.name == *site.cluster);
        entry.map_or(&[], |it| &it.local_networks)
    }
}

/// The meshes that link clusters, by both.
#[derive(Clone, Debug)]
pub(super) struct MeshLinks<'a>(Sites<Sites<Option<&'a Mesh>>>);

impl<'a> MeshLinks<'a> {
    pub(super) fn of(fabric: &Fabric, asked: Asked<'a>) -> Self {
        let sites = &fabric.sites;
        // Names are looked up once for each cluster and not for each pair.
        let members = asked.meshes.iter().map(|mesh| {
            let names: BTreeSet<&ClusterName> = mesh.entries.iter().map(|it| &it.name).collect();
            (mesh, sites.map(|site| names.contains(site.cluster)))
        });
        let members: Vec<(&Mesh, Sites<bool>)> = members.collect();
        let links = |(mesh, has): &(&Mesh, Sites<bool>), one: SiteId, other: SiteId| {
            let (near, far) = (sites[one].cluster, sites[other].cluster);
            has[one] && has[other] && mesh.topology.links(near, far)
        };
        let between = |one, other| {
            let mut members = members.iter();
            Some(members.find(|it| links(it, one, other))?.0)
        };
        Self(sites.map_ids(|one| sites.map_ids(|other| between(one, other))))
    }

    pub(super) fn between(&self, one: SiteId, other: SiteId) -> Option<&'a Mesh> {
        self.0[one][other]
    }
}
