//! Dumps: what `kubectl get nodes -o json` (or `yaml`) prints.

use serde::de::DeserializeOwned;
use serde_json::error::Category;
use thiserror::Error;

use super::api::NodeObject;
use super::listing::{Listing, PageError, kind};
use crate::text::is_kubectl_error;

/// The kind of a node.
const NODE: &str = "Node";

/// The reason why a text is not a dump of objects of a kind.
#[derive(Debug, Error)]
pub enum DumpError {
    /// Not JSON, though it begins like it.
    #[error("not the JSON that `kubectl get -o json` prints: error at line {}, column {}", .0.line(), .0.column())]
    Json(serde_json::Error),
    /// Cut off.
    #[error("the file ends too early, in line {0}; write it again with `kubectl get -o json`")]
    Truncated(usize),
    /// Another text before the output of kubectl, which begins in this line.
    #[error(
        "line 1 is not part of the output of kubectl, which begins in line {0}; write only the standard output of kubectl into the file"
    )]
    Preceded(usize),
    /// Not YAML.
    #[error("not the JSON or YAML that `kubectl get -o json` prints{}", place(.0.as_ref()))]
    Yaml(Option<(u64, u64)>),
    /// A table, as `kubectl get` prints it for people.
    #[error("a table for people; write the file with `kubectl get -o json`")]
    Table,
    /// A message instead of the output.
    #[error("an error message of kubectl; correct what it reports, and write the file again")]
    Message,
    /// Some other object.
    #[error("expected a {0}List, a List of {0}s or a {0}, as printed by `{command}`, found {found}", command = command(.0), found = kind(.1))]
    Kind(&'static str, String),
    /// A page of a longer list.
    #[error("the list is incomplete (it has a continue token); list all {}s with `{}`", .0.to_lowercase(), command(.0))]
    Incomplete(&'static str),
    /// A node without a name.
    #[error("the node has no name")]
    Nameless,
    /// A list of other objects than nodes.
    #[error(transparent)]
    List(#[from] PageError),
}

/// Reads a dump: a `NodeList`, a `List` of Nodes, or one Node.
///
/// # Errors
/// Anything else, also a list that is not whole.
pub fn listing(text: &str) -> Result<Listing, DumpError> {
    let object: NodeObject = parse(text)?;
    let mut listing = Listing::default();
    match object.kind.as_deref() {
        Some(NODE) => {
            listing.add_node(object.node().ok_or(DumpError::Nameless)?);
            listing.is_single = true;
        }
        Some("NodeList" | "List") => {
            let token = object.metadata.as_ref().and_then(|it| it.more.as_deref());
            if token.is_some_and(|token| !token.is_empty()) {
                return Err(DumpError::Incomplete(NODE));
            }
            listing.add(object)?;
        }
        other => return Err(DumpError::Kind(NODE, other.unwrap_or_default().to_owned())),
    }
    Ok(listing)
}

/// Reads JSON or YAML that a program wrote.
pub(super) fn parse<T: DeserializeOwned>(text: &str) -> Result<T, DumpError> {
    let text = text.trim_start_matches('\u{feff}');
    if text.trim_start().starts_with('{') {
        return serde_json::from_str(text).map_err(|error| match error.classify() {
            Category::Eof => DumpError::Truncated(error.line()),
            _ => DumpError::Json(error),
        });
    }
    if is_kubectl_error(text) {
        return Err(DumpError::Message);
    }
    if text.starts_with("NAME ") {
        return Err(DumpError::Table);
    }
    // A program wrote it, so its size is not a sign of malice. But no honest text has more nodes
    // than characters, so aliases that multiply are still refused.
    let size = text.len().max(1 << 20);
    let options = serde_saphyr::options! {
        budget: serde_saphyr::budget! {
            max_events: 2 * size,
            max_nodes: size,
            max_total_scalar_bytes: size,
        },
        with_snippet: false,
    };
    serde_saphyr::from_str_with_options(text, options).map_err(|error| {
        let is_start = |line: &str| line == "{" || line.starts_with("apiVersion:");
        if let Some(before) = text.lines().position(is_start).filter(|it| 0 < *it) {
            return DumpError::Preceded(before + 1);
        }
        let place = error.location().filter(|it| 0 < it.line());
        DumpError::Yaml(place.map(|it| (it.line(), it.column())))
    })
}

/// Returns the command that lists all objects of a kind.
fn command(kind: &str) -> &'static str {
    match kind {
        NODE => "kubectl get nodes -o json",
        _ => "kubectl get services -A -o json",
    }
}

/// Describes where a problem is without quoting the text, because it may be any file.
fn place(place: Option<&(u64, u64)>) -> String {
    match place {
        Some((line, column)) => format!(": error at line {line}, column {column}"),
        None => String::new(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::snapshot::Snapshot;

    fn dump(text: &str) -> Snapshot {
        let listing = listing(text).unwrap();
        listing.snapshot("east".parse().unwrap(), 300, None).unwrap().0
    }

    fn error(text: &str) -> String {
        listing(text).unwrap_err().to_string()
    }

    #[test]
    fn keeps_kilo_s_annotations_but_the_volatile_ones() {
        let node = &dump(
            "
kind: Node
metadata:
  name: a
  annotations:
    kilo.squat.ai/key: k
    kilo.squat.ai/last-seen: '1763600000'
    kilo.squat.ai/discovered-endpoints: '{}'
    other.io/key: x
spec: { podCIDR: 10.42.0.0/24 }
status: { addresses: [{ type: Hostname, address: a }, { type: InternalIP, address: 10.0.0.1 }] }
",
        )
        .nodes[0];
        assert_eq!(node.annotations.keys().collect::<Vec<_>>(), ["kilo.squat.ai/key"]);
        assert_eq!(node.pod_cidrs, ["10.42.0.0/24"]);
        assert_eq!(node.addresses.len(), 1);
        assert!(!node.stale);
    }

    #[test]
    fn refuses_what_is_no_whole_list_of_nodes() {
        insta::assert_snapshot!(error("Error from server (Forbidden): nodes is forbidden"), @"an error message of kubectl; correct what it reports, and write the file again");
        insta::assert_snapshot!(error(r#"{"nodes":[]}"#), @"expected a NodeList, a List of Nodes or a Node, as printed by `kubectl get nodes -o json`, found an object without a kind");
        insta::assert_snapshot!(error("kind: Peer"), @"expected a NodeList, a List of Nodes or a Node, as printed by `kubectl get nodes -o json`, found the kind `Peer`");
        insta::assert_snapshot!(error(r#"{"kind":"List","items":[{"kind":"Pod"}]}"#), @"item 0 of the list has kind `Pod`, expected Node");
        insta::assert_snapshot!(error(r#"{"kind":"NodeList","metadata":{"continue":"x"},"items":[]}"#), @"the list is incomplete (it has a continue token); list all nodes with `kubectl get nodes -o json`");
        insta::assert_snapshot!(error(r#"{"kind":"NodeList","items":[{"#), @"the file ends too early, in line 1; write it again with `kubectl get -o json`");
        insta::assert_snapshot!(error(r#"{"kind":"NodeList","items":[x]}"#), @"not the JSON that `kubectl get -o json` prints: error at line 1, column 29");
        insta::assert_snapshot!(error("W1129 some warning: deprecated\n{\n \"kind\": \"NodeList\"\n}\n"), @"line 1 is not part of the output of kubectl, which begins in line 2; write only the standard output of kubectl into the file");
        insta::assert_snapshot!(error("W1129 a warning\napiVersion: v1\nkind: NodeList\n"), @"line 1 is not part of the output of kubectl, which begins in line 2; write only the standard output of kubectl into the file");
    }
}
