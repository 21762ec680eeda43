//! `trace`: the path of a packet, and its output.

use super::*;
use crate::support::{assert_contains, clustermesh, project};

const WEST_OF_EAST: &str = "rendered/west/prod--east.yaml";

fn traced(folder: &Folder, arguments: &[&str]) -> (i32, String) {
    let run = folder.run(&[&["trace"], arguments].concat());
    assert_harmless(&run);
    let outdated =
        "note: the packet follows the Peers in rendered, which `clustermesh render` would change\n";
    assert_eq!(run.stderr.replace(outdated, ""), "");
    (run.code, run.stdout)
}

/// Returns why it could not be done.
fn refused(folder: &Folder, arguments: &[&str]) -> String {
    let run = folder.run(&[&["trace"], arguments].concat());
    assert_harmless(&run);
    assert_eq!((run.code, run.stdout.as_str()), (2, ""), "{}", run.stderr);
    run.stderr
}

#[test]
fn a_tree_that_render_would_change_is_noted() {
    let folder = Folder::rendered();
    assert_eq!(folder.run(&["trace", "east/n1", "west/n1"]).stderr, "");
    folder.edit("mesh.yaml", "- name: east", "- name: east\n      persistentKeepalive: 25");
    insta::assert_snapshot!(folder.run(&["trace", "east/n1", "west/n1"]).stderr, @"note: the packet follows the Peers in rendered, which `clustermesh render` would change");
    assert_eq!(folder.run(&["render"]).code, 0);
    assert_eq!(folder.run(&["trace", "east/n1", "west/n1"]).stderr, "");
}

/// Peers as `kubectl get peers -o json` prints them, each with its name, key and ranges.
fn dump(peers: &[(&str, u8, &[&str])]) -> String {
    let items: Vec<Value> = peers
        .iter()
        .map(|(name, key, ranges)| {
            json!({
                "apiVersion": "kilo.squat.ai/v1alpha1",
                "kind": "Peer",
                "metadata": { "name": name, "uid": "0", "resourceVersion": "1" },
                "spec": {
                    "allowedIPs": ranges,
                    "endpoint": { "dnsOrIP": { "ip": format!("198.18.113.{key}") }, "port": 51820 },
                    "publicKey": STANDARD.encode([*key; 32]),
                },
            })
        })
        .collect();
    format!("{:#}\n", json!({ "apiVersion": "v1", "items": items, "kind": "List" }))
}

#[test]
fn tells_the_way_there_and_back() {
    let (code, text) = traced(&Folder::rendered(), &["west/n1", "east/n2"]);
    insta::assert_snapshot!(text, @"
    from a pod on west/n1 to a pod on east/n2

    there: 10.3.1.2 to 10.1.2.2
      1. west/n1 routes 10.1.2.2 (by 10.1.2.0/24) to the Peer prod--east--n2, the key of east/n2
         at rendered/west/prod--east.yaml:30:5
      2. west/n1 dials 198.18.113.12:51820 to open the tunnel
      3. east/n2 accepts source 10.3.1.2 from this key (by 10.3.1.0/24)
         at rendered/east/prod--west.yaml:12:5
      4. east/n2 delivers it to the pod 10.1.2.2

    back: 10.1.2.2 to 10.3.1.2
      5. east/n2 routes 10.3.1.2 (by 10.3.1.0/24) to the Peer prod--west--n1, the key of west/n1
         at rendered/east/prod--west.yaml:12:5
      6. through the existing tunnel
      7. west/n1 accepts source 10.1.2.2 from this key (by 10.1.2.0/24)
         at rendered/west/prod--east.yaml:30:5
      8. west/n1 delivers it to the pod 10.3.1.2

    delivered in both directions
    ");
    assert_eq!(code, 0);
}

#[test]
fn tells_who_takes_it() {
    let folder = Folder::rendered();
    folder.edit(WEST_OF_EAST, "\"10.1.2.0/24\"", "\"10.1.2.0/24\"\n  - \"10.1.1.0/25\"");
    let (code, text) = traced(&folder, &["10.3.1.7", "10.1.1.9"]);
    insta::assert_snapshot!(text, @r#"
    from a pod on west/n1 to a pod on east/n1

    there: 10.3.1.7 to 10.1.1.9

    error[stolen-by]: west/n1 routes 10.1.1.9 (by 10.1.1.0/25) to the Peer prod--east--n2 (the key of east/n2) instead of east/n1
      --> rendered/west/prod--east.yaml:31:5
       |
    31 |   - "10.1.1.0/25"
       |     ^^^^^^^^^^^^^ contains the destination
    help: run `clustermesh diff --against rendered` to see what changes, then `clustermesh render`
    "#);
    assert_eq!(code, 1);
}

#[test]
fn tells_that_nothing_takes_it() {
    let folder = Folder::rendered();
    fs::remove_dir_all(folder.path("rendered/west")).unwrap();
    let (code, text) = traced(&folder, &["west/n1", "east/n1"]);
    insta::assert_snapshot!(text, @"
    from a pod on west/n1 to a pod on east/n1

    there: 10.3.1.2 to 10.1.1.2

    error[no-route]: west has no Peers
    help: run `clustermesh diff --against rendered` to see what changes, then `clustermesh render`
    ");
    assert_eq!(code, 1);
}

#[test]
fn tells_that_the_answer_does_not_get_back() {
    let folder = Folder::rendered();
    folder.edit(WEST_OF_EAST, "\"10.1.2.0/24\"", "\"10.1.2.0/24\"\n  - \"10.3.1.0/25\"");
    let (code, text) = traced(&folder, &["west/n1", "east/n1"]);
    insta::assert_snapshot!(text, @r#"
    from a pod on west/n1 to a pod on east/n1

    there: 10.3.1.2 to 10.1.1.2
      1. west/n1 routes 10.1.1.2 (by 10.1.1.0/24) to the Peer prod--east--n1, the key of east/n1
         at rendered/west/prod--east.yaml:12:5
      2. west/n1 dials 198.18.113.11:51820 to open the tunnel
      3. east/n1 accepts source 10.3.1.2 from this key (by 10.3.1.0/24)
         at rendered/east/prod--west.yaml:12:5
      4. east/n1 delivers it to the pod 10.1.1.2

    back: 10.1.1.2 to 10.3.1.2
      5. east/n1 routes 10.3.1.2 (by 10.3.1.0/24) to the Peer prod--west--n1, the key of west/n1
         at rendered/east/prod--west.yaml:12:5
      6. through the existing tunnel
      7. west/n1 accepts source 10.1.1.2 from this key (by 10.1.1.0/24)
         at rendered/west/prod--east.yaml:12:5

    error[return-fails]: the packet arrives, but the reply does not (stolen-by): west/n1 routes 10.3.1.2 (by 10.3.1.0/25) to the Peer prod--east--n2 (the key of east/n2) instead of west/n1
      --> rendered/west/prod--east.yaml:31:5
       |
    31 |   - "10.3.1.0/25"
       |     ^^^^^^^^^^^^^ contains the destination
    help: run `clustermesh diff --against rendered` to see what changes, then `clustermesh render`
    "#);
    assert_eq!(code, 1);
}

#[test]
fn takes_what_a_cluster_really_has() {
    let folder = Folder::rendered();
    let peers = dump(&[("mine", 11, &["10.1.1.0/24"]), ("other", 12, &["10.1.1.128/25"])]);
    folder.write("west.json", &peers);
    let arguments = ["west/n1", "east/10.1.1.200", "--peers", "west=west.json"];
    let (code, text) = traced(&folder, &arguments);
    insta::assert_snapshot!(text, @r#"
    from a pod on west/n1 to a pod on east/n1

    there: 10.3.1.2 to 10.1.1.200

    error[stolen-by]: west/n1 routes 10.1.1.200 (by 10.1.1.128/25) to the Peer other (the key of east/n2) instead of east/n1
      --> west.json:35:11
       |
    35 |           "10.1.1.128/25"
       |           ^^^^^^^^^^^^^^^ contains the destination
    help: remove 10.1.1.128/25 from the Peer other, which clustermesh did not render
    "#);
    assert_eq!(code, 1);
    let arguments = ["trace", "west/n1", "east/n1", "--peers", "west=-"];
    let run = folder.run_with_input(&arguments, &peers);
    assert_eq!(run.code, 0, "{}", run.stderr);
    assert_contains(&run.stdout, "     at -:");
}

#[test]
fn needs_no_tree_where_all_peers_are_given() {
    let folder = Folder::mesh();
    insta::assert_snapshot!(refused(&folder, &["west/n1", "east/n1"]), @"
    error[unreadable-manifest]: the rendered tree `rendered` does not exist
    help: run `clustermesh render`, or give each cluster's Peers with `--peers`

    1 error
    ");
    let (east, west) =
        (("east", 11, &["10.1.1.0/24"] as &[&str]), ("west", 31, &["10.3.1.0/24"] as &[&str]));
    folder.write("east.json", dump(&[west]));
    folder.write("north.json", dump(&[east, west]));
    folder.write("west.json", dump(&[east]));
    let given = ["east", "north", "west"].map(|it| format!("--peers={it}={it}.json"));
    let mut arguments = vec!["west/n1", "east/n1"];
    arguments.extend(given.iter().map(String::as_str));
    let (code, text) = traced(&folder, &arguments);
    assert_eq!(code, 0, "{text}");
}

#[test]
fn is_an_object_for_programs() {
    let folder = Folder::rendered();
    folder.edit(WEST_OF_EAST, "\"198.18.113.11\"", "\"10.1.2.5\"");
    let (code, text) = traced(&folder, &["west/n1", "east/n1", "--output", "json"]);
    insta::assert_snapshot!(text, @r#"
    {
      "apiVersion": "kilo-clustermesh.io/v1",
      "kind": "Trace",
      "verdict": "loops",
      "message": "west/n1 would send encrypted packets to 10.1.2.5:51820, the endpoint of the Peer prod--east--n1, which is in 10.1.2.0/24 of the Peer prod--east--n2, so they would loop into the tunnel",
      "help": "run `clustermesh diff --against rendered` to see what changes, then `clustermesh render`",
      "places": [
        {
          "file": "rendered/west/prod--east.yaml",
          "pointer": "/spec/allowedIPs/0",
          "line": 30,
          "column": 5,
          "endLine": 30,
          "endColumn": 18,
          "label": "contains the endpoint",
          "excerpt": "  - \"10.1.2.0/24\""
        },
        {
          "file": "rendered/west/prod--east.yaml",
          "pointer": "/spec/endpoint",
          "line": 15,
          "column": 5,
          "endLine": 15,
          "endColumn": 13,
          "label": "the endpoint",
          "excerpt": "    dnsOrIP:"
        }
      ],
      "from": {
        "cluster": "west",
        "node": "n1",
        "class": "pod",
        "address": "10.3.1.2"
      },
      "to": {
        "cluster": "east",
        "node": "n1",
        "class": "pod",
        "address": "10.1.1.2"
      },
      "there": {
        "source": "10.3.1.2",
        "destination": "10.1.1.2",
        "ending": "loops",
        "endsAt": "west/n1",
        "steps": [
          {
            "kind": "selected",
            "node": "west/n1",
            "message": "west/n1 routes 10.1.1.2 (by 10.1.1.0/24) to the Peer prod--east--n1, the key of east/n1",
            "places": [
              {
                "file": "rendered/west/prod--east.yaml",
                "pointer": "/spec/allowedIPs/0",
                "line": 12,
                "column": 5,
                "endLine": 12,
                "endColumn": 18,
                "label": "by this range",
                "excerpt": "  - \"10.1.1.0/24\""
              }
            ]
          }
        ]
      }
    }
    "#);
    assert_eq!(code, 1);
}

#[test]
fn says_what_may_have_been_meant() {
    let folder = Folder::rendered();
    let report: Vec<String> = [
        ["wst/n1", "east/n1"],
        ["west/n11", "east/n1"],
        ["west/n1", "moon"],
        ["west/n1", "10.1.1.1/24"],
        ["west/n1", "10.1.1.1:99999"],
        ["203.0.113.1", "est/n1"],
        ["west/n1", "west/n2"],
        ["west/n1", "east/\u{1b}[2J"],
    ]
    .iter()
    .map(|ends| refused(&folder, ends))
    .collect();
    insta::assert_snapshot!(report.concat(), @r"
    error: FROM: unknown cluster `wst`; did you mean `west`?
    error: FROM: west has no node `n11`; did you mean `n1`?
    error: TO: `moon` is neither a cluster, nor `CLUSTER/NODE`, nor an address; known clusters: east, north, west
    error: TO: `10.1.1.1/24` is a range, not an address; write one address of it
    error: TO: `10.1.1.1:99999` has a port that is not a number from 0 to 65535
    error: TO: unknown cluster `est`; did you mean `east`?
    error: both ends are in west; clustermesh does not check traffic within a cluster
    error: TO: east has no node `\u{1b}[2J`; known nodes: `n1`, `n2`
    ");
}

/// "Can west reach east?" needs no name of a node.
#[test]
fn picks_a_node_of_a_cluster_that_takes_part() {
    let folder = Folder::mesh();
    folder.edit(
        "mesh.yaml",
        "- name: west",
        "- name: west\n      nodeSelector: { matchLabels: { edge: \"yes\" } }",
    );
    let mut selected = node(3, 2);
    selected["labels"]["edge"] = json!("yes");
    folder.keep("west", &[node(3, 1), selected]);
    assert_eq!(folder.run(&["render"]).code, 0);
    let (code, text) = traced(&folder, &["west", "east"]);
    assert_eq!(code, 0, "{text}");
    let head = text.split("\n\n").next().unwrap();
    insta::assert_snapshot!(head, @"
    from a pod on west/n2 to a pod on east/n1
    FROM names only west: picked west/n2, the first node that takes part in the mesh
    TO names only east: picked east/n1, the first node that takes part in the mesh
    ");
    let (_, text) = traced(&folder, &["west", "10.1.1.9", "--output", "json"]);
    let value: Value = serde_json::from_str(&text).unwrap();
    assert_eq!(value["from"]["node"], "n2");
    assert_eq!(value["from"]["picked"], true);
    assert_eq!(value["to"]["picked"], Value::Null);
    // Without any such node, the answer names the cause.
    folder.keep("west", &[node(3, 1)]);
    let (code, text) = traced(&folder, &["west", "east"]);
    assert_eq!(code, 1, "{text}");
    assert_contains(&text, "picked west/n1, the first node, because none takes part in the mesh");
}

#[test]
fn a_port_is_not_part_of_the_path() {
    let folder = Folder::rendered();
    for to in ["10.1.2.7:443", "east/10.1.2.7:443", "[::ffff:10.1.2.7]:443"] {
        let (code, text) = traced(&folder, &["west/n1", to]);
        assert_eq!(code, 0, "{text}");
        assert_contains(&text, "there: 10.3.1.2 to 10.1.2.7\n");
        assert_contains(&text, "port 443 does not affect the path");
    }
    let (_, text) = traced(&folder, &["west/n1", "10.1.2.7:443", "--output", "json"]);
    let value: Value = serde_json::from_str(&text).unwrap();
    assert_eq!(value["to"]["port"], 443);
    assert_eq!(value["to"]["address"], "10.1.2.7");
}

#[test]
fn an_address_that_nobody_declares_is_an_answer() {
    let folder = Folder::rendered();
    let answer = |ends: &[&str]| {
        let (code, text) = traced(&folder, ends);
        assert_eq!(code, 1, "{text}");
        text
    };
    insta::assert_snapshot!(answer(&["east", "west/10.96.0.10"]), @"
    error[undeclared-address]: 10.96.0.10 is in no range that west declares
      --> mesh.yaml:13:7
       |
    13 |     - name: west
       |       ^^^^^^^^^^ declares no `serviceCIDR`
    help: if it is a Service of west, declare `serviceCIDR` there; if it is in another network of west, add the network to `additionalCIDRs`
    ");
    insta::assert_snapshot!(answer(&["east/n1", "10.96.0.10:443"]), @"
    error[undeclared-address]: 10.96.0.10 is in no range that any cluster declares
    help: if it is a Service, declare `serviceCIDR` in the entry of its cluster; if it is in another network, add the network to `additionalCIDRs` there
    ");
    insta::assert_snapshot!(answer(&["east/10.96.0.10", "west"]), @"
    error[undeclared-address]: 10.96.0.10 is in no range that east declares
     --> mesh.yaml:7:7
      |
    7 |     - name: east
      |       ^^^^^^^^^^ declares no `serviceCIDR`
    help: if it is a Service of east, declare `serviceCIDR` there; if it is in another network of east, add the network to `additionalCIDRs`
    ");
    // It is dialled, but no tunnel leads to it.
    insta::assert_snapshot!(answer(&["east", "198.18.113.31"]), @"
    error[undeclared-address]: 198.18.113.31 is in no declared range: other clusters can dial west/n1 there, and such packets use no tunnel
    help: write `west/n1` instead of the address
    ");
    // A range of which no node has a part.
    insta::assert_snapshot!(answer(&["east", "10.3.200.1"]), @"
    error[unassigned-address]: 10.3.200.1 is in 10.3.0.0/16 of west, but is neither an address of a node in its snapshot nor in the pod CIDR of one
      --> mesh.yaml:14:18
       |
    14 |       podCIDRs: [10.3.0.0/16]
       |                  ^^^^^^^^^^^ declared here
    help: if a node has it now, run `clustermesh snapshot west`
    ");
    let (code, text) = traced(&folder, &["east", "west/10.96.0.10", "-o", "json"]);
    assert_eq!(code, 1);
    insta::assert_snapshot!(text, @r#"
    {
      "apiVersion": "kilo-clustermesh.io/v1",
      "kind": "Trace",
      "verdict": "undeclared-address",
      "message": "10.96.0.10 is in no range that west declares",
      "help": "if it is a Service of west, declare `serviceCIDR` there; if it is in another network of west, add the network to `additionalCIDRs`",
      "places": [
        {
          "file": "mesh.yaml",
          "pointer": "/spec/clusters/2",
          "line": 13,
          "column": 7,
          "endLine": 13,
          "endColumn": 17,
          "label": "declares no `serviceCIDR`",
          "excerpt": "    - name: west"
        }
      ]
    }
    "#);
    folder.edit(
        "mesh.yaml",
        "podCIDRs: [10.3.0.0/16]\n",
        "podCIDRs: [10.3.0.0/16]\n      serviceCIDR: 10.112.0.0/12\n",
    );
    let text = answer(&["east", "west/10.96.0.10"]);
    assert_contains(&text, "add the network to `additionalCIDRs`");
    // Following the advice leads to an answer.
    folder.edit("mesh.yaml", "10.112.0.0/12", "10.96.0.0/16");
    assert_eq!(folder.run(&["render"]).code, 0);
    let (code, text) = traced(&folder, &["east", "west/10.96.0.10"]);
    assert_eq!(code, 0, "{text}");
}

/// A dual-stack node has an address for each kind of packet; a packet has only one kind.
#[test]
fn both_ends_are_of_one_family() {
    let folder = Folder::mesh();
    folder.edit(
        "mesh.yaml",
        "podCIDRs: [10.1.0.0/16]\n",
        "podCIDRs: [10.1.0.0/16, 'fd00:1::/32']\n      serviceCIDR: 'fd00:96::/112'\n",
    );
    let mut dual = node(1, 1);
    dual["podCIDRs"] = json!(["10.1.1.0/24", "fd00:1:1::/64"]);
    folder.keep("east", &[dual]);
    assert_eq!(folder.run(&["render"]).code, 0);
    let (code, text) = traced(&folder, &["west", "fd00:1:1::9"]);
    assert_eq!(code, 1);
    insta::assert_snapshot!(text, @"
    error[no-common-family]: no packet goes from IPv4 to IPv6: a pod on west/n1 has 10.3.1.2, and a pod on east/n1 has fd00:1:1::9
    help: give two ends that have addresses of the same family
    ");
    for from in ["10.3.1.2", "west/n1"] {
        let (code, text) = traced(&folder, &[from, "east", "--class", "service", "-o", "json"]);
        assert_eq!(code, 1, "{text}");
        let value: Value = serde_json::from_str(&text).unwrap();
        assert_eq!(value["verdict"], "no-common-family");
        assert_eq!(value["there"], Value::Null);
    }
    // A node is asked for with the address that fits.
    let (_, text) = traced(&folder, &["east/n1", "west/n1"]);
    assert_contains(&text, "there: 10.1.1.2 to 10.3.1.2");
}

#[test]
fn a_batch_has_a_line_for_each_pair() {
    let folder = Folder::rendered();
    let run = |input: &str| {
        let run = folder.run_with_input(&["trace", "--batch"], input);
        assert_harmless(&run);
        let lines = run.stdout.lines().map(|it| serde_json::from_str(it).unwrap());
        (run.code, lines.collect::<Vec<Value>>())
    };
    let (code, lines) = run("# who reaches whom\n\nwest east\n  west/n1\t10.1.2.7:443  \n");
    assert_eq!(code, 0);
    let numbers: Vec<&Value> = lines.iter().map(|it| &it["line"]).collect();
    assert_eq!(numbers, [3, 4]);
    let (_, whole) = traced(&folder, &["west", "east", "-o", "json"]);
    let mut whole: Value = serde_json::from_str(&whole).unwrap();
    whole["line"] = json!(3);
    assert_eq!(lines[0], whole);
    let (code, lines) = run("west 10.96.0.10\nwest east\n");
    assert_eq!(code, 1);
    assert_eq!(lines[0]["verdict"], "undeclared-address");
    assert_eq!(lines[1]["verdict"], "delivered");
    let (code, lines) = run("wst east\nwest\nwest east 443\nwest east\n");
    assert_eq!(code, 2);
    assert_eq!(lines[3]["verdict"], "delivered");
    let mistakes: Vec<String> = lines[..3].iter().map(Value::to_string).collect();
    insta::assert_snapshot!(mistakes.join("\n"), @r#"
    {"apiVersion":"kilo-clustermesh.io/v1","kind":"TraceMistake","line":1,"message":"FROM: `wst` is neither a cluster, nor `CLUSTER/NODE`, nor an address; did you mean `west`?"}
    {"apiVersion":"kilo-clustermesh.io/v1","kind":"TraceMistake","line":2,"message":"expected FROM and TO, with a space between them"}
    {"apiVersion":"kilo-clustermesh.io/v1","kind":"TraceMistake","line":3,"message":"expected FROM and TO, with a space between them"}
    "#);
    assert_eq!(run("# none\n"), (2, vec![]));
    // One line that cannot be read leaves the others as they are.
    let run = folder.run_with_input(&["trace", "--batch"], b"west east\n\xff x\nwest east\n");
    let lines: Vec<&str> = run.stdout.lines().collect();
    assert_eq!((run.code, lines.len()), (2, 3), "{}", run.stderr);
    insta::assert_snapshot!(lines[1], @r#"{"apiVersion":"kilo-clustermesh.io/v1","kind":"TraceMistake","line":2,"message":"the line is not UTF-8"}"#);
}

#[test]
fn only_an_address_has_a_port() {
    let folder = Folder::rendered();
    let report = [
        refused(&folder, &["west", "east:443"]),
        refused(&folder, &["west/n1:80", "east"]),
        refused(&folder, &["west", "east/none:80"]),
    ];
    insta::assert_snapshot!(report.concat(), @"
    error: TO: `east:443` has a port, but `east` is not an address; no route depends on a port, so leave it out; for a Service, write its address
    error: FROM: `west/n1:80` has a port, but `west/n1` is not an address; no route depends on a port, so leave it out; for a Service, write its address
    error: TO: east has no node `none:80`; known nodes: `n1`, `n2`
    ");
    // The advice, followed.
    traced(&folder, &["west", "east"]);
    traced(&folder, &["west", "10.1.2.7:443"]);
}

#[test]
fn a_batch_is_bounded() {
    let folder = Folder::rendered();
    let refused = |input: &str, arguments: &[&str]| {
        let run = folder.run_with_input(&[&["trace", "--batch"], arguments].concat(), input);
        assert_harmless(&run);
        assert_eq!((run.code, run.stdout.as_str()), (2, ""), "{}", run.stderr);
        run.stderr.lines().next().unwrap_or_default().to_owned() + "\n"
    };
    let report = [
        refused(&"a b\n".repeat(10_001), &[]),
        refused(&"#".repeat(1 << 21), &[]),
        refused("", &["west", "east"]),
        refused("", &["-o", "human"]),
        refused("", &["--peers", "west=-"]),
    ];
    insta::assert_snapshot!(report.concat(), @"
    error: the standard input has 10001 pairs; one run traces at most 10000
    error: cannot read the standard input: it is larger than the limit of 1048576 bytes
    error: the argument '--batch' cannot be used with:
    error: `--batch` prints JSON; omit `--output`
    error: cannot read the Peers of `west`: the standard input is empty; did the command that lists the Peers fail?
    ");
}

#[test]
fn says_what_is_missing() {
    let folder = Folder::rendered();
    fs::remove_file(folder.path("snapshots/north.json")).unwrap();
    let report = [
        refused(&folder, &["west/n1", "north/n1"]),
        refused(&folder, &["west/n1", "east", "--class", "service"]),
        refused(&folder, &["west/n1", "east/n1", "--peers", "wset=a.yaml"]),
        refused(&folder, &["west/n1", "east/n1", "--peers", "west=a.yaml"]),
        refused(&folder, &["west/n1", "east/n1", "--peers", "west"]),
    ];
    insta::assert_snapshot!(report.concat(), @"
    error: TO: `north` has no snapshot; run `clustermesh snapshot north`
    error: TO: `east` has no address for traffic of the class `service`; choose a cluster with a `serviceCIDR`, or give an address in it; ranges in `allowedNetworks` have the class `network`
    error: --peers: no mesh contains a cluster `wset`; did you mean `west`?
    error: cannot read `a.yaml`: No such file or directory (os error 2)
    error: invalid value 'west' for '--peers <CLUSTER=FILE>': expected CLUSTER=FILE

    For more information, try '--help'.
    ");
    // What is not asked for may be missing.
    assert_eq!(traced(&folder, &["west/n1", "east/n1"]).0, 0);
    folder.write("mesh.yaml", "");
    insta::assert_snapshot!(refused(&folder, &["west/n1", "east/n1"]), @"error: no mesh was found; run `clustermesh validate` for details");
    folder.write("mesh.yaml", "a: [");
    assert!(refused(&folder, &["west/n1", "east/n1"]).contains("[syntax-error]"));
}

#[test]
fn tells_what_cannot_be_read_and_goes_on() {
    let folder = Folder::rendered();
    folder.write("rendered/west/broken.yaml", format!("{HEADER}kind: ["));
    folder.write("rendered/west/bytes.yaml", b"\xff");
    folder.write(
        "rendered/west/refused.yaml",
        "apiVersion: kilo.squat.ai/v1alpha1\nkind: Peer\nmetadata: { name: mine }\nspec: { allowedIPs: [x], publicKey: y }\n",
    );
    folder.write("rendered/west/README.md", "kind: Peer");
    #[cfg(unix)]
    std::os::unix::fs::symlink(folder.path("mesh.yaml"), folder.path("rendered/west/link.yaml"))
        .unwrap();
    let run = folder.run(&["trace", "west/n1", "east/n1"]);
    assert_harmless(&run);
    insta::assert_snapshot!(run.stderr, @"
    warning[unreadable-manifest]: west: `rendered/west/link.yaml` cannot be read: it is a symbolic link
    warning[unreadable-manifest]: west: `rendered/west/bytes.yaml` cannot be read: it is not UTF-8: the first invalid byte is at offset 0
    warning[unreadable-manifest]: west: `rendered/west/broken.yaml` cannot be read: not valid YAML: `[` is never closed
     --> rendered/west/broken.yaml:2:7
      |
    2 | kind: [
      |       ^

    warning[refused-peer]: west: the API server refuses mine: spec.publicKey is not a string
     --> rendered/west/refused.yaml:1:1
      |
    1 | apiVersion: kilo.squat.ai/v1alpha1
      | ^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^

    note: the packet follows the Peers in rendered, which `clustermesh render` would change
    ");
    assert_eq!(run.code, 0);
}

#[test]
fn nothing_foreign_steers_terminals() {
    let folder = Folder::mesh();
    let name = "n1;\u{1b}[2J\n##[add-mask]x end <b>`%%\"";
    let mut hostile = node(1, 1);
    hostile["name"] = json!(name);
    folder.keep("east", &[hostile]);
    assert_eq!(folder.run(&["render", "--allow-empty", "*/east"]).code, 0);
    for format in ["human", "json"] {
        let (_, text) = traced(&folder, &["10.1.1.2", "west/n1", "--output", format]);
        assert!(!text.contains("##["), "{text}");
    }
}

#[test]
fn the_book_shows_what_is_printed() {
    let page = fs::read_to_string(project().join("docs/how-to/trace.md")).unwrap();
    let (_, shown) = page.split_once("$ clustermesh trace ").unwrap();
    let (arguments, shown) = shown.split_once('\n').unwrap();
    let (shown, _) = shown.split_once("```").unwrap();
    let arguments: Vec<&str> = arguments.split(' ').collect();
    let run = clustermesh(
        &project().join("examples/quickstart"),
        &[&["trace"], arguments.as_slice()].concat(),
    );
    assert_eq!(run.stdout, shown);
}

#[test]
fn says_what_a_mesh_does_not_provide_for() {
    let folder = Folder::mesh();
    folder.edit("mesh.yaml", "spec:", "spec:\n  topology: { mode: Hub, hubs: [east] }");
    folder.edit(
        "mesh.yaml",
        "- name: west",
        "- name: west\n      nodeSelector: { matchLabels: { edge: \"yes\" } }",
    );
    let mut selected = node(3, 1);
    selected["labels"]["edge"] = json!("yes");
    folder.keep("west", &[selected, node(3, 2)]);
    assert_eq!(folder.run(&["render"]).code, 0);
    let help = |from: &str, to: &str| {
        let run = folder.run(&["trace", from, to]);
        assert_eq!(run.code, 1, "{}", run.stdout);
        let help = run.stdout.split("help: ").nth(1);
        help.unwrap_or_default().trim().to_owned()
    };
    assert_eq!(help("north/n1", "west/n1"), "");
    insta::assert_snapshot!(help("east/n1", "west/n2"), @"change the `nodeSelector` of `west`, which does not select west/n2, or label the node and take a new snapshot");
}

/// A leader hands packets to the other nodes of its location over their LAN, whose route a Peer replaces.
#[test]
fn a_peer_with_the_lan_of_its_cluster_cuts_the_hosts_behind_the_leader() {
    let folder = Folder::mesh();
    let pods = "podCIDRs: [10.1.0.0/16]\n";
    let declared =
        format!("{pods}      granularity: Location\n      additionalCIDRs: [192.168.1.0/24]\n");
    folder.edit("mesh.yaml", pods, &declared);
    let nodes = [1, 2].map(|it| {
        let mut node = node(1, it);
        node["annotations"]["kilo.squat.ai/granularity"] = json!("location");
        if it == 2 {
            node["annotations"]["kilo.squat.ai/wireguard-ip"] = json!("");
        }
        node
    });
    folder.keep("east", &nodes);
    assert_eq!(folder.run(&["render"]).code, 0);
    let live = ["east/prod--west.yaml", "east/prod--north.yaml"]
        .map(|it| folder.read(&format!("rendered/{it}")));
    let key = STANDARD.encode([99; 32]);
    let laptop = format!(
        "---\napiVersion: kilo.squat.ai/v1alpha1\nkind: Peer\nmetadata: {{ name: laptop }}\nspec:\n  \
         allowedIPs: [192.168.1.0/24]\n  publicKey: {key}\n"
    );
    let live = live.join("---\n");
    folder.write("live.yaml", &live);
    folder.write("own.yaml", live + &laptop);
    let traced = |to: &str, file: &str| {
        let peers = format!("east={file}");
        let run = folder.run(&["trace", "west/n1", to, "--peers", &peers]);
        (run.code, run.stdout + &run.stderr)
    };
    for (to, verdict) in [
        ("east/192.168.1.1", "delivered"),
        ("east/192.168.1.2", "stolen-by"),
        ("east/n1", "delivered"),
        ("east/n2", "delivered"),
    ] {
        let (code, text) = traced(to, "live.yaml");
        assert_eq!(code, 0, "{to}: {text}");
        let (code, text) = traced(to, "own.yaml");
        assert_eq!(code, i32::from(verdict != "delivered"), "{to}: {text}");
        assert_contains(&text, verdict);
        let is_assumed = text.contains("assumes: Kilo does not encapsulate packets");
        assert_eq!(is_assumed, to == "east/n2", "{text}");
    }
}
