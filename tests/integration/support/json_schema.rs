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

/// Reads a schema that many values are compared with.
pub(crate) fn validator(schema: &Value) -> Validator {
    jsonschema::validator_for(schema).unwrap()
}

/// Returns what is wrong with a value, a line each, with pointers.
pub(crate) fn violations(schema: &Value, value: &Value) -> Vec<String> {
    violations_of(&validator(schema), value)
}

/// Returns the same by a schema that has been read.
pub(crate) fn violations_of(schema: &Validator, value: &Value) -> Vec<String> {
    let errors = schema.iter_errors(value);
    errors
        .map(|it| format!("{} {it}", it.instance_path()))
        .collect()
}
