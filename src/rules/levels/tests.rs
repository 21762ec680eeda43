//! The levels of findings, and findings about the entries that set them.

use super::*;
use crate::config;
use crate::diagnostic::Severity;
use crate::document::Source;
use crate::document::tests::report;

const HEAD: &str = "apiVersion: kilo-clustermesh.io/v1\nkind: Config\n";

fn read(fields: &str) -> (Source, Result<Levels, Vec<Finding>>) {
    let source = Source::parse("clustermesh.yaml", format!("{HEAD}{fields}")).unwrap();
    let levels = Levels::new(&config::read(&source).unwrap());
    (source, levels)
}

fn levels(fields: &str) -> Levels {
    read(fields).1.unwrap()
}

fn mistakes(fields: &str) -> String {
    let (source, levels) = read(fields);
    report(&source, &levels.unwrap_err())
}

fn day(text: &str) -> Date {
    text.parse().unwrap()
}

/// A finding about a node, or else about a cluster.
fn found(rule: &str, cluster: &str, node: &str) -> Finding {
    let (rule, cluster) = (find(rule)[0], cluster.parse().unwrap());
    match node {
        "" => Finding::on_cluster(rule, &cluster, String::new()),
        node => Finding::on_node(rule, &cluster, node, String::new()),
    }
}

fn some() -> Vec<Finding> {
    vec![
        found("missing-endpoint", "east", "n1"),
        found("missing-endpoint", "east", "n2"),
        found("missing-endpoint", "west", "n1"),
        found("no-anchor", "east", ""),
        found("missing-pod-cidr", "west", "n2"),
        found("invalid-pod-cidr", "west", "n3"),
        found("node-not-selected", "west", "n4"),
    ]
}

fn shown(findings: &[Finding]) -> String {
    let lines = findings.iter().map(|it| {
        let subject = it.subject().unwrap_or_default();
        let help = it.help.as_deref().unwrap_or_default();
        let line = format!("{}[{}] {subject} {} {help}", it.severity, it.rule.name(), it.message);
        format!("{}\n", line.split_whitespace().collect::<Vec<_>>().join(" "))
    });
    lines.collect()
}

fn applied(fields: &str, today: &str, purpose: Purpose) -> String {
    shown(&levels(fields).apply(some(), day(today), purpose))
}

const NOW: &str = "2026-11-21";

#[test]
fn nothing_said_is_nothing_changed() {
    assert_eq!(applied("", NOW, Purpose::Validate), shown(&some()));
}

#[test]
fn raises_and_lowers_and_silences() {
    insta::assert_snapshot!(applied("
rules:
  no-anchor: { level: error }
  missing-endpoint: { level: notice }
  node-not-selected: { level: 'off', reason: meant }
", NOW, Purpose::Validate), @"
    error[no-anchor] east
    warning[missing-pod-cidr] west/n2
    warning[invalid-pod-cidr] west/n3
    notice[missing-endpoint] east/n1
    notice[missing-endpoint] east/n2
    notice[missing-endpoint] west/n1
    ");
}

#[test]
fn a_code_of_the_operator_s_means_all_its_rules_and_a_name_goes_over_it() {
    insta::assert_snapshot!(applied("
rules:
  NodeNoPodCIDR: { level: off, reason: x }
  NodeNoEndpoint: { level: off, reason: x }
", NOW, Purpose::Validate), @"
    warning[no-anchor] east
    notice[node-not-selected] west/n4
    ");
    insta::assert_snapshot!(applied("
rules:
  NodeNoPodCIDR: { level: off, reason: x }
  NodeNoEndpoint: { level: off, reason: x }
  missing-pod-cidr: { level: error }
", NOW, Purpose::Validate), @"
    error[missing-pod-cidr] west/n2
    warning[no-anchor] east
    notice[node-not-selected] west/n4
    ");
}

#[test]
fn ignores_what_it_names_and_nothing_else() {
    let ignored = |fields: &str| {
        let text = format!("ignore: [{{ rule: missing-endpoint, reason: lab{fields} }}]");
        let levels = levels(&text);
        assert_eq!(shown(&levels.unused(&some(), day(NOW))), "");
        let left = levels.apply(some(), day(NOW), Purpose::Validate);
        let subjects: Vec<String> = left
            .iter()
            .filter(|it| it.rule.name() == "missing-endpoint")
            .filter_map(Finding::subject)
            .collect();
        subjects.join(" ")
    };
    assert_eq!(ignored(""), "");
    assert_eq!(ignored(", cluster: east"), "west/n1");
    assert_eq!(ignored(", node: n1"), "east/n2");
    assert_eq!(ignored(", cluster: east, node: n1"), "east/n2 west/n1");
}

#[test]
fn an_ignore_that_matches_nothing_is_reported() {
    let levels = levels(
        "
ignore:
  - { rule: missing-endpoint, cluster: east, node: n1, reason: x }
  - { rule: missing-endpoint, cluster: east, node: n3, reason: x }
  - { rule: NodeNoPodCIDR, cluster: east, reason: x }
  - { rule: no-anchor, node: n1, reason: x }
  - { rule: roaming-node, reason: x }
  - { rule: carried-over, reason: told by `snapshot` only }
  - { rule: silent-cluster, reason: x, until: 2020-01-01 }
",
    );
    insta::assert_snapshot!(shown(&levels.unused(&some(), day(NOW))), @"
    warning[unused-ignore] unused ignore: no finding matches `missing-endpoint` of `n3` of `east` remove it, or correct its cluster and node
    warning[unused-ignore] unused ignore: no finding matches `NodeNoPodCIDR` of `east` remove it, or correct its cluster and node
    warning[unused-ignore] unused ignore: no finding matches `no-anchor` of any node `n1` remove it, or correct its cluster and node
    warning[unused-ignore] unused ignore: no finding matches `roaming-node` remove it, or correct its cluster and node
    ");
}

const SHORT: &str = "
rules:
  missing-endpoint: { level: off, reason: \"e\\edge\", until: 2026-11-20 }
  NodeNoPodCIDR: { level: notice, until: 2026-11-20 }
  carried-over: { level: error, until: 2026-11-20 }
ignore:
  - { rule: no-anchor, cluster: east, reason: lab, until: 2026-11-20 }
";

#[test]
fn what_has_had_its_time_counts_again_for_validate_only() {
    let left = |today, purpose| applied(SHORT, today, purpose);
    let in_force = left("2026-11-20", Purpose::Validate);
    insta::assert_snapshot!(in_force, @"
    notice[missing-pod-cidr] west/n2
    notice[invalid-pod-cidr] west/n3
    notice[node-not-selected] west/n4
    ");
    assert_eq!(left("2026-11-20", Purpose::Render), in_force);
    assert_eq!(left("2026-11-21", Purpose::Render), in_force);
    assert_eq!(left("2026-11-21", Purpose::Snapshot), in_force);
    assert_eq!(left("2026-11-21", Purpose::Validate), shown(&some()));
}

#[test]
fn what_has_had_its_time_is_reported() {
    let report = |today, purpose| shown(&levels(SHORT).expired(day(today), purpose));
    assert_eq!(report("2026-11-20", Purpose::Validate), "");
    insta::assert_snapshot!(report("2026-11-21", Purpose::Validate), @r"
    warning[expired-level] level `notice` of `NodeNoPodCIDR` expired on 2026-11-20; the finding counts again set a new date, or remove it
    warning[expired-level] level `error` of `carried-over` expired on 2026-11-20; `snapshot` still applies it set a new date, or remove it
    warning[expired-level] level `off` of `missing-endpoint` expired on 2026-11-20; the finding counts again set a new date, or remove it (reason given: e\u{1b}dge)
    warning[expired-ignore] ignore of `no-anchor` of `east` expired on 2026-11-20; the finding counts again set a new date, or remove it (reason given: lab)
    ");
    insta::assert_snapshot!(report("2026-11-21", Purpose::Render), @r"
    warning[expired-level] level `notice` of `NodeNoPodCIDR` expired on 2026-11-20; `validate` counts the finding again, `render` does not set a new date, or remove it
    warning[expired-level] level `error` of `carried-over` expired on 2026-11-20; `snapshot` still applies it set a new date, or remove it
    warning[expired-level] level `off` of `missing-endpoint` expired on 2026-11-20; `validate` counts the finding again, `render` does not set a new date, or remove it (reason given: e\u{1b}dge)
    warning[expired-ignore] ignore of `no-anchor` of `east` expired on 2026-11-20; `validate` counts the finding again, `render` does not set a new date, or remove it (reason given: lab)
    ");
    insta::assert_snapshot!(report("2026-11-21", Purpose::Snapshot), @"warning[expired-level] level `error` of `carried-over` expired on 2026-11-20; `snapshot` still applies it set a new date, or remove it");
}

#[test]
fn what_is_final_stays() {
    let mut grave = found("contradicted-declaration", "east", "");
    grave.severity = Severity::Error;
    grave.is_final = true;
    let levels = levels(
        "
rules: { contradicted-declaration: { level: off, reason: x } }
ignore: [{ rule: contradicted-declaration, reason: x }]
",
    );
    let findings = vec![grave, found("contradicted-declaration", "west", "")];
    assert_eq!(shown(&levels.unused(&findings, day(NOW))), "");
    let left = levels.apply(findings, day(NOW), Purpose::Validate);
    assert_eq!(shown(&left), "error[contradicted-declaration] east\n");
}

#[test]
fn a_rule_must_exist() {
    insta::assert_snapshot!(mistakes("
rules:
  mising-endpoint: { level: notice }
  NodeNoEndpoin: { level: notice }
  \"\\e[31m\": { level: error }
ignore:
  - { rule: node-not-redy, reason: x }
"), @r#"
    error[invalid-level]: unknown rule `\u{1b}[31m`
      7:3 | "\e[31m"
    error[invalid-level]: unknown rule `NodeNoEndpoin`
      6:3 | NodeNoEndpoin
      help: did you mean `NodeNoEndpoint`?
    error[invalid-level]: unknown rule `mising-endpoint`
      5:3 | mising-endpoint
      help: did you mean `missing-endpoint`?
    error[invalid-level]: unknown rule `node-not-redy`
      9:13 | node-not-redy
      help: did you mean `node-not-ready`?
    "#);
}

#[test]
fn what_makes_a_plan_impossible_cannot_be_lowered() {
    insta::assert_snapshot!(mistakes("
rules:
  missing-snapshot: { level: off, reason: x }
  overlapping-ranges: { level: warning }
  unknown-field: { level: notice }
  syntax-error: { level: error }
  host-bits: { level: off, reason: x }
ignore:
  - { rule: invalid-snapshot, cluster: east, reason: x }
  - { rule: unreachable-cluster, cluster: lab, reason: x }
"), @"
    error[invalid-level]: `missing-snapshot` cannot be lowered: it prevents rendering
      5:30 | off
    error[invalid-level]: `overlapping-ranges` cannot be lowered: it prevents rendering
      6:32 | warning
    error[invalid-level]: `unknown-field` cannot be lowered: it prevents rendering
      7:27 | notice
    error[invalid-level]: `invalid-snapshot` cannot be ignored: it prevents rendering
      11:13 | invalid-snapshot
    ");
    let is_final = |rule: &&&Rule| rule.is_final();
    assert!(all().iter().filter(is_final).all(|it| it.severity == Severity::Error));
    assert!(Finding::new(&mistake::MISSING_FIELD, "x").is_final);
    assert!(!Finding::new(&mistake::HOST_BITS, "x").is_final);
}

#[test]
fn what_pages_say_of_the_config_is_accepted() {
    let mut advised = 0;
    for rule in all() {
        let page = rule.page.split_whitespace().collect::<Vec<_>>().join(" ");
        let fields = page.split('`').skip(1).step_by(2);
        for fields in fields.filter(|it| it.starts_with("rules: {") || it.starts_with("ignore: ["))
        {
            let (source, levels) = read(&fields.replace("east", "\"east\""));
            let errors = levels.err().unwrap_or_default();
            assert!(errors.is_empty(), "{}: {}", rule.name(), report(&source, &errors));
            advised += 1;
        }
    }
    assert!(8 <= advised, "{advised}");
}
