//! Endpoints: which nodes of a cluster are dialled, and from which clusters that cannot work.

use std::collections::BTreeMap;
use std::net::IpAddr;

use crate::fleet::{Fleet, Member};
use crate::kilo::node;
use crate::membership::{Origin, PeerCandidate};
use crate::name::ClusterName;
use crate::net::prefixes::Prefixes;
use crate::net::{Cidr, Families, Family, family, private_network};
use crate::place::Place;
use crate::snapshot::Node;
use crate::wireguard::Endpoint;

/// A node that others dial.
#[derive(Clone, Copy, Debug)]
pub(super) struct DialledEndpoint<'f> {
    /// Its cluster.
    pub(super) member: &'f Member<'f>,
    /// Its Peer.
    pub(super) candidate: &'f PeerCandidate,
    /// The node.
    pub(super) node: &'f Node,
    /// The endpoint.
    pub(super) endpoint: &'f Endpoint,
    /// The origin of the endpoint.
    pub(super) origin: Origin,
}

/// A problem that prevents clusters from dialling each other.
pub(super) enum DialProblem<'f> {
    /// Neither of two clusters can dial the other.
    NoInitiator(DialSide<'f>, DialSide<'f>),
    /// Endpoints of a family that no node of some clusters has.
    OtherFamily(UnreachableEndpoints<'f>),
    /// Private endpoints in networks in which no node of some clusters is.
    OtherNetwork(UnreachableEndpoints<'f>),
}

/// One of two clusters that cannot dial each other.
pub(super) struct DialSide<'f> {
    /// The cluster.
    pub(super) cluster: &'f ClusterName,
    /// The family of its endpoints, if it has any.
    pub(super) family: Option<Family>,
    /// The place of the first one in the snapshot.
    pub(super) place: Option<Place>,
}

/// Endpoints of a cluster that some clusters cannot dial.
pub(super) struct UnreachableEndpoints<'f> {
    /// The first endpoint.
    pub(super) first: DialledEndpoint<'f>,
    /// Its address.
    pub(super) address: IpAddr,
    /// All endpoints.
    pub(super) endpoints: Vec<&'f Endpoint>,
    /// The clusters that cannot dial them.
    pub(super) targets: Vec<&'f ClusterName>,
}

impl<'f> DialledEndpoint<'f> {
    /// Returns the nodes of a cluster that are dialled, in order of name.
    pub(super) fn all(member: &'f Member<'f>) -> Vec<Self> {
        let dialled = member.membership.candidates.iter().filter_map(|candidate| {
            Some(Self {
                member,
                candidate,
                node: member.node(candidate.leader.as_str())?,
                endpoint: candidate.endpoint.as_ref()?,
                origin: candidate.origin?,
            })
        });
        dialled.collect()
    }

    /// Returns the address that is dialled, if it is not behind a name.
    pub(super) fn address(&self) -> Option<IpAddr> {
        self.endpoint.address()
    }

    /// Returns where the snapshot has the endpoint.
    pub(super) fn place(&self) -> Place {
        self.member.endpoint_place(self.candidate)
    }

    /// Returns where Kilo itself dials the node, and the annotation with that endpoint.
    pub(super) fn of_kilo(&self) -> Option<(&'static str, Endpoint)> {
        node::listening(self.node)
    }
}

/// Returns which clusters cannot dial which endpoints.
pub(super) fn problems<'f>(
    fleet: &'f Fleet<'f>,
    members: &[&'f Member<'f>],
) -> Vec<DialProblem<'f>> {
    let clusters: BTreeMap<&ClusterName, Surroundings> = fleet
        .clusters()
        .filter_map(|cluster| {
            let member = fleet.memberships(cluster).next()?;
            Some((cluster, Surroundings::new(member)))
        })
        .collect();
    let doors: BTreeMap<_, Doors> = members
        .iter()
        .map(|member| ((&member.mesh.name, &member.entry.name), Doors::new(member)))
        .collect();
    let closed = |source: &'f Member<'f>, target: &'f ClusterName| {
        let own = doors.get(&(&source.mesh.name, &source.entry.name))?;
        let other = doors.get(&(&source.mesh.name, target))?;
        let (near, far) = (clusters.get(&source.entry.name)?, clusters.get(target)?);
        let is_closed = far.has_none_of(own) && near.has_none_of(other);
        let is_any = own.is_there() || other.is_there();
        (is_any && is_closed).then(|| DialProblem::NoInitiator(own.side(), other.side()))
    };
    let mut problems = Vec::new();
    for source in members {
        let mut others = Vec::new();
        for target in source.targets() {
            match (clusters.get(target), closed(source, target)) {
                (None, _) => {}
                (Some(_), Some(problem)) => {
                    problems.extend((source.entry.name < *target).then_some(problem));
                }
                (Some(around), None) => others.push((target, around)),
            }
        }
        problems.extend(undialled(source, &others));
    }
    problems
}

/// Returns which endpoints of a cluster others cannot dial.
fn undialled<'f>(
    source: &'f Member<'f>,
    targets: &[(&'f ClusterName, &Surroundings)],
) -> Vec<DialProblem<'f>> {
    type IsMeant = fn(&Surroundings, IpAddr) -> bool;
    type Problem<'f> = fn(UnreachableEndpoints<'f>) -> DialProblem<'f>;
    let kinds: [(IsMeant, Problem<'f>); 2] = [
        (Surroundings::lacks, DialProblem::OtherFamily),
        (Surroundings::is_elsewhere, DialProblem::OtherNetwork),
    ];
    let dialled = DialledEndpoint::all(source);
    let mut problems = Vec::new();
    for (is_meant, problem) in kinds {
        let mut found = Unreachable::new();
        for (target, around) in targets {
            let meant = dialled.iter().map(DialledEndpoint::address);
            let meant = meant.map(|it| it.is_some_and(|address| is_meant(around, address)));
            let meant: Vec<usize> = meant.enumerate().filter(|it| it.1).map(|it| it.0).collect();
            if !meant.is_empty() {
                found.entry(meant).or_default().push(*target);
            }
        }
        let found = found.into_iter();
        let found = found.filter_map(|(which, targets)| unreachable(&dialled, &which, targets));
        problems.extend(found.map(problem));
    }
    problems
}

/// Endpoints of a cluster, by position, and the clusters that cannot dial them.
type Unreachable<'f> = BTreeMap<Vec<usize>, Vec<&'f ClusterName>>;

fn unreachable<'f>(
    dialled: &[DialledEndpoint<'f>],
    indices: &[usize],
    targets: Vec<&'f ClusterName>,
) -> Option<UnreachableEndpoints<'f>> {
    let meant: Vec<&DialledEndpoint> = indices
        .iter()
        .filter_map(|&index| dialled.get(index))
        .collect();
    let first = **meant.first()?;
    Some(UnreachableEndpoints {
        address: first.address()?,
        endpoints: meant.iter().map(|it| it.endpoint).collect(),
        first,
        targets,
    })
}

/// The networks and families of the nodes of a cluster.
struct Surroundings {
    /// The networks in which they have addresses of their own.
    networks: Prefixes<()>,
    /// The families of their addresses.
    families: Families,
}

/// The endpoints at which the nodes of a cluster are dialled in a mesh.
struct Doors<'f> {
    cluster: &'f ClusterName,
    /// The place of the first endpoint, if there is any.
    place: Option<Place>,
    /// The kinds of address at which they are.
    families: Families,
    /// Whether any is dialled by a name.
    has_name: bool,
}

impl<'f> Doors<'f> {
    fn new(member: &'f Member<'f>) -> Self {
        let dialled = DialledEndpoint::all(member);
        let addresses = dialled.iter().filter_map(DialledEndpoint::address);
        Self {
            cluster: &member.entry.name,
            place: dialled.first().map(DialledEndpoint::place),
            families: addresses.collect(),
            has_name: dialled.iter().any(|it| it.address().is_none()),
        }
    }

    fn is_there(&self) -> bool {
        self.place.is_some()
    }

    fn side(&self) -> DialSide<'f> {
        DialSide {
            cluster: self.cluster,
            family: self.families.first(),
            place: self.place.clone(),
        }
    }
}

impl Surroundings {
    fn new(member: &Member) -> Self {
        let nodes = &member.cluster.nodes;
        let addresses = || nodes.iter().flat_map(|it| it.doors().map(|it| it.0));
        let around = addresses().map(|it| private_network(it).unwrap_or_else(|| Cidr::host(it)));
        let networks = around.chain(nodes.iter().filter_map(|it| it.kilo.lan));
        Self {
            networks: networks.map(|network| (network, ())).collect(),
            families: addresses().collect(),
        }
    }

    /// Returns whether no node has an address of the kind, as far as it is known.
    fn lacks(&self, address: IpAddr) -> bool {
        !self.families.is_empty() && !self.families.has(family(address))
    }

    /// Returns whether no node has an address of any kind at which others are dialled, as far as it is
    /// known.
    fn has_none_of(&self, doors: &Doors) -> bool {
        !self.families.is_empty() && !doors.has_name && !self.families.meet(doors.families)
    }

    /// Returns whether an address is of a private network in which no node is.
    fn is_elsewhere(&self, address: IpAddr) -> bool {
        self.families.has(family(address))
            && !self.networks.is_empty()
            && private_network(address).is_some()
            && self.networks.holders(address).next().is_none()
    }
}
