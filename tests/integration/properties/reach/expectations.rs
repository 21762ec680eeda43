//! Expectations against following every packet that they are about.

use std::sync::Arc;

use super::*;
use clustermesh::agent::fabric::AwakeClusters;
use clustermesh::document::Source;
use clustermesh::expectations::{self, Expectation, Expected, Selection};
use clustermesh::mesh::{Group, KnownGroups, PodSource};
use clustermesh::net::{Cidr, family};
use clustermesh::packet::Ending;
use clustermesh::packet::trace::Trace;
use clustermesh::place::Place;
use clustermesh::proof::expectation::{Check, check};

/// One side of an expectation.
#[derive(Clone, Debug)]
struct Side {
    clusters: Vec<u8>,
    label: Option<&'static str>,
    addresses: Vec<String>,
    class: Option<&'static str>,
}

impl Side {
    fn written(&self) -> Value {
        let mut side = json!({});
        match self.clusters.as_slice() {
            [] => {}
            [cluster] => side["cluster"] = json!(format!("c{cluster}")),
            // The group of the first two.
            [0, 1] => side["group"] = json!("pair"),
            several => {
                let names = several.iter().map(|it| format!("c{it}"));
                side["clusters"] = json!(names.collect::<Vec<_>>());
            }
        }
        if let Some(label) = self.label {
            side["nodeSelector"] = json!({ "matchLabels": { "at": label } });
        }
        if !self.addresses.is_empty() {
            side["addresses"] = json!(self.addresses);
        }
        side
    }
}

fn side(classes: &[&'static str]) -> impl Strategy<Value = Side> {
    let classes: Vec<Option<&'static str>> =
        classes.iter().copied().map(Some).chain([None]).collect();
    (
        prop_oneof![
            2 => Just(Vec::new()),
            2 => (0..4u8).prop_map(|it| vec![it]),
            1 => prop::sample::subsequence(vec![0, 1, 2, 3], 2..4),
        ],
        prop::option::weighted(0.2, select(vec!["x", "y", "z"])),
        prop_oneof![
            2 => Just(Vec::new()),
            1 => prop::collection::vec(range(), 1..4),
        ],
        select(classes),
    )
        .prop_map(|(clusters, label, addresses, class)| Side {
            clusters,
            label,
            addresses,
            class,
        })
}

/// The text of an expectation, if it matches anything.
pub(super) fn written() -> impl Strategy<Value = Value> {
    let from = side(&["Pod", "Node"]);
    let to = side(&["Pod", "Node", "Service", "Network"]);
    (from, to, any::<bool>()).prop_map(|(from, mut to, reaches)| {
        if matches!(to.class, Some("Service" | "Network")) {
            to.label = None;
        }
        let mut sides = [from.written(), to.written()];
        for side in &mut sides {
            if side == &json!({}) {
                side["nodeSelector"] = json!({});
            }
        }
        if matches!(to.class, Some("Service" | "Network")) && to.written() == json!({}) {
            sides[1] = json!({ "cluster": "c0" });
        }
        let [mut from_side, to_side] = sides;
        if let Some(class) = from.class {
            from_side["class"] = json!(class);
        }
        let expect = if reaches { "Reach" } else { "Deny" };
        let mut written = json!({ "from": from_side, "to": to_side, "expect": expect });
        if let Some(class) = to.class {
            written["class"] = json!(class);
        }
        written
    })
}

pub(super) fn read(written: &[Value]) -> Vec<Expectation> {
    let text = json!({
        "apiVersion": "kilo-clustermesh.io/v1",
        "kind": "Expectations",
        "spec": written,
    });
    let source = Source::parse("expectations.yaml", text.to_string()).unwrap();
    let pair = Group {
        name: "pair".to_owned(),
        clusters: ["c0", "c1"].map(|it| it.parse().unwrap()).to_vec(),
        place: Place::document(&"mesh.yaml".into(), 0),
    };
    let (groups, _) = KnownGroups::new([&pair]);
    let read = expectations::read(&source, &groups);
    read.unwrap_or_else(|it| panic!("{it:?}\n{text}")).expectations
}

/// Whether an address is one of those that a side means, looked at by itself.
pub(super) fn is_meant(selection: &Selection, site: &Site, owner: Owner, address: IpAddr) -> bool {
    let labels = owner.node().map(|it| &site.snapshot_of(it).labels);
    let is_class = selection.class.is_none_or(|class| owner.class() == Some(class));
    let clusters = selection.clusters.as_ref();
    clusters.is_none_or(|it| it.members.contains_key(site.cluster))
        && is_class
        && selection.nodes.as_ref().is_none_or(|it| labels.is_some_and(|labels| it.matches(labels)))
        && (selection.addresses.is_empty()
            || selection.addresses.iter().any(|it| it.holds(address)))
}

/// All owned addresses, whether Kilo counts the node or not.
fn everything(site: &Site) -> Vec<(AddressBlock, bool)> {
    let mut all: Vec<(AddressBlock, bool)> =
        address_blocks(site).into_iter().map(|it| (it, true)).collect();
    for (number, node) in site.model.topology.nodes.numbered() {
        if node.segment.is_none() {
            let pods = node.kilo.pods().map(Span::new).map(|span| (Owner::Pods(number), span));
            let own = node
                .kilo
                .internal_address()
                .map(Span::host)
                .map(|span| (Owner::Node(number), span));
            all.extend(pods.chain(own).map(|(owner, span)| (AddressBlock { owner, span }, false)));
        }
    }
    all
}

/// The addresses of a block that a side means and between any two of which something may change.
fn meant(fabric: &Fabric, site: &Site, selection: &Selection, block: AddressBlock) -> Vec<IpAddr> {
    let mut numbers: BTreeSet<IpAddr> = samples(fabric, block).into_iter().collect();
    let ranges: Vec<Cidr> = selection.addresses.clone();
    let ends = ranges.iter().flat_map(|it| [it.first(), it.last()]);
    numbers.extend(ends.filter(|it| block.span.holds(Span::host(*it))));
    numbers.retain(|it| is_meant(selection, site, block.owner, *it));
    numbers.into_iter().collect()
}

fn breaks(expected: Expected, trace: &Trace) -> bool {
    let there = &trace.there.ending;
    match expected {
        Expected::Reach => !(there.is_delivered() && trace.ending().is_delivered()),
        // WireGuard works on without the agent of another node.
        Expected::Deny => match there {
            Ending::Ambiguous { .. } => true,
            Ending::NotReady { node } => *node != trace.packet.from,
            _ => there.is_delivered(),
        },
    }
}

/// The result of following every packet: how many pairs of owners have any, and how many of these
/// break the expectation.
fn followed_all(fabric: &Fabric, expectation: &Expectation) -> (u64, u64) {
    let (mut pairs, mut broken) = (0, 0);
    for (from, home) in fabric.sites.numbered() {
        for (to, away) in fabric.sites.numbered() {
            if from == to {
                continue;
            }
            for (sender, is_up) in everything(home) {
                let Some(node) = sender.owner.node() else {
                    continue;
                };
                let sources = meant(fabric, home, &expectation.from, sender);
                for (receiver, is_there) in everything(away) {
                    let destinations = meant(fabric, away, &expectation.to, receiver);
                    let is_one_family = sender.span.family == receiver.span.family;
                    if sources.is_empty() || destinations.is_empty() || !is_one_family {
                        continue;
                    }
                    pairs += 1;
                    if expectation.expected == Expected::Deny && !(is_up && is_there) {
                        continue;
                    }
                    let packets = sources
                        .iter()
                        .flat_map(|source| destinations.iter().map(move |it| (*source, *it)));
                    let exchange = |source, destination| {
                        fabric.exchange(Packet {
                            from: NodeRef { site: from, node },
                            source,
                            to: goal(to, receiver.owner),
                            destination,
                            session: Session::New,
                        })
                    };
                    let traces: Vec<Trace> = packets
                        .map(|(source, destination)| exchange(source, destination))
                        .collect();
                    // A network plugin may replace the address of a pod by one of its node, unless people declare that it
                    // does not. A packet that is not rejected for its source is lost with any other one, too.
                    let is_pod = matches!(sender.owner, Owner::Pods(_))
                        && home.entry.pod_source != Some(PodSource::Kept);
                    let may_be_masked = is_pod && expectation.expected == Expected::Deny;
                    let rejected = traces.iter().filter(|it| {
                        may_be_masked && matches!(it.there.ending, Ending::SourceRejected { .. })
                    });
                    let rejected: BTreeSet<IpAddr> =
                        rejected.map(|it| it.packet.destination).collect();
                    let masks = home.masks(node, sender.span.family);
                    let mut masked = masks.flat_map(|source| {
                        rejected.iter().map(move |it| (source, *it)).collect::<Vec<_>>()
                    });
                    let is_broken = traces.iter().any(|it| breaks(expectation.expected, it))
                        || masked.any(|(source, it)| {
                            breaks(expectation.expected, &exchange(source, it))
                        });
                    broken += u64::from(is_broken);
                }
            }
        }
    }
    (pairs, broken)
}

fn owner_in(
    fabric: &Fabric,
    selection: &Selection,
    site: SiteId,
    goal: Goal,
    address: IpAddr,
) -> bool {
    let site = &fabric.sites[site];
    let all = everything(site).into_iter().map(|it| it.0);
    let mut of = all.filter(|it| it.span.holds(Span::host(address)));
    of.any(|it| {
        let node = match goal {
            Goal::Node(at) => it.owner.node() == Some(at.node),
            Goal::Services(_) => it.owner == Owner::Services,
            Goal::Network(_) => it.owner == Owner::Network,
        };
        node && is_meant(selection, site, it.owner, address)
    })
}

/// Compares the proof of expectations with following every packet that they are about.
fn agrees(world: &World, written: &[Value]) {
    let mut input = input(world);
    for (name, file) in &mut input.snapshots {
        for node in &mut Arc::make_mut(&mut file.snapshot).nodes {
            let at = if name.as_str() == "c0" || node.name == "n1" { "x" } else { "y" };
            node.labels.insert("at", at);
        }
    }
    let fabric = fabric(&input);
    let awake = AwakeClusters::find(&fabric);
    let open = awake.open(&fabric);
    let as_is = fabric.with_versions(BTreeMap::new());
    let reach = Reach::new(&fabric, u64::MAX);
    let expectations = read(written);
    for check in check(&reach, &expectations, &|_| false) {
        let fabric = match check.expectation.expected {
            Expected::Reach => &as_is,
            Expected::Deny => &open,
        };
        checks(fabric, &check);
    }
}

fn checks(fabric: &Fabric, check: &Check) {
    let Check { expectation, pairs, broken, excused, counterexample, unmatched, .. } = check;
    let failing = check.failing();
    let (every, breaking) = followed_all(fabric, expectation);
    let is_plain = expectation.from.addresses.is_empty() && expectation.to.addresses.is_empty();
    if is_plain {
        assert_eq!((*pairs, failing), (every, breaking), "{expectation:?}");
        assert!(*excused == 0 || expectation.expected == Expected::Reach);
    }
    assert_eq!(*pairs == 0, every == 0);
    assert_eq!(failing == 0, breaking == 0, "{expectation:?}");
    assert!(0 < *pairs || !unmatched.is_empty());
    assert_eq!(counterexample.is_some(), 0 < *broken);
    assert!(failing <= *pairs);
    let Some(shown) = counterexample else { return };
    let packet = shown.packet;
    assert!(breaks(expectation.expected, &fabric.exchange(packet)));
    let sender = Goal::Node(packet.from);
    let home = fabric.site(packet.from.site);
    let mut masks = home.masks(packet.from.node, family(packet.source));
    let is_masked = masks.any(|it| it == packet.source) && expectation.expected == Expected::Deny;
    let site = packet.from.site;
    let is_sender = owner_in(fabric, &expectation.from, site, sender, packet.source);
    assert!(is_sender || is_masked);
    let site = packet.to.site();
    assert!(owner_in(fabric, &expectation.to, site, packet.to, packet.destination));
}

proptest! {
    #![proptest_config(ProptestConfig { cases: cases(200), failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn expectations_are_what_every_packet_of_theirs_does(
        world in world(),
        written in prop::collection::vec(written(), 1..6),
    ) {
        agrees(&world, &written);
    }
}

fn spec(host: u8, lan: Lan, pods: Pods, key: u8) -> Spec {
    Spec {
        location: "x",
        host,
        lan,
        pods,
        shown: Shown::V4,
        found: Found::Forced,
        calls: false,
        stale: false,
        flaw: Flaw::None,
        key,
    }
}

fn two_clusters(addresses: Addresses, clusters: [(&'static str, bool, Vec<Spec>); 2]) -> World {
    let clusters = clusters.map(|(granularity, is_flat, nodes)| Cluster {
        granularity,
        reported: None,
        is_flat,
        secret: None,
        is_beside_plugin: false,
        underlay: None,
        services: None,
        nodes,
    });
    World {
        topology: "{ mode: FullMesh }",
        addresses,
        clusters: clusters.to_vec(),
        externals: Vec::new(),
        faults: Vec::new(),
    }
}

/// The receivers have the sender's address themselves, at a node with the key of another one.
#[test]
fn a_copied_key_makes_a_masked_sender_uncertain() {
    let sender = spec(2, Lan::Shared(24), Pods::V4, 1);
    let receivers = vec![
        spec(0, Lan::V6, Pods::V6AndV4, 3),
        spec(14, Lan::Shared(24), Pods::V4, 2),
        spec(0, Lan::None, Pods::V6AndV4, 2),
    ];
    let clusters = [("Full", true, vec![sender]), ("Full", false, receivers)];
    let denial = json!({
        "from": { "cluster": "c0" },
        "to": { "cluster": "c1" },
        "class": "Service",
        "expect": "Deny",
    });
    agrees(&two_clusters(Addresses::Shared, clusters), &[denial]);
}

/// Each of the two nodes of a location may lead, and only one of them has the Peer in the other cluster.
#[test]
fn two_holders_of_the_lead_make_a_masked_sender_uncertain() {
    let sender = Spec { stale: true, ..spec(0, Lan::Shared(24), Pods::V4, 0) };
    let holders = vec![sender, spec(0, Lan::Shared(24), Pods::V4, 1)];
    let receiver = spec(0, Lan::None, Pods::OfFirst, 16);
    let clusters = [("Location", false, holders), ("Full", false, vec![receiver])];
    let denial = json!({
        "from": { "nodeSelector": {} },
        "to": { "nodeSelector": {} },
        "expect": "Deny",
    });
    agrees(&two_clusters(Addresses::Own, clusters), &[denial]);
}

/// An edit of how nodes are dialled.
fn redialled() -> impl Strategy<Value = Fault> {
    prop_oneof![
        2 => select(vec!["192.0.2.1", "127.0.0.1", "192.168.0.14", "10.4.0.1", "fd00::14"])
            .prop_map(|it| Fault::Endpoint(it.to_owned())),
        1 => Just(Fault::NoEndpoint),
        1 => Just(Fault::NoKeepalive),
    ]
}

proptest! {
    #![proptest_config(ProptestConfig { cases: cases(100), failure_persistence: None, ..ProptestConfig::default() })]

    /// A node with the keys and ranges can dial in from any address, so only these decide.
    #[test]
    fn no_edit_of_endpoints_meets_a_denial(
        world in world(),
        edits in prop::collection::vec((any::<Index>(), any::<Index>(), redialled()), 1..8),
        calling in any::<bool>(),
        mut written in prop::collection::vec(written(), 1..6),
    ) {
        for it in &mut written {
            it["expect"] = json!("Deny");
        }
        let expectations = read(&written);
        let broken = |input: &Input| -> Vec<u64> {
            let fabric = fabric(input);
            let reach = Reach::new(&fabric, u64::MAX);
            check(&reach, &expectations, &|_| false).iter().map(|it| it.broken).collect()
        };
        let before = broken(&input(&world));
        let mut edited = world;
        edited.faults.extend(edits);
        let mut edited = input(&edited);
        for file in edited.snapshots.values_mut() {
            for node in &mut Arc::make_mut(&mut file.snapshot).nodes {
                let seconds = if calling { "25" } else { "0" };
                node.annotations.insert("kilo.squat.ai/persistent-keepalive", seconds);
            }
        }
        prop_assert_eq!(before, broken(&edited));
    }
}

/// Two nodes report one address, which the range of another cluster contains: it is uncertain which of them gets the
/// packets, although no packet leaves for the other cluster.
#[test]
fn an_address_of_two_nodes_is_not_kept_out() {
    let spec = |host, lan, key| Spec { host, lan, key, ..PLAIN };
    let shared = [(0, 28), (14, 24), (14, 24)].into_iter().zip(1..);
    let world = World {
        topology: "{ mode: FullMesh }",
        addresses: Addresses::Apart,
        clusters: vec![
            cluster(
                shared.map(|((host, length), key)| spec(host, Lan::Shared(length), key)).collect(),
            ),
            // With the key of a node of the first cluster, so that no Peer leads here.
            cluster(vec![spec(0, Lan::V6, 1)]),
        ],
        externals: Vec::new(),
        faults: Vec::new(),
    };
    let input = input(&world);
    let fabric = fabric(&input);
    let expectations = read(&[json!({
        "expect": "Deny",
        "from": { "cluster": "c0", "class": "Pod" },
        "to": { "cluster": "c1", "addresses": ["192.168.0.0/24"] },
        "class": "Network",
    })]);
    let reach = Reach::new(&fabric, u64::MAX);
    let [check] = check(&reach, &expectations, &|_| false).try_into().ok().unwrap();
    assert_eq!((check.pairs, check.broken), (3, 1));
    assert_eq!(followed_all(&fabric, check.expectation), (3, 1));
}

/// The leader of a location has no route to the receiver, for any address of the sender.
#[test]
fn a_lost_hop_is_lost_for_masked_senders_too() {
    let sender = spec(10, Lan::Shared(24), Pods::V4, 0);
    let receiver =
        |location, host, pods, key| Spec { location, ..spec(host, Lan::Shared(24), pods, key) };
    let receivers = vec![
        Spec { flaw: Flaw::NoWireguardIp, ..receiver("z", 0, Pods::V4, 16) },
        receiver("y", 0, Pods::OfFirst, 17),
        receiver("z", 14, Pods::V4, 18),
        receiver("y", 4, Pods::OfFirst, 19),
    ];
    let clusters = [("Full", false, vec![sender]), ("Full", false, receivers)];
    let mut world = two_clusters(Addresses::Shared, clusters);
    world.clusters[1].reported = Some("location");
    let denial = json!({
        "from": { "class": "Pod", "nodeSelector": {} },
        "to": { "nodeSelector": {} },
        "class": "Pod",
        "expect": "Deny",
    });
    agrees(&world, &[denial]);
}
