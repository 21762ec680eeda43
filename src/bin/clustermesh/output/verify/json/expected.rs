//! Expectations of a verification as objects for programs.

use clustermesh::diagnostic::{Label, escaped};
use clustermesh::expectations::Expected;
use clustermesh::proof::expectation::Check;
use schemars::JsonSchema;
use serde::Serialize;
use serde_json::{Value, json};

use super::{NAMED, Verified};
use crate::output::json::{WrittenPlace, place};
use crate::output::trace::{Written as WrittenTrace, value};

/// What came of an expectation.
#[derive(JsonSchema, Serialize)]
#[schemars(rename = "Expectation")]
#[serde(rename_all = "camelCase")]
pub(super) struct Written {
    /// What it is called, if anything.
    #[schemars(with = "&str")]
    #[serde(skip_serializing_if = "Option::is_none")]
    name: Option<String>,
    /// Where it is written.
    #[schemars(with = "WrittenPlace")]
    place: Value,
    /// What is to become of the packets that it is about.
    expect: WrittenExpected,
    /// Whether that becomes of all of them, and there are any.
    holds: bool,
    /// How many pairs it is about, of an owner or a range that it names each.
    pairs: u64,
    /// How many of them break it.
    broken: u64,
    /// The smallest packet that does, as `clustermesh trace` tells it.
    #[schemars(with = "WrittenTrace")]
    #[serde(skip_serializing_if = "Option::is_none")]
    counterexample: Option<Value>,
}

/// What is to become of packets.
#[derive(JsonSchema, Serialize)]
#[schemars(rename = "Expected")]
enum WrittenExpected {
    /// All of them arrive, and so do their answers.
    Reach,
    /// None of them arrives.
    Deny,
}

/// Returns every expectation, in the order of the file.
pub(super) fn written(verified: &Verified) -> serde_json::Result<Vec<Written>> {
    let checks = verified.checks.iter();
    checks.map(|check| one(verified, check)).collect()
}

fn one(verified: &Verified, check: &Check) -> serde_json::Result<Written> {
    let expectation = check.expectation;
    let label = Label {
        place: expectation.place.clone(),
        text: String::new(),
    };
    let shown = check.counterexample.as_ref();
    let shown = shown.and_then(|it| verified.traced(it));
    Ok(Written {
        name: expectation.name.as_ref().map(|it| escaped(it, NAMED)),
        place: json!(place(&label, verified.files)),
        expect: match expectation.expected {
            Expected::Reach => WrittenExpected::Reach,
            Expected::Deny => WrittenExpected::Deny,
        },
        holds: check.holds(),
        pairs: check.pairs,
        broken: check.broken,
        counterexample: shown.as_ref().map(value).transpose()?,
    })
}
