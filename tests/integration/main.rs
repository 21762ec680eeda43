//! All tests that look from outside, in one binary.
#![allow(
    clippy::disallowed_methods,
    clippy::disallowed_types,
    clippy::expect_used,
    clippy::indexing_slicing,
    clippy::panic,
    clippy::unwrap_used,
    clippy::wildcard_imports,
    reason = "tests touch the world, fail loudly, and share a noun's words between files"
)]

#[cfg(feature = "snapshot")]
mod api_server;
mod architecture;
mod cli;
mod conformance;
mod docs;
mod properties;
mod support;
