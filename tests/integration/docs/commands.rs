//! The page of commands: what their `--help` prints.

use std::fmt::Write as _;

use super::generated::{GENERATED, compare};
use super::prose::subcommands;
use crate::support::{clustermesh, project};

/// A command, with the paragraphs of its help.
struct Page {
    command: Vec<String>,
    paragraphs: Vec<String>,
}

/// Returns the help of a command, in paragraphs that begin at the left margin.
fn help(command: &[String]) -> Vec<String> {
    let arguments: Vec<&str> = command.iter().map(String::as_str).chain(["--help"]).collect();
    let run = clustermesh(project(), &arguments);
    assert_eq!((run.code, run.stderr.as_str()), (0, ""), "{arguments:?}");
    let mut paragraphs: Vec<String> = Vec::new();
    for block in run.stdout.trim_end().split("\n\n") {
        let block: Vec<&str> = block.lines().map(str::trim_end).collect();
        let block = block.join("\n");
        match paragraphs.last_mut() {
            Some(last) if block.starts_with(' ') => {
                let _ = write!(last, "\n\n{block}");
            }
            _ => paragraphs.push(block),
        }
    }
    paragraphs
}

/// Lists all commands below a command, in the order of its help.
fn pages(command: &[String]) -> Vec<Page> {
    let paragraphs = help(command);
    let names: Vec<String> = paragraphs.iter().flat_map(|it| subcommands(it)).collect();
    let own = Page { command: command.to_vec(), paragraphs };
    let below = names.into_iter().flat_map(|name| pages(&[command, &[name]].concat()));
    [own].into_iter().chain(below).collect()
}

#[test]
fn the_page_of_commands_is_the_help() {
    let mut text = format!(
        "# Commands\n\n{GENERATED}\n\n`clustermesh help COMMAND` and `clustermesh man COMMAND` print the same.\n"
    );
    for page in pages(&[]) {
        let (mut prose, mut block) = (page.paragraphs.as_slice(), [].as_slice());
        if page.command.is_empty() {
            std::mem::swap(&mut prose, &mut block);
        } else {
            let _ = write!(text, "\n## clustermesh {}\n", page.command.join(" "));
            let usage = |it: &String| it.starts_with("Usage:");
            (prose, block) = prose.split_at(prose.iter().position(usage).unwrap());
        }
        for paragraph in prose {
            let _ = write!(text, "\n{paragraph}\n");
        }
        let _ = write!(text, "\n```text\n{}\n```\n", block.join("\n\n"));
    }
    compare("docs/reference/commands.md", &text);
}
