//! Formats: the forms of results that people choose.

use clap::ValueEnum;
use clustermesh::results::findings::Report;
use clustermesh::results::findings::markdown::COMMENT;

use super::terminal;

/// The format of findings.
#[derive(Clone, Copy, Debug, Default, Eq, PartialEq, ValueEnum)]
pub(crate) enum ReportFormat {
    /// Text for people, with excerpts of the files
    #[default]
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
#[derive(Clone, Copy, Debug, Default, Eq, PartialEq, ValueEnum)]
pub(crate) enum TableFormat {
    /// Text for people
    #[default]
    Human,
    /// JSON
    Json,
    /// Markdown, for a comment on a pull request
    Markdown,
}

/// The format of differences.
#[derive(Clone, Copy, Debug, Default, Eq, PartialEq, ValueEnum)]
pub(crate) enum DiffFormat {
    /// Causes, targets and Peers
    #[default]
    Human,
    /// The same in Markdown, for a comment on a pull request
    Markdown,
    /// JSON
    Json,
    /// Like human, and Markdown for the job summary of GitHub Actions
    Github,
}

impl ReportFormat {
    /// Returns the same format of a result that is more than findings, unless it has only these.
    pub(crate) fn of_table(self) -> Option<TableFormat> {
        match self {
            Self::Human => Some(TableFormat::Human),
            Self::Json => Some(TableFormat::Json),
            Self::Markdown => Some(TableFormat::Markdown),
            Self::Concise | Self::Sarif | Self::Github | Self::Gitlab => None,
        }
    }

    /// Returns a report in this format; in colours only for a person.
    pub(crate) fn text(self, report: &Report) -> serde_json::Result<String> {
        Ok(match self {
            Self::Human => report.human(terminal::stdout()),
            Self::Concise => report.concise(),
            Self::Json => report.json()?,
            Self::Sarif => report.sarif()?,
            Self::Github => report.github(),
            Self::Gitlab => report.gitlab()?,
            Self::Markdown => report.markdown(COMMENT),
        })
    }
}
