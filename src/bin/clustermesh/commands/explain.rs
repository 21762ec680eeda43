//! `clustermesh explain`

use std::fmt::Write as _;
use std::io;

use anyhow::bail;
use clustermesh::document::nearest;
use clustermesh::rules::reach::TERMS;
use clustermesh::rules::{self, QUESTIONS, Rule};

use crate::Outcome;
use crate::settings::Colour;

/// Explain a rule: what it finds, why it matters and what to do
///
/// Without RULE, all rules are listed by topic.
#[derive(clap::Args)]
#[command(after_help = EXAMPLES)]
pub(crate) struct ExplainArgs {
    /// Name of a rule, reason code of the operator, or result of a trace
    #[arg(value_name = "RULE")]
    rule: Option<String>,

    /// Print all rules as one page of Markdown
    #[arg(long, conflicts_with = "rule")]
    all: bool,

    #[command(flatten)]
    pub(crate) colour: Colour,
}

const EXAMPLES: &str = "\
Examples:
  clustermesh explain
  clustermesh explain missing-endpoint
  clustermesh explain NodeNoEndpoint";

pub(crate) fn run(args: &ExplainArgs, result: &mut impl io::Write) -> anyhow::Result<Outcome> {
    let text = match &args.rule {
        _ if args.all => rules::manual(),
        None => list(),
        Some(name) => explained(name)?,
    };
    crate::print(result, &text)?;
    Ok(Outcome::Clean)
}

/// Returns the pages of the rules of a name.
fn explained(name: &str) -> anyhow::Result<String> {
    let found = rules::find(name);
    if let Some(term) = TERMS.iter().find(|term| term.name == name) {
        return Ok(rules::page_of_term(term, 1));
    }
    if found.is_empty() {
        let all = rules::all();
        let aliases = all.iter().flat_map(|rule| rule.aliases.iter().copied());
        let names = all.iter().map(|rule| rule.name).chain(aliases);
        let names = names.chain(TERMS.iter().map(|term| term.name));
        match nearest(name, names) {
            Some(meant) => bail!("unknown rule `{name}`; did you mean `{meant}`?"),
            None => bail!("unknown rule `{name}`; `clustermesh explain` lists all rules"),
        }
    }
    let pages: Vec<String> = found.iter().map(|rule| rules::page_of(rule, 1)).collect();
    Ok(pages.join("\n"))
}

/// Returns every rule with what it finds, in a sentence.
fn list() -> String {
    let mut text = String::new();
    for question in QUESTIONS {
        if !text.is_empty() {
            text.push('\n');
        }
        text.push_str(question.title);
        text.push('\n');
        let mut rules: Vec<&Rule> = question.rules.to_vec();
        rules.sort_by_key(|rule| rule.name);
        for rule in rules {
            let summary = rule.page().summary().replace('\n', " ");
            let _ = writeln!(text, "  {:<28} {summary}", rule.name);
        }
    }
    text.push_str("\nOutcomes that are not findings\n");
    for term in TERMS {
        let summary = term.page().summary().replace('\n', " ");
        let _ = writeln!(text, "  {:<28} {summary}", term.name);
    }
    text
}
