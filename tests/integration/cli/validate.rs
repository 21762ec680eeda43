//! `validate`: findings, formats and exit codes.

use crate::support::{assert_contains, copy, project};
use std::fs;

use serde_json::{Value, json};

use super::{Folder, MESH, assert_harmless, node};

mod followed;
mod formats;
mod levels;
mod mistakes;
mod services;
mod silent;
mod unread;

/// A mesh with a mistake, and snapshots with nodes that cannot be peered.
fn wrong() -> Folder {
    let folder = Folder::mesh();
    let mut keyless = node(1, 1);
    keyless["annotations"]["kilo.squat.ai/key"] = json!("nonsense");
    let mut elsewhere = node(1, 2);
    elsewhere["podCIDRs"] = json!(["10.9.9.0/24"]);
    folder.keep("east", &[keyless, elsewhere, node(1, 3)]);
    folder
}

fn report(folder: &Folder, flags: &[&str]) -> (i32, Value) {
    let run = folder.run(&[&["validate", "--output", "json"], flags].concat());
    (run.code, run.json())
}

#[test]
fn has_nothing_to_tell_of_a_sound_mesh() {
    let run = Folder::mesh().run(&["validate"]);
    assert_eq!((run.code, run.stdout.as_str()), (0, ""));
    assert_eq!(run.stderr, "No problems found (3 clusters, 6 nodes, 12 Peers).\n");
}

#[test]
fn tells_findings_with_their_lines() {
    let folder = wrong();
    let pretty: Value = serde_json::from_str(&folder.read("snapshots/east.json")).unwrap();
    folder.write("snapshots/east.json", format!("{pretty:#}"));
    let run = folder.run(&["validate"]);
    assert_eq!(run.code, 0);
    insta::assert_snapshot!(run.stdout, @r#"
    warning[invalid-public-key]: east/n1: left out: public key `nonsense` is not valid: 6 bytes instead of 32
      --> snapshots/east.json:21:30
       |
    21 |         "kilo.squat.ai/key": "nonsense",
       |                              ^^^^^^^^^^
    help: check that the Kilo agent runs there, then run `clustermesh snapshot east`

    warning[undeclared-pod-cidr]: east/n2: left out: pod CIDR 10.9.9.0/24 is outside the declared ranges
      --> snapshots/east.json:54:9
       |
    54 |         "10.9.9.0/24"
       |         ^^^^^^^^^^^^^
    help: if `east` uses this range for pods, add it to `podCIDRs` of the entry; otherwise look at the node with `kubectl --context east get node n2 -o yaml`, let it register again, and run `clustermesh snapshot east`
    "#);
    insta::assert_snapshot!(run.stderr, @"2 warnings");
}

#[test]
fn tells_them_a_line_each() {
    let folder = wrong();
    folder.edit("mesh.yaml", "10.3.0.0/16", "10.3.0.1/16");
    let run = folder.run(&["validate", "--output", "concise"]);
    assert_eq!((run.code, run.stderr.as_str()), (0, ""));
    insta::assert_snapshot!(run.stdout, @"
    mesh.yaml:14:18: warning[host-bits] `10.3.0.1/16` has host bits set; clustermesh reads it as 10.3.0.0/16
    snapshots/east.json:1:359: warning[invalid-public-key] east/n1: left out: public key `nonsense` is not valid: 6 bytes instead of 32
    snapshots/east.json:1:964: warning[undeclared-pod-cidr] east/n2: left out: pod CIDR 10.9.9.0/24 is outside the declared ranges
    ");
}

#[test]
fn tells_them_to_programs() {
    let (code, report) = report(&wrong(), &[]);
    assert_eq!(code, 0);
    insta::assert_snapshot!(format!("{report:#}"), @r#"
    {
      "apiVersion": "kilo-clustermesh.io/v1",
      "findings": [
        {
          "cluster": "east",
          "help": "check that the Kilo agent runs there, then run `clustermesh snapshot east`",
          "message": "left out: public key `nonsense` is not valid: 6 bytes instead of 32",
          "node": "n1",
          "places": [
            {
              "column": 359,
              "endColumn": 369,
              "endLine": 1,
              "excerpt": "…larity\":\"full\",\"kilo.squat.ai/internal-ip\":\"192.168.1.1/24\",\"kilo.squat.ai/key\":\"nonsense\",\"kilo.squat.ai/persistent-keepalive\":\"25\",\"kilo.squat.ai/wireguard-i…",
              "file": "snapshots/east.json",
              "line": 1,
              "pointer": "/nodes/0/annotations/kilo.squat.ai~1key"
            }
          ],
          "rule": "invalid-public-key",
          "severity": "warning"
        },
        {
          "aliases": [
            "NodePodCIDROutOfRange"
          ],
          "cluster": "east",
          "help": "if `east` uses this range for pods, add it to `podCIDRs` of the entry; otherwise look at the node with `kubectl --context east get node n2 -o yaml`, let it register again, and run `clustermesh snapshot east`",
          "message": "left out: pod CIDR 10.9.9.0/24 is outside the declared ranges",
          "node": "n2",
          "places": [
            {
              "column": 964,
              "endColumn": 977,
              "endLine": 1,
              "excerpt": "…ilo.squat.ai/wireguard-ip\":\"10.101.0.2/24\"},\"labels\":{},\"name\":\"n2\",\"podCIDRs\":[\"10.9.9.0/24\"],\"uid\":\"1-2\"},{\"addresses\":[{\"address\":\"192.168.1.3\",\"type\":\"Inte…",
              "file": "snapshots/east.json",
              "line": 1,
              "pointer": "/nodes/1/podCIDRs/0"
            }
          ],
          "rule": "undeclared-pod-cidr",
          "severity": "warning"
        }
      ],
      "kind": "Report",
      "summary": {
        "errors": 0,
        "notices": 0,
        "warnings": 2
      }
    }
    "#);
}

#[test]
fn mistakes_of_people_and_of_nodes_are_reported_together() {
    let folder = wrong();
    let second = MESH.replace("name: prod", "name: more").replace("podCIDRs", "podCidrs");
    folder.write("more.yaml", second);
    let run = folder.run(&[
        "validate",
        "--mesh",
        "mesh.yaml",
        "--mesh",
        "more.yaml",
        "--output",
        "concise",
    ]);
    assert_eq!(run.code, 1);
    let rules: Vec<&str> =
        run.stdout.lines().filter_map(|line| line.split_once('[')?.1.split(']').next()).collect();
    for rule in ["unknown-field", "invalid-public-key", "undeclared-pod-cidr"] {
        assert!(rules.contains(&rule), "{}", run.stdout);
    }
}

#[test]
fn fails_from_the_severity_that_was_asked_for() {
    let folder = wrong();
    for (flags, code) in
        [(&[][..], 0), (&["--fail-on", "warning"], 1), (&["--fail-on", "notice"], 1)]
    {
        let run = folder.run(&[&["validate"], flags].concat());
        assert_eq!(run.code, code, "{flags:?}");
    }
}

#[test]
fn what_cannot_be_parsed_is_no_answer() {
    let folder = wrong();
    folder.write("snapshots/west.json", "{");
    let (code, found) = report(&folder, &[]);
    assert_eq!(code, 2);
    let rules: Vec<&str> =
        found["findings"].as_array().unwrap().iter().filter_map(|it| it["rule"].as_str()).collect();
    assert!(rules.contains(&"invalid-snapshot") && rules.contains(&"invalid-public-key"));
}

#[test]
fn render_says_the_same() {
    let folder = wrong();
    folder.edit("mesh.yaml", "wireguardCIDR: 10.103.0.0/24", "wireguardCIDR: 10.1.0.0/24");
    let (code, found) = report(&folder, &[]);
    let run = folder.run(&["render"]);
    assert_eq!((code, run.code), (1, 1));
    for finding in found["findings"].as_array().unwrap() {
        let message = finding["message"].as_str().unwrap();
        // What follows from another finding is counted there.
        let is_listed = finding["cause"].is_null();
        assert_eq!(run.stderr.contains(message), is_listed, "{message}\n{}", run.stderr);
    }
}

#[test]
fn counts_by_rule() {
    let folder = wrong();
    let run = folder.run(&["validate", "--statistics"]);
    insta::assert_snapshot!(run.stdout, @"
    1  warning  invalid-public-key
    1  warning  undeclared-pod-cidr
    ");
    let (code, found) = report(&folder, &["--statistics"]);
    assert_eq!(code, run.code);
    assert_eq!(found["kind"], "Statistics");
    let lines = found["rules"].as_array().unwrap().iter().map(|it| {
        let texts = ["severity", "rule"].map(|field| it[field].as_str().unwrap());
        format!("{}  {:<7}  {}\n", it["count"], texts[0], texts[1])
    });
    assert_eq!(run.stdout, lines.collect::<String>());
    let (_, all) = report(&folder, &[]);
    let total: u64 =
        found["rules"].as_array().unwrap().iter().map(|it| it["count"].as_u64().unwrap()).sum();
    assert_eq!(total, all["findings"].as_array().unwrap().len() as u64);
    let run = folder.run(&["validate", "--statistics", "--output", "sarif"]);
    assert_eq!((run.code, run.stdout.as_str()), (2, ""));
    insta::assert_snapshot!(run.stderr, @"error: `--statistics` works only with `--output human` and `--output json`");
}

#[test]
fn is_coloured_only_for_a_person() {
    let folder = wrong();
    let run = folder.run(&["validate", "--color", "always"]);
    assert!(run.stdout.contains("\u{1b}["));
    assert_harmless(&run);
    for format in ["concise", "json"] {
        let run = folder.run(&["validate", "--color", "always", "--output", format]);
        assert!(!run.stdout.contains('\u{1b}'));
    }
}

/// Kilo read other names before 0.1.
#[test]
fn an_old_name_of_an_annotation_has_the_name_of_today() {
    let help = |key: &str, value: &str| {
        let folder = Folder::mesh();
        let mut first = node(1, 1);
        first["annotations"][format!("kilo.squat.ai/{key}")] = json!(value);
        folder.keep("east", &[first, node(1, 2)]);
        let findings = folder.run(&["validate", "--output", "json"]).json()["findings"].clone();
        let mut findings = findings.as_array().unwrap().clone().into_iter();
        let found = findings.find(|it| it["rule"] == "unknown-annotation").unwrap();
        found["help"].as_str().unwrap_or_default().to_owned()
    };
    for (old, today) in [
        ("force-external-ip", "kilo.squat.ai/force-endpoint: ADDRESS:51820"),
        ("external-ip", "kilo.squat.ai/endpoint"),
        ("wireguard-persistent-keepalive", "kilo.squat.ai/persistent-keepalive"),
    ] {
        let help = help(old, "198.18.0.1/32");
        assert!(help.contains(today), "{help}");
    }
    assert_eq!(
        help("force-intrnal-ip", "192.168.1.1/24"),
        "did you mean `kilo.squat.ai/force-internal-ip`?"
    );
    assert_eq!(help("force-intrnal-ip", "198.18.0.1/32"), "");
}

const EXPECTATIONS: &str = "apiVersion: kilo-clustermesh.io/v1\nkind: Expectations\nspec:\n  - from: { cluster: east }\n    to: { cluster: west }\n    expect: Reach\n";

const POLICY: &str =
    "apiVersion: kilo-clustermesh.io/v1\nkind: ClusterPolicy\nspec:\n  acceptedClusters: [west]\n";

/// The lines about controls that are not read, and the exit code, with one more file.
fn with_control(path: &str, text: &str) -> (i32, Vec<String>) {
    let folder = Folder::rendered();
    if let Some((parent, _)) = path.rsplit_once('/') {
        fs::create_dir_all(folder.path(parent)).unwrap();
    }
    folder.write(path, text);
    let run = folder.run(&["validate", "--output", "concise"]);
    let lines = run.stdout.lines().filter(|it| it.contains("unread-control"));
    (run.code, lines.map(str::to_owned).collect())
}

#[test]
fn a_control_under_another_name_is_an_error() {
    for (path, own) in [
        ("expectations.yml", "`expectations.yaml`"),
        ("expectation.yaml", "`expectations.yaml`"),
        ("Expectations.yaml", "`expectations.yaml`"),
        ("expectations.json", "`expectations.yaml`"),
        ("expectations/all.yaml", "`expectations.yaml`"),
    ] {
        let (code, lines) = with_control(path, EXPECTATIONS);
        let [line] = lines.as_slice() else { panic!("{path}: {lines:?}") };
        assert!(line.contains("error[unread-control]") && line.contains(own), "{line}");
        assert_eq!(code, 1, "{path}");
    }
    for path in ["policy/east.yaml", "Policies/east.yaml", "policy/east.yml"] {
        let (code, lines) = with_control(path, POLICY);
        let [line] = lines.as_slice() else { panic!("{path}: {lines:?}") };
        assert!(line.contains("error") && line.contains("`policies/east.yaml`"), "{line}");
        assert_eq!(code, 1, "{path}");
    }
    let (code, lines) = with_control("policy.yaml", POLICY);
    assert!(lines[0].contains("`policies/CLUSTER.yaml`"), "{lines:?}");
    assert_eq!(code, 1);
}

#[test]
fn another_file_with_a_control_is_a_warning_and_a_name_alone_a_notice() {
    let (code, lines) = with_control("checks.yaml", EXPECTATIONS);
    assert!(lines[0].contains("warning[unread-control]"), "{lines:?}");
    assert_eq!(code, 0);
    for (path, text) in [
        ("policy/rego.yaml", "package: x\n"),
        ("policy/template.yaml", "{{ if .Values.x }}\n"),
        ("expectation.json", "{}"),
    ] {
        let (code, lines) = with_control(path, text);
        assert!(lines[0].contains("notice[unread-control]"), "{path}: {lines:?}");
        assert_eq!(code, 0, "{path}");
    }
    // Meshes and Peers do not count.
    let (_, lines) = with_control("extra.yaml", "apiVersion: kilo.squat.ai/v1alpha1\nkind: Peer\n");
    assert_eq!(lines, [""; 0]);
}

#[test]
fn the_file_that_the_config_names_is_read() {
    let folder = Folder::rendered();
    folder.write("checks.yaml", EXPECTATIONS);
    let config = |path: &str| {
        format!("apiVersion: kilo-clustermesh.io/v1\nkind: Config\nexpectations: {path}\n")
    };
    for path in ["checks.yaml", "./checks.yaml"] {
        folder.write("clustermesh.yaml", config(path));
        let run = folder.run(&["validate"]);
        assert!(!run.stdout.contains("unread-control"), "{path}: {}", run.stdout);
    }
}

#[test]
fn expectations_are_read_and_their_mistakes_reported() {
    let folder = Folder::rendered();
    folder.write("expectations.yaml", EXPECTATIONS.replace("Reach", "Reeach"));
    let run = folder.run(&["validate", "--output", "concise"]);
    assert!(run.stdout.contains("expectations.yaml:"), "{}", run.stdout);
    assert_eq!(run.code, 1);
    folder.write("expectations.yaml", EXPECTATIONS.replace("west", "wets"));
    let run = folder.run(&["validate"]);
    assert_eq!(run.code, 1);
    assert_contains(&run.stdout, "error[empty-expectation]");
    assert_contains(&run.stdout, "no mesh has a cluster `wets`");
    assert_contains(&run.stdout, "help: did you mean `west`?");
    folder.write("expectations.yaml", "spec: [");
    let run = folder.run(&["validate", "--output", "concise"]);
    assert!(run.stdout.contains("expectations.yaml:"), "{}", run.stdout);
    assert_eq!(run.code, 2);
}

/// A snapshot that lost all nodes is reported, also before its cluster joins.
/// As `verify` does, but without Peers.
#[test]
fn an_expectation_that_selects_nothing_is_an_error() {
    let selecting = |from: &str, to: &str, expected: &str| {
        let folder = Folder::rendered();
        let head = "apiVersion: kilo-clustermesh.io/v1\nkind: Expectations\nspec:\n";
        let item = format!("  - {{ from: {{ {from} }}, to: {{ {to} }}, expect: {expected} }}\n");
        folder.write("expectations.yaml", format!("{head}{item}"));
        folder
    };
    let rows = [
        (
            "cluster: east, nodeSelector: { matchLabels: { a: b } }",
            "cluster: west",
            "`from` selects nothing",
        ),
        ("cluster: east", "cluster: west, addresses: [10.99.0.0/16]", "address in 10.99.0.0/16"),
        ("cluster: east", "addresses: [10.1.0.0/16]", "both sides are in east"),
    ];
    for (from, to, message) in rows {
        for expected in ["Reach", "Deny"] {
            let folder = selecting(from, to, expected);
            for command in ["validate", "verify"] {
                let run = folder.run(&[command, "--output", "concise"]);
                assert_contains(&run.stdout, "error[empty-expectation]");
                assert_contains(&run.stdout, message);
                assert_eq!(run.code, 1, "{command}: {}", run.stdout);
            }
        }
    }
    // It looks at snapshots only: here the rendered tree is missing.
    let folder = selecting("cluster: east", "cluster: west, addresses: [10.3.0.0/16]", "Reach");
    fs::remove_dir_all(folder.path("rendered")).unwrap();
    assert_eq!(folder.run(&["validate"]).code, 0);
}

#[test]
fn a_joining_cluster_without_nodes_is_reported() {
    let folder = Folder::mesh();
    folder.edit("mesh.yaml", "name: north\n", "name: north\n      state: Joining\n");
    folder.keep("north", &[]);
    let run = folder.run(&["validate", "--output", "concise"]);
    assert_contains(&run.stdout, "north: is joining and its snapshot has no nodes");
}

/// A right declaration is not widened because another one is missing.
#[test]
fn a_pod_range_that_holds_all_pods_of_its_family_stays() {
    let folder = Folder::empty();
    copy(&project().join("examples/multi-cloud-location"), folder.0.path());
    folder.edit("mesh.yaml", "        - 10.36.0.0/16\n", "");
    let run = folder.run(&["validate"]);
    assert_contains(&run.stdout, "write `podCIDRs: [fd36:a1f0:52c9::/56, 10.36.0.0/16]`");
}

#[test]
fn a_misspelled_namespace_does_not_ask_for_access() {
    let folder = Folder::empty();
    copy(&project().join("examples/services"), folder.0.path());
    folder.edit("mesh.yaml", "namespace: shop\n", "namespace: shops\n");
    let run = folder.run(&["validate"]);
    assert_contains(&run.stdout, "help: did you mean `shop`?");
}
