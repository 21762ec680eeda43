//! Blocks of the language `console` show what the program really prints.
//!
//! In such a block, a line after `$ clustermesh ` is run and its output compared with the lines up to the
//! next `$`. A line `...` matches any number of lines. If no output is shown, the command only has to work;
//! it is not run if it needs a shell. Commands that need a cluster belong in a block of the language `sh`.
//!
//! The working folder is a copy of the one that a comment above the block names, `<!-- in
//! examples/quickstart -->`. Without a comment it is the example that the page belongs to or has
//! named last, else an empty folder. A comment that names no folder of the repository also means an
//! empty folder. `-C examples/NAME` works in a copy of the repository. A generated example is generated. The copies are kept for the
//! whole page, so that later blocks of a tutorial find the files of earlier ones. `<!-- file
//! mesh.yaml -->` above a block writes the block to that file.

use std::collections::BTreeMap;
use std::path::Path;
use std::process::{Command, Stdio};
use std::{env, fs};

use pulldown_cmark::{CodeBlockKind, Event, Parser, Tag, TagEnd};
use regex::Regex;
use tempfile::TempDir;

use super::{files, has_extension, shown};
use crate::support::{clustermesh, copy, project, tenants};

/// A code block, with the comment directly above it.
#[derive(Default)]
struct Block {
    comment: Option<String>,
    language: String,
    text: String,
    /// The offset in the page.
    start: usize,
}

fn blocks(page: &str) -> Vec<Block> {
    let mut blocks = Vec::new();
    let mut comment = None;
    let mut open: Option<Block> = None;
    for (event, range) in Parser::new(page).into_offset_iter() {
        match (event, &mut open) {
            (Event::Html(html), None) => {
                let text = html.trim().strip_prefix("<!--");
                comment = text.and_then(|it| Some(it.strip_suffix("-->")?.trim().to_owned()));
            }
            (Event::Start(Tag::HtmlBlock) | Event::End(TagEnd::HtmlBlock), None) => {}
            (Event::Start(Tag::CodeBlock(CodeBlockKind::Fenced(language))), None) => {
                open = Some(Block {
                    comment: comment.take(),
                    language: language.to_string(),
                    start: range.start,
                    ..Block::default()
                });
            }
            (Event::Text(text), Some(block)) => block.text.push_str(&text),
            (Event::End(TagEnd::CodeBlock), _) => blocks.extend(open.take()),
            _ => comment = None,
        }
    }
    blocks
}

/// The working folders of a page, by the folder that they are copies of.
struct Desk {
    folders: BTreeMap<String, TempDir>,
    current: String,
}

impl Desk {
    fn new(page: &str) -> Self {
        let own = page.strip_suffix("/README.md").filter(|it| it.starts_with("examples/"));
        let mut desk = Self { folders: BTreeMap::new(), current: String::new() };
        desk.enter(own.unwrap_or(""));
        desk
    }

    /// Goes to the copy of a folder. The copy of the repository has only its examples.
    fn enter(&mut self, folder: &str) {
        folder.clone_into(&mut self.current);
        self.folders.entry(folder.to_owned()).or_insert_with(|| {
            let place = tempfile::tempdir().unwrap();
            match folder {
                "." => copy(&project().join("examples"), &place.path().join("examples")),
                "" => {}
                "examples/two-hundred-tenants" => tenants::EXAMPLE.write(place.path()).unwrap(),
                _ if project().join(folder).is_dir() => copy(&project().join(folder), place.path()),
                _ => {}
            }
            place
        });
    }

    /// Goes to the example that is named last before a block, unless a comment names a folder after it.
    fn enter_last_named(&mut self, before: &str) {
        let named = Regex::new(r"<!-- in [^>]*|examples/[\w-]+").unwrap();
        let last = named.find_iter(before).last().map_or("", |it| it.as_str());
        if last.starts_with("examples/") && project().join(last).is_dir() {
            self.enter(last);
        }
    }

    fn folder(&self) -> &Path {
        self.folders[&self.current].path()
    }
}

/// What is wrong with the commands of a page.
struct Check {
    wrong: Vec<String>,
    /// The page with what the commands print.
    updated: String,
}

impl Check {
    /// Replaces the output that is shown after a command.
    fn update(&mut self, command: &str, expected: &str, printed: &str) {
        let shown = format!("$ {command}\n{expected}");
        let printed = format!("$ {command}\n{}\n", printed.trim_end());
        self.updated = self.updated.replace(&shown, &printed);
    }
}

/// Runs the commands of a page.
fn check(page: &str, text: &str) -> Check {
    let mut check = Check { wrong: Vec::new(), updated: text.to_owned() };
    let mut desk = Desk::new(page);
    for block in blocks(text) {
        let comment = block.comment.as_deref().unwrap_or("");
        desk.enter_last_named(&text[..block.start]);
        if let Some(folder) = comment.strip_prefix("in ") {
            desk.enter(folder);
        } else if let Some(file) = comment.strip_prefix("file ") {
            let file = desk.folder().join(file);
            fs::create_dir_all(file.parent().unwrap()).unwrap();
            fs::write(file, &block.text).unwrap();
        }
        if block.language != "console" {
            continue;
        }
        let line = text[..block.start].matches('\n').count() + 1;
        for (command, expected) in commands(&block.text) {
            if !command.starts_with("clustermesh") {
                continue;
            }
            if command.contains(" -C examples/") {
                desk.enter(".");
            }
            if let Err(printed) = run(desk.folder(), &command, &expected) {
                check.update(&command, &expected, &printed);
                let place = format!("{page}:{line}: {command}");
                check.wrong.push(format!("{place}\nshown:\n{expected}\nprinted:\n{printed}"));
            }
        }
    }
    check
}

/// Reads the commands of a block, each with the output that is shown.
fn commands(block: &str) -> Vec<(String, String)> {
    let block = block.replace("\\\n", "");
    let mut commands: Vec<(String, String)> = Vec::new();
    for line in block.lines() {
        if let Some(command) = line.strip_prefix("$ ") {
            commands.push((command.to_owned(), String::new()));
        } else if let Some((_, output)) = commands.last_mut() {
            output.push_str(line);
            output.push('\n');
        }
    }
    commands
}

/// Runs a command and compares its output.
///
/// # Errors
/// What it prints: the streams that are most like the expected output.
fn run(folder: &Path, command: &str, expected: &str) -> Result<(), String> {
    let expected = expected.trim_end();
    let Some(words) = words(command) else {
        // It needs a shell.
        let problem = "(this command is not run, so its output cannot be compared)";
        return if expected.is_empty() { Ok(()) } else { Err(problem.to_owned()) };
    };
    let words: Vec<&str> = words.iter().map(String::as_str).collect();
    let run = clustermesh(folder, &words[1..]);
    let printed = [
        run.stdout.clone(),
        run.stderr.clone(),
        run.stderr.clone() + &run.stdout,
        run.stdout + &run.stderr,
    ];
    let likeness = |it: &&String| it.lines().filter(|line| expected.contains(line)).count();
    let is_fine = match expected {
        "" => run.code <= 1,
        _ => printed.iter().any(|it| matches(it.trim_end(), expected)),
    };
    if is_fine {
        return Ok(());
    }
    Err(printed.iter().max_by_key(likeness).unwrap().clone())
}

/// Splits a command as a shell does; none if it takes more of a shell than quotes.
fn words(command: &str) -> Option<Vec<String>> {
    let word = Regex::new(r#"'([^']*)'|"([^"$`]*)"|([^\s'"|&;<>$`*]+)|(\s+)|."#).unwrap();
    let mut words = vec![String::new()];
    for part in word.captures_iter(command) {
        if part.get(4).is_some() {
            words.push(String::new());
        } else {
            let text = (1..4).find_map(|it| part.get(it))?;
            words.last_mut()?.push_str(text.as_str());
        }
    }
    Some(words)
}

/// Returns whether a text is the expected one, in which a line `...` matches any lines.
fn matches(text: &str, expected: &str) -> bool {
    let pattern: Vec<String> = expected
        .lines()
        .map(|line| match line.trim() {
            "..." => "(?:.*\n)*".to_owned(),
            _ => format!("{} *\n", regex::escape(line.trim_end())),
        })
        .collect();
    let pattern = format!("^{}$", pattern.concat());
    Regex::new(&pattern).unwrap().is_match(&format!("{text}\n"))
}

#[test]
fn commands_print_what_is_shown() {
    let mut found = Vec::new();
    let mut run = 0;
    for path in files() {
        let page = shown(&path);
        let is_page =
            page == "README.md" || ["docs/", "examples/"].iter().any(|it| page.starts_with(it));
        // The examples of rules have a form of their own, see `manual.rs`.
        if !is_page || !has_extension(&path, &["md"]) || page.contains("/rules") {
            continue;
        }
        let text = fs::read_to_string(&path).unwrap();
        run += text.matches("\n$ clustermesh").count();
        let check = check(&page, &text);
        if env::var_os("UPDATE_DOCS").is_some() {
            fs::write(&path, &check.updated).unwrap();
        }
        found.extend(check.wrong);
    }
    assert!(
        found.is_empty(),
        "`UPDATE_DOCS=1 cargo test --test integration docs` writes what is printed:\n\n{}",
        found.join("\n\n")
    );
    assert!(1 < run, "{run}");
}

/// The README shows a change that cuts paths. The change is made in a commit of the example, with the shell.
#[test]
fn the_readme_shows_what_a_mistake_would_cut() {
    let readme = fs::read_to_string(project().join("README.md")).unwrap();
    let shown = blocks(&readme);
    let shown = shown.iter().find(|it| it.text.starts_with("$ sed ")).unwrap();
    let folder = tempfile::tempdir().unwrap();
    copy(&project().join("examples/quickstart"), folder.path());
    let shell = |line: &str| {
        let mut command = Command::new("sh");
        let command =
            command.args(["-c", line]).current_dir(folder.path()).env("GIT_CONFIG_NOSYSTEM", "1");
        let output = command.env("HOME", folder.path()).stdin(Stdio::null()).output().unwrap();
        assert!(output.status.success(), "{line}: {output:?}");
    };
    shell("git init -q . && git add -A && git -c user.name=a -c user.email=a@b commit -qm a");
    let commands = commands(&shown.text);
    assert_eq!(commands.len(), 4);
    for (command, expected) in commands {
        if command.starts_with("clustermesh") {
            assert_eq!(run(folder.path(), &command, &expected), Ok(()), "{command}");
        } else {
            shell(&command);
        }
    }
}

#[test]
fn sees_a_wrong_line() {
    let page = |shown: &str| {
        let text = format!(
            "<!-- in examples/quickstart -->\n\n```console\n$ clustermesh render --check\n{shown}```\n"
        );
        check("docs/page.md", &text).wrong.len()
    };
    assert_eq!(page(""), 0);
    assert_eq!(page("as it is not\n"), 1);
    let file = "<!-- file x.txt -->\n\n```text\n{{ 1 + 1 }}\n```\n\n\
                ```console\n$ clustermesh template x.txt > y\n2\n```\n";
    assert_eq!(check("docs/page.md", file).wrong.len(), 1);
    assert!(matches("a\nb\nc", "a\n...\nc"));
    assert!(!matches("a\nb\nc", "a\n...\nb"));
    let quoted = words("a 'b c' --d=\"e f\"").unwrap();
    assert_eq!(quoted, ["a", "b c", "--d=e f"]);
}
