//! What a comparison of two versions promises, for any two of them.

use std::cell::Cell;
use std::sync::Arc;

use clustermesh::agent::applied::{Applied, AppliedFile, Content};
use clustermesh::agent::fabric::{At, Fabric, Site};
use clustermesh::changes::{self, Changes, Delivery, Engine, Grade, Version};
use clustermesh::config::Capacity;
use clustermesh::mesh::Mesh;
use clustermesh::net::Family;
use clustermesh::net::prefixes::Span;
use clustermesh::packet::{Packet, Session};
use clustermesh::proof::reach::address_blocks;
use clustermesh::proof::verify::Asked;
use clustermesh::snapshot::Node;
use proptest::sample::select;
use proptest::test_runner::TestRunner;

use super::*;

/// Two versions of a world: the second has other claims of some nodes, some nodes more, or fewer.
fn versions() -> impl Strategy<Value = (World, World)> {
    let edits = proptest::collection::vec(
        (
            any::<Index>(),
            any::<Index>(),
            select(vec![0, 1, 1, 1, 1, 2, 3, 4]),
        ),
        1..3,
    );
    (world(), world(), edits).prop_map(|(before, other, edits)| {
        let mut after = before.clone();
        for (cluster, node, kind) in edits {
            let cluster = cluster.index(after.clusters.len());
            let nodes = &mut after.clusters[cluster].nodes;
            let others = other.clusters.get(cluster).map_or(&[][..], |it| &it.nodes);
            edit(cluster, nodes, others, (node, kind));
        }
        (before, after)
    })
}

fn edit(cluster: usize, nodes: &mut Vec<Claims>, others: &[Claims], (index, kind): (Index, i32)) {
    if nodes.is_empty() {
        nodes.extend(others.iter().cloned());
        return;
    }
    let place = index.index(nodes.len());
    match kind {
        0 => drop(nodes.remove(place)),
        1 => {
            // A node more, with values of its own.
            let number = 50 + nodes.len();
            nodes.push(Claims {
                name: format!("zz-{number}"),
                pods: vec![format!("10.{cluster}.{number}.0/24")],
                wireguard: Some(format!("100.64.{cluster}.{number}/16")),
                key: Some(100 + 10 * cluster + nodes.len()),
                endpoint: Some(format!("198.51.{cluster}.{number}:51820")),
                kilo_endpoint: None,
                internal: None,
                addresses: Vec::new(),
                leads: false,
                stale: false,
                ..nodes[place].clone()
            });
        }
        2 => nodes[place].key = Some(120 + place),
        3 => nodes[place].endpoint = Some(format!("198.51.9.{place}:51820")),
        _ => {
            let other = index.index(nodes.len() + 1).min(nodes.len() - 1);
            let (one, two) = (nodes[place].key, nodes[other].key);
            (nodes[place].key, nodes[other].key) = (two, one);
        }
    }
}

/// All nodes of these answer streams in one direction.
fn with_keepalives(mut nodes: Vec<Node>) -> Vec<Node> {
    for node in &mut nodes {
        let key = "kilo.squat.ai/persistent-keepalive".to_owned();
        node.annotations.insert(key, "25".to_owned());
    }
    nodes
}

/// A version with everything that it is read from.
struct Rendered {
    meshes: Vec<Mesh>,
    snapshots: Snapshots,
    files: BTreeMap<String, Vec<AppliedFile>>,
}

impl Rendered {
    fn new(world: &World) -> Self {
        let names: Vec<String> = (0..world.clusters.len()).map(name).collect();
        let nodes = names.iter().zip(&world.clusters).map(|(name, cluster)| {
            let nodes = cluster.nodes.iter().map(node).collect();
            (name.as_str(), with_keepalives(nodes))
        });
        let (meshes, snapshots): (_, Snapshots) =
            (meshes(&mesh(world)), snapshots(nodes.collect()));
        let fleet = Fleet::new(&meshes, &snapshots).unwrap();
        let tree = manifest::tree(&plan::plan(&fleet).unwrap()).unwrap();
        drop(fleet);
        let mut files: BTreeMap<String, Vec<AppliedFile>> = BTreeMap::new();
        for (path, text) in tree.iter().filter(|(path, _)| !is_kustomization(path)) {
            let (target, _) = path.split_once('/').unwrap();
            let file = AppliedFile::read(&path.as_str().into(), &text.to_string().as_str().into());
            files.entry(target.to_owned()).or_default().push(file);
        }
        Self {
            meshes,
            snapshots,
            files,
        }
    }

    /// Joins its clusters, each with its own Peers or with others.
    fn fabric<'a>(&'a self, others: &'a Self, has_others: impl Fn(usize) -> bool) -> Fabric<'a> {
        let entries = self.meshes.iter().flat_map(|it| &it.entries).enumerate();
        let sites = entries.map(|(number, entry)| {
            let files = if has_others(number) {
                &others.files
            } else {
                &self.files
            };
            let files = files
                .get(entry.name.as_str())
                .map_or(&[][..], Vec::as_slice);
            Site::new(entry, &self.snapshots[&entry.name].snapshot, files)
        });
        Fabric::new(sites.collect())
    }
}

fn compared(before: &Rendered, after: &Rendered, applied_by: Option<Engine>) -> Changes {
    let accepted = BTreeMap::new();
    let old = Fleet::new(&before.meshes, &before.snapshots).unwrap();
    let new = Fleet::new(&after.meshes, &after.snapshots).unwrap();
    let (was, is) = (
        before.fabric(before, |_| false),
        after.fabric(after, |_| false),
    );
    let asked = |meshes| Asked {
        meshes,
        accepted: &accepted,
        lists_undeclared: false,
    };
    let delivery = Delivery {
        applied_by,
        capacity: &Capacity::default(),
        foreign: &[],
    };
    changes::compare(
        &Version {
            fleet: Some(&old),
            fabric: &was,
            asked: asked(&before.meshes),
        },
        &Version {
            fleet: Some(&new),
            fabric: &is,
            asked: asked(&after.meshes),
        },
        &delivery,
    )
}

/// Follows packets between every two blocks of different clusters, and returns those that are answered. In
/// a block, the addresses count at which another block or a Peer's range begins or ends.
fn held(fabric: &Fabric) -> BTreeSet<(String, String)> {
    let mut held = BTreeSet::new();
    let blocks = fabric.sites.map(|site| address_blocks(site));
    let mut bounds: BTreeSet<(Family, u128)> = BTreeSet::new();
    let mut bound = |it: Span| bounds.extend([(it.family, it.first), (it.family, it.last)]);
    blocks.iter().flatten().for_each(|it| bound(it.span));
    for site in fabric.sites.iter() {
        for peer in site.files.iter().flat_map(|it| &it.content.peers) {
            let ranges = peer.spec.iter().flat_map(|it| &it.allowed_ips);
            ranges.for_each(|it| bound(Span::new(it.interface.network)));
        }
    }
    let addresses = |span: Span| {
        let ends = (span.family, span.first)..=(span.family, span.last);
        let addresses = bounds.range(ends).map(move |it| Span {
            first: it.1,
            ..span
        });
        addresses.map(Span::first_address).take(6)
    };
    for (from, senders) in blocks.numbered() {
        for (sender, node) in senders.iter().filter_map(|it| Some((it, it.owner.node()?))) {
            for (to, receivers) in blocks.numbered().filter(|it| it.0 != from) {
                let receivers = receivers.iter();
                for receiver in receivers.filter(|it| it.span.family == sender.span.family) {
                    for source in addresses(sender.span) {
                        for destination in addresses(receiver.span) {
                            let trace = fabric.exchange(Packet {
                                from: At { site: from, node },
                                source,
                                to: receiver.owner.goal(to),
                                destination,
                                session: Session::New,
                            });
                            if trace.ending().is_delivered() {
                                held.insert((
                                    format!("{from:?} {:?} {source}", sender.owner),
                                    format!("{to:?} {:?} {destination}", receiver.owner),
                                ));
                            }
                        }
                    }
                }
            }
        }
    }
    held
}

fn peers_of(files: &[AppliedFile]) -> BTreeMap<&str, &Applied> {
    let peers = files.iter().flat_map(|it| &it.content.peers);
    peers.map(|it| (it.name.as_str(), it)).collect()
}

/// The clusters take their new Peers in any order, and each of them a part after the other. What is graded
/// additive loses no path that holds with the old Peers in any of these states, and what is graded brief
/// loses none with whole versions. What is graded none has equal Peers.
#[test]
fn no_state_is_worse_than_its_grade() {
    let config = ProptestConfig {
        cases: 60,
        max_shrink_iters: 200,
        failure_persistence: None,
        ..ProptestConfig::default()
    };
    let (states, additive) = (Cell::new(0), Cell::new(0));
    let checked = TestRunner::new(config).run(&versions(), |(before, after)| {
        let (before, after) = (Rendered::new(&before), Rendered::new(&after));
        let grade = compared(&before, &after, None).grade();
        if grade == Grade::None {
            prop_assert!(have_equal_peers(&before, &after));
        }
        if Grade::Brief < grade {
            return Ok(());
        }
        let now = held(&after.fabric(&before, |_| true));
        let is_kept = |between: &Fabric| {
            states.set(states.get() + 1);
            let between = held(between);
            let lost: Vec<_> = now.difference(&between).collect();
            prop_assert!(lost.is_empty(), "{grade:?}: {lost:?}");
            Ok(())
        };
        let clusters = after.meshes[0].entries.len();
        for state in 0..1usize << clusters {
            let is_old = |number: usize| state >> number & 1 == 1;
            is_kept(&after.fabric(&before, is_old))?;
        }
        if grade == Grade::Additive {
            additive.set(additive.get() + 1);
            for part in 0..4 {
                let partly = partly(&before, &after, part);
                is_kept(&partly.fabric(&partly, |_| false))?;
            }
        }
        Ok(())
    });
    checked.unwrap();
    assert!(
        100 < states.get() && 2 < additive.get(),
        "{states:?} {additive:?}"
    );
}

/// A version that is built beside another one, and shares the tables that are the same, is as if it was
/// built alone. So is a cluster with the Peers of the other version.
#[test]
fn tables_are_shared_only_if_they_are_the_same() {
    let config = ProptestConfig {
        cases: 60,
        failure_persistence: None,
        ..ProptestConfig::default()
    };
    let (shared, others) = (Cell::new(0), Cell::new(0));
    let checked = TestRunner::new(config).run(&versions(), |(before, after)| {
        let (before, after) = (Rendered::new(&before), Rendered::new(&after));
        let was = before.fabric(&before, |_| false);
        let is = after.fabric(&after, |_| false);
        let has_old = after.fabric(&before, |_| true);
        for (old, new) in was.sites.iter().zip(is.sites.iter()) {
            let beside = Site::with_reading(Arc::clone(&new.reading), new.files, Some(old));
            prop_assert_eq!(format!("{beside:?}"), format!("{new:?}"));
            let is_shared = Arc::ptr_eq(&beside.model.tunnels, &old.model.tunnels);
            let count = if is_shared { &shared } else { &others };
            count.set(count.get() + 1);
        }
        for (old, new) in has_old.sites.iter().zip(is.sites.iter()) {
            let with_old = new.with_files(old.files);
            prop_assert_eq!(format!("{with_old:?}"), format!("{old:?}"));
        }
        Ok(())
    });
    checked.unwrap();
    assert!(
        20 < shared.get() && 20 < others.get(),
        "{shared:?} {others:?}"
    );
}

fn have_equal_peers(before: &Rendered, after: &Rendered) -> bool {
    after.snapshots.keys().all(|cluster| {
        let of = |version: &'_ Rendered| {
            let files = version.files.get(cluster.as_str());
            files.cloned().unwrap_or_default()
        };
        let (old, new) = (of(before), of(after));
        let (old, new) = (peers_of(&old), peers_of(&new));
        old.keys().eq(new.keys()) && old.iter().all(|(name, it)| new[name].spec == it.spec)
    })
}

/// Returns the new version with every other change of a Peer.
fn partly(before: &Rendered, after: &Rendered, part: usize) -> Rendered {
    let mut files = BTreeMap::new();
    for cluster in after.snapshots.keys() {
        let of = |version: &Rendered| {
            version
                .files
                .get(cluster.as_str())
                .cloned()
                .unwrap_or_default()
        };
        let (old, new) = (of(before), of(after));
        let (old, new) = (peers_of(&old), peers_of(&new));
        let names: BTreeSet<&str> = old.keys().chain(new.keys()).copied().collect();
        let peers = names.into_iter().enumerate().filter_map(|(number, name)| {
            let is_new = (number >> (part / 2)) % 2 == part % 2;
            let version = if is_new { &new } else { &old };
            version.get(name).map(|it| (*it).clone())
        });
        let content = Content {
            peers: peers.collect(),
            others: Vec::new(),
        };
        let file = AppliedFile {
            source: "peers.yaml".into(),
            content: Arc::new(content),
        };
        files.insert(cluster.to_string(), vec![file]);
    }
    let nodes = after.snapshots.iter();
    let nodes = nodes.map(|(name, file)| (name.as_str(), file.snapshot.nodes.clone()));
    Rendered {
        meshes: after.meshes.clone(),
        snapshots: snapshots(nodes.collect()),
        files,
    }
}
