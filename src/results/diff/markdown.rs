//! Differences as Markdown, for comments on pull requests and summaries of jobs.
//!
//! All foreign values are in code spans, in which nothing is a link, a mention, HTML or a table.

use std::fmt::Write as _;

use crate::changes::TargetChange;
use crate::report::alike::{grouped, sentences};
use crate::report::markdown::{add_alike_rows, add_rows, code, prose};
use crate::results::findings::markdown as findings;
use crate::text::{count, first, listed};

use super::{Compared, graph, remedy, wording};

/// The largest number of targets of a cause that are shown.
const TARGETS: usize = 5;

/// The largest number of alike targets that are listed by name with their Peers.
const NAMES: usize = 300;

/// The space that is kept free for the ends of all lists, in bytes.
const RESERVE: usize = 500;

/// Returns the page: the grade, the causes, the targets, and as many of their Peers as there is room
/// for below `limit` bytes.
pub(super) fn text(compared: &Compared, limit: usize) -> String {
    let grade = compared.changes.grade().name();
    let mut page = format!("### clustermesh diff: {grade}\n\n");
    let headline = compared.headline(&code(&compared.against));
    let _ = if compared.is_unchanged() {
        writeln!(page, "{headline}")
    } else {
        writeln!(page, "{} {headline}", compared.verdict())
    };
    for note in compared.notes {
        let _ = writeln!(page, "\nnote: {}", prose(note));
    }
    let limit = limit.saturating_sub(RESERVE);
    controls(&mut page, compared, limit / 4);
    let report = compared.report();
    page.push_str(&findings::lists(&report, limit / 4));
    // Each list leaves room for the next ones.
    let third = page.len() + limit.saturating_sub(page.len()) / 3;
    causes(&mut page, compared, third);
    let graph = graph::text(&compared.changes.links());
    if page.len() + graph.len() <= third {
        page.push_str(&graph);
    }
    let half = page.len() + limit.saturating_sub(page.len()) / 2;
    targets(&mut page, compared, half);
    let half = page.len() + limit.saturating_sub(page.len()) / 2;
    paths(&mut page, compared, half);
    let half = page.len() + limit.saturating_sub(page.len()) / 2;
    services(&mut page, compared, half);
    for sentence in wording::ports(&compared.changes.ports) {
        let line = format!("\n{}\n", prose(&sentence));
        if page.len() + line.len() <= limit {
            page.push_str(&line);
        }
    }
    details(&mut page, compared, limit);
    page
}

fn controls(page: &mut String, compared: &Compared, limit: usize) {
    let notes = compared.control_notes();
    if notes.is_empty() {
        return;
    }
    page.push_str("\n| controls | |\n| --- | --- |\n");
    let rows = notes.iter().map(|it| {
        let kind = if it.is_weaker { format!("**{}**", it.kind) } else { it.kind.to_owned() };
        format!("| {kind} | {} |\n", in_table(&prose(&it.text)))
    });
    add_rows(page, rows, limit, "control");
}

fn causes(page: &mut String, compared: &Compared, limit: usize) {
    let causes = &compared.changes.causes;
    if causes.is_empty() {
        return;
    }
    page.push_str("\n| cause | changes of Peers |\n| --- | --- |\n");
    let rows = causes.iter().map(|effect| {
        let cause = wording::cause(&effect.cause, compared);
        let effects = wording::effects(effect, compared, TARGETS);
        format!(
            "| {} | {} |
",
            in_table(&prose(&cause)),
            cell(&effects)
        )
    });
    add_rows(page, rows, limit, "cause");
    let steps = causes.iter().filter_map(|it| wording::follow_up(&it.cause));
    for step in steps.map(|it| format!("\nhelp: {}\n", prose(&it))) {
        if page.len() + step.len() <= limit {
            page.push_str(&step);
        }
    }
}

fn targets(page: &mut String, compared: &Compared, limit: usize) {
    if compared.changes.targets.is_empty() {
        return;
    }
    page.push_str("\n| target | grade | Peers | why |\n| --- | --- | --- | --- |\n");
    let rows = compared.by_grade().into_iter().map(|target| {
        let reason = target.reasons.first().map(wording::reason);
        let row = format!(
            "{} | {} → {} ({}) | {}",
            target.grade().name(),
            target.peers_before,
            target.peers_after,
            wording::counts(target.counts()),
            reason.map_or_else(String::new, |it| in_table(&prose(&it)))
        );
        (row, target.cluster.as_str())
    });
    let rows = grouped(rows).into_iter().map(|(row, targets)| {
        let names = names(&targets, "target");
        (targets.len(), format!("| {names} | {row} |\n"))
    });
    add_alike_rows(page, rows, limit, "target");
}

fn services(page: &mut String, compared: &Compared, limit: usize) {
    let services = &compared.changes.services;
    if services.is_empty() {
        return;
    }
    page.push_str("\n| target | grade | Service |\n| --- | --- | --- |\n");
    let rows = services.iter().map(|change| {
        format!(
            "| {} | {} | {} |\n",
            cell(change.target.as_str()),
            change.grade().name(),
            cell(&wording::service(change))
        )
    });
    add_rows(page, rows, limit, "Service");
}

fn paths(page: &mut String, compared: &Compared, limit: usize) {
    if compared.changes.paths.is_empty() {
        return;
    }
    page.push_str("\n| from | to | paths |\n| --- | --- | --- |\n");
    let arrows = wording::path_arrows(compared.changes);
    let rows = sentences(&arrows).into_iter().map(|it| {
        let from = names(&it.from, "cluster");
        let to = if it.is_mutual() { "each other".to_owned() } else { names(&it.to, "cluster") };
        let row = format!("| {from} | {to} | {}{} |\n", it.each(), it.label);
        (it.number(), row)
    });
    add_alike_rows(page, rows, limit, "cluster pair");
}

/// Adds the Peers of each target, folded. Targets take turns, so that each has some if not all fit.
fn details(page: &mut String, compared: &Compared, limit: usize) {
    let targets = compared.by_grade().into_iter();
    let targets = targets.map(|it| (DetailLines::new(it, compared), it.cluster.as_str()));
    let blocks = grouped(targets).into_iter();
    let blocks = blocks.map(|(lines, targets)| DetailBlock::new(lines, &targets));
    let blocks: Vec<DetailBlock> = blocks.collect();
    let mut room = limit.saturating_sub(page.len());
    let mut shown = vec![0; blocks.len()];
    let mut is_open: Vec<bool> = blocks.iter().map(|_| true).collect();
    for turn in 0.. {
        let mut is_any = false;
        for ((block, shown), is_open) in blocks.iter().zip(&mut shown).zip(&mut is_open) {
            let Some(line) = block.lines.get(turn).filter(|_| *is_open) else {
                continue;
            };
            let frame = if turn == 0 { block.frame() } else { 0 };
            let needed = line.len() + frame;
            *is_open = needed <= room;
            if *is_open {
                room -= needed;
                *shown += 1;
                is_any = true;
            }
        }
        if !is_any {
            break;
        }
    }
    let mut left_out = 0;
    for (block, shown) in blocks.iter().zip(shown) {
        if shown == 0 {
            left_out += block.targets;
        } else {
            block.add_to(page, shown);
        }
    }
    if 0 < left_out {
        let _ = writeln!(page, "\nThe Peers of {} are not listed.", count(left_out, "target"));
    }
}

/// The folded part of a target, without its name.
#[derive(Eq, Ord, PartialEq, PartialOrd)]
struct DetailLines {
    heading: String,
    lines: Vec<String>,
}

impl DetailLines {
    fn new(target: &TargetChange, compared: &Compared) -> Self {
        let counts = wording::counts(target.counts());
        let reasons = target.reasons.iter().map(wording::reason);
        let changes = target.peers.iter().map(wording::change);
        let remedies = remedy::of_target(target, compared);
        let load = target.load.iter().map(wording::busy);
        let sentences = reasons.chain(remedies).chain(load);
        let lines = sentences.map(|it| prose(&it)).chain(changes.map(|it| code(&it)));
        Self {
            heading: format!("{} ({counts})", target.grade().name()),
            lines: lines.map(|line| format!("- {line}\n")).collect(),
        }
    }
}

/// The folded part of alike targets.
struct DetailBlock {
    targets: usize,
    heading: String,
    lines: Vec<String>,
}

impl DetailBlock {
    const OPENING: &'static str = "\n<details>\n<summary>";
    const CLOSING: &'static str = "\n</details>\n";

    fn new(DetailLines { heading, mut lines }: DetailLines, targets: &[&str]) -> Self {
        // The name of a cluster has nothing that HTML would take for its own.
        let name = match targets {
            [only] => (*only).to_owned(),
            all => {
                let names = first(NAMES, all.iter().map(|it| code(it)));
                lines.insert(0, format!("- {names}\n"));
                count(all.len(), "target")
            }
        };
        Self { targets: targets.len(), heading: format!("{name}: {heading}"), lines }
    }

    /// Returns how much room it takes without its lines.
    fn frame(&self) -> usize {
        // The tags, and the line that counts what is cut.
        Self::OPENING.len() + self.heading.len() + Self::CLOSING.len() + 60
    }

    fn add_to(&self, page: &mut String, shown: usize) {
        // Inside HTML there is Markdown only after an empty line.
        let _ = write!(page, "{}{}</summary>\n\n", Self::OPENING, self.heading);
        page.extend(self.lines.iter().take(shown).map(String::as_str));
        let more = self.lines.len() - shown;
        if 0 < more {
            let _ = writeln!(page, "- … and {}", count(more, "more line"));
        }
        page.push_str(Self::CLOSING);
    }
}

/// Returns the names of alike clusters for the cell of a table.
fn names(clusters: &[&str], noun: &str) -> String {
    match clusters {
        [only] => cell(only),
        all => {
            let names = listed(all.iter().map(|it| cell(it)));
            format!("{}: {names}", count(all.len(), noun))
        }
    }
}

/// Returns a value for the cell of a table.
fn cell(text: &str) -> String {
    in_table(&code(text))
}

fn in_table(markdown: &str) -> String {
    markdown.replace('|', "\\|")
}
