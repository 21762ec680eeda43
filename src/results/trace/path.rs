//! The path of a packet: its ends, its two ways and their steps.

use std::fmt::Write as _;
use std::net::IpAddr;

use schemars::JsonSchema;
use serde::Serialize;

use crate::agent::fabric::{Fabric, NodeRef};
use crate::diagnostic::escaped;
use crate::mesh::AddressClass;
use crate::packet::trace::NamedEnd;
use crate::packet::{Packet, Step, Way, messages};
use crate::report::width::Width;
use crate::results::findings::json::{WrittenPlace, place};
use crate::results::source_texts::SourceTexts;

/// The longest part of a name that is shown, in characters.
const NAMED: usize = 300;

/// The longest text of a step, in characters.
const SHOWN: usize = 2000;

/// The source or destination of a packet.
#[derive(JsonSchema, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct WrittenEnd {
    /// The cluster.
    cluster: String,
    /// The node that owns the address, if any.
    #[serde(skip_serializing_if = "Option::is_none")]
    node: Option<String>,
    /// The class of the address.
    #[serde(skip_serializing_if = "Option::is_none")]
    class: Option<WrittenTraceClass>,
    /// The address.
    address: IpAddr,
    /// The port that was given. It does not affect the path.
    #[serde(skip_serializing_if = "Option::is_none")]
    port: Option<u16>,
    /// Whether only the cluster was given, and this node was picked.
    #[serde(skip_serializing_if = "Option::is_none")]
    picked: Option<bool>,
}

/// The class of a source or destination.
#[derive(JsonSchema, Serialize)]
#[schemars(rename = "Class")]
#[serde(rename_all = "lowercase")]
enum WrittenTraceClass {
    /// A pod.
    Pod,
    /// A node, including the pods in its host network.
    Node,
    /// A service.
    Service,
    /// Another network that a cluster declares.
    Network,
}

/// The path of a packet.
#[derive(JsonSchema, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct WrittenWay {
    /// The source address.
    source: IpAddr,
    /// The destination address.
    destination: IpAddr,
    /// The result for the packet.
    #[schemars(example = &"delivered")]
    ending: &'static str,
    /// The node on which the packet ends, as `CLUSTER/NODE`, unless it is delivered.
    #[serde(skip_serializing_if = "Option::is_none")]
    ends_at: Option<String>,
    /// The steps, in order.
    steps: Vec<WrittenStep>,
}

/// A step on the path of a packet.
#[derive(JsonSchema, Serialize)]
#[serde(rename_all = "camelCase")]
struct WrittenStep {
    /// The kind.
    kind: WrittenStepKind,
    /// The node on which it happens, as `CLUSTER/NODE`.
    #[schemars(example = &"east/worker-1")]
    node: String,
    /// The step in one sentence.
    message: String,
    /// The assumption on which the step depends, if no file can confirm it.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    hangs_on: Vec<String>,
    /// The responsible places.
    places: Vec<WrittenPlace>,
}

/// The kinds of steps.
#[derive(JsonSchema, Serialize)]
#[serde(rename_all = "lowercase")]
enum WrittenStepKind {
    /// A node passes the packet to the leader of its location.
    Handed,
    /// WireGuard chooses a Peer by the longest prefix.
    Selected,
    /// The tunnel is used, or opened first.
    Dialled,
    /// The receiver accepts the source address from the sender.
    Accepted,
    /// The label exists.
    Arrived,
}

impl WrittenEnd {
    pub(super) fn new(fabric: &Fabric, named: &NamedEnd) -> Self {
        let end = named.end;
        let site = fabric.site(end.site);
        let node = end.owner.node().map(|it| site.node(it));
        Self {
            cluster: site.cluster.to_string(),
            node: node.map(|it| escaped(&it.kilo.name, NAMED)),
            class: end.owner.class().map(|class| match class {
                AddressClass::Pod => WrittenTraceClass::Pod,
                AddressClass::Node => WrittenTraceClass::Node,
                AddressClass::Service => WrittenTraceClass::Service,
                AddressClass::Network => WrittenTraceClass::Network,
            }),
            address: end.address,
            port: named.port,
            picked: named.is_picked.then_some(true),
        }
    }
}

impl WrittenWay {
    pub(super) fn new(
        fabric: &Fabric,
        files: &dyn SourceTexts,
        packet: &Packet,
        way: &Way,
    ) -> Self {
        let step = |it: &Step| WrittenStep::new(fabric, files, packet, it);
        Self {
            source: packet.source,
            destination: packet.destination,
            ending: way.ending.name(),
            ends_at: way.ending.at().map(|at| name(fabric, at)),
            steps: way.steps.iter().map(step).collect(),
        }
    }

    /// Returns the steps for people after an empty line, and counts them.
    pub(super) fn human(&self, direction: &str, number: &mut usize, width: Width) -> String {
        let Self { source, destination, .. } = self;
        let mut text = format!("\n{direction}: {source} to {destination}\n");
        for step in &self.steps {
            *number += 1;
            let _ = writeln!(text, "{number:>3}. {}", width.hanging(5, &step.message));
            for place in &step.places {
                let _ = writeln!(text, "     at {}", place.shown());
            }
            for premise in &step.hangs_on {
                let premise = format!("assumes: {premise}");
                let _ = writeln!(text, "     {}", width.hanging(5, &premise));
            }
        }
        text
    }
}

impl WrittenStep {
    fn new(fabric: &Fabric, files: &dyn SourceTexts, packet: &Packet, step: &Step) -> Self {
        let (kind, at) = match step {
            // It stands with who gets it.
            Step::Handed { to } => (WrittenStepKind::Handed, *to),
            Step::Selected { by, .. } => (WrittenStepKind::Selected, *by),
            Step::Dialled { by, .. } => (WrittenStepKind::Dialled, *by),
            Step::Accepted { by, .. } => (WrittenStepKind::Accepted, *by),
            Step::Arrived { at } => (WrittenStepKind::Arrived, *at),
        };
        let premises = messages::premises(fabric, packet, step).into_iter();
        Self {
            kind,
            node: name(fabric, at),
            message: escaped(&messages::step(fabric, packet, step), SHOWN),
            hangs_on: premises.map(|it| escaped(&it, SHOWN)).collect(),
            places: messages::selected(step).iter().map(|it| place(it, files)).collect(),
        }
    }
}

fn name(fabric: &Fabric, at: NodeRef) -> String {
    escaped(&fabric.name(at), NAMED)
}
