//! The pages of rules: one for each question, and an index.

use std::fmt::Write as _;
use std::fs;

use clustermesh::rules::reach::TERMS;
use clustermesh::rules::{self, QUESTIONS, Rule};

use super::generated::{GENERATED, compare};
use crate::support::project;

/// The file names of the questions' pages, in the order of the questions.
const NAMES: [&str; 17] = [
    "input",
    "ranges",
    "identity",
    "endpoints",
    "kilo",
    "nodes",
    "states",
    "services",
    "changes",
    "costs",
    "gitops",
    "reachability",
    "capacity",
    "access",
    "levels",
    "snapshots",
    "clusters",
];

/// The page of outcomes that are not findings, after the questions.
const OUTCOMES: &str = "outcomes";

/// The titles of all pages: those of the questions, and the last one of the manual.
fn titles() -> Vec<String> {
    let manual = rules::manual();
    let titles = manual.lines().filter_map(|it| it.strip_prefix("## "));
    titles.map(str::to_owned).collect()
}

/// An item of the index: a rule with its level, and other names in parentheses.
fn item(text: &mut String, page: &str, rule: &Rule) {
    let name = rule.name();
    let aliases = rule.aliases.iter().map(|it| format!(" (`{it}`)"));
    let aliases: String = aliases.collect();
    let _ = writeln!(text, "- [`{name}`](rules/{page}.md#{name}){aliases}: {}", rule.severity);
}

#[test]
fn the_pages_of_rules_are_the_manual() {
    let titles = titles();
    assert_eq!(titles.len(), NAMES.len() + 1);
    let mut index = format!(
        "# Rules\n\n{GENERATED}\n\nEvery finding has the name of its rule in brackets. `clustermesh explain RULE` \
         prints the same pages. This page lists each rule with its default level. The names in parentheses are \
         reason codes of the ClusterMesh operator.\n"
    );
    let mut summary = String::new();
    for ((question, page), title) in QUESTIONS.iter().zip(NAMES).zip(&titles) {
        let mut rules: Vec<&Rule> = question.rules.to_vec();
        rules.sort_by_key(|rule| rule.name());
        let mut text = format!("# {title}\n\n{GENERATED}\n");
        let _ = write!(index, "\n## {title}\n\n");
        for rule in rules {
            let _ = write!(text, "\n{}", rules::page_of(rule, 2));
            item(&mut index, page, rule);
        }
        compare(&format!("docs/reference/rules/{page}.md"), &text);
        let _ = writeln!(summary, "  - [{title}](reference/rules/{page}.md)");
    }
    let title = titles.last().unwrap();
    let mut text = format!("# {title}\n\n{GENERATED}\n");
    let _ = write!(index, "\n## {title}\n\n");
    for term in TERMS {
        let _ = write!(text, "\n{}", rules::page_of_term(term, 2));
        let name = term.name;
        let _ = writeln!(index, "- [`{name}`](rules/{OUTCOMES}.md#{name})");
    }
    compare(&format!("docs/reference/rules/{OUTCOMES}.md"), &text);
    let _ = writeln!(summary, "  - [{title}](reference/rules/{OUTCOMES}.md)");
    compare("docs/reference/rules.md", &index);
    let contents = fs::read_to_string(project().join("docs/SUMMARY.md")).unwrap();
    let others = contents.lines().filter(|it| !it.contains("](reference/rules/"));
    let mut wanted = String::new();
    for line in others {
        let _ = writeln!(wanted, "{line}");
        if line.contains("](reference/rules.md)") {
            wanted.push_str(&summary);
        }
    }
    compare("docs/SUMMARY.md", &wanted);
}
