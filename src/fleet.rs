//! Fleets: all clusters of all meshes with their membership, who is linked to whom, who ranks first.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use crate::id::{Id, Numbered};
use crate::kilo::cluster::Cluster;
use crate::membership::{Membership, membership};
use crate::mesh::{Entry, Link, Mesh, State};
use crate::name::ClusterName;
use crate::net::Family;
use crate::place::Place;
use crate::snapshot::Snapshot;
use crate::wireguard::PublicKey;

mod external;
mod member;

pub use external::external_snapshots;
pub use member::Member;

/// Everything that is planned together.
#[derive(Debug)]
pub struct Fleet<'a> {
    /// Every cluster in every mesh, in order of rank.
    members: Members<Member<'a>>,
    /// Every cluster, and which members it is: none if it only leaves, or joins without a snapshot.
    clusters: BTreeMap<&'a ClusterName, Vec<MemberId>>,
    /// For each cluster, those from which it no longer gets Peers because one of the two leaves.
    parted: BTreeMap<&'a ClusterName, BTreeSet<&'a ClusterName>>,
    /// Usable keys that more than one node of the fleet claims, and who does.
    contested: BTreeMap<PublicKey, Vec<Claimant<'a>>>,
}

/// The clusters of a fleet, each in one mesh.
#[derive(Clone, Copy, Debug, Eq, Hash, Ord, PartialEq, PartialOrd)]
pub enum OfMember {}

/// The number of a member of a fleet, in order of rank.
pub type MemberId = Id<OfMember>;

/// Something about each member of a fleet, in order of rank.
pub type Members<T> = Numbered<OfMember, T>;

/// The order of trust: external peers before clusters, because people write everything about them and no node claims
/// it, then hubs, then the order in which people wrote meshes and clusters.
#[derive(Clone, Copy, Debug, Eq, Ord, PartialEq, PartialOrd)]
pub struct Rank {
    is_cluster: bool,
    is_spoke: bool,
    mesh: usize,
    entry: usize,
}

/// One cluster in one mesh before its nodes are checked. They are independent of each other, so a
/// caller can check several in parallel.
#[derive(Debug)]
pub struct UnreadMember<'a> {
    mesh: &'a Mesh,
    entry: &'a Entry,
    file: &'a SnapshotFile,
    rank: Rank,
}

/// A snapshot, and what its file is called.
#[derive(Clone, Debug)]
pub struct SnapshotFile {
    /// The nodes. Two versions of a fleet share those of a text that is in both.
    pub snapshot: Arc<Snapshot>,
    /// The file, as the shell calls it.
    pub source: Arc<str>,
}

/// A node that claims a key.
#[derive(Debug)]
pub struct Claimant<'a> {
    /// Its cluster.
    pub cluster: &'a ClusterName,
    /// Its name, as it claims.
    pub node: &'a str,
    /// Its place in the snapshot.
    pub place: Place,
}

/// A source of a target.
#[derive(Clone, Copy, Debug)]
pub struct LinkedSource<'f, 'a> {
    /// Its number.
    pub id: MemberId,
    /// The membership in which it is a source.
    pub member: &'f Member<'a>,
    /// The target's own membership in the mesh that links the two.
    pub own: &'f Member<'a>,
}

/// A cluster of a mesh that has no snapshot.
#[derive(Debug)]
pub struct MissingSnapshot {
    /// The cluster.
    pub cluster: ClusterName,
    /// The entry that names it.
    pub place: Place,
}

impl Rank {
    fn new(mesh: &Mesh, mesh_position: usize, entry: &Entry, entry_position: usize) -> Self {
        Self {
            is_cluster: !entry.name.is_external(),
            is_spoke: !mesh.topology.is_hub(&entry.name),
            mesh: mesh_position,
            entry: entry_position,
        }
    }
}

impl<'a> Fleet<'a> {
    /// Joins meshes that were judged together with the snapshots of their clusters.
    ///
    /// # Errors
    /// The clusters without a snapshot, each once.
    pub fn new(
        meshes: &'a [Mesh],
        snapshots: &'a BTreeMap<ClusterName, SnapshotFile>,
    ) -> Result<Self, Vec<MissingSnapshot>> {
        let (unread, missing) = UnreadMember::all(meshes, snapshots);
        if !missing.is_empty() {
            return Err(missing);
        }
        let members = unread.into_iter().map(UnreadMember::member).collect();
        Ok(Self::assemble(meshes, members))
    }

    /// Joins members, in any order. Only of all [`UnreadMember`]s of all meshes can a plan be made.
    pub fn assemble(meshes: &'a [Mesh], mut members: Vec<Member<'a>>) -> Self {
        members.sort_by_key(|member| member.rank);
        let members = Members::new(members);
        let mut clusters: BTreeMap<&ClusterName, Vec<MemberId>> = BTreeMap::new();
        let entries = meshes.iter().flat_map(|mesh| &mesh.entries);
        for entry in entries.filter(|it| it.state != State::Joined) {
            clusters.entry(&entry.name).or_default();
        }
        for (id, member) in members.numbered() {
            clusters.entry(&member.entry.name).or_default().push(id);
        }
        let named = clusters.values().filter_map(|ids| ids.first());
        let contested = contested(named.map(|&id| &members[id]));
        Self { members, clusters, parted: parted(meshes), contested }
    }

    /// Returns every cluster in every mesh, in order of rank.
    pub fn members(&self) -> &Members<Member<'a>> {
        &self.members
    }

    /// Returns the number of a member.
    pub fn id(&self, member: &Member) -> Option<MemberId> {
        self.members.find(|it| it.rank.cmp(&member.rank))
    }

    /// Returns every cluster, by name; each is a target.
    pub fn clusters(&self) -> impl Iterator<Item = &'a ClusterName> {
        self.clusters.keys().copied().filter(|it| !it.is_external())
    }

    /// Returns every external peer, by name.
    pub fn externals(&self) -> impl Iterator<Item = &'a ClusterName> {
        self.clusters.keys().copied().filter(|it| it.is_external())
    }

    /// Returns how many Peers all targets get together, if nothing is cut.
    pub fn peers(&self) -> usize {
        self.clusters()
            .flat_map(|target| self.sources(target))
            .map(|source| source.member.membership.candidates.len())
            .sum()
    }

    /// Returns the memberships of a cluster, the highest ranking first.
    pub fn memberships(&self, cluster: &ClusterName) -> impl Iterator<Item = &Member<'a>> {
        self.clusters.get(cluster).into_iter().flatten().map(|&id| &self.members[id])
    }

    /// Returns the highest ranking membership of each cluster.
    pub fn first_memberships(&self) -> impl Iterator<Item = &Member<'a>> {
        self.first_memberships_of_all().filter(|it| !it.entry.name.is_external())
    }

    /// Returns the highest ranking membership of each cluster and of each external peer.
    pub fn first_memberships_of_all(&self) -> impl Iterator<Item = &Member<'a>> {
        self.clusters.values().filter_map(|ids| ids.first()).map(|&id| &self.members[id])
    }

    /// Returns the sources of a target, in order of rank.
    pub fn sources<'f>(
        &'f self,
        target: &'f ClusterName,
    ) -> impl Iterator<Item = LinkedSource<'f, 'a>> {
        let own: BTreeMap<usize, &Member> =
            self.memberships(target).map(|member| (member.rank.mesh, member)).collect();
        self.members.numbered().filter_map(move |(id, member)| {
            let own = *own.get(&member.rank.mesh)?;
            let is_linked = member.entry.name != *target
                && member.mesh.link(own.entry, member.entry) == Some(Link::Exchange);
            is_linked.then_some(LinkedSource { id, member, own })
        })
    }

    /// Returns the clusters from which `target` no longer gets Peers because one of the two leaves.
    pub fn parted(&self, target: &ClusterName) -> impl Iterator<Item = &'a ClusterName> {
        self.parted.get(target).into_iter().flatten().copied()
    }

    /// Returns who claims `key`, if more than one node of the fleet does.
    pub fn claimants(&self, key: &PublicKey) -> &[Claimant<'a>] {
        self.contested.get(key).map_or(&[], Vec::as_slice)
    }

    /// Returns the claimants of every key that more than one node of the fleet claims, whether they
    /// are left out or not, in order of cluster and node.
    pub fn contested(&self) -> impl Iterator<Item = &[Claimant<'a>]> {
        self.contested.values().map(Vec::as_slice)
    }

    /// Returns the kind of address that `target`'s Kilo can route.
    pub fn family(&self, target: &ClusterName) -> Option<Family> {
        self.memberships(target).next()?.cluster.family
    }

    /// Returns the families of a cluster's declared ranges. If there are two, its nodes show which
    /// of them its Kilo routes.
    pub fn families(&self, cluster: &ClusterName) -> BTreeSet<Family> {
        let member = self.memberships(cluster).next();
        let ranges = member.map(|member| member.entry.networks.all()).into_iter().flatten();
        ranges.map(|range| range.cidr.family()).collect()
    }
}

impl<'a> UnreadMember<'a> {
    /// Returns every cluster of every mesh that has a snapshot, and those that lack one, each once.
    ///
    /// A cluster that leaves needs none, as nothing of its nodes matters any more. One that joins can
    /// be added to the mesh before its first snapshot.
    pub fn all(
        meshes: &'a [Mesh],
        snapshots: &'a BTreeMap<ClusterName, SnapshotFile>,
    ) -> (Vec<Self>, Vec<MissingSnapshot>) {
        let mut unread = Vec::new();
        let mut missing: BTreeMap<&ClusterName, Place> = BTreeMap::new();
        for (mesh_position, mesh) in meshes.iter().enumerate() {
            for (entry_position, entry) in mesh.all_entries().enumerate() {
                let rank = Rank::new(mesh, mesh_position, entry, entry_position);
                if entry.state == State::Leaving {
                    continue;
                }
                if let Some(file) = snapshots.get(&entry.name) {
                    unread.push(Self { mesh, entry, file, rank });
                } else if entry.state == State::Joined && !entry.name.is_external() {
                    let place = || entry.place.key("name");
                    missing.entry(&entry.name).or_insert_with(place);
                }
            }
        }
        let missing = missing
            .into_iter()
            .map(|(cluster, place)| MissingSnapshot { cluster: cluster.clone(), place });
        (unread, missing.collect())
    }

    /// Looks at its nodes.
    pub fn member(self) -> Member<'a> {
        let cluster = Cluster::new(self.entry, &self.file.snapshot);
        let membership = membership(&self.mesh.name, &cluster, &self.file.source);
        self.with(Arc::new(cluster), Arc::new(membership))
    }

    /// Takes what another version of the fleet knows of its nodes, if both have the same snapshot and the
    /// same entry of the same mesh. Otherwise looks at them.
    pub fn member_beside(self, other: &Fleet<'a>) -> Member<'a> {
        let same = other.memberships(&self.entry.name).find(|it| {
            Arc::ptr_eq(&it.file.snapshot, &self.file.snapshot)
                && it.file.source == self.file.source
                && it.mesh.name == self.mesh.name
                && it.entry == self.entry
        });
        match same {
            Some(same) => self.with(Arc::clone(&same.cluster), Arc::clone(&same.membership)),
            None => self.member(),
        }
    }

    fn with(self, cluster: Arc<Cluster<'a>>, membership: Arc<Membership>) -> Member<'a> {
        Member {
            mesh: self.mesh,
            entry: self.entry,
            file: self.file,
            cluster,
            membership,
            rank: self.rank,
        }
    }
}

/// Returns the first entry of each cluster and external peer, in order of rank.
pub fn in_order_of_rank(meshes: &[Mesh]) -> Vec<&Entry> {
    let mut entries: BTreeMap<&ClusterName, (Rank, &Entry)> = BTreeMap::new();
    for (position, mesh) in meshes.iter().enumerate() {
        for (index, entry) in mesh.all_entries().enumerate() {
            let rank = Rank::new(mesh, position, entry, index);
            let first = entries.entry(&entry.name).or_insert((rank, entry));
            first.0 = first.0.min(rank);
        }
    }
    let mut entries: Vec<(Rank, &Entry)> = entries.into_values().collect();
    entries.sort_by_key(|it| it.0);
    entries.into_iter().map(|it| it.1).collect()
}

/// Returns, for each cluster, those from which it no longer gets Peers because one of the two leaves.
fn parted(meshes: &[Mesh]) -> BTreeMap<&ClusterName, BTreeSet<&ClusterName>> {
    let mut parted: BTreeMap<&ClusterName, BTreeSet<&ClusterName>> = BTreeMap::new();
    for mesh in meshes {
        let leaving = mesh.entries.iter().filter(|it| it.state == State::Leaving);
        for leaver in leaving {
            let others = mesh.entries.iter().filter(|it| it.name != leaver.name);
            let others = others.filter(|it| mesh.link(leaver, it) == Some(Link::Ended));
            let externals = mesh.externals.iter().filter(|it| it.clusters.contains(&leaver.name));
            let externals = externals.map(|it| &it.entry);
            for other in others.chain(externals) {
                parted.entry(&leaver.name).or_default().insert(&other.name);
                parted.entry(&other.name).or_default().insert(&leaver.name);
            }
        }
    }
    parted
}

fn contested<'a, 'm>(
    members: impl Iterator<Item = &'m Member<'a>>,
) -> BTreeMap<PublicKey, Vec<Claimant<'a>>>
where
    'a: 'm,
{
    let mut claims = Vec::new();
    for member in members {
        for node in &member.file.snapshot.nodes {
            let text = node.annotations.get(crate::kilo::node::annotation::KEY);
            let bytes = text.and_then(PublicKey::bytes_as_kilo_reads);
            let key = bytes.and_then(|bytes| PublicKey::try_from(bytes).ok());
            claims.extend(key.map(|key| (key, member, node)));
        }
    }
    // Stable, so that of one key the claimants stay in order of cluster and node.
    claims.sort_by_key(|claim| claim.0);
    let alike = claims.chunk_by(|a, b| a.0 == b.0).filter(|it| 1 < it.len());
    alike
        .filter_map(|claims| {
            let claimants = claims.iter().map(|(_, member, node)| Claimant {
                cluster: &member.entry.name,
                node: &node.name,
                place: member.place(node),
            });
            Some((claims.first()?.0, claimants.collect()))
        })
        .collect()
}
