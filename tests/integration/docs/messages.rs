//! The headings in backticks of the page about troubleshooting are parts of messages, so that a search finds them.

use std::fs;

use pulldown_cmark::{Event, Parser, Tag, TagEnd};

use super::{files, has_extension, shown};
use crate::support::project;

const PAGE: &str = "docs/how-to/troubleshooting.md";

/// Returns the headings that are code.
fn messages(page: &str) -> Vec<String> {
    let mut messages = Vec::new();
    let mut is_heading = false;
    for event in Parser::new(page) {
        match event {
            Event::Start(Tag::Heading { .. }) => is_heading = true,
            Event::End(TagEnd::Heading(_)) => is_heading = false,
            Event::Code(text) if is_heading => messages.push(text.trim().to_owned()),
            _ => {}
        }
    }
    messages
}

#[test]
fn troubleshooting_has_the_texts_of_messages() {
    let printed = files().into_iter().filter(|it| {
        let file = shown(it);
        has_extension(it, &["rs", "go", "txt"]) && !file.ends_with("docs/messages.rs")
    });
    let printed: Vec<String> = printed.filter_map(|it| fs::read_to_string(it).ok()).collect();
    let mut messages = messages(&fs::read_to_string(project().join(PAGE)).unwrap());
    assert!(10 < messages.len(), "{messages:?}");
    messages.retain(|message| !printed.iter().any(|it| it.contains(message)));
    assert!(messages.is_empty(), "no test or source prints {messages:#?}");
}

#[test]
fn finds_headings_of_code() {
    assert_eq!(messages("# A page\n\n## ``a `b` ``\n\n`c`\n"), ["a `b`"]);
}
