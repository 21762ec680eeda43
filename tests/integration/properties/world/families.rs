//! Worlds with nodes of both address families: pod CIDRs, internal addresses and Kilo's subnet.

use clustermesh::net::Family;
use proptest::prelude::*;
use proptest::sample::{Index, select};

use super::{Claims, Cluster, World, honest};

/// The families of a node.
#[derive(Clone, Debug)]
pub(in super::super) struct Families {
    /// Of its pod CIDRs, in their order.
    pub(in super::super) pods: Vec<Family>,
    pub(in super::super) internal: Family,
    pub(in super::super) wireguard: Family,
}

impl Families {
    /// Returns whether all that Kilo routes between nodes is of one family.
    pub(in super::super) fn are_one(&self) -> bool {
        self.pods.first() == Some(&self.internal) && self.wireguard == self.internal
    }

    fn claims(&self, i: usize, position: usize) -> Claims {
        let pods = self.pods.iter().map(|it| match it {
            Family::V4 => format!("10.{i}.{position}.0/24"),
            Family::V6 => format!("fd00:{i}:0:{position}::/64"),
        });
        let mut claims = honest(i, position);
        claims.pods = pods.collect();
        if self.internal == Family::V6 {
            claims.internal = Some(format!("fd01:{i}::{}/64", position + 1));
        }
        if self.wireguard == Family::V6 {
            claims.wireguard = Some(format!("fd00:{i}:0:ffff::{}/112", position + 1));
        }
        claims
    }
}

fn family() -> impl Strategy<Value = Family> {
    select(vec![Family::V4, Family::V6])
}

fn families() -> impl Strategy<Value = Families> {
    let pods = Just(vec![Family::V4, Family::V6]).prop_shuffle();
    (pods, 1..3usize, family(), family()).prop_map(|(mut pods, count, internal, wireguard)| {
        pods.truncate(count);
        Families { pods, internal, wireguard }
    })
}

/// Draws two clusters of two to six nodes, with the families of the nodes of each.
pub(in super::super) fn mixed() -> impl Strategy<Value = (World, Vec<Families>)> {
    let cluster = (families(), 2..7usize);
    proptest::collection::vec(cluster, 2).prop_map(|drawn| {
        let clusters = drawn.iter().enumerate().map(|(i, (families, count))| Cluster {
            flat: true,
            nodes: (0..*count).map(|it| families.claims(i, it)).collect(),
            ..Cluster::plain("Full")
        });
        let world = World {
            topology: "{ mode: FullMesh }",
            clusters: clusters.collect(),
            externals: Vec::new(),
        };
        (world, drawn.into_iter().map(|it| it.0).collect())
    })
}

/// Two clusters of IPv4 nodes, before and after one node of the first one differs from all others of its cluster.
#[derive(Clone, Debug)]
pub(in super::super) struct OddNode {
    pub(in super::super) before: World,
    pub(in super::super) after: World,
    /// The place of the node in its cluster.
    pub(in super::super) odd: usize,
    /// Whether the others show what the pod range is for.
    pub(in super::super) is_outvoted: bool,
    /// Whether every node is a segment of its own.
    pub(in super::super) is_full: bool,
}

/// Draws which nodes are selected too.
pub(in super::super) fn odd_node() -> impl Strategy<Value = OddNode> {
    let pods =
        select(vec![vec![Family::V4], vec![Family::V4, Family::V6], vec![Family::V6, Family::V4]]);
    let nodes = proptest::collection::vec((select(vec!["x", "y"]), any::<bool>()), 3..8);
    let forms = (any::<bool>(), any::<bool>(), select(vec!["Location", "Full"]));
    let first = (pods, nodes, forms).prop_map(|(pods, nodes, (flat, selects, granularity))| {
        let families = Families { pods, internal: Family::V4, wireguard: Family::V4 };
        let nodes = nodes.iter().enumerate().map(|(position, drawn)| Claims {
            location: Some(drawn.0),
            label: drawn.1.then_some("yes"),
            ..families.claims(0, position)
        });
        let second = Cluster {
            nodes: (0..3).map(|it| families.claims(1, it)).collect(),
            ..Cluster::plain("Full")
        };
        let first =
            Cluster { flat, selects, nodes: nodes.collect(), ..Cluster::plain(granularity) };
        World {
            topology: "{ mode: FullMesh }",
            clusters: vec![first, second],
            externals: Vec::new(),
        }
    });
    (first, any::<Index>(), oddity()).prop_map(|(before, odd, oddity)| {
        let first = &before.clusters[0];
        let odd = odd.index(first.nodes.len());
        let mut after = before.clone();
        oddity.apply(&mut after.clusters[0].nodes[odd]);
        OddNode { odd, is_outvoted: first.outvotes(odd), is_full: first.is_full(), before, after }
    })
}

impl Cluster {
    fn is_full(&self) -> bool {
        self.granularity == Some("Full")
    }

    /// Returns whether other nodes than one show what the pod range is for: in more than half
    /// of the segments one of them is selected or leads.
    fn outvotes(&self, odd: usize) -> bool {
        let others = || self.nodes.iter().enumerate().filter(|(at, _)| *at != odd);
        let is_selected = |it: &Claims| !self.selects || it.label.is_some();
        if self.is_full() {
            return 1 < others().filter(|it| is_selected(it.1)).count();
        }
        let mut near = others().filter(|it| it.1.location == self.nodes[odd].location);
        // The first by name leads.
        near.any(|(at, it)| at < odd || is_selected(it))
    }
}

/// What is odd about a node.
#[derive(Clone, Debug)]
enum Oddity {
    Pods(Vec<&'static str>),
    Internal(&'static str),
    Wireguard(Option<&'static str>),
    Silent,
    Selected(bool),
    Several(Vec<Self>),
}

impl Oddity {
    fn apply(&self, claims: &mut Claims) {
        match self {
            Self::Pods(pods) => claims.pods = pods.iter().map(|it| (*it).to_owned()).collect(),
            Self::Internal(address) => claims.internal = Some((*address).to_owned()),
            Self::Wireguard(address) => claims.wireguard = address.map(str::to_owned),
            Self::Silent => claims.stale = true,
            Self::Selected(is_selected) => claims.label = is_selected.then_some("yes"),
            Self::Several(all) => all.iter().for_each(|it| it.apply(claims)),
        }
    }
}

fn oddity() -> impl Strategy<Value = Oddity> {
    let one = prop_oneof![
        select(vec![
            vec![],
            vec!["10.99.9.0/24"],
            vec!["fd00:0:0:9::/64"],
            vec!["fd00:0:0:9::/64", "10.0.9.0/24"],
            vec!["nonsense"],
        ])
        .prop_map(Oddity::Pods),
        select(vec!["fd01:0::9/64", "fd00:1::9/64", "192.168.0.9/24"]).prop_map(Oddity::Internal),
        select(vec![None, Some("100.64.0.99/32"), Some("fd00:0:0:ffff::9/112"), Some("nonsense")])
            .prop_map(Oddity::Wireguard),
        Just(Oddity::Silent),
        any::<bool>().prop_map(Oddity::Selected),
    ];
    proptest::collection::vec(one, 1..4).prop_map(Oddity::Several)
}
