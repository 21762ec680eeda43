//! The walk: a tree beside a JSON Schema, into a value or all that is wrong with its structure.
//!
//! Of JSON Schema it knows what schemars writes for the structs of our gates.

use std::collections::BTreeSet;
use std::sync::Arc;

use serde_json::{Map, Number, Value as Json};

use super::alike::nearest;
use super::plain::{self, Meaning};
use super::problem;
use super::tree::{MappingEntry, Scalar, TreeNode, TreeValue};
use crate::diagnostic::{Finding, LISTED, Mistakes, mistake};
use crate::place::Place;
use crate::text;

mod shape;

use shape::{ListShape, Mapping, Shape};

/// Returns the value of a tree as the schema reads it, and everything in it that the schema forbids
/// or misses, in the order of the text.
///
/// With problems the value is what is left without them, to look for more: a broken field is
/// missing, and a missing text is empty.
pub(super) fn walk(schema: &Json, node: &TreeNode, place: &Place) -> (Option<Json>, Mistakes) {
    let mut walk = Walk { root: schema, document: node, problems: Mistakes::default() };
    let value = walk.value(schema, node, place);
    if let Some(other) = walk.other_kind(node, place) {
        walk.problems = Mistakes::default();
        walk.problems.push(other);
        return (None, walk.problems);
    }
    (value, walk.problems)
}

/// The kinds of the files that people write.
const KINDS: [&str; 4] = ["ClusterMesh", "ClusterPolicy", "Config", "Expectations"];

struct Walk<'a> {
    root: &'a Json,
    document: &'a TreeNode,
    problems: Mistakes,
}

impl<'a> Walk<'a> {
    /// Returns what is wrong with a document of another kind than the one that is expected here, and with the fields of that
    /// kind: all other mistakes follow from it.
    fn other_kind(&self, node: &TreeNode, place: &Place) -> Option<Finding> {
        let Shape::Mapping(mapping) = Shape::from_schema(self.root, self.root) else { return None };
        let expected = self.only_value(&mapping, "kind")?;
        let kind = node.get("kind")?.text().filter(|it| *it != expected && KINDS.contains(it))?;
        let has_its_fields = self
            .problems
            .listed()
            .iter()
            .any(|it| it.rule == &mistake::UNKNOWN_FIELD || it.rule == &mistake::INVALID_TYPE);
        has_its_fields.then(|| problem::other_kind(kind, expected, &place.key("kind")))
    }

    /// Returns the value, unless there is a problem that keeps it from being one.
    fn value(&mut self, schema: &'a Json, node: &TreeNode, place: &Place) -> Option<Json> {
        let shape = match Shape::from_schema(schema, self.root) {
            Shape::List(list) => return self.list(&list, node, place),
            Shape::Mapping(mapping) => return self.mapping(&mapping, node, place),
            Shape::ListOrMapping([list, mapping]) => {
                let is_mapping = matches!(node.value, TreeValue::Mapping(_));
                let schema = if is_mapping { mapping } else { list };
                return self.value(schema, node, place);
            }
            shape => shape,
        };
        let read = scalar(&shape, node, place).map_err(|finding| match uncommented(node) {
            Some(value) if scalar(&shape, &value, place).is_ok() => {
                problem::glued_comment(node, place)
            }
            _ => finding,
        });
        self.kept(read)
    }

    fn kept<T>(&mut self, read: Result<T, Finding>) -> Option<T> {
        match read {
            Ok(value) => Some(value),
            Err(diagnostic) => {
                self.problems.push(diagnostic);
                None
            }
        }
    }

    fn list(&mut self, list: &ListShape<'a>, node: &TreeNode, place: &Place) -> Option<Json> {
        let TreeValue::Sequence(nodes) = &node.value else {
            let items = Shape::from_schema(list.items, self.root);
            self.problems.push(if matches!(items, Shape::Mapping(_)) {
                problem::unlisted_mappings(node, place)
            } else {
                let is_of_texts = matches!(items, Shape::Choice(_) | Shape::Text(_));
                problem::unlisted(is_of_texts, list.fewest, node, place)
            });
            return None;
        };
        let length = nodes.len() as u64;
        if length < list.fewest || list.most < length {
            self.problems.push(problem::wrong_count(list.fewest, list.most, length, place));
        }
        if let Shape::Text(_) = Shape::from_schema(list.items, self.root)
            && let Some(split) = problem::split_range(nodes, place)
        {
            self.problems.push(split);
            return None;
        }
        let items = nodes.iter().enumerate();
        let read: Vec<Option<Json>> =
            items.map(|(index, item)| self.value(list.items, item, &place.index(index))).collect();
        read.into_iter().collect::<Option<Vec<Json>>>().map(Json::Array)
    }

    fn mapping(&mut self, mapping: &Mapping<'a>, node: &TreeNode, place: &Place) -> Option<Json> {
        let TreeValue::Mapping(entries) = &node.value else {
            self.problems.push(self.unmapped(mapping, node, place));
            return None;
        };
        let mut fields = Map::new();
        let parents = self.parents(mapping, entries);
        let with_parts: BTreeSet<&str> = parents.iter().flatten().copied().collect();
        for (entry, parent) in entries.iter().zip(&parents) {
            let name = &*entry.key.scalar.text;
            if let Some(parent) = parent {
                let named = place.key(name).named();
                self.problems.push(problem::not_indented(name, parent, named));
                continue;
            }
            if with_parts.contains(name) {
                continue;
            }
            if let Some(value) = self.field(mapping, entry, &place.key(name)) {
                fields.insert(name.to_owned(), value);
            }
        }
        for name in &mapping.required {
            if node.get(name).is_none() && !self.is_slip(mapping, entries, name) {
                if let Some(finding) = self.without_its_line(name, place) {
                    self.problems.push(finding);
                    continue;
                }
                let value = self.only_value(mapping, name);
                self.problems.push_with(&mistake::MISSING_FIELD, || {
                    let missing = problem::missing_field(name, place);
                    match value {
                        Some(value) => missing.help(format!("write `{name}: {value}`")),
                        None => missing,
                    }
                });
            }
            if !fields.contains_key(*name)
                && let Some(stand_in) = self.stand_in(mapping, name)
            {
                fields.insert((*name).to_owned(), stand_in);
            }
        }
        Some(Json::Object(fields))
    }

    /// Returns a walk whose problems are not reported.
    fn beside(&self) -> Self {
        Self { problems: Mistakes::default(), ..*self }
    }

    /// Returns what is wrong with a value that should be a mapping.
    fn unmapped(&self, mapping: &Mapping<'a>, node: &TreeNode, place: &Place) -> Finding {
        let finding = problem::unmapped(&known_fields(mapping, self.root), node, place);
        if let ([name], TreeValue::Scalar(scalar)) = (&mapping.required[..], &node.value)
            && scalar.meaning() == Meaning::Number
            && let Some(schema) = mapping.fields.and_then(|it| it.get(*name))
            && self.beside().value(schema, node, place).is_some()
        {
            let text = format!("{{ {name}: {} }}", scalar.text);
            return finding.corrected(&text, format!("write `{text}`"));
        }
        finding
    }

    /// Returns for each entry the empty field before it that it was probably meant to be part of: it is
    /// unknown here, but known there.
    fn parents<'e>(
        &self,
        mapping: &Mapping<'a>,
        entries: &'e [MappingEntry],
    ) -> Vec<Option<&'e str>> {
        let mut empty: Option<(&str, Mapping)> = None;
        let parents = entries.iter().map(|entry| {
            let name = &*entry.key.scalar.text;
            let known = mapping.fields.and_then(|fields| fields.get(name));
            if let Some(schema) = known {
                empty = match Shape::from_schema(schema, self.root) {
                    Shape::Mapping(inner) if entry.value.is_null() => Some((name, inner)),
                    _ => None,
                };
            }
            let (parent, inner) = empty.as_ref().filter(|_| known.is_none())?;
            known_fields(inner, self.root).contains(&name).then_some(*parent)
        });
        parents.collect()
    }

    /// Returns the value of a field, if it has one that is used.
    fn field(
        &mut self,
        mapping: &Mapping<'a>,
        entry: &MappingEntry,
        place: &Place,
    ) -> Option<Json> {
        let name = &*entry.key.scalar.text;
        let known = mapping.fields.and_then(|fields| fields.get(name));
        if known.is_none()
            && mapping.others.is_some()
            && entry.key.scalar.meaning() != Meaning::Text
        {
            let named = place.clone().named();
            self.problems.push(problem::misread_key(&entry.key.scalar, named));
            return None;
        }
        // In a mapping that has fields and labels, a label is a text: anything else is a misspelled field.
        let others = mapping.others.filter(|_| {
            mapping.fields.is_none() || matches!(entry.value.value, TreeValue::Scalar(_))
        });
        let Some(schema) = known.or(others) else {
            let named = place.clone().named();
            let known = known_fields(mapping, self.root);
            let home = self.home(name);
            let unknown = || problem::unknown_field(name, &known, home, named);
            self.problems.push_with(&mistake::UNKNOWN_FIELD, unknown);
            return None;
        };
        let shape = Shape::from_schema(schema, self.root);
        if matches!(shape, Shape::Anything) {
            return None;
        }
        if known.is_some() && entry.value.is_null() {
            let is_required = mapping.required.contains(&name);
            if is_required || !shape::admits_null(schema) {
                let named = place.clone().named();
                self.problems.push(problem::empty_field(name, is_required, named));
            }
            return None;
        }
        let plural = format!("{name}s");
        if let (Shape::Text(_), TreeValue::Sequence(_)) = (shape, &entry.value.value)
            && known_fields(mapping, self.root).contains(&&*plural)
        {
            let finding = problem::wrong_type("a string", &entry.value, place);
            self.problems.push(finding.help(format!("write `{plural}` instead of `{name}`")));
            return None;
        }
        self.value(schema, &entry.value, place)
    }

    /// Returns the mapping of the document that has a field of this name, which is not written there.
    fn home(&self, name: &str) -> Option<&'a str> {
        let Shape::Mapping(whole) = Shape::from_schema(self.root, self.root) else { return None };
        let mut homes = whole.fields?.iter().filter(|(home, schema)| {
            let Shape::Mapping(inner) = Shape::from_schema(schema, self.root) else { return false };
            let written = self.document.get(home).and_then(|it| it.get(name));
            written.is_none() && known_fields(&inner, self.root).contains(&name)
        });
        homes.next().map(|(home, _)| home.as_str())
    }

    /// Reports a missing mapping once, if its fields are there, below another one or not indented.
    fn without_its_line(&mut self, name: &str, place: &Place) -> Option<Finding> {
        let is_of_it =
            |it: &Finding| it.rule == &mistake::UNKNOWN_FIELD && it.named.as_deref() == Some(name);
        let first = self.problems.listed().iter().find(|it| is_of_it(it))?;
        let own = first.labels.first()?.place.clone();
        let is_indented = own.pointer.parent() != place.pointer;
        let finding = problem::missing_line(name, own, is_indented);
        self.problems.retain(|it| !is_of_it(it));
        Some(finding)
    }

    /// Returns whether a missing field exists under a misspelled name: a typing error is reported
    /// once, as an unknown field.
    fn is_slip(&self, mapping: &Mapping<'a>, entries: &[MappingEntry], name: &str) -> bool {
        let is_known = |it: &str| mapping.fields.is_some_and(|fields| fields.contains_key(it));
        let names = entries.iter().map(|entry| &*entry.key.scalar.text);
        let mut unknown = names.filter(|it| !is_known(it)).take(LISTED).peekable();
        if unknown.peek().is_none() {
            return false;
        }
        let known = known_fields(mapping, self.root);
        unknown.any(|it| nearest(it, known.iter().copied()) == Some(name))
    }

    /// Returns a placeholder for a required field that is missing or broken, so that the fields
    /// around it can still be checked.
    fn stand_in(&self, mapping: &Mapping<'a>, name: &str) -> Option<Json> {
        match Shape::from_schema(mapping.fields?.get(name)?, self.root) {
            Shape::Text(_) => Some(Json::from("")),
            Shape::Choice(texts) => texts.first().map(|text| Json::from(*text)),
            _ => None,
        }
    }

    /// Returns what a field must be, if there is no choice.
    fn only_value(&self, mapping: &Mapping<'a>, name: &str) -> Option<&'a str> {
        match Shape::from_schema(mapping.fields?.get(name)?, self.root) {
            Shape::Choice(texts) if texts.len() == 1 => texts.first().copied(),
            _ => None,
        }
    }
}

/// Returns the fields that users may want to write.
fn known_fields<'a>(mapping: &Mapping<'a>, root: &Json) -> Vec<&'a str> {
    let fields = mapping.fields.into_iter().flatten();
    fields
        .filter(|(_, schema)| !matches!(Shape::from_schema(schema, root), Shape::Anything))
        .map(|(name, _)| name.as_str())
        .collect()
}

/// Reads a value that is not a collection.
fn scalar(shape: &Shape, node: &TreeNode, place: &Place) -> Result<Json, Finding> {
    match shape {
        Shape::Choice(texts) => choice(texts, node, place),
        Shape::Text(fewest) => text(*fewest, node, place),
        Shape::Date => date(node, place),
        Shape::Integer(least, most) => integer(*least, *most, node, place),
        Shape::Boolean => boolean(node, place),
        Shape::Anything | Shape::List(_) | Shape::Mapping(_) | Shape::ListOrMapping(_) => {
            Ok(Json::Null)
        }
    }
}

/// Returns the value before a comment without a space before it. With a colon in the comment, YAML reads a mapping.
fn uncommented(node: &TreeNode) -> Option<TreeNode> {
    let scalar = match &node.value {
        TreeValue::Scalar(scalar) => scalar,
        TreeValue::Mapping(entries) => &entries.first()?.key.scalar,
        TreeValue::Sequence(_) => return None,
    };
    let value = text::uncommented(&scalar.text).filter(|_| scalar.plain)?;
    let scalar = Scalar { text: Arc::from(value), plain: true };
    Some(TreeNode { value: TreeValue::Scalar(scalar), ..node.clone() })
}

fn choice(texts: &[&str], node: &TreeNode, place: &Place) -> Result<Json, Finding> {
    let TreeValue::Scalar(scalar) = &node.value else {
        return Err(problem::wrong_type("a string", node, place));
    };
    if texts.contains(&&*scalar.text) {
        return Ok(Json::from(&*scalar.text));
    }
    Err(problem::unknown_value(&scalar.text, texts, place))
}

fn text(fewest: u64, node: &TreeNode, place: &Place) -> Result<Json, Finding> {
    let TreeValue::Scalar(scalar) = &node.value else {
        return Err(problem::wrong_type("a string", node, place));
    };
    if scalar.meaning() != Meaning::Text {
        return Err(problem::misread_text(scalar, place));
    }
    if (scalar.text.chars().count() as u64) < fewest {
        return Err(problem::too_short(fewest, place));
    }
    Ok(Json::from(&*scalar.text))
}

/// Accepts the characters, quoted or not, because they can only mean a day. The gate checks whether
/// they are one.
fn date(node: &TreeNode, place: &Place) -> Result<Json, Finding> {
    match &node.value {
        TreeValue::Scalar(scalar) if !node.is_null() => Ok(Json::from(&*scalar.text)),
        _ => Err(problem::wrong_type("a date", node, place)),
    }
}

fn integer(least: i64, most: i64, node: &TreeNode, place: &Place) -> Result<Json, Finding> {
    let wrong_type = || problem::wrong_type("an integer", node, place);
    let TreeValue::Scalar(scalar) = &node.value else {
        return Err(wrong_type());
    };
    if scalar.plain && scalar.meaning() == Meaning::Number && !plain::is_decimal(&scalar.text) {
        return Err(problem::not_decimal(&scalar.text, place));
    }
    if !scalar.plain || !plain::is_decimal(&scalar.text) {
        return Err(wrong_type());
    }
    scalar
        .text
        .parse()
        .ok()
        .filter(|number| (least..=most).contains(number))
        .map(|number: i64| Json::Number(Number::from(number)))
        .ok_or_else(|| problem::out_of_bounds(&scalar.text, least, most, place))
}

fn boolean(node: &TreeNode, place: &Place) -> Result<Json, Finding> {
    match &node.value {
        TreeValue::Scalar(scalar) if scalar.plain && &*scalar.text == "true" => {
            Ok(Json::Bool(true))
        }
        TreeValue::Scalar(scalar) if scalar.plain && &*scalar.text == "false" => {
            Ok(Json::Bool(false))
        }
        _ => Err(problem::wrong_type("`true` or `false`", node, place)),
    }
}

#[cfg(test)]
mod tests;
