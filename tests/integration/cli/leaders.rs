//! Leaders of locations: who has the lead, and what is known of a location with two nodes that show it.

use super::Folder;
use crate::support::assert_contains;

const UNCERTAIN: &str = "warning[uncertain-leader] aws: `e1`, `e2` of location `eu` have a WireGuard address, but only its \
                         leader has one";

/// Takes the address of `e2`, as if Kilo had elected no other leader than `e1`.
fn without_successor(case: &str) -> Folder {
    let folder = Folder::case(case);
    let before = r#""hqAiYe0WdFxVQVtTvnL9YvTqsfjPz8V9V72IR4hwzEc=",
        "kilo.squat.ai/persistent-keepalive": "25",
        "kilo.squat.ai/wireguard-ip": ""#;
    folder.edit("snapshots/aws.json", &format!("{before}10.5.0.1/16"), before);
    folder.run(&["render"]);
    folder
}

/// Marks the former leader of `silent-leader`, as a live snapshot does.
fn marked() -> Folder {
    let folder = Folder::case("silent-leader");
    folder.edit("snapshots/aws.json", r#""name": "e1","#, r#""name": "e1", "lostLead": true,"#);
    folder.run(&["render"]);
    folder
}

#[test]
fn two_nodes_with_a_wireguard_address_make_their_location_uncertain() {
    let folder = Folder::case("two-holders-of-a-wireguard-address");
    for cluster in ["east", "lab"] {
        let dump = format!("nodes/{cluster}.json");
        assert_eq!(folder.run(&["snapshot", cluster, "--from", &dump]).code, 0);
    }
    assert!(!folder.read("snapshots/east.json").contains("lostLead"));
    assert_eq!(folder.run(&["render"]).code, 0);
    let validated = folder.run(&["validate", "--output", "concise"]);
    assert_eq!(validated.code, 0);
    assert_contains(
        &validated.stdout,
        "warning[uncertain-leader] east: `vm1`, `vm2` of location `east` have a WireGuard address",
    );
    let verified = folder.run(&["verify", "--output", "concise"]);
    assert_eq!(verified.code, 0, "{}", verified.stdout);
    assert_contains(
        &verified.stdout,
        "2 of 3 nodes are not part of this proof: vm1, vm2 (the leader of its location is uncertain)",
    );
    assert_contains(
        &folder.run(&["trace", "lab/lab-1", "east/vm1"]).stdout,
        "may not be the leader",
    );
    // In another granularity, each of them leads itself.
    for cluster in ["east", "lab"] {
        folder.edit(&format!("snapshots/{cluster}.json"), "\"location\",", "\"full\",");
    }
    let validated = folder.run(&["validate", "--output", "concise"]).stdout;
    assert!(!validated.contains("uncertain-leader"), "{validated}");
}

#[test]
fn a_leader_that_may_have_fallen_silent_is_not_proved() {
    let folder = Folder::case("silent-leader");
    folder.run(&["render"]);
    assert_contains(&folder.run(&["validate", "--output", "concise"]).stdout, UNCERTAIN);
    let verified = folder.run(&["verify", "--output", "concise"]).stdout;
    assert_contains(
        &verified,
        "2 of 5 nodes are not part of this proof: e1, e2 (the leader of its location is uncertain)",
    );
    assert_contains(&verified, "warning[ambiguous] gcp: ");
}

/// Its ranges, and those of the whole cluster, move to the node that leads now.
#[test]
fn the_next_leader_has_the_ranges_of_a_former_one() {
    let stopped = Folder::case("stopped-leader");
    stopped.run(&["render"]);
    assert_contains(&stopped.run(&["validate", "--output", "concise"]).stdout, UNCERTAIN);
    for folder in [stopped, marked()] {
        for target in ["onprem", "gcp"] {
            let peers = folder.read(&format!("rendered/{target}/live--aws.yaml"));
            assert!(!peers.contains("live--aws--e1"), "{peers}");
            let next = peers.split("---").find(|it| it.contains("live--aws--e2")).unwrap();
            for range in ["10.42.1.0/24", "10.42.2.0/24", "10.5.0.1/32", "10.43.0.0/16"] {
                assert_contains(next, range);
            }
        }
    }
    // While no other node shows the lead, the agent may just be restarting.
    let alone = without_successor("stopped-leader");
    assert_contains(&alone.read("rendered/onprem/live--aws.yaml"), "live--aws--e1");
    let validated = alone.run(&["validate", "--output", "concise"]).stdout;
    assert!(!validated.contains("uncertain-leader"), "{validated}");
}

/// Kilo elects another leader within a minute. If no other node shows the lead, the agent may only be late.
#[test]
fn a_stale_leader_without_a_successor_keeps_its_peer() {
    let folder = without_successor("silent-leader");
    let peers = || folder.read("rendered/onprem/live--aws.yaml");
    let before = peers();
    let code = folder.run(&["verify"]).code;
    folder.edit("snapshots/aws.json", r#""name": "e1","#, r#""name": "e1", "stale": true,"#);
    assert_eq!(folder.run(&["render"]).code, 0);
    // Only the ranges of the whole cluster move, to the other location.
    let service = "  - \"10.43.0.0/16\"\n  - \"10.101.0.0/24\"\n";
    let other = "  - \"10.101.1.0/24\"";
    let moved = before.replacen(service, "", 1).replace(other, &format!("{service}{other}"));
    assert_eq!(peers(), moved);
    let validated = folder.run(&["validate", "--output", "concise"]).stdout;
    assert_contains(
        &validated,
        "notice[stale-node] aws/e1: marked stale: no path of it works until its Kilo agent checks in",
    );
    assert_contains(
        &validated,
        "warning[uncertain-leader] aws: `e1` has the only WireGuard address of location `eu`, but Kilo elects `e2`",
    );
    assert!(!validated.contains("node-not-ready"), "{validated}");
    let verified = folder.run(&["verify", "--output", "concise"]);
    assert_eq!(verified.code, code, "{}", verified.stdout);
    assert_contains(
        &verified.stdout,
        "2 of 5 nodes are not part of this proof: e1 (not ready: its Kilo agent stopped sending heartbeats), e2 (the leader",
    );
}

#[test]
fn only_the_pods_of_a_former_leader_are_not_examined() {
    let folder = marked();
    let validate = |folder: &Folder| folder.run(&["validate", "--output", "concise"]).stdout;
    let validated = validate(&folder);
    for rule in ["uncertain-leader", "unknown-anchor"] {
        assert!(!validated.contains(rule), "{validated}");
    }
    // Only leaders that Kilo counts contradict the label of locations.
    let zoned = marked();
    let snapshot = zoned.read("snapshots/aws.json").replacen("10.5.0.1/16", "10.5.0.3/16", 1);
    let snapshot = ["eu", "us"].iter().fold(snapshot, |snapshot, region| {
        let label = |it: &str| format!(r#""topology.kubernetes.io/{it}": "{region}""#);
        snapshot.replace(&label("region"), &[label("region"), label("zone")].join(", "))
    });
    zoned.write("snapshots/aws.json", &snapshot);
    let of_zones = validate(&zoned);
    assert!(!of_zones.contains("contradicted-declaration"), "{of_zones}");
    assert_contains(
        &validated,
        "notice[stale-node] aws/e1: marked lostLead: no path of it works until",
    );
    let verified = folder.run(&["verify", "--output", "concise"]).stdout;
    assert_contains(&verified, "1 of 5 nodes is not part of this proof: e1 (not ready: ");
    assert!(!verified.contains("ambiguous"), "{verified}");
    // Both announce this address.
    let run = folder.run(&["trace", "onprem/r1", "10.5.0.1", "--output", "json"]);
    assert_eq!(run.code, 0, "{}", run.stdout);
    assert_eq!(run.json()["to"]["node"], "e2");
    assert_eq!(folder.run(&["trace", "onprem/r1", "aws/e2"]).code, 0);
    assert_eq!(folder.run(&["trace", "onprem/r1", "10.43.0.10"]).code, 0);
    let of_former = folder.run(&["trace", "onprem/r1", "aws/e1"]);
    assert_contains(&of_former.stdout, "Kilo ignores aws/e1: its agent stopped sending heartbeats");
}

/// The address is in no Peer, so it makes no difference.
#[test]
fn a_node_needs_no_wireguard_address_if_none_is_advertised() {
    let folder = Folder::case("none-without-wireguard-ip");
    assert_eq!(folder.run(&["render"]).code, 0);
    assert_contains(&folder.read("rendered/west/m--east.yaml"), "name: m--east--n2");
    let validated = folder.run(&["validate", "--output", "concise"]).stdout;
    assert!(!validated.contains("missing-wireguard-ip"), "{validated}");
    assert_eq!(folder.run(&["trace", "west/n1", "east/n2"]).code, 0);
    let explained = folder.run(&["explain", "missing-wireguard-ip"]).stdout;
    assert_contains(&explained, "`wireguardAddresses: None` no node needs one");
    // Its Peer is missed like every other one.
    let peers = folder.read("rendered/west/m--east.yaml");
    let left: Vec<&str> = peers.split("---").filter(|it| !it.contains("m--east--n2")).collect();
    folder.write("rendered/west/m--east.yaml", left.join("---"));
    let verified = folder.run(&["verify", "--peers", "west=rendered/west/m--east.yaml"]);
    assert_eq!(verified.code, 1, "{}", verified.stdout);
    folder.edit("mesh.yaml", "\"None\"", "\"PerNode\"");
    let validated = folder.run(&["validate", "--output", "concise"]).stdout;
    assert_contains(&validated, "[missing-wireguard-ip] east/n2");
}
