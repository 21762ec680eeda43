//! Traces: the way of a packet and of its answer as a result, in the form that was asked for.

use std::fmt::Write as _;

use clap::ValueEnum;
use clustermesh::agent::fabric::{At, Fabric, SiteId};
use clustermesh::diagnostic::{Label, escaped};
use clustermesh::packet::trace::{NamedEnd, Trace};
use clustermesh::packet::{Packet, Step, Way, messages};
use clustermesh::results::findings::Report;
use clustermesh::results::source_texts::SourceTexts;
use clustermesh::rules::Finding;

use super::terminal;
use crate::Outcome;

mod json;
mod mistake;

pub(crate) use json::WrittenTrace;
pub(super) use json::value;
pub(crate) use mistake::TraceMistake;

/// The longest text of a step, in characters.
const SHOWN: usize = 2000;

/// The format of a trace.
#[derive(Clone, Copy, Debug, Eq, PartialEq, ValueEnum)]
pub(crate) enum TraceFormat {
    /// Numbered steps
    Human,
    /// JSON
    Json,
}

/// A trace, and what it points into.
pub(crate) struct Traced<'a, 'f> {
    /// The clusters.
    pub(crate) fabric: &'a Fabric<'f>,
    pub(crate) files: &'a dyn SourceTexts,
    /// The source and the destination.
    pub(crate) ends: (NamedEnd, NamedEnd),
    /// The result.
    pub(crate) trace: Trace,
    /// The remedy, if the mesh and not the manifests is the cause of the failure.
    pub(crate) advice: Option<String>,
}

/// An answer without a packet.
pub(crate) struct NoPacket<'a> {
    pub(crate) files: &'a dyn SourceTexts,
    /// The reason.
    pub(crate) finding: Box<Finding>,
}

/// The answer to a trace.
pub(crate) enum TraceAnswer<'a> {
    /// The path of a packet.
    Packet(Box<Traced<'a, 'a>>),
    /// There is no packet between these ends.
    NoPacket(NoPacket<'a>),
}

/// One of the two ways, in words.
struct Leg<'a> {
    direction: &'static str,
    packet: &'a Packet,
    /// The path.
    way: &'a Way,
    steps: Vec<WordedStep<'a>>,
}

struct WordedStep<'a> {
    step: &'a Step,
    /// The event.
    message: String,
    /// The range of a manifest that decides it.
    range: Option<Label>,
    /// The assumptions.
    premises: Vec<String>,
}

impl TraceAnswer<'_> {
    /// Returns the answer as text; in colours only for a person.
    pub(crate) fn text(&self, format: TraceFormat) -> anyhow::Result<String> {
        Ok(match (self, format) {
            (Self::Packet(traced), TraceFormat::Human) => traced.human(),
            (Self::NoPacket(no_packet), TraceFormat::Human) => {
                shown(no_packet.files, &no_packet.finding)
            }
            (_, TraceFormat::Json) => json::text(self)?,
        })
    }

    /// Returns it as one line of JSON, with the number of the line that asks for it.
    pub(crate) fn line(&self, number: usize) -> anyhow::Result<String> {
        Ok(json::line(self, number)?)
    }

    /// Returns whether the packet and its answer are delivered.
    pub(crate) fn outcome(&self) -> Outcome {
        match self {
            Self::Packet(traced) if traced.trace.is_delivered() => Outcome::Clean,
            Self::Packet(_) | Self::NoPacket(_) => Outcome::Findings,
        }
    }
}

impl Traced<'_, '_> {
    /// Returns the ways that there are: there, and perhaps back.
    fn legs(&self) -> Vec<Leg<'_>> {
        let Trace { packet, there, back } = &self.trace;
        let back = back.as_ref().map(|(answer, way)| ("back", answer, way));
        let ways = [("there", packet, there)].into_iter().chain(back);
        let legs = ways.map(|(direction, packet, way)| Leg {
            direction,
            packet,
            way,
            steps: way.steps.iter().map(|it| self.worded(packet, it)).collect(),
        });
        legs.collect()
    }

    fn worded<'s>(&self, packet: &Packet, step: &'s Step) -> WordedStep<'s> {
        let premises = messages::premises(self.fabric, packet, step).into_iter();
        WordedStep {
            step,
            message: escaped(&messages::step(self.fabric, packet, step), SHOWN),
            range: messages::selected(step),
            premises: premises.map(|it| escaped(&it, SHOWN)).collect(),
        }
    }

    fn human(&self) -> String {
        let whose = |it: &NamedEnd| messages::whose(self.fabric, it.end.site, it.end.address);
        let (from, to) = &self.ends;
        let title = format!("from {} to {}", whose(from), whose(to));
        let width = terminal::stdout();
        let mut text = width.wrapped(0, &title) + "\n";
        for note in self.notes() {
            let _ = writeln!(text, "{}", width.wrapped(0, &note));
        }
        text.push_str(&self.ways());
        text.push('\n');
        match self.failure() {
            Some(failure) => text.push_str(&shown(self.files, &failure)),
            None => {
                let _ = writeln!(text, "{}", self.verdict());
            }
        }
        text
    }

    /// Returns what was picked or left out of what was asked for.
    fn notes(&self) -> Vec<String> {
        let (from, to) = &self.ends;
        let ends = [("FROM", from), ("TO", to)];
        // An external peer is one host.
        let is_host = |it: SiteId| self.fabric.site(it).cluster.is_external();
        let picked = ends.into_iter().filter(|(_, it)| it.is_picked && !is_host(it.end.site));
        let picked = picked.filter_map(|(argument, it)| {
            let (site, node) = (it.end.site, it.end.owner.node()?);
            let at = At { site, node };
            let what = if self.fabric.takes_part(at) {
                "the first node that takes part in the mesh"
            } else {
                "the first node, because none takes part in the mesh"
            };
            let (cluster, node) =
                (self.fabric.site(site).cluster, messages::called(self.fabric, at));
            Some(format!("{argument} names only {cluster}: picked {node}, {what}"))
        });
        let ports = ends.into_iter().filter_map(|(_, it)| it.port);
        let ports = ports.map(|port| {
            format!(
                "port {port} does not affect the path: Kilo and WireGuard do not look at ports (a NetworkPolicy or a firewall may)"
            )
        });
        picked.chain(ports).collect()
    }

    /// Prints the paths step by step, each after an empty line.
    pub(super) fn ways(&self) -> String {
        let (mut text, mut number) = (String::new(), 0);
        let width = terminal::stdout();
        for leg in self.legs() {
            let (source, destination) = (leg.packet.source, leg.packet.destination);
            let _ = writeln!(text, "\n{}: {source} to {destination}", leg.direction);
            for step in &leg.steps {
                number += 1;
                let _ = writeln!(text, "{number:>3}. {}", width.hanging(5, &step.message));
                if let Some(range) = &step.range {
                    let _ = writeln!(text, "     at {}", self.files.shown_place(&range.place));
                }
                for premise in &step.premises {
                    let premise = format!("assumes: {premise}");
                    let _ = writeln!(text, "     {}", width.hanging(5, &premise));
                }
            }
        }
        text
    }

    /// Returns what becomes of it, in a sentence.
    pub(super) fn verdict(&self) -> String {
        match self.failure() {
            Some(failure) => failure.message.to_string(),
            None => messages::DELIVERED.to_owned(),
        }
    }

    /// Returns what is wrong, unless it is delivered.
    fn failure(&self) -> Option<Finding> {
        let failure = messages::verdict(self.fabric, &self.trace)?;
        let failure = match &self.advice {
            Some(advice) => failure.help(advice.clone()),
            None => failure,
        };
        Some(failure.harmless())
    }
}

/// Returns a finding for people, with excerpts of the files.
fn shown(files: &dyn SourceTexts, failure: &Finding) -> String {
    let failures = [failure.clone()];
    Report::new(files, &failures).pieces(terminal::stdout()).concat()
}
