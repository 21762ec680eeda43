//! The annotations and labels that would mend findings about a cluster, for `kubectl` and for Talos.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt::Write as _;
use std::num::NonZeroU16;

use schemars::JsonSchema;
use serde::Serialize;

use crate::diagnostic::{Finding, MetadataKind, NewValue};
use crate::kilo::cluster::Cluster;
use crate::kilo::node::annotation;
use crate::name::is_dns_subdomain;
use crate::schema::ExampleFile;
use crate::text::{list, shell_word};
use crate::yaml::{quoted, scalar};

/// Changes of the nodes of a cluster.
#[derive(Debug, JsonSchema, Serialize)]
#[schemars(rename = "NodeChanges", example = ExampleFile(include_str!("node_changes/example.json")))]
#[serde(rename_all = "camelCase")]
pub struct NodeChanges {
    /// The cluster.
    cluster: String,
    /// The changes, in order of node and name.
    changes: Vec<ListedChange>,
    /// The number of nodes of the cluster.
    #[serde(skip)]
    all: usize,
}

/// A change of an annotation or a label of a node. Without `value` and `form`, it is removed.
#[derive(Clone, Debug, JsonSchema, Serialize)]
#[serde(rename_all = "camelCase")]
struct ListedChange {
    /// The node.
    node: String,
    /// Whether it is an annotation or a label.
    kind: MetadataKind,
    /// Its name.
    key: String,
    /// The new value.
    #[serde(skip_serializing_if = "Option::is_none")]
    value: Option<String>,
    /// The form of the new value, if only a person knows it.
    #[serde(skip_serializing_if = "Option::is_none")]
    form: Option<String>,
    /// The rules of the findings that it mends.
    rules: BTreeSet<&'static str>,
}

/// The values that a person gives.
#[derive(Debug, Default)]
pub struct GivenValues {
    /// The seconds between the keepalives of all nodes.
    pub keepalive: Option<NonZeroU16>,
    /// The endpoints of nodes.
    pub endpoints: BTreeMap<String, String>,
    /// The locations of nodes.
    pub locations: BTreeMap<String, String>,
    /// The only node that is meant.
    pub node: Option<String>,
}

/// A node, and the annotation or label of it that changes.
type ChangedKey = (String, MetadataKind, String);

/// A value, and the rules for which it is needed.
type NeededValue = (NewValue, BTreeSet<&'static str>);

impl NodeChanges {
    /// Returns the changes that mend findings, and those that a person wants.
    pub fn new(cluster: &Cluster, findings: &[Finding], given: &GivenValues) -> Self {
        let mut needed: BTreeMap<ChangedKey, NeededValue> = BTreeMap::new();
        for finding in findings {
            let changes = finding.changes.iter();
            for it in changes.filter(|it| it.cluster == cluster.entry.name) {
                let change = &it.change;
                let key = (it.node.clone(), change.kind, change.key.clone());
                let (value, rules) = needed.entry(key).or_default();
                if *value < change.value {
                    value.clone_from(&change.value);
                }
                rules.insert(finding.rule.name());
            }
        }
        given.add_to(&mut needed, cluster);
        let is_meant = |node: &str| given.node.as_deref().is_none_or(|it| it == node);
        let needed = needed.into_iter();
        let changes = needed
            .filter(|((node, ..), _)| is_dns_subdomain(node) && is_meant(node))
            .map(|((node, kind, key), (value, rules))| {
                let (value, form) = match value {
                    NewValue::Removed => (None, None),
                    NewValue::Form(form) => (None, Some(form)),
                    NewValue::Known(value) => (Some(value), None),
                };
                ListedChange {
                    node,
                    kind,
                    key,
                    value,
                    form,
                    rules,
                }
            });
        Self {
            cluster: cluster.entry.name.to_string(),
            changes: changes.collect(),
            all: cluster.nodes.len(),
        }
    }

    /// Returns whether these are all nodes of the cluster, and too many to name them.
    fn are_all(&self, nodes: &[&str]) -> bool {
        NAMED < nodes.len() && nodes.len() == self.all
    }

    /// Returns whether nothing changes.
    pub fn is_empty(&self) -> bool {
        self.changes.is_empty()
    }

    /// Returns the changes as commands, given how `kubectl` reaches the cluster. Those in which a person has to write a
    /// value are comments.
    pub fn commands(&self, kubectl: &str) -> String {
        let mut groups: BTreeMap<_, (Vec<&str>, BTreeSet<&str>)> = BTreeMap::new();
        for it in &self.changes {
            // Each node has its own value.
            let node = it.form.as_ref().map(|_| &it.node);
            let group = groups.entry((&it.form, node, it.kind, &it.key, &it.value));
            let (nodes, rules) = group.or_default();
            nodes.push(&it.node);
            rules.extend(&it.rules);
        }
        let mut text = String::new();
        for ((form, _, kind, key, value), (nodes, rules)) in groups {
            let nodes = if self.are_all(&nodes) {
                "--all".to_owned()
            } else {
                nodes.join(" ")
            };
            let verb = match kind {
                MetadataKind::Annotation => "annotate",
                MetadataKind::Label => "label",
            };
            let change = match form.as_ref().or(value.as_ref()) {
                Some(value) => format!("{}={}", shell_word(key), shell_word(value)),
                None => format!("{}-", shell_word(key)),
            };
            let (hint, comment) = match form {
                Some(_) => (" (write the value, and remove the #)", "# "),
                None => ("", ""),
            };
            if !rules.is_empty() {
                let _ = writeln!(text, "# {}{hint}", list(rules));
            }
            let _ = writeln!(
                text,
                "{comment}{kubectl} {verb} node {nodes} --overwrite {change}"
            );
        }
        text
    }

    /// Returns the changes as patches of the machine configuration of Talos, one for all nodes with the same changes.
    pub fn talos(&self) -> String {
        let of_nodes = self.changes.chunk_by(|a, b| a.node == b.node);
        let mut patches: BTreeMap<_, (Vec<&str>, BTreeSet<&str>)> = BTreeMap::new();
        for changes in of_nodes {
            let node = || changes.iter().map(|it| &it.node).take(1);
            // Each node has its own value.
            let own = changes.iter().find(|it| it.form.is_some());
            let patch = (own.and_then(|_| node().next()), patch(changes));
            let (nodes, rules) = patches.entry(patch).or_default();
            nodes.extend(node().map(String::as_str));
            rules.extend(changes.iter().flat_map(|it| &it.rules));
        }
        let patches = patches.into_iter().map(|((_, patch), (nodes, rules))| {
            let nodes = if self.are_all(&nodes) {
                format!("all nodes of {}", self.cluster)
            } else {
                list(nodes)
            };
            let rules = if rules.is_empty() {
                String::new()
            } else {
                format!(" ({})", list(rules))
            };
            format!("# {nodes}{rules}\n{patch}")
        });
        patches.collect::<Vec<_>>().join("---\n")
    }
}

/// The largest number of nodes that are named if a change is for all nodes of a cluster.
const NAMED: usize = 20;

impl GivenValues {
    fn add_to(&self, needed: &mut BTreeMap<ChangedKey, NeededValue>, cluster: &Cluster) {
        let mut give = |node: &str, keys: &[(MetadataKind, &str)], value: &str| {
            let keys = keys
                .iter()
                .map(|&(kind, key)| (node.to_owned(), kind, key.to_owned()));
            let mut meant: Vec<ChangedKey> = keys.collect();
            // If nothing is missing, a person wants the first one.
            let is_missing = meant.iter().position(|it| needed.contains_key(it));
            meant.swap(0, is_missing.unwrap_or_default());
            for (index, key) in meant.into_iter().enumerate() {
                if index == 0 || needed.contains_key(&key) {
                    needed.entry(key).or_default().0 = NewValue::Known(value.to_owned());
                }
            }
        };
        let annotation = |key| (MetadataKind::Annotation, key);
        let label = (MetadataKind::Label, cluster.entry.topology_label.as_str());
        for (node, location) in &self.locations {
            give(node, &[annotation(annotation::LOCATION), label], location);
        }
        let endpoints = [annotation::CLUSTERMESH_ENDPOINT, annotation::FORCE_ENDPOINT];
        for (node, endpoint) in &self.endpoints {
            give(node, &endpoints.map(annotation), endpoint);
        }
        let Some(seconds) = self.keepalive else { return };
        let nodes = cluster.nodes.iter();
        for it in nodes.filter(|it| it.kilo.keepalive != seconds.get()) {
            let keys = [annotation(annotation::PERSISTENT_KEEPALIVE)];
            give(&it.node.name, &keys, &seconds.to_string());
        }
    }
}

impl ListedChange {
    /// Returns the line of a patch without its indentation, and whether it is complete.
    fn line(&self) -> Option<(bool, String)> {
        let value = self.value.as_ref().or(self.form.as_ref())?;
        let line = format!("{}: {}", scalar(&self.key), quoted(value));
        Some((self.value.is_some(), line))
    }
}

/// Returns the patch for the changes of a node. Parts in which a person has to write values are comments.
fn patch(changes: &[ListedChange]) -> String {
    let comment = |is_complete: bool| if is_complete { "" } else { "# " };
    let sections = [
        (MetadataKind::Annotation, "nodeAnnotations"),
        (MetadataKind::Label, "nodeLabels"),
    ];
    let (mut removals, mut text, mut is_any) = (String::new(), String::new(), false);
    for (kind, section) in sections {
        let of_kind = || changes.iter().filter(|it| it.kind == kind);
        for it in of_kind().filter(|it| it.line().is_none()) {
            let _ = writeln!(removals, "# Remove {} from {section}.", it.key);
        }
        let lines: Vec<_> = of_kind().filter_map(ListedChange::line).collect();
        let is_complete = lines.iter().any(|it| it.0);
        is_any |= is_complete;
        if !lines.is_empty() {
            let _ = writeln!(text, "{}  {section}:", comment(is_complete));
        }
        for (is_complete, line) in lines {
            let _ = writeln!(text, "{}    {line}", comment(is_complete));
        }
    }
    let head = if text.is_empty() { "" } else { "machine:\n" };
    let comment = if text.is_empty() { "" } else { comment(is_any) };
    format!("{removals}{comment}{head}{text}")
}
