//! Dumps: the Peers of a cluster as its API server lists them.
//!
//! An empty list means that a cluster has no Peer. Other output of a failed command must not be
//! read as an empty list.

use std::sync::Arc;

use serde_json::Value;
use thiserror::Error;

use super::{AppliedFile, is_list, is_peer, objects, own};
use crate::diagnostic::{Quoted, escaped};
use crate::document::{Broken, Position};
use crate::text::is_kubectl_error;

/// The longest text of an API server that is shown, in characters.
const SHOWN: usize = 400;

/// The longest name of a kind that is shown.
const KIND: usize = 63;

/// The reason for which a text is not the list of a cluster's Peers. The text may be any file, so
/// only parts that look like the API are quoted.
#[derive(Clone, Debug, Eq, Error, PartialEq)]
pub enum PeerDumpError {
    /// Nothing, or only comments.
    #[error("is empty; did the command that lists the Peers fail?")]
    Empty,
    /// HTML.
    #[error("is a web page; is `server` in the kubeconfig a Kubernetes API server?")]
    WebPage,
    /// A message of kubectl instead of its output.
    #[error("is an error message of kubectl; correct what it reports, and write the file again")]
    Message,
    /// A table of kubectl, or other text.
    #[error("is a table or other plain text; use the output of `kubectl get peers -o yaml`")]
    Table,
    /// Neither YAML nor JSON.
    #[error("is neither YAML nor JSON{}", at(.0.as_ref()))]
    Syntax(Option<Position>),
    /// An error of the API server.
    #[error("is an error of the API server: {}", status(.reason, .message))]
    Status {
        /// Its reason, a word.
        reason: String,
        /// Its message, a sentence.
        message: String,
    },
    /// Another object.
    #[error("contains {}; use the output of `kubectl get peers -o yaml`", what(.api_version, .kind))]
    Kind {
        /// The field as written; empty if missing.
        api_version: String,
        /// The field as written; empty if missing.
        kind: String,
    },
    /// A page of a longer list.
    #[error(
        "is one page of a longer list (`metadata.{0}` is set); use the output of \
         `kubectl get peers -o yaml`, which has all pages"
    )]
    Incomplete(&'static str),
    /// A list without the field that holds its objects.
    #[error("is a list without `items`; use the output of `kubectl get peers -o yaml`")]
    Itemless,
}

impl AppliedFile {
    /// Reads what a cluster lists: Peers, or lists of them. A Peer may be one that Kilo does not take.
    ///
    /// # Errors
    /// There is anything else in it, or nothing at all.
    pub fn of_dump(source: &Arc<str>, text: &Arc<str>) -> Result<Self, PeerDumpError> {
        if own(text).is_none() {
            check(source, text)?;
        }
        Ok(Self::read(source, text))
    }
}

fn check(source: &Arc<str>, text: &Arc<str>) -> Result<(), PeerDumpError> {
    let begin = text.trim_start_matches('\u{feff}').trim_start();
    if begin.starts_with('<') {
        return Err(PeerDumpError::WebPage);
    }
    if is_kubectl_error(begin) {
        return Err(PeerDumpError::Message);
    }
    let objects =
        objects(source, text).map_err(|broken| PeerDumpError::Syntax(position(&broken)))?;
    if objects.is_empty() {
        return Err(PeerDumpError::Empty);
    }
    objects.iter().try_for_each(|(_, value)| object(value))
}

fn object(value: &Value) -> Result<(), PeerDumpError> {
    if value.is_string() {
        return Err(PeerDumpError::Table);
    }
    if !is_list(value) {
        return peer(value, false);
    }
    let token = value.pointer("/metadata/continue").and_then(Value::as_str);
    if token.is_some_and(|token| !token.is_empty()) {
        return Err(PeerDumpError::Incomplete("continue"));
    }
    let remaining = value.pointer("/metadata/remainingItemCount");
    if remaining.is_some_and(|it| !it.is_null() && it != 0) {
        return Err(PeerDumpError::Incomplete("remainingItemCount"));
    }
    let is_typed = text(value, "kind") == "PeerList";
    let mut items =
        value.get("items").ok_or(PeerDumpError::Itemless)?.as_array().into_iter().flatten();
    items.try_for_each(|item| peer(item, is_typed))
}

fn peer(value: &Value, is_typed: bool) -> Result<(), PeerDumpError> {
    let owned = |key| text(value, key).to_owned();
    if is_peer(value, is_typed) {
        return Ok(());
    }
    Err(match text(value, "kind") {
        "Status" => PeerDumpError::Status { reason: owned("reason"), message: owned("message") },
        _ => PeerDumpError::Kind { api_version: owned("apiVersion"), kind: owned("kind") },
    })
}

fn text<'v>(value: &'v Value, key: &str) -> &'v str {
    value.get(key).and_then(Value::as_str).unwrap_or_default()
}

fn position(broken: &Broken) -> Option<Position> {
    let label = broken.problems.first()?.labels.first()?;
    let span = broken.source.locate(&label.place)?;
    Some(broken.source.position(span.start))
}

fn at(position: Option<&Position>) -> String {
    match position {
        Some(it) => format!(", see line {}, column {}", it.line, it.column),
        None => String::new(),
    }
}

fn status(reason: &str, message: &str) -> String {
    let said: Vec<String> = [reason, message]
        .map(|it| escaped(it, SHOWN))
        .into_iter()
        .filter(|it| !it.is_empty())
        .collect();
    match said.as_slice() {
        [] => "it gives no reason".to_owned(),
        said => said.join(": "),
    }
}

fn what(api_version: &str, kind: &str) -> String {
    let is_kind = kind.starts_with(|it: char| it.is_ascii_uppercase())
        && kind.len() <= KIND
        && kind.bytes().all(|it| it.is_ascii_alphanumeric());
    match kind {
        "" => "an object without a kind".to_owned(),
        "Peer" => format!("a Peer of the API version {}", Quoted(api_version)),
        kind if is_kind => format!("an object of the kind {}", Quoted(kind)),
        _ => "an object of another kind".to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const PEER: &str =
        r#"{"apiVersion":"kilo.squat.ai/v1alpha1","kind":"Peer","metadata":{"name":"a"}}"#;

    fn read(text: &str) -> Result<usize, String> {
        let file = AppliedFile::of_dump(&"f.yaml".into(), &text.into());
        file.map(|it| it.content.peers.len()).map_err(|error| error.to_string())
    }

    #[test]
    fn peers_and_lists_of_them_are_read() {
        let api_version = "apiVersion: kilo.squat.ai/v1alpha1";
        let listed = |kind: &str, items: &str| format!(r#"{{"kind":"{kind}","items":{items}}}"#);
        let texts = [
            (PEER.to_owned(), 1),
            (format!("{PEER}\n---\n# nothing\n---\n{PEER}"), 2),
            (listed("List", &format!("[{PEER},{PEER}]")), 2),
            (listed("PeerList", &format!("[{PEER}]")), 1),
            (listed("PeerList", r#"[{"metadata":{"name":"a"}}]"#), 1),
            (listed("List", "[]"), 0),
            (format!("{api_version}\nkind: PeerList\nitems: []\nmetadata: {{continue: ''}}"), 0),
            ("kind: List\nitems:\n".to_owned(), 0),
            (format!("{}\n---\n{PEER}", listed("List", "[]")), 1),
        ];
        for (text, peers) in texts {
            assert_eq!(read(&text), Ok(peers), "{text}");
        }
    }

    #[test]
    fn anything_else_is_an_error() {
        let error = |text: &str| read(text).unwrap_err();
        for text in ["", "\u{feff}\n \n", "# nothing\n---\n"] {
            insta::allow_duplicates! {
                insta::assert_snapshot!(error(text), @"is empty; did the command that lists the Peers fail?");
            }
        }
        insta::assert_snapshot!(error("NAME   AGE\nwest   5d\n"), @"is a table or other plain text; use the output of `kubectl get peers -o yaml`");
        insta::assert_snapshot!(error("\n<!DOCTYPE html>\n<title>Log in</title>"), @"is a web page; is `server` in the kubeconfig a Kubernetes API server?");
        insta::assert_snapshot!(error(r#"{"kind":"Status","reason":"Forbidden","message":"peers.kilo.squat.ai is forbidden: User \"\u001b[2Jx\" cannot list"}"#), @r#"is an error of the API server: Forbidden: peers.kilo.squat.ai is forbidden: User "\u{1b}[2Jx" cannot list"#);
        insta::assert_snapshot!(error("kind: Status"), @"is an error of the API server: it gives no reason");
        insta::assert_snapshot!(error("kind: NodeList\nitems: []"), @"contains an object of the kind `NodeList`; use the output of `kubectl get peers -o yaml`");
        insta::assert_snapshot!(error(r#"{"kind":"List","items":[{"kind":"Node"}]}"#), @"contains an object of the kind `Node`; use the output of `kubectl get peers -o yaml`");
        insta::assert_snapshot!(error(&PEER.replace("v1alpha1", "v1\\u001b")), @r"contains a Peer of the API version `kilo.squat.ai/v1\u{1b}`; use the output of `kubectl get peers -o yaml`");
        insta::assert_snapshot!(error("error: the server doesn't have a resource type \"peers\""), @"is an error message of kubectl; correct what it reports, and write the file again");
        insta::assert_snapshot!(error("password: x"), @"contains an object without a kind; use the output of `kubectl get peers -o yaml`");
        insta::assert_snapshot!(error(&format!("{PEER}\n---\nkind: s3cret")), @"contains an object of another kind; use the output of `kubectl get peers -o yaml`");
        insta::assert_snapshot!(error(r#"{"kind":"PeerList","metadata":{"continue":"x"},"items":[]}"#), @"is one page of a longer list (`metadata.continue` is set); use the output of `kubectl get peers -o yaml`, which has all pages");
        insta::assert_snapshot!(error(r#"{"kind":"List","metadata":{"remainingItemCount":7},"items":[]}"#), @"is one page of a longer list (`metadata.remainingItemCount` is set); use the output of `kubectl get peers -o yaml`, which has all pages");
        insta::assert_snapshot!(error(r#"{"kind":"List"}"#), @"is a list without `items`; use the output of `kubectl get peers -o yaml`");
        insta::assert_snapshot!(error("kind: Peer\nspec: [s3cret"), @"is neither YAML nor JSON, see line 2, column 7");
    }
}
