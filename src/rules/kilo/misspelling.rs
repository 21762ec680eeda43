//! Spelling: names and values that look like what Kilo reads, and are not.

use std::collections::BTreeMap;

use super::inspected_cluster::InspectedCluster;
use crate::granularity::Granularity;
use crate::kilo::node::annotation;
use crate::snapshot::Node;

/// A label or annotation, and the nodes that have it; at least one.
pub(super) struct KeyOnNodes<'f> {
    /// Its name.
    pub(super) key: &'f str,
    /// The nodes.
    pub(super) nodes: Vec<&'f Node>,
}

/// The spellings of one location, each with its nodes; at least two.
pub(super) type Spellings<'f> = BTreeMap<&'f str, Vec<&'f Node>>;

/// Finds labels that Kilo reads only as annotations.
pub(super) fn labels<'f>(inspected: &InspectedCluster<'f>) -> Vec<KeyOnNodes<'f>> {
    let granularity = inspected.granularity();
    let matters = |key: &&str| match *key {
        annotation::LOCATION => {
            granularity != Granularity::Full && inspected.member.entry.topology_label != **key
        }
        annotation::LEADER => granularity == Granularity::Location,
        _ => true,
    };
    let labelled = |key: &str| -> Vec<&Node> {
        inspected
            .all_nodes()
            .map(|it| it.0)
            .filter(|node| node.labels.contains_key(key) && !node.annotations.contains_key(key))
            .collect()
    };
    annotation::BY_PEOPLE
        .into_iter()
        .filter(matters)
        .map(|key| KeyOnNodes {
            key,
            nodes: labelled(key),
        })
        .filter(|it| !it.nodes.is_empty())
        .collect()
}

/// Returns the annotations that Kilo knows.
pub(super) fn known() -> impl Iterator<Item = &'static str> {
    annotation::BY_PEOPLE
        .into_iter()
        .chain(annotation::BY_AGENT)
}

/// Finds annotations with Kilo's prefix that Kilo does not know.
pub(super) fn unknown<'f>(inspected: &InspectedCluster<'f>) -> Vec<KeyOnNodes<'f>> {
    let mut unknown: BTreeMap<&str, Vec<&Node>> = BTreeMap::new();
    for (node, _) in inspected.all_nodes() {
        let keys = node.annotations.keys();
        for key in keys.filter(|key| !known().any(|it| it == *key)) {
            unknown.entry(key).or_default().push(node);
        }
    }
    unknown
        .into_iter()
        .map(|(key, nodes)| KeyOnNodes { key, nodes })
        .collect()
}

/// Finds locations that differ only in case, white space, `-` and `_`.
pub(super) fn similar_locations<'f>(inspected: &InspectedCluster<'f>) -> Vec<Spellings<'f>> {
    if inspected.granularity() == Granularity::Full {
        return Vec::new();
    }
    let mut alike: BTreeMap<String, Spellings> = BTreeMap::new();
    for (node, kilo) in inspected
        .nodes()
        .filter(|(_, kilo)| !kilo.location.is_empty())
    {
        let spellings = alike.entry(folded(&kilo.location)).or_default();
        let nodes = spellings.entry(&kilo.location).or_default();
        nodes.push(node);
    }
    alike
        .into_values()
        .filter(|spellings| 1 < spellings.len())
        .collect()
}

/// Returns what all spellings of a location have in common. A separator remains one, as `zone1-1` and
/// `zone11` are two locations.
fn folded(location: &str) -> String {
    let is_separator = |it: char| it.is_whitespace() || it == '-' || it == '_';
    let words: Vec<String> = location
        .split(is_separator)
        .filter(|word| !word.is_empty())
        .map(str::to_lowercase)
        .collect();
    words.join("-")
}
