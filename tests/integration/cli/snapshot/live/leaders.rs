//! Leaders: the marks of a live snapshot in a location in which two nodes show the lead.

use std::time::{SystemTime, UNIX_EPOCH};

use serde_json::{Value, json};

use crate::api_server::{ApiServer, Context, Setup, kubeconfig};
use crate::cli::Folder;
use crate::support::{Run, assert_contains};

/// A cluster whose leader was replaced.
struct Replaced {
    folder: Folder,
    server: ApiServer,
}

impl Replaced {
    /// The nodes of `aws`, with the ages of their heartbeats in seconds.
    fn new(seen: &[(&str, i64)]) -> Self {
        let folder = Folder::case("silent-leader");
        let server = Setup::nodes(&nodes(&folder, seen)).start();
        folder.write("kubeconfig", kubeconfig(&[Context::new("aws", &server.url())]));
        Self { folder, server }
    }

    fn snapshot(&self, arguments: &[&str]) -> Run {
        let run = self
            .folder
            .run(&[&["snapshot", "aws", "--kubeconfig", "kubeconfig"], arguments].concat());
        assert_eq!(run.code, 0, "{}", run.stderr);
        run
    }

    /// Returns the names of the marked nodes.
    fn marked(&self) -> Vec<String> {
        let snapshot: Value =
            serde_json::from_str(&self.folder.read("snapshots/aws.json")).unwrap();
        let nodes = snapshot["nodes"].as_array().unwrap().iter();
        let lost = nodes.filter(|it| it["lostLead"] == true);
        lost.map(|it| it["name"].as_str().unwrap().to_owned()).collect()
    }
}

/// The nodes of the snapshot of `aws` in the form of the API.
fn nodes(folder: &Folder, seen: &[(&str, i64)]) -> Vec<Value> {
    let now = SystemTime::now().duration_since(UNIX_EPOCH).unwrap().as_secs();
    let snapshot: Value = serde_json::from_str(&folder.read("snapshots/aws.json")).unwrap();
    let nodes = snapshot["nodes"].as_array().unwrap().iter();
    let api = nodes.filter_map(|node| {
        let (_, age) = seen.iter().find(|it| node["name"] == it.0)?;
        let mut annotations = node["annotations"].clone();
        let last_seen = i64::try_from(now).unwrap() - age;
        annotations["kilo.squat.ai/last-seen"] = json!(last_seen.to_string());
        Some(json!({
            "apiVersion": "v1",
            "kind": "Node",
            "metadata": {
                "annotations": annotations,
                "labels": node["labels"],
                "name": node["name"],
                "uid": node["uid"],
            },
            "spec": { "podCIDRs": node["podCIDRs"] },
            "status": { "addresses": node["addresses"] },
        }))
    });
    api.collect()
}

const ALL: [(&str, i64); 5] = [("e1", 130), ("e2", 8), ("u1", 3), ("u2", 21), ("u3", 40)];

#[test]
fn a_silent_leader_has_lost_the_lead() {
    let site = Replaced::new(&ALL);
    let run = site.snapshot(&[]);
    assert_eq!(site.marked(), ["e1"]);
    assert_contains(
        &run.stderr,
        "snapshots/aws.json: 5 nodes, 5 usable, 1 replaced as leader, written",
    );
    assert_contains(
        &run.stderr,
        "notice[stale-node]: aws/e1: marked lostLead: its Kilo agent was last seen 2 minutes ago, and `e2` leads its \
         location now",
    );
    site.folder.run(&["render"]);
    assert_contains(&site.folder.read("rendered/onprem/live--aws.yaml"), "live--aws--e2");
    // As soon as its agent is back, it leads again.
    let mut back = nodes(&site.folder, &[("e1", 2), ("e2", 8), ("u1", 3), ("u2", 21), ("u3", 40)]);
    back[1]["metadata"]["annotations"]["kilo.squat.ai/wireguard-ip"] = json!("");
    site.server.change(&back);
    let check = ["snapshot", "aws", "--kubeconfig", "kubeconfig", "--check"];
    let run = site.folder.run(&check);
    assert_eq!(run.code, 1, "{}", run.stderr);
    assert_contains(&run.stdout, "lostLead removed: `true`");
}

#[test]
fn a_cluster_of_two_nodes_loses_a_leader_too() {
    let site = Replaced::new(&ALL[..2]);
    site.snapshot(&["--accept", "aws"]);
    assert_eq!(site.marked(), ["e1"]);
}

#[test]
fn a_stopped_leader_has_lost_the_lead_to_a_live_one() {
    let site = Replaced::new(&ALL);
    let mut stopped = nodes(&site.folder, &ALL);
    let kept = json!({ "kilo.squat.ai/persistent-keepalive": "25" });
    stopped[0]["metadata"]["annotations"] = kept;
    site.server.change(&stopped);
    let run = site.snapshot(&[]);
    assert_eq!(site.marked(), ["e1"]);
    assert_contains(
        &run.stderr,
        "marked lostLead: its Kilo agent stopped, and `e2` leads its location now",
    );
    assert_contains(&run.stderr, "1 carried over, 1 replaced as leader");
}

#[test]
fn nothing_is_marked_by_a_wrong_clock_or_in_a_dump() {
    let ahead = ALL.map(|(name, age)| (name, age + 120));
    let behind = ALL.map(|(name, age)| (name, age - 300));
    let both_there = ALL.map(|(name, age)| (name, age.min(60)));
    for seen in [ahead, behind, both_there] {
        let site = Replaced::new(&seen);
        site.snapshot(&[]);
        assert_eq!(site.marked(), [""; 0], "{seen:?}");
        let run = site.folder.run(&["validate", "--output", "concise"]);
        assert_contains(&run.stdout, "warning[uncertain-leader] aws: `e1`, `e2` of location `eu`");
    }
    let site = Replaced::new(&ALL);
    let dump = json!({ "kind": "List", "items": nodes(&site.folder, &ALL) });
    site.folder.write("dump.json", dump.to_string());
    let run = site.folder.run(&["snapshot", "aws", "--from", "dump.json"]);
    assert_eq!((run.code, site.marked()), (0, Vec::new()), "{}", run.stderr);
}
