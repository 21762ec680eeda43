//! Differences between two versions of a fleet, in the form that was asked for.

use crate::changes::{
    CauseEffect, Changes, Grade, PeerCounts, SILENCE_SECONDS, TargetChange, WatchedPaths,
};
use crate::config::Config;
use crate::controls::JudgedChange;
use crate::kilo::node::annotation;
use crate::mesh::Mesh;
use crate::report::json::JsonDocument;
use crate::report::page::PageForm;
use crate::report::style::plain;
use crate::report::width::Width;
use crate::results::findings::Report;
use crate::results::findings::github::{self, ANNOTATIONS};
use crate::results::findings::markdown::COMMENT;
use crate::results::forms::ResultForms;
use crate::results::source_texts::SourceTexts;
use crate::rules::LevelledFindings;
use crate::text::count;

mod controls;
mod graph;
mod human;
pub mod json;
mod markdown;
mod remedy;
mod wording;

pub use wording::counts;

/// Differences, and what they are about.
pub struct Compared<'a> {
    /// The differences.
    pub changes: &'a Changes,
    /// The number of clusters that were compared.
    pub clusters: usize,
    /// The other side of the comparison, as named on the command line.
    pub against: String,
    /// Facts about the old version that change what the comparison means.
    pub notes: &'a [String],
    /// The findings that make the change fail besides its grade.
    pub findings: &'a LevelledFindings,
    /// The paths that it must not open.
    pub watched: &'a [WatchedPaths],
    /// The judgement of the controls of the old version about the change, if it has any.
    pub judged: Option<&'a JudgedChange<'a>>,
    /// The meshes of the new version.
    pub meshes: &'a [Mesh],
    /// The config of the new version.
    pub config: &'a Config,
    /// The files of the new version.
    pub files: &'a dyn SourceTexts,
    /// The files of the old version, if it has any of its own.
    pub old_files: Option<&'a dyn SourceTexts>,
}

impl ResultForms for Compared<'_> {
    fn page(&self, form: PageForm) -> String {
        match form {
            PageForm::Terminal(width) => human::text(self, width),
            PageForm::Markdown => self.markdown(COMMENT),
        }
    }

    fn json(&self) -> serde_json::Result<String> {
        JsonDocument::of(json::written(self)).text()
    }
}

impl Compared<'_> {
    /// Returns annotations for a job of GitHub Actions, and the page for people. A log of a job has no colours. Weaker
    /// controls are errors if the job fails for them.
    pub fn github(&self, width: Width, fails_for_weaker: bool) -> String {
        let notes = self.control_notes().into_iter();
        let weaker = notes.filter(|it| fails_for_weaker && it.is_weaker).take(ANNOTATIONS);
        let weaker = weaker.map(|it| github::error(it.kind, &it.text));
        weaker.collect::<String>() + &self.report().github() + &plain(&human::text(self, width))
    }

    /// Returns Markdown of at most `limit` bytes.
    pub fn markdown(&self, limit: usize) -> String {
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
        let peers = if self.counts() == PeerCounts::default() {
            format!(
                "No Peer changes compared with {} ({}).",
                against,
                count(self.clusters, "cluster")
            )
        } else {
            format!(
                "{} of {} changed compared with {}: {} Peers.",
                self.changes.targets.len(),
                count(self.clusters, "target"),
                against,
                counts(self.counts())
            )
        };
        match self.control_sentence() {
            Some(controls) => format!("{peers} {controls}"),
            None => peers,
        }
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
            Grade::Disruptive => "Paths are lost, no longer proved, or interrupted for more than 30 seconds.",
            Grade::Destructive => {
                "A target loses all of its Peers, or all Peers of another cluster, or all paths to it."
            }
        }
        .to_owned()
    }
}
