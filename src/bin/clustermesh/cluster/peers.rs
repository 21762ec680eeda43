//! Peers: the list of them, if the cluster has Kilo's CRD.

use clustermesh::rules::clusters::{Fault, Right};
use serde::Deserialize;
use serde_json::{Value, json};

use super::connection::Connection;
use super::failure::{self, RequestFailure};
use super::pages::{self, Collection, unreadable};
use super::redact::Redactions;
use super::request::{ApiRequest, ApiResponse, answer};

/// Kilo's group in the API.
const GROUP: &str = "/apis/kilo.squat.ai";

/// The version of a Peer that is understood.
const VERSION: &str = "v1alpha1";

/// The most versions of a CRD that are shown.
const MOST_VERSIONS: usize = 10;

/// The most bytes of Peers that are believed.
const LIMIT: usize = 100 << 20;

/// Kilo's Peers in a cluster.
#[derive(Debug, Default)]
pub(crate) struct PeerList {
    /// The versions of the CRD; none without a CRD.
    pub(crate) versions: Vec<String>,
    /// The Peers as a manifest; none if they are of no version that is understood.
    manifest: Option<String>,
}

impl PeerList {
    /// Returns the Peers as a manifest; none without a CRD.
    ///
    /// # Errors
    /// The CRD has no version that is understood.
    pub(crate) fn manifest(&self) -> Result<Option<&str>, Fault> {
        if self.manifest.is_none() && !self.versions.is_empty() {
            let versions = self.versions.join(", ");
            return Err(Fault::Unreadable {
                problem: format!("it has Peers of {versions}, not of {VERSION}"),
            });
        }
        Ok(self.manifest.as_deref())
    }

    /// Returns the manifest.
    pub(crate) fn into_manifest(self) -> Option<String> {
        self.manifest
    }
}

/// As much of a group as is needed.
#[derive(Deserialize)]
struct ApiGroup {
    versions: Vec<Version>,
}

#[derive(Deserialize)]
struct Version {
    version: String,
}

/// Peers that were listed, with no more of them than matters.
#[derive(Default)]
struct ListedPeers {
    items: Vec<Value>,
    bytes: usize,
}

#[derive(Deserialize)]
struct PeerPage {
    kind: String,
    metadata: Option<ListMetadata>,
    items: Vec<PeerItem>,
}

#[derive(Deserialize)]
struct ListMetadata {
    #[serde(rename = "continue")]
    more: Option<String>,
}

#[derive(Deserialize)]
struct PeerItem {
    metadata: PeerMetadata,
    #[serde(default)]
    spec: Value,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct PeerMetadata {
    name: String,
    deletion_timestamp: Option<String>,
}

/// Lists the Peers.
pub(super) async fn list(connection: &Connection) -> Result<PeerList, Fault> {
    let Some(versions) = versions(connection).await? else {
        return Ok(PeerList::default());
    };
    if !versions.iter().any(|it| it == VERSION) {
        return Ok(PeerList {
            versions,
            manifest: None,
        });
    }
    let path = format!("{GROUP}/{VERSION}/peers");
    let listed: Option<(ListedPeers, usize)> =
        pages::list(connection, &path, &Right::ListPeers).await?;
    // Another CRD may have the group.
    let Some((listed, _)) = listed else {
        return Ok(PeerList::default());
    };
    Ok(PeerList {
        versions,
        manifest: Some(listed.manifest()),
    })
}

/// Returns the versions that the server has of Kilo's group, if it has the group.
async fn versions(connection: &Connection) -> Result<Option<Vec<String>>, Fault> {
    let question = ApiRequest {
        path: GROUP.to_owned(),
        right: Right::ListPeers,
    };
    let hidden = &connection.hidden;
    let read = |bytes: &[u8]| {
        let text = pages::text(bytes)?;
        let group: ApiGroup =
            serde_json::from_slice(bytes).map_err(|error| wrong(&error, text, hidden))?;
        let versions = group.versions.into_iter().map(|it| it.version);
        let versions = versions.filter(|it| is_version(it)).take(MOST_VERSIONS);
        Ok(versions.collect())
    };
    Ok(match answer(connection, &question, read).await? {
        ApiResponse::With(versions) => Some(versions),
        ApiResponse::Missing(_) => None,
    })
}

/// Returns whether a text is the version of a CRD, such as `v1` or `v1alpha1`.
fn is_version(text: &str) -> bool {
    let is_number = |it: &str| !it.is_empty() && it.bytes().all(|it| it.is_ascii_digit());
    let Some(rest) = text.strip_prefix('v').filter(|it| it.len() < 32) else {
        return false;
    };
    let mut stages = ["alpha", "beta"].into_iter();
    let stage = stages.find_map(|it| rest.split_once(it));
    stage.map_or_else(
        || is_number(rest),
        |(major, minor)| is_number(major) && is_number(minor),
    )
}

impl Collection for ListedPeers {
    fn count(&self) -> usize {
        self.items.len()
    }

    fn add(&mut self, bytes: &[u8], hidden: &Redactions) -> Result<Option<String>, RequestFailure> {
        let text = pages::text(bytes)?;
        let page: PeerPage =
            serde_json::from_slice(bytes).map_err(|error| wrong(&error, text, hidden))?;
        if page.kind != "PeerList" {
            return Err(unreadable("expected a PeerList"));
        }
        self.bytes += bytes.len();
        if LIMIT < self.bytes {
            return Err(RequestFailure::Final(Fault::Oversized {
                problem: format!("the Peers have more than {} MiB", LIMIT >> 20),
            }));
        }
        for PeerItem { metadata, spec } in page.items {
            let mut kept = json!({ "name": metadata.name });
            if let Some(since) = metadata.deletion_timestamp {
                kept["deletionTimestamp"] = since.into();
            }
            if repeats(&kept, hidden) || repeats(&spec, hidden) {
                return Err(unreadable("it contains the request's credentials"));
            }
            self.items.push(json!({
                "apiVersion": format!("kilo.squat.ai/{VERSION}"),
                "kind": "Peer",
                "metadata": kept,
                "spec": spec,
            }));
        }
        let more = page.metadata.and_then(|it| it.more);
        Ok(more.filter(|token| !token.is_empty()))
    }
}

impl ListedPeers {
    fn manifest(self) -> String {
        let list = json!({ "apiVersion": "v1", "kind": "List", "items": self.items });
        format!("{list:#}\n")
    }
}

/// Returns whether any text of a value has our credentials.
fn repeats(value: &Value, hidden: &Redactions) -> bool {
    match value {
        Value::String(text) => hidden.are_in(text),
        Value::Array(items) => items.iter().any(|it| repeats(it, hidden)),
        Value::Object(fields) => {
            let mut fields = fields.iter();
            fields.any(|(key, value)| hidden.are_in(key) || repeats(value, hidden))
        }
        Value::Null | Value::Bool(_) | Value::Number(_) => false,
    }
}

fn wrong(error: &serde_json::Error, text: &str, hidden: &Redactions) -> RequestFailure {
    if error.is_eof() {
        return failure::of_half();
    }
    unreadable(&hidden.hide(&pages::problem(error, text)))
}

#[cfg(test)]
mod tests {
    use super::is_version;

    #[test]
    fn only_versions_of_kubernetes_are_versions() {
        for text in ["v1", "v1alpha1", "v2beta10"] {
            assert!(is_version(text), "{text}");
        }
        for text in [
            "",
            "v",
            "1",
            "valpha1",
            "v1alpha",
            "v1gamma1",
            "v1alpha1beta1",
            "v1\u{1b}[2J",
            "v1 ",
        ] {
            assert!(!is_version(text), "{text}");
        }
    }
}
