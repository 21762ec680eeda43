//! Commands in the help of findings.

use crate::name::is_dns_subdomain;
use crate::snapshot::Node;

/// Returns the command that gives a node an endpoint.
pub(super) fn annotate_endpoint(node: &str) -> String {
    format!("kubectl annotate nodes {node} kilo.squat.ai/clustermesh-endpoint=HOST:51820")
}

/// Returns the command that changes an annotation of a node.
pub(super) fn annotate(node: &Node, change: &str) -> String {
    let name = command_name(&node.name);
    format!("kubectl annotate node {name} --overwrite {change}")
}

/// Returns a command as a help text.
pub(super) fn run(command: &str) -> String {
    format!("run `{command}`")
}

/// Returns a node's name for use in a command: an unchecked name is never part of one.
pub(super) fn command_name(name: &str) -> &str {
    if is_dns_subdomain(name) { name } else { "NODE" }
}
