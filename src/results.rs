//! Results of commands: values that they computed, and their forms for people, in Markdown and in JSON.
//!
//! A command reads and computes; a result borrows from what it read. The texts of files come through
//! [`source_texts::SourceTexts`], which decides what of them may be quoted.

pub mod capacity;
pub mod diff;
pub mod findings;
pub mod forms;
pub mod node_addresses;
pub mod outage;
pub mod own_files;
pub mod peer_difference;
mod presentable;
pub mod repository;
mod secrets;
pub mod shown_source;
pub mod source_texts;
pub mod status;
pub mod trace;
pub mod verify;
