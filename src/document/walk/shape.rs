//! Shapes: what schemas of JSON ask of a value.

use serde_json::{Map, Value as Json};

/// The shape of one value.
pub(super) enum Shape<'a> {
    /// Any value; it is not read.
    Anything,
    /// One of these texts.
    Choice(Vec<&'a str>),
    /// A text of at least this many characters.
    Text(u64),
    /// A day.
    Date,
    /// A whole number between two.
    Integer(i64, i64),
    /// Yes or no.
    Boolean,
    List(ListShape<'a>),
    Mapping(Mapping<'a>),
    /// A list or a mapping, by their schemas.
    ListOrMapping([&'a Json; 2]),
}

/// The shape of a list.
pub(super) struct ListShape<'a> {
    /// The schema of its items.
    pub(super) items: &'a Json,
    pub(super) fewest: u64,
    pub(super) most: u64,
}

/// The shape of a mapping.
pub(super) struct Mapping<'a> {
    /// The schemas of the fields it knows.
    pub(super) fields: Option<&'a Map<String, Json>>,
    /// The fields that must be there.
    pub(super) required: Vec<&'a str>,
    /// The schema of any other field, if there may be others.
    pub(super) others: Option<&'a Json>,
}

impl<'a> Shape<'a> {
    /// Returns what `schema` asks for, references looked up in `root`.
    pub(super) fn from_schema(schema: &'a Json, root: &'a Json) -> Self {
        let schema = resolved(schema, root);
        if let Some(both) = list_or_mapping(schema) {
            return Self::ListOrMapping(both);
        }
        if let Some(texts) = listed_choice(schema) {
            return Self::Choice(texts);
        }
        match kind(schema) {
            Some("string") if schema.get("format").and_then(Json::as_str) == Some("date") => {
                Self::Date
            }
            Some("string") => Self::Text(unsigned(schema, "minLength").unwrap_or(0)),
            Some("integer") => Self::Integer(
                bound(schema, "minimum").unwrap_or(i64::MIN),
                bound(schema, "maximum").unwrap_or(i64::MAX),
            ),
            Some("boolean") => Self::Boolean,
            Some("array") => Self::List(ListShape {
                items: schema.get("items").unwrap_or(&Json::Null),
                fewest: unsigned(schema, "minItems").unwrap_or(0),
                most: unsigned(schema, "maxItems").unwrap_or(u64::MAX),
            }),
            Some("object") => Self::Mapping(mapping(schema)),
            _ => Self::Anything,
        }
    }
}

/// Returns the schemas of a list and of a mapping, if a value may be either.
fn list_or_mapping(schema: &Json) -> Option<[&Json; 2]> {
    let [list, mapping] = schema.get("anyOf")?.as_array()?.as_slice() else {
        return None;
    };
    let is_list = kind(list) == Some("array");
    (is_list && mapping.get("$ref").is_some()).then_some([list, mapping])
}

fn mapping(schema: &Json) -> Mapping<'_> {
    Mapping {
        fields: schema.get("properties").and_then(Json::as_object),
        required: texts(schema.get("required")),
        others: schema.get("additionalProperties").filter(|others| **others != Json::Bool(false)),
    }
}

/// Follows references, and takes the one branch of `anyOf` that is not null.
fn resolved<'a>(schema: &'a Json, root: &'a Json) -> &'a Json {
    let mut schema = schema;
    // Our references lead to a definition in one step; a few more do no harm.
    for _ in 0..8 {
        if list_or_mapping(schema).is_some() {
            break;
        }
        let next = match (schema.get("$ref"), schema.get("anyOf")) {
            (Some(Json::String(path)), _) => root.pointer(path.trim_start_matches('#')),
            (_, Some(Json::Array(branches))) => branches
                .iter()
                .find(|branch| branch.get("type").and_then(Json::as_str) != Some("null")),
            _ => None,
        };
        let Some(next) = next else { break };
        schema = next;
    }
    schema
}

/// Returns whether a field may be there without a value.
pub(super) fn admits_null(schema: &Json) -> bool {
    let branches = schema.get("anyOf").and_then(Json::as_array);
    branches.into_iter().flatten().any(|it| kind(it) == Some("null"))
}

fn kind(schema: &Json) -> Option<&str> {
    match schema.get("type")? {
        Json::String(kind) => Some(kind),
        Json::Array(kinds) => kinds.iter().filter_map(Json::as_str).find(|kind| *kind != "null"),
        _ => None,
    }
}

fn listed_choice(schema: &Json) -> Option<Vec<&str>> {
    if let Some(Json::String(only)) = schema.get("const") {
        return Some(vec![only]);
    }
    if let Some(Json::Array(branches)) = schema.get("oneOf") {
        return Some(branches.iter().filter_map(listed_choice).flatten().collect());
    }
    // Of numbers, the bounds are looked at here, and which of them by the gate.
    let listed = texts(schema.get("enum"));
    (!listed.is_empty()).then_some(listed)
}

fn texts(list: Option<&Json>) -> Vec<&str> {
    list.and_then(Json::as_array).into_iter().flatten().filter_map(Json::as_str).collect()
}

fn unsigned(schema: &Json, keyword: &str) -> Option<u64> {
    schema.get(keyword)?.as_u64()
}

fn bound(schema: &Json, keyword: &str) -> Option<i64> {
    schema.get(keyword)?.as_i64()
}
