//! Levels and ignored findings in a config: they change only the reports and the exit code.

use clustermesh::diagnostic::Severity;
use clustermesh::rules;
use serde_json::{Value, json};

use crate::cli::robustness::exit_codes::COMMANDS;
use crate::cli::{Folder, TREE, api_node, node};
use crate::support::assert_contains;

const HEAD: &str = "apiVersion: kilo-clustermesh.io/v1\nkind: Config\n";

/// A day that no test will see, and one that all have seen.
const FUTURE: &str = "9999-12-31";
const PAST: &str = "2001-01-31";

/// Two nodes without an endpoint, one without a pod CIDR, one with a bad one, and a range with host
/// bits.
fn flawed() -> Folder {
    let folder = Folder::mesh();
    let hidden = |cluster, number| {
        let mut node = node(cluster, number);
        node["addresses"].as_array_mut().unwrap().pop();
        node
    };
    let (mut none, mut bad) = (node(3, 2), node(3, 3));
    none["podCIDRs"] = json!([]);
    bad["podCIDRs"] = json!(["nonsense"]);
    folder.keep("east", &[hidden(1, 1), node(1, 2)]);
    folder.keep("north", &[hidden(2, 1), node(2, 2)]);
    folder.keep("west", &[node(3, 1), none, bad]);
    folder.edit("mesh.yaml", "10.3.0.0/16", "10.3.0.1/16");
    folder
}

fn say(folder: &Folder, fields: &str) {
    folder.write("clustermesh.yaml", format!("{HEAD}{fields}"));
}

/// The exit code of `validate`, and a line for each finding.
fn validate(folder: &Folder, fields: &str, flags: &[&str]) -> (i32, String) {
    say(folder, fields);
    let run = folder.run(&[&["validate", "--output", "concise"], flags].concat());
    (run.code, format!("{}{}", run.stdout, run.stderr))
}

/// The exit code of `render`, and its messages.
fn render(folder: &Folder, fields: &str, flags: &[&str]) -> (i32, String) {
    say(folder, fields);
    let run = folder.run(&[&["render"], flags].concat());
    (run.code, run.stderr)
}

#[test]
fn says_what_it_says_without_a_word() {
    let (code, report) = validate(&flawed(), "", &[]);
    assert_eq!(code, 0);
    insta::assert_snapshot!(report, @"
    mesh.yaml:14:18: warning[host-bits] `10.3.0.1/16` has host bits set; clustermesh reads it as 10.3.0.0/16
    snapshots/east.json:1:465: warning[missing-endpoint] east/n1: left out: no endpoint: no annotation kilo.squat.ai/clustermesh-endpoint or kilo.squat.ai/force-endpoint, no external address
    snapshots/north.json:1:466: warning[missing-endpoint] north/n1: left out: no endpoint: no annotation kilo.squat.ai/clustermesh-endpoint or kilo.squat.ai/force-endpoint, no external address
    snapshots/west.json:1:999: warning[missing-pod-cidr] west/n2: left out: no pod CIDR is assigned
    snapshots/west.json:1:1457: warning[invalid-pod-cidr] west/n3: left out: pod CIDR `nonsense` is not valid: `nonsense` has no prefix length such as `/16`
    ");
}

#[test]
fn lowers_and_silences() {
    let folder = flawed();
    let fields = "
rules:
  host-bits: { level: notice }
  missing-endpoint: { level: off, reason: \"edge nodes\", until: 9999-12-31 }
  NodeNoPodCIDR: { level: notice, until: \"9999-12-31\" }
";
    let (code, report) = validate(&folder, fields, &["--fail-on", "warning"]);
    assert_eq!(code, 0, "{report}");
    insta::assert_snapshot!(report, @"
    mesh.yaml:14:18: notice[host-bits] `10.3.0.1/16` has host bits set; clustermesh reads it as 10.3.0.0/16
    snapshots/west.json:1:999: notice[missing-pod-cidr] west/n2: left out: no pod CIDR is assigned
    snapshots/west.json:1:1457: notice[invalid-pod-cidr] west/n3: left out: pod CIDR `nonsense` is not valid: `nonsense` has no prefix length such as `/16`
    ");
    let (code, report) = render(&folder, fields, &["--fail-on", "warning"]);
    assert_eq!(code, 0, "{report}");
    insta::assert_snapshot!(report, @"
    notice[missing-pod-cidr]: west/n2: left out: no pod CIDR is assigned
    help: let Kubernetes assign pod CIDRs, as `docs/how-to/which-clusters.md` describes for each distribution, then run `clustermesh snapshot west`

    notice[invalid-pod-cidr]: west/n3: left out: pod CIDR `nonsense` is not valid: `nonsense` has no prefix length such as `/16`

    notice[host-bits]: `10.3.0.1/16` has host bits set; clustermesh reads it as 10.3.0.0/16
      --> mesh.yaml:14:18
       |
    14 |       podCIDRs: [10.3.0.1/16]
       |                  ^^^^^^^^^^^
    help: write `10.3.0.0/16`

    east: +3 ~0 -0 files, 2 Peers of 2 clusters
    north: +3 ~0 -0 files, 2 Peers of 2 clusters
    west: +3 ~0 -0 files, 2 Peers of 2 clusters
    6 Peers in 3 targets; 4 nodes left out
    ");
}

#[test]
fn what_is_raised_fails() {
    let folder = flawed();
    for rule in ["host-bits", "missing-endpoint", "NodeNoEndpoint"] {
        let fields = format!("rules: {{ {rule}: {{ level: error }} }}\n");
        let (code, report) = validate(&folder, &fields, &[]);
        assert_eq!(code, 1, "{report}");
        for flags in [&[][..], &["--check"], &["--target", "east"]] {
            say(&folder, &fields);
            let run = folder.run(&[&["render"], flags].concat());
            assert_eq!((run.code, run.stdout.as_str()), (1, ""), "{}", run.stderr);
            assert_contains(&run.stderr, "error[");
        }
        assert!(!folder.path("rendered").exists());
    }
    let (_, report) = render(&folder, "rules: { host-bits: { level: error } }", &[]);
    insta::assert_snapshot!(report, @"
    error[host-bits]: `10.3.0.1/16` has host bits set; clustermesh reads it as 10.3.0.0/16
      --> mesh.yaml:14:18
       |
    14 |       podCIDRs: [10.3.0.1/16]
       |                  ^^^^^^^^^^^
    help: write `10.3.0.0/16`

    warning[missing-endpoint]: east/n1: left out: no endpoint: no annotation kilo.squat.ai/clustermesh-endpoint or kilo.squat.ai/force-endpoint, no external address
    help: if other clusters should not reach such nodes, leave them out with `nodeSelector` of `east`; otherwise set `endpointFrom: [Annotation, ExternalIP, Kilo]` for `east` if other clusters can dial Kilo's endpoints, or `persistentKeepalive: 25` if the nodes are behind NAT, or annotate each node: `kubectl --context east annotate nodes NODE kilo.squat.ai/clustermesh-endpoint=HOST:51820`, then run `clustermesh snapshot east`

    warning[missing-endpoint]: north/n1: left out: no endpoint: no annotation kilo.squat.ai/clustermesh-endpoint or kilo.squat.ai/force-endpoint, no external address
    help: if other clusters should not reach such nodes, leave them out with `nodeSelector` of `north`; otherwise set `endpointFrom: [Annotation, ExternalIP, Kilo]` for `north` if other clusters can dial Kilo's endpoints, or `persistentKeepalive: 25` if the nodes are behind NAT, or annotate each node: `kubectl --context north annotate nodes NODE kilo.squat.ai/clustermesh-endpoint=HOST:51820`, then run `clustermesh snapshot north`

    warning[missing-pod-cidr]: west/n2: left out: no pod CIDR is assigned
    help: let Kubernetes assign pod CIDRs, as `docs/how-to/which-clusters.md` describes for each distribution, then run `clustermesh snapshot west`

    warning[invalid-pod-cidr]: west/n3: left out: pod CIDR `nonsense` is not valid: `nonsense` has no prefix length such as `/16`

    1 error, 4 warnings
    nothing was written
    ");
}

#[test]
fn fails_from_the_severity_that_was_said() {
    let folder = flawed();
    let off = "{ level: off, reason: x }";
    let fields = format!(
        "rules: {{ host-bits: {off}, NodeNoEndpoint: {off}, NodeNoPodCIDR: {{ level: notice }} }}"
    );
    let code = |severity| validate(&folder, &fields, &["--fail-on", severity]).0;
    assert_eq!(["error", "warning", "notice"].map(code), [0, 0, 1]);
}

#[test]
fn an_ignore_is_for_one_object() {
    let folder = flawed();
    let left = |fields: &str| {
        let (code, report) = validate(&folder, &format!("ignore: [{fields}]"), &[]);
        assert_eq!(code, 0, "{report}");
        assert!(!report.contains("unused-ignore"), "{report}");
        report.matches("[missing-endpoint]").count()
    };
    assert_eq!(left("{ rule: missing-endpoint, reason: lab }"), 0);
    assert_eq!(left("{ rule: missing-endpoint, cluster: east, reason: lab }"), 1);
    assert_eq!(left("{ rule: NodeNoEndpoint, cluster: east, node: n1, reason: lab }"), 1);
    assert_eq!(left("{ rule: missing-endpoint, node: n1, reason: lab }"), 0);
}

#[test]
fn an_ignore_that_matches_nothing_is_reported() {
    let folder = flawed();
    let fields = "
ignore:
  - { rule: missing-endpoint, cluster: east, node: n2, reason: lab }
";
    say(&folder, fields);
    let run = folder.run(&["validate"]);
    assert_eq!(run.code, 0);
    let report = run.stdout.split("\n\n").find(|it| it.contains("unused-ignore"));
    insta::assert_snapshot!(report.unwrap(), @"
    warning[unused-ignore]: unused ignore: no finding matches `missing-endpoint` of `n2` of `east`
     --> clustermesh.yaml:5:13
      |
    5 |   - { rule: missing-endpoint, cluster: east, node: n2, reason: lab }
      |             ^^^^^^^^^^^^^^^^
    help: remove it, or correct its cluster and node
    ");
    assert_eq!(validate(&folder, fields, &["--fail-on", "warning"]).0, 1);
    let (code, report) = render(&folder, fields, &[]);
    assert_eq!(code, 0);
    assert_contains(&report, "warning[unused-ignore]");
    let (code, _) =
        validate(&folder, &format!("{fields}rules: {{ unused-ignore: {{ level: error }} }}"), &[]);
    assert_eq!(code, 1);
}

#[test]
fn without_a_plan_nobody_says_what_is_unused() {
    let folder = flawed();
    std::fs::remove_file(folder.path("snapshots/west.json")).unwrap();
    let (code, report) = validate(&folder, "ignore: [{ rule: no-anchor, reason: x }]", &[]);
    assert_eq!(code, 1);
    assert!(report.contains("missing-snapshot") && !report.contains("unused-ignore"), "{report}");
}

#[test]
fn what_has_had_its_time_counts_for_validate() {
    let folder = flawed();
    let fields = |until: &str| {
        format!(
            "
rules:
  host-bits: {{ level: error, until: {until} }}
  missing-endpoint: {{ level: off, reason: edge, until: {until} }}
ignore:
  - {{ rule: NodeNoPodCIDR, cluster: west, reason: lab, until: {until} }}
"
        )
    };
    let (code, report) = validate(&folder, &fields(FUTURE), &[]);
    assert_eq!(code, 1);
    insta::assert_snapshot!(report, @"mesh.yaml:14:18: error[host-bits] `10.3.0.1/16` has host bits set; clustermesh reads it as 10.3.0.0/16");
    let (code, report) = validate(&folder, &fields(PAST), &[]);
    assert_eq!(code, 0);
    insta::assert_snapshot!(report, @"
    mesh.yaml:14:18: warning[host-bits] `10.3.0.1/16` has host bits set; clustermesh reads it as 10.3.0.0/16
    snapshots/east.json:1:465: warning[missing-endpoint] east/n1: left out: no endpoint: no annotation kilo.squat.ai/clustermesh-endpoint or kilo.squat.ai/force-endpoint, no external address
    snapshots/north.json:1:466: warning[missing-endpoint] north/n1: left out: no endpoint: no annotation kilo.squat.ai/clustermesh-endpoint or kilo.squat.ai/force-endpoint, no external address
    snapshots/west.json:1:999: warning[missing-pod-cidr] west/n2: left out: no pod CIDR is assigned
    snapshots/west.json:1:1457: warning[invalid-pod-cidr] west/n3: left out: pod CIDR `nonsense` is not valid: `nonsense` has no prefix length such as `/16`
    clustermesh.yaml:5:37: warning[expired-level] level `error` of `host-bits` expired on 2001-01-31; the finding counts again
    clustermesh.yaml:6:56: warning[expired-level] level `off` of `missing-endpoint` expired on 2001-01-31; the finding counts again
    clustermesh.yaml:8:63: warning[expired-ignore] ignore of `NodeNoPodCIDR` of `west` expired on 2001-01-31; the finding counts again
    ");
}

#[test]
fn what_has_had_its_time_stops_no_render() {
    let folder = flawed();
    let fields = |until: &str| {
        format!(
            "
rules:
  missing-endpoint: {{ level: off, reason: \"edge nodes\", until: {until} }}
ignore:
  - {{ rule: NodeNoPodCIDR, reason: lab, until: {until} }}
"
        )
    };
    assert_eq!(render(&folder, &fields(FUTURE), &[]).0, 0);
    let (code, report) = render(&folder, &fields(PAST), &[]);
    assert_eq!(code, 0, "{report}");
    insta::assert_snapshot!(report, @r#"
    warning[host-bits]: `10.3.0.1/16` has host bits set; clustermesh reads it as 10.3.0.0/16
      --> mesh.yaml:14:18
       |
    14 |       podCIDRs: [10.3.0.1/16]
       |                  ^^^^^^^^^^^
    help: write `10.3.0.0/16`

    warning[expired-level]: level `off` of `missing-endpoint` expired on 2001-01-31; `validate` counts the finding again, `render` does not
     --> clustermesh.yaml:5:64
      |
    5 |   missing-endpoint: { level: off, reason: "edge nodes", until: 2001-01-31 }
      |                                                                ^^^^^^^^^^
    help: set a new date, or remove it (reason given: edge nodes)

    warning[expired-ignore]: ignore of `NodeNoPodCIDR` expired on 2001-01-31; `validate` counts the finding again, `render` does not
     --> clustermesh.yaml:7:48
      |
    7 |   - { rule: NodeNoPodCIDR, reason: lab, until: 2001-01-31 }
      |                                                ^^^^^^^^^^
    help: set a new date, or remove it (reason given: lab)

    3 targets unchanged
    6 Peers in 3 targets; 4 nodes left out
    "#);
    let raised = format!("rules: {{ missing-endpoint: {{ level: error, until: {PAST} }} }}");
    assert_eq!(render(&folder, &raised, &["--check"]).0, 1);
}

#[test]
fn mistakes_stop_every_command() {
    let folder = flawed();
    say(
        &folder,
        "
rules:
  mising-endpoint: { level: notice }
  missing-snapshot: { level: warning }
  invalid-type: { level: off, reason: x }
ignore:
  - { rule: overlapping-ranges, cluster: east, reason: x }
",
    );
    let run = folder.run(&["validate"]);
    assert_eq!((run.code, run.stdout.as_str()), (1, ""));
    insta::assert_snapshot!(run.stderr, @"
    error[invalid-level]: `invalid-type` cannot be lowered: it prevents rendering
     --> clustermesh.yaml:7:26
      |
    7 |   invalid-type: { level: off, reason: x }
      |                          ^^^

    error[invalid-level]: unknown rule `mising-endpoint`
     --> clustermesh.yaml:5:3
      |
    5 |   mising-endpoint: { level: notice }
      |   ^^^^^^^^^^^^^^^
    help: did you mean `missing-endpoint`?

    error[invalid-level]: `missing-snapshot` cannot be lowered: it prevents rendering
     --> clustermesh.yaml:6:30
      |
    6 |   missing-snapshot: { level: warning }
      |                              ^^^^^^^

    error[invalid-level]: `overlapping-ranges` cannot be ignored: it prevents rendering
     --> clustermesh.yaml:9:13
      |
    9 |   - { rule: overlapping-ranges, cluster: east, reason: x }
      |             ^^^^^^^^^^^^^^^^^^

    4 errors
    ");
    for command in [&["render"][..], &["config"], &["snapshot", "east", "--from", "-"]] {
        let other = folder.run(command);
        assert_eq!((other.code, other.stderr), (1, run.stderr.clone()), "{command:?}");
    }
    let (code, report) = validate(&folder, "rules: { host-bits: { level: off } }", &[]);
    assert_eq!(code, 1);
    insta::assert_snapshot!(report, @"clustermesh.yaml:3:30: error[missing-field] `host-bits` is set to `off` without a `reason`");
}

#[test]
fn errors_stay_errors() {
    let folder = flawed();
    folder.edit("mesh.yaml", "wireguardCIDR: 10.103.0.0/24", "wireguardCIDR: 10.1.0.0/24");
    let lowest = everything("off");
    let (code, report) = validate(&folder, &lowest, &[]);
    assert_eq!(code, 1);
    insta::assert_snapshot!(report, @"mesh.yaml:15:22: error[contradicted-declaration] west: all 3 nodes have WireGuard addresses outside the declared 10.1.0.0/24: 10.103.0.1, 10.103.0.2, 10.103.0.3 (1 other finding follows from it)");
    assert_eq!(render(&folder, &lowest, &[]).0, 1);
    assert!(!folder.path("rendered").exists());
}

/// No Peer may be removed because a contradiction was declared harmless.
#[test]
fn what_leaves_nothing_of_a_cluster_stays_an_error() {
    let folder = Folder::mesh();
    folder.edit("mesh.yaml", "10.1.0.0/16", "10.9.0.0/16");
    let (code, report) = validate(&folder, &everything("off"), &[]);
    assert_eq!(code, 1);
    insta::assert_snapshot!(report, @"mesh.yaml:8:18: error[contradicted-declaration] east: both nodes have pod CIDRs outside the declared 10.9.0.0/16: 10.1.1.0/24, 10.1.2.0/24 (1 other finding follows from it)");
}

/// A level for every rule that can have it.
fn everything(level: &str) -> String {
    let all = rules::all();
    let rules = all.iter().filter(|it| !it.is_final());
    let lines = rules.map(|it| format!("  {}: {{ level: {level}, reason: x }}\n", it.name()));
    format!("rules:\n{}", lines.collect::<String>())
}

/// The rendered files and their bytes.
fn tree(folder: &Folder) -> Vec<(String, String)> {
    let touches = folder.touches("rendered").into_iter();
    touches.map(|(path, (_, _, text))| (path, text)).collect()
}

#[test]
fn manifests_are_the_same_whatever_it_says() {
    let folder = flawed();
    assert_eq!(folder.run(&["render"]).code, 0);
    let without = tree(&folder);
    assert_eq!(without.len(), TREE.len());
    let mut sayings: Vec<String> = ["off", "notice", "warning"].map(everything).into();
    for rule in rules::all().iter().filter(|it| !it.is_final()) {
        let reason = "reason: x";
        sayings.push(format!("ignore: [{{ rule: {}, {reason} }}]", rule.name()));
        if rule.severity < Severity::Warning {
            sayings.push(format!("rules: {{ {}: {{ level: error }} }}", rule.name()));
        }
    }
    for fields in sayings {
        std::fs::remove_dir_all(folder.path("rendered")).unwrap();
        let (code, report) = render(&folder, &fields, &[]);
        assert_eq!(code, 0, "{fields}\n{report}");
        assert!(tree(&folder) == without, "{fields}");
    }
}

fn dump(nodes: &[Value]) -> String {
    json!({ "kind": "NodeList", "items": nodes }).to_string()
}

/// The messages of `snapshot` about two nodes of which one has lost its key.
fn carry_over(fields: &str, flags: &[&str]) -> (i32, String) {
    let folder = Folder::mesh();
    say(&folder, fields);
    let mut stripped = api_node(1, 2);
    stripped["metadata"]["annotations"] = json!({});
    let arguments = [&["snapshot", "east", "--from", "-"], flags].concat();
    let run = folder.run_with_input(&arguments, dump(&[api_node(1, 1), stripped]));
    (run.code, run.stderr)
}

#[test]
fn snapshots_are_reported_of_as_it_says() {
    let (code, report) = carry_over("", &[]);
    assert_eq!(code, 0);
    insta::assert_snapshot!(report, @"
    snapshots/east.json: 2 nodes, 2 usable, 1 carried over, written (+0 ~1 -0 nodes)
    warning[carried-over]: east/n2: has no key at the moment (its Kilo agent may be restarting); the annotations of the last snapshot were kept
    help: if Kilo was removed from it permanently, add `--no-carry-over east`
    ");
    let (code, report) = carry_over("rules: { carried-over: { level: error } }", &[]);
    assert_eq!(code, 1);
    insta::assert_snapshot!(report, @"
    snapshots/east.json: 2 nodes, 2 usable, 1 carried over, written (+0 ~1 -0 nodes)
    error[carried-over]: east/n2: has no key at the moment (its Kilo agent may be restarting); the annotations of the last snapshot were kept
    help: if Kilo was removed from it permanently, add `--no-carry-over east`
    ");
    let off = "rules: { carried-over: { level: off, reason: x } }";
    assert_eq!(
        carry_over(off, &["--fail-on", "warning"]),
        (
            0,
            "snapshots/east.json: 2 nodes, 2 usable, 1 carried over, written (+0 ~1 -0 nodes)\n"
                .to_owned()
        )
    );
    let ignored = "ignore: [{ rule: carried-over, cluster: east, node: n2, reason: x }]";
    assert_eq!(carry_over(ignored, &["--fail-on", "warning"]).0, 0);
    let other = "ignore: [{ rule: carried-over, cluster: east, node: n1, reason: x }]";
    let (code, report) = carry_over(other, &["--fail-on", "warning"]);
    assert_eq!(code, 1);
    assert!(!report.contains("unused-ignore"), "{report}");
    let past = format!("rules: {{ carried-over: {{ level: off, reason: x, until: {PAST} }} }}");
    let (code, report) = carry_over(&past, &[]);
    assert_eq!(code, 0);
    insta::assert_snapshot!(report, @"
    snapshots/east.json: 2 nodes, 2 usable, 1 carried over, written (+0 ~1 -0 nodes)
    warning[expired-level]: level `off` of `carried-over` expired on 2001-01-31; `snapshot` still applies it
     --> clustermesh.yaml:3:56
      |
    3 | rules: { carried-over: { level: off, reason: x, until: 2001-01-31 } }
      |                                                        ^^^^^^^^^^
    help: set a new date, or remove it (reason given: x)
    ");
}

#[test]
fn what_is_refused_is_not_written_however_little_it_matters() {
    let folder = Folder::mesh();
    let before = folder.touches("snapshots");
    for (fields, code) in [
        ("", 1),
        ("rules: { shrunk-snapshot: { level: warning } }", 0),
        ("rules: { shrunk-snapshot: { level: off, reason: x } }", 0),
        ("ignore: [{ rule: shrunk-snapshot, cluster: east, reason: x }]", 0),
        ("ignore: [{ rule: shrunk-snapshot, cluster: west, reason: x }]", 1),
    ] {
        say(&folder, fields);
        let mut stranger = api_node(1, 9);
        stranger["metadata"]["annotations"] = json!({});
        let run = folder.run_with_input(&["snapshot", "east", "--from", "-"], dump(&[stranger]));
        assert_eq!(run.code, code, "{fields}\n{}", run.stderr);
        assert_contains(&run.stderr, "not written");
        assert_eq!(folder.touches("snapshots"), before);
    }
    // Where there is no snapshot at all, nothing is forgiven.
    std::fs::remove_file(folder.path("snapshots/east.json")).unwrap();
    say(&folder, "rules: { empty-snapshot: { level: off, reason: x } }");
    let run = folder.run_with_input(&["snapshot", "east", "--from", "-"], dump(&[]));
    assert_eq!(run.code, 1);
    assert_contains(&run.stderr, "error[empty-snapshot]");
}

#[test]
fn config_shows_it_with_its_lines() {
    let folder = flawed();
    say(
        &folder,
        "
rules:
  node-not-ready: { level: off, reason: \"edge nodes\\tsleep\", until: 2027-01-31 }
  NodeNoEndpoint: { level: error }
ignore:
  - { rule: missing-endpoint, cluster: east, node: n1, reason: \"lab\" }
  - { rule: host-bits, reason: old, until: 2027-01-31 }
",
    );
    let run = folder.run(&["config"]);
    assert_eq!((run.code, run.stderr.as_str()), (0, ""));
    let lines: Vec<&str> = run
        .stdout
        .lines()
        .filter(|it| it.starts_with("rules.") || it.starts_with("ignore."))
        .collect();
    insta::assert_snapshot!(lines.join("\n"), @r"
    rules.NodeNoEndpoint.level                           error                                            clustermesh.yaml:6:28
    rules.node-not-ready.level                           off                                              clustermesh.yaml:5:28
    rules.node-not-ready.reason                          edge nodes\tsleep                                clustermesh.yaml:5:41
    rules.node-not-ready.until                           2027-01-31                                       clustermesh.yaml:5:69
    ignore.0.rule                                        missing-endpoint                                 clustermesh.yaml:8:13
    ignore.0.cluster                                     east                                             clustermesh.yaml:8:40
    ignore.0.node                                        n1                                               clustermesh.yaml:8:52
    ignore.0.reason                                      lab                                              clustermesh.yaml:8:64
    ignore.1.rule                                        host-bits                                        clustermesh.yaml:9:13
    ignore.1.reason                                      old                                              clustermesh.yaml:9:32
    ignore.1.until                                       2027-01-31                                       clustermesh.yaml:9:44
    ");
    let run = folder.run(&["config", "--output", "json"]);
    let printed = run.json();
    let settings = printed["settings"].as_array().unwrap();
    let until = settings.iter().find(|it| it["name"] == "ignore.1.until").unwrap();
    assert_eq!(
        *until,
        json!({
            "name": "ignore.1.until",
            "value": "2027-01-31",
            "origin": { "kind": "file", "file": "clustermesh.yaml", "line": 9, "column": 44 },
        })
    );
}

/// A command may only report a rule that is off if it has no result without what is wrong: a cluster without a load.
#[test]
fn no_command_reports_a_rule_that_is_off() {
    let folder = Folder::rendered();
    let path = "rendered/east/prod--west.yaml";
    let odd = "---\napiVersion: kilo.squat.ai/v1alpha1\nkind: Peer\nmetadata: { name: x }\nspec: { publicKey: no, allowedIPs: [zz] }\n";
    folder.write(path, folder.read(path) + odd + "---\n{{\n");
    folder.write("rendered/east/stray.yaml", "kind: List\n");
    let rules = ["unreadable-manifest", "refused-peer", "stray-manifest"];
    let reported = || {
        let commands = COMMANDS.iter().filter(|it| {
            let run = folder.run(it);
            let text = run.stdout + &run.stderr;
            rules.iter().any(|it| text.contains(&format!("[{it}]")))
        });
        commands.map(|it| it.join(" ")).collect::<Vec<_>>().join(", ")
    };
    let first = reported();
    let (others, status) = first.split_once(", status").unwrap_or((&first, ""));
    insta::assert_snapshot!(others, @"validate, render --check, verify, outage, capacity, trace east/n1 west/n1, graph");
    // Without the client of clusters, `status` does not exist.
    let asked = if cfg!(feature = "snapshot") { " --kubeconfig kubeconfig" } else { "" };
    assert_eq!(status, asked);
    let levels = rules.map(|it| format!("  {it}: {{ level: \"off\", reason: x }}\n")).concat();
    say(&folder, &format!("rules:\n{levels}"));
    insta::assert_snapshot!(reported(), @"capacity");
}
