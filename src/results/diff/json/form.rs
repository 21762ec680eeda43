//! The form of the object.

use crate::changes::{Grade, PathCounts, PeerCounts};
use crate::results::findings::json::{WrittenFinding, WrittenPlace};
use crate::schema::ExampleFile;
use schemars::JsonSchema;
use serde::Serialize;
use serde_json::Number;

use super::controls::WrittenControls;

/// The output of `clustermesh diff --output json`. Later versions may add fields, kinds of causes and
/// kinds of reasons.
#[derive(JsonSchema, Serialize)]
#[schemars(rename = "Diff", example = ExampleFile(include_str!("form/example.json")))]
#[serde(rename_all = "camelCase")]
pub struct WrittenDiff<'a> {
    /// The old version: a commit, a folder, the Peers of clusters, or nothing.
    #[schemars(example = &"HEAD")]
    pub against: &'a str,
    /// Facts about the old version that change what the comparison means.
    pub notes: &'a [String],
    /// The worst grade of all targets.
    pub grade: Grade,
    /// True if the grade is `brief` only because nodes have no annotation `kilo.squat.ai/persistent-keepalive`. With it,
    /// the grade is `additive` or `cleanup`.
    pub pause_only: bool,
    /// The causes, each once. Without a mesh and snapshots of the old version there are none.
    pub causes: Vec<WrittenDiffCause<'a>>,
    /// The targets with changes, by name.
    pub targets: Vec<WrittenTargetChange<'a>>,
    /// The changed paths, for pairs of clusters with gained, lost or interrupted paths.
    pub paths: Vec<WrittenPath<'a>>,
    /// The paths of `--fail-on-new-path` that the change opens.
    pub new_paths: Vec<WrittenNewPaths<'a>>,
    /// The changed Services that clusters get of others.
    pub services: Vec<WrittenServiceChange<'a>>,
    /// The endpoints that clusters dial with the new Peers only: their ports must be open before the change is applied.
    pub opened_ports: Vec<WrittenPort>,
    /// The endpoints that clusters dial with the old Peers only.
    pub closed_ports: Vec<WrittenPort>,
    /// The judgement of the controls of the old version about the change, if it has any.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub controls: Option<WrittenControls<'a>>,
    /// The findings of `--check-losses` and `--fail-on-new-path`. With any, the exit code is 1.
    pub findings: Vec<WrittenFinding>,
    /// The number of states on the way from the old to the new Peers that were proved.
    pub states: usize,
}

/// Paths from one cluster to another that did not work, and that the change opens although `--fail-on-new-path` forbids it.
#[derive(JsonSchema, Serialize)]
#[schemars(rename = "NewPaths")]
#[serde(rename_all = "camelCase")]
pub struct WrittenNewPaths<'a> {
    /// The values of `--fail-on-new-path` that forbid it.
    #[schemars(example = ["dev:prod"])]
    pub watched: Vec<&'a str>,
    /// The cluster that sends.
    #[schemars(example = &"east")]
    pub from: &'a str,
    /// The cluster that receives.
    #[schemars(example = &"west")]
    pub to: &'a str,
    /// Paths that work with the new Peers, at least in part.
    pub opened: PathCounts,
    /// Paths that work only while the change is applied.
    pub passing: PathCounts,
    /// One of the paths, if an end can be named.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub example: Option<WrittenExample>,
    /// The causes, as indexes of `causes`: of many, the first ones.
    pub causes: Vec<usize>,
}

/// The change of a Service that a cluster gets of another one.
#[derive(JsonSchema, Serialize)]
#[schemars(rename = "ServiceChange")]
#[serde(rename_all = "camelCase")]
pub struct WrittenServiceChange<'a> {
    /// The cluster that gets it.
    #[schemars(example = &"east")]
    pub cluster: &'a str,
    /// The grade.
    pub grade: Grade,
    /// The difference, for people.
    pub message: String,
    /// Its name in the cluster that gets it.
    #[schemars(example = &"api")]
    pub name: &'a str,
    /// Its namespace there.
    #[schemars(example = &"shop")]
    pub namespace: &'a str,
    /// The cluster that has it.
    #[schemars(example = &"west")]
    pub source: &'a str,
}

/// A UDP endpoint that other clusters dial.
#[derive(JsonSchema, Serialize)]
#[schemars(rename = "Port")]
#[serde(rename_all = "camelCase")]
pub struct WrittenPort {
    /// The address or DNS name, and the port.
    #[schemars(example = &"198.18.0.1:51820")]
    pub endpoint: String,
    /// Its node, or the external peer; missing if no node has the key of the Peer.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(example = &"east/n1")]
    pub owner: Option<String>,
}

/// A path: its ends, each as a cluster and a node or range.
#[derive(JsonSchema, Serialize)]
#[schemars(rename = "Example")]
pub struct WrittenExample {
    /// The sender.
    #[schemars(example = &"east/n1")]
    pub from: String,
    /// The receiver.
    #[schemars(example = &"west/n1")]
    pub to: String,
}

/// The changed paths from one cluster to another. A path is between two nodes, or a node and a
/// range.
#[derive(JsonSchema, Serialize)]
#[schemars(rename = "Paths")]
#[serde(rename_all = "camelCase")]
pub struct WrittenPath<'a> {
    /// The cluster that sends.
    #[schemars(example = &"east")]
    pub from: &'a str,
    /// The cluster that receives.
    #[schemars(example = &"west")]
    pub to: &'a str,
    /// Paths that only work with the new Peers.
    pub gained: PathCounts,
    /// Those of the gained paths that are only assumed to work.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub assumed: Option<PathCounts>,
    /// Paths that only work with the old Peers.
    pub lost: PathCounts,
    /// Paths that were proved, and are only assumed to work with the new Peers.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub no_longer_proved: Option<PathCounts>,
    /// Paths that worked, and that end with a node or an address that the new snapshots do not have. They do not count
    /// as lost.
    pub ended: PathCounts,
    /// Paths that worked with the old nodes, are down until the change is applied, and work then.
    pub repaired: PathCounts,
    /// Paths that do not work while only one of the two clusters has its new Peers.
    pub apart: PathCounts,
    /// Paths that may stay interrupted until agents list all Peers again, up to 10 minutes.
    pub stuck: PathCounts,
    /// Paths that are interrupted while the Peers of a cluster arrive.
    pub paused: PathCounts,
    /// Paths of `--fail-on-new-path` that work with the new Peers, at least in part, and did not work.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub opened: Option<PathCounts>,
    /// Paths of `--fail-on-new-path` that work only while the change is applied.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub passing: Option<PathCounts>,
}

/// A reason for changes of Peers.
#[derive(JsonSchema, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct WrittenDiffCause<'a> {
    /// The kind of the cause.
    #[schemars(example = &"nodeJoined")]
    pub kind: &'static str,
    /// The cause as a phrase.
    pub message: String,
    /// The cluster that it is about, if any.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub cluster: Option<&'a str>,
    /// The node that it is about, if any.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub node: Option<String>,
    /// For a setting: its place in the old version.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub before: Option<WrittenPlace>,
    /// For a setting: its place in the new version.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub after: Option<WrittenPlace>,
    /// A step that a person must take besides the change, if there is one. `grade` does not include it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub help: Option<String>,
    /// The targets whose Peers it changes.
    pub targets: Vec<WrittenEffect<'a>>,
}

/// The effect of a cause on a target.
#[derive(JsonSchema, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct WrittenEffect<'a> {
    /// The target.
    #[schemars(example = &"east")]
    pub cluster: &'a str,
    /// Its changed Peers.
    #[serde(flatten)]
    pub counts: PeerCounts,
}

/// A cluster whose Peers change.
#[derive(JsonSchema, Serialize)]
#[schemars(rename = "Target")]
#[serde(rename_all = "camelCase")]
pub struct WrittenTargetChange<'a> {
    /// Its name.
    #[schemars(example = &"east")]
    pub cluster: &'a str,
    /// Its old name, if that was another one.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub renamed_from: Option<&'a str>,
    /// The severity of its changes.
    pub grade: Grade,
    /// True if the grade is `brief` only because the nodes in `pausing` have no annotation.
    pub pause_only: bool,
    /// The reasons for the grade, the worst first.
    pub reasons: Vec<WrittenReason>,
    /// The number of Peers before.
    pub peers_before: usize,
    /// The number of Peers now.
    pub peers_after: usize,
    /// Its changed Peers.
    #[serde(flatten)]
    pub counts: PeerCounts,
    /// The Peers that change, by name.
    pub peers: Vec<WrittenPeer<'a>>,
    /// Ranges that the target reaches through another node than before. Connections to them break once.
    pub carriers: Vec<WrittenCarrier>,
    /// Its nodes without the annotation `kilo.squat.ai/persistent-keepalive`: requests through them may get no answer for
    /// up to 15 seconds.
    pub pausing: Vec<String>,
    /// The pairs of nodes that may be unreachable because one is behind NAT, if there are any.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub forgotten: Option<WrittenForgotten<'a>>,
    /// Peers whose keys agents may forget, and how to avoid that.
    pub key_moves: Vec<WrittenKeyMove<'a>>,
    /// The remedies for `pausing` and `forgotten`, and those for all of these key moves together: at most one for each
    /// tool that applies the Peers.
    pub help: Vec<String>,
    /// The seconds for which Kilo is busy with the change, on the busiest node.
    #[schemars(with = "f64")]
    #[serde(skip_serializing_if = "Option::is_none")]
    pub busy_seconds: Option<Number>,
    /// The quantities of `clustermesh capacity` that differ.
    pub capacity: Vec<WrittenQuantity>,
}

/// Leaders of a target that may forget the addresses of nodes behind NAT. Any of `leaders` and any of `nodes` and `peers`
/// may be unreachable for each other for up to 15 seconds, or up to 205 seconds if nothing is sent.
#[derive(JsonSchema, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct WrittenForgotten<'a> {
    /// The nodes of the target.
    pub leaders: Vec<String>,
    /// The nodes behind NAT, with their clusters.
    #[schemars(example = &["onprem/n1"])]
    pub nodes: Vec<String>,
    /// Peers behind NAT whose keys no node has.
    pub peers: Vec<&'a str>,
    /// True if two leaders send keepalives, of which one publishes what the other forgets. Then it is unlikely.
    pub is_published: bool,
}

/// A range that is reached through another node.
#[derive(JsonSchema, Serialize)]
pub struct WrittenCarrier {
    /// The range.
    pub range: String,
    /// The cluster and the node that carried it.
    #[schemars(example = &"west/n1")]
    pub from: String,
    /// The cluster and the node that carry it now.
    #[schemars(example = &"west/n2")]
    pub to: String,
}

/// Peers that change together because keys move between them.
#[derive(JsonSchema, Serialize)]
pub struct WrittenKeyMove<'a> {
    /// The Peers, by name.
    pub peers: &'a [String],
    /// Peers whose keys agents may forget.
    pub lost: &'a [String],
    /// The remedy, if one is needed.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub help: Option<String>,
}

/// A quantity, before and after.
#[derive(JsonSchema, Serialize)]
pub struct WrittenQuantity {
    /// The name, as in `limits.capacity` of the config.
    #[schemars(example = &"peers")]
    pub name: &'static str,
    /// The old value: a count, bytes or seconds.
    #[schemars(with = "f64")]
    pub before: Number,
    /// The new value.
    #[schemars(with = "f64")]
    pub after: Number,
}

/// A reason for a grade.
#[derive(JsonSchema, Serialize)]
pub struct WrittenReason {
    /// The best grade that it leaves.
    pub grade: Grade,
    /// The reason as a phrase.
    pub message: String,
}

/// A Peer that changes.
#[derive(JsonSchema, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct WrittenPeer<'a> {
    /// Its name.
    #[schemars(example = &"prod--west--n1")]
    pub name: &'a str,
    /// The kind of the change.
    pub change: WrittenPeerChangeKind,
    /// The cluster whose node has its key, if there is one.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub source: Option<&'a str>,
    /// The node that has its key, if there is one.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub node: Option<String>,
    /// The old or new name, if a Peer with the same key is renamed.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub renamed: Option<&'a str>,
    /// The ranges that it gains; all of them if it is new.
    pub gained: Vec<String>,
    /// The ranges that it loses; all of them if it is removed.
    pub lost: Vec<String>,
    /// The other differences, as phrases.
    pub differences: Vec<String>,
    /// Its causes, as indexes of `causes`: of many, the first ones.
    pub causes: &'a [usize],
    /// The number of further causes.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub more_causes: Option<usize>,
}

/// A kind of change of a Peer.
#[derive(JsonSchema, Serialize)]
#[schemars(rename = "PeerChange")]
#[serde(rename_all = "lowercase")]
pub enum WrittenPeerChangeKind {
    /// It is new.
    Added,
    /// It has another content.
    Changed,
    /// It is removed.
    Removed,
}
