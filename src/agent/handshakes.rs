//! Handshakes: which tunnels between clusters have come up, as the agents of live clusters report it.
//!
//! An agent publishes on its own node with which Peers it has had a handshake since it last wrote its WireGuard
//! configuration (`discovered-endpoints`, `discoverNATEndpoints` in `pkg/mesh/mesh.go`). The report has no times. An agent
//! that stopped and a former leader leave their last one behind. So only leaders that check in count, and only if they did
//! so long enough after the last change of Peers. Nothing here is a proof, and nothing is used for one.

use std::collections::BTreeMap;
use std::fmt;
use std::sync::Arc;

use super::applied::{AppliedFile, Content};
use super::model::Model;
use super::peers::PeerId;
use crate::kilo::cluster::Cluster;
use crate::kilo::topology::{KiloTopology, Leader};
use crate::mesh::{Entry, Mesh, are_linked};
use crate::name::ClusterName;
use crate::snapshot::Snapshot;
use crate::snapshot::handshakes::HandshakeKeys;
use crate::snapshot::listing::Heartbeats;

#[cfg(test)]
mod tests;

/// The time of one check-in, and as much to spare, in seconds.
const CHECK_INS: u64 = 60;

/// The most tunnels of one answer that are named.
const NAMED: usize = 10;

/// A cluster as it was read.
#[derive(Clone, Copy, Debug)]
pub struct ClusterReading<'a> {
    /// Its first entry in a mesh.
    pub entry: &'a Entry,
    /// Its nodes.
    pub snapshot: &'a Snapshot,
    /// Its Peers.
    pub files: &'a [AppliedFile],
    /// The reports of its agents; none unless it was read live.
    pub reports: Option<&'a AgentReports>,
}

/// The reports of the agents of a cluster, read from its API server.
#[derive(Clone, Debug)]
pub struct AgentReports {
    /// When each agent was last seen, and when the list of nodes began.
    pub heartbeats: Heartbeats,
    /// The keys with which each has had a handshake, by the name of its node.
    pub handshakes: BTreeMap<String, HandshakeKeys>,
    /// When the spec of any Peer was last changed, in Unix seconds, if the API server shows it.
    pub changed_at: Option<i64>,
}

/// The answer to whether a tunnel has had a handshake.
#[derive(Clone, Debug, Eq, Ord, PartialEq, PartialOrd)]
pub enum HandshakeAnswer {
    /// Both ends report one.
    Both,
    /// Only the end in this cluster reports one.
    One(ClusterName),
    /// Neither end reports one, in two reads that are far enough apart, although one of them dials.
    NoneReported,
    /// The agents do not show it.
    Unknown(ReportDoubt),
}

/// The reason why agents do not show whether a tunnel has had a handshake.
#[derive(Clone, Debug, Eq, Ord, PartialEq, PartialOrd)]
pub enum ReportDoubt {
    /// The cluster has no Peer for the other end.
    Peerless(ClusterName),
    /// Two nodes may lead in the cluster, or none has announced that it leads.
    Leaderless(ClusterName),
    /// The cluster was not read live.
    Unread(ClusterName),
    /// Most agents of the cluster contradict the clock of this machine.
    Clock(ClusterName),
    /// The agent in the cluster was not seen in the last minute.
    Silent(ClusterName),
    /// The agent in the cluster has not checked in for as long after the last change of Peers.
    Unsettled(ClusterName),
    /// The node in the cluster has no report that can be read.
    Unreadable(ClusterName),
    /// Neither end dials with keepalives, so a handshake waits for traffic.
    Idle,
    /// Neither end reports a handshake yet, but that was not so for long enough.
    Early,
}

/// The tunnels between two clusters.
#[derive(Clone, Debug)]
pub struct PairReport {
    /// Both clusters.
    pub clusters: [ClusterName; 2],
    /// Their tunnels by answer; none if neither cluster has a Peer for a leader of the other.
    pub answers: BTreeMap<HandshakeAnswer, TunnelGroup>,
}

/// The tunnels with one answer.
#[derive(Clone, Debug, Default)]
pub struct TunnelGroup {
    /// Their number.
    pub count: usize,
    /// The nodes at both ends of the first ones, in the order of the clusters.
    pub first: Vec<[String; 2]>,
}

/// Reads of the same clusters, one after the other.
#[derive(Debug)]
pub struct HandshakeWatch {
    /// The time after which agents have published what a change did, in seconds.
    pub settling: u64,
    /// The state of each cluster in the last reads, and since when it is the same.
    same: BTreeMap<ClusterName, (ReadState, i64)>,
    /// The tunnels of which both ends report no handshake, and since when.
    absent: BTreeMap<TunnelEnds, i64>,
}

/// The cluster and the key of both ends of a tunnel.
type TunnelEnds = [(ClusterName, [u8; 32]); 2];

/// The leaders and Peers of a cluster, which must be the same in two reads.
#[derive(Debug, PartialEq)]
struct ReadState {
    leaders: Vec<(String, [u8; 32])>,
    peers: Vec<Arc<Content>>,
    changed_at: Option<i64>,
}

/// A cluster with its leaders.
struct LedCluster<'a> {
    name: &'a ClusterName,
    model: Model<'a>,
    leaders: Vec<LeaderEnd>,
    reports: Option<&'a AgentReports>,
    /// Since when its leaders and Peers are the same.
    same_since: i64,
}

/// The leader of a segment, at which tunnels to other clusters end.
struct LeaderEnd {
    node: String,
    key: [u8; 32],
    sends_keepalives: bool,
    /// Whether it is certain that it leads.
    leads: bool,
}

/// One end of a tunnel.
#[derive(Clone, Copy)]
struct TunnelEnd<'a> {
    cluster: &'a LedCluster<'a>,
    leader: &'a LeaderEnd,
    /// The Peer of its cluster for the other end.
    peer: Option<PeerId>,
}

impl HandshakeAnswer {
    /// Returns whether a later read may answer more.
    pub fn is_pending(&self) -> bool {
        use ReportDoubt::{Clock, Early, Silent, Unsettled};
        matches!(self, Self::Unknown(Clock(_) | Silent(_) | Unsettled(_) | Early))
    }
}

impl HandshakeWatch {
    /// Returns a watch of agents that apply everything again after this many seconds (`--resync-period`).
    pub fn new(resync: u64) -> Self {
        let settling = resync + CHECK_INS;
        Self { settling, same: BTreeMap::new(), absent: BTreeMap::new() }
    }

    /// Returns the longest wait for reports, in seconds: `none reported` needs two reads that are `settling` apart.
    pub fn limit(&self) -> u64 {
        self.settling + CHECK_INS
    }

    /// Reads clusters again, and returns the answers about each pair that the meshes link and of which at least one was read
    /// live.
    pub fn read(&mut self, meshes: &[Mesh], clusters: &[ClusterReading]) -> Vec<PairReport> {
        let led: Vec<LedCluster> = clusters.iter().map(|it| self.led(it)).collect();
        let mut absent = BTreeMap::new();
        let mut pairs = Vec::new();
        for (near, rest) in led.iter().zip(1..) {
            for far in led.iter().skip(rest) {
                let is_read = near.reports.is_some() || far.reports.is_some();
                if is_read && are_linked(meshes, near.name, far.name) {
                    pairs.push(self.pair([near, far], &mut absent));
                }
            }
        }
        self.absent = absent;
        pairs
    }

    /// Finds the leaders of a cluster, and since when they and its Peers are the same.
    fn led<'a>(&mut self, read: &ClusterReading<'a>) -> LedCluster<'a> {
        let topology = Cluster::new(read.entry, read.snapshot).topology;
        let leaders = leaders(&topology);
        let name = &read.entry.name;
        let mut same_since = i64::MAX;
        if let Some(reports) = read.reports {
            let state = ReadState {
                leaders: leaders.iter().map(|it| (it.node.clone(), it.key)).collect(),
                peers: read.files.iter().map(|it| Arc::clone(&it.content)).collect(),
                changed_at: reports.changed_at,
            };
            let before = self.same.remove(name).filter(|it| it.0 == state);
            same_since = before.map_or(reports.heartbeats.listed_at(), |it| it.1);
            self.same.insert(name.clone(), (state, same_since));
        }
        let model = Model::new(&topology, read.files);
        LedCluster { name, model, leaders, reports: read.reports, same_since }
    }

    /// Answers for the tunnels between two clusters.
    fn pair(
        &self,
        [near, far]: [&LedCluster; 2],
        absent: &mut BTreeMap<TunnelEnds, i64>,
    ) -> PairReport {
        let mut answers: BTreeMap<HandshakeAnswer, TunnelGroup> = BTreeMap::new();
        for leader in &near.leaders {
            for other in &far.leaders {
                let ends = [near.end(leader, other), far.end(other, leader)];
                if ends.iter().all(|it| it.peer.is_none()) {
                    continue;
                }
                let group = answers.entry(self.answer(ends, absent)).or_default();
                group.count += 1;
                if group.first.len() < NAMED {
                    group.first.push([leader.node.clone(), other.node.clone()]);
                }
            }
        }
        PairReport { clusters: [near.name.clone(), far.name.clone()], answers }
    }

    /// Answers for one tunnel.
    fn answer(
        &self,
        ends: [TunnelEnd; 2],
        absent: &mut BTreeMap<TunnelEnds, i64>,
    ) -> HandshakeAnswer {
        let name = |it: &TunnelEnd| it.cluster.name.clone();
        let [near, far] = &ends;
        if let Some(end) = ends.iter().find(|it| it.peer.is_none()) {
            return HandshakeAnswer::Unknown(ReportDoubt::Peerless(name(end)));
        }
        if let Some(end) = ends.iter().find(|it| !it.leader.leads) {
            return HandshakeAnswer::Unknown(ReportDoubt::Leaderless(name(end)));
        }
        let changed_at = ends.iter().filter_map(|it| it.cluster.reports?.changed_at).max();
        let reported = [self.reported(near, far, changed_at), self.reported(far, near, changed_at)];
        match reported {
            [Ok(true), Ok(true)] => HandshakeAnswer::Both,
            [Ok(true), _] => HandshakeAnswer::One(name(near)),
            [_, Ok(true)] => HandshakeAnswer::One(name(far)),
            [Err(doubt), _] | [_, Err(doubt)] => HandshakeAnswer::Unknown(doubt),
            [Ok(false), Ok(false)] => {
                let key = ends.map(|it| (it.cluster.name.clone(), it.leader.key));
                self.unreported(ends, key, absent)
            }
        }
    }

    /// Returns whether an end reports a handshake with the other one, or why its report does not count.
    fn reported(
        &self,
        end: &TunnelEnd,
        other: &TunnelEnd,
        changed_at: Option<i64>,
    ) -> Result<bool, ReportDoubt> {
        let (cluster, node) = (end.cluster.name, &end.leader.node);
        let Some(reports) = end.cluster.reports else {
            return Err(ReportDoubt::Unread(cluster.clone()));
        };
        let heartbeats = &reports.heartbeats;
        if !heartbeats.agree_with_the_clock() {
            return Err(ReportDoubt::Clock(cluster.clone()));
        }
        let seen_at = heartbeats.seen_at(node).filter(|_| heartbeats.is_fresh(node));
        let Some(seen_at) = seen_at else {
            return Err(ReportDoubt::Silent(cluster.clone()));
        };
        // A clock that is ahead must not shorten the wait.
        let seen_at = seen_at.min(heartbeats.listed_at());
        if changed_at.is_some_and(|it| seen_at < it.saturating_add_unsigned(self.settling)) {
            return Err(ReportDoubt::Unsettled(cluster.clone()));
        }
        let Some(keys) = reports.handshakes.get(node) else {
            return Err(ReportDoubt::Unreadable(cluster.clone()));
        };
        Ok(keys.contains(&other.leader.key))
    }

    /// Answers for a tunnel of which both ends report no handshake. One read proves little, because an agent forgets all
    /// handshakes whenever it writes its configuration.
    fn unreported(
        &self,
        ends: [TunnelEnd; 2],
        key: TunnelEnds,
        absent: &mut BTreeMap<TunnelEnds, i64>,
    ) -> HandshakeAnswer {
        let listed_at =
            ends.map(|it| it.cluster.reports.map_or(i64::MIN, |it| it.heartbeats.listed_at()));
        let [first, last] = [listed_at[0].min(listed_at[1]), listed_at[0].max(listed_at[1])];
        let since = self.absent.get(&key).copied().unwrap_or(last);
        absent.insert(key, since);
        let same_since = ends.iter().map(|it| it.cluster.same_since).max();
        let since = since.max(same_since.unwrap_or(since));
        if !ends.iter().any(TunnelEnd::dials) {
            HandshakeAnswer::Unknown(ReportDoubt::Idle)
        } else if first < since.saturating_add_unsigned(self.settling) {
            HandshakeAnswer::Unknown(ReportDoubt::Early)
        } else {
            HandshakeAnswer::NoneReported
        }
    }
}

impl LedCluster<'_> {
    /// Returns the end of a tunnel from one of its leaders to a leader of another cluster.
    fn end<'a>(&'a self, leader: &'a LeaderEnd, other: &LeaderEnd) -> TunnelEnd<'a> {
        let peer = self.model.peers_with(&other.key).first().copied();
        TunnelEnd { cluster: self, leader, peer }
    }
}

impl TunnelEnd<'_> {
    /// Returns whether it begins a handshake without any traffic: it has an endpoint, and Kilo sends keepalives only for the
    /// annotation of its own node.
    fn dials(&self) -> bool {
        let peer = self.peer.and_then(|it| self.cluster.model.share(it));
        self.leader.sends_keepalives && peer.is_some_and(|it| it.translation.dialled().is_some())
    }
}

/// Returns the leaders of all segments that have a key.
fn leaders(topology: &KiloTopology) -> Vec<LeaderEnd> {
    let leaders = topology.segments.iter().filter_map(|segment| {
        let kilo = &topology.nodes[segment.leader.node()].kilo;
        Some(LeaderEnd {
            node: kilo.name.clone(),
            key: kilo.key?,
            sends_keepalives: kilo.keepalive != 0,
            leads: matches!(segment.leader, Leader::Certain(_)) && kilo.has_wireguard_ip(),
        })
    });
    leaders.collect()
}

impl fmt::Display for ReportDoubt {
    fn fmt(&self, formatter: &mut fmt::Formatter) -> fmt::Result {
        match self {
            Self::Peerless(cluster) => {
                write!(formatter, "{cluster} has no Peer for the node of the other cluster")
            }
            Self::Leaderless(cluster) => {
                write!(formatter, "the node of {cluster} may not lead")
            }
            Self::Unread(cluster) => write!(formatter, "{cluster} was not read"),
            Self::Clock(cluster) => write!(
                formatter,
                "the agents of {cluster} were not seen in the last minute by the clock of this machine"
            ),
            Self::Silent(cluster) => write!(
                formatter,
                "the agent of {cluster} was not seen in the last minute"
            ),
            Self::Unsettled(cluster) => write!(
                formatter,
                "the agent of {cluster} has not checked in long enough after the last change of Peers"
            ),
            Self::Unreadable(cluster) => {
                write!(formatter, "the node of {cluster} has no report that can be read")
            }
            Self::Idle => formatter.write_str(
                "no handshake is reported, and without traffic none is expected, because neither node dials and sends keepalives",
            ),
            Self::Early => formatter.write_str("no handshake is reported yet"),
        }
    }
}
