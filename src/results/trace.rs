//! Traces: the path of a packet and of its answer.

use schemars::JsonSchema;
use serde::Serialize;

use super::findings::Report;
use super::findings::json::{WrittenPlace, place};
use super::forms::ResultForms;
use super::source_texts::SourceTexts;
use crate::agent::fabric::{Fabric, NodeRef};
use crate::mesh::Mesh;
use crate::packet::messages::{self, DELIVERED};
use crate::packet::trace::{NamedEnd, Trace};
use crate::report::json::JsonDocument;
use crate::report::page::{PageForm, ReportPage};
use crate::report::width::Width;
use crate::rules::{Finding, LevelledFindings};
use crate::schema::ExampleFile;

pub mod batch;
pub mod path;
pub mod tracer;

use path::{WrittenEnd, WrittenWay};

/// The verdict about a packet that is delivered, and its answer too.
const VERDICT_DELIVERED: &str = "delivered";

/// The output of `clustermesh trace --output json`. Later versions may add fields.
#[derive(JsonSchema, Serialize)]
#[schemars(rename = "Trace", example = ExampleFile(include_str!("trace/example.json")))]
#[serde(rename_all = "camelCase")]
pub struct TraceResult<'a> {
    /// With `--batch`, the number of the line of the standard input, from 1.
    #[serde(skip_serializing_if = "Option::is_none")]
    line: Option<usize>,
    /// The result for the packet or its answer; `clustermesh explain VERDICT` explains it.
    #[schemars(example = &"stolen-by")]
    verdict: &'static str,
    /// The result in one sentence.
    message: String,
    /// The remedy in one sentence, if there is a single one.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) help: Option<String>,
    /// The responsible places, the most important one first.
    places: Vec<WrittenPlace>,
    /// The source of the packet. Missing if there is no packet, because an end does not exist or the ends have no
    /// addresses of one family.
    #[serde(skip_serializing_if = "Option::is_none")]
    from: Option<WrittenEnd>,
    /// The destination of the packet, if there is one.
    #[serde(skip_serializing_if = "Option::is_none")]
    to: Option<WrittenEnd>,
    /// The path of the packet, if there is one.
    #[serde(skip_serializing_if = "Option::is_none")]
    there: Option<WrittenWay>,
    /// The path of the answer, if there is one.
    #[serde(skip_serializing_if = "Option::is_none")]
    back: Option<WrittenWay>,
    /// The lines above the path: its ends, and what was picked or left out.
    #[serde(skip)]
    heading: Vec<String>,
    /// The problem, unless it is delivered.
    #[serde(skip)]
    failure: Option<Finding>,
    #[serde(skip)]
    files: &'a dyn SourceTexts,
}

impl<'a> TraceResult<'a> {
    /// Returns the path of a packet between two ends. If the mesh and not the manifests is the cause of a failure, the
    /// advice is its remedy.
    pub fn new(
        fabric: &Fabric,
        files: &'a dyn SourceTexts,
        ends: [&NamedEnd; 2],
        trace: &Trace,
        advice: Option<String>,
        separating: Option<&Mesh>,
    ) -> Self {
        let failure = messages::verdict(fabric, trace);
        // Between clusters that no mesh links, nothing is left out.
        let help = |own: Option<String>| advice.or(own.filter(|_| separating.is_none()));
        let failure = failure.map(|it| Finding { help: help(it.help.clone()), ..it });
        let topology = separating.map(|it| it.linking_field().1);
        let failure = failure.map(|it| it.at(topology, "does not link the two clusters"));
        let Trace { packet, there, back } = trace;
        let [from, to] = ends.map(|it| Some(WrittenEnd::new(fabric, it)));
        Self {
            from,
            to,
            there: Some(WrittenWay::new(fabric, files, packet, there)),
            back: back.as_ref().map(|(answer, way)| WrittenWay::new(fabric, files, answer, way)),
            heading: heading(fabric, ends),
            ..Self::concluded(files, failure.map(Finding::harmless))
        }
    }

    /// Returns the reason for which there is no packet.
    pub(crate) fn unsent(files: &'a dyn SourceTexts, reason: Finding) -> Self {
        Self::concluded(files, Some(reason))
    }

    /// Returns a result with its verdict, without a path.
    fn concluded(files: &'a dyn SourceTexts, failure: Option<Finding>) -> Self {
        let of = failure.as_ref();
        let labels = of.into_iter().flat_map(|it| &it.labels);
        Self {
            line: None,
            verdict: of.map_or(VERDICT_DELIVERED, |it| it.rule.name()),
            message: of.map_or(DELIVERED, |it| it.message.shown()).to_owned(),
            help: of.and_then(|it| it.help.clone()),
            places: labels.map(|it| place(it, files)).collect(),
            from: None,
            to: None,
            there: None,
            back: None,
            heading: Vec::new(),
            failure,
            files,
        }
    }

    /// Returns the result for a line of a batch.
    #[must_use]
    pub fn at_line(self, line: usize) -> Self {
        Self { line: Some(line), ..self }
    }

    /// Returns whether the packet and its answer are delivered.
    pub fn is_delivered(&self) -> bool {
        self.failure.is_none()
    }

    /// Returns the result in one sentence.
    pub fn message(&self) -> &str {
        &self.message
    }

    /// Returns the paths step by step, each after an empty line.
    pub fn ways(&self, width: Width) -> String {
        let (mut text, mut number) = (String::new(), 0);
        for (direction, way) in [("there", &self.there), ("back", &self.back)] {
            let way = way.iter().map(|it| it.human(direction, &mut number, width));
            text.extend(way);
        }
        text
    }
}

impl ResultForms for TraceResult<'_> {
    fn page(&self, form: PageForm) -> String {
        let mut page = ReportPage::new(form, "clustermesh trace");
        page.block(usize::MAX, |width| {
            let heading = self.heading.iter().map(|it| width.wrapped(0, it) + "\n");
            let mut text: String = heading.collect();
            if self.there.is_some() {
                text += &(self.ways(width) + "\n");
            }
            text += &match &self.failure {
                Some(failure) => {
                    let failures = LevelledFindings::fixed(vec![failure.clone()]);
                    Report::new(self.files, &failures).pieces(width).concat()
                }
                None => self.message.clone() + "\n",
            };
            text
        });
        page.finish()
    }

    fn json(&self) -> serde_json::Result<String> {
        JsonDocument::of(self).text()
    }
}

/// Returns the ends, and what was picked or left out of what was asked for.
fn heading(fabric: &Fabric, ends: [&NamedEnd; 2]) -> Vec<String> {
    let [from, to] = ends.map(|it| messages::whose(fabric, it.end.site, it.end.address));
    let title = format!("from {from} to {to}");
    let picked = ["FROM", "TO"].into_iter().zip(ends).filter_map(|(argument, it)| {
        let (site, node) = (it.end.site, it.end.owner.node()?);
        let cluster = fabric.site(site).cluster;
        // An external peer is one host.
        if !it.is_picked || cluster.is_external() {
            return None;
        }
        let at = NodeRef { site, node };
        let what = if fabric.takes_part(at) {
            "the first node that takes part in the mesh"
        } else {
            "the first node, because none takes part in the mesh"
        };
        let node = messages::called(fabric, at);
        Some(format!("{argument} names only {cluster}: picked {node}, {what}"))
    });
    let others = ["FROM", "TO"].into_iter().zip(ends).filter_map(|(argument, it)| {
        let NamedEnd { end, .. } = it;
        let site = end.site;
        let [own, other] = [end.owner.node()?, fabric.site(site).owner(end.address)?.node()?]
            .map(|node| NodeRef { site, node });
        let [named, having] = [own, other].map(|at| messages::called(fabric, at));
        let address = end.address;
        (own != other).then(|| format!("{argument} names {named}, but {having} has {address} too"))
    });
    let ports = ends.into_iter().filter_map(|it| it.port).map(|port| {
        format!(
            "port {port} does not affect the path: Kilo and WireGuard do not look at ports (a NetworkPolicy or a firewall may)"
        )
    });
    [title].into_iter().chain(picked).chain(others).chain(ports).collect()
}
