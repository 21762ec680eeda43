//! A trace as an object for programs, in a form of its own that is versioned.

use std::net::IpAddr;

use clustermesh::agent::fabric::At;
use clustermesh::diagnostic::escaped;
use clustermesh::mesh::AddressClass;
use clustermesh::packet::Step;
use clustermesh::packet::messages::DELIVERED;
use clustermesh::packet::trace::NamedEnd;
use clustermesh::report::json::JsonDocument;
use clustermesh::results::findings::json::{WrittenPlace, place};
use clustermesh::results::source_texts::SourceTexts;
use clustermesh::rules::Finding;
use clustermesh::schema::ExampleFile;
use schemars::JsonSchema;
use serde::Serialize;
use serde_json::Value;

use super::{Leg, NoPacket, TraceAnswer, Traced};

/// The verdict about a packet that is delivered, and its answer too.
const VERDICT_DELIVERED: &str = "delivered";

/// The longest part of a name that is shown, in characters.
const NAMED: usize = 300;

/// The output of `clustermesh trace --output json`. Later versions may add fields.
#[derive(JsonSchema, Serialize)]
#[schemars(rename = "Trace", example = ExampleFile(include_str!("json/example.json")))]
#[serde(rename_all = "camelCase")]
pub(crate) struct WrittenTrace<'a> {
    /// With `--batch`, the number of the line of the standard input, from 1.
    #[serde(skip_serializing_if = "Option::is_none")]
    line: Option<usize>,
    /// The result for the packet or its answer; `clustermesh explain VERDICT` explains it.
    #[schemars(example = &"stolen-by")]
    verdict: &'static str,
    /// The result in one sentence.
    message: &'a str,
    /// The remedy in one sentence, if there is a single one.
    #[serde(skip_serializing_if = "Option::is_none")]
    help: Option<&'a str>,
    /// The responsible places, the most important one first.
    places: Vec<WrittenPlace<'a>>,
    /// The source of the packet. Missing if there is no packet, because an end does not exist or the ends have no
    /// addresses of one family.
    #[serde(skip_serializing_if = "Option::is_none")]
    from: Option<WrittenEnd>,
    /// The destination of the packet, if there is one.
    #[serde(skip_serializing_if = "Option::is_none")]
    to: Option<WrittenEnd>,
    /// The path of the packet, if there is one.
    #[serde(skip_serializing_if = "Option::is_none")]
    there: Option<WrittenWay<'a>>,
    /// The path of the answer, if there is one.
    #[serde(skip_serializing_if = "Option::is_none")]
    back: Option<WrittenWay<'a>>,
}

/// The source or destination of a packet.
#[derive(JsonSchema, Serialize)]
#[serde(rename_all = "camelCase")]
struct WrittenEnd {
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
struct WrittenWay<'a> {
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
    steps: Vec<WrittenStep<'a>>,
}

/// A step on the path of a packet.
#[derive(JsonSchema, Serialize)]
#[serde(rename_all = "camelCase")]
struct WrittenStep<'a> {
    /// The kind.
    kind: WrittenStepKind,
    /// The node on which it happens, as `CLUSTER/NODE`.
    #[schemars(example = &"east/worker-1")]
    node: String,
    /// The step in one sentence.
    message: &'a str,
    /// The assumption on which the step depends, if no file can confirm it.
    #[serde(skip_serializing_if = "<[String]>::is_empty")]
    hangs_on: &'a [String],
    /// The responsible places.
    places: Vec<WrittenPlace<'a>>,
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

/// Returns the object as text.
pub(super) fn text(answer: &TraceAnswer) -> serde_json::Result<String> {
    answered(answer, None, |it| JsonDocument::of(it).text())
}

/// Returns the object as a line, with the number of the line that asks for it.
pub(super) fn line(answer: &TraceAnswer, number: usize) -> serde_json::Result<String> {
    answered(answer, Some(number), |it| JsonDocument::of(it).line())
}

/// Returns the object, to be a part of another.
pub(in crate::output) fn value(traced: &Traced) -> serde_json::Result<Value> {
    written(traced, None, |it| serde_json::to_value(JsonDocument::of(it)))
}

fn answered<T>(
    answer: &TraceAnswer,
    line: Option<usize>,
    write: impl FnOnce(WrittenTrace) -> T,
) -> T {
    match answer {
        TraceAnswer::Packet(traced) => written(traced, line, write),
        TraceAnswer::NoPacket(NoPacket { files, finding }) => {
            write(concluded(Some(finding), *files, line))
        }
    }
}

fn written<T>(traced: &Traced, line: Option<usize>, write: impl FnOnce(WrittenTrace) -> T) -> T {
    let failure = traced.failure();
    let legs = traced.legs();
    let mut ways = legs.iter().map(|leg| way(traced, leg));
    write(WrittenTrace {
        from: Some(end(traced, &traced.ends.0)),
        to: Some(end(traced, &traced.ends.1)),
        there: ways.next(),
        back: ways.next(),
        ..concluded(failure.as_ref(), traced.files, line)
    })
}

/// Returns the object with its verdict, without a path.
fn concluded<'a>(
    failure: Option<&'a Finding>,
    files: &dyn SourceTexts,
    line: Option<usize>,
) -> WrittenTrace<'a> {
    let labels = failure.into_iter().flat_map(|it| &it.labels);
    WrittenTrace {
        line,
        verdict: failure.map_or(VERDICT_DELIVERED, |it| it.rule.name()),
        message: failure.map_or(DELIVERED, |it| it.message.shown()),
        help: failure.and_then(|it| it.help.as_deref()),
        places: labels.map(|it| place(it, files)).collect(),
        from: None,
        to: None,
        there: None,
        back: None,
    }
}

fn way<'a>(traced: &Traced, leg: &'a Leg) -> WrittenWay<'a> {
    let steps = leg.steps.iter().map(|worded| {
        let (kind, at) = match worded.step {
            // It stands with who gets it.
            Step::Handed { to } => (WrittenStepKind::Handed, *to),
            Step::Selected { by, .. } => (WrittenStepKind::Selected, *by),
            Step::Dialled { by, .. } => (WrittenStepKind::Dialled, *by),
            Step::Accepted { by, .. } => (WrittenStepKind::Accepted, *by),
            Step::Arrived { at } => (WrittenStepKind::Arrived, *at),
        };
        let range = worded.range.iter();
        WrittenStep {
            kind,
            node: name(traced, at),
            message: &worded.message,
            hangs_on: &worded.premises,
            places: range.map(|it| place(it, traced.files)).collect(),
        }
    });
    WrittenWay {
        source: leg.packet.source,
        destination: leg.packet.destination,
        ending: leg.way.ending.name(),
        ends_at: leg.way.ending.at().map(|at| name(traced, at)),
        steps: steps.collect(),
    }
}

fn end(traced: &Traced, named: &NamedEnd) -> WrittenEnd {
    let end = named.end;
    let site = traced.fabric.site(end.site);
    let node = end.owner.node().map(|it| site.node(it));
    WrittenEnd {
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

fn name(traced: &Traced, at: At) -> String {
    escaped(&traced.fabric.name(at), NAMED)
}
