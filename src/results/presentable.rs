//! Findings as they may be shown: only the places in foreign files, and our files without secrets.

use std::borrow::Cow;
use std::collections::BTreeSet;

use super::own_files;
use super::secrets;
use super::shown_source::ShownSource;
use crate::diagnostic::{Finding, Label, Message, Quotes};
use crate::place::Place;

/// Returns findings as they may be shown, given their files.
pub(super) fn findings<'s, 'f>(
    file: impl Fn(&str) -> Option<&'s ShownSource>,
    findings: &'f [Finding],
) -> Cow<'f, [Finding]> {
    let is_sound = |it: &Label| file(&it.place.source).is_none_or(ShownSource::is_plain);
    let is_plain = |it: &Finding| {
        !secrets::has_private_key(it.message.shown()) && it.labels.iter().all(is_sound)
    };
    if findings.iter().all(is_plain) {
        return Cow::Borrowed(findings);
    }
    let mut shown: Vec<Finding> = Vec::with_capacity(findings.len());
    // Without their details, several are the same.
    let mut known: BTreeSet<(&'static str, Message, Vec<Label>)> = BTreeSet::new();
    let mut helps: BTreeSet<Option<String>> = BTreeSet::new();
    for finding in findings {
        let mut labels = finding.labels.iter();
        let withheld = labels.find_map(|label| {
            let file = file(&label.place.source)?;
            file.text().is_none().then_some((file, label))
        });
        let Some((file_of, label)) = withheld else {
            let finding = without_secrets(&file, finding);
            helps.insert(finding.help.clone());
            known.insert(identity(&finding));
            shown.push(finding);
            continue;
        };
        let is_harmless = finding.quotes == Quotes::Nothing;
        let mut finding = withheld_finding(file_of, finding, label);
        if known.insert(identity(&finding)) {
            let is_new = helps.insert(finding.help.clone());
            if !is_new && !is_harmless {
                finding.help = None;
            }
            helps.insert(finding.help.clone());
            shown.push(finding);
        }
    }
    Cow::Owned(shown)
}

/// Returns what makes a finding another one for people.
fn identity(finding: &Finding) -> (&'static str, Message, Vec<Label>) {
    (finding.rule.name(), finding.message.clone(), finding.labels.clone())
}

/// Returns a finding about a file that is not ours: its rule, and where it is.
fn withheld_finding(file: &ShownSource, finding: &Finding, label: &Label) -> Finding {
    let place = &label.place;
    let mut shown = Place::document(&place.source, 0);
    if let Some(span) = file.source().locate(place) {
        shown = shown.bytes(&(span.start..span.start));
    }
    // A finding that quotes nothing may name the cluster of its cause.
    let is_harmless = finding.quotes == Quotes::Nothing;
    let cause = finding.cause.clone().filter(|it| is_harmless && it.node.is_none());
    let finding = Finding {
        labels: vec![Label { place: shown, text: String::new() }],
        replacement: None,
        node: None,
        named: None,
        cause,
        ..finding.clone()
    };
    if is_harmless {
        return finding;
    }
    let text = &file.source().text;
    let withheld = own_files::withheld(text);
    Finding {
        message: withheld.into(),
        group: withheld.to_owned(),
        help: own_files::remedy(&finding, &place.source, text),
        quotes: Quotes::Nothing,
        ..finding
    }
}

/// Returns a finding without the secrets at its places.
fn without_secrets<'s>(
    file: impl Fn(&str) -> Option<&'s ShownSource>,
    finding: &Finding,
) -> Finding {
    let struck = |text: &str| {
        let mut struck = secrets::without_private_keys(text);
        for Label { place, .. } in &finding.labels {
            if let Some(file) = file(&place.source)
                && let Some(span) = file.source().locate(place)
            {
                struck = file.strike(&span, &struck);
            }
        }
        struck
    };
    let label = |it: &Label| Label { text: struck(&it.text), ..it.clone() };
    Finding {
        message: struck(finding.message.shown()).into(),
        labels: finding.labels.iter().map(label).collect(),
        help: finding.help.as_deref().map(struck),
        replacement: finding.replacement.clone().filter(|it| struck(it) == **it),
        ..finding.clone()
    }
}
