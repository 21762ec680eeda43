//! What is wrong with values, by JSON Schema.

use jsonschema::Validator;
use serde_json::Value;

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
