//! Segments and their leaders, as `kilo.md` §§4.1 and 4.2 have them and for what is made up here:
//! every node is ready and has an internal address, and every node of a location a public endpoint.

use std::collections::BTreeMap;

use crate::world::Cluster;

/// Nodes that share a tunnel end.
#[derive(Clone, Debug)]
pub(crate) struct Segment {
    /// In the order of names.
    pub(crate) members: Vec<usize>,
    pub(crate) leader: usize,
}

/// Returns the segments of a cluster, in Kilo's order.
pub(crate) fn segments(cluster: &Cluster) -> Vec<Segment> {
    let mut members: BTreeMap<String, Vec<usize>> = BTreeMap::new();
    for (number, node) in cluster.nodes.iter().enumerate() {
        let key = if cluster.by_location {
            format!("location:{}", node.location)
        } else {
            format!("node:{}", node.name)
        };
        members.entry(key).or_default().push(number);
    }
    let segments = members.into_values().map(|members| {
        let volunteer = |it: &&usize| cluster.nodes[**it].volunteers;
        let leader = *members.iter().find(volunteer).unwrap_or(&members[0]);
        Segment { members, leader }
    });
    segments.collect()
}
