//! The schema of the Peer resource: what an API server stores of a spec (`kilo.md` §1.2).

use serde_json::{Map, Value};
use thiserror::Error;

/// A field that the resource's schema refuses.
#[derive(Clone, Debug, Eq, Error, PartialEq)]
#[error("`{field}` {problem}")]
pub struct Mismatch {
    /// The field, from `spec` on.
    pub field: &'static str,
    /// The problem.
    pub problem: SchemaProblem,
}

/// A problem of a field.
#[derive(Clone, Copy, Debug, Eq, Error, PartialEq)]
pub enum SchemaProblem {
    /// Not there, or null.
    #[error("is missing")]
    Missing,
    /// Another type than that, given with its article.
    #[error("is not {0}")]
    Type(&'static str),
}

/// Returns what an API server stores of a spec: only the fields that it knows, by their exact names.
///
/// A null counts as missing. Servers refuse it in lists and in required fields, and so does this
/// check. That a null is allowed in an optional field follows from the test vectors and was not
/// observed.
///
/// # Errors
/// The first field that the server refuses.
pub fn stored(spec: &Value) -> Result<Value, Mismatch> {
    let spec = object("spec", spec)?;
    let mut kept = Map::new();
    let allowed = required("spec.allowedIPs", spec, "allowedIPs")?;
    let items = allowed.as_array().ok_or(wrong("spec.allowedIPs", "a list"))?;
    if !items.iter().all(Value::is_string) {
        return Err(wrong("spec.allowedIPs", "a list of strings"));
    }
    kept.insert("allowedIPs".to_owned(), allowed.clone());
    if let Some(endpoint) = optional(spec, "endpoint") {
        kept.insert("endpoint".to_owned(), stored_endpoint(endpoint)?);
    }
    if let Some(keepalive) = optional(spec, "persistentKeepalive") {
        if !keepalive.is_i64() {
            return Err(wrong("spec.persistentKeepalive", "an integer"));
        }
        kept.insert("persistentKeepalive".to_owned(), keepalive.clone());
    }
    let key = required("spec.publicKey", spec, "publicKey")?;
    keep_text(&mut kept, "publicKey", "spec.publicKey", key)?;
    if let Some(secret) = optional(spec, "presharedKey") {
        keep_text(&mut kept, "presharedKey", "spec.presharedKey", secret)?;
    }
    Ok(Value::Object(kept))
}

fn stored_endpoint(endpoint: &Value) -> Result<Value, Mismatch> {
    let endpoint = object("spec.endpoint", endpoint)?;
    let host = required("spec.endpoint.dnsOrIP", endpoint, "dnsOrIP")?;
    let host = object("spec.endpoint.dnsOrIP", host)?;
    let mut kept = Map::new();
    for (name, field) in [("dns", "spec.endpoint.dnsOrIP.dns"), ("ip", "spec.endpoint.dnsOrIP.ip")]
    {
        if let Some(value) = optional(host, name) {
            keep_text(&mut kept, name, field, value)?;
        }
    }
    let port = required("spec.endpoint.port", endpoint, "port")?;
    let fits = port.as_i64().is_some_and(|port| i32::try_from(port).is_ok());
    if !fits {
        return Err(wrong("spec.endpoint.port", "a 32-bit integer"));
    }
    let fields = [("dnsOrIP", Value::Object(kept)), ("port", port.clone())];
    Ok(fields.map(|(name, value)| (name.to_owned(), value)).into_iter().collect())
}

fn keep_text(
    kept: &mut Map<String, Value>,
    name: &str,
    field: &'static str,
    value: &Value,
) -> Result<(), Mismatch> {
    if !value.is_string() {
        return Err(wrong(field, "a string"));
    }
    kept.insert(name.to_owned(), value.clone());
    Ok(())
}

fn object<'a>(field: &'static str, value: &'a Value) -> Result<&'a Map<String, Value>, Mismatch> {
    let problem = match value {
        Value::Object(fields) => return Ok(fields),
        Value::Null => SchemaProblem::Missing,
        _ => SchemaProblem::Type("an object"),
    };
    Err(Mismatch { field, problem })
}

fn required<'a>(
    field: &'static str,
    fields: &'a Map<String, Value>,
    name: &str,
) -> Result<&'a Value, Mismatch> {
    let problem = SchemaProblem::Missing;
    optional(fields, name).ok_or(Mismatch { field, problem })
}

fn optional<'a>(fields: &'a Map<String, Value>, name: &str) -> Option<&'a Value> {
    fields.get(name).filter(|value| !value.is_null())
}

fn wrong(field: &'static str, wanted: &'static str) -> Mismatch {
    let problem = SchemaProblem::Type(wanted);
    Mismatch { field, problem }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn unknown_fields_are_not_stored() {
        let spec = json!({"allowedIPs": ["x"], "publicKey": "k", "PublicKey": "other", "more": 1});
        assert_eq!(stored(&spec), Ok(json!({"allowedIPs": ["x"], "publicKey": "k"})));
    }

    #[test]
    fn says_what_is_wrong() {
        let error = |spec: Value| stored(&spec).unwrap_err().to_string();
        insta::assert_snapshot!(error(json!(null)), @"`spec` is missing");
        insta::assert_snapshot!(error(json!({"publicKey": "k"})), @"`spec.allowedIPs` is missing");
        insta::assert_snapshot!(error(json!({"allowedIPs": [null], "publicKey": "k"})), @"`spec.allowedIPs` is not a list of strings");
        insta::assert_snapshot!(error(json!({"allowedIPs": [], "publicKey": 7})), @"`spec.publicKey` is not a string");
    }
}
