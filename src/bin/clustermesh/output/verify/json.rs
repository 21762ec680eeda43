//! A verification as an object for programs, in a form of its own that is versioned.

use std::net::IpAddr;

use clustermesh::agent::network::{At, SiteId};
use clustermesh::diagnostic::{escaped, plain_json};
use clustermesh::net::Family;
use clustermesh::packet::premise::Premise;
use clustermesh::packet::trace::Class;
use clustermesh::proof::expectation::Check;
use clustermesh::proof::verify::{Assumption, Failure, Pairing, SinglePoint, Tally};
use clustermesh::schema;
use schemars::{JsonSchema, Schema};
use serde::Serialize;
use serde_json::{Value, json};

use super::{Verified, undeclared};
use crate::output::json::{API_VERSION, WrittenFinding, written};

mod expected;
mod hostile;

/// The kind of the object.
const KIND: &str = "Verification";

/// How much of a name is told, in characters.
const NAMED: usize = 300;

/// What `clustermesh verify --output json` found. A later version of this program may add fields.
#[derive(JsonSchema, Serialize)]
#[schemars(rename = "Verification", example = example())]
#[serde(rename_all = "camelCase")]
struct Written<'a> {
    /// The version of this format.
    #[schemars(extend("const" = API_VERSION))]
    api_version: &'static str,
    /// The kind of this document.
    #[schemars(extend("const" = KIND))]
    kind: &'static str,
    /// Whether everything that is promised or expected holds, and nothing else does. What is assumed
    /// counts as holding; what is hostile is not counted.
    holds: bool,
    /// The sum of all pairs.
    total: WrittenTally,
    /// Every ordered pair of clusters.
    pairings: Vec<WrittenPairing>,
    /// What is promised and does not hold, one for each cause, the widest first.
    failures: Vec<WrittenFailure>,
    /// What is promised and holds only if something is so that no snapshot shows, one for each kind, the
    /// widest first.
    assumptions: Vec<WrittenAssumption>,
    /// Nodes without which something is cut until somebody does something.
    single_points: Vec<WrittenPoint>,
    /// Nodes that promise nothing, since Kilo does not count them or they give nothing to anyone.
    apart: Vec<WrittenNode>,
    /// What works although no mesh declares it, by range; only with `--undeclared`.
    #[schemars(with = "Vec<undeclared::Written>")]
    #[serde(skip_serializing_if = "Option::is_none")]
    undeclared: Option<Vec<undeclared::Written>>,
    /// What came of the expectations, in the order of the file.
    expectations: Vec<expected::Written>,
    /// What clusters could do that somebody takes for hostile.
    hostile: Vec<hostile::Written>,
    /// All of it as findings, the gravest first.
    findings: Vec<WrittenFinding<'a>>,
}

/// How many pairs there are, of a node or a range that is declared for all each.
#[derive(JsonSchema, Serialize)]
#[schemars(rename = "Tally")]
struct WrittenTally {
    /// Pairs that a link promises.
    promised: u64,
    /// Those of them that hold there and back.
    kept: u64,
    /// Those of them that hold only if something is so that no snapshot shows; `kept` does not count
    /// them.
    assumed: u64,
    /// Pairs that nobody promised.
    others: u64,
    /// Those of them that hold all the same.
    reached: u64,
}

/// Packets from one cluster to another.
#[derive(JsonSchema, Serialize)]
#[schemars(rename = "Pairing")]
struct WrittenPairing {
    /// The cluster that sends.
    from: String,
    /// The one that receives.
    to: String,
    /// Whether a mesh links the two.
    linked: bool,
    /// By class of sender and receiver.
    classes: Vec<WrittenClasses>,
}

/// Packets between two classes.
#[derive(JsonSchema, Serialize)]
#[schemars(rename = "Classes")]
struct WrittenClasses {
    /// What sends.
    from: WrittenClass,
    /// What receives.
    to: WrittenClass,
    #[serde(flatten)]
    tally: WrittenTally,
}

/// What sends, or is sent to.
#[derive(JsonSchema, Serialize)]
#[schemars(rename = "Class")]
#[serde(rename_all = "lowercase")]
pub(super) enum WrittenClass {
    /// Pods.
    Pod,
    /// Nodes, and what shares their network.
    Node,
    /// Services.
    Service,
    /// What else a cluster declares as a whole.
    Network,
}

/// A promise that does not hold, and all that fails for the same cause.
#[derive(JsonSchema, Serialize)]
#[schemars(rename = "Failure")]
struct WrittenFailure {
    /// How it ends; `clustermesh explain VERDICT` says what that means.
    #[schemars(example = &"stolen-by")]
    verdict: &'static str,
    /// The node that sends the smallest packet that shows it.
    from: WrittenNode,
    /// The address that it comes from.
    source: IpAddr,
    /// The cluster that it goes to.
    to: String,
    /// The address that it goes to.
    destination: IpAddr,
    /// How many pairs fail so.
    pairs: u64,
    /// Between which clusters: the one that sends, and the one that receives.
    between: Vec<[String; 2]>,
}

/// Promises that hold only if something is so that no snapshot shows.
#[derive(JsonSchema, Serialize)]
#[schemars(rename = "Assumption")]
struct WrittenAssumption {
    /// What must be so.
    premise: WrittenPremise,
    /// The nodes of which it must be so.
    nodes: Vec<WrittenNode>,
    /// How many pairs depend on it.
    pairs: u64,
    /// Between which clusters: the one that sends, and the one that receives.
    between: Vec<[String; 2]>,
}

/// What must be so.
#[derive(JsonSchema, Serialize)]
#[schemars(rename = "Premise")]
#[serde(rename_all = "lowercase")]
enum WrittenPremise {
    /// The nodes have IPv4 addresses.
    Ipv4,
    /// The nodes have IPv6 addresses.
    Ipv6,
    /// The nodes have a route to a range that they carry, although it lies on the LAN of another node.
    Route,
}

/// A node without which something is cut.
#[derive(JsonSchema, Serialize)]
#[schemars(rename = "SinglePoint")]
struct WrittenPoint {
    /// The node.
    node: WrittenNode,
    /// Declared ranges that it alone carries.
    ranges: Vec<String>,
    /// Nodes whose pods are reached through it alone.
    members: Vec<WrittenNode>,
    /// The clusters that lose them.
    #[serde(rename = "for")]
    viewers: Vec<String>,
}

/// A node.
#[derive(JsonSchema, Serialize)]
#[schemars(rename = "Node")]
struct WrittenNode {
    /// The cluster.
    cluster: String,
    /// Its name.
    node: String,
}

/// Returns the object.
pub(super) fn text(verified: &Verified) -> serde_json::Result<String> {
    let verification = verified.verification;
    let report = verified.report();
    let findings = report.findings.iter();
    let written = Written {
        api_version: API_VERSION,
        kind: KIND,
        holds: verification.holds() && verified.checks.iter().all(Check::holds),
        total: tally(&verification.total()),
        pairings: each(&verification.pairings, |it| verified.pairing(it)),
        failures: each(&verification.failures, |it| verified.failure(it)),
        assumptions: each(&verification.assumptions, |it| verified.assumption(it)),
        single_points: each(&verification.single_points, |it| verified.point(it)),
        apart: each(&verification.apart, |it| verified.node(*it)),
        undeclared: verification
            .undeclared
            .as_ref()
            .map(|all| each(all, |it| verified.undeclared(it))),
        expectations: expected::written(verified)?,
        hostile: hostile::written(verified),
        findings: findings.map(|it| written(it, report.files)).collect(),
    };
    let mut text = serde_json::to_string_pretty(&written)?;
    text.push('\n');
    Ok(plain_json(text))
}

/// Returns the JSON Schema of the object.
pub(crate) fn schema() -> Schema {
    schema::of_output::<Written>()
}

/// A verification of two clusters of a node each, of which one does not get through.
fn example() -> Value {
    let half = json!({ "promised": 1, "kept": 0, "assumed": 0, "others": 0, "reached": 0 });
    let classes = |from: &str, to: &str| {
        let mut classes = half.clone();
        classes["from"] = json!("pod");
        classes["to"] = json!("pod");
        json!({ "from": from, "to": to, "linked": true, "classes": [classes] })
    };
    json!({
        "apiVersion": API_VERSION,
        "kind": KIND,
        "holds": false,
        "total": { "promised": 2, "kept": 0, "assumed": 0, "others": 0, "reached": 0 },
        "pairings": [classes("east", "west"), classes("west", "east")],
        "failures": [{
            "verdict": "no-route",
            "from": { "cluster": "west", "node": "worker-1" },
            "source": "10.244.1.0",
            "to": "east",
            "destination": "10.42.1.0",
            "pairs": 1,
            "between": [["west", "east"]],
        }],
        "assumptions": [],
        "singlePoints": [],
        "apart": [],
        "expectations": [],
        "hostile": [],
        "findings": [],
    })
}

fn each<T, U>(all: &[T], write: impl Fn(&T) -> U) -> Vec<U> {
    all.iter().map(write).collect()
}

fn tally(tally: &Tally) -> WrittenTally {
    WrittenTally {
        promised: tally.promised,
        kept: tally.kept,
        assumed: tally.assumed,
        others: tally.others,
        reached: tally.reached,
    }
}

pub(super) fn class(class: Class) -> WrittenClass {
    match class {
        Class::Pod => WrittenClass::Pod,
        Class::Node => WrittenClass::Node,
        Class::Service => WrittenClass::Service,
        Class::Network => WrittenClass::Network,
    }
}

impl Verified<'_, '_> {
    pub(super) fn cluster(&self, site: SiteId) -> String {
        self.fabric.site(site).cluster.to_string()
    }

    fn node(&self, at: At) -> WrittenNode {
        let name = &self.fabric.node(at).kilo.name;
        WrittenNode {
            cluster: self.cluster(at.site),
            node: escaped(name, NAMED),
        }
    }

    fn pairing(&self, pairing: &Pairing) -> WrittenPairing {
        let classes = pairing.tallies.iter();
        let classes = classes.map(|((from, to), it)| WrittenClasses {
            from: class(*from),
            to: class(*to),
            tally: tally(it),
        });
        WrittenPairing {
            from: self.cluster(pairing.from),
            to: self.cluster(pairing.to),
            linked: pairing.is_linked,
            classes: classes.collect(),
        }
    }

    fn failure(&self, failure: &Failure) -> WrittenFailure {
        let packet = &failure.trace.packet;
        let between = failure.between.iter();
        let between = between.map(|&(from, to)| [self.cluster(from), self.cluster(to)]);
        WrittenFailure {
            verdict: failure.trace.verdict(),
            from: self.node(packet.from),
            source: packet.source,
            to: self.cluster(packet.to.site()),
            destination: packet.destination,
            pairs: failure.pairs,
            between: between.collect(),
        }
    }

    fn assumption(&self, assumption: &Assumption) -> WrittenAssumption {
        let nodes = assumption.nodes.iter();
        let between = assumption.between.iter();
        let between = between.map(|&(from, to)| [self.cluster(from), self.cluster(to)]);
        WrittenAssumption {
            premise: match assumption.premise {
                Premise::Family(it) if it.family == Family::V4 => WrittenPremise::Ipv4,
                Premise::Family(_) => WrittenPremise::Ipv6,
                Premise::Distant(_) => WrittenPremise::Route,
            },
            nodes: nodes.map(|it| self.node(*it)).collect(),
            pairs: assumption.pairs,
            between: between.collect(),
        }
    }

    fn point(&self, point: &SinglePoint) -> WrittenPoint {
        let members = point.members.iter();
        let members = members.map(|&node| self.node(At { node, ..point.at }));
        WrittenPoint {
            node: self.node(point.at),
            ranges: point.ranges.iter().map(ToString::to_string).collect(),
            members: members.collect(),
            viewers: point.viewers.iter().map(|&it| self.cluster(it)).collect(),
        }
    }
}
