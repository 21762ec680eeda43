//! Insertion: entries are added to the text of a mesh, and nothing else in it changes.

use std::ops::Range;

use serde_json::Value;
use thiserror::Error;

use crate::document::{Source, TreeNode, TreeValue};

/// The reason why entries cannot be added to a text.
#[derive(Clone, Copy, Debug, Eq, Error, PartialEq)]
pub enum InsertionObstacle {
    /// The list has brackets, or its last entry has braces.
    #[error("`spec.clusters` is written in flow style")]
    FlowStyle,
    /// A value may be used in several places.
    #[error("the mesh uses YAML aliases")]
    Aliases,
    /// The list is not where a line can be added to it.
    #[error("the layout of `spec.clusters` is unusual")]
    Layout,
    /// The result would not be the old document with the entries at the end.
    #[error("the result would differ from the old document in more than these entries")]
    Different,
}

/// The position of new entries.
struct InsertionPoint {
    /// The byte at which they begin.
    offset: usize,
    /// The column of their dashes.
    indent: usize,
    /// The distance from the dash to the fields.
    step: usize,
    /// Whether the entries are separated by blank lines.
    is_separated: bool,
}

/// Adds entries after the last one of `spec.clusters`. They are written with dashes in column 4, as in a new mesh.
///
/// # Errors
/// The text is of a kind in which the place is uncertain, or the result is not what was wanted.
pub fn insert(
    source: &Source,
    document: usize,
    entries: &str,
) -> Result<String, InsertionObstacle> {
    let old = source.documents.get(document).ok_or(InsertionObstacle::Layout)?;
    if has_alias(old) {
        return Err(InsertionObstacle::Aliases);
    }
    let text = &*source.text;
    let clusters = clusters(old).ok_or(InsertionObstacle::Layout)?;
    let is_last_flow = clusters.items.last().is_some_and(|it| is_flow(text, it));
    if is_flow(text, clusters.list) || is_last_flow {
        return Err(InsertionObstacle::FlowStyle);
    }
    let point = point(text, &clusters).ok_or(InsertionObstacle::Layout)?;
    let (before, after) = text.split_at_checked(point.offset).ok_or(InsertionObstacle::Layout)?;
    let end = if before.ends_with("\r\n") || !before.ends_with('\n') && text.contains("\r\n") {
        "\r\n"
    } else {
        "\n"
    };
    let mut new = before.to_owned();
    if !new.ends_with('\n') {
        new.push_str(end);
    }
    for line in entries.lines() {
        let line = point.indented(line);
        if line.trim_start().starts_with('-') && point.is_separated {
            new.push_str(end);
        }
        new.push_str(&line);
        new.push_str(end);
    }
    new.push_str(after);
    if is_addition(source, document, entries, &new) {
        Ok(new)
    } else {
        Err(InsertionObstacle::Different)
    }
}

/// Returns entries as a person can paste them after the last one: with its indentation, or in the style of a list in
/// brackets. They are written as for [`insert`].
pub fn pasteable(source: &Source, document: usize, entries: &str) -> String {
    let text = &*source.text;
    let Some(clusters) = source.documents.get(document).and_then(clusters) else {
        return entries.to_owned();
    };
    if is_flow(text, clusters.list) {
        return in_braces(entries).unwrap_or_else(|| entries.to_owned());
    }
    match point(text, &clusters) {
        Some(point) => entries.lines().map(|line| point.indented(line) + "\n").collect(),
        None => entries.to_owned(),
    }
}

/// Returns entries in braces, a line each and without comments.
fn in_braces(entries: &str) -> Option<String> {
    let source = Source::parse("entries", entries).ok()?;
    let TreeValue::Sequence(items) = &source.documents.first()?.value else {
        return None;
    };
    let written = |span: &Range<usize>| Some(source.text.get(span.clone())?.trim().to_owned());
    let entry = |item: &TreeNode| {
        let TreeValue::Mapping(fields) = &item.value else {
            return None;
        };
        let fields = fields.iter();
        let fields = fields
            .map(|it| Some(format!("{}: {}", written(&it.key.span)?, written(&it.value.span)?)));
        Some(format!("    {{ {} }}", fields.collect::<Option<Vec<_>>>()?.join(", ")))
    };
    let entries: Vec<String> = items.iter().map(entry).collect::<Option<_>>()?;
    Some(entries.join(",\n") + "\n")
}

/// The list `spec.clusters`.
struct ClusterList<'t> {
    list: &'t TreeNode,
    items: &'t [TreeNode],
}

fn clusters(document: &TreeNode) -> Option<ClusterList<'_>> {
    let list = document.get("spec")?.get("clusters")?;
    match &list.value {
        TreeValue::Sequence(items) => Some(ClusterList { list, items }),
        _ => None,
    }
}

impl InsertionPoint {
    /// Returns a line of entries with the indentation of the others.
    fn indented(&self, line: &str) -> String {
        let line = line.strip_prefix("    ").unwrap_or(line);
        match line.strip_prefix("- ") {
            Some(field) => {
                format!("{}-{}{field}", " ".repeat(self.indent), " ".repeat(self.step - 1))
            }
            None => format!("{}{}", " ".repeat(self.indent + self.step), line.trim_start()),
        }
    }
}

/// Finds where the last entry ends.
fn point(text: &str, clusters: &ClusterList) -> Option<InsertionPoint> {
    let last = clusters.items.last()?;
    let start = line_start(text, last.span.start);
    let head = text.get(start..last.span.start)?;
    let indent = head.len() - head.trim_start_matches(' ').len();
    let is_head = head.trim() == "-" && head.bytes().all(|it| matches!(it, b' ' | b'-'));
    is_head.then(|| InsertionPoint {
        offset: after_comments(text, line_end(text, end(text, last)), indent),
        indent,
        step: head.len() - indent,
        is_separated: 1 < clusters.items.len() && is_separated(text, start),
    })
}

/// Returns the byte after the last visible character of a value.
fn end(text: &str, node: &TreeNode) -> usize {
    let written = |span: &Range<usize>| {
        let own = text.get(span.clone()).unwrap_or_default();
        span.start + own.trim_end().len()
    };
    match &node.value {
        TreeValue::Scalar(_) => written(&node.span),
        _ if is_flow(text, node) => written(&node.span),
        TreeValue::Sequence(items) => items.last().map_or(node.span.start, |it| end(text, it)),
        TreeValue::Mapping(entries) => {
            let last = entries.last();
            last.map_or(node.span.start, |it| it.key.span.end.max(end(text, &it.value)))
        }
    }
}

/// Returns the end of the comments below an entry that are indented like its fields.
fn after_comments(text: &str, end: usize, indent: usize) -> usize {
    let mut offset = end;
    let mut last = end;
    for line in text.get(end..).unwrap_or_default().split_inclusive('\n') {
        offset += line.len();
        let content = line.trim_start_matches(' ');
        if content.starts_with('#') && indent < line.len() - content.len() {
            last = offset;
        } else if !content.trim().is_empty() {
            break;
        }
    }
    last
}

/// Returns whether the line above an entry and its comments is blank.
fn is_separated(text: &str, start: usize) -> bool {
    let above = text.get(..start).unwrap_or_default().lines().rev();
    let mut above = above.skip_while(|it| it.trim_start().starts_with('#'));
    above.next().is_some_and(|it| it.trim().is_empty())
}

fn is_flow(text: &str, node: &TreeNode) -> bool {
    // A list without brackets begins where its first item does.
    let bracket = match node.value {
        TreeValue::Scalar(_) => return false,
        TreeValue::Sequence(_) => '[',
        TreeValue::Mapping(_) => '{',
    };
    text.get(node.span.start..).is_some_and(|it| it.starts_with(bracket))
}

fn has_alias(node: &TreeNode) -> bool {
    node.alias
        || match &node.value {
            TreeValue::Scalar(_) => false,
            TreeValue::Sequence(items) => items.iter().any(has_alias),
            TreeValue::Mapping(entries) => entries.iter().any(|it| has_alias(&it.value)),
        }
}

fn line_start(text: &str, offset: usize) -> usize {
    let before = text.get(..offset).and_then(|it| it.rfind('\n'));
    before.map_or(0, |it| it + 1)
}

fn line_end(text: &str, offset: usize) -> usize {
    let after = text.get(offset..).and_then(|it| it.find('\n'));
    after.map_or(text.len(), |it| offset + it + 1)
}

/// Returns whether a text is the old one with these entries at the end of the list.
fn is_addition(old: &Source, document: usize, entries: &str, new: &str) -> bool {
    let parse = |text: &str| Source::parse(&*old.name, text).ok().map(|it| contents(&it));
    let (Some(new), Some(entries)) = (parse(new), parse(entries)) else {
        return false;
    };
    let mut expected = contents(old);
    let clusters = expected.get_mut(document).and_then(|it| it.pointer_mut("/spec/clusters"));
    let (Some(Value::Array(clusters)), [Value::Array(entries)]) = (clusters, entries.as_slice())
    else {
        return false;
    };
    clusters.extend(entries.iter().cloned());
    new == expected
}

fn contents(source: &Source) -> Vec<Value> {
    source.documents.iter().map(TreeNode::to_json).collect()
}
