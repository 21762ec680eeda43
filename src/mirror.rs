//! Mirrors: Services with which a cluster reaches Services of other clusters, and the reasons why it does not get some.

use std::collections::{BTreeMap, BTreeSet};
use std::net::IpAddr;
use std::rc::Rc;

use crate::fleet::Fleet;
use crate::mesh::{Mesh, MirroredService};
use crate::name::{ClusterName, MeshName, ServiceName};
use crate::net::prefixes::Prefixes;
use crate::net::{self, Cidr, Family};
use crate::plan::{PeerSetId, Plan};
use crate::port::ServicePort;
use crate::snapshot::services::{FoundService, ServiceSnapshot};

mod paths;
mod tree;

pub use paths::ServicePath;
pub use tree::{FOLDER_SUFFIX, tree};

/// The service snapshots of clusters.
pub type ServiceSnapshots = BTreeMap<ClusterName, ServiceSnapshot>;

/// The Services that clusters get of others.
#[derive(Debug, Default)]
pub struct Mirrors<'a> {
    /// The Services that each cluster gets, in the order of their names. A cluster that accepts Services and gets none has
    /// an empty list, so that what it has is deleted.
    pub targets: BTreeMap<&'a ClusterName, Vec<Mirror<'a>>>,
    /// The flaws of Services as clusters have them.
    pub flaws: Vec<Flawed<'a>>,
    /// The clusters of which it is unknown what they have under some names, with these.
    pub unknown: BTreeMap<&'a ClusterName, BTreeSet<&'a ServiceName>>,
    /// The Services in their snapshots that no mesh names, as it did when these were taken.
    pub unnamed: BTreeMap<&'a ClusterName, Vec<String>>,
    /// Those of them that have no snapshot of Services.
    pub unread: BTreeSet<&'a ClusterName>,
}

/// A Service that a cluster gets.
#[derive(Debug)]
pub struct Mirror<'a> {
    /// The mesh that names it.
    pub mesh: &'a MeshName,
    /// The Service.
    pub service: &'a MirroredService,
    /// Its cluster IP in the cluster that has it.
    pub address: IpAddr,
}

/// A cluster that may get the Services of another one.
struct PossibleTarget<'p> {
    cluster: &'p ClusterName,
    /// The family that it routes, if that is known.
    family: Option<Family>,
    /// Its own Services.
    known: Option<&'p ServiceSnapshot>,
    /// The addresses that its Peers of the other cluster carry, of each mesh.
    carried: Vec<Rc<Prefixes<()>>>,
}

/// A flaw of a Service.
#[derive(Debug)]
pub struct Flawed<'a> {
    /// The Service.
    pub service: &'a MirroredService,
    /// The cluster that does not get it, or gets one that does not work; none if that holds for all.
    pub target: Option<&'a ClusterName>,
    /// The flaw.
    pub flaw: Flaw,
}

/// A flaw of a Service as a cluster has it.
#[derive(Clone, Debug, Eq, PartialEq)]
pub enum Flaw {
    /// It has no cluster IP.
    Headless,
    /// It is a DNS name.
    ExternalName,
    /// It leads only to pods of the node that a packet is on, and packets arrive at the nodes of an anchor.
    LocalEndpoints,
    /// It is the mirror of a Service of yet another cluster.
    IsMirror,
    /// The target has a Service of this name that clustermesh did not render.
    Taken,
    /// The target routes another family than its cluster IPs have.
    OtherFamily(Family),
    /// The cluster has it no more.
    Vanished,
    /// It has other cluster IPs: these.
    Moved(Vec<IpAddr>),
    /// It does not have this port, but these others that the mesh does not name.
    NoPort(ServicePort, Vec<ServicePort>),
    /// No Peer of the target carries its cluster IP.
    Uncarried(IpAddr),
}

impl Flaw {
    /// Returns whether the Service is left out because of it.
    pub fn leaves_out(&self) -> bool {
        match self {
            Self::Headless
            | Self::ExternalName
            | Self::LocalEndpoints
            | Self::IsMirror
            | Self::Taken
            | Self::OtherFamily(_) => true,
            Self::Vanished | Self::Moved(_) | Self::NoPort(..) | Self::Uncarried(_) => false,
        }
    }
}

impl<'a> Mirrors<'a> {
    /// Finds what each cluster gets. A Service that its cluster no longer has stays: a short absence must not delete it in others.
    pub fn new(
        meshes: &'a [Mesh],
        fleet: &Fleet,
        plan: &Plan,
        snapshots: &ServiceSnapshots,
    ) -> Self {
        let mut mirrors = Self::default();
        let accepting = meshes.iter().flat_map(|it| &it.entries);
        let accepting = accepting.filter(|it| !it.accepted_services.is_empty());
        mirrors.targets = accepting.map(|it| (&it.name, Vec::new())).collect();
        for mesh in meshes {
            let mut by_source: BTreeMap<&ClusterName, Vec<&MirroredService>> = BTreeMap::new();
            for service in &mesh.services {
                by_source.entry(&service.source).or_default().push(service);
            }
            for (source, services) in by_source {
                let targets = PossibleTarget::all((mesh, source), (fleet, plan), snapshots);
                let known = snapshots.get(source);
                for service in services {
                    mirrors.add(mesh, service, &targets, known);
                }
            }
        }
        mirrors.unnamed = unnamed(&mirrors, meshes, snapshots);
        for services in mirrors.targets.values_mut() {
            services.sort_by_key(|it| (it.mesh, &it.service.source, &it.service.local));
        }
        mirrors
    }

    fn add(
        &mut self,
        mesh: &'a Mesh,
        service: &'a MirroredService,
        targets: &[PossibleTarget],
        known: Option<&ServiceSnapshot>,
    ) {
        let targets = targets.iter();
        let targets = targets.filter_map(|it| Some((it, service.targets.get(it.cluster)?)));
        let targets: Vec<(&PossibleTarget, &ClusterName)> = targets.collect();
        if targets.is_empty() {
            return;
        }
        let known = self.look(&service.source, &service.name, known);
        let flaws = known.map_or_else(Vec::new, |it| flaws_of(service, it));
        let is_left_out = flaws.iter().any(Flaw::leaves_out);
        self.flaws.extend(flaws.into_iter().map(|flaw| Flawed { service, target: None, flaw }));
        for (target, name) in targets {
            let family = target.family;
            let known = self.look(name, &service.local, target.known);
            let is_taken = known.flatten().is_some_and(|it| !is_rendered(it));
            let address = address(service, family);
            let flaw = match address {
                _ if is_taken => Some(Flaw::Taken),
                None => family.map(Flaw::OtherFamily),
                Some(it) if target.carried.iter().any(|all| all.contain(Cidr::host(it))) => None,
                Some(it) => Some(Flaw::Uncarried(it)),
            };
            let is_kept = !is_left_out && flaw.as_ref().is_none_or(|it| !it.leaves_out());
            let target = Some(name);
            self.flaws.extend(flaw.map(|flaw| Flawed { service, target, flaw }));
            if let Some(address) = address.filter(|_| is_kept) {
                self.targets.entry(name).or_default().push(Mirror {
                    mesh: &mesh.name,
                    service,
                    address,
                });
            }
        }
    }

    /// Returns what a cluster has under a name, if that is known.
    #[expect(clippy::option_option, reason = "whether it is known, and whether it is there")]
    fn look<'s>(
        &mut self,
        cluster: &'a ClusterName,
        name: &'a ServiceName,
        snapshot: Option<&'s ServiceSnapshot>,
    ) -> Option<Option<&'s FoundService>> {
        let known = snapshot.and_then(|it| it.get(name));
        if snapshot.is_none() {
            self.unread.insert(cluster);
        }
        if known.is_none() {
            self.unknown.entry(cluster).or_default().insert(name);
        }
        known
    }
}

impl<'p> PossibleTarget<'p> {
    /// Returns the clusters that take part in a mesh together with a cluster. Those that have not joined yet, or are leaving,
    /// get nothing.
    fn all(
        (mesh, source): (&Mesh, &ClusterName),
        (fleet, plan): (&Fleet, &'p Plan),
        snapshots: &'p ServiceSnapshots,
    ) -> Vec<Self> {
        let own = mesh.peer_set_name(source);
        // Most targets get the same Peers.
        let mut carried: BTreeMap<PeerSetId, Rc<Prefixes<()>>> = BTreeMap::new();
        let mut carried = |id: PeerSetId| {
            let ranges = || plan.peer_sets[id].peers.iter().flat_map(|it| &it.allowed_ips).copied();
            Rc::clone(carried.entry(id).or_insert_with(|| Rc::new(Prefixes::union(ranges()))))
        };
        let targets = plan.targets.iter().filter(|it| it.seen.contains(&own));
        let targets = targets.map(|target| Self {
            cluster: &target.cluster,
            family: fleet.family(&target.cluster),
            known: snapshots.get(&target.cluster),
            carried: target
                .peer_sets
                .iter()
                .filter(|it| plan.peer_sets[**it].source == *source)
                .map(|it| carried(*it))
                .collect(),
        });
        targets.collect()
    }
}

/// Returns the cluster IP to which a target of a family sends; any one if the family is unknown.
fn address(service: &MirroredService, family: Option<Family>) -> Option<IpAddr> {
    let mut addresses = service.addresses.iter().copied();
    addresses.find(|it| family.is_none_or(|family| net::family(*it) == family))
}

/// Returns whether a Service is one that a render wrote. A label alone shows nothing: every user of the namespace can write it,
/// but those of a render select no pods.
fn is_rendered(found: &FoundService) -> bool {
    found.is_mirror && !found.has_selector
}

/// Returns the Services that no mesh names, of clusters of which something is unknown.
fn unnamed<'a>(
    mirrors: &Mirrors<'a>,
    meshes: &[Mesh],
    snapshots: &ServiceSnapshots,
) -> BTreeMap<&'a ClusterName, Vec<String>> {
    let unknown = mirrors.unknown.keys().filter_map(|cluster| {
        let named = meshes.iter().flat_map(|it| it.services_of(cluster));
        let named: BTreeSet<String> = named.map(ToString::to_string).collect();
        let mut found = snapshots.get(*cluster)?.found();
        found.retain(|it| !named.contains(it));
        (!found.is_empty()).then_some((*cluster, found))
    });
    unknown.collect()
}

/// Returns what is wrong with a Service where it comes from.
fn flaws_of(service: &MirroredService, found: Option<&FoundService>) -> Vec<Flaw> {
    let Some(found) = found else {
        return vec![Flaw::Vanished];
    };
    if !found.kind.has_address() {
        return vec![Flaw::ExternalName];
    }
    if found.cluster_ips.is_empty() {
        return vec![Flaw::Headless];
    }
    if found.uses_local_endpoints {
        return vec![Flaw::LocalEndpoints];
    }
    if is_rendered(found) {
        return vec![Flaw::IsMirror];
    }
    let known: BTreeSet<&IpAddr> = found.cluster_ips.iter().collect();
    let moved = service.addresses.iter().any(|it| !known.contains(it));
    let moved = moved.then(|| Flaw::Moved(found.cluster_ips.clone()));
    let without = |some: &[ServicePort], others: &[ServicePort]| -> Vec<ServicePort> {
        let is_there = |port: &ServicePort| others.iter().any(|it| it.is_same(port));
        some.iter().filter(|it| !is_there(it)).cloned().collect()
    };
    let unnamed = without(&found.ports, &service.ports);
    let missing = without(&service.ports, &found.ports).into_iter();
    let missing = missing.map(|it| Flaw::NoPort(it, unnamed.clone()));
    moved.into_iter().chain(missing).collect()
}

#[cfg(test)]
mod tests;
