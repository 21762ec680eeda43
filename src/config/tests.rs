//! The fields of a config, and the messages about unknown ones.

use super::*;

fn report(text: &str) -> String {
    let source = Source::parse("clustermesh.yaml", text).unwrap();
    match read(&source) {
        Ok(config) => format!("{config:?}"),
        Err(diagnostics) => crate::document::tests::report(&source, &diagnostics),
    }
}

#[test]
fn reads_what_is_said() {
    insta::assert_snapshot!(report("
---
apiVersion: kilo-clustermesh.io/v1
kind: Config
meshes: [mesh.yaml, meshes]
rendered: ../flux/peers
---
"), @r#"Config { folder: "", meshes: ["mesh.yaml", "meshes"], snapshots: None, dropped_labels: None, rendered: Some("../flux/peers"), expectations: None, outputs: [], clusters: {}, groups: [], policies: None, limits: Limits { nodes: 500, lost_nodes: 2, lost_percent: 25, gone_percent: 50, stale_after_seconds: 300, lost_peers: 2, lost_peers_percent: 25, peer_bytes: 262144, capacity: Capacity { .. } }, ceilings: Ceilings { clusters: 400, nodes: 80000, ranges: 20000, anchors: 5000, expectations: 2000, peers: 500000, steps: 10000000 }, rules: [], ignore: [] }"#);
}

#[test]
fn tells_all_mistakes_at_once() {
    insta::assert_snapshot!(report("
apiVersion: kilo-clustermesh.io/v2
kind: config
mesh: x
snapshots: ''
rendered: [a]
limits: {}
meshes: ['', 7]
---
more: true
"), @r#"
error[invalid-value]: `apiVersion` cannot be `kilo-clustermesh.io/v2`
  2:13 | kilo-clustermesh.io/v2
  help: did you mean `kilo-clustermesh.io/v1`?
error[invalid-value]: `kind` cannot be `config`
  3:7 | config
  help: did you mean `Config`?
error[unknown-field]: unknown field `mesh`
  4:1 | mesh
  help: did you mean `meshes`?
error[invalid-value]: `snapshots` must not be empty
  5:12 | ''
error[invalid-type]: `rendered` must be a string, not a list
  6:11 | [a]
  help: write `a` without brackets
error[invalid-value]: an item of `meshes` must not be empty
  8:10 | ''
error[invalid-type]: an item of `meshes` must be a string, but YAML reads `7` as a number
  8:14 | 7
  help: add quotes: `"7"`
error[syntax-error]: the config must be a single document
  10:1 | more: true
"#);
}

#[test]
fn an_empty_file_is_no_config() {
    let empty = Source::parse("clustermesh.yaml", "# nothing\n").unwrap();
    let report = read(&empty).unwrap_err();
    assert_eq!(report.len(), 1);
    assert_eq!(report[0].rule.name(), "syntax-error");
}

/// The messages about fields of a config.
fn report_of(fields: &str) -> String {
    let head = "apiVersion: kilo-clustermesh.io/v1\nkind: Config\n";
    report(&format!("{head}{fields}"))
}

#[test]
fn reads_how_clusters_are_reached_and_what_is_too_much() {
    insta::assert_snapshot!(report_of("
clusters:
  a: { kubeconfig: a.yaml, context: a@b, inCluster: false }
  b: { inCluster: true }
  c: {}
limits: { nodes: 1, lostNodes: 1000000, lostPercent: 0, gonePercent: 100, staleAfterSeconds: 60 }
"), @r#"Config { folder: "", meshes: [], snapshots: None, dropped_labels: None, rendered: None, expectations: None, outputs: [], clusters: {ClusterName("a"): Kubeconfig { path: Some("a.yaml"), context: Some("a@b") }, ClusterName("b"): InCluster, ClusterName("c"): Kubeconfig { path: None, context: None }}, groups: [], policies: None, limits: Limits { nodes: 1, lost_nodes: 1000000, lost_percent: 0, gone_percent: 100, stale_after_seconds: 60, lost_peers: 2, lost_peers_percent: 25, peer_bytes: 262144, capacity: Capacity { .. } }, ceilings: Ceilings { clusters: 400, nodes: 80000, ranges: 20000, anchors: 5000, expectations: 2000, peers: 500000, steps: 10000000 }, rules: [], ignore: [] }"#);
}

#[test]
fn nothing_is_the_default() {
    let nothing = report_of("");
    assert_eq!(report_of("clusters: {}\nlimits:\n"), nothing);
    assert_eq!(report_of("limits: { ceilings: ~ }\n"), nothing);
    insta::assert_snapshot!(report_of("clusters: { a: ~ }"), @"
    error[invalid-type]: `a` must be a mapping, not null
      3:16 | ~
      help: write a mapping; its fields are `context`, `inCluster`, `kubeconfig`, `kubeconfigSecret`
    ");
}

#[test]
fn a_cluster_has_a_name_and_one_way_to_it() {
    insta::assert_snapshot!(report_of("
clusters:
  c: { kubeconfig: '' }
  12: {}
  d: { inCluster: yes }
"), @r#"
    error[invalid-value]: `kubeconfig` must not be empty
      5:20 | ''
    error[invalid-type]: a key must be a string, but YAML reads `12` as a number
      6:3 | 12
      help: add quotes: `"12"`
    error[invalid-type]: `inCluster` must be `true` or `false`, not `yes`
      7:19 | yes
    "#);
    insta::assert_snapshot!(report_of("
clusters:
  East: {}
  \"a\\u202e\": { inCluster: true, context: x }
  \"\": { inCluster: true, kubeconfig: x }
  b: { inCluster: true, kubeconfig: x, context: z }
"), @r#"
    error[invalid-value]: `` is not a valid cluster name: the name is empty
      7:3 | ""
    error[contradicting-fields]: `inCluster: true` cannot be combined with `kubeconfig` or `context`
      7:20 | true
      help: remove `inCluster`, or remove the other fields
    error[invalid-value]: `East` is not a valid cluster name: expected lowercase letters, digits and inner dashes (a DNS-1123 label)
      5:3 | East
      help: write `east`
    error[invalid-value]: `a\u{202e}` is not a valid cluster name: expected lowercase letters, digits and inner dashes (a DNS-1123 label)
      6:3 | "a\u202e"
      help: write `a`
    error[contradicting-fields]: `inCluster: true` cannot be combined with `kubeconfig` or `context`
      6:27 | true
      help: remove `inCluster`, or remove the other fields
    error[contradicting-fields]: `inCluster: true` cannot be combined with `kubeconfig` or `context`
      8:19 | true
      help: remove `inCluster`, or remove the other fields
    "#);
}

#[test]
fn limits_have_bounds() {
    insta::assert_snapshot!(report_of("
limits: { nodes: 0, lostNodes: 1000001, lostPercent: 101, gonePercent: -1, staleAfterSeconds: 59 }
"), @"
    error[invalid-value]: `nodes` must be from 1 to 1000000, not `0`
      4:18 | 0
      help: write a number from 1 to 1000000
    error[invalid-value]: `lostNodes` must be from 1 to 1000000, not `1000001`
      4:32 | 1000001
      help: write a number from 1 to 1000000
    error[invalid-value]: `lostPercent` must be from 0 to 100, not `101`
      4:54 | 101
      help: write a number from 0 to 100
    error[invalid-value]: `gonePercent` must be from 0 to 100, not `-1`
      4:72 | -1
      help: write a number from 0 to 100
    error[invalid-value]: `staleAfterSeconds` must be from 60 to 31536000, not `59`
      4:95 | 59
      help: write a number from 60 to 31536000
    ");
    insta::assert_snapshot!(report_of("limits: { nodes: '500', lostPercent: 2.5 }"), @"
    error[invalid-type]: `nodes` must be an integer, not the string `500`
      3:18 | '500'
      help: remove the quotes
    error[invalid-type]: `lostPercent` must be an integer in decimal digits, not `2.5`
      3:38 | 2.5
    ");
}

#[test]
fn slips_are_reported_with_what_was_meant() {
    insta::assert_snapshot!(report_of("
cluster: {}
limit: {}
clusters: { a: { kubeConfig: x, contxt: y, incluster: true } }
limits: { node: 1, lostpercent: 2, staleAfter: 3 }
"), @"
    error[unknown-field]: unknown field `cluster`
      4:1 | cluster
      help: did you mean `clusters`?
    error[unknown-field]: unknown field `limit`
      5:1 | limit
      help: did you mean `limits`?
    error[unknown-field]: unknown field `kubeConfig`
      6:18 | kubeConfig
      help: did you mean `kubeconfig`?
    error[unknown-field]: unknown field `contxt`
      6:33 | contxt
      help: did you mean `context`?
    error[unknown-field]: unknown field `incluster`
      6:44 | incluster
      help: did you mean `inCluster`?
    error[unknown-field]: unknown field `node`
      7:11 | node
      help: did you mean `nodes`?
    error[unknown-field]: unknown field `lostpercent`
      7:20 | lostpercent
      help: did you mean `lostPercent`?
    error[unknown-field]: unknown field `staleAfter`
      7:36 | staleAfter
      help: did you mean `staleAfterSeconds`?
    ");
}

#[test]
fn reads_what_is_said_of_findings() {
    insta::assert_snapshot!(report_of("
rules:
  node-not-ready: { level: off, reason: sleeps, until: 2027-01-31 }
  host-bits: { level: error, until: '2027-01-31' }
ignore:
  - { rule: missing-endpoint, cluster: east, node: n1, reason: lab }
  - { rule: NodeNoEndpoint, reason: lab, until: 2027-01-31 }
"), @r#"Config { folder: "", meshes: [], snapshots: None, dropped_labels: None, rendered: None, expectations: None, outputs: [], clusters: {}, groups: [], policies: None, limits: Limits { nodes: 500, lost_nodes: 2, lost_percent: 25, gone_percent: 50, stale_after_seconds: 300, lost_peers: 2, lost_peers_percent: 25, peer_bytes: 262144, capacity: Capacity { .. } }, ceilings: Ceilings { clusters: 400, nodes: 80000, ranges: 20000, anchors: 5000, expectations: 2000, peers: 500000, steps: 10000000 }, rules: [RuleLevel { rule: "host-bits", level: Error, reason: None, until: Some(Date(2027-01-31)), place: Place { source: "clustermesh.yaml", document: 0, pointer: Pointer("/rules/host-bits"), part: Value } }, RuleLevel { rule: "node-not-ready", level: Off, reason: Some("sleeps"), until: Some(Date(2027-01-31)), place: Place { source: "clustermesh.yaml", document: 0, pointer: Pointer("/rules/node-not-ready"), part: Value } }], ignore: [Ignore { rule: "missing-endpoint", cluster: Some(ClusterName("east")), node: Some("n1"), reason: "lab", until: None, place: Place { source: "clustermesh.yaml", document: 0, pointer: Pointer("/ignore/0"), part: Value } }, Ignore { rule: "NodeNoEndpoint", cluster: None, node: None, reason: "lab", until: Some(Date(2027-01-31)), place: Place { source: "clustermesh.yaml", document: 0, pointer: Pointer("/ignore/1"), part: Value } }] }"#);
}

#[test]
fn exceptions_have_reasons_and_days_that_exist() {
    insta::assert_snapshot!(report_of("
rules:
  a: { level: off }
  b: { level: none }
  c: { until: 2027-01-31 }
  d: { level: off, reason: '' }
  on: { level: notice }
ignore:
  - { rule: '', cluster: east }
  - {}
  - { rule: a, reason: b, nodes: n1 }
"), @r#"
error[invalid-value]: `level` cannot be `none`
  6:15 | none
  help: allowed here: `error`, `warning`, `notice`, `off`
error[missing-field]: `level` is missing in `c`
  7:3 | c
  help: add a line `level: …`
error[invalid-value]: `reason` must not be empty
  8:28 | ''
error[invalid-type]: a key must be a string, but YAML reads `on` as a boolean
  9:3 | on
  help: add quotes: `"on"`
error[invalid-value]: `rule` must not be empty
  11:13 | ''
error[missing-field]: `reason` is missing in an item of `ignore`
  11:5 | { rule: '', cluster: east }
  help: add a line `reason: …`
error[missing-field]: `rule` is missing in an item of `ignore`
  12:5 | {}
  help: add a line `rule: …`
error[missing-field]: `reason` is missing in an item of `ignore`
  12:5 | {}
  help: add a line `reason: …`
error[unknown-field]: unknown field `nodes`
  13:27 | nodes
  help: did you mean `node`?
"#);
    insta::assert_snapshot!(report_of("
rules:
  a: { level: off, until: 2027-02-29 }
  b: { level: error, until: 20270131 }
  c: { level: notice, until: 2027-1-31 }
ignore:
  - { rule: a, reason: b, cluster: East, until: tomorrow }
  - { rule: a, reason: b, until: on }
"), @r#"
error[invalid-value]: `2027-02-29` is not a valid date: the day does not exist
  5:27 | 2027-02-29
error[missing-field]: `a` is set to `off` without a `reason`
  5:15 | off
  help: write `a: { level: "off", reason: "WHY" }`
error[invalid-value]: `20270131` is not a valid date: expected the form `2027-01-31`
  6:29 | 20270131
error[invalid-value]: `2027-1-31` is not a valid date: expected the form `2027-01-31`
  7:30 | 2027-1-31
error[invalid-value]: `East` is not a valid cluster name: expected lowercase letters, digits and inner dashes (a DNS-1123 label)
  9:36 | East
  help: write `east`
error[invalid-value]: `tomorrow` is not a valid date: expected the form `2027-01-31`
  9:49 | tomorrow
error[invalid-value]: `on` is not a valid date: expected the form `2027-01-31`
  10:34 | on
"#);
}

/// Commands can be copied, and lead to the cluster whose snapshot was taken.
#[test]
fn kubectl_reads_the_same_kubeconfig_and_context() {
    let text = "
apiVersion: kilo-clustermesh.io/v1
kind: Config
clusters:
  a: { kubeconfig: a.yaml }
  b: { kubeconfig: b $(c).yaml, context: admin@b }
  c: { context: admin@c }
  d: { kubeconfig: /etc/d.yaml }
  e: { inCluster: true }
";
    let commands = |file: &str| {
        let config = read(&Source::parse(file, text).unwrap()).unwrap();
        ["a", "b", "c", "d", "e", "f"].map(|it| config.kubectl(&it.parse().unwrap()))
    };
    assert_eq!(
        commands("clustermesh.yaml"),
        [
            "kubectl --kubeconfig a.yaml",
            "kubectl --kubeconfig 'b $(c).yaml' --context admin@b",
            "kubectl --context admin@c",
            "kubectl --kubeconfig /etc/d.yaml",
            "kubectl --context e",
            "kubectl --context f",
        ]
    );
    // Paths are relative to the config, commands to the working folder.
    let [a, .., d, _, _] = commands("../net/clustermesh.yaml");
    assert_eq!(a, "kubectl --kubeconfig ../net/a.yaml");
    assert_eq!(d, "kubectl --kubeconfig /etc/d.yaml");
}
