//! Entries as they are written: where their networks are, and the comments between these.

use std::ops::Range;

use super::field::{Field, FieldItem};
use super::{Edit, node_at, refusal};
use crate::diagnostic::Finding;
use crate::document::{MappingEntry, Source, TreeNode, TreeValue};
use crate::mesh::Entry;

/// The fields of both forms.
const NETWORKS: [&str; 5] = [
    "podCIDRs",
    "wireguardCIDR",
    "serviceCIDR",
    "additionalCIDRs",
    "allowedNetworks",
];

/// The fields of an entry, where they are written.
pub(super) struct WrittenEntry<'s> {
    entry: &'s Entry,
    text: &'s str,
    fields: &'s [MappingEntry],
    is_flow: bool,
}

impl<'s> WrittenEntry<'s> {
    /// Finds an entry in its file.
    pub(super) fn read(source: &'s Source, entry: &'s Entry) -> Result<Self, Finding> {
        let aliased = || {
            let what = "is written with an alias, so that an edit would change other places too";
            refusal(entry, what, "write the networks of the entry in the entry")
        };
        let node = node_at(source, &entry.place).ok_or_else(aliased)?;
        let TreeValue::Mapping(fields) = &node.value else {
            return Err(aliased());
        };
        let written = Self {
            entry,
            text: &source.text,
            fields,
            is_flow: source
                .text
                .get(node.span.start..)
                .is_some_and(|it| it.starts_with('{')),
        };
        let is_alias = |it: &MappingEntry| it.value.alias || scalars(&it.value).any(|it| it.alias);
        if written.networks().any(is_alias) {
            return Err(aliased());
        }
        Ok(written)
    }

    fn networks(&self) -> impl Iterator<Item = &'s MappingEntry> {
        self.fields
            .iter()
            .filter(|it| NETWORKS.contains(&&*it.key.scalar.text))
    }

    /// Returns all ranges of the entry in the order in which they are compared, with their comments.
    pub(super) fn items(&self) -> Result<Vec<FieldItem>, Finding> {
        let mut items = Vec::new();
        for name in NETWORKS {
            let mut networks = self.networks();
            if let Some(field) = networks.find(|it| &*it.key.scalar.text == name) {
                let found = if self.is_flow {
                    self.plain_items(field)?
                } else {
                    self.commented_items(field)
                };
                items.extend(found);
            }
        }
        Ok(items)
    }

    /// Returns the ranges of a field between braces, where comments have no place of their own.
    fn plain_items(&self, field: &MappingEntry) -> Result<Vec<FieldItem>, Finding> {
        let bytes = field.key.span.start..self.end(field);
        if self.part(&bytes).contains('#') {
            let what = "has comments between braces, which would be lost";
            return Err(refusal(
                self.entry,
                what,
                "move the comments above the entry",
            ));
        }
        let item = |it: &TreeNode| FieldItem {
            text: self.part(&it.span).to_owned(),
            ..FieldItem::default()
        };
        Ok(ranges(&field.value).map(item).collect())
    }

    /// Returns the ranges of a field on lines of its own, each with the comments beside it.
    fn commented_items(&self, field: &MappingEntry) -> Vec<FieldItem> {
        let spans: Vec<&Range<usize>> = ranges(&field.value).map(|it| &it.span).collect();
        let mut items: Vec<FieldItem> = Vec::new();
        let mut above: Vec<String> = Vec::new();
        let lines = self.lines(field);
        let mut start = lines.start;
        for line in self.part(&lines).split_inclusive('\n') {
            let end = start + line.len();
            let own: Vec<&&Range<usize>> = spans
                .iter()
                .filter(|it| (start..end).contains(&it.start))
                .collect();
            let after = own.last().map_or(start, |it| it.end);
            let rest = self.part(&(after..end));
            let comment = rest
                .find('#')
                .and_then(|at| rest.get(at..))
                .map(|it| it.trim_end().to_owned());
            match own.as_slice() {
                [] => above.extend(comment),
                [only] => items.push(FieldItem {
                    text: self.part(only).to_owned(),
                    above: std::mem::take(&mut above),
                    behind: comment,
                }),
                several => {
                    above.extend(comment);
                    for span in several {
                        items.push(FieldItem {
                            text: self.part(span).to_owned(),
                            above: std::mem::take(&mut above),
                            behind: None,
                        });
                    }
                }
            }
            start = end;
        }
        if let Some(last) = items.last_mut() {
            // Comments behind the last range are kept above it.
            last.above.extend(above);
        }
        items
    }

    /// Returns the edits that replace the networks with other fields.
    pub(super) fn rewritten(&self, fields: &[Field]) -> Result<Vec<Edit>, Finding> {
        let Some(first) = self.networks().next() else {
            return Ok(Vec::new());
        };
        if self.is_flow {
            return Ok(self.rewritten_flow(first, fields));
        }
        let mut edits = Vec::new();
        for field in self.networks() {
            let lines = self.lines(field);
            let rest = self.part(&(self.end(field)..lines.end)).trim_start();
            if !rest.is_empty() && !rest.starts_with('#') {
                let what = "has other text on the line of a value";
                let help = "write each field on lines of its own";
                return Err(refusal(self.entry, what, help));
            }
            let is_first = std::ptr::eq(field, first);
            let text = if is_first {
                self.block(first, &lines, fields)
            } else if lines.start == field.key.span.start {
                // The first field of an item stands behind its dash.
                continue;
            } else {
                String::new()
            };
            edits.push(Edit { bytes: lines, text });
        }
        Ok(edits)
    }

    fn block(&self, first: &MappingEntry, lines: &Range<usize>, fields: &[Field]) -> String {
        let start = self.line_start(first.key.span.start);
        let before = self.part(&(start..first.key.span.start));
        let indent = " ".repeat(before.chars().count());
        let text: String = fields.iter().map(|it| it.block(&indent)).collect();
        if lines.start == first.key.span.start {
            text.trim_start_matches(' ').to_owned()
        } else {
            text
        }
    }

    fn rewritten_flow(&self, first: &MappingEntry, fields: &[Field]) -> Vec<Edit> {
        let quote = if first.key.scalar.plain { "" } else { "\"" };
        let texts: Vec<String> = fields.iter().map(|it| it.flow(quote)).collect();
        let mut edits = vec![Edit {
            bytes: first.key.span.start..self.end(first),
            text: texts.join(", "),
        }];
        let is_gone = |it: &MappingEntry| {
            NETWORKS.contains(&&*it.key.scalar.text) && !std::ptr::eq(it, first)
        };
        let mut index = 0;
        while let Some(field) = self.fields.get(index) {
            if !is_gone(field) {
                index += 1;
                continue;
            }
            let rest = self.fields.get(index..).unwrap_or_default();
            let gone = rest.iter().take_while(|it| is_gone(it)).count();
            let start = field.key.span.start;
            let bytes = match (rest.get(gone), rest.get(gone - 1)) {
                (Some(next), _) => start..next.key.span.start,
                (None, last) => {
                    let comma = self.part(&(0..start)).rfind(',').unwrap_or(start);
                    comma..last.map_or(start, |it| self.end(it))
                }
            };
            edits.push(Edit {
                bytes,
                text: String::new(),
            });
            index += gone;
        }
        edits
    }

    /// Returns where the value of a field ends, with its bracket.
    fn end(&self, field: &MappingEntry) -> usize {
        let value = &field.value;
        let TreeValue::Sequence(items) = &value.value else {
            return value.span.end.max(field.key.span.end);
        };
        let last = items.last().map_or(value.span.start, |it| it.span.end);
        let is_flow = self
            .text
            .get(value.span.start..)
            .is_some_and(|it| it.starts_with('['));
        let mut rest = self.part(&(last..self.text.len())).char_indices();
        match rest.find(|(_, it)| *it == ']').filter(|_| is_flow) {
            Some((at, _)) => last + at + 1,
            None => last,
        }
    }

    /// Returns the lines of a field; those of the first field of an item begin behind the dash. The
    /// comments above a field that is moved belong to it.
    fn lines(&self, field: &MappingEntry) -> Range<usize> {
        let key = field.key.span.start;
        let mut line = self.line_start(key);
        let is_alone = self.part(&(line..key)).trim().is_empty();
        let is_first = self
            .networks()
            .next()
            .is_some_and(|it| std::ptr::eq(it, field));
        while !is_first && is_alone && 0 < line {
            let above = self.line_start(line - 1);
            if !self.part(&(above..line)).trim_start().starts_with('#') {
                break;
            }
            line = above;
        }
        let end = self.end(field);
        let rest = self.part(&(end..self.text.len()));
        let end = rest.find('\n').map_or(self.text.len(), |at| end + at + 1);
        (if is_alone { line } else { key })..end
    }

    fn line_start(&self, at: usize) -> usize {
        self.part(&(0..at)).rfind('\n').map_or(0, |it| it + 1)
    }

    fn part(&self, bytes: &Range<usize>) -> &'s str {
        self.text.get(bytes.clone()).unwrap_or_default()
    }
}

/// Returns the scalars of a value.
fn scalars(value: &TreeNode) -> impl Iterator<Item = &TreeNode> {
    let items: &[TreeNode] = match &value.value {
        TreeValue::Sequence(items) => items,
        TreeValue::Scalar(_) | TreeValue::Mapping(_) => std::slice::from_ref(value),
    };
    items.iter()
}

/// Returns the ranges of a value; the operator writes empty ones.
fn ranges(value: &TreeNode) -> impl Iterator<Item = &TreeNode> {
    scalars(value).filter(|it| !it.is_null() && it.text().is_some_and(|text| !text.is_empty()))
}
