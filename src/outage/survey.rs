//! Surveys: every single part of a fleet, lost by itself.

use std::cmp::Reverse;

use rayon::prelude::*;

use super::obstacle::OutageObstacle;
use super::part::{FleetPart, single_parts};
use super::proof::{OutageProof, OutageResult};

/// The number of losses that are proved at the same time.
const BATCH: usize = 16;

/// The effects of the losses of all single parts.
#[derive(Clone, Debug, Default)]
pub struct Survey {
    /// The number of parts: nodes, locations and clusters.
    pub parts: usize,
    /// The number of parts for which a proof was needed.
    pub proved: usize,
    /// Those whose loss ends paths of others, the one that ends most first.
    pub harmful: Vec<Harm>,
    /// Those of which it is not known.
    pub unexamined: Vec<(FleetPart, OutageObstacle)>,
}

/// A part whose loss ends paths of others.
#[derive(Clone, Debug)]
pub struct Harm {
    /// The part.
    pub part: FleetPart,
    /// The paths.
    pub result: OutageResult,
}

impl OutageProof<'_, '_, '_, '_> {
    /// Tries every single node, location and cluster.
    pub fn survey(&self) -> Survey {
        let parts = single_parts(self.fabric());
        let mut survey = Survey { parts: parts.len(), ..Survey::default() };
        for (part, result) in self.prove_each(parts) {
            survey.proved += usize::from(result.is_ok());
            match result {
                Ok(result) if result.ended.is_empty() => {}
                Ok(result) => survey.harmful.push(Harm { part, result }),
                Err(obstacle) => survey.unexamined.push((part, obstacle)),
            }
        }
        survey.harmful.sort_by_key(|it| Reverse(it.result.paths()));
        survey
    }

    /// Proves the losses of those parts that are not recognised as harmless, each by itself. All of them together take at
    /// most the steps of one proof; the others are not examined.
    pub(super) fn prove_each(
        &self,
        parts: Vec<FleetPart>,
    ) -> Vec<(FleetPart, Result<OutageResult, OutageObstacle>)> {
        let parts = parts.into_par_iter().map(|it| (it.nodes(self.fabric()), it));
        let parts: Vec<_> = parts.filter(|it| !self.is_harmless(&it.0)).collect();
        let mut left = self.most;
        let mut proved = Vec::with_capacity(parts.len());
        // The same are proved, however many threads there are.
        for batch in parts.chunks(BATCH) {
            let affordable = batch.iter().scan(left, |left, (lost, _)| {
                *left = left.saturating_sub(self.steps_of_nodes(lost));
                Some(*left)
            });
            let affordable: Vec<u64> = affordable.collect();
            let results = batch.par_iter().zip(affordable).map(|((lost, _), most)| match most {
                0 => Err(OutageObstacle::Steps),
                most => self.prove_within(lost, most),
            });
            let results: Vec<Result<OutageResult, OutageObstacle>> = results.collect();
            for ((lost, part), result) in batch.iter().zip(results) {
                let nodes = self.steps_of_nodes(lost);
                let taken = result.as_ref().map_or(nodes, |it| nodes.saturating_add(it.steps));
                let is_affordable = taken < left;
                left = left.saturating_sub(taken);
                let result = result
                    .and_then(|it| if is_affordable { Ok(it) } else { Err(OutageObstacle::Steps) });
                proved.push((part.clone(), result));
            }
        }
        proved
    }
}
