//! Pairs of clusters with trouble: numbers by class, failures and assumptions.

use std::cmp::Reverse;
use std::collections::BTreeMap;

use serde::Serialize;

use super::matrix::PathState;
use super::mesh_results::{MeshResults, PageIds};
use crate::mesh::AddressClass;
use crate::proof::verify::Tally;
use crate::results::trace::TraceResult;
use crate::results::verify::json::{WrittenAssumption, WrittenFailure, WrittenPairing};
use crate::text;

/// The most pairs that are shown. The matrix shows all.
const SHOWN: usize = 400;

/// The most causes of failures of a pair that are shown.
const CAUSES: usize = 3;

/// A pair of clusters as sender and receiver, with something to look at.
#[derive(Serialize)]
pub(super) struct PairView<'d> {
    id: String,
    from: &'d str,
    to: &'d str,
    state: PathState,
    sign: &'static str,
    words: &'static str,
    total: Tally,
    failing: u64,
    classes: Vec<PairClass>,
    failures: Vec<FailureView<'d>>,
    more_failures: usize,
    assumptions: Vec<AssumptionView<'d>>,
}

/// All pairs that are shown, and how many more there are.
#[derive(Serialize)]
pub(super) struct PairList<'d> {
    shown: Vec<PairView<'d>>,
    more: usize,
}

/// The paths of a class.
#[derive(Serialize)]
struct PairClass {
    from: AddressClass,
    to: AddressClass,
    state: PathState,
    sign: &'static str,
    tally: Tally,
}

/// Paths that fail for one cause.
#[derive(Serialize)]
struct FailureView<'d> {
    verdict: &'d str,
    pairs: u64,
    /// The command that follows its smallest packet.
    command: String,
    /// The smallest packet, if this pair has it.
    trace: Option<&'d TraceResult<'d>>,
    /// The message about that packet, and the remedy.
    message: Option<&'d str>,
    help: Option<&'d str>,
    /// The pair that shows that packet, if it is another one.
    shown_at: Option<String>,
}

/// Paths that depend on a condition.
#[derive(Serialize)]
struct AssumptionView<'d> {
    words: &'d str,
    nodes: String,
    pairs: u64,
}

/// Facts about pairs, by sender and receiver.
type ByPair<'d, T> = BTreeMap<(&'d str, &'d str), Vec<T>>;

/// Returns the pairs of clusters with something to look at, the worst first.
pub(super) fn all<'d>(results: &'d MeshResults<'d>, ids: &mut PageIds) -> PairList<'d> {
    let Ok(verification) = &results.verification else {
        return PairList { shown: Vec::new(), more: 0 };
    };
    let mut pairings: Vec<&WrittenPairing> = verification.pairings.iter().collect();
    pairings.retain(|it| it.state().is_trouble());
    pairings.sort_by_key(|it| (it.state(), Reverse(it.total().failing())));
    let more = pairings.len().saturating_sub(SHOWN);
    pairings.truncate(SHOWN);
    for pairing in &pairings {
        ids.add_pair(&pairing.from, &pairing.to);
    }
    let failures = verification.failures.iter().enumerate();
    let failures = by_pair(failures, |(_, it)| &it.between);
    let assumptions = by_pair(verification.assumptions.iter(), |it| &it.between);
    let shown = pairings.into_iter().map(|it| {
        let pair = (it.from.as_str(), it.to.as_str());
        let failures = failures.get(&pair).into_iter().flatten();
        let failures = failures.map(|(number, failure)| {
            FailureView::new(
                failure,
                results.traces.get(*number).and_then(Option::as_ref),
                pair,
                ids,
            )
        });
        let mut failures: Vec<FailureView> = failures.collect();
        // Those of which the pair has the smallest packet.
        failures.sort_by_key(|it| it.trace.is_none());
        let more_failures = failures.len().saturating_sub(CAUSES);
        failures.truncate(CAUSES);
        let assumptions = assumptions.get(&pair).into_iter().flatten();
        PairView {
            failures,
            more_failures,
            assumptions: assumptions.map(|it| AssumptionView::new(it)).collect(),
            ..PairView::new(it, ids)
        }
    });
    PairList { shown: shown.collect(), more }
}

fn by_pair<'d, T: Copy>(
    all: impl Iterator<Item = T>,
    between: impl Fn(T) -> &'d Vec<[String; 2]>,
) -> ByPair<'d, T> {
    let mut by_pair: ByPair<T> = BTreeMap::new();
    for it in all {
        for [from, to] in between(it) {
            by_pair.entry((from, to)).or_default().push(it);
        }
    }
    by_pair
}

impl<'d> PairView<'d> {
    fn new(pairing: &'d WrittenPairing, ids: &PageIds) -> Self {
        let WrittenPairing { from, to, .. } = pairing;
        let state = pairing.state();
        let classes = pairing.classes.iter().map(|it| {
            let state = PathState::of(it.tally, pairing.linked);
            PairClass { from: it.from, to: it.to, state, sign: state.sign(), tally: it.tally }
        });
        let total = pairing.total();
        Self {
            id: ids.pair(from, to).unwrap_or_default().to_owned(),
            from,
            to,
            state,
            sign: state.sign(),
            words: state.words(),
            total,
            failing: total.failing(),
            classes: classes.collect(),
            failures: Vec::new(),
            more_failures: 0,
            assumptions: Vec::new(),
        }
    }
}

impl<'d> FailureView<'d> {
    fn new(
        failure: &'d WrittenFailure,
        trace: Option<&'d TraceResult<'d>>,
        pair: (&str, &str),
        ids: &PageIds,
    ) -> Self {
        let (from, to) = (failure.from.cluster.as_str(), failure.to.as_str());
        let is_here = (from, to) == pair;
        Self {
            verdict: failure.verdict,
            pairs: failure.pairs,
            command: format!(
                "clustermesh trace {from}/{} {to}/{}",
                failure.source, failure.destination
            ),
            trace: trace.filter(|_| is_here),
            message: trace.map(TraceResult::message),
            help: trace.and_then(|it| it.help.as_deref()),
            shown_at: ids.pair(from, to).filter(|_| !is_here).map(ToOwned::to_owned),
        }
    }
}

impl<'d> AssumptionView<'d> {
    fn new(assumption: &'d WrittenAssumption) -> Self {
        let nodes = assumption.nodes.iter();
        Self {
            words: assumption.premise.words(),
            nodes: text::listed(nodes.map(|it| format!("{}/{}", it.cluster, it.node))),
            pairs: assumption.pairs,
        }
    }
}
