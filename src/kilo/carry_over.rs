//! Carry-over: replaces annotations that a stopping agent has removed, of nodes that are still the same.

use std::collections::BTreeMap;

use super::node::annotation;
use crate::snapshot::{Node, Snapshot};

/// The annotations that an agent removes from its node when it stops gracefully, and writes again when
/// it is back, with the same key (`kilo.md` §3.4, `CleanUp` in `pkg/k8s/backend.go`).
const STRIPPED: [&str; 5] = [
    annotation::ENDPOINT,
    annotation::INTERNAL_IP,
    annotation::KEY,
    annotation::WIREGUARD_IP,
    annotation::GRANULARITY,
];

/// Gives nodes that have lost their key the annotations that they had in `previous`, marks them, and
/// returns their names in order.
///
/// Only a node with the same uid is the same node. Its old values may have been carried over, too.
pub fn carry_over(previous: &Snapshot, current: &mut Snapshot) -> Vec<String> {
    let known: BTreeMap<&str, &Node> = previous
        .nodes
        .iter()
        .filter(|node| !node.uid.is_empty() && has_key(node))
        .map(|node| (node.uid.as_str(), node))
        .collect();
    let mut carried = Vec::new();
    for node in &mut current.nodes {
        if has_key(node) {
            continue;
        }
        if let Some(before) = known.get(node.uid.as_str()) {
            restore(before, node);
            carried.push(node.name.clone());
        }
    }
    carried
}

fn has_key(node: &Node) -> bool {
    !key(node).is_empty()
}

fn key(node: &Node) -> &str {
    node.annotations.get(annotation::KEY).map_or("", |it| it)
}

fn restore(before: &Node, node: &mut Node) {
    for key in STRIPPED {
        match before.annotations.get(key) {
            Some(value) => node.annotations.insert(key, value),
            None => node.annotations.remove(key),
        }
    }
    node.carried_over = true;
    // The time by which it would be judged was stripped with the rest, unless it was not Kilo's
    // agent that did it.
    node.stale |= before.stale;
}

/// Returns the number of nodes if several have kept their names, and every one of these has another UID and another key.
pub fn replaced(before: &Snapshot, after: &Snapshot) -> Option<usize> {
    let pairs = after.nodes.iter().filter_map(|it| Some((before.node(&it.name)?, it)));
    let pairs: Vec<(&Node, &Node)> = pairs.collect();
    let is_other = |one: &str, other: &str| ![one, other].contains(&"") && one != other;
    let are_others =
        pairs.iter().all(|(old, new)| is_other(&old.uid, &new.uid) && is_other(key(old), key(new)));
    (1 < pairs.len() && are_others).then_some(pairs.len())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::string_map::StringMap;
    use crate::testing::node;

    fn snapshot(nodes: Vec<Node>) -> Snapshot {
        Snapshot::new("east".parse().unwrap(), nodes).unwrap()
    }

    /// Returns what becomes of a node without annotations that had those of `before`.
    fn carried(before: Node, now: Node) -> (Vec<String>, Node) {
        let mut current = snapshot(vec![now]);
        let names = carry_over(&snapshot(vec![before]), &mut current);
        (names, current.nodes.remove(0))
    }

    fn annotated(uid: &str) -> Node {
        let mut node = node("a pod=10.1.1.0/24 wg=10.101.0.1/24 key=A");
        node.uid = uid.to_owned();
        let forced = "kilo.squat.ai/force-endpoint";
        node.annotations.insert(forced, "203.0.113.1:1");
        node
    }

    fn stripped(uid: &str) -> Node {
        let mut node = annotated(uid);
        node.annotations = StringMap::default();
        node
    }

    #[test]
    fn a_restarting_agent_keeps_what_it_wrote() {
        let (names, node) = carried(annotated("1"), stripped("1"));
        assert_eq!(names, ["a"]);
        assert!(node.carried_over);
        let keys: Vec<&str> = node.annotations.keys().collect();
        assert_eq!(
            keys,
            ["kilo.squat.ai/key", "kilo.squat.ai/wireguard-ip"],
            "what a person wrote is not brought back"
        );
    }

    #[test]
    fn it_lasts_until_the_key_returns() {
        let (_, node) = carried(annotated("1"), stripped("1"));
        let (names, node) = carried(node, stripped("1"));
        assert_eq!(names, ["a"]);
        let (names, node) = carried(node, annotated("1"));
        assert!(names.is_empty() && !node.carried_over);
    }

    #[test]
    fn another_node_of_that_name_inherits_nothing() {
        for (before, now) in [("1", "2"), ("", "")] {
            let (names, node) = carried(annotated(before), stripped(now));
            assert!(names.is_empty() && node.annotations.is_empty());
        }
    }

    #[test]
    fn an_empty_key_is_none() {
        let mut emptied = annotated("1");
        let key = annotation::KEY.to_owned();
        emptied.annotations.insert(key, "");
        assert_eq!(carried(annotated("1"), emptied.clone()).0, ["a"]);
        assert!(carried(emptied, stripped("1")).0.is_empty());
    }

    #[test]
    fn a_stale_node_stays_stale() {
        let mut before = annotated("1");
        before.stale = true;
        assert!(carried(before, stripped("1")).1.stale);
        let mut long_gone = stripped("1");
        long_gone.stale = true;
        assert!(carried(annotated("1"), long_gone).1.stale);
    }
}
