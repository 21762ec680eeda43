//! The Peers of a plan, by what is looked for in it.

use std::collections::{BTreeMap, BTreeSet};

use crate::kilo::peer::Peer;
use crate::manifest::OldPeer;
use crate::name::PeerSetName;
use crate::net::Cidr;
use crate::plan::{AbsentSource, PeerSet, PeerSetId, Plan, Target};

/// A Peer, and the number of its set of Peers.
type NumberedPeer<'a> = (PeerSetId, Planned<'a>);

/// The Peers of all sets of Peers.
#[derive(Default)]
pub(super) struct PlanIndex<'a> {
    members: BTreeSet<&'a str>,
    names: BTreeMap<&'a str, Vec<NumberedPeer<'a>>>,
    keys: BTreeMap<&'a [u8; 32], Vec<NumberedPeer<'a>>>,
}

/// The Peers of one target.
pub(super) struct Given<'a> {
    index: &'a PlanIndex<'a>,
    /// Sources that give nothing although people let them.
    absent: BTreeMap<&'a str, &'a AbsentSource>,
    seen: &'a BTreeSet<PeerSetName>,
    peer_sets: BTreeSet<PeerSetId>,
    sources: BTreeMap<&'a str, &'a PeerSet>,
    /// The cluster-wide ranges, by source.
    carriers: BTreeMap<&'a str, BTreeMap<Cidr, &'a Peer>>,
}

/// A Peer in its set of Peers.
#[derive(Clone, Copy)]
pub(super) struct Planned<'a> {
    pub(super) peer_set: &'a PeerSet,
    pub(super) peer: &'a Peer,
}

impl<'a> PlanIndex<'a> {
    pub(super) fn new(plan: &'a Plan) -> Self {
        let targets = plan.targets.iter().map(|it| it.cluster.as_str());
        let externals = plan.externals.iter().map(|it| it.cluster.as_str());
        let mut index = Self { members: targets.chain(externals).collect(), ..Self::default() };
        for (id, peer_set) in plan.peer_sets.numbered() {
            for peer in &peer_set.peers {
                let at = (id, Planned { peer_set, peer });
                index.names.entry(peer.name.as_str()).or_default().push(at);
                index.keys.entry(peer.key.as_bytes()).or_default().push(at);
            }
        }
        index
    }

    /// Returns what one target gets.
    pub(super) fn given(&'a self, plan: &'a Plan, target: &'a Target) -> Given<'a> {
        let peer_sets: Vec<&PeerSet> = plan.sets_of(target).collect();
        let mut carriers: BTreeMap<&str, BTreeMap<Cidr, &Peer>> = BTreeMap::new();
        for peer_set in &peer_sets {
            let shared: BTreeSet<&Cidr> = peer_set.shared.iter().collect();
            let peers = peer_set.peers.iter().filter(|_| !shared.is_empty());
            for (peer, range) in
                peers.flat_map(|it| it.allowed_ips.iter().map(move |cidr| (it, cidr)))
            {
                if shared.contains(range) {
                    carriers.entry(peer_set.source.as_str()).or_default().insert(*range, peer);
                }
            }
        }
        Given {
            index: self,
            seen: &target.seen,
            absent: target.absent.iter().map(|(source, it)| (source.as_str(), it)).collect(),
            peer_sets: target.peer_sets.iter().copied().collect(),
            sources: peer_sets.iter().map(|it| (it.source.as_str(), *it)).collect(),
            carriers,
        }
    }
}

impl<'a> Given<'a> {
    /// Returns the Peer of a name.
    pub(super) fn named(&self, name: &str) -> Option<Planned<'a>> {
        self.first(self.index.names.get(name)?)
    }

    /// Returns the Peer of a key.
    pub(super) fn keyed(&self, key: &[u8; 32]) -> Option<Planned<'a>> {
        self.first(self.index.keys.get(key)?)
    }

    /// Returns which Peers carry the cluster-wide ranges of a source.
    pub(super) fn carriers(&self, source: &str) -> Option<&BTreeMap<Cidr, &'a Peer>> {
        self.carriers.get(source)
    }

    /// Returns what a source gives.
    pub(super) fn peer_set(&self, source: &str) -> Option<&'a PeerSet> {
        self.sources.get(source).copied()
    }

    /// Returns whether people still let the target have a Peer of a source that gives nothing.
    pub(super) fn lets(&self, source: &str, old: &OldPeer) -> bool {
        let absent = self.absent(source);
        absent.is_some_and(|absent| absent.lets(&old.ranges, old.dialled.as_ref()))
    }

    /// Returns whether a mesh links the target to a source, given the name of the set of its Peers.
    pub(super) fn sees(&self, peer_set: &str) -> bool {
        self.seen.iter().any(|it| it.as_str() == peer_set)
    }

    /// Returns whether a mesh has a cluster or external peer of this name.
    pub(super) fn has_member(&self, name: &str) -> bool {
        self.index.members.contains(name)
    }

    /// Returns what a source that gives nothing might give.
    pub(super) fn absent(&self, source: &str) -> Option<&'a AbsentSource> {
        self.absent.get(source).copied()
    }

    fn first(&self, all: &[NumberedPeer<'a>]) -> Option<Planned<'a>> {
        all.iter().find(|it| self.peer_sets.contains(&it.0)).map(|it| it.1)
    }
}

impl<'a> Planned<'a> {
    /// Returns the node, if the name still contains it.
    pub(super) fn node(&self) -> &'a str {
        let name = self.peer.name.as_str();
        name.strip_prefix(self.peer_set.name.as_str())
            .and_then(|it| it.strip_prefix("--"))
            .unwrap_or(name)
    }
}
