//! Keys that move between Peers, with the grade and the cure that real Kilo gives (`kilo.md` §2.2).

use super::*;

/// Argo CD with Applications that delete in the background.
fn in_background() -> Engines {
    let all = ["east", "north", "orient", "west"]
        .map(|it| (it.parse().unwrap(), StepOrder::DeletesFirst));
    Engines { applied_by: Some(Engine::ArgoCd), argo_cd: all.into() }
}

#[test]
fn two_nodes_swap_keys() {
    let swapped =
        EAST.replace("key=A", "key=X").replace("key=B", "key=A").replace("key=X", "key=B");
    let (before, after) = (lab(EAST, WEST), lab(&swapped, WEST));
    insta::assert_snapshot!(report(&before, &after, None), @r#"
    disruptive
      Node { node: east/n1, change: NewKey }: west +0 ~1 -0
      Node { node: east/n2, change: NewKey }: west +0 ~1 -0
      west: [KeysLost(["m--east--n1", "m--east--n2"]), Peers(KeysChanged, 2), Paths(Repaired, 25 + 9)]
        KeyMove { kind: Swapped, peers: ["m--east--n1", "m--east--n2"], lost: ["m--east--n1", "m--east--n2"], touched: ["m--east--n1", "m--east--n2"], needs_background: false }
      8 states; paths +0 -0, ended 0, apart 0, stuck 0, paused 0
    "#);
}

#[test]
fn two_nodes_swap_names() {
    let swapped = EAST.replace("n1 ", "nx ").replace("n2 ", "n1 ").replace("nx ", "n2 ");
    let (before, after) = (lab(EAST, WEST), lab(&swapped, WEST));
    insta::assert_snapshot!(report(&before, &after, None), @r#"
    disruptive
      Node { node: east/n1, change: NewEndpoint { from: Some(198.18.0.11:51820), to: Some(198.18.0.12:51820) } }: west +0 ~1 -0
      Node { node: east/n1, change: NewKey }: west +0 ~1 -0
      Node { node: east/n1, change: NewAddress { from: [192.168.1.1/32, 10.4.1.1/32], to: [192.168.1.2/32, 10.4.1.2/32] } }: west +0 ~2 -0
      Node { node: east/n1, change: RangesGained([10.1.2.0/24]) }: west +0 ~2 -0
      Node { node: east/n1, change: RangesLost([10.1.1.0/24]) }: west +0 ~2 -0
      Node { node: east/n2, change: NewEndpoint { from: Some(198.18.0.12:51820), to: Some(198.18.0.11:51820) } }: west +0 ~1 -0
      Node { node: east/n2, change: NewKey }: west +0 ~1 -0
      Node { node: east/n2, change: NewAddress { from: [192.168.1.2/32, 10.4.1.2/32], to: [192.168.1.1/32, 10.4.1.1/32] } }: west +0 ~2 -0
      Node { node: east/n2, change: RangesGained([10.1.1.0/24]) }: west +0 ~2 -0
      Node { node: east/n2, change: RangesLost([10.1.2.0/24]) }: west +0 ~2 -0
      west: [Paths(Stuck, 25 + 9), KeysLost(["m--east--n1", "m--east--n2"]), Peers(KeysChanged, 2), Peers(EndpointsChanged, 2), Peers(RangesRemoved, 2)]
        KeyMove { kind: Swapped, peers: ["m--east--n1", "m--east--n2"], lost: ["m--east--n1", "m--east--n2"], touched: ["m--east--n1", "m--east--n2"], needs_background: false }
      8 states; paths +0 -0, ended 0, apart 0, stuck 25, paused 0
    "#);
}

#[test]
fn a_key_moves_to_another_node() {
    // The disk of n2 was put into a new machine.
    let moved = EAST.replace("n2 ", "n9 ");
    let (before, after) = (lab(EAST, WEST), lab(&moved, WEST));
    insta::assert_snapshot!(report(&before, &after, None), @r#"
    disruptive
      NodeRenamed { cluster: east, from: "n2", to: "n9" }: west +1 ~0 -1
      west: [Paths(Stuck, 11 + 3), KeysLost(["m--east--n9"]), Peers(Removed, 1)]
        KeyMove { kind: Renamed { from: "m--east--n2", to: "m--east--n9" }, peers: ["m--east--n2", "m--east--n9"], lost: ["m--east--n9"], touched: ["m--east--n9"], needs_background: true }
      6 states; paths +0 -0, ended 0, apart 0, stuck 11, paused 0
    "#);
    insta::assert_snapshot!(report_with(&before, &after, &in_background()), @r#"
    brief
      NodeRenamed { cluster: east, from: "n2", to: "n9" }: west +1 ~0 -1
      west: [Paths(Paused, 11 + 3), Peers(Removed, 1)]
        KeyMove { kind: Renamed { from: "m--east--n2", to: "m--east--n9" }, peers: ["m--east--n2", "m--east--n9"], lost: [], touched: [], needs_background: false }
      6 states; paths +0 -0, ended 0, apart 0, stuck 0, paused 11
    "#);
}

#[test]
fn a_chain_of_keys_loses_nothing_in_one_order() {
    let chain = EAST.replace("key=A", "key=X").replace("key=B", "key=E").replace("key=X", "key=B");
    let (before, after) = (lab(EAST, WEST), lab(&chain, WEST));
    insta::assert_snapshot!(report(&before, &after, None), @r#"
    disruptive
      Node { node: east/n1, change: NewKey }: west +0 ~1 -0
      Node { node: east/n2, change: NewKey }: west +0 ~1 -0
      west: [KeysLost(["m--east--n1"]), Peers(KeysChanged, 2), Paths(Repaired, 25 + 9)]
        KeyMove { kind: Chain, peers: ["m--east--n1", "m--east--n2"], lost: ["m--east--n1"], touched: ["m--east--n1"], needs_background: false }
      10 states; paths +0 -0, ended 0, apart 0, stuck 0, paused 0
    "#);
}

#[test]
fn a_renamed_cluster_keeps_its_keys_if_it_is_deleted_first() {
    let before = lab(EAST, WEST);
    let after = Lab::new(&[("orient", FIELDS[0], EAST), ("west", FIELDS[1], WEST)]);
    insta::assert_snapshot!(report(&before, &after, Some(Engine::Flux)), @r#"
    disruptive
      ClusterRenamed { from: east, to: orient }: west +2 ~0 -2
      west: [Paths(Stuck, 25 + 9), KeysLost(["m--orient--n1", "m--orient--n2"]), Peers(Removed, 2)]
        KeyMove { kind: Renamed { from: "m--east--n1", to: "m--orient--n1" }, peers: ["m--east--n1", "m--orient--n1"], lost: ["m--orient--n1"], touched: ["m--orient--n1"], needs_background: false }
        KeyMove { kind: Renamed { from: "m--east--n2", to: "m--orient--n2" }, peers: ["m--east--n2", "m--orient--n2"], lost: ["m--orient--n2"], touched: ["m--orient--n2"], needs_background: false }
      16 states; paths +0 -0, ended 0, apart 0, stuck 25, paused 0
    "#);
    insta::assert_snapshot!(report_with(&before, &after, &in_background()), @r#"
    brief
      ClusterRenamed { from: east, to: orient }: west +2 ~0 -2
      west: [Paths(Paused, 25 + 9), Peers(Removed, 2)]
        KeyMove { kind: Renamed { from: "m--east--n1", to: "m--orient--n1" }, peers: ["m--east--n1", "m--orient--n1"], lost: [], touched: [], needs_background: false }
        KeyMove { kind: Renamed { from: "m--east--n2", to: "m--orient--n2" }, peers: ["m--east--n2", "m--orient--n2"], lost: [], touched: [], needs_background: false }
      16 states; paths +0 -0, ended 0, apart 0, stuck 0, paused 25
    "#);
}

#[test]
fn two_peers_with_one_key_lose_it_when_one_goes() {
    let spec =
        "allowedIPs: [172.31.0.0/16], publicKey: vblMc9U8RAI6cVopcKEMTVT6lVC3D9nTTMSwot5d3L4=";
    let before = lab(EAST, WEST).add("west", "m--east--n2--anchor", spec);
    let after = lab(EAST, WEST);
    insta::assert_snapshot!(report(&before, &after, None), @r#"
    disruptive
      Other: west +0 ~0 -1
      west: [KeysLost(["m--east--n2"]), Peers(RangesUnproved, 1), Peers(Removed, 1)]
        KeyMove { kind: Shared, peers: ["m--east--n2", "m--east--n2--anchor"], lost: ["m--east--n2"], touched: ["m--east--n2"], needs_background: false }
      8 states; paths +11 -0, ended 0, apart 0, stuck 0, paused 0
    "#);
}

/// Argo CD only marks Peers as deleted, and the garbage collector deletes them in the middle of the others.
#[test]
fn a_renamed_mesh_may_lose_its_keys_with_the_default_of_argo_cd() {
    let before = lab(EAST, WEST);
    let mut after = lab(EAST, WEST);
    for text in after.files.values_mut() {
        *text = text.replace("name: m--", "name: mesh--");
    }
    let argo_cd = Some(Engine::ArgoCd);
    insta::assert_snapshot!(report(&before, &after, argo_cd), @r#"
    disruptive
      Other: east +1 ~0 -1 west +2 ~0 -2
      east: [Paths(Stuck, 25 + 9), KeysLost(["mesh--west--m1"]), Peers(Removed, 1)]
        KeyMove { kind: Renamed { from: "m--west--m1", to: "mesh--west--m1" }, peers: ["m--west--m1", "mesh--west--m1"], lost: ["mesh--west--m1"], touched: [], needs_background: true }
      west: [Paths(Stuck, 25 + 9), KeysLost(["mesh--east--n1", "mesh--east--n2"]), Peers(Removed, 2)]
        KeyMove { kind: Renamed { from: "m--east--n1", to: "mesh--east--n1" }, peers: ["m--east--n1", "mesh--east--n1"], lost: ["mesh--east--n1"], touched: [], needs_background: true }
        KeyMove { kind: Renamed { from: "m--east--n2", to: "mesh--east--n2" }, peers: ["m--east--n2", "mesh--east--n2"], lost: ["mesh--east--n2"], touched: [], needs_background: true }
      60 states; paths +0 -0, ended 0, apart 0, stuck 25, paused 0
    "#);
    insta::assert_snapshot!(report_with(&before, &after, &in_background()), @r#"
    brief
      Other: east +1 ~0 -1 west +2 ~0 -2
      east: [Paths(Paused, 25 + 9), Peers(Removed, 1)]
        KeyMove { kind: Renamed { from: "m--west--m1", to: "mesh--west--m1" }, peers: ["m--west--m1", "mesh--west--m1"], lost: [], touched: [], needs_background: false }
      west: [Paths(Paused, 25 + 9), Peers(Removed, 2)]
        KeyMove { kind: Renamed { from: "m--east--n1", to: "mesh--east--n1" }, peers: ["m--east--n1", "mesh--east--n1"], lost: [], touched: [], needs_background: false }
        KeyMove { kind: Renamed { from: "m--east--n2", to: "mesh--east--n2" }, peers: ["m--east--n2", "mesh--east--n2"], lost: [], touched: [], needs_background: false }
      48 states; paths +0 -0, ended 0, apart 0, stuck 0, paused 25
    "#);
}

/// Each cluster gets many tables on the way, but only a few states of each pair differ in what the other one sees.
#[test]
fn a_renamed_mesh_of_three_clusters_is_proved() {
    const WEST_TWO: &str = "m2 key=R0dHR0dHR0dHR0dHR0dHR0dHR0dHR0dHR0dHR0dHR0c= pod=10.2.2.0/24 wg=10.4.2.2/16 force-endpoint=198.18.0.22:51820 internal-ip=192.168.2.2/24 persistent-keepalive=25 granularity=full";
    const NORTH: &str = "
o1 key=E pod=10.3.1.0/24 wg=10.4.3.1/16 force-endpoint=198.18.0.31:51820 persistent-keepalive=25 granularity=full
o2 key=RkZGRkZGRkZGRkZGRkZGRkZGRkZGRkZGRkZGRkZGRkY= pod=10.3.2.0/24 wg=10.4.3.2/16 force-endpoint=198.18.0.32:51820 persistent-keepalive=25 granularity=full
";
    let three = || {
        let fields = "podCIDRs: [10.3.0.0/16], wireguardCIDR: 10.4.3.0/24";
        Lab::new(&[
            ("east", FIELDS[0], &format!("{EAST}{JOINING}")),
            ("west", FIELDS[1], &format!("{WEST}{WEST_TWO}")),
            ("north", fields, NORTH),
        ])
    };
    let (before, mut after) = (three(), three());
    for text in after.files.values_mut() {
        *text = text.replace("name: m--", "name: mesh--");
    }
    let changes = compared(&before, &after, &in_background());
    let peers = changes.targets.iter().map(|it| it.peers_after);
    assert_eq!(peers.sum::<usize>(), 14);
    let reasons: Vec<&Reason> = changes.targets.iter().flat_map(|it| &it.reasons).collect();
    assert_eq!(changes.grade(), Grade::Brief, "{reasons:?}");
}

/// Without a key that moves, the order of deletions and the rest does not matter.
#[test]
fn nodes_that_come_and_go_lose_nothing_in_any_order() {
    let before = lab(EAST, WEST);
    let other = JOINING.replace("n3 ", "n0 ");
    let after = lab(&format!("{}{other}", EAST.split("n2 ").next().unwrap()), WEST);
    let mixed = report(&before, &after, Some(Engine::ArgoCd));
    let ordered = report_with(&before, &after, &in_background());
    let without_states = |text: &str| {
        text.split("\n  ")
            .filter(|it| !it.contains("states;"))
            .map(str::to_owned)
            .collect::<Vec<_>>()
    };
    assert_eq!(without_states(&mixed), without_states(&ordered));
}
