//! Parts of the schema of expectations that types do not express.

use serde_json::{Value, json};

/// The fields that select clusters, each with what it must be.
fn choices() -> [(&'static str, Value); 4] {
    [
        ("cluster", json!({ "type": "string" })),
        ("clusters", json!({ "type": "array" })),
        ("group", json!({ "type": "string" })),
        ("other", json!({ "const": true })),
    ]
}

/// The fields are there: any of those that select clusters, nodes or addresses, or of some more.
pub(super) fn anything(more: &[&str]) -> Value {
    let others =
        [("nodeSelector", json!({ "type": "object" })), ("addresses", json!({ "type": "array" }))];
    let more = more.iter().map(|it| (*it, json!({ "type": "string" })));
    let fields = choices().into_iter().chain(others).chain(more);
    let fields =
        fields.map(|(field, value)| json!({ "properties": { field: value }, "required": [field] }));
    json!({ "anyOf": fields.collect::<Vec<_>>() })
}

/// At most one of the fields that select clusters is there.
pub(super) fn one_choice() -> Value {
    let choices = choices();
    let rules = choices.iter().map(|(field, value)| {
        let others = choices.iter().filter(|it| it.0 != *field);
        let others = others.map(|(other, _)| ((*other).to_owned(), json!({ "enum": [null] })));
        json!({
            "if": { "properties": { *field: value }, "required": [field] },
            "then": { "properties": Value::Object(others.collect()) },
        })
    });
    json!({ "allOf": rules.collect::<Vec<_>>() })
}

/// A destination is selected, or a class of destinations.
pub(super) fn a_destination() -> Value {
    let class = json!({ "properties": { "class": { "type": "string" } }, "required": ["class"] });
    json!({ "anyOf": [class, { "properties": { "to": anything(&[]) } }] })
}

/// Exceptions only if undeclared paths are denied.
pub(super) fn exceptions_of_denied_paths() -> Value {
    json!({
        "if": {
            "properties": { "undeclared": { "const": "Deny" } },
            "required": ["undeclared"],
        },
        "else": { "properties": { "exceptions": { "maxItems": 0 } } },
    })
}

/// Forbids `nodeSelector` for destinations that are not addresses of nodes.
pub(super) fn no_node_behind_a_cluster() -> Value {
    json!({
        "if": {
            "properties": { "class": { "enum": ["Service", "Network"] } },
            "required": ["class"],
        },
        "then": {
            "properties": { "to": { "properties": { "nodeSelector": { "type": "null" } } } },
        },
    })
}

/// No losses that packets survive which must not arrive.
pub(super) fn no_denied_survival() -> Value {
    json!({
        "if": {
            "properties": { "survives": { "type": "object" } },
            "required": ["survives"],
        },
        "then": { "properties": { "expect": { "enum": ["Reach"] } } },
    })
}
