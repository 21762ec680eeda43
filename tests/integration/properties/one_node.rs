//! One node never decides for its cluster, nor for another one.

use std::collections::BTreeSet;

use proptest::prelude::*;
use proptest::sample::Index;

use clustermesh::net::{Cidr, Family};

use super::world::{OddNode, OneNode, claims, name, odd_node, one_node, pods, world};
use super::{attacked, render, routed};

/// A key that no node of a world claims.
const FRESH: usize = 200;

proptest! {
    #![proptest_config(ProptestConfig { cases: 400, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn no_node_of_a_target_takes_more_from_its_cluster_than_its_own_hosts(world in one_node()) {
        let OneNode { before, after, target, attacker } = world;
        let nodes = &after.clusters[target].nodes;
        let cidr = |text: &Option<String>| -> Option<Cidr> { text.as_ref()?.parse().ok() };
        let lan = cidr(&nodes[attacker].internal).unwrap();
        // Two nodes of one LAN are sufficient to determine it.
        let honest = nodes[..attacker].iter().filter_map(|it| cidr(&it.internal));
        prop_assume!(honest.into_iter().all(|it| !it.overlaps(lan)));
        let node = &nodes[attacker];
        let own: Vec<Cidr> = [&node.internal, &node.endpoint, &node.kilo_endpoint].into_iter()
            .flatten()
            .map(|it| it.split('/').next().unwrap())
            .map(|it| it.parse().unwrap_or_else(|_| it.split(':').next().unwrap().parse().unwrap()))
            .map(Cidr::host)
            .collect();
        let ranges = |world| -> Vec<Cidr> {
            let routed = routed(&render(world), world, target).into_iter();
            routed.map(|(_, range)| range).collect()
        };
        let left = ranges(&after);
        for range in ranges(&before) {
            for lost in range.without(&left) {
                let others = lost.without(&own);
                prop_assert!(others.is_empty(), "{:?} of {}", others, range);
            }
        }
    }

    #[test]
    fn no_node_changes_what_another_cluster_gives_to_others(
        world in world(),
        attacker in any::<Index>(),
        victim in any::<Index>(),
        claims in (0..4usize, 2..5usize).prop_flat_map(|(i, n)| claims(i, n, 0)),
    ) {
        let attacker = attacker.index(world.clusters.len());
        // If two claim a key, their rank decides which one keeps it.
        let mut world = world;
        for (position, node) in world.clusters[attacker].nodes.iter_mut().enumerate() {
            node.key = node.key.map(|_| FRESH + position);
        }
        let mut claims = claims;
        claims.key = claims.key.map(|_| FRESH + 10);
        let attacked = attacked(&world, attacker, (victim, claims));
        let (before, after) = (render(&world), render(&attacked));
        for source in world.members().filter(|it| *it != attacker) {
            let file = format!("/world--{}.yaml", name(source));
            let own = format!("{}/", name(attacker));
            let given = |tree: &clustermesh::manifest::Tree| -> Vec<(String, String)> {
                tree.iter()
                    .filter(|(path, _)| path.ends_with(&file) && !path.starts_with(&own))
                    .map(|(path, text)| (path.clone(), text.to_string()))
                    .collect()
            };
            prop_assert_eq!(given(&before), given(&after));
        }
    }

    #[test]
    fn no_node_decides_the_family_that_its_cluster_gets(world in odd_node()) {
        let families = |world| -> BTreeSet<Family> {
            let routed = routed(&render(world), world, 0).into_iter();
            routed.map(|(_, range)| range.family()).collect()
        };
        prop_assert_eq!(families(&world.before), families(&world.after));
    }

    #[test]
    fn no_node_makes_the_pods_of_its_cluster_the_range_of_another_node(world in odd_node()) {
        prop_assume!(world.is_outvoted);
        let whole: Cidr = pods(0).parse().unwrap();
        for world in [&world.before, &world.after] {
            let given = routed(&render(world), world, 1);
            prop_assert!(given.iter().all(|(_, range)| !range.contains(whole)), "{:?}", given);
        }
    }

    #[test]
    fn no_node_takes_anything_that_others_of_its_cluster_carry(world in odd_node()) {
        let OddNode { before, after, odd, is_full, .. } = &world;
        prop_assume!(*is_full);
        let kept = routed(&render(after), after, 1);
        for (source, range) in routed(&render(before), before, 1) {
            let is_of_others = before.clusters[0].nodes.iter().enumerate().any(|(position, it)| {
                let pods = it.pods.iter().map(|it| it.parse::<Cidr>().unwrap());
                position != *odd && pods.into_iter().any(|it| it == range)
            });
            prop_assert!(!is_of_others || kept.contains(&(source, range)), "{}", range);
        }
    }
}
