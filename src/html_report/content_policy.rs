//! The policy of the page: only its own style and script run, and nothing is loaded.

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use sha2::{Digest as _, Sha256};

use crate::graph::svg;

/// The style of the page, without that of the picture.
const STYLE: &str = include_str!("../../templates/report/style.css");

/// The script of the page.
pub(super) const SCRIPT: &str = include_str!("../../templates/report/script.js");

/// Returns the whole style.
pub(super) fn style() -> String {
    format!("{STYLE}{}", svg::STYLE)
}

/// Returns the policy as a browser reads it.
pub(super) fn policy() -> String {
    format!(
        "default-src 'none'; style-src {}; script-src {}; base-uri 'none'; form-action 'none'",
        source(&style()),
        source(SCRIPT)
    )
}

/// Returns the source that allows exactly one text.
fn source(text: &str) -> String {
    format!("'sha256-{}'", STANDARD.encode(Sha256::digest(text)))
}
