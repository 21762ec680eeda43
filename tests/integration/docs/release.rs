//! The files of a release: their names agree, and the address of the repository is only in
//! `Cargo.toml`.

use std::collections::BTreeMap;
use std::fs;

use serde::Deserialize;

use crate::support::project;

/// A hook of `.pre-commit-hooks.yaml`.
#[derive(Deserialize)]
struct Hook {
    id: String,
    name: String,
    entry: String,
    language: String,
    #[serde(flatten)]
    others: BTreeMap<String, serde_yaml::Value>,
}

fn text(file: &str) -> String {
    fs::read_to_string(project().join(file)).unwrap()
}

/// Returns the image of this release, without its tag: GitHub has images under an address of their own.
fn image() -> String {
    let repository = env!("CARGO_PKG_REPOSITORY").trim_start_matches("https://");
    let image = repository.replacen("github.com/", "ghcr.io/", 1);
    image.to_lowercase()
}

#[test]
fn each_hook_has_three_variants_that_run_the_same_command() {
    let hooks: Vec<Hook> = serde_yaml::from_str(&text(".pre-commit-hooks.yaml")).unwrap();
    let image = format!("{}:{}", image(), env!("CARGO_PKG_VERSION"));
    let variants = [
        ("", "rust", "clustermesh"),
        ("-system", "system", "clustermesh"),
        ("-docker", "docker_image", image.as_str()),
    ];
    let checks =
        [("validate", "validate"), ("render-check", "render --check"), ("verify", "verify")];
    let expected = variants.iter().flat_map(|(suffix, language, program)| {
        checks.iter().map(move |(check, command)| {
            (
                format!("clustermesh-{check}{suffix}"),
                format!("clustermesh {command}"),
                format!("{program} {command}"),
                (*language).to_owned(),
            )
        })
    });
    let found = hooks
        .iter()
        .map(|it| (it.id.clone(), it.name.clone(), it.entry.clone(), it.language.clone()));
    assert_eq!(found.collect::<Vec<_>>(), expected.collect::<Vec<_>>());
    for (hook, first) in hooks.iter().zip(hooks.iter().take(3).cycle()) {
        assert_eq!(hook.others, first.others, "{}", hook.id);
    }
}
