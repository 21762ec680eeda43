//! `advertise`: fewer ranges for the same paths, and which changes of nodes change no file.

use serde_json::{Value, json};

use super::Folder;
use super::diff::Repository;
use crate::support::{assert_contains, copy, project};

mod two_hundred_tenants;

/// A node of the first location that does not lead it.
const MEMBER: &str = "ip-10-30-9-140.eu-west-1.compute.internal";

const MERGED: &str = "advertise: { podCIDRs: Merged }";

/// The leader changes with each election, so the other node of the location is named.
fn declared() -> String {
    format!(
        "advertise: {{ podCIDRs: Declared, nodeAddresses: false, wireguardAddresses: None }}\n      \
         anchors: [{{ ranges: [10.32.0.0/16], nodes: [{MEMBER}] }}]"
    )
}

/// `examples/multi-cloud-location`, in which `aws` has two locations.
fn example() -> Folder {
    let folder = Folder::empty();
    copy(&project().join("examples/multi-cloud-location"), folder.0.path());
    folder
}

fn advertise(folder: &Folder, fields: &str) {
    let name = "    - name: aws\n";
    folder.edit("mesh.yaml", name, &format!("{name}      {fields}\n"));
    let run = folder.run(&["render"]);
    assert_eq!(run.code, 0, "{}", run.stderr);
}

/// Adds a node to `aws` that is like another one.
fn join(folder: &Folder, like: &str, change: impl FnOnce(&mut Value)) {
    let path = "snapshots/aws.json";
    let mut snapshot: Value = serde_json::from_str(&folder.read(path)).unwrap();
    let nodes = snapshot["nodes"].as_array_mut().unwrap();
    let mut node = nodes.iter().find(|it| it["name"] == like).unwrap().clone();
    node["name"] = json!("new");
    node["uid"] = json!("new");
    node["podCIDRs"] = json!(["10.32.9.0/24"]);
    node["addresses"] = json!([{ "address": "10.30.9.99", "type": "InternalIP" }]);
    node["annotations"]["kilo.squat.ai/key"] =
        json!("B9peZluxSV4JbvczfY40FBxjrZxTlTeKf6syKkqHUAI=");
    node["annotations"]["kilo.squat.ai/internal-ip"] = json!("10.30.9.99/20");
    change(&mut node);
    nodes.push(node);
    folder.write(path, snapshot.to_string());
}

/// The numbers of declared and of working paths between pods.
fn pods(folder: &Folder) -> Vec<(Value, Value, Value, Value)> {
    let verification = folder.run(&["verify", "--output", "json"]).json();
    assert_eq!(verification["holds"], true);
    let pairings = verification["pairings"].as_array().unwrap().iter();
    let classes = pairings.flat_map(|pairing| {
        let classes = pairing["classes"].as_array().unwrap().iter();
        classes.map(move |class| (pairing, class))
    });
    classes
        .filter(|(_, class)| class["from"] == "pod" && class["to"] == "pod")
        .map(|(pairing, class)| {
            let [from, to] = ["from", "to"].map(|it| pairing[it].clone());
            (from, to, class["declared"].clone(), class["working"].clone())
        })
        .collect()
}

#[test]
fn pods_reach_each_other_as_before() {
    let before = pods(&example());
    assert!(before.iter().all(|it| it.2 == it.3));
    for fields in [MERGED, &declared()] {
        let folder = example();
        advertise(&folder, fields);
        assert_eq!(pods(&folder), before, "{fields}");
    }
}

#[test]
fn a_node_that_joins_the_carrying_location_changes_no_file() {
    let folder = example();
    advertise(&folder, &declared());
    join(&folder, MEMBER, |_| {});
    let check = folder.run(&["render", "--check"]);
    assert_eq!(check.code, 0, "{}", check.stdout);
    for ends in [["gcp", "10.32.9.7"], ["aws/new", "gcp"]] {
        let trace = folder.run(&["trace", ends[0], ends[1]]);
        assert_eq!(trace.code, 0, "{}{}", trace.stdout, trace.stderr);
    }
}

#[test]
fn a_node_that_joins_another_location_is_reachable_after_a_render() {
    let folder = example();
    advertise(&folder, &declared());
    join(&folder, MEMBER, |node| {
        node["labels"]["topology.kubernetes.io/region"] = json!("eu-north-1");
        node["annotations"]["kilo.squat.ai/wireguard-ip"] = json!("10.24.1.3/24");
        node["annotations"]["kilo.squat.ai/endpoint"] = json!("198.18.113.99:51820");
        node["addresses"] = json!([
            { "address": "10.39.9.99", "type": "InternalIP" },
            { "address": "198.18.113.99", "type": "ExternalIP" },
        ]);
        node["annotations"]["kilo.squat.ai/internal-ip"] = json!("10.39.9.99/20");
    });
    let trace = || folder.run(&["trace", "gcp", "10.32.9.7"]);
    assert_eq!(trace().code, 1, "{}", trace().stdout);
    assert_eq!(folder.run(&["render"]).code, 0);
    assert_eq!(trace().code, 0, "{}", trace().stdout);
}

#[test]
fn packets_to_addresses_of_no_node_are_listed() {
    let folder = example();
    assert_eq!(
        folder.run(&["verify", "--undeclared", "--output", "json"]).json()["unowned"],
        Value::Null
    );
    advertise(&folder, &declared());
    let verify = folder.run(&["verify", "--undeclared"]);
    assert_eq!(verify.code, 0, "{}", verify.stderr);
    assert_contains(
        &verify.stdout,
        "packets from gcp, onprem to 64256 addresses of 10.32.0.0/16 that no node has reach \
         aws/ip-10-30-4-23.eu-west-1.compute.internal, which sends them on by its default route",
    );
    let trace = folder.run(&["trace", "gcp", "10.32.77.5"]);
    assert_eq!(trace.code, 1);
    assert_contains(
        &trace.stdout,
        "to the leader that carries the range, which sends them on by its default route",
    );
    // An old tree leads to the pod CIDR of a node that is gone, which no leader carries as a whole.
    let old = example();
    let path = "snapshots/aws.json";
    let mut snapshot: Value = serde_json::from_str(&old.read(path)).unwrap();
    let nodes = snapshot["nodes"].as_array_mut().unwrap();
    let gone = nodes.iter().position(|it| it["name"] == MEMBER).unwrap();
    let pods = nodes.remove(gone)["podCIDRs"][0].as_str().unwrap().to_owned();
    old.write(path, snapshot.to_string());
    let trace = old.run(&["trace", "gcp", &pods.replace(".0/24", ".7")]);
    assert_contains(&trace.stdout, "unassigned-address");
    assert!(!trace.stdout.contains("default route"), "{}", trace.stdout);
    // The hostile cluster can send from them, too.
    let hostile = folder.run(&["verify", "--assume-hostile", "aws", "--output", "json"]);
    assert_contains(&hostile.stdout, "10.32.5.0-10.32.255.255");
}

#[test]
fn a_cluster_that_keeps_all_addresses_of_its_nodes_is_named_in_one_line() {
    let line = "aws advertises neither WireGuard addresses nor internal IPs of nodes.";
    for (fields, is_named) in [
        ("advertise: { nodeAddresses: false, wireguardAddresses: None }", true),
        ("advertise: { nodeAddresses: false }", false),
    ] {
        let folder = example();
        advertise(&folder, fields);
        assert_eq!(folder.run(&["validate", "--fail-on", "warning"]).code, 0);
        for command in ["verify", "capacity"] {
            let run = folder.run(&[command]);
            assert_eq!(run.stdout.contains(line), is_named, "{}", run.stdout);
            let names = &folder.run(&[command, "--output", "json"]).json()["withoutNodeAddresses"];
            let expected = if is_named { json!(["aws"]) } else { Value::Null };
            assert_eq!(*names, expected);
        }
    }
}

#[test]
fn a_location_that_is_gone_leaves_a_warning_and_all_pods() {
    let folder = example();
    advertise(&folder, &declared().replace(MEMBER, "removed"));
    let validate = folder.run(&["validate"]);
    assert_eq!(validate.code, 0, "{}", validate.stderr);
    assert_contains(
        &validate.stdout,
        "warning[missing-carrier]: aws: no node that `anchors` names for 10.32.0.0/16 can carry it, so only the pod",
    );
    assert_contains(&validate.stdout, "warning[unknown-anchor]");
    assert_eq!(pods(&folder), pods(&example()));
}

/// The help is followed literally.
#[test]
fn agents_with_another_granularity_need_no_second_help() {
    let folder = example();
    advertise(&folder, &declared());
    let snapshot = folder.read("snapshots/aws.json");
    let full = snapshot.replace("granularity\": \"location", "granularity\": \"full");
    folder.write("snapshots/aws.json", full);
    let before = folder.run(&["validate"]);
    assert_contains(
        &before.stdout,
        "help: set `granularity: Full` and `podCIDRs: Merged` in `advertise` for `aws` in the mesh",
    );
    let name = "    - name: aws\n";
    folder.edit("mesh.yaml", "podCIDRs: Declared", "podCIDRs: Merged");
    let entry = folder.read("mesh.yaml");
    let (head, tail) = entry.split_once(name).unwrap();
    let tail = tail.replacen("granularity: Location", "granularity: Full", 1);
    folder.write("mesh.yaml", [head, name, &tail].concat());
    let after = folder.run(&["validate"]);
    assert!(!after.stdout.contains("error["), "{}", after.stdout);
    assert!(!after.stdout.contains("contradicted"), "{}", after.stdout);
}

#[test]
fn a_switch_is_at_least_brief_in_both_directions() {
    for fields in [MERGED, &declared()] {
        let repository = Repository::of(example());
        repository.commit();
        advertise(&repository.folder, fields);
        assert_eq!(repository.grade(&[]), "brief", "{fields}");
        let shown = repository.diff(&[]).stdout;
        assert_contains(&shown, "`advertise` of aws changed: `podCIDRs: PerNode");
        repository.commit();
        let fields = format!("      {fields}\n");
        repository.folder.edit("mesh.yaml", &fields, "");
        assert_eq!(repository.folder.run(&["render"]).code, 0);
        assert_eq!(repository.grade(&[]), "brief", "{fields}");
    }
}

#[test]
fn the_load_of_other_values_is_computed_without_a_change() {
    let folder = example();
    let before = folder.touches(".");
    let run = folder.run(&[
        "capacity",
        "--with",
        "aws.advertise={podCIDRs: Merged, nodeAddresses: false}",
    ]);
    assert_eq!(run.code, 0, "{}", run.stderr);
    assert_contains(&run.stdout, "gcp     ok         3      12");
    assert_contains(
        &run.stdout,
        "Computed with `aws.advertise={podCIDRs: Merged, nodeAddresses: false}`.",
    );
    let all =
        folder.run(&["capacity", "--output", "json", "--with", "*.advertise.nodeAddresses=false"]);
    assert_eq!(all.json()["with"], json!(["*.advertise.nodeAddresses=false"]));
    assert_eq!(folder.touches("."), before);
    for (value, message) in [
        (
            "nope.advertise.podCIDRs=Merged",
            "--with `nope.advertise.podCIDRs=Merged`: no mesh has this cluster",
        ),
        ("aws.advertise", "expected CLUSTER.FIELD=VALUE"),
        (
            "aws.advertise.podCIDRs=merged",
            "error: --with `aws.advertise.podCIDRs=merged`: `podCIDRs` cannot be `merged`; did you mean `Merged`?",
        ),
        ("aws.advertise.pods=Merged", "unknown field `pods`"),
    ] {
        let wrong = folder.run(&["capacity", "--with", value]);
        assert_eq!(wrong.code, 2, "{}", wrong.stderr);
        assert_contains(&wrong.stderr, message);
    }
}

/// Returns the ranges of each Peer of `east` in the files of `west`.
fn ranges_of_peers(folder: &Folder) -> Vec<(String, Vec<String>)> {
    let rendered = folder.run(&["render"]);
    assert_eq!(rendered.code, 0, "{}", rendered.stderr);
    let text = folder.read("rendered/west/m--east.yaml");
    let peers = text.split("---\n").map(|peer| {
        let lines = || peer.lines().map(str::trim);
        let name = lines().find_map(|it| it.strip_prefix("name: ")).unwrap_or_default();
        let ranges = lines().filter_map(|it| it.strip_prefix("- "));
        (name.to_owned(), ranges.map(|it| it.trim_matches('"').to_owned()).collect())
    });
    peers.collect()
}

#[test]
fn an_anchor_whose_own_range_is_left_out_stays_in_its_segment() {
    let folder = Folder::case("left-out-member-anchor");
    let peers = ranges_of_peers(&folder);
    let carriers: Vec<&str> = peers
        .iter()
        .filter(|it| it.1.contains(&"10.41.0.0/16".to_owned()))
        .map(|it| &*it.0)
        .collect();
    assert_eq!(carriers, ["m--east--n1"]);
}

/// Two nodes of one segment are one carrier, so the other half is on a segment that no anchor names.
#[test]
fn the_count_of_an_anchor_is_one_of_segments() {
    let folder = Folder::case("count-in-one-location");
    let peers = ranges_of_peers(&folder);
    let parts = |name: &str| -> Vec<&str> {
        let ranges = peers.iter().filter(|it| it.0 == name).flat_map(|it| &it.1);
        ranges.map(String::as_str).filter(|it| it.starts_with("10.91.")).collect()
    };
    assert_eq!(parts("m--east--n1"), ["10.91.0.0/17"]);
    assert_eq!(parts("m--east--n3"), ["10.91.128.0/17"]);
}
