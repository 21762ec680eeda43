//! Nodes behind NAT, whose learned addresses a second pass forgets.

use super::*;

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
