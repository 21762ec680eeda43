use std::sync::Arc;

use super::*;
use crate::diagnostic::{Finding, Label, Rule, Severity};
use crate::graph::{GraphCluster, GraphClusterKind, GraphLevel, GraphNode, GraphRange, GraphRole};
use crate::mesh::{AddressClass, State};
use crate::place::Place;
use crate::proof::verify::Tally;
use crate::report::origin::ResultOrigin;
use crate::results::findings::json::{WrittenFinding, written};
use crate::results::trace::TraceResult;
use crate::results::verify::json::{
    Omitted, WrittenClasses, WrittenFailure, WrittenNode, WrittenPairing, WrittenVerification,
};
use crate::rules;
use crate::testing::NoTexts;

/// A name that no gate accepts.
const HOSTILE: &str = "</script><img src=x onerror=alert(1)>\"'`\u{202e}";

fn rule(name: &str) -> &'static Rule {
    rules::find(name)[0]
}

/// Returns paths between pods.
fn paths(promised: u64, kept: u64) -> Vec<WrittenClasses> {
    let tally = Tally { promised, kept, ..Tally::default() };
    vec![WrittenClasses { from: AddressClass::Pod, to: AddressClass::Pod, tally }]
}

/// Returns a cluster, whose texts are escaped as in every graph.
fn cluster(name: &str, range: &str) -> GraphCluster {
    GraphCluster {
        name: escaped(name, SHOWN),
        kind: GraphClusterKind::Cluster,
        state: State::Joined,
        is_hub: false,
        is_unread: false,
        meshes: vec!["prod".to_owned()],
        granularity: None,
        node_count: 1,
        excluded_count: 0,
        segment_count: 0,
        ranges: vec![GraphRange { range: range.to_owned(), class: Some(AddressClass::Pod) }],
        gets: Vec::new(),
        segments: Vec::new(),
        nodes: vec![GraphNode {
            name: escaped(HOSTILE, SHOWN),
            role: GraphRole::Leader,
            location: String::new(),
            pod_cidrs: vec!["10.1.0.0/24".to_owned()],
            internal_ip: None,
            reason: None,
        }],
    }
}

fn finding(rule: &'static Rule, severity: Severity, cluster: &str) -> Finding {
    let place = Place::document(&Arc::from(HOSTILE), 0);
    Finding {
        severity,
        cluster: Some(cluster.to_owned()),
        labels: vec![Label { place, text: HOSTILE.to_owned() }],
        help: Some("run `clustermesh render`".to_owned()),
        ..Finding::new(rule, format!("about {HOSTILE}"))
    }
}

/// Returns the reason for which a command has no result.
fn no_result(message: &str) -> NoResult {
    NoResult { message: message.to_owned(), ..NoResult::default() }
}

/// Returns the results about clusters that are all linked, of which the first reaches no other.
fn results(names: &[&str]) -> MeshResults<'static> {
    let pairs = || {
        let pairs = names.iter().flat_map(|from| names.iter().map(move |to| (*from, *to)));
        pairs.filter(|(from, to)| from != to)
    };
    let works = |name: &str| u64::from(name != names[0]);
    let pairings = pairs().map(|(from, to)| WrittenPairing {
        from: from.to_owned(),
        to: to.to_owned(),
        linked: true,
        classes: paths(1, works(from) * works(to)),
    });
    let between = pairs().filter(|(from, to)| works(from) * works(to) == 0);
    let between: Vec<[String; 2]> =
        between.map(|(from, to)| [from, to].map(ToOwned::to_owned)).collect();
    let (promised, failing) = (pairs().count() as u64, between.len() as u64);
    let failure = WrittenFailure {
        verdict: "no-route",
        from: WrittenNode { cluster: names[0].to_owned(), node: "n1".to_owned() },
        source: "10.1.0.0".parse().unwrap(),
        to: names[1].to_owned(),
        destination: "10.2.0.0".parse().unwrap(),
        pairs: 2,
        between,
    };
    let trace = Finding::new(rule("no-route"), "no Peer contains 10.2.0.0");
    let cause = finding(rule("no-route"), Severity::Error, names[0]);
    let follows = finding(rule("unreached-pods"), Severity::Notice, names[0]);
    let findings = [follows.with_cause(cause.as_cause()), cause];
    let clusters =
        names.iter().zip(1..).map(|(name, number)| cluster(name, &format!("10.{number}.0.0/16")));
    MeshResults {
        origin: ResultOrigin::default(),
        findings: Vec::new(),
        verification: Ok(WrittenVerification {
            holds: false,
            total: Tally { promised, kept: promised - failing, ..Tally::default() },
            pairings: pairings.collect(),
            failures: vec![failure],
            assumptions: Vec::new(),
            single_points: Vec::new(),
            apart: Vec::new(),
            without_node_addresses: Vec::new(),
            undeclared: None,
            unallowed: Vec::new(),
            unowned: Vec::new(),
            expectations: Vec::new(),
            services: Vec::new(),
            hostile: Vec::new(),
            findings: findings.iter().map(|it| written(it, &NoTexts)).collect(),
            omitted: Omitted::default(),
            joining: None,
            waiting: Vec::new(),
        }),
        outage: None,
        capacity: Err(no_result(&format!("no {HOSTILE}"))),
        graph: Ok(MeshGraph {
            origin: None,
            level: GraphLevel::Nodes,
            clusters: clusters.collect(),
            links: Vec::new(),
        }),
        difference: None,
        traces: vec![Some(TraceResult::unsent(&NoTexts, trace))],
    }
}

/// Returns all values of an attribute.
fn values<'p>(page: &'p str, attribute: &str) -> Vec<&'p str> {
    let start = format!(" {attribute}=\"");
    let parts = page.split(&start).skip(1);
    parts.filter_map(|it| Some(it.split_once('"')?.0)).collect()
}

#[test]
fn nothing_foreign_gets_out_of_its_place() {
    let page = page(&results(&[HOSTILE, "a-b", "c", "a", "b-c"])).unwrap().html;
    assert!(!page.contains("<img") && !page.contains('\u{202e}'));
    assert_eq!(page.matches("<script>").count(), 1);
    assert!(page.contains("&lt;img src=x onerror=alert(1)&gt;&quot;&#x27;`\\u{202e}"));
}

#[test]
fn every_id_is_there_once_and_every_link_leads_to_one() {
    let mut results = results(&["a-b", "c", "a", "b-c"]);
    // Both pairs would have the id `pair-a-b-c`.
    for pairing in results.verification.iter_mut().flat_map(|it| &mut it.pairings) {
        pairing.classes = paths(2, 1);
    }
    let page = page(&results).unwrap().html;
    let mut ids = values(&page, "id");
    let count = ids.len();
    ids.sort_unstable();
    ids.dedup();
    assert_eq!(ids.len(), count);
    assert!(ids.contains(&"pair-a-b-c") && ids.contains(&"pair-a-b-c-2"), "{ids:?}");
    for href in values(&page, "href") {
        assert!(ids.contains(&href.strip_prefix('#').unwrap()), "{href}");
    }
}

#[test]
fn the_cause_comes_first_and_its_consequences_are_folded() {
    let page = page(&results(&["east", "west", "south"])).unwrap().html;
    assert_eq!(page.matches("<article").count(), 1);
    assert!(page.contains("1 more findings follow from it"));
    assert!(page.contains("<code class=\"command\">clustermesh render</code>"));
    assert!(page.contains("no Peer contains 10.2.0.0 (<code>no-route</code>, from east to west)"));
    assert!(page.contains("4 of 6 declared paths between 3 clusters fail."));
}

#[test]
fn many_clusters_are_a_picture() {
    let names: Vec<String> = (1..=13).map(|it| format!("c{it}")).collect();
    let names: Vec<&str> = names.iter().map(String::as_str).collect();
    let alike = page(&results(&names)).unwrap().html;
    assert!(!alike.contains("data-names="), "alike clusters share a row");
    // Each cluster reaches those behind it, and no two are alike.
    let mut results = results(&names);
    let verification = results.verification.as_mut().ok().unwrap();
    for pairing in &mut verification.pairings {
        let place = |name: &str| names.iter().position(|it| *it == name);
        pairing.classes = paths(1, u64::from(place(&pairing.from) < place(&pairing.to)));
    }
    let page = page(&results).unwrap().html;
    assert!(page.contains("data-names=\"c1 c2 c3"));
    assert!(page.contains("<path class=\"m works\" d=\"M1 0.5h12M2 1.5h11"));
    assert!(page.contains("<path class=\"m fails\" d=\"M0 1.5h1M0 2.5h2"));
}

#[test]
fn a_command_without_a_result_is_explained() {
    let mistakes = [
        Finding::new(rule("unused-snapshot"), "unused"),
        Finding::new(rule("invalid-value"), "`wireguardPort` must be a number"),
    ];
    let mistakes: Vec<WrittenFinding> = mistakes.iter().map(|it| written(it, &NoTexts)).collect();
    let refusal = NoResult::from(mistakes.clone());
    let results = MeshResults {
        findings: mistakes,
        verification: Err(refusal.clone()),
        capacity: Err(refusal.clone()),
        graph: Err(refusal),
        difference: Some(Err(no_result("unknown revision"))),
        ..results(&["east", "west"])
    };
    let page = page(&results).unwrap().html;
    assert!(page.contains("class=\"verdict bad\""));
    assert!(page.contains("Nothing could be proved: <code>wireguardPort</code> must be a number."));
    assert!(page.contains("<code>render</code> is refused because of 1 error"));
    assert!(page.contains("The change is unknown: unknown revision"));
    assert!(page.contains("The load is unknown, because of 1 error"));
}

#[test]
fn free_ranges_are_those_that_no_cluster_declares() {
    let page = page(&results(&["east", "west"])).unwrap().html;
    let free = page.split_once("id=\"free-ranges\"").unwrap().1;
    let free = free.split_once("</table>").unwrap().0;
    let codes = free.split("<code>").skip(1);
    let codes: Vec<&str> = codes.filter_map(|it| Some(it.split_once('<')?.0)).collect();
    insta::assert_snapshot!(codes.join(" ").replace("&#x2f;", "/"), @"10.0.0.0/8 10.128.0.0/9 10.64.0.0/10 10.32.0.0/11 10.16.0.0/12 10.8.0.0/13 10.4.0.0/14 10.0.0.0/16 10.3.0.0/16 172.16.0.0/12 172.16.0.0/12 192.168.0.0/16 192.168.0.0/16 100.64.0.0/10 100.64.0.0/10");
}
