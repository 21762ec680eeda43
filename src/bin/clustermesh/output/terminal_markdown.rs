//! Our Markdown as a terminal shows it: headings in bold, code in colour, lines wrapped.

use std::fmt::Write as _;

use anstyle::{AnsiColor, Style};

use clustermesh::report::width::Width;

use super::terminal;

/// The longest lines of text, however wide the terminal is.
const WIDEST: usize = 100;

const HEADING: Style = Style::new().bold();
const CODE: Style = AnsiColor::Cyan.on_default();
const REMARK: Style = Style::new().dimmed();

/// Returns a page as standard output shows it, if that is a terminal.
pub(crate) fn page(markdown: &str) -> String {
    formatted(markdown, terminal::stdout().at_most(WIDEST))
}

/// Returns a line of a list: a name, and a text that is indented by `indent` columns.
pub(crate) fn item(name: &str, text: &str, indent: usize) -> String {
    let name_length = name.chars().count();
    let space = " ".repeat(indent.saturating_sub(name_length).max(1));
    let text = terminal::stdout().hanging(indent, text);
    format!("{name}{space}{text}\n")
}

fn formatted(markdown: &str, width: Width) -> String {
    let (mut text, mut paragraph) = (String::new(), String::new());
    let mut is_code = false;
    for line in markdown.lines() {
        if line.starts_with("```") {
            end(&mut paragraph, &mut text, width);
            is_code = !is_code;
        } else if is_code {
            let _ = writeln!(text, "    {CODE}{line}{CODE:#}");
        } else if let Some(heading) = line.strip_prefix('#') {
            end(&mut paragraph, &mut text, width);
            let heading = heading.trim_start_matches('#').trim_start();
            let _ = writeln!(text, "{HEADING}{heading}{HEADING:#}");
        } else if line.is_empty() {
            end(&mut paragraph, &mut text, width);
            text.push('\n');
        } else {
            // Items and rows keep their lines.
            if line.starts_with(['-', '|']) {
                end(&mut paragraph, &mut text, width);
            } else if !paragraph.is_empty() {
                paragraph.push(' ');
            }
            paragraph.push_str(line.trim_start());
        }
    }
    end(&mut paragraph, &mut text, width);
    text
}

/// Appends a paragraph.
fn end(paragraph: &mut String, text: &mut String, width: Width) {
    if paragraph.is_empty() {
        return;
    }
    let wrapped = width.wrapped(0, paragraph);
    let remark = wrapped.strip_prefix('*').and_then(|it| it.strip_suffix('*'));
    if let Some(remark) = remark {
        let _ = writeln!(text, "{REMARK}{}{REMARK:#}", remark.replace('`', ""));
    } else {
        for (number, piece) in wrapped.split('`').enumerate() {
            let _ = match number % 2 {
                0 => write!(text, "{piece}"),
                _ => write!(text, "{CODE}{piece}{CODE:#}"),
            };
        }
        text.push('\n');
    }
    paragraph.clear();
}

#[cfg(test)]
mod tests {
    use super::*;

    const PAGE: &str = "\
# rule

*warning, the operator's `Code`*

## What it finds

A `field` of a cluster
that is unused.

```yaml
a: `1`
```
";

    #[test]
    fn a_terminal_shows_no_markdown() {
        let text = formatted(PAGE, Width::default());
        let plain = anstream::adapter::strip_str(&text).to_string();
        insta::assert_snapshot!(plain, @"
        rule

        warning, the operator's Code

        What it finds

        A field of a cluster that is unused.

            a: `1`
        ");
        assert!(text.starts_with("\u{1b}[1mrule\u{1b}[0m\n"), "{text:?}");
        assert!(text.contains("A \u{1b}[36mfield\u{1b}["), "{text:?}");
    }
}
