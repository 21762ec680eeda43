//! The Peers of a plan, by what is looked for in it.

use std::collections::{BTreeMap, BTreeSet};

use crate::kilo::peer::Peer;
use crate::manifest::OldPeer;
use crate::net::Cidr;
use crate::plan::{Block, Missed, Plan, Target};

/// Where a Peer is: its block, and its place in that.
type At = (usize, usize);

/// The Peers of all blocks.
#[derive(Default)]
pub(super) struct Index<'a> {
    names: BTreeMap<&'a str, Vec<At>>,
    keys: BTreeMap<&'a [u8; 32], Vec<At>>,
}

/// What one target gets.
pub(super) struct Given<'a> {
    index: &'a Index<'a>,
    plan: &'a Plan,
    /// Sources that give nothing although people let them.
    missed: BTreeMap<&'a str, &'a Missed>,
    blocks: BTreeSet<usize>,
    sources: BTreeMap<&'a str, &'a Block>,
    /// The cluster-wide ranges, by source.
    carriers: BTreeMap<&'a str, BTreeMap<Cidr, &'a Peer>>,
}

/// A Peer in its block.
#[derive(Clone, Copy)]
pub(super) struct Planned<'a> {
    pub(super) block: &'a Block,
    pub(super) peer: &'a Peer,
}

impl<'a> Index<'a> {
    pub(super) fn of(plan: &'a Plan) -> Self {
        let mut index = Self::default();
        for (block_at, block) in plan.blocks.iter().enumerate() {
            for (peer_at, peer) in block.peers.iter().enumerate() {
                let at = (block_at, peer_at);
                index.names.entry(peer.name.as_str()).or_default().push(at);
                index.keys.entry(peer.key.as_bytes()).or_default().push(at);
            }
        }
        index
    }

    /// Returns what one target gets.
    pub(super) fn given(&'a self, plan: &'a Plan, target: &'a Target) -> Given<'a> {
        let blocks = target.blocks.iter();
        let blocks: Vec<&Block> = blocks.filter_map(|&it| plan.blocks.get(it)).collect();
        let mut carriers: BTreeMap<&str, BTreeMap<Cidr, &Peer>> = BTreeMap::new();
        for block in &blocks {
            let shared: BTreeSet<&Cidr> = block.shared.iter().collect();
            let peers = block.peers.iter().filter(|_| !shared.is_empty());
            for (peer, range) in
                peers.flat_map(|it| it.allowed_ips.iter().map(move |cidr| (it, cidr)))
            {
                if shared.contains(range) {
                    let of_source = carriers.entry(block.source.as_str()).or_default();
                    of_source.insert(*range, peer);
                }
            }
        }
        Given {
            index: self,
            plan,
            missed: target
                .missed
                .iter()
                .map(|(source, it)| (source.as_str(), it))
                .collect(),
            blocks: target.blocks.iter().copied().collect(),
            sources: blocks.iter().map(|it| (it.source.as_str(), *it)).collect(),
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
    pub(super) fn block(&self, source: &str) -> Option<&'a Block> {
        self.sources.get(source).copied()
    }

    /// Returns whether people still let the target have a Peer of a source that gives nothing.
    pub(super) fn lets(&self, source: &str, old: &OldPeer) -> bool {
        let missed = self.missed(source);
        missed.is_some_and(|missed| old.ranges.iter().any(|it| missed.lets(*it)))
    }

    /// Returns what a source that gives nothing might give.
    pub(super) fn missed(&self, source: &str) -> Option<&'a Missed> {
        self.missed.get(source).copied()
    }

    fn first(&self, all: &[At]) -> Option<Planned<'a>> {
        let mut of_target = all.iter().filter(|(block, _)| self.blocks.contains(block));
        let &(block, peer) = of_target.next()?;
        let block = self.plan.blocks.get(block)?;
        let peer = block.peers.get(peer)?;
        Some(Planned { block, peer })
    }
}

impl<'a> Planned<'a> {
    /// Returns the node, if the name still contains it.
    pub(super) fn node(&self) -> &'a str {
        let name = self.peer.name.as_str();
        let rest = name.strip_prefix(self.block.name.as_str());
        rest.and_then(|it| it.strip_prefix("--")).unwrap_or(name)
    }
}
