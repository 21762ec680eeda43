//! What the mesh costs, as an object for programs, in a form of its own that is versioned.

use clustermesh::capacity::{Effect, Estimate, Lever, Measure};
use clustermesh::config::capacity::Quantity;
use clustermesh::diagnostic::{Severity, plain_json};
use clustermesh::schema;
use schemars::{JsonSchema, Schema};
use serde::Serialize;
use serde_json::{Number, Value, json};

use super::cost::Cost;

/// The version of the format.
const API_VERSION: &str = "kilo-clustermesh.io/v1";

/// The kind of the object.
const KIND: &str = "Capacity";

/// What `clustermesh capacity --output json` prints. A later version of this program may add fields.
#[derive(JsonSchema, Serialize)]
#[schemars(rename = "Capacity", example = example())]
#[serde(rename_all = "camelCase")]
struct Written<'a> {
    /// The version of this format.
    #[schemars(extend("const" = API_VERSION))]
    api_version: &'static str,
    /// The kind of this document.
    #[schemars(extend("const" = KIND))]
    kind: &'static str,
    /// The clusters, by name.
    targets: Vec<WrittenTarget<'a>>,
}

/// A cluster, and what the mesh costs it.
#[derive(JsonSchema, Serialize)]
#[schemars(rename = "Target")]
#[serde(rename_all = "camelCase")]
struct WrittenTarget<'a> {
    /// Its name.
    #[schemars(example = &"east")]
    cluster: &'a str,
    /// The gravest of its grades.
    grade: WrittenGrade,
    /// What there is how much of.
    quantities: Vec<WrittenEstimate<'a>>,
    /// What a render would change for it.
    change: WrittenChange,
    /// What would make it less: what brings most first, and waves at the end.
    levers: Vec<WrittenLever<'a>>,
}

/// How much there is of something.
#[derive(JsonSchema, Serialize)]
#[schemars(rename = "Quantity")]
#[serde(rename_all = "camelCase")]
struct WrittenEstimate<'a> {
    /// What, as `limits.capacity` in the config calls it.
    #[schemars(example = &"applySeconds")]
    name: &'static str,
    /// How much: a count, bytes or seconds.
    #[schemars(with = "f64")]
    value: Number,
    /// How one gets at it.
    formula: &'static str,
    /// The same with numbers.
    #[serde(skip_serializing_if = "str::is_empty")]
    worked: &'a str,
    /// How grave it is.
    grade: WrittenGrade,
    /// From where on it is told.
    limits: WrittenSteps,
}

/// From where on something is told: more than this.
#[derive(JsonSchema, Serialize)]
#[schemars(rename = "Steps")]
struct WrittenSteps {
    /// It is worth knowing.
    #[schemars(with = "u64")]
    #[serde(skip_serializing_if = "Option::is_none")]
    notice: Option<u64>,
    /// It will hurt.
    #[schemars(with = "u64")]
    #[serde(skip_serializing_if = "Option::is_none")]
    warning: Option<u64>,
    /// It does not work.
    #[schemars(with = "u64")]
    #[serde(skip_serializing_if = "Option::is_none")]
    error: Option<u64>,
}

/// How grave something is.
#[derive(JsonSchema, Serialize)]
#[schemars(rename = "Grade")]
#[serde(rename_all = "lowercase")]
enum WrittenGrade {
    /// It is fine.
    Ok,
    /// It is worth knowing.
    Notice,
    /// It will hurt.
    Warning,
    /// It does not work.
    Error,
}

/// What a render would change.
#[derive(JsonSchema, Serialize)]
#[schemars(rename = "Change")]
#[serde(rename_all = "camelCase")]
struct WrittenChange {
    /// Peers that come.
    added: usize,
    /// Peers that become others.
    changed: usize,
    /// Peers that go.
    removed: usize,
    /// How many seconds Kilo is busy with that.
    #[schemars(with = "f64")]
    seconds: Number,
}

/// Something that one can do, and what it brings.
#[derive(JsonSchema, Serialize)]
#[schemars(rename = "Lever")]
#[serde(rename_all = "camelCase")]
struct WrittenLever<'a> {
    /// What.
    #[serde(flatten)]
    measure: WrittenMeasure<'a>,
    /// Allowed IPs of all Peers before and after.
    ranges: [usize; 2],
    /// Seconds for each change before and after; for waves those that Kilo is busy at a stretch.
    #[schemars(with = "[f64; 2]")]
    seconds: [Number; 2],
}

/// Something that one can do.
#[derive(JsonSchema, Serialize)]
#[schemars(rename = "Measure")]
#[serde(rename_all_fields = "camelCase", tag = "measure")]
enum WrittenMeasure<'a> {
    /// Let fewer nodes have Peers, wherever a source has more than so many.
    SelectNodes {
        /// The files of these sources.
        sources: &'a [String],
        /// How many Peers are left of each.
        left: usize,
        /// How many the largest has.
        of: usize,
    },
    /// Leave out the nodes' own addresses.
    LeaveOutAddresses {
        /// How many there are.
        addresses: usize,
    },
    /// Give one range for those that lie side by side.
    Aggregate {
        /// How many ranges are then fewer.
        fewer: usize,
    },
    /// Make several clusters of a source, of which this one sees one.
    SplitSource {
        /// The file of the source.
        source: &'a str,
        /// Into how many.
        parts: usize,
    },
    /// Make several clusters of this one.
    SplitTarget {
        /// Into how many.
        parts: usize,
        /// How many sources they share.
        sources: usize,
    },
    /// Let Peers come a few at a time.
    Waves {
        /// How many at a time.
        peers: usize,
        /// In how many waves.
        waves: usize,
    },
}

/// Returns the object.
pub(super) fn text(costs: &[Cost]) -> serde_json::Result<String> {
    let mut text = serde_json::to_string_pretty(&Written {
        api_version: API_VERSION,
        kind: KIND,
        targets: costs.iter().map(target).collect(),
    })?;
    text.push('\n');
    Ok(plain_json(text))
}

/// Returns the JSON Schema of the object.
pub(crate) fn schema() -> Schema {
    schema::of_output::<Written>()
}

/// A plan of one cluster.
fn example() -> Value {
    json!({
        "apiVersion": API_VERSION,
        "kind": KIND,
        "targets": [{
            "cluster": "east",
            "grade": "warning",
            "quantities": [{
                "name": "applySeconds",
                "value": 24.414_063,
                "formula": "seconds for a rule squared × R²",
                "worked": "2.5 µs × 3,125²",
                "grade": "warning",
                "limits": { "notice": 1, "warning": 5, "error": 30 },
            }],
            "change": { "added": 0, "changed": 0, "removed": 0, "seconds": 0 },
            "levers": [{
                "measure": "SelectNodes",
                "sources": ["prod--west"],
                "left": 300,
                "of": 750,
                "ranges": [1_500, 600],
                "seconds": [24.414_063, 4.389_063],
            }],
        }],
    })
}

/// Returns a number without a fraction where it has none, and else to the microsecond.
fn number(value: f64) -> Number {
    let rounded = (value * 1e6).round() / 1e6;
    let text = format!("{rounded}");
    // What no JSON can say, such as infinity, is not among these.
    text.parse().unwrap_or_else(|_| Number::from(0))
}

fn target(cost: &Cost) -> WrittenTarget<'_> {
    let busy = cost
        .estimates
        .iter()
        .find(|it| it.quantity == Quantity::WaveSeconds);
    WrittenTarget {
        cluster: &cost.cluster,
        grade: grade(cost.grade()),
        quantities: cost.estimates.iter().map(estimate).collect(),
        change: WrittenChange {
            added: cost.wave.added,
            changed: cost.wave.changed,
            removed: cost.wave.removed,
            seconds: number(busy.map_or(0.0, |it| it.value)),
        },
        levers: cost.levers.iter().map(lever).collect(),
    }
}

fn estimate(estimate: &Estimate) -> WrittenEstimate<'_> {
    WrittenEstimate {
        name: estimate.quantity.key(),
        value: number(estimate.value),
        formula: estimate.formula,
        worked: &estimate.worked,
        grade: grade(estimate.grade),
        limits: WrittenSteps {
            notice: estimate.steps.notice,
            warning: estimate.steps.warning,
            error: estimate.steps.error,
        },
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

fn lever(lever: &Lever) -> WrittenLever<'_> {
    let Effect { ranges, seconds } = lever.effect;
    WrittenLever {
        measure: measure(&lever.measure),
        ranges: [ranges.0, ranges.1],
        seconds: [seconds.0, seconds.1].map(number),
    }
}

fn measure(measure: &Measure) -> WrittenMeasure<'_> {
    match measure {
        Measure::SelectNodes { sources, left, of } => WrittenMeasure::SelectNodes {
            sources,
            left: *left,
            of: *of,
        },
        Measure::LeaveOutAddresses { ranges } => {
            WrittenMeasure::LeaveOutAddresses { addresses: *ranges }
        }
        Measure::Aggregate { fewer } => WrittenMeasure::Aggregate { fewer: *fewer },
        Measure::SplitSource { source, parts } => WrittenMeasure::SplitSource {
            source,
            parts: *parts,
        },
        Measure::SplitTarget { parts, sources } => WrittenMeasure::SplitTarget {
            parts: *parts,
            sources: *sources,
        },
        Measure::Waves { peers, waves } => WrittenMeasure::Waves {
            peers: *peers,
            waves: *waves,
        },
    }
}
