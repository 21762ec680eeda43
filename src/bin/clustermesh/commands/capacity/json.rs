//! The costs of the mesh, as an object for programs in a versioned format.

use clustermesh::capacity::{Cost, Estimate, Fit, Outgrowth, Room};
use clustermesh::config::capacity::Steps;
use clustermesh::diagnostic::Severity;
use clustermesh::joining::{JoinedLoad, Joiner};
use clustermesh::mesh::AssumedValue;
use clustermesh::report::json::JsonDocument;
use clustermesh::results::findings::json::number;
use clustermesh::schema::ExampleFile;
use schemars::JsonSchema;
use serde::Serialize;
use serde_json::Number;

use super::AssumedMeshes;
use super::joining::JoinOutlook;

/// The output of `clustermesh capacity --output json`. Later versions may add fields.
#[derive(JsonSchema, Serialize)]
#[schemars(rename = "Capacity", example = ExampleFile(include_str!("json/example.json")))]
#[serde(rename_all = "camelCase")]
pub(crate) struct WrittenCapacityReport<'a> {
    /// The values of `--with`.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    #[schemars(example = ["east.advertise.podCIDRs=Merged"])]
    with: Vec<String>,
    /// Clusters whose entries advertise neither WireGuard addresses nor internal IPs of nodes, by name.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    without_node_addresses: Vec<&'a str>,
    /// The clusters, by name.
    targets: Vec<WrittenTarget<'a>>,
    /// All clusters with `state: Joining` that have a snapshot, and the load of each cluster when
    /// they have joined.
    #[serde(skip_serializing_if = "Option::is_none")]
    joining: Option<WrittenJoinedLoad<'a>>,
    /// Clusters with `state: Joining` that cannot join before they have a snapshot.
    #[serde(skip_serializing_if = "<[Joiner]>::is_empty")]
    waiting: &'a [Joiner],
    /// The number of clusters that can be added. Missing if the cluster that they would be like gives no Peers to others.
    #[serde(skip_serializing_if = "Option::is_none")]
    growth: Option<WrittenGrowth<'a>>,
}

/// The number of clusters that can be added if they are like one of the mesh.
#[derive(JsonSchema, Serialize)]
#[serde(rename_all = "camelCase")]
struct WrittenGrowth<'a> {
    /// The cluster that they would be like: the last one of the mesh.
    like: &'a str,
    /// The limits, the tightest first. Limits that no number of such clusters exceeds are omitted.
    limits: Vec<WrittenRoom<'a>>,
    /// The seconds of a restart of Kilo with as many clusters more as the tightest limit allows.
    #[schemars(with = "f64")]
    #[serde(skip_serializing_if = "Option::is_none")]
    restart_seconds: Option<Number>,
}

/// The number of clusters that a limit allows.
#[derive(JsonSchema, Serialize)]
#[serde(rename_all = "camelCase")]
struct WrittenRoom<'a> {
    /// The quantity, as in `limits.capacity` of the config.
    #[schemars(example = &"applySeconds")]
    name: &'static str,
    /// Up to the warning threshold.
    #[serde(skip_serializing_if = "Option::is_none")]
    warning: Option<&'a Fit>,
    /// Up to the error threshold.
    #[serde(skip_serializing_if = "Option::is_none")]
    error: Option<&'a Fit>,
}

/// Clusters that join, and the load with them.
#[derive(JsonSchema, Serialize)]
#[serde(rename_all = "camelCase")]
struct WrittenJoinedLoad<'a> {
    /// The clusters that join.
    clusters: &'a [Joiner],
    /// Whether no cluster whose Peers change exceeds a warning limit.
    fits: bool,
    /// The load of each cluster afterwards. `change` is the change by which they join.
    targets: Vec<WrittenTarget<'a>>,
}

/// A cluster and its load.
#[derive(JsonSchema, Serialize)]
#[serde(rename_all = "camelCase")]
struct WrittenTarget<'a> {
    /// Its name.
    #[schemars(example = &"east")]
    cluster: &'a str,
    /// The worst grade of its quantities.
    grade: WrittenGrade,
    /// The quantities.
    quantities: Vec<WrittenEstimate<'a>>,
    /// The changes of the next render.
    change: WrittenChange,
}

/// A quantity and its value.
#[derive(JsonSchema, Serialize)]
#[schemars(rename = "Quantity")]
#[serde(rename_all = "camelCase")]
struct WrittenEstimate<'a> {
    /// The name, as in `limits.capacity` of the config.
    #[schemars(example = &"applySeconds")]
    name: &'static str,
    /// The value: a count, bytes or seconds.
    #[schemars(with = "f64")]
    value: Number,
    /// The formula.
    formula: &'static str,
    /// The formula with its numbers.
    #[serde(skip_serializing_if = "str::is_empty")]
    worked: &'a str,
    /// The grade.
    grade: WrittenGrade,
    /// The thresholds.
    limits: Steps,
}

/// The grade of a quantity.
#[derive(JsonSchema, Serialize)]
#[serde(rename_all = "lowercase")]
enum WrittenGrade {
    /// Within all limits.
    Ok,
    /// Above the notice threshold: worth knowing.
    Notice,
    /// Above the warning threshold: it causes problems.
    Warning,
    /// Above the error threshold: it does not work.
    Error,
}

/// The changes of the next render.
#[derive(JsonSchema, Serialize)]
#[serde(rename_all = "camelCase")]
struct WrittenChange {
    /// Peers that are added.
    added: usize,
    /// Peers that are changed.
    changed: usize,
    /// Peers that are removed.
    removed: usize,
    /// The seconds that Kilo needs to apply the change.
    #[schemars(with = "f64")]
    seconds: Number,
}

/// Returns the object.
pub(super) fn text(
    costs: &[Cost],
    outlook: &JoinOutlook,
    meshes: &AssumedMeshes,
) -> serde_json::Result<String> {
    let document = JsonDocument::of(WrittenCapacityReport {
        with: meshes.assumed.iter().map(AssumedValue::to_string).collect(),
        without_node_addresses: meshes.keeping_nodes.iter().map(|it| it.as_str()).collect(),
        targets: costs.iter().map(target).collect(),
        joining: outlook.together.as_ref().map(joining),
        waiting: &outlook.waiting,
        growth: outlook.outgrowth.as_ref().map(growth),
    });
    document.text()
}

fn target(cost: &Cost) -> WrittenTarget<'_> {
    WrittenTarget {
        cluster: &cost.cluster,
        grade: grade(cost.grade()),
        quantities: cost.estimates.iter().map(estimate).collect(),
        change: WrittenChange {
            added: cost.delta.added,
            changed: cost.delta.changed,
            removed: cost.delta.removed,
            seconds: number(cost.busy),
        },
    }
}

fn joining(load: &JoinedLoad) -> WrittenJoinedLoad<'_> {
    WrittenJoinedLoad {
        clusters: &load.joiners,
        fits: load.fits(),
        targets: load.costs.iter().map(target).collect(),
    }
}

fn growth(growth: &Outgrowth) -> WrittenGrowth<'_> {
    WrittenGrowth {
        like: growth.like.as_str(),
        limits: growth.rooms.iter().map(room).collect(),
        restart_seconds: growth.restart.map(number),
    }
}

fn room(room: &Room) -> WrittenRoom<'_> {
    WrittenRoom {
        name: room.quantity.key(),
        warning: room.warning.as_ref(),
        error: room.error.as_ref(),
    }
}

fn estimate(estimate: &Estimate) -> WrittenEstimate<'_> {
    WrittenEstimate {
        name: estimate.quantity.key(),
        value: number(estimate.value),
        formula: estimate.formula,
        worked: &estimate.worked,
        grade: grade(estimate.grade),
        limits: estimate.steps,
    }
}

fn grade(severity: Option<Severity>) -> WrittenGrade {
    match severity {
        None => WrittenGrade::Ok,
        Some(Severity::Notice) => WrittenGrade::Notice,
        Some(Severity::Warning) => WrittenGrade::Warning,
        Some(Severity::Error) => WrittenGrade::Error,
    }
}
