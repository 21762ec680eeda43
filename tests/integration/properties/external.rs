//! External peers against what clusters and their nodes have.

use super::world::{External, honest_cluster};
use super::*;

/// The key that no node of an honest cluster has.
const KEY: usize = 9;

/// Two clusters with a laptop of two ranges, which no cluster can dial.
fn world() -> World {
    World {
        topology: "{ mode: FullMesh }",
        clusters: vec![honest_cluster(0, 2, "Full"), honest_cluster(1, 2, "Full")],
        externals: vec![External {
            ranges: vec!["10.220.1.0/24".to_owned(), "10.220.2.0/24".to_owned()],
            endpoint: None,
            key: KEY,
            clusters: BTreeSet::from([0, 1]),
        }],
    }
}

/// The ranges that a cluster gets of the laptop.
fn given_by_it(world: &World, target: usize) -> Vec<String> {
    let peers = given(&render(world), target, EXTERNALS);
    let ranges = peers.iter().flat_map(ranges);
    ranges.map(|it| it.to_string()).collect()
}

#[test]
fn a_node_with_its_key_costs_only_its_own_cluster_the_external_peer() {
    let mut world = world();
    let all = given_by_it(&world, 1);
    assert_eq!(all, ["10.220.1.0/24", "10.220.2.0/24"]);
    world.clusters[0].nodes[1].key = Some(KEY);
    assert_eq!(given_by_it(&world, 0), [""; 0]);
    assert_eq!(given_by_it(&world, 1), all);
    // Its own WireGuard has a peer for each node of the other cluster, and none for the cluster that would drop its packets.
    let own = render_all(&world);
    let peers = [0, 1].map(|it| given(&own, EXTERNALS, it).len());
    assert_eq!(peers, [0, 2]);
}

/// The second range is the only one that the cluster accepts, and needs no endpoint.
#[test]
fn a_range_of_an_external_peer_comes_with_no_key_of_an_own_node() {
    let mut world = world();
    world.clusters[1].accepted[0] = Some(vec!["10.220.2.0/24".to_owned()]);
    assert_eq!(given_by_it(&world, 1), ["10.220.2.0/24"]);
    world.clusters[1].nodes[0].key = Some(KEY);
    assert_eq!(given_by_it(&world, 1), [""; 0]);
}

#[test]
fn a_cluster_keeps_its_own_networks_from_an_external_peer() {
    let mut world = world();
    world.clusters[1].local = vec!["10.220.1.0/25".to_owned()];
    for node in &mut world.clusters[0].nodes {
        node.internal = Some("10.220.2.7/24".to_owned());
    }
    assert_eq!(given_by_it(&world, 0), ["10.220.1.0/24"]);
    assert_eq!(given_by_it(&world, 1), ["10.220.1.128/25", "10.220.2.0/24"]);
}

/// Packets of the tunnel to the node would go to the laptop.
#[test]
fn a_node_that_is_dialled_in_a_range_of_an_external_peer_is_left_out() {
    let mut world = world();
    world.clusters[0].nodes[0].endpoint = Some("10.220.1.9:51820".to_owned());
    assert_eq!(given(&render(&world), 1, 0).len(), 1);
    world.externals.clear();
    assert_eq!(given(&render(&world), 1, 0).len(), 2);
}

/// Then neither side can dial the other, and the nodes of that cluster alone are the cause.
#[test]
fn nodes_that_lose_their_endpoints_stop_no_render() {
    let mut world = world();
    let before = render(&world);
    for node in &mut world.clusters[0].nodes {
        (node.endpoint, node.kilo_endpoint) = (None, Some("10.221.0.1:51820".to_owned()));
    }
    world.clusters[0].behind_nat = true;
    assert_eq!(given_by_it(&world, 0), [""; 0]);
    in_fleet(&world, &mesh(&world), |_, plan| {
        prop_assert_eq!(losses(&before, plan), Vec::new());
        Ok(())
    })
    .unwrap();
}
