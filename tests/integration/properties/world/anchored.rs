//! Worlds in which named nodes share the services of their cluster, and come and go.

use proptest::prelude::*;
use proptest::sample::select;

use super::{Anchor, Cluster, World, declared, honest};

/// How a node is lost.
#[derive(Clone, Copy, Debug)]
pub(in super::super) enum Loss {
    Silent,
    LeftOut,
    Deleted,
}

/// A cluster whose services are spread over some of its nodes, and what is lost of these.
#[derive(Clone, Debug)]
pub(in super::super) struct Anchored {
    /// The first cluster is the one with the services. Nothing is lost here.
    world: World,
    /// The named nodes, the best first.
    pub(in super::super) named: Vec<String>,
    /// The number of parts.
    pub(in super::super) count: usize,
    /// Places among the named nodes: what is lost before.
    pub(in super::super) lost: Vec<(usize, Loss)>,
    /// One more.
    pub(in super::super) next: (usize, Loss),
}

impl Anchored {
    /// Returns the world without what is lost.
    pub(in super::super) fn without(&self, lost: &[(usize, Loss)]) -> World {
        let mut world = self.world.clone();
        let nodes = &mut world.clusters[0].nodes;
        for &(place, loss) in lost {
            let of_name = |it: &super::Claims| it.name == self.named[place];
            let at = nodes.iter().position(of_name).unwrap();
            match loss {
                Loss::Silent => nodes[at].stale = true,
                Loss::LeftOut => nodes[at].wireguard = None,
                Loss::Deleted => drop(nodes.remove(at)),
            }
        }
        world
    }
}

/// Draws up to ten named nodes, in any order, and some beside them.
pub(in super::super) fn anchored() -> impl Strategy<Value = Anchored> {
    (select(vec![2usize, 4, 8]), 0..9usize, 0..3usize).prop_flat_map(|(count, spare, unnamed)| {
        let all = (count + 1 + spare).min(10);
        let order = Just((0..all).collect::<Vec<_>>()).prop_shuffle();
        // Of the named nodes, as many are left as there are parts.
        let lost = proptest::sample::subsequence((0..all).collect::<Vec<_>>(), 1..=all - count);
        let lost = lost.prop_shuffle();
        let losses = vec![Loss::Silent, Loss::LeftOut, Loss::Deleted];
        let losses = proptest::collection::vec(select(losses), all);
        (order, lost, losses).prop_map(move |(order, lost, losses)| {
            let named: Vec<String> = order.iter().map(|it| format!("node-{it}")).collect();
            let anchor = Anchor {
                ranges: Some(declared(0)[3].clone()),
                nodes: named.clone(),
                count: u16::try_from(count).unwrap(),
            };
            let cluster = |i: usize, nodes: usize, anchors| Cluster {
                anchors,
                advertise: None,
                nodes: (0..nodes).map(|position| honest(i, position)).collect(),
                ..Cluster::plain("Full")
            };
            let mut lost: Vec<(usize, Loss)> = lost.into_iter().zip(losses).collect();
            let next = lost.pop().unwrap();
            Anchored {
                world: World {
                    topology: "{ mode: FullMesh }",
                    clusters: vec![cluster(0, all + unnamed, vec![anchor]), cluster(1, 2, vec![])],
                    externals: Vec::new(),
                },
                named,
                count,
                lost,
                next,
            }
        })
    })
}
