//! The manual: the pages of all rules as one, for reading.

use std::fmt::Write as _;

use super::reach::{TERMS, Term};
use super::{QUESTIONS, Question, Rule};

/// Returns the documentation of every rule, by question, as Markdown.
pub fn manual() -> String {
    let mut text =
        "# Rules\n\nThe rules by which `clustermesh` checks meshes, snapshots and rendered Peers. \
                    `clustermesh explain RULE` prints the page of one rule.\n"
            .to_owned();
    for Question { title, rules } in QUESTIONS {
        let _ = write!(text, "\n## {title}\n");
        let mut rules: Vec<&Rule> = rules.to_vec();
        rules.sort_by_key(|rule| rule.name());
        for rule in rules {
            text.push('\n');
            text.push_str(&page_of(rule, 3));
        }
    }
    text.push_str("\n## Outcomes that are not findings\n");
    for term in TERMS {
        text.push('\n');
        text.push_str(&page_of_term(term, 3));
    }
    text
}

/// Returns what a word means as Markdown, with the word as a heading of this level.
pub fn page_of_term(term: &Term, level: usize) -> String {
    let heading = "#".repeat(level);
    let mut text = format!("{heading} {}\n", term.name);
    for section in term.page().sections {
        let _ = write!(text, "\n{heading}# {}\n\n{}\n", section.title, section.text);
    }
    text
}

/// Returns the page of a rule as Markdown, with its name as a heading of this level.
pub fn page_of(rule: &Rule, level: usize) -> String {
    let heading = "#".repeat(level);
    let mut text = format!("{heading} {}\n\n*{}", rule.name(), rule.severity);
    for alias in rule.aliases {
        let _ = write!(text, ", the operator's `{alias}`");
    }
    text.push_str("*\n");
    for section in rule.page().sections {
        let _ = write!(text, "\n{heading}# {}\n\n{}\n", section.title, section.text);
    }
    text
}
