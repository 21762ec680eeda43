//! What a change costs beside paths that are lost: pauses, forgotten addresses, ended paths, repairs.

use super::*;
use crate::support::assert_contains;
use crate::support::json_schema::{schema, violations};

const KEEPALIVE: &str = "kilo.squat.ai/persistent-keepalive";

/// A node that sends no keepalives.
fn silent(cluster: u8, number: u8) -> Value {
    let mut node = node(cluster, number);
    node["annotations"][KEEPALIVE] = json!("0");
    node
}

/// A node behind NAT, which others know only by the address from which it dials.
fn behind_nat(number: u8) -> Value {
    let mut node = node(2, number);
    let own = format!("192.168.2.{number}:51820");
    node["annotations"]["kilo.squat.ai/endpoint"] = json!(own);
    node["addresses"].as_array_mut().unwrap().pop();
    node
}

/// Commits a mesh with other nodes.
fn committed(clusters: &[(&str, &[Value])]) -> Repository {
    let repository = Repository::of(Folder::mesh());
    for (cluster, nodes) in clusters {
        repository.folder.keep(cluster, nodes);
    }
    repository.render();
    repository.commit();
    repository
}

impl Repository {
    fn render(&self) {
        let run = self.folder.run(&["render"]);
        assert_eq!(run.code, 0, "{}", run.stderr);
    }

    /// Returns the differences for programs, which have to match their schema.
    fn object(&self) -> Value {
        let changes = self.diff(&["--output", "json"]).json();
        let schema = schema("kilo-clustermesh.io/diff_v1.json");
        assert_eq!(violations(&schema, &changes), Vec::<String>::new());
        changes
    }

    /// Returns the lines of a target, up to those of its Peers.
    fn target(&self, cluster: &str) -> String {
        let text = self.diff(&[]).stdout;
        let is_head = |it: &str| {
            let names = it.split_once(": ").map(|it| it.0);
            names.is_some_and(|it| it.split(", ").any(|it| it == cluster))
        };
        let lines = text.lines().skip_while(|it| !is_head(it));
        let lines = lines.take_while(|it| !it.is_empty() && !it.starts_with("    "));
        lines.map(|it| format!("{it}\n")).collect::<Vec<_>>().concat()
    }
}

#[test]
fn a_node_that_left_ends_its_paths() {
    let repository = Repository::committed();
    repository.remove_node();
    insta::assert_snapshot!(repository.target("east"), @"
    east, north: cleanup
      1 node removed; 4 declared paths to and from it end
      1 Peer removed
    ");
    let changes = repository.object();
    assert_eq!(changes["grade"], "cleanup");
    let path = &changes["paths"][0];
    assert_eq!((&path["lost"]["declared"], &path["lost"]["undeclared"]), (&json!(0), &json!(0)));
    assert_ne!(path["ended"]["declared"], 0);
    // A node that is there and left out loses its paths.
    let mut keyless = node(3, 2);
    keyless["annotations"]["kilo.squat.ai/key"] = json!("");
    repository.folder.keep("west", &[node(3, 1), keyless]);
    assert_eq!(repository.grade(&[]), "disruptive");
}

#[test]
fn a_pod_cidr_that_moves_ends_its_paths() {
    let repository = Repository::committed();
    let mut moved = node(3, 2);
    moved["podCIDRs"] = json!(["10.3.9.0/24"]);
    repository.folder.keep("west", &[node(3, 1), moved]);
    insta::assert_snapshot!(repository.target("east"), @"
    east, north: cleanup
      1 node has other addresses; 4 declared paths to and from the old ones end
      1 Peer that loses ranges
    ");
}

#[test]
fn a_mere_pause_ends_with_the_annotation() {
    let repository = committed(&[("east", &[silent(1, 1), node(1, 2)])]);
    let folder = &repository.folder;
    folder.keep("west", &[node(3, 1), node(3, 2), node(3, 3)]);
    insta::assert_snapshot!(repository.target("east"), @"
    east: brief
      1 node has no annotation `kilo.squat.ai/persistent-keepalive`: after this change, requests through this node may get no answer for up to 15 s, also between nodes of the cluster
    ");
    let verdict = "Annotate them first: then this change is additive.";
    for format in ["human", "markdown"] {
        assert_contains(&repository.diff(&["--output", format]).stdout, verdict);
    }
    let changes = repository.object();
    assert_eq!((&changes["grade"], &changes["pauseOnly"]), (&json!("brief"), &json!(true)));
    let target = &changes["targets"][0];
    assert_eq!(target["cluster"], "east");
    assert_eq!((&target["pausing"], &target["pauseOnly"]), (&json!(["n1"]), &json!(true)));
    assert_eq!(changes["targets"][1]["pauseOnly"], false);
    let fails = |arguments: &[&str]| repository.diff(arguments).code;
    assert_eq!(fails(&["--fail-on", "brief"]), 1);
    assert_eq!(fails(&["--fail-on", "brief", "--allow-pause"]), 0);
    assert_eq!(fails(&["--fail-on", "additive", "--allow-pause"]), 1);
    folder.keep("east", &[node(1, 1), node(1, 2)]);
    let changes = repository.object();
    assert_eq!((&changes["grade"], &changes["pauseOnly"]), (&json!("additive"), &json!(false)));
}

/// The change would be brief in any case.
#[test]
fn an_interruption_is_not_a_mere_pause() {
    let repository = committed(&[("east", &[silent(1, 1), node(1, 2)])]);
    let mut moved = node(3, 2);
    moved["addresses"][1]["address"] = json!("198.18.113.99");
    repository.folder.keep("west", &[node(3, 1), moved]);
    assert_eq!(repository.object()["pauseOnly"], false);
    let arguments = ["--fail-on", "brief", "--allow-pause"];
    assert_eq!(repository.diff(&arguments).code, 1);
    assert!(!repository.diff(&[]).stdout.contains("then the change"));
}

/// Kilo does not write the keepalive of a Peer into WireGuard.
#[test]
fn a_keepalive_alone_pauses_nothing() {
    let repository = committed(&[("east", &[silent(1, 1), node(1, 2)])]);
    let folder = &repository.folder;
    let entry = "- name: west\n";
    let with = |seconds: u8| format!("{entry}      persistentKeepalive: {seconds}\n");
    folder.edit("mesh.yaml", entry, &with(25));
    insta::assert_snapshot!(repository.target("east"), @"
    east, north: brief
      2 Peers get or lose their keepalive, so Kilo treats learned addresses differently
    ");
    repository.render();
    repository.commit();
    folder.edit("mesh.yaml", &with(25), &with(30));
    insta::assert_snapshot!(repository.target("east"), @"
    east, north: additive
      2 Peers with another keepalive, which Kilo does not write into WireGuard
    ");
}

#[test]
fn nodes_behind_nat_may_be_forgotten() {
    let hidden = [behind_nat(1), behind_nat(2)];
    let repository = Repository::of(Folder::mesh());
    let folder = &repository.folder;
    let entry = "- name: north\n";
    folder.edit("mesh.yaml", entry, &format!("{entry}      persistentKeepalive: 25\n"));
    folder.keep("north", &hidden);
    folder.keep("east", &[node(1, 1)]);
    repository.render();
    repository.commit();
    let more = [node(3, 1), node(3, 2), node(3, 3), node(3, 4)];
    folder.keep("west", &more[..3]);
    assert_eq!(repository.object()["grade"], "additive");
    // Two Peers of `east` change.
    folder.keep("west", &more);
    insta::assert_snapshot!(repository.target("east"), @"
    east: brief
      n1 may forget the addresses of nodes behind NAT (north/n1, north/n2): these pairs may be unreachable for up to 15 s, or up to 205 s if nothing is sent
    ");
    let changes = repository.object();
    assert_eq!((&changes["grade"], &changes["pauseOnly"]), (&json!("brief"), &json!(false)));
    let forgotten = json!({
        "isPublished": false,
        "leaders": ["n1"],
        "nodes": ["north/n1", "north/n2"],
        "peers": [],
    });
    assert_eq!(changes["targets"][0]["forgotten"], forgotten);
    let arguments = ["--fail-on", "brief", "--allow-pause"];
    assert_eq!(repository.diff(&arguments).code, 1);
    // The remedy for a NAT with a fixed address.
    let mut fixed = hidden;
    for (node, port) in fixed.iter_mut().zip(51820..) {
        let endpoint = format!("203.0.113.120:{port}");
        node["annotations"]["kilo.squat.ai/endpoint"] = json!(endpoint);
        node["annotations"]["kilo.squat.ai/force-endpoint"] = json!(endpoint);
    }
    folder.keep("north", &fixed);
    folder.keep("west", &more[..2]);
    repository.render();
    repository.commit();
    folder.keep("west", &more);
    assert_eq!(repository.object()["grade"], "additive");
}

#[test]
fn a_repair_names_what_is_down() {
    let repository = Repository::committed();
    let mut renewed = node(3, 2);
    renewed["annotations"]["kilo.squat.ai/key"] = json!(STANDARD.encode([99; 32]));
    repository.folder.keep("west", &[node(3, 1), renewed]);
    insta::assert_snapshot!(repository.target("east"), @"
    east, north: brief
      1 Peer with another key
      4 declared paths are down until this is applied
    ");
}

/// The Peers stay as they are only if the election ends as expected.
#[test]
fn nothing_changes_unless_an_uncertain_election_ends_otherwise() {
    let located = |number: u8, wireguard: &str| {
        let mut node = node(3, number);
        node["annotations"]["kilo.squat.ai/granularity"] = json!("location");
        node["annotations"]["kilo.squat.ai/wireguard-ip"] = json!(wireguard);
        node
    };
    let repository = committed(&[("west", &[located(1, ""), located(2, "10.103.0.2/24")])]);
    assert_eq!(repository.grade(&[]), "none");
    let run = repository.diff(&[]);
    insta::assert_snapshot!(run.stdout + &run.stderr, @"
    No Peer changes compared with HEAD (3 clusters).
    note: uncertain-leader: west: `n2` has the only WireGuard address of the unnamed location, but Kilo elects `n1`; take a new snapshot with `clustermesh snapshot west`; if the address is still there, remove it: `kubectl --context west annotate node n2 --overwrite kilo.squat.ai/wireguard-ip-`
    ");
}
