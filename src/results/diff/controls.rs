//! The judgement of the old controls about a change, in words. Every text of a file is escaped here.

use crate::controls::{ControlChange, JudgedChange, WrittenValues};
use crate::diagnostic::Quoted;
use crate::name::ClusterName;
use crate::place::Place;
use crate::proof::messages::expectation;
use crate::proof::old_controls::{PathControl, RefusedPair, RefusedPaths};
use crate::results::source_texts::SourceTexts;
use crate::text::{count, first, first_of, listed};

use super::Compared;
use super::wording::{line, name};

/// The most values of a control that are shown.
const VALUES: usize = 8;

/// The most pairs of clusters that a control refuses and that are shown.
const PAIRS: usize = 6;

/// Something about controls.
pub(super) struct ControlNote {
    /// Its kind, for people.
    pub(super) kind: &'static str,
    /// Whether it makes the change weaker.
    pub(super) is_weaker: bool,
    pub(super) text: String,
}

impl Compared<'_> {
    /// Returns all that is to be reported about controls, the most severe first.
    pub(super) fn control_notes(&self) -> Vec<ControlNote> {
        let Some(judged) = self.judged else {
            return Vec::new();
        };
        let note = |kind, is_weaker, text| ControlNote { kind, is_weaker, text };
        let refused = judged.refused.iter().filter_map(|paths| {
            let control = judged.controls.get(paths.control)?;
            let text = format!("{}: {}", self.control(judged, control), reached(control, paths));
            Some(note("no longer kept", true, text))
        });
        let unread = judged.unread.iter().map(|it| {
            let place = it.labels.first().map(|it| format!(" ({})", self.old_line(&it.place)));
            let text = format!("{}{}", it.message, place.unwrap_or_default());
            note("cannot be read", true, text)
        });
        let unproven = judged.is_unproven.then(|| {
            let text = "which paths the old controls refuse, because the old mesh or the old Peers are missing, or a proof takes too many steps";
            note("not known", true, text.to_owned())
        });
        let unjudged = judged.unjudged.iter().filter_map(|it| judged.controls.get(*it));
        let unjudged = unjudged.map(|it| {
            let text = format!("{}, which selects nothing now", self.control(judged, it));
            note("no longer judged", false, text)
        });
        let changes = judged.changes.iter().map(|it| {
            let kind = if it.is_weaker { "weaker" } else { "changed" };
            note(kind, it.is_weaker, self.changed(it))
        });
        let notes = refused.chain(unread).chain(unproven).chain(changes).chain(unjudged);
        let mut notes: Vec<ControlNote> = notes.collect();
        notes.sort_by_key(|it| !it.is_weaker);
        notes
    }

    /// Returns a sentence about the controls; nothing if none is concerned.
    pub(super) fn control_sentence(&self) -> Option<String> {
        let judged = self.judged.filter(|it| !it.is_empty())?;
        let refusing = judged.refused.len();
        let weaker = judged.changes.iter().filter(|it| it.is_weaker).count();
        let others = judged.changes.len() - weaker + judged.unjudged.len();
        let unread = judged.unread.len();
        let is = |count: usize| if count == 1 { "is" } else { "are" };
        let parts = [
            (0 < refusing).then(|| {
                format!(
                    "{} of the old version {} no longer kept",
                    count(refusing, "control"),
                    is(refusing)
                )
            }),
            (0 < weaker).then(|| format!("{} {} weaker", count(weaker, "control"), is(weaker))),
            (0 < unread)
                .then(|| format!("{} of the old version cannot be read", count(unread, "control"))),
            judged.is_unproven.then(|| "it is not known what the old controls refuse".to_owned()),
            (0 < others).then(|| {
                let how = if judged.is_weaker() { "otherwise" } else { "and none is weaker" };
                format!("{} changed {how}", count(others, "control"))
            }),
        ];
        let parts = listed(parts.into_iter().flatten());
        let mut letters = parts.chars();
        let capital = letters.next()?.to_uppercase();
        Some(format!("{capital}{}.", letters.as_str()))
    }

    /// Returns a control of the old version with its place.
    fn control(&self, judged: &JudgedChange, control: &PathControl) -> String {
        let (subject, place) = (subject(control), control.place());
        let Some(place) = place else {
            return subject;
        };
        // The place of a list of ranges is that of its first one.
        let list = Place { pointer: place.pointer.parent(), ..place.clone() };
        let is_there = |it: &Option<WrittenValues>| {
            let own = it.as_ref().and_then(|it| it.place.as_ref());
            own.is_some_and(|it| it == place || *it == list)
        };
        let change = judged.changes.iter().find(|it| is_there(&it.before));
        let fate = match change {
            Some(ControlChange { after: None, .. }) => ", removed",
            Some(_) => ", changed",
            None => "",
        };
        format!("{subject} ({}{fate})", self.old_line(place))
    }

    fn changed(&self, change: &ControlChange) -> String {
        let ControlChange { subject, before, after, .. } = change;
        let new = |it: &Place| line(it, self.files);
        let old = |it: &Place| self.old_line(it);
        match (before, after) {
            (Some(before), None) => {
                format!("{subject} removed{}", valued(before, " before", old))
            }
            (None, Some(after)) => format!("{subject} added{}", valued(after, "", new)),
            (Some(before), Some(after)) if before.values.is_empty() => match &*after.values {
                [] => {
                    format!("{subject} allows nothing more than before{}", valued(after, "", new))
                }
                _ => format!("{subject} now {}", shown(after, "", new)),
            },
            (Some(before), Some(after)) => {
                format!("{subject}: {} → {}", shown(before, " before", old), shown(after, "", new))
            }
            (None, None) => subject.clone(),
        }
    }

    fn old_line(&self, place: &Place) -> String {
        let files: &dyn SourceTexts = self.old_files.unwrap_or(self.files);
        line(place, files)
    }
}

/// Returns what a control is called.
pub(super) fn subject(control: &PathControl) -> String {
    match control {
        PathControl::Expectation(it) => expectation::name(it),
        PathControl::Undeclared { .. } => "`undeclared: Deny`".to_owned(),
        PathControl::AcceptedNetworks(it) => format!("`acceptedNetworks` of {}", it.cluster),
        PathControl::AcceptedClusters { policy, .. } => {
            format!("`acceptedClusters` in the policy of {}", policy.cluster)
        }
        PathControl::LocalNetworks { cluster, .. } => format!("`localNetworks` of {cluster}"),
    }
}

/// Returns values with the line that has them, to be added to a sentence; a guard has none.
fn valued(written: &WrittenValues, when: &str, line: impl Fn(&Place) -> String) -> String {
    match &written.place {
        _ if !written.values.is_empty() => format!(": {}", shown(written, when, line)),
        Some(place) => format!(" ({}{when})", line(place)),
        None => String::new(),
    }
}

/// Returns values with the line that has them.
fn shown(written: &WrittenValues, when: &str, line: impl Fn(&Place) -> String) -> String {
    let values = written.values.iter().map(|it| value(it));
    let values =
        if written.values.is_empty() { "nothing".to_owned() } else { first(VALUES, values) };
    match &written.place {
        Some(place) => format!("{values} ({}{when})", line(place)),
        None => values,
    }
}

/// Returns a value that people wrote, quoted if it does not look like one.
fn value(text: &str) -> String {
    let is_plain = |it: char| it.is_ascii_alphanumeric() || "-._/:,=()*!→ ".contains(it);
    if text.chars().all(is_plain) { text.to_owned() } else { Quoted(text).to_string() }
}

/// Returns which clusters reach each other although a control refuses that.
fn reached(control: &PathControl, paths: &RefusedPaths) -> String {
    let verb = if control.is_reach() { "does not reach" } else { "reaches" };
    let pairs = paths.pairs.iter().map(|it| {
        let [from, to] = [0, 1].map(|side| counted(it, side));
        format!("{from} {verb} {to}")
    });
    let pairs = first_of(PAIRS, pairs, paths.omitted);
    let example = paths.pairs.first().map(|it| {
        let [from, to] = &it.example;
        format!(", such as {from} → {to}")
    });
    format!("{pairs} ({}{})", count(paths.paths, "path"), example.unwrap_or_default())
}

/// Returns a cluster with the old clusters as which it counts.
fn counted(paths: &RefusedPair, side: usize) -> String {
    let (Some(cluster), Some(old)) = (paths.between.get(side), paths.counted_as.get(side)) else {
        return String::new();
    };
    let others = old.iter().filter(|it| *it != cluster).map(ClusterName::as_str);
    let others = listed(others.map(name));
    if others.is_empty() { cluster.to_string() } else { format!("{cluster} (counts as {others})") }
}
