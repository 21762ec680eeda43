//! `verify`: proved paths, and the messages about failed ones.

use super::*;
use crate::support::{assert_contains, clustermesh, copy, project};

mod accepted;
mod assumed;
mod behind_nat;
mod claimed;
mod expectations;
mod families;
mod granularity;
mod groups;
mod held_back;
mod hops;
mod hostile;
mod joining;
mod outdated;
mod peers;
mod same_decisions;
mod survival;
mod underlays;
mod unproved;

const WEST_OF_EAST: &str = "rendered/west/prod--east.yaml";

fn verified(folder: &Folder, arguments: &[&str]) -> (i32, String) {
    let run = folder.run(&[&["verify"], arguments].concat());
    assert_harmless(&run);
    (run.code, run.stdout)
}

#[test]
fn proves_what_is_rendered() {
    let (code, text) = verified(&Folder::rendered(), &[]);
    insta::assert_snapshot!(text, @"
    mesh prod (mesh.yaml): 3 clusters, Peers from rendered

    FROM   TO     pod → pod
    east   north  4/4
    east   west   4/4
    north  east   4/4
    north  west   4/4
    west   east   4/4
    west   north  4/4

    All 24 declared paths work in both directions.
    ");
    assert_eq!(code, 0);
}

#[test]
fn shows_the_smallest_packet_that_is_stolen() {
    let folder = Folder::rendered();
    folder.turn_off("outdated-tree");
    folder.edit(WEST_OF_EAST, "\"10.1.2.0/24\"", "\"10.1.2.0/24\"\n  - \"10.1.1.0/25\"");
    let (code, text) = verified(&folder, &[]);
    insta::assert_snapshot!(text, @r#"
    mesh prod (mesh.yaml): 3 clusters, Peers from rendered

    FROM   TO     pod → pod
    east   north  4/4
    east   west   2/4
    north  east   4/4
    north  west   4/4
    west   east   2/4
    west   north  4/4

    error[stolen-by]: west: 10.3.1.0 → 10.1.1.0 (west → east): west/n1 routes 10.1.1.0 (by 10.1.1.0/25) to the Peer prod--east--n2 (the key of east/n2) instead of east/n1; 2 declared paths fail like this (west → east; to pods of east/n1) (1 other finding follows from it)
      --> rendered/west/prod--east.yaml:31:5
       |
    31 |   - "10.1.1.0/25"
       |     ^^^^^^^^^^^^^ contains the destination
    help: run `clustermesh diff --against rendered` to see what changes, then `clustermesh render`

    With the outdated Peers in rendered: 20 of 24 declared paths work in both directions.
    "#);
    assert_eq!(code, 1);
}

#[test]
fn fails_where_more_is_reached_than_was_promised() {
    let folder = Folder::rendered();
    folder.edit(WEST_OF_EAST, "\"10.1.2.0/24\"", "\"10.1.2.0/24\"\n  - \"172.30.0.0/16\"");
    let (code, text) = verified(&folder, &["--output", "json"]);
    let value: Value = serde_json::from_str(&text).unwrap();
    assert_eq!(code, 1);
    assert_eq!(value["holds"], false);
    assert_eq!(value["failures"], json!([]));
    assert_eq!(value["findings"][0]["rule"], "outdated-tree");
    assert_eq!(value["findings"][1]["rule"], "unpromised-reach");
    assert_eq!(value["findings"][1]["places"][0]["file"], WEST_OF_EAST);
}

#[test]
fn holds_for_every_example_that_is_right() {
    for example in ["quickstart", "hub-and-spokes", "multi-cloud-location"] {
        let run = clustermesh(&project().join("examples").join(example), &["verify"]);
        assert_eq!(run.code, 0, "{example}: {}{}", run.stdout, run.stderr);
    }
}

#[test]
fn names_whoever_alone_carries_something() {
    let folder = Folder::mesh();
    folder.edit(
        "mesh.yaml",
        "wireguardCIDR: 10.101.0.0/24",
        "wireguardCIDR: 10.101.0.0/24\n      serviceCIDR: 10.96.0.0/16",
    );
    assert_eq!(folder.run(&["render"]).code, 0);
    let (code, text) = verified(&folder, &[]);
    insta::assert_snapshot!(text, @"
    mesh prod (mesh.yaml): 3 clusters, Peers from rendered

    FROM   TO     pod → pod  pod → service
    east   north  4/4        -
    east   west   4/4        -
    north  east   4/4        2/2
    north  west   4/4        -
    west   east   4/4        2/2
    west   north  4/4        -

    only east/n1 carries 10.96.0.0/16 for north, west

    All 28 declared paths work in both directions.
    ");
    assert_eq!(code, 0);
}

#[test]
fn names_whoever_speaks_for_a_location() {
    let folder = Folder::mesh();
    folder.edit(
        "mesh.yaml",
        "wireguardCIDR: 10.101.0.0/24",
        "wireguardCIDR: 10.101.0.0/24\n      granularity: Location",
    );
    folder.keep("east", &location(vec![node(1, 1), node(1, 2)]));
    assert_eq!(folder.run(&["render"]).code, 0);
    let (code, text) = verified(&folder, &[]);
    let report: Vec<&str> = text.lines().filter(|it| it.starts_with("only ")).collect();
    insta::assert_snapshot!(report.join("\n"), @"only east/n1 carries the pods of 1 other node for north, west");
    assert_eq!(code, 0);
}

/// In a large fleet there is such a line for most nodes, and a person reads none of them.
#[test]
fn nodes_that_alone_carry_something_are_folded() {
    let folder = Folder::mesh();
    let nodes = [1, 2, 3, 4, 5].map(|number| node(1, number));
    folder.keep("east", &nodes);
    let ranges: Vec<String> = (1..=5).map(|it| format!("10.9{it}.0.0/16")).collect();
    let anchors = (1..=5).map(|it| format!("{{ ranges: [10.9{it}.0.0/16], nodes: [n{it}] }}"));
    let anchors: Vec<String> = anchors.collect();
    let east = format!(
        "- name: east\n      additionalCIDRs: [{}]\n      anchors: [{}]",
        ranges.join(", "),
        anchors.join(", ")
    );
    folder.edit("mesh.yaml", "- name: east", &east);
    assert_eq!(folder.run(&["render"]).code, 0);
    let (_, text) = verified(&folder, &[]);
    let lines: Vec<&str> =
        text.lines().filter(|it| it.starts_with("only ") || it.starts_with('…')).collect();
    insta::assert_snapshot!(lines.join("\n"), @"
    only east/n1 carries 10.91.0.0/16 for north, west
    only east/n2 carries 10.92.0.0/16 for north, west
    only east/n3 carries 10.93.0.0/16 for north, west
    … and 2 more nodes of east that alone carry something (see `--output json`)
    ");
}

#[test]
fn fails_where_clusters_that_nothing_links_reach_each_other() {
    let folder = Folder::rendered();
    folder.edit("mesh.yaml", "spec:", "spec:\n  topology: { mode: Hub, hubs: [east] }");
    let (code, text) = verified(&folder, &["--output", "concise"]);
    insta::assert_snapshot!(text, @"
    error[outdated-tree] the rendered tree is not what `render` would write: 4 files differ (rendered/north/kustomization.yaml, rendered/north/prod--west.yaml, rendered/west/kustomization.yaml and 1 more), and `render` would refuse (lost-source) (1 other finding follows from it)
    ");
    assert_eq!(code, 1);
}

#[test]
fn says_the_same_in_every_format() {
    let folder = Folder::rendered();
    folder.edit(WEST_OF_EAST, "10.1.1.0/24", "10.1.9.0/24");
    for format in ["human", "concise", "json", "sarif", "github", "gitlab", "markdown"] {
        let (code, text) = verified(&folder, &["--output", format]);
        assert_eq!(code, 1, "{format}");
        assert!(text.contains("no-route"), "{format}: {text}");
        assert!(text.contains("prod--east.yaml"), "{format}: {text}");
    }
}

/// A manifest of a client, with more lines of its spec.
fn client(name: &str, key: u8, more: &str) -> String {
    let key = STANDARD.encode([key; 32]);
    format!(
        "---\napiVersion: kilo.squat.ai/v1alpha1\nkind: Peer\nmetadata: {{ name: {name} }}\n\
         spec:\n  allowedIPs: [10.77.0.{}/32]\n  publicKey: {key}\n{more}",
        name.len()
    )
}

const PLACEHOLDER: &str = "  endpoint: { dnsOrIP: { ip: 192.0.2.1 }, port: 9 }\n";

#[test]
fn warns_of_a_peer_without_endpoint_and_names_what_waits_for_it() {
    let folder = Folder::rendered();
    let rendered =
        folder.read(WEST_OF_EAST) + "---\n" + &folder.read("rendered/west/prod--north.yaml");
    let about = |more: &str| {
        folder.write("peers.yaml", format!("{rendered}{}", client("laptop", 1, more)));
        let (code, text) =
            verified(&folder, &["--peers", "west=peers.yaml", "--output", "concise"]);
        assert_eq!(code, 0, "{text}");
        let report = text.lines().filter(|it| it.contains("[peer-without-endpoint]"));
        report.map(|it| it.split_once("] ").unwrap().1.to_owned()).collect::<Vec<_>>()
    };
    insta::assert_snapshot!(about("").join("\n"), @"west: the Peer laptop has no endpoint: until it connects, WireGuard does not get changes of 4 Peers (prod--east--n1, prod--east--n2, prod--north--n1 and 1 more) and of 2 nodes of west (n1, n2)");
    insta::assert_snapshot!(about("  persistentKeepalive: 25\n").join("\n"), @"west: the Peer laptop has no endpoint: until it connects, WireGuard does not get changes of 4 Peers (prod--east--n1, prod--east--n2, prod--north--n1 and 1 more) and of 2 nodes of west (n1, n2)");
    assert_eq!(about(&format!("{PLACEHOLDER}  persistentKeepalive: 25\n")), [""; 0]);
    // Without a keepalive it is worse than no endpoint.
    for zero in ["", "  persistentKeepalive: 0\n"] {
        insta::allow_duplicates! {
            insta::assert_snapshot!(about(&format!("{PLACEHOLDER}{zero}")).join("\n"), @"west: the Peer laptop has the placeholder 192.0.2.1:9 as endpoint, but no `persistentKeepalive`: Kilo resets its tunnel with every pass");
        }
    }
}

#[test]
fn a_node_without_endpoint_is_reached_when_it_connects_and_stops_nobody() {
    let folder = Folder::mesh();
    let keepalive = "- name: east\n      persistentKeepalive: 25";
    folder.edit("mesh.yaml", "- name: east", keepalive);
    let behind_nat = |number: u8| {
        let mut node = node(1, number);
        let annotations = node["annotations"].as_object_mut().unwrap();
        annotations.retain(|key, _| !key.ends_with("-endpoint"));
        node["addresses"] = json!([]);
        node
    };
    folder.keep("east", &[behind_nat(1), behind_nat(2)]);
    assert_eq!(folder.run(&["render"]).code, 0);
    let east = folder.read(WEST_OF_EAST);
    assert_eq!(east.matches("ip: \"192.0.2.1\"\n    port: 9\n").count(), 2);
    let (code, text) = verified(&folder, &["--fail-on", "warning"]);
    assert_contains(&text, "All 24 declared");
    assert_eq!(code, 0, "{text}");
    let trace = folder.run(&["trace", "west/n1", "east/n1"]);
    assert_eq!(trace.code, 0);
    assert!(!trace.stdout.contains("192.0.2.1"), "{}", trace.stdout);
    assert_contains(&trace.stdout, "east/n1 dials");
    // Without its own keepalives the node never connects.
    let mut quiet = behind_nat(1);
    let annotations = quiet["annotations"].as_object_mut().unwrap();
    annotations.remove("kilo.squat.ai/persistent-keepalive");
    folder.keep("east", &[quiet, behind_nat(2)]);
    let trace = folder.run(&["trace", "west/n1", "east/n1"]);
    insta::assert_snapshot!(trace.stdout, @r#"
    from a pod on west/n1 to a pod on east/n1

    there: 10.3.1.2 to 10.1.1.2
      1. west/n1 routes 10.1.1.2 (by 10.1.1.0/24) to the Peer prod--east--n1, the key of east/n1
         at rendered/west/prod--east.yaml:12:5

    error[no-initiator]: nothing gets from west/n1 to east/n1 until east/n1 has sent something: west/n1 cannot dial it (192.0.2.1:9 of the Peer prod--east--n1 is the placeholder for nodes without an endpoint), and east/n1 sends no keepalives because it has no annotation `kilo.squat.ai/persistent-keepalive`
      --> rendered/west/prod--east.yaml:15:5
       |
    15 |     dnsOrIP:
       |     ^^^^^^^^ one side
       |
      ::: rendered/east/prod--west.yaml:15:5
       |
    15 |     dnsOrIP:
       |     -------- the other side
    help: annotate east/n1 with `kilo.squat.ai/persistent-keepalive: "25"`, or give one of the two nodes an endpoint that the other one can dial (`kilo.squat.ai/clustermesh-endpoint`)
    "#);
}

#[test]
fn tells_of_a_rendered_tree_without_endpoints() {
    let folder = Folder::rendered();
    let text = folder.read(WEST_OF_EAST);
    let start = text.find("  endpoint:").unwrap();
    let end = start + text[start..].find("  publicKey").unwrap();
    folder.write(WEST_OF_EAST, format!("{}{}", &text[..start], &text[end..]));
    let run = folder.run(&["validate", "--output", "concise"]);
    insta::assert_snapshot!(run.stdout, @"rendered/west/prod--east.yaml:9:9: warning[peer-without-endpoint] west: `prod--east--n1` has no endpoint: until it connects, Kilo does not apply later changes of Peers and nodes");
    let placeholder = "  endpoint:\n    dnsOrIP:\n      ip: \"192.0.2.1\"\n    port: 9\n";
    folder.write(WEST_OF_EAST, format!("{}{placeholder}{}", &text[..start], &text[end..]));
    let run = folder.run(&["validate", "--output", "concise"]);
    insta::assert_snapshot!(run.stdout, @"rendered/west/prod--east.yaml:9:9: warning[peer-without-endpoint] west: `prod--east--n1` has the placeholder 192.0.2.1:9 as endpoint, but no `persistentKeepalive`: Kilo resets its tunnel with every pass");
    folder.turn_off("outdated-tree");
    let run = folder.run(&["verify", "--output", "concise"]);
    let report =
        "[peer-without-endpoint] west: the Peer prod--east--n1 has the placeholder 192.0.2.1:9";
    assert_contains(&run.stdout, report);
}

#[test]
fn warns_of_two_peers_with_one_key_and_says_how_to_part_them() {
    let folder = Folder::rendered();
    let of_east = folder.read(WEST_OF_EAST);
    let rest = folder.read("rendered/west/prod--north.yaml");
    let first = of_east.split("---\n").next().unwrap();
    let anchor = first
        .replace("prod--east--n1", "prod--east--anchor")
        .replace("10.1.1.0/24", "10.96.0.0/16");
    assert_ne!(anchor, first);
    folder.write("peers.yaml", format!("{of_east}---\n{rest}---\n{anchor}"));
    let (_, text) = verified(&folder, &["--peers", "west=peers.yaml"]);
    let report = text.split("warning[").find(|it| it.starts_with("twin-peers"));
    insta::assert_snapshot!(report.unwrap_or_default(), @r#"
    twin-peers]: west: the Peers prod--east--anchor, prod--east--n1 have the same key: deleting one of them removes the tunnel until the agents' next resync (8 minutes measured)
      --> peers.yaml:92:14
       |
    18 |   publicKey: "CwsLCwsLCwsLCwsLCwsLCwsLCwsLCwsLCwsLCwsLCws="
       |              ---------------------------------------------- same key
    ...
    92 |   publicKey: "CwsLCwsLCwsLCwsLCwsLCwsLCwsLCwsLCwsLCwsLCws="
       |              ^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^ same key
    help: in west, delete all but one, then immediately touch the remaining one: `kubectl annotate peers --overwrite NAME touched=1`

    20 of 24 declared paths work in both directions.
    "#);
}

#[test]
fn shows_its_table_in_a_comment_too() {
    let (code, text) = verified(&Folder::rendered(), &["--output", "markdown"]);
    insta::assert_snapshot!(text, @"
    ### clustermesh: no problems found

    | FROM | TO | pod → pod |
    |---|---|---|
    | east | north | 4/4 |
    | east | west | 4/4 |
    | north | east | 4/4 |
    | north | west | 4/4 |
    | west | east | 4/4 |
    | west | north | 4/4 |

    All 24 declared paths work in both directions.
    ");
    assert_eq!(code, 0);
}

#[test]
fn counts_only_the_nodes_that_a_location_gives() {
    let folder = Folder::mesh();
    folder.edit(
        "mesh.yaml",
        "- name: east",
        "- name: east\n      granularity: Location\n      nodeSelector: { matchExpressions: [{ key: edge, operator: DoesNotExist }] }",
    );
    let labelled = |number: u8, edge: bool| {
        let mut node = node(1, number);
        if edge {
            node["labels"]["edge"] = json!("yes");
        }
        node
    };
    let nodes = vec![labelled(1, false), labelled(2, false), labelled(3, true)];
    folder.keep("east", &location(nodes));
    assert_eq!(folder.run(&["render"]).code, 0);
    let (_, text) = verified(&folder, &[]);
    assert_contains(&text, "only east/n1 carries the pods of 1 other node for");
}

#[test]
fn counts_on_nothing_where_the_own_routes_of_a_cluster_fail() {
    let folder = Folder::mesh();
    for (cluster, subnet) in [(1, "10.101.0.0/24"), (3, "10.103.0.0/24")] {
        let ranges = format!("podCIDRs: [10.{cluster}.0.0/16]\n      wireguardCIDR: {subnet}");
        let subnet = match cluster {
            1 => subnet,
            _ => "'fd00:10:4::/112'",
        };
        let six = format!("podCIDRs: ['fd00:{cluster}::/48']\n      wireguardCIDR: {subnet}");
        folder.edit("mesh.yaml", &ranges, &six);
    }
    let six = |cluster: u8, number: u8| {
        let mut node = node(cluster, number);
        node["podCIDRs"] = json!([format!("fd00:{cluster}:0:{number}::/64")]);
        let internal = format!("fd00:9:{cluster}::{number}/64");
        node["annotations"]["kilo.squat.ai/internal-ip"] = json!(internal);
        if cluster == 3 {
            let wireguard = format!("fd00:10:4::{number}/112");
            node["annotations"]["kilo.squat.ai/wireguard-ip"] = json!(wireguard);
        }
        node
    };
    folder.keep("east", &[six(1, 1), six(1, 2)]);
    folder.keep("west", &[six(3, 1), six(3, 2)]);
    assert_eq!(folder.run(&["render", "--allow-empty", "*/north"]).code, 0);
    let report = folder.run(&["validate", "--output", "concise"]).stdout;
    let about = |rule: &str, cluster: &str| report.contains(&format!("[{rule}] {cluster}:"));
    assert!(about("mismatched-subnet", "east"), "{report}");
    assert!(!about("mismatched-subnet", "west"), "{report}");
    let trace = folder.run(&["trace", "east/n1", "west/n1"]);
    assert_eq!(trace.code, 1);
    let ending = trace.stdout.split("error[").nth(1);
    insta::assert_snapshot!(ending.unwrap_or_default(), @"
    ambiguous]: the kernel refuses the route to fd00:1:0:2::/64 via 10.101.0.2 that Kilo sets on east/n1: Kilo stops there, so other routes of east/n1 may be missing
    help: run Kilo with a `--subnet` of the family of the nodes' internal IPs and pod CIDRs, such as `--subnet fd00:10:4::/112` for IPv6
    ");
}

/// What `verify` lists of a rendered mesh in which something is changed in the files of `east`.
fn listed(change: impl Fn(&Folder, &str)) -> Vec<String> {
    let folder = Folder::rendered();
    folder.turn_off("outdated-tree");
    for target in ["north", "west"] {
        change(&folder, &format!("rendered/{target}/prod--east.yaml"));
    }
    let run = folder.run(&["verify", "--output", "concise"]);
    assert_eq!(run.code, 1, "{}", run.stderr);
    run.stdout.lines().map(str::to_owned).collect()
}

#[test]
fn a_cluster_whose_peers_are_missing_everywhere_is_one_finding() {
    let listed = listed(|folder, path| fs::remove_file(folder.path(path)).unwrap());
    assert_eq!(listed.len(), 1, "{listed:#?}");
    assert!(listed[0].starts_with("error[no-route] north: "), "{listed:#?}");
    let all = "(north → east, west → east; to pods of east/n1, pods of east/n2) (1 other finding \
               follows from it)";
    assert!(listed[0].ends_with(all), "{listed:#?}");
}

#[test]
fn a_key_that_is_wrong_everywhere_is_one_finding() {
    let key = STANDARD.encode([11; 32]);
    let listed = listed(|folder, path| folder.edit(path, &key, &STANDARD.encode([99; 32])));
    assert_eq!(listed.len(), 1, "{listed:#?}");
    assert!(listed[0].contains("error[unknown-key] north: "), "{listed:#?}");
    assert!(listed[0].ends_with(" (3 other findings follow from it)"), "{listed:#?}");
}

#[test]
fn a_cluster_without_peers_is_one_finding() {
    let folder = Folder::rendered();
    folder.turn_off("outdated-tree");
    fs::remove_dir_all(folder.path("rendered/east")).unwrap();
    let run = folder.run(&["verify", "--output", "concise"]);
    assert_eq!(run.stdout.lines().count(), 1, "{}", run.stdout);
    assert_contains(&run.stdout, "east has no Peers");
}

/// A range of the whole cluster leads to a node that the selector leaves out.
#[test]
fn lists_undeclared_paths_by_range() {
    let folder = Folder::rendered();
    assert_eq!(
        verified(&folder, &["--undeclared"]).1.lines().nth(10),
        Some("No undeclared path works.")
    );
    folder.edit("mesh.yaml", "[10.1.0.0/16]", "[10.1.1.0/24]");
    let range = "additionalCIDRs: [10.1.2.0/23]";
    let selector = "nodeSelector: { matchLabels: { mesh: 'yes' } }";
    folder.edit(
        "mesh.yaml",
        "wireguardCIDR: 10.101.0.0/24",
        &format!("wireguardCIDR: 10.101.0.0/24\n      {range}\n      {selector}"),
    );
    let mut selected = node(1, 1);
    selected["labels"] = json!({ "mesh": "yes" });
    let mut other = node(1, 2);
    for node in [&mut selected, &mut other] {
        node["annotations"]["kilo.squat.ai/granularity"] = json!("location");
    }
    let annotations = other["annotations"].as_object_mut().unwrap();
    annotations.remove("kilo.squat.ai/wireguard-ip");
    folder.keep("east", &[selected, other]);
    let run = folder.run(&["render"]);
    assert_eq!(run.code, 0, "{}", run.stderr);
    assert_contains(&run.stderr, "[undone-selector]");
    let (code, text) = verified(&folder, &["--undeclared"]);
    insta::assert_snapshot!(text, @"
    mesh prod (mesh.yaml): 3 clusters, Peers from rendered

    FROM   TO     pod → pod  pod → network
    east   north  2/2 +2     -
    east   west   2/2 +2     -
    north  east   2/2 +2     2/2
    north  west   4/4        -
    west   east   2/2 +2     2/2
    west   north  4/4        -

    only east/n1 carries the pods of 1 other node for north, west

    Undeclared paths that work:

    FROM   TO     PATH       RANGE             OWNER            DECLARED     PAIRS
    east   north  pod → pod  from 10.1.2.0/24  pods of east/n2  10.1.2.0/23  2
    east   west   pod → pod  from 10.1.2.0/24  pods of east/n2  10.1.2.0/23  2
    north  east   pod → pod  to 10.1.2.0/24    pods of east/n2  10.1.2.0/23  2
    west   east   pod → pod  to 10.1.2.0/24    pods of east/n2  10.1.2.0/23  2

    All 20 declared paths work in both directions. 8 undeclared paths also work. 1 node has no declared paths.
    ");
    assert_eq!(code, 0);
    let (_, text) = verified(&folder, &[]);
    assert_contains(&text, "also work (list them with `--undeclared`)");
    let (_, text) = verified(&folder, &["--undeclared", "--output", "markdown"]);
    assert_contains(&text, "\n| FROM | TO | PATH | RANGE | OWNER | DECLARED | PAIRS |\n");
    let (_, text) = verified(&folder, &["--undeclared", "--output", "json"]);
    let written: Value = serde_json::from_str(&text).unwrap();
    let path = json!({
        "from": "east", "to": "north", "sender": "pod", "receiver": "pod", "side": "sender",
        "range": "10.1.2.0/24", "owner": "pods of east/n2", "declared": "10.1.2.0/23", "pairs": 2,
    });
    assert_eq!(written["undeclared"][0], path);
}

/// A render of it is refused until a person allows the loss.
#[test]
fn peers_of_a_source_that_left_the_mesh_are_one_finding_for_each_target() {
    let folder = Folder::rendered();
    folder.edit("mesh.yaml", NORTH, "");
    let run = folder.run(&["verify", "--output", "concise"]);
    assert_eq!(run.code, 1, "{}", run.stderr);
    assert_contains(&run.stdout, "and `render` would refuse (lost-source, lost-target)");
    folder.turn_off("outdated-tree");
    let run = folder.run(&["verify", "--output", "concise"]);
    let lines: Vec<&str> = run.stdout.lines().filter(|it| it.contains("[outside-peer]")).collect();
    assert_eq!(lines.len(), 2, "{lines:#?}");
    let message = "the keys of 2 Peers of prod--north belong to no node of any cluster: \
                   prod--north--n1, prod--north--n2";
    assert!(lines.iter().all(|it| it.contains(message)), "{lines:#?}");
}

#[test]
fn a_hand_made_peer_names_who_else_has_its_ranges() {
    let folder = Folder::rendered();
    let rendered = folder.read("rendered/west/prod--east.yaml");
    let peer = |ranges: &str| {
        format!(
            "{rendered}---\napiVersion: kilo.squat.ai/v1alpha1\nkind: Peer\nmetadata: {{ name: vpn }}\nspec:\n  \
             allowedIPs: [{ranges}]\n  publicKey: hPSEhISEhISEhISEhISEhISEhISEhISEhISEhISEhIQ=\n"
        )
    };
    let message = |ranges: &str| {
        folder.write("vpn.yaml", peer(ranges));
        let run = folder.run(&["verify", "--peers", "west=vpn.yaml", "--output", "concise"]);
        let line = run.stdout.lines().find(|it| it.contains("[outside-peer]"));
        line.unwrap_or_else(|| panic!("{}{}", run.stdout, run.stderr)).to_owned()
    };
    let alone = message("10.77.0.1/32");
    assert!(alone.ends_with("belongs to no node of any cluster"), "{alone}");
    let wider = message("10.1.0.0/16");
    assert_contains(
        &wider,
        "prod--east--n1 has 10.1.1.0/24 too, and packets to 10.1.1.0/24 go to prod--east--n1",
    );
    let equal = message("10.1.1.0/24");
    assert_contains(&equal, "has 10.1.1.0/24 too, and packets to it go to prod--east--n1");
}

#[test]
fn a_missing_tree_is_reported_to_programs_too() {
    let folder = Folder::mesh();
    for format in ["json", "sarif", "gitlab", "concise"] {
        let run = folder.run(&["verify", "--output", format]);
        assert_eq!(run.code, 2, "{format}: {}", run.stderr);
        assert!(run.stdout.contains("does not exist"), "{format}: {}", run.stdout);
        if format != "concise" {
            let report = run.json();
            assert!(!report.is_null(), "{format}");
        }
    }
}

#[test]
fn a_mistake_in_the_mesh_is_reported_without_what_follows_from_it() {
    let folder = Folder::rendered();
    let mesh = folder.read("mesh.yaml");
    let wrong = "      granularity: full\n      wireguardCIDR:";
    folder.write("mesh.yaml", mesh.replace("      wireguardCIDR:", wrong));
    let (code, text) = verified(&folder, &[]);
    assert_contains(&text, "error[invalid-value]: `granularity` cannot be `full`");
    assert!(!text.contains("nothing-proved"), "{text}");
    assert_eq!(code, 1);
}

/// None of its paths is checked, so the others alone do not make the result right.
#[test]
fn a_missing_snapshot_is_an_error() {
    let folder = Folder::rendered();
    assert_eq!(folder.run(&["verify", "--output", "json"]).json()["holds"], true);
    fs::remove_file(folder.path("snapshots/north.json")).unwrap();
    for format in ["human", "json", "sarif", "markdown"] {
        let run = folder.run(&["verify", "--output", format]);
        assert_eq!(run.code, 1, "{format}");
        assert!(run.stdout.contains("missing-snapshot"), "{}", run.stdout);
        // Its keys are unknown, so its Peers lead to no known node.
        assert!(!run.stdout.contains("outside-peer"), "{}", run.stdout);
    }
    let holds = || folder.run(&["verify", "--output", "json"]).json()["holds"].clone();
    assert_eq!(holds(), false);
    let last = " 1 cluster was not checked, because its snapshot is missing or cannot be read.\n";
    for format in ["human", "markdown"] {
        let text = folder.run(&["verify", "--output", format]).stdout;
        assert!(text.replace('\n', " ").trim_end().ends_with(last.trim_end()), "{text}");
    }
    // Others that lead to no node are reported.
    folder.write("rendered/west/laptop.yaml", client("laptop", 0x49, ""));
    let text = verified(&folder, &["--output", "concise"]).1;
    assert_contains(&text, "the key of the Peer laptop belongs to no node");
    fs::remove_file(folder.path("rendered/west/laptop.yaml")).unwrap();
    folder.write("snapshots/north.json", "{}");
    assert_eq!(holds(), false);
    fs::remove_file(folder.path("snapshots/north.json")).unwrap();
    // Nothing is proved of a single cluster, which has the same cause.
    fs::remove_file(folder.path("snapshots/west.json")).unwrap();
    let (code, text) = verified(&folder, &[]);
    assert_eq!(code, 1);
    assert!(!text.contains("nothing-proved"), "{text}");
    assert_contains(
        &text.replace('\n', " "),
        "2 clusters were not checked, because their snapshots are missing or cannot be read.",
    );
    folder.keep("west", &[node(3, 1), node(3, 2)]);
    // The entry names the cluster, but it exchanges no Peers yet.
    folder.edit("mesh.yaml", "- name: north", "- name: north\n      state: Joining");
    let run = folder.run(&["render", "--allow-empty", "*/north", "--allow-empty", "north"]);
    assert_eq!(run.code, 0, "{}", run.stderr);
    assert_eq!(verified(&folder, &[]).0, 0);
}

#[test]
fn the_first_line_is_about_what_was_read() {
    let folder = Folder::rendered();
    let first = |arguments: &[&str]| {
        let (_, text) = verified(&folder, arguments);
        text.lines().next().unwrap_or_default().to_owned()
    };
    assert_eq!(first(&[]), "mesh prod (mesh.yaml): 3 clusters, Peers from rendered");
    folder.write("east.yaml", folder.read("rendered/east/prod--west.yaml"));
    assert_eq!(
        first(&["--peers", "east=east.yaml"]),
        "mesh prod (mesh.yaml): 3 clusters, Peers from rendered, those of east from east.yaml"
    );
}

/// What one node reports of itself makes no expectation fail; what several do makes it fail.
#[test]
fn a_path_of_reach_that_one_node_spoils_is_excused() {
    let reach = "apiVersion: kilo-clustermesh.io/v1\nkind: Expectations\nspec:\n  - from: { cluster: east }\n    to: { cluster: west }\n    expect: Reach\n";
    let verified = |wrong: &[u8], expect: &str| {
        let folder = Folder::mesh();
        let nodes = (1..=4).map(|number| {
            let mut node = node(1, number);
            if wrong.contains(&number) {
                node["podCIDRs"] = json!([format!("10.9.{number}.0/24")]);
            }
            node
        });
        folder.keep("east", &nodes.collect::<Vec<_>>());
        folder.write("expectations.yaml", reach.replace("Reach", expect));
        folder.run(&["render"]);
        folder.run(&["verify", "--output", "concise"])
    };
    let run = verified(&[], "Reach");
    assert_eq!((run.code, run.stdout.contains("failed-expectation")), (0, false), "{}", run.stdout);
    let run = verified(&[2], "Reach");
    assert_contains(&run.stdout, "warning[failed-expectation]");
    assert_contains(&run.stdout, "(2 of 8 pairs)");
    assert_eq!(run.code, 0, "{}", run.stdout);
    let run = verified(&[2, 3, 4], "Reach");
    assert_contains(&run.stdout, "error[failed-expectation]");
    assert_eq!(run.code, 1);
    // It excuses nothing of a `Deny`.
    let run = verified(&[2], "Deny");
    assert_contains(&run.stdout, "error[failed-expectation]");
    assert_eq!(run.code, 1);
}
