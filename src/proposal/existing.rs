//! Existing meshes: what an added cluster is compared with.

use std::collections::BTreeMap;

use super::obstacle::{RangePurpose, RangeUse};
use crate::document::{Source, TreeNode, TreeValue};
use crate::kilo::cluster::Cluster;
use crate::kilo::node::KiloNode;
use crate::mesh::{Entry, Mesh, Networks};
use crate::name::ClusterName;
use crate::net::{Cidr, Family, merged, private_network};
use crate::place::Place;
use crate::snapshot::Snapshot;

use super::EndpointAdvice;

/// A mesh to which clusters are added, and everything else that is declared.
#[derive(Clone, Debug, Default)]
pub struct ExistingMesh {
    /// Whether its last entry has one list of ranges for all purposes.
    pub(super) is_flat: bool,
    /// The ranges of its clusters and external peers.
    pub(super) uses: Vec<RangeUse>,
    /// All other ranges that are in use: of other meshes, of LANs, and of endpoints.
    pub(super) avoided: Vec<Cidr>,
    /// The families that its clusters route.
    pub(super) routed: Vec<Family>,
    /// The private networks of its nodes.
    pub(super) networks: Vec<Cidr>,
    /// Its clusters of which no node can be dialled.
    pub(super) undialled: Vec<ClusterName>,
    /// The fields for which it has defaults.
    pub(super) defaults: Vec<&'static str>,
    /// Its document, if there is a mesh.
    document: Option<TreeNode>,
}

impl ExistingMesh {
    /// Reads the mesh that gets the clusters, which is one of `meshes` and written in `source`.
    pub fn new(
        mesh: &Mesh,
        source: &Source,
        meshes: &[Mesh],
        snapshots: &BTreeMap<ClusterName, &Snapshot>,
    ) -> Self {
        let is_flat =
            mesh.entries.last().is_some_and(|it| matches!(it.networks, Networks::Flat { .. }));
        let document = document(source, &mesh.place).cloned();
        let mut existing =
            Self { is_flat, defaults: mesh.defaults.clone(), document, ..Self::default() };
        existing.uses = mesh.all_entries().flat_map(uses).collect();
        for entry in meshes.iter().flat_map(Mesh::all_entries) {
            existing.avoid(entry);
        }
        let externals = meshes.iter().flat_map(|it| &it.externals);
        let endpoints = externals.filter_map(|it| it.endpoint.as_ref()?.address());
        existing.avoided.extend(endpoints.map(Cidr::host));
        for entry in meshes.iter().flat_map(|it| &it.entries) {
            if let Some(snapshot) = snapshots.get(&entry.name) {
                let is_member = mesh.entries.iter().any(|it| it.name == entry.name);
                existing.read(&Cluster::new(entry, snapshot), is_member);
            }
        }
        existing
    }

    /// Returns whether there is no mesh yet.
    pub(super) fn is_none(&self) -> bool {
        self.document.is_none()
    }

    /// Returns a file with the mesh and these entries in it, if there is a mesh.
    pub(super) fn with_entries(&self, entries: &Source) -> Option<Source> {
        let document = self.document.as_ref()?;
        let clusters = document.get("spec")?.get("clusters")?;
        let (TreeValue::Sequence(old), TreeValue::Sequence(new)) =
            (&clusters.value, &entries.documents.first()?.value)
        else {
            return None;
        };
        let all = old.iter().chain(new.iter()).cloned();
        let all = TreeNode { value: TreeValue::Sequence(all.collect()), ..clusters.clone() };
        let mut file = entries.clone();
        file.documents = vec![document.with(&["spec", "clusters"], all)];
        Some(file)
    }

    /// Avoids the ranges that an entry declares.
    fn avoid(&mut self, entry: &Entry) {
        self.avoided.extend(
            entry.networks.all().into_iter().chain(&entry.local_networks).map(|it| it.cidr),
        );
        self.avoided.extend(entry.underlays.iter().flat_map(|it| &it.cidrs).map(|it| it.cidr));
    }

    /// Avoids the network of a node.
    pub(super) fn avoid_node(&mut self, node: &KiloNode) {
        let network = node.internal_address().and_then(private_network);
        self.avoided.extend(node.lan.into_iter().chain(network));
    }

    /// Avoids the addresses of the nodes of a cluster. The family that a member of the mesh routes counts as routed.
    fn read(&mut self, cluster: &Cluster, is_member: bool) {
        for node in &cluster.nodes {
            self.avoid_node(&node.kilo);
            let networks: Vec<Cidr> =
                node.internal_addresses().filter_map(private_network).collect();
            self.avoided.extend(&networks);
            self.avoided.extend(node.endpoints().map(|it| Cidr::host(it.0)));
            if is_member {
                self.networks.extend(networks);
            }
        }
        if is_member {
            self.networks = merged(self.networks.drain(..));
            self.routed.extend(cluster.family);
            if !EndpointAdvice::new(cluster).is_reached() {
                self.undialled.push(cluster.entry.name.clone());
            }
        }
    }
}

/// Returns the mapping of a mesh, which may be an item of a list.
fn document<'s>(source: &'s Source, place: &Place) -> Option<&'s TreeNode> {
    let mut node = source.documents.get(place.document)?;
    for step in place.pointer.steps() {
        node = match &node.value {
            TreeValue::Sequence(items) => items.get(step.parse::<usize>().ok()?)?,
            TreeValue::Mapping(_) | TreeValue::Scalar(_) => node.get(&step)?,
        };
    }
    Some(node)
}

/// Returns the ranges that an entry gives to other clusters.
fn uses(entry: &Entry) -> Vec<RangeUse> {
    let of = |cidr, purpose| RangeUse { cluster: entry.name.clone(), cidr, purpose };
    let given = entry.given();
    let given = given.into_iter().map(|range| {
        let purpose = match &entry.networks {
            Networks::Typed { pods, .. } if pods.contains(range) => RangePurpose::Pods,
            Networks::Typed { wireguard, .. } if wireguard == range => RangePurpose::Wireguard,
            Networks::Typed { .. } | Networks::Flat { .. } => RangePurpose::Declared,
        };
        of(range.cidr, purpose)
    });
    given.collect()
}
