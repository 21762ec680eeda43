//! A cluster under one entry of a mesh: its nodes as they are read and checked, how it is cut into
//! segments, and which of its declared ranges belong to no node.
//!
//! These decisions are made only here, so that a plan and its proof cannot differ in them.

use std::net::IpAddr;
use std::sync::Arc;

use super::anchored_ranges::{AnchoredRanges, SegmentAddresses};
use super::id::Nodes;
use super::node::{KiloNode, annotation, endpoint};
use super::node_checks::{self, NodeChecks};
use super::pod_network::{Masquerading, PodNetwork};
use super::segment::{self, Cut, Segment};
use super::topology::{KiloTopology, TopologyNode};
use crate::granularity::Granularity;
use crate::mesh::{Entry, Networks, Range};
use crate::net::{Cidr, Families, Family, family};
use crate::place::Place;
use crate::snapshot::{AddressKind, Node, Snapshot};
use crate::wireguard::{Endpoint, Host};

/// A cluster under one entry.
#[derive(Debug)]
pub struct Cluster<'a> {
    /// Its entry in the mesh.
    pub entry: &'a Entry,
    /// The values that its nodes report.
    pub snapshot: &'a Snapshot,
    /// Its nodes, in order of name.
    pub nodes: Nodes<ClusterNode<'a>>,
    /// The granularity that more than half of its nodes name.
    pub voted: Option<Granularity>,
    /// The granularity with which it is rendered: that of the entry, else of more than half of its
    /// nodes, else Kilo's default.
    pub granularity: Granularity,
    /// The segments that are rendered. A node that is a segment of its own is included even if Kilo
    /// ignores it now.
    pub segments: Cut,
    /// The cluster that its agents form of the nodes that they count, with the granularity that most
    /// of them report. The entry counts only if they report none.
    pub topology: Arc<KiloTopology>,
    /// The declared ranges of the cluster as a whole.
    pub shared: Vec<Cidr>,
    /// The ranges of its nodes that anchors carry as a whole.
    pub anchored: AnchoredRanges,
    /// The kind of address that its Kilo routes (`kilo.md` §2.5), out of those that it declares.
    pub family: Option<Family>,
    /// The network plugin and the addresses of pods that most of its nodes show.
    pub pod_network: PodNetwork,
}

/// A node, read once for all purposes.
#[derive(Debug)]
pub struct ClusterNode<'a> {
    /// As the snapshot has it.
    pub node: &'a Node,
    /// As Kilo reads it.
    pub kilo: Arc<KiloNode>,
    /// The results of the node checks.
    pub checked: NodeChecks,
}

impl ClusterNode<'_> {
    /// Returns where the node can be dialled, as far as its snapshot shows: the endpoints in its
    /// annotations, and all its addresses on the port on which its WireGuard listens.
    pub fn endpoints(&self) -> impl Iterator<Item = (IpAddr, Option<u16>)> {
        let annotated = self.annotated([
            annotation::FORCE_ENDPOINT,
            annotation::ENDPOINT,
            annotation::CLUSTERMESH_ENDPOINT,
        ]);
        let annotated = annotated.filter_map(|it| Some((it.address()?, Some(it.port.get()))));
        let port = self.kilo.endpoint.as_ref().map(|it| it.port.get());
        let addresses = self.reported(|_| true).chain(self.kilo.internal_address());
        annotated.chain(addresses.map(move |address| (address, port)))
    }

    /// Returns the endpoints that some annotations have.
    fn annotated<const N: usize>(&self, keys: [&'static str; N]) -> impl Iterator<Item = Endpoint> {
        keys.into_iter().filter_map(|key| endpoint(self.node.annotations.get(key)?).ok())
    }

    /// Returns the hosts at which a person or Kubernetes lets others dial the node, whether the mesh asks for them or not.
    /// Kilo's own endpoint may be an older one.
    pub fn given_hosts(&self) -> impl Iterator<Item = Host> {
        let keys = [annotation::FORCE_ENDPOINT, annotation::CLUSTERMESH_ENDPOINT];
        let addresses = self.reported(|_| true).map(Host::Ip);
        self.annotated(keys).map(|it| it.host).chain(addresses)
    }

    /// Returns whether Kubernetes reports that the node has an address.
    pub fn reports(&self, address: IpAddr) -> bool {
        self.reported(|_| true).any(|it| it == address)
    }

    /// Returns its addresses on the network of the nodes, as Kubernetes and Kilo report them.
    pub fn internal_addresses(&self) -> impl Iterator<Item = IpAddr> {
        self.reported(|it| it == AddressKind::InternalIP).chain(self.kilo.internal_address())
    }

    /// Returns whether Kubernetes or Kilo reports that the node has an address.
    pub fn has_address(&self, address: IpAddr) -> bool {
        self.reports(address) || self.kilo.internal_address() == Some(address)
    }

    /// Returns the addresses of some kinds that Kubernetes reports.
    fn reported(&self, is_wanted: impl Fn(AddressKind) -> bool) -> impl Iterator<Item = IpAddr> {
        let addresses = self.node.addresses.iter();
        let wanted = addresses.filter(move |it| is_wanted(it.kind));
        wanted.filter_map(|it| Some(it.address.parse::<IpAddr>().ok()?.to_canonical()))
    }

    /// Returns the kinds of address that its snapshot shows. It may have another one that Kilo and
    /// Kubernetes do not know of.
    pub fn families(&self) -> Families {
        self.endpoints().map(|it| it.0).collect()
    }
}

impl<'a> Cluster<'a> {
    /// Reads `snapshot` as `entry` wants it read.
    pub fn new(entry: &'a Entry, snapshot: &'a Snapshot) -> Self {
        let nodes: Vec<ClusterNode<'a>> = snapshot
            .nodes
            .iter()
            .map(|node| {
                let kilo = KiloNode::read(node, &entry.topology_label);
                ClusterNode {
                    node,
                    checked: NodeChecks::new(entry, node, &kilo),
                    kilo: Arc::new(kilo),
                }
            })
            .collect();
        let nodes = Nodes::new(nodes);
        let voted = vote(&nodes);
        let granularity = entry.granularity.or(voted).unwrap_or(Granularity::Location);
        let readings: Nodes<&KiloNode> = nodes.map(|it| &*it.kilo);
        let segments = segment::segments(&readings, granularity);
        let reported =
            voted.filter(|it| *it != granularity).map(|it| segment::segments(&readings, it));
        let kilos = nodes.map(|it| Arc::clone(&it.kilo));
        let form =
            if entry.name.is_external() { KiloTopology::of_host } else { KiloTopology::form };
        let topology = form(&kilos, reported.as_ref().unwrap_or(&segments));
        let mut cluster = Self {
            entry,
            snapshot,
            pod_network: PodNetwork::of(&snapshot.nodes),
            nodes,
            voted,
            granularity,
            segments,
            topology: Arc::new(topology),
            shared: Vec::new(),
            anchored: AnchoredRanges::default(),
            family: None,
        };
        let groups: Vec<SegmentGroup> =
            cluster.segments.formed.iter().filter_map(|segment| cluster.group(segment)).collect();
        let addresses: Vec<SegmentAddresses> = groups.iter().map(SegmentGroup::addresses).collect();
        let anchored = AnchoredRanges::new(entry, &addresses);
        (cluster.shared, cluster.family) = (cluster.shared(&addresses), cluster.family());
        // Only the named nodes carry these.
        cluster.shared.retain(|it| !anchored.pods.contains(it));
        cluster.anchored = anchored;
        cluster
    }

    /// Returns a node.
    pub fn node(&self, name: &str) -> Option<&ClusterNode<'a>> {
        let by_name = |it: &ClusterNode| it.node.name.as_str().cmp(name);
        self.nodes.get(self.nodes.binary_search_by(by_name).ok()?)
    }

    /// Returns how sure it is that packets of its pods keep their source on the way to other clusters.
    pub fn masquerading(&self) -> Masquerading {
        self.pod_network.masquerading(self.entry.pod_source)
    }

    /// Returns whether another plugin may have the routes between its nodes: most nodes show one, or a person declares how
    /// it treats packets of pods.
    pub fn has_other_plugin(&self) -> bool {
        self.pod_network.has_plugin || self.entry.pod_source.is_some()
    }

    /// Returns whether its agents run with another granularity than the one that is rendered.
    pub fn is_rendered_otherwise(&self) -> bool {
        self.topology.granularity != self.granularity
    }

    /// Returns those of some ranges in which no node has an address.
    pub fn without_addresses<'r>(
        &self,
        ranges: impl Iterator<Item = &'r Range>,
    ) -> impl Iterator<Item = &'r Range> {
        let used: Vec<IpAddr> = self.nodes.iter().flat_map(|it| it.kilo.addresses()).collect();
        ranges.filter(move |range| !used.iter().any(|it| range.cidr.holds(*it)))
    }

    /// Returns the nodes that determine the granularity of their cluster.
    pub fn voters(&self) -> Vec<&ClusterNode<'a>> {
        voters(&self.nodes)
    }

    /// Returns the ranges that belong to the cluster and not to a node.
    ///
    /// A flat list does not contain the purpose of a range. An entry counts as that of the nodes if
    /// more than half of the segments have an address in it. The operator is content with any
    /// segment, so a single node can withdraw a range. Nodes are not counted, because only the
    /// leader of a segment has a `WireGuard` address.
    fn shared(&self, segments: &[SegmentAddresses]) -> Vec<Cidr> {
        let allowed = match &self.entry.networks {
            Networks::Typed { services, additional, .. } => {
                return services.iter().chain(additional).map(|range| range.cidr).collect();
            }
            Networks::Flat { allowed } => allowed,
        };
        let is_of_nodes = |range: Cidr| {
            let has_address = |it: &&SegmentAddresses| it.all().any(|it| range.contains(it));
            segments.len() < 2 * segments.iter().filter(has_address).count()
        };
        allowed.iter().map(|range| range.cidr).filter(|range| !is_of_nodes(*range)).collect()
    }

    /// Returns the family of more than half of the nodes' internal addresses, else of their pod
    /// CIDRs as Kilo reads them, else of the first declared range. Families that are not declared
    /// do not count, because other clusters get none of their ranges.
    ///
    /// All nodes that Kilo counts decide, selected or not, because each of their agents gets the
    /// Peers. If Kilo counts none, all nodes of the snapshot decide.
    fn family(&self) -> Option<Family> {
        // No Kilo runs there: WireGuard alone takes both kinds.
        if self.entry.name.is_external() {
            return None;
        }
        let nodes = &self.topology.nodes;
        let is_counted = |node: &&TopologyNode| node.segment.is_some();
        let has_counted = nodes.iter().any(|it| is_counted(&it));
        let voters = || nodes.iter().filter(|it| !has_counted || is_counted(it));
        let declared = self.entry.networks.all();
        let of_most = |family_of: &dyn Fn(&KiloNode) -> Option<Family>| {
            [Family::V4, Family::V6].into_iter().find(|&wanted| {
                let having = voters().filter(|it| family_of(&it.kilo) == Some(wanted));
                voters().count() < 2 * having.count()
                    && declared.iter().any(|it| it.cidr.family() == wanted)
            })
        };
        of_most(&|kilo| kilo.internal_address().map(family))
            .or_else(|| of_most(&|kilo| kilo.pod_cidr.map(Cidr::family)))
            .or_else(|| Some(declared.first()?.cidr.family()))
    }

    /// Returns the selected nodes of a segment, as far as that does not depend on other segments; nothing of
    /// one that cannot be given to others.
    fn group(&self, segment: &Segment) -> Option<SegmentGroup<'_, 'a>> {
        let leader = &self.nodes[segment.leader];
        node_checks::candidate(self.entry, leader.node, &leader.checked).ok()?;
        let selected: Vec<&ClusterNode> = segment
            .members
            .iter()
            .map(|&member| &self.nodes[member])
            .filter(|it| self.entry.selector.matches(&it.node.labels))
            .collect();
        if selected.is_empty() {
            return None;
        }
        Some(SegmentGroup {
            wireguard: leader.checked.wireguard.as_ref().ok().copied(),
            leader,
            selected,
        })
    }
}

/// The part of a segment that other clusters get.
struct SegmentGroup<'c, 'a> {
    /// Its address in Kilo's subnet, advertised or not.
    wireguard: Option<IpAddr>,
    leader: &'c ClusterNode<'a>,
    /// Its selected nodes, with usable pod CIDRs or not.
    selected: Vec<&'c ClusterNode<'a>>,
}

impl<'a> SegmentGroup<'_, 'a> {
    /// Returns what its nodes have of their own. The pods of its leader count also if the leader is not
    /// selected: the pod CIDR of a single selected node does not decide what the range of all pods is for.
    fn addresses(&self) -> SegmentAddresses<'a> {
        let selected = self.selected.iter();
        let hosts =
            selected.clone().flat_map(|it| node_checks::internal_addresses(it.node, &it.kilo));
        let showing = self.selected.iter().chain([&self.leader]);
        let pods = showing.flat_map(|it| it.checked.pods.iter().flat_map(|it| &it.used));
        SegmentAddresses {
            names: selected.map(|it| it.node.name.as_str()).collect(),
            pods: pods.copied().collect(),
            wireguard: self.wireguard,
            hosts: hosts.collect(),
        }
    }
}

/// Returns the place of a node in its snapshot. That of an external peer is its entry in the mesh.
pub fn node_place(entry: &Entry, source: &Arc<str>, node: &Node) -> Place {
    if entry.name.is_external() {
        return entry.place.clone();
    }
    Snapshot::place(source, node.position)
}

/// Returns the granularity that more than half of the nodes report; nodes without a value count
/// too.
fn vote(nodes: &[ClusterNode]) -> Option<Granularity> {
    let voters = voters(nodes);
    [Granularity::Location, Granularity::Full, Granularity::Cross].into_iter().find(|&choice| {
        let agreeing = voters.iter().filter(|it| it.kilo.granularity == Some(choice));
        voters.len() < 2 * agreeing.count()
    })
}

/// Returns the nodes that determine the granularity.
///
/// Nodes that cannot become Peers in any granularity do not count. Whether their ranges are
/// declared does not matter here, so that a mistake in a range does not look like another
/// granularity.
fn voters<'n, 'a>(nodes: &'n [ClusterNode<'a>]) -> Vec<&'n ClusterNode<'a>> {
    let sound = nodes.iter().filter(|it| !it.kilo.stale && it.checked.is_sound());
    let sound: Vec<&ClusterNode> = sound.collect();
    if !sound.is_empty() {
        return sound;
    }
    // No node can become a Peer. The reasons should at least fit the values of the nodes.
    nodes.iter().filter(|it| it.kilo.granularity.is_some()).collect()
}
