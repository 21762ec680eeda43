//! `clustermesh report`: one page for a browser, made of the documents of the other commands.

use std::collections::BTreeSet;
use std::fs;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use regex::Regex;
use serde_json::{Value, json};
use sha2::{Digest as _, Sha256};

use crate::cli::diff::Repository;
use crate::cli::{Folder, node};
use crate::support::{assert_contains, clustermesh, copy, project};

mod answers;

/// A text that would leave its element, its attribute, a script and a URL.
const HOSTILE: &str = "</title></style></script><img src=https://x.invalid onerror=alert(1)>\" onclick='x' `{{ 7*7 }}` \u{202e}\u{2028}\n";

impl Folder {
    /// Returns the page.
    #[track_caller]
    fn page(&self, arguments: &[&str]) -> String {
        let run = self.run(&[&["report"], arguments].concat());
        let shows_errors =
            ["<h3 class=\"error\">", "class=\"verdict bad\"", "The change is unknown"];
        let code = i32::from(shows_errors.iter().any(|it| run.stdout.contains(it)));
        assert_eq!((run.code, run.stderr.is_empty()), (code, code == 0), "{}", run.stderr);
        run.stdout
    }

    fn json(&self, arguments: &[&str]) -> Value {
        self.run(&[arguments, &["--output", "json"]].concat()).json()
    }
}

/// Returns a copy of an example.
fn example(name: &str) -> Folder {
    let folder = Folder::empty();
    copy(&project().join("examples").join(name), &folder.path(""));
    folder
}

/// A mesh in which every text of a node is hostile, and one of a file.
fn hostile() -> Folder {
    let folder = Folder::rendered();
    let mut nodes: Vec<Value> = (1..=6).map(|number| node(1, number)).collect();
    nodes[1]["name"] = json!(HOSTILE);
    nodes[2]["podCIDRs"] = json!([HOSTILE]);
    nodes[3]["annotations"]["kilo.squat.ai/wireguard-ip"] = json!(HOSTILE);
    nodes[4]["annotations"]["kilo.squat.ai/force-endpoint"] = json!(HOSTILE);
    nodes[5]["addresses"] = json!([{ "address": HOSTILE, "type": "InternalIP" }]);
    for node in &mut nodes {
        node["labels"] = json!({ "topology.kubernetes.io/region": HOSTILE });
        node["annotations"]["kilo.squat.ai/location"] = json!(HOSTILE);
    }
    folder.keep("east", &nodes);
    let expectation = json!({ "name": HOSTILE, "from": { "cluster": "east" }, "to": { "cluster": "west" }, "expect": "Deny" });
    let expectations = json!({
        "apiVersion": "kilo-clustermesh.io/v1", "kind": "Expectations", "spec": [expectation],
    });
    folder.write("expectations.yaml", expectations.to_string());
    folder
}

/// Returns all values of an attribute.
fn values<'p>(page: &'p str, attribute: &str) -> Vec<&'p str> {
    let pattern = Regex::new(&format!(r#"<[a-z][^<>]* {attribute}="([^"]*)""#)).unwrap();
    let found = pattern.captures_iter(page);
    found.map(|it| it.get(1).unwrap().as_str()).collect()
}

/// Returns the text between two texts.
#[track_caller]
fn between<'p>(page: &'p str, start: &str, end: &str) -> &'p str {
    let (_, rest) = page.split_once(start).unwrap();
    rest.split_once(end).unwrap().0
}

/// Returns the text of the part of a page with an id, without its tags.
#[track_caller]
fn part(page: &str, id: &str) -> String {
    let rest = between(page, &format!("id=\"{id}\""), "</section>");
    let text = Regex::new("<[^>]*>").unwrap().replace_all(rest, "");
    text.replace("&#x2f;", "/").replace("&#x27;", "'")
}

#[test]
fn a_page_loads_nothing() {
    let pages = [
        hostile().page(&[]),
        example("hub-and-spokes").page(&[]),
        example("thirty-mistakes").page(&[]),
    ];
    let tags = Regex::new(r"<[a-z][^<>]*>").unwrap();
    let banned = Regex::new(
        r#"(?i)https?:|"//| src| style=| on[a-z]+=|javascript:|data:|srcset|<(img|iframe|object|embed|link|base)\b"#,
    );
    let banned = banned.unwrap();
    for page in &pages {
        for tag in tags.find_iter(page) {
            assert!(!banned.is_match(tag.as_str()), "{}", tag.as_str());
        }
        for text in ["url(", "@import", "<img", "\u{202e}"] {
            assert!(!page.contains(text), "{text}");
        }
        assert_eq!(page.matches("<script").count(), 1);
        assert!(values(page, "href").iter().all(|it| it.starts_with('#')));
    }
    assert_contains(&pages[0], "onerror=alert(1)&gt;&quot; onclick=&#x27;x&#x27;");
}

#[test]
fn only_its_own_style_and_script_run() {
    let page = example("quickstart").page(&[]);
    let policy = values(&page, "content")[0].replace("&#x27;", "'").replace("&#x2f;", "/");
    let hash = |element: &str| {
        let text = between(&page, &format!("<{element}>"), &format!("</{element}>"));
        format!("'sha256-{}'", STANDARD.encode(Sha256::digest(text)))
    };
    let expected = format!(
        "default-src 'none'; style-src {}; script-src {}; base-uri 'none'; form-action 'none'",
        hash("style"),
        hash("script")
    );
    assert_eq!(policy, expected);
}

#[test]
fn every_link_leads_to_one_place() {
    for page in [hostile().page(&[]), example("thirty-mistakes").page(&[])] {
        let ids = values(&page, "id");
        let different: BTreeSet<&str> = ids.iter().copied().collect();
        assert_eq!(ids.len(), different.len());
        let links = values(&page, "href");
        assert!(20 < links.len(), "{}", links.len());
        for link in links {
            assert!(different.contains(&link[1..]), "{link}");
        }
    }
}

#[test]
fn the_figures_are_those_of_the_commands() {
    let folder = example("hub-and-spokes");
    let page = folder.page(&[]);
    let proof = folder.json(&["verify"]);
    let total = &proof["total"]["declared"];
    let sentence =
        format!("All {total} declared paths between 5 clusters work in both directions.");
    assert_contains(&part(&page, "verdict"), &sentence);
    let outage = folder.json(&["outage"]);
    let harmful = outage["single"]["harmful"].as_array().unwrap();
    let parts: Vec<&str> = harmful.iter().map(|it| it["part"].as_str().unwrap()).collect();
    let shown = values(&page, "data-part").into_iter();
    assert_eq!(shown.map(|it| it.replace("&#x2f;", "/")).collect::<Vec<_>>(), parts);
    let first = part(&page, "loss-1");
    assert_contains(&first, &format!("{} paths between other nodes end", harmful[0]["paths"]));
    let expectations = proof["expectations"].as_array().unwrap().len();
    assert_eq!(page.matches("<details class=\"item\" id=\"expectation-").count(), expectations);
    let report = folder.json(&["validate"]);
    for finding in report["findings"].as_array().unwrap() {
        assert_contains(&page, &format!("href=\"#rule-{}\"", finding["rule"].as_str().unwrap()));
    }
    let capacity = folder.json(&["capacity"]);
    let clusters = capacity["targets"].as_array().unwrap();
    assert_eq!(
        between(&page, "id=\"load\"", "</section>").matches("<tr data").count(),
        clusters.len()
    );
}

#[test]
fn a_refused_render_is_never_green() {
    let folder = Folder::rendered();
    let page = folder.page(&[]);
    assert_contains(&page, "class=\"verdict good\"");
    assert_contains(&part(&page, "first-step"), "Nothing to do.");
    folder.edit("mesh.yaml", "- name: east", "- name: east\n      wireguardPort: 70000");
    let page = folder.page(&[]);
    assert_contains(&page, "class=\"verdict bad\"");
    assert_contains(&part(&page, "verdict"), "is refused because of 1 error");
}

#[test]
fn a_notice_with_a_command_is_something_to_do() {
    let folder = example("joining");
    let page = folder.page(&[]);
    assert_contains(&page, "class=\"verdict good\"");
    let step = part(&page, "first-step");
    assert_contains(&step, "run clustermesh snapshot southShow this finding");
    assert!(!step.contains("Nothing to do."), "{step}");
}

#[test]
fn a_missing_snapshot_cuts_off_its_cluster() {
    let folder = Folder::rendered();
    fs::remove_file(folder.path("snapshots/west.json")).unwrap();
    let page = folder.page(&[]);
    let cut_off = part(&page, "cut-off");
    assert_contains(&cut_off, "west: its snapshot is missing or cannot be read");
    assert_contains(&cut_off, "run clustermesh snapshot west");
    assert_contains(&part(&page, "verdict"), "1 cluster has no usable snapshot");
    assert_contains(&part(&page, "cluster-west"), "its nodes are unknown");
}

#[test]
fn a_failing_pair_has_its_smallest_packet() {
    let folder = Folder::rendered();
    fs::remove_file(folder.path("rendered/east/prod--west.yaml")).unwrap();
    let page = folder.page(&[]);
    let pair = part(&page, "pair-east-west");
    assert_contains(&pair, "no-route: no Peer of east contains");
    assert_contains(&pair, "✗ no-route");
    let proof = folder.json(&["verify"]);
    let failure = &proof["failures"][0];
    let text = |field: &str| failure[field].as_str().unwrap();
    assert_contains(
        &page.replace("&#x2f;", "/"),
        &format!("{}/{}", text("to"), text("destination")),
    );
    assert_contains(&part(&page, "first-step"), "clustermesh render");
}

#[test]
fn a_change_is_summarized() {
    let repository = Repository::committed();
    let folder = &repository.folder;
    folder.keep("east", &[node(1, 1), node(1, 2), node(1, 3)]);
    assert_eq!(folder.run(&["render"]).code, 0);
    let page = folder.page(&["--against", "HEAD"]);
    let change = folder.json(&["diff", "--against", "HEAD"]);
    let summary = part(&page, "change-summary");
    assert_contains(&summary, &format!("{} since HEAD: ", change["grade"].as_str().unwrap()));
    assert_contains(&part(&page, "change"), "node east/n3 was added");
    let page = folder.page(&["--against", "nowhere"]);
    assert_contains(&part(&page, "change-summary"), "The change is unknown: ");
    assert!(!folder.page(&[]).contains("change-summary"));
}

#[test]
fn a_page_is_written_whole_or_not_at_all() {
    let folder = Folder::rendered();
    let run = folder.run(&["report", "--out", "pages/report.html"]);
    assert_eq!((run.code, run.stdout.as_str()), (0, ""));
    assert_eq!(folder.read("pages/report.html"), folder.page(&[]));
    let run = folder.run(&["report", "--out", "mesh.yaml/report.html"]);
    assert_eq!(run.code, 2);
    assert_contains(&run.stderr, "cannot write `mesh.yaml/report.html`");
    let empty = Folder::empty();
    let run = clustermesh(&empty.path(""), &["report", "--out", "report.html"]);
    assert_eq!(run.code, 2);
    assert!(!empty.path("report.html").exists());
}

#[test]
fn what_a_killed_run_left_is_removed() {
    let folder = example("quickstart");
    folder.write("pages/.clustermesh-tmp-a1B2c3", "half");
    assert_eq!(folder.run(&["report", "--out", "pages/report.html"]).code, 0);
    let left = fs::read_dir(folder.path("pages")).unwrap().map(|it| it.unwrap().file_name());
    assert_eq!(left.collect::<Vec<_>>(), ["report.html"]);
}
