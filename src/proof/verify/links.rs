//! Links: which clusters a mesh joins, and what they take from each other.

use std::collections::BTreeMap;

use super::link_terms::LinkTerms;
use super::promise::Promises;
use crate::agent::fabric::{Fabric, SiteId, Sites};
use crate::expectations::AllowedPaths;
use crate::mesh::{Entry, Link, Mesh};
use crate::name::ClusterName;

/// The questions about a fabric.
#[derive(Clone, Copy, Debug)]
pub struct Asked<'a> {
    /// The meshes, which link clusters and limit what they take from each other.
    pub meshes: &'a [Mesh],
    /// Whether what holds without a promise is to be listed by range.
    pub lists_undeclared: bool,
    /// The undeclared paths that are allowed, if all others are forbidden.
    pub allowed: Option<&'a [AllowedPaths<'a>]>,
}

/// The links between clusters, by both.
#[derive(Clone, Debug)]
pub(super) struct MeshLinks<'a>(Sites<Sites<Option<MeshLink<'a>>>>);

/// A link between two clusters.
#[derive(Clone, Copy, Debug)]
pub(super) struct MeshLink<'a> {
    /// The effect of the link, which depends on whether one of the two is joining or leaving.
    pub(super) kind: Link,
    /// The entry of the first cluster in the mesh that links them.
    near: &'a Entry,
    /// The entry of the second.
    far: &'a Entry,
}

impl<'a> MeshLinks<'a> {
    pub(super) fn new(fabric: &Fabric, meshes: &'a [Mesh]) -> Self {
        let sites = &fabric.sites;
        // Names are looked up once for each cluster and not for each pair.
        let members: Vec<(&Mesh, Sites<Option<&Entry>>)> = meshes
            .iter()
            .map(|mesh| {
                let entries: BTreeMap<&ClusterName, &Entry> =
                    mesh.all_entries().map(|it| (&it.name, it)).collect();
                (mesh, sites.map(|site| entries.get(site.cluster).copied()))
            })
            .collect();
        let between = |one: SiteId, other: SiteId| {
            let mut links = members.iter().filter_map(|(mesh, entries)| {
                let (near, far) = (entries[one]?, entries[other]?);
                let kind = mesh.link(near, far)?;
                Some(MeshLink { kind, near, far })
            });
            links.next()
        };
        Self(sites.map_ids(|one| sites.map_ids(|other| between(one, other))))
    }

    /// Returns the link between two clusters, if a mesh links them.
    pub(super) fn between(&self, one: SiteId, other: SiteId) -> Option<MeshLink<'a>> {
        self.0[one][other]
    }

    /// Returns the link by which two clusters exchange Peers, if there is one.
    pub(super) fn exchange(&self, one: SiteId, other: SiteId) -> Option<MeshLink<'a>> {
        self.between(one, other).filter(|it| it.kind == Link::Exchange)
    }
}

impl<'a> MeshLink<'a> {
    /// Returns the same link from the other cluster.
    pub(super) fn reversed(self) -> Self {
        Self { near: self.far, far: self.near, ..self }
    }

    /// Returns the terms on which the first cluster gives its ranges to the second.
    pub(super) fn terms(self, promises: &'a Promises) -> LinkTerms<'a> {
        LinkTerms::new(promises, self.far)
    }
}
