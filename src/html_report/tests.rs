use serde_json::{Value, json};

use super::*;

/// A name that no gate accepts.
const HOSTILE: &str = "</script><img src=x onerror=alert(1)>\"'`\u{202e}";

/// Returns a tally of paths.
fn paths(declared: u64, working: u64) -> Value {
    json!([{ "from": "pod", "to": "pod", "declared": declared, "working": working, "assumed": 0, "undeclaredWorking": 0 }])
}

fn cluster(name: &str, range: &str) -> Value {
    json!({
        "name": name, "kind": "cluster", "isHub": false, "isUnread": false, "meshes": ["prod"],
        "ranges": [{ "range": range, "class": "pod" }], "gets": [],
        "nodes": [{ "name": HOSTILE, "role": "leader", "location": "", "podCIDRs": ["10.1.0.0/24"] }],
    })
}

/// Returns the answers about clusters that are all linked, of which the first reaches no other.
fn answers(names: &[&str]) -> MeshAnswers {
    let pairs = || {
        let pairs = names.iter().flat_map(|from| names.iter().map(move |to| (*from, *to)));
        pairs.filter(|(from, to)| from != to)
    };
    let works = |name: &str| u64::from(name != names[0]);
    let pairings = pairs().map(|(from, to)| {
        json!({ "from": from, "to": to, "linked": true, "classes": paths(1, works(from) * works(to)) })
    });
    let between = pairs().filter(|(from, to)| works(from) * works(to) == 0);
    let between: Vec<[&str; 2]> = between.map(|(from, to)| [from, to]).collect();
    let failure = json!({
        "verdict": "no-route", "from": { "cluster": names[0], "node": "n1" }, "source": "10.1.0.0",
        "to": names[1], "destination": "10.2.0.0", "pairs": 2, "between": between,
    });
    let trace = json!({ "verdict": "no-route", "message": "no Peer contains 10.2.0.0", "there": {
        "source": "10.1.0.0", "destination": "10.2.0.0", "ending": "no-route", "endsAt": HOSTILE, "steps": [],
    }});
    let finding = |rule: &str, severity: &str, cause: Value| {
        json!({
            "rule": rule, "severity": severity, "message": format!("about {HOSTILE}"), "cluster": names[0],
            "cause": cause, "places": [{ "file": HOSTILE, "excerpt": HOSTILE }], "help": "run `clustermesh render`",
        })
    };
    let cause = json!({ "rule": "no-route", "cluster": names[0] });
    let findings =
        [finding("unreached-pods", "notice", cause), finding("no-route", "error", Value::Null)];
    let graph =
        names.iter().zip(1..).map(|(name, number)| cluster(name, &format!("10.{number}.0.0/16")));
    MeshAnswers {
        validation: json!({ "kind": "Report", "findings": [] }).to_string(),
        verification: Ok(json!({
            "kind": "Verification", "holds": false,
            "total": { "declared": pairs().count(), "working": pairs().count() - between.len(), "assumed": 0 },
            "pairings": pairings.collect::<Vec<_>>(), "failures": [failure], "assumptions": [], "expectations": [],
            "findings": findings,
        })
        .to_string()),
        outage: Err("not tried".to_owned()),
        capacity: Err(format!("no {HOSTILE}")),
        graph: Ok(json!({ "kind": "Graph", "clusters": graph.collect::<Vec<_>>(), "links": [] })
            .to_string()),
        picture: None,
        difference: None,
        traces: trace.to_string(),
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
    let page = page(&answers(&[HOSTILE, "a-b", "c", "a", "b-c"])).unwrap();
    assert!(!page.contains("<img") && !page.contains('\u{202e}'));
    assert_eq!(page.matches("<script>").count(), 1);
    assert!(page.contains("&lt;img src=x onerror=alert(1)&gt;&quot;&#x27;`\\u{202e}"));
}

#[test]
fn every_id_is_there_once_and_every_link_leads_to_one() {
    let mut answers = answers(&["a-b", "c", "a", "b-c"]);
    // Both pairs would have the id `pair-a-b-c`.
    let text = answers.verification.unwrap();
    let mut proof: Value = serde_json::from_str(&text).unwrap();
    for pairing in proof["pairings"].as_array_mut().unwrap() {
        pairing["classes"] = paths(2, 1);
    }
    answers.verification = Ok(proof.to_string());
    let page = page(&answers).unwrap();
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
    let page = page(&answers(&["east", "west", "south"])).unwrap();
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
    let page = page(&answers(&names)).unwrap();
    assert!(page.contains("data-names=\"c1 c2 c3"));
    // The first cluster reaches no other, and no other reaches it.
    assert!(page.contains("<path class=\"m fails\" d=\"M1 0.5h12M0 1.5h1M0 2.5h1"));
    assert!(page.contains("<path class=\"m works\" d=\"M2 1.5h11M1 2.5h1M3 2.5h10"));
}

#[test]
fn a_command_without_a_result_is_explained() {
    let mistakes = json!({ "kind": "Report", "findings": [
        { "rule": "unused-snapshot", "severity": "warning", "message": "unused", "places": [] },
        { "rule": "invalid-value", "severity": "error", "message": "`wireguardPort` must be a number", "places": [] },
    ]})
    .to_string();
    let mut answers = answers(&["east", "west"]);
    answers.validation = mistakes.clone();
    answers.verification = Ok(mistakes.clone());
    answers.capacity = Ok(mistakes.clone());
    answers.graph = Ok(mistakes);
    answers.difference = Some(Err("unknown revision".to_owned()));
    let page = page(&answers).unwrap();
    assert!(page.contains("class=\"verdict bad\""));
    assert!(page.contains("Nothing could be proved: <code>wireguardPort</code> must be a number."));
    assert!(page.contains("<code>render</code> is refused because of 1 error"));
    assert!(page.contains("The change is unknown: unknown revision"));
    assert!(page.contains("The load is unknown, because of 1 error"));
}

#[test]
fn a_document_of_another_form_is_an_error() {
    let mut answers = answers(&["east", "west"]);
    answers.graph = Ok(json!({ "kind": "Graph" }).to_string());
    let error = page(&answers).unwrap_err();
    assert_eq!(error.to_string(), "cannot read the document of `clustermesh graph`");
}

#[test]
fn free_ranges_are_those_that_no_cluster_declares() {
    let page = page(&answers(&["east", "west"])).unwrap();
    let free = page.split_once("id=\"free-ranges\"").unwrap().1;
    let free = free.split_once("</table>").unwrap().0;
    let codes = free.split("<code>").skip(1);
    let codes: Vec<&str> = codes.filter_map(|it| Some(it.split_once('<')?.0)).collect();
    insta::assert_snapshot!(codes.join(" ").replace("&#x2f;", "/"), @"10.0.0.0/8 10.128.0.0/9 10.64.0.0/10 10.32.0.0/11 10.16.0.0/12 10.8.0.0/13 10.4.0.0/14 10.0.0.0/16 10.3.0.0/16 172.16.0.0/12 172.16.0.0/12 192.168.0.0/16 192.168.0.0/16 100.64.0.0/10 100.64.0.0/10");
}
