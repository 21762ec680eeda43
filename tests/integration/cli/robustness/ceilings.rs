//! Ceilings: more input than a few seconds are enough for is refused, by every command, before
//! anything is computed. No clock is needed for that: the generators stay just above a ceiling.

use std::fmt::Write as _;

use serde_json::json;

use crate::cli::{Folder, MESH, node};
use crate::support::assert_contains;

/// Commands that compute with meshes and snapshots.
const COMMANDS: [&[&str]; 5] = [
    &["validate"],
    &["render"],
    &["render", "--check"],
    &["verify"],
    &["trace", "east/n1", "west/n1"],
];

/// Returns a range of 32 addresses, another for every number.
fn range(number: usize) -> String {
    let address = u32::from_be_bytes([11, 0, 0, 0]) + u32::try_from(32 * number).unwrap();
    format!("{}/27", std::net::Ipv4Addr::from(address))
}

/// Adds lines to the entry of `east`.
fn with_fields(folder: &Folder, fields: &str) {
    folder.edit("mesh.yaml", "    - name: east\n", &format!("    - name: east\n{fields}"));
}

/// A mesh of which every ceiling is exceeded by one, with the name of the ceiling.
fn exceeding(counted: &str) -> Folder {
    let folder = Folder::rendered();
    match counted {
        "clusters" => {
            let mut mesh = MESH.to_owned();
            for number in 3..501 {
                let [high, low] = u16::try_from(number).unwrap().to_be_bytes();
                let _ = writeln!(
                    mesh,
                    "    - {{ name: c{number}, podCIDRs: [11.{high}.{low}.0/24], wireguardCIDR: 12.{high}.{low}.0/24 }}"
                );
            }
            folder.write("mesh.yaml", mesh);
        }
        "ranges" => {
            let ranges: Vec<String> = (0..19_995).map(range).collect();
            with_fields(&folder, &format!("      additionalCIDRs: [{}]\n", ranges.join(", ")));
        }
        "anchors" => {
            let nodes: Vec<String> = (0..5000).map(|it| format!("x{it}")).collect();
            let fields = format!(
                "      serviceCIDR: 11.0.0.0/16\n      anchors: [{{ nodes: [{}] }}]\n",
                nodes.join(", ")
            );
            with_fields(&folder, &fields);
        }
        other => panic!("no generator for {other}"),
    }
    folder
}

#[test]
fn every_command_refuses_what_exceeds_a_ceiling() {
    for counted in ["clusters", "ranges", "anchors"] {
        let folder = exceeding(counted);
        let before = folder.touches("rendered");
        for command in COMMANDS {
            let run = folder.run(command);
            assert_ne!(run.code, 0, "{counted} {command:?}");
            let report = format!("{}{}", run.stdout, run.stderr);
            assert!(report.contains("error[beyond-ceiling]: "), "{command:?}: {report}");
            assert!(report.contains(&format!("--ceiling {counted}=")), "{command:?}: {report}");
        }
        assert_eq!(folder.touches("rendered"), before);
    }
}

#[test]
fn a_flag_or_a_variable_raises_a_ceiling() {
    let folder = exceeding("ranges");
    assert_eq!(folder.run(&["validate", "--ceiling", "ranges=20001"]).code, 0);
    let variable = [("CLUSTERMESH_CEILINGS", "clusters=10,ranges=20001")];
    assert_eq!(folder.run_with(&variable, &["validate"]).code, 0);
    let run = folder.run(&["validate", "--ceiling", "ranges=20000"]);
    insta::assert_snapshot!(run.stdout, @"
    error[beyond-ceiling]: 20001 ranges exceed the ceiling of 20000
     --> mesh.yaml:7:13
      |
    7 |     - name: east
      |             ^^^^
    help: if intended, add `--ceiling ranges=20001` or set `CLUSTERMESH_CEILINGS=ranges=20001`
    ");
}

#[test]
fn nodes_peers_and_expectations_have_ceilings() {
    let folder = Folder::rendered();
    for (ceiling, report) in [
        ("nodes=5", "6 nodes exceed the ceiling of 5"),
        ("peers=11", "12 Peers exceed the ceiling of 11"),
    ] {
        let run = folder.run(&["validate", "--ceiling", ceiling]);
        assert_eq!(run.code, 1);
        assert_contains(&run.stdout, report);
    }
    assert_eq!(folder.run(&["validate", "--ceiling", "nodes=6,peers=12"]).code, 0);
    let expectations: Vec<_> = (0..3)
        .map(|it| json!({ "name": format!("e{it}"), "from": { "cluster": "east" }, "to": { "cluster": "west" }, "expect": "Reach" }))
        .collect();
    let expectations = json!({
        "apiVersion": "kilo-clustermesh.io/v1", "kind": "Expectations", "spec": expectations,
    });
    folder.write("expectations.yaml", expectations.to_string());
    let run = folder.run(&["verify", "--ceiling", "expectations=2"]);
    assert_eq!(run.code, 1);
    assert!(run.stdout.contains("3 expectations exceed the ceiling of 2"), "{}", run.stdout);
}

#[test]
fn the_ceiling_of_peers_holds_for_proofs_too() {
    let folder = Folder::rendered();
    let [one, other] = ["north", "west"].map(|it| format!("rendered/east/prod--{it}.yaml"));
    let dump = format!(
        "{}---
{}",
        folder.read(&one),
        folder.read(&other)
    );
    folder.write("east.yaml", dump);
    for words in [
        &["verify"][..],
        &["verify", "--peers", "east=east.yaml"],
        &["trace", "east/n1", "west/n1"],
    ] {
        let run = folder.run(&[words, &["--ceiling", "peers=11"]].concat());
        let report = run.stdout + &run.stderr;
        assert_eq!(run.code, 1, "{words:?}: {report}");
        let refusal = "12 Peers exceed the ceiling of 11";
        assert!(report.contains(refusal), "{words:?}: {report}");
        let run = folder.run(&[words, &["--ceiling", "peers=12"]].concat());
        assert_eq!(run.code, 0, "{words:?}: {}", run.stderr);
    }
}

#[test]
fn a_config_only_lowers_ceilings() {
    let folder = Folder::mesh();
    let config = |ceilings: &str| {
        folder.write(
            "clustermesh.yaml",
            format!(
                "apiVersion: kilo-clustermesh.io/v1\nkind: Config\nlimits: {{ ceilings: {{ {ceilings} }} }}\n"
            ),
        );
    };
    config("nodes: 5");
    assert_eq!(folder.run(&["validate"]).code, 1);
    assert_eq!(folder.run(&["validate", "--ceiling", "nodes=6"]).code, 0);
    config("nodes: 100001");
    let run = folder.run(&["validate"]);
    assert_eq!(run.code, 1);
    let report = format!("{}{}", run.stdout, run.stderr);
    assert_contains(&report, "invalid-value");
}

#[test]
fn a_ceiling_that_says_nothing_is_a_usage_error() {
    let folder = Folder::mesh();
    for text in ["nodes", "nods=5", "nodes=0"] {
        assert_eq!(folder.run(&["validate", "--ceiling", text]).code, 2, "{text}");
    }
}

/// A node is a few hundred bytes, so that this stays a matter of seconds in a debug build.
#[test]
fn a_thousand_nodes_are_no_reason_to_refuse() {
    let folder = Folder::mesh();
    let nodes: Vec<_> = (0..1000)
        .map(|it| {
            let mut node = node(1, 1);
            node["name"] = format!("n{it:04}").into();
            node
        })
        .collect();
    folder.keep("east", &nodes);
    let run = folder.run(&["validate"]);
    assert!(!run.stdout.contains("beyond-ceiling"), "{}", run.stdout);
}

/// A proof of many nodes that are equal takes a step for every two of them.
#[test]
fn a_proof_of_too_many_steps_is_refused() {
    let folder = Folder::rendered();
    let run = folder.run(&["verify", "--ceiling", "steps=1"]);
    let report = run.stdout + &run.stderr;
    assert_eq!(run.code, 1, "{report}");
    assert_contains(&report, "error[beyond-ceiling]: ");
    assert_contains(&report, "steps of the proof exceed the ceiling of 1");
    crate::support::copy(&folder.path("rendered"), &folder.path("old"));
    folder.keep("east", &[node(1, 1), node(1, 2), node(1, 3)]);
    let arguments = ["diff", "--against", "old", "--output", "json"];
    let proved = folder.run(&arguments).json();
    let run = folder.run(&[&arguments[..], &["--ceiling", "steps=1"]].concat());
    assert_eq!(run.code, 0, "{}", run.stderr);
    let unproved = run.json();
    assert_ne!(proved["grade"], unproved["grade"]);
    assert_eq!(unproved["grade"], "disruptive");
}

/// Thousands of nodes with one key, or one range, take no more memory and time than others, or are refused by name.
#[test]
fn equal_nodes_are_verified_or_refused() {
    for field in ["key", "range", "address"] {
        let folder = Folder::rendered();
        let nodes = (0..2000_u16).map(|it| {
            let mut other = node(2, 1);
            let [high, low] = it.to_be_bytes();
            other["name"] = json!(format!("n{it}"));
            other["podCIDRs"][0] = json!(format!("10.2.{high}.{low}/32"));
            other["annotations"]["kilo.squat.ai/wireguard-ip"] =
                json!(format!("10.102.0.{low}/24"));
            match field {
                "key" => {}
                "range" => other["podCIDRs"][0] = json!("10.2.0.0/24"),
                _ => other["addresses"][0]["address"] = json!("192.168.2.1"),
            }
            other
        });
        folder.keep("north", &nodes.collect::<Vec<_>>());
        for command in [&["validate"][..], &["verify"], &["diff", "--against", "rendered"]] {
            let run = folder.run(command);
            assert!(run.code < 2, "{field} {command:?}: {}", run.stderr);
        }
    }
}
