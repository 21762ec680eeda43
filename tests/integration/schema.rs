//! JSON schemas: as much of draft 7 as those in `vectors` say. Patterns and formats are not looked
//! at.

use serde_json::Value;

/// What a schema may say here; anything else would be passed over in silence.
const KNOWN: &[&str] = &[
    "$id",
    "$ref",
    "$schema",
    "additionalProperties",
    "anyOf",
    "default",
    "definitions",
    "description",
    "enum",
    "format",
    "items",
    "maximum",
    "minItems",
    "minimum",
    "oneOf",
    "pattern",
    "properties",
    "required",
    "title",
    "type",
    "uniqueItems",
];

/// Returns what is wrong with `value`, a line each, with pointers.
pub(crate) fn violations(schema: &Value, value: &Value) -> Vec<String> {
    let mut check = Check {
        root: schema,
        violations: Vec::new(),
    };
    check.value(schema, value, "");
    check.violations
}

struct Check<'a> {
    root: &'a Value,
    violations: Vec<String>,
}

impl Check<'_> {
    fn value(&mut self, schema: &Value, value: &Value, at: &str) {
        let Some(schema) = schema.as_object() else {
            return self.expect(schema == true, at, "is not allowed");
        };
        for keyword in schema.keys() {
            assert!(KNOWN.contains(&keyword.as_str()), "{keyword} at {at}");
        }
        if let Some(reference) = schema.get("$ref") {
            let pointer = reference.as_str().unwrap().strip_prefix('#').unwrap();
            let meant = self.root.pointer(pointer).unwrap();
            return self.value(meant, value, at);
        }
        if let Some(name) = schema.get("type") {
            let is_of_type = match name.as_str().unwrap() {
                "object" => value.is_object(),
                "array" => value.is_array(),
                "string" => value.is_string(),
                "boolean" => value.is_boolean(),
                "integer" => value.is_i64() || value.is_u64(),
                "number" => value.is_number(),
                other => panic!("{other}"),
            };
            self.expect(is_of_type, at, &format!("is no {name}"));
        }
        if let Some(Value::Array(choices)) = schema.get("enum") {
            self.expect(choices.contains(value), at, "is none of the choices");
        }
        for (keyword, is_enough) in [("anyOf", usize::MAX), ("oneOf", 1)] {
            let Some(Value::Array(choices)) = schema.get(keyword) else {
                continue;
            };
            let matching = choices.iter().filter(|choice| self.is_met(choice, value));
            let matching = matching.count();
            self.expect(0 < matching && matching <= is_enough, at, keyword);
        }
        match value {
            Value::Number(number) => {
                let bound = |keyword: &str| schema.get(keyword).and_then(Value::as_f64);
                let (number, least) = (number.as_f64().unwrap(), bound("minimum"));
                self.expect(least.is_none_or(|it| it <= number), at, "is too small");
                let most = bound("maximum");
                self.expect(most.is_none_or(|it| number <= it), at, "is too large");
            }
            Value::Array(items) => {
                let least = schema.get("minItems").and_then(Value::as_u64).unwrap_or(0);
                self.expect(least <= items.len() as u64, at, "has too few items");
                let is_set = schema.get("uniqueItems") == Some(&Value::Bool(true));
                for (index, item) in items.iter().enumerate() {
                    let is_new = !is_set || !items[..index].contains(item);
                    self.expect(is_new, at, "has an item twice");
                    if let Some(schema) = schema.get("items") {
                        self.value(schema, item, &format!("{at}/{index}"));
                    }
                }
            }
            Value::Object(fields) => {
                for name in schema
                    .get("required")
                    .and_then(Value::as_array)
                    .unwrap_or(&vec![])
                {
                    let is_there = fields.contains_key(name.as_str().unwrap());
                    self.expect(is_there, at, &format!("has no {name}"));
                }
                for (name, field) in fields {
                    let known = schema.get("properties").and_then(|it| it.get(name));
                    if let Some(schema) = known.or(schema.get("additionalProperties")) {
                        self.value(schema, field, &format!("{at}/{name}"));
                    }
                }
            }
            Value::Null | Value::Bool(_) | Value::String(_) => {}
        }
    }

    fn is_met(&self, schema: &Value, value: &Value) -> bool {
        let mut check = Check {
            root: self.root,
            violations: Vec::new(),
        };
        check.value(schema, value, "");
        check.violations.is_empty()
    }

    fn expect(&mut self, is_so: bool, at: &str, complaint: &str) {
        if !is_so {
            self.violations.push(format!("{at} {complaint}"));
        }
    }
}

#[test]
fn a_schema_is_held() {
    use serde_json::json;
    let schema = json!({
        "definitions": { "name": { "type": "string" } },
        "type": "object",
        "required": ["a"],
        "additionalProperties": false,
        "properties": {
            "a": { "type": "array", "uniqueItems": true, "items": { "$ref": "#/definitions/name" } },
            "b": { "enum": ["x"] },
            "c": { "type": "integer", "minimum": 1 },
            "d": { "oneOf": [{ "required": ["e"] }, { "required": ["f"] }] },
        },
    });
    let good = json!({ "a": ["x"], "b": "x", "c": 1, "d": { "e": 1 } });
    assert_eq!(violations(&schema, &good), Vec::<String>::new());
    let bad = json!({ "a": [1, 1], "b": "y", "c": 0, "d": { "e": 1, "f": 1 }, "g": 1 });
    assert_eq!(
        violations(&schema, &bad),
        [
            "/a/0 is no \"string\"",
            "/a has an item twice",
            "/a/1 is no \"string\"",
            "/b is none of the choices",
            "/c is too small",
            "/d oneOf",
            "/g is not allowed",
        ]
    );
    assert_eq!(violations(&schema, &json!({})), [" has no \"a\""]);
}
