//! Rules: what those that found something mean, as `clustermesh explain` prints them.

use serde::Serialize;

use super::finding_list::FindingList;
use super::markup::blocks;
use crate::rules;

/// The explanation of a rule.
#[derive(Serialize)]
pub(super) struct RuleNote<'d> {
    name: &'d str,
    sections: Vec<NoteSection>,
}

/// A part of it.
#[derive(Serialize)]
struct NoteSection {
    title: &'static str,
    /// HTML.
    text: String,
}

/// The sections of a page that are about a problem in general.
const LEFT_OUT: &str = "Example";

/// Returns the rules that found something.
pub(super) fn all<'d>(findings: &FindingList<'d>) -> Vec<RuleNote<'d>> {
    let notes = findings.rules.iter().map(|name| {
        let rules = rules::find(name);
        let sections = rules.into_iter().flat_map(|it| it.page().sections);
        let sections = sections.filter(|it| it.title != LEFT_OUT);
        RuleNote {
            name,
            sections: sections
                .map(|it| NoteSection { title: it.title, text: blocks(it.text) })
                .collect(),
        }
    });
    notes.collect()
}
