//! Differences between two snapshots of a cluster, by node and field.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt;

use super::{Node, Snapshot};
use crate::diagnostic::Quoted;

/// A change in a later snapshot.
#[derive(Clone, Debug, Eq, PartialEq)]
pub struct NodeDifference {
    /// The node, as it calls itself.
    pub node: String,
    /// The change.
    pub change: Change,
}

/// A change of a node.
#[derive(Clone, Debug, Eq, PartialEq)]
pub enum Change {
    /// It was not there.
    Added,
    /// It is not there any more.
    Removed,
    /// A field of it is another.
    Field {
        /// The field, such as `podCIDRs` or `labels[zone]`.
        field: String,
        /// The old value, if there was one.
        before: Option<String>,
        /// The new value, if there is one.
        after: Option<String>,
    },
}

/// Returns what is another in `after`, in order of nodes and fields.
pub fn differences(before: &Snapshot, after: &Snapshot) -> Vec<NodeDifference> {
    let names: BTreeSet<&str> =
        before.nodes.iter().chain(&after.nodes).map(|it| it.name.as_str()).collect();
    let mut differences = Vec::new();
    for name in names {
        let changes = match (before.node(name), after.node(name)) {
            (Some(before), Some(after)) => changes(before, after),
            (None, _) => vec![Change::Added],
            (_, None) => vec![Change::Removed],
        };
        differences.extend(
            changes.into_iter().map(|change| NodeDifference { node: name.to_owned(), change }),
        );
    }
    differences
}

fn changes(before: &Node, after: &Node) -> Vec<Change> {
    let (before, after) = (fields(before), fields(after));
    let names: BTreeSet<&String> = before.keys().chain(after.keys()).collect();
    names
        .into_iter()
        .filter(|name| before.get(*name) != after.get(*name))
        .map(|name| Change::Field {
            field: name.clone(),
            before: before.get(name).cloned(),
            after: after.get(name).cloned(),
        })
        .collect()
}

/// Returns the fields as written in the file, without empty ones.
fn fields(node: &Node) -> BTreeMap<String, String> {
    let Node {
        addresses,
        annotations,
        carried_over,
        labels,
        lost_lead,
        name: _,
        position: _,
        plugin,
        pod_cidrs,
        stale,
        uid,
    } = node;
    let mut fields = BTreeMap::new();
    for (map, name) in [(annotations, "annotations"), (labels, "labels")] {
        let named = map.iter().map(|(key, value)| (format!("{name}[{key}]"), value.to_owned()));
        fields.extend(named);
    }
    let addresses = addresses.iter().map(|it| format!("{:?} {}", it.kind, it.address));
    let listed = [
        ("addresses", addresses.collect::<Vec<_>>().join(", ")),
        ("plugin", plugin.as_ref().map(ToString::to_string).unwrap_or_default()),
        ("podCIDRs", pod_cidrs.join(", ")),
        ("uid", uid.clone()),
        ("carriedOver", mark(*carried_over)),
        ("lostLead", mark(*lost_lead)),
        ("stale", mark(*stale)),
    ];
    let there = listed.into_iter().filter(|(_, value)| !value.is_empty());
    fields.extend(there.map(|(name, value)| (name.to_owned(), value)));
    fields
}

/// Describes the change of a value that may be missing before or after.
pub fn value_change(before: Option<&str>, after: Option<&str>) -> String {
    match (before, after) {
        (Some(before), Some(after)) => format!("was {}, is {}", Quoted(before), Quoted(after)),
        (None, Some(after)) => format!("added: {}", Quoted(after)),
        (Some(before), None) => format!("removed: {}", Quoted(before)),
        (None, None) => "unchanged".to_owned(),
    }
}

fn mark(is_set: bool) -> String {
    if is_set { "true".to_owned() } else { String::new() }
}

impl fmt::Display for NodeDifference {
    fn fmt(&self, formatter: &mut fmt::Formatter) -> fmt::Result {
        let node = Quoted(&self.node);
        match &self.change {
            Change::Added => write!(formatter, "{node} added"),
            Change::Removed => write!(formatter, "{node} removed"),
            Change::Field { field, before, after } => {
                let field = Quoted(field).to_string();
                let field = field.trim_matches('`');
                let change = value_change(before.as_deref(), after.as_deref());
                write!(formatter, "{node}: {field} {change}")
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::node;

    #[test]
    fn tells_every_field() {
        let snapshot = |nodes| Snapshot::new("east".parse().unwrap(), nodes).unwrap();
        let mut before = node("b pod=10.1.2.0/24 wg=10.101.0.2/24 key=B external=203.0.113.2");
        let mut after = node("b pod=10.1.3.0/24 wg=10.101.0.2/24 key=C");
        before.uid = "1".to_owned();
        before.labels.insert("zone", "x");
        after.labels.insert("zone", "");
        (after.stale, after.carried_over, after.lost_lead, after.position) = (true, true, true, 7);
        let before = snapshot(vec![node("a"), before]);
        let after = snapshot(vec![after, node("c")]);
        let lines: Vec<String> =
            differences(&before, &after).iter().map(ToString::to_string).collect();
        insta::assert_snapshot!(lines.join("\n"), @"
        `a` removed
        `b`: addresses removed: `ExternalIP 203.0.113.2`
        `b`: annotations[kilo.squat.ai/key] was `vblMc9U8RAI6cVopcKEMTVT6lVC3D9nTTMSwot5d3L4=`, is `GY5aT1N9dTR/nJnT1N2f4ClZWVj0jOAld0r8ysWLyjg=`
        `b`: carriedOver added: `true`
        `b`: labels[zone] was `x`, is ``
        `b`: lostLead added: `true`
        `b`: podCIDRs was `10.1.2.0/24`, is `10.1.3.0/24`
        `b`: stale added: `true`
        `b`: uid removed: `1`
        `c` added
        ");
        assert!(differences(&after, &after).is_empty());
    }
}
