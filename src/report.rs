//! Results of commands as documents.

pub mod json;
