//! Reports: findings as a result, in the form that was asked for.

use std::cmp::Reverse;

use clap::ValueEnum;
use clustermesh::rules::Finding;

use super::{concise, github, gitlab, human, json, markdown, sarif, step_summary};
use crate::files::Files;

/// How findings are printed.
#[derive(Clone, Copy, Debug, Eq, PartialEq, ValueEnum)]
pub(crate) enum Format {
    /// With excerpts, for a person
    Human,
    /// A line each, `file:line:column: severity[rule] message`
    Concise,
    /// An object for programs
    Json,
    /// SARIF 2.1.0, for code scanning
    Sarif,
    /// Annotations of a GitHub job, and its summary
    Github,
    /// A Code Quality report of GitLab
    Gitlab,
    /// Markdown, for a comment on a pull request
    Markdown,
}

/// Findings, and the files that they point into.
pub(crate) struct Report<'a> {
    /// The files.
    pub(crate) files: &'a Files,
    /// The findings, in the order in which they are told.
    pub(crate) findings: &'a [Finding],
}

impl Report<'_> {
    /// Returns the report as text; in colours only for a person.
    pub(crate) fn text(&self, format: Format) -> anyhow::Result<String> {
        Ok(match format {
            Format::Human => {
                let told = human::told(self.files, self.findings).into_iter();
                told.map(|piece| piece + "\n").collect()
            }
            Format::Concise => concise::text(self),
            Format::Json => json::text(self)?,
            Format::Sarif => sarif::text(self)?,
            Format::Github => github::text(self),
            Format::Gitlab => gitlab::text(self)?,
            Format::Markdown => markdown::text(self, markdown::COMMENT),
        })
    }

    /// Adds the report to the summary of the GitHub job that we run in, if we do.
    pub(crate) fn add_to_step_summary(&self) -> anyhow::Result<()> {
        step_summary::append(self)
    }

    /// Returns the findings, the gravest first: what shows only some shows those.
    pub(super) fn gravest_first(&self) -> Vec<&Finding> {
        let mut findings: Vec<&Finding> = self.findings.iter().collect();
        findings.sort_by_key(|finding| Reverse(finding.severity));
        findings
    }
}
