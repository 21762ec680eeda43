//! The guard accepts every Peer that is rendered, and nothing else that its API server would refuse.
//!
//! `.ci/cluster` takes the fleets of this file to a real API server, which must agree with the program.

use std::fs;
use std::path::Path;

use clustermesh::admission::{Guard, GuardAccess, PeerForm};
use clustermesh::kilo::peer::Peer;
use clustermesh::kilo::peer::crd;
use clustermesh::kilo::peer::loose::LoosePeer;
use proptest::prelude::*;
use proptest::sample::select;
use proptest::strategy::ValueTree as _;
use proptest::test_runner::TestRunner;
use serde_json::{Value, json};

use super::world::{World, declared, mesh, world};
use super::{in_fleet, meshes};

/// How many fleets `.ci/cluster` takes.
const FLEETS: usize = 200;

/// How many changed Peers of each cluster it takes.
const ATTACKS: usize = 6;

/// A target with its guard and what is rendered for it.
struct Guarded {
    guard: Guard,
    peers: Vec<Peer>,
}

fn guarded(world: &World) -> Vec<Guarded> {
    let yaml = mesh(world);
    let meshes = meshes(&yaml);
    in_fleet(world, &yaml, |_, plan| {
        let targets = plan.targets.iter().map(|it| Guarded {
            guard: Guard::new(&meshes, &it.cluster, GuardAccess::default()),
            peers: plan.peers_of(&it.cluster).cloned().collect(),
        });
        targets.collect()
    })
}

/// A change of a Peer, by the path of what is changed. A path that ends in `-` is one of the allowed IPs.
fn change(clusters: usize) -> impl Strategy<Value = (&'static str, Value)> {
    let range = (0..clusters, 0..5usize).prop_map(|(it, use_)| json!(declared(it)[use_]));
    let host = (0..clusters).prop_map(|it| json!(format!("10.{it}.3.4/32")));
    let odd = select(vec![
        "0.0.0.0/0",
        "::/0",
        "10.1.0.1/16",
        "10.1.0.0/016",
        "10.1.0.0",
        "FD00:1::/48",
        "fd00:1::1/48",
        "nonsense",
        "::ffff:10.1.0.0/112",
        "0:0::FFFF:10.1.0.0/112",
        "::ffff:x",
        "fe80::1%eth0/128",
        "192.168.1.0/33",
        "10.1.2.0/24",
        "2001:db8::/32",
        "",
    ]);
    let address = prop_oneof![
        select(vec![
            "127.0.0.1",
            "::1",
            "169.254.1.1",
            "fe80::1",
            "224.0.0.9",
            "ff02::1",
            "0.0.0.0",
            "0.1.2.3",
            "255.255.255.255",
            "192.0.2.1",
            "::ffff:1.2.3.4",
            "1.2.3",
            "2001:db8::7",
            "010.0.0.1",
            "1.2.3.4 ",
            "",
        ])
        .prop_map(str::to_owned),
        (0..clusters).prop_map(|it| format!("10.{it}.3.4")),
        (0..clusters).prop_map(|it| format!("172.20.{it}.4")),
        (0..clusters).prop_map(|it| format!("192.168.{it}.4")),
    ];
    let key = select(vec![
        "vblMc9U8RAI6cVopcKEMTVT6lVC3D9nTTMSwot5d3L4=",
        "vblMc9U8RAI6cVopcKEMTVT6lVC3D9nTTMSwot5d3L5=",
        "vblMc9U8RAI6cVopcKEMTVT6lVC3D9nTTMSwot5d3L4=\n",
        "vblMc9U8RAI6cVopcKEMTVT6lVC3D9nTTMSwot5d3L4",
        "vblMc9U8RAI6cVopcKEMTVT6lVC3D9nTTMSwot5d3A==",
        "",
    ]);
    let label = select(vec!["world", "m0", "c1", "z2", "a3", "other"]);
    prop_oneof![
        4 => range.prop_map(|it| ("/spec/allowedIPs/-", it)),
        2 => host.prop_map(|it| ("/spec/allowedIPs/-", it)),
        4 => odd.prop_map(|it| ("/spec/allowedIPs/-", json!(it))),
        1 => Just(("/spec/allowedIPs", json!([]))),
        1 => (1499usize..1503).prop_map(|it| {
            let all = (0..it).map(|it| format!("10.1.{}.{}/32", it / 250, it % 250));
            ("/spec/allowedIPs", all.collect())
        }),
        4 => address.prop_map(|it| ("/spec/endpoint/dnsOrIP/ip", json!(it))),
        1 => select(vec!["wg.example.com", "1.2.3.4", "UP.example", ""])
            .prop_map(|it| ("/spec/endpoint/dnsOrIP/dns", json!(it))),
        1 => Just(("/spec/endpoint", Value::Null)),
        2 => select(vec![-1, 0, 1, 9, 65_535, 65_536]).prop_map(|it| ("/spec/endpoint/port", json!(it))),
        1 => select(vec![-1, 0, 25, 65_535, 65_536]).prop_map(|it| ("/spec/persistentKeepalive", json!(it))),
        2 => key.prop_map(|it| ("/spec/publicKey", json!(it))),
        2 => label.clone().prop_map(|it| ("/metadata/labels/kilo-clustermesh.io~1source-cluster", json!(it))),
        1 => label.prop_map(|it| ("/metadata/labels/kilo-clustermesh.io~1mesh", json!(it))),
        1 => Just(("/metadata/labels/kilo-clustermesh.io~1mesh", Value::Null)),
        1 => Just(("/metadata/labels", Value::Null)),
        1 => select(vec!["laptop", "world--m0--x", "world--m0", "world--c1--x"])
            .prop_map(|it| ("/metadata/name", json!(it))),
    ]
}

/// Sets what is at a path, with everything above it; null removes it.
fn set(object: &mut Value, path: &str, value: Value) {
    let (parent, last) = path.rsplit_once('/').unwrap();
    let last = last.replace("~1", "/");
    if object.pointer(parent).is_none_or(Value::is_null) {
        set(object, parent, json!({}));
    }
    match object.pointer_mut(parent).unwrap() {
        Value::Array(items) => items.push(value),
        Value::Object(fields) if value.is_null() => drop(fields.remove(&last)),
        parent => parent[last] = value,
    }
}

fn object(peer: &Peer) -> Value {
    let mut text = String::new();
    peer.push_to(&mut text);
    serde_yaml::from_str(&text).unwrap()
}

/// Returns the sentences of the rules that an object breaks.
fn refusals_of(guard: &Guard, object: &Value) -> Vec<String> {
    let name = object["metadata"]["name"].as_str().unwrap();
    let form = PeerForm::read(name, LoosePeer::new(object));
    let refusals = guard.refusals(&form).into_iter();
    refusals.map(|it| it.to_string()).collect()
}

proptest! {
    #[test]
    fn what_is_rendered_is_accepted(world in world()) {
        for Guarded { guard, peers } in guarded(&world) {
            for peer in &peers {
                let refusals = guard.refusals(&PeerForm::rendered(peer));
                prop_assert!(refusals.is_empty(), "{} {refusals:?}: {peer:?}", guard.cluster);
                // The manifest is judged as the plan.
                prop_assert_eq!(refusals_of(&guard, &object(peer)), [""; 0]);
            }
        }
    }
}

/// Of many fleets, some Peers of each are changed. What is refused of them is for `tests/cluster`, which asks the API server
/// the same: `GUARD_FLEETS` names the folder to which 200 fleets are written.
#[test]
fn what_is_changed_is_refused() {
    let folder = std::env::var_os("GUARD_FLEETS");
    let fleets = if folder.is_some() { FLEETS } else { 5 };
    let mut runner = TestRunner::deterministic();
    let (mut number, mut refused) = (0, 0);
    while number < fleets {
        let world = world().new_tree(&mut runner).unwrap().current();
        let mut guarded = guarded(&world);
        guarded.retain(|it| !it.peers.is_empty());
        number += usize::from(!guarded.is_empty());
        for Guarded { guard, peers } in guarded {
            let objects: Vec<Value> = peers.iter().map(object).collect();
            let attacked = objects.iter().cycle().take(ATTACKS);
            let attacks = attacked.map(|it| attack(&guard, it, world.clusters.len(), &mut runner));
            let attacks: Vec<Value> = attacks.collect();
            let is_refused = |it: &&Value| it["refusals"] != json!([]);
            refused += attacks.iter().filter(is_refused).count();
            let text = json!({
                "guard": guard.manifests().unwrap(),
                "attacks": attacks,
                "peers": objects,
            });
            if let Some(folder) = &folder {
                let file = Path::new(folder).join(format!("{number}-{}.json", guard.cluster));
                fs::write(file, text.to_string()).unwrap();
            }
        }
    }
    assert!(fleets <= refused, "{refused}");
}

/// Returns a changed Peer that the schema of the CRD accepts, and what the program refuses of it.
fn attack(guard: &Guard, peer: &Value, clusters: usize, runner: &mut TestRunner) -> Value {
    let changes = proptest::collection::vec(change(clusters), 1..3);
    loop {
        let mut object = peer.clone();
        for (path, value) in changes.new_tree(runner).unwrap().current() {
            set(&mut object, path, value);
        }
        if crd::stored(&object["spec"]).is_ok() {
            let refusals = refusals_of(guard, &object);
            return json!({ "object": object, "refusals": refusals });
        }
    }
}
