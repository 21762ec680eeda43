//! How many packets a proof follows on the networks that exist: the same on every machine, however fast
//! it is.

use std::fmt::Write as _;

use super::*;
use clustermesh::document::Source;
use clustermesh::mesh;
use clustermesh::proof::bounded_list::{APART, BoundedList, Kinded};
use clustermesh::proof::hostile::{Breach, Relay, RelayKind, WhoseKind, assume_hostile};
use clustermesh::proof::verify::{Asked, LeakedRange, Tally, Verification, verify, verify_sound};
use clustermesh::snapshot::Snapshot;

use crate::support::applied::{AppliedFiles, applied, site};
use crate::support::shape::{Lan, Layout, Shape};

/// The most packets that are followed for an ordered pair of clusters.
const LIMIT: u64 = 50;

/// Small enough for a test and with more pairs of nodes than [`LIMIT`]: who follows one for each is found
/// out.
const FULL: Layout = Layout::Full { clusters: 7, nodes: 12 };
const HUB: Layout = Layout::Hub { nodes: 12, spokes: 8, each: 9 };

/// Renders a fleet and verifies it; returns the packets followed for each ordered pair of clusters too.
fn verified(shape: Shape) -> (Verification, u64) {
    verified_from(shape, &snapshots_of(shape, |_, _| {}))
}

fn verified_from(shape: Shape, snapshots: &Snapshots) -> (Verification, u64) {
    let meshes = meshes(&shape.mesh().to_string());
    let tree = files(&meshes, snapshots);
    let fabric = fabric(&meshes, snapshots, &tree);
    let verification = verify(&Reach::new(&fabric, u64::MAX), asked(&meshes));
    let pairs = u64::from(shape.clusters() * (shape.clusters() - 1));
    (verification, fabric.followed() / pairs)
}

/// What each cluster gets.
fn files(meshes: &[Mesh], snapshots: &Snapshots) -> AppliedFiles {
    edited_files(meshes, snapshots, |_, _, text| Some(text))
}

/// The same with another text, or none, for the Peers of a cluster that another one gets.
fn edited_files(
    meshes: &[Mesh],
    snapshots: &Snapshots,
    edit: impl Fn(&str, &str, String) -> Option<String>,
) -> AppliedFiles {
    let tree = support::tree(meshes, snapshots);
    let edited = tree.into_iter().filter_map(|(path, text)| {
        let (target, file) = path.split_once('/').unwrap();
        let source = file.strip_prefix("fleet--")?.strip_suffix(".yaml")?;
        let text = edit(target, source, text.to_string())?;
        Some((path, text))
    });
    applied(edited)
}

/// Adds a preshared key to Peers, by their number in the text.
fn with_secrets(text: &str, secret: impl Fn(usize) -> Option<u32>) -> String {
    let mut specs = text.split("\nspec:\n");
    let mut text = specs.next().unwrap().to_owned();
    for (number, spec) in specs.enumerate() {
        text.push_str("\nspec:\n");
        if let Some(secret) = secret(number) {
            let key = preshared_key(secret);
            writeln!(text, "  presharedKey: {key}").unwrap();
        }
        text.push_str(spec);
    }
    text
}

fn preshared_key(number: u32) -> String {
    use base64::Engine as _;
    let mut bytes = [7; 32];
    bytes[..4].copy_from_slice(&number.to_be_bytes());
    base64::engine::general_purpose::STANDARD.encode(bytes)
}

fn fabric<'a>(meshes: &'a [Mesh], snapshots: &'a Snapshots, files: &'a AppliedFiles) -> Fabric<'a> {
    let entries = meshes[0].entries.iter();
    Fabric::new(entries.map(|it| site(it, snapshots, files)).collect())
}

fn asked(meshes: &[Mesh]) -> Asked<'_> {
    Asked { meshes, lists_undeclared: false, allowed: None }
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
    Shape { lan, ..Shape::new(layout) }
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
    let twin = Shape { lan: Lan::Own, ..shape };
    assert_eq!(total, is_fast(twin), "{shape}");
}

#[test]
fn the_same_lan_everywhere_takes_few_packets() {
    is_fast_beside_its_twin(shape(FULL, Lan::SharedBy(7)));
}

/// Machines that were set up alike. No mesh declares the address, but nodes send from it.
#[test]
fn an_internal_address_of_all_nodes_takes_few_packets() {
    let shape = shape(FULL, Lan::SharedBy(7));
    let address = "192.168.7.7";
    let shared = snapshots_of(shape, |_, node| {
        node.annotations.insert("kilo.squat.ai/internal-ip", format!("{address}/24"));
        for it in node.addresses.iter_mut().filter(|it| it.kind == AddressKind::InternalIP) {
            it.address = address.to_owned();
        }
    });
    let (verification, followed) = verified_from(shape, &shared);
    assert!(0 < verification.total().promised && verification.holds());
    assert!(followed <= LIMIT, "{followed} packets a pair");
}

#[test]
fn a_lan_for_every_three_clusters_takes_few_packets() {
    is_fast_beside_its_twin(shape(FULL, Lan::SharedBy(3)));
}

#[test]
fn a_shared_lan_with_dual_stack_takes_few_packets() {
    is_fast_beside_its_twin(Shape { is_dual_stack: true, ..shape(FULL, Lan::SharedBy(7)) });
}

#[test]
fn a_shared_lan_with_three_locations_takes_few_packets() {
    is_fast_beside_its_twin(Shape { locations: 3, ..shape(FULL, Lan::SharedBy(7)) });
}

#[test]
fn lans_by_location_take_few_packets() {
    is_fast_beside_its_twin(Shape { locations: 3, ..shape(FULL, Lan::ByLocation) });
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
                node.addresses.push(Address { address, kind: AddressKind::ExternalIP });
            }
            if place % 3 == 0 {
                let of_node = &node.addresses[1].address;
                let endpoint = format!("[2001:db8:1::{of_node}]:51820");
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

/// One NAT for all nodes of a cluster, or one endpoint that all clusters claim, takes no packet for each pair of nodes.
#[test]
fn endpoints_that_many_nodes_share_take_few_packets() {
    for of_all in [false, true] {
        let shape = Shape::new(FULL);
        let snapshots = snapshots_of(shape, |_, node| {
            let cluster = node.addresses[1].address.split('.').nth(2).unwrap().to_owned();
            let cluster = if of_all { "7" } else { &*cluster };
            let key = "kilo.squat.ai/clustermesh-endpoint".to_owned();
            node.annotations.insert(key, format!("198.18.{cluster}.250:51820"));
        });
        let (verification, followed) = verified_from(shape, &snapshots);
        let total = verification.total();
        assert_eq!((total.kept, total.assumed), (0, total.promised), "{shape}: {total:?}");
        assert!(followed <= LIMIT, "{shape}: {followed} packets a pair");
    }
}

/// The number of a cluster of [`FULL`].
fn cluster_number(name: &str) -> u32 {
    name.strip_prefix("cluster-").unwrap().parse().unwrap()
}

/// Verifies [`FULL`] with preshared keys; returns the declared paths between clusters, those that work, and
/// the packets followed for each ordered pair of clusters.
fn verified_with_secrets(
    secret: impl Fn(&str, &str, usize) -> Option<u32>,
) -> (BTreeMap<[u32; 2], [u64; 2]>, u64) {
    let shape = shape(FULL, Lan::Own);
    let meshes = meshes(&shape.mesh().to_string());
    let snapshots = snapshots_of(shape, |_, _| {});
    let tree = edited_files(&meshes, &snapshots, |target, source, text| {
        Some(with_secrets(&text, |number| secret(target, source, number)))
    });
    let fabric = fabric(&meshes, &snapshots, &tree);
    let verification = verify(&Reach::new(&fabric, u64::MAX), asked(&meshes));
    let number = |site: SiteId| cluster_number(fabric.site(site).cluster.as_str());
    let paths = verification.pairings.iter().map(|it| {
        let promised = it.tallies.values().map(|it| it.promised).sum();
        let kept = it.tallies.values().map(|it| it.kept).sum();
        ([number(it.from), number(it.to)], [promised, kept])
    });
    (paths.collect(), fabric.followed() / (7 * 6))
}

/// The preshared key of a Peer, by its target, its source and its number in the file.
type Secret<'s> = &'s dyn Fn(&str, &str, usize) -> Option<u32>;

#[test]
fn preshared_keys_take_few_packets() {
    let pair = |target: &str, source: &str| {
        let mut pair = [target, source].map(cluster_number);
        pair.sort_unstable();
        pair[0] * 100 + pair[1]
    };
    let of_all: Secret = &|_, _, _| Some(1);
    let of_pair: Secret = &|target, source, _| Some(pair(target, source));
    for secret in [of_all, of_pair] {
        let (paths, followed) = verified_with_secrets(secret);
        assert!(paths.values().all(|[promised, kept]| promised == kept && 0 < *kept));
        assert!(followed <= LIMIT, "{followed} packets a pair");
    }
    // No Peer has the same as the one in the other direction.
    let of_peer: Secret = &|target, source, number| {
        let number = u32::try_from(number).unwrap();
        Some(number * 10_000 + cluster_number(target) * 100 + cluster_number(source))
    };
    let of_node: Secret =
        &|_, source, number| Some(u32::try_from(number).unwrap() * 100 + cluster_number(source));
    for secret in [of_peer, of_node] {
        let (paths, followed) = verified_with_secrets(secret);
        assert!(paths.values().all(|[promised, kept]| 0 < *promised && *kept == 0));
        assert!(followed <= LIMIT, "{followed} packets a pair");
    }
}

/// A tunnel takes the same preshared key on both sides, or none on either.
#[test]
fn preshared_keys_that_differ_let_nothing_through() {
    // What a cluster has in its Peers for another one.
    let secret = |target: u32, source: u32| match [target, source] {
        // Equal in both directions of 0 and 1. Cluster 3 has none for 0.
        [0, 1 | 3] | [1 | 2, 0] => Some(1),
        // Equal in both directions of 1 and 3. Different from what cluster 2 has for 0.
        [0, 2] | [1, 3] | [3, 1] => Some(2),
        [4, 0] => Some(9),
        _ => None,
    };
    let (paths, _) = verified_with_secrets(|target, source, _| {
        secret(cluster_number(target), cluster_number(source))
    });
    assert_eq!(paths.len(), 7 * 6);
    for ([from, to], [promised, kept]) in paths {
        let is_equal = secret(from, to) == secret(to, from);
        let expected = if is_equal { promised } else { 0 };
        assert_eq!(kept, expected, "{from} to {to}");
        assert!(0 < promised);
    }
}

/// In one file, some Peers have another preshared key than the rest.
#[test]
fn a_preshared_key_of_some_nodes_counts_for_these() {
    let (paths, followed) = verified_with_secrets(|target, source, number| {
        let is_odd = number % 4 == 3 && target == "cluster-00" && source == "cluster-01";
        is_odd.then_some(1)
    });
    for pair in [[0, 1], [1, 0]] {
        let [promised, kept] = paths[&pair];
        assert!(0 < kept && kept < promised, "{kept} of {promised}");
    }
    assert!(followed <= LIMIT, "{followed} packets a pair");
}

/// The tree is older than the overlap: the hub routes every second cluster's ranges to another one.
#[test]
fn overlapping_pod_cidrs_have_few_causes() {
    let before = shape(Layout::Hub { nodes: 1, spokes: 7, each: 40 }, Lan::Own);
    let after = Shape { has_overlap: true, ..before };
    // Ranges that overlap are a mistake in the mesh, so nothing else reads it like this.
    let [old, new] = [before, after].map(|it| {
        let source = Source::parse("mesh.yaml", it.mesh().to_string()).unwrap();
        let reading = mesh::read(&[source]);
        let all = reading.meshes.into_iter().chain(reading.salvaged);
        all.collect::<Vec<Mesh>>()
    });
    let tree = files(&old, &snapshots_of(before, |_, _| {}));
    let snapshots = snapshots_of(after, |_, _| {});
    let fabric = fabric(&new, &snapshots, &tree);
    let reach = Reach::new(&fabric, u64::MAX);
    assert!(verify_sound(&reach, asked(&new)).is_none());
    let before = fabric.followed();
    let verification = verify(&reach, asked(&new));
    let total = verification.total();
    // A spoke is promised 40 pods and services, in both directions, the hub one of each. Of a spoke that
    // was moved only its services are reached.
    assert_eq!((total.promised, total.kept), (7 * 121, 3 * 121 + 4));
    let failing: u64 = verification.failures.iter().map(|it| it.pairs).sum();
    assert_eq!(failing, total.promised - total.kept);
    // Of 40 causes of a kind between two clusters 16 are kept apart.
    assert!(verification.failures.len() <= 4 * 2 * 17);
    assert!(fabric.followed() - before <= total.promised * 3);
    // The ranges that the moved clusters had before. Of the spoke with the hub's own pod CIDRs only the
    // node that has that of the hub's node takes packets from there.
    let ranges: Vec<LeakedRange> = verification.leaks.iter().filter_map(|it| it.range).collect();
    let others: Vec<u64> = ranges.iter().map(|it| it.others).filter(|it| 0 < *it).collect();
    assert_eq!((ranges.len(), others), (1 + 3 * 16, vec![40 - 16; 3]));
    let mut failures = verification.failures.iter();
    // Those of several clusters share one.
    assert!(failures.any(|it| 40 - 16 <= it.pairs));
}

/// What clusters give to each other is looked up once for all that are taken for hostile.
#[test]
fn many_hostile_clusters_take_hardly_more_than_one() {
    let shape = shape(FULL, Lan::Own);
    let meshes = meshes(&shape.mesh().to_string());
    let snapshots = snapshots_of(shape, |_, _| {});
    let tree = files(&meshes, &snapshots);
    let looked_up = |count: usize| {
        let fabric = fabric(&meshes, &snapshots, &tree);
        let sites: Vec<SiteId> = fabric.sites.ids().take(count).collect();
        let hostiles = assume_hostile(&fabric, &meshes, &sites, APART);
        assert_eq!(hostiles.len(), count);
        assert!(hostiles.iter().all(|it| it.breaches().is_empty()));
        assert!(hostiles.iter().all(|it| it.exposures.len() == 6));
        fabric.looked_up()
    };
    // What each of 7 clusters gives to the 6 others, and what it gets of them.
    let both_ways = 2 * 7 * 6;
    assert!(looked_up(1) <= both_ways + 6);
    assert!(looked_up(7) <= both_ways + 7 * 6);
}

/// How many things of a kind are listed, and how many are only counted.
fn listed_and_more<T: Kinded>(list: &BoundedList<T>, kind: T::Kind) -> (usize, usize) {
    let listed = list.listed().iter().filter(|it| it.kind() == kind);
    (listed.count(), list.more(kind))
}

fn kinds(paths: &BoundedList<Relay>) -> [(usize, usize); 3] {
    [RelayKind::Dropped, RelayKind::Linked, RelayKind::Unlinked]
        .map(|kind| listed_and_more(paths, kind))
}

/// Every node has a pod CIDR, a WireGuard address and a Peer, so the lists grow with the number of nodes.
#[test]
fn ranges_of_large_hostile_clusters_are_counted() {
    let (clusters, nodes) = (3, 20);
    let shape = shape(Layout::Full { clusters, nodes }, Lan::Own);
    let meshes = meshes(&shape.mesh().to_string());
    let snapshots = snapshots_of(shape, |_, _| {});
    let tree = files(&meshes, &snapshots);
    let fabric = fabric(&meshes, &snapshots, &tree);
    let sites: Vec<SiteId> = fabric.sites.ids().collect();
    for hostile in assume_hostile(&fabric, &meshes, &sites, APART) {
        for exposure in &hostile.exposures {
            // The services have one range.
            let declared = (APART, 2 * 20 + 1 - APART);
            for holds in [&exposure.believed, &exposure.attracted] {
                assert_eq!(listed_and_more(holds, WhoseKind::Declared), declared);
                assert_eq!((holds.listed().len(), holds.unlisted()), declared);
            }
            assert!(exposure.is_mirrored);
            let open = |class| listed_and_more(&exposure.open, class);
            assert_eq!(open(Some(AddressClass::Pod)), (APART, 20 - APART));
            assert_eq!(open(None), (1, 0));
            assert_eq!(exposure.heard.listed().len(), APART);
            assert_eq!(exposure.heard.unlisted(), 20 - APART);
        }
    }
}

/// Every cluster may pass packets of every other one on to all the rest, so their number grows with the third
/// power of the number of clusters.
#[test]
fn onward_paths_of_many_hostile_clusters_are_counted() {
    let clusters = 20;
    let shape = shape(Layout::Full { clusters, nodes: 1 }, Lan::Own);
    let meshes = meshes(&shape.mesh().to_string());
    let snapshots = snapshots_of(shape, |_, _| {});
    let tree = files(&meshes, &snapshots);
    let fabric = fabric(&meshes, &snapshots, &tree);
    let sites: Vec<SiteId> = fabric.sites.ids().collect();
    let (all, none) = ((APART, 18 - APART), (0, 0));
    for hostile in assume_hostile(&fabric, &meshes, &sites, APART) {
        assert_eq!(hostile.exposures.len(), 19);
        for exposure in &hostile.exposures {
            assert_eq!(kinds(&exposure.relays), [all, none, none]);
        }
    }
}

/// The others know the pods of one cluster only behind another one.
#[test]
fn onward_paths_that_no_mesh_allows_are_counted() {
    let clusters = 20;
    let shape = shape(Layout::Full { clusters, nodes: 1 }, Lan::Own);
    let meshes = meshes(&shape.mesh().to_string());
    let snapshots = snapshots_of(shape, |_, _| {});
    let tree = edited_files(&meshes, &snapshots, |target, source, text| {
        let is_between = target == "cluster-01";
        match source {
            "cluster-00" => is_between.then_some(text),
            "cluster-01" => {
                Some(text.replace("  allowedIPs:\n", "  allowedIPs:\n  - \"10.0.0.0/24\"\n"))
            }
            _ => Some(text),
        }
    });
    let fabric = fabric(&meshes, &snapshots, &tree);
    let sites: Vec<SiteId> = fabric.sites.ids().take(1).collect();
    let (all, none) = ((APART, 18 - APART), (0, 0));
    let linked = assume_hostile(&fabric, &meshes, &sites, APART).remove(0);
    assert_eq!(kinds(&linked.exposures[0].relays), [none, all, none]);
    assert!(linked.breaches().is_empty());
    let unlinked = assume_hostile(&fabric, &[], &sites, APART).remove(0);
    assert_eq!(kinds(&unlinked.exposures[0].relays), [none, none, all]);
    let breaches = unlinked.breaches();
    let through =
        breaches.iter().filter(|it| matches!(it, Breach::Passage(..) | Breach::Passages(..)));
    assert_eq!(through.map(Breach::count).sum::<usize>(), 18);
}
