//! The verdict: whether the mesh works, in a sentence, and what to do first.

use std::collections::BTreeSet;

use serde::Serialize;

use super::cut_off::CutOffCluster;
use super::finding_list::{self, FindingList};
use super::mesh_results::MeshResults;
use crate::changes::Grade;
use crate::diagnostic::Severity;
use crate::diagnostic::mistake::MISSING_SNAPSHOT;
use crate::proof::rule::OUTDATED_TREE;
use crate::results::diff::json::controls::WrittenControls;
use crate::results::diff::json::form::WrittenDiff;
use crate::results::findings::json::{WrittenFinding, WrittenPlace};
use crate::results::verify::json::WrittenVerification;
use crate::text;

/// The verdict.
#[derive(Serialize)]
pub(super) struct Verdict<'d> {
    level: VerdictLevel,
    word: &'static str,
    sign: &'static str,
    /// The result of the proof, in a sentence.
    sentence: String,
    /// Further facts, a phrase each.
    points: Vec<String>,
    first: Option<FirstStep<'d>>,
}

/// The grade of a mesh.
#[derive(Clone, Copy, Eq, PartialEq, Serialize)]
#[serde(rename_all = "lowercase")]
enum VerdictLevel {
    /// All that is declared works.
    Good,
    /// It works, but something needs attention.
    Attention,
    /// Everything that can be checked works, but some clusters cannot be checked.
    Unknown,
    /// Something does not work.
    Bad,
}

/// The first thing to do.
#[derive(Serialize)]
struct FirstStep<'d> {
    subject: Option<String>,
    message: &'d str,
    help: Option<&'d str>,
    place: Option<&'d WrittenPlace>,
    href: Option<String>,
}

impl<'d> Verdict<'d> {
    /// Judges all results.
    pub(super) fn new(
        results: &'d MeshResults<'d>,
        findings: &'d FindingList<'d>,
        cut_off: &'d [CutOffCluster],
    ) -> Self {
        let level = level(results, findings, cut_off);
        let (word, sign) = match level {
            VerdictLevel::Good => ("Works", "✓"),
            VerdictLevel::Attention => ("Needs attention", "!"),
            VerdictLevel::Unknown => ("Not all of it can be checked", "?"),
            VerdictLevel::Bad
                if paths_fail(results) || cut_off.iter().any(CutOffCluster::is_fault) =>
            {
                ("Broken", "✗")
            }
            VerdictLevel::Bad => ("Has errors", "✗"),
        };
        Self {
            level,
            word,
            sign,
            sentence: sentence(results),
            points: points(results, findings, cut_off),
            first: FirstStep::new(results, findings, cut_off),
        }
    }

    /// Returns whether something does not work.
    pub(super) fn is_bad(&self) -> bool {
        self.level == VerdictLevel::Bad
    }
}

fn level(results: &MeshResults, findings: &FindingList, cut_off: &[CutOffCluster]) -> VerdictLevel {
    let unread = results.unread().count();
    let missing = findings.count_of(&MISSING_SNAPSHOT);
    let holds = results.verification.as_ref().is_ok_and(|it| it.holds);
    let is_bad = missing < findings.count(Severity::Error)
        || paths_fail(results)
        || cut_off.iter().any(CutOffCluster::is_fault);
    if is_bad || (!holds && unread == 0) {
        VerdictLevel::Bad
    } else if 0 < unread {
        VerdictLevel::Unknown
    } else if 0 < findings.count(Severity::Warning)
        || !cut_off.is_empty()
        || !results.refusals().is_empty()
        || disturbing(results).is_some()
        || changed_controls(results).is_some_and(|it| it.weaker)
    {
        VerdictLevel::Attention
    } else {
        VerdictLevel::Good
    }
}

/// Returns whether a declared path fails.
fn paths_fail(results: &MeshResults) -> bool {
    let verification = results.verification.as_ref();
    verification.is_ok_and(|it| it.total.fails())
}

/// Returns what was proved.
fn sentence(results: &MeshResults) -> String {
    let verification = match &results.verification {
        Ok(verification) => verification,
        Err(refusal) => return format!("Nothing could be proved: {}.", refusal.message),
    };
    let total = verification.total;
    let with_paths = verification.pairings.iter();
    let with_paths = with_paths.filter(|it| it.linked && 0 < it.total().promised);
    let with_paths: BTreeSet<&String> = with_paths.flat_map(|it| [&it.from, &it.to]).collect();
    let between = match with_paths.len() {
        0 => String::new(),
        number => format!(" between {}", text::count(number, "cluster")),
    };
    match (total.promised, total.kept, total.assumed) {
        (0, ..) => format!("There are no declared paths{between} to check."),
        (1, 1, _) => format!("The declared path{between} works in both directions."),
        (declared, working, 0) if declared == working => {
            format!("All {declared} declared paths{between} work in both directions.")
        }
        (declared, working, 0) => {
            format!("{} of {declared} declared paths{between} fail.", declared - working)
        }
        (declared, working, assumed) if declared == working + assumed => format!(
            "{working} of {declared} declared paths{between} work in both directions, and {assumed} more are assumed to work."
        ),
        (declared, working, assumed) => format!(
            "{} of {declared} declared paths{between} fail, and {assumed} are assumed to work.",
            declared.saturating_sub(working + assumed)
        ),
    }
}

/// Returns what else matters, the worst first.
fn points(results: &MeshResults, findings: &FindingList, cut_off: &[CutOffCluster]) -> Vec<String> {
    let mut points = Vec::new();
    let refused = results.errors();
    let errors = findings.count(Severity::Error);
    if 0 < refused {
        let of = if refused < errors {
            format!("{refused} of the {errors} errors")
        } else {
            text::count(refused, "error")
        };
        points.push(format!("`render` is refused because of {of}"));
    } else if 0 < errors {
        points.push(text::count(errors, "error"));
    }
    let isolated = cut_off.iter().filter(|it| !it.is_unknown).count();
    if 0 < isolated {
        let verb = if isolated == 1 { "is" } else { "are" };
        points.push(format!("{} {verb} cut off", text::count(isolated, "cluster")));
    }
    let unread = results.unread().count();
    if 0 < unread {
        let has = if unread == 1 { "has" } else { "have" };
        let clusters = text::count(unread, "cluster");
        points.push(format!("{clusters} {has} no usable snapshot and cannot be checked"));
    }
    if let Ok(verification) = &results.verification {
        points.extend(of_proof(verification));
    }
    if let Some(change) = disturbing(results) {
        let WrittenDiff { against, grade, .. } = change;
        points.push(format!("grade of the change since `{against}`: {}", grade.name()));
    }
    if let Some(summary) = changed_controls(results).and_then(|it| it.summary.as_deref()) {
        points.push(format!("controls of this change: {}", summary.trim_end_matches('.')));
    }
    let warnings = findings.count(Severity::Warning);
    if 0 < warnings {
        points.push(text::count(warnings, "warning"));
    }
    points
}

fn of_proof(verification: &WrittenVerification) -> impl Iterator<Item = String> {
    let mut rules = verification.findings.iter().map(|it| it.finding.rule);
    let outdated = rules.any(|it| it == &OUTDATED_TREE).then(|| {
        "the rendered Peers are outdated: this page is about the rendered files, not about what `clustermesh render` would write".to_owned()
    });
    let expectations = &verification.expectations;
    let broken = expectations.iter().filter(|it| !it.holds).count();
    let expectations = (0 < broken).then(|| {
        let all = text::count(expectations.len(), "expectation");
        let verb = if broken == 1 { "is" } else { "are" };
        format!("{broken} of {all} {verb} not met")
    });
    outdated.into_iter().chain(expectations)
}

impl<'d> FirstStep<'d> {
    /// Returns what to do about the worst finding, about a change that disturbs the network, or about a notice that has a
    /// command.
    fn new(
        results: &'d MeshResults<'d>,
        findings: &'d FindingList<'d>,
        cut_off: &'d [CutOffCluster],
    ) -> Option<Self> {
        let worst = findings.worst().map(|(id, written)| {
            let finding = &written.finding;
            let is_about = |it: &CutOffCluster| finding.cluster.as_deref() == Some(it.name);
            let is_cause = |it: &&CutOffCluster| {
                it.is_empty()
                    && (is_about(it) || !it.is_unknown && finding_list::follows_from_nodes(finding))
            };
            let cause = cut_off.iter().find(is_cause);
            let step = match cause {
                Some(cause) => Self::of_cut_off(cause),
                None => Self { href: id, ..Self::of_finding(written) },
            };
            (finding.severity, step)
        });
        let refused = results.verification.as_ref().err().map(|it| Self {
            subject: None,
            message: &it.message,
            help: it.help.as_deref(),
            place: None,
            href: None,
        });
        match (worst, refused) {
            (Some((Severity::Error, step)), _) | (_, Some(step)) | (Some((_, step)), None) => {
                Some(step)
            }
            (None, None) => {
                let cut_off = cut_off.first().map(Self::of_cut_off);
                let change = cut_off.or_else(|| Self::of_change(results));
                change.or_else(|| {
                    findings.advised().map(|(href, it)| Self { href, ..Self::of_finding(it) })
                })
            }
        }
    }
}

impl<'d> FirstStep<'d> {
    fn of_finding(written: &'d WrittenFinding) -> Self {
        Self {
            subject: written.finding.subject(),
            message: written.finding.message.shown(),
            help: written.finding.help.as_deref(),
            place: written.places.first(),
            href: None,
        }
    }

    fn of_cut_off(cluster: &'d CutOffCluster) -> Self {
        Self {
            subject: Some(cluster.name.to_owned()),
            message: &cluster.reason,
            help: cluster.help.as_deref(),
            place: None,
            href: Some("cut-off".to_owned()),
        }
    }

    /// Returns what to do about a change that disturbs the network, or that cannot be shown.
    fn of_change(results: &'d MeshResults<'d>) -> Option<Self> {
        let step = |message, help| Self {
            subject: None,
            message,
            help,
            place: None,
            href: Some("change".to_owned()),
        };
        if let Some(Err(refusal)) = &results.difference {
            return Some(step(&refusal.message, refusal.help.as_deref()));
        }
        let message = "Read what this change does, then decide whether to merge it.";
        let is_any = disturbing(results).is_some()
            || changed_controls(results).is_some_and(|it| it.summary.is_some());
        is_any.then(|| step(message, None))
    }
}

/// Returns what became of the controls of the old version, if they were compared.
fn changed_controls<'d>(results: &'d MeshResults) -> Option<&'d WrittenControls<'d>> {
    results.difference.as_ref()?.as_ref().ok()?.controls.as_ref()
}

/// Returns a change that takes or interrupts paths.
fn disturbing<'d>(results: &'d MeshResults) -> Option<&'d WrittenDiff<'d>> {
    let difference = results.difference.as_ref()?.as_ref().ok()?;
    Some(difference).filter(|it| Grade::Cleanup < it.grade)
}
