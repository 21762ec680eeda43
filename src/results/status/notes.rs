//! A line for each cluster, and the problems and notices about it.

use std::collections::BTreeMap;

use crate::agent::applied::{OptionalField, removal};
use crate::agent::inventory::{DriftedPeer, Foreign, Holder, Inventory};
use crate::diagnostic::escaped;
use crate::rules::clusters;
use crate::text::{self, shell_word};

use super::peers::RenderedFolder;
use super::state::{ClusterState, ClusterStatus, GuardState, NodeCounts, Note, UnreadCluster};
use crate::results::peer_difference::difference;

/// The longest name that is shown, in characters.
const SHOWN: usize = 300;

/// The most names or lines of a kind that are shown for a cluster.
const LISTED: usize = 10;

/// The columns of the table, with the cluster first.
pub(super) const COLUMNS: [&str; 9] = [
    "CLUSTER",
    "CRD",
    ">IN SYNC",
    ">MISSING",
    ">CHANGED",
    ">LEFT OVER",
    ">FOREIGN",
    "SNAPSHOT",
    "GUARD",
];

/// Returns the sentence for clusters without problems.
pub(super) fn success(states: &[ClusterStatus]) -> String {
    let found = states.iter().filter_map(|it| it.found.as_ref());
    let peers: usize = found.map(|it| it.peers.inventory.in_sync).sum();
    format!(
        "\nNo problems found ({}, {}).\n",
        text::count(states.len(), "cluster"),
        text::count(peers, "rendered Peer")
    )
}

/// Returns the cells of a cluster.
pub(super) fn row(state: &ClusterStatus) -> [String; 9] {
    let cluster = state.cluster.to_string();
    let Some(found) = &state.found else {
        let mut row = [const { String::new() }; 9];
        row[0] = cluster;
        "unreadable".clone_into(&mut row[1]);
        return row;
    };
    let ClusterState { peers, nodes, .. } = found;
    let inventory = &peers.inventory;
    let shall = inventory.in_sync + inventory.missing.len() + inventory.changed.len();
    [
        cluster,
        shown(&found.version()),
        format!("{} of {shall}", inventory.in_sync),
        inventory.missing.len().to_string(),
        inventory.changed.len().to_string(),
        inventory.left_over.len().to_string(),
        inventory.foreign.len().to_string(),
        match nodes {
            NodeCounts { error: Some(_), .. } => "unreadable",
            NodeCounts { is_current: true, .. } => "up to date",
            NodeCounts { .. } => "differs",
        }
        .to_owned(),
        match found.guard.state {
            GuardState::Absent => "none",
            GuardState::Current => "current",
            GuardState::Warning => "warns",
            GuardState::Outdated => "outdated",
            GuardState::Unknown => "unknown",
        }
        .to_owned(),
    ]
}

impl Note {
    /// Returns the first lines of a list, with a remedy; nothing if the list is empty.
    fn list(about: &'static str, lines: &[String], help: impl Into<String>) -> Option<Self> {
        (!lines.is_empty()).then(|| Self { about, lines: first(lines), help: Some(help.into()) })
    }
}

/// Returns the problems of a cluster, and the notices.
pub(super) fn notes(state: &ClusterStatus) -> Vec<Note> {
    let Some(found) = &state.found else {
        return state.error.iter().map(UnreadCluster::note).collect();
    };
    let inventory = &found.peers.inventory;
    let missing_crd = found.crd_versions.is_empty().then(|| {
        let finding = clusters::missing_crd(&state.cluster);
        Note { about: "crd", ..UnreadCluster::new(&finding, false).note() }
    });
    let nodes = match &found.nodes.error {
        None => {
            let cluster = &state.cluster;
            let help = format!("run `clustermesh snapshot {cluster}`, then `clustermesh render`");
            Note::list("snapshot", &found.nodes.differences, help)
        }
        Some(problem) => Some(Note { about: "snapshot", lines: vec![shown(problem)], help: None }),
    };
    let guard = found.guard.problem.as_ref().map(|it| Note {
        about: "guard",
        lines: vec![it.message.clone()],
        help: Some(it.help.clone()),
    });
    missing_crd
        .into_iter()
        .chain(of_folder(found.peers.rendered))
        .chain(of_rendered(state, inventory))
        .chain(of_foreign(inventory))
        .chain(of_keys(inventory))
        .chain(nodes)
        .chain(guard)
        .collect()
}

/// Returns a note about a folder in the rendered tree that is not whole.
fn of_folder(folder: RenderedFolder) -> Option<Note> {
    let problem = match folder {
        RenderedFolder::Whole => return None,
        RenderedFolder::Damaged => {
            "a part of this cluster's folder cannot be read, so left-over Peers are unknown"
        }
        RenderedFolder::Absent => "the rendered tree has no folder for this cluster",
    };
    Note::list("rendered", &[problem.to_owned()], "run `clustermesh render`")
}

/// Returns notes about rendered Peers that the cluster does not have as they are.
fn of_rendered(state: &ClusterStatus, inventory: &Inventory) -> impl Iterator<Item = Note> {
    let changed: Vec<String> = inventory.changed.iter().filter_map(drifted).collect();
    let missing = Note::list(
        "missing",
        &inventory.missing,
        "find out why Flux or Argo CD has not applied these Peers; `clustermesh status --wait 5m` waits for it",
    );
    let changed =
        Note::list("changed", &changed, "let Flux or Argo CD apply the rendered Peers again");
    let added = additions(inventory).into_iter();
    let added = added.filter_map(|(fields, peers)| addition(state, fields, &peers));
    let left_over = Note::list("left over", &inventory.left_over, "let Flux or Argo CD prune them");
    missing.into_iter().chain(changed).chain(added).chain(left_over)
}

/// Returns notes about Peers of others. Those that Kilo does not take are findings.
fn of_foreign(inventory: &Inventory) -> impl Iterator<Item = Note> {
    let note = |help, is_meant: &dyn Fn(&Foreign) -> bool| {
        let meant = inventory.foreign.iter().filter(|it| it.fault.is_none() && is_meant(it));
        Note::list("foreign", &meant.map(foreigner).collect::<Vec<_>>(), help)
    };
    let is_outside = |it: &Foreign| it.holder == Holder::Outsider;
    let notes = [
        note("remove these ranges from the Peer, or the Peer from the cluster", &|it| {
            !it.takes.is_empty()
        }),
        note(
            "expected for a Peer of your own, such as a laptop; otherwise delete the Peer",
            &|it| it.takes.is_empty() && is_outside(it),
        ),
        note(
            "delete the Peer if nothing else manages it, such as the ClusterMesh operator",
            &|it| it.takes.is_empty() && !is_outside(it),
        ),
    ];
    notes.into_iter().flatten()
}

/// Returns notes about Peers that share a key with others, or with a node.
fn of_keys(inventory: &Inventory) -> impl Iterator<Item = Note> {
    let same_key = inventory.same_key.iter().map(|names| names.join(", "));
    let same_key = Note::list(
        "same key",
        &same_key.collect::<Vec<_>>(),
        "delete all but one; `clustermesh explain twin-peers` shows how to do it without an outage",
    );
    let own_key = Note::list(
        "own key",
        &inventory.own_key,
        "delete the Peer: it has the key of a node of this cluster",
    );
    same_key.into_iter().chain(own_key)
}

/// Describes a Peer that differs from the rendered one in more than added fields.
fn drifted(peer: &DriftedPeer) -> Option<String> {
    let differences = peer.others().map(difference);
    let differences: Vec<String> = differences.collect();
    (!differences.is_empty()).then(|| format!("{}: {}", peer.name, differences.join("; ")))
}

/// Returns the Peers with fields that another program added, by these fields.
fn additions(inventory: &Inventory) -> BTreeMap<&[OptionalField], Vec<&str>> {
    let mut additions: BTreeMap<&[OptionalField], Vec<&str>> = BTreeMap::new();
    for peer in inventory.changed.iter().filter(|it| !it.added.is_empty()) {
        additions.entry(&peer.added).or_default().push(&peer.name);
    }
    additions
}

/// Describes Peers with added fields, and returns the command that removes these from the first of them.
fn addition(state: &ClusterStatus, fields: &[OptionalField], peers: &[&str]) -> Option<Note> {
    let listed = text::list(fields);
    let lines = peers.iter().map(|it| format!("{it} has {listed}"));
    let lines: Vec<String> = lines.collect();
    let named: Vec<String> = peers.iter().take(LISTED).map(|it| shell_word(it)).collect();
    let run = match &state.kubectl {
        Some(kubectl) => format!("run `{kubectl}"),
        None => format!("in {}, run `kubectl", state.cluster),
    };
    let command = format!(
        "{run} patch peers {} --type=merge -p {}`",
        named.join(" "),
        shell_word(&removal(fields).to_string())
    );
    Note::list("added", &lines, command)
}

/// Describes a Peer that belongs to no mesh.
fn foreigner(it: &Foreign) -> String {
    let holder = match &it.holder {
        Holder::Outsider => "its key belongs to no node".to_owned(),
        Holder::Node { cluster, node } => format!("it has the key of {cluster}/{node}"),
        Holder::Nodes => "several nodes have its key".to_owned(),
    };
    let takes: Vec<String> =
        it.takes.iter().map(|it| format!("{} of {}", it.range, it.cluster)).collect();
    let takes = if takes.is_empty() {
        format!("with {}", text::first(LISTED, &it.ranges))
    } else {
        format!("takes {}", text::first(LISTED, takes))
    };
    format!("{} {takes}; {holder}", it.name)
}

/// Returns the first lines, and how many more there are, harmless to print.
fn first(lines: &[String]) -> Vec<String> {
    let mut first: Vec<String> = lines.iter().take(LISTED).map(|it| shown(it)).collect();
    if LISTED < lines.len() {
        first.push(format!("… and {} more", lines.len() - LISTED));
    }
    first
}

fn shown(text: &str) -> String {
    escaped(text, SHOWN)
}
