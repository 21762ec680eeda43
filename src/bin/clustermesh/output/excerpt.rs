//! Excerpts: pieces of files with what there is to see in them, as rustc shows them.

use std::borrow::Cow;
use std::ops::Range;

use annotate_snippets::{Annotation, AnnotationKind, Level, Snippet};
use clustermesh::diagnostic::{Label, Severity, is_command, is_deceptive};

use crate::files::Files;

pub(super) fn level(severity: Severity) -> Level<'static> {
    match severity {
        Severity::Error => Level::ERROR,
        Severity::Warning => Level::WARNING,
        Severity::Notice => Level::NOTE,
    }
}

/// A piece of a file, and what there is to see in it.
pub(super) struct Excerpt<'a> {
    name: &'a str,
    text: &'a str,
    span: Range<usize>,
    label: &'a str,
}

/// Looks up the labels whose file is at hand.
pub(super) fn excerpts<'a>(files: &'a Files, labels: &'a [Label]) -> Vec<Excerpt<'a>> {
    labels
        .iter()
        .filter_map(|Label { place, text }| {
            let source = files.get(&place.source)?;
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
pub(super) fn snippets(excerpts: Vec<Excerpt<'_>>) -> Vec<Snippet<'_, Annotation<'_>>> {
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
        assert_eq!(
            shown,
            "a: \"?[2J \u{fffd} \u{1f6ab} ##vso?task] ##?x] #[y]\""
        );
        assert!(matches!(harmless("a: [b]"), Cow::Borrowed(_)));
    }
}
