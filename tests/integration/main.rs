//! All tests that look from outside, in one binary.
#![allow(
    clippy::disallowed_methods,
    clippy::disallowed_types,
    clippy::expect_used,
    clippy::indexing_slicing,
    clippy::panic,
    clippy::unwrap_used,
    reason = "tests touch the world and fail loudly"
)]

mod admission;
mod architecture;
// mod cli;
mod examples;
mod operator;
mod properties;
mod support;
mod topology;
