//! Differences between two versions of a fleet, in the form that was asked for.

use anstream::adapter::strip_str;
use clap::ValueEnum;
use clustermesh::changes::{
    CauseEffect, Changes, Grade, PeerCounts, SILENCE_SECONDS, TargetChange, WatchedPaths,
};
use clustermesh::config::Config;
use clustermesh::kilo::node::annotation;
use clustermesh::mesh::Mesh;
use clustermesh::results::findings::Report;
use clustermesh::results::findings::markdown::COMMENT;
use clustermesh::rules::Finding;
use clustermesh::text::count;

use crate::files::ShownFiles;

mod alike;
mod graph;
mod human;
mod json;
mod markdown;
mod remedy;
mod wording;

pub(crate) use json::WrittenDiff;
pub(super) use wording::counts;

/// An output format of differences.
#[derive(Clone, Copy, Debug, Eq, PartialEq, ValueEnum)]
pub(crate) enum DiffFormat {
    /// Causes, targets and Peers
    Human,
    /// The same in Markdown, for a comment on a pull request
    Markdown,
    /// JSON
    Json,
    /// Like human, and Markdown for the job summary of GitHub Actions
    Github,
}

/// Differences, and what they are about.
pub(crate) struct Compared<'a> {
    /// The differences.
    pub(crate) changes: &'a Changes,
    /// The number of clusters that were compared.
    pub(crate) clusters: usize,
    /// The other side of the comparison, as named on the command line.
    pub(crate) against: String,
    /// Facts about the old version that change what the comparison means.
    pub(crate) notes: &'a [String],
    /// The findings that make the change fail besides its grade.
    pub(crate) findings: &'a [Finding],
    /// The paths that it must not open.
    pub(crate) watched: &'a [WatchedPaths],
    /// The meshes of the new version.
    pub(crate) meshes: &'a [Mesh],
    /// The config of the new version.
    pub(crate) config: &'a Config,
    /// The files of the new version.
    pub(crate) files: &'a ShownFiles,
    /// The files of the old version, if it has any of its own.
    pub(crate) old_files: Option<&'a ShownFiles>,
}

impl Compared<'_> {
    /// Returns them as text.
    pub(crate) fn text(&self, format: DiffFormat) -> anyhow::Result<String> {
        Ok(match format {
            DiffFormat::Human => human::text(self),
            // A log of a job has no colours.
            DiffFormat::Github => {
                let text = human::text(self);
                self.report().github() + &strip_str(&text).to_string()
            }
            DiffFormat::Markdown => markdown::text(self, COMMENT),
            DiffFormat::Json => json::text(self)?,
        })
    }

    /// Returns a page for the summary of a job, of at most `limit` bytes.
    pub(crate) fn page(&self, limit: usize) -> String {
        markdown::text(self, limit)
    }

    fn report(&self) -> Report<'_> {
        Report::new(self.files, self.findings)
    }

    /// Returns how many Peers change in all targets.
    fn counts(&self) -> PeerCounts {
        let mut all = PeerCounts::default();
        for counts in self.changes.targets.iter().map(TargetChange::counts) {
            all.added += counts.added;
            all.changed += counts.changed;
            all.removed += counts.removed;
        }
        all
    }

    /// Returns the targets that a cause changes, each with the number of its Peers.
    fn effects<'c>(
        &'c self,
        effect: &'c CauseEffect,
    ) -> impl Iterator<Item = (&'c TargetChange, PeerCounts)> {
        let effects = effect.targets.iter();
        effects.filter_map(|it| Some((self.changes.targets.get(it.target)?, it.counts)))
    }

    /// Returns the targets, the worst grade first.
    fn by_grade(&self) -> Vec<&TargetChange> {
        let mut targets: Vec<&TargetChange> = self.changes.targets.iter().collect();
        targets.sort_by_key(|it| std::cmp::Reverse(it.grade()));
        targets
    }

    /// Returns whether nothing changes for any cluster.
    fn is_unchanged(&self) -> bool {
        self.changes.targets.is_empty() && self.changes.services.is_empty()
    }

    /// Returns the summary in a line, with what was compared with as it is shown there.
    fn headline(&self, against: &str) -> String {
        if self.changes.targets.is_empty() {
            return format!(
                "No Peer changes compared with {} ({}).",
                against,
                count(self.clusters, "cluster")
            );
        }
        format!(
            "{} of {} changed compared with {}: {} Peers.",
            self.changes.targets.len(),
            count(self.clusters, "target"),
            against,
            counts(self.counts())
        )
    }

    /// Returns the sentence about the grade.
    fn verdict(&self) -> String {
        if self.changes.is_pause_only() {
            let nodes = self.changes.targets.iter().map(|it| it.pausing.len());
            return format!(
                "Requests may get no answer for up to {SILENCE_SECONDS} seconds because {} without the annotation `{}`. \
                 Annotate them first: then this change is {}.",
                match nodes.sum() {
                    1 => "1 node is".to_owned(),
                    nodes => format!("{nodes} nodes are"),
                },
                annotation::PERSISTENT_KEEPALIVE,
                self.changes.grade_without_pause().name()
            );
        }
        match self.changes.grade() {
            Grade::None => "Nothing changes.",
            _ if self.changes.targets.is_empty() => "No Peer changes, only Services of other clusters.",
            Grade::Additive => "Paths are only gained, and nothing that works is disturbed.",
            Grade::Cleanup => {
                "Only paths to nodes or addresses that no longer exist are removed, and nothing that works is disturbed."
            }
            Grade::Brief => {
                "Requests in changed clusters may get no answer for at most 30 seconds. Nodes behind NAT that send \
                 nothing may be unreachable for up to 205 seconds."
            }
            Grade::Disruptive => "A path is lost, or interrupted for longer than a brief change may.",
            Grade::Destructive => {
                "A target loses all of its Peers, or all Peers of another cluster."
            }
        }
        .to_owned()
    }
}
