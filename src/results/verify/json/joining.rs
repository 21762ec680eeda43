//! A verification with the clusters that join, as an object for programs.

use crate::joining::Joiner;
use crate::proof::verify::Tally;
use crate::results::findings::json::{WrittenFinding, written as finding};
use schemars::JsonSchema;
use serde::Serialize;

use super::expected::{self, WrittenExpectationResult};
use super::{WrittenAssumption, WrittenFailure, WrittenPairing, each};
use crate::results::verify::JoinVerification;

/// The result if clusters with `state: Joining` were joined.
#[derive(JsonSchema, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct WrittenJoining {
    /// The clusters that join.
    clusters: Vec<Joiner>,
    /// Whether all declared paths and expectations would hold and nothing else would be reachable
    /// where it must not be.
    holds: bool,
    /// The sum of all pairs of clusters.
    total: Tally,
    /// All ordered pairs of clusters.
    pairings: Vec<WrittenPairing>,
    /// Declared paths that would fail.
    failures: Vec<WrittenFailure>,
    /// Conditions that no snapshot shows and on which declared paths would depend.
    assumptions: Vec<WrittenAssumption>,
    /// The results of the expectations.
    expectations: Vec<WrittenExpectationResult>,
    /// The findings that there are not without these clusters.
    findings: Vec<WrittenFinding>,
}

/// Returns the object; nothing if no cluster could join now.
pub(super) fn written(outlook: &JoinVerification) -> Option<serde_json::Result<WrittenJoining>> {
    let verified = outlook.verified.as_ref()?;
    let verification = verified.verification;
    let findings = verified.findings.iter();
    let expectations = expected::written(verified);
    Some(expectations.map(|expectations| WrittenJoining {
        clusters: outlook.joiners.to_vec(),
        holds: verified.holds(),
        total: verification.total(),
        pairings: each(&verification.pairings, |it| verified.pairing(it)),
        failures: each(&verification.failures, |it| verified.failure(it)),
        assumptions: each(&verification.assumptions, |it| verified.assumption(it)),
        expectations,
        findings: findings.map(|it| finding(it, verified.files)).collect(),
    }))
}
