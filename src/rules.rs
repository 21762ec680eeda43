//! Rules: names, severities, documentation and words for the facts that others have found.
//!
//! A fact is decided where it matters, once; here it only gets a voice. So what a command does and
//! what any command says about it cannot differ.

use std::collections::BTreeSet;

use crate::diagnostic::{Label, Quoted, Severity};
use crate::fleet::{Fleet, Member};
use crate::name::ClusterName;
use crate::place::Place;
use crate::plan::Plan;

/// Declares the rules of a question, all about one subject: a static each, and all of them as
/// `RULES`. The documentation of a rule is a page of its name in the folder of the question.
macro_rules! rules {
    ($folder:literal about $subject:ident; $($rule:ident = $name:literal $severity:ident $($alias:literal)*;)*) => {
        $(
            pub(super) static $rule: $crate::rules::Rule = $crate::rules::Rule {
                name: $name,
                aliases: &[$($alias),*],
                severity: $crate::diagnostic::Severity::$severity,
                subject: $crate::rules::Subject::$subject,
                page: include_str!(concat!($folder, "/", $name, ".md")),
            };
        )*

        /// The rules of this question.
        pub(super) static RULES: &[&$crate::rules::Rule] = &[$(&$rule),*];
    };
}

pub mod access;
pub mod capacity;
pub mod clusters;
mod endpoints;
pub mod gitops;
mod identity;
mod kilo;
mod levels;
pub mod mesh;
mod manual;
mod nodes;
mod page;
mod plan;
mod ranges;
pub mod reach;
mod registry;
pub mod rendered;
mod roster;
pub mod snapshots;
pub mod verified;

pub use levels::{Levels, Purpose};
pub use manual::{manual, page_of, page_of_term};
pub use page::{Block, Page, SECTIONS, Section};
pub use registry::{QUESTIONS, Question, all, find};

/// What a finding is about, and how much it matters.
#[derive(Debug, Eq, PartialEq)]
pub struct Rule {
    /// Its name: kebab-case, names the fault, never reused.
    pub name: &'static str,
    /// The operator's reason codes for the same.
    pub aliases: &'static [&'static str],
    /// How much it matters.
    pub severity: Severity,
    /// What it is about.
    pub subject: Subject,
    /// Its documentation, as Markdown.
    page: &'static str,
}

/// What a rule is about.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub enum Subject {
    /// The files that are rendered from, and the config. Where one of them is wrong there is no
    /// plan.
    Files,
    /// What can be planned of them.
    Plan,
    /// Snapshots in the making.
    Snapshots,
    /// What the manifests come to as they are applied, which only a proof tells.
    Proof,
    /// The rendered tree: how it stands, and what a render would take away from it. Where one of
    /// these is an error, nothing is written.
    Tree,
}

/// A case of a rule.
#[derive(Clone, Debug)]
pub struct Finding {
    /// The rule.
    pub rule: &'static Rule,
    /// How much this case matters: what the rule says, unless a person says otherwise.
    pub severity: Severity,
    /// Whether nobody can say otherwise, for without it there is nothing to go on with.
    pub is_final: bool,
    /// The cluster that it concerns.
    pub cluster: Option<String>,
    /// The node that it concerns, as it calls itself.
    pub node: Option<String>,
    /// Findings of one rule and group are told together.
    pub group: String,
    /// What is the matter, with the offending values, harmless to print.
    pub message: String,
    /// Where, the most important place first.
    pub labels: Vec<Label>,
    /// What to do.
    pub help: Option<String>,
}

impl Rule {
    /// Returns its documentation.
    pub fn page(&self) -> Page {
        Page::read(self.page)
    }

    /// Returns the name by which people look it up: the operator's code where there is one.
    pub fn code(&self) -> &'static str {
        self.aliases.first().unwrap_or(&self.name)
    }

    /// Returns whether nothing can be planned where it is found, so that nobody can lower it.
    pub fn is_final(&self) -> bool {
        let is_final = matches!(self.subject, Subject::Files | Subject::Tree);
        is_final && self.severity == Severity::Error
    }
}

impl Finding {
    /// Returns a finding about a cluster, as a file or a folder names it: it may be none.
    fn on_named(rule: &'static Rule, cluster: &str, message: String) -> Self {
        match cluster.parse() {
            Ok(cluster) => Self::on_cluster(rule, &cluster, message),
            Err(_) => Self {
                rule,
                severity: rule.severity,
                is_final: rule.is_final(),
                cluster: None,
                node: None,
                group: String::new(),
                message: format!("{}: {message}", Quoted(cluster)),
                labels: Vec::new(),
                help: None,
            },
        }
    }

    /// Returns a finding about a cluster.
    fn on_cluster(rule: &'static Rule, cluster: &ClusterName, message: String) -> Self {
        Self {
            rule,
            severity: rule.severity,
            is_final: rule.is_final(),
            cluster: Some(cluster.to_string()),
            node: None,
            group: cluster.to_string(),
            message,
            labels: Vec::new(),
            help: None,
        }
    }

    /// Returns a finding about a node of a cluster.
    fn on_node(rule: &'static Rule, cluster: &ClusterName, node: &str, message: String) -> Self {
        Self {
            node: Some(node.to_owned()),
            ..Self::on_cluster(rule, cluster, message)
        }
    }

    /// Adds a place, with a few words for what is there.
    fn at(mut self, place: Place, text: &str) -> Self {
        let text = text.to_owned();
        self.labels.push(Label { place, text });
        self
    }

    /// Says what to do.
    fn help(mut self, help: impl Into<String>) -> Self {
        self.help = Some(help.into());
        self
    }

    /// Returns whom it concerns, such as `east/worker-1`, harmless to print.
    pub fn subject(&self) -> Option<String> {
        let cluster = self.cluster.as_ref()?;
        Some(match &self.node {
            Some(node) => format!("{cluster}/{}", bare(node)),
            None => cluster.clone(),
        })
    }
}

/// Returns a name as it is, but harmless.
fn bare(name: &str) -> String {
    let quoted = Quoted(name).to_string();
    quoted.trim_matches('`').to_owned()
}

/// How many of many things a finding names.
const NAMED: usize = 3;

/// Names the first few.
fn listed(texts: impl ExactSizeIterator<Item = String>) -> String {
    let more = texts.len().saturating_sub(NAMED);
    let shown: Vec<String> = texts.take(NAMED).collect();
    match more {
        0 => shown.join(", "),
        more => format!("{} and {more} more", shown.join(", ")),
    }
}

/// Drops what is told twice, as of a cluster in two meshes.
fn once(mut findings: Vec<Finding>) -> Vec<Finding> {
    let mut known = BTreeSet::new();
    findings.retain(|finding| {
        let (subject, message) = (finding.subject(), finding.message.clone());
        known.insert((finding.rule.name, subject, message))
    });
    findings
}

/// Returns everything to tell about clusters and, where there is one, their plan: the gravest first,
/// in an order that is always the same.
pub fn findings(fleet: &Fleet, plan: Option<&Plan>) -> Vec<Finding> {
    let mut members: Vec<&Member> = fleet.members().iter().collect();
    members.sort_by_key(|member| (&member.entry.name, member.rank));
    let mut findings: Vec<Finding> = members.iter().flat_map(|it| roster::findings(it)).collect();
    findings.extend(plan.map(plan::findings).unwrap_or_default());
    let questions = [ranges::findings, endpoints::findings, kilo::findings];
    findings.extend(questions.iter().flat_map(|question| question(fleet)));
    findings.extend(identity::findings(fleet, plan));
    findings.sort_by_key(|finding| std::cmp::Reverse(finding.severity));
    findings
}

#[cfg(test)]
mod tests;
