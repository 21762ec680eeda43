//! Old snapshots: what is there before a new one is taken, and how the two differ.

use std::collections::BTreeSet;

use clustermesh::snapshot::Snapshot;
use clustermesh::snapshot::difference::{Change, NodeDifference, differences, value_change};

use clustermesh::results::findings::concise::line_start;

/// The snapshot that is there.
pub(super) enum OldSnapshot<T = Snapshot> {
    /// There is no file.
    None,
    /// There is one.
    Read(T),
    /// There is a file, but it is not a snapshot.
    Unreadable(String),
}

impl<T> OldSnapshot<T> {
    /// Returns the snapshot, if there is one.
    pub(super) fn snapshot(&self) -> Option<&T> {
        match self {
            Self::Read(snapshot) => Some(snapshot),
            Self::None | Self::Unreadable(_) => None,
        }
    }
}

/// Lists the differences in the snapshot of `file`, a line each.
pub(super) fn compared<T>(
    file: &str,
    old: &OldSnapshot<T>,
    differences: impl FnOnce(&T) -> Vec<String>,
) -> String {
    let file = line_start(file);
    match old {
        OldSnapshot::None => format!("{file}: missing\n"),
        OldSnapshot::Unreadable(problem) => format!("{file}: not a snapshot: {problem}\n"),
        OldSnapshot::Read(old) => {
            let reported = differences(old);
            if reported.is_empty() {
                return format!(
                    "{file}: formatted differently than `clustermesh snapshot` writes \
                    it\n"
                );
            }
            let lines = reported.into_iter().map(|it| format!("{file}: {it}\n"));
            lines.collect()
        }
    }
}

/// Returns what differs between two snapshots of nodes, a line each.
pub(super) fn node_differences(old: &Snapshot, new: &Snapshot) -> Vec<String> {
    let list = |prefixes: &[String]| (!prefixes.is_empty()).then(|| prefixes.join(", "));
    let lists = [
        ("droppedLabels", &old.dropped_labels, &new.dropped_labels),
        ("keptLabels", &old.kept_labels, &new.kept_labels),
    ]
    .into_iter()
    .filter(|(_, old, new)| old != new)
    .map(|(name, old, new)| {
        let change = value_change(list(old).as_deref(), list(new).as_deref());
        format!("{name} {change}")
    });
    let nodes = reported(old, new).into_iter().map(|it| it.to_string());
    lists.chain(nodes).collect()
}

/// Returns what differs, except for labels that snapshots now leave out.
fn reported(old: &Snapshot, new: &Snapshot) -> Vec<NodeDifference> {
    let used = new.kept_labels.iter().map(String::as_str).collect();
    let old = old.clone().without_labels(&new.dropped_labels, &used);
    differences(&old, new)
}

/// Returns how many nodes are new, changed and gone, if any.
pub(super) fn counted(old: &OldSnapshot, new: &Snapshot) -> String {
    let Some(old) = old.snapshot() else {
        return String::new();
    };
    let (mut added, mut removed, mut changed) = (0, 0, BTreeSet::new());
    for NodeDifference { node, change } in reported(old, new) {
        match change {
            Change::Added => added += 1,
            Change::Removed => removed += 1,
            Change::Field { .. } => drop(changed.insert(node)),
        }
    }
    match (added, changed.len(), removed) {
        (0, 0, 0) => String::new(),
        (added, changed, removed) => format!(" (+{added} ~{changed} -{removed} nodes)"),
    }
}
