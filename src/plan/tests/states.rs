//! Clusters that join or leave.

use super::*;

#[test]
fn only_joined_clusters_exchange_peers() {
    let with = |fields: &str, state: &str| format!("state: {state}, {fields}");
    let plan = |b: &str, c: &str| {
        let (b, c) = (with(B, b), with(C, c));
        report("{}", &[("a", A, NODE_A), ("b", &b, NODE_B), ("c", &c, NODE_C)])
    };
    insta::assert_snapshot!(plan("Joined", "Joining"), @"
    a:
      m--b--b 10.2.1.0/24 10.202.0.1/32
    b:
      m--a--a 10.1.1.0/24 10.201.0.1/32
    c:
    ");
    assert_eq!(plan("Joined", "Leaving"), plan("Joined", "Joining"));
    assert_eq!(plan("Joining", "Leaving"), "a:\nb:\nc:\n");
}

#[test]
fn a_cluster_parts_from_those_that_it_is_linked_to() {
    let b = format!("state: Leaving, {B}");
    let clusters = [("a", A, NODE_A), ("b", b.as_str(), ""), ("c", C, NODE_C)];
    let text = mesh_text("m", "{ mode: Links, links: [[a, b], [a, c]] }", &clusters);
    let meshes = testing::meshes(&text);
    // A cluster that leaves needs no snapshot.
    let snapshots = snapshots(&[clusters[0], clusters[2]]);
    let fleet = Fleet::new(&meshes, &snapshots).unwrap();
    let plan = plan(&fleet).unwrap();
    let parted = plan.targets.iter().map(|target| {
        let parted: Vec<&str> = target.parted.iter().map(ClusterName::as_str).collect();
        (target.cluster.as_str(), parted, target.peer_sets.len())
    });
    let parted: Vec<_> = parted.collect();
    assert_eq!(parted, [("a", vec!["b"], 1), ("b", vec!["a"], 0), ("c", vec![], 1)]);
    assert!(plan.empty().next().is_none() && plan.silent.is_empty());
}
