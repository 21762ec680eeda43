//! States as an object for programs, in a form of its own that is versioned.

use clustermesh::agent::applied::removal;
use clustermesh::agent::inventory::{DriftedPeer, Foreign, Holder, Inventory};
use clustermesh::diagnostic::escaped;
use clustermesh::report::json::JsonDocument;
use clustermesh::results::findings::Report;
use clustermesh::results::findings::json::{WrittenFinding, findings};
use clustermesh::rules::refusal::effect;
use clustermesh::schema::ExampleFile;
use schemars::JsonSchema;
use serde::Serialize;
use serde_json::Value;

use super::state::{
    ClusterState, ClusterStatus, GuardState, GuardStatus, NodeCounts, RenderedFolder,
};

/// The longest description of a problem, in characters.
const PROBLEM: usize = 400;

/// The output of `clustermesh status --output json`. Later versions may add fields.
#[derive(JsonSchema, Serialize)]
#[schemars(rename = "Status", example = ExampleFile(include_str!("json/example.json")))]
#[serde(rename_all = "camelCase")]
pub(crate) struct WrittenStatus<'a> {
    /// The clusters, by name.
    clusters: Vec<WrittenState<'a>>,
    /// Problems of the mesh, the snapshots, the rendered tree and the connections, the most severe
    /// first.
    findings: Vec<WrittenFinding<'a>>,
}

/// A cluster, compared with what is rendered for it.
#[derive(JsonSchema, Serialize)]
#[schemars(rename = "Cluster")]
#[serde(rename_all = "camelCase")]
struct WrittenState<'a> {
    /// Its name.
    #[schemars(example = &"east")]
    cluster: &'a str,
    /// The reason why it could not be read. Then the other fields are absent.
    #[serde(skip_serializing_if = "Option::is_none")]
    error: Option<WrittenError<'a>>,
    /// The versions of Kilo's CRD; empty if it is not installed.
    #[serde(skip_serializing_if = "Option::is_none")]
    crd_versions: Option<&'a [String]>,
    /// The Peers in the cluster, compared with the rendered ones.
    #[serde(skip_serializing_if = "Option::is_none")]
    peers: Option<WrittenPeers<'a>>,
    /// The nodes of the cluster, compared with the snapshot.
    #[serde(skip_serializing_if = "Option::is_none")]
    snapshot: Option<WrittenNodes<'a>>,
    /// The guard in the cluster, compared with what `clustermesh guard` prints now and with `guards/<cluster>.yaml`.
    #[serde(skip_serializing_if = "Option::is_none")]
    guard: Option<WrittenGuard<'a>>,
}

/// The guard in a cluster.
#[derive(JsonSchema, Serialize)]
#[schemars(rename = "Guard")]
struct WrittenGuard<'a> {
    /// Whether the guard is there and current.
    state: GuardState,
    /// The difference, or the reason why it could not be read; absent if there is nothing to do.
    #[serde(skip_serializing_if = "Option::is_none")]
    problem: Option<&'a str>,
    /// The remedy.
    #[serde(skip_serializing_if = "Option::is_none")]
    help: Option<&'a str>,
}

/// The reason why a cluster could not be read.
#[derive(JsonSchema, Serialize)]
struct WrittenError<'a> {
    /// The name of the rule.
    #[schemars(example = &"forbidden")]
    rule: &'a str,
    /// The message.
    message: &'a str,
    /// The remedy.
    #[serde(skip_serializing_if = "Option::is_none")]
    help: Option<&'a str>,
}

/// The Peers in a cluster, compared with the rendered ones.
#[derive(JsonSchema, Serialize)]
#[serde(rename_all = "camelCase")]
struct WrittenPeers<'a> {
    /// Whether the rendered tree has a folder for the cluster and all of it could be read. Otherwise
    /// `leftOver` is empty, and more Peers than those listed may be rendered.
    is_rendered: bool,
    /// The number of rendered Peers that are applied as they are.
    in_sync: usize,
    /// Rendered Peers that the cluster does not have, or is deleting.
    missing: &'a [String],
    /// Rendered Peers with another spec in the cluster.
    changed: Vec<&'a str>,
    /// Those of `changed` with fields that the rendered Peer does not have. Flux and Argo CD may leave these fields as
    /// they are.
    added_fields: Vec<WrittenAddition<'a>>,
    /// Peers of a mesh that are no longer rendered.
    left_over: &'a [String],
    /// Peers that no mesh has.
    foreign: Vec<WrittenForeign<'a>>,
    /// Groups of Peers with one key.
    same_key: &'a [Vec<String>],
    /// Peers with the key of a node of this cluster.
    own_key: &'a [String],
}

/// The fields that another program added to a rendered Peer.
#[derive(JsonSchema, Serialize)]
#[schemars(rename = "AddedFields")]
struct WrittenAddition<'a> {
    /// The name of the Peer.
    peer: &'a str,
    /// The fields, without their values.
    #[schemars(example = &["spec.presharedKey"])]
    fields: Vec<String>,
    /// The merge patch (RFC 7396) that removes them.
    patch: Value,
}

/// A Peer that no mesh has.
#[derive(JsonSchema, Serialize)]
#[serde(rename_all = "camelCase")]
struct WrittenForeign<'a> {
    /// Its name.
    name: &'a str,
    /// Its allowed IPs.
    ranges: Vec<String>,
    /// The reason for which Kilo does not use it; absent if it does.
    #[serde(skip_serializing_if = "Option::is_none")]
    problem: Option<String>,
    /// The node with its key, as `CLUSTER/NODE`; absent for laptops and other networks.
    #[serde(skip_serializing_if = "Option::is_none")]
    node: Option<String>,
    /// The ranges of clusters that it claims too.
    takes: Vec<WrittenTaken<'a>>,
}

/// A range of a cluster.
#[derive(JsonSchema, Serialize)]
struct WrittenTaken<'a> {
    /// The cluster.
    cluster: &'a str,
    /// The range.
    range: String,
}

/// The nodes of a cluster, compared with the snapshot.
#[derive(JsonSchema, Serialize)]
#[schemars(rename = "Snapshot")]
#[serde(rename_all = "camelCase")]
struct WrittenNodes<'a> {
    /// Whether the snapshot is up to date.
    is_current: bool,
    /// The differences, as `clustermesh snapshot --check` prints them.
    differences: &'a [String],
    /// The reason why the nodes make no snapshot.
    #[serde(skip_serializing_if = "Option::is_none")]
    error: Option<&'a str>,
}

/// Returns the object as text.
pub(super) fn text(states: &[ClusterStatus], report: &Report) -> serde_json::Result<String> {
    let document = JsonDocument::of(WrittenStatus {
        clusters: states.iter().map(state).collect(),
        findings: findings(report),
    });
    document.text()
}

fn state(state: &ClusterStatus) -> WrittenState<'_> {
    let error = state.found.as_ref().err().map(|it| &it.finding);
    let found = state.found.as_ref().ok();
    WrittenState {
        cluster: state.cluster.as_str(),
        error: error.map(|it| WrittenError {
            rule: it.rule.name(),
            message: it.message.shown(),
            help: it.help.as_deref(),
        }),
        crd_versions: found.map(|it| it.versions.as_slice()),
        peers: found.map(peers),
        snapshot: found.map(|it| nodes(&it.nodes)),
        guard: found.map(|it| guard(&it.guard)),
    }
}

fn peers(found: &ClusterState) -> WrittenPeers<'_> {
    let Inventory { in_sync, missing, changed, left_over, foreign, same_key, own_key } =
        &found.inventory;
    WrittenPeers {
        is_rendered: found.rendered == RenderedFolder::Whole,
        in_sync: *in_sync,
        missing,
        changed: changed.iter().map(|it| it.name.as_str()).collect(),
        added_fields: changed.iter().filter(|it| !it.added.is_empty()).map(addition).collect(),
        left_over,
        foreign: foreign.iter().map(self::foreign).collect(),
        same_key,
        own_key,
    }
}

fn addition(it: &DriftedPeer) -> WrittenAddition<'_> {
    WrittenAddition {
        peer: &it.name,
        fields: it.added.iter().map(ToString::to_string).collect(),
        patch: removal(&it.added),
    }
}

fn nodes(nodes: &NodeCounts) -> WrittenNodes<'_> {
    match nodes {
        NodeCounts::Compared(differences) => {
            WrittenNodes { is_current: differences.is_empty(), differences, error: None }
        }
        NodeCounts::Unreadable(error) => {
            WrittenNodes { is_current: false, differences: &[], error: Some(error) }
        }
    }
}

fn guard(guard: &GuardStatus) -> WrittenGuard<'_> {
    let problem = guard.problem.as_ref();
    WrittenGuard {
        state: guard.state,
        problem: problem.map(|it| it.message.as_str()),
        help: problem.map(|it| it.help.as_str()),
    }
}

fn foreign(it: &Foreign) -> WrittenForeign<'_> {
    let takes = it
        .takes
        .iter()
        .map(|it| WrittenTaken { cluster: &it.cluster, range: it.range.to_string() });
    WrittenForeign {
        name: &it.name,
        ranges: it.ranges.iter().map(ToString::to_string).collect(),
        problem: it.fault.as_ref().map(|it| escaped(&effect("it", it), PROBLEM)),
        node: match &it.holder {
            Holder::Node { cluster, node } => Some(format!("{cluster}/{node}")),
            Holder::Outsider | Holder::Nodes => None,
        },
        takes: takes.collect(),
    }
}
