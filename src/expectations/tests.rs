//! Valid expectations, and the messages about invalid ones.

use super::*;

fn report(text: &str) -> String {
    let source = Source::parse("expectations.yaml", text).unwrap();
    match read(&source, &KnownGroups::default()) {
        Ok(read) => {
            let lines = read.expectations.iter().map(|it| format!("{it:?}\n"));
            lines
                .collect::<String>()
                .replace("Place { source: \"expectations.yaml\", document: 0, ", "{ ")
        }
        Err(diagnostics) => crate::document::tests::report(&source, &diagnostics),
    }
}

fn report_of(spec: &str) -> String {
    let head = "apiVersion: kilo-clustermesh.io/v1\nkind: Expectations\nspec:\n";
    report(&format!("{head}{spec}"))
}

#[test]
fn reads_what_is_expected() {
    insta::assert_snapshot!(report_of("
- name: all pods
  from: { cluster: east }
  to: { cluster: west }
  expect: Reach
- from: { addresses: [10.1.2.3, 10.1.4.9/24], class: Node }
  to: { addresses: ['fd00::1'] }
  expect: Deny
- from: { class: Node }
  to: { cluster: west }
  class: Service
  expect: Reach
"), @r#"
    Expectation { name: Some("all pods"), from: Selection { clusters: Some(SelectedClusters { members: {ClusterName("east"): { pointer: Pointer("/spec/0/from/cluster"), part: Value }}, group: None }), nodes: None, addresses: [], class: Some(Pod), place: { pointer: Pointer("/spec/0/from"), part: Value } }, to: Selection { clusters: Some(SelectedClusters { members: {ClusterName("west"): { pointer: Pointer("/spec/0/to/cluster"), part: Value }}, group: None }), nodes: None, addresses: [], class: Some(Pod), place: { pointer: Pointer("/spec/0/to"), part: Value } }, expected: Reach, survives_a_node: false, place: { pointer: Pointer("/spec/0"), part: Value } }
    Expectation { name: None, from: Selection { clusters: None, nodes: None, addresses: [Cidr(10.1.2.3/32), Cidr(10.1.4.0/24)], class: Some(Node), place: { pointer: Pointer("/spec/1/from"), part: Value } }, to: Selection { clusters: None, nodes: None, addresses: [Cidr(fd00::1/128)], class: None, place: { pointer: Pointer("/spec/1/to"), part: Value } }, expected: Deny, survives_a_node: false, place: { pointer: Pointer("/spec/1"), part: Value } }
    Expectation { name: None, from: Selection { clusters: None, nodes: None, addresses: [], class: Some(Node), place: { pointer: Pointer("/spec/2/from"), part: Value } }, to: Selection { clusters: Some(SelectedClusters { members: {ClusterName("west"): { pointer: Pointer("/spec/2/to/cluster"), part: Value }}, group: None }), nodes: None, addresses: [], class: Some(Service), place: { pointer: Pointer("/spec/2/to"), part: Value } }, expected: Reach, survives_a_node: false, place: { pointer: Pointer("/spec/2"), part: Value } }
    "#);
}

#[test]
fn a_wrong_structure_is_reported_at_once() {
    insta::assert_snapshot!(report("
apiVersion: kilo-clustermesh.io/v2
kind: Expectation
spec:
- { form: { cluster: east }, to: { clutser: west }, expect: reach }
- { from: { class: Service }, to: { addresses: [] }, expect: Deny }
- { from: east, to: { nodeSelector: { matchLabel: {} } }, class: pod }
---
spec: []
"), @"
error[invalid-value]: `apiVersion` cannot be `kilo-clustermesh.io/v2`
  2:13 | kilo-clustermesh.io/v2
  help: did you mean `kilo-clustermesh.io/v1`?
error[invalid-value]: `kind` cannot be `Expectation`
  3:7 | Expectation
  help: did you mean `Expectations`?
error[unknown-field]: unknown field `form`
  5:5 | form
  help: did you mean `from`?
error[unknown-field]: unknown field `clutser`
  5:36 | clutser
  help: did you mean `cluster`?
error[invalid-value]: `expect` cannot be `reach`
  5:61 | reach
  help: did you mean `Reach`?
error[invalid-value]: `class` cannot be `Service`
  6:20 | Service
  help: allowed here: `Pod`, `Node`, `Any`
error[invalid-value]: `addresses` needs at least 1 item, not 0
  6:48 | []
error[invalid-type]: `from` must be a mapping, not the string `east`
  7:11 | east
  help: write a mapping; its fields are `addresses`, `class`, `cluster`, `clusters`, `group`, `nodeSelector`, `other`
error[unknown-field]: unknown field `matchLabel`
  7:39 | matchLabel
  help: did you mean `matchLabels`?
error[invalid-value]: `class` cannot be `pod`
  7:66 | pod
  help: did you mean `Pod`?
error[missing-field]: `expect` is missing in an item of `spec`
  7:3 | { from: east, to: { nodeSelector: { matchLabel: {} } }, class: pod }
  help: add a line `expect: …`
error[syntax-error]: expectations must be a single document
  9:1 | spec: []
");
}

#[test]
fn every_mistake_is_reported_at_once() {
    insta::assert_snapshot!(report_of("
- { name: a, from: {}, to: {}, expect: Reach }
- name: a
  from: { cluster: East, nodeSelector: { matchLabels: { a/b/c: x } }, addresses: [10.1.0.0/33, x, '::ffff:10.1.0.1'] }
  to: { cluster: west, nodeSelector: {} }
  class: Service
  expect: Deny
- { name: b, from: { cluster: east }, to: { cluster: west }, expect: Deny }
- { name: b, from: { cluster: east }, to: { cluster: west }, expect: Reach }
"), @"
    error[missing-field]: `from` selects nothing
      5:20 | {}
      help: add a `cluster`, a `group`, a `nodeSelector` or `addresses`
    error[missing-field]: `to` selects nothing
      5:28 | {}
      help: add a `cluster`, a `group`, a `nodeSelector` or `addresses`
    error[contradicting-fields]: the classes `Service` and `Network` cannot be combined with `nodeSelector`
      8:24 | nodeSelector
      9:10 | Service
      help: remove one of the two fields
    error[invalid-value]: `East` is not a valid cluster name: expected lowercase letters, digits and inner dashes (a DNS-1123 label)
      7:20 | East
      help: write `east`
    error[invalid-value]: `a/b/c` is not a valid label key
      7:57 | a/b/c
      help: write `name` or `prefix/name`, such as `topology.kubernetes.io/zone`
    error[invalid-range]: `10.1.0.0/33` is neither an address nor a range: `33` is not a prefix length from 0 to 32
      7:83 | 10.1.0.0/33
    error[invalid-range]: `x` is neither an address nor a range: not an IP address
      7:96 | x
    error[invalid-range]: `::ffff:10.1.0.1` is neither an address nor a range: IPv4-mapped IPv6 address; write it as IPv4
      7:99 | '::ffff:10.1.0.1'
    error[duplicate-name]: duplicate expectation name `b`
      12:11 | b | second here
      11:11 | b | first here
      help: give each expectation a name of its own
    ");
}

#[test]
fn several_clusters_have_a_field_of_their_own() {
    insta::assert_snapshot!(report_of("
- { name: a, from: { cluster: [east, north] }, to: { cluster: west }, expect: Reach }
"), @"
        error[invalid-type]: `cluster` must be a string, not a list
          5:31 | [east, north]
          help: write `clusters` instead of `cluster`
        ");
}

#[test]
fn an_empty_file_expects_nothing_and_is_a_mistake() {
    insta::assert_snapshot!(report("# later\n---\n"), @"
    error[syntax-error]: the file contains no expectations
      2:4
    ");
    insta::assert_snapshot!(report_of("  []\n"), @"
    error[invalid-value]: `spec` needs at least 1 item, not 0
      4:3 | []
    ");
}
