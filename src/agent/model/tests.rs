use std::fmt::Write as _;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use serde_json::{Value, json};

use super::*;
use crate::agent::peers::Prize;
use crate::granularity::Granularity;
use crate::snapshot::Snapshot;
use crate::testing::{node, own};

mod any_order;
mod unapplied;

/// A key for each letter, sorted as the letters are.
fn key(letter: u8) -> String {
    STANDARD.encode([letter; 32])
}

/// Reads nodes, one a line, for [`node`]; their keys are their numbers.
fn snapshot(lines: &str) -> Snapshot {
    let lines = lines.lines().filter(|line| !line.trim().is_empty());
    let nodes = lines.zip(1..).map(|(line, number)| {
        let mut node = node(line);
        let name = "kilo.squat.ai/key";
        if !node.annotations.contains_key(name) {
            node.annotations.insert(name, key(number));
        }
        node
    });
    Snapshot::new("target".parse().unwrap(), nodes.collect()).unwrap()
}

/// Reads Peers, one a line: name, key's letter, allowed IPs or `-`, and perhaps an endpoint.
fn peers(lines: &str) -> AppliedFile {
    let lines = lines.lines().filter(|line| !line.trim().is_empty());
    let items: Vec<Value> = lines.map(peer).collect();
    let list = json!({"kind": "List", "items": items}).to_string();
    AppliedFile::read(&"peers.json".into(), &list.into())
}

fn peer(line: &str) -> Value {
    let mut words = line.split_whitespace();
    let (name, letter) = (words.next().unwrap(), words.next().unwrap());
    let ranges: Vec<&str> = words.next().unwrap().split(',').filter(|it| *it != "-").collect();
    let number = letter.parse().unwrap_or(letter.as_bytes()[0]);
    let mut spec = json!({"publicKey": key(number), "allowedIPs": ranges});
    if let Some((host, port)) = words.next().and_then(|it| it.rsplit_once(':')) {
        let port: i64 = port.parse().unwrap();
        spec["endpoint"] = json!({"dnsOrIP": {"ip": host}, "port": port});
    }
    let metadata = json!({"name": name});
    json!({"apiVersion": "kilo.squat.ai/v1alpha1", "kind": "Peer", "metadata": metadata, "spec": spec})
}

fn with<T>(nodes: &str, lines: &str, look: impl FnOnce(&Model) -> T) -> T {
    let (snapshot, file) = (snapshot(nodes), peers(lines));
    let own = own(&snapshot.nodes, Granularity::Full);
    look(&Model::new(&own, std::slice::from_ref(&file)))
}

fn first(model: &Model) -> SegmentId {
    model.topology.segments.ids().next().unwrap()
}

fn called(model: &Model, claim: TunnelClaim) -> String {
    match claim.tunnel {
        Tunnel::Segment(segment) => model.topology.segments[segment].key.clone(),
        Tunnel::Peer(peer) => model.peers[peer].applied.name.clone(),
    }
}

/// Lists who has each range on the leader of each segment.
fn table(model: &Model) -> String {
    let mut text = String::new();
    for (id, segment) in model.topology.segments.numbered() {
        writeln!(text, "on {}", segment.key).unwrap();
        for slot in model.tunnels.ids() {
            let (range, _) = model.tunnels.at(slot);
            match model.holder(id, slot) {
                None => {}
                Some(RangeHolder::Certain(claim)) => {
                    writeln!(text, "  {range} {}", called(model, claim)).unwrap();
                }
                Some(RangeHolder::Ambiguous(claims)) => {
                    let all: Vec<String> = claims.iter().map(|it| called(model, *it)).collect();
                    writeln!(text, "  {range} ? {}", all.join(", ")).unwrap();
                }
            }
        }
    }
    text
}

const ONE: &str = "a pod=10.42.0.0/24 endpoint=192.0.2.1:51820 internal-ip=192.168.0.1/24 wireguard-ip=10.4.0.1/16";

const TWO: &str = "
a pod=10.42.0.0/24 endpoint=192.0.2.1:51820 internal-ip=192.168.0.1/24
b pod=10.42.1.0/24 endpoint=192.0.2.2:51820 internal-ip=192.168.0.2/24
";

#[test]
fn two_peers_with_one_key_leave_everything_of_theirs_open() {
    let lines = "
        k1 K 10.1.0.0/24,10.2.0.0/24
        k2 K 10.3.0.0/24
        x  X 10.1.0.0/24,10.4.0.0/24
        a  Y 10.2.0.0/24
        z  Z 10.1.0.0/24
    ";
    with(ONE, lines, |model| {
        insta::assert_snapshot!(table(model), @r"
        on node:a
          10.1.0.0/24 ? k1, x
          10.2.0.0/24 a
          10.3.0.0/24 ? k2
          10.4.0.0/24 x
        ");
        assert_eq!(model.contests.len(), 1);
        assert_eq!(model.contests.first().unwrap().over, Prize::Key);
        let last = model.peers.last().unwrap().share().unwrap();
        assert_eq!((last.count(), last.lost().len()), (0, 1));
    });
}

#[test]
fn a_peer_without_a_range_can_be_in_the_way_of_one_with_its_key() {
    with(ONE, "a K -\nb K 10.1.0.0/24\nc L -\nd L -", |model| {
        insta::assert_snapshot!(table(model), @r"
        on node:a
          10.1.0.0/24 ? b
        ");
        assert_eq!(model.contests.len(), 1);
    });
}

#[test]
fn two_peers_with_one_name_are_one_object() {
    let lines = "
        n K 10.1.0.0/24
        n L 10.2.0.0/24
        o L 10.3.0.0/24
    ";
    with(ONE, lines, |model| {
        insta::assert_snapshot!(table(model), @r"
        on node:a
          10.1.0.0/24 ? n
          10.2.0.0/24 ? n
          10.3.0.0/24 ? o
        ");
        let over: Vec<Prize> = model.contests.iter().map(|it| it.over).collect();
        assert_eq!(over, [Prize::Name, Prize::Key]);
    });
}

#[test]
fn ranges_are_compared_as_they_print() {
    let lines = "
        a A 10.1.0.0/016,10.1.0.0/16
        b B 10.1.0.0/16,10.2.0.0/24
        c C 10.1.0.1/16
        d D 10.2.0.9/24,10.2.0.8/24
    ";
    with(ONE, lines, |model| {
        insta::assert_snapshot!(table(model), @r"
        on node:a
          10.1.0.0/16 ? a, c
          10.2.0.0/24 ? b, d, d
        ");
    });
    let once = "a A 10.1.0.1/16,10.1.0.2/16";
    with(ONE, once, |model| {
        insta::assert_snapshot!(table(model), @r"
        on node:a
          10.1.0.0/16 a
        ");
    });
}

#[test]
fn a_peer_with_a_nodes_range_has_it_only_on_that_node() {
    with(TWO, "thief T 10.42.1.0/24,10.42.1.7/32", |model| {
        insta::assert_snapshot!(table(model), @r"
        on node:a
          10.4.0.2/32 node:b
          10.42.1.0/24 ? node:b, thief
          10.42.1.7/32 thief
          192.168.0.2/32 node:b
        on node:b
          10.4.0.1/32 node:a
          10.42.0.0/24 node:a
          10.42.1.0/24 thief
          10.42.1.7/32 thief
          192.168.0.1/32 node:a
        ");
    });
}

#[test]
fn a_peer_with_a_nodes_key_is_nobody_there_and_a_riddle_elsewhere() {
    with(TWO, "twin 2 10.9.0.0/24", |model| {
        insta::assert_snapshot!(table(model), @r"
        on node:a
          10.4.0.2/32 ? node:b
          10.9.0.0/24 ? twin
          10.42.1.0/24 ? node:b
          192.168.0.2/32 ? node:b
        on node:b
          10.4.0.1/32 node:a
          10.42.0.0/24 node:a
          192.168.0.1/32 node:a
        ");
        let node = model.topology.nodes.ids().nth(1).unwrap();
        let peer = model.peers.ids().next().unwrap();
        assert_eq!(model.peers_with_own_keys(), [(peer, node)]);
    });
}

#[test]
fn nodes_with_one_key_are_a_riddle_to_the_others() {
    let third = "c pod=10.42.2.0/24 endpoint=192.0.2.3:1";
    let twins = TWO.replace("internal", &format!("key={} internal", key(9)));
    with(&format!("{twins}{third}"), "", |model| {
        insta::assert_snapshot!(table(model), @r"
        on node:a
          10.4.0.3/32 node:c
          10.42.2.0/24 node:c
        on node:b
          10.4.0.3/32 node:c
          10.42.2.0/24 node:c
        on node:c
          10.4.0.1/32 ? node:a
          10.4.0.2/32 ? node:b
          10.42.0.0/24 ? node:a
          10.42.1.0/24 ? node:b
          192.168.0.1/32 ? node:a
          192.168.0.2/32 ? node:b
        ");
    });
}

#[test]
fn what_stops_the_agents_leaves_nothing_certain() {
    let mapped = "m M ::ffff:10.1.0.1/128";
    let negative = "n N 10.1.0.0/24 192.0.2.9:-1\no O 10.2.0.0/24";
    for lines in [mapped, negative] {
        with(TWO, lines, |model| {
            assert_eq!(model.stoppers.len(), 1);
            for slot in model.tunnels.ids() {
                assert!(!matches!(model.holder(first(model), slot), Some(RangeHolder::Certain(_))));
            }
        });
    }
    let tiny = |count: usize| -> String {
        let node = |it: usize| {
            format!(
                "n{it} pod=10.42.{it}.0/24 endpoint=192.0.2.{it}:1 wireguard-ip=10.4.0.{it}/30\n"
            )
        };
        (1..=count).map(node).collect()
    };
    // The fourth address is empty, the fifth an error.
    with(&tiny(4), "", |model| assert_eq!(model.stoppers, []));
    with(&tiny(5), "", |model| {
        assert_eq!(model.stoppers, [AgentStopper::Exhausted]);
    });
}

#[test]
fn an_address_that_was_announced_otherwise_is_not_certain() {
    let nodes = TWO.replace("192.168.0.1/24", "192.168.0.1/24 wireguard-ip=10.4.0.7/16");
    with(&nodes, "", |model| {
        insta::assert_snapshot!(table(model), @r"
        on node:a
          10.4.0.2/32 node:b
          10.42.1.0/24 node:b
          192.168.0.2/32 node:b
        on node:b
          10.4.0.1/32 ? node:a
          10.4.0.7/32 ? node:a
          10.42.0.0/24 node:a
          192.168.0.1/32 node:a
        ");
    });
}

#[test]
fn an_endpoint_inside_a_range_loops_unless_a_narrower_network_holds_it() {
    let lines = "
        far  F 10.8.0.0/16 203.0.113.9:1
        host H 203.0.113.0/24
        home I 192.168.0.0/16 192.168.0.50:1
        mute J 10.9.0.0/16
        none N 10.10.0.0/16,192.0.2.1/32 192.0.2.1:9
    ";
    with(TWO, lines, |model| {
        let dials: Vec<String> = model
            .peers
            .ids()
            .map(|peer| match model.dial(first(model), Tunnel::Peer(peer)) {
                Dial::Loops(slot) => format!("loops {}", model.tunnels.at(slot).0),
                other => format!("{other:?}"),
            })
            .collect();
        let names: Vec<&str> = model.peers.iter().map(|it| &*it.applied.name).collect();
        assert_eq!(names, ["far", "home", "host", "mute", "none"]);
        assert_eq!(dials[0], "loops 203.0.113.0/24");
        assert!(dials[1].starts_with("Address"), "{}", dials[1]);
        assert_eq!(dials[2..], ["Unknown", "Unknown", "Unknown"]);
        let second = model.topology.segments.ids().nth(1).unwrap();
        assert!(matches!(model.dial(first(model), Tunnel::Segment(second)), Dial::Address(_)));
    });
}
