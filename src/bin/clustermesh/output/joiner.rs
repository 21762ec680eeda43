//! Clusters that join, as objects for programs.

use clustermesh::joining::Joiner;
use schemars::JsonSchema;
use serde::Serialize;

/// A cluster that joins a mesh.
#[derive(JsonSchema, Serialize)]
#[serde(rename_all = "camelCase")]
pub(crate) struct WrittenJoiner<'a> {
    /// The mesh.
    #[schemars(example = &"prod")]
    mesh: &'a str,
    /// The cluster.
    #[schemars(example = &"north")]
    cluster: &'a str,
}

impl<'a> From<&'a Joiner> for WrittenJoiner<'a> {
    fn from(joiner: &'a Joiner) -> Self {
        Self {
            mesh: joiner.mesh.as_str(),
            cluster: joiner.cluster.as_str(),
        }
    }
}
