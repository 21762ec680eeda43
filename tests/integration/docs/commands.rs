//! The page of commands: what their `--help` prints.

use std::collections::BTreeMap;
use std::fmt::Write as _;

use super::generated::{GENERATED, compare};
use super::prose::subcommands;
use crate::support::{clustermesh, project};

/// An option that at least this many commands have is described only once.
const SEVERAL: usize = 3;

/// Splits a text where a line satisfies a condition.
fn split(text: &str, mut is_start: impl FnMut(&str) -> bool) -> Vec<String> {
    let mut parts: Vec<String> = Vec::new();
    for line in text.lines() {
        if is_start(line) || parts.is_empty() {
            parts.push(String::new());
        }
        if let Some(part) = parts.last_mut() {
            let _ = writeln!(part, "{}", line.trim_end());
        }
    }
    parts.iter().map(|it| it.trim_end().to_owned()).collect()
}

/// Splits a `--help` into its paragraphs, each with the lines below its heading.
fn sections(help: &str) -> Vec<String> {
    let mut is_after_blank = false;
    split(help, |line| {
        let is_start = is_after_blank && !line.is_empty() && !line.starts_with(' ');
        is_after_blank = line.is_empty();
        is_start
    })
}

/// Splits a section into its heading and its options.
fn options(section: &str) -> Vec<String> {
    split(section, |line| {
        let text = line.trim_start();
        text.starts_with('-') && line.len() - text.len() <= 6
    })
}

/// A command with its `--help`.
struct Page {
    command: Vec<String>,
    sections: Vec<String>,
}

fn help(command: &[String]) -> Vec<String> {
    let arguments: Vec<&str> = command
        .iter()
        .map(String::as_str)
        .chain(["--help"])
        .collect();
    let run = clustermesh(project(), &arguments);
    assert_eq!((run.code, run.stderr.as_str()), (0, ""), "{arguments:?}");
    sections(&run.stdout)
}

/// Lists all commands below a command, in the order of its help.
fn commands(command: &[String]) -> Vec<Page> {
    let sections = help(command);
    let names: Vec<String> = sections.iter().flat_map(|it| subcommands(it)).collect();
    let below: Vec<Page> = names
        .into_iter()
        .flat_map(|name| commands(&[command, &[name]].concat()))
        .collect();
    let own = Page {
        command: command.to_vec(),
        sections,
    };
    [own].into_iter().chain(below).collect()
}

/// The name of an option, with its dashes.
fn name(option: &str) -> &str {
    let words = option.split([' ', ',', '\n']);
    words
        .filter(|it| it.starts_with('-'))
        .find(|it| it.starts_with("--"))
        .unwrap_or("")
}

impl Page {
    /// Writes the page without the options that several commands have, which it names.
    fn write(&self, text: &mut String, common: &[String]) {
        let own = self
            .sections
            .iter()
            .position(|it| it.starts_with("Usage:"))
            .unwrap();
        let (prose, blocks) = self.sections.split_at(own);
        let _ = write!(text, "\n## clustermesh {}\n", self.command.join(" "));
        for paragraph in prose {
            let _ = write!(text, "\n{paragraph}\n");
        }
        let mut elsewhere = Vec::new();
        let mut shown = Vec::new();
        for section in blocks {
            let (left, mut kept): (Vec<_>, Vec<_>) = options(section)
                .into_iter()
                .partition(|it| common.contains(it));
            // If only the heading is left, there is nothing to show.
            if 1 < kept.len() || left.is_empty() {
                if kept.len() == 1 {
                    shown.append(&mut kept);
                } else {
                    shown.push(format!("{}\n{}", kept[0], kept[1..].join("\n\n")));
                }
            }
            elsewhere.extend(left.iter().map(|it| format!("`{}`", name(it))));
        }
        let _ = write!(text, "\n```text\n{}\n```\n", shown.join("\n\n"));
        if !elsewhere.is_empty() {
            let _ = write!(
                text,
                "\n[Common options](#common-options): {}\n",
                elsewhere.join(", ")
            );
        }
    }
}

#[test]
fn the_page_of_commands_is_the_help() {
    let top = help(&[]);
    let pages = commands(&[]);
    let pages = &pages[1..];
    let mut uses: BTreeMap<String, usize> = BTreeMap::new();
    let mut common: Vec<String> = Vec::new();
    for section in pages.iter().flat_map(|it| &it.sections) {
        for option in options(section)
            .into_iter()
            .filter(|it| !name(it).is_empty())
        {
            let uses = uses.entry(option.clone()).or_default();
            *uses += 1;
            if *uses == SEVERAL {
                common.push(option);
            }
        }
    }
    let mut text = format!(
        "# Commands\n\n{GENERATED}\n\n`clustermesh help COMMAND` and `clustermesh man COMMAND` print the same.\n"
    );
    let _ = write!(text, "\n```text\n{}\n```\n", top.join("\n\n"));
    for page in pages {
        page.write(&mut text, &common);
    }
    let _ = write!(
        text,
        "\n## Common options\n\n```text\n{}\n```\n",
        common.join("\n\n")
    );
    compare("docs/reference/commands.md", &text);
}
