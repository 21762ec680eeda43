//! Pages: a list of nodes as the API gives it out, with `limit` and `continue`.

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use serde_json::{Value, json};

use super::reply::Answer;
use super::request::Request;

/// The resource version of the list.
const VERSION: &str = "4711";

/// Where a list goes on, and how much is left there.
pub(crate) struct More {
    pub(crate) token: String,
    pub(crate) left: usize,
}

/// Returns the page of nodes that a request asks for.
pub(super) fn page(nodes: &[Value], request: &Request) -> Answer {
    part(nodes, request, list)
}

/// Returns the page of custom resources that a request asks for; their items have a kind.
pub(super) fn custom(kind: &str, objects: &[Value], request: &Request) -> Answer {
    part(objects, request, |items, more| {
        Answer::json(&json!({
            "kind": kind,
            "apiVersion": "kilo.squat.ai/v1alpha1",
            "metadata": metadata(more),
            "items": items,
        }))
    })
}

fn part(
    nodes: &[Value],
    request: &Request,
    list: impl Fn(&[Value], Option<&More>) -> Answer,
) -> Answer {
    let query = |key: &str| request.query.get(key).filter(|value| !value.is_empty());
    let start = query("continue").map_or(Some(0), |token| start(token));
    let Some(rest) = start.and_then(|start| nodes.get(start..)) else {
        return Answer::failure(400, "BadRequest", "continue key is not valid");
    };
    let Some(limit) = query("limit").map_or(Some(0), |limit| limit.parse().ok()) else {
        return Answer::failure(400, "BadRequest", "limit must be a number");
    };
    if limit == 0 || rest.len() <= limit {
        return list(rest, None);
    }
    let left = rest.len() - limit;
    let token = STANDARD.encode(format!("{VERSION}:{}", nodes.len() - left));
    list(&rest[..limit], Some(&More { token, left }))
}

/// Returns a list of nodes; as in the API, its items have no kind.
pub(crate) fn list(nodes: &[Value], more: Option<&More>) -> Answer {
    let items: Vec<Value> = nodes.iter().map(item).collect();
    Answer::json(&json!({
        "kind": "NodeList",
        "apiVersion": "v1",
        "metadata": metadata(more),
        "items": items,
    }))
}

fn metadata(more: Option<&More>) -> Value {
    let mut metadata = json!({ "resourceVersion": VERSION });
    if let Some(more) = more {
        metadata["continue"] = more.token.as_str().into();
        metadata["remainingItemCount"] = more.left.into();
    }
    metadata
}

fn item(node: &Value) -> Value {
    let mut item = node.clone();
    if let Some(fields) = item.as_object_mut() {
        fields.remove("apiVersion");
        fields.remove("kind");
    }
    item
}

/// Reads where a list goes on.
fn start(token: &str) -> Option<usize> {
    let text = String::from_utf8(STANDARD.decode(token).ok()?).ok()?;
    let (version, start) = text.split_once(':')?;
    (version == VERSION).then(|| start.parse().ok()).flatten()
}
