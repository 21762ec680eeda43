//! Verification: whether every cluster reaches what its links promise, and nothing else.

use std::collections::{BTreeMap, BTreeSet};
use std::net::IpAddr;

use super::fabric::{At, Fabric, Owner, Site};
use super::model::{Claim, Tunnel};
use super::own::Leader;
use super::packet::{Ending, Goal, Packet, Session};
use super::prefixes::{Prefixes, Span};
use super::reach::{Parcel, Reach, Verdict};
use super::trace::{Class, Trace};
use crate::kilo::node::annotation;
use crate::mesh::{EndpointSource, Mesh, Networks, Range};
use crate::name::ClusterName;
use crate::net::Cidr;
use crate::snapshot::{AddressKind, Node};
use crate::wireguard::{Host, PublicKey};

/// What came of a verification.
#[derive(Clone, Debug, Default)]
pub struct Verification {
    /// Every ordered pair of clusters.
    pub pairings: Vec<Pairing>,
    /// What is promised and does not hold, one for each cause, the widest first.
    pub failures: Vec<Failure>,
    /// What holds and was never promised.
    pub leaks: Vec<Leak>,
    /// Peers that lead to nobody of the fleet.
    pub outsiders: Vec<Outsider>,
    /// Nodes without which something is cut.
    pub single_points: Vec<SinglePoint>,
    /// Nodes that promise nothing, since Kilo does not count them or they give nothing to anyone.
    pub apart: Vec<At>,
}

/// Packets from one cluster to another.
#[derive(Clone, Debug)]
pub struct Pairing {
    /// The number of the cluster that sends.
    pub from: usize,
    /// The number of the one that receives.
    pub to: usize,
    /// Whether a mesh links the two.
    pub is_linked: bool,
    /// By class of sender and receiver.
    pub tallies: BTreeMap<(Class, Class), Tally>,
}

/// How many pairs of owners there are, a node each or a range that is declared for all.
#[derive(Clone, Debug, Default, Eq, PartialEq)]
pub struct Tally {
    /// Pairs that a link promises.
    pub promised: u64,
    /// Those of them that hold there and back.
    pub kept: u64,
    /// Pairs that nobody promised.
    pub others: u64,
    /// Those of them that hold all the same.
    pub reached: u64,
}

/// A promise that does not hold, and all that fails for the same cause.
#[derive(Clone, Debug)]
pub struct Failure {
    /// The smallest packet that shows it.
    pub trace: Trace,
    /// How many pairs fail so.
    pub pairs: u64,
    /// Between which clusters.
    pub between: BTreeSet<(usize, usize)>,
    /// In which classes.
    pub classes: BTreeSet<(Class, Class)>,
    /// Whose addresses are not reached.
    pub receivers: BTreeSet<(usize, Owner)>,
}

/// Something that reaches what no link promises.
#[derive(Clone, Debug)]
pub struct Leak {
    /// A packet that does.
    pub trace: Trace,
    /// How many pairs do, where it is between nodes.
    pub pairs: u64,
    /// The Peer and the range that let it out.
    pub claim: Option<(usize, Claim, Cidr)>,
}

/// A Peer whose key no node of the fleet has.
#[derive(Clone, Copy, Debug)]
pub struct Outsider {
    /// The number of the cluster.
    pub site: usize,
    /// The Peer.
    pub peer: usize,
}

/// A node without which something is cut until somebody does something.
#[derive(Clone, Debug)]
pub struct SinglePoint {
    /// The node.
    pub at: At,
    /// The clusters that lose something.
    pub viewers: BTreeSet<usize>,
    /// Declared ranges that it alone carries for them.
    pub ranges: BTreeSet<Cidr>,
    /// Nodes whose pods are reached through it alone.
    pub members: BTreeSet<usize>,
}

/// What fails together: the verdict, where it is decided, and by what.
type Cause = (&'static str, usize, usize, Option<(Tunnel, Cidr)>);

/// What is asked of a fabric.
#[derive(Clone, Copy, Debug)]
pub struct Asked<'a> {
    /// Which clusters are linked, and what they take from each other.
    pub meshes: &'a [Mesh],
    /// What clusters take from others, whatever their meshes say.
    pub accepted: &'a BTreeMap<ClusterName, Vec<Range>>,
}

impl<'a> Asked<'a> {
    /// Returns the lists in which everything must lie that `site` takes by a mesh.
    fn accepted(self, mesh: Option<&'a Mesh>, site: Option<&Site>) -> Vec<&'a [Range]> {
        let Some(site) = site else {
            return Vec::new();
        };
        let mut entries = mesh.iter().flat_map(|mesh| &mesh.entries);
        let entry = entries.find(|it| it.name == *site.cluster);
        let of_mesh = entry.and_then(|entry| entry.accepted.as_deref());
        let of_config = self.accepted.get(site.cluster).map(Vec::as_slice);
        of_mesh.into_iter().chain(of_config).collect()
    }
}

/// Returns the mesh that links two clusters, the first one.
fn link<'m>(meshes: &'m [Mesh], one: &Site, other: &Site) -> Option<&'m Mesh> {
    meshes.iter().find(|mesh| {
        let has = |site: &Site| mesh.entries.iter().any(|it| it.name == *site.cluster);
        has(one) && has(other) && mesh.topology.links(one.cluster, other.cluster)
    })
}

/// Returns whether a mesh links two clusters.
pub(super) fn are_linked(meshes: &[Mesh], one: &Site, other: &Site) -> bool {
    link(meshes, one, other).is_some()
}

/// The meshes that link clusters, by the numbers of both.
struct Links<'a>(Vec<Vec<Option<&'a Mesh>>>);

impl<'a> Links<'a> {
    fn of(fabric: &Fabric, asked: Asked<'a>) -> Self {
        let row = |one: &Site| {
            let others = fabric.sites.iter();
            others.map(|other| link(asked.meshes, one, other)).collect()
        };
        Self(fabric.sites.iter().map(row).collect())
    }

    fn between(&self, one: usize, other: usize) -> Option<&'a Mesh> {
        *self.0.get(one)?.get(other)?
    }
}

/// Verifies all clusters.
pub fn verify(reach: &Reach, asked: Asked) -> Verification {
    let fabric = reach.fabric;
    let links = Links::of(fabric, asked);
    let promises: Vec<Promises> = (0..fabric.sites.len())
        .map(|site| Promises::of(fabric, site))
        .collect();
    let mut verification = Verification {
        outsiders: outsiders(fabric),
        ..Verification::default()
    };
    let dialled = dialled(fabric);
    let mut failures: BTreeMap<Cause, Failure> = BTreeMap::new();
    for from in 0..fabric.sites.len() {
        for to in (0..fabric.sites.len()).filter(|to| *to != from) {
            let link = links.between(from, to);
            let is_linked = link.is_some();
            let (Some(sends), Some(receives)) = (promises.get(from), promises.get(to)) else {
                continue;
            };
            let mut judge = Judge {
                fabric,
                from,
                to,
                is_linked,
                sends,
                receives,
                takes: [from, to].map(|it| asked.accepted(link, fabric.site(it))),
                dialled: &dialled,
                tallies: BTreeMap::new(),
            };
            for verdict in reach.between(from, to) {
                judge.count(&verdict, &mut failures, &mut verification.leaks);
            }
            verification.pairings.push(Pairing {
                from,
                to,
                is_linked,
                tallies: judge.tallies,
            });
        }
        verification.leaks.extend(undeclared(fabric, from, &links));
    }
    verification.single_points = single_points(fabric, &links);
    verification.failures = failures.into_values().collect();
    let widest = |failure: &Failure| std::cmp::Reverse(failure.pairs);
    verification.failures.sort_by_key(widest);
    for (site, promises) in promises.iter().enumerate() {
        let nodes = promises.peered.iter().enumerate();
        let apart = nodes.filter(|(_, is_peered)| !**is_peered);
        let apart = apart.map(|(node, _)| At { site, node });
        verification.apart.extend(apart);
    }
    verification
}

impl Verification {
    /// Returns whether all promises hold, and nothing else does.
    pub fn holds(&self) -> bool {
        self.failures.is_empty() && self.leaks.is_empty()
    }

    /// Returns the sum of all pairs.
    pub fn total(&self) -> Tally {
        let tallies = self.pairings.iter().flat_map(|it| it.tallies.values());
        tallies.fold(Tally::default(), |sum, tally| Tally {
            promised: sum.promised + tally.promised,
            kept: sum.kept + tally.kept,
            others: sum.others + tally.others,
            reached: sum.reached + tally.reached,
        })
    }
}

/// What a cluster promises to those that it is linked with.
struct Promises {
    /// By number of the node, whether it takes part.
    peered: Vec<bool>,
    /// What is declared for pods.
    pods: Vec<Cidr>,
    /// What is declared for nodes.
    nodes: Vec<Cidr>,
}

impl Promises {
    fn of(fabric: &Fabric, number: usize) -> Self {
        let Some(site) = fabric.site(number) else {
            return Self {
                peered: Vec::new(),
                pods: Vec::new(),
                nodes: Vec::new(),
            };
        };
        let (pods, nodes) = match &site.entry.networks {
            Networks::Typed {
                pods, additional, ..
            } => (pods, additional),
            Networks::Flat { allowed } => (allowed, allowed),
        };
        let cidrs = |ranges: &[Range]| ranges.iter().map(|it| it.cidr).collect();
        let own = &site.model.own.nodes;
        Self {
            peered: (0..own.len())
                .map(|node| is_peered(fabric, At { site: number, node }))
                .collect(),
            pods: cidrs(pods),
            nodes: cidrs(nodes),
        }
    }

    /// Returns whether a link promises these addresses.
    fn include(&self, parcel: &Parcel, dialled: &BTreeSet<IpAddr>) -> bool {
        let is_peered = |node: usize| self.peered.get(node).copied().unwrap_or(false);
        let within = |ranges: &[Cidr]| {
            let mut ranges = ranges.iter();
            ranges.any(|range| Span::of(*range).holds(parcel.span))
        };
        match parcel.owner {
            Owner::Pods(node) => is_peered(node) && within(&self.pods),
            Owner::Node(node) => {
                let address = parcel.span.first_address();
                is_peered(node) && within(&self.nodes) && !dialled.contains(&address)
            }
            Owner::Services | Owner::Network => self.peered.contains(&true),
            Owner::Tunnel(_) | Owner::Pool => false,
        }
    }
}

/// Returns where anybody is dialled: no tunnel can lead there (`kilo.md` §2.6).
fn dialled(fabric: &Fabric) -> BTreeSet<IpAddr> {
    let mut dialled = BTreeSet::new();
    for site in &fabric.sites {
        let peers = (0..site.model.peers.len()).map(Tunnel::Peer);
        let peers = peers.filter_map(|it| site.model.endpoint(it));
        let own = site.model.own.nodes.iter();
        let own = own.filter_map(|it| it.kilo.endpoint.as_ref());
        for endpoint in peers.chain(own) {
            if let Host::Ip(address) = endpoint.host {
                dialled.insert(address);
            }
        }
    }
    dialled
}

/// Returns whether a node takes part in a mesh: somebody has a Peer for its segment, or there is
/// nothing about it that would keep anybody from having one.
fn is_peered(fabric: &Fabric, at: At) -> bool {
    let Some((site, own)) = fabric
        .site(at.site)
        .and_then(|it| Some((it, it.node(at.node)?)))
    else {
        return false;
    };
    let leader = own.segment.and_then(|it| site.leader(it));
    let (Some(Leader::Certain(leader)), Some(node)) = (leader, site.snapshot.nodes.get(at.node))
    else {
        return false;
    };
    if !site.entry.selector.matches(&node.labels) {
        return false;
    }
    let Some(key) = site.node(leader).and_then(|it| it.kilo.key) else {
        return false;
    };
    let mut sites = fabric.sites.iter();
    sites.any(|it| !it.peers_with(&key).is_empty())
        || speaks(site, leader)
            && fabric.holders(&key).len() == 1
            && PublicKey::try_from(key).is_ok()
}

/// Returns whether a leader has what a Peer needs: a WireGuard address that was declared, and an
/// endpoint where its cluster looks for one.
fn speaks(site: &Site, leader: usize) -> bool {
    let (Some(own), Some(node)) = (site.node(leader), site.snapshot.nodes.get(leader)) else {
        return false;
    };
    let is_declared = own.announced.is_some_and(|announced| {
        let mut ranges = site.entry.networks.all().into_iter();
        ranges.any(|range| range.cidr.holds(announced.address))
    });
    let mut sources = site.entry.endpoint_from.iter();
    is_declared
        && (site.entry.keepalive.is_some() || sources.any(|source| has_endpoint(node, *source)))
}

fn has_endpoint(node: &Node, source: EndpointSource) -> bool {
    let says = |key: &str| node.annotations.contains_key(key);
    let has = |kind| node.addresses.iter().any(|it| it.kind == kind);
    match source {
        EndpointSource::Annotation => {
            says(annotation::CLUSTERMESH_ENDPOINT) || says(annotation::FORCE_ENDPOINT)
        }
        EndpointSource::ExternalIP => has(AddressKind::ExternalIP),
        EndpointSource::InternalIP => has(AddressKind::InternalIP),
        EndpointSource::Kilo => says(annotation::ENDPOINT),
    }
}

/// Counts what holds between two clusters.
struct Judge<'j, 'a> {
    fabric: &'j Fabric<'a>,
    from: usize,
    to: usize,
    is_linked: bool,
    sends: &'j Promises,
    receives: &'j Promises,
    /// What the one that sends takes, and what the one that receives does.
    takes: [Vec<&'j [Range]>; 2],
    dialled: &'j BTreeSet<IpAddr>,
    tallies: BTreeMap<(Class, Class), Tally>,
}

impl Judge<'_, '_> {
    fn count(
        &mut self,
        verdict: &Verdict,
        failures: &mut BTreeMap<Cause, Failure>,
        leaks: &mut Vec<Leak>,
    ) {
        // What a cluster has as a whole is promised to pods.
        let is_promise = self.is_linked
            && (verdict.from == Class::Pod || matches!(verdict.to, Class::Pod | Class::Node));
        let [sender, receiver] = &self.takes;
        let promising = |parcels: &[Parcel], promises: &Promises, (number, takes)| {
            let promised = |parcel: &&Parcel| {
                is_promise
                    && promises.include(parcel, self.dialled)
                    && is_accepted(self.fabric.site(number), parcel, takes)
            };
            let promised = parcels.iter().filter(promised);
            promised.copied().collect::<Vec<Parcel>>()
        };
        // Answers need the way back, so each must take what the other has.
        let senders = promising(&verdict.senders, self.sends, (self.from, receiver));
        let receivers = promising(&verdict.receivers, self.receives, (self.to, sender));
        let promised = count(&senders).saturating_mul(count(&receivers));
        let others = verdict.pairs().saturating_sub(promised);
        let failing = verdict.failure();
        let tally = self.tallies.entry((verdict.from, verdict.to)).or_default();
        tally.promised += promised;
        tally.others += others;
        if failing.is_none() {
            tally.kept += promised;
            tally.reached += others;
        }
        if let Some(failing) = failing
            && 0 < promised
        {
            self.fail(failing, verdict, (&senders, &receivers), failures);
        }
        let mut traces = verdict.traces.iter();
        let arrived = traces.find(|trace| trace.there.ending.is_delivered());
        if let Some(arrived) = arrived
            && !self.is_linked
        {
            leaks.push(Leak {
                trace: arrived.clone(),
                pairs: others,
                claim: None,
            });
        }
    }

    /// Adds a failure to those of its cause.
    fn fail(
        &self,
        failing: &Trace,
        verdict: &Verdict,
        (senders, receivers): (&[Parcel], &[Parcel]),
        failures: &mut BTreeMap<Cause, Failure>,
    ) {
        let trace = self.smallest(failing, senders, receivers);
        let pairs = count(senders).saturating_mul(count(receivers));
        let failure = failures.entry(cause(&trace)).or_insert_with(|| Failure {
            trace: trace.clone(),
            pairs: 0,
            between: BTreeSet::new(),
            classes: BTreeSet::new(),
            receivers: BTreeSet::new(),
        });
        failure.pairs += pairs;
        failure.between.insert((self.from, self.to));
        failure.classes.insert((verdict.from, verdict.to));
        let owners = receivers.iter().map(|it| (self.to, it.owner));
        failure.receivers.extend(owners);
        let size = |trace: &Trace| (trace.packet.source, trace.packet.destination);
        if size(&trace) < size(&failure.trace) {
            failure.trace = trace;
        }
    }

    /// Returns how the packet between the smallest of these addresses fails, if it fails as this one
    /// does.
    fn smallest(&self, failing: &Trace, senders: &[Parcel], receivers: &[Parcel]) -> Trace {
        let smallest = |parcels: &[Parcel]| parcels.iter().min_by_key(|it| it.span.first).copied();
        let (Some(sender), Some(receiver)) = (smallest(senders), smallest(receivers)) else {
            return failing.clone();
        };
        let Some(node) = sender.owner.node() else {
            return failing.clone();
        };
        let to = match receiver.owner.node() {
            Some(node) => Goal::Node(At {
                site: self.to,
                node,
            }),
            None => failing.packet.to,
        };
        let trace = self.fabric.exchange(Packet {
            from: At {
                site: self.from,
                node,
            },
            source: sender.span.first_address(),
            to,
            destination: receiver.span.first_address(),
            session: Session::New,
        });
        if trace.verdict() == failing.verdict() {
            return trace;
        }
        failing.clone()
    }
}

/// Returns whether the range with which a cluster would give an address away lies wholly in one entry
/// of each list.
fn is_accepted(site: Option<&Site>, parcel: &Parcel, lists: &[&[Range]]) -> bool {
    if lists.is_empty() {
        return true;
    }
    let given = site.and_then(|site| {
        let mut around = site.owned.around(parcel.span);
        around.find_map(|slot| {
            let (range, owners) = site.owned.get(slot)?;
            owners.contains(&parcel.owner).then_some(range)
        })
    });
    given.is_some_and(|given| {
        let mut lists = lists.iter();
        lists.all(|list| list.iter().any(|it| it.cidr.contains(given)))
    })
}

fn count(parcels: &[Parcel]) -> u64 {
    u64::try_from(parcels.len()).unwrap_or(u64::MAX)
}

/// Returns what a failure has in common with others.
fn cause(trace: &Trace) -> Cause {
    let (from, to) = (trace.packet.from.site, trace.packet.to.site());
    let verdict = trace.verdict();
    match trace.ending() {
        Ending::StolenBy {
            at, claim, range, ..
        }
        | Ending::UnknownKey { at, claim, range } => {
            (verdict, at.site, to, Some((claim.tunnel, *range)))
        }
        Ending::Loops {
            at, peer, range, ..
        } => (verdict, at.site, to, Some((Tunnel::Peer(*peer), *range))),
        Ending::SourceRejected {
            by,
            owner: Some((claim, range)),
            ..
        } => (verdict, by.site, from, Some((claim.tunnel, *range))),
        Ending::SourceRejected { by, .. } | Ending::NotAccepted { by, .. } => {
            (verdict, by.site, from, None)
        }
        Ending::Delivered
        | Ending::LocalShadow { .. }
        | Ending::NoRoute { .. }
        | Ending::NoInitiator { .. }
        | Ending::Ambiguous { .. }
        | Ending::NotReady { .. } => (verdict, from, to, None),
    }
}

fn outsiders(fabric: &Fabric) -> Vec<Outsider> {
    let mut outsiders = Vec::new();
    for (site, it) in fabric.sites.iter().enumerate() {
        for peer in 0..it.model.peers.len() {
            let key = it.model.share(peer).map(|share| share.translation.key);
            if key.is_some_and(|key| fabric.holders(&key).is_empty()) {
                outsiders.push(Outsider { site, peer });
            }
        }
    }
    outsiders
}

/// Finds ranges of a cluster's Peers that go beyond what the cluster they lead to declares, where a
/// packet for them arrives.
fn undeclared(fabric: &Fabric, number: usize, links: &Links) -> Vec<Leak> {
    let Some(site) = fabric.site(number) else {
        return Vec::new();
    };
    let sender = site.model.own.nodes.iter().enumerate();
    let mut senders = sender.filter(|(_, node)| node.segment.is_some());
    let sender = senders.find_map(|(node, own)| Some((node, own.kilo.pod_cidr?)));
    let mut leaks = Vec::new();
    let mut declared: BTreeMap<usize, Prefixes<()>> = BTreeMap::new();
    for (peer, it) in site.model.peers.iter().enumerate() {
        let Some(share) = it.share() else {
            continue;
        };
        let [at] = fabric.holders(&share.translation.key) else {
            continue;
        };
        let Some(home) = fabric.site(at.site).filter(|_| at.site != number) else {
            continue;
        };
        if links.between(number, at.site).is_none() {
            // Whatever gets there is found among the pairs.
            continue;
        }
        let ranges = declared.entry(at.site).or_insert_with(|| {
            let all = home.entry.networks.all().into_iter();
            Prefixes::new(all.map(|it| (it.cidr, ())).collect())
        });
        for kept in &share.kept {
            let range = kept.allowed.interface.network;
            if ranges.look(Span::of(range)).longest.is_some() {
                continue;
            }
            let pieces = ranges.pieces(Span::of(range)).into_iter();
            let outside = pieces
                .filter(|piece| piece.slot.is_none())
                .map(|it| it.span);
            let arrives = |span: Span| {
                let (node, pods) = sender.filter(|it| it.1.family() == span.family)?;
                let trace = fabric.exchange(Packet {
                    from: At { site: number, node },
                    source: pods.first(),
                    to: Goal::Network(at.site),
                    destination: span.first_address(),
                    session: Session::New,
                });
                trace.there.ending.is_delivered().then_some(trace)
            };
            let claim = Claim {
                tunnel: Tunnel::Peer(peer),
                index: kept.index,
                is_certain: kept.is_certain,
            };
            let mut arriving = outside.filter_map(arrives);
            leaks.extend(arriving.next().map(|trace| Leak {
                trace,
                pairs: 1,
                claim: Some((number, claim, range)),
            }));
        }
    }
    leaks
}

/// Finds the nodes without which a cluster that is linked with theirs loses something.
fn single_points(fabric: &Fabric, links: &Links) -> Vec<SinglePoint> {
    let mut points: BTreeMap<At, SinglePoint> = BTreeMap::new();
    for (number, viewer) in fabric.sites.iter().enumerate() {
        for peer in &viewer.model.peers {
            let Some(share) = peer.share() else {
                continue;
            };
            let [at] = fabric.holders(&share.translation.key) else {
                continue;
            };
            let is_other = at.site != number && links.between(number, at.site).is_some();
            let Some(home) = fabric.site(at.site).filter(|_| is_other) else {
                continue;
            };
            // Declared ranges, or parts of them, that it carries for all.
            let ranges = share.kept.iter().map(|it| it.allowed.interface.network);
            let is_shared = |range: &Cidr| {
                let owner = home.owner(range.first());
                matches!(owner, Some(Owner::Services | Owner::Network))
            };
            let mut ranges = ranges.filter(is_shared).peekable();
            let segment = home.segment(at.node);
            let segment = segment.and_then(|it| home.model.own.segments.get(it));
            let members = segment.into_iter().flat_map(|it| &it.members).copied();
            let mut members = members.filter(|it| *it != at.node).peekable();
            if ranges.peek().is_none() && members.peek().is_none() {
                continue;
            }
            let point = points.entry(*at).or_insert_with(|| SinglePoint {
                at: *at,
                viewers: BTreeSet::new(),
                ranges: BTreeSet::new(),
                members: BTreeSet::new(),
            });
            point.viewers.insert(number);
            point.ranges.extend(ranges);
            point.members.extend(members);
        }
    }
    points.into_values().collect()
}
