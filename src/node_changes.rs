//! The annotations and labels that would resolve findings about a cluster, for `kubectl` and for Talos.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt::Write as _;
use std::num::NonZeroU16;

use schemars::JsonSchema;
use serde::Serialize;

use crate::diagnostic::{Finding, FindingCause, MetadataChange, MetadataKind};
use crate::kilo::cluster::{Cluster, ClusterNode};
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

/// A change of an annotation or a label of a node.
#[derive(Clone, Debug, JsonSchema, Serialize)]
#[serde(rename_all = "camelCase")]
struct ListedChange {
    /// The node.
    node: String,
    /// Whether it is an annotation or a label.
    kind: MetadataKind,
    /// Its name.
    key: String,
    /// The new value, or its form if only a person knows it; missing to remove the annotation or label.
    #[serde(skip_serializing_if = "Option::is_none")]
    value: Option<String>,
    /// Whether a person has to write the value, or to decide about the change.
    open: bool,
    /// The rules of the findings that it resolves.
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

impl NodeChanges {
    /// Returns the changes that resolve findings, and those that a person wants.
    pub fn new(cluster: &Cluster, findings: &[Finding], given: &GivenValues) -> Self {
        let mut needed: BTreeMap<ChangedKey, ListedChange> = BTreeMap::new();
        // If a cause is removed, its consequences may end without these changes.
        let causes: BTreeSet<FindingCause> = findings.iter().map(Finding::as_cause).collect();
        let is_own = |it: &&Finding| it.cause.as_ref().is_none_or(|it| !causes.contains(it));
        for finding in findings.iter().filter(is_own) {
            let changes = finding.changes.iter();
            for it in changes.filter(|it| it.cluster == cluster.entry.name) {
                let MetadataChange { kind, key, value, is_open } = &it.change;
                let place = (it.node.clone(), *kind, key.clone());
                let listed = ListedChange::new(&place, value.clone(), *is_open);
                let before = needed.entry(place).or_insert_with(|| listed.clone());
                // A known value is better than its form, and that is better than a removal.
                let worth = |it: &ListedChange| (it.value.is_some(), !it.open);
                if worth(before) < worth(&listed) {
                    (before.value, before.open) = (listed.value, listed.open);
                }
                before.rules.insert(finding.rule.name());
            }
        }
        given.add_to(&mut needed, cluster);
        let is_meant = |node: &str| given.node.as_deref().is_none_or(|it| it == node);
        let changes = needed.into_values();
        let changes = changes.filter(|it| is_dns_subdomain(&it.node) && is_meant(&it.node));
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

    /// Returns the changes as commands, given how `kubectl` reaches the cluster. Those that a person has to complete or to decide
    /// are comments.
    pub fn commands(&self, kubectl: &str, cluster: &Cluster) -> String {
        let mut groups: BTreeMap<_, (Vec<&str>, BTreeSet<&str>)> = BTreeMap::new();
        for it in &self.changes {
            let node = it.has_own_value().then_some(&it.node);
            let group = groups.entry((it.open, it.kind, &it.key, &it.value, node));
            let (nodes, rules) = group.or_default();
            nodes.push(&it.node);
            rules.extend(&it.rules);
        }
        let (mut text, mut heading) = (String::new(), String::new());
        for ((is_open, kind, key, value, _), (nodes, rules)) in groups {
            // The nodes are in order. The others keep what they have.
            let has_value = |it: &ClusterNode| match kind {
                _ if nodes.binary_search(&&*it.node.name).is_ok() => true,
                MetadataKind::Annotation => it.node.annotations.get(key) == value.as_deref(),
                MetadataKind::Label => it.node.labels.get(key) == value.as_deref(),
            };
            let are_all = NAMED < nodes.len() && cluster.nodes.iter().all(has_value);
            let nodes = if are_all { "--all".to_owned() } else { nodes.join(" ") };
            let verb = match kind {
                MetadataKind::Annotation => "annotate",
                MetadataKind::Label => "label",
            };
            let change = match value {
                Some(value) => format!("{}={}", shell_word(key), shell_word(value)),
                None => format!("{}-", shell_word(key)),
            };
            let (hint, comment) =
                if is_open { (" (check, complete, and remove the #)", "# ") } else { ("", "") };
            // A shell may run what is quoted in a comment, so it has only names of rules.
            let next = match rules.len() {
                0 => String::new(),
                _ => format!("# {}{hint}\n", list(rules)),
            };
            if next != heading {
                text.push_str(&next);
                heading = next;
            }
            let _ = writeln!(text, "{comment}{kubectl} {verb} node {nodes} --overwrite {change}");
        }
        text
    }

    /// Returns the changes as patches of the machine configuration of Talos, one for all nodes with the same changes.
    pub fn talos(&self) -> String {
        let of_nodes = self.changes.chunk_by(|a, b| a.node == b.node);
        let mut patches: BTreeMap<_, (Vec<&str>, BTreeSet<&str>)> = BTreeMap::new();
        for changes in of_nodes {
            let own = changes.iter().find(|it| it.has_own_value());
            let patch = (own.map(|it| &it.node), patch(changes));
            let (nodes, rules) = patches.entry(patch).or_default();
            nodes.extend(changes.iter().take(1).map(|it| it.node.as_str()));
            rules.extend(changes.iter().flat_map(|it| &it.rules));
        }
        let mut patches: Vec<_> = patches.into_iter().collect();
        patches.sort_by(|(_, (a, _)), (_, (b, _))| a.cmp(b));
        let patches = patches.into_iter().map(|((_, patch), (nodes, rules))| {
            let nodes = if self.are_all(&nodes) {
                format!("all nodes of {}", self.cluster)
            } else {
                list(nodes)
            };
            let rules =
                if rules.is_empty() { String::new() } else { format!(" ({})", list(rules)) };
            format!("# {nodes}{rules}\n{patch}")
        });
        patches.collect::<Vec<_>>().join("---\n")
    }
}

/// The largest number of nodes that are named if a change is for all nodes of a cluster.
const NAMED: usize = 20;

impl GivenValues {
    fn add_to(&self, needed: &mut BTreeMap<ChangedKey, ListedChange>, cluster: &Cluster) {
        let mut give = |node: &str, keys: &[(MetadataKind, &str)], value: &str| {
            let keys = keys.iter();
            let keys = keys.map(|&(kind, key)| (node.to_owned(), kind, key.to_owned()));
            let keys: Vec<ChangedKey> = keys.collect();
            let mut meant = keys.clone();
            meant.retain(|it| needed.contains_key(it));
            if meant.is_empty() {
                // No finding asks for it.
                meant.extend(keys.into_iter().take(1));
            }
            for key in meant {
                let given = ListedChange::new(&key, None, false);
                let change = needed.entry(key).or_insert(given);
                (change.value, change.open) = (Some(value.to_owned()), false);
            }
        };
        let annotated = |key| (MetadataKind::Annotation, key);
        let label = (MetadataKind::Label, cluster.entry.topology_label.as_str());
        for (node, location) in &self.locations {
            give(node, &[annotated(annotation::LOCATION), label], location);
        }
        let endpoints = [annotation::CLUSTERMESH_ENDPOINT, annotation::FORCE_ENDPOINT];
        for (node, endpoint) in &self.endpoints {
            give(node, &endpoints.map(annotated), endpoint);
        }
        let Some(seconds) = self.keepalive else {
            return;
        };
        let nodes = cluster.nodes.iter();
        for it in nodes.filter(|it| it.kilo.keepalive != seconds.get()) {
            let keys = [annotated(annotation::PERSISTENT_KEEPALIVE)];
            give(&it.node.name, &keys, &seconds.to_string());
        }
    }
}

impl ListedChange {
    fn new((node, kind, key): &ChangedKey, value: Option<String>, open: bool) -> Self {
        Self {
            node: node.clone(),
            kind: *kind,
            key: key.clone(),
            value,
            open,
            rules: BTreeSet::new(),
        }
    }

    /// Returns whether a person has to write a value that no other node has.
    fn has_own_value(&self) -> bool {
        self.open && self.kind == MetadataKind::Annotation && self.value.is_some()
    }

    /// Returns the line of a patch without its indentation, and whether it is complete.
    fn line(&self) -> Option<(bool, String)> {
        let value = self.value.as_ref()?;
        let line = format!("{}: {}", scalar(&self.key), quoted(value));
        Some((!self.open, line))
    }
}

/// Returns the patch for the changes of a node. Parts in which a person has to write values are comments.
fn patch(changes: &[ListedChange]) -> String {
    let comment = |is_complete: bool| if is_complete { "" } else { "# " };
    let sections =
        [(MetadataKind::Annotation, "nodeAnnotations"), (MetadataKind::Label, "nodeLabels")];
    let (mut removals, mut text, mut is_any) = (String::new(), String::new(), false);
    for (kind, section) in sections {
        let of_kind = || changes.iter().filter(|it| it.kind == kind);
        for it in of_kind().filter(|it| it.value.is_none()) {
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
