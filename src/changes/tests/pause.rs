//! Pauses: nodes without keepalives, changes that Kilo does not write into WireGuard, and nodes behind NAT, whose learned
//! addresses a second pass forgets.

use super::*;

const SILENT: [&str; 2] = [" persistent-keepalive=25", ""];

/// Annotates the nodes that changes name, and compares again.
fn annotated(changes: &Changes, east: &str, west: &str) -> [String; 2] {
    let annotate = |cluster: &str, nodes: &str| {
        let target = changes.targets.iter().find(|it| it.cluster.as_str() == cluster);
        let named = target.map_or(&[][..], |it| &it.pausing);
        let lines = nodes.lines().map(|line| {
            let name = line.split_whitespace().next().unwrap_or_default();
            let is_named = named.iter().any(|it| it == name);
            let more = if is_named { SILENT[0] } else { "" };
            format!("{line}{more}\n")
        });
        lines.collect::<String>()
    };
    [annotate("east", east), annotate("west", west)]
}

#[test]
fn a_pause_is_named_and_ends_with_the_annotation() {
    let east = EAST.replace(SILENT[0], SILENT[1]);
    let west = WEST.replace(SILENT[0], SILENT[1]);
    let more = JOINING.replace(SILENT[0], SILENT[1]);
    for (before, after, then) in [
        (east.clone(), format!("{east}{more}"), Grade::Additive),
        (format!("{east}{more}"), east.clone(), Grade::Cleanup),
    ] {
        let changes = compared(&lab(&before, &west), &lab(&after, &west), &Engines::default());
        assert_eq!(changes.grade(), Grade::Brief);
        assert!(changes.is_pause_only());
        assert_eq!(changes.grade_without_pause(), then);
        assert_eq!(changes.targets.len(), 1);
        assert_eq!(changes.targets[0].pausing, ["m1"]);
        let [was, west_was] = annotated(&changes, &before, &west);
        let [is, west_is] = annotated(&changes, &after, &west);
        let changes = compared(&lab(&was, &west_was), &lab(&is, &west_is), &Engines::default());
        assert_eq!(changes.grade(), then);
        assert!(!changes.is_pause_only());
    }
}

/// A change that is brief for another reason is not marked.
#[test]
fn another_interruption_is_not_a_mere_pause() {
    let west = WEST.replace(SILENT[0], SILENT[1]);
    let other = EAST.replace("198.18.0.12", "198.18.0.19");
    let changes = compared(&lab(EAST, &west), &lab(&other, &west), &Engines::default());
    assert_eq!(changes.grade(), Grade::Brief);
    assert!(!changes.is_pause_only());
    assert_eq!(changes.targets[0].pausing, ["m1"]);
}

/// Only leaders have tunnels, and only a cluster with a tunnel has sessions to forget.
#[test]
fn nodes_without_a_tunnel_do_not_pause() {
    let west = WEST.replace(SILENT[0], SILENT[1]);
    let south = |nodes| {
        let fields = "podCIDRs: [10.3.0.0/16], wireguardCIDR: 10.4.3.0/24";
        ("south", fields, nodes)
    };
    let one =
        "s1 key=E pod=10.3.1.0/24 wg=10.4.3.1/16 force-endpoint=198.18.0.31:51820 granularity=full";
    let located = "
s1 key=E pod=10.3.1.0/24 wg=10.4.3.1/16 force-endpoint=198.18.0.31:51820 internal-ip=10.9.0.1/24 granularity=location leader=
s2 key=RkZGRkZGRkZGRkZGRkZGRkZGRkZGRkZGRkZGRkZGRkY= pod=10.3.2.0/24 force-endpoint=198.18.0.32:51820 internal-ip=10.9.0.2/24 granularity=location
";
    let two = lab(EAST, WEST);
    let joined = |nodes| {
        let three = Lab::new(&[("east", FIELDS[0], EAST), ("west", FIELDS[1], WEST), south(nodes)]);
        let changes = compared(&two, &three, &Engines::default());
        let south = changes.targets.iter().find(|it| it.cluster.as_str() == "south");
        south.unwrap().pausing.clone()
    };
    assert_eq!(joined(one), [""; 0], "it had no tunnel");
    assert_eq!(joined(located), [""; 0], "it had no tunnel");
    let full = located
        .replace("granularity=location", "granularity=full")
        .replace("key=RkZ", "wg=10.4.3.2/16 key=RkZ");
    assert_eq!(joined(&full), ["s1", "s2"], "they had tunnels to each other");
    // The second node of a location has none.
    let fields = "podCIDRs: [10.3.0.0/16], wireguardCIDR: 10.4.3.0/24";
    let of = |west: &str| Lab::new(&[("south", fields, located), ("west", FIELDS[1], west)]);
    let more = format!(
        "{WEST}m2 key=D pod=10.2.2.0/24 wg=10.4.2.2/16 force-endpoint=198.18.0.22:51820 internal-ip=192.168.2.2/24 persistent-keepalive=25 granularity=full"
    );
    let changes = compared(&of(&west), &of(&more), &Engines::default());
    assert_eq!(changes.targets[0].pausing, ["s1"]);
}

/// Kilo writes the node's own keepalive into WireGuard, and never that of a Peer.
#[test]
fn a_keepalive_alone_pauses_nothing() {
    let west = WEST.replace(SILENT[0], SILENT[1]);
    let with = |seconds: &str| {
        let fields = format!("{}{seconds}", FIELDS[0]);
        Lab::new(&[("east", &fields, EAST), ("west", FIELDS[1], &west)])
    };
    let (none, some, other) =
        (with(""), with(", persistentKeepalive: 25"), with(", persistentKeepalive: 30"));
    insta::assert_snapshot!(report(&some, &other, None), @r#"
    additive
      Setting(ChangedSetting { cluster: Some(east), field: "persistentKeepalive", before: mesh.yaml#/spec/clusters/0/persistentKeepalive, after: mesh.yaml#/spec/clusters/0/persistentKeepalive, value: Listed { before: ["25"], after: ["30"] } }): west +0 ~2 -0
      west: [Peers(KeepalivesChanged, 2)]
      4 states; paths +0 -0, ended 0, apart 0, stuck 0, paused 0
    "#);
    // It decides whether a learned endpoint is used.
    insta::assert_snapshot!(report(&none, &some, None), @r#"
    brief
      Setting(ChangedSetting { cluster: Some(east), field: "persistentKeepalive", before: mesh.yaml#/spec/clusters/0/persistentKeepalive, after: mesh.yaml#/spec/clusters/0/persistentKeepalive, value: Listed { before: [], after: ["25"] } }): west +0 ~2 -0
      west: [Peers(RoamingChanged, 2)]
      4 states; paths +0 -0, ended 0, apart 0, stuck 0, paused 0
    "#);
    insta::assert_snapshot!(report(&some, &none, None), @r#"
    brief
      Setting(ChangedSetting { cluster: Some(east), field: "persistentKeepalive", before: mesh.yaml#/spec/clusters/0/persistentKeepalive, after: mesh.yaml#/spec/clusters/0/persistentKeepalive, value: Listed { before: ["25"], after: [] } }): west +0 ~2 -0
      west: [Peers(RoamingChanged, 2)]
      4 states; paths +0 -0, ended 0, apart 0, stuck 0, paused 0
    "#);
}

/// The nodes have new keys already, so their paths are down.
#[test]
fn a_repair_is_reported() {
    let other = EAST.replace("key=B", "key=E");
    let changes = compared(&lab(EAST, WEST), &lab(&other, WEST), &Engines::default());
    let reasons = &changes.targets[0].reasons;
    let repaired = reasons.iter().find_map(|it| match it {
        Reason::Paths(PathReason::Repaired, counts) => Some(counts.all()),
        _ => None,
    });
    assert_eq!(repaired, Some(14), "{reasons:?}");
    let repaired = changes.paths.iter().map(|it| it.repaired.all());
    assert_eq!(repaired.sum::<u64>(), 14);
    // Nothing was down where only the Peers differ.
    let edited = lab(EAST, WEST).edit("west/m--east.yaml", "198.18.0.12", "198.18.0.19");
    let changes = compared(&lab(EAST, WEST), &edited, &Engines::default());
    assert!(changes.paths.iter().all(|it| it.repaired.is_empty()), "{:?}", changes.paths);
}

/// Two nodes behind NAT, at a private endpoint.
const ONPREM: &str = "
p1 key=E pod=10.3.1.0/24 wg=10.4.3.1/16 endpoint=192.168.70.11:51820 internal-ip=192.168.70.11/24 persistent-keepalive=25 granularity=full
p2 key=RkZGRkZGRkZGRkZGRkZGRkZGRkZGRkZGRkZGRkZGRkY= pod=10.3.2.0/24 wg=10.4.3.2/16 endpoint=192.168.70.12:51820 internal-ip=192.168.70.12/24 persistent-keepalive=25 granularity=full
";

/// A second new node of `east`.
const FOURTH: &str = "n4 key=R0dHR0dHR0dHR0dHR0dHR0dHR0dHR0dHR0dHR0dHR0c= pod=10.1.4.0/24 wg=10.4.1.4/16 force-endpoint=198.18.0.14:51820 internal-ip=192.168.1.4/24 persistent-keepalive=25 granularity=full";

fn mesh(east: &str, west: &str, onprem: &str) -> Lab {
    Lab::new(&[
        ("east", FIELDS[0], east),
        ("west", FIELDS[1], west),
        (
            "onprem",
            "podCIDRs: [10.3.0.0/16], wireguardCIDR: 10.4.3.0/24, persistentKeepalive: 25",
            onprem,
        ),
    ])
}

/// Returns, for each target, its grade and who may forget whom.
fn forgotten(before: &Lab, after: &Lab) -> String {
    let changes = compared(before, after, &Engines::default());
    let lines = changes.targets.iter().map(|target| {
        let grade = target.grade().name();
        let Some(it) = &target.forgotten else {
            return format!("{}: {grade}\n", target.cluster);
        };
        let reason = Reason::AddressesForgotten(it.clone());
        assert!(target.reasons.contains(&reason));
        assert!(!target.is_pause_only());
        let nodes: Vec<String> =
            it.nodes.iter().map(|it| format!("{}/{}", it.cluster, it.node)).collect();
        let published = if it.is_published { ", published" } else { "" };
        format!(
            "{}: {grade}, {:?} forget {nodes:?} {:?}{published}\n",
            target.cluster, it.leaders, it.peers
        )
    });
    lines.collect()
}

#[test]
fn two_changed_peers_forget_nodes_behind_nat() {
    let before = mesh(EAST, WEST, ONPREM);
    let one = format!("{EAST}{JOINING}\n");
    let two = format!("{one}{FOURTH}");
    insta::assert_snapshot!(forgotten(&before, &mesh(&one, WEST, ONPREM)), @"
    onprem: additive
    west: additive
    ");
    insta::assert_snapshot!(forgotten(&before, &mesh(&two, WEST, ONPREM)), @r#"
    onprem: additive
    west: brief, {"m1"} forget ["onprem/p1", "onprem/p2"] {}
    "#);
    // Its nodes dial all others when they are rewritten, and each other in their own network.
    let alone = |it: &Lab| forgotten(&mesh(EAST, WEST, ONPREM), it);
    assert!(!alone(&mesh(&two, WEST, ONPREM)).contains("onprem: brief"));
}

/// After one pass it sends nothing, and the next pass comes with the resync.
#[test]
fn a_leader_without_the_annotation_forgets_after_one_change() {
    let west = WEST.replace("persistent-keepalive=25", "");
    let after = format!("{EAST}{JOINING}");
    let (before, after) = (mesh(EAST, &west, ONPREM), mesh(&after, &west, ONPREM));
    insta::assert_snapshot!(forgotten(&before, &after), @r#"
    onprem: additive
    west: brief, {"m1"} forget ["onprem/p1", "onprem/p2"] {}
    "#);
}

#[test]
fn two_public_leaders_with_the_annotation_publish_what_one_forgets() {
    let west = format!(
        "{WEST}m2 key=D pod=10.2.2.0/24 wg=10.4.2.2/16 force-endpoint=198.18.0.22:51820 internal-ip=192.168.2.2/24 persistent-keepalive=25 granularity=full"
    );
    let joining = JOINING.replace("key=D", "key=SEhISEhISEhISEhISEhISEhISEhISEhISEhISEhISEg=");
    let after = format!("{EAST}{joining}\n{FOURTH}");
    insta::assert_snapshot!(forgotten(&mesh(EAST, &west, ONPREM), &mesh(&after, &west, ONPREM)), @r#"
    onprem: additive
    west: brief, {"m1", "m2"} forget ["onprem/p1", "onprem/p2"] {}, published
    "#);
}

#[test]
fn the_address_of_the_nat_ends_it() {
    let fixed = ONPREM.replace("endpoint=192.168.70.1", "force-endpoint=203.0.113.1");
    let after = format!("{EAST}{JOINING}\n{FOURTH}");
    let (before, after) = (mesh(EAST, WEST, &fixed), mesh(&after, WEST, &fixed));
    insta::assert_snapshot!(forgotten(&before, &after), @"
    onprem: additive
    west: additive
    ");
}

/// They have no tunnel that could be forgotten.
#[test]
fn new_nodes_behind_nat_are_not_forgotten() {
    let (before, after) = (lab(EAST, WEST), mesh(EAST, WEST, ONPREM));
    insta::assert_snapshot!(forgotten(&before, &after), @"
    east: additive
    onprem: additive
    west: additive
    ");
}

/// A cluster with nodes behind NAT and public ones, which do not share a network.
#[test]
fn nodes_of_one_cluster_forget_each_other() {
    let public = "p3 key=SUlJSUlJSUlJSUlJSUlJSUlJSUlJSUlJSUlJSUlJSUk= pod=10.3.3.0/24 wg=10.4.3.3/16 force-endpoint=198.18.0.33:51820 internal-ip=10.9.0.3/24 persistent-keepalive=25 granularity=full";
    let mixed = format!("{ONPREM}{public}");
    let after = format!("{EAST}{JOINING}\n{FOURTH}");
    let (before, after) = (mesh(EAST, WEST, &mixed), mesh(&after, WEST, &mixed));
    insta::assert_snapshot!(forgotten(&before, &after), @r#"
    onprem: brief, {"p1", "p2", "p3"} forget ["onprem/p1", "onprem/p2"] {}
    west: brief, {"m1"} forget ["onprem/p1", "onprem/p2"] {}
    "#);
}

/// A laptop is known only by the address from which it connects.
#[test]
fn clients_are_forgotten_too() {
    let client = |lab: Lab| {
        let spec = "allowedIPs: [10.77.0.1/32], publicKey: \"SkpKSkpKSkpKSkpKSkpKSkpKSkpKSkpKSkpKSkpKSko=\", persistentKeepalive: 25";
        lab.add("west", "laptop", spec)
    };
    let after = format!("{EAST}{JOINING}\n{FOURTH}");
    insta::assert_snapshot!(forgotten(&client(lab(EAST, WEST)), &client(lab(&after, WEST))), @r#"west: brief, {"m1"} forget [] {"laptop"}"#);
}
