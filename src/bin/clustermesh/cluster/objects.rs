//! Objects: the nodes, the Peers and the guard of a cluster, and the Services that meshes name. Services are requested
//! one by one, because no right to list them is needed then.

use std::collections::BTreeSet;
use std::sync::Arc;

use clustermesh::admission::NAME;
use clustermesh::agent::applied::{AppliedFile, PeerListing, PeerPageError};
use clustermesh::name::{ClusterName, ServiceName};
use clustermesh::net::Cidr;
use clustermesh::rules::clusters::{Fault, OVERSIZED, UNREADABLE, shown};
use clustermesh::snapshot::listing::{Listing, PageError};
use clustermesh::snapshot::pods::PodSample;
use clustermesh::snapshot::services::{FoundServices, answered};
use http::StatusCode;
use serde::Deserialize;
use serde_json::Value;

use super::connection::Connection;
use super::failure::{self, RequestFailure, useless};
use super::pages::{self, Collection, object, unreadable};
use super::request::{
    ApiRequest, ApiResponse, GET_GUARD, LIST_NODES, LIST_PEERS, LIST_PODS, LIST_SERVICE_RANGES,
    Right, SMALL, answer, refused,
};
use crate::secrets::Redactions;

/// Lists the nodes, and returns the number of pages.
pub(super) async fn nodes(connection: &Connection) -> Result<(Listing, usize), Fault> {
    let listed = pages::list(connection, "/api/v1/nodes", &LIST_NODES).await?;
    listed.ok_or_else(|| refused(StatusCode::NOT_FOUND, "the server has no node list"))
}

impl Collection for Listing {
    fn count(&self) -> usize {
        self.len()
    }

    fn add(&mut self, bytes: &[u8], hidden: &Redactions) -> Result<Option<String>, RequestFailure> {
        let text = pages::text(bytes)?;
        let before = self.len();
        let more = self.page(bytes).map_err(|error| match error {
            PageError::TooLarge => RequestFailure::Final(useless(&OVERSIZED, &error)),
            PageError::Json(json) if json.is_eof() => failure::of_half(),
            error => unreadable(&hidden.hide(&problem(&error, text))),
        })?;
        // They would end up in a snapshot, and in a repository. JSON can write them in many ways, so
        // what counts is what was read.
        if self.texts_after(before).any(|text| hidden.are_in(text)) {
            return Err(unreadable("it contains the request's credentials"));
        }
        Ok(more)
    }
}

/// Describes an error in a page without quoting its content.
fn problem(error: &PageError, text: &str) -> String {
    match error {
        _ if text.trim_ascii_start().starts_with('<') => "it is a web page".to_owned(),
        PageError::Json(json) => pages::problem(json, text),
        PageError::Kind(kind) if !is_kind(kind) => "expected a NodeList".to_owned(),
        PageError::Item { index, kind } if !is_kind(kind) => {
            format!("item {index} of the list is not a Node")
        }
        other => other.to_string(),
    }
}

/// Returns whether a text can be the kind of an object.
fn is_kind(text: &str) -> bool {
    text.len() <= 63 && text.bytes().all(|it| it.is_ascii_alphanumeric())
}

/// Reads those of the Services that the cluster has.
pub(super) async fn services(
    connection: &Connection,
    cluster: &ClusterName,
    names: &BTreeSet<ServiceName>,
) -> Result<FoundServices, Fault> {
    let mut found = FoundServices::new();
    for name in names {
        let (namespace, service) = (&name.namespace, name.name());
        let request = ApiRequest {
            path: format!("/api/v1/namespaces/{namespace}/services/{service}"),
            right: Right::get_service(cluster, name),
            limit: SMALL,
        };
        let read = |bytes: &[u8]| {
            let object = object(bytes, &connection.hidden)?;
            answered(name, &object)
                .ok_or_else(|| unreadable(&format!("expected the Service `{name}`")))
        };
        match answer(connection, &request, read).await? {
            ApiResponse::With(service) => drop(found.insert(name.clone(), service)),
            ApiResponse::Missing(StatusCode::NOT_FOUND) => {}
            ApiResponse::Missing(status) => return Err(refused(status, "")),
        }
    }
    Ok(found)
}

/// Lists pods, as far as needed. The right to list them is optional.
pub(super) async fn pods(connection: &Connection) -> PodSample {
    let listed = pages::list(connection, "/api/v1/pods", &LIST_PODS).await;
    listed.ok().flatten().map(|it| it.0).unwrap_or_default()
}

impl Collection for PodSample {
    fn count(&self) -> usize {
        self.read()
    }

    fn add(&mut self, bytes: &[u8], _: &Redactions) -> Result<Option<String>, RequestFailure> {
        // No text of a pod is kept but the name of its node, which only finds the node.
        self.page(bytes).map_err(|_| unreadable("expected a PodList"))
    }
}

/// The path of the ranges of Services, which API servers from version 1.33 on have.
const SERVICE_RANGES: &str = "/apis/networking.k8s.io/v1/servicecidrs";

/// The most ranges of Services that are read.
const MOST_RANGES: usize = 16;

/// Lists the ranges of Services. Older servers do not have the list, and the right to read it is optional.
pub(super) async fn service_ranges(connection: &Connection) -> Vec<Cidr> {
    let request =
        ApiRequest { path: SERVICE_RANGES.to_owned(), right: LIST_SERVICE_RANGES, limit: SMALL };
    let read = |bytes: &[u8]| object(bytes, &connection.hidden);
    let Ok(ApiResponse::With(list)) = answer(connection, &request, read).await else {
        return Vec::new();
    };
    let ranges = list["items"].as_array().into_iter().flatten();
    let ranges = ranges.filter_map(|it| it["spec"]["cidrs"].as_array()).flatten();
    let ranges = ranges.filter_map(|it| it.as_str()?.parse().ok());
    ranges.take(MOST_RANGES).collect()
}

const KINDS: [&str; 2] = ["validatingadmissionpolicies", "validatingadmissionpolicybindings"];

/// Reads the objects of the guard. A server without this API has none.
pub(super) async fn guard(connection: &Connection) -> Result<Vec<Value>, Fault> {
    let mut objects = Vec::new();
    for kind in KINDS {
        let request = ApiRequest {
            path: format!("/apis/admissionregistration.k8s.io/v1/{kind}/{NAME}"),
            right: GET_GUARD,
            limit: SMALL,
        };
        let read = |bytes: &[u8]| object(bytes, &connection.hidden);
        if let ApiResponse::With(object) = answer(connection, &request, read).await? {
            objects.push(object);
        }
    }
    Ok(objects)
}

/// Kilo's group in the API.
const GROUP: &str = "/apis/kilo.squat.ai";

/// The version of a Peer that is understood.
const VERSION: &str = "v1alpha1";

/// The most versions of a CRD that are shown.
const MOST_VERSIONS: usize = 10;

/// Kilo's Peers in a cluster.
#[derive(Default)]
pub(crate) struct PeerList {
    /// The versions of the CRD; none without a CRD.
    pub(crate) versions: Vec<String>,
    /// The Peers; none if they are of no version that is understood.
    listing: Option<PeerListing>,
}

impl PeerList {
    /// Returns when the spec of any Peer was last changed, in Unix seconds, if the server shows it.
    pub(crate) fn changed_at(&self) -> Option<i64> {
        self.listing.as_ref()?.changed_at()
    }

    /// Returns the Peers as a file; none without a CRD.
    ///
    /// # Errors
    /// The CRD has no version that is understood.
    pub(crate) fn into_file(self, cluster: &ClusterName) -> Result<Option<AppliedFile>, Fault> {
        if self.listing.is_none() && !self.versions.is_empty() {
            let served = shown(&self.versions.join(", "));
            let sentence =
                format!("Kilo's CRD `peers.kilo.squat.ai` has {served}, but not {VERSION}");
            let help = format!("install a version of Kilo whose CRD has {VERSION} in this cluster");
            return Err(Fault::new(&UNREADABLE, sentence).help(help));
        }
        let source: Arc<str> = Arc::from(format!("{cluster} (live)"));
        Ok(self.listing.map(|it| it.into_file(&source)))
    }
}

/// The used part of an API group.
#[derive(Deserialize)]
struct ApiGroup {
    versions: Vec<ServedVersion>,
}

#[derive(Deserialize)]
struct ServedVersion {
    version: String,
}

pub(super) async fn peers(connection: &Connection) -> Result<PeerList, Fault> {
    let Some(versions) = versions(connection).await? else {
        return Ok(PeerList::default());
    };
    if !versions.iter().any(|it| it == VERSION) {
        return Ok(PeerList { versions, listing: None });
    }
    let path = format!("{GROUP}/{VERSION}/peers");
    let listed = pages::list(connection, &path, &LIST_PEERS).await?;
    // Another CRD may have the group.
    let Some((listed, _)) = listed else {
        return Ok(PeerList::default());
    };
    Ok(PeerList { versions, listing: Some(listed) })
}

/// Returns the versions that the server has of Kilo's group, if it has the group.
async fn versions(connection: &Connection) -> Result<Option<Vec<String>>, Fault> {
    let question = ApiRequest { path: GROUP.to_owned(), right: LIST_PEERS, limit: SMALL };
    let hidden = &connection.hidden;
    let read = |bytes: &[u8]| {
        let text = pages::text(bytes)?;
        let group: ApiGroup =
            serde_json::from_slice(bytes).map_err(|error| pages::wrong(&error, text, hidden))?;
        let versions = group
            .versions
            .into_iter()
            .map(|it| it.version)
            .filter(|it| is_version(it))
            .take(MOST_VERSIONS);
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
    stage.map_or_else(|| is_number(rest), |(major, minor)| is_number(major) && is_number(minor))
}

impl Collection for PeerListing {
    fn count(&self) -> usize {
        self.len()
    }

    fn add(&mut self, bytes: &[u8], hidden: &Redactions) -> Result<Option<String>, RequestFailure> {
        let text = pages::text(bytes)?;
        let more = self.page(bytes).map_err(|error| match error {
            PeerPageError::Peers | PeerPageError::Ranges => {
                RequestFailure::Final(useless(&OVERSIZED, &error))
            }
            PeerPageError::Json(json) => pages::wrong(&json, text, hidden),
            PeerPageError::Kind => unreadable(&error),
        })?;
        if self.texts().any(|text| hidden.are_in(text)) {
            return Err(unreadable("it contains the request's credentials"));
        }
        Ok(more)
    }
}

#[cfg(test)]
mod tests {
    use super::is_version;

    #[test]
    fn only_versions_of_kubernetes_are_versions() {
        for text in ["v1", "v1alpha1", "v2beta10"] {
            assert!(is_version(text), "{text}");
        }
        for text in
            ["", "v", "1", "valpha1", "v1alpha", "v1gamma1", "v1alpha1beta1", "v1\u{1b}[2J", "v1 "]
        {
            assert!(!is_version(text), "{text}");
        }
    }
}
