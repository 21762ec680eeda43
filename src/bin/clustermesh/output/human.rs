//! Findings for a person, as rustc would tell them: with excerpts where files are at hand, and of
//! many that are alike the first few and a count.

use std::collections::BTreeMap;

use annotate_snippets::{Group, Level, Origin, Renderer};
use clustermesh::rules::Finding;

use super::excerpt::{excerpts, level, snippets};
use super::wording::title;
use crate::files::Files;

/// How many findings of one kind are told in full.
const SHOWN_ALIKE: usize = 3;

/// How many mistakes of files are shown; whoever made more has enough to do.
const SHOWN_IN_FULL: usize = 100;

/// Returns what to say, in pieces.
pub(super) fn told(files: &Files, findings: &[Finding]) -> Vec<String> {
    let mut told = Vec::new();
    let (folded, single): (Vec<&Finding>, Vec<&Finding>) = findings
        .iter()
        .partition(|finding| finding.cluster.is_some());
    for finding in single.iter().take(SHOWN_IN_FULL) {
        told.push(alone(files, finding));
    }
    let more = single.len().saturating_sub(SHOWN_IN_FULL);
    if 0 < more {
        told.push(format!("… and {more} more\n"));
    }
    // Groups in the order of their first findings.
    let mut numbers = BTreeMap::new();
    let mut groups: Vec<Vec<&Finding>> = Vec::new();
    for finding in folded {
        let kind = (finding.rule.code(), finding.severity, &finding.group);
        let number = *numbers.entry(kind).or_insert(groups.len());
        match groups.get_mut(number) {
            Some(group) => group.push(finding),
            None => groups.push(vec![finding]),
        }
    }
    told.extend(groups.iter().flat_map(|group| alike(files, group)));
    told
}

/// Tells a finding by itself, with its help.
fn alone(files: &Files, finding: &Finding) -> String {
    let title = level(finding.severity)
        .primary_title(title(finding))
        .id(finding.rule.code());
    let excerpts = excerpts(files, &finding.labels);
    let group = match finding.labels.first() {
        Some(label) if excerpts.is_empty() => {
            title.element(Origin::path(label.place.source.to_string()))
        }
        _ => title.elements(snippets(excerpts)),
    };
    let group = match &finding.help {
        Some(help) => group.element(Level::HELP.message(help.as_str())),
        None => group,
    };
    format!("{}\n", rendered(group))
}

fn alike(files: &Files, findings: &[&Finding]) -> Vec<String> {
    // One more than the limit takes a line anyway.
    let shown = if findings.len() <= SHOWN_ALIKE + 1 {
        findings.len()
    } else {
        SHOWN_ALIKE
    };
    let mut told: Vec<String> = findings
        .iter()
        .take(shown)
        .map(|finding| line(files, finding))
        .collect();
    let Some(first) = findings.first() else {
        return told;
    };
    if shown < findings.len() {
        let more = findings.len() - shown;
        let text = format!("{}: {more} more like these", first.group);
        let title = level(first.severity).primary_title(text);
        told.push(rendered(Group::with_title(title.id(first.rule.code()))));
    }
    let help = findings
        .iter()
        .rev()
        .find_map(|finding| finding.help.as_ref());
    if let Some(help) = help {
        let title = Level::HELP.primary_title(help.as_str());
        told.push(rendered(Group::with_title(title)));
    }
    told
}

/// Tells a finding that stands among others.
fn line(files: &Files, finding: &Finding) -> String {
    let title = level(finding.severity)
        .primary_title(title(finding))
        .id(finding.rule.code());
    let excerpts = excerpts(files, &finding.labels);
    rendered(if excerpts.is_empty() {
        Group::with_title(title)
    } else {
        title.elements(snippets(excerpts))
    })
}

fn rendered(group: Group) -> String {
    Renderer::styled().render(&[group])
}
