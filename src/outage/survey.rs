//! Surveys: every single part of a fleet, lost by itself.

use rayon::prelude::*;

use super::lost_nodes::LostNodes;
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
    /// Its nodes.
    pub lost: LostNodes,
    /// The paths.
    pub result: OutageResult,
}

impl OutageProof<'_, '_, '_, '_> {
    /// Tries every single node, location and cluster.
    pub fn survey(&self) -> Survey {
        let parts = single_parts(self.fabric());
        let count = parts.len();
        let losses = parts.into_iter().map(|part| {
            let lost = part.nodes(self.fabric());
            (part, lost)
        });
        let losses: Vec<(FleetPart, LostNodes)> =
            losses.filter(|it| !self.is_harmless(&it.1)).collect();
        let mut survey = Survey {
            parts: count,
            proved: losses.len(),
            ..Survey::default()
        };
        let proved = losses.into_par_iter().map(|(part, lost)| {
            let result = self.prove(&lost);
            (part, lost, result)
        });
        let proved: Vec<_> = proved.collect();
        for (part, lost, result) in proved {
            match result {
                Ok(result) if result.ended.is_empty() => {}
                Ok(result) => survey.harmful.push(Harm { part, lost, result }),
                Err(obstacle) => survey.unexamined.push((part, obstacle)),
            }
        }
        let paths = |it: &Harm| std::cmp::Reverse(it.result.paths());
        survey.harmful.sort_by_key(paths);
        survey
    }
}
