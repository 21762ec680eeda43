//! Losses: which single parts end paths of others, the worst first.

use serde::Serialize;

use super::documents::PageDocuments;
use super::proof_document::{PageEnded, PageHarm, PageUnexamined};

/// The most losses, pairs of clusters of a loss, and parts that were not examined, that are shown.
const SHOWN: usize = 500;
const PAIRS: usize = 10;
const UNEXAMINED: usize = 50;

/// The losses.
#[derive(Serialize)]
pub(super) struct Losses<'d> {
    /// The number of parts that were tried.
    parts: u64,
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
    kind: &'static str,
    paths: u64,
    ended: &'d [PageEnded],
    more: usize,
    /// The clusters that it is about.
    clusters: Vec<&'d str>,
}

impl<'d> Losses<'d> {
    /// Returns the losses; none without a proof.
    pub(super) fn new(documents: &'d PageDocuments) -> Option<Self> {
        let survival = documents.verification.as_ref().ok()?.survival.as_ref()?;
        let unexamined = &survival.not_examined;
        Some(Self {
            parts: survival.parts,
            harmful: survival.harmful.len(),
            shown: survival
                .harmful
                .iter()
                .take(SHOWN)
                .map(LossView::new)
                .collect(),
            unexamined: unexamined
                .iter()
                .take(UNEXAMINED)
                .map(UnexaminedLoss::new)
                .collect(),
            more_unexamined: unexamined.len().saturating_sub(UNEXAMINED),
        })
    }
}

impl<'d> UnexaminedLoss<'d> {
    fn new(unexamined: &'d PageUnexamined) -> Self {
        Self {
            part: &unexamined.part,
            reason: match unexamined.reason.as_str() {
                "granularity" => "without it, the granularity of the cluster is uncertain",
                "numbering" => {
                    "the snapshot does not show how Kilo numbers the WireGuard addresses"
                }
                "steps" => "the proof takes too many steps",
                other => other,
            },
        }
    }
}

impl<'d> LossView<'d> {
    fn new(harm: &'d PageHarm) -> Self {
        // As `clustermesh verify --without` writes them.
        let (cluster, kind) = match (harm.part.split_once('/'), harm.part.split_once(':')) {
            (Some((cluster, _)), _) => (cluster, "node"),
            (None, Some((cluster, _))) => (cluster, "location"),
            (None, None) => (harm.part.as_str(), "cluster"),
        };
        let ended = harm.ended.get(..PAIRS).unwrap_or(&harm.ended);
        let mut clusters = vec![cluster];
        clusters.extend(harm.ended.iter().flat_map(|it| [it.from.as_str(), &it.to]));
        clusters.sort_unstable();
        clusters.dedup();
        Self {
            part: &harm.part,
            kind,
            paths: harm.paths,
            ended,
            more: harm.ended.len() - ended.len(),
            clusters,
        }
    }
}
