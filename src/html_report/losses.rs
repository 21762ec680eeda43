//! Losses: which single parts end paths of others, the worst first.

use serde::Serialize;

use super::mesh_results::MeshResults;
use crate::results::outage::json::{WrittenEnded, WrittenHarm, WrittenUnexamined};
use crate::text;

/// The most losses, pairs of clusters of a loss, and parts that were not examined, that are shown.
const SHOWN: usize = 500;
const PAIRS: usize = 10;
const UNEXAMINED: usize = 50;

/// The losses.
#[derive(Serialize)]
pub(super) struct Losses<'d> {
    /// The number of parts that were tried.
    parts: usize,
    /// Whether no path works, so that no loss can end one.
    is_moot: bool,
    harmful: usize,
    shown: Vec<LossView<'d>>,
    unexamined: Vec<UnexaminedLoss<'d>>,
    more_unexamined: usize,
}

/// A part that was not examined, and why.
#[derive(Serialize)]
struct UnexaminedLoss<'d> {
    part: &'d str,
    reason: &'d str,
}

/// A loss.
#[derive(Serialize)]
struct LossView<'d> {
    part: &'d str,
    /// The part as a word of a shell command.
    word: String,
    kind: &'static str,
    paths: u64,
    ended: &'d [WrittenEnded],
    more: usize,
    /// The clusters that it is about.
    clusters: Vec<&'d str>,
}

impl<'d> Losses<'d> {
    /// Returns the losses; none without a proof.
    pub(super) fn new(results: &'d MeshResults<'d>) -> Option<Self> {
        let total = results.verification.as_ref().ok()?.total;
        let survey = results.outage.as_ref()?.single.as_ref()?;
        let unexamined = &survey.not_examined;
        Some(Self {
            parts: survey.parts,
            is_moot: 0 < total.promised && total.kept + total.assumed == 0,
            harmful: survey.harmful.len(),
            shown: survey.harmful.iter().take(SHOWN).map(LossView::new).collect(),
            unexamined: unexamined.iter().take(UNEXAMINED).map(UnexaminedLoss::new).collect(),
            more_unexamined: unexamined.len().saturating_sub(UNEXAMINED),
        })
    }
}

impl<'d> UnexaminedLoss<'d> {
    fn new(unexamined: &'d WrittenUnexamined) -> Self {
        Self { part: &unexamined.part, reason: unexamined.reason.phrase() }
    }
}

impl<'d> LossView<'d> {
    fn new(harm: &'d WrittenHarm) -> Self {
        // As `clustermesh outage` writes them.
        // The name of a cluster has neither sign; a location may have both.
        let end = harm.part.find(['/', ':']).unwrap_or(harm.part.len());
        let (cluster, rest) = harm.part.split_at(end);
        let kind = match rest.chars().next() {
            Some('/') => "node",
            Some(_) => "location",
            None => "cluster",
        };
        let ended = harm.ended.get(..PAIRS).unwrap_or(&harm.ended);
        let mut clusters = vec![cluster];
        clusters.extend(harm.ended.iter().flat_map(|it| [it.from.as_str(), &it.to]));
        clusters.sort_unstable();
        clusters.dedup();
        Self {
            part: &harm.part,
            word: text::shell_word(&harm.part),
            kind,
            paths: harm.paths,
            ended,
            more: harm.ended.len() - ended.len(),
            clusters,
        }
    }
}
