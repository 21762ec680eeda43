//! Results of commands: JSON documents, and texts for people and in Markdown.

pub mod alike;
pub mod json;
pub mod markdown;
pub mod mermaid;
pub mod origin;
pub mod page;
pub mod style;
pub mod table;
pub mod width;
