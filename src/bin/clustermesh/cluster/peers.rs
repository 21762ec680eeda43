//! Peers: the list of them, if the cluster has Kilo's CRD.

use std::sync::Arc;

use clustermesh::agent::applied::{AppliedFile, PeerListing, PeerPageError};
use clustermesh::name::ClusterName;
use clustermesh::rules::clusters::{Fault, OVERSIZED, UNREADABLE, shown};
use serde::Deserialize;

use super::connection::Connection;
use super::failure::{self, RequestFailure, useless};
use super::pages::{self, Collection, unreadable};
use super::request::{ApiRequest, ApiResponse, SMALL, answer};
use super::right::LIST_PEERS;
use crate::secrets::Redactions;

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

pub(super) async fn list(connection: &Connection) -> Result<PeerList, Fault> {
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
            serde_json::from_slice(bytes).map_err(|error| wrong(&error, text, hidden))?;
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
            PeerPageError::Json(json) => wrong(&json, text, hidden),
            PeerPageError::Kind => unreadable(&error),
        })?;
        if self.texts().any(|text| hidden.are_in(text)) {
            return Err(unreadable("it contains the request's credentials"));
        }
        Ok(more)
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
        for text in
            ["", "v", "1", "valpha1", "v1alpha", "v1gamma1", "v1alpha1beta1", "v1\u{1b}[2J", "v1 "]
        {
            assert!(!is_version(text), "{text}");
        }
    }
}
