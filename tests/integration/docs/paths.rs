//! Paths that the pages for contributors name exist.

use std::fs;
use std::path::Path;

use pulldown_cmark::{Event, Parser};

use crate::support::project;

const PAGES: &[&str] = &["ARCHITECTURE.md", "CONTRIBUTING.md", "RELEASING.md", "SECURITY.md"];

/// Beginnings of paths in the repositories of users, and of other names with a slash.
const ELSEWHERE: &[&str] = &[
    "clusters/",
    "ghcr.io/",
    "kilo.squat.ai/",
    "meshes/",
    "rendered",
    "snapshots",
    "/",
    "target/",
];

/// Returns whether code in backticks is a path in this repository.
fn is_path(code: &str) -> bool {
    let is_placeholder = |it: &str| 1 < it.len() && it.bytes().all(|it| it.is_ascii_uppercase());
    let is_plain = !code.contains([' ', '*', '<', '{', '$', ':']);
    let is_elsewhere = ELSEWHERE.iter().any(|it| code.starts_with(it));
    is_plain && !is_elsewhere && code.contains('/') && !code.split('/').any(is_placeholder)
}

/// Returns whether a path exists, from the root or from `src`.
fn exists(path: &str) -> bool {
    ["", "src"].iter().any(|it| project().join(it).join(path).exists())
}

#[test]
fn paths_in_pages_for_contributors_exist() {
    let mut missing = Vec::new();
    for page in PAGES {
        let file = project().join(page);
        if !Path::new(&file).exists() {
            continue;
        }
        let text = fs::read_to_string(file).unwrap();
        for event in Parser::new_ext(&text, pulldown_cmark::Options::ENABLE_TABLES) {
            if let Event::Code(code) = event
                && is_path(&code)
                && !exists(&code)
            {
                missing.push(format!("{page}: {code}"));
            }
        }
    }
    assert_eq!(missing, Vec::<String>::new());
}

/// The map of the source is complete.
#[test]
fn architecture_names_every_module() {
    let read = |file: &str| fs::read_to_string(project().join(file)).unwrap();
    let (lib, map) = (read("src/lib.rs"), read("ARCHITECTURE.md"));
    let modules = lib.lines().filter_map(|line| line.strip_prefix("pub mod ")?.strip_suffix(';'));
    let missing: Vec<&str> = modules.filter(|it| !map.contains(&format!("`{it}`"))).collect();
    assert_eq!(missing, [""; 0]);
}
