//! `validate --output`: other programs read a report correctly, with any values of nodes.

use std::collections::BTreeSet;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use clustermesh::diagnostic::is_deceptive;
use serde_json::{Value, json};

use crate::cli::{Folder, MESH, node};
use crate::support::{assert_contains, json_schema};

const FORMATS: [&str; 4] = ["sarif", "github", "gitlab", "markdown"];

/// Texts with a special meaning in one of the formats.
const HOSTILE: &[&str] = &[
    "\u{1b}]0;owned\u{7}\u{1b}[2J\u{9b}2J\u{0}",
    "\u{202e}\u{2066}\u{200b}\u{feff}\u{ad}\u{e0041}",
    "a\r\n::error::b\n\n# c",
    "%0A::stop-commands::x",
    "##[add-mask]x",
    "a,line=1,file=x::y",
    "|a|b|\\|",
    "`a`` ```` b",
    "```\n~~~",
    "</details><img src=x onerror=alert(1)><!--",
    "@octocat #1 !1 GH-1 :tada: https://a.example www.a.example a@b.example",
    "[a](https://b.example) ![c](d) [e]: f {0} {{1}}",
    "]]>&amp;&#64;\"'\\\"",
    "\u{e9}\u{1f600}\u{fffd}",
    " ",
    "",
];

/// Every text of a node, made hostile in turn.
fn hostile(text: &str) -> Folder {
    let folder = Folder::mesh();
    let mut nodes: Vec<Value> = (1..=8).map(|number| node(1, number)).collect();
    nodes[1]["name"] = json!(format!("a{text}"));
    nodes[2]["podCIDRs"] = json!([format!("x{text}")]);
    nodes[3]["podCIDRs"] = json!(["10.1.4.0/24", format!("10.1.99.0/24{text}")]);
    nodes[4]["annotations"]["kilo.squat.ai/wireguard-ip"] = json!(format!("x{text}"));
    nodes[5]["annotations"]["kilo.squat.ai/key"] = json!(format!("x{text}"));
    nodes[6]["annotations"]["kilo.squat.ai/force-endpoint"] = json!(format!("x{text}"));
    nodes[7]["annotations"]["kilo.squat.ai/key"] =
        nodes[0]["annotations"]["kilo.squat.ai/key"].clone();
    folder.keep("east", &nodes);
    folder
}

/// A mesh with a mistake, a cluster without any link, and a node whose key two clusters have.
fn wrong() -> Folder {
    let folder = Folder::mesh();
    let mut keyless = node(1, 1);
    keyless["annotations"]["kilo.squat.ai/key"] = json!("nonsense");
    folder.keep("east", &[keyless]);
    let mut twin = node(3, 1);
    twin["annotations"]["kilo.squat.ai/key"] =
        node(2, 1)["annotations"]["kilo.squat.ai/key"].clone();
    folder.keep("west", &[twin, node(3, 2)]);
    folder.edit("mesh.yaml", "10.3.0.0/16", "10.3.0.1/16");
    for cluster in ["east", "north", "west"] {
        let path = format!("snapshots/{cluster}.json");
        let snapshot: Value = serde_json::from_str(&folder.read(&path)).unwrap();
        folder.write(&path, format!("{snapshot:#}\n"));
    }
    let run = folder.run(&["render", "--allow-empty", "*/east"]);
    assert_eq!(run.code, 0, "{}", run.stderr);
    folder
}

fn report_in(folder: &Folder, format: &str) -> String {
    let run = folder.run(&["validate", "--output", format]);
    assert_eq!((run.code, run.stderr.as_str()), (0, ""), "{format}");
    let bad = run.stdout.chars().find(|&it| it != '\n' && is_deceptive(it));
    assert_eq!(bad, None, "{:?}", run.stdout);
    // A command to the runner of a job, whose log this may be.
    assert!(!run.stdout.contains("##["), "{}", run.stdout);
    run.stdout
}

fn parsed(folder: &Folder, format: &str) -> Value {
    let parsed = serde_json::from_str(&report_in(folder, format)).unwrap();
    assert_no_string_deceives(&parsed);
    parsed
}

fn assert_no_string_deceives(value: &Value) {
    match value {
        Value::String(text) => {
            let bad = text.chars().find(|&it| it != '\n' && is_deceptive(it));
            assert_eq!(bad, None, "{text:?}");
        }
        Value::Array(items) => items.iter().for_each(assert_no_string_deceives),
        Value::Object(fields) => fields.values().for_each(assert_no_string_deceives),
        Value::Null | Value::Bool(_) | Value::Number(_) => {}
    }
}

#[test]
fn json_holds_what_nodes_are_called_but_not_raw() {
    for text in HOSTILE {
        let folder = hostile(text);
        let report: Value = serde_json::from_str(&report_in(&folder, "json")).unwrap();
        let findings = report["findings"].as_array().unwrap();
        let name = format!("a{text}");
        let named = findings.iter().filter(|it| it["node"] == *name);
        // An invalid name, unless the text makes it valid.
        assert_eq!(named.count(), usize::from(!text.is_empty()), "{text:?}");
    }
}

fn count(folder: &Folder) -> usize {
    let run = folder.run(&["validate", "--output", "json"]);
    let report = run.json();
    report["findings"].as_array().unwrap().len()
}

fn results(folder: &Folder) -> Vec<Value> {
    let mut log = parsed(folder, "sarif");
    let results = log["runs"][0]["results"].take();
    serde_json::from_value(results).unwrap()
}

fn fingerprints(folder: &Folder) -> [BTreeSet<String>; 2] {
    let hash = |it: &Value| it["partialFingerprints"]["primaryLocationLineHash"].to_string();
    let issues = parsed(folder, "gitlab");
    let issues = issues.as_array().unwrap().iter();
    [
        results(folder).iter().map(hash).collect(),
        issues.map(|it| it["fingerprint"].to_string()).collect(),
    ]
}

/// Fails if a log does not match the schema of the standard.
fn assert_valid(log: &Value) {
    let schema =
        include_str!(concat!(env!("CARGO_MANIFEST_DIR"), "/tests/vectors/sarif-2.1.0.json"));
    // ECMA-262, which JSON Schema refers to, does not allow the second bracket.
    let schema = schema.replace("{2}]?$", "{2}?$");
    let schema = serde_json::from_str(&schema).unwrap();
    assert_eq!(json_schema::violations(&schema, log), Vec::<String>::new());
}

/// Reads a line as a GitHub runner does: a command, its properties, and its text.
fn command(line: &str) -> (&str, Vec<(&str, &str)>, &str) {
    let (head, text) = line.strip_prefix("::").unwrap().split_once("::").unwrap();
    let (name, properties) = head.split_once(' ').unwrap();
    let properties = properties.split(',').map(|it| it.split_once('=').unwrap());
    (name, properties.collect(), text)
}

/// Returns what of a line is outside its code spans, as `CommonMark` sees them.
fn outside(line: &str) -> String {
    let run = |text: &str| text.len() - text.trim_start_matches('`').len();
    let (mut outside, mut rest) = (String::new(), line);
    while let Some(start) = rest.find('`') {
        outside.push_str(&rest[..start]);
        rest = &rest[start..];
        let fence = run(rest);
        rest = &rest[fence..];
        loop {
            let next = rest.find('`').unwrap_or_else(|| panic!("no end: {line}"));
            rest = &rest[next..];
            let length = run(rest);
            rest = &rest[length..];
            if length == fence {
                break;
            }
        }
    }
    outside + rest
}

fn is_of_ours(outside: &str) -> bool {
    let is_rule = |it: &str| it.bytes().all(|it| it.is_ascii_lowercase() || it == b'-');
    let item = outside.strip_prefix("-  **").and_then(|it| it.strip_suffix("** "));
    item.is_some_and(is_rule)
        || matches!(outside, "" | "  - help: " | "<details>" | "</details>")
        || outside.starts_with("### clustermesh: ")
        || outside.starts_with("**") && outside.ends_with("s**")
        || outside.starts_with("<summary>") && outside.ends_with("s</summary>")
}

/// What follows from a mistake has no edit of its own, which would only repeat the mistake elsewhere.
#[test]
fn exact_edits_are_values() {
    let folder = Folder::mesh();
    folder.edit("mesh.yaml", "podCIDRs", "podCidrs");
    let log = folder.run(&["validate", "--output", "sarif"]).json();
    assert_valid(&log);
    let fixes = &log["runs"][0]["results"][0]["fixes"];
    let change = &fixes[0]["artifactChanges"][0];
    assert_eq!(fixes[0]["description"]["text"], "did you mean `podCIDRs`?");
    assert_eq!(change["artifactLocation"]["uri"], "mesh.yaml");
    let replacement = &change["replacements"][0];
    assert_eq!(replacement["insertedContent"]["text"], "podCIDRs");
    let [start, end] =
        ["startColumn", "endColumn"].map(|it| replacement["deletedRegion"][it].as_u64());
    assert_eq!(end.unwrap() - start.unwrap(), 8);
    folder.edit("mesh.yaml", "podCidrs", "podCIDRs");
    folder.edit("mesh.yaml", "name: west", "name: wets");
    folder.edit("mesh.yaml", "spec:\n", "spec:\n  topology: { mode: Hub, hubs: [west] }\n");
    let report = folder.run(&["validate", "--output", "json"]).json();
    let mut findings = report["findings"].as_array().unwrap().iter();
    let hub = findings.find(|it| it["rule"] == "unknown-cluster").unwrap();
    assert_eq!(hub["help"], "did you mean `wets`?");
    assert!(hub["cause"].is_object());
    assert!(hub["places"][0].get("replacement").is_none(), "{hub}");
}

#[test]
fn a_log_says_what_where_and_how_much() {
    let folder = wrong();
    let log = parsed(&folder, "sarif");
    assert_valid(&log);
    let run = &log["runs"][0];
    assert_eq!(run["tool"]["driver"]["name"], "clustermesh");
    let rules = run["tool"]["driver"]["rules"].as_array().unwrap();
    for result in run["results"].as_array().unwrap() {
        let index = usize::try_from(result["ruleIndex"].as_u64().unwrap()).unwrap();
        assert_eq!(rules[index]["id"], result["ruleId"]);
    }
    insta::assert_snapshot!(format!("{:#}", rules[1]), @r##"
    {
      "defaultConfiguration": {
        "level": "warning"
      },
      "help": {
        "markdown": "# invalid-public-key\n\n*warning*\n\n## What it finds\n\nA node whose public key is malformed, or one that no handshake can use. It is not canonical padded\nbase64, not 32 bytes, all zero, or a point of low order, for which there is no private key. The node\nis left out, and with it the location that it leads.\n\n## Why it matters\n\nKilo ignores a Peer whose key it cannot decode, and its webhook refuses it, which blocks everything\nthat GitOps applies in the same step. Packets to a key that decodes but can never answer are lost.\n\n## Example\n\n```yaml\n# snapshots/east.json, node n1\nannotations:\n  kilo.squat.ai/key: vblMc9U8RAI6cVopcKEMTVT6lVC3D9nTTMSwot5d3L4\n```\n\n## Remedy\n\nOnly Kilo should write this annotation. Restart the Kilo pod of the node, which writes the key\nagain, and run `clustermesh snapshot` again. If only the snapshot has this value, the snapshot was\nedited by hand.\n",
        "text": "# invalid-public-key\n\n*warning*\n\n## What it finds\n\nA node whose public key is malformed, or one that no handshake can use. It is not canonical padded\nbase64, not 32 bytes, all zero, or a point of low order, for which there is no private key. The node\nis left out, and with it the location that it leads.\n\n## Why it matters\n\nKilo ignores a Peer whose key it cannot decode, and its webhook refuses it, which blocks everything\nthat GitOps applies in the same step. Packets to a key that decodes but can never answer are lost.\n\n## Example\n\n```yaml\n# snapshots/east.json, node n1\nannotations:\n  kilo.squat.ai/key: vblMc9U8RAI6cVopcKEMTVT6lVC3D9nTTMSwot5d3L4\n```\n\n## Remedy\n\nOnly Kilo should write this annotation. Restart the Kilo pod of the node, which writes the key\nagain, and run `clustermesh snapshot` again. If only the snapshot has this value, the snapshot was\nedited by hand.\n"
      },
      "id": "invalid-public-key",
      "name": "InvalidPublicKey",
      "properties": {
        "tags": [
          "Identity of nodes: names, keys, endpoints"
        ]
      },
      "shortDescription": {
        "text": "A node whose public key is malformed, or one that no handshake can use."
      }
    }
    "##);
    let mut twin =
        results(&folder).into_iter().find(|it| it["ruleId"] == "key-in-two-clusters").unwrap();
    twin["partialFingerprints"].take();
    insta::assert_snapshot!(format!("{twin:#}"), @r#"
    {
      "level": "warning",
      "locations": [
        {
          "physicalLocation": {
            "artifactLocation": {
              "uri": "snapshots/west.json"
            },
            "region": {
              "endColumn": 76,
              "endLine": 21,
              "startColumn": 30,
              "startLine": 21
            }
          }
        }
      ],
      "message": {
        "text": "west/n1: left out: same public key as north/n1, whose cluster ranks higher (target east)\nhelp: on one of the two machines, delete `/var/lib/kilo/key` and restart Kilo, then run `clustermesh snapshot west north`; if it is one machine that moved, this snapshot is enough"
      },
      "partialFingerprints": null,
      "relatedLocations": [
        {
          "id": 0,
          "physicalLocation": {
            "artifactLocation": {
              "uri": "snapshots/north.json"
            },
            "region": {
              "endColumn": 76,
              "endLine": 21,
              "startColumn": 30,
              "startLine": 21
            }
          }
        }
      ],
      "ruleId": "key-in-two-clusters",
      "ruleIndex": 4
    }
    "#);
}

#[test]
fn a_job_is_reported_in_commands() {
    insta::assert_snapshot!(report_in(&wrong(), "github"), @"
    ::warning file=mesh.yaml,line=14,endLine=14,col=18,endColumn=29,title=host-bits::`10.3.0.1/16` has host bits set; clustermesh reads it as 10.3.0.0/16%0Ahelp: write `10.3.0.0/16`
    ::warning file=snapshots/east.json,line=21,endLine=21,col=30,endColumn=40,title=invalid-public-key::east/n1: left out: public key `nonsense` is not valid: 6 bytes instead of 32 (1 other finding follows from it)%0Ahelp: check that the Kilo agent runs there, then run `clustermesh snapshot east`
    ::warning file=snapshots/north.json,line=21,endLine=21,col=30,endColumn=76,title=key-of-target-node::north/n1: left out: same public key as node `n1` of the target (target west) (findings about 1 node follow from it)%0Ahelp: on one of the two machines, delete `/var/lib/kilo/key` and restart Kilo, then run `clustermesh snapshot north west`; if it is one machine that moved, this snapshot is enough
    ");
}

#[test]
fn the_gravest_comes_first() {
    let folder = wrong();
    let field = "wireguardCIDR: 10.103.0.0/24";
    folder.edit("mesh.yaml", field, &format!("nonsense: 1\n      {field}"));
    let run = folder.run(&["validate", "--output", "github"]);
    assert_eq!(run.code, 1);
    let severities = run.stdout.lines().map(|line| command(line).0);
    let severities: Vec<&str> = severities.collect();
    assert_eq!(severities[..2], ["error", "warning"]);
    let run = folder.run(&["validate", "--output", "sarif"]);
    let log = run.json();
    assert_eq!(log["runs"][0]["results"][0]["level"], "error");
}

#[test]
fn a_merge_request_is_reported_in_issues() {
    let mut issues = parsed(&wrong(), "gitlab");
    for issue in issues.as_array_mut().unwrap() {
        assert!(issue["fingerprint"].take().is_string());
    }
    insta::assert_snapshot!(format!("{issues:#}"), @r#"
    [
      {
        "check_name": "host-bits",
        "description": "`10.3.0.1/16` has host bits set; clustermesh reads it as 10.3.0.0/16\nhelp: write `10.3.0.0/16`",
        "fingerprint": null,
        "location": {
          "lines": {
            "begin": 14
          },
          "path": "mesh.yaml"
        },
        "severity": "major"
      },
      {
        "check_name": "invalid-public-key",
        "description": "east/n1: left out: public key `nonsense` is not valid: 6 bytes instead of 32 (1 other finding follows from it)\nhelp: check that the Kilo agent runs there, then run `clustermesh snapshot east`",
        "fingerprint": null,
        "location": {
          "lines": {
            "begin": 21
          },
          "path": "snapshots/east.json"
        },
        "severity": "major"
      },
      {
        "check_name": "key-of-target-node",
        "description": "north/n1: left out: same public key as node `n1` of the target (target west) (findings about 1 node follow from it)\nhelp: on one of the two machines, delete `/var/lib/kilo/key` and restart Kilo, then run `clustermesh snapshot north west`; if it is one machine that moved, this snapshot is enough",
        "fingerprint": null,
        "location": {
          "lines": {
            "begin": 21
          },
          "path": "snapshots/north.json"
        },
        "severity": "major"
      }
    ]
    "#);
}

#[test]
fn a_pull_request_is_reported_in_a_comment() {
    insta::assert_snapshot!(report_in(&wrong(), "markdown"), @"
    ### clustermesh: 3 warnings

    **3 warnings**

    - `mesh.yaml:14` **host-bits** `` `10.3.0.1/16` has host bits set; clustermesh reads it as 10.3.0.0/16 ``
      - help: `` write `10.3.0.0/16` ``
    - `snapshots/east.json:21` **invalid-public-key** `` east/n1: left out: public key `nonsense` is not valid: 6 bytes instead of 32 (1 other finding follows from it) ``
      - help: `` check that the Kilo agent runs there, then run `clustermesh snapshot east` ``
    - `snapshots/north.json:21` **key-of-target-node** `` north/n1: left out: same public key as node `n1` of the target (target west) (findings about 1 node follow from it) ``
      - help: `` on one of the two machines, delete `/var/lib/kilo/key` and restart Kilo, then run `clustermesh snapshot north west`; if it is one machine that moved, this snapshot is enough ``
    ");
}

#[test]
fn nothing_to_tell_is_reported_too() {
    let folder = Folder::mesh();
    assert_eq!(report_in(&folder, "github"), "");
    assert_eq!(report_in(&folder, "gitlab"), "[]\n");
    assert_eq!(report_in(&folder, "markdown"), "### clustermesh: no problems found\n");
    let log = parsed(&folder, "sarif");
    assert_valid(&log);
    assert_eq!(log["runs"][0]["results"], json!([]));
}

#[test]
fn no_node_gets_out_of_a_format() {
    for text in HOSTILE {
        let folder = hostile(text);
        let findings = count(&folder);
        assert!(6 <= findings, "{text:?}");

        let log = parsed(&folder, "sarif");
        assert_valid(&log);
        let results = log["runs"][0]["results"].as_array().unwrap();
        assert_eq!(results.len(), findings, "{text:?}");
        for result in results {
            assert!(!result["message"]["text"].as_str().unwrap().contains("]("));
        }

        let commands = report_in(&folder, "github");
        assert_eq!(commands.lines().count(), findings, "{text:?}");
        for line in commands.lines() {
            let (name, properties, message) = command(line);
            assert_eq!(name, "warning");
            let names: Vec<&str> = properties.iter().map(|it| it.0).collect();
            assert_eq!(names, ["file", "line", "endLine", "col", "endColumn", "title"]);
            assert_eq!(properties[0].1, "snapshots/east.json", "{line}");
            let escapes = message.match_indices('%').map(|it| &message[it.0..it.0 + 3]);
            for escape in escapes {
                assert!(["%25", "%0A"].contains(&escape), "{message}");
            }
        }

        let issues = parsed(&folder, "gitlab");
        assert_eq!(issues.as_array().unwrap().len(), findings, "{text:?}");

        let comment = report_in(&folder, "markdown");
        let items = comment.lines().filter(|it| it.starts_with("- ")).count();
        assert_eq!(items, findings, "{text:?}");
        for line in comment.lines() {
            assert!(is_of_ours(&outside(line)), "{line}");
        }
    }
}

#[test]
fn fingerprints_stay_when_lines_move() {
    let folder = wrong();
    let before = fingerprints(&folder);
    let findings = count(&folder);
    let issues = parsed(&folder, "gitlab").as_array().unwrap().len();
    assert_eq!(before.each_ref().map(BTreeSet::len), [findings, issues], "unique");
    let mesh = folder.read("mesh.yaml");
    folder.write("mesh.yaml", format!("# A comment.\n\n{mesh}"));
    let mut snapshot: Value = serde_json::from_str(&folder.read("snapshots/west.json")).unwrap();
    snapshot["nodes"].as_array_mut().unwrap().insert(0, node(3, 0));
    folder.write("snapshots/west.json", snapshot.to_string());
    assert_eq!(fingerprints(&folder), before);
    folder.edit("snapshots/east.json", "nonsense", "otherwise");
    assert_ne!(fingerprints(&folder), before);
}

#[test]
fn fingerprints_of_the_same_mistakes_differ() {
    let folder = Folder::mesh();
    let skipped = "---\nkind: ConfigMap\napiVersion: v1\n";
    folder.write("mesh.yaml", skipped.repeat(3) + "---\n" + MESH);
    let findings = count(&folder);
    assert_eq!(findings, 3);
    for fingerprints in fingerprints(&folder) {
        assert_eq!(fingerprints.len(), findings);
    }
}

#[test]
fn files_are_called_as_the_repository_calls_them() {
    let folder = wrong();
    folder.write(".git/HEAD", "");
    let nested = folder.path("a b/ü");
    std::fs::create_dir_all(&nested).unwrap();
    for name in ["mesh.yaml", "snapshots", "rendered"] {
        std::fs::rename(folder.path(name), nested.join(name)).unwrap();
    }
    let run = |format| {
        let run = folder.run(&["-C", "a b/ü", "validate", "--output", format]);
        assert_eq!(run.code, 0);
        run.stdout
    };
    assert!(run("github").contains("file=a b/ü/mesh.yaml,"));
    assert!(run("gitlab").contains(r#""path": "a b/ü/mesh.yaml""#));
    assert!(run("sarif").contains(r#""uri": "a%20b/%C3%BC/mesh.yaml""#));
    assert!(run("markdown").contains("`a b/ü/mesh.yaml:14`"));
}

#[test]
fn a_comment_is_never_too_long() {
    let folder = crowd();
    let comment = report_in(&folder, "markdown");
    assert!((50_000..=60_000).contains(&comment.len()), "{}", comment.len());
    let report: Vec<&str> = comment.lines().collect();
    let items = report.iter().filter(|it| it.starts_with("- `")).count();
    let more = report.iter().filter_map(|it| {
        let more = it.strip_prefix("- … and ")?.strip_suffix(" more")?;
        more.parse::<usize>().ok()
    });
    let more: usize = more.sum();
    assert!(100 < items && 0 < more, "{items} and {more}");
    assert_eq!(items + more, count(&folder));
    assert_eq!(report[report.len() - 1], "</details>");
}

#[test]
fn the_summary_of_a_job_is_added_to() {
    let folder = wrong();
    let comment = report_in(&folder, "markdown");
    let summary = folder.path("summary.md");
    let variables = [("GITHUB_STEP_SUMMARY", summary.to_str().unwrap())];
    let github = ["validate", "--output", "github"];
    let run = folder.run_with(&variables, &github);
    assert_eq!((run.code, run.stderr.as_str()), (0, ""));
    assert_eq!(run.stdout, report_in(&folder, "github"));
    assert_eq!(folder.read("summary.md"), comment);

    folder.write("summary.md", "# Others");
    folder.run_with(&variables, &github);
    assert_eq!(folder.read("summary.md"), format!("# Others\n\n{comment}"));

    folder.run_with(&variables, &["validate", "--output", "gitlab"]);
    assert_eq!(folder.read("summary.md"), format!("# Others\n\n{comment}"));
}

#[test]
fn a_summary_that_cannot_be_written_changes_no_answer() {
    let folder = wrong();
    let github = ["validate", "--output", "github"];
    let full = "x".repeat((1 << 20) - 10);
    folder.write("full.md", &full);
    for (path, reason) in [
        (folder.path("full.md"), "have filled it"),
        (folder.path("nowhere/summary.md"), "cannot write"),
        (folder.path(""), "does not name a file"),
    ] {
        let variables = [("GITHUB_STEP_SUMMARY", path.to_str().unwrap())];
        let run = folder.run_with(&variables, &github);
        assert_eq!(run.code, 0);
        assert_eq!(run.stdout, report_in(&folder, "github"));
        assert_contains(&run.stderr, reason);
    }
    assert_eq!(folder.read("full.md"), full);
}

#[test]
fn no_format_is_coloured() {
    let folder = wrong();
    for format in FORMATS {
        let run = folder.run(&["validate", "--color", "always", "--output", format]);
        assert!(!run.stdout.contains('\u{1b}'));
    }
}

/// A cluster with many nodes that are left out, each two of them for a reason of their own, beside one
/// with only two such nodes.
fn crowd() -> Folder {
    let folder = Folder::mesh();
    let nodes = |cluster: u8, numbers: u16| -> Vec<Value> {
        let bad = (0..numbers).map(|number| {
            let mut node = node(cluster, 9);
            node["name"] = json!(format!("bad{number:03}-{}", "x".repeat(55)));
            let mut key = [cluster + 100; 32];
            key[..2].copy_from_slice(&(number / 2).to_be_bytes());
            node["annotations"]["kilo.squat.ai/key"] = json!(STANDARD.encode(key));
            node
        });
        bad.chain([node(cluster, 1)]).collect()
    };
    folder.keep("east", &nodes(1, 800));
    folder.keep("west", &nodes(3, 2));
    folder
}

#[test]
fn no_cluster_hides_the_others_where_not_all_fit() {
    let folder = crowd();
    let commands = report_in(&folder, "github");
    let warnings = commands.lines().filter(|it| it.starts_with("::warning "));
    // Of each severity, a job shows the first ten.
    let shown: Vec<&str> = warnings.take(10).collect();
    assert!(shown.iter().any(|it| it.contains("west/bad001")), "{shown:#?}");
    let comment = report_in(&folder, "markdown");
    assert_contains(&comment, "- … and ");
    assert_contains(&comment, "west/bad001");
}

/// A declared range that no node of a cluster is in: every node is left out for that, and so the
/// cluster is silent.
fn contradicted() -> Folder {
    let folder = Folder::mesh();
    folder.edit("mesh.yaml", "10.101.0.0/24", "10.111.0.0/24");
    folder
}

#[test]
fn what_follows_from_another_finding_is_listed_under_it() {
    let run = |format: &str| contradicted().run(&["validate", "--output", format]);
    let report = run("json").json();
    let findings = report["findings"].as_array().unwrap();
    let cause = json!({ "rule": "contradicted-declaration", "cluster": "east" });
    let (followed, first): (Vec<&Value>, Vec<&Value>) =
        findings.iter().partition(|it| it["cause"] == cause);
    let rules = |part: &[&Value]| -> BTreeSet<String> {
        part.iter().map(|it| it["rule"].as_str().unwrap().to_owned()).collect()
    };
    assert_eq!(rules(&first), BTreeSet::from(["contradicted-declaration".to_owned()]));
    let expected = ["silent-cluster", "undeclared-wireguard-ip"].map(str::to_owned);
    assert_eq!(rules(&followed), BTreeSet::from(expected));
    let title = " (findings about 2 nodes and 1 other finding follow from it)";
    for format in ["human", "concise", "github", "markdown"] {
        let text = run(format).stdout;
        assert_eq!(text.matches(title).count(), 1, "{text}");
        assert!(!text.contains("silent-cluster"), "{text}");
    }
    let issues = run("gitlab").json();
    assert_eq!(issues.as_array().unwrap().len(), 1);
    let log = run("sarif").json();
    let results = log["runs"][0]["results"].as_array().unwrap();
    assert_eq!(results.len(), findings.len());
    assert_eq!(results[0]["relatedLocations"].as_array().unwrap().len(), 3);
    assert_valid(&log);
}

/// Who ignores the cause sees what follows from it.
#[test]
fn what_follows_from_an_ignored_finding_stands_for_itself() {
    let folder = Folder::mesh();
    let nodes: Vec<Value> = (1..=3)
        .map(|number| {
            let mut node = node(1, number);
            if number != 3 {
                node["annotations"]["kilo.squat.ai/wireguard-ip"] = json!("10.111.0.1/24");
            }
            node
        })
        .collect();
    folder.keep("east", &nodes);
    let lines = |folder: &Folder| report_in(folder, "concise").lines().count();
    assert_eq!(lines(&folder), 1);
    folder.write(
        "clustermesh.yaml",
        "apiVersion: kilo-clustermesh.io/v1\nkind: Config\nignore:\n  \
         - { rule: contradicted-declaration, reason: known }\n",
    );
    assert_eq!(lines(&folder), 2);
}

#[test]
fn a_mistake_in_the_config_is_reported_in_every_format() {
    let config = "apiVersion: kilo-clustermesh.io/v1\nkind: Config\nmehses: [a.yaml]\n";
    for (config, code) in [(config, 1), ("a: [", 2)] {
        let folder = Folder::mesh();
        folder.write("clustermesh.yaml", config);
        for command in ["validate", "verify"] {
            let run = |format: &str| {
                let run = folder.run(&[command, "--output", format]);
                assert_eq!((run.code, run.stderr.as_str()), (code, ""), "{format}");
                assert_contains(&run.stdout, "clustermesh.yaml");
                run.stdout
            };
            let parsed = |format: &str| -> Value { serde_json::from_str(&run(format)).unwrap() };
            assert_eq!(parsed("json")["summary"]["errors"], 1);
            assert_eq!(parsed("gitlab").as_array().unwrap().len(), 1);
            assert_valid(&parsed("sarif"));
            assert!(run("github").starts_with("::error file=clustermesh.yaml,"));
            run("concise");
            run("markdown");
        }
        let trace: &[&str] = &["trace", "east/n1", "west/n1"];
        for command in [trace, &["capacity"], &["config"]] {
            let run = folder.run(&[command, &["--output", "json"]].concat());
            assert_eq!((run.code, run.stderr.as_str()), (code, ""), "{command:?}");
            let report = run.json();
            assert_eq!(report["kind"], "Report");
            assert_eq!(report["summary"]["errors"], 1);
        }
    }
}

#[test]
fn many_nodes_with_one_problem_are_one_finding_in_every_format() {
    let folder = Folder::mesh();
    let nodes: Vec<Value> = (101..=170)
        .map(|number| {
            let mut node = node(1, number);
            if number != 101 {
                let address = format!("198.18.113.{number}");
                node["annotations"]["kilo.squat.ai/force-endpoint"] = json!(address);
            }
            node
        })
        .collect();
    folder.keep("east", &nodes);
    assert_eq!(count(&folder), 1);
    let report: Value = serde_json::from_str(&report_in(&folder, "json")).unwrap();
    let finding = &report["findings"][0];
    assert_eq!(finding["places"].as_array().unwrap().len(), 69);
    assert_eq!(finding["places"][68]["label"], "n170");
    let command = report_in(&folder, "github");
    assert_eq!(command.lines().count(), 1, "{command}");
    let message = "title=invalid-endpoint::east: 69 nodes left out: endpoint of annotation \
                   kilo.squat.ai/force-endpoint: the port is missing, as in `203.0.113.1:51820` \
                   (`n102`: `198.18.113.102`, `n103`: `198.18.113.103`, `n104`: `198.18.113.104` and 66 more)";
    assert_contains(&command, message);
    assert_eq!(results(&folder).len(), 1);
    for format in ["concise", "markdown", "gitlab"] {
        assert_eq!(report_in(&folder, format).matches("69 nodes left out").count(), 1);
    }
    let before = fingerprints(&folder);
    folder.keep("east", &nodes[..60]);
    assert_eq!(fingerprints(&folder), before);
}

#[test]
fn a_mistake_in_the_mesh_leaves_a_report_instead_of_costs() {
    let folder = Folder::mesh();
    folder.edit("mesh.yaml", "wireguardCIDR: 10.103", "wireguardCDIR: 10.103");
    let run = folder.run(&["capacity", "--output", "json"]);
    assert_eq!((run.code, run.stderr.as_str()), (1, ""));
    let report = run.json();
    assert_eq!(report["findings"][0]["rule"], "unknown-field");
}
