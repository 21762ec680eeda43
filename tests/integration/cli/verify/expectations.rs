//! `verify` with expectations: what holds, what breaks one, and files that are wrong.

use crate::cli::*;
use crate::support::{assert_contains, clustermesh, project};

const HEAD: &str = "apiVersion: kilo-clustermesh.io/v1\nkind: Expectations\nspec:\n";

/// A mesh that is rendered, with these expectations.
fn expecting(spec: &str) -> Folder {
    let folder = Folder::rendered();
    folder.write("expectations.yaml", format!("{HEAD}{spec}"));
    folder
}

/// The messages about expectations, without the table.
fn verified(folder: &Folder, arguments: &[&str]) -> (i32, String) {
    let run = folder.run(&[&["verify"], arguments].concat());
    assert_harmless(&run);
    let report = run.stdout.splitn(3, "\n\n").nth(2).unwrap_or_default();
    (run.code, report.to_owned())
}

fn json_of(folder: &Folder, arguments: &[&str]) -> (i32, Value) {
    let run = folder.run(&[&["verify", "--output", "json"], arguments].concat());
    assert_harmless(&run);
    (run.code, run.json())
}

#[test]
fn holds_what_is_written_beside_the_mesh() {
    let folder = expecting(
        "
  - { from: { cluster: east }, to: { cluster: west }, expect: Reach }
  - { from: { cluster: east }, to: { cluster: west }, class: Node, expect: Deny }
",
    );
    assert_eq!(
        verified(&folder, &[]),
        (
            0,
            "All 24 declared paths work in both directions. All 2 expectations are met.\n"
                .to_owned()
        )
    );
    let (_, value) = json_of(&folder, &[]);
    assert_eq!(value["holds"], true);
    assert_eq!(value["expectations"][1]["pairs"], 4);
    assert_eq!(value["expectations"][1]["expect"], "Deny");
    assert_eq!(value["expectations"][1].get("counterexample"), None);
}

/// A node with the key and the ranges can dial in from anywhere, so a wrong endpoint does not close a path.
#[test]
fn a_denial_is_not_met_by_endpoints_that_nobody_answers() {
    let folder = expecting(
        "  - { name: apart, from: { cluster: east }, to: { cluster: west }, class: Pod, expect: Deny }\n",
    );
    let broken = || {
        let (code, value) = json_of(&folder, &[]);
        (code, value["expectations"][0]["broken"].clone())
    };
    assert_eq!(broken(), (1, json!(4)));
    let files = ["rendered/east/prod--west.yaml", "rendered/west/prod--east.yaml"];
    let edit = |from: &str, to: &str| {
        for file in files {
            folder.write(file, folder.read(file).replace(from, to));
        }
    };
    edit("port: 51820", "port: 51821");
    assert_eq!(broken(), (1, json!(4)));
    let (_, report) = verified(&folder, &[]);
    assert_contains(
        &report,
        "expected Deny, but 10.1.1.0 (a pod on east/n1) reaches 10.3.1.0 (a pod on west/n1) (4 of 4 pairs) as soon as one of the \
         two nodes dials the other: each has the other's key and ranges, and only the way to dial is missing (`no-initiator`)",
    );
    // Without the ranges of one side, nothing is open.
    for node in 1..3 {
        let pods = format!("\"10.1.{node}.0/24\"");
        folder.edit(files[1], &pods, &format!("\"10.99.{node}.0/24\""));
    }
    // With the WireGuard addresses of their nodes, which a network plugin may give to their packets, pods still arrive.
    assert_eq!(broken(), (1, json!(4)));
    for node in 1..3 {
        let address = format!("\"10.101.0.{node}/32\"");
        folder.edit(files[1], &address, &format!("\"10.99.9.{node}/32\""));
    }
    assert_eq!(broken(), (1, json!(0)));
}

/// A person who declares that pods keep their addresses denies nothing else.
#[test]
fn a_denial_of_pods_that_keep_their_addresses_covers_nothing_else() {
    let folder = expecting(
        "  - { name: apart, from: { cluster: east }, to: { cluster: west }, class: Pod, expect: Deny }\n",
    );
    let entry = "wireguardCIDR: 10.101.0.0/24\n";
    folder.edit("mesh.yaml", entry, &format!("{entry}      podSource: Kept\n"));
    for node in 1..3 {
        let pods = format!("\"10.1.{node}.0/24\"");
        let file = "rendered/west/prod--east.yaml";
        folder.edit(file, &pods, &format!("\"10.99.{node}.0/24\""));
    }
    let (code, value) = json_of(&folder, &[]);
    assert_eq!((code, &value["expectations"][0]["broken"]), (1, &json!(0)), "{value}");
}

#[test]
fn one_address_that_is_stolen_breaks_a_range() {
    let folder = expecting(
        "  - { name: all of it, from: { cluster: west }, to: { addresses: [10.1.1.0/24] }, expect: Reach }\n",
    );
    folder.turn_off("outdated-tree");
    // The last address of the range: no sample would have found it.
    folder.edit(
        "rendered/west/prod--east.yaml",
        "\"10.1.2.0/24\"",
        "\"10.1.2.0/24\"\n  - \"10.1.1.255/32\"",
    );
    let (code, text) = verified(&folder, &[]);
    let (shown, _) = text.split_once("error[").unwrap();
    insta::assert_snapshot!(shown, @"
    expectation `all of it` (expectations.yaml:4:5) fails for this packet:

      there: 10.3.1.0 to 10.1.1.255

      west/n1 routes 10.1.1.255 (by 10.1.1.255/32) to the Peer prod--east--n2 (the key of east/n2) instead of east/n1
    ");
    let (_, finding) = text.split_once("error[failed-expectation]").unwrap();
    insta::assert_snapshot!(finding, @r#"
    : expectation `all of it`: expected Reach, but 10.3.1.0 (a pod on west/n1) does not reach 10.1.1.255 (a pod on east/n1) (2 of 2 pairs): west/n1 routes 10.1.1.255 (by 10.1.1.255/32) to the Peer prod--east--n2 (the key of east/n2) instead of east/n1
      --> expectations.yaml:4:91
       |
     4 |   - { name: all of it, from: { cluster: west }, to: { addresses: [10.1.1.0/24] }, expect: Reach }
       |                                                                                           ^^^^^ expected to reach
       |
      ::: rendered/west/prod--east.yaml:31:5
       |
    31 |   - "10.1.1.255/32"
       |     --------------- contains the destination
    help: run `clustermesh diff --against rendered` to see what changes, then `clustermesh render`

    error[stolen-by]: west: 10.3.1.0 → 10.1.1.255 (west → east): west/n1 routes 10.1.1.255 (by 10.1.1.255/32) to the Peer prod--east--n2 (the key of east/n2) instead of east/n1; 2 declared paths fail like this (west → east; to pods of east/n1) (1 other finding follows from it)
      --> rendered/west/prod--east.yaml:31:5
       |
    31 |   - "10.1.1.255/32"
       |     ^^^^^^^^^^^^^^^ contains the destination
    help: run `clustermesh diff --against rendered` to see what changes, then `clustermesh render`

    With the outdated Peers in rendered: 20 of 24 declared paths work in both directions. 0 of 1 expectation is met.
    "#);
    assert_eq!(code, 1);
}

#[test]
fn a_denial_fails_where_a_packet_gets_through() {
    let folder = expecting(
        "
  - name: east and north never meet
    from: { cluster: east }
    to: { cluster: north }
    expect: Deny
",
    );
    let (code, text) = verified(&folder, &[]);
    insta::assert_snapshot!(text, @r#"
    expectation `east and north never meet` (expectations.yaml:5:5) fails for this packet:

      there: 10.1.1.0 to 10.2.1.0
        1. east/n1 routes 10.2.1.0 (by 10.2.1.0/24) to the Peer prod--north--n1, the key of north/n1
           at rendered/east/prod--north.yaml:12:5
        2. east/n1 dials 198.18.113.21:51820 to open the tunnel
        3. north/n1 accepts source 10.1.1.0 from this key (by 10.1.1.0/24)
           at rendered/north/prod--east.yaml:12:5
        4. north/n1 delivers it to the pod 10.2.1.0

      back: 10.2.1.0 to 10.1.1.0
        5. north/n1 routes 10.1.1.0 (by 10.1.1.0/24) to the Peer prod--east--n1, the key of east/n1
           at rendered/north/prod--east.yaml:12:5
        6. through the existing tunnel
        7. east/n1 accepts source 10.2.1.0 from this key (by 10.2.1.0/24)
           at rendered/east/prod--north.yaml:12:5
        8. east/n1 delivers it to the pod 10.1.1.0

      delivered in both directions

    error[failed-expectation]: expectation `east and north never meet`: expected Deny, but 10.1.1.0 (a pod on east/n1) reaches 10.2.1.0 (a pod on north/n1) (4 of 4 pairs)
      --> expectations.yaml:8:13
       |
     8 |     expect: Deny
       |             ^^^^ expected not to reach
       |
      ::: rendered/east/prod--north.yaml:12:5
       |
    12 |   - "10.2.1.0/24"
       |     ------------- sent by this range
       |
      ::: rendered/north/prod--east.yaml:12:5
       |
    12 |   - "10.1.1.0/24"
       |     ------------- accepted by this range
    help: remove the link, the node or the range from the mesh: Kilo has no firewall, and clustermesh does not read NetworkPolicies

    Problems were found. All 24 declared paths work in both directions. 0 of 1 expectation is met.
    "#);
    assert_eq!(code, 1);
}

#[test]
fn tells_programs_the_way_of_the_packet() {
    let folder =
        expecting("  - { from: { cluster: east }, to: { cluster: north }, expect: Deny }\n");
    let (code, value) = json_of(&folder, &[]);
    assert_eq!((code, &value["holds"]), (1, &json!(false)));
    let [expectation] = value["expectations"].as_array().unwrap().as_slice() else {
        panic!("{value}");
    };
    assert_eq!(expectation["place"]["file"], "expectations.yaml");
    assert_eq!(expectation["place"]["line"], 4);
    assert_eq!((&expectation["pairs"], &expectation["broken"]), (&json!(4), &json!(4)));
    let trace = &expectation["counterexample"];
    assert_eq!(trace["verdict"], "delivered");
    assert_eq!(trace["from"]["address"], "10.1.1.0");
    assert_eq!(trace["to"]["address"], "10.2.1.0");
    let steps: Vec<&str> = trace["there"]["steps"]
        .as_array()
        .unwrap()
        .iter()
        .map(|it| it["kind"].as_str().unwrap())
        .collect();
    assert_eq!(steps, ["selected", "dialled", "accepted", "arrived"]);
    assert_eq!(value["findings"][0]["rule"], "failed-expectation");
    let printed = folder.run(&["schema", "trace"]).json();
    assert_eq!(crate::support::json_schema::violations(&printed, trace), [""; 0]);
}

#[test]
fn the_file_may_be_anywhere() {
    let folder = Folder::rendered();
    let denial = "  - { from: { cluster: east }, to: { cluster: west }, expect: Deny }\n";
    folder.write("kept/here.yaml", format!("{HEAD}{denial}"));
    assert_eq!(verified(&folder, &[]).0, 0);
    assert_eq!(verified(&folder, &["--expectations", "kept/here.yaml"]).0, 1);
    folder.write(
        "clustermesh.yaml",
        "apiVersion: kilo-clustermesh.io/v1\nkind: Config\nexpectations: kept/here.yaml\n",
    );
    assert_eq!(verified(&folder, &[]).0, 1);
    fs::remove_file(folder.path("kept/here.yaml")).unwrap();
    let run = folder.run(&["verify"]);
    assert_eq!((run.code, run.stdout.as_str()), (2, ""));
    assert_contains(&run.stderr, "kept/here.yaml");
}

#[test]
fn tells_every_mistake_and_proves_the_rest() {
    let folder = expecting(
        "
  - { from: { cluster: EAST }, to: { cluster: west }, expect: Reach }
  - { from: { cluster: east }, to: { addresses: [10.1.1.0/33] }, expect: Deny }
",
    );
    let (code, value) = json_of(&folder, &[]);
    let findings = value["findings"].as_array().unwrap().iter();
    let report: Vec<&str> = findings.map(|it| it["rule"].as_str().unwrap()).collect();
    assert_eq!(report, ["invalid-value", "invalid-range"]);
    assert_eq!(value["total"]["working"], 24);
    assert_eq!(code, 1);
    folder.write("expectations.yaml", "spec: [");
    let run = folder.run(&["verify"]);
    assert_eq!((run.code, run.stdout.as_str()), (2, ""));
}

#[test]
fn a_denial_with_a_typo_does_not_hold() {
    let folder = expecting(
        "
  - { from: { cluster: wets }, to: { cluster: east }, expect: Deny }
  - { from: { cluster: west }, to: { addresses: [10.9.9.9] }, expect: Deny }
",
    );
    let (code, value) = json_of(&folder, &[]);
    let findings = value["findings"].as_array().unwrap().iter();
    let report: Vec<(&str, &str)> = findings
        .map(|it| (it["rule"].as_str().unwrap(), it["message"].as_str().unwrap()))
        .collect();
    insta::assert_debug_snapshot!(report, @r#"
    [
        (
            "empty-expectation",
            "expectation: no mesh has a cluster `wets`",
        ),
        (
            "empty-expectation",
            "expectation: nothing selected has an address in 10.9.9.9",
        ),
    ]
    "#);
    assert_eq!(value["expectations"][0]["holds"], false);
    assert_eq!(code, 1);
}

#[test]
fn a_name_cannot_steer_a_terminal() {
    let folder = expecting(
        "
  - name: \"\\e[2J\\u202ecalm\"
    from: { cluster: east }
    to: { cluster: west }
    expect: Deny
",
    );
    let (code, text) = verified(&folder, &[]);
    assert_contains(&text, "calm");
    assert_eq!(code, 1);
    assert_eq!(json_of(&folder, &[]).0, 1);
}

#[test]
fn a_level_of_the_config_says_whether_it_fails() {
    let folder =
        expecting("  - { from: { cluster: east }, to: { cluster: west }, expect: Deny }\n");
    folder.write(
        "clustermesh.yaml",
        "apiVersion: kilo-clustermesh.io/v1\nkind: Config\nrules: { failed-expectation: { level: warning } }\n",
    );
    assert_eq!(verified(&folder, &[]).0, 0);
    assert_eq!(verified(&folder, &["--fail-on", "warning"]).0, 1);
}

#[test]
fn the_example_s_hold_until_somebody_meddles() {
    let example = project().join("examples/hub-and-spokes");
    let run = clustermesh(&example, &["verify"]);
    assert_eq!(run.code, 0, "{}{}", run.stdout, run.stderr);
    assert!(run.stdout.ends_with(" All 5 expectations are met.\n"), "{}", run.stdout);
    let folder = Folder::empty();
    crate::support::copy(&example, &folder.path(""));
    let broken = || -> Vec<String> {
        let (_, value) = json_of(&folder, &[]);
        let expectations = value["expectations"].as_array().unwrap().iter();
        let broken = expectations.filter(|it| it["holds"] == false);
        broken.map(|it| it["name"].as_str().unwrap().to_owned()).collect()
    };
    // Bell takes ada's packets from the hub, which does not take them from ada to pass them on.
    folder.edit(
        "rendered/tenant-bell/platform--management.yaml",
        "\"10.100.3.0/24\"",
        "\"10.100.3.0/24\"\n  - \"10.101.0.0/24\"",
    );
    assert_eq!(broken(), [""; 0]);
    folder.edit("mesh.yaml", "mode: Hub\n", "mode: FullMesh\n");
    folder.edit("mesh.yaml", "    hubs:\n      - management\n", "");
    let render = || {
        let run = folder.run(&["render"]);
        assert_eq!(run.code, 0, "{}", run.stderr);
    };
    render();
    assert_eq!(broken(), ["tenants never reach each other"]);
    assert_eq!(folder.run(&["verify"]).code, 1);
}

/// Nothing is left out: no mesh declares the path.
#[test]
fn an_expected_path_between_clusters_without_a_link_needs_one() {
    let folder = Folder::mesh();
    let spec =
        "  - { from: { cluster: west }, to: { cluster: north }, class: Pod, expect: Reach }\n";
    folder.write("expectations.yaml", format!("{HEAD}{spec}"));
    folder.edit("mesh.yaml", "spec:\n", "spec:\n  topology: { mode: Hub, hubs: [east] }\n");
    assert_eq!(folder.run(&["render"]).code, 0);
    let run = folder.run(&["verify"]);
    assert_eq!(run.code, 1);
    // A hub is linked to all clusters.
    assert_contains(&run.stdout, "does not link the two clusters\n\n");
}

/// `WireGuard` works on without an agent, so the tunnels of a silent leader stay open.
#[test]
fn no_denial_is_met_because_a_leader_is_silent() {
    let folder = Folder::mesh();
    let west = || location(vec![node(3, 1), node(3, 2), node(3, 3)]);
    folder.keep("west", &west());
    let deny = |from: &str, to: &str| {
        format!(
            "  - {{ from: {{ cluster: {from} }}, to: {{ cluster: {to} }}, class: Pod, expect: Deny }}\n"
        )
    };
    let spec = deny("east", "west") + &deny("west", "east");
    folder.write("expectations.yaml", format!("{HEAD}{spec}"));
    assert_eq!(folder.run(&["render"]).code, 0);
    let broken = || {
        let (_, value) = json_of(&folder, &[]);
        [0, 1].map(|it| value["expectations"][it]["broken"].clone())
    };
    for mark in [None, Some("stale"), Some("lostLead")] {
        let mut nodes = west();
        if let Some(mark) = mark {
            nodes[0][mark] = json!(true);
        }
        if mark == Some("lostLead") {
            nodes[1]["annotations"]["kilo.squat.ai/wireguard-ip"] = json!("10.103.0.9/24");
        }
        folder.keep("west", &nodes);
        assert_eq!(broken(), [json!(6), json!(6)], "{mark:?}");
        assert_harmless(&folder.run(&["verify"]));
    }
}

/// Any of two nodes may lead, and the other side takes nothing of either.
#[test]
fn an_uncertain_leader_breaks_no_denial() {
    let folder = Folder::mesh();
    let mut west = location(vec![node(3, 1), node(3, 2), node(3, 3)]);
    folder.keep("west", &west);
    folder.write(
        "expectations.yaml",
        format!(
            "{HEAD}  - {{ from: {{ cluster: west }}, to: {{ cluster: east }}, class: Pod, expect: Deny }}\n"
        ),
    );
    assert_eq!(folder.run(&["render"]).code, 0);
    let file = "rendered/east/prod--west.yaml";
    let peer = folder.read(file).replace("10.3.", "10.9.").replace("10.103.", "10.109.");
    folder.write(file, peer);
    let broken = || json_of(&folder, &[]).1["expectations"][0]["broken"].clone();
    assert_eq!(broken(), json!(0));
    west[1]["annotations"]["kilo.squat.ai/wireguard-ip"] = json!("10.103.0.9/24");
    folder.keep("west", &west);
    assert_eq!(broken(), json!(0));
}
