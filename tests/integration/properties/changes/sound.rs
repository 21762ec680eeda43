//! Versions of sound worlds: most paths work, and nodes come, go and change.

use super::world::honest_cluster;
use super::*;

/// A change of a sound world.
#[derive(Clone, Copy, Debug)]
enum Event {
    NodeJoins,
    NodeLeaves,
    /// A node has another pod CIDR.
    PodsMove,
    /// Another node has the pod CIDR of one that left.
    NodeReplaced,
    /// A node is there and left out.
    KeyMissing,
}

/// Two versions of any world, mostly of a sound one.
pub(super) fn any_versions() -> impl Strategy<Value = (Edition, Edition)> {
    prop_oneof![1 => versions(), 4 => sound_versions()]
}

fn sound_versions() -> impl Strategy<Value = (Edition, Edition)> {
    let events = select(vec![
        Event::NodeJoins,
        Event::NodeJoins,
        Event::NodeLeaves,
        Event::NodeLeaves,
        Event::PodsMove,
        Event::PodsMove,
        Event::NodeReplaced,
        Event::KeyMissing,
    ]);
    let events = proptest::collection::vec((any::<Index>(), any::<Index>(), events), 1..4);
    (sound_edition(), events).prop_map(|(before, events)| {
        let mut after = before.clone();
        for (turn, (cluster, node, event)) in events.into_iter().enumerate() {
            let cluster = cluster.index(after.world.clusters.len());
            let new = NewNode { cluster, turn };
            happen(event, &mut after.world.clusters[cluster].nodes, node, new);
        }
        (before, after)
    })
}

/// A node that no cluster had.
struct NewNode {
    cluster: usize,
    /// The number of the event.
    turn: usize,
}

fn happen(event: Event, nodes: &mut Vec<Claims>, node: Index, NewNode { cluster, turn }: NewNode) {
    if nodes.is_empty() {
        return;
    }
    let place = node.index(nodes.len());
    let number = 50 + turn;
    let new_key = Some(60 + 10 * cluster + turn);
    match event {
        Event::NodeJoins => {
            let like = &nodes[place];
            let dialled = |it: &Option<String>, at: String| it.is_some().then_some(at);
            let joining = Claims {
                name: format!("zz-{number}"),
                pods: vec![format!("10.{cluster}.{number}.0/24")],
                wireguard: Some(format!("100.64.{cluster}.{number}/16")),
                key: new_key,
                endpoint: dialled(&like.endpoint, format!("198.51.{cluster}.{number}:51820")),
                kilo_endpoint: Some(format!("10.200.{cluster}.{number}:51820")),
                internal: Some(format!("10.200.{cluster}.{number}/24")),
                ..like.clone()
            };
            nodes.push(joining);
        }
        Event::NodeLeaves => drop(nodes.remove(place)),
        Event::PodsMove => nodes[place].pods = vec![format!("10.{cluster}.{}.0/24", 70 + turn)],
        Event::NodeReplaced => {
            nodes[place].name = format!("new-{number}");
            nodes[place].key = new_key;
        }
        Event::KeyMissing => nodes[place].key = None,
    }
}

fn sound_edition() -> impl Strategy<Value = Edition> {
    let clusters = proptest::collection::vec((1..4usize, select(vec!["Full", "Location"])), 2..4);
    let silent = proptest::option::weighted(0.5, any::<u8>());
    let behind_nat = proptest::option::weighted(0.5, any::<Index>());
    let topology = select(vec!["{ mode: FullMesh }", "{ mode: Hub, hubs: [m0] }"]);
    (clusters, silent, behind_nat, topology).prop_map(|(clusters, silent, behind_nat, topology)| {
        let clusters = clusters.into_iter().enumerate();
        let clusters = clusters.map(|(number, (count, granularity))| {
            let mut cluster = honest_cluster(number, count, granularity);
            for node in &mut cluster.nodes {
                let is_full = granularity == "Full";
                node.granularity = Some(if is_full { "full" } else { "location" });
            }
            cluster
        });
        let mut world = World { topology, clusters: clusters.collect(), externals: Vec::new() };
        let count = world.clusters.len();
        // The first cluster can be dialled.
        let hidden = behind_nat.map(|it| 1 + it.index(count - 1));
        let none: &mut [Claims] = &mut [];
        let nodes = hidden.map_or(none, |it| &mut world.clusters[it].nodes);
        for node in nodes {
            node.endpoint = None;
            node.kilo_endpoint = node.internal.as_ref().map(|it| it.replace("/24", ":51820"));
        }
        let settings = (0..count).map(|it| Written {
            state: None,
            is_behind_nat: hidden == Some(it),
            selects: false,
        });
        Edition {
            settings: settings.collect(),
            world,
            topologies: Topologies::One(topology),
            foreign: Vec::new(),
            silent,
            annotated: BTreeSet::new(),
        }
    })
}
