//! The verdict: whether the mesh works, in a sentence, and what to do first.

use serde::Serialize;

use super::change_document::PageDifference;
use super::cut_off::CutOffCluster;
use super::documents::PageDocuments;
use super::finding_document::PageFinding;
use super::finding_list::FindingList;
use super::proof_document::PageVerification;
use crate::proof::rule::OUTDATED_TREE;
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
    /// Something does not work.
    Bad,
}

/// The first thing to do.
#[derive(Serialize)]
struct FirstStep<'d> {
    subject: Option<String>,
    message: &'d str,
    help: Option<&'d str>,
    href: Option<String>,
}

impl<'d> Verdict<'d> {
    /// Judges all documents.
    pub(super) fn new(
        documents: &'d PageDocuments,
        findings: &'d FindingList<'d>,
        cut_off: &'d [CutOffCluster],
    ) -> Self {
        let errors = findings.count("error");
        let warnings = findings.count("warning");
        let verification = documents.verification.as_ref();
        let holds = verification.is_ok_and(|it| it.holds);
        let level = if 0 < errors || !holds || !cut_off.is_empty() {
            VerdictLevel::Bad
        } else if 0 < warnings
            || !documents.refusals().is_empty()
            || disturbing(documents).is_some()
        {
            VerdictLevel::Attention
        } else {
            VerdictLevel::Good
        };
        let (word, sign) = match level {
            VerdictLevel::Good => ("Works", "✓"),
            VerdictLevel::Attention => ("Needs attention", "!"),
            VerdictLevel::Bad => ("Broken", "✗"),
        };
        Self {
            level,
            word,
            sign,
            sentence: sentence(documents),
            points: points(documents, findings, cut_off),
            first: FirstStep::new(documents, findings, cut_off),
        }
    }
}

/// Returns what was proved.
fn sentence(documents: &PageDocuments) -> String {
    let clusters = text::count(documents.cluster_names().len(), "cluster");
    let verification = match &documents.verification {
        Ok(verification) => verification,
        Err(refusal) => return format!("Nothing could be proved: {}.", refusal.message),
    };
    let total = verification.total;
    let between = match documents.cluster_names().len() {
        0 => String::new(),
        _ => format!(" between {clusters}"),
    };
    match (total.declared, total.working, total.assumed) {
        (0, ..) => format!("There are no declared paths{between} to check."),
        (1, 1, _) => format!("The declared path{between} works in both directions."),
        (declared, working, 0) if declared == working => {
            format!("All {declared} declared paths{between} work in both directions.")
        }
        (declared, working, 0) => {
            format!(
                "{} of {declared} declared paths{between} fail.",
                declared - working
            )
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
fn points(
    documents: &PageDocuments,
    findings: &FindingList,
    cut_off: &[CutOffCluster],
) -> Vec<String> {
    let mut points = Vec::new();
    let refused = documents
        .findings
        .iter()
        .filter(|it| it.rank() == 0)
        .count();
    if 0 < refused {
        points.push(format!(
            "`render` is refused because of {}",
            text::count(refused, "error")
        ));
    }
    if !cut_off.is_empty() {
        let verb = if cut_off.len() == 1 { "is" } else { "are" };
        points.push(format!(
            "{} {verb} cut off",
            text::count(cut_off.len(), "cluster")
        ));
    }
    let unread = documents.unread().count();
    if 0 < unread {
        let has = if unread == 1 { "has" } else { "have" };
        let clusters = text::count(unread, "cluster");
        points.push(format!(
            "{clusters} {has} no usable snapshot and cannot be checked"
        ));
    }
    if let Ok(verification) = &documents.verification {
        points.extend(of_proof(verification));
    }
    if let Some(change) = disturbing(documents) {
        let PageDifference { against, grade, .. } = change;
        points.push(format!("compared with `{against}`, the change is {grade}"));
    }
    let warnings = findings.count("warning");
    if 0 < warnings {
        points.push(text::count(warnings, "warning"));
    }
    points
}

fn of_proof(verification: &PageVerification) -> impl Iterator<Item = String> {
    let is_outdated = |it: &PageFinding| it.rule == OUTDATED_TREE.name();
    let outdated = verification.findings.iter().any(is_outdated).then(|| {
        "the rendered Peers are outdated, so this is not the proof of the next ones".to_owned()
    });
    let expectations = &verification.expectations;
    let is_met = |it: &&serde_json::Value| it.get("holds") == Some(&true.into());
    let met = expectations.iter().filter(is_met).count();
    let broken = expectations.len() - met;
    let expectations = (0 < broken).then(|| {
        let all = text::count(expectations.len(), "expectation");
        let verb = if broken == 1 { "is" } else { "are" };
        format!("{broken} of {all} {verb} not met")
    });
    outdated.into_iter().chain(expectations)
}

impl<'d> FirstStep<'d> {
    /// Returns what to do about the worst finding, or about a change that disturbs the network; nothing if there are only
    /// notices.
    fn new(
        documents: &'d PageDocuments,
        findings: &'d FindingList<'d>,
        cut_off: &'d [CutOffCluster],
    ) -> Option<Self> {
        let worst = findings.worst().map(|(id, finding)| {
            let is_cause =
                |it: &&CutOffCluster| it.is_empty() && finding.cluster.as_deref() == Some(it.name);
            let cause = cut_off.iter().find(is_cause);
            let step = Self {
                subject: finding.subject(),
                message: cause.map_or(&finding.message, |it| &it.reason),
                help: cause.map_or(finding.help.as_deref(), |it| it.help.as_deref()),
                href: id,
            };
            (finding.rank(), step)
        });
        let refused = documents.verification.as_ref().err().map(|it| Self {
            subject: None,
            message: &it.message,
            help: it.help.as_deref(),
            href: None,
        });
        match (worst, refused) {
            (Some((0, step)), _) | (_, Some(step)) | (Some((_, step)), None) => Some(step),
            (None, None) => disturbing(documents).map(|_| Self {
                subject: None,
                message: "Review what this change does to the network.",
                help: None,
                href: Some("change".to_owned()),
            }),
        }
    }
}

/// Returns a change that takes or interrupts paths.
fn disturbing(documents: &PageDocuments) -> Option<&PageDifference> {
    let difference = documents.difference.as_ref()?.as_ref().ok()?;
    let is_harmless = ["none", "additive", "cleanup"].contains(&difference.grade.as_str());
    Some(difference).filter(|_| !is_harmless)
}
