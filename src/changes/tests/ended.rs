//! Paths to nodes and addresses that the new snapshot does not have, beside paths that are lost.

use super::*;

/// The fields of `east` with more of them.
fn east_with(fields: &str, nodes: &str) -> Lab {
    let fields = format!("{}, {fields}", FIELDS[0]);
    Lab::new(&[("east", &fields, nodes), ("west", FIELDS[1], WEST)])
}

/// A node of a location that does not lead it.
const LOCATED: &str = "
n1 key=A pod=10.1.1.0/24 wg=10.4.1.1/16 force-endpoint=198.18.0.11:51820 internal-ip=192.168.1.1/24 persistent-keepalive=25 granularity=location location=x leader=
n2 key=B pod=10.1.2.0/24 force-endpoint=198.18.0.12:51820 internal-ip=192.168.1.2/24 persistent-keepalive=25 granularity=location location=x
";

#[test]
fn a_node_that_does_not_lead_ends_its_paths() {
    let left = LOCATED.lines().take(2).collect::<Vec<_>>().join("\n");
    let (before, after) = (lab(LOCATED, WEST), lab(&left, WEST));
    insta::assert_snapshot!(report(&before, &after, None), @"
    cleanup
      Node { node: east/n2, change: Left }: west +0 ~1 -0
      west: [PathsEnded(11 + 3, left [east/n2], moved []), Peers(RangesRemoved, 1)]
      4 states; paths +0 -0, ended 11, apart 0, stuck 0, paused 0
    ");
}

/// Its object is there, so its pods are, too.
#[test]
fn a_node_that_is_left_out_loses_its_paths() {
    for stale in [
        EAST.replace("key=B ", ""),
        EAST.replace("key=B", "key=nonsense"),
        EAST.replace("wg=10.4.1.2/16", "wg=10.9.9.9/16"),
        EAST.replace("n2 key=B pod=10.1.2.0/24", "n2 key=B stale"),
    ] {
        let changes = compared(&lab(EAST, WEST), &lab(&stale, WEST), &Engines::default());
        assert_eq!(changes.grade(), Grade::Disruptive, "{stale}");
        assert!(changes.paths.iter().all(|it| it.ended.paths.is_empty()), "{stale}");
        assert!(changes.paths.iter().any(|it| !it.lost.is_empty()), "{stale}");
    }
    // Another node that is left out has its pods now.
    let taken = EAST.replace("n2 key=B", "n9 key=nonsense");
    let changes = compared(&lab(EAST, WEST), &lab(&taken, WEST), &Engines::default());
    assert_eq!(changes.grade(), Grade::Disruptive);
    // Only the mesh does not select it.
    let selector = "nodeSelector: { matchLabels: { pick: a } }";
    let all = EAST.replace("granularity=full", "granularity=full label=a");
    let one = all.replacen(" label=a", "", 1);
    let changes =
        compared(&east_with(selector, &all), &east_with(selector, &one), &Engines::default());
    assert_eq!(changes.grade(), Grade::Disruptive);
    assert!(changes.paths.iter().all(|it| it.ended.paths.is_empty()));
}

/// The declared range stays, and no other node can carry it.
#[test]
fn the_only_carrier_of_a_range_loses_it() {
    let hidden = EAST.replace("force-endpoint=198.18.0.12:51820 ", "endpoint=192.168.1.2:51820 ");
    let left = hidden.lines().filter(|it| !it.starts_with("n1")).collect::<Vec<_>>().join("\n");
    let keepalive = "persistentKeepalive: 25";
    let (before, after) = (east_with(keepalive, &hidden), east_with(keepalive, &left));
    insta::assert_snapshot!(report(&before, &after, None), @"
    disruptive
      Node { node: east/n1, change: Left }: west +0 ~0 -1
      west: [Paths(Lost, 3 + 3), PathsEnded(11 + 3, left [east/n1], moved []), Peers(Removed, 1)]
      4 states; paths +0 -3, ended 11, apart 0, stuck 0, paused 0
    ");
}

#[test]
fn a_declared_range_that_goes_is_lost() {
    let fields = FIELDS[0].replace(", serviceCIDR: 172.16.1.0/24", "");
    let after = Lab::new(&[("east", &fields, EAST), ("west", FIELDS[1], WEST)]);
    insta::assert_snapshot!(report(&lab(EAST, WEST), &after, None), @r#"
    disruptive
      Setting(ChangedSetting { cluster: Some(east), field: "serviceCIDR", before: mesh.yaml#/spec/clusters/0/serviceCIDR, after: None, value: Listed { before: ["172.16.1.0/24"], after: [] } }): west +0 ~1 -0
      west: [Paths(Lost, 1 + 1), Peers(RangesRemoved, 1)]
      4 states; paths +0 -1, ended 0, apart 0, stuck 0, paused 0
    "#);
}

/// A node of `east` left, and one of `south` is left out.
#[test]
fn each_target_has_the_grade_of_its_own_paths() {
    const SOUTH: &str = "
s1 key=E pod=10.3.1.0/24 wg=10.4.3.1/16 force-endpoint=198.18.0.31:51820 persistent-keepalive=25 granularity=full
s2 key=RkZGRkZGRkZGRkZGRkZGRkZGRkZGRkZGRkZGRkZGRkY= pod=10.3.2.0/24 wg=10.4.3.2/16 force-endpoint=198.18.0.32:51820 persistent-keepalive=25 granularity=full
";
    let linked = |east: &str, south: &str| {
        let topology = "{ mode: Links, links: [[east, west], [south, north]] }";
        Lab::linked(
            topology,
            &[
                ("east", FIELDS[0], east),
                ("west", FIELDS[1], WEST),
                ("south", "podCIDRs: [10.3.0.0/16], wireguardCIDR: 10.4.3.0/24", south),
                (
                    "north",
                    "podCIDRs: [10.5.0.0/16], wireguardCIDR: 10.4.5.0/24",
                    "o1 key=R0dHR0dHR0dHR0dHR0dHR0dHR0dHR0dHR0dHR0dHR0c= pod=10.5.1.0/24 wg=10.4.5.1/16 force-endpoint=198.18.0.51:51820 persistent-keepalive=25 granularity=full",
                ),
            ],
        )
    };
    let before = linked(&format!("{EAST}{JOINING}"), SOUTH);
    let after = linked(EAST, &SOUTH.replace("pod=10.3.2.0/24", "pod=10.9.2.0/24"));
    let changes = compared(&before, &after, &Engines::default());
    let grades = changes.targets.iter();
    let grades = grades.map(|it| format!("{} {}", it.cluster, it.grade().name()));
    assert_eq!(grades.collect::<Vec<_>>(), ["north disruptive", "west cleanup"]);
}

/// All nodes are new ones, and the Peers do not have their ranges.
#[test]
fn nodes_that_cannot_replace_others_are_a_loss() {
    let others = EAST
        .replace("n1 key=A", "n8 key=E")
        .replace("n2 key=B", "n9 key=D")
        .replace("pod=10.1.", "pod=10.1.10")
        .replace("192.168.1.", "192.168.1.10");
    let (before, after) = (lab(EAST, WEST), lab(&others, WEST));
    let changes = compared(&before, &after, &Engines::default());
    let lost = changes.paths.iter().map(|it| it.lost.all()).sum::<u64>();
    // The ranges of the cluster have another carrier.
    assert_eq!((changes.grade(), lost), (Grade::Brief, 0));
    let broken = after.edit("west/m--east.yaml", "- \"1", "- \"2");
    let report = report(&before, &broken, None);
    assert!(report.starts_with("destructive"), "{report}");
}

/// The declared range stays, and another node gets it, which is not in its network.
#[test]
fn the_last_node_in_a_network_takes_it_along() {
    let away =
        |nodes: &str| nodes.replace("internal-ip=192.168.1.2/24", "internal-ip=192.168.9.2/24");
    let all = away(EAST);
    let left = all.lines().filter(|it| !it.starts_with("n1"));
    let left = left.collect::<Vec<_>>().join("\n");
    let report = report(&lab(&all, WEST), &lab(&left, WEST), None);
    assert!(report.starts_with("disruptive"), "{report}");
    assert!(report.contains("Peers(NetworksLeft, 1)"), "{report}");
    // A person names the other node as an anchor.
    let named = "anchors: [{ nodes: [n1, n2] }]";
    let changes = compared(&east_with(named, &all), &east_with(named, &left), &Engines::default());
    assert_eq!(changes.grade(), Grade::Brief);
    // No snapshot shows that the old carrier had one.
    let stranger = |nodes: &str| nodes.replace("192.168.1.", "192.168.8.");
    let (before, after) = (lab(&stranger(&all), WEST), lab(&stranger(&left), WEST));
    assert_eq!(compared(&before, &after, &Engines::default()).grade(), Grade::Brief);
}

/// The target accepts only some addresses.
#[test]
fn a_node_whose_new_addresses_are_refused_loses_its_paths() {
    let accepting = |east: &str| {
        let accepted =
            "acceptedNetworks: [10.1.0.0/21, 10.4.1.0/24, 192.168.1.0/24, 172.16.1.0/24]";
        let west = format!("{}, {accepted}", FIELDS[1]);
        Lab::new(&[("east", FIELDS[0], east), ("west", &west, WEST)])
    };
    let grade = |to: &str| {
        let moved = EAST.replace("pod=10.1.2.0/24", to);
        compared(&accepting(EAST), &accepting(&moved), &Engines::default()).grade()
    };
    assert_eq!(grade("pod=10.1.7.0/24"), Grade::Cleanup);
    assert_eq!(grade("pod=10.1.9.0/24"), Grade::Disruptive);
}

/// Neither of the two can know that the other one leaves.
#[test]
fn nodes_of_two_clusters_that_leave_together_are_cleaned_up() {
    let second = "m2 key=D pod=10.2.2.0/24 wg=10.4.2.2/16 force-endpoint=198.18.0.22:51820 internal-ip=192.168.2.2/24 persistent-keepalive=25 granularity=full";
    let west = format!("{WEST}{second}\n");
    let left = EAST.lines().filter(|it| !it.starts_with("n2")).collect::<Vec<_>>().join("\n");
    let changes = compared(&lab(EAST, &west), &lab(&left, WEST), &Engines::default());
    assert_eq!(
        changes.grade(),
        Grade::Cleanup,
        "{}",
        report(&lab(EAST, &west), &lab(&left, WEST), None)
    );
}

/// Its class is that of the addresses of its nodes, of which it had none before.
#[test]
fn a_flat_range_whose_first_node_joins_loses_no_path() {
    let flat = "allowedNetworks: [10.1.0.0/16, 10.4.1.0/24, 192.168.1.0/24]";
    for more in ["", ", 10.9.0.0/16"] {
        let fields = flat.replace(", 192", &format!("{more}, 192"));
        let lab = |east: &str| Lab::new(&[("east", &fields, east), ("west", FIELDS[1], WEST)]);
        let new = JOINING.replace("10.1.3.0", "10.9.3.0");
        let new = if more.is_empty() { JOINING.to_owned() } else { new };
        let (before, after) = (lab(EAST), lab(&format!("{EAST}{new}")));
        let changes = compared(&before, &after, &Engines::default());
        let report = report(&before, &after, None);
        assert!(changes.grade() <= Grade::Brief, "{report}");
        assert!(
            changes.paths.iter().all(|it| it.lost.is_empty() && it.ended.paths.is_empty()),
            "{report}"
        );
    }
}
