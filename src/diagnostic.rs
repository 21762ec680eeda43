//! Diagnostics: findings about an input, with their places, for people and programs.

use std::cmp::Reverse;
use std::fmt;

use schemars::JsonSchema;
use serde::Serialize;

use crate::name::ClusterName;
use crate::place::Place;
use crate::text::{NAMED, and_more};

#[macro_use]
mod rule;
mod escape;
mod message;
pub mod mistake;
mod mistakes;
mod node_remedy;
mod page;
mod slip;

pub use escape::{Quoted, bare, character, escaped, is_command, is_deceptive, plain_json};
pub use message::Message;
pub use mistakes::{LISTED, Mistakes};
pub use node_remedy::{MetadataChange, MetadataKind, NodeRemedy};
pub use page::{Page, Section};
pub use rule::{Question, Rule, Subject};
pub(crate) use slip::Slip;

/// The longest part of a text of a finding that is shown, in characters.
const SHOWN: usize = 4000;

/// A case of a rule. Its fields for programs are part of JSON documents.
#[derive(Clone, Debug, Eq, JsonSchema, PartialEq, Serialize)]
pub struct Finding {
    /// The rule.
    #[serde(flatten)]
    pub rule: &'static Rule,
    /// The severity, after the levels of the config.
    pub severity: Severity,
    /// The problem in one line, with the wrong values.
    #[schemars(with = "&str")]
    pub message: Message,
    /// The cluster that the finding is about, if any.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub cluster: Option<String>,
    /// The node that the finding is about, if any.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub node: Option<String>,
    /// The remedy in one sentence, if there is a single one.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub help: Option<String>,
    /// The text that corrects each of its places without a remark, if it is written there instead.
    #[serde(skip)]
    pub replacement: Option<Box<str>>,
    /// The name that the finding is about, such as one that no mesh has.
    #[serde(skip)]
    pub named: Option<Box<str>>,
    /// The finding that causes this one. Correcting the cause corrects both.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub cause: Option<FindingCause>,
    /// Whether the severity is final, because the run cannot continue.
    #[serde(skip)]
    pub is_final: bool,
    /// Whether only the nodes of its cluster cause it. They must not stop the other clusters, so `render` only
    /// warns about it.
    #[serde(skip)]
    pub is_of_nodes: bool,
    /// Findings of one rule and group are reported together.
    #[serde(skip)]
    pub group: String,
    /// The places, the most important one first.
    #[serde(skip)]
    pub labels: Vec<Label>,
    /// The changes of annotations and labels that resolve it, for `clustermesh annotate`.
    #[serde(skip)]
    pub changes: Vec<NodeRemedy>,
    /// The common part of findings about several nodes, unless that is the whole message.
    #[serde(skip)]
    pub alike: Option<Box<Alike>>,
    /// The texts of it that may quote the file that it is about.
    #[serde(skip)]
    pub quotes: Quotes,
    /// Whether a mistake beside it, such as a misspelled field, can cause it.
    #[serde(skip)]
    pub is_shadow: bool,
}

/// The texts of a finding that may quote the file that it is about. Nothing of a stranger's file is shown.
#[derive(Clone, Copy, Debug, Default, Eq, PartialEq)]
pub enum Quotes {
    /// All of them may quote it.
    #[default]
    File,
    /// All but the remedy may quote it.
    FileExceptHelp,
    /// None of them quotes it.
    Nothing,
}

/// The common part of findings about several nodes.
#[derive(Clone, Debug, Eq, PartialEq)]
pub struct Alike {
    /// The problem, without values that only one node has.
    pub what: String,
    /// The value that only this node has; nothing if the finding is about all of them.
    pub value: Option<String>,
}

/// The finding that causes another one.
#[derive(Clone, Debug, Eq, JsonSchema, Ord, PartialEq, PartialOrd, Serialize)]
#[schemars(rename = "Cause")]
pub struct FindingCause {
    /// The name of its rule.
    #[schemars(with = "&str", example = &"missing-endpoint")]
    #[serde(serialize_with = "rule::written_name")]
    pub rule: &'static Rule,
    /// The cluster that the finding is about, if any.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub cluster: Option<String>,
    /// The node that the finding is about, if any.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub node: Option<String>,
}

impl FindingCause {
    /// Returns a finding about a cluster as a cause.
    pub(crate) fn of(rule: &'static Rule, cluster: &impl ToString) -> Self {
        Self { rule, cluster: Some(cluster.to_string()), node: None }
    }

    /// Returns the reported finding that it means, if there is one: itself, or if it is about all nodes of a cluster, the
    /// first finding of its rule about one of them.
    pub(crate) fn reported_in<'r>(
        self,
        reported: impl IntoIterator<Item = &'r Self> + Clone,
    ) -> Option<Self> {
        if reported.clone().into_iter().any(|it| *it == self) {
            return Some(self);
        }
        let is_of_node = |it: &&Self| it.rule == self.rule && it.cluster == self.cluster;
        let of_node = reported.into_iter().find(is_of_node).filter(|_| self.node.is_none());
        of_node.cloned()
    }
}

/// Sorts findings into the order in which all commands list them: the most severe first, and else
/// as they were found.
pub fn gravest_first(findings: &mut [Finding]) {
    findings.sort_by_key(|finding| Reverse(finding.severity));
}

/// Returns a finding for each of some things that differ only in a name. Of more than a few, it returns that of the first,
/// with the number of the others.
pub fn few<T>(things: Vec<T>, noun: &str, finding: impl Fn(T) -> Finding) -> Vec<Finding> {
    let others = things.len().saturating_sub(1);
    if others < NAMED {
        return things.into_iter().map(finding).collect();
    }
    let first = things.into_iter().next().map(finding);
    let counted = first.map(|it| {
        let message = format!("{}{}", it.message, and_more(others, noun)).into();
        Finding { message, ..it }
    });
    counted.into_iter().collect()
}

/// A place of a diagnostic, and what there is to see.
#[derive(Clone, Debug, Eq, Ord, PartialEq, PartialOrd)]
pub struct Label {
    /// The place.
    pub place: Place,
    /// A few words for the underlined text; may be empty.
    pub text: String,
}

/// The severity of a finding.
#[derive(Clone, Copy, Debug, Eq, JsonSchema, Ord, PartialEq, PartialOrd, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum Severity {
    /// Only reported.
    Notice,
    /// The run fails with `--fail-on warning`.
    Warning,
    /// The run fails.
    Error,
}

impl Finding {
    /// Returns a finding, as severe as its rule.
    pub fn new(rule: &'static Rule, message: impl Into<Message>) -> Self {
        Self {
            rule,
            severity: rule.severity,
            is_final: rule.is_final(),
            is_of_nodes: false,
            cluster: None,
            node: None,
            group: String::new(),
            message: message.into(),
            labels: Vec::new(),
            help: None,
            replacement: None,
            changes: Vec::new(),
            named: None,
            cause: None,
            alike: None,
            quotes: Quotes::File,
            is_shadow: false,
        }
    }

    /// Returns a finding about a cluster, as a file or a folder names it: the name may be invalid.
    pub(crate) fn on_named(rule: &'static Rule, cluster: &str, message: String) -> Self {
        match cluster.parse() {
            Ok(cluster) => Self::on_cluster(rule, &cluster, message),
            Err(_) => Self::new(rule, format!("{}: {message}", Quoted(cluster))).of_name(cluster),
        }
    }

    /// Returns a finding about a cluster.
    pub(crate) fn on_cluster(
        rule: &'static Rule,
        cluster: &ClusterName,
        message: impl Into<Message>,
    ) -> Self {
        Self::new(rule, message).about(cluster)
    }

    /// Returns a finding about a node of a cluster.
    pub(crate) fn on_node(
        rule: &'static Rule,
        cluster: &ClusterName,
        node: &str,
        message: String,
    ) -> Self {
        Self { node: Some(node.to_owned()), ..Self::on_cluster(rule, cluster, message) }
    }

    /// Sets the cluster that it concerns.
    #[must_use]
    pub(crate) fn about(self, cluster: &ClusterName) -> Self {
        Self { cluster: Some(cluster.to_string()), group: cluster.to_string(), ..self }
    }

    /// Makes it an error that only the nodes of its cluster cause.
    #[must_use]
    pub(crate) fn of_nodes(self) -> Self {
        Self { severity: Severity::Error, is_of_nodes: true, ..self }
    }

    /// Sets which of its texts may quote the file that it is about.
    #[must_use]
    pub(crate) fn quoting(self, quotes: Quotes) -> Self {
        Self { quotes, ..self }
    }

    /// Marks it as what a mistake beside it, such as a misspelled field, can cause.
    #[must_use]
    pub(crate) fn shadow(self) -> Self {
        Self { is_shadow: true, ..self }
    }

    /// Adds a place, if there is one, with a few words for what is there.
    #[must_use]
    pub fn at(mut self, place: impl Into<Option<Place>>, text: impl Into<String>) -> Self {
        let text = text.into();
        let label = place.into().map(|place| Label { place, text });
        self.labels.extend(label);
        self
    }

    /// Adds places, each with a few words for what is there.
    #[must_use]
    pub(crate) fn at_each<P: Into<Option<Place>>, T: Into<String>>(
        self,
        places: impl IntoIterator<Item = (P, T)>,
    ) -> Self {
        places.into_iter().fold(self, |finding, (place, text)| finding.at(place, text))
    }

    /// Adds the places of an item that is there twice.
    #[must_use]
    pub(crate) fn at_both(self, again: Place, first: Place) -> Self {
        self.at(again, "second here").at(first, "first here")
    }

    /// Adds the remedy.
    #[must_use]
    pub fn help(mut self, help: impl Into<String>) -> Self {
        self.help = Some(help.into());
        self
    }

    /// Adds the remedy, a text that is to be written at its places. Programs write it as it is, so it has no characters that
    /// deceive people.
    #[must_use]
    pub(crate) fn corrected(self, text: &str, help: impl Into<String>) -> Self {
        let replacement = (!text.chars().any(is_deceptive)).then(|| text.into());
        Self { replacement, ..self }.help(help)
    }

    /// Adds the name that was probably meant at its places.
    #[must_use]
    pub(crate) fn meant(self, name: &str) -> Self {
        self.corrected(name, format!("did you mean {}?", Quoted(name)))
    }

    /// Returns the text that corrects one of its places. Of what follows from another finding, that one is corrected.
    pub fn replacement_of(&self, label: &Label) -> Option<&str> {
        self.replacement.as_deref().filter(|_| label.text.is_empty() && self.cause.is_none())
    }

    /// Adds a change of nodes of a cluster that resolves it.
    #[must_use]
    pub(crate) fn resolved_by<'n>(
        mut self,
        change: &MetadataChange,
        cluster: &ClusterName,
        nodes: impl IntoIterator<Item = &'n str>,
    ) -> Self {
        self.changes.extend(nodes.into_iter().map(|node| NodeRemedy {
            cluster: cluster.clone(),
            node: node.to_owned(),
            change: change.clone(),
        }));
        self
    }

    /// Sets the name that it is about.
    #[must_use]
    pub(crate) fn of_name(mut self, name: &str) -> Self {
        self.named = Some(name.into());
        self
    }

    /// Sets the finding that it follows from, if there is one.
    #[must_use]
    pub fn with_cause(mut self, cause: impl Into<Option<FindingCause>>) -> Self {
        self.cause = cause.into();
        self
    }

    /// Sets what it has in common with findings about other nodes, and the value of this node.
    #[must_use]
    pub(crate) fn with_alike(mut self, what: impl Into<String>, value: Option<String>) -> Self {
        let what = what.into();
        self.alike = Some(Box::new(Alike { what, value }));
        self
    }

    /// Returns what is the matter, without what only this node has.
    pub(crate) fn what(&self) -> &str {
        self.alike.as_ref().map_or(&self.message.0, |it| &it.what)
    }

    /// Returns what only this node has.
    pub(crate) fn value(&self) -> Option<&str> {
        self.alike.as_ref()?.value.as_deref()
    }

    /// Returns what stays the same while nodes come and go: all of the message, unless it counts them.
    pub fn lasting(&self) -> &str {
        match (&self.alike, &self.node) {
            (Some(alike), None) => &alike.what,
            _ => &self.message.0,
        }
    }

    /// Returns it as the cause of others.
    pub fn as_cause(&self) -> FindingCause {
        FindingCause { rule: self.rule, cluster: self.cluster.clone(), node: self.node.clone() }
    }

    /// Returns it with all its texts escaped, as everything that is printed must be. Texts from
    /// files and nodes then cannot control a terminal, hide or reorder text, or start a new line.
    #[must_use]
    pub fn harmless(mut self) -> Self {
        let labels = self.labels.iter_mut().map(|label| &mut label.text);
        let texts = [&mut self.message.0, &mut self.group].into_iter();
        for text in texts.chain(&mut self.help).chain(labels) {
            *text = escaped(text, SHOWN);
        }
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

impl Severity {
    /// Returns its name, as people and programs write it.
    pub fn name(self) -> &'static str {
        match self {
            Self::Notice => "notice",
            Self::Warning => "warning",
            Self::Error => "error",
        }
    }
}

impl fmt::Display for Severity {
    fn fmt(&self, formatter: &mut fmt::Formatter) -> fmt::Result {
        formatter.write_str(self.name())
    }
}
