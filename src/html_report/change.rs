//! The change: the result of a comparison with an old version, and the states on the way.

use std::collections::BTreeMap;

use serde::Serialize;
use serde_json::Value;

use super::command_documents::{PageDifference, PagePathChange, PageTargetChange};
use super::documents::PageDocuments;
use crate::text;

/// The most causes and pairs of clusters that are shown.
const CAUSES: usize = 200;
const PAIRS: usize = 200;

/// A change of paths: its name in the document, in a few words, and in a sentence.
type PathFate = (&'static str, &'static str, &'static str);

/// The stages of a change, and the possible changes of paths in each.
const STAGES: [(&str, &[PathFate]); 3] = [
    (
        "before it is applied",
        &[("repaired", "down until it is applied", "They work again once the change is applied.")],
    ),
    (
        "while it is applied",
        &[
            (
                "apart",
                "down while it is applied",
                "They do not work while only one of the two clusters has its new Peers.",
            ),
            ("paused", "interrupted", "They are interrupted while the Peers of a cluster arrive."),
            (
                "stuck",
                "interrupted for up to 10 minutes",
                "Agents may need that long to list all Peers again.",
            ),
        ],
    ),
    (
        "after it",
        &[
            ("lost", "lost", "They no longer work."),
            (
                "noLongerProved",
                "no longer proved",
                "They were proved, and are only assumed to work afterwards.",
            ),
            ("ended", "ended", "Their node or address is gone."),
            ("gained", "gained", "They work for the first time."),
            (
                "assumed",
                "gained, assumed",
                "Those of the gained paths that are only assumed to work.",
            ),
        ],
    ),
];

/// A change.
#[derive(Serialize)]
pub(super) struct ChangeView<'d> {
    against: &'d str,
    notes: &'d [String],
    grade: &'d str,
    sign: &'static str,
    summary: String,
    stages: Vec<ChangeStage>,
    states: u64,
    causes: &'d [Value],
    more_causes: usize,
    targets: Vec<AlikeTargets<'d>>,
    paths: Vec<ChangedPair<'d>>,
    more_paths: usize,
    services: &'d [Value],
}

/// A stage on the way from the old to the new Peers.
#[derive(Serialize)]
struct ChangeStage {
    name: &'static str,
    events: Vec<StageEvent>,
}

/// Paths that change alike in a stage.
#[derive(Serialize)]
struct StageEvent {
    fate: &'static str,
    words: &'static str,
    sentence: &'static str,
    paths: u64,
}

/// Clusters of which the Peers change alike.
#[derive(Serialize)]
struct AlikeTargets<'d> {
    clusters: Vec<&'d str>,
    grade: &'d str,
    sign: &'static str,
    counts: [u64; 3],
    peers: Vec<[u64; 2]>,
    reasons: &'d [Value],
    help: &'d [String],
    busy_seconds: f64,
}

/// The changed paths between two clusters.
#[derive(Serialize)]
struct ChangedPair<'d> {
    from: &'d str,
    to: &'d str,
    events: Vec<StageEvent>,
}

impl<'d> ChangeView<'d> {
    /// Returns the change; nothing if there is nothing to compare with, or no comparison.
    pub(super) fn new(documents: &'d PageDocuments) -> Option<Self> {
        let difference = documents.difference.as_ref()?.as_ref().ok()?;
        let paths = difference.paths.iter().take(PAIRS).map(|it| ChangedPair {
            from: &it.from,
            to: &it.to,
            events: fates().map(|fate| event(fate, [it])).filter(is_any).collect(),
        });
        let stages = STAGES.into_iter().map(|(name, fates)| {
            let events = fates.iter().map(|it| event(*it, &difference.paths));
            ChangeStage { name, events: events.filter(is_any).collect() }
        });
        let causes = &difference.causes;
        Some(Self {
            against: &difference.against,
            notes: &difference.notes,
            grade: &difference.grade,
            sign: sign(&difference.grade),
            summary: summary(difference),
            stages: stages.collect(),
            states: difference.states,
            causes: causes.get(..CAUSES).unwrap_or(causes),
            more_causes: causes.len().saturating_sub(CAUSES),
            targets: alike(&difference.targets),
            paths: paths.collect(),
            more_paths: difference.paths.len().saturating_sub(PAIRS),
            services: &difference.services,
        })
    }
}

/// Returns all possible changes of paths, in the order of the stages.
fn fates() -> impl Iterator<Item = PathFate> {
    STAGES.into_iter().flat_map(|it| it.1).copied()
}

fn is_any(event: &StageEvent) -> bool {
    0 < event.paths
}

/// Returns how many paths of some pairs of clusters meet a fate.
fn event<'d>(
    (fate, words, sentence): PathFate,
    changes: impl IntoIterator<Item = &'d PagePathChange>,
) -> StageEvent {
    let counts = changes.into_iter().filter_map(|it| it.fates.get(fate));
    let paths = counts.map(|counts| {
        let count = |kind: &str| counts.get(kind).and_then(Value::as_u64).unwrap_or_default();
        count("declared") + count("undeclared")
    });
    StageEvent { fate, words, sentence, paths: paths.sum() }
}

/// Returns what the change does, in two sentences.
fn summary(difference: &PageDifference) -> String {
    let PageDifference { grade, against, targets, .. } = difference;
    if targets.is_empty() {
        return format!("since `{against}`: no Peer changes.");
    }
    let sum = |count: fn(&PageTargetChange) -> u64| targets.iter().map(count).sum::<u64>();
    let counts = [
        (sum(|it| it.added), "added"),
        (sum(|it| it.changed), "changed"),
        (sum(|it| it.removed), "removed"),
    ];
    let counts = counts.into_iter().filter(|it| 0 < it.0);
    let counts =
        text::list(counts.map(|(count, verb)| format!("{} {verb}", text::count(count, "Peer"))));
    let clusters = text::count(targets.len(), "cluster");
    let events = fates().map(|it| event(it, &difference.paths));
    let events = events.filter(is_any);
    let events =
        text::list(events.map(|it| format!("{} {}", text::count(it.paths, "path"), it.words)));
    let events =
        if events.is_empty() { "No path is affected.".to_owned() } else { format!("{events}.") };
    let meaning = meaning(grade);
    format!("since `{against}`: {meaning}. {counts} in {clusters}. {events}")
}

/// Returns what a grade means.
fn meaning(grade: &str) -> &'static str {
    match grade {
        "additive" => "paths are only gained, and nothing that works is disturbed",
        "cleanup" => "only paths to what no longer exists are removed",
        "brief" => "requests in changed clusters may get no answer for at most 30 seconds",
        "disruptive" => "paths are lost, or interrupted for longer than 30 seconds",
        "destructive" => "clusters lose all their Peers, or all Peers of another cluster",
        _ => "no Peer changes",
    }
}

/// Returns the targets, in which those of which the Peers change alike are one.
fn alike(targets: &[PageTargetChange]) -> Vec<AlikeTargets<'_>> {
    let mut known: BTreeMap<String, usize> = BTreeMap::new();
    let mut alike: Vec<AlikeTargets> = Vec::new();
    for target in targets {
        let counts = [target.added, target.changed, target.removed];
        let key = format!("{counts:?}{}{:?}{:?}", target.grade, target.reasons, target.help);
        let number = *known.entry(key).or_insert(alike.len());
        let peers = [target.peers_before, target.peers_after];
        let busy_seconds = target.busy_seconds.unwrap_or_default();
        if let Some(same) = alike.get_mut(number) {
            same.clusters.push(&target.cluster);
            same.peers.push(peers);
            same.busy_seconds = same.busy_seconds.max(busy_seconds);
        } else {
            alike.push(AlikeTargets {
                clusters: vec![&target.cluster],
                grade: &target.grade,
                sign: sign(&target.grade),
                counts,
                peers: vec![peers],
                reasons: &target.reasons,
                help: &target.help,
                busy_seconds,
            });
        }
    }
    alike
}

/// Returns the sign of a grade, for people who see no colours.
fn sign(grade: &str) -> &'static str {
    match grade {
        "none" => "=",
        "additive" => "+",
        "cleanup" => "−",
        "brief" => "!",
        _ => "✗",
    }
}
