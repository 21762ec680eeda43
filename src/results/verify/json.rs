//! A verification as an object for programs, in a form of its own that is versioned.

use std::collections::{BTreeMap, BTreeSet};
use std::net::IpAddr;

use crate::agent::fabric::{DialPremise, NodeRef, SiteId, SitePair};
use crate::diagnostic::escaped;
use crate::joining::Joiner;
use crate::mesh::AddressClass;
use crate::net::Family;
use crate::packet::premise::Premise;
use crate::proof::expectation::Check;
use crate::proof::verify::{Assumption, Failure, Pairing, SinglePoint, Tally};
use crate::results::findings::json::{WrittenFinding, each, findings_with_lines};
use crate::schema::ExampleFile;
use schemars::JsonSchema;
use serde::Serialize;

use super::{Verified, services};

/// The most failures of one verdict, and findings of one rule, that are listed.
const LISTED: usize = 100;

mod expected;
mod hostile;
mod joining;
mod undeclared;

pub(super) use undeclared::PathSide;

/// The longest part of a name that is shown, in characters.
const NAMED: usize = 300;

/// The output of `clustermesh verify --output json`. Later versions may add fields.
#[derive(JsonSchema, Serialize)]
#[schemars(rename = "Verification", example = ExampleFile(include_str!("json/example.json")))]
#[serde(rename_all = "camelCase")]
pub struct WrittenVerification {
    /// Whether no snapshot is missing, all declared paths and expectations hold, nothing else is
    /// reachable where it must not be, and no finding makes the exit code 1. Assumed paths count as
    /// holding.
    pub holds: bool,
    /// The sum of all pairs of clusters.
    pub total: Tally,
    /// All ordered pairs of clusters.
    pub pairings: Vec<WrittenPairing>,
    /// Declared paths that fail, one entry for each cause, those with the most paths first.
    pub failures: Vec<WrittenFailure>,
    /// Conditions that no snapshot shows and on which declared paths depend, those with the most
    /// paths first.
    pub assumptions: Vec<WrittenAssumption>,
    /// Nodes whose loss cuts a path until their cluster is rendered again.
    pub single_points: Vec<WrittenPoint>,
    /// Nodes without any declared path, because Kilo ignores them or they are not selected.
    pub apart: Vec<WrittenNode>,
    /// Clusters whose entries advertise neither WireGuard addresses nor internal IPs of nodes, by name.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub without_node_addresses: Vec<String>,
    /// Paths that work although no mesh declares them, by range; only with `--undeclared`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub undeclared: Option<Vec<undeclared::WrittenUndeclaredPaths>>,
    /// Undeclared paths that work although the expectations forbid them, by class of both ends.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub unallowed: Vec<undeclared::WrittenUnallowed>,
    /// Addresses of no node to which packets are sent, by the node that gets them; only with `--undeclared`.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub unowned: Vec<undeclared::WrittenUnowned>,
    /// The results of the expectations, in the order of the file.
    pub expectations: Vec<expected::WrittenExpectationResult>,
    /// The Services that clusters get of others.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub services: Vec<services::WrittenService>,
    /// The powers of the clusters of `--assume-hostile`.
    pub hostile: Vec<hostile::WrittenHostile>,
    /// The results as findings, the most severe first, but `outdated-tree` before all others.
    pub findings: Vec<WrittenFinding>,
    /// The numbers of failures and findings beyond the first 100 of each verdict and rule, which are not listed.
    #[serde(skip_serializing_if = "Omitted::is_empty")]
    pub omitted: Omitted,
    /// The result if all clusters with `state: Joining` that have a snapshot were joined. It affects
    /// neither `holds` nor the exit code.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub joining: Option<joining::WrittenJoining>,
    /// Clusters with `state: Joining` that are not verified before they have a snapshot.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub waiting: Vec<Joiner>,
}

/// The numbers of what is not listed.
#[derive(Default, JsonSchema, Serialize)]
#[schemars(rename = "OmittedResults")]
pub struct Omitted {
    /// Of the failures.
    pub failures: usize,
    /// Of the findings.
    pub findings: usize,
}

impl WrittenVerification {
    /// Returns it with the first failures of each verdict and the first findings of each rule.
    #[must_use]
    pub(super) fn bounded(mut self) -> Self {
        self.omitted = Omitted {
            failures: keep_first(&mut self.failures, |it| it.verdict),
            findings: keep_first(&mut self.findings, |it| it.finding.rule),
        };
        self
    }
}

impl Omitted {
    fn is_empty(&self) -> bool {
        self.failures + self.findings == 0
    }
}

/// Keeps the first things of each kind, and returns the number of the others.
fn keep_first<T, K: Ord>(all: &mut Vec<T>, kind: impl Fn(&T) -> K) -> usize {
    let found = all.len();
    let mut counts: BTreeMap<K, usize> = BTreeMap::new();
    all.retain(|it| {
        let count = counts.entry(kind(it)).or_default();
        *count += 1;
        *count <= LISTED
    });
    found - all.len()
}

/// Paths from one cluster to another.
#[derive(JsonSchema, Serialize)]
pub struct WrittenPairing {
    /// The cluster that sends.
    pub from: String,
    /// The receiver.
    pub to: String,
    /// Whether a mesh links the two.
    pub linked: bool,
    /// The paths by class of source and destination.
    pub classes: Vec<WrittenClasses>,
}

/// Paths between two classes.
#[derive(JsonSchema, Serialize)]
pub struct WrittenClasses {
    /// The class of a source.
    pub from: AddressClass,
    /// The class of the destination.
    pub to: AddressClass,
    /// Their numbers.
    #[serde(flatten)]
    pub tally: Tally,
}

/// Declared paths that fail for the same cause.
#[derive(JsonSchema, Serialize)]
pub struct WrittenFailure {
    /// The result for the packet; `clustermesh explain VERDICT` explains it.
    #[schemars(example = &"stolen-by")]
    pub verdict: &'static str,
    /// The node that sends the smallest packet that fails.
    pub from: WrittenNode,
    /// The source address.
    pub source: IpAddr,
    /// The destination cluster.
    pub to: String,
    /// The destination address.
    pub destination: IpAddr,
    /// The number of paths that fail.
    pub pairs: u64,
    /// The clusters, each pair as sender and receiver.
    pub between: Vec<[String; 2]>,
}

/// Declared paths that depend on a condition that no snapshot shows.
#[derive(JsonSchema, Serialize)]
pub struct WrittenAssumption {
    /// The condition.
    pub premise: WrittenPremise,
    /// The nodes that must meet the condition.
    pub nodes: Vec<WrittenNode>,
    /// The number of paths that depend on it.
    pub pairs: u64,
    /// The clusters, each pair as sender and receiver.
    pub between: Vec<[String; 2]>,
}

/// The condition.
#[derive(JsonSchema, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum WrittenPremise {
    /// Packets of pods on the nodes keep their source: with an address of the node they are lost, or arrive only with it.
    Source,
    /// The pods of the nodes have addresses of their pod CIDRs, although annotations of the nodes show others.
    Pods,
    /// The nodes have IPv4 addresses.
    Ipv4,
    /// The nodes have IPv6 addresses.
    Ipv6,
    /// The nodes have a route to a range that they carry, although it is on the LAN of another
    /// node, or in a network that no node shows.
    Route,
    /// An endpoint that is not the address of any node leads to the other side.
    Endpoint,
    /// The nodes can dial private endpoints, in a network that no `underlays` of the mesh name.
    Private,
    /// An endpoint whose address another node has leads to the other side.
    Claimed,
    /// A name of which `endpointDomains` lists only a suffix is that of the other side.
    Name,
    /// Kilo does not encapsulate packets to the pods of the nodes, over whose LAN a Peer has a range.
    Unencapsulated,
    /// A network plugin has the routes between the nodes and their leaders, because other nodes have the same addresses.
    Plugin,
}

impl WrittenPremise {
    /// Returns the condition as a clause.
    pub fn words(&self) -> &'static str {
        match self {
            Self::Source => "a network plugin keeps the addresses of pods on the nodes",
            Self::Pods => "the pods of the nodes have addresses of their pod CIDRs",
            Self::Ipv4 => "the nodes have IPv4 addresses",
            Self::Ipv6 => "the nodes have IPv6 addresses",
            Self::Route => "the nodes have a route to a range that they carry",
            Self::Endpoint => {
                "an endpoint that is not the address of any node leads to the cluster"
            }
            Self::Private => {
                "the nodes can dial private endpoints, in a network that no `underlays` of the mesh name"
            }
            Self::Claimed => "an endpoint whose address another node has leads to the cluster",
            Self::Name => {
                "a name of which `endpointDomains` lists only a suffix is that of the cluster"
            }
            Self::Unencapsulated => "Kilo does not encapsulate packets to the pods of the nodes",
            Self::Plugin => "a network plugin has the routes between the nodes and their leaders",
        }
    }
}

/// A node whose loss cuts a path.
#[derive(JsonSchema, Serialize)]
#[schemars(rename = "SinglePoint")]
pub struct WrittenPoint {
    /// The node.
    pub node: WrittenNode,
    /// Declared ranges that only this node carries.
    pub ranges: Vec<String>,
    /// Nodes whose pods are reached only through this node.
    pub members: Vec<WrittenNode>,
    /// The clusters that can no longer reach them.
    #[serde(rename = "for")]
    pub viewers: Vec<String>,
}

/// A node.
#[derive(JsonSchema, Serialize)]
pub struct WrittenNode {
    /// The cluster.
    pub cluster: String,
    /// Its name.
    pub node: String,
}

/// Returns the object.
///
/// # Errors
/// Never, as every packet can be written.
pub fn written(verified: &Verified) -> serde_json::Result<WrittenVerification> {
    let verification = verified.verification;
    Ok(WrittenVerification {
        holds: verified.holds(),
        total: verification.total(),
        pairings: each(&verification.pairings, |it| verified.pairing(it)),
        failures: each(&verification.failures, |it| verified.failure(it)),
        assumptions: each(&verification.assumptions, |it| verified.assumption(it)),
        single_points: each(&verification.single_points, |it| verified.point(it)),
        apart: each(&verification.apart, |it| verified.node(*it)),
        without_node_addresses: each(&verified.keeping_nodes, ToString::to_string),
        undeclared: verification
            .undeclared
            .as_ref()
            .map(|all| each(all, |it| verified.undeclared(it))),
        unallowed: each(&verification.unallowed, |it| verified.unallowed(it)),
        unowned: each(&verification.unowned, |it| verified.written_unowned(it)),
        expectations: expected::written(verified)?,
        services: verified.written_services(),
        hostile: hostile::written(verified),
        findings: findings_with_lines(&verified.report(), LISTED),
        omitted: Omitted::default(),
        joining: verified.joining.and_then(joining::written).transpose()?,
        waiting: verified.joining.map_or_else(Vec::new, |it| it.waiting.to_vec()),
    })
}

impl Verified<'_, '_> {
    fn holds(&self) -> bool {
        self.is_passed
            && self.unchecked == 0
            && self.verification.holds()
            && self.checks.iter().all(Check::holds)
    }

    pub(super) fn cluster(&self, site: SiteId) -> String {
        self.fabric.site(site).cluster.to_string()
    }

    fn between(&self, between: &BTreeSet<SitePair>) -> Vec<[String; 2]> {
        each(between, |it| it.both().map(|it| self.cluster(it)))
    }

    fn node(&self, at: NodeRef) -> WrittenNode {
        let name = &self.fabric.node(at).kilo.name;
        WrittenNode { cluster: self.cluster(at.site), node: escaped(name, NAMED) }
    }

    fn pairing(&self, pairing: &Pairing) -> WrittenPairing {
        let classes =
            pairing.tallies.iter().map(|((from, to), it)| WrittenClasses { from, to, tally: *it });
        WrittenPairing {
            from: self.cluster(pairing.from),
            to: self.cluster(pairing.to),
            linked: pairing.is_linked,
            classes: classes.collect(),
        }
    }

    fn failure(&self, failure: &Failure) -> WrittenFailure {
        let packet = &failure.trace.packet;
        WrittenFailure {
            verdict: failure.trace.verdict_name(),
            from: self.node(packet.from),
            source: packet.source,
            to: self.cluster(packet.to.site()),
            destination: packet.destination,
            pairs: failure.pairs,
            between: self.between(&failure.between),
        }
    }

    fn assumption(&self, assumption: &Assumption) -> WrittenAssumption {
        WrittenAssumption {
            premise: match assumption.premise {
                Premise::Masqueraded(_) => WrittenPremise::Source,
                Premise::Pods(_) => WrittenPremise::Pods,
                Premise::Dial(it) => match it.premise {
                    DialPremise::Private => WrittenPremise::Private,
                    DialPremise::Claimed => WrittenPremise::Claimed,
                    DialPremise::Family(Family::V4) => WrittenPremise::Ipv4,
                    DialPremise::Family(Family::V6) => WrittenPremise::Ipv6,
                    DialPremise::Stranger => WrittenPremise::Endpoint,
                    DialPremise::Name => WrittenPremise::Name,
                },
                Premise::Distant(_) | Premise::Route(_) => WrittenPremise::Route,
                Premise::Unencapsulated(_) => WrittenPremise::Unencapsulated,
                Premise::Plugin(_) => WrittenPremise::Plugin,
            },
            nodes: each(&assumption.nodes, |it| self.node(*it)),
            pairs: assumption.pairs,
            between: self.between(&assumption.between),
        }
    }

    fn point(&self, point: &SinglePoint) -> WrittenPoint {
        WrittenPoint {
            node: self.node(point.at),
            ranges: each(&point.ranges, ToString::to_string),
            members: each(&point.members, |&node| self.node(NodeRef { node, ..point.at })),
            viewers: each(&point.viewers, |&it| self.cluster(it)),
        }
    }
}
