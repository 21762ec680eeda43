//! Results as JSON documents with a version and a kind, and their schemas.

use std::borrow::Cow;

use schemars::{JsonSchema, Schema};
use serde::Serialize;

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
        Self {
            api_version: API_VERSION,
            kind: kind.into(),
            body,
        }
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
    schema::of_output::<JsonDocument<T>>()
}
