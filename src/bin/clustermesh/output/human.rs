//! Findings for a person, in the style of rustc: with excerpts if the files are available. Of many
//! similar ones, it prints the first few and their number.

use std::collections::BTreeMap;

use annotate_snippets::{Group, Level, Origin, Renderer};

use clustermesh::diagnostic::Label;

use super::Report;
use super::entry::Entry;
use super::excerpt::{excerpts, level, snippets};
use super::wording::title;
use crate::files::Files;

/// How many findings of one kind are printed in full.
const SHOWN_ALIKE: usize = 3;

/// How many mistakes in files are shown.
const SHOWN_IN_FULL: usize = 100;

/// Returns what to print, in pieces.
pub(super) fn pieces(report: &Report) -> Vec<String> {
    let mut pieces = Vec::new();
    let entries = report.entries();
    let (folded, single): (Vec<&Entry>, Vec<&Entry>) = entries
        .iter()
        .partition(|entry| entry.finding.cluster.is_some());
    for entry in single.iter().take(SHOWN_IN_FULL) {
        pieces.push(alone(report.files, entry));
    }
    let more = single.len().saturating_sub(SHOWN_IN_FULL);
    if 0 < more {
        pieces.push(format!("… and {more} more\n"));
    }
    // Groups in the order of their first entries.
    let mut numbers = BTreeMap::new();
    let mut groups: Vec<Vec<&Entry>> = Vec::new();
    for entry in folded {
        let finding = entry.finding;
        let kind = (finding.rule.code(), finding.severity, &finding.group);
        let number = *numbers.entry(kind).or_insert(groups.len());
        match groups.get_mut(number) {
            Some(group) => group.push(entry),
            None => groups.push(vec![entry]),
        }
    }
    let mut groups = groups.iter().peekable();
    while let Some(group) = groups.next() {
        pieces.extend(alike(report.files, group));
        // What helps several groups is shown behind the last of them.
        let next = groups.peek().and_then(|it| help(it));
        pieces.extend(help(group).filter(|it| next != Some(it)).map(|help| {
            let title = Level::HELP.primary_title(help);
            rendered(Group::with_title(title))
        }));
    }
    pieces
}

/// Prints an entry by itself, with its help.
fn alone(files: &Files, entry: &Entry) -> String {
    let finding = entry.finding;
    let title = level(finding.severity)
        .primary_title(title(entry))
        .id(finding.rule.code());
    let excerpts = excerpts(files, &finding.labels);
    let group = match finding.labels.first() {
        Some(label) if excerpts.is_empty() => title.element(origin(files, label)),
        _ => title.elements(snippets(excerpts)),
    };
    let group = match &finding.help {
        Some(help) => group.element(Level::HELP.message(help.as_str())),
        None => group,
    };
    format!("{}\n", rendered(group))
}

fn alike(files: &Files, entries: &[&Entry]) -> Vec<String> {
    // One more than the limit takes a line anyway.
    let shown = if entries.len() <= SHOWN_ALIKE + 1 {
        entries.len()
    } else {
        SHOWN_ALIKE
    };
    let mut pieces: Vec<String> = entries
        .iter()
        .take(shown)
        .map(|entry| line(files, entry))
        .collect();
    if let Some(Entry { finding, .. }) = entries.get(shown) {
        let more = entries.len() - shown;
        let text = format!("{}: {more} more like these", finding.group);
        let title = level(finding.severity).primary_title(text);
        pieces.push(rendered(Group::with_title(title.id(finding.rule.code()))));
    }
    pieces
}

/// Returns what to do about entries that are alike.
fn help<'e>(entries: &[&'e Entry]) -> Option<&'e str> {
    let mut entries = entries.iter().rev();
    entries.find_map(|entry| entry.finding.help.as_deref())
}

/// Prints an entry that stands among others.
fn line(files: &Files, entry: &Entry) -> String {
    let finding = entry.finding;
    let title = level(finding.severity)
        .primary_title(title(entry))
        .id(finding.rule.code());
    let excerpts = excerpts(files, &finding.labels);
    rendered(match finding.labels.first() {
        Some(label) if files.is_withheld(&label.place.source) => {
            title.element(origin(files, label))
        }
        _ if excerpts.is_empty() => Group::with_title(title),
        _ => title.elements(snippets(excerpts)),
    })
}

/// Returns where something is that is not shown.
fn origin(files: &Files, label: &Label) -> Origin<'static> {
    let origin = Origin::path(label.place.source.to_string());
    match files.positions(&label.place) {
        Some(positions) => origin
            .line(positions.start.line)
            .char_column(positions.start.column),
        None => origin,
    }
}

fn rendered(group: Group) -> String {
    Renderer::styled().render(&[group])
}
