//! Nodes: the list of them.

use clustermesh::rules::clusters::{Fault, OVERSIZED};
use clustermesh::snapshot::listing::{Listing, PageError};
use http::StatusCode;

use super::connection::Connection;
use super::failure::{self, RequestFailure, useless};
use super::pages::{self, Collection, unreadable};
use super::request::refused;
use super::right::LIST_NODES;
use crate::secrets::Redactions;

/// Lists the nodes, and returns the number of pages.
pub(super) async fn list(connection: &Connection) -> Result<(Listing, usize), Fault> {
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
