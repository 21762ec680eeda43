//! Results as JSON documents with a version and a kind, and their schemas.

use std::borrow::Cow;
use std::mem;

use schemars::transform::{RecursiveTransform, Transform as _};
use schemars::{JsonSchema, Schema};
use serde::Serialize;
use serde_json::{Value, json};

use crate::diagnostic::plain_json;
use crate::schema;

/// The version of all documents.
const API_VERSION: &str = "kilo-clustermesh.io/v1";

/// A document: the fields of its body after its version and kind. The kind is the name of the body's schema.
#[derive(JsonSchema, Serialize)]
#[schemars(rename = "{T}", description = "")]
#[serde(rename_all = "camelCase")]
pub struct JsonDocument<T> {
    /// The version of this format.
    #[schemars(extend("const" = API_VERSION))]
    api_version: &'static str,
    /// The kind of this document.
    #[schemars(with = "&str", extend("const" = T::schema_name()))]
    kind: Cow<'static, str>,
    #[serde(flatten)]
    body: T,
}

impl<T: JsonSchema> JsonDocument<T> {
    /// Returns a document with this body.
    pub fn of(body: T) -> Self {
        Self::named(T::schema_name(), body)
    }
}

impl<T> JsonDocument<T> {
    /// Returns a document of a kind that has no schema.
    pub fn named(kind: impl Into<Cow<'static, str>>, body: T) -> Self {
        Self { api_version: API_VERSION, kind: kind.into(), body }
    }
}

impl<T: Serialize> JsonDocument<T> {
    /// Returns its text, in which everything that could steer a terminal is escaped.
    pub fn text(&self) -> serde_json::Result<String> {
        Ok(plain_json(serde_json::to_string_pretty(self)?) + "\n")
    }

    /// Returns the same in one line.
    pub fn line(&self) -> serde_json::Result<String> {
        Ok(plain_json(serde_json::to_string(self)?) + "\n")
    }
}

/// Returns the JSON Schema of documents with such a body.
pub fn schema<T: JsonSchema>() -> Schema {
    let mut schema = schema::of_output::<JsonDocument<T>>();
    RecursiveTransform(without_null).transform(&mut schema);
    RecursiveTransform(plainly_named).transform(&mut schema);
    schema
}

/// Names parts without the word with which the names of their types begin.
fn plainly_named(schema: &mut Schema) {
    if let Some(Value::String(part)) = schema.get_mut("$ref") {
        *part = part.replace("/Written", "/");
    }
    if let Some(Value::Object(parts)) = schema.get_mut("$defs") {
        let named = mem::take(parts).into_iter().map(|(name, part)| {
            let name = name.strip_prefix("Written").unwrap_or(&name);
            (name.to_owned(), part)
        });
        *parts = named.collect();
    }
}

/// Takes null out of the fields that may be missing, because they are never null.
fn without_null(schema: &mut Schema) {
    let required = schema.get("required").cloned().unwrap_or_default();
    let is_required =
        |name: &String| required.as_array().is_some_and(|it| it.contains(&json!(name)));
    let fields = schema.get_mut("properties").and_then(Value::as_object_mut);
    let optional = fields.into_iter().flatten().filter(|(name, _)| !is_required(name));
    for field in optional.filter_map(|(_, field)| field.as_object_mut()) {
        if let Some(Value::Array(types)) = field.get_mut("type") {
            types.retain(|it| it != "null");
            if let [single] = &mut types[..] {
                let single = single.take();
                field.insert("type".to_owned(), single);
            }
        }
        let choices = field.remove("anyOf");
        for choice in choices.iter().filter_map(Value::as_array).flatten() {
            let choice = choice.as_object().filter(|it| !it.contains_key("type"));
            field.extend(choice.cloned().into_iter().flatten());
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A body.
    #[derive(JsonSchema, Serialize)]
    #[schemars(rename = "Test")]
    struct Body {
        #[serde(skip_serializing_if = "Option::is_none")]
        name: Option<&'static str>,
        #[serde(skip_serializing_if = "Option::is_none")]
        inner: Option<WrittenInner>,
        nothing: Option<u8>,
    }

    #[derive(JsonSchema, Serialize)]
    struct WrittenInner {}

    #[test]
    fn version_and_kind_are_beside_the_fields() {
        let document =
            JsonDocument::of(Body { name: Some("a\u{202e}"), inner: None, nothing: None });
        let line = document.line().unwrap();
        insta::assert_snapshot!(line, @r#"{"apiVersion":"kilo-clustermesh.io/v1","kind":"Test","name":"a\u202e","nothing":null}"#);
    }

    #[test]
    fn only_a_field_that_may_be_missing_is_never_null() {
        let schema = schema::<Body>().to_value();
        let types = ["name", "inner", "nothing"].map(|it| schema["properties"][it].to_string());
        assert!(schema["$defs"].get("Inner").is_some());
        insta::assert_snapshot!(types.join("\n"), @r##"
        {"type":"string"}
        {"$ref":"#/$defs/Inner"}
        {"maximum":255,"minimum":0,"type":["integer","null"]}
        "##);
    }
}
