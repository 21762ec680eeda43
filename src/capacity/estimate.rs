//! Estimates: a value for each quantity, how it comes about, and how severe it is.

use schemars::JsonSchema;
use serde::{Serialize, Serializer};

use super::load::Load;
use super::time::{Applies, apply, rules_within};
use super::units::{count, float, nanoseconds, seconds, written_number};
use crate::config::Capacity;
use crate::config::capacity::{Quantity, Steps};
use crate::diagnostic::Severity;

/// A quantity and its value.
#[derive(Clone, Debug, JsonSchema, PartialEq, Serialize)]
#[schemars(rename = "Quantity")]
pub struct Estimate {
    /// The name, as in `limits.capacity` of the config.
    #[schemars(with = "&str", example = &"applySeconds")]
    #[serde(rename = "name")]
    pub quantity: Quantity,
    /// The value: a count, bytes or seconds.
    #[serde(serialize_with = "written_number")]
    pub value: f64,
    /// The formula.
    pub formula: &'static str,
    /// The formula with its numbers.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub worked: String,
    /// The grade.
    #[schemars(with = "WrittenGrade")]
    #[serde(serialize_with = "written_grade")]
    pub grade: Option<Severity>,
    /// The thresholds.
    #[serde(rename = "limits")]
    pub steps: Steps,
}

/// The grade of a quantity.
#[derive(JsonSchema)]
#[schemars(rename_all = "lowercase")]
pub enum WrittenGrade {
    /// Within all limits.
    Ok,
    /// Above the notice threshold: worth knowing.
    Notice,
    /// Above the warning threshold: it causes problems.
    Warning,
    /// Above the error threshold: it does not work.
    Error,
}

#[allow(clippy::ref_option, clippy::trivially_copy_pass_by_ref, reason = "serde calls it so")]
pub(super) fn written_grade<S: Serializer>(
    grade: &Option<Severity>,
    serializer: S,
) -> Result<S::Ok, S::Error> {
    grade.map_or("ok", Severity::name).serialize(serializer)
}

/// Returns an estimate for everything that is known of a cluster. Files are omitted if they are not given.
pub fn estimates(load: &Load, capacity: &Capacity) -> Vec<Estimate> {
    let estimate = |&quantity: &Quantity| {
        let Reckoning { value, formula, worked } = work(quantity, load, capacity)?;
        let steps = capacity.steps(quantity);
        Some(Estimate { quantity, value, formula, worked, steps, grade: steps.grade(value) })
    };
    Quantity::ALL.iter().filter_map(estimate).collect()
}

/// Returns the value of a quantity, if it is known without files.
pub fn value(quantity: Quantity, load: &Load, capacity: &Capacity) -> Option<f64> {
    Some(work(quantity, load, capacity)?.value)
}

/// The seconds that Flux needs for a Peer that is up to date: a server-side dry run and a read, at 50 requests a
/// second. 2,450 Peers took 92 s.
const FLUX_SECONDS_PER_PEER: f64 = 2.0 / 50.0;

/// The bytes that a node publishes of a Peer with which it had a handshake, in `discovered-endpoints`: its key and its
/// endpoint in JSON.
const ANNOTATION_BYTES_PER_PEER: usize = 92;

/// A value, and how it comes about.
struct Reckoning {
    value: f64,
    formula: &'static str,
    worked: String,
}

impl Reckoning {
    /// Returns what was counted and needs no sum.
    fn counted(number: usize, formula: &'static str) -> Self {
        Self { value: float(number), formula, worked: String::new() }
    }

    /// Returns what each Peer has so much of.
    fn each(peers: usize, of_each: u64, formula: &'static str) -> Self {
        let of_each = usize::try_from(of_each).unwrap_or(usize::MAX);
        Self::product(of_each, peers, formula)
    }

    fn product(one: usize, other: usize, formula: &'static str) -> Self {
        Self {
            value: float(one) * float(other),
            formula,
            worked: format!("{} × {}", count(one), count(other)),
        }
    }

    /// Returns the seconds for the square of a number.
    fn squared(nanoseconds_each: u64, number: usize, formula: &'static str) -> Option<Self> {
        let of_one = float(usize::try_from(nanoseconds_each).ok()?) / 1e9;
        Some(Self {
            value: of_one * float(number) * float(number),
            formula,
            worked: format!("{} × {}²", nanoseconds(nanoseconds_each), count(number)),
        })
    }

    fn sum(one: usize, other: usize, formula: &'static str) -> Self {
        Self {
            value: float(one + other),
            formula,
            worked: format!("{} + {}", count(one), count(other)),
        }
    }
}

fn work(quantity: Quantity, load: &Load, capacity: &Capacity) -> Option<Reckoning> {
    let costs = &capacity.costs;
    let objects = load.objects();
    Some(match quantity {
        Quantity::Peers => Reckoning::counted(objects, "P: Peers in the manifests"),
        Quantity::Ranges => ranges(load, capacity),
        Quantity::Rules => rules(load),
        Quantity::ApplySeconds => {
            let of_one = costs.nanoseconds_per_squared_rule;
            Reckoning::squared(of_one, load.rules(), "seconds for a rule squared × R²")?
        }
        Quantity::RestartSeconds => restart(load, capacity),
        Quantity::Routes => Reckoning::sum(load.ranges(), load.nodes.routes, "A + routes to nodes"),
        Quantity::ConfigurationBytes => configuration(load),
        Quantity::AnnotationBytes => Reckoning::product(
            ANNOTATION_BYTES_PER_PEER,
            load.peers(),
            "bytes for a Peer with a handshake × P",
        ),
        Quantity::TunnelsPerNode => {
            Reckoning::sum(load.peers(), load.nodes.tunnels, "P + other segments")
        }
        Quantity::Tunnels => Reckoning::product(load.peers(), load.nodes.segments, "P × segments"),
        Quantity::DnsEndpoints => {
            Reckoning::counted(load.names(), "Peers whose endpoint is a name")
        }
        Quantity::StoredBytes => {
            Reckoning::each(objects, costs.stored_bytes_per_peer, "bytes for a Peer × P")
        }
        Quantity::KustomizeSeconds => {
            let of_one = costs.nanoseconds_per_squared_resource;
            Reckoning::squared(of_one, objects, "seconds for a resource squared × P²")?
        }
        Quantity::FluxSeconds => Reckoning {
            value: FLUX_SECONDS_PER_PEER * float(objects),
            formula: "two requests for each Peer, 50 a second",
            worked: format!("2 × {} ⁄ 50", count(objects)),
        },
        Quantity::ApplicationBytes => Reckoning::each(
            objects,
            costs.application_bytes_per_peer,
            "bytes for a Peer in status and sync result × P",
        ),
        Quantity::InventoryBytes => {
            Reckoning::each(objects, costs.inventory_bytes_per_peer, "bytes for a Peer × P")
        }
        Quantity::FileBytes => Reckoning::counted(load.files?.largest, "the largest file"),
        Quantity::DirectoryEntries => {
            Reckoning::counted(load.files?.entries, "a file for each source, and a kustomization")
        }
    })
}

fn rules(load: &Load) -> Reckoning {
    Reckoning {
        value: float(load.rules()),
        formula: "R = 2 A + Σ over segments (1 + their allowed IPs) + own forward rules + 3",
        worked: format!("2 × {} + {}", count(load.ranges()), load.nodes.rules_text()),
    }
}

/// Describes how many are possible, which depends on the cluster's own nodes.
fn ranges(load: &Load, capacity: &Capacity) -> Reckoning {
    let mut room = Vec::new();
    for (_, step) in capacity.steps(Quantity::ApplySeconds).all() {
        let step = step.and_then(|it| Some((it, usize::try_from(it).ok()?)));
        let within = step.and_then(|(exact, step)| {
            let rules = rules_within(float(step), &capacity.costs);
            Some((exact, load.nodes.ranges_within(rules)?))
        });
        if let Some((step, ranges)) = within.filter(|(_, ranges)| *ranges < usize::MAX / 4) {
            room.push(format!("{step} s with {}", count(ranges)));
        }
    }
    Reckoning {
        value: float(load.ranges()),
        formula: "A: distinct allowed IPs of all Peers",
        worked: if room.is_empty() {
            String::new()
        } else {
            format!("a change takes {}", room.join(", "))
        },
    }
}

fn restart(load: &Load, capacity: &Capacity) -> Reckoning {
    let applies = Applies { times: load.peers(), before: 0, after: load.ranges() };
    Reckoning {
        value: applies.seconds(&load.nodes, &capacity.costs),
        formula: "Σ over Peers of one apply with the Peers before it",
        worked: format!(
            "{} applies, from 0 s to {}",
            count(load.peers()),
            seconds(apply(load.rules(), &capacity.costs))
        ),
    }
}

fn configuration(load: &Load) -> Reckoning {
    let nodes = load.nodes.bytes;
    let bytes = load.configuration_bytes();
    Reckoning {
        value: float(bytes),
        formula: "its text: interface, other segments, Peers",
        worked: format!("{} + {} for Peers", count(nodes), count(bytes - nodes)),
    }
}
