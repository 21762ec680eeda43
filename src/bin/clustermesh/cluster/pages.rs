//! Pages: a list of the API, page by page.

use std::fmt::Display;

use clustermesh::rules::clusters::{Fault, OVERSIZED, UNREADABLE};
use http::StatusCode;
use serde_json::Value;

use super::connection::Connection;
use super::failure::{self, RequestFailure, useless};
use super::request::{ApiRequest, ApiResponse, PAGE as LARGEST, Right, answer, encoded, refused};
use crate::secrets::Redactions;

/// The number of objects on a page: half as many as client-go requests, as several pages are in
/// memory.
const PAGE: usize = 250;

/// The most pages that a list is believed to have.
const PAGES: usize = 1000;

/// The number of attempts to read a list that changes faster than it can be read.
const BEGINNINGS: u32 = 3;

/// A collection into which a list is read.
pub(super) trait Collection: Default {
    /// Returns how many objects there are so far.
    fn count(&self) -> usize;

    /// Adds a page, whole or not at all, and returns where the list goes on.
    fn add(&mut self, page: &[u8], hidden: &Redactions) -> Result<Option<String>, RequestFailure>;
}

/// Lists the objects at a path, and returns the number of pages. Returns nothing if the path does
/// not exist.
pub(super) async fn list<C: Collection>(
    connection: &Connection,
    path: &str,
    right: &Right,
) -> Result<Option<(C, usize)>, Fault> {
    for _ in 0..BEGINNINGS {
        match list_once(connection, path, right).await? {
            ListedPages::Whole(collection, pages) => return Ok(Some((collection, pages))),
            ListedPages::Missing => return Ok(None),
            ListedPages::Expired => {}
        }
    }
    let says = "the list expired before it was read completely";
    Err(refused(StatusCode::GONE, says).tried(BEGINNINGS))
}

/// The result of reading a list from its first page.
enum ListedPages<C> {
    Whole(C, usize),
    /// It does not exist.
    Missing,
    /// It expired in the middle.
    Expired,
}

async fn list_once<C: Collection>(
    connection: &Connection,
    path: &str,
    right: &Right,
) -> Result<ListedPages<C>, Fault> {
    let mut collection = C::default();
    let mut more: Option<String> = None;
    for pages in 1..=PAGES {
        let rest =
            more.as_deref().map_or_else(String::new, |it| format!("&continue={}", encoded(it)));
        let question = ApiRequest {
            path: format!("{path}?limit={PAGE}{rest}"),
            right: right.clone(),
            limit: LARGEST,
        };
        let before = collection.count();
        let read = |bytes: &[u8]| collection.add(bytes, &connection.hidden);
        let next = match answer(connection, &question, read).await? {
            ApiResponse::With(next) => next,
            ApiResponse::Missing(StatusCode::GONE) if more.is_some() => {
                return Ok(ListedPages::Expired);
            }
            ApiResponse::Missing(StatusCode::GONE) => {
                return Err(refused(StatusCode::GONE, "the list cannot be begun"));
            }
            ApiResponse::Missing(_) => return Ok(ListedPages::Missing),
        };
        match next {
            None => return Ok(ListedPages::Whole(collection, pages)),
            same if same == more => break,
            // No correct server sends that many pages with few objects.
            _ if collection.count() == before => break,
            next => more = next,
        }
    }
    Err(useless(&OVERSIZED, "the list has no end"))
}

/// Returns the text of a page.
pub(super) fn text(page: &[u8]) -> Result<&str, RequestFailure> {
    str::from_utf8(page).map_err(|error| match error.error_len() {
        // It ends within a character.
        None => failure::of_half(),
        Some(_) => unreadable("it is not UTF-8"),
    })
}

/// Returns a single object.
pub(super) fn object(answer: &[u8], hidden: &Redactions) -> Result<Value, RequestFailure> {
    let object: Value = serde_json::from_slice(answer).map_err(|error| {
        if error.is_eof() {
            return failure::of_half();
        }
        unreadable("the response is not JSON")
    })?;
    if hidden.are_within(&object) {
        return Err(unreadable("it contains the request's credentials"));
    }
    Ok(object)
}

/// Describes an error in the JSON of a page without quoting its content.
pub(super) fn problem(error: &serde_json::Error, text: &str) -> String {
    if text.trim_ascii_start().starts_with('<') {
        return "it is a web page".to_owned();
    }
    if !error.is_data() {
        return format!("it is not JSON: {error}");
    }
    // The text before it is the value that was found.
    match error.to_string().rsplit_once("expected ") {
        Some((_, expected)) => format!("expected {expected}"),
        None => format!("at line {}, column {}", error.line(), error.column()),
    }
}

/// Returns the failure of a page that is not the expected JSON.
pub(super) fn wrong(error: &serde_json::Error, text: &str, hidden: &Redactions) -> RequestFailure {
    if error.is_eof() {
        return failure::of_half();
    }
    unreadable(&hidden.hide(&problem(error, text)))
}

pub(super) fn unreadable(problem: &(impl Display + ?Sized)) -> RequestFailure {
    RequestFailure::Final(useless(&UNREADABLE, problem))
}
