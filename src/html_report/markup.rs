//! Markup: messages and pages of rules as HTML. All their characters are escaped here.

use minijinja::{HtmlEscape, Value};

use crate::diagnostic::escaped;

/// The longest message that is shown, in characters.
const SHOWN: usize = 4000;

/// The programs whose commands can be copied.
const PROGRAMS: [&str; 5] = ["clustermesh ", "kubectl ", "git ", "flux ", "argocd "];

/// Returns a message as HTML, in which what is in backticks is code.
pub(super) fn prose(text: &str) -> Value {
    Value::from_safe_string(line(&escaped(text, SHOWN), false))
}

/// Returns a remedy as HTML, in which a command can be copied, unless a person must fill it in or it gives something up.
pub(super) fn advice(text: &str) -> Value {
    Value::from_safe_string(line(&escaped(text, SHOWN), true))
}

/// Returns whether a remedy has a command, also one that a person must fill in.
pub(super) fn has_command(text: &str) -> bool {
    text.split('`').skip(1).step_by(2).any(is_of_program)
}

fn is_of_program(text: &str) -> bool {
    PROGRAMS.iter().any(|it| text.starts_with(it))
}

/// Returns whether a text is a command that can be run as it is.
fn is_command(text: &str) -> bool {
    let mut words = text.split(|it: char| !it.is_ascii_alphanumeric());
    let has_gap = words.any(|it| 2 < it.len() && it.bytes().all(|it| it.is_ascii_uppercase()));
    is_of_program(text) && !has_gap && !text.contains("--allow-empty")
}

/// Returns a page of a rule as HTML. It has paragraphs, items, tables and blocks of code.
pub(super) fn blocks(markdown: &str) -> String {
    let mut html = String::new();
    for (number, part) in markdown.split("```").enumerate() {
        if number % 2 == 1 {
            // The first line names the language.
            let code = part.split_once('\n').map_or(part, |(_, code)| code);
            html.push_str(&preformatted(code));
            continue;
        }
        let blocks = part.split("\n\n").map(str::trim);
        html.extend(blocks.filter(|it| !it.is_empty()).map(block));
    }
    html
}

/// Returns the text between two empty lines as HTML.
fn block(text: &str) -> String {
    match text.chars().next() {
        Some('|') => preformatted(text),
        Some('-') => list(text),
        _ => format!("<p>{}</p>", line(&text.replace('\n', " "), true)),
    }
}

fn list(block: &str) -> String {
    let items = block.trim_start_matches("- ").split("\n- ");
    let items = items.map(|it| format!("<li>{}</li>", line(&it.replace("\n  ", " "), true)));
    format!("<ul>{}</ul>", items.collect::<String>())
}

fn preformatted(text: &str) -> String {
    format!("<pre tabindex=\"0\">{}</pre>", HtmlEscape(text.trim_end()))
}

/// Returns a line of text, in which only pieces between two backticks are code.
fn line(text: &str, has_commands: bool) -> String {
    let pieces: Vec<&str> = text.split('`').collect();
    let last = pieces.len().saturating_sub(1);
    let pieces = pieces.iter().enumerate().map(|(number, piece)| {
        let shown = HtmlEscape(piece);
        match (number % 2, number == last) {
            (0, _) => strong(&shown.to_string()),
            (_, true) => format!("`{shown}"),
            _ if has_commands && is_command(piece) => {
                format!("<code class=\"command\">{shown}</code>")
            }
            _ => format!("<code>{shown}</code>"),
        }
    });
    pieces.collect()
}

/// Returns escaped text, in which only pieces between two pairs of stars are strong.
fn strong(shown: &str) -> String {
    let pieces: Vec<&str> = shown.split("**").collect();
    let last = pieces.len().saturating_sub(1);
    let pieces = pieces.iter().enumerate();
    let pieces = pieces.map(|(number, piece)| match (number % 2, number == last) {
        (0, _) => (*piece).to_owned(),
        (_, true) => format!("**{piece}"),
        _ => format!("<strong>{piece}</strong>"),
    });
    pieces.collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_message_has_code_and_commands() {
        for (text, html) in [
            ("a `b<` c", "a <code>b&lt;</code> c"),
            ("<script> `a", "&lt;script&gt; `a"),
            ("a\u{202e}\"'", "a\\u{202e}&quot;&#x27;"),
        ] {
            assert_eq!(prose(text).to_string(), html);
        }
        for (text, html) in [
            ("run `git x`", "run <code class=\"command\">git x</code>"),
            ("run `git add FILE`", "run <code>git add FILE</code>"),
            ("a `b`", "a <code>b</code>"),
        ] {
            assert_eq!(advice(text).to_string(), html);
        }
        for (text, has) in [
            ("run `clustermesh render`", true),
            ("if the NAT has one, run `kubectl annotate node a b=ADDRESS`", true),
            ("to accept it, add `10.0.0.0/8` to `acceptedNetworks`", false),
            ("kubectl ", false),
        ] {
            assert_eq!(has_command(text), has, "{text}");
        }
        assert_eq!(prose("`git x`").to_string(), "<code>git x</code>");
    }

    #[test]
    fn a_page_of_a_rule_has_blocks() {
        let html = blocks(
            "A `b`\nc.\n\n- **d**: e\n  f\n- g\n\n```yaml\n<x>: 1\n\ny\n```\n\n| a |\n|---|\n",
        );
        assert_eq!(
            html,
            "<p>A <code>b</code> c.</p><ul><li><strong>d</strong>: e f</li><li>g</li></ul>\
             <pre tabindex=\"0\">&lt;x&gt;: 1\n\ny</pre><pre tabindex=\"0\">| a |\n|---|</pre>"
        );
    }
}
