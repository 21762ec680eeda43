//! The README and the reference, compared with the program: no command and no field is missing.

use std::fs;

use serde_json::Value;

use super::prose::subcommands;
use crate::support::{clustermesh, project};

/// Fields that the API server sets, and those of every document.
const COMMON: [&str; 2] = ["ApiVersion", "Metadata"];

/// Lists the fields of every type of a schema.
fn fields(schema: &Value) -> Vec<String> {
    let types = schema["$defs"]
        .as_object()
        .unwrap()
        .iter()
        .filter(|(name, _)| !COMMON.contains(&name.as_str()))
        .map(|(_, it)| it)
        .chain([schema]);
    types.filter_map(|it| it["properties"].as_object()).flat_map(|it| it.keys().cloned()).collect()
}

#[test]
fn the_reference_has_every_field() {
    let mut missing = Vec::new();
    for kind in ["mesh", "config", "expectations", "snapshot"] {
        let run = clustermesh(project(), &["schema", kind]);
        let schema = run.json();
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

#[test]
fn the_readme_has_every_command_in_7_kb() {
    let readme = fs::read_to_string(project().join("README.md")).unwrap();
    assert!(readme.len() <= 7_000, "{}", readme.len());
    let help = clustermesh(project(), &["--help"]).stdout;
    let missing: Vec<String> =
        subcommands(&help).filter(|it| !readme.contains(&format!("`{it}"))).collect();
    assert_eq!(missing, [""; 0]);
}
