//! The plan: which Peers every cluster gets, and what was cut for its sake.

use std::collections::BTreeSet;

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
mod promise;
mod seen;
mod within;

pub use cut::{
    Captured, Cut, CutOff, Endpoint, FewerAnchors, LoopingPeer, LoopingRanges, Own, Ranges,
    UnknownAnchor,
};
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
    /// Targets that get nothing and might, if it were not for nodes or ranges that sources leave out.
    pub missed: BTreeSet<ClusterName>,
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

/// A cluster, and what it gets.
#[derive(Debug)]
pub struct Target {
    /// The cluster.
    pub cluster: ClusterName,
    /// Places in [`Plan::blocks`], in order of their names.
    pub blocks: Vec<usize>,
}

impl Plan {
    /// Returns the targets that get no Peer for what people wrote. One that only nodes' claims keep
    /// from having any is not among them: a node must not be able to stop everybody's render.
    pub fn empty(&self) -> impl Iterator<Item = &Target> {
        let of_claims = self.cuts.iter().filter(|it| 0 < it.what.nodes_of_claims());
        let of_claims: BTreeSet<&ClusterName> = of_claims.map(|cut| &cut.target).collect();
        let empty = self.targets.iter().filter(|it| it.blocks.is_empty());
        let is_missed = |it: &&Target| self.missed.contains(&it.cluster);
        empty.filter(move |it| !of_claims.contains(&it.cluster) && !is_missed(it))
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
    let mut missed = BTreeSet::new();
    for target in fleet.clusters() {
        let seen = Seen::new(&ground, target);
        let mut verdicts = seen.verdicts();
        let mut keepers = Keepers::new();
        let mut given = Vec::new();
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
                },
            )?;
            let block = draft.block.and_then(|index| blocks.get(index));
            if let (Some(accepted), Some(block)) = (seen.accepted(source), block) {
                promise::is_accepted(target, accepted, block)?;
            }
            given.extend(draft.block);
            let found = verdict.cuts.into_iter().chain(draft.cuts.iter().cloned());
            cuts.extend(found.map(|what| Cut {
                target: target.clone(),
                source: source.member.entry.name.clone(),
                what,
            }));
        }
        let mut sources = seen.sources.iter();
        if given.is_empty() && sources.any(|it| it.member.roster.misses_some()) {
            missed.insert(target.clone());
        }
        given.sort_by(|&a, &b| blocks.name(a).cmp(&blocks.name(b)));
        targets.push(Target {
            cluster: target.clone(),
            blocks: given,
        });
    }
    Ok(Plan {
        blocks: blocks.made,
        targets,
        cuts,
        missed,
    })
}

#[cfg(test)]
mod tests;
