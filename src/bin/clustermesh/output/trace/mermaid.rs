//! A trace as a sequence diagram of Mermaid's, in a form that GitHub draws.

use std::collections::BTreeMap;
use std::fmt::Write as _;

use clustermesh::agent::fabric::At;
use clustermesh::packet::{Goal, Step};
use clustermesh::report::mermaid::label;

use super::{Leg, NoPacket, Traced};

/// The longest part of a text that is drawn, in characters.
const DRAWN: usize = 400;

/// Nodes, in the order in which they come up.
#[derive(Default)]
struct Cast {
    numbers: BTreeMap<At, usize>,
    order: Vec<At>,
}

impl Cast {
    fn name(&mut self, at: At) -> String {
        let next = self.order.len();
        let number = *self.numbers.entry(at).or_insert(next);
        if number == next {
            self.order.push(at);
        }
        format!("n{number}")
    }

    fn arrow(&mut self, from: At, arrow: &str, to: At, text: &str) -> String {
        format!("{}{arrow}{}: {text}", self.name(from), self.name(to))
    }

    fn note(&mut self, at: At, text: &str) -> String {
        format!("Note over {}: {text}", self.name(at))
    }
}

/// Returns the diagram.
pub(super) fn text(traced: &Traced) -> String {
    let mut cast = Cast::default();
    let mut lines = Vec::new();
    for leg in traced.legs() {
        draw(&leg, &mut cast, &mut lines);
    }
    let name = traced.trace.verdict_name();
    let verdict = traced.verdict();
    let at = traced
        .trace
        .ending()
        .at()
        .unwrap_or(traced.trace.packet.from);
    let verdict = if traced.trace.is_delivered() {
        verdict
    } else {
        format!("{name}: {verdict}")
    };
    lines.push(cast.note(at, &plain(&verdict)));
    let mut text = "sequenceDiagram\n".to_owned();
    for (number, at) in cast.order.iter().enumerate() {
        let name = plain(&traced.fabric.name(*at));
        let _ = writeln!(text, "    participant n{number} as {name}");
    }
    for line in lines {
        let _ = writeln!(text, "    {line}");
    }
    text
}

/// Returns a diagram without a packet.
pub(super) fn note(no_packet: &NoPacket) -> String {
    let finding = &no_packet.finding;
    let reason = plain(&format!("{}: {}", finding.rule.name(), finding.message));
    format!("sequenceDiagram\n    participant n0 as FROM\n    Note over n0: {reason}\n")
}

fn draw(leg: &Leg, cast: &mut Cast, lines: &mut Vec<String>) {
    let packet = leg.packet;
    let what = plain(&format!("{} to {}", packet.source, packet.destination));
    let mut at = packet.from;
    let mut receiver = None;
    cast.name(at);
    for worded in &leg.steps {
        let message = plain(&worded.message);
        match worded.step {
            Step::Handed { to } => {
                lines.push(cast.arrow(at, "->>", *to, &what));
                at = *to;
            }
            Step::Selected {
                by, receiver: to, ..
            } => {
                receiver = Some(*to);
                lines.push(cast.note(*by, &message));
                cast.name(*to);
            }
            Step::Dialled { by, .. } => {
                let other = if *by == at { receiver } else { Some(at) };
                let other = other.unwrap_or(*by);
                lines.push(cast.arrow(*by, "-->>", other, &message));
            }
            Step::Accepted { by, .. } => {
                lines.push(cast.arrow(at, "->>", *by, &what));
                lines.push(cast.note(*by, &message));
                (at, receiver) = (*by, None);
            }
            Step::Arrived { at: here } => {
                let node = match packet.to {
                    Goal::Node(node) => node,
                    Goal::Services(_) | Goal::Network(_) => *here,
                };
                if node != *here {
                    lines.push(cast.arrow(*here, "->>", node, &what));
                }
                lines.push(cast.note(node, &message));
            }
        }
        for premise in &worded.premises {
            let premise = plain(&format!("assumes: {premise}"));
            lines.push(cast.note(at, &premise));
        }
    }
    if let Some(receiver) = receiver.filter(|_| !leg.way.ending.is_delivered()) {
        lines.push(cast.arrow(at, "-x", receiver, &what));
    }
}

fn plain(text: &str) -> String {
    label(text, DRAWN)
}
