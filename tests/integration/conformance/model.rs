//! The model of a cluster's Kilo against Kilo's own `NewTopology`, `Conf`, `Routes` and `Rules`.

use std::net::IpAddr;
use std::sync::Arc;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use clustermesh::agent::applied::AppliedFile;
use clustermesh::agent::model::{Model, RangeHolder, Tunnel};
use clustermesh::agent::route::{Device, Route, RouteTable};
use clustermesh::capacity::Load;
use clustermesh::kilo::id::{NodeId, Nodes, SegmentId};
use clustermesh::kilo::topology::KiloTopology;
use clustermesh::net::Cidr;
use clustermesh::net::prefixes::Span;
use serde_json::{Value, json};

use crate::conformance::topology::{Scenario, scenarios, texts};

/// Where Kilo uses an endpoint that it discovered; no snapshot has those.
const ROAMING: &str = "location-discovered-endpoints";

/// What a model is made of.
struct Input {
    files: Vec<AppliedFile>,
}

impl Input {
    fn new(scenario: &Scenario) -> Self {
        let list = json!({"kind": "List", "items": scenario.value["input"]["peers"]});
        Self { files: vec![AppliedFile::read(&"peers.json".into(), &list.to_string().into())] }
    }

    fn model(&self, scenario: &Scenario) -> Model<'_> {
        let kilos = scenario.readings().into_iter().map(Arc::new).collect();
        let own = Arc::new(KiloTopology::form(&Nodes::new(kilos), &scenario.formed()));
        Model::new(&own, &self.files)
    }
}

/// Goes through all scenarios.
fn each(mut test: impl FnMut(&Scenario, &Model)) {
    for scenario in scenarios() {
        let input = Input::new(&scenario);
        test(&scenario, &input.model(&scenario));
    }
}

fn printed<T: ToString>(items: impl IntoIterator<Item = T>) -> Vec<String> {
    items.into_iter().map(|it| it.to_string()).collect()
}

fn encoded(key: Option<[u8; 32]>) -> String {
    STANDARD.encode(key.unwrap())
}

/// What a segment lets through, an address that it does not have written as Go writes it.
fn segment_ips(model: &Model, segment: SegmentId) -> Vec<String> {
    let segment = &model.topology.segments[segment];
    let mut ips = printed(&segment.allowed_ips);
    let address = segment.wireguard_ip.computed();
    ips.push(address.map_or("<nil>".to_owned(), |it| Cidr::host(it).to_string()));
    ips
}

#[test]
fn peers_are_those_of_the_topology() {
    each(|scenario, model| {
        let peers = model.peers.iter().filter_map(|peer| {
            let share = peer.share()?;
            let endpoint = share.translation.endpoint.as_ref();
            Some(json!({
                "name": peer.applied.name,
                "publicKey": encoded(Some(share.translation.key)),
                "allowedIPs": printed(share.kept().map(|it| it.allowed)),
                "endpoint": endpoint.map_or_else(String::new, ToString::to_string),
            }))
        });
        let ours: Value = peers.collect();
        let theirs = &scenario.value["expected"]["topologyPeers"];
        assert_eq!(&ours, theirs, "{}", scenario.name());
        assert_eq!(*model.contests, [], "{}", scenario.name());
    });
}

#[test]
fn segments_are_those_of_the_topology() {
    each(|scenario, model| {
        assert!(!model.topology.is_exhausted);
        let name = |node: NodeId| model.topology.nodes[node].kilo.name.as_str();
        let theirs = scenario.value["expected"]["segments"].as_array().unwrap();
        assert_eq!(model.topology.segments.len(), theirs.len(), "{}", scenario.name());
        for ((segment, ours), theirs) in model.topology.segments.numbered().zip(theirs) {
            let context = format!("{} {theirs:#} {ours:?}", scenario.name());
            let members: Vec<&str> = ours.members.iter().map(|it| name(*it)).collect();
            assert_eq!(json!(ours.key), theirs["location"], "{context}");
            assert_eq!(json!(members), theirs["hostnames"], "{context}");
            assert_eq!(name(ours.leader.node()), theirs["leader"], "{context}");
            let address =
                ours.wireguard_ip.computed().map_or("<nil>".to_owned(), |it| it.to_string());
            assert_eq!(address, theirs["wireguardIP"], "{context}");
            assert_eq!(json!(segment_ips(model, segment)), theirs["allowedIPs"], "{context}");
            let ranges = printed(&ours.location_ranges);
            assert_eq!(json!(ranges), theirs["allowedLocationIPs"], "{context}");
        }
    });
}

/// What `Conf` writes on a node.
fn configuration(model: &Model, node: NodeId, segment: SegmentId) -> Value {
    let keepalive = model.topology.nodes[node].kilo.keepalive;
    let tunnels = model.configured(segment).into_iter();
    tunnels
        .map(|tunnel| {
            let ips = match tunnel {
                Tunnel::Segment(other) => {
                    let mut ips = segment_ips(model, other);
                    ips.extend(printed(&model.topology.segments[other].location_ranges));
                    ips
                }
                Tunnel::Peer(peer) => {
                    printed(model.share(peer).unwrap().kept().map(|it| it.allowed))
                }
            };
            json!({
                "allowedIPs": ips,
                "endpoint": model.endpoint(tunnel).map_or_else(String::new, ToString::to_string),
                "persistentKeepaliveSeconds": keepalive,
                "publicKey": encoded(model.key(tunnel)),
            })
        })
        .collect()
}

#[test]
fn every_node_is_configured_as_by_kilo() {
    let mut roaming = 0;
    each(|scenario, model| {
        let theirs = scenario.value["expected"]["perNode"].as_object().unwrap();
        let counted = model.topology.nodes.iter().filter(|it| it.segment.is_some());
        assert_eq!(counted.count(), theirs.len(), "{}", scenario.name());
        for (number, node) in model.topology.nodes.numbered() {
            let Some(segment) = node.segment else {
                continue;
            };
            let theirs = &theirs[&node.kilo.name];
            let leads = model.topology.segments[segment].leader.node() == number;
            let context = format!("{} {}", scenario.name(), node.kilo.name);
            assert_eq!(json!(leads), theirs["leader"], "{context}");
            let port = node.endpoint().unwrap().port;
            assert_eq!(json!(port), theirs["listenPort"], "{context}");
            let mut ours = configuration(model, number, segment);
            let tunnels = model.configured(segment);
            let theirs = theirs["wireguardPeers"].as_array().unwrap();
            for ((ours, theirs), tunnel) in
                ours.as_array_mut().unwrap().iter_mut().zip(theirs).zip(tunnels)
            {
                let roams = match tunnel {
                    Tunnel::Segment(other) => model.leader(other).kilo.keepalive != 0,
                    Tunnel::Peer(peer) => {
                        model.share(peer).unwrap().translation.keepalive.is_some()
                    }
                };
                if ours["endpoint"] != theirs["endpoint"] && roams && scenario.name() == ROAMING {
                    ours["endpoint"] = theirs["endpoint"].clone();
                    roaming += 1;
                }
            }
            assert_eq!(&ours, &Value::from(theirs.clone()), "{context}");
        }
    });
    assert_eq!(roaming, 5);
}

/// The owner of a range, computed only from the list that Kilo writes.
fn written(peers: &[Value], own: &str, range: Cidr) -> Vec<String> {
    let has = |peer: &&Value| {
        let mut ips =
            texts(&peer["allowedIPs"]).into_iter().filter_map(|it| it.parse::<Cidr>().ok());
        ips.any(|it| it == range)
    };
    let others = peers.iter().filter(|it| it["publicKey"] != own).filter(has);
    others.map(|it| it["publicKey"].as_str().unwrap().to_owned()).collect()
}

#[test]
fn tables_follow_from_what_is_configured() {
    let (mut certain, mut ambiguous) = (0, 0);
    each(|scenario, model| {
        for segment in model.topology.segments.ids() {
            let leader = model.leader(segment);
            let own = encoded(leader.kilo.key);
            let expected = &scenario.value["expected"]["perNode"][&leader.kilo.name];
            let peers = expected["wireguardPeers"].as_array().unwrap();
            let twice = |key: &str| 1 < peers.iter().filter(|it| it["publicKey"] == key).count();
            for slot in model.tunnels.ids() {
                let (range, _) = model.tunnels.at(slot);
                let theirs = written(peers, &own, range);
                let context =
                    format!("{} {} {range} {theirs:?}", scenario.name(), leader.kilo.name);
                match model.holder(segment, slot) {
                    None => assert!(theirs.is_empty(), "{context}"),
                    Some(RangeHolder::Certain(claim)) => {
                        certain += 1;
                        assert_eq!(theirs, [encoded(model.key(claim.tunnel))], "{context}");
                        assert!(!twice(&theirs[0]), "{context}");
                    }
                    Some(RangeHolder::Ambiguous(_)) => {
                        ambiguous += 1;
                        assert!(1 < theirs.len() || theirs.iter().any(|it| twice(it)), "{context}");
                    }
                }
            }
        }
    });
    assert!(100 < certain && 5 < ambiguous, "{certain} {ambiguous}");
}

fn or_dash(address: Option<IpAddr>) -> String {
    address.map_or("-".to_owned(), |it| it.to_string())
}

fn printed_route(route: &Route) -> String {
    let device = match route.device {
        Device::Kilo => "kilo0",
        Device::Location => "tunl0",
    };
    let table = match route.table {
        RouteTable::Main => 0,
        RouteTable::Kilo => 1107,
    };
    let (gateway, source) = (or_dash(route.gateway), or_dash(route.source));
    format!("{} via {gateway} dev {device} src {source} table {table}", route.destination)
}

#[test]
fn routes_are_kilo_s() {
    let mut seen = 0;
    each(|scenario, model| {
        for (number, node) in model.topology.nodes.numbered() {
            let expected = &scenario.value["expected"]["perNode"][&node.kilo.name];
            let Some(theirs) = expected.get("routes") else {
                continue;
            };
            seen += 1;
            let context = format!("{} {}", scenario.name(), node.kilo.name);
            let theirs = texts(theirs);
            let Ok(own) = model.own_routes(number) else {
                let panic = "PANIC: runtime error: index out of range [0] with length 0";
                assert_eq!(theirs, [panic], "{context}");
                continue;
            };
            // Those to Peers come last, one for each range that a Peer keeps.
            let (of_nodes, of_peers) = theirs.split_at(own.len().min(theirs.len()));
            let own: Vec<String> = own.iter().map(printed_route).collect();
            assert_eq!(of_nodes, own, "{context}");
            let destinations: Vec<&str> =
                of_peers.iter().map(|it| it.split_once(' ').unwrap().0).collect();
            let kept = model
                .peers
                .iter()
                .filter_map(|it| it.share())
                .flat_map(|it| it.kept().map(|it| it.allowed));
            let kept = node.segment.map(|_| printed(kept)).unwrap_or_default();
            assert_eq!(destinations, kept, "{context}");
        }
    });
    assert!(10 <= seen, "{seen}");
}

/// `capacity` counts as many routes and rules as Kilo writes on the node with the most.
#[test]
fn counted_routes_and_rules_are_kilo_s() {
    let mut seen = 0;
    each(|scenario, model| {
        let most = |key: &str, is_meant: fn(&str) -> bool| {
            let nodes = scenario.value["expected"]["perNode"].as_object().unwrap();
            let counts = nodes.values().map(|it| {
                let all = texts(&it[key]).into_iter();
                all.filter(|it| is_meant(it)).count()
            });
            counts.max().unwrap_or_default()
        };
        let load = Load::count(model, None);
        let rules = most("iptables", |it| it.starts_with("v4 "));
        if 0 < rules {
            seen += 1;
            assert_eq!(load.rules(), rules, "{}", scenario.name());
            let routes = most("routes", |it| !it.starts_with("PANIC"));
            let counted = load.nodes.routes + load.ranges();
            assert_eq!(counted, routes, "{}", scenario.name());
        }
    });
    assert!(5 <= seen, "{seen}");
}

/// Every piece of the pod ranges of a cluster has exactly one owner, or none.
#[test]
fn pieces_have_one_holder_each() {
    each(|scenario, model| {
        for segment in model.topology.segments.ids() {
            for (range, _) in model.tunnels.iter() {
                for piece in model.tunnels.pieces(Span::new(range)) {
                    let found = model.select(segment, piece.span.first_address());
                    let mut last = piece.span;
                    last.first = last.last;
                    let end = model.select(segment, last.first_address());
                    assert_eq!(found, end, "{} {range}", scenario.name());
                }
            }
        }
    });
}
