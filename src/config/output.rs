//! Outputs: files that users keep for each cluster or mesh, filled in from their templates.

use schemars::JsonSchema;
use serde::Deserialize;

use crate::place::Place;

/// A template, and where its results are written.
#[derive(Clone, Debug, Eq, PartialEq)]
pub struct Output {
    /// The file of the template.
    pub template: String,
    /// The path of each result: itself a template.
    pub path: String,
    /// The unit for which `render` writes a result.
    pub per: Per,
    /// The place in the config.
    pub place: Place,
}

/// The unit for which `render` writes a result.
#[derive(Clone, Copy, Debug, Default, Deserialize, Eq, JsonSchema, PartialEq)]
pub enum Per {
    /// Each cluster that gets Peers; the template has `target`.
    #[default]
    Target,
    /// Each mesh; the template has `mesh`.
    Mesh,
    /// The repository as a whole.
    Repository,
}

/// A file that `render` fills in from a template, beside the rendered tree.
#[derive(Debug, Deserialize, JsonSchema)]
#[schemars(rename = "Output")]
#[serde(deny_unknown_fields, rename_all = "camelCase")]
pub(super) struct WrittenOutput {
    /// The template (Jinja syntax), as a path relative to this file. `clustermesh schema
    /// template-context` describes the values that it can use.
    #[schemars(length(min = 1), example = &"templates/application.yaml")]
    template: String,
    /// The path of the result, relative to this file. Its extension decides how strings are written:
    /// `.yaml`, `.yml`, `.json`, or plain text.
    #[schemars(length(min = 1), example = &"apps/{{ target.name }}.yaml")]
    path: String,
    /// Whether there is a result for each target, for each mesh, or one for the repository;
    /// default: `Target`.
    per: Option<Per>,
}

impl WrittenOutput {
    pub(super) fn read(self, place: Place) -> Output {
        Output {
            template: self.template,
            path: self.path,
            per: self.per.unwrap_or_default(),
            place,
        }
    }
}
