//! Traces: the way of a packet and of its answer as a result, in the form that was asked for.

use std::fmt::Write as _;

use clap::ValueEnum;
use clustermesh::agent::fabric::Fabric;
use clustermesh::diagnostic::{Label, escaped};
use clustermesh::document::Position;
use clustermesh::packet::messages;
use clustermesh::packet::trace::{End, Trace};
use clustermesh::packet::{Packet, Step, Way};
use clustermesh::place::Place;
use clustermesh::rules::Finding;

use super::wrap::Width;
use super::{Report, ReportFormat, human};
use crate::files::ShownFiles;

mod json;
mod mermaid;

pub(crate) use json::schema;
pub(super) use json::{WrittenTrace, value};

/// The longest text of a step, in characters.
const SHOWN: usize = 2000;

/// The format of a trace.
#[derive(Clone, Copy, Debug, Eq, PartialEq, ValueEnum)]
pub(crate) enum TraceFormat {
    /// Numbered steps
    Human,
    /// JSON
    Json,
    /// A Mermaid sequence diagram, for Markdown on GitHub
    Mermaid,
}

impl From<TraceFormat> for ReportFormat {
    /// Returns the form of findings, which no diagram shows.
    fn from(format: TraceFormat) -> Self {
        match format {
            TraceFormat::Human | TraceFormat::Mermaid => Self::Human,
            TraceFormat::Json => Self::Json,
        }
    }
}

/// A trace, and what it points into.
pub(crate) struct Traced<'a, 'f> {
    /// The clusters.
    pub(crate) fabric: &'a Fabric<'f>,
    /// The files.
    pub(crate) files: &'a ShownFiles,
    /// The source and the destination.
    pub(crate) ends: (End, End),
    /// The result.
    pub(crate) trace: &'a Trace,
    /// The remedy, if the mesh and not the manifests is the cause of the failure.
    pub(crate) advice: Option<String>,
}

/// One of the two ways, in words.
struct Leg<'a> {
    /// The direction.
    direction: &'static str,
    /// The packet.
    packet: &'a Packet,
    /// The path.
    way: &'a Way,
    /// The steps.
    steps: Vec<WordedStep<'a>>,
}

/// A step in words.
struct WordedStep<'a> {
    /// The step.
    step: &'a Step,
    /// The event.
    message: String,
    /// The range of a manifest that decides it.
    range: Option<Label>,
    /// The assumptions.
    premises: Vec<String>,
}

impl Traced<'_, '_> {
    /// Returns the trace as text; in colours only for a person.
    pub(crate) fn text(&self, format: TraceFormat) -> anyhow::Result<String> {
        Ok(match format {
            TraceFormat::Human => self.human(),
            TraceFormat::Json => json::text(self)?,
            TraceFormat::Mermaid => mermaid::text(self),
        })
    }

    /// Returns the ways that there are: there, and perhaps back.
    fn legs(&self) -> Vec<Leg<'_>> {
        let Trace {
            packet,
            there,
            back,
        } = self.trace;
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
        let whose = |end: End| messages::whose(self.fabric, end.site, end.address);
        let (from, to) = self.ends;
        let title = format!("from {} to {}", whose(from), whose(to));
        let title = Width::stdout().wrapped(0, &title);
        let mut text = format!("{title}\n{}\n", self.ways());
        match self.failure() {
            Some(failure) => human::pieces(&Report::new(self.files, &[failure]), Width::stdout())
                .iter()
                .for_each(|it| text.push_str(it)),
            None => {
                let _ = writeln!(text, "{}", self.verdict());
            }
        }
        text
    }

    /// Prints the paths step by step, each after an empty line.
    pub(super) fn ways(&self) -> String {
        let (mut text, mut number) = (String::new(), 0);
        let width = Width::stdout();
        for leg in self.legs() {
            let (source, destination) = (leg.packet.source, leg.packet.destination);
            let _ = writeln!(text, "\n{}: {source} to {destination}", leg.direction);
            for step in &leg.steps {
                number += 1;
                let _ = writeln!(text, "{number:>3}. {}", width.hanging(5, &step.message));
                if let Some(range) = &step.range {
                    let _ = writeln!(text, "     at {}", self.shown(&range.place));
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
            Some(failure) => failure.message,
            None => messages::DELIVERED.to_owned(),
        }
    }

    /// Returns what is wrong, unless it is delivered.
    fn failure(&self) -> Option<Finding> {
        let failure = messages::verdict(self.fabric, self.trace)?;
        let failure = match &self.advice {
            Some(advice) => failure.help(advice.clone()),
            None => failure,
        };
        Some(failure.harmless())
    }

    /// Returns a place as `file:line:column`.
    pub(super) fn shown(&self, place: &Place) -> String {
        match self.files.positions(place) {
            Some(positions) => {
                let Position { line, column } = positions.start;
                format!("{}:{line}:{column}", place.source)
            }
            None => place.source.to_string(),
        }
    }
}
