//! Mistakes between meshes that are each right in itself.

use std::collections::{BTreeMap, BTreeSet};

use crate::diagnostic::{Finding, mistake};
use crate::name::{ClusterName, MeshName, PeerSetName};
use crate::text::and_more;

use super::{Entry, Mesh};

mod agreement;
mod externals;
mod services;
mod overlap_in_route;

/// Returns all that is wrong between meshes of one run.
pub(super) fn check(meshes: &[Mesh]) -> Vec<Finding> {
    let members = MeshMembers::new(meshes);
    let mut findings = duplicate_meshes(meshes);
    findings.extend(linked_twice(meshes, &members));
    findings.extend(agreement::check(&members));
    findings.extend(overlap_in_route::overlaps(meshes, &members));
    findings.extend(externals::check(meshes));
    findings.extend(services::check(meshes));
    findings.extend(colliding_names(meshes));
    findings
}

/// Every cluster with its entry in each mesh, in order.
struct MeshMembers<'a>(BTreeMap<&'a ClusterName, Vec<MeshMember<'a>>>);

/// The entry of a cluster in one mesh.
#[derive(Clone, Copy)]
struct MeshMember<'a> {
    mesh: &'a Mesh,
    /// The index of its mesh.
    index: usize,
    entry: &'a Entry,
    /// The index of the entry in its mesh.
    position: usize,
}

impl<'a> MeshMembers<'a> {
    fn new(meshes: &'a [Mesh]) -> Self {
        let mut members: BTreeMap<&ClusterName, Vec<MeshMember>> = BTreeMap::new();
        for (index, mesh) in meshes.iter().enumerate() {
            for (position, entry) in mesh.entries.iter().enumerate() {
                members.entry(&entry.name).or_default().push(MeshMember {
                    mesh,
                    index,
                    entry,
                    position,
                });
            }
        }
        Self(members)
    }

    /// Returns the clusters in more than one mesh, with each entry.
    fn shared(&self) -> impl Iterator<Item = (&'a ClusterName, &[MeshMember<'a>])> {
        self.0
            .iter()
            .filter(|(_, members)| 1 < members.len())
            .map(|(name, members)| (*name, members.as_slice()))
    }

    fn is_shared(&self, cluster: &ClusterName) -> bool {
        self.0.get(cluster).is_some_and(|members| 1 < members.len())
    }
}

/// Peers are not namespaced, so neither are the names of meshes.
fn duplicate_meshes(meshes: &[Mesh]) -> Vec<Finding> {
    let mut first: BTreeMap<&MeshName, &Mesh> = BTreeMap::new();
    let mut findings = Vec::new();
    for mesh in meshes {
        let name_of = |mesh: &Mesh| mesh.place.key("metadata").key("name");
        match first.get(&mesh.name) {
            None => {
                first.insert(&mesh.name, mesh);
            }
            Some(earlier) => {
                let message = format!("duplicate mesh name `{}`", mesh.name);
                let help = "delete one of the two if it is a copy; otherwise rename it: Peers are cluster-scoped, and \
                    their names begin with the mesh's name";
                findings.push(
                    Finding::new(&mistake::DUPLICATE_NAME, message)
                        .at_both(name_of(mesh), name_of(earlier))
                        .help(help),
                );
            }
        }
    }
    findings
}

/// Returns, for each two meshes, one pair of clusters that both of them link.
fn linked_twice(meshes: &[Mesh], members: &MeshMembers) -> Vec<Finding> {
    let mut first: BTreeMap<(&ClusterName, &ClusterName), Linked> = BTreeMap::new();
    let mut found: BTreeMap<(usize, usize), Twice> = BTreeMap::new();
    for (index, mesh) in meshes.iter().enumerate() {
        for (one, other) in shared_links(mesh, members) {
            let pair = if one.name < other.name {
                (&one.name, &other.name)
            } else {
                (&other.name, &one.name)
            };
            let later = Linked { index, mesh, entry: other };
            let Some(earlier) = first.get(&pair) else {
                first.insert(pair, later);
                continue;
            };
            if earlier.mesh.name != mesh.name {
                let twice = found.entry((index, earlier.index));
                twice.and_modify(|twice| twice.more += 1).or_insert(Twice {
                    pair,
                    later,
                    earlier: *earlier,
                    more: 0,
                });
            }
        }
    }
    found.into_values().map(|twice| twice.finding()).collect()
}

/// A link of a mesh, by its later end.
#[derive(Clone, Copy)]
struct Linked<'a> {
    index: usize,
    mesh: &'a Mesh,
    entry: &'a Entry,
}

/// A link that two meshes have, and how many more they have in common.
struct Twice<'a> {
    pair: (&'a ClusterName, &'a ClusterName),
    later: Linked<'a>,
    earlier: Linked<'a>,
    more: usize,
}

impl Twice<'_> {
    fn finding(&self) -> Finding {
        let (one, other) = self.pair;
        let (again, before) = (&self.later.mesh.name, &self.earlier.mesh.name);
        let more = and_more(self.more, "pair");
        let message =
            format!("meshes `{before}` and `{again}` both link `{one}` and `{other}`{more}");
        let name = |it: &Linked| it.entry.place.key("name");
        Finding::new(&mistake::LINKED_TWICE, message)
            .at_both(name(&self.later), name(&self.earlier))
    }
}

/// Returns the links of a mesh whose both ends are in other meshes too.
fn shared_links<'a>(
    mesh: &'a Mesh,
    members: &MeshMembers,
) -> impl Iterator<Item = (&'a Entry, &'a Entry)> {
    let shared: Vec<&Entry> =
        mesh.entries.iter().filter(|entry| members.is_shared(&entry.name)).collect();
    let pairs: Vec<(&Entry, &Entry)> = shared
        .iter()
        .enumerate()
        .flat_map(|(index, one)| shared.iter().skip(index + 1).map(move |other| (*one, *other)))
        .collect();
    pairs.into_iter().filter(|(one, other)| mesh.topology.links(&one.name, &other.name))
}

/// An entry, and the name that its Peers begin with.
struct NamedEntry<'a> {
    name: PeerSetName,
    mesh: &'a Mesh,
    entry: &'a Entry,
}

/// Returns the clusters whose Peers and files could get the names of another's.
fn colliding_names(meshes: &[Mesh]) -> Vec<Finding> {
    let entries: Vec<NamedEntry> = meshes
        .iter()
        .flat_map(|mesh| {
            mesh.all_entries().map(move |entry| NamedEntry {
                name: mesh.peer_set_name(&entry.name),
                mesh,
                entry,
            })
        })
        .collect();
    let mut known: BTreeMap<&str, Vec<usize>> = BTreeMap::new();
    for (index, it) in entries.iter().enumerate() {
        known.entry(it.name.as_str()).or_default().push(index);
    }
    let mut pairs = BTreeSet::new();
    for (index, it) in entries.iter().enumerate() {
        for other in beginnings(it.name.as_str())
            .filter_map(|text| known.get(text))
            .flatten()
            .filter(|other| **other != index)
        {
            pairs.insert((index.max(*other), index.min(*other)));
        }
    }
    pairs
        .into_iter()
        .filter_map(|(later, earlier)| Some((entries.get(later)?, entries.get(earlier)?)))
        // Two meshes of one name are reported already.
        .filter(|(later, earlier)| {
            later.mesh.name != earlier.mesh.name || later.name != earlier.name
        })
        .map(|(later, earlier)| collision(later, earlier))
        .collect()
}

/// Returns a name and everything in it that stands before `--`.
fn beginnings(name: &str) -> impl Iterator<Item = &str> {
    let cuts =
        (0..name.len()).filter(|cut| name.get(*cut..).is_some_and(|rest| rest.starts_with("--")));
    cuts.filter_map(|cut| name.get(..cut)).chain([name])
}

fn collision(later: &NamedEntry, earlier: &NamedEntry) -> Finding {
    let message =
        format!("Peers of `{}` and of `{}` could get the same name", later.name, earlier.name);
    Finding::new(&mistake::DUPLICATE_NAME, message)
        .at(later.entry.place.key("name"), "")
        .at(earlier.entry.place.key("name"), "")
        .help(
            "rename a mesh or a cluster so that no name begins with another name followed by \
            `--`",
        )
}

#[cfg(test)]
mod tests {
    use crate::mesh::tests::{mesh, report};

    #[test]
    fn meshes_have_names_of_their_own() {
        let one = mesh("m", &["a: 10.0.0.0/16", "b: 10.1.0.0/16"]);
        let two = mesh("m", &["c: 10.2.0.0/16", "d: 10.3.0.0/16"]);
        insta::assert_snapshot!(report(&format!("{one}---\n{two}")), @"
        error[duplicate-name]: duplicate mesh name `m`
          11:19 | m | second here
          3:19 | m | first here
          help: delete one of the two if it is a copy; otherwise rename it: Peers are cluster-scoped, and their names begin with the mesh's name
        ");
    }

    #[test]
    fn a_pair_is_linked_once() {
        let one = mesh("m", &["a: 10.0.0.0/16", "b: 10.1.0.0/16", "c: 10.2.0.0/16"]);
        let two = one.replace("name: m", "name: k");
        insta::assert_snapshot!(report(&format!("{one}---\n{two}")), @"
        error[linked-twice]: meshes `m` and `k` both link `a` and `b` (and 2 more pairs)
          16:15 | b | second here
          7:15 | b | first here
        ");
    }

    #[test]
    fn a_pair_that_one_mesh_keeps_apart_may_be_linked_by_another() {
        let one = mesh("m", &["a: 10.0.0.0/16", "b: 10.1.0.0/16", "hub: 10.2.0.0/16"]);
        let one = format!("{one}  topology: {{ mode: Hub, hubs: [hub] }}\n");
        let two = mesh("k", &["b: 10.1.0.0/16", "a: 10.0.0.0/16"]);
        assert_eq!(report(&format!("{one}---\n{two}")), "");
    }

    #[test]
    fn names_of_peers_cannot_collide() {
        let one = mesh("m", &["a: 10.0.0.0/16", "a--b: 10.1.0.0/16"]);
        let two = mesh("m--a", &["b: 10.2.0.0/16", "c-d: 10.3.0.0/16"]);
        insta::assert_snapshot!(report(&format!("{one}---\n{two}")), @r"
        error[duplicate-name]: Peers of `m--a--b` and of `m--a` could get the same name
          7:15 | a--b
          6:15 | a
          help: rename a mesh or a cluster so that no name begins with another name followed by `--`
        error[duplicate-name]: Peers of `m--a--b` and of `m--a` could get the same name
          14:15 | b
          6:15 | a
          help: rename a mesh or a cluster so that no name begins with another name followed by `--`
        error[duplicate-name]: Peers of `m--a--b` and of `m--a--b` could get the same name
          14:15 | b
          7:15 | a--b
          help: rename a mesh or a cluster so that no name begins with another name followed by `--`
        error[duplicate-name]: Peers of `m--a--c-d` and of `m--a` could get the same name
          15:15 | c-d
          6:15 | a
          help: rename a mesh or a cluster so that no name begins with another name followed by `--`
        ");
    }
}
