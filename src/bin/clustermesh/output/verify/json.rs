//! A verification as an object for programs, in a form of its own that is versioned.

use clustermesh::diagnostic::{escaped, plain_json};
use clustermesh::proof::expectation::Check;
use clustermesh::proof::fabric::At;
use clustermesh::proof::verify::{Failure, Pairing, Tally};
use serde_json::{Value, json};

use super::Verified;
use crate::output::json::{API_VERSION, written};

mod expected;
mod hostile;

/// How much of a name is told, in characters.
const NAMED: usize = 300;

/// Returns the object.
pub(super) fn text(verified: &Verified) -> serde_json::Result<String> {
    let Verified {
        verification,
        findings,
        files,
        ..
    } = verified;
    let findings = findings.iter().map(|it| written(it, files));
    let object = json!({
        "apiVersion": API_VERSION,
        "kind": "Verification",
        "holds": verification.holds() && verified.checks.iter().all(Check::holds),
        "total": tally(&verification.total()),
        "pairings": verification.pairings.iter().map(|it| verified.pairing(it)).collect::<Value>(),
        "failures": verification.failures.iter().map(|it| verified.failure(it)).collect::<Value>(),
        "singlePoints": verification.single_points.iter().map(|it| json!({
            "node": verified.node(it.at),
            "ranges": it.ranges.iter().map(ToString::to_string).collect::<Vec<_>>(),
            "members": it.members.iter().map(|&node| verified.node(At { node, ..it.at })).collect::<Value>(),
            "for": it.viewers.iter().map(|&it| verified.cluster(it)).collect::<Value>(),
        })).collect::<Value>(),
        "apart": verification.apart.iter().map(|it| verified.node(*it)).collect::<Value>(),
        "expectations": expected::written(verified)?,
        "hostile": hostile::written(verified),
        "findings": findings.collect::<Vec<_>>(),
    });
    let mut text = serde_json::to_string_pretty(&object)?;
    text.push('\n');
    Ok(plain_json(text))
}

fn tally(tally: &Tally) -> Value {
    json!({
        "promised": tally.promised,
        "kept": tally.kept,
        "others": tally.others,
        "reached": tally.reached,
    })
}

impl Verified<'_> {
    fn cluster(&self, site: usize) -> Value {
        let site = self.fabric.site(site);
        json!(site.map(|it| it.cluster.as_str()))
    }

    fn node(&self, at: At) -> Value {
        let name = self.fabric.node(at).map(|it| escaped(&it.name, NAMED));
        json!({ "cluster": self.cluster(at.site), "node": name })
    }

    fn pairing(&self, pairing: &Pairing) -> Value {
        let classes = pairing.tallies.iter().map(|((from, to), it)| {
            let mut class = tally(it);
            class["from"] = json!(from.to_string());
            class["to"] = json!(to.to_string());
            class
        });
        json!({
            "from": self.cluster(pairing.from),
            "to": self.cluster(pairing.to),
            "linked": pairing.is_linked,
            "classes": classes.collect::<Value>(),
        })
    }

    fn failure(&self, failure: &Failure) -> Value {
        let packet = &failure.trace.packet;
        let between = failure.between.iter();
        let between = between.map(|&(from, to)| json!([self.cluster(from), self.cluster(to)]));
        json!({
            "verdict": failure.trace.verdict(),
            "from": self.node(packet.from),
            "source": packet.source,
            "to": self.cluster(packet.to.site()),
            "destination": packet.destination,
            "pairs": failure.pairs,
            "between": between.collect::<Value>(),
        })
    }
}
