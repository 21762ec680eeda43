//! The habits of `.ci/prose.yaml`, looked for in every text that people read.

use std::fs;
use std::path::Path;

use regex::Regex;
use serde::Deserialize;

use super::passage::{self, Passage};
use super::{files, has_extension, shown};
use crate::support::{clustermesh, project};

/// `.ci/prose.yaml`.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Style {
    /// Files and folders that are not ours to word.
    skip: Vec<String>,
    habits: Vec<Entry>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Entry {
    /// A regular expression; a space also matches a line break.
    habit: String,
    /// What to write instead.
    write: String,
    /// The extension of the files in which it is a habit; default: all.
    only: Option<String>,
    /// The folder in which it is a habit; default: all.
    under: Option<String>,
    /// Regular expressions of phrases that are fine although they contain the habit.
    #[serde(default)]
    except: Vec<String>,
}

struct Habit {
    pattern: Regex,
    write: String,
    only: Option<String>,
    under: Option<String>,
    except: Vec<Regex>,
}

impl From<Entry> for Habit {
    fn from(entry: Entry) -> Self {
        let pattern = |it: &str| Regex::new(&it.replace(' ', r"\s+")).unwrap();
        Self {
            pattern: pattern(&entry.habit),
            write: entry.write,
            only: entry.only,
            under: entry.under,
            except: entry.except.iter().map(|it| pattern(it)).collect(),
        }
    }
}

impl Habit {
    fn is_in(&self, file: &str) -> bool {
        let (only, under) = (self.only.as_deref(), self.under.as_deref());
        only.is_none_or(|it| has_extension(Path::new(file), &[it]))
            && under.is_none_or(|it| file.starts_with(it))
    }

    /// Lists the occurrences in a text, each with the number of line breaks before it.
    fn occurrences<'a>(&'a self, text: &'a str) -> impl Iterator<Item = (usize, &'a str)> {
        let is_fine = |found: &regex::Match| {
            self.except.iter().any(|except| {
                let mut phrases = except.find_iter(text);
                phrases.any(|it| it.start() <= found.start() && found.end() <= it.end())
            })
        };
        let found = self.pattern.find_iter(text);
        found
            .filter(move |it| !is_fine(it))
            .map(|it| (text[..it.start()].matches('\n').count(), it.as_str()))
    }
}

/// Finds the habits in passages, a line each.
fn findings(habits: &[Habit], file: &str, passages: &[Passage]) -> Vec<String> {
    let mut findings = Vec::new();
    for passage in passages {
        for habit in habits.iter().filter(|it| it.is_in(file)) {
            for (breaks, found) in habit.occurrences(&passage.text) {
                let found = found.replace('\n', " ");
                let line = passage.line + breaks;
                let context = passage.text.lines().nth(breaks).unwrap_or("").trim();
                findings
                    .push(format!("{file}:{line}: \"{found}\": {}\n    {context}", habit.write));
            }
        }
    }
    findings
}

fn style() -> (Style, Vec<Habit>) {
    let text = fs::read_to_string(project().join(".ci/prose.yaml")).unwrap();
    let mut style: Style = serde_yaml::from_str(&text).unwrap();
    let habits = std::mem::take(&mut style.habits);
    (style, habits.into_iter().map(Habit::from).collect())
}

#[test]
fn texts_are_in_plain_english() {
    let (style, habits) = style();
    let is_in = |list: &[String], file: &str| list.iter().any(|it| file.starts_with(it.as_str()));
    let mut found = Vec::new();
    let mut read = 0;
    for path in files() {
        let file = shown(&path);
        if is_in(&style.skip, &file) {
            continue;
        }
        // Files without an extension are the scripts in `.ci`.
        let is_text = has_extension(
            &path,
            &["rs", "md", "yaml", "yml", "toml", "json", "j2", "sh", "go", "py", "js"],
        ) || file.starts_with(".ci/");
        let Ok(text) = fs::read_to_string(&path) else {
            continue;
        };
        if is_text {
            let passages = passage::passages(Path::new(&file), &text);
            found.extend(findings(&habits, &file, &passages));
            read += 1;
        }
    }
    assert!(200 < read, "{read}");
    assert!(
        found.is_empty(),
        "{} habits (`.ci/prose.yaml` has the list and its exceptions):\n{}",
        found.len(),
        found.join("\n")
    );
}

#[test]
fn help_is_in_plain_english() {
    let (_, habits) = style();
    let mut found = Vec::new();
    let mut commands = vec![Vec::new()];
    let mut read = 0;
    while let Some(command) = commands.pop() {
        let arguments = [command.as_slice(), &["--help".to_owned()]].concat();
        let arguments: Vec<&str> = arguments.iter().map(String::as_str).collect();
        let run = clustermesh(project(), &arguments);
        assert_eq!(run.code, 0, "{}", run.stderr);
        commands.extend(subcommands(&run.stdout).map(|it| [command.as_slice(), &[it]].concat()));
        let passage = Passage { line: 1, text: run.stdout };
        let name = format!("clustermesh {}", arguments.join(" "));
        found.extend(findings(&habits, &name, &[passage]));
        read += 1;
    }
    assert!(10 < read, "{read}");
    assert!(found.is_empty(), "{}", found.join("\n"));
}

/// A merge that was committed with its conflicts has a last marker in some file. The first marker is
/// also in an example.
#[test]
fn no_file_has_markers_of_a_merge() {
    let has_marker = |path: &Path| {
        let text = fs::read_to_string(path).unwrap_or_default();
        text.lines().any(|line| line.starts_with(">>>>>>> "))
    };
    let conflicted = files().into_iter().filter(|it| has_marker(it));
    let conflicted: Vec<String> = conflicted.map(|it| shown(&it)).collect();
    assert_eq!(conflicted, Vec::<String>::new());
}

/// Reads the commands from a `--help`: under headings that end in a colon, `  name  description`.
pub(super) fn subcommands(help: &str) -> impl Iterator<Item = String> {
    static COMMAND: std::sync::LazyLock<Regex> =
        std::sync::LazyLock::new(|| Regex::new(r"^  ([a-z]+)  +[A-Z]").unwrap());
    help.lines()
        .filter_map(|line| Some(COMMAND.captures(line)?[1].to_owned()))
        .filter(|it| it != "help")
}

#[test]
fn finds_a_habit_wherever_prose_stands() {
    let habits = [Habit::from(Entry {
        habit: r"\bthere and back\b".to_owned(),
        write: "in both directions".to_owned(),
        only: None,
        under: None,
        except: vec!["Hobbit: there and back".to_owned()],
    })];
    let found = |file: &str, text: &str| {
        let passages = passage::passages(Path::new(file), text);
        findings(&habits, file, &passages).len()
    };
    assert_eq!(found("a.md", "# There\n\nIt goes *there and\nback*, `there and back`.\n"), 1);
    assert_eq!(found("a.md", "```yaml\na: 1 # there and back\n```\n"), 1);
    assert_eq!(found("a.md", "The Hobbit: there and back\n"), 0);
    assert_eq!(found("a.yaml", "# It goes there\n# and back\na: there and back\n"), 1);
    assert_eq!(found("a.json", "{\n  \"description\": \"there and back\"\n}\n"), 1);
    let source = "/// There\n/// goes there\n/// and back\nfn a(b: 'c') { \"there \\\n  and back\" }\n\
                  #[cfg(test)]\nmod tests {\n \"there and back\"\n}\n";
    assert_eq!(found("src/a.rs", source), 2);
    assert_eq!(found("tests/a.rs", source), 1);
    assert_eq!(found("src/a.rs", "'\"' \"there\" // and back"), 0);
}
