//! `status --tunnels`: which tunnels have come up, as recorded agents report it.

use std::fs;
use std::time::{SystemTime, UNIX_EPOCH};

use serde::Deserialize as _;
use serde_json::{Value, json};

use crate::api_server::{ApiServer, Context, NODES, Setup, kubeconfig};
use crate::cli::Folder;
use crate::support::json_schema::violations;
use crate::support::{Run, assert_contains};

const CLUSTERS: [&str; 3] = ["aws", "gcp", "onprem"];

/// Three clusters whose nodes publish what real agents published after `e1` had fallen silent.
struct RecordedAgents {
    folder: Folder,
    servers: Vec<ApiServer>,
}

/// The time of some seconds ago.
fn ago(seconds: u64) -> u64 {
    SystemTime::now().duration_since(UNIX_EPOCH).unwrap().as_secs() - seconds
}

impl RecordedAgents {
    fn new() -> Self {
        let folder = Folder::case("silent-leader");
        for cluster in CLUSTERS {
            let snapshot = folder.read(&format!("snapshots/{cluster}.json"));
            folder.write(&format!("recorded/{cluster}.json"), snapshot);
        }
        let servers: Vec<ApiServer> =
            CLUSTERS.iter().map(|it| Setup::nodes(&nodes(&folder, it)).start()).collect();
        let contexts: Vec<Context> = CLUSTERS
            .iter()
            .zip(&servers)
            .map(|(it, server)| Context::new(it, &server.url()))
            .collect();
        folder.write("kubeconfig", kubeconfig(&contexts));
        let recorded = Self { folder, servers };
        assert_eq!(recorded.run(&["snapshot"]).code, 0);
        assert_eq!(recorded.run(&["render"]).code, 0);
        recorded.apply("2025-01-01T00:00:00Z");
        recorded
    }

    fn run(&self, arguments: &[&str]) -> Run {
        self.folder.run_with(&[("KUBECONFIG", "kubeconfig")], arguments)
    }

    /// Gives every cluster its rendered Peers, with a spec that was changed at this time.
    fn apply(&self, changed_at: &str) {
        for (cluster, server) in CLUSTERS.iter().zip(&self.servers) {
            let files = fs::read_dir(self.folder.path(&format!("rendered/{cluster}"))).unwrap();
            let mut peers = Vec::new();
            for file in
                files.map(|it| it.unwrap().path()).filter(|it| it.to_str().unwrap().contains("--"))
            {
                let text = fs::read_to_string(file).unwrap();
                for document in serde_yaml::Deserializer::from_str(&text) {
                    let mut peer = Value::deserialize(document).unwrap();
                    peer["metadata"]["creationTimestamp"] = "2025-01-01T00:00:00Z".into();
                    peer["metadata"]["managedFields"] =
                        json!([{ "time": changed_at, "fieldsV1": { "f:spec": {} } }]);
                    peers.push(peer);
                }
            }
            server.apply(&peers);
        }
    }

    /// Returns the lines about tunnels.
    fn tunnels(&self, arguments: &[&str]) -> String {
        let run = self.run(&[&["status", "--tunnels"], arguments].concat());
        let (_, tunnels) =
            run.stdout.split_once("\nTunnels").unwrap_or_else(|| panic!("{}", run.stderr));
        tunnels.to_owned()
    }

    /// Changes an annotation of a node of `aws`.
    fn annotate(&self, node: &str, key: &str, value: &Value) {
        let mut nodes = nodes(&self.folder, "aws");
        let changed = nodes.iter_mut().find(|it| it["metadata"]["name"] == node).unwrap();
        changed["metadata"]["annotations"][format!("kilo.squat.ai/{key}")] = value.clone();
        self.servers[0].change(&nodes);
    }
}

/// The recorded nodes of a cluster. The agent of `e1` was last seen 130 s ago, the others just now.
fn nodes(folder: &Folder, cluster: &str) -> Vec<Value> {
    let recorded: Value = serde_json::from_str(&folder.read("annotations.json")).unwrap();
    let snapshot = folder.read(&format!("recorded/{cluster}.json"));
    let snapshot: Value = serde_json::from_str(&snapshot).unwrap();
    let nodes = snapshot["nodes"].as_array().unwrap().iter();
    let api = nodes.map(|node| {
        let name = node["name"].as_str().unwrap();
        let published = recorded[name].as_object().unwrap().iter();
        let mut annotations: Value =
            published.map(|(key, value)| (format!("kilo.squat.ai/{key}"), value.clone())).collect();
        let age = if name == "e1" { 130 } else { 3 };
        annotations["kilo.squat.ai/last-seen"] = ago(age).to_string().into();
        json!({
            "apiVersion": "v1",
            "kind": "Node",
            "metadata": {
                "annotations": annotations,
                "labels": node["labels"],
                "name": name,
                "uid": node["uid"],
            },
            "spec": { "podCIDRs": node["podCIDRs"] },
            "status": { "addresses": node["addresses"] },
        })
    });
    api.collect()
}

#[test]
fn recorded_agents_report_which_tunnels_came_up() {
    let site = RecordedAgents::new();
    let tunnels = site.tunnels(&["--wait", "0s"]);
    insta::assert_snapshot!(tunnels, @"
    , as Kilo's agents report them (not a proof)
      onprem, aws: has had a handshake, reported by both (1 of 2 tunnels)
      onprem, aws: unknown (1 of 2 tunnels: r1 – e2): no handshake is reported yet
      onprem, gcp: has had a handshake, reported by both (1 tunnel)
      aws, gcp: has had a handshake, reported by both (1 of 2 tunnels)
      aws, gcp: unknown (1 of 2 tunnels: e2 – p2): no handshake is reported yet

    No problems found (3 clusters, 8 rendered Peers).
    ");
    for server in &site.servers {
        let requests = server.requests();
        assert!(requests.iter().all(|it| it.method == "GET"));
        assert!(requests.iter().any(|it| it.path == NODES));
    }
    let run = site.run(&["status", "--tunnels", "--wait", "0s", "--output", "json"]);
    let schema: Value = serde_json::from_str(&site.run(&["schema", "status"]).stdout).unwrap();
    assert_eq!(violations(&schema, &run.json()), [""; 0]);
    let unknown = json!({
        "answer": "unknown",
        "reportedBy": [],
        "reason": "no handshake is reported yet",
        "tunnels": 1,
        "nodes": [["r1", "e2"]],
    });
    assert_eq!(run.json()["tunnels"][0]["answers"][1], unknown);
    for output in ["json", "human", "markdown"] {
        let run = site.run(&["status", "--tunnels", "--wait", "0s", "--output", output]);
        for text in [run.stdout, run.stderr] {
            assert!(!text.contains("203.0.113."), "{text}");
        }
    }
    assert!(!site.folder.read("snapshots/aws.json").contains("discovered"));
    assert!(site.run(&["status", "--output", "json"]).json().get("tunnels").is_none());
}

#[test]
fn reports_from_before_a_change_do_not_count() {
    let site = RecordedAgents::new();
    let changed_at = |seconds: u64| {
        let second = i64::try_from(ago(seconds)).unwrap();
        site.apply(&jiff::Timestamp::from_second(second).unwrap().to_string());
    };
    changed_at(10);
    let run = site.run(&["status", "--tunnels", "--wait", "1s"]);
    assert_contains(
        &run.stderr,
        "waiting until the agents of onprem check in 90 s after the last change of Peers, at most 1 s",
    );
    let unsettled = "onprem, gcp: unknown (1 tunnel: r1 – p2): the agent of onprem has not checked in long enough \
                     after the last change of Peers";
    assert_contains(&run.stdout, unsettled);
    assert_eq!(run.code, 0, "a report is not a proof");
    // With a longer `--resync-period`, Kilo takes longer.
    changed_at(200);
    assert_contains(&site.tunnels(&["--wait", "0s"]), "onprem, gcp: has had a handshake");
    assert_contains(&site.tunnels(&["--wait", "0s", "--resync", "5m"]), unsettled);
}

#[test]
fn a_hostile_report_changes_only_its_own_lines() {
    let site = RecordedAgents::new();
    let before = site.tunnels(&["--wait", "0s"]);
    let others = |tunnels: &str| {
        let line = tunnels.lines().find(|it| it.contains("onprem, gcp"));
        line.unwrap().to_owned()
    };
    let deep = format!("{{\"x\":{}{}}}", "[".repeat(50_000), "]".repeat(50_000));
    let keys = "{\"LP1+/8vTbBCRoDk8bQr+/oz7QTR25sheYZsvNEHBpic=\":".repeat(3000);
    for report in ["{", "[1]", "\u{1b}[2J", &deep, &keys] {
        site.annotate("u2", "discovered-endpoints", &report.into());
        let after = site.tunnels(&["--wait", "0s"]);
        assert_eq!(others(&after), others(&before), "{after}");
        assert!(!after.contains('\u{1b}'), "{after}");
    }
    let mut last_seen: Vec<Value> = ["x", "-1", "99999999999"].map(Value::from).to_vec();
    last_seen.push(ago(3600).to_string().into());
    for time in last_seen {
        site.annotate("u2", "last-seen", &time);
        let after = site.tunnels(&["--wait", "0s"]);
        assert_eq!(others(&after), others(&before), "{after}");
    }
}
