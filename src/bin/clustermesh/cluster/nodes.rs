//! Nodes: the list of them, page by page.

use clustermesh::rules::clusters::{Fault, Right};
use clustermesh::snapshot::listing::{Listing, PageError};
use http::StatusCode;

use super::connection::Connection;
use super::failure::{self, Failure};
use super::redact::Redactions;
use super::request::{ApiRequest, ApiResponse, answer, encoded};

/// How many nodes a page has: half of what client-go asks for, as several are in memory.
const PAGE: usize = 250;

/// The most pages that a list is believed to have.
const PAGES: usize = 1000;

/// How often a list is begun that changes faster than it can be read.
const BEGINNINGS: usize = 3;

/// Lists the nodes, and returns the number of pages.
pub(super) async fn list(connection: &Connection) -> Result<(Listing, usize), Fault> {
    for _ in 0..BEGINNINGS {
        if let Some(listed) = list_once(connection).await? {
            return Ok(listed);
        }
    }
    Err(Fault::Refused {
        status: StatusCode::GONE.as_u16(),
        says: "the list expired before it was read completely".to_owned(),
        attempts: 3,
    })
}

/// Returns nothing if the list expires in the middle.
async fn list_once(connection: &Connection) -> Result<Option<(Listing, usize)>, Fault> {
    let mut listing = Listing::default();
    let mut more: Option<String> = None;
    for pages in 1..=PAGES {
        let path = path(more.as_deref());
        let before = listing.len();
        let next = match page(connection, path, &mut listing).await? {
            ApiResponse::With(next) => next,
            ApiResponse::Missing(StatusCode::GONE) if more.is_some() => return Ok(None),
            ApiResponse::Missing(status) => {
                return Err(Fault::Refused {
                    status: status.as_u16(),
                    says: "the server has no node list".to_owned(),
                    attempts: 1,
                });
            }
        };
        match next {
            None => return Ok(Some((listing, pages))),
            same if same == more => break,
            // No correct server sends that many pages with few nodes.
            _ if listing.len() == before => break,
            next => more = next,
        }
    }
    Err(Fault::Oversized {
        problem: "the list of nodes has no end".to_owned(),
    })
}

/// Adds a page to the listing and returns the token of the next.
async fn page(
    connection: &Connection,
    path: String,
    listing: &mut Listing,
) -> Result<ApiResponse<Option<String>>, Fault> {
    let request = ApiRequest {
        path,
        right: Right::ListNodes,
    };
    let read = |bytes: &[u8]| read(bytes, &connection.hidden, listing);
    answer(connection, &request, read).await
}

/// Adds a page, whole or not at all.
fn read(
    bytes: &[u8],
    hidden: &Redactions,
    listing: &mut Listing,
) -> Result<Option<String>, Failure> {
    let text = str::from_utf8(bytes).map_err(|error| match error.error_len() {
        // It ends within a character.
        None => failure::of_half(),
        Some(_) => unreadable("it is not UTF-8"),
    })?;
    let before = listing.len();
    let more = listing.page(bytes).map_err(|error| match error {
        PageError::TooLarge => Failure::Final(Fault::Oversized {
            problem: error.to_string(),
        }),
        PageError::Json(json) if json.is_eof() => failure::of_half(),
        error => unreadable(&hidden.hide(&problem(&error, text))),
    })?;
    // They would end up in a snapshot, and in a repository. JSON can write them in many ways, so
    // what counts is what was read.
    if listing.texts_after(before).any(|text| hidden.are_in(text)) {
        return Err(unreadable("it contains the request's credentials"));
    }
    Ok(more)
}

/// Describes an error in a page without quoting its content.
fn problem(error: &PageError, text: &str) -> String {
    match error {
        _ if text.trim_ascii_start().starts_with('<') => "it is a web page".to_owned(),
        PageError::Json(json) if !json.is_data() => format!("it is not JSON: {json}"),
        // What comes before is what was found there.
        PageError::Json(json) => match json.to_string().rsplit_once("expected ") {
            Some((_, expected)) => format!("expected {expected}"),
            None => format!("at line {}, column {}", json.line(), json.column()),
        },
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

fn unreadable(problem: &str) -> Failure {
    Failure::Final(Fault::Unreadable {
        problem: problem.to_owned(),
    })
}

fn path(more: Option<&str>) -> String {
    let more = more.map_or_else(String::new, |token| format!("&continue={}", encoded(token)));
    format!("/api/v1/nodes?limit={PAGE}{more}")
}
