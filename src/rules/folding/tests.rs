use super::*;
use crate::place::Place;
use crate::rules::kilo::{LEADER_LEFT_OUT, MISSING_KEEPALIVE};
use crate::rules::nodes::SILENT_CLUSTER;
use crate::rules::ranges::NO_POD_CIDR;

fn finding(number: usize) -> Finding {
    let cluster = "east".parse().unwrap();
    let node = format!("n{number}");
    let place = Place::document(&"east.json".into(), 0).key("nodes").index(number);
    Finding::on_node(&NO_POD_CIDR, &cluster, &node, format!("left out: bad `{number}`"))
        .with_alike("left out: bad", Some(format!("`{number}`")))
        .at(place, "")
}

fn report(findings: Vec<Finding>) -> Vec<String> {
    let subject = |it: &Finding| it.subject().unwrap_or_default();
    let report = folded(findings).into_iter();
    report.map(|it| format!("{}: {}", subject(&it), it.message)).collect()
}

#[test]
fn a_few_stay_apart() {
    assert_eq!(folded((1..=2).map(finding).collect()).len(), 2);
}

#[test]
fn many_are_one_and_every_node_has_its_place() {
    let folded = folded((1..=69).map(finding).collect());
    assert_eq!(folded.len(), 1);
    assert_eq!(
        folded[0].message.shown(),
        "69 nodes left out: bad (`n1`: `1`, `n2`: `2`, `n3`: `3` and 66 more)"
    );
    assert_eq!(folded[0].labels.len(), 69);
    assert_eq!(folded[0].labels[68].text, "n69");
}

#[test]
fn only_one_cluster_rule_and_severity_is_folded() {
    let mut findings: Vec<Finding> = (1..=6).map(finding).collect();
    for finding in &mut findings[..2] {
        finding.severity = Severity::Notice;
    }
    for finding in &mut findings[2..4] {
        finding.cluster = Some("west".to_owned());
    }
    assert_eq!(folded(findings).len(), 6);
}

#[test]
fn places_that_all_have_are_listed_once() {
    let entry = Place::document(&"mesh.yaml".into(), 0);
    let with_entry = |number| finding(number).at(entry.clone(), "of this");
    let folded = folded((1..=6).map(with_entry).collect());
    let labels: Vec<&str> = folded[0].labels.iter().map(|it| it.text.as_str()).collect();
    assert_eq!(labels, ["n1", "n2", "n3", "of this", "n4", "n5", "n6"]);
}

#[test]
fn a_command_names_the_nodes() {
    let command = |number: usize| {
        let mut it = finding(number);
        it.rule = &MISSING_KEEPALIVE;
        it.help(format!("kubectl annotate node n{number} --overwrite a=b"))
    };
    let help = |count| folded((1..=count).map(command).collect()).remove(0).help.unwrap();
    assert_eq!(help(5), "kubectl annotate node n1 n2 n3 n4 n5 --overwrite a=b");
    assert_eq!(help(21), "kubectl annotate node NODE --overwrite a=b");
}

#[test]
fn what_follows_from_one_follows_from_all() {
    let mut findings: Vec<Finding> = (1..=5).map(finding).collect();
    let mut follows = finding(6);
    follows.rule = &LEADER_LEFT_OUT;
    findings.push(follows.with_cause(findings[1].as_cause()));
    let folded = folded(findings);
    assert_eq!(folded[1].cause, Some(folded[0].as_cause()));
    assert_eq!(report((1..=2).map(finding).collect())[0], "east/n1: left out: bad `1`");
}

#[test]
fn a_kubeconfig_that_is_missing_is_one_finding_for_all_clusters() {
    let missing = |cluster: &str| {
        let message = "could not be read: the kubeconfig does not exist (a)".to_owned();
        Finding::on_named(&INVALID_KUBECONFIG, cluster, message)
    };
    assert_eq!(
        report(vec![missing("east"), missing("west")]),
        [": 2 clusters (east, west) could not be read: the kubeconfig does not exist (a)"]
    );
    assert_eq!(
        report(vec![missing("east")]),
        ["east: could not be read: the kubeconfig does not exist (a)"]
    );
}

#[test]
fn nodes_whose_problem_causes_another_one_are_one_finding() {
    let cluster = "east".parse().unwrap();
    let silent = Finding::on_cluster(&SILENT_CLUSTER, &cluster, "no path");
    let cause = FindingCause::of(&NO_POD_CIDR, &cluster);
    let with = |findings: Vec<Finding>| {
        folded([findings, vec![silent.clone().with_cause(cause.clone())]].concat())
    };
    let two = with(vec![finding(1), finding(2)]);
    assert_eq!(two[0].message.shown(), "2 nodes left out: bad (`n1`: `1`, `n2`: `2`)");
    assert_eq!(two[1].cause, Some(two[0].as_cause()));
    let one = with(vec![finding(1)]);
    assert_eq!(one[1].cause, Some(finding(1).as_cause()));
}
