//! The schemas, and what is wrong with values by JSON Schema.

use std::fs;

use jsonschema::Validator;
use serde_json::Value;

use super::project;

/// Returns the schema in a file below `schemas/`.
pub(crate) fn schema(file: &str) -> Value {
    let text = fs::read_to_string(project().join("schemas").join(file)).unwrap();
    serde_json::from_str(&text).unwrap()
}

/// The keywords that a schema may use here; others would be ignored silently.
const KNOWN: &[&str] = &[
    "$defs",
    "$id",
    "$ref",
    "$schema",
    "additionalProperties",
    "allOf",
    "anyOf",
    "const",
    "default",
    "definitions",
    "dependentRequired",
    "deprecated",
    "description",
    "else",
    "enum",
    "examples",
    "format",
    "if",
    "items",
    "maxItems",
    "maxLength",
    "maximum",
    "minItems",
    "minLength",
    "minimum",
    "oneOf",
    "pattern",
    "properties",
    "propertyNames",
    "required",
    "then",
    "title",
    "type",
    "uniqueItems",
];

/// Reads a schema that many values are compared with.
pub(crate) fn validator(schema: &Value) -> Validator {
    check_keywords(schema);
    jsonschema::validator_for(schema).unwrap()
}

/// Returns what is wrong with a value, a line each, with pointers.
pub(crate) fn violations(schema: &Value, value: &Value) -> Vec<String> {
    violations_of(&validator(schema), value)
}

/// Returns the same by a schema that has been read.
pub(crate) fn violations_of(schema: &Validator, value: &Value) -> Vec<String> {
    let errors = schema.iter_errors(value);
    errors.map(|it| format!("{} {it}", it.instance_path())).collect()
}

/// Fails if a schema or one in it has a keyword that is not known.
fn check_keywords(schema: &Value) {
    let Some(keywords) = schema.as_object() else {
        assert!(schema.is_boolean(), "{schema} is not a schema");
        return;
    };
    for (keyword, value) in keywords {
        assert!(KNOWN.contains(&keyword.as_str()), "{keyword} in {schema}");
        match keyword.as_str() {
            "$defs" | "definitions" | "properties" => {
                value.as_object().unwrap().values().for_each(check_keywords);
            }
            "allOf" | "anyOf" | "oneOf" => {
                value.as_array().unwrap().iter().for_each(check_keywords);
            }
            "additionalProperties" | "else" | "if" | "items" | "propertyNames" | "then" => {
                check_keywords(value);
            }
            _ => {}
        }
    }
}

#[test]
#[should_panic(expected = "atLeast in")]
fn sees_an_unknown_keyword() {
    violations(&serde_json::json!({ "properties": { "a": { "atLeast": 1 } } }), &Value::Null);
}
