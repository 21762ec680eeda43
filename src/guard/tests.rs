//! Accepted and refused snapshots: eight nodes, of which some are removed and some break.

use super::*;
use crate::testing::{meshes, node};

const MESH: &str = "
apiVersion: kilo.squat.ai/v1alpha1
kind: ClusterMesh
metadata: { name: m }
spec:
  clusters:
  - { name: east, podCIDRs: [10.1.0.0/16], wireguardCIDR: 10.101.0.0/24 }
  - { name: west, allowedNetworks: [172.16.0.0/12] }
";

/// Returns a snapshot of eight nodes, less those `without` and with those `broken`.
fn snapshot(without: &[u8], broken: &[u8]) -> Snapshot {
    let there = (1..=8).filter(|it| !without.contains(it));
    let nodes = there.map(|number| {
        let key = "AAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAA=";
        let key = key.replacen("AA", &format!("A{number}"), 1);
        let mut node = node(&format!(
            "n{number} pod=10.1.{number}.0/24 wg=10.101.0.{number}/24 key={key} \
             force-endpoint=203.0.113.{number}:1 granularity=full"
        ));
        node.uid = number.to_string();
        if broken.contains(&number) {
            node.pod_cidrs.clear();
        }
        node
    });
    Snapshot::new("east".parse().unwrap(), nodes.collect()).unwrap()
}

fn decided(old: Option<&Snapshot>, new: &Snapshot, limits: &Limits) -> GuardDecision {
    let mesh = &meshes(MESH)[0];
    let candidate = NewSnapshot { old, new, memberships: &[(mesh, &mesh.entries[0])] };
    decide(candidate, limits)
}

/// Returns how many are gone and unusable, if that is refused.
fn loss(without: &[u8], broken: &[u8], limits: &Limits) -> Option<(usize, usize)> {
    let decision = decided(Some(&snapshot(&[], &[])), &snapshot(without, broken), limits);
    match decision.refusals.as_slice() {
        [] => None,
        [GuardRefusal::Shrunk(loss)] => Some((loss.gone.len(), loss.unusable.len())),
        other => panic!("{other:?}"),
    }
}

#[test]
fn more_than_a_quarter_and_at_least_two() {
    let limits = Limits::default();
    assert_eq!(loss(&[], &[1, 2], &limits), None);
    assert_eq!(loss(&[], &[1, 2, 3], &limits), Some((0, 3)));
    let all_but_one = Limits { lost_nodes: 3, lost_percent: 0, ..limits };
    assert_eq!(loss(&[], &[1, 2], &all_but_one), None);
    assert_eq!(loss(&[], &[1, 2, 3], &all_but_one), Some((0, 3)));
}

#[test]
fn gone_nodes_count_half() {
    let limits = Limits::default();
    assert_eq!(loss(&[1, 2, 3, 4], &[], &limits), None);
    assert_eq!(loss(&[1, 2, 3, 4, 5], &[], &limits), Some((5, 0)));
    assert_eq!(loss(&[1, 2, 3], &[4], &limits), Some((3, 1)));
    let whole = Limits { gone_percent: 100, ..limits };
    assert_eq!(loss(&[1, 2, 3], &[], &whole), Some((3, 0)));
    let none = Limits { gone_percent: 0, ..limits };
    assert_eq!(loss(&[1, 2, 3, 4, 5, 6, 7], &[], &none), None);
}

#[test]
fn all_is_too_much_whatever_it_counts() {
    let limits =
        Limits { lost_nodes: 100, lost_percent: 100, gone_percent: 0, ..Limits::default() };
    let one = snapshot(&[2, 3, 4, 5, 6, 7, 8], &[]);
    let lost = decided(Some(&one), &snapshot(&[], &[1]), &limits);
    assert_eq!(lost.refusals.len(), 1, "others cannot stand in");
    let emptied = decided(Some(&one), &snapshot(&[1, 2, 3, 4, 5, 6, 7, 8], &[]), &limits);
    assert!(matches!(emptied.refusals.as_slice(), [GuardRefusal::Empty]));
}

#[test]
fn a_node_that_was_not_usable_cannot_be_lost() {
    let old = snapshot(&[], &[1, 2, 3, 4, 5, 6, 7, 8]);
    let new = snapshot(&[1, 2, 3], &[4, 5, 6, 7, 8]);
    assert!(decided(Some(&old), &new, &Limits::default()).refusals.is_empty());
}

#[test]
fn a_new_object_of_an_old_name_is_another_node() {
    let old = snapshot(&[], &[]);
    let mut new = snapshot(&[], &[1, 2, 3, 4]);
    for node in &mut new.nodes {
        node.uid.push('x');
    }
    let decision = decided(Some(&old), &new, &Limits::default());
    assert!(decision.refusals.is_empty(), "four of eight, each by half");
    assert_eq!(decision.usable, Some(4));
}

#[test]
fn the_first_snapshot_has_nothing_to_lose() {
    let limits = Limits { nodes: 7, ..Limits::default() };
    let decision = decided(None, &snapshot(&[], &[1]), &limits);
    assert_eq!(decision.usable, Some(7));
    assert!(matches!(decision.refusals.as_slice(), [GuardRefusal::TooMany { nodes: 8, limit: 7 }]));
}

#[test]
fn without_a_mesh_keys_and_pod_cidrs_count() {
    let (old, new) = (snapshot(&[], &[]), snapshot(&[], &[1, 2, 3]));
    let candidate = NewSnapshot { old: Some(&old), new: &new, memberships: &[] };
    let decision = decide(candidate, &Limits::default());
    assert_eq!(decision.usable, None);
    assert!(matches!(
        decision.refusals.as_slice(),
        [GuardRefusal::Shrunk(Shrinkage { mesh: None, before: 8, .. })]
    ));
}

#[test]
fn a_node_is_of_one_cluster() {
    let order = ["first", "east", "last"].map(|name| name.parse().unwrap());
    let twins = |uids: [&[&str]; 3]| {
        let mut nodes = NodeUids::default();
        // In any order of answers.
        for (cluster, uids) in order.iter().zip(uids).rev() {
            let named = uids.iter().map(|uid| Node {
                name: format!("n{uid}"),
                uid: (*uid).to_owned(),
                ..Node::default()
            });
            nodes.set(cluster, &named.collect::<Vec<_>>());
        }
        let twins = nodes.twins(&order).into_iter();
        twins
            .map(|it| format!("{} of {} is one of {}", it.node, it.cluster, it.other))
            .collect::<Vec<_>>()
            .join(", ")
    };
    insta::assert_snapshot!(twins([&["1", "2"], &["3"], &["4"]]), @"");
    insta::assert_snapshot!(twins([&["1", "2"], &["1", "2"], &["3"]]), @"n1 of east is one of first");
    insta::assert_snapshot!(twins([&["1"], &["2"], &["2"]]), @"n2 of last is one of east");
    insta::assert_snapshot!(twins([&["1"], &["1"], &["1"]]), @"n1 of east is one of first, n1 of last is one of first");
    insta::assert_snapshot!(twins([&[""], &[""], &[""]]), @"");
}
