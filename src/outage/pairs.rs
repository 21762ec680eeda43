//! Pairs: two nodes or locations of a fleet that are lost together.
//!
//! Most pairs need no proof. Two losses that are recognised as harmless are harmless together. A harmless loss stays
//! harmless beside a loss in another cluster, because what makes it harmless is in its own cluster. And if two clusters
//! lose nodes, only the paths from one to the other depend on both losses.

use std::cmp::Reverse;
use std::collections::BTreeMap;
use std::sync::Arc;

use rayon::prelude::*;

use super::harm::{Harm, PartLoss, ProvedLoss, sort};
use super::obstacle::OutageObstacle;
use super::part::FleetPart;
use super::proof::{LostPaths, OutageProof, OutageResult};
use crate::agent::fabric::{Site, SiteId, SitePair, Sites};
use crate::snapshot::Snapshot;

/// The effects of the losses of all pairs of nodes and locations. A whole cluster is in none: no path of others is between
/// it and another part.
#[derive(Clone, Debug, Default)]
pub struct PairSurvey {
    /// The number of pairs, without those of a location and one of its own nodes.
    pub pairs: usize,
    /// The number of pairs for which a proof was needed.
    pub proved: usize,
    /// Those whose loss ends paths that the loss of neither part ends, with these paths, the pair with most of them
    /// first.
    pub harmful: Vec<Harm>,
    /// The number of pairs of which it is not known.
    pub unexamined: usize,
}

/// The largest number of pairs that are proved. The proof of one takes up to some milliseconds.
const MOST_PROVED: usize = 10_000;

/// Two parts for which a proof is needed.
struct OpenPair<'p> {
    losses: [&'p PartLoss; 2],
    /// The paths that end without each of them.
    ended: [&'p [LostPaths]; 2],
    /// The versions of their clusters, if they are in two.
    versions: Option<LostVersions<'p>>,
}

/// Clusters after they lost nodes.
type LostVersions<'s> = BTreeMap<SiteId, Arc<Site<'s>>>;

/// The parts of a survey by what is known of their losses.
struct SortedParts<'p> {
    /// Those that are recognised as harmless, by cluster.
    harmless: Sites<Vec<&'p PartLoss>>,
    /// Those that were proved, with the paths that end, the one that ends most first.
    proved: Vec<(&'p PartLoss, &'p [LostPaths])>,
    /// Those that could not be examined.
    unknown: Vec<&'p PartLoss>,
}

impl<'p> SortedParts<'p> {
    fn new(
        clusters: impl Iterator<Item = SiteId>,
        harmless: &'p [PartLoss],
        proved: &'p [ProvedLoss],
    ) -> Self {
        let mut sorted = Self {
            harmless: Sites::new(clusters.map(|_| Vec::new()).collect()),
            proved: Vec::new(),
            unknown: Vec::new(),
        };
        for it in harmless {
            if !matches!(it.part, FleetPart::Cluster(_)) {
                sorted.harmless[it.site].push(it);
            }
        }
        for ProvedLoss { loss, result } in proved {
            match result {
                Ok(result) => sorted.proved.push((loss, &result.ended)),
                Err(_) => sorted.unknown.push(loss),
            }
        }
        let paths = |ended: &[LostPaths]| ended.iter().map(LostPaths::count).sum::<u64>();
        sorted.proved.sort_by_key(|it| Reverse(paths(it.1)));
        sorted
    }

    /// Counts all pairs, without those of a location and one of its own nodes.
    fn pairs(&self) -> usize {
        let open = self
            .proved
            .iter()
            .map(|it| it.0)
            .chain(self.unknown.iter().copied());
        let all: Vec<&PartLoss> = self
            .harmless
            .iter()
            .flatten()
            .copied()
            .chain(open)
            .collect();
        let locations = all
            .iter()
            .filter(|it| matches!(it.part, FleetPart::Location(..)));
        let inside = locations.map(|location| {
            let nodes = all.iter().filter(|it| it.site == location.site);
            let inside = nodes.filter(|it| it.lost.are_among(&location.lost));
            inside.count().saturating_sub(1)
        });
        let inside: usize = inside.sum();
        (all.len() * all.len().saturating_sub(1) / 2).saturating_sub(inside)
    }
}

impl OutageProof<'_, '_, '_, '_> {
    /// Tries all pairs, given what is known of single parts.
    pub(super) fn survey_pairs(&self, harmless: &[PartLoss], proved: &[ProvedLoss]) -> PairSurvey {
        let parts = SortedParts::new(self.fabric().sites.ids(), harmless, proved);
        // A part is paired with those that end more paths.
        let places = (0..parts.proved.len()).flat_map(|it| (0..it).map(move |first| [first, it]));
        let mut places = places.filter(|places| {
            let [one, other] = places.map(|it| parts.proved.get(it));
            let losses = one.zip(other);
            losses.is_some_and(|(one, other)| self.may_add(one.0, other.0))
        });
        let places_to_prove: Vec<[usize; 2]> = places.by_ref().take(MOST_PROVED).collect();
        let left = places.count();
        let last = places_to_prove.last().map_or(0, |it| it[1] + 1);
        let tried = if left == 0 { parts.proved.len() } else { last };
        let tried = parts.proved.get(..tried).unwrap_or_default();
        let settled = tried.par_iter().map(|it| self.settled(&it.0.lost));
        let settled: Vec<BTreeMap<SiteId, Snapshot>> =
            settled.map(Result::unwrap_or_default).collect();
        let versions = settled.par_iter();
        let versions = versions.map(|it| it.iter().map(|it| self.version(it)).collect());
        let versions: Vec<LostVersions> = versions.collect();
        let proved: Vec<_> = tried.iter().zip(&versions).collect();
        let across = places_to_prove.iter().filter_map(|places| {
            let [one, other] = places.map(|it| proved.get(it));
            Some(OpenPair::new(*one?, *other?))
        });
        let beside = proved
            .par_iter()
            .flat_map_iter(|it| self.beside(it.0, it.1, &parts));
        let beside: Vec<OpenPair> = beside.collect();
        let open: Vec<OpenPair> = across.chain(beside).collect();
        let rest = parts.proved.get(tried.len()..).unwrap_or_default();
        let mut survey = PairSurvey {
            pairs: parts.pairs(),
            proved: open.len().min(MOST_PROVED),
            harmful: Vec::new(),
            unexamined: left
                + open.len().saturating_sub(MOST_PROVED)
                + rest
                    .iter()
                    .map(|it| self.partners(it.0, &parts).count())
                    .sum::<usize>()
                + self.unknown(&parts),
        };
        let results = open
            .par_iter()
            .take(MOST_PROVED)
            .map(|it| self.prove_pair(it));
        for result in results.collect::<Vec<_>>() {
            match result {
                Ok(harm) => survey.harmful.extend(harm),
                Err(_) => survey.unexamined += 1,
            }
        }
        sort(&mut survey.harmful);
        survey
    }

    /// Returns whether two parts may end paths together that none of them ends, harmless ones of two clusters aside.
    fn may_add(&self, one: &PartLoss, other: &PartLoss) -> bool {
        let (from, to) = (one.site, other.site);
        if from != to {
            return self.are_linked(SitePair { from, to });
        }
        let [one, other] = [&one.lost, &other.lost];
        let is_one = one.are_among(other) || other.are_among(one);
        !is_one && !one.with(other).are_all_of(self.fabric(), from)
    }

    /// Returns the harmless parts in the cluster of another part with which that may end more paths.
    fn partners<'s, 'p>(
        &'s self,
        loss: &'s PartLoss,
        parts: &'s SortedParts<'p>,
    ) -> impl Iterator<Item = &'p PartLoss> {
        let here = parts.harmless[loss.site].iter().copied();
        here.filter(|it| self.may_add(loss, it))
    }

    /// Returns the pairs of a part and the harmless ones of its cluster that are not harmless any more without it.
    fn beside<'p>(
        &self,
        (loss, ended): &(&'p PartLoss, &'p [LostPaths]),
        versions: &LostVersions,
        parts: &SortedParts<'p>,
    ) -> Vec<OpenPair<'p>> {
        let after = self.fabric().with_versions(versions.clone());
        let is_harmless = self.harmless.have_after(&after, loss.site);
        let partners = self.partners(loss, parts);
        let open = partners.filter(|it| !is_harmless(&it.lost));
        let open = open.map(|it| OpenPair {
            losses: [loss, it],
            ended: [ended, &[]],
            versions: None,
        });
        open.collect()
    }

    /// Counts the pairs that cannot be examined because one of their parts could not.
    fn unknown(&self, parts: &SortedParts) -> usize {
        let unknown = parts.unknown.iter().enumerate().map(|(place, loss)| {
            let others = parts.unknown.iter().take(place).copied();
            let others = others.chain(parts.proved.iter().map(|it| it.0));
            others.filter(|it| self.may_add(loss, it)).count() + self.partners(loss, parts).count()
        });
        unknown.sum()
    }

    /// Finds the paths that end without two parts, and with each of them.
    fn prove_pair(&self, pair: &OpenPair) -> Result<Option<Harm>, OutageObstacle> {
        let [one, other] = pair.losses;
        let lost = one.lost.with(&other.lost);
        let result = match &pair.versions {
            Some(versions) => {
                let (from, to) = (one.site, other.site);
                let pairs = [SitePair { from, to }].into_iter();
                self.prove_between(&lost, versions.clone(), pairs)
            }
            None => self.prove(&lost),
        };
        let added = result?.ended.into_iter().filter_map(
            |LostPaths {
                 pair: of,
                 mut paths,
                 ..
             }| {
                for ended in pair.ended.into_iter().flatten().filter(|it| it.pair == of) {
                    paths = paths.without(&ended.paths);
                }
                self.counted(of, paths)
            },
        );
        let ended: Vec<LostPaths> = added.collect();
        Ok((!ended.is_empty()).then(|| Harm {
            parts: vec![one.part.clone(), other.part.clone()],
            lost,
            result: OutageResult { ended },
        }))
    }
}

impl<'p> OpenPair<'p> {
    fn new(
        (one, of_one): (&(&'p PartLoss, &'p [LostPaths]), &LostVersions<'p>),
        (other, of_other): (&(&'p PartLoss, &'p [LostPaths]), &LostVersions<'p>),
    ) -> Self {
        let both = of_one.iter().chain(of_other);
        let versions = both.map(|(site, it)| (*site, Arc::clone(it))).collect();
        Self {
            losses: [one.0, other.0],
            ended: [one.1, other.1],
            versions: (one.0.site != other.0.site).then_some(versions),
        }
    }
}
