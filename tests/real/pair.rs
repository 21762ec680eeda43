//! Pairs: who sends to whom.

use std::fmt;
use std::net::Ipv4Addr;

use crate::world::World;

/// What a packet is.
#[derive(Clone, Copy, Debug, Eq, Ord, PartialEq, PartialOrd)]
pub(crate) enum Class {
    /// From a pod to a pod.
    Pod,
    /// From a node to a node, by their internal addresses.
    Node,
    /// From a node, by its internal address, to a pod.
    NodeToPod,
    /// From a pod to a service.
    Service,
    /// From a pod to a network behind an external peer.
    Network,
}

/// Who sends to whom.
#[derive(Clone, Debug)]
pub(crate) struct Pair {
    pub(crate) class: Class,
    /// As the program's users name it: `cluster/address`.
    pub(crate) from: (String, Ipv4Addr),
    pub(crate) to: (String, Ipv4Addr),
    /// Whether the mesh links their clusters.
    pub(crate) is_linked: bool,
}

impl fmt::Display for Class {
    fn fmt(&self, f: &mut fmt::Formatter) -> fmt::Result {
        f.write_str(match self {
            Self::Pod => "pod to pod",
            Self::Node => "node to node",
            Self::NodeToPod => "node to pod",
            Self::Service => "pod to service",
            Self::Network => "pod to network",
        })
    }
}

impl fmt::Display for Pair {
    fn fmt(&self, f: &mut fmt::Formatter) -> fmt::Result {
        let Self { class, from, to, .. } = self;
        write!(f, "{class}, {}/{} to {}/{}", from.0, from.1, to.0, to.1)
    }
}

/// Returns every ordered pair of external peers, and of one and a node, in every class.
fn pairs_of_externals(world: &World) -> Vec<Pair> {
    let mut pairs = Vec::new();
    for external in &world.externals {
        let own = (external.member(), external.address);
        let mut pair = |class, from, to, is_linked| {
            pairs.push(Pair { class, from, to, is_linked });
        };
        for cluster in &world.clusters {
            let is_linked = external.clusters.contains(&cluster.name);
            let its = |address| (cluster.name.clone(), address);
            for node in &cluster.nodes {
                pair(Class::Pod, own.clone(), its(node.pod()), is_linked);
                pair(Class::Pod, its(node.pod()), own.clone(), is_linked);
                pair(Class::Node, own.clone(), its(node.internal()), is_linked);
                pair(Class::NodeToPod, its(node.internal()), own.clone(), is_linked);
                if let Some(other) = external.other {
                    let there = (external.member(), other);
                    pair(Class::Network, its(node.pod()), there, is_linked);
                }
            }
            if cluster.declares_services {
                pair(Class::Service, own.clone(), its(cluster.service()), is_linked);
            }
        }
        for other in world.externals.iter().filter(|it| it.name != external.name) {
            let there = (other.member(), other.address);
            pair(Class::Pod, own.clone(), there, false);
        }
    }
    pairs
}

/// Returns every ordered pair of nodes of different clusters, in every class, and those of external peers.
pub(crate) fn pairs(world: &World) -> Vec<Pair> {
    let mut pairs = pairs_of_externals(world);
    for source in &world.clusters {
        for target in &world.clusters {
            if source.name == target.name {
                continue;
            }
            let mut pair = |class, from, to| {
                pairs.push(Pair {
                    class,
                    from: (source.name.clone(), from),
                    to: (target.name.clone(), to),
                    is_linked: world.links(source, target),
                });
            };
            for from in &source.nodes {
                for to in &target.nodes {
                    pair(Class::Pod, from.pod(), to.pod());
                    pair(Class::Node, from.internal(), to.internal());
                    pair(Class::NodeToPod, from.internal(), to.pod());
                }
                if target.declares_services {
                    pair(Class::Service, from.pod(), target.service());
                }
            }
        }
    }
    pairs
}
