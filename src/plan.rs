//! The plan: which Peers every cluster gets, and what was cut for its sake.

use std::collections::{BTreeMap, BTreeSet};

use crate::fleet::Fleet;
use crate::kilo::peer::Peer;
use crate::name::{BlockName, ClusterName, MeshName};
use crate::net::Cidr;

use self::block::{Blocks, Key};
use self::ground::Ground;
use self::key::Keepers;
use self::seen::Seen;

mod accepted;
mod anchor;
mod block;
mod cut;
mod ground;
mod hijack;
mod key;
mod loops;
mod missed;
mod promise;
mod seat;
mod seen;
mod within;

pub use cut::{
    Captured, Cut, CutOff, DistantAnchor, Endpoint, Fate, FewerAnchors, LocalNetwork, LoopingPeer,
    LoopingRanges, Own, Ranges, UnknownAnchor,
};
pub use missed::Missed;
pub use promise::BrokenPromise;

/// The Peers of every cluster.
#[derive(Debug, Default)]
pub struct Plan {
    /// Every different set of Peers, each used by one target or many.
    pub blocks: Vec<Block>,
    /// Every cluster, by name.
    pub targets: Vec<Target>,
    /// What a target does not get although its source offers it.
    pub cuts: Vec<Cut>,
    /// Clusters with nodes that give no other cluster a Peer, by name.
    pub silent: Vec<ClusterName>,
}

/// What one source gives to one target, or to many: the Peers of its segments.
#[derive(Debug)]
pub struct Block {
    /// The common beginning of their names.
    pub name: BlockName,
    /// The mesh that links the two.
    pub mesh: MeshName,
    /// The cluster that they lead to.
    pub source: ClusterName,
    /// The Peers, by name; never none.
    pub peers: Vec<Peer>,
    /// Which of the ranges that they carry are the whole cluster's.
    pub shared: Vec<Cidr>,
}

/// A cluster as a target.
#[derive(Debug)]
pub struct Target {
    /// The cluster.
    pub cluster: ClusterName,
    /// Places in [`Plan::blocks`], in order of their names.
    pub blocks: Vec<usize>,
    /// Sources that it sees and that give it nothing.
    pub without: BTreeSet<ClusterName>,
    /// Those of them that people let give it something.
    pub missed: BTreeMap<ClusterName, Missed>,
}

impl Plan {
    /// Returns the targets that get no Peer for what people wrote. One that only nodes' claims keep
    /// from having any is not among them: a node must not be able to stop everybody's render.
    pub fn empty(&self) -> impl Iterator<Item = &Target> {
        let empty = self.targets.iter().filter(|it| it.blocks.is_empty());
        empty.filter(|it| !it.missed.values().any(|missed| missed.is_claimed))
    }
}

/// Plans a fleet.
///
/// # Errors
/// Never, unless this program is wrong about its own promise: nothing outside of what sources
/// declare and targets accept.
pub fn plan(fleet: &Fleet) -> Result<Plan, BrokenPromise> {
    let ground = Ground::new(fleet);
    let mut blocks = Blocks::default();
    let mut targets = Vec::new();
    let mut cuts = Vec::new();
    for target in fleet.clusters() {
        let seen = Seen::new(&ground, target);
        let mut verdicts = seen.verdicts();
        let mut keepers = Keepers::new();
        let mut given = Vec::new();
        let mut without = BTreeSet::new();
        let mut missed = BTreeMap::new();
        for source in &seen.sources {
            let mut verdict = verdicts.remove(&source.index).unwrap_or_default();
            key::settle(&seen, source, &mut keepers, &mut verdict);
            let draft = blocks.draft(
                source.member,
                ground.within(source.index),
                Key {
                    member: source.index,
                    family: seen.family,
                    dropped: verdict.dropped,
                    withheld: verdict.withheld,
                    holes: verdict.holes,
                },
            )?;
            let block = draft.block.and_then(|index| blocks.get(index));
            if let (Some(accepted), Some(block)) = (seen.accepted(source), block) {
                promise::is_accepted(target, accepted, block)?;
            }
            given.extend(draft.block);
            let name = &source.member.entry.name;
            let found = verdict.cuts.into_iter().chain(draft.cuts.iter().cloned());
            let found: Vec<_> = found.collect();
            if draft.block.is_none() {
                without.insert(name.clone());
                let missing = Missed::of(&seen, source, &found);
                missed.extend(missing.map(|it| (name.clone(), it)));
            }
            cuts.extend(found.into_iter().map(|what| Cut {
                target: target.clone(),
                source: name.clone(),
                what,
            }));
        }
        given.sort_by(|&a, &b| blocks.name(a).cmp(&blocks.name(b)));
        targets.push(Target {
            cluster: target.clone(),
            blocks: given,
            without,
            missed,
        });
    }
    Ok(Plan {
        silent: silent(fleet, &blocks.made),
        blocks: blocks.made,
        targets,
        cuts,
    })
}

fn silent(fleet: &Fleet, blocks: &[Block]) -> Vec<ClusterName> {
    let giving: BTreeSet<&ClusterName> = blocks.iter().map(|block| &block.source).collect();
    let has_nodes = |cluster: &ClusterName| {
        let mut members = fleet.memberships(cluster);
        members.any(|it| !it.cluster.nodes.is_empty())
    };
    let clusters = fleet.clusters();
    let silent = clusters.filter(|it| !giving.contains(it) && has_nodes(it));
    silent.cloned().collect()
}

#[cfg(test)]
mod tests;
