use std::fmt::Write as _;
use std::sync::Arc;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use proptest::prelude::*;
use serde_json::{Value, json};

use super::*;
use crate::agent::applied::AppliedFile;
use crate::agent::model::Model;
use crate::config::Capacity;
use crate::config::capacity::{Costs, Quantity, Steps};
use crate::diagnostic::Severity;
use crate::granularity::Granularity;
use crate::snapshot::Snapshot;
use crate::testing::{node, own};

mod deltas;

/// Durations measured with Kilo's own code, 30 nodes in `Full` granularity and two allowed IPs for
/// each Peer: Peers, rules, routes, bytes of configuration, seconds of an apply that changes nothing.
const MEASURED: [(usize, usize, usize, usize, f64); 6] = [
    (50, 327, 158, 13_182, 0.21),
    (100, 527, 258, 21_234, 0.6),
    (250, 1_127, 558, 45_834, 2.7),
    (500, 2_127, 1_058, 86_508, 11.5),
    (1_000, 4_127, 2_058, 167_856, 43.0),
    (2_000, 8_127, 4_058, 330_552, 180.0),
];

fn key(number: usize) -> String {
    let mut key = [7; 32];
    key[..8].copy_from_slice(&number.to_be_bytes());
    STANDARD.encode(key)
}

fn cluster(lines: &str) -> Snapshot {
    let nodes =
        lines.lines().filter(|it| !it.trim().is_empty()).enumerate().map(|(number, line)| {
            let mut node = node(line);
            let annotations = &mut node.annotations;
            annotations.insert("kilo.squat.ai/key", key(1_000_000 + number));
            node
        });
    Snapshot::new("target".parse().unwrap(), nodes.collect()).unwrap()
}

/// So many nodes, each with internal address and an endpoint elsewhere.
fn nodes(number: usize) -> Snapshot {
    let mut lines = String::new();
    for it in 0..number {
        let _ = writeln!(
            lines,
            "n{it:03} pod=10.42.{it}.0/24 endpoint=198.51.100.{it}:51820 internal-ip=192.168.0.{it}/24 wg=10.4.0.{}/16",
            it + 1
        );
    }
    cluster(&lines)
}

/// A file of this many Peers, numbered from a start, each with a pod CIDR and its WireGuard
/// address.
fn peers(source: &str, numbers: std::ops::Range<usize>) -> AppliedFile {
    let items: Vec<Value> = numbers
        .map(|it| {
            let (high, low) = (it / 200, it % 200);
            let endpoint = json!({"dnsOrIP": {"ip": format!("203.0.113.{low}")}, "port": 51_820});
            let ranges =
                [format!("10.{}.{low}.0/24", 100 + high), format!("10.200.{high}.{low}/32")];
            let spec = json!({"publicKey": key(it), "endpoint": endpoint, "allowedIPs": ranges});
            peer(&format!("{source}--n{it}"), &spec)
        })
        .collect();
    file(source, &json!({"kind": "List", "items": items}))
}

fn peer(name: &str, spec: &Value) -> Value {
    let metadata = json!({"name": name});
    json!({"apiVersion": "kilo.squat.ai/v1alpha1", "kind": "Peer", "metadata": metadata, "spec": spec})
}

fn file(source: &str, value: &Value) -> AppliedFile {
    AppliedFile::read(&Arc::from(source), &Arc::from(value.to_string()))
}

fn with<T>(snapshot: &Snapshot, files: &[AppliedFile], look: impl FnOnce(&Model) -> T) -> T {
    look(&Model::new(&own(&snapshot.nodes, Granularity::Full), files))
}

fn load(snapshot: &Snapshot, files: &[AppliedFile]) -> Load {
    with(snapshot, files, |model| Load::count(model, None))
}

fn estimate(load: &Load, quantity: Quantity) -> Estimate {
    let all = estimates(load, &Capacity::default());
    all.into_iter().find(|it| it.quantity == quantity).unwrap()
}

#[test]
fn counts_are_those_of_kilo_and_times_near_them() {
    let snapshot = nodes(30);
    for (number, rules, routes, bytes, seconds) in MEASURED {
        let load = load(&snapshot, &[peers("s", 0..number)]);
        let value = |quantity| estimate(&load, quantity).value;
        assert_eq!(load.ranges(), 2 * number);
        assert_eq!(load.rules(), rules, "{number}");
        assert_eq!(load.rules(), 2 * load.ranges() + 4 * 30 + 7);
        let floats = [value(Quantity::Routes), units::float(routes)];
        assert!((floats[0] - floats[1]).abs() < 0.5, "{floats:?}");
        let ratio = value(Quantity::ConfigurationBytes) / units::float(bytes);
        assert!((0.98..1.02).contains(&ratio), "{number}: {ratio}");
        let ratio = value(Quantity::ApplySeconds) / seconds;
        assert!((0.9..1.3).contains(&ratio), "{number}: {ratio}");
    }
}

#[test]
fn additions_one_by_one_take_what_was_measured() {
    let nodes = load(&nodes(30), &[]).nodes;
    let seconds = |times, nanoseconds| {
        let costs = Costs { nanoseconds_per_squared_rule: nanoseconds, ..Costs::default() };
        let applies = Applies { times, before: 0, after: 2 * times };
        applies.seconds(&nodes, &costs)
    };
    for (times, measured) in [(50, 5.8), (100, 25.0), (200, 119.0)] {
        // The measured time of a single apply is between these.
        let (least, most) = (seconds(times, 2_200), seconds(times, 2_700));
        assert!(least / measured < 1.3 && 1.0 < most / measured, "{times}: {least} to {most}");
    }
    let minutes = seconds(500, 2_500) / 60.0;
    assert!((20.0..45.0).contains(&minutes), "{minutes}");
    let hours = seconds(1_000, 2_500) / 3_600.0;
    assert!((3.0..5.0).contains(&hours), "{hours}");
}

#[test]
fn the_sum_is_that_of_single_applies() {
    let nodes = load(&nodes(7), &[]).nodes;
    let costs = Costs::default();
    for (times, before, after) in [(1, 10, 12), (9, 0, 27), (40, 100, 20)] {
        let applies = Applies { times, before, after };
        let mut one_by_one = 0.0;
        for done in 1..=times {
            let grown = before * (times - done) + after * done;
            assert_eq!(grown % times, 0);
            one_by_one += time::apply(nodes.rules(grown / times), &costs);
        }
        let ratio = applies.seconds(&nodes, &costs) / one_by_one;
        assert!((ratio - 1.0).abs() < 1e-9, "{ratio}");
    }
}

#[test]
fn the_cases_of_the_review_are_graded() {
    let graded = |number| {
        let load = load(&nodes(30), &[peers("s", 0..number)]);
        let estimate = estimate(&load, Quantity::ApplySeconds);
        let grade = estimate.grade.map_or("ok".to_owned(), |it| it.to_string());
        format!("{} {grade}", units::seconds(estimate.value))
    };
    insta::assert_snapshot!(graded(100), @"0.7 s ok");
    insta::assert_snapshot!(graded(750), @"24 s warning");
    insta::assert_snapshot!(graded(4_000), @"11 min error");
}

#[test]
fn formulas_are_reported_with_their_numbers() {
    let load = Load {
        files: Some(FileLoad { entries: 2, largest: 300_000 }),
        ..load(&nodes(30), &[peers("s", 0..1_600)])
    };
    let mut text = String::new();
    for estimate in estimates(&load, &Capacity::default()) {
        let _ = writeln!(
            text,
            "{} {} [{}] = {} ({})",
            estimate.quantity.key(),
            units::value(estimate.quantity, estimate.value),
            estimate.grade.map_or("ok".to_owned(), |it| it.to_string()),
            estimate.formula,
            estimate.worked,
        );
    }
    insta::assert_snapshot!(text, @"
    peers 1,600 [notice] = P: Peers in the manifests ()
    ranges 3,200 [ok] = A: distinct allowed IPs of all Peers (a change takes 1 s with 252, 5 s with 643, 30 s with 1,668)
    rules 6,527 [ok] = R = 2 A + Σ over segments (1 + their allowed IPs) + own forward rules + 3 (2 × 3,200 + 120 + 4 + 3)
    applySeconds 107 s [error] = seconds for a rule squared × R² (2.5 µs × 6,527²)
    restartSeconds 16 h [ok] = Σ over Peers of one apply with the Peers before it (1,600 applies, from 0 s to 107 s)
    routes 3,258 [ok] = A + routes to nodes (3,200 + 58)
    configurationBytes 268,176 [ok] = its text: interface, other segments, Peers (5,216 + 262,960 for Peers)
    annotationBytes 147,200 [ok] = bytes for a Peer with a handshake × P (92 × 1,600)
    tunnelsPerNode 1,629 [ok] = P + other segments (1,600 + 29)
    tunnels 48,000 [ok] = P × segments (1,600 × 30)
    dnsEndpoints 0 [ok] = Peers whose endpoint is a name ()
    storedBytes 1,760,000 [ok] = bytes for a Peer × P (1,100 × 1,600)
    kustomizeSeconds 2.2 s [notice] = seconds for a resource squared × P² (850 ns × 1,600²)
    fluxSeconds 64 s [ok] = two requests for each Peer, 50 a second (2 × 1,600 ⁄ 50)
    applicationBytes 630,400 [warning] = bytes for a Peer in status and sync result × P (394 × 1,600)
    inventoryBytes 136,000 [ok] = bytes for a Peer × P (85 × 1,600)
    fileBytes 300,000 [notice] = the largest file ()
    directoryEntries 2 [ok] = a file for each source, and a kustomization ()
    ");
}

/// With some 2,800 Peers, the API server refuses what a node publishes of them.
#[test]
fn the_annotations_of_a_node_have_a_limit() {
    let grade = |number| {
        let load = load(&nodes(1), &[peers("s", 0..number)]);
        estimate(&load, Quantity::AnnotationBytes).grade
    };
    assert_eq!(grade(2_100), None);
    assert_eq!(grade(2_200), Some(Severity::Warning));
    assert_eq!(grade(2_800), Some(Severity::Warning));
    assert_eq!(grade(2_801), Some(Severity::Error));
}

#[test]
fn a_cluster_without_peers_or_nodes_has_nothing_to_carry() {
    let empty = cluster("");
    let load = load(&empty, &[]);
    assert_eq!((load.rules(), load.objects(), load.peers()), (3, 0, 0));
    for estimate in estimates(&load, &Capacity::default()) {
        assert_eq!(estimate.grade, None, "{estimate:?}");
    }
}

#[test]
fn what_kilo_does_not_configure_is_an_object_all_the_same() {
    let of = |spec: Value| load(&nodes(2), &[file("a", &peer("a", &spec))]);
    let ignored = of(json!({"publicKey": "no", "allowedIPs": ["10.9.0.0/24"]}));
    assert_eq!((ignored.objects(), ignored.peers()), (1, 0));
    let not_stored = of(json!({"publicKey": 1, "allowedIPs": ["10.9.0.0/24"]}));
    assert_eq!((not_stored.objects(), not_stored.peers()), (0, 0));
    let endpoint = json!({"dnsOrIP": {"dns": "a.example"}, "port": 1});
    let ranges = ["10.9.0.0/24"];
    let by_name = of(json!({"publicKey": key(1), "allowedIPs": ranges, "endpoint": endpoint}));
    let endpoints = estimate(&by_name, Quantity::DnsEndpoints);
    assert_eq!(endpoints.grade, Some(crate::diagnostic::Severity::Warning));
}

#[test]
fn steps_of_the_config_are_gone_by() {
    let load = load(&nodes(2), &[peers("a", 0..3)]);
    let steps = Steps { warning: Some(5), ..Steps::default() };
    let capacity = Capacity::default().with(Quantity::Ranges, steps);
    let estimates = estimates(&load, &capacity);
    let graded: Vec<Quantity> =
        estimates.iter().filter(|it| it.grade.is_some()).map(|it| it.quantity).collect();
    assert_eq!(graded, [Quantity::Ranges]);
}

proptest! {
    /// Counting gives the same result as building.
    #[test]
    fn routes_and_tunnels_are_as_many_as_the_model_has(
        shape in proptest::collection::vec((0u8..3, any::<bool>(), any::<bool>()), 1..8),
        granularity in prop_oneof![
            Just(Granularity::Full), Just(Granularity::Location), Just(Granularity::Cross)
        ],
        number in 0usize..5,
    ) {
        let mut lines = String::new();
        for (it, (location, has_internal, is_endpoint)) in (1..).zip(&shape) {
            // A node without internal address in `Cross` is one that its agent dies of.
            let has_internal = *has_internal || granularity == Granularity::Cross;
            let internal = if has_internal { format!("192.168.0.{it}/24") } else { String::new() };
            let endpoint = if *is_endpoint { "192.168.0" } else { "198.51.100" };
            let _ = writeln!(
                lines,
                "n{it} pod=10.42.{it}.0/24 endpoint={endpoint}.{it}:51820 internal-ip={internal} location=l{location}"
            );
        }
        let snapshot = cluster(&lines);
        let files = [peers("s", 0..number)];
        let model = Model::new(&own(&snapshot.nodes, granularity), &files);
        let load = Load::count(&model, None);
        let routes = model.topology.nodes.ids().map(|it| model.own_routes(it).unwrap().len());
        prop_assert_eq!(load.nodes.routes, routes.max().unwrap());
        let tunnels = model.topology.segments.ids().map(|it| model.configured(it).len());
        prop_assert_eq!(load.nodes.tunnels + load.peers(), tunnels.max().unwrap());
    }
}
