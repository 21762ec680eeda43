//! Commands in the help of findings.

use std::fmt::Display;

use super::Finding;
use crate::config::Config;
use crate::diagnostic::{MetadataChange, MetadataKind};
use crate::kilo::node::annotation;
use crate::name::{ClusterName, is_dns_subdomain};
use crate::snapshot::Node;

/// The verbs of the commands that change a cluster or look at a node.
const VERBS: [&str; 4] = ["annotate", "label", "delete", "get node"];

/// Returns the command that gives a node an endpoint.
pub(super) fn annotate_endpoint(node: &str) -> String {
    format!("kubectl annotate nodes {node} kilo.squat.ai/clustermesh-endpoint=HOST:51820")
}

/// Returns the command that changes an annotation of a node.
pub(super) fn annotate(node: &Node, change: impl Display) -> String {
    annotate_each([node], change)
}

/// Returns the command that changes an annotation or a label of a node.
pub(super) fn changing(node: &Node, change: &MetadataChange) -> String {
    let verb = if change.kind == MetadataKind::Label { "label" } else { "annotate" };
    format!("kubectl {verb} node {} --overwrite {change}", command_name(&node.name))
}

/// Returns the command that changes an annotation of some nodes.
pub(super) fn annotate_each<'n>(
    nodes: impl IntoIterator<Item = &'n Node>,
    change: impl Display,
) -> String {
    let names: Vec<&str> = nodes.into_iter().map(|it| command_name(&it.name)).collect();
    format!("kubectl annotate node {} --overwrite {change}", names.join(" "))
}

/// The largest number of nodes that a command names. A longer one annotates all nodes of the cluster.
const NAMED: usize = 20;

/// Returns the command after which some nodes of a cluster send keepalives, given how `kubectl` reaches the cluster.
pub fn annotate_keepalive<'n>(kubectl: &str, nodes: impl IntoIterator<Item = &'n str>) -> String {
    let nodes: Vec<&str> = nodes.into_iter().map(command_name).collect();
    if NAMED < nodes.len() {
        return annotate_all(kubectl);
    }
    let key = annotation::PERSISTENT_KEEPALIVE;
    format!("{kubectl} annotate node {} --overwrite {key}=25", nodes.join(" "))
}

/// Returns the command after which all nodes of a cluster send keepalives.
pub(super) fn annotate_all(kubectl: &str) -> String {
    format!("{kubectl} annotate node --all --overwrite {}=25", annotation::PERSISTENT_KEEPALIVE)
}

/// Returns the command that gives Kilo the address and port of a NAT, which a person has to fill in.
pub fn annotate_nat(kubectl: &str, node: &str) -> String {
    let (node, key) = (command_name(node), annotation::FORCE_ENDPOINT);
    format!("{kubectl} annotate node {node} --overwrite {key}=ADDRESS:PORT")
}

/// Returns a command that changes nodes of a cluster as a help text. Until the next snapshot, the change has no effect.
pub(super) fn run(command: &str, cluster: &ClusterName) -> String {
    format!("run `{command}`, then `clustermesh snapshot {cluster}`")
}

/// Returns a change of an annotation whose new value only a person knows.
pub(super) fn blank(key: &str) -> MetadataChange {
    let form = match key {
        annotation::FORCE_ENDPOINT | annotation::CLUSTERMESH_ENDPOINT => "ADDRESS:PORT",
        annotation::FORCE_INTERNAL_IP => "ADDRESS/LENGTH",
        annotation::LOCATION => "LOCATION",
        _ => "VALUE",
    };
    MetadataChange::annotation(key, form).open()
}

/// Sets a change of a node as the remedy of a finding.
pub(super) fn resolved(
    finding: Finding,
    change: &MetadataChange,
    cluster: &ClusterName,
    node: &Node,
) -> Finding {
    let finding = finding.resolved_by(change, cluster, [&*node.name]);
    finding.help(run(&annotate(node, change), cluster))
}

/// Adds the kubeconfig and the context of its cluster to the commands in the help of a finding.
pub fn with_access(finding: Finding, config: &Config) -> Finding {
    let cluster = finding.cluster.as_deref();
    let Some(cluster) = cluster.and_then(|it| it.parse::<ClusterName>().ok()) else {
        return finding;
    };
    let kubectl = config.kubectl(&cluster);
    let help = finding.help.map(|help| {
        VERBS.iter().fold(help, |help, verb| {
            help.replace(&format!("kubectl {verb} "), &format!("{kubectl} {verb} "))
        })
    });
    Finding { help, ..finding }
}

/// Returns a node's name for use in a command: an unchecked name is never part of one.
pub(super) fn command_name(name: &str) -> &str {
    if is_dns_subdomain(name) { name } else { "NODE" }
}
