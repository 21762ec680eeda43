//! Outages against full recomputation: the lost nodes are taken out of the snapshots, Kilo's state and all tables are
//! built from the rest, and every pair is asked.

use std::cell::Cell;

use clustermesh::kilo::cluster::Cluster as Reading;
use clustermesh::kilo::topology::WireguardIp;
use clustermesh::outage::{
    FleetPart, LostNodes, OutageObstacle, OutageProof, OutageResult, single_parts,
};
use clustermesh::proof::verify::Declared;
use clustermesh::snapshot::Snapshot;

use super::*;

/// A path by the names of its ends: cluster, node, class, and the first address of what is not a node's own.
type End = (String, Option<String>, AddressClass, Option<u128>);

fn end(fabric: &Fabric, site: SiteId, block: &AddressBlock) -> End {
    let it = fabric.site(site);
    let node = block.owner.node();
    let is_host = matches!(block.owner, Owner::Node(_));
    (
        it.cluster.to_string(),
        node.map(|node| it.node(node).kilo.name.clone()),
        block.owner.class().unwrap(),
        (!is_host).then_some(block.span.first),
    )
}

/// The paths that work between clusters, by their ends.
fn working(fabric: &Fabric) -> BTreeSet<[End; 2]> {
    let reach = Reach::new(fabric, u64::MAX);
    let mut working = BTreeSet::new();
    for from in fabric.sites.ids() {
        for to in fabric.sites.ids().filter(|to| *to != from) {
            for verdict in reach.between(from, to, &mut Proven::default()) {
                if verdict.holds() {
                    let pairs = pairs(&verdict.senders, &verdict.receivers);
                    working.extend(
                        pairs.map(|(one, other)| [end(fabric, from, one), end(fabric, to, other)]),
                    );
                }
            }
        }
    }
    working
}

/// The declared paths, by their ends.
fn declared(fabric: &Fabric, asked: Asked) -> BTreeSet<[End; 2]> {
    let declared = Declared::new(fabric, asked);
    let mut paths = BTreeSet::new();
    for from in fabric.sites.ids() {
        for to in fabric.sites.ids().filter(|to| *to != from) {
            let blocks = |home: SiteId, viewer: SiteId| {
                let blocks = address_blocks(fabric.site(home));
                let promised = declared.promised(home, viewer, &blocks);
                let both = blocks.into_iter().zip(promised).filter(|it| it.1);
                both.map(|it| it.0).collect::<Vec<_>>()
            };
            let (senders, receivers) = (blocks(from, to), blocks(to, from));
            for (one, other) in pairs(&senders, &receivers) {
                let classes = [one, other].map(|it| it.owner.class().unwrap());
                if Declared::are_declared(classes[0], classes[1]) {
                    paths.insert([end(fabric, from, one), end(fabric, to, other)]);
                }
            }
        }
    }
    paths
}

/// Takes nodes out of snapshots, and numbers the WireGuard addresses of the others as Kilo does.
fn without(input: &Input, fabric: &Fabric, lost: &LostNodes) -> Snapshots {
    let entries = &input.meshes[0].entries;
    let snapshots = entries.iter().map(|entry| {
        let snapshot = &input.snapshots[&entry.name].snapshot;
        let site = fabric.site_named(entry.name.as_str()).unwrap();
        let is_left = |it: &&Node| {
            let node = fabric.site(site).node_named(&it.name).unwrap();
            !lost.contain(NodeRef { site, node })
        };
        let left: Vec<Node> = snapshot.nodes.iter().filter(is_left).cloned().collect();
        let nodes = if lost.touch(site) && is_numbered(fabric.site(site)) {
            numbered(entry, left)
        } else {
            left
        };
        (entry.name.as_str(), nodes)
    });
    snapshots_of(input, snapshots.collect())
}

fn snapshots_of(input: &Input, clusters: Vec<(&str, Vec<Node>)>) -> Snapshots {
    let mut snapshots = snapshots(clusters);
    snapshots.extend(external_snapshots(&input.meshes));
    snapshots
}

/// Whether the addresses of all leaders are those that follow from the order of segments.
fn is_numbered(site: &Site) -> bool {
    let mut segments = site.model.topology.segments.iter();
    segments.all(|it| matches!(it.wireguard_ip, WireguardIp::Certain(_)))
}

/// Gives each leader the address that Kilo computes for its segment, and no address to other nodes.
fn numbered(entry: &clustermesh::mesh::Entry, nodes: Vec<Node>) -> Vec<Node> {
    const KEY: &str = "kilo.squat.ai/wireguard-ip";
    let mut nodes = nodes;
    let prefix = nodes.iter().find_map(|it| {
        let (address, length) = it.annotations.get(KEY)?.split_once('/')?;
        let (network, _) = address.rsplit_once('.')?;
        Some((network.to_owned(), length.to_owned()))
    });
    let snapshot = Snapshot::new(entry.name.clone(), nodes.clone()).unwrap();
    let leaders: Vec<String> = {
        let reading = Reading::new(entry, &snapshot);
        let topology = &reading.topology;
        let segments = topology.segments.iter();
        segments.map(|it| topology.nodes[it.leader.node()].kilo.name.clone()).collect()
    };
    for node in &mut nodes {
        node.annotations.remove(KEY);
        let place = leaders.iter().position(|it| *it == node.name);
        if let (Some(place), Some((network, length))) = (place, &prefix) {
            let address = format!("{network}.{}/{length}", place + 1);
            node.annotations.insert(KEY, address);
        }
    }
    nodes
}

/// Returns whether packets get to all addresses of a range. The addresses of lost nodes were never a part of it, so it
/// can be smaller than a block of what is left.
fn range_works(before: &Fabric, left: &Fabric, [sender, receiver]: &[End; 2]) -> bool {
    let block = |fabric: &Fabric, it: &End| {
        let site = fabric.site_named(&it.0).unwrap();
        let blocks = address_blocks(fabric.site(site)).into_iter();
        let mut blocks = blocks.filter(|block| end(fabric, site, block) == *it);
        Some((site, blocks.next()?))
    };
    let Some(sender) = block(left, sender) else {
        return false;
    };
    let (endings, _) = followed(left, sender, block(before, receiver).unwrap());
    endings == BTreeSet::from(["delivered"])
}

thread_local! {
    /// The numbers of outages that were compared, that ended paths, and that were not examined.
    static COUNTS: Cell<[u64; 3]> = const { Cell::new([0; 3]) };
}

fn count(kind: usize) {
    let mut counts = COUNTS.get();
    counts[kind] += 1;
    COUNTS.set(counts);
}

/// Returns all pairs of nodes and locations.
fn pairs_of_parts(fabric: &Fabric) -> Vec<[FleetPart; 2]> {
    let parts: Vec<FleetPart> = single_parts(fabric)
        .into_iter()
        .filter(|it| !matches!(it, FleetPart::Cluster(_)))
        .collect();
    let mut pairs = Vec::new();
    for (place, one) in parts.iter().enumerate() {
        let others = parts[place + 1..].iter();
        pairs.extend(others.map(|other| [one.clone(), other.clone()]));
    }
    pairs
}

fn both(fabric: &Fabric, pair: &[FleetPart; 2]) -> LostNodes {
    let [one, other] = pair.each_ref().map(|it| it.nodes(fabric));
    one.nodes().chain(other.nodes()).collect()
}

/// Returns the outages of all single parts and of all pairs.
fn all_outages(fabric: &Fabric) -> BTreeSet<LostNodes> {
    let parts = single_parts(fabric);
    let single = parts.iter().map(|it| it.nodes(fabric));
    let pairs = pairs_of_parts(fabric);
    single.chain(pairs.iter().map(|it| both(fabric, it))).collect()
}

/// Returns the ends of paths that end.
fn ended(proof: &OutageProof, result: &OutageResult) -> BTreeSet<[End; 2]> {
    let fabric = proof.fabric();
    let ends = result.ended.iter().flat_map(|paths| {
        let ends = proof.ends(paths).into_iter();
        ends.map(|[sender, receiver]| {
            [end(fabric, paths.pair.from, &sender), end(fabric, paths.pair.to, &receiver)]
        })
    });
    ends.collect()
}

/// Compares outages with full recomputation: those of all single parts and of all pairs.
fn outages_agree(world: &World, is_tidy: bool) -> Result<(), TestCaseError> {
    let mut input = input(world);
    input.overlapping.clear();
    if is_tidy {
        let clusters = input.meshes[0].entries.iter().map(|entry| {
            let nodes = input.snapshots[&entry.name].snapshot.nodes.clone();
            (entry.name.as_str(), numbered(entry, nodes))
        });
        input.snapshots = snapshots_of(&input, clusters.collect());
    }
    let fabric = fabric(&input);
    let asked = Asked { meshes: &input.meshes, lists_undeclared: false, allowed: None };
    let reach = Reach::new(&fabric, u64::MAX);
    let proof = OutageProof::new(&reach, asked, u64::MAX);
    let of_all = OutageProof::of_all_paths(&reach, u64::MAX);
    let before = working(&fabric);
    let declared = declared(&fabric, asked);
    for lost in &all_outages(&fabric) {
        count(0);
        let snapshots = without(&input, &fabric, lost);
        let left = Input {
            meshes: input.meshes.clone(),
            overlapping: Vec::new(),
            snapshots,
            files: input.files.clone(),
        };
        let left = super::fabric(&left);
        let after = working(&left);
        let is_lost = |(cluster, node, ..): &End| {
            let site = fabric.site_named(cluster).unwrap();
            match node {
                Some(name) => {
                    let node = fabric.site(site).node_named(name).unwrap();
                    lost.contain(NodeRef { site, node })
                }
                None => lost.are_all_of(&fabric, site),
            }
        };
        let works = |path: &[End; 2]| {
            after.contains(path) || path[1].1.is_none() && range_works(&fabric, &left, path)
        };
        let expected: BTreeSet<[End; 2]> =
            before.iter().filter(|it| !it.iter().any(is_lost) && !works(it)).cloned().collect();
        for proof in [&proof, &of_all] {
            let is_of_all = std::ptr::eq(proof, &raw const of_all);
            let is_meant = |it: &&[End; 2]| is_of_all || declared.contains(*it);
            let expected: BTreeSet<&[End; 2]> = expected.iter().filter(is_meant).collect();
            for found in [proof.prove(lost), proof.examine(lost)] {
                let found = match found {
                    Ok(found) => found,
                    Err(OutageObstacle::Granularity | OutageObstacle::Numbering) => {
                        count(2);
                        continue;
                    }
                    Err(OutageObstacle::Steps) => panic!("no limit"),
                };
                let ended = ended(proof, &found);
                prop_assert_eq!(u64::try_from(ended.len()).unwrap(), found.paths());
                prop_assert_eq!(
                    ended.iter().collect::<BTreeSet<_>>(),
                    expected.clone(),
                    "without {:?}",
                    lost
                );
            }
        }
        if !expected.is_empty() {
            count(1);
        }
    }
    Ok(())
}

/// Worlds as they are usually: what is rendered is there, nodes report one granularity and numbered addresses.
fn tidy() -> impl Strategy<Value = World> {
    super::world().prop_map(|mut world| {
        world.faults.clear();
        for (i, cluster) in world.clusters.iter_mut().enumerate() {
            cluster.services = None;
            cluster.reported = None;
            for (position, node) in cluster.nodes.iter_mut().enumerate() {
                node.key = u8::try_from(16 * i + position).unwrap();
                if node.flaw == Flaw::NoWireguardIp {
                    node.flaw = Flaw::None;
                }
            }
        }
        world
    })
}

/// Tries random worlds, and checks that enough outages end paths and few are not examined.
fn try_worlds(worlds: impl Strategy<Value = World>, is_tidy: bool) {
    let config = ProptestConfig {
        cases: cases(100),
        failure_persistence: None,
        ..ProptestConfig::default()
    };
    COUNTS.set([0; 3]);
    // Some worlds hardly have paths that an outage can end, so more are tried until enough were.
    // Each round draws its own worlds, and the same ones for the same seed. A runner itself runs no second round.
    let mut rounds = TestRunner::new(config.clone());
    for _ in 0..5 {
        let mut runner = TestRunner::new_with_rng(config.clone(), rounds.new_rng());
        let result = runner.run(&worlds, |it| outages_agree(&it, is_tidy));
        result.unwrap_or_else(|it| panic!("{it}"));
        if COUNTS.get()[1] >= u64::from(cases(60)) {
            break;
        }
    }
    let [compared, ending, unexamined] = COUNTS.get();
    assert!(ending >= u64::from(cases(60)), "{:?}", COUNTS.get());
    let few = if is_tidy { 0 } else { compared };
    // Each is tried in four ways.
    assert!(unexamined <= 2 * few, "{:?}", COUNTS.get());
}

#[test]
fn outages_end_what_full_recomputation_ends() {
    try_worlds(tidy(), true);
}

#[test]
fn outages_of_disturbed_fleets_end_what_full_recomputation_ends() {
    try_worlds(super::world(), false);
}
