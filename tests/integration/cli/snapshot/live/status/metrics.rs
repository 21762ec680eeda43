//! `status --output prometheus`: the metrics, read as strictly as Prometheus reads them.

use std::collections::BTreeSet;
use std::process::Command;

use regex::Regex;

use super::super::nodes;
use super::{KEY, Site, laptop};
use crate::api_server::{Answer, Setup};
use crate::support::{assert_contains, project};

/// A sample: the name, the labels as they are written, and the value.
type Sample = (String, String, i64);

/// Reads metrics. Each family is in one piece, after its help and its type, and no series is there twice.
fn samples(text: &str) -> Vec<Sample> {
    let head = Regex::new(r"^# (HELP|TYPE) ([a-z_]+) (.+)$").unwrap();
    let label = r#"[a-z_]+="(?:[^"\\\n]|\\["\\n])*""#;
    let series = format!(r"^([a-z_]+)(\{{{label}(?:,{label})*\}})? (-?[0-9]+)$");
    let series = Regex::new(&series).unwrap();
    let mut samples = Vec::new();
    let (mut known, mut families) = (BTreeSet::new(), BTreeSet::new());
    let mut lines = text.lines().peekable();
    while let Some(line) = lines.next() {
        let help = head.captures(line).unwrap_or_else(|| panic!("{line}"));
        assert_eq!(&help[1], "HELP");
        assert!(help[3].ends_with('.'), "{line}");
        let name = help[2].to_owned();
        assert!(families.insert(name.clone()), "{name} is in two pieces");
        assert_eq!(lines.next(), Some(&*format!("# TYPE {name} gauge")));
        let before = samples.len();
        while let Some(line) = lines.next_if(|it| !it.starts_with('#')) {
            let sample = series.captures(line).unwrap_or_else(|| panic!("{line}"));
            assert_eq!(sample[1], name);
            let labels = sample.get(2).map_or("", |it| it.as_str()).to_owned();
            assert!(known.insert((name.clone(), labels.clone())), "{line} is there twice");
            samples.push((name.clone(), labels, sample[3].parse().unwrap()));
        }
        assert!(before < samples.len(), "{name} has no sample");
    }
    samples
}

fn value(samples: &[Sample], name: &str, labels: &str) -> Option<i64> {
    let mut samples = samples.iter();
    samples.find(|it| it.0 == name && it.1 == labels).map(|it| it.2)
}

#[test]
fn metrics_have_what_status_shows() {
    let mut site = Site::new();
    site.change(|peers| {
        peers.pop();
        peers.push(laptop("laptop", KEY, "10.99.0.1/32"));
    });
    // A cluster that cannot be read is in the metrics too.
    let forbidding = Setup::nodes(&nodes(2))
        .fault(|_, _| Some(Answer::failure(403, "Forbidden", "nodes is forbidden").into()));
    site.servers[1] = forbidding.start();
    site.reach();
    let run = site.run(&["status", "--output", "prometheus"]);
    assert_eq!(run.code, 2, "{}", run.stderr);
    assert_contains(&run.stderr, "note: north: forbidden: ");
    let found = samples(&run.stdout);
    let of = |name: &str, labels: &str| value(&found, name, labels);
    let readable = ["east", "north", "west"]
        .map(|it| of("clustermesh_cluster_readable", &format!("{{cluster=\"{it}\"}}")));
    assert_eq!(readable, [Some(1), Some(0), Some(1)]);
    let clean = ["east", "north", "west"]
        .map(|it| of("clustermesh_cluster_clean", &format!("{{cluster=\"{it}\"}}")));
    assert_eq!(clean, [Some(1), Some(0), Some(0)]);
    for (state, count) in [("in_sync", 3), ("missing", 1), ("foreign", 1), ("changed", 0)] {
        let labels = format!("{{cluster=\"west\",state=\"{state}\"}}");
        assert_eq!(of("clustermesh_peers", &labels), Some(count), "{state}");
    }
    assert!(!run.stdout.contains("clustermesh_peers{cluster=\"north\""));
    assert_eq!(of("clustermesh_snapshot_current", "{cluster=\"west\"}"), Some(1));
    assert_eq!(of("clustermesh_guard", "{cluster=\"east\",state=\"absent\"}"), Some(1));
    // Without a commit, the age of a snapshot is not known; without `--tunnels`, nothing of tunnels.
    assert!(!run.stdout.contains("committed_timestamp") && !run.stdout.contains("tunnels"));
}

#[test]
fn the_time_of_a_snapshot_is_that_of_its_last_commit() {
    let site = Site::new();
    let git = |time: &str, arguments: &[&str]| {
        let status = Command::new("git")
            .args(["-c", "user.name=a", "-c", "user.email=a@b"])
            .args(arguments)
            .current_dir(site.folder.path("."))
            .env("GIT_CONFIG_GLOBAL", "/dev/null")
            .env("GIT_CONFIG_NOSYSTEM", "1")
            .env("GIT_COMMITTER_DATE", format!("{time} +0000"))
            .status();
        assert!(status.unwrap().success());
    };
    git("1", &["init", "--quiet"]);
    git("1", &["add", "snapshots"]);
    git("1700000000", &["commit", "--quiet", "--message=a"]);
    site.folder.write("note", "a");
    git("1", &["add", "note"]);
    git("1700000500", &["commit", "--quiet", "--message=b"]);
    let run = site.run(&["status", "east", "--output", "prometheus"]);
    assert_eq!(run.code, 0, "{}", run.stderr);
    let time = value(
        &samples(&run.stdout),
        "clustermesh_snapshot_committed_timestamp_seconds",
        "{cluster=\"east\"}",
    );
    assert_eq!(time, Some(1_700_000_000));
}

/// An alert about a metric or a label that no longer exists would never fire. `tests/metrics` reads both with the parsers
/// of Prometheus.
#[test]
fn alerts_of_the_gallery_are_about_metrics_that_exist() {
    let example = project().join("src/results/status/metrics/example.prom");
    let example = samples(&std::fs::read_to_string(example).unwrap());
    let rules = project().join("templates/gallery/prometheus-rules.yaml");
    let rules: serde_yaml::Value =
        serde_yaml::from_str(&std::fs::read_to_string(rules).unwrap()).unwrap();
    let named = Regex::new(r"clustermesh_[a-z_]+").unwrap();
    let matched = Regex::new(r#"([a-z_]+)=~?"([a-z_|]+)""#).unwrap();
    let mut alerts = BTreeSet::new();
    for rule in rules["groups"][0]["rules"].as_sequence().unwrap() {
        let expression = rule["expr"].as_str().unwrap();
        let name = named.find(expression).unwrap().as_str();
        let series: Vec<&Sample> = example.iter().filter(|it| it.0 == name).collect();
        assert!(!series.is_empty(), "{expression}");
        for found in matched.captures_iter(expression).filter(|it| &it[1] != "severity") {
            for value in found[2].split('|') {
                let label = format!("{}=\"{value}\"", &found[1]);
                assert!(series.iter().any(|it| it.1.contains(&label)), "{label} in {expression}");
            }
        }
        for text in ["summary", "description"] {
            assert!(rule["annotations"][text].is_string(), "{expression}");
        }
        assert!(alerts.insert(rule["alert"].as_str().unwrap().to_owned()));
    }
    assert_contains(&format!("{alerts:?}"), "ClustermeshTunnelDown");
}
