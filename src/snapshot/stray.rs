//! Strays: files beside snapshots that are not the snapshot of a cluster of a mesh.

use std::collections::BTreeSet;

use serde::Deserialize;

use super::{API_VERSION, KIND, SERVICES_KIND};

/// A file that no cluster of a mesh is read from.
#[derive(Clone, Debug, Eq, PartialEq)]
pub enum Stray {
    /// It holds a cluster that has a file of its own.
    Duplicate(String),
    /// It holds a cluster that no mesh names.
    Unnamed(String),
    /// It holds Services of a cluster, in a file that is not read.
    Services(String),
    /// It holds nodes as the API server lists them.
    NodeList,
    /// It is something else.
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
        if is_node_list(text) {
            return Self::NodeList;
        }
        let header: Result<StrayHeader, _> = serde_json::from_str(text);
        match header {
            Ok(it) if it.kind == SERVICES_KIND && it.api_version == API_VERSION => {
                Self::Services(it.cluster)
            }
            Ok(it) if it.kind != KIND || it.api_version != API_VERSION => Self::Foreign,
            Ok(it) if named.contains(&it.cluster) => Self::Duplicate(it.cluster),
            Ok(it) => Self::Unnamed(it.cluster),
            Err(_) => Self::Foreign,
        }
    }
}

/// The part of an API object that shows whether it is a list of nodes.
#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct ListHeader {
    api_version: String,
    kind: String,
    #[serde(default)]
    items: Vec<ItemHeader>,
}

/// The part of an item of a list that shows its kind. The API server leaves it out in a `NodeList`.
#[derive(Deserialize)]
struct ItemHeader {
    #[serde(default)]
    kind: Option<String>,
}

/// Returns whether a text is a node or a list of nodes as `kubectl get -o json` prints it.
pub(super) fn is_node_list(text: &str) -> bool {
    let header: Result<ListHeader, _> = serde_json::from_str(text);
    header.is_ok_and(|it| {
        let mut items = it.items.iter();
        it.api_version == "v1"
            && match it.kind.as_str() {
                "Node" | "NodeList" => true,
                "List" => items.any(|it| it.kind.as_deref() == Some("Node")),
                _ => false,
            }
    })
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
        assert_eq!(stray(&snapshot("east")), Stray::Duplicate("east".to_owned()));
        assert_eq!(stray(&snapshot("west")), Stray::Unnamed("west".to_owned()));
        assert_eq!(stray(&snapshot("east").replace(KIND, "NodeList")), Stray::Foreign);
        assert_eq!(stray(&snapshot("east").replace("/v1", "/v9")), Stray::Foreign);
        assert_eq!(
            stray(&snapshot("east").replace(KIND, SERVICES_KIND)),
            Stray::Services("east".to_owned())
        );
        let list = |kind: &str| {
            format!(r#"{{"apiVersion": "v1", "kind": "List", "items": [{{"kind": "{kind}"}}]}}"#)
        };
        assert_eq!(stray(&list("Node")), Stray::NodeList);
        assert_eq!(stray(&list("Pod")), Stray::Foreign);
        assert_eq!(
            stray(r#"{"kind": "NodeList", "apiVersion": "v1", "items": [{}]}"#),
            Stray::NodeList
        );
        assert_eq!(stray("[]"), Stray::Foreign);
        assert_eq!(stray(""), Stray::Foreign);
    }
}
