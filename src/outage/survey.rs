//! Surveys: every single part of a fleet, lost by itself.

use std::cmp::Reverse;

use rayon::prelude::*;

use super::obstacle::OutageObstacle;
use super::part::{FleetPart, single_parts};
use super::proof::{OutageProof, OutageResult};

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
        let count = parts.len();
        let proved = parts.into_par_iter().filter_map(|part| {
            let lost = part.nodes(self.fabric());
            (!self.is_harmless(&lost)).then(|| (part, self.prove(&lost)))
        });
        let proved: Vec<(FleetPart, Result<OutageResult, OutageObstacle>)> = proved.collect();
        let mut survey = Survey { parts: count, proved: proved.len(), ..Survey::default() };
        for (part, result) in proved {
            match result {
                Ok(result) if result.ended.is_empty() => {}
                Ok(result) => survey.harmful.push(Harm { part, result }),
                Err(obstacle) => survey.unexamined.push((part, obstacle)),
            }
        }
        survey.harmful.sort_by_key(|it| Reverse(it.result.paths()));
        survey
    }
}
