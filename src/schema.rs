//! Schemas: descriptions of our formats for editors and other programs, as JSON Schema 2020-12.
//!
//! They are generated from the types that the gates read and the writers write, so that they always
//! agree with the program.

use std::collections::BTreeSet;

use schemars::generate::SchemaSettings;
use schemars::transform::{RecursiveTransform, Transform as _};
use schemars::{JsonSchema, Schema};
use serde::ser::{Error as _, Serialize, Serializer};
use serde_json::Value;

pub mod pattern;

/// The text of a JSON file that is an example. If it cannot be parsed, the schema has no example, and its test fails.
pub struct ExampleFile(pub &'static str);

impl Serialize for ExampleFile {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let example: Value = serde_json::from_str(self.0).map_err(S::Error::custom)?;
        example.serialize(serializer)
    }
}

/// Returns the schema of what can be read into a `T`.
pub fn of_input<T: JsonSchema>() -> Schema {
    published::<T>(SchemaSettings::draft2020_12().for_deserialize())
}

/// Returns the schema of a file that people write and that becomes a `T`. A field without its value is a mistake in it: a list
/// whose items were deleted was written to forbid the rest. Only mappings of fields may be empty.
pub fn of_written<T: JsonSchema>() -> Schema {
    let mut schema = of_input::<T>();
    let definitions = schema.get("$defs").and_then(Value::as_object);
    let is_mapping = |it: &Value| {
        it["type"] == "object"
            && matches!(it.get("additionalProperties"), None | Some(Value::Bool(false)))
    };
    let mappings = definitions.into_iter().flatten().filter(|(_, it)| is_mapping(it));
    let mappings: BTreeSet<String> = mappings.map(|(name, _)| format!("#/$defs/{name}")).collect();
    RecursiveTransform(|it: &mut Schema| demand_value(it, &mappings)).transform(&mut schema);
    schema
}

/// Takes out that a value may be null, unless it is one of these mappings.
fn demand_value(schema: &mut Schema, mappings: &BTreeSet<String>) {
    if let Some(Value::Array(types)) = schema.get_mut("type") {
        types.retain(|it| it != "null");
    }
    let only = schema.get("type").and_then(Value::as_array).and_then(|it| it.first().cloned());
    if let Some(only) = only {
        schema.insert("type".to_owned(), only);
    }
    let reference = schema.get("anyOf").and_then(|it| it.pointer("/0/$ref")).cloned();
    let is_nullable =
        schema.get("anyOf").and_then(|it| it.pointer("/1/type")) == Some(&Value::from("null"));
    if let Some(Value::String(name)) = reference
        && is_nullable
        && !mappings.contains(&name)
    {
        schema.remove("anyOf");
        schema.insert("$ref".to_owned(), Value::String(name));
    }
}

/// Returns the schema of what a `T` is written as.
pub fn of_output<T: JsonSchema>() -> Schema {
    published::<T>(SchemaSettings::draft2020_12().for_serialize())
}

fn published<T: JsonSchema>(settings: SchemaSettings) -> Schema {
    let mut schema = settings.into_generator().into_root_schema_for::<T>();
    RecursiveTransform(plain).transform(&mut schema);
    schema
}

/// Takes out what only Rust wants to know: where a comment was wrapped, how wide a number is whose
/// bounds are given, and that what is absent is null.
fn plain(schema: &mut Schema) {
    if let Some(Value::String(text)) = schema.get_mut("description") {
        let paragraphs = text.split("\n\n").map(|it| it.replace('\n', " "));
        *text = paragraphs.collect::<Vec<_>>().join("\n\n");
    }
    let is_width = |format: &str| {
        let widths = ["int", "uint", "float", "double"];
        widths.iter().any(|width| format.starts_with(width))
    };
    if schema.get("format").and_then(Value::as_str).is_some_and(is_width) {
        schema.remove("format");
    }
    if schema.get("default").is_some_and(Value::is_null) {
        schema.remove("default");
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    use serde::{Deserialize, Serialize};
    use serde_json::json;

    /// A cage, and
    /// who is in it.
    ///
    /// Locked.
    #[derive(Deserialize, JsonSchema, Serialize)]
    #[serde(deny_unknown_fields)]
    struct Cage {
        /// The width.
        #[schemars(range(min = 1))]
        metres: u8,
        #[serde(default, skip_serializing_if = "Option::is_none")]
        animal: Option<String>,
        #[serde(default)]
        empty: bool,
    }

    #[test]
    fn nothing_of_rust_is_left() {
        let expected = json!({
            "$schema": "https://json-schema.org/draft/2020-12/schema",
            "title": "Cage",
            "description": "A cage, and who is in it.\n\nLocked.",
            "type": "object",
            "properties": {
                "metres": {
                    "description": "The width.",
                    "type": "integer",
                    "minimum": 1,
                    "maximum": 255,
                },
                "animal": { "type": ["string", "null"] },
                "empty": { "type": "boolean", "default": false },
            },
            "required": ["metres"],
            "additionalProperties": false,
        });
        assert_eq!(of_input::<Cage>().to_value(), expected);
    }

    #[test]
    fn what_is_always_written_is_required() {
        let schema = of_output::<Cage>();
        assert_eq!(schema.get("required"), Some(&json!(["metres", "empty"])));
    }
}
