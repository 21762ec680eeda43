//! JSON Schema: the parts of drafts 7 and 2020-12 that the schemas here use. Formats are not
//! checked.
//!
//! A validator from elsewhere would bring some fifty crates and two more licences to build for this.

use std::collections::BTreeMap;
use std::sync::Mutex;

use regex::Regex;
use serde_json::{Map, Value};

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
            self.value(meant, value, at);
        }
        if let Some(types) = schema.get("type") {
            let is_of_type = match types {
                Value::Array(types) => types.iter().any(|it| is_of_type(it, value)),
                only => is_of_type(only, value),
            };
            self.expect(is_of_type, at, &format!("is no {types}"));
        }
        if let Some(choices) = list(schema, "enum") {
            self.expect(choices.contains(value), at, "is none of the choices");
        }
        if let Some(only) = schema.get("const") {
            self.expect(only == value, at, &format!("is not {only}"));
        }
        self.combined(schema, value, at);
        match value {
            Value::Number(number) => self.number(schema, number.as_f64().unwrap(), at),
            Value::String(text) => self.text(schema, text, at),
            Value::Array(items) => self.list(schema, items, at),
            Value::Object(fields) => self.mapping(schema, fields, at),
            Value::Null | Value::Bool(_) => {}
        }
    }

    /// Keywords that contain other schemas.
    fn combined(&mut self, schema: &Map<String, Value>, value: &Value, at: &str) {
        for every in list(schema, "allOf").into_iter().flatten() {
            self.value(every, value, at);
        }
        for (keyword, most) in [("anyOf", usize::MAX), ("oneOf", 1)] {
            let Some(choices) = list(schema, keyword) else {
                continue;
            };
            let matching = choices
                .iter()
                .filter(|choice| self.is_met(choice, value))
                .count();
            self.expect(0 < matching && matching <= most, at, keyword);
        }
        if let Some(condition) = schema.get("if") {
            let branch = if self.is_met(condition, value) {
                "then"
            } else {
                "else"
            };
            if let Some(branch) = schema.get(branch) {
                self.value(branch, value, at);
            }
        }
    }

    fn number(&mut self, schema: &Map<String, Value>, number: f64, at: &str) {
        let bound = |keyword: &str| schema.get(keyword).and_then(Value::as_f64);
        let (least, most) = (bound("minimum"), bound("maximum"));
        self.expect(least.is_none_or(|it| it <= number), at, "is too small");
        self.expect(most.is_none_or(|it| number <= it), at, "is too large");
    }

    fn text(&mut self, schema: &Map<String, Value>, text: &str, at: &str) {
        self.length(schema, ["minLength", "maxLength"], text.chars().count(), at);
        if let Some(pattern) = schema.get("pattern") {
            let fits = fits(pattern.as_str().unwrap(), text);
            self.expect(fits, at, "does not fit its pattern");
        }
    }

    fn list(&mut self, schema: &Map<String, Value>, items: &[Value], at: &str) {
        self.length(schema, ["minItems", "maxItems"], items.len(), at);
        let is_set = schema.get("uniqueItems") == Some(&Value::Bool(true));
        for (index, item) in items.iter().enumerate() {
            let is_new = !is_set || !items[..index].contains(item);
            self.expect(is_new, at, "has an item twice");
            if let Some(schema) = schema.get("items") {
                self.value(schema, item, &format!("{at}/{index}"));
            }
        }
    }

    fn mapping(&mut self, schema: &Map<String, Value>, fields: &Map<String, Value>, at: &str) {
        let mut required: Vec<&Value> = list(schema, "required").into_iter().flatten().collect();
        let dependent = schema.get("dependentRequired").and_then(Value::as_object);
        for (name, others) in dependent.into_iter().flatten() {
            if fields.contains_key(name) {
                required.extend(others.as_array().unwrap());
            }
        }
        for name in required {
            let is_there = fields.contains_key(name.as_str().unwrap());
            self.expect(is_there, at, &format!("has no {name}"));
        }
        for (name, field) in fields {
            let at = format!("{at}/{name}");
            let known = schema.get("properties").and_then(|it| it.get(name));
            if let Some(schema) = known.or(schema.get("additionalProperties")) {
                self.value(schema, field, &at);
            }
            if let Some(schema) = schema.get("propertyNames") {
                self.value(schema, &Value::from(name.as_str()), &at);
            }
        }
    }

    fn length(&mut self, schema: &Map<String, Value>, bounds: [&str; 2], length: usize, at: &str) {
        let [least, most] = bounds.map(|it| schema.get(it).and_then(Value::as_u64));
        let length = length as u64;
        self.expect(least.is_none_or(|it| it <= length), at, "is too short");
        self.expect(most.is_none_or(|it| length <= it), at, "is too long");
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

/// Patterns are few and texts are many: each is compiled once.
fn fits(pattern: &str, text: &str) -> bool {
    static COMPILED: Mutex<BTreeMap<String, Regex>> = Mutex::new(BTreeMap::new());
    let mut compiled = COMPILED.lock().unwrap();
    let regex = compiled
        .entry(pattern.to_owned())
        .or_insert_with(|| Regex::new(pattern).unwrap());
    regex.is_match(text)
}

fn list<'a>(schema: &'a Map<String, Value>, keyword: &str) -> Option<&'a Vec<Value>> {
    schema.get(keyword)?.as_array()
}

fn is_of_type(name: &Value, value: &Value) -> bool {
    match name.as_str().unwrap() {
        "null" => value.is_null(),
        "object" => value.is_object(),
        "array" => value.is_array(),
        "string" => value.is_string(),
        "boolean" => value.is_boolean(),
        "integer" => value.as_f64().is_some_and(|it| it.fract() == 0.0),
        "number" => value.is_number(),
        other => panic!("{other}"),
    }
}

#[test]
fn a_schema_is_held() {
    use serde_json::json;
    let schema = json!({
        "definitions": { "name": { "type": "string", "pattern": "^[a-z]$", "maxLength": 1 } },
        "type": "object",
        "required": ["a"],
        "additionalProperties": false,
        "properties": {
            "a": { "type": "array", "uniqueItems": true, "items": { "$ref": "#/definitions/name" } },
            "b": { "enum": ["x"] },
            "c": { "type": ["integer", "null"], "minimum": 1 },
            "d": { "oneOf": [{ "required": ["e"] }, { "required": ["f"] }] },
            "h": { "propertyNames": { "minLength": 2 }, "dependentRequired": { "ij": ["kl"] } },
            "m": { "const": 1 },
        },
        "allOf": [{
            "if": { "properties": { "m": { "const": 2 } }, "required": ["m"] },
            "then": { "required": ["n"] },
            "else": { "properties": { "a": { "maxItems": 1 } } },
        }],
    });
    let good = [
        json!({ "a": ["x"], "b": "x", "c": 1, "d": { "e": 1 } }),
        json!({ "a": [], "c": null, "h": { "ij": 1, "kl": 2 }, "m": 1 }),
        json!({ "a": [], "c": 2.0 }),
    ];
    for good in good {
        assert_eq!(violations(&schema, &good), Vec::<String>::new());
    }
    let bad = json!({
        "a": [1, 1, "xy"],
        "b": "y",
        "c": 0,
        "d": { "e": 1, "f": 1 },
        "g": 1,
        "h": { "i": 1, "ij": 1 },
        "m": 2,
    });
    assert_eq!(
        violations(&schema, &bad),
        [
            " has no \"n\"",
            "/a/0 is no \"string\"",
            "/a has an item twice",
            "/a/1 is no \"string\"",
            "/a/2 is too long",
            "/a/2 does not fit its pattern",
            "/b is none of the choices",
            "/c is too small",
            "/d oneOf",
            "/g is not allowed",
            "/h has no \"kl\"",
            "/h/i is too short",
            "/m is not 1",
        ]
    );
    assert_eq!(violations(&schema, &json!({})), [" has no \"a\""]);
    let two = json!({ "a": ["x", "y"], "c": 1.5 });
    let expected = ["/a is too long", "/c is no [\"integer\",\"null\"]"];
    assert_eq!(violations(&schema, &two), expected);
}
