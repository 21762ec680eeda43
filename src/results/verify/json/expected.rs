//! Expectations of a verification as objects for programs.

use crate::diagnostic::escaped;
use crate::expectations::Expected;
use crate::proof::expectation::Check;
use crate::report::json::JsonDocument;
use crate::results::findings::json::{WrittenPlace, bare_place};
use crate::results::trace::TraceResult;
use schemars::JsonSchema;
use serde::Serialize;
use serde_json::{Value, json};

use super::{NAMED, Verified, WrittenNode, each};

/// The result of an expectation.
#[derive(JsonSchema, Serialize)]
#[schemars(rename = "Expectation")]
#[serde(rename_all = "camelCase")]
pub struct WrittenExpectationResult {
    /// Its name, if it has one.
    #[serde(skip_serializing_if = "Option::is_none")]
    name: Option<String>,
    /// Its place in the file.
    #[schemars(with = "WrittenPlace")]
    place: Value,
    /// The expected result.
    expect: WrittenResultExpected,
    /// Whether all its packets have the expected result, and there is at least one.
    pub holds: bool,
    /// The number of paths that it matches, between nodes and ranges that it names.
    pairs: u64,
    /// The number of paths that break it.
    broken: u64,
    /// The number of paths of `Reach` that fail because of what a few nodes report, or because a few nodes are left out.
    /// They do not break it.
    excused: u64,
    /// The smallest packet that breaks it, in the format of `clustermesh trace`.
    #[schemars(with = "Option<JsonDocument<TraceResult>>")]
    #[serde(skip_serializing_if = "Option::is_none")]
    counterexample: Option<Value>,
    /// The effect of losses of single nodes on its paths; only with `survives`.
    #[serde(skip_serializing_if = "Option::is_none")]
    survival: Option<WrittenSurvival>,
}

/// The effect of losses of single nodes on the paths of an expectation.
#[derive(JsonSchema, Serialize)]
#[serde(rename_all = "camelCase")]
struct WrittenSurvival {
    /// The nodes whose loss ends paths of others, the one that ends most first.
    nodes: Vec<WrittenNode>,
    /// The number of paths that end without the first of them.
    ended: u64,
    /// The sender and the receiver of one of these: `CLUSTER/NODE`, or `CLUSTER/RANGE`.
    #[serde(skip_serializing_if = "Option::is_none")]
    example: Option<[String; 2]>,
    /// The nodes of which it is not known.
    not_examined: Vec<WrittenNode>,
    /// The number of paths of which it is not known, because only some of their addresses work.
    partial: u64,
}

/// The expected result.
#[derive(JsonSchema, Serialize)]
#[schemars(rename = "Expected")]
enum WrittenResultExpected {
    /// All packets and their answers arrive.
    Reach,
    /// No packet arrives.
    Deny,
}

/// Returns every expectation, in the order of the file.
pub(super) fn written(verified: &Verified) -> serde_json::Result<Vec<WrittenExpectationResult>> {
    let checks = verified.checks.iter();
    checks.map(|check| one(verified, check)).collect()
}

fn one(verified: &Verified, check: &Check) -> serde_json::Result<WrittenExpectationResult> {
    let expectation = check.expectation;
    let shown = check.counterexample.as_ref().and_then(|it| verified.traced(it));
    Ok(WrittenExpectationResult {
        name: expectation.name.as_ref().map(|it| escaped(it, NAMED)),
        place: json!(bare_place(&expectation.place, "", verified.files)),
        expect: match expectation.expected {
            Expected::Reach => WrittenResultExpected::Reach,
            Expected::Deny => WrittenResultExpected::Deny,
        },
        holds: check.holds(),
        pairs: check.pairs,
        broken: check.broken,
        excused: check.excused,
        counterexample: shown.map(|it| serde_json::to_value(JsonDocument::of(it))).transpose()?,
        survival: check.survival.as_ref().map(|it| WrittenSurvival {
            nodes: each(&it.nodes, |it| verified.node(*it)),
            ended: it.ended,
            example: it.example.clone(),
            not_examined: each(&it.unexamined, |it| verified.node(*it)),
            partial: it.partial,
        }),
    })
}
