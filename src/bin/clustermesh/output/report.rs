//! Reports: findings as a result, in the form that was asked for.

use std::collections::BTreeSet;

use clap::ValueEnum;
use clustermesh::diagnostic::FindingCause;
use clustermesh::rules::Finding;

use super::entry::{ReportEntry, entries};
use super::{
    concise, github, gitlab, human, json, markdown, sarif, statistics, step_summary, terminal,
};
use crate::files::ShownFiles;

/// The format of findings.
#[derive(Clone, Copy, Debug, Eq, PartialEq, ValueEnum)]
pub(crate) enum ReportFormat {
    /// Text for people, with excerpts of the files
    Human,
    /// One line per finding: `file:line:column: severity[rule] message`
    Concise,
    /// JSON
    Json,
    /// SARIF 2.1.0, for code scanning
    Sarif,
    /// Annotations and job summary for GitHub Actions
    Github,
    /// Code Quality report for GitLab
    Gitlab,
    /// Markdown, for a comment on a pull request
    Markdown,
}

/// The format of a table.
#[derive(Clone, Copy, Debug, Eq, PartialEq, ValueEnum)]
pub(crate) enum TableFormat {
    /// Text for people
    Human,
    /// JSON
    Json,
    /// Markdown, for a comment on a pull request
    Markdown,
}

/// Findings, and the files that they point into.
pub(crate) struct Report<'a> {
    pub(super) files: &'a ShownFiles,
    /// The findings in order, with their texts escaped: no format has to do that itself.
    pub(super) findings: Vec<Finding>,
}

impl<'a> Report<'a> {
    /// Returns a report of findings, in the order in which they are listed.
    pub(crate) fn new(files: &'a ShownFiles, findings: &[Finding]) -> Self {
        let findings = &files.presentable(findings)[..];
        let causes: BTreeSet<&FindingCause> =
            findings.iter().filter_map(|it| it.cause.as_ref()).collect();
        let known: BTreeSet<FindingCause> =
            findings.iter().filter(|_| !causes.is_empty()).map(Finding::as_cause).collect();
        let findings = findings.iter().cloned().map(|finding| Finding {
            // A cause that the config ignores explains nothing.
            cause: finding.cause.clone().filter(|it| known.contains(it)),
            ..finding.harmless()
        });
        Self { files, findings: findings.collect() }
    }

    /// Returns the report as text; in colours only for a person.
    pub(crate) fn text(&self, format: ReportFormat) -> anyhow::Result<String> {
        Ok(match format {
            ReportFormat::Human => human::pieces(self, terminal::stdout())
                .into_iter()
                .map(|piece| piece + "\n")
                .collect(),
            ReportFormat::Concise => concise::text(self),
            ReportFormat::Json => json::text(self)?,
            ReportFormat::Sarif => sarif::text(self)?,
            ReportFormat::Github => github::text(self),
            ReportFormat::Gitlab => gitlab::text(self)?,
            ReportFormat::Markdown => markdown::text(self, markdown::COMMENT),
        })
    }

    /// Returns how many findings there are of each rule, as JSON or as a table.
    pub(crate) fn statistics(&self, format: ReportFormat) -> anyhow::Result<String> {
        statistics::text(&self.findings, format)
    }

    /// Adds the report to the summary of the GitHub job that we run in, if we do.
    pub(crate) fn add_to_step_summary(&self) -> anyhow::Result<()> {
        step_summary::append(|room| markdown::text(self, room))
    }

    /// Returns the findings with what follows from them.
    pub(super) fn entries(&self) -> Vec<ReportEntry<'_>> {
        entries(&self.findings)
    }
}
