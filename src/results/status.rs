//! States: what clusters have, compared with what is rendered.

use std::fmt::Write as _;

use schemars::JsonSchema;
use serde::Serialize;

use super::findings::Report;
use super::findings::json::{WrittenFinding, findings};
use super::findings::markdown::COMMENT;
use super::forms::ResultForms;
use crate::report::json::JsonDocument;
use crate::report::markdown::code;
use crate::report::page::PageForm;
use crate::report::table::TextTable;
use crate::report::width::Width;
use crate::schema::ExampleFile;

mod metrics;
mod notes;
pub mod peers;
pub mod state;
pub mod tunnels;

use notes::{COLUMNS, notes, row, success};
use state::{ClusterStatus, Note};
use tunnels::TunnelReport;

/// The output of `clustermesh status --output json`. Later versions may add fields.
#[derive(JsonSchema, Serialize)]
#[schemars(rename = "Status", example = ExampleFile(include_str!("status/example.json")))]
pub struct StatusResult<'a> {
    /// The clusters, by name.
    clusters: &'a [ClusterStatus],
    /// The tunnels between clusters as the agents report them; absent without `--tunnels`.
    #[serde(skip_serializing_if = "Option::is_none")]
    tunnels: Option<&'a TunnelReport>,
    /// Problems of the mesh, the snapshots, the rendered tree and the connections, the most severe
    /// first.
    findings: Vec<WrittenFinding>,
    /// A line for people about what the clusters are compared with.
    #[serde(skip)]
    basis: String,
    #[serde(skip)]
    report: &'a Report<'a>,
    /// The sentence about clusters without problems.
    #[serde(skip)]
    success: String,
}

impl<'a> StatusResult<'a> {
    /// Returns the states of clusters, with the findings about them.
    pub fn new(
        clusters: &'a [ClusterStatus],
        tunnels: Option<&'a TunnelReport>,
        report: &'a Report<'a>,
        basis: String,
        is_success: bool,
    ) -> Self {
        let success = if is_success { success(clusters) } else { String::new() };
        Self { clusters, tunnels, findings: findings(report), basis, report, success }
    }

    /// Returns why clusters could not be read, a line each.
    pub fn unreadable(&self) -> Vec<String> {
        let unread = self.clusters.iter().filter(|it| it.found.is_none());
        let lines = unread.flat_map(|state| {
            notes(state).into_iter().flat_map(move |Note { about, lines, .. }| {
                lines.into_iter().map(move |line| format!("{}: {about}: {line}", state.cluster))
            })
        });
        lines.collect()
    }

    /// Returns the table and, below it, the problems of each cluster.
    fn human(&self, width: Width) -> String {
        let mut table = TextTable::new(COLUMNS);
        for state in self.clusters {
            table.add(row(state).to_vec());
        }
        let mut text = self.basis.clone() + &table.folded(width);
        for state in self.clusters {
            let notes = notes(state);
            if notes.is_empty() {
                continue;
            }
            let _ = writeln!(text, "\n{}", state.cluster);
            for Note { about, lines, help } in notes {
                for line in lines {
                    let line = width.hanging(4, &format!("{about}: {line}"));
                    let _ = writeln!(text, "  {line}");
                }
                if let Some(help) = help {
                    let help = width.hanging(4, &format!("help: {help}"));
                    let _ = writeln!(text, "    {help}");
                }
            }
        }
        if let Some(tunnels) = self.tunnels {
            let _ = writeln!(text, "\n{}", tunnels::TITLE);
            for line in tunnels.lines() {
                let _ = writeln!(text, "  {}", width.hanging(4, &line));
            }
        }
        text + &self.success
    }

    /// Returns the same with the findings. All foreign text is in code spans.
    fn markdown(&self) -> String {
        let line = |cells: &[String]| format!("| {} |\n", cells.join(" | "));
        let mut text = "### clustermesh: status\n\n".to_owned();
        text.push_str(&line(&COLUMNS.map(|it| it.trim_start_matches('>').to_lowercase())));
        text.push_str(&line(&["---"; COLUMNS.len()].map(str::to_owned)));
        for state in self.clusters {
            let mut cells = row(state);
            // The names; all other cells are our own words and numbers.
            for cell in cells.iter_mut().take(2) {
                *cell = code(cell).replace('|', "\\|");
            }
            text.push_str(&line(&cells));
        }
        for state in self.clusters {
            let notes = notes(state);
            if notes.is_empty() {
                continue;
            }
            let _ = write!(text, "\n**{}**\n\n", code(state.cluster.as_str()));
            for Note { about, lines, help } in notes {
                for line in lines {
                    let _ = writeln!(text, "- {about}: {}", code(&line));
                }
                if let Some(help) = help {
                    let _ = writeln!(text, "  help: {}", code(&help));
                }
            }
        }
        if let Some(tunnels) = self.tunnels {
            let _ = writeln!(text, "\n**{}**\n", tunnels::TITLE);
            for line in tunnels.lines() {
                let _ = writeln!(text, "- {}", code(&line));
            }
        }
        text.push_str(&self.success);
        if !self.findings.is_empty() {
            text = format!("{text}\n{}", self.report.markdown(COMMENT));
        }
        text
    }
}

impl ResultForms for StatusResult<'_> {
    fn page(&self, form: PageForm) -> String {
        match form {
            PageForm::Terminal(width) => self.human(width),
            PageForm::Markdown => self.markdown(),
        }
    }

    fn json(&self) -> serde_json::Result<String> {
        JsonDocument::of(self).text()
    }
}
