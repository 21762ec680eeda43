//! Differences for people at a terminal.

use std::fmt::Write as _;

use crate::changes::{Grade, PeerChangeKind, Reason, TargetChange};
use crate::report::alike::{AlikeArrows, grouped, rows, sentences};
use crate::report::style::{bold, coloured};
use crate::report::table::TextTable;
use crate::report::width::Width;
use crate::text::{count, listed};
use anstyle::AnsiColor;

use super::{Compared, remedy, wording};

/// The largest number of causes, and of Peers of a target, that are shown.
const LISTED: usize = 20;

/// The largest number of targets of a cause that are shown.
const TARGETS: usize = 8;

/// The shortest time that Kilo needs to apply a change which is shown, in seconds.
const NOTED_SECONDS: f64 = 1.0;

/// Returns the causes, a table of the targets, and their Peers.
pub(super) fn text(compared: &Compared, width: Width) -> String {
    let changes = compared.changes;
    let mut text = causes(compared, width);
    if !changes.targets.is_empty() {
        if !text.is_empty() {
            text.push('\n');
        }
        text.push_str(&table(compared, width));
    }
    let blocks = compared.by_grade().into_iter();
    let blocks = blocks.map(|it| (block(it, compared, width), it.cluster.as_str()));
    for ((grade, block), clusters) in grouped(blocks) {
        let _ = write!(text, "\n{}: {}{block}", bold(&listed(clusters)), graded(grade));
    }
    text.push_str(&paths(compared, width));
    text.push_str(&services(compared, width));
    text.push_str(&ports(compared, width));
    text.push_str(&controls(compared, width));
    if !compared.is_unchanged() {
        let grade = changes.grade();
        let verdict = format!("{}: {}", grade.name(), compared.verdict());
        // Colours have no width.
        let verdict = width.wrapped(0, &verdict);
        let verdict = verdict.replacen(grade.name(), &graded(grade), 1);
        let _ = writeln!(text, "\n{verdict}");
    }
    let headline = compared.headline(&compared.against);
    let _ = writeln!(text, "{}", width.wrapped(0, &headline));
    text
}

/// Returns the causes, each with the targets that it changes.
fn causes(compared: &Compared, width: Width) -> String {
    let changes = compared.changes;
    let mut text = String::new();
    for effect in changes.causes.iter().take(LISTED) {
        let cause = wording::cause(&effect.cause, compared);
        let effects = wording::effects(effect, compared, TARGETS);
        let _ = writeln!(text, "{}\n    {}", width.hanging(2, &cause), width.hanging(4, &effects));
        if let Some(help) = wording::follow_up(&effect.cause) {
            let help = width.hanging(6, &format!("help: {help}"));
            let _ = writeln!(text, "    {help}");
        }
    }
    more(&mut text, changes.causes.len(), "", "cause");
    text
}

/// Returns the grade of a target, and the reasons for it and its Peers.
fn block(target: &TargetChange, compared: &Compared, width: Width) -> (Grade, String) {
    let mut text = String::new();
    if let Some(from) = &target.renamed_from {
        let _ = write!(text, " (was called {from})");
    }
    text.push('\n');
    for reason in target.reasons.iter().take(LISTED) {
        let reason = width.hanging(4, &wording::reason(reason));
        let _ = writeln!(text, "  {reason}");
    }
    more(&mut text, target.reasons.len(), "  ", "reason");
    for change in target.peers.iter().take(LISTED) {
        let colour = match change.peer.kind {
            PeerChangeKind::Added { .. } => AnsiColor::Green,
            PeerChangeKind::Removed { .. } => AnsiColor::Red,
            PeerChangeKind::Changed(_) => AnsiColor::Yellow,
        };
        let change = width.hanging(6, &wording::change(change));
        let _ = writeln!(text, "    {}", coloured(colour, &change));
    }
    more(&mut text, target.peers.len(), "    ", "Peer");
    let is_reason = target.reasons.iter().any(|it| matches!(it, Reason::Busy(_)));
    let load = target.load.as_ref().filter(|it| NOTED_SECONDS <= it.seconds && !is_reason);
    if let Some(load) = load {
        let _ = writeln!(text, "  {}", wording::busy(load));
    }
    for remedy in remedy::of_target(target, compared) {
        let remedy = width.hanging(4, &format!("help: {remedy}"));
        let _ = writeln!(text, "  {remedy}");
    }
    (target.grade(), text)
}

/// Returns what becomes of the paths between clusters.
fn paths(compared: &Compared, width: Width) -> String {
    let arrows = wording::path_arrows(compared.changes);
    let folded = sentences(&arrows);
    let mut text = String::new();
    for path in folded.iter().take(LISTED) {
        let to = if path.is_mutual() { "each other".to_owned() } else { listed(&path.to) };
        let line = format!("{} → {to}: {}{}", listed(&path.from), path.each(), path.label);
        let _ = write!(text, "\n{}", width.hanging(2, &line));
    }
    if !text.is_empty() {
        text.push('\n');
    }
    let others = folded.iter().skip(LISTED).map(AlikeArrows::number);
    more(&mut text, LISTED + others.sum::<usize>(), "", "cluster pair");
    text
}

/// Returns what becomes of the Services that clusters get of others.
fn services(compared: &Compared, width: Width) -> String {
    let services = &compared.changes.services;
    let mut text = String::new();
    for change in services.iter().take(LISTED) {
        let line = format!("{}: {}", change.target, wording::service(change));
        let line = width.hanging(2, &line);
        let _ = write!(text, "\n{line} ({})", graded(change.grade()));
    }
    if !text.is_empty() {
        text.push('\n');
    }
    more(&mut text, services.len(), "", "Service");
    text
}

/// Returns what becomes of the endpoints that clusters dial.
fn ports(compared: &Compared, width: Width) -> String {
    let sentences = wording::ports(&compared.changes.ports);
    let lines = sentences.iter().map(|it| format!("\n{}", width.hanging(2, it)));
    let mut text: String = lines.collect();
    if !text.is_empty() {
        text.push('\n');
    }
    text
}

/// Returns the judgement of the old controls.
fn controls(compared: &Compared, width: Width) -> String {
    let notes = compared.control_notes();
    let mut text = String::new();
    for note in notes.iter().take(LISTED) {
        let line = width.hanging(2, &format!("{}: {}", note.kind, note.text));
        let colour = if note.is_weaker { AnsiColor::Red } else { AnsiColor::Yellow };
        let line = line.replacen(note.kind, &coloured(colour, note.kind), 1);
        let _ = write!(text, "\n{line}");
    }
    if !text.is_empty() {
        text.push('\n');
    }
    more(&mut text, notes.len(), "", "control");
    text
}

/// Adds how many of a list are not shown.
fn more(text: &mut String, all: usize, indent: &str, noun: &str) {
    let more = all.saturating_sub(LISTED);
    if 0 < more {
        let more = count(more, &format!("more {noun}"));
        let _ = writeln!(text, "{indent}… and {more}");
    }
}

fn table(compared: &Compared, width: Width) -> String {
    let mut table =
        TextTable::new(["TARGET", "GRADE", ">BEFORE", ">ADDED", ">CHANGED", ">REMOVED", ">NOW"]);
    let cells = compared.by_grade().into_iter().map(|target| {
        let counts = target.counts();
        let cells = [
            graded(target.grade()),
            target.peers_before.to_string(),
            counts.added.to_string(),
            counts.changed.to_string(),
            counts.removed.to_string(),
            target.peers_after.to_string(),
        ];
        (cells, target.cluster.as_str())
    });
    for (cells, clusters) in rows(cells) {
        table.add([listed(clusters)].into_iter().chain(cells).collect());
    }
    table.folded(width)
}

/// Returns a grade, in its colour.
fn graded(grade: Grade) -> String {
    let colour = match grade {
        Grade::None | Grade::Additive | Grade::Cleanup => AnsiColor::Green,
        Grade::Brief => AnsiColor::Yellow,
        Grade::Disruptive | Grade::Destructive => AnsiColor::Red,
    };
    coloured(colour, grade.name())
}
