//! The config: where this repository keeps its meshes, snapshots and manifests.

use schemars::{JsonSchema, Schema};
use serde::Deserialize;

use crate::diagnostic::Diagnostic;
use crate::document::{Form, Source};
use crate::place::Place;

/// What a config file says, each path relative to its folder. Whatever it does not say, the shell
/// decides.
#[derive(Clone, Debug, Default, Eq, PartialEq)]
pub struct Config {
    /// The files and folders of the meshes.
    pub meshes: Vec<String>,
    /// The folder of the snapshots.
    pub snapshots: Option<String>,
    /// The folder of the rendered manifests.
    pub rendered: Option<String>,
}

/// Where a repository keeps its meshes, snapshots and manifests. Paths are relative to this file.
#[derive(Debug, Deserialize, JsonSchema)]
#[schemars(rename = "Config")]
#[serde(deny_unknown_fields, rename_all = "camelCase")]
#[expect(dead_code, reason = "the walk has looked at version and kind")]
struct Written {
    /// The version of this format.
    api_version: ApiVersion,
    /// The kind of this document.
    kind: Kind,
    /// Files of meshes, and folders of which every `*.yaml` and `*.yml` is one.
    #[schemars(length(min = 1), inner(length(min = 1)))]
    meshes: Option<Vec<String>>,
    /// The folder with one `<cluster>.json` for every cluster.
    #[schemars(length(min = 1))]
    snapshots: Option<String>,
    /// The folder that `clustermesh render` writes.
    #[schemars(length(min = 1))]
    rendered: Option<String>,
}

/// The only version of a config.
#[derive(Debug, Deserialize, JsonSchema)]
enum ApiVersion {
    /// The first.
    #[serde(rename = "kilo-clustermesh.io/v1")]
    V1,
}

/// The only kind of a config.
#[derive(Debug, Deserialize, JsonSchema)]
enum Kind {
    /// A config.
    Config,
}

/// Reads a config file.
///
/// # Errors
/// Everything that is wrong with its structure.
pub fn read(source: &Source) -> Result<Config, Vec<Diagnostic>> {
    let documents = source.documents.iter().enumerate();
    let mut documents = documents.filter(|(_, document)| !document.is_null());
    let Some((index, document)) = documents.next() else {
        let place = Place::document(&source.name, 0);
        return Err(vec![
            Diagnostic::error("no-document", "the config is empty").at(place, ""),
        ]);
    };
    let place = Place::document(&source.name, index);
    let written = Form::<Written>::new().read(document, &place);
    let others: Vec<Diagnostic> = documents
        .map(|(index, _)| second_document(Place::document(&source.name, index)))
        .collect();
    match written {
        Ok(written) if others.is_empty() => Ok(written.config()),
        Ok(_) => Err(others),
        Err(problems) => Err(problems.into_iter().chain(others).collect()),
    }
}

/// Returns the JSON Schema of a config.
pub fn schema() -> Schema {
    Form::<Written>::new().schema().clone()
}

impl Written {
    fn config(self) -> Config {
        Config {
            meshes: self.meshes.unwrap_or_default(),
            snapshots: self.snapshots,
            rendered: self.rendered,
        }
    }
}

fn second_document(place: Place) -> Diagnostic {
    Diagnostic::error(
        "second-document",
        "a config is one document, this is another",
    )
    .at(place, "")
}

#[cfg(test)]
mod tests {
    use super::*;

    fn told(text: &str) -> String {
        let source = Source::parse("clustermesh.yaml", text).unwrap();
        match read(&source) {
            Ok(config) => format!("{config:?}"),
            Err(diagnostics) => crate::document::tests::told(&source, &diagnostics),
        }
    }

    #[test]
    fn reads_what_is_said() {
        insta::assert_snapshot!(told("
---
apiVersion: kilo-clustermesh.io/v1
kind: Config
meshes: [mesh.yaml, meshes]
rendered: ../flux/peers
---
"), @r#"Config { meshes: ["mesh.yaml", "meshes"], snapshots: None, rendered: Some("../flux/peers") }"#);
    }

    #[test]
    fn tells_all_mistakes_at_once() {
        insta::assert_snapshot!(told("
apiVersion: kilo-clustermesh.io/v2
kind: config
mesh: x
snapshots: ''
rendered: [a]
limits: {}
meshes: ['', 7]
---
more: true
"), @r#"
        error[unknown-value]: `apiVersion` cannot be `kilo-clustermesh.io/v2`
          2:13 | kilo-clustermesh.io/v2
          help: did you mean `kilo-clustermesh.io/v1`?
        error[unknown-value]: `kind` cannot be `config`
          3:7 | config
          help: did you mean `Config`?
        error[unknown-field]: unknown field `mesh`
          4:1 | mesh
          help: did you mean `meshes`?
        error[wrong-length]: `snapshots` must not be empty
          5:12 | ''
        error[wrong-type]: `rendered` must be text, not a list
          6:11 | [a]
        error[unknown-field]: unknown field `limits`
          7:1 | limits
          help: known here: `apiVersion`, `kind`, `meshes`, `rendered`, `snapshots`
        error[wrong-length]: an item of `meshes` must not be empty
          8:10 | ''
        error[wrong-type]: an item of `meshes` must be text, but YAML takes `7` for a number
          8:14 | 7
          help: quote it: `"7"`
        error[second-document]: a config is one document, this is another
          10:1 | more: true
        "#);
    }

    #[test]
    fn an_empty_file_is_no_config() {
        let empty = Source::parse("clustermesh.yaml", "# nothing\n").unwrap();
        let told = read(&empty).unwrap_err();
        assert_eq!(told.len(), 1);
        assert_eq!(told[0].code, "no-document");
    }
}
