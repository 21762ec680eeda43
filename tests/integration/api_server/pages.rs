//! Pages: a list of nodes as the API gives it out, with `limit` and `continue`.

use base64::Engine as _;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use serde_json::{Value, json};

use super::reply::Answer;
use super::request::Request;

/// The resource version of the list.
const VERSION: u64 = 4711;

/// The version of the format of tokens.
const FORMAT: &str = "meta.k8s.io/v1";

/// Where a list goes on, and how much is left there.
pub(crate) struct More {
    pub(crate) token: String,
    pub(crate) left: usize,
}

/// Returns the page of nodes that a request asks for.
pub(super) fn page(nodes: &[Value], request: &Request) -> Answer {
    part(nodes, request, list)
}

/// Returns the page of custom resources that a request asks for. Their items have a kind, their fields
/// are sorted, and the last page has an empty token.
pub(super) fn custom(kind: &str, objects: &[Value], request: &Request) -> Answer {
    part(objects, request, |items, more| {
        let token = more.map_or("", |more| more.token.as_str());
        let mut metadata = json!({ "continue": token, "resourceVersion": VERSION.to_string() });
        if let Some(more) = more {
            metadata["remainingItemCount"] = more.left.into();
        }
        Answer::json(&json!({
            "kind": kind,
            "apiVersion": "kilo.squat.ai/v1alpha1",
            "metadata": metadata,
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
    let start = match query("continue").map(|token| start(token)) {
        None => 0,
        Some(Ok(start)) => start,
        Some(Err(answer)) => return answer,
    };
    let rest = &nodes[start.min(nodes.len())..];
    let limit = query("limit").map_or("0", String::as_str);
    let Ok(limit) = limit.parse() else {
        let message = format!("strconv.ParseInt: parsing {}: invalid syntax", json!(limit));
        return Answer::failure(400, "BadRequest", &message);
    };
    if limit == 0 || rest.len() <= limit {
        return list(rest, None);
    }
    let left = rest.len() - limit;
    let start = format!("{}\u{0}", nodes.len() - left);
    let token = json!({ "v": FORMAT, "rv": VERSION, "start": start }).to_string();
    let token = URL_SAFE_NO_PAD.encode(token);
    list(&rest[..limit], Some(&More { token, left }))
}

/// Returns a list of nodes; as in the API, its items have no kind.
pub(crate) fn list(nodes: &[Value], more: Option<&More>) -> Answer {
    let items: Vec<Value> = nodes.iter().map(item).collect();
    let more = more.map_or_else(String::new, |More { token, left }| {
        format!(r#","continue":"{token}","remainingItemCount":{left}"#)
    });
    Answer::text(&format!(
        r#"{{"kind":"NodeList","apiVersion":"v1","metadata":{{"resourceVersion":"{VERSION}"{more}}},"items":{}}}"#,
        Value::from(items)
    ))
}

fn item(node: &Value) -> Value {
    let mut item = node.clone();
    if let Some(fields) = item.as_object_mut() {
        fields.remove("apiVersion");
        fields.remove("kind");
    }
    item
}

/// Reads where a list goes on, or returns what is wrong with the token.
fn start(token: &str) -> Result<usize, Answer> {
    let invalid = |problem: &str| {
        let message = format!("invalid continue token: continue key is not valid: {problem}");
        Answer::failure(400, "BadRequest", &message)
    };
    let bytes = URL_SAFE_NO_PAD.decode(token).unwrap_or_default();
    let Ok(token) = serde_json::from_slice::<Value>(&bytes) else {
        return Err(invalid("it is not JSON"));
    };
    if token["v"] != FORMAT {
        let version = token["v"].as_str().unwrap_or_default();
        let problem = format!("server does not recognize this encoded version {version}");
        return Err(invalid(&problem));
    }
    if token["rv"] != VERSION {
        return Err(Answer::expired());
    }
    let start = token["start"].as_str().unwrap_or_default();
    let start = start.trim_end_matches('\u{0}').parse();
    start.map_err(|_| invalid("it has no start"))
}
