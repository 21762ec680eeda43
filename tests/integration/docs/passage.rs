//! The prose in a file: paragraphs of Markdown, comments, and strings that are shown to users.

use std::ops::Range;
use std::path::Path;
use std::sync::LazyLock;

use pulldown_cmark::{CodeBlockKind, Event, Parser, Tag, TagEnd};
use regex::Regex;
use serde_json::Value;

use super::has_extension;

/// A paragraph, a comment or a string. Code in backticks is blanked out; line breaks are kept.
#[derive(Debug)]
pub(super) struct Passage {
    /// The line of the file in which it begins, from 1.
    pub(super) line: usize,
    /// Its text.
    pub(super) text: String,
}

impl Passage {
    fn new(line: usize, text: &str) -> Self {
        Self { line, text: without_code(text) }
    }
}

/// Extracts the passages of a file by the format that its path implies.
pub(super) fn passages(path: &Path, text: &str) -> Vec<Passage> {
    if has_extension(path, &["md"]) {
        markdown(text)
    } else if has_extension(path, &["rs"]) {
        rust(path, text)
    } else if has_extension(path, &["json"]) {
        descriptions(text)
    } else if has_extension(path, &["js"]) {
        comments(text, "//")
    } else {
        comments(text, "#")
    }
}

/// Paragraphs, headings, cells and list items, and comments in blocks of YAML, TOML and shell.
pub(super) fn markdown(text: &str) -> Vec<Passage> {
    let mut passages = Vec::new();
    let mut open: Option<(usize, String)> = None;
    let mut code = None;
    let line_of = |at: usize| text[..at].matches('\n').count() + 1;
    let options = pulldown_cmark::Options::ENABLE_TABLES;
    for (event, Range { start, .. }) in Parser::new_ext(text, options).into_offset_iter() {
        match event {
            Event::Start(Tag::CodeBlock(CodeBlockKind::Fenced(language))) => code = Some(language),
            Event::End(TagEnd::CodeBlock) => code = None,
            Event::Text(block) if code.is_some() => {
                let has_comments = ["yaml", "toml", "sh"].map(Into::into);
                if has_comments.contains(code.as_ref().unwrap()) {
                    let line = line_of(start);
                    passages.extend(
                        comments(&block, "#")
                            .into_iter()
                            .map(|it| Passage { line: it.line + line - 1, ..it }),
                    );
                }
            }
            Event::Start(Tag::Paragraph | Tag::Heading { .. } | Tag::TableCell | Tag::Item) => {
                passages.extend(open.take().map(|(line, text)| Passage::new(line, &text)));
                open = Some((line_of(start), String::new()));
            }
            Event::End(
                TagEnd::Paragraph | TagEnd::Heading(_) | TagEnd::TableCell | TagEnd::Item,
            ) => {
                passages.extend(open.take().map(|(line, text)| Passage::new(line, &text)));
            }
            Event::Text(piece) => {
                if let Some((_, text)) = &mut open {
                    text.push_str(&piece);
                }
            }
            Event::Code(piece) => {
                if let Some((_, text)) = &mut open {
                    text.push('`');
                    text.push_str(&piece);
                    text.push('`');
                }
            }
            Event::SoftBreak | Event::HardBreak => {
                if let Some((_, text)) = &mut open {
                    text.push('\n');
                }
            }
            _ => {}
        }
    }
    passages
}

/// Comments that begin with `mark`, adjacent lines joined.
fn comments(text: &str, mark: &str) -> Vec<Passage> {
    let mut passages: Vec<(usize, usize, String)> = Vec::new();
    for (number, line) in text.lines().enumerate() {
        let begin = match line.find(mark) {
            Some(0) => 0,
            Some(at) if line[..at].ends_with(' ') => at,
            _ => continue,
        };
        let comment = line[begin + mark.len()..].trim_start_matches(['/', '!']).trim_start();
        match passages.last_mut() {
            Some((_, last, text)) if *last + 1 == number && line[..begin].trim().is_empty() => {
                *last = number;
                text.push('\n');
                text.push_str(comment);
            }
            _ => passages.push((number, number, comment.to_owned())),
        }
    }
    passages.into_iter().map(|(first, _, text)| Passage::new(first + 1, &text)).collect()
}

/// Titles and descriptions of a JSON Schema.
fn descriptions(text: &str) -> Vec<Passage> {
    let mut passages = Vec::new();
    for (number, line) in text.lines().enumerate() {
        let line = line.trim().trim_end_matches(',');
        for key in ["\"title\": ", "\"description\": "] {
            if let Some(Ok(Value::String(text))) = line.strip_prefix(key).map(serde_json::from_str)
            {
                passages.push(Passage::new(number + 1, &text));
            }
        }
    }
    passages
}

/// Comments and strings of Rust; of tests, only the comments.
fn rust(path: &Path, source: &str) -> Vec<Passage> {
    static TOKEN: LazyLock<Regex> = LazyLock::new(|| {
        Regex::new(
            r#"(?x)
            (?<comment> //[^\n]*(?:\n[\t\ ]*//[^\n]*)* )
            | br?"(?:[^"\\]|\\(?s:.))*" | b'(?:[^'\\]|\\.[^']*)'
            | r\#"(?<raw1>(?s:.*?))"\# | r"(?<raw>[^"]*)"
            | "(?<string>(?:[^"\\]|\\(?s:.))*)"
            | '(?:[^'\\\n]|\\[^\n]+?)'
            "#,
        )
        .unwrap()
    });
    static VALUE: LazyLock<Regex> = LazyLock::new(|| Regex::new(r"\{[\w:?.]*\}").unwrap());
    let is_test = |it: &Path| it.components().any(|it| it.as_os_str() == "tests");
    let production = if is_test(path) || path.ends_with("tests.rs") || path.starts_with("benches") {
        0
    } else {
        source.find("#[cfg(test)]\nmod tests {").unwrap_or(source.len())
    };
    let mut passages = Vec::new();
    for found in TOKEN.captures_iter(source) {
        let at = found.get(0).unwrap().start();
        let line = source[..at].matches('\n').count() + 1;
        if let Some(comment) = found.name("comment") {
            passages.extend(
                comments(comment.as_str(), "//")
                    .into_iter()
                    .map(|it| Passage { line: it.line + line - 1, ..it }),
            );
        } else if let Some(text) = ["raw1", "raw", "string"].iter().find_map(|it| found.name(it))
            && at < production
        {
            // A continued line has no break in the program. Values are not prose.
            let text = text.as_str().replace("\\\n", " \n").replace("\\n", " ");
            passages.push(Passage::new(line, &VALUE.replace_all(&text, "_")));
        }
    }
    passages
}

/// Blanks out code in backticks, also over several lines.
fn without_code(text: &str) -> String {
    static CODE: LazyLock<Regex> = LazyLock::new(|| Regex::new("```(?s:.)*?```|`[^`]*`").unwrap());
    let blank = |code: &regex::Captures| {
        let letters = code[0].chars();
        letters.map(|it| if it == '\n' { it } else { '_' }).collect::<String>()
    };
    CODE.replace_all(text, blank).into_owned()
}
