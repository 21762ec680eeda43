//! A node as a snapshot has it.

use clustermesh::snapshot::{Address, AddressKind, Node};

/// Returns a node with its pod CIDRs, internal addresses and annotations. These are Kilo's, without their common prefix.
pub(crate) fn node<'a>(
    name: &str,
    pods: Vec<String>,
    internal: impl IntoIterator<Item = String>,
    annotations: impl IntoIterator<Item = (&'a str, String)>,
) -> Node {
    let kind = AddressKind::InternalIP;
    let internal = internal.into_iter();
    let annotations = annotations.into_iter();
    Node {
        name: name.to_owned(),
        uid: name.to_owned(),
        pod_cidrs: pods,
        addresses: internal.map(|address| Address { address, kind }).collect(),
        annotations: annotations
            .map(|(key, value)| (format!("kilo.squat.ai/{key}"), value))
            .collect(),
        ..Node::default()
    }
}
