//! Links: which clusters a mesh joins, and what they take from each other.

use std::collections::BTreeMap;

use crate::agent::fabric::{Fabric, Site, SiteId, Sites};
use crate::mesh::{Entry, Link, Mesh, Range};
use crate::name::ClusterName;

/// The questions about a fabric.
#[derive(Clone, Copy, Debug)]
pub struct Asked<'a> {
    /// The meshes, which link clusters and limit what they take from each other.
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

    /// Returns the networks that no Peer may take over in `site`, by a mesh.
    pub(super) fn local(mesh: Option<&'a Mesh>, site: &Site) -> &'a [Range] {
        let mut entries = mesh.iter().flat_map(|mesh| &mesh.entries);
        let entry = entries.find(|it| it.name == *site.cluster);
        entry.map_or(&[], |it| &it.local_networks)
    }
}

/// The links between clusters, by both.
#[derive(Clone, Debug)]
pub(super) struct MeshLinks<'a>(Sites<Sites<Option<MeshLink<'a>>>>);

/// A link between two clusters.
#[derive(Clone, Copy, Debug)]
struct MeshLink<'a> {
    mesh: &'a Mesh,
    link: Link,
}

impl<'a> MeshLinks<'a> {
    pub(super) fn new(fabric: &Fabric, asked: Asked<'a>) -> Self {
        let sites = &fabric.sites;
        // Names are looked up once for each cluster and not for each pair.
        let members: Vec<(&Mesh, Sites<Option<&Entry>>)> = asked
            .meshes
            .iter()
            .map(|mesh| {
                let entries: BTreeMap<&ClusterName, &Entry> =
                    mesh.entries.iter().map(|it| (&it.name, it)).collect();
                (mesh, sites.map(|site| entries.get(site.cluster).copied()))
            })
            .collect();
        let between = |one: SiteId, other: SiteId| {
            let mut links = members.iter().filter_map(|(mesh, entries)| {
                let link = mesh.link(entries[one]?, entries[other]?)?;
                Some(MeshLink { mesh, link })
            });
            links.next()
        };
        Self(sites.map_ids(|one| sites.map_ids(|other| between(one, other))))
    }

    /// Returns the mesh by which two clusters exchange Peers.
    pub(super) fn between(&self, one: SiteId, other: SiteId) -> Option<&'a Mesh> {
        let link = self.0[one][other].filter(|it| it.link == Link::Exchange);
        link.map(|it| it.mesh)
    }

    /// Returns how a mesh links two clusters, if one does.
    pub(super) fn kind(&self, one: SiteId, other: SiteId) -> Option<Link> {
        self.0[one][other].map(|it| it.link)
    }
}
