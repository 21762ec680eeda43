//! The pages of the reference, compared with the schemas: no field is missing.

use std::fs;

use serde_json::Value;

use crate::support::{clustermesh, project};

/// Fields that the API server sets, and those of every document.
const COMMON: [&str; 2] = ["ApiVersion", "Metadata"];

/// Lists the fields of every type of a schema.
fn fields(schema: &Value) -> Vec<String> {
    let types = schema["$defs"].as_object().unwrap();
    let types = types
        .iter()
        .filter(|(name, _)| !COMMON.contains(&name.as_str()));
    let types = types.map(|(_, it)| it).chain([schema]);
    types
        .filter_map(|it| it["properties"].as_object())
        .flat_map(|it| it.keys().cloned())
        .collect()
}

#[test]
fn the_reference_has_every_field() {
    let mut missing = Vec::new();
    for kind in ["mesh", "config", "expectations", "snapshot"] {
        let run = clustermesh(project(), &["schema", kind]);
        let schema: Value = serde_json::from_str(&run.stdout).unwrap();
        let file = format!("docs/reference/{kind}.md");
        let page = fs::read_to_string(project().join(&file)).unwrap();
        let words: Vec<&str> = page.split(|it: char| !it.is_ascii_alphanumeric()).collect();
        let fields = fields(&schema);
        assert!(3 < fields.len());
        missing.extend(
            fields
                .into_iter()
                .filter(|it| !words.contains(&it.as_str()))
                .map(|it| format!("{it} in {file}")),
        );
    }
    assert_eq!(missing, [""; 0]);
}
