//! Anchors lose only what they must.

use std::collections::BTreeSet;

use proptest::prelude::*;

use clustermesh::manifest;
use clustermesh::net::Cidr;

use super::world::{World, anchored, declared, mesh, world};
use super::{given, in_fleet, member, ranges, render};

/// A part of the services, and the Peer that carries it.
type Part = (Cidr, String);

/// Returns who carries which part of the services of the first cluster, in the order of the parts.
fn parts(world: &World) -> Vec<Part> {
    let services: Cidr = declared(0)[3].parse().unwrap();
    let peers = given(&render(world), 1, 0).into_iter();
    let parts = peers.flat_map(|peer| {
        let name = peer["metadata"]["name"].as_str().unwrap();
        let node = name.rsplit("--").next().unwrap().to_owned();
        let ranges = ranges(&peer).into_iter();
        ranges.map(move |range| (range, node.clone()))
    });
    let mut parts: Vec<Part> = parts.filter(|it| services.contains(it.0)).collect();
    parts.sort();
    parts
}

/// The number of parts that one loss or return moves at most, of ten nodes or fewer.
fn limit(count: usize, is_first_lost: bool) -> usize {
    match count {
        4 if is_first_lost => 3,
        8 if is_first_lost => 2,
        _ => 1,
    }
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 300, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn one_loss_or_return_moves_few_parts(world in anchored()) {
        let mut lost = world.lost.clone();
        let before = parts(&world.without(&lost));
        lost.push(world.next);
        let after = parts(&world.without(&lost));
        for (parts, lost) in [(&before, &world.lost), (&after, &lost)] {
            prop_assert_eq!(parts.len(), world.count);
            let lengths: BTreeSet<u8> = parts.iter().map(|it| it.0.prefix_length()).collect();
            prop_assert_eq!(lengths.len(), 1);
            let carriers: BTreeSet<&String> = parts.iter().map(|it| &it.1).collect();
            prop_assert_eq!(carriers.len(), world.count);
            let lost: BTreeSet<&String> = lost.iter().map(|it| &world.named[it.0]).collect();
            prop_assert!(carriers.is_disjoint(&lost), "{:?}", parts);
            for ((_, carrier), first) in parts.iter().zip(&world.named) {
                prop_assert!(carrier == first || lost.contains(first), "{:?}", parts);
            }
        }
        let moved = before.iter().zip(&after).filter(|(before, after)| before.1 != after.1).count();
        let is_first_lost = world.lost.iter().any(|it| it.0 < world.count);
        prop_assert!(moved <= limit(world.count, is_first_lost), "{:?} {:?}", before, after);
        let mut reversed = world.without(&lost);
        reversed.clusters[0].nodes.reverse();
        prop_assert_eq!(parts(&reversed), after);
    }

    #[test]
    fn no_silent_node_carries_what_is_its_cluster_s_while_another_one_can(
        world in world(),
        silent in proptest::collection::vec(any::<bool>(), 20),
    ) {
        let mut world = world;
        let nodes = world.clusters.iter_mut().flat_map(|it| &mut it.nodes);
        for (node, stale) in nodes.zip(silent) {
            node.stale = stale;
        }
        in_fleet(&world, &mesh(&world), |fleet, plan| {
            let tree = manifest::tree(plan).unwrap();
            for source in 0..world.clusters.len() {
                let candidates = &member(fleet, source).membership.candidates;
                for target in 0..world.clusters.len() {
                    let peers = given(&tree, target, source);
                    let given = peers.iter().map(|peer| {
                        let mut candidates = candidates.iter();
                        let has_key = |key: String| peer["spec"]["publicKey"].as_str() == Some(&key);
                        (candidates.find(|it| has_key(it.key.to_string())).unwrap(), ranges(peer))
                    });
                    let given: Vec<_> = given.collect();
                    let is_any_ready = given.iter().any(|(it, _)| it.endpoint.is_some() && it.unready.is_none());
                    for (candidate, ranges) in given.iter().filter(|(it, _)| it.unready.is_some()) {
                        let is_own = |range: &Cidr| candidate.claims().any(|it| it.contains(*range));
                        prop_assert!(!is_any_ready || ranges.iter().all(is_own), "{:?} {:?}", candidate, ranges);
                    }
                }
            }
            Ok(())
        })?;
    }
}
