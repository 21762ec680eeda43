//! Parts of the schema of a mesh that types do not express.

use serde_json::{Value, json};

use super::COUNTS;

/// Either `allowedNetworks`, or pod and `WireGuard` ranges; the operator writes empty ones for none.
pub(super) fn one_form() -> Value {
    json!({
        "if": {
            "properties": { "allowedNetworks": { "type": "array" } },
            "required": ["allowedNetworks"],
        },
        "then": {
            "properties": {
                "podCIDRs": { "type": "null" },
                "wireguardCIDR": { "enum": ["", null] },
                "serviceCIDR": { "enum": ["", null] },
                "additionalCIDRs": { "enum": [[], null] },
            },
        },
        "else": {
            "properties": {
                "podCIDRs": { "type": "array" },
                "wireguardCIDR": { "type": "string", "minLength": 1 },
            },
            "required": ["podCIDRs", "wireguardCIDR"],
        },
    })
}

/// A field that is there with its mode and not without.
pub(super) fn only_with(mode: &str, field: &str) -> Value {
    json!({
        "if": {
            "properties": { "mode": { "const": mode } },
            "required": ["mode"],
        },
        "then": {
            "properties": { field: { "type": "array" } },
            "required": [field],
        },
        "else": {
            "properties": { field: { "type": "null" } },
        },
    })
}

/// Values that are there for the operators that compare and not for the others.
pub(super) fn values_to_compare() -> Value {
    json!({
        "if": {
            "properties": { "operator": { "enum": ["In", "NotIn"] } },
        },
        "then": {
            "properties": { "values": { "type": "array", "minItems": 1 } },
            "required": ["values"],
        },
        "else": {
            "properties": { "values": { "enum": [[], null] } },
        },
    })
}

/// Returns what `count` may be; like any field, it may be empty.
pub(super) fn counts() -> Vec<Option<u16>> {
    COUNTS.into_iter().map(Some).chain([None]).collect()
}
