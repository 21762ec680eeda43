//! Strays: files beside snapshots that are not the snapshot of a cluster of a mesh.

use std::collections::BTreeSet;

use serde::Deserialize;

use super::{API_VERSION, KIND};

/// A file that no cluster of a mesh is read from.
#[derive(Clone, Debug, Eq, PartialEq)]
pub enum Stray {
    /// It holds a cluster that has a file of its own.
    Duplicate(String),
    /// It holds a cluster that no mesh names.
    Unnamed(String),
    /// It is not a snapshot.
    Foreign,
}

/// The part of a file that shows its cluster.
#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct StrayHeader {
    api_version: String,
    cluster: String,
    kind: String,
}

impl Stray {
    /// Returns what a file is that holds `text`, where meshes name the clusters `named`.
    pub fn read(text: &str, named: &BTreeSet<String>) -> Self {
        let header: Result<StrayHeader, _> = serde_json::from_str(text);
        match header {
            Ok(it) if it.kind != KIND || it.api_version != API_VERSION => Self::Foreign,
            Ok(it) if named.contains(&it.cluster) => Self::Duplicate(it.cluster),
            Ok(it) => Self::Unnamed(it.cluster),
            Err(_) => Self::Foreign,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_file_is_what_it_says_it_is() {
        let named = BTreeSet::from(["east".to_owned()]);
        let stray = |text: &str| Stray::read(text, &named);
        let snapshot = |cluster: &str| {
            format!(
                r#"{{"apiVersion": "{API_VERSION}", "cluster": "{cluster}", "kind": "{KIND}", "nodes": [1]}}"#
            )
        };
        assert_eq!(
            stray(&snapshot("east")),
            Stray::Duplicate("east".to_owned())
        );
        assert_eq!(stray(&snapshot("west")), Stray::Unnamed("west".to_owned()));
        assert_eq!(
            stray(&snapshot("east").replace(KIND, "NodeList")),
            Stray::Foreign
        );
        assert_eq!(
            stray(&snapshot("east").replace("/v1", "/v9")),
            Stray::Foreign
        );
        assert_eq!(stray("[]"), Stray::Foreign);
        assert_eq!(stray(""), Stray::Foreign);
    }
}
