//! Output: what a run has to say, for the person at the terminal.
//!
//! All of it goes to standard error; results are written by the commands.

use std::borrow::Cow;
use std::collections::{BTreeMap, BTreeSet};
use std::io::Write as _;
use std::ops::Range;

use annotate_snippets::{Annotation, AnnotationKind, Group, Level, Renderer, Snippet};
use anstream::{AutoStream, ColorChoice};
use clustermesh::change::Loss;
use clustermesh::diagnostic::{Diagnostic, Label, Severity, escaped, is_deceptive};
use clustermesh::document::{Source, SyntaxError};
use clustermesh::plan::Plan;
use clustermesh::rules::Finding;

use crate::Outcome;
use crate::disk::tree::Survey;
use crate::input::Unreadable;

mod summary;

/// How many findings of one kind are told in full.
const SHOWN_ALIKE: usize = 3;

/// How many mistakes of a file are shown; whoever made more has enough to do.
const SHOWN_IN_FULL: usize = 100;

/// Whoever listens on standard error.
pub(crate) struct Talk {
    stderr: AutoStream<std::io::Stderr>,
    renderer: Renderer,
}

impl Talk {
    /// Speaks in colour if `choice` says so, or leaves it to the terminal.
    pub(crate) fn new(choice: clap::ColorChoice) -> Self {
        let choice = match choice {
            clap::ColorChoice::Auto => AutoStream::choice(&std::io::stderr()),
            clap::ColorChoice::Always => ColorChoice::Always,
            clap::ColorChoice::Never => ColorChoice::Never,
        };
        Self {
            stderr: AutoStream::new(std::io::stderr(), choice),
            renderer: Renderer::styled(),
        }
    }

    /// Says one line.
    pub(crate) fn line(&mut self, text: &str) {
        // A closed standard error leaves nobody to tell, which is no reason to stop.
        let _ = writeln!(self.stderr, "{text}");
    }

    /// Says why it could not be done.
    pub(crate) fn error(&mut self, error: &anyhow::Error) {
        let report = Level::ERROR.primary_title(escaped(&format!("{error:#}"), 4000));
        self.report(&[Group::with_title(report)]);
    }

    /// Says what is wrong with a file that has no excerpt.
    pub(crate) fn wrong(&mut self, message: &str) {
        self.report(&[Group::with_title(Level::ERROR.primary_title(message))]);
    }

    /// Says why there is nothing to work with.
    pub(crate) fn unreadable(&mut self, unreadable: Unreadable) -> Outcome {
        let (errors, outcome) = match unreadable {
            Unreadable::Failed(error) => {
                self.error(&error);
                return Outcome::Unreadable;
            }
            Unreadable::Syntax { name, text, errors } => {
                for error in &errors {
                    self.syntax(&name, &text, error);
                }
                (errors.len(), Outcome::Unreadable)
            }
            Unreadable::Wrong { sources, problems } => {
                self.diagnostics(&sources, &problems);
                let errors = problems.iter().filter(|it| it.severity == Severity::Error);
                (errors.count(), Outcome::Findings)
            }
            Unreadable::Snapshots { wrong, is_syntax } => {
                for message in &wrong {
                    self.wrong(message);
                }
                let outcome = if is_syntax {
                    Outcome::Unreadable
                } else {
                    Outcome::Findings
                };
                (wrong.len(), outcome)
            }
        };
        self.line(&plural(errors, "error"));
        outcome
    }

    fn syntax(&mut self, name: &str, text: &str, error: &SyntaxError) {
        let labels = error.diagnostic.labels.iter();
        let excerpts = labels.zip(&error.spans).map(|(label, span)| Excerpt {
            name,
            text,
            span: span.clone(),
            label: &label.text,
        });
        self.diagnostic(&error.diagnostic, excerpts.collect());
    }

    /// Shows diagnostics as rustc would, each with its lines.
    pub(crate) fn diagnostics(&mut self, sources: &[Source], diagnostics: &[Diagnostic]) {
        for diagnostic in diagnostics.iter().take(SHOWN_IN_FULL) {
            self.diagnostic(diagnostic, excerpts(sources, &diagnostic.labels));
        }
        let more = diagnostics.len().saturating_sub(SHOWN_IN_FULL);
        if 0 < more {
            self.line(&format!("… and {more} more\n"));
        }
    }

    fn diagnostic(&mut self, diagnostic: &Diagnostic, excerpts: Vec<Excerpt>) {
        let title = level(diagnostic.severity)
            .primary_title(diagnostic.message.as_str())
            .id(diagnostic.code);
        let group = title.elements(snippets(excerpts));
        let group = match &diagnostic.help {
            Some(help) => group.element(Level::HELP.message(help.as_str())),
            None => group,
        };
        self.report(&[group]);
        self.line("");
    }

    /// Tells findings, a line each; of many that are alike the first few and a count.
    pub(crate) fn findings(&mut self, sources: &[Source], findings: &[Finding]) {
        let alike = |a: &Finding, b: &Finding| a.rule == b.rule && a.group == b.group;
        let mut rest: Vec<&Finding> = findings.iter().collect();
        while let Some(&first) = rest.first() {
            let (group, others): (Vec<&Finding>, Vec<&Finding>) =
                rest.into_iter().partition(|it| alike(first, it));
            rest = others;
            self.alike(sources, &group);
        }
    }

    fn alike(&mut self, sources: &[Source], findings: &[&Finding]) {
        // One more than the limit takes a line anyway.
        let shown = if findings.len() <= SHOWN_ALIKE + 1 {
            findings.len()
        } else {
            SHOWN_ALIKE
        };
        for (position, finding) in findings.iter().take(shown).enumerate() {
            let text = format!("{}: {}", finding.subject, finding.message);
            let title = level(finding.rule.severity)
                .primary_title(text)
                .id(finding.rule.code());
            // Snapshots are not shown: the subject names the node.
            let excerpts = excerpts(sources, &finding.labels);
            let group = if excerpts.is_empty() {
                Group::with_title(title)
            } else {
                title.elements(snippets(excerpts))
            };
            self.report(&[group]);
            let is_last = position + 1 == shown;
            if let (true, Some(help), true) = (is_last, &finding.help, shown == findings.len()) {
                self.help(help);
            }
        }
        if let (Some(first), true) = (findings.first(), shown < findings.len()) {
            let more = findings.len() - shown;
            let text = format!("{}: {more} more like these", first.group);
            let title = level(first.rule.severity)
                .primary_title(text)
                .id(first.rule.code());
            self.report(&[Group::with_title(title)]);
            if let Some(help) = &first.help {
                self.help(help);
            }
        }
    }

    fn help(&mut self, help: &str) {
        self.report(&[Group::with_title(Level::HELP.primary_title(help))]);
    }

    /// Says which Peers a target would lose altogether, and how to allow it.
    pub(crate) fn losses(&mut self, losses: &[Loss]) {
        for loss in losses {
            let text = match loss {
                Loss::EmptyTarget { target } => format!("`{target}` would have no Peer at all"),
                Loss::Target { target, peers } => format!(
                    "no mesh names `{target}` any more; its folder has {}",
                    plural(*peers, "Peer")
                ),
                Loss::Source {
                    target,
                    source,
                    peers,
                } => {
                    format!("`{target}` would lose all its Peers of `{source}` ({peers} now)")
                }
            };
            let title = Level::ERROR.primary_title(escaped(&text, 1000));
            self.report(&[Group::with_title(title.id("lost-peers"))]);
        }
        self.help(&format!("if that is meant, render with{}", flags(losses)));
    }

    /// Says what was rendered, and how many nodes were left out.
    pub(crate) fn summary(&mut self, plan: &Plan, left_out: usize, survey: &Survey) {
        for line in summary::lines(plan, left_out, survey) {
            self.line(&line);
        }
    }

    fn report(&mut self, report: &[Group]) {
        let text = self.renderer.render(report);
        self.line(&text);
    }
}

/// Returns few flags that allow all of `losses`.
fn flags(losses: &[Loss]) -> String {
    let mut whole: BTreeSet<&str> = BTreeSet::new();
    let mut targets_of: BTreeMap<&str, BTreeSet<&str>> = BTreeMap::new();
    for loss in losses {
        match loss {
            Loss::EmptyTarget { target } | Loss::Target { target, .. } => {
                whole.insert(target);
            }
            Loss::Source { target, source, .. } => {
                targets_of.entry(source).or_default().insert(target);
            }
        }
    }
    let mut flags: Vec<String> = whole.iter().map(|&target| target.to_owned()).collect();
    for (source, mut targets) in targets_of {
        targets.retain(|target| !whole.contains(target));
        match targets.len() {
            0 => {}
            1 => flags.extend(targets.iter().map(|target| format!("{target}/{source}"))),
            _ => flags.push(format!("'*/{source}'")),
        }
    }
    let flags = flags
        .iter()
        .flat_map(|flag| [" --allow-empty ".to_owned(), escaped(flag, 400)]);
    flags.collect()
}

/// Returns a number with its noun.
fn plural(number: usize, noun: &str) -> String {
    match number {
        1 => format!("1 {noun}"),
        number => format!("{number} {noun}s"),
    }
}

fn level(severity: Severity) -> Level<'static> {
    match severity {
        Severity::Error => Level::ERROR,
        Severity::Warning => Level::WARNING,
        Severity::Notice => Level::NOTE,
    }
}

/// A piece of a file, and what there is to see in it.
struct Excerpt<'a> {
    name: &'a str,
    text: &'a str,
    span: Range<usize>,
    label: &'a str,
}

/// Looks up the labels whose file is at hand.
fn excerpts<'a>(sources: &'a [Source], labels: &'a [Label]) -> Vec<Excerpt<'a>> {
    labels
        .iter()
        .filter_map(|Label { place, text }| {
            let source = sources.iter().find(|it| it.name == place.source)?;
            Some(Excerpt {
                name: &source.name,
                text: &source.text,
                span: source.locate(place)?,
                label: text,
            })
        })
        .collect()
}

/// Makes a snippet for each file among the excerpts, the first one's first.
fn snippets(excerpts: Vec<Excerpt<'_>>) -> Vec<Snippet<'_, Annotation<'_>>> {
    let mut snippets: Vec<(&str, Snippet<_>)> = Vec::new();
    for (position, excerpt) in excerpts.into_iter().enumerate() {
        let kind = if position == 0 {
            AnnotationKind::Primary
        } else {
            AnnotationKind::Context
        };
        let label = Some(excerpt.label).filter(|label| !label.is_empty());
        let annotation = kind.span(excerpt.span).label(label);
        let known = snippets.iter().position(|(name, _)| *name == excerpt.name);
        let snippet = match known {
            Some(known) => snippets.remove(known).1,
            None => Snippet::source(harmless(excerpt.text))
                .path(excerpt.name)
                .fold(true),
        };
        let place = known.unwrap_or(snippets.len());
        snippets.insert(place, (excerpt.name, snippet.annotation(annotation)));
    }
    snippets.into_iter().map(|(_, snippet)| snippet).collect()
}

/// Replaces what steers a terminal or misleads a reader by something of the same length in bytes,
/// so that every span stays where it was.
fn harmless(text: &str) -> Cow<'_, str> {
    let is_bad =
        |character: char| !matches!(character, '\n' | '\r' | '\t') && is_deceptive(character);
    if !text.contains(is_bad) {
        return Cow::Borrowed(text);
    }
    let mark = |character: char| match character.len_utf8() {
        1 => '?',
        2 => '\u{bf}',
        3 => '\u{fffd}',
        _ => '\u{1f6ab}',
    };
    let shown = |character| {
        if is_bad(character) {
            mark(character)
        } else {
            character
        }
    };
    Cow::Owned(text.chars().map(shown).collect())
}
