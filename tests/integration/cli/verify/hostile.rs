//! `verify --assume-hostile`: what a cluster could do to the others, and whether it is contained.

use crate::cli::*;
use crate::support::assert_contains;

const WEST_OF_EAST: &str = "rendered/west/prod--east.yaml";

/// East is linked with west only, and so is north.
fn line() -> Folder {
    let folder = Folder::mesh();
    folder.edit(
        "mesh.yaml",
        "spec:\n",
        "spec:\n  topology: { mode: Links, links: [[east, west], [west, north]] }\n",
    );
    let run = folder.run(&["render"]);
    assert_eq!(run.code, 0, "{}", run.stderr);
    folder
}

/// The messages, without the table.
fn verify(folder: &Folder, clusters: &[&str]) -> (i32, String) {
    let assumed = clusters.iter().flat_map(|it| ["--assume-hostile", it]);
    let arguments: Vec<&str> = ["verify"].into_iter().chain(assumed).collect();
    let run = folder.run(&arguments);
    assert_harmless(&run);
    let report = run.stdout.splitn(3, "\n\n").nth(2).unwrap_or_default();
    (run.code, report.to_owned())
}

fn json_of(folder: &Folder, cluster: &str) -> (i32, Value) {
    let run = folder.run(&["verify", "--output", "json", "--assume-hostile", cluster]);
    assert_harmless(&run);
    (run.code, run.json())
}

#[test]
fn says_what_a_cluster_could_send_and_to_whom() {
    let (code, text) = verify(&line(), &["east"]);
    insta::assert_snapshot!(text, @"
    If east were hostile:
      west accepts its packets through the Peers prod--east--n1, prod--east--n2
        it could send with the addresses 10.1.1.0/24, 10.1.2.0/24, 10.101.0.1, 10.101.0.2
        to pods 10.3.1.0/24, 10.3.2.0/24; nodes 192.168.3.1, 192.168.3.2, 10.103.0.1, 10.103.0.2; LANs 192.168.3.0/24
        Kilo in west masquerades packets to other addresses, so they can reach everything that the nodes of west can reach
        it also receives the packets to these addresses
        through west, none of its packets reach north
      directly, none of its packets reach north

    All 16 declared paths work in both directions.
    the meshes allow east everything that is listed above
    ");
    assert_eq!(code, 0);
}

#[test]
fn more_than_one_may_be_asked_about() {
    let (code, text) = verify(&line(), &["west", "north", "west"]);
    insta::assert_snapshot!(text, @"
    If north were hostile:
      west accepts its packets through the Peers prod--north--n1, prod--north--n2
        it could send with the addresses 10.2.1.0/24, 10.2.2.0/24, 10.102.0.1, 10.102.0.2
        to pods 10.3.1.0/24, 10.3.2.0/24; nodes 192.168.3.1, 192.168.3.2, 10.103.0.1, 10.103.0.2; LANs 192.168.3.0/24
        Kilo in west masquerades packets to other addresses, so they can reach everything that the nodes of west can reach
        it also receives the packets to these addresses
        through west, none of its packets reach east
      directly, none of its packets reach east

    If west were hostile:
      east accepts its packets through the Peers prod--west--n1, prod--west--n2
        it could send with the addresses 10.3.1.0/24, 10.3.2.0/24, 10.103.0.1, 10.103.0.2
        to pods 10.1.1.0/24, 10.1.2.0/24; nodes 192.168.1.1, 192.168.1.2, 10.101.0.1, 10.101.0.2; LANs 192.168.1.0/24
        Kilo in east masquerades packets to other addresses, so they can reach everything that the nodes of east can reach
        it also receives the packets to these addresses
      north accepts its packets through the Peers prod--west--n1, prod--west--n2
        it could send with the addresses 10.3.1.0/24, 10.3.2.0/24, 10.103.0.1, 10.103.0.2
        to pods 10.2.1.0/24, 10.2.2.0/24; nodes 192.168.2.1, 192.168.2.2, 10.102.0.1, 10.102.0.2; LANs 192.168.2.0/24
        Kilo in north masquerades packets to other addresses, so they can reach everything that the nodes of north can reach
        it also receives the packets to these addresses

    All 16 declared paths work in both directions.
    the meshes allow north everything that is listed above
    the meshes allow west everything that is listed above
    ");
    assert_eq!(code, 0);
}

#[test]
fn fails_where_it_could_pass_for_somebody_else() {
    let folder = line();
    folder.turn_off("outdated-tree");
    folder.edit(
        WEST_OF_EAST,
        "\"10.1.2.0/24\"",
        "\"10.1.2.0/24\"\n  - \"10.2.1.128/25\"\n  - \"172.16.0.0/12\"",
    );
    let (code, text) = verify(&folder, &["east"]);
    let (report, rest) = text.split_once("error[").unwrap();
    insta::assert_snapshot!(report, @"
    If east were hostile:
      west accepts its packets through the Peers prod--east--n1, prod--east--n2
        it could send with the addresses 10.2.1.128/25 (a pod on north/n1), 172.16.0.0/12 (declared by no cluster), 10.1.1.0/24, 10.1.2.0/24 and 2 more
        to pods 10.3.1.0/24, 10.3.2.0/24; nodes 192.168.3.1, 192.168.3.2, 10.103.0.1, 10.103.0.2; LANs 192.168.3.0/24
        Kilo in west masquerades packets to other addresses, so they can reach everything that the nodes of west can reach
        it also receives the packets to these addresses
        through west, none of its packets reach north
      directly, none of its packets reach north
    ");
    let (_, findings) = rest.split_once("impersonation]").unwrap();
    insta::assert_snapshot!(findings, @r#"
    : west: east can send packets from addresses that are not its own: the Peer prod--east--n2 allows the sources 10.2.1.128/25 (a pod on north/n1)
      --> rendered/west/prod--east.yaml:31:5
       |
    31 |   - "10.2.1.128/25"
       |     ^^^^^^^^^^^^^^^ accepts these sources
    error[impersonation]: west: east can send packets from addresses that are not its own: the Peer prod--east--n2 allows the sources 172.16.0.0/12 (declared by no cluster)
      --> rendered/west/prod--east.yaml:32:5
       |
    32 |   - "172.16.0.0/12"
       |     ^^^^^^^^^^^^^^^ accepts these sources
    help: run `clustermesh diff --against rendered` to see what changes, then `clustermesh render`

    error[capture]: west: east can receive packets for addresses that are not its own: the Peer prod--east--n2 takes the destinations 10.2.1.128/25 (a pod on north/n1)
      --> rendered/west/prod--east.yaml:31:5
       |
    31 |   - "10.2.1.128/25"
       |     ^^^^^^^^^^^^^^^ routes these destinations
    error[capture]: west: east can receive packets for addresses that are not its own: the Peer prod--east--n2 takes the destinations 172.16.0.0/12 (declared by no cluster)
      --> rendered/west/prod--east.yaml:32:5
       |
    32 |   - "172.16.0.0/12"
       |     ^^^^^^^^^^^^^^^ routes these destinations
    help: run `clustermesh diff --against rendered` to see what changes, then `clustermesh render`

    With the outdated Peers in rendered: 12 of 16 declared paths work in both directions.
    east could do 4 things that no mesh allows
    "#);
    assert_eq!(code, 1);
    // The other clusters are not affected.
    let (_, text) = verify(&folder, &["north"]);
    assert!(text.ends_with("the meshes allow north everything that is listed above\n"), "{text}");
}

#[test]
fn fails_where_it_gets_through_to_a_cluster_that_it_is_not_linked_with() {
    let folder = line();
    folder.edit(
        "rendered/north/prod--west.yaml",
        "\"10.3.1.0/24\"",
        "\"10.3.1.0/24\"\n  - \"10.1.0.0/16\"",
    );
    let (code, value) = json_of(&folder, "east");
    assert_eq!(code, 1);
    let hostile = &value["hostile"][0];
    assert_eq!(hostile["contained"], false);
    let west = &hostile["exposures"][1];
    assert_eq!(west["cluster"], "west");
    let through = &west["through"][0];
    assert_eq!(through["cluster"], "north");
    assert_eq!(through["linked"], false);
    insta::assert_snapshot!(format!("{:#}", through["passages"]), @r#"
    [
      {
        "addresses": "10.1.1.0/24",
        "by": "west/n1",
        "place": {
          "column": 5,
          "endColumn": 18,
          "endLine": 13,
          "excerpt": "  - \"10.1.0.0/16\"",
          "file": "rendered/north/prod--west.yaml",
          "line": 13,
          "pointer": "/spec/allowedIPs/1"
        }
      },
      {
        "addresses": "10.1.2.0/24",
        "by": "west/n1",
        "place": {
          "column": 5,
          "endColumn": 18,
          "endLine": 13,
          "excerpt": "  - \"10.1.0.0/16\"",
          "file": "rendered/north/prod--west.yaml",
          "line": 13,
          "pointer": "/spec/allowedIPs/1"
        }
      }
    ]
    "#);
    let findings = value["findings"].as_array().unwrap().iter();
    let rules: BTreeSet<&str> = findings.map(|it| it["rule"].as_str().unwrap()).collect();
    assert!(rules.contains("broken-isolation"), "{rules:?}");
}

#[test]
fn tells_programs_everything() {
    let (code, value) = json_of(&line(), "east");
    assert_eq!(code, 0);
    let hostile = &value["hostile"][0];
    assert_eq!((&hostile["cluster"], &hostile["contained"]), (&json!("east"), &json!(true)));
    let [north, west] = hostile["exposures"].as_array().unwrap().as_slice() else {
        panic!("{hostile}");
    };
    assert_eq!(north["heardBy"], json!([]));
    assert_eq!(north["sendsAs"], json!([]));
    assert_eq!(west["linked"], true);
    let addresses = |list: &Value| -> Vec<String> {
        let list = list.as_array().unwrap().iter();
        list.map(|it| it["addresses"].as_str().unwrap().to_owned()).collect()
    };
    let own = ["10.1.1.0/24", "10.1.2.0/24", "10.101.0.1", "10.101.0.2"];
    assert_eq!(addresses(&west["sendsAs"]), own);
    assert_eq!(addresses(&west["captures"]), own);
    assert_eq!(west["sendsAs"][0]["place"]["file"], WEST_OF_EAST);
    let open = west["sendsTo"].as_array().unwrap().iter();
    let pods: Vec<&str> =
        open.filter(|it| it["kind"] == "pod").map(|it| it["node"].as_str().unwrap()).collect();
    assert_eq!(pods, ["west/n1", "west/n2"]);
}

/// West has 20 of north's addresses in a Peer of east.
#[test]
fn ranges_beyond_the_sixteenth_are_counted() {
    let folder = line();
    let stolen: Vec<String> = (1..=20).map(|it| format!("\"10.2.1.{}/32\"", 2 * it)).collect();
    let ranges = format!("\"10.1.2.0/24\"\n  - {}", stolen.join("\n  - "));
    folder.edit(WEST_OF_EAST, "\"10.1.2.0/24\"", &ranges);
    let (code, value) = json_of(&folder, "east");
    assert_eq!(code, 1);
    let west = &value["hostile"][0]["exposures"][1];
    let more = json!({ "declared": 0, "others": 4, "nobody": 0 });
    for (list, rest) in [("sendsAs", "sendsAsMore"), ("captures", "capturesMore")] {
        let holds = west[list].as_array().unwrap().iter();
        let others = holds.filter(|it| it["whose"] == "others");
        assert_eq!((others.count(), &west[rest]), (16, &more));
    }
    let none = json!({ "pod": 0, "node": 0, "service": 0, "network": 0, "lan": 0 });
    assert_eq!(west["sendsToMore"], none);
    assert_eq!(west["heardByMore"], 0);
    let (_, text) = verify(&folder, &["east"]);
    assert_contains(
        &text,
        "with the addresses 10.2.1.2 (a pod on north/n1), 10.2.1.4 (a pod on north/n1), 10.2.1.6 (a pod on \
             north/n1), 10.2.1.8 (a pod on north/n1) and 20 more\n",
    );
    assert!(text.ends_with("east could do 40 things that no mesh allows\n"), "{text}");
    let findings = value["findings"].as_array().unwrap();
    for message in [
        "east can send packets from 4 more ranges that are not its own",
        "east can receive packets for 4 more ranges that are not its own",
    ] {
        let mut messages = findings.iter().map(|it| &it["message"]);
        assert!(messages.any(|it| it == message), "{findings:#?}");
    }
}

#[test]
fn a_cluster_that_is_not_there_cannot_be_asked_about() {
    let folder = line();
    let run = folder.run(&["verify", "--assume-hostile", "eats"]);
    assert_eq!((run.code, run.stdout.as_str()), (2, ""));
    insta::assert_snapshot!(run.stderr, @"error: --assume-hostile: no mesh contains a cluster `eats`; did you mean `east`?");
    fs::remove_file(folder.path("snapshots/east.json")).unwrap();
    let run = folder.run(&["verify", "--assume-hostile", "east"]);
    assert_eq!((run.code, run.stdout.as_str()), (2, ""));
    insta::assert_snapshot!(run.stderr, @"error: --assume-hostile: `east` has no snapshot; run `clustermesh snapshot`");
}
