//! Loads: everything of a cluster that capacity goes by, counted.

use std::collections::BTreeMap;
use std::ptr;

use super::bundle::{Bundle, KEY_BYTES, KnownBundles, SECTION_BYTES, allowed_ips, endpoint_bytes};
use super::units::count;
use crate::agent::model::Model;
use crate::agent::peers::ClusterPeer;
use crate::granularity::Granularity;
use crate::kilo::id::{SegmentId, Segments};
use crate::kilo::peer::translation::AllowedIp;
use crate::kilo::topology::{KiloTopology, TopologyNode};

/// The load of a cluster.
#[derive(Clone, Debug, Default, Eq, PartialEq)]
pub struct Load {
    /// The load of its own nodes.
    pub nodes: NodeLoad,
    /// The load of Peers, by their files or dumps.
    pub bundles: Vec<Bundle>,
    /// The files in its folder, where they are known.
    pub files: Option<FileLoad>,
}

/// The files that are rendered for a cluster.
#[derive(Clone, Copy, Debug, Default, Eq, PartialEq)]
pub struct FileLoad {
    /// The number of entries of its folder.
    pub entries: usize,
    /// The size of the largest file, in bytes.
    pub largest: usize,
}

/// The load that a cluster's own nodes are for its Kilo. Numbers that differ by node are those of the
/// busiest node.
#[derive(Clone, Copy, Debug, Default, Eq, PartialEq)]
pub struct NodeLoad {
    /// Segments, each with one node that runs WireGuard.
    pub segments: usize,
    /// Rules for all segments: one for each, and one for each of its allowed IPs.
    pub segment_rules: usize,
    /// Rules for packets that a node forwards, if its agent has the flag for it, and for its own
    /// location ranges.
    pub own_rules: usize,
    /// Routes to nodes.
    pub routes: usize,
    /// Other segments that a node has a tunnel to.
    pub tunnels: usize,
    /// The part of a WireGuard configuration that is not about Peers, in bytes.
    pub bytes: usize,
    /// The number of digits of a node's keepalive, which every Peer has.
    pub keepalive_digits: usize,
}

/// Rules that are there in any case: packets of pods go through the chain, and what is left in it is
/// masqueraded, once for each family.
const FIXED_RULES: usize = 3;

/// The section of the interface without its port: headline, private key.
const INTERFACE_BYTES: usize = "[Interface]\n".len()
    + "PrivateKey = ".len()
    + KEY_BYTES
    + "\nListenPort = ".len()
    + "\n".len();

impl Load {
    /// Counts what the Kilo of a cluster holds.
    pub fn count(model: &Model, files: Option<FileLoad>) -> Self {
        Self::count_knowing(model, files, &mut KnownBundles::default())
    }

    /// Counts the same with what is known of files that other clusters get too.
    pub fn count_knowing<'a>(
        model: &Model<'a>,
        files: Option<FileLoad>,
        known: &mut KnownBundles<'a>,
    ) -> Self {
        let mut bundles: BTreeMap<&str, Bundle> = BTreeMap::new();
        // By name, those of a file mostly follow each other.
        let peers: Vec<&ClusterPeer> = model.peers.iter().collect();
        for run in peers.chunk_by(|one, other| ptr::eq(one.file, other.file)) {
            let Some(first) = run.first() else {
                continue;
            };
            let bundle = bundles.entry(&first.file.source).or_default();
            bundle.add_all(&known.count(&first.file.content, run));
        }
        let bundles =
            bundles.into_iter().map(|(name, bundle)| Bundle { name: name.to_owned(), ..bundle });
        Self { nodes: NodeLoad::count(&model.topology), bundles: bundles.collect(), files }
    }

    /// Returns how many Peers the API server keeps.
    pub fn objects(&self) -> usize {
        self.bundles.iter().map(|it| it.objects).sum()
    }

    /// Returns how many Peers Kilo configures.
    pub fn peers(&self) -> usize {
        self.bundles.iter().map(|it| it.peers).sum()
    }

    /// Returns how many allowed IPs Kilo keeps of all Peers.
    pub fn ranges(&self) -> usize {
        self.bundles.iter().map(|it| it.ranges).sum()
    }

    /// Returns how many endpoints are names.
    pub fn names(&self) -> usize {
        self.bundles.iter().map(|it| it.names).sum()
    }

    /// Returns how many rules the busiest node has.
    pub fn rules(&self) -> usize {
        self.nodes.rules(self.ranges())
    }

    /// Returns how many bytes the largest WireGuard configuration has as text.
    pub fn configuration_bytes(&self) -> usize {
        let peers: usize = self.bundles.iter().map(|it| it.bytes).sum();
        self.nodes.bytes + peers + self.peers() * self.nodes.keepalive_digits
    }
}

impl NodeLoad {
    /// Counts the segments of a cluster.
    pub fn count(topology: &KiloTopology) -> Self {
        let away = Away::count(topology);
        let mut nodes = Self { segments: topology.segments.len(), ..Self::default() };
        for (id, segment) in topology.segments.numbered() {
            let address = usize::from(segment.wireguard_ip.computed().is_some());
            nodes.segment_rules += 1 + segment.allowed_ips.len() + address;
            let (allowed, location) = (segment.allowed_ips.len(), segment.location_ranges.len());
            nodes.own_rules = nodes.own_rules.max(2 * (allowed + location) + location);
            let leader = topology.leader(id);
            let others = away.others(topology, id);
            let local = match local_routes(leader) {
                0 => 0,
                own => others.together.local_routes - own,
            };
            let digits = leader.kilo.keepalive.to_string().len();
            let port = leader.endpoint().map_or(5, |it| it.port.to_string().len());
            let apart = others.apart;
            let bytes = INTERFACE_BYTES + port + apart.bytes + apart.tunnels * digits;
            nodes.keepalive_digits = nodes.keepalive_digits.max(digits);
            nodes.bytes = nodes.bytes.max(bytes);
            nodes.tunnels = nodes.tunnels.max(apart.tunnels);
            nodes.routes = nodes.routes.max(apart.routes + local);
            if 1 < segment.members.len() {
                // A node that is not a leader also has a route to the address of each segment.
                let routes = others.all.plain_routes + topology.segments.len() + local;
                nodes.routes = nodes.routes.max(routes);
            }
        }
        nodes
    }

    /// Returns the number of rules with this many allowed IPs of Peers: two for each, and those for
    /// nodes.
    pub fn rules(&self, ranges: usize) -> usize {
        2 * ranges + self.segment_rules + self.own_rules + FIXED_RULES
    }

    /// Returns how many allowed IPs of Peers are possible with this many rules, if any.
    pub fn ranges_within(&self, rules: usize) -> Option<usize> {
        Some(rules.checked_sub(self.rules(0))? / 2)
    }

    /// Returns the rules for its nodes as a sum.
    pub(super) fn rules_text(&self) -> String {
        let (segments, own) = (count(self.segment_rules), count(self.own_rules));
        format!("{segments} + {own} + {FIXED_RULES}")
    }
}

/// The load that segments are for others, in total.
#[derive(Clone, Copy, Default)]
struct Sum {
    tunnels: usize,
    bytes: usize,
    /// Routes of a leader, which has none to an internal address that is the endpoint.
    routes: usize,
    /// Other routes.
    plain_routes: usize,
    /// Routes of those in the same location.
    local_routes: usize,
}

/// The load that each segment is for others: in `Cross` those of a location have no tunnels among
/// themselves.
struct Away<'a> {
    each: Segments<Sum>,
    all: Sum,
    by_location: BTreeMap<&'a str, Sum>,
}

/// The load that other segments are for one.
struct Others {
    /// All others.
    all: Sum,
    /// Those to which it has tunnels.
    apart: Sum,
    /// Those with which it is together in a location, itself included.
    together: Sum,
}

impl<'a> Away<'a> {
    fn count(topology: &'a KiloTopology) -> Self {
        let each = topology.segments.map_ids(|it| Sum::count(topology, it));
        let mut all = Sum::default();
        let mut by_location: BTreeMap<&str, Sum> = BTreeMap::new();
        for (id, sum) in each.numbered() {
            all.add(*sum);
            if let Some(location) = location(topology, id) {
                by_location.entry(location).or_default().add(*sum);
            }
        }
        Self { each, all, by_location }
    }

    /// Returns the load that others are for a segment.
    fn others(&self, topology: &KiloTopology, segment: SegmentId) -> Others {
        let this = self.each[segment];
        let in_location = location(topology, segment).and_then(|it| self.by_location.get(it));
        let together = in_location.copied().unwrap_or(this);
        Others { all: self.all.without(this), apart: self.all.without(together), together }
    }
}

/// Returns the location that sets a segment apart from others, which it does in `Cross` only.
fn location(topology: &KiloTopology, segment: SegmentId) -> Option<&str> {
    let leader = topology.leader(segment);
    (topology.granularity == Granularity::Cross).then_some(leader.kilo.location.as_str())
}

impl Sum {
    fn count(topology: &KiloTopology, segment: SegmentId) -> Self {
        let (segment, leader) = (&topology.segments[segment], topology.leader(segment));
        let ranges = segment
            .allowed_ips
            .iter()
            .copied()
            .chain(segment.wireguard_ip.computed().map(AllowedIp::host))
            .chain(segment.location_ranges.iter().copied());
        let (_, bytes) = allowed_ips(ranges);
        let endpoint = leader.endpoint();
        let is_endpoint = |node: &TopologyNode| {
            node.kilo
                .internal_address()
                .is_some_and(|it| endpoint.is_some_and(|endpoint| endpoint.host.is(it)))
        };
        let members = segment.members.iter().map(|&it| &topology.nodes[it]);
        let (mut at_endpoint, mut local) = (0, 0);
        for member in members {
            at_endpoint += usize::from(is_endpoint(member));
            local += local_routes(member);
        }
        let plain = segment.allowed_ips.len() + segment.location_ranges.len();
        Self {
            tunnels: 1,
            bytes: SECTION_BYTES + bytes + endpoint_bytes(endpoint),
            routes: plain - at_endpoint,
            plain_routes: plain,
            local_routes: local,
        }
    }

    fn add(&mut self, other: Self) {
        self.tunnels += other.tunnels;
        self.bytes += other.bytes;
        self.routes += other.routes;
        self.plain_routes += other.plain_routes;
        self.local_routes += other.local_routes;
    }

    /// Returns what is left without a part of it.
    fn without(self, part: Self) -> Self {
        Self {
            tunnels: self.tunnels - part.tunnels,
            bytes: self.bytes - part.bytes,
            routes: self.routes - part.routes,
            plain_routes: self.plain_routes - part.plain_routes,
            local_routes: self.local_routes - part.local_routes,
        }
    }
}

/// Returns the routes to a node of one's own location: to its pods, and to itself.
fn local_routes(node: &TopologyNode) -> usize {
    node.kilo.internal_address().map_or(0, |_| 1 + usize::from(node.kilo.pod_cidr.is_some()))
}
