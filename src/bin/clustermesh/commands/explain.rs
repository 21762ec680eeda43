//! `clustermesh explain`

use std::fmt::Write as _;
use std::io::{self, IsTerminal as _};

use anstyle::Style;
use anyhow::anyhow;
use clustermesh::document::nearest;
use clustermesh::rules::reach::TERMS;
use clustermesh::rules::{self, QUESTIONS, Rule};

use crate::Outcome;
use crate::failure::CommandResult;
use crate::output::{Printer, terminal_markdown};

/// Explain a rule: what it finds, why it matters and what to do
///
/// Without RULE, all rules are listed by topic, with their levels. If there is no rule with that name, the
/// rules that contain the text are listed.
#[derive(clap::Args)]
#[command(after_help = EXAMPLES)]
pub(crate) struct ExplainArgs {
    /// Rule, reason code of the operator, result of a trace, or text to search for
    #[arg(value_name = "RULE")]
    rule: Option<String>,

    /// Print all rules as one page of Markdown
    #[arg(long, conflicts_with = "rule")]
    all: bool,
}

const EXAMPLES: &str = "\
Examples:
  clustermesh explain
  clustermesh explain missing-endpoint
  clustermesh explain NodeNoEndpoint
  clustermesh explain nat                       search for rules about NAT";

const HEADING: Style = Style::new().bold();

/// The column of the levels, and that of the summaries.
const LEVELS: usize = 30;
const SUMMARIES: usize = 39;

pub(crate) fn run(args: &ExplainArgs, printer: &mut Printer) -> CommandResult {
    let text = match &args.rule {
        _ if args.all => rules::manual(),
        None => list(),
        Some(given) => {
            let name = copied_name(given);
            match pages(name) {
                Some(pages) if io::stdout().is_terminal() => terminal_markdown::page(&pages),
                Some(pages) => pages,
                None => search(name)?,
            }
        }
    };
    printer.result(&text)?;
    Ok(Outcome::Clean)
}

/// Returns the name in a text that was copied from a message, such as `error[no-mesh]:`.
fn copied_name(given: &str) -> &str {
    let text = given.trim().trim_end_matches(':');
    let text = text.strip_suffix(']').unwrap_or(text);
    match text.split_once('[') {
        Some((before, name)) if before.chars().all(char::is_alphanumeric) => name,
        _ => text,
    }
}

/// Returns the pages of the rules of a name, as Markdown.
fn pages(name: &str) -> Option<String> {
    if let Some(term) = TERMS.iter().find(|term| term.name == name) {
        return Some(rules::page_of_term(term, 1));
    }
    let found = rules::find(name);
    let pages: Vec<String> = found.iter().map(|rule| rules::page_of(rule, 1)).collect();
    (!pages.is_empty()).then(|| pages.join("\n"))
}

/// Returns the rules that a text is in: first those with it in a name, then in the summary, then anywhere.
fn search(given: &str) -> anyhow::Result<String> {
    let wanted = given.to_lowercase();
    // Not inside of a word: `nat` is not meant by `destination`.
    let wanted_in = |text: &str| {
        let text = text.to_lowercase();
        let mut places = text.match_indices(&wanted);
        places.any(|(at, _)| !text.get(..at).is_some_and(|it| it.ends_with(char::is_alphanumeric)))
    };
    let rank = |rule: &Rule| {
        let names = [&[rule.name()], rule.aliases].concat();
        let page = rule.page();
        if names.iter().any(|name| wanted_in(name)) {
            Some(0)
        } else if wanted_in(page.summary()) {
            Some(1)
        } else {
            let is_there = page.sections.iter().any(|it| wanted_in(it.text));
            is_there.then_some(2)
        }
    };
    let rules = rules::all().into_iter();
    let mut found: Vec<(u8, &Rule)> = rules.filter_map(|it| Some((rank(it)?, it))).collect();
    if found.is_empty() {
        return Err(unknown(given));
    }
    found.sort_by_key(|(rank, rule)| (*rank, rule.name()));
    Ok(found.into_iter().map(|(_, rule)| line(rule)).collect())
}

fn unknown(name: &str) -> anyhow::Error {
    let all = rules::all();
    let aliases = all.iter().flat_map(|rule| rule.aliases.iter().copied());
    let names =
        all.iter().map(|rule| rule.name()).chain(aliases).chain(TERMS.iter().map(|term| term.name));
    match nearest(name, names) {
        Some(meant) => anyhow!("unknown rule `{name}`; did you mean `{meant}`?"),
        None => anyhow!("unknown rule `{name}`; `clustermesh explain` lists all rules"),
    }
}

/// Returns every rule with its level and what it finds, in a sentence.
fn list() -> String {
    let mut text = String::new();
    for question in QUESTIONS {
        if !text.is_empty() {
            text.push('\n');
        }
        let _ = writeln!(text, "{HEADING}{}{HEADING:#}", question.title);
        let mut rules: Vec<&Rule> = question.rules.to_vec();
        rules.sort_by_key(|rule| rule.name());
        text.extend(rules.into_iter().map(line));
    }
    let _ = writeln!(text, "\n{HEADING}Outcomes that are not findings{HEADING:#}");
    for term in TERMS {
        let summary = term.page().summary().replace('\n', " ");
        text.push_str(&terminal_markdown::item(&format!("  {}", term.name), &summary, SUMMARIES));
    }
    text
}

fn line(rule: &Rule) -> String {
    let summary = rule.page().summary().replace('\n', " ");
    let name = format!("  {:<width$} {}", rule.name(), rule.severity, width = LEVELS - 3);
    terminal_markdown::item(&name, &summary, SUMMARIES)
}
