//! Findings as a result, in every form that people and programs read.

use std::collections::BTreeSet;

use super::source_texts::SourceTexts;
use crate::diagnostic::{Finding, FindingCause, Subject};
use crate::report::width::Width;
use crate::rules::LevelledFindings;

pub mod concise;
pub mod entry;
mod excerpt;
mod fingerprint;
pub(super) mod github;
mod gitlab;
mod human;
pub mod json;
pub mod markdown;
pub mod plugin;
mod repository_place;
mod sarif;
pub mod statistics;
mod wording;

use entry::{ReportEntry, entries};
use statistics::Statistics;

/// Returns how many findings there are of each severity, without what follows from others; nothing if there are none.
pub fn counts(findings: &LevelledFindings) -> Option<String> {
    wording::counts(&entries(&findings[..]))
}

/// Findings, and the files that they point into.
pub struct Report<'a> {
    files: &'a dyn SourceTexts,
    /// The findings in order, with their texts escaped: no format has to do that itself.
    findings: Vec<Finding>,
}

impl<'a> Report<'a> {
    /// Returns a report of findings, in the order in which they are listed.
    pub fn new(files: &'a dyn SourceTexts, findings: &LevelledFindings) -> Self {
        let findings = &files.presentable(findings)[..];
        let causes: BTreeSet<&FindingCause> =
            findings.iter().filter_map(|it| it.cause.as_ref()).collect();
        let known: BTreeSet<FindingCause> =
            findings.iter().filter(|_| !causes.is_empty()).map(Finding::as_cause).collect();
        let findings = findings.iter().cloned().map(|finding| Finding {
            // A cause that is not reported explains nothing, unless another command reports it: a path fails because of
            // what only `validate` looks at.
            cause: finding.cause.clone().filter(|it| {
                let is_of_proof = finding.rule.subject == Subject::Proof;
                known.contains(it) || is_of_proof && it.rule.subject == Subject::Plan
            }),
            ..finding.harmless()
        });
        Self { files, findings: findings.collect() }
    }

    /// Returns texts for people, with excerpts of the files: each a kind of finding, with what to do about it.
    pub fn pieces(&self, width: Width) -> Vec<String> {
        human::pieces(self, width)
    }

    /// Returns a text for people, with excerpts of the files.
    pub fn human(&self, width: Width) -> String {
        self.pieces(width).into_iter().map(|piece| piece + "\n").collect()
    }

    /// Returns one line for each finding: `file:line:column: severity[rule] message`.
    pub fn concise(&self) -> String {
        concise::text(self)
    }

    /// Returns a JSON document.
    pub fn json(&self) -> serde_json::Result<String> {
        json::text(self)
    }

    /// Returns a log of SARIF 2.1.0, for code scanning.
    pub fn sarif(&self) -> serde_json::Result<String> {
        sarif::text(self)
    }

    /// Returns annotations for a job of GitHub Actions.
    pub fn github(&self) -> String {
        github::text(self)
    }

    /// Returns a Code Quality report for GitLab.
    pub fn gitlab(&self) -> serde_json::Result<String> {
        gitlab::text(self)
    }

    /// Returns Markdown for a comment on a pull request, of at most `limit` bytes unless that is too few for anything.
    pub fn markdown(&self, limit: usize) -> String {
        markdown::text(self, limit)
    }

    /// Returns how many findings there are of each rule.
    pub fn statistics(&self) -> Statistics {
        Statistics::count(&self.findings)
    }

    /// Returns the findings with what follows from them.
    fn entries(&self) -> Vec<ReportEntry<'_>> {
        entries(&self.findings)
    }
}
