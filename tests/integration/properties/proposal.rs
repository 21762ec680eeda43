//! Proposals: any two clusters without common ranges get a mesh that works.

use std::collections::BTreeMap;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use clustermesh::agent::fabric::Fabric;
use clustermesh::diagnostic::Severity;
use clustermesh::proof::reach::Reach;
use clustermesh::proof::verify::{Asked, verify};
use clustermesh::proposal::Proposal;
use clustermesh::snapshot::{Address, AddressKind, Node};
use proptest::prelude::*;

use crate::support::applied::{applied, site};
use crate::support::{self, meshes, snapshots};

/// A cluster whose nodes agree on everything that is proposed.
#[derive(Clone, Debug)]
struct World {
    /// The second byte of its pool, and how long that is.
    pool: (u8, u8),
    nodes: Vec<Endpoint>,
    has_v6: bool,
    granularity: &'static str,
    /// The length of Kilo's subnet.
    subnet: u8,
    port: u16,
}

/// How a node can be dialled.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
enum Endpoint {
    External,
    Forced,
    Name,
    Found,
    Nat,
}

fn world(pools: std::ops::Range<u8>, is_dialled: bool) -> impl Strategy<Value = World> {
    let endpoint = prop_oneof![
        Just(Endpoint::External),
        Just(Endpoint::Forced),
        Just(Endpoint::Name),
        Just(Endpoint::Found),
    ];
    // Two clusters behind NAT cannot be joined.
    let endpoint = (endpoint, any::<bool>())
        .prop_map(move |(it, is_nat)| if is_nat && !is_dialled { Endpoint::Nat } else { it });
    let nodes = proptest::collection::vec(endpoint, 1..6);
    let granularity = prop_oneof![Just("full"), Just("cross")];
    let length = prop_oneof![Just(24u8), Just(26)];
    (
        (pools, length),
        nodes,
        any::<bool>(),
        granularity,
        16u8..25,
        prop_oneof![Just(51820u16), Just(7)],
    )
        .prop_map(|(pool, nodes, has_v6, granularity, subnet, port)| World {
            pool,
            nodes,
            has_v6,
            granularity,
            subnet,
            port,
        })
}

fn nodes(world: &World) -> Vec<Node> {
    let (pool, length) = world.pool;
    let name = if world.nodes.iter().all(|it| *it == Endpoint::Name) {
        Endpoint::Name
    } else {
        // Names count only if most nodes have one in the same domain.
        Endpoint::Forced
    };
    let endpoints = world.nodes.iter().map(|it| if *it == Endpoint::Name { name } else { *it });
    let nodes = (1u8..).zip(endpoints).map(|(number, endpoint)| {
        let address = format!("198.18.{pool}.{number}");
        let port = world.port;
        let private = format!("192.168.{pool}.{number}");
        let mut annotations = BTreeMap::from([
            ("key", STANDARD.encode([pool, number].repeat(16))),
            ("wireguard-ip", format!("10.{}.0.{number}/{}", pool.wrapping_add(100), world.subnet)),
            ("granularity", world.granularity.to_owned()),
            ("internal-ip", format!("{private}/24")),
            ("persistent-keepalive", "25".to_owned()),
            ("endpoint", format!("{address}:{port}")),
        ]);
        match endpoint {
            Endpoint::External | Endpoint::Found => {}
            Endpoint::Forced => {
                annotations.insert("force-endpoint", format!("{address}:{port}"));
            }
            Endpoint::Name => {
                let name = format!("n{number}.wg{pool}.example.org:{port}");
                annotations.insert("force-endpoint", name);
            }
            Endpoint::Nat => drop(annotations.insert("endpoint", format!("{private}:{port}"))),
        }
        let mut pod_cidrs = vec![format!("10.{pool}.{number}.0/{length}")];
        if world.has_v6 {
            pod_cidrs.push(format!("fd00:{pool}:0:{number}::/64"));
        }
        let name = format!("n{number}");
        let mut node = support::node::node(&name, pod_cidrs, [private], annotations);
        node.uid = format!("{pool}-{number}");
        if endpoint == Endpoint::External {
            node.addresses.push(Address { address, kind: AddressKind::ExternalIP });
        }
        node
    });
    nodes.collect()
}

proptest! {
    #[test]
    fn disjoint_clusters_get_a_mesh_that_works(east in world(1..50, true), west in world(50..100, false)) {
        let snapshots = snapshots(vec![("east", nodes(&east)), ("west", nodes(&west))]);
        let read: Vec<_> = snapshots.values().map(|it| (*it.snapshot).clone()).collect();
        let proposal = Proposal::new("prod".parse().unwrap(), &read).unwrap();
        let yaml = proposal.to_yaml();
        let meshes = meshes(&yaml);
        let (_, findings) = support::plan(&meshes, &snapshots);
        let grave: Vec<_> = findings.iter().filter(|it| Severity::Notice < it.severity).collect();
        prop_assert!(grave.is_empty(), "{grave:#?}\n{yaml}");
        let tree = support::tree(&meshes, &snapshots);
        let files = applied(tree.into_iter().map(|(path, text)| (path, text.to_string())));
        let sites = meshes[0].entries.iter().map(|it| site(it, &snapshots, &files));
        let fabric = Fabric::new(sites.collect());
        let reach = Reach::new(&fabric, u64::MAX);
        let verification = verify(&reach, Asked { meshes: &meshes, lists_undeclared: false, allowed: None });
        prop_assert!(verification.holds(), "{yaml}");
        let nodes = (east.nodes.len() * west.nodes.len()) as u64;
        prop_assert!(nodes <= verification.total().promised, "{yaml}");
    }
}
