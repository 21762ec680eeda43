//! Conflicts: which addresses of one cluster are in declared ranges of another, computed once for
//! all targets.
//!
//! In most fleets nothing does, and no target has to look at anything then.

use std::cell::OnceCell;
use std::collections::BTreeMap;
use std::net::IpAddr;

use super::own_loops::{self, Inside, OwnLoops};
use super::withheld::LocalAddress;
use crate::fleet::{Fleet, Member, MemberId, Members};
use crate::kilo::id::NodeId;
use crate::membership::{CandidateId, LocalNode};
use crate::mesh::{Entry, Networks, Range};
use crate::name::ClusterName;
use crate::net::Cidr;
use crate::net::prefixes::Prefixes;

/// Facts about all members, collected before the first target is examined.
pub(super) struct Conflicts<'f> {
    pub(super) fleet: &'f Fleet<'f>,
    /// The loops of each member inside its own cluster, for every target.
    own_loops: Members<OwnLoops>,
    /// Of each member, the endpoints of its candidates that are in ranges of other clusters, by
    /// these.
    endpoints: Members<ConflictsByCluster<'f>>,
    /// Of each member, the endpoints of its candidates that are in ranges in which only another cluster has
    /// addresses, by that cluster.
    foreign_endpoints: Members<ConflictsByCluster<'f>>,
    /// Of each member, what its nodes have of their own that meets ranges of other clusters.
    local_nodes: Members<ConflictsByCluster<'f>>,
    /// All ranges of each member that was requested.
    given: Members<OnceCell<Prefixes<()>>>,
}

/// The conflicts with ranges of other clusters, by cluster.
pub(super) type ConflictsByCluster<'f> = BTreeMap<&'f ClusterName, Vec<Conflict<'f>>>;

/// Something that meets a declared range of another cluster.
pub(super) struct Conflict<'f> {
    /// The local nodes that have it.
    pub(super) nodes: Vec<NodeId>,
    pub(super) what: Conflicting,
    pub(super) range: &'f Range,
}

/// An address or network that is inside a range.
#[derive(Clone, Copy, Eq, Ord, PartialEq, PartialOrd)]
pub(super) enum Conflicting {
    /// Of a source's Peer.
    Endpoint(CandidateId, IpAddr),
    /// An address or network of a node of the target.
    Own(LocalAddress),
    /// A network in the target's entry, with its index in that list.
    Local(Cidr, usize),
}

/// Every declared range of the fleet.
type OwnedRanges<'f> = Prefixes<OwnedRange<'f>>;

/// A declared range of a cluster.
struct OwnedRange<'f> {
    cluster: &'f ClusterName,
    range: &'f Range,
    /// Whether other clusters may get addresses in it.
    is_given: bool,
    /// Whether only the cluster itself has addresses in it.
    is_exclusive: bool,
}

impl<'f> OwnedRange<'f> {
    fn all_of(entry: &'f Entry) -> impl Iterator<Item = (Cidr, Self)> {
        let exclusive = entry.networks.exclusive();
        entry.networks.all().into_iter().map(move |range| {
            let declared = Self {
                cluster: &entry.name,
                range,
                is_given: !entry.keeps(range),
                is_exclusive: exclusive.contains(&range),
            };
            (range.cidr, declared)
        })
    }
}

impl<'f> Conflicts<'f> {
    pub(super) fn new(fleet: &'f Fleet<'f>) -> Self {
        // All meshes have the same ranges of a cluster, so the first one is used.
        let declared: OwnedRanges =
            fleet.first_memberships_of_all().flat_map(|it| OwnedRange::all_of(it.entry)).collect();
        let mut conflicts = Self {
            fleet,
            own_loops: Members::default(),
            endpoints: Members::default(),
            foreign_endpoints: Members::default(),
            local_nodes: Members::default(),
            given: fleet.members().map(|_| OnceCell::new()),
        };
        for member in fleet.members() {
            let found = DialledAddresses::find(member, &declared);
            conflicts.endpoints.push(found.conflicts);
            conflicts.foreign_endpoints.push(found.foreign);
            conflicts.local_nodes.push(local_nodes(member, &declared));
            let own_loops = own_loops::own_loops(member, found.inside);
            conflicts.own_loops.push(own_loops);
        }
        conflicts
    }

    /// Returns what a member leaves out for its own sake.
    pub(super) fn own_loops(&self, member: MemberId) -> &OwnLoops {
        &self.own_loops[member]
    }

    /// Returns which endpoints of a member are in ranges of other clusters.
    pub(super) fn endpoints(
        &self,
        member: MemberId,
    ) -> impl Iterator<Item = (&'f ClusterName, &[Conflict<'f>])> {
        let meetings = self.endpoints[member].iter();
        meetings.map(|(cluster, meetings)| (*cluster, meetings.as_slice()))
    }

    /// Returns which endpoints of a member are in ranges in which only a target has addresses.
    pub(super) fn foreign_endpoints(
        &self,
        member: MemberId,
        target: &ClusterName,
    ) -> &[Conflict<'f>] {
        self.foreign_endpoints[member].get(target).map_or(&[], Vec::as_slice)
    }

    /// Returns what a member's nodes have of their own that meets ranges of one other cluster.
    pub(super) fn local_nodes(&self, member: MemberId, cluster: &ClusterName) -> &[Conflict<'f>] {
        self.local_nodes[member].get(cluster).map_or(&[], Vec::as_slice)
    }

    /// Returns everything that a member gives to anyone: what it leaves out for its own sake is not
    /// among it.
    pub(super) fn given(&self, member: MemberId) -> &Prefixes<()> {
        let own_loops = self.own_loops(member);
        self.given[member].get_or_init(|| {
            self.fleet.members()[member]
                .given()
                .filter(|range| !own_loops.withheld.contains(range))
                .map(|range| (range, ()))
                .collect()
        })
    }
}

/// The candidates of a member whose endpoints are in declared ranges.
#[derive(Default)]
struct DialledAddresses<'f> {
    /// In ranges of other clusters.
    conflicts: ConflictsByCluster<'f>,
    /// In ranges in which only another cluster has addresses.
    foreign: ConflictsByCluster<'f>,
    /// In ranges of their own cluster.
    inside: Vec<Inside>,
}

impl<'f> DialledAddresses<'f> {
    fn find(member: &'f Member<'f>, declared: &OwnedRanges<'f>) -> Self {
        let mut found = Self::default();
        for (candidate, it) in member.membership.candidates.numbered() {
            let Some(address) = it.outer_address() else {
                continue;
            };
            let mut is_inside = false;
            for (_, holder) in declared.holders(address) {
                let conflict = || Conflict {
                    nodes: Vec::new(),
                    what: Conflicting::Endpoint(candidate, address),
                    range: holder.range,
                };
                if *holder.cluster == member.entry.name {
                    is_inside |= holder.is_given;
                    continue;
                }
                if holder.is_given {
                    found.conflicts.entry(holder.cluster).or_default().push(conflict());
                }
                if holder.is_exclusive && it.endpoint.is_some() {
                    found.foreign.entry(holder.cluster).or_default().push(conflict());
                }
            }
            let inside = is_inside.then_some(Inside { candidate, address });
            found.inside.extend(inside);
        }
        found
    }
}

/// Returns what the nodes of a member have of their own that meets ranges of other clusters.
fn local_nodes<'f>(member: &'f Member<'f>, declared: &OwnedRanges<'f>) -> ConflictsByCluster<'f> {
    let mut meetings = ConflictsByCluster::new();
    let own = &member.entry.name;
    let mut add = |nodes: &[NodeId], what: Conflicting, met: &OwnedRange<'f>| {
        if met.is_given && met.cluster != own {
            meetings.entry(met.cluster).or_default().push(Conflict {
                nodes: nodes.to_vec(),
                what,
                range: met.range,
            });
        }
    };
    for (index, local) in member.entry.local_networks.iter().enumerate() {
        let what = Conflicting::Local(local.cidr, index);
        let around = declared.containing(local.cidr).filter(|it| it.0 != local.cidr);
        for (_, met) in around.chain(declared.inside(local.cidr)) {
            add(&[], what, met);
        }
    }
    // Networks first: a range that contains the network also contains the node's address, and one
    // reason is enough.
    for (lan, nodes) in &lans(member) {
        let what = Conflicting::Own(LocalAddress::Lan(*lan));
        let around = declared.containing(*lan).filter(|(range, _)| range != lan);
        for (_, met) in around.chain(declared.inside(*lan)) {
            add(nodes, what, met);
        }
    }
    for home in &member.membership.local_nodes {
        for (what, address) in points(home) {
            for (_, met) in declared.holders(address) {
                add(&[home.node], what, met);
            }
        }
    }
    meetings
}

/// Returns the networks of the nodes of a member, with these nodes.
fn lans(member: &Member) -> BTreeMap<Cidr, Vec<NodeId>> {
    let mut lans: BTreeMap<Cidr, Vec<NodeId>> = BTreeMap::new();
    for home in &member.membership.local_nodes {
        if let Some(lan) = home.networks.lan {
            lans.entry(lan).or_default().push(home.node);
        }
    }
    lans
}

/// Returns the addresses that a node has, each with what it is. Its pods and its WireGuard address
/// are in what its own cluster declares, which no other declares too.
fn points(home: &LocalNode) -> impl Iterator<Item = (Conflicting, IpAddr)> {
    let endpoints =
        home.endpoints.iter().map(|it| (Conflicting::Own(LocalAddress::Endpoint(*it)), *it));
    let addresses =
        home.addresses.iter().map(|it| (Conflicting::Own(LocalAddress::Address(*it)), *it));
    endpoints.chain(addresses)
}

impl Conflicting {
    /// Returns what of the ranges that a member gives it meets.
    pub(super) fn met(self, given: &Prefixes<()>) -> Vec<Cidr> {
        let cidrs = |it: (Cidr, &())| it.0;
        match self {
            Self::Endpoint(_, address)
            | Self::Own(LocalAddress::Endpoint(address) | LocalAddress::Address(address)) => {
                given.holders(address).map(cidrs).collect()
            }
            Self::Own(LocalAddress::Lan(network)) | Self::Local(network, _) => {
                let around = given.containing(network).filter(|it| it.0 != network);
                around.chain(given.inside(network)).map(cidrs).collect()
            }
        }
    }
}

/// Returns whether an entry declares the purpose of its ranges.
pub(super) fn is_typed(member: &Member) -> bool {
    matches!(member.entry.networks, Networks::Typed { .. })
}
