//! Differences between two versions of small meshes.

use std::collections::BTreeMap;
use std::fmt::Write as _;

use regex::Regex;

use super::*;
use crate::config::Capacity;
use crate::engine::{Engine, StepOrder};
use crate::testing::lab::Lab;

mod assumed;
mod ended;
mod key_moves;
mod pause;

/// Two nodes of a cluster that send keepalives.
const EAST: &str = "
n1 key=A pod=10.1.1.0/24 wg=10.4.1.1/16 force-endpoint=198.18.0.11:51820 internal-ip=192.168.1.1/24 persistent-keepalive=25 granularity=full
n2 key=B pod=10.1.2.0/24 wg=10.4.1.2/16 force-endpoint=198.18.0.12:51820 internal-ip=192.168.1.2/24 persistent-keepalive=25 granularity=full
";

const WEST: &str = "
m1 key=C pod=10.2.1.0/24 wg=10.4.2.1/16 force-endpoint=198.18.0.21:51820 internal-ip=192.168.2.1/24 persistent-keepalive=25 granularity=full
";

/// A third node of `EAST`, whose name comes last.
const JOINING: &str = "n3 key=D pod=10.1.3.0/24 wg=10.4.1.3/16 force-endpoint=198.18.0.13:51820 internal-ip=192.168.1.3/24 persistent-keepalive=25 granularity=full";

const FIELDS: [&str; 2] = [
    "podCIDRs: [10.1.0.0/16], wireguardCIDR: 10.4.1.0/24, serviceCIDR: 172.16.1.0/24, additionalCIDRs: [192.168.1.0/24]",
    "podCIDRs: [10.2.0.0/16], wireguardCIDR: 10.4.2.0/24, serviceCIDR: 172.16.2.0/24, additionalCIDRs: [192.168.2.0/24]",
];

fn lab(east: &str, west: &str) -> Lab {
    Lab::new(&[("east", FIELDS[0], east), ("west", FIELDS[1], west)])
}

/// Compares two versions.
fn compared(before: &Lab, after: &Lab, engines: &Engines) -> Changes {
    let old = Fleet::new(&before.meshes, &before.snapshots).unwrap();
    let new = Fleet::new(&after.meshes, &after.snapshots).unwrap();
    let asked = |meshes| Asked { meshes, lists_undeclared: false, allowed: None };
    let delivery = Delivery {
        engines,
        capacity: &Capacity::default(),
        foreign: &[],
        left: &BTreeMap::new(),
        watched: &[],
        most_steps: u64::MAX,
    };
    before.show(|was, _| {
        after.show(|is, _| {
            let before = Version { fleet: Some(&old), fabric: was, asked: asked(&before.meshes) };
            let after = Version { fleet: Some(&new), fabric: is, asked: asked(&after.meshes) };
            compare(&before, &after, &delivery)
        })
    })
}

/// Lists the grade, the causes with their numbers of Peers (+ ~ −), and the reasons of each target.
fn report(before: &Lab, after: &Lab, applied_by: Option<Engine>) -> String {
    let engines = Engines { applied_by, ..Engines::default() };
    report_with(before, after, &engines)
}

/// Lists the same with what is known of the tools that apply the Peers.
fn report_with(before: &Lab, after: &Lab, engines: &Engines) -> String {
    let changes = compared(before, after, engines);
    let marked = if changes.is_pause_only() {
        format!(" (else {})", changes.grade_without_pause().name())
    } else {
        String::new()
    };
    let mut text = format!("{}{marked}\n", changes.grade().name());
    for CauseEffect { cause, targets } in &changes.causes {
        write!(text, "  {cause:?}:").unwrap();
        for effect in targets {
            let PeerCounts { added, changed, removed } = effect.counts;
            let cluster = &changes.targets[effect.target].cluster;
            write!(text, " {cluster} +{added} ~{changed} -{removed}").unwrap();
        }
        text.push('\n');
    }
    for target in &changes.targets {
        writeln!(text, "  {}: {:?}", target.cluster, target.reasons).unwrap();
        for key_move in &target.key_moves {
            writeln!(text, "    {key_move:?}").unwrap();
        }
    }
    let sum = |of: fn(&PathChange) -> PathCounts| -> u64 {
        let counts = changes.paths.iter().map(of);
        counts.map(|it| it.declared).sum()
    };
    writeln!(
        text,
        "  {} states; paths +{} -{}, ended {}, apart {}, stuck {}, paused {}",
        changes.states,
        sum(|it| it.gained),
        sum(|it| it.lost),
        sum(|it| it.ended.paths),
        sum(|it| it.apart),
        sum(|it| it.stuck),
        sum(|it| it.paused),
    )
    .unwrap();
    for (from, to) in [
        (r#"ClusterName\("(\w+)"\)"#, "$1"),
        (r#"NamedNode \{ cluster: (\w+), node: "(\w+)" \}"#, "$1/$2"),
        (r"Cidr\(([^)]+)\)", "$1"),
        (
            r"EndedPaths \{ paths: (.+?\}), left: \{([^}]*)\}, moved: \{([^}]*)\} \}",
            "$1, left [$2], moved [$3]",
        ),
        (
            r#"Some\(Place \{ source: "([^"]+)", document: \d+, pointer: Pointer\("([^"]*)"\), part: \w+ \}\)"#,
            "$1#$2",
        ),
        (r"PathCounts \{ declared: (\d+), undeclared: (\d+) \}", "$1 + $2"),
        (r"Endpoint \{ host: Ip\(([^)]+)\), port: (\d+) \}", "$1:$2"),
    ] {
        text = Regex::new(from).unwrap().replace_all(&text, to).into_owned();
    }
    text
}

#[test]
fn nothing_changes() {
    let lab = lab(EAST, WEST);
    let changes = compared(&lab, &lab, &Engines::default());
    assert_eq!(changes.grade(), Grade::None);
    assert!(changes.causes.is_empty() && changes.targets.is_empty() && changes.paths.is_empty());
}

#[test]
fn a_node_that_joins_only_adds() {
    let (before, after) = (lab(EAST, WEST), lab(&format!("{EAST}{JOINING}"), WEST));
    insta::assert_snapshot!(report(&before, &after, None), @"
    additive
      Node { node: east/n3, change: Joined }: west +1 ~0 -0
      west: [Added]
      4 states; paths +11 -0, ended 0, apart 0, stuck 0, paused 0
    ");
    // A leader without the annotation stays silent in one direction.
    let silent = WEST.replace("persistent-keepalive=25", "");
    let (before, after) = (lab(EAST, &silent), lab(&format!("{EAST}{JOINING}"), &silent));
    insta::assert_snapshot!(report(&before, &after, None), @"
    brief (else additive)
      Node { node: east/n3, change: Joined }: west +1 ~0 -0
      west: [Pause { nodes: 1 }]
      4 states; paths +11 -0, ended 0, apart 0, stuck 0, paused 0
    ");
}

#[test]
fn a_node_that_leaves_takes_its_paths_along() {
    let (before, after) = (lab(&format!("{EAST}{JOINING}"), WEST), lab(EAST, WEST));
    insta::assert_snapshot!(report(&before, &after, None), @"
    cleanup
      Node { node: east/n3, change: Left }: west +0 ~0 -1
      west: [PathsEnded(11 + 3, left [east/n3], moved []), Peers(Removed, 1)]
      4 states; paths +0 -0, ended 11, apart 0, stuck 0, paused 0
    ");
}

#[test]
fn a_node_is_excluded_and_back() {
    let stale = EAST.replace("pod=10.1.2.0/24", "pod=10.9.2.0/24");
    let (before, after) = (lab(EAST, WEST), lab(&stale, WEST));
    insta::assert_snapshot!(report(&before, &after, None), @"
    disruptive
      Node { node: east/n2, change: Excluded(PodCidrOutOfRange { cidr: 10.9.2.0/24 }) }: west +0 ~0 -1
      west: [Paths(Lost, 11 + 3), Peers(CarriersMoved, 1), Peers(Removed, 1)]
      4 states; paths +0 -11, ended 0, apart 0, stuck 0, paused 0
    ");
    insta::assert_snapshot!(report(&after, &before, None), @"
    brief
      Node { node: east/n2, change: Back(PodCidrOutOfRange { cidr: 10.9.2.0/24 }) }: west +1 ~0 -0
      west: [Peers(CarriersMoved, 1)]
      4 states; paths +11 -0, ended 0, apart 0, stuck 0, paused 0
    ");
}

#[test]
fn a_cluster_that_leaves_is_destructive() {
    let south = (
        "south",
        "podCIDRs: [10.3.0.0/16], wireguardCIDR: 10.4.3.0/24",
        "s1 key=E pod=10.3.1.0/24 wg=10.4.3.1/16 force-endpoint=198.18.0.31:51820 persistent-keepalive=25 granularity=full",
    );
    let of = |more: &[(&str, &str, &str)]| {
        let two = [("east", FIELDS[0], EAST), ("west", FIELDS[1], WEST)];
        Lab::new(&[&two[..], more].concat())
    };
    let (two, three) = (of(&[]), of(&[south]));
    insta::assert_snapshot!(report(&three, &two, None), @"
    destructive
      ClusterLeft(south): east +0 ~0 -1 south +0 ~0 -3 west +0 ~0 -1
      east: [SourceGone(south), Paths(Lost, 11 + 11), Peers(Removed, 1)]
      south: [Emptied, Paths(Lost, 18 + 18), Peers(Removed, 3)]
      west: [SourceGone(south), Paths(Lost, 7 + 7), Peers(Removed, 1)]
      0 states; paths +0 -18, ended 0, apart 0, stuck 0, paused 0
    ");
    insta::assert_snapshot!(report(&two, &three, None), @"
    additive
      ClusterJoined(south): east +1 ~0 -0 south +3 ~0 -0 west +1 ~0 -0
      east: [Added]
      south: [Added]
      west: [Added]
      32 states; paths +18 -0, ended 0, apart 0, stuck 0, paused 0
    ");
}

#[test]
fn a_node_reports_something_else() {
    let before = lab(EAST, WEST);
    let report = |from: &str, to: &str| report(&before, &lab(&EAST.replace(from, to), WEST), None);
    insta::assert_snapshot!(report("198.18.0.12", "198.18.0.19"), @"
    brief
      Node { node: east/n2, change: NewEndpoint { from: Some(198.18.0.12:51820), to: Some(198.18.0.19:51820) } }: west +0 ~1 -0
      west: [Peers(EndpointsChanged, 1)]
      4 states; paths +0 -0, ended 0, apart 0, stuck 0, paused 0
    ");
    insta::assert_snapshot!(report("key=B", "key=E"), @"
    brief
      Node { node: east/n2, change: NewKey }: west +0 ~1 -0
      west: [Peers(KeysChanged, 1), Paths(Repaired, 11 + 3)]
      4 states; paths +0 -0, ended 0, apart 0, stuck 0, paused 0
    ");
    insta::assert_snapshot!(report("192.168.1.2/24", "192.168.1.9/24"), @"
    cleanup
      Node { node: east/n2, change: NewAddress { from: [192.168.1.2/32, 10.4.1.2/32], to: [192.168.1.9/32, 10.4.1.2/32] } }: west +0 ~1 -0
      west: [PathsEnded(4 + 3, left [], moved [east/n2]), Peers(RangesRemoved, 1)]
      4 states; paths +5 -0, ended 4, apart 0, stuck 0, paused 0
    ");
    insta::assert_snapshot!(report("10.1.2.0/24", "10.1.9.0/24"), @"
    cleanup
      Node { node: east/n2, change: RangesGained([10.1.9.0/24]) }: west +0 ~1 -0
      Node { node: east/n2, change: RangesLost([10.1.2.0/24]) }: west +0 ~1 -0
      west: [PathsEnded(7 + 0, left [], moved [east/n2]), Peers(RangesRemoved, 1)]
      4 states; paths +7 -0, ended 7, apart 0, stuck 0, paused 0
    ");
}

/// Peers of other programs can give half of what a node has.
#[test]
fn paths_that_hold_in_part_are_lost_too() {
    let lab = |range: &str| {
        let range = format!("- \"{range}\"");
        lab(EAST, WEST).edit("west/m--east.yaml", "- \"10.1.2.0/24\"", &range)
    };
    let (half, none) = (lab("10.1.2.0/25"), lab("10.1.9.0/24"));
    insta::assert_snapshot!(report(&half, &none, None), @"
    disruptive
      Other: west +0 ~1 -0
      west: [Paths(Lost, 7 + 0), Peers(RangesRemoved, 1)]
      4 states; paths +0 -7, ended 0, apart 0, stuck 0, paused 0
    ");
    // It is not known which half holds.
    let other = lab("10.1.2.128/25");
    insta::assert_snapshot!(report(&half, &other, None), @"
    disruptive
      Other: west +0 ~1 -0
      west: [Paths(Lost, 7 + 0), Peers(RangesRemoved, 1)]
      4 states; paths +0 -7, ended 0, apart 0, stuck 0, paused 0
    ");
    let whole = lab("10.1.2.0/24");
    insta::assert_snapshot!(report(&half, &whole, None), @"
    brief
      Other: west +0 ~1 -0
      west: [Peers(RangesReplaced, 1)]
      4 states; paths +0 -0, ended 0, apart 0, stuck 0, paused 0
    ");
    // The half is as it was if another Peer changes.
    let half = || lab("10.1.2.0/25");
    let changed = half().edit("west/m--east.yaml", "198.18.0.11", "198.18.0.19");
    insta::assert_snapshot!(report(&half(), &changed, None), @"
    disruptive
      Other: west +0 ~1 -0
      west: [Paths(NoLongerProved, 14 + 6), Peers(EndpointsChanged, 1)]
      4 states; paths +0 -0, ended 0, apart 0, stuck 0, paused 0
    ");
}

#[test]
fn a_setting_of_the_mesh_changes() {
    let before = lab(EAST, WEST);
    let report = |fields: &str, east: &str| {
        let fields = format!("{}, {fields}", FIELDS[0]);
        let after = Lab::new(&[("east", &fields, east), ("west", FIELDS[1], WEST)]);
        report(&before, &after, None)
    };
    insta::assert_snapshot!(report("persistentKeepalive: 25", EAST), @r#"
    brief
      Setting(ChangedSetting { cluster: Some(east), field: "persistentKeepalive", before: mesh.yaml#/spec/clusters/0/persistentKeepalive, after: mesh.yaml#/spec/clusters/0/persistentKeepalive, value: Listed { before: [], after: ["25"] } }): west +0 ~2 -0
      west: [Peers(RoamingChanged, 2)]
      4 states; paths +0 -0, ended 0, apart 0, stuck 0, paused 0
    "#);
    insta::assert_snapshot!(report("anchors: [{ nodes: [n2] }]", EAST), @r#"
    brief
      Setting(ChangedSetting { cluster: Some(east), field: "anchors", before: mesh.yaml#/spec/clusters/0/anchors, after: mesh.yaml#/spec/clusters/0/anchors, value: Listed { before: [], after: ["all ranges on n2"] } }): west +0 ~2 -0
      AnchorMoved { cluster: east, range: 172.16.1.0/24, from: "n1", to: "n2" }: west +0 ~2 -0
      AnchorMoved { cluster: east, range: 192.168.1.0/24, from: "n1", to: "n2" }: west +0 ~2 -0
      west: [Paths(Paused, 3 + 3), Peers(CarriersMoved, 2), Peers(RangesRemoved, 1)]
      8 states; paths +0 -0, ended 0, apart 0, stuck 0, paused 3
    "#);
    insta::assert_snapshot!(report("acceptedNetworks: [172.16.0.0/12]", EAST), @r#"
    destructive
      Setting(ChangedSetting { cluster: Some(east), field: "acceptedNetworks", before: None, after: mesh.yaml#/spec/clusters/0/acceptedNetworks/0, value: Listed { before: [], after: ["172.16.0.0/12"] } }): east +0 ~1 -0
      east: [AllPathsLost(west), Paths(Lost, 23 + 7), Peers(RangesUnproved, 1), Peers(RangesRemoved, 1)]
      4 states; paths +0 -23, ended 0, apart 0, stuck 0, paused 0
    "#);
}

/// East dials west, then west dials east: while only east has its new Peers, neither does.
#[test]
fn paths_do_not_hold_with_one_side_only() {
    let without = |lab: Lab, file: &str, address: &str| {
        let text = format!("  endpoint:\n    dnsOrIP:\n      ip: \"{address}\"\n    port: 51820\n");
        lab.edit(file, &text, "  persistentKeepalive: 25\n")
    };
    let one = EAST.lines().take(2).collect::<Vec<_>>().join("\n");
    let lab = || lab(&one, WEST);
    let before = without(lab(), "west/m--east.yaml", "198.18.0.11");
    let after = without(lab(), "east/m--west.yaml", "198.18.0.21");
    insta::assert_snapshot!(report(&before, &after, None), @"
    disruptive
      Other: east +0 ~1 -0 west +0 ~1 -0
      east: [Paths(Apart, 14 + 6), Peers(EndpointsChanged, 1), Peers(RoamingChanged, 1)]
      west: [Paths(Apart, 14 + 6), Peers(EndpointsChanged, 1), Peers(RoamingChanged, 1)]
      8 states; paths +0 -0, ended 0, apart 14, stuck 0, paused 0
    ");
}

/// Lists the links with their effect, their Peers and the paths of each kind that has any.
fn links(before: &Lab, after: &Lab) -> String {
    let changes = compared(before, after, &Engines::default());
    let mut text = String::new();
    for link in changes.links() {
        let PeerCounts { added, changed, removed } = link.peers;
        let [one, other] = link.clusters;
        let cut = if link.is_cut { " cut" } else { "" };
        writeln!(
            text,
            "{one}, {other}: {:?}{cut} +{added} ~{changed} -{removed} {:?}",
            link.effect(),
            link.paths
        )
        .unwrap();
    }
    Regex::new(r"(\w+: 0, |, \w+: 0)").unwrap().replace_all(&text, "").into_owned()
}

#[test]
fn a_link_gains_changes_or_loses() {
    let (two, three) = (lab(EAST, WEST), lab(&format!("{EAST}{JOINING}"), WEST));
    let moved = lab(&EAST.replace("198.18.0.12", "198.18.0.19"), WEST);
    let other = lab(&format!("{EAST}{JOINING}").replace("198.18.0.12", "198.18.0.19"), WEST);
    let stale = lab(&EAST.replace("pod=10.1.2.0/24", "pod=10.9.2.0/24"), WEST);
    let all = [
        ("joins", &two, &three),
        ("leaves", &three, &two),
        ("moves", &two, &moved),
        ("leaves while another moves", &other, &two),
        ("is excluded", &two, &stale),
        ("stays", &two, &two),
    ];
    let text =
        all.map(|(what, before, after)| format!("{what}\n  {}", links(before, after))).concat();
    insta::assert_snapshot!(text, @"
    joins
      east, west: Gained +1 ~0 -0 LinkPaths { gained: 14 }
    leaves
      east, west: Lost +0 ~0 -1 LinkPaths { ended: 14 }
    moves
      east, west: Changed +0 ~1 -0 LinkPaths { gained: 0 }
    leaves while another moves
      east, west: Changed +0 ~1 -1 LinkPaths { ended: 14 }
    is excluded
      east, west: Lost +0 ~0 -1 LinkPaths { lost: 14 }
    stays
    ");
}

#[test]
fn the_worst_link_comes_first() {
    let south = (
        "south",
        "podCIDRs: [10.3.0.0/16], wireguardCIDR: 10.4.3.0/24",
        "s1 key=E pod=10.3.1.0/24 wg=10.4.3.1/16 force-endpoint=198.18.0.31:51820 persistent-keepalive=25 granularity=full",
    );
    let joined = format!("{EAST}{JOINING}");
    let west = ("west", FIELDS[1], WEST);
    let before = Lab::new(&[("east", FIELDS[0], EAST), west, south]);
    let after = Lab::new(&[("east", FIELDS[0], &joined), west]);
    insta::assert_snapshot!(links(&before, &after), @"
    east, south: Lost cut +0 ~0 -3 LinkPaths { lost: 22 }
    south, west: Lost cut +0 ~0 -2 LinkPaths { lost: 14 }
    east, west: Gained +1 ~0 -0 LinkPaths { gained: 14 }
    ");
}
