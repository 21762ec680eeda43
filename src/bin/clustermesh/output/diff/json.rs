//! Differences as an object for programs, in a form of its own that is versioned.

use clustermesh::changes::cause::TargetEffect;
use clustermesh::changes::{
    CarrierMove, Cause, CauseEffect, Difference, Grade, LoadChange, NodeRef, PathChange,
    PathCounts, PeerChange, PeerChangeKind, PeerCounts, TargetChange,
};
use clustermesh::diagnostic::{escaped, plain_json};
use clustermesh::name::ClusterName;
use clustermesh::net::Cidr;
use clustermesh::place::Place;
use clustermesh::schema;
use schemars::{JsonSchema, Schema};
use serde::Serialize;
use serde_json::{Number, Value, json};

use super::super::json::{API_VERSION, WrittenPlace, bare_place};
use super::{Compared, wording};
use crate::commands::capacity::number;
use crate::files::ShownFiles;

/// The kind of the object.
const KIND: &str = "Diff";

/// The longest name that is written, in characters.
const NAME: usize = 1000;

/// The output of `clustermesh diff --output json`. Later versions may add fields, kinds of causes and
/// kinds of reasons.
#[derive(JsonSchema, Serialize)]
#[schemars(rename = "Diff", example = example())]
#[serde(rename_all = "camelCase")]
struct WrittenDiff<'a> {
    /// The version of this format.
    #[schemars(extend("const" = API_VERSION))]
    api_version: &'static str,
    /// The kind of this document.
    #[schemars(extend("const" = KIND))]
    kind: &'static str,
    /// The old version: a commit, a folder, or the Peers of clusters.
    #[schemars(example = &"HEAD")]
    against: &'a str,
    /// The worst grade of all targets.
    grade: WrittenGrade,
    /// The causes, each once. Without a mesh and snapshots of the old version there are none.
    causes: Vec<WrittenCause<'a>>,
    /// The targets with changes, by name.
    targets: Vec<WrittenTarget<'a>>,
    /// The changed paths, for pairs of clusters with gained, lost or interrupted paths.
    paths: Vec<WrittenPath<'a>>,
    /// The number of states on the way from the old to the new Peers that were proved.
    states: usize,
}

/// The changed paths from one cluster to another. A path is between two nodes, or a node and a
/// range.
#[derive(JsonSchema, Serialize)]
#[schemars(rename = "Paths")]
#[serde(rename_all = "camelCase")]
struct WrittenPath<'a> {
    /// The cluster that sends.
    #[schemars(example = &"east")]
    from: &'a str,
    /// The cluster that receives.
    #[schemars(example = &"west")]
    to: &'a str,
    /// Paths that only work with the new Peers.
    gained: WrittenPathCounts,
    /// Paths that only work with the old Peers.
    lost: WrittenPathCounts,
    /// Paths that do not work while only one of the two clusters has its new Peers.
    apart: WrittenPathCounts,
    /// Paths that may stay interrupted until agents list all Peers again, up to 10 minutes.
    stuck: WrittenPathCounts,
    /// Paths that are interrupted while the Peers of a cluster arrive.
    paused: WrittenPathCounts,
}

/// Numbers of paths.
#[derive(JsonSchema, Serialize)]
#[schemars(rename = "PathCounts")]
struct WrittenPathCounts {
    /// Paths that a link of a mesh declares.
    declared: u64,
    /// All other paths.
    undeclared: u64,
}

/// The severity of changes, the best first.
#[derive(JsonSchema, Serialize)]
#[schemars(rename = "Grade")]
#[serde(rename_all = "lowercase")]
enum WrittenGrade {
    /// No Peer changes.
    None,
    /// Paths are only gained, and nothing that works is disturbed.
    Additive,
    /// Changed paths may be interrupted for at most 30 seconds.
    Brief,
    /// A path is lost, or interrupted for longer.
    Disruptive,
    /// A target loses all of its Peers, or all Peers of a source.
    Destructive,
}

/// A reason for changes of Peers.
#[derive(JsonSchema, Serialize)]
#[schemars(rename = "Cause")]
#[serde(rename_all = "camelCase")]
struct WrittenCause<'a> {
    /// The kind of the cause.
    #[schemars(example = &"nodeJoined")]
    kind: &'static str,
    /// The cause as a phrase.
    message: String,
    /// The cluster that it is about, if any.
    #[schemars(with = "&str")]
    #[serde(skip_serializing_if = "Option::is_none")]
    cluster: Option<&'a str>,
    /// The node that it is about, if any.
    #[schemars(with = "&str")]
    #[serde(skip_serializing_if = "Option::is_none")]
    node: Option<String>,
    /// For a setting: its place in the old version.
    #[schemars(with = "WrittenPlace")]
    #[serde(skip_serializing_if = "Option::is_none")]
    before: Option<WrittenPlace<'a>>,
    /// For a setting: its place in the new version.
    #[schemars(with = "WrittenPlace")]
    #[serde(skip_serializing_if = "Option::is_none")]
    after: Option<WrittenPlace<'a>>,
    /// The targets whose Peers it changes.
    targets: Vec<WrittenEffect<'a>>,
}

/// The effect of a cause on a target.
#[derive(JsonSchema, Serialize)]
#[schemars(rename = "Effect")]
#[serde(rename_all = "camelCase")]
struct WrittenEffect<'a> {
    /// The target.
    #[schemars(example = &"east")]
    cluster: &'a str,
    #[serde(flatten)]
    counts: WrittenCounts,
}

/// Numbers of Peers that change.
#[derive(JsonSchema, Serialize)]
#[schemars(rename = "Counts")]
#[serde(rename_all = "camelCase")]
struct WrittenCounts {
    /// New Peers.
    added: usize,
    /// Peers with another content.
    changed: usize,
    /// Peers that are removed.
    removed: usize,
}

/// A cluster whose Peers change.
#[derive(JsonSchema, Serialize)]
#[schemars(rename = "Target")]
#[serde(rename_all = "camelCase")]
struct WrittenTarget<'a> {
    /// Its name.
    #[schemars(example = &"east")]
    cluster: &'a str,
    /// Its old name, if that was another one.
    #[schemars(with = "&str")]
    #[serde(skip_serializing_if = "Option::is_none")]
    renamed_from: Option<&'a str>,
    /// The severity of its changes.
    grade: WrittenGrade,
    /// The reasons for the grade, the worst first.
    reasons: Vec<WrittenReason>,
    /// The number of Peers before.
    peers_before: usize,
    /// The number of Peers now.
    peers_after: usize,
    #[serde(flatten)]
    counts: WrittenCounts,
    /// The Peers that change, by name.
    peers: Vec<WrittenPeer<'a>>,
    /// Ranges that the target reaches through another node than before. Connections to them break once.
    carriers: Vec<WrittenCarrier>,
    /// Peers whose keys agents may forget, and how to avoid that.
    key_moves: Vec<WrittenKeyMove<'a>>,
    /// The seconds for which Kilo is busy with the change, on the busiest node.
    #[schemars(with = "f64")]
    #[serde(skip_serializing_if = "Option::is_none")]
    busy_seconds: Option<Number>,
    /// The quantities of `clustermesh capacity` that differ.
    capacity: Vec<WrittenQuantity>,
}

/// A range that is reached through another node.
#[derive(JsonSchema, Serialize)]
#[schemars(rename = "Carrier")]
struct WrittenCarrier {
    /// The range.
    range: String,
    /// The cluster and the node that carried it.
    #[schemars(example = &"west/n1")]
    from: String,
    /// The cluster and the node that carry it now.
    #[schemars(example = &"west/n2")]
    to: String,
}

/// Peers that change together because keys move between them.
#[derive(JsonSchema, Serialize)]
#[schemars(rename = "KeyMove")]
struct WrittenKeyMove<'a> {
    /// The Peers, by name.
    peers: &'a [String],
    /// Peers whose keys agents may forget.
    lost: &'a [String],
    /// The remedy, if one is needed.
    #[schemars(with = "&str")]
    #[serde(skip_serializing_if = "Option::is_none")]
    help: Option<String>,
}

/// A quantity, before and after.
#[derive(JsonSchema, Serialize)]
#[schemars(rename = "Quantity")]
struct WrittenQuantity {
    /// The name, as in `limits.capacity` of the config.
    #[schemars(example = &"peers")]
    name: &'static str,
    /// The old value: a count, bytes or seconds.
    #[schemars(with = "f64")]
    before: Number,
    /// The new value.
    #[schemars(with = "f64")]
    after: Number,
}

/// A reason for a grade.
#[derive(JsonSchema, Serialize)]
#[schemars(rename = "Reason")]
struct WrittenReason {
    /// The best grade that it leaves.
    grade: WrittenGrade,
    /// The reason as a phrase.
    message: String,
}

/// A Peer that changes.
#[derive(JsonSchema, Serialize)]
#[schemars(rename = "Peer")]
#[serde(rename_all = "camelCase")]
struct WrittenPeer<'a> {
    /// Its name.
    #[schemars(example = &"prod--west--n1")]
    name: &'a str,
    /// The kind of the change.
    change: WrittenKind,
    /// The cluster whose node has its key, if there is one.
    #[schemars(with = "&str")]
    #[serde(skip_serializing_if = "Option::is_none")]
    source: Option<&'a str>,
    /// The node that has its key, if there is one.
    #[schemars(with = "&str")]
    #[serde(skip_serializing_if = "Option::is_none")]
    node: Option<String>,
    /// The old or new name, if a Peer with the same key is renamed.
    #[schemars(with = "&str")]
    #[serde(skip_serializing_if = "Option::is_none")]
    renamed: Option<&'a str>,
    /// The ranges that it gains; all of them if it is new.
    gained: Vec<String>,
    /// The ranges that it loses; all of them if it is removed.
    lost: Vec<String>,
    /// The other differences, as phrases.
    differences: Vec<String>,
    /// Its causes, as indexes of `causes`.
    causes: &'a [usize],
}

/// A kind of change of a Peer.
#[derive(JsonSchema, Serialize)]
#[schemars(rename = "PeerChange")]
#[serde(rename_all = "lowercase")]
enum WrittenKind {
    /// It is new.
    Added,
    /// It has another content.
    Changed,
    /// It is removed.
    Removed,
}

/// Returns the object.
pub(super) fn text(compared: &Compared) -> serde_json::Result<String> {
    let changes = compared.changes;
    let causes = changes.causes.iter().map(|it| cause(it, compared));
    let mut text = serde_json::to_string_pretty(&WrittenDiff {
        api_version: API_VERSION,
        kind: KIND,
        against: &compared.against,
        grade: grade(changes.grade()),
        causes: causes.collect(),
        targets: changes.targets.iter().map(target).collect(),
        paths: changes.paths.iter().map(path).collect(),
        states: changes.states,
    })?;
    text.push('\n');
    Ok(plain_json(text))
}

/// Returns the JSON Schema of the object.
pub(crate) fn schema() -> Schema {
    schema::of_output::<WrittenDiff>()
}

fn cause<'a>(effect: &'a CauseEffect, compared: &Compared<'a>) -> WrittenCause<'a> {
    let cause = &effect.cause;
    let setting = match cause {
        Cause::Setting(setting) => Some(setting),
        _ => None,
    };
    let old = compared.old_files.unwrap_or(compared.files);
    let effects = effect.targets.iter();
    WrittenCause {
        kind: wording::kind(cause),
        message: wording::cause(cause, compared),
        cluster: cause.cluster().map(ClusterName::as_str),
        node: cause.node().map(|it| escaped(&it.node, NAME)),
        before: setting.and_then(|it| written_place(it.before.as_ref(), old)),
        after: setting.and_then(|it| written_place(it.after.as_ref(), compared.files)),
        targets: effects
            .map(
                |TargetEffect {
                     cluster, counts, ..
                 }| WrittenEffect {
                    cluster: cluster.as_str(),
                    counts: written_counts(*counts),
                },
            )
            .collect(),
    }
}

fn written_place<'a>(it: Option<&'a Place>, files: &ShownFiles) -> Option<WrittenPlace<'a>> {
    it.map(|it| bare_place(it, "", files))
}

fn target(target: &TargetChange) -> WrittenTarget<'_> {
    let reasons = target.reasons.iter().map(|it| WrittenReason {
        grade: grade(it.grade()),
        message: wording::reason(it),
    });
    let key_moves = target.key_moves.iter().map(|it| WrittenKeyMove {
        peers: &it.peers,
        lost: &it.lost,
        help: wording::cure(target, it),
    });
    WrittenTarget {
        cluster: target.cluster.as_str(),
        renamed_from: target.renamed_from.as_ref().map(ClusterName::as_str),
        grade: grade(target.grade()),
        reasons: reasons.collect(),
        peers_before: target.peers_before,
        peers_after: target.peers_after,
        counts: written_counts(target.counts()),
        peers: target.peers.iter().map(peer).collect(),
        carriers: target.carriers.iter().map(carrier).collect(),
        key_moves: key_moves.collect(),
        busy_seconds: target.load.as_ref().map(|it| number(it.seconds)),
        capacity: target.load.as_ref().map(quantities).unwrap_or_default(),
    }
}

fn path(path: &PathChange) -> WrittenPath<'_> {
    let counts = |counts: PathCounts| WrittenPathCounts {
        declared: counts.declared,
        undeclared: counts.undeclared,
    };
    WrittenPath {
        from: path.from.as_str(),
        to: path.to.as_str(),
        gained: counts(path.gained),
        lost: counts(path.lost),
        apart: counts(path.apart),
        stuck: counts(path.stuck),
        paused: counts(path.paused),
    }
}

fn carrier(carrier: &CarrierMove) -> WrittenCarrier {
    let node = |it: &NodeRef| format!("{}/{}", it.cluster, escaped(&it.node, NAME));
    WrittenCarrier {
        range: carrier.range.to_string(),
        from: node(&carrier.from),
        to: node(&carrier.to),
    }
}

/// Returns the quantities that differ. Those of the change itself have no old value.
fn quantities(load: &LoadChange) -> Vec<WrittenQuantity> {
    let pairs = load.after.iter().filter_map(|after| {
        let mut before = load.before.iter();
        let before = before.find(|it| it.quantity == after.quantity)?;
        let (old, new) = (number(before.value), number(after.value));
        (old != new).then(|| WrittenQuantity {
            name: after.quantity.key(),
            before: old,
            after: new,
        })
    });
    pairs.collect()
}

fn peer(change: &PeerChange) -> WrittenPeer<'_> {
    let (mut gained, mut lost, mut differences) = (Vec::new(), Vec::new(), Vec::new());
    let texts =
        |ranges: &[Cidr]| -> Vec<String> { ranges.iter().map(ToString::to_string).collect() };
    let (kind, renamed) = match &change.kind {
        PeerChangeKind::Added {
            renamed_from,
            ranges,
        } => {
            gained = texts(ranges);
            (WrittenKind::Added, renamed_from.as_deref())
        }
        PeerChangeKind::Removed { renamed_to, ranges } => {
            lost = texts(ranges);
            (WrittenKind::Removed, renamed_to.as_deref())
        }
        PeerChangeKind::Changed(all) => {
            for difference in all {
                match difference {
                    Difference::RangesGained(ranges) => gained.extend(texts(ranges)),
                    Difference::RangesLost(ranges) => lost.extend(texts(ranges)),
                    other => differences.push(wording::difference(other)),
                }
            }
            (WrittenKind::Changed, None)
        }
    };
    WrittenPeer {
        name: &change.name,
        change: kind,
        source: change.holder.as_ref().map(|it| it.cluster.as_str()),
        node: change.holder.as_ref().map(|it| escaped(&it.node, NAME)),
        renamed,
        gained,
        lost,
        differences,
        causes: &change.causes,
    }
}

fn written_counts(counts: PeerCounts) -> WrittenCounts {
    WrittenCounts {
        added: counts.added,
        changed: counts.changed,
        removed: counts.removed,
    }
}

fn grade(grade: Grade) -> WrittenGrade {
    match grade {
        Grade::None => WrittenGrade::None,
        Grade::Additive => WrittenGrade::Additive,
        Grade::Brief => WrittenGrade::Brief,
        Grade::Disruptive => WrittenGrade::Disruptive,
        Grade::Destructive => WrittenGrade::Destructive,
    }
}

fn example() -> Value {
    json!({
        "apiVersion": API_VERSION,
        "kind": KIND,
        "against": "HEAD",
        "grade": "additive",
        "causes": [{
            "kind": "nodeJoined",
            "message": "node west/n2 joined",
            "cluster": "west",
            "node": "n2",
            "targets": [{ "cluster": "east", "added": 1, "changed": 0, "removed": 0 }],
        }],
        "targets": [{
            "cluster": "east",
            "grade": "additive",
            "reasons": [{ "grade": "additive", "message": "Peers are only added" }],
            "peersBefore": 3,
            "peersAfter": 4,
            "added": 1,
            "changed": 0,
            "removed": 0,
            "peers": [{
                "name": "prod--west--n2",
                "change": "added",
                "source": "west",
                "node": "n2",
                "gained": ["10.3.2.0/24"],
                "lost": [],
                "differences": [],
                "causes": [0],
            }],
            "carriers": [],
            "keyMoves": [],
            "busySeconds": 0.000_02,
            "capacity": [{ "name": "peers", "before": 3, "after": 4 }],
        }],
        "paths": [{
            "from": "east",
            "to": "west",
            "gained": { "declared": 2, "undeclared": 0 },
            "lost": { "declared": 0, "undeclared": 0 },
            "apart": { "declared": 0, "undeclared": 0 },
            "stuck": { "declared": 0, "undeclared": 0 },
            "paused": { "declared": 0, "undeclared": 0 },
        }],
        "states": 4,
    })
}
