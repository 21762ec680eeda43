//! How many packets a proof follows on the networks that exist: the same on every machine, however fast
//! it is.

use super::*;
use clustermesh::proof::verify::{Asked, Tally, Verification, verify};
use clustermesh::snapshot::Snapshot;

use fleet::{Lan, Layout, Shape};

#[allow(dead_code, reason = "the benchmarks write to disk and print")]
#[path = "../../../../benches/fleet.rs"]
mod fleet;
#[path = "../../../../benches/random.rs"]
mod random;

/// The most packets that are followed for an ordered pair of clusters.
const LIMIT: u64 = 50;

/// Small enough for a test and with more pairs of nodes than [`LIMIT`]: who follows one for each is found
/// out.
const FULL: Layout = Layout::Full {
    clusters: 7,
    nodes: 12,
};
const HUB: Layout = Layout::Hub {
    nodes: 12,
    spokes: 8,
    each: 9,
};

/// Renders a fleet and verifies it; returns the packets followed for each ordered pair of clusters too.
fn verified(shape: Shape) -> (Verification, u64) {
    verified_from(shape, &snapshots_of(shape, |_, _| {}))
}

fn verified_from(shape: Shape, snapshots: &Snapshots) -> (Verification, u64) {
    let meshes = meshes(&shape.mesh().to_string());
    let tree = support::tree(&meshes, snapshots);
    let texts: Vec<(Arc<str>, Arc<str>)> = tree
        .iter()
        .filter(|(path, _)| !path.ends_with("kustomization.yaml"))
        .map(|(path, text)| (path.as_str().into(), text.to_string().into()))
        .collect();
    let mut files: BTreeMap<ClusterName, Vec<AppliedFile>> = BTreeMap::new();
    for file in AppliedFile::read_all(&texts) {
        let (cluster, _) = file.source.split_once('/').unwrap();
        files
            .entry(cluster.parse().unwrap())
            .or_default()
            .push(file);
    }
    let sites = meshes[0].entries.iter().map(|entry| {
        let snapshot = &snapshots[&entry.name].snapshot;
        Site::new(entry, snapshot, &files[&entry.name])
    });
    let fabric = Fabric::new(sites.collect());
    let asked = Asked {
        meshes: &meshes,
        accepted: &BTreeMap::new(),
        lists_undeclared: false,
    };
    let verification = verify(&Reach::new(&fabric), asked);
    let pairs = u64::from(shape.clusters() * (shape.clusters() - 1));
    (verification, fabric.followed() / pairs)
}

/// The snapshots of a fleet, with a change to each node by its place in its cluster.
fn snapshots_of(shape: Shape, change: impl Fn(usize, &mut Node)) -> Snapshots {
    let all = shape.snapshots();
    let nodes = all.iter().map(|(name, snapshot)| {
        let text = snapshot.to_string();
        let mut read = Snapshot::read(&name.parse().unwrap(), &text).unwrap();
        for (place, node) in read.nodes.iter_mut().enumerate() {
            change(place, node);
        }
        (name.as_str(), read.nodes)
    });
    snapshots(nodes.collect())
}

fn shape(layout: Layout, lan: Lan) -> Shape {
    Shape {
        lan,
        ..Shape::new(layout)
    }
}

/// Holds a shape against the limit.
fn is_fast(shape: Shape) -> Tally {
    let (verification, followed) = verified(shape);
    let total = verification.total();
    assert!(verification.holds(), "{shape}: {total:?}");
    assert!(0 < total.promised, "{shape}");
    assert!(followed <= LIMIT, "{shape}: {followed} packets a pair");
    total
}

/// Holds a shape against the limit, and against the same with a LAN for each cluster: as no mesh declares
/// the LANs, it does not matter whose they are.
fn is_fast_beside_its_twin(shape: Shape) {
    let total = is_fast(shape);
    let twin = Shape {
        lan: Lan::Own,
        ..shape
    };
    assert_eq!(total, is_fast(twin), "{shape}");
}

#[test]
fn the_same_lan_everywhere_takes_few_packets() {
    is_fast_beside_its_twin(shape(FULL, Lan::SharedBy(7)));
}

#[test]
fn a_lan_for_every_three_clusters_takes_few_packets() {
    is_fast_beside_its_twin(shape(FULL, Lan::SharedBy(3)));
}

#[test]
fn a_shared_lan_with_dual_stack_takes_few_packets() {
    is_fast_beside_its_twin(Shape {
        is_dual_stack: true,
        ..shape(FULL, Lan::SharedBy(7))
    });
}

#[test]
fn a_shared_lan_with_three_locations_takes_few_packets() {
    is_fast_beside_its_twin(Shape {
        locations: 3,
        ..shape(FULL, Lan::SharedBy(7))
    });
}

#[test]
fn lans_by_location_take_few_packets() {
    is_fast_beside_its_twin(Shape {
        locations: 3,
        ..shape(FULL, Lan::ByLocation)
    });
}

#[test]
fn spokes_that_are_not_linked_take_few_packets() {
    is_fast_beside_its_twin(shape(HUB, Lan::SharedBy(9)));
    is_fast(Shape::new(HUB));
}

/// A third of the nodes are dialled at IPv6 addresses, and half of them show one.
#[test]
fn families_that_some_nodes_do_not_show_take_few_packets() {
    for layout in [FULL, HUB] {
        let shape = Shape::new(layout);
        let snapshots = snapshots_of(shape, |place, node| {
            if place % 2 == 0 {
                let address = format!("2001:db8::{place}");
                node.addresses.push(Address {
                    address,
                    kind: AddressKind::ExternalIP,
                });
            }
            if place % 3 == 0 {
                let endpoint = format!("[2001:db8:1::{place}]:51820");
                let key = "kilo.squat.ai/clustermesh-endpoint".to_owned();
                node.annotations.insert(key, endpoint);
            }
        });
        let (verification, followed) = verified_from(shape, &snapshots);
        let total = verification.total();
        assert!(verification.holds(), "{shape}: {total:?}");
        assert!(0 < total.kept && 0 < total.assumed, "{shape}: {total:?}");
        assert_eq!(total.kept + total.assumed, total.promised, "{shape}");
        assert!(followed <= LIMIT, "{shape}: {followed} packets a pair");
    }
}
