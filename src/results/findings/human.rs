//! Findings for a person, in the style of rustc: with excerpts if the files are available. Of many
//! similar ones, it prints the first few and their number.

use std::collections::BTreeMap;

use annotate_snippets::{Group, Level, Origin, Renderer, Title};

use crate::diagnostic::{Label, Rule, Severity};

use super::Report;
use super::entry::ReportEntry;
use super::excerpt::{excerpts, level, snippets};
use super::wording::title;
use crate::report::width::Width;
use crate::results::source_texts::SourceTexts;

/// The number of findings of one kind that are printed in full.
const SHOWN_ALIKE: usize = 3;

/// The number of mistakes in files that are shown.
const SHOWN_IN_FULL: usize = 100;

/// Returns what to print, in pieces: each a kind of finding, with what to do about it.
pub(super) fn pieces(report: &Report, width: Width) -> Vec<String> {
    let printer = FindingPrinter { files: report.files, width };
    let mut pieces = Vec::new();
    let entries = report.entries();
    let (folded, single): (Vec<&ReportEntry>, Vec<&ReportEntry>) =
        entries.iter().partition(|entry| entry.finding.cluster.is_some());
    let (notices, single): (Vec<&ReportEntry>, Vec<&ReportEntry>) =
        single.into_iter().partition(|entry| entry.severity() == Severity::Notice);
    pieces.extend(printer.apart(&single));
    // Groups in the order of their first entries.
    let mut numbers = BTreeMap::new();
    let mut groups: Vec<Vec<&ReportEntry>> = Vec::new();
    for entry in folded {
        let finding = entry.finding;
        let kind = (finding.rule.name(), entry.severity(), &finding.group);
        let number = *numbers.entry(kind).or_insert(groups.len());
        match groups.get_mut(number) {
            Some(group) => group.push(entry),
            None => groups.push(vec![entry]),
        }
    }
    let mut groups = groups.iter().peekable();
    let mut lines = Vec::new();
    while let Some(group) = groups.next() {
        lines.extend(printer.alike(group));
        let own = (rule(group), help(group));
        // Several clusters with one problem share the help behind the last of them. Below a finding of another
        // rule, it would look like the help of that one alone.
        let is_shared =
            own.1.is_some() && groups.peek().is_some_and(|it| own == (rule(it), help(it)));
        if !is_shared {
            lines.extend(printer.help(own.1));
            pieces.push(piece(&lines));
            lines.clear();
        }
    }
    pieces.extend(printer.apart(&notices));
    pieces
}

/// Returns lines with an empty one behind them.
fn piece(lines: &[String]) -> String {
    lines.join("\n") + "\n"
}

/// Returns the rule of entries that are alike.
fn rule(entries: &[&ReportEntry]) -> Option<&'static Rule> {
    entries.first().map(|it| it.finding.rule)
}

/// Returns what to do about entries that are alike, if it is the same for all of them. It is an example if not all of
/// them are shown.
fn help<'e>(entries: &[&'e ReportEntry]) -> Option<&'e str> {
    let mut helps = entries.iter().rev().filter_map(|it| it.finding.help.as_deref());
    let last = helps.next()?;
    let is_example = SHOWN_ALIKE + 1 < entries.len();
    (is_example || helps.all(|it| it == last)).then_some(last)
}

struct FindingPrinter<'a> {
    files: &'a dyn SourceTexts,
    width: Width,
}

impl FindingPrinter<'_> {
    /// Prints entries about no cluster, each for itself.
    fn apart(&self, entries: &[&ReportEntry]) -> Vec<String> {
        let alone = |entry: &&ReportEntry| {
            let help = entry.finding.help.as_deref();
            piece(&[vec![self.finding(entry)], self.help(help)].concat())
        };
        let shown = entries.iter().take(SHOWN_IN_FULL).map(alone);
        let more = entries.len().saturating_sub(SHOWN_IN_FULL);
        shown.chain((0 < more).then(|| format!("… and {more} more\n"))).collect()
    }

    /// Prints entries of one kind, the first few in full, with what to do about each if it is not the same for all.
    fn alike(&self, entries: &[&ReportEntry]) -> Vec<String> {
        // One more than the limit takes a line anyway.
        let shown = if entries.len() <= SHOWN_ALIKE + 1 { entries.len() } else { SHOWN_ALIKE };
        let is_common = help(entries).is_some();
        let mut lines = Vec::new();
        let mut shown_entries = entries.iter().take(shown).peekable();
        while let Some(entry) = shown_entries.next() {
            lines.push(self.finding(entry));
            let help = entry.finding.help.as_deref();
            let next = shown_entries.peek();
            if !is_common && next.is_none_or(|it| it.finding.help.as_deref() != help) {
                lines.extend(self.help(help));
            }
        }
        if let Some(entry) = entries.get(shown) {
            let more = entries.len() - shown;
            let text = format!("{}: {more} more findings like these", entry.finding.group);
            lines.push(self.rendered(Group::with_title(self.title(entry, &text))));
        }
        lines
    }

    /// Prints an entry without its help.
    fn finding(&self, entry: &ReportEntry) -> String {
        let finding = entry.finding;
        let title = self.title(entry, &title(entry));
        let excerpts = excerpts(self.files, &finding.labels);
        let is_elsewhere = |label: &&Label| {
            finding.cluster.is_none() || self.files.is_withheld(&label.place.source)
        };
        self.rendered(match finding.labels.first() {
            _ if !excerpts.is_empty() => title.elements(snippets(excerpts)),
            Some(label) if is_elsewhere(&label) => title.element(origin(self.files, label)),
            _ => Group::with_title(title),
        })
    }

    fn title(&self, entry: &ReportEntry, text: &str) -> Title<'static> {
        let (name, severity) = (entry.finding.rule.name(), entry.severity());
        // As in `warning[name]: `.
        let before = severity.name().len() + name.len() + 4;
        let text = self.width.wrapped(before, text);
        level(severity).primary_title(text).id(name)
    }

    /// Prints what to do.
    fn help(&self, help: Option<&str>) -> Vec<String> {
        let help = help.map(|help| {
            let text = self.width.wrapped("help: ".len(), help);
            self.rendered(Group::with_title(Level::HELP.primary_title(text)))
        });
        help.into_iter().collect()
    }

    fn rendered(&self, group: Group) -> String {
        let renderer = Renderer::styled();
        match self.width.columns() {
            Some(columns) => renderer.term_width(columns).render(&[group]),
            None => renderer.render(&[group]),
        }
    }
}

/// Returns where something is that is not shown.
fn origin(files: &dyn SourceTexts, label: &Label) -> Origin<'static> {
    let origin = Origin::path(label.place.source.to_string());
    match files.positions(&label.place) {
        Some(positions) => origin.line(positions.start.line).char_column(positions.start.column),
        None => origin,
    }
}
