//! Excerpts: pieces of files with what there is to see in them, as rustc shows them.

use std::borrow::Cow;
use std::iter;
use std::ops::Range;

use crate::diagnostic::{Label, Severity, escaped, is_command, is_deceptive};
use crate::place::Place;
use annotate_snippets::{Annotation, AnnotationKind, Level, Snippet};

use crate::results::source_texts::SourceTexts;

/// The number of places of a finding that are shown.
const SHOWN: usize = 4;

/// The longest line that is shown alone, in characters.
const LINE: usize = 160;

pub(super) fn level(severity: Severity) -> Level<'static> {
    match severity {
        Severity::Error => Level::ERROR,
        Severity::Warning => Level::WARNING,
        Severity::Notice => Level::NOTE.with_name("notice"),
    }
}

/// A piece of a file, and what there is to see in it.
pub(super) struct Excerpt<'a> {
    name: &'a str,
    text: &'a str,
    span: Range<usize>,
    label: &'a str,
}

/// Looks up the first labels whose file is at hand.
pub(super) fn excerpts<'a>(files: &'a dyn SourceTexts, labels: &'a [Label]) -> Vec<Excerpt<'a>> {
    labels
        .iter()
        .filter_map(|Label { place, text }| {
            let file = files.get(&place.source)?;
            Some(Excerpt {
                name: &file.source().name,
                text: file.text()?,
                span: file.source().locate(place)?,
                label: text,
            })
        })
        .take(SHOWN)
        .collect()
}

/// Returns the first line of a place as it may be shown; of a long line, the part around the place.
pub(super) fn line(files: &dyn SourceTexts, place: &Place) -> Option<String> {
    let file = files.get(&place.source)?;
    let text = file.text()?;
    let start = file.source().locate(place)?.start;
    // A line can be as long as its file, and a file can have a finding for each node.
    let first = boundary(text, start.saturating_sub(4 * LINE));
    let last = boundary(text, start.saturating_add(4 * LINE).min(text.len()));
    let near = text.get(first..start)?;
    let after = text.get(start..last)?.lines().next().unwrap_or_default();
    let before = near.rsplit('\n').next().unwrap_or_default();
    let skipped = before.chars().count().saturating_sub(LINE / 2);
    let dots = if skipped == 0 { "" } else { "…" };
    let before: String = before.chars().skip(skipped).collect();
    let line = escaped(&format!("{dots}{before}{after}"), LINE);
    Some(line).filter(|it| !it.trim().is_empty())
}

/// Returns the first place in a text, from another one on, at which a character begins.
fn boundary(text: &str, from: usize) -> usize {
    let mut places = from..text.len();
    places.find(|it| text.is_char_boundary(*it)).unwrap_or(text.len())
}

/// Makes a snippet for each file among the excerpts, the first one's first.
pub(super) fn snippets(excerpts: Vec<Excerpt<'_>>) -> Vec<Snippet<'_, Annotation<'_>>> {
    let kinds = iter::once(AnnotationKind::Primary).chain(iter::repeat(AnnotationKind::Context));
    let mut files: Vec<(&str, Vec<_>)> = Vec::new();
    for (kind, excerpt) in kinds.zip(excerpts) {
        match files.iter_mut().find(|(name, _)| *name == excerpt.name) {
            Some((_, known)) => known.push((kind, excerpt)),
            None => files.push((excerpt.name, vec![(kind, excerpt)])),
        }
    }
    files.into_iter().map(|(name, excerpts)| snippet(name, excerpts)).collect()
}

/// Makes the snippet of a file, of no more of it than is needed: files are large, and findings many.
fn snippet<'a>(
    name: &'a str,
    excerpts: Vec<(AnnotationKind, Excerpt<'a>)>,
) -> Snippet<'a, Annotation<'a>> {
    let text = excerpts.first().map_or("", |(_, excerpt)| excerpt.text);
    let spans = || excerpts.iter().map(|(_, excerpt)| &excerpt.span);
    let start = spans().map(|span| span.start).min().unwrap_or(0);
    let end = spans().map(|span| span.end).max().unwrap_or(0);
    let before = text.get(..start).unwrap_or_default();
    // A problem at the very end is shown at the end of the last line.
    let at_end = before.strip_suffix('\n').filter(|_| start == text.len());
    let before = at_end.unwrap_or(before);
    let first = before.rfind('\n').map_or(0, |end| end + 1);
    // One more line than the last one, which may be at its end.
    let behind = text.get(end..).unwrap_or_default();
    let lines = behind.split_inclusive('\n').take(2);
    let last = end + lines.map(str::len).sum::<usize>();
    let shown = text.get(first..last).unwrap_or_default();
    let snippet = Snippet::source(harmless(shown))
        .line_start(1 + before.matches('\n').count())
        .path(name)
        .fold(true);
    snippet.annotations(excerpts.into_iter().map(|(kind, excerpt)| {
        let label = Some(excerpt.label).filter(|label| !label.is_empty());
        let Range { start, end } = excerpt.span;
        kind.span(start - first..end - first).label(label)
    }))
}

/// Replaces what steers a terminal or the runner of a CI job, or misleads a reader, by something of
/// the same length in bytes, so that every span stays where it was.
fn harmless(text: &str) -> Cow<'_, str> {
    let is_bad =
        |character: char| !matches!(character, '\n' | '\r' | '\t') && is_deceptive(character);
    if !text.contains(is_bad) && !text.contains("##") {
        return Cow::Borrowed(text);
    }
    let mut shown = String::with_capacity(text.len());
    for character in text.chars() {
        shown.push(match character.len_utf8() {
            1 if is_bad(character) || character == '[' && is_command(&shown) => '?',
            2 if is_bad(character) => '\u{bf}',
            3 if is_bad(character) => '\u{fffd}',
            4 if is_bad(character) => '\u{1f6ab}',
            _ => character,
        });
    }
    Cow::Owned(shown)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_bad_is_replaced_by_as_much() {
        let text = "a: \"\u{1b}[2J \u{202e} \u{e0041} ##vso[task] ##[x] #[y]\"";
        let shown = harmless(text);
        assert_eq!(shown.len(), text.len());
        assert_eq!(shown, "a: \"?[2J \u{fffd} \u{1f6ab} ##vso?task] ##?x] #[y]\"");
        assert!(matches!(harmless("a: [b]"), Cow::Borrowed(_)));
    }
}
