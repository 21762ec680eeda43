//! The change: the result of a comparison with an old version, and the states on the way.

use serde::Serialize;

use super::mesh_results::MeshResults;
use crate::changes::{Grade, PathCounts, PeerCounts};
use crate::report::alike::grouped;
use crate::results::diff::json::form::{
    WrittenDiff, WrittenDiffCause, WrittenPath, WrittenPort, WrittenReason, WrittenServiceChange,
    WrittenTargetChange,
};
use crate::text;

/// The most causes and pairs of clusters that are shown.
const CAUSES: usize = 200;
const PAIRS: usize = 200;

/// The most endpoints of a list that are shown.
const PORTS: usize = 200;

/// The number of paths that meet a fate.
type CountPaths = fn(&WrittenPath) -> PathCounts;

/// A change of paths: its name, in a few words, and in a sentence.
type PathFate = (&'static str, &'static str, &'static str, CountPaths);

/// The stages of a change, and the possible changes of paths in each.
const STAGES: [(&str, &[PathFate]); 3] = [
    (
        "before it is applied",
        &[(
            "repaired",
            "down until it is applied",
            "They work again once the change is applied.",
            |it| it.repaired,
        )],
    ),
    (
        "while it is applied",
        &[
            (
                "apart",
                "down while it is applied",
                "They do not work while only one of the two clusters has its new Peers.",
                |it| it.apart,
            ),
            (
                "paused",
                "interrupted",
                "They are interrupted while the Peers of a cluster arrive.",
                |it| it.paused,
            ),
            (
                "stuck",
                "interrupted for up to 10 minutes",
                "Agents may need that long to list all Peers again.",
                |it| it.stuck,
            ),
        ],
    ),
    (
        "after it",
        &[
            ("lost", "lost", "They no longer work.", |it| it.lost),
            (
                "noLongerProved",
                "no longer proved",
                "They were proved, and are only assumed to work afterwards.",
                |it| it.no_longer_proved.unwrap_or_default(),
            ),
            ("ended", "ended", "Their node or address is gone.", |it| it.ended),
            ("gained", "gained", "They work for the first time.", |it| it.gained),
            (
                "assumed",
                "gained, assumed",
                "Those of the gained paths that are only assumed to work.",
                |it| it.assumed.unwrap_or_default(),
            ),
        ],
    ),
];

/// A change.
#[derive(Serialize)]
pub(super) struct ChangeView<'d> {
    against: &'d str,
    notes: &'d [String],
    grade: Grade,
    sign: &'static str,
    summary: String,
    stages: Vec<ChangeStage>,
    states: usize,
    causes: &'d [WrittenDiffCause<'d>],
    more_causes: usize,
    targets: Vec<AlikeTargets<'d>>,
    paths: Vec<ChangedPair<'d>>,
    more_paths: usize,
    services: &'d [WrittenServiceChange<'d>],
    ports: Vec<ListedPorts<'d>>,
    controls: Option<ChangedControls<'d>>,
}

/// UDP endpoints that clusters dial in one version only.
#[derive(Serialize)]
struct ListedPorts<'d> {
    title: &'static str,
    ports: &'d [WrittenPort],
}

/// The fate of the controls of the old version.
#[derive(Serialize)]
struct ChangedControls<'d> {
    summary: Option<&'d str>,
    messages: &'d [String],
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
    grade: Grade,
    sign: &'static str,
    counts: [usize; 3],
    peers: Vec<[usize; 2]>,
    reasons: &'d [WrittenReason],
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
    pub(super) fn new(results: &'d MeshResults<'d>) -> Option<Self> {
        let difference = results.difference.as_ref()?.as_ref().ok()?;
        let paths = difference.paths.iter().take(PAIRS).map(|it| ChangedPair {
            from: it.from,
            to: it.to,
            events: fates().map(|fate| event(fate, [it])).filter(is_any).collect(),
        });
        let stages = STAGES.into_iter().map(|(name, fates)| {
            let events = fates.iter().map(|it| event(*it, &difference.paths));
            ChangeStage { name, events: events.filter(is_any).collect() }
        });
        let causes = &difference.causes;
        Some(Self {
            against: difference.against,
            notes: difference.notes,
            grade: difference.grade,
            sign: sign(difference.grade),
            summary: summary(difference),
            stages: stages.collect(),
            states: difference.states,
            causes: causes.get(..CAUSES).unwrap_or(causes),
            more_causes: causes.len().saturating_sub(CAUSES),
            targets: alike(&difference.targets),
            paths: paths.collect(),
            more_paths: difference.paths.len().saturating_sub(PAIRS),
            services: &difference.services,
            ports: ports(difference),
            controls: difference.controls.as_ref().map(|it| ChangedControls {
                summary: it.summary.as_deref(),
                messages: &it.messages,
            }),
        })
    }
}

/// Returns the endpoints that clusters dial in one version only.
fn ports<'d>(difference: &'d WrittenDiff) -> Vec<ListedPorts<'d>> {
    let lists = [
        ("UDP endpoints that clusters will dial", &difference.opened_ports),
        ("UDP endpoints that clusters no longer dial", &difference.closed_ports),
    ];
    let lists = lists.into_iter().filter(|it| !it.1.is_empty());
    let lists =
        lists.map(|(title, all)| ListedPorts { title, ports: all.get(..PORTS).unwrap_or(all) });
    lists.collect()
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
    (fate, words, sentence, count): PathFate,
    changes: impl IntoIterator<Item = &'d WrittenPath<'d>>,
) -> StageEvent {
    let paths = changes.into_iter().map(|it| count(it).all());
    StageEvent { fate, words, sentence, paths: paths.sum() }
}

/// Returns what the change does, in two sentences.
fn summary(difference: &WrittenDiff) -> String {
    let WrittenDiff { grade, against, targets, .. } = difference;
    if targets.is_empty() {
        return format!("since `{against}`: no Peer changes.");
    }
    let sum = |count: fn(&PeerCounts) -> usize| -> usize {
        targets.iter().map(|it| count(&it.counts)).sum()
    };
    let counts = [
        (sum(|it| it.added), "added"),
        (sum(|it| it.changed), "changed"),
        (sum(|it| it.removed), "removed"),
    ];
    let counts = counts.into_iter().filter(|it| 0 < it.0);
    let counts =
        text::list(counts.map(|(count, verb)| format!("{} {verb}", text::count(count, "Peer"))));
    let counts = if counts.is_empty() {
        "No Peer changes".to_owned()
    } else {
        format!("{counts} in {}", text::count(targets.len(), "cluster"))
    };
    let events = fates().map(|it| event(it, &difference.paths));
    let events = events.filter(is_any);
    let events =
        text::list(events.map(|it| format!("{} {}", text::count(it.paths, "path"), it.words)));
    let events =
        if events.is_empty() { "No path is affected.".to_owned() } else { format!("{events}.") };
    let meaning = meaning(*grade);
    format!("since `{against}`: {meaning}. {counts}. {events}")
}

/// Returns what a grade means.
fn meaning(grade: Grade) -> &'static str {
    match grade {
        Grade::None => "no Peer changes",
        Grade::Additive => "paths are only gained, and nothing that works is disturbed",
        Grade::Cleanup => "only paths to what no longer exists are removed",
        Grade::Brief => "requests in changed clusters may get no answer for at most 30 seconds",
        Grade::Disruptive => {
            "paths are lost, no longer proved, or interrupted for longer than 30 seconds"
        }
        Grade::Destructive => "clusters lose all their Peers, or all Peers of another cluster",
    }
}

/// Returns the targets, in which those of which the Peers change alike are one.
fn alike<'d>(targets: &'d [WrittenTargetChange<'d>]) -> Vec<AlikeTargets<'d>> {
    let keyed = targets.iter().map(|it| {
        let PeerCounts { added, changed, removed } = it.counts;
        let reasons: Vec<(Grade, &str)> =
            it.reasons.iter().map(|it| (it.grade, it.message.as_str())).collect();
        (([added, changed, removed], it.grade, reasons, &it.help), it)
    });
    let groups = grouped(keyed).into_iter();
    let alike = groups.filter_map(|((counts, grade, _, help), targets)| {
        let seconds = targets.iter().filter_map(|it| it.busy_seconds.as_ref()?.as_f64());
        Some(AlikeTargets {
            clusters: targets.iter().map(|it| it.cluster).collect(),
            grade,
            sign: sign(grade),
            counts,
            peers: targets.iter().map(|it| [it.peers_before, it.peers_after]).collect(),
            reasons: &targets.first()?.reasons,
            help,
            busy_seconds: seconds.fold(0.0, f64::max),
        })
    });
    alike.collect()
}

/// Returns the sign of a grade, for people who see no colours.
fn sign(grade: Grade) -> &'static str {
    match grade {
        Grade::None => "=",
        Grade::Additive => "+",
        Grade::Cleanup => "−",
        Grade::Brief => "!",
        Grade::Disruptive | Grade::Destructive => "✗",
    }
}
