//! The addresses of nodes that clusters keep.

use std::collections::BTreeSet;

use crate::name::ClusterName;
use crate::text;

/// Describes the clusters whose entries keep all addresses of their nodes.
pub fn keeping(clusters: &BTreeSet<&ClusterName>) -> Option<String> {
    let verb = match clusters.len() {
        0 => return None,
        1 => "advertises",
        _ => "advertise",
    };
    let names = text::listed(clusters);
    Some(format!("{names} {verb} neither WireGuard addresses nor internal IPs of nodes."))
}
