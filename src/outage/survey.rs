//! Surveys: every single part of a fleet, lost by itself, and every pair of parts.

use rayon::prelude::*;

use super::harm::{Harm, PartLoss, ProvedLoss, sort};
use super::obstacle::OutageObstacle;
use super::pairs::PairSurvey;
use super::part::{FleetPart, single_parts};
use super::proof::OutageProof;

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
    /// The effects of the losses of pairs, if they were tried.
    pub pairs: Option<PairSurvey>,
}

impl OutageProof<'_, '_, '_, '_> {
    /// Tries every single node, location and cluster, and with `has_pairs` every pair of nodes and locations.
    pub fn survey(&self, has_pairs: bool) -> Survey {
        let parts = single_parts(self.fabric());
        let count = parts.len();
        let losses = parts.into_iter().filter_map(|part| {
            let lost = part.nodes(self.fabric());
            let (site, _) = lost.by_site().next()?;
            Some(PartLoss { part, site, lost })
        });
        let (harmless, losses): (Vec<PartLoss>, Vec<PartLoss>) =
            losses.partition(|it| self.is_harmless(&it.lost));
        let proved = losses.into_par_iter().map(|loss| ProvedLoss {
            result: self.prove(&loss.lost),
            loss,
        });
        let proved: Vec<ProvedLoss> = proved.collect();
        let mut survey = Survey {
            parts: count,
            proved: proved.len(),
            pairs: has_pairs.then(|| self.survey_pairs(&harmless, &proved)),
            ..Survey::default()
        };
        for ProvedLoss { loss, result } in proved {
            match result {
                Ok(result) if result.ended.is_empty() => {}
                Ok(result) => survey.harmful.push(Harm {
                    parts: vec![loss.part],
                    lost: loss.lost,
                    result,
                }),
                Err(obstacle) => survey.unexamined.push((loss.part, obstacle)),
            }
        }
        sort(&mut survey.harmful);
        survey
    }
}
