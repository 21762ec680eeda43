//! Survival: whether the paths of expectations survive the loss of every single node.

use std::cmp::Reverse;

use super::obstacle::OutageObstacle;
use super::part::{FleetPart, single_parts};
use super::proof::{LostPaths, OutageProof, OutageResult};
use crate::agent::fabric::{NodeRef, SitePair};
use crate::changes::path_set::PathSet;
use crate::expectations::Expected;
use crate::packet::messages::end;
use crate::proof::expectation::{Check, MeantBlocks, Survival};
use crate::proof::reach::Reach;

/// Completes the results of expectations whose paths must survive losses. Proofs take at most `most` steps each.
pub fn survive(reach: &Reach, checks: &mut [Check], most: u64) {
    let is_asked =
        |it: &Check| it.expectation.survives_a_node && it.expectation.expected == Expected::Reach;
    let mut asked = checks.iter_mut().filter(|it| is_asked(it)).peekable();
    if asked.peek().is_none() {
        return;
    }
    let proof = OutageProof::of_all_paths(reach, most);
    let losses = proof.single_nodes();
    for check in asked {
        check.survival = Some(proof.survival(check, &losses));
    }
}

/// The effect of the loss of a node.
type NodeLoss = (NodeRef, Result<OutageResult, OutageObstacle>);

impl OutageProof<'_, '_, '_, '_> {
    /// Finds what the losses of all single nodes do that are not known to be harmless.
    fn single_nodes(&self) -> Vec<NodeLoss> {
        let mut nodes = single_parts(self.fabric());
        nodes.retain(|it| matches!(it, FleetPart::Node(_)));
        let losses = self.prove_each(nodes).into_iter().filter_map(|(part, loss)| match part {
            FleetPart::Node(at) => Some((at, loss)),
            _ => None,
        });
        losses.filter(|it| it.1.as_ref().map_or(true, |it| !it.ended.is_empty())).collect()
    }

    fn survival(&self, check: &Check, losses: &[NodeLoss]) -> Survival {
        let meant = MeantBlocks::new(self.fabric(), check.expectation);
        let mut survival = Survival { partial: self.partial(&meant), ..Survival::default() };
        let mut harmful: Vec<(NodeRef, Vec<LostPaths>)> = Vec::new();
        for (at, loss) in losses {
            match loss {
                Ok(result) => {
                    let ended =
                        result.ended.iter().filter_map(|it| self.meant(it.pair, &it.paths, &meant));
                    let ended: Vec<LostPaths> = ended.collect();
                    if !ended.is_empty() {
                        harmful.push((*at, ended));
                    }
                }
                Err(_) if is_concerned(*at, &meant) => survival.unexamined.push(*at),
                Err(_) => {}
            }
        }
        let count = |ended: &[LostPaths]| ended.iter().map(LostPaths::count).sum::<u64>();
        harmful.sort_by_key(|it| Reverse(count(&it.1)));
        if let Some((_, worst)) = harmful.first() {
            survival.ended = count(worst);
            survival.is_carried =
                harmful.iter().flat_map(|it| &it.1).any(LostPaths::leads_to_a_range);
            let example = worst.iter().find_map(|it| Some((it.pair, it.example?)));
            survival.example = example.map(|(pair, [from, to])| {
                [
                    end(self.fabric(), pair.from, from.owner, from.span),
                    end(self.fabric(), pair.to, to.owner, to.span),
                ]
            });
        }
        survival.nodes = harmful.iter().map(|it| it.0).collect();
        survival
    }

    /// Counts the paths that an expectation means and that work in part.
    fn partial(&self, meant: &MeantBlocks) -> u64 {
        let sites = || self.fabric().sites.ids();
        let pairs = sites().flat_map(|from| sites().map(move |to| SitePair { from, to }));
        let is_meant = |it: &SitePair| {
            !meant.senders[it.from].is_clear() && !meant.receivers[it.to].is_clear()
        };
        pairs
            .filter(is_meant)
            .map(|pair| {
                self.meant(pair, self.working_in_part(pair), meant).map_or(0, |it| it.count())
            })
            .sum()
    }

    /// Returns those of some paths that an expectation means.
    fn meant(&self, pair: SitePair, paths: &PathSet, meant: &MeantBlocks) -> Option<LostPaths> {
        if paths.is_empty() {
            return None;
        }
        let mut paths = paths.clone();
        paths.retain(&meant.senders[pair.from], &meant.receivers[pair.to]);
        self.counted(pair, paths)
    }
}

/// Returns whether an expectation is about the cluster of a node.
fn is_concerned(at: NodeRef, meant: &MeantBlocks) -> bool {
    [&meant.senders, &meant.receivers].into_iter().any(|it| !it[at.site].is_clear())
}
