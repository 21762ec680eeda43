//! The judgement of the old controls about a change, in the form of the object.

use schemars::JsonSchema;
use serde::Serialize;

use crate::controls::{ControlChange, JudgedChange, WrittenValues};
use crate::diagnostic::escaped;
use crate::name::ClusterName;
use crate::proof::old_controls::RefusedPair;
use crate::results::diff::{Compared, controls};
use crate::results::findings::json::{WrittenPlace, bare_place};
use crate::results::source_texts::SourceTexts;

use super::NAME;

/// The most sentences.
const MESSAGES: usize = 100;

/// The most pairs of clusters with refused paths that are listed.
const REFUSED: usize = 1000;

/// The controls of the old version, compared with those of the new one, and what they refuse in it.
#[derive(JsonSchema, Serialize)]
#[schemars(rename = "Controls")]
#[serde(rename_all = "camelCase")]
pub struct WrittenControls<'a> {
    /// True if the old controls refuse something, or one is weaker or cannot be read: `--fail-on-weaker` exits with 1.
    pub weaker: bool,
    /// The number of controls that changed or are no longer kept, in a sentence.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(example = &"1 control is weaker.")]
    pub summary: Option<String>,
    /// All that is reported about controls, in sentences, the most severe first; at most 100.
    pub messages: Vec<String>,
    /// True if it is not known what the old controls refuse: the old mesh, the old
    /// Peers or the steps of a proof are missing.
    unproven: bool,
    /// The paths that the old controls refuse and that the old version did not have, by pairs of clusters: at most 20 of
    /// each control, and 1,000 of all.
    refused: Vec<WrittenRefusal<'a>>,
    /// The number of further pairs that are not listed, of all controls.
    refused_omitted: usize,
    /// Old expectations that select nothing in the new version.
    unjudged: Vec<WrittenControl>,
    /// Mistakes that keep old controls from being read.
    unread: Vec<WrittenControl>,
    /// The controls that changed, those that are weaker first.
    changes: Vec<WrittenControlChange<'a>>,
}

/// A control.
#[derive(JsonSchema, Serialize)]
#[schemars(rename = "Control")]
#[serde(rename_all = "camelCase")]
struct WrittenControl {
    /// Its name, or the mistake in it.
    #[schemars(example = &"expectation `tenants never reach each other`")]
    control: String,
    /// Its place in the old version.
    #[serde(skip_serializing_if = "Option::is_none")]
    place: Option<WrittenPlace>,
}

/// Paths from one cluster to another that a control of the old version refuses.
#[derive(JsonSchema, Serialize)]
#[schemars(rename = "RefusedPaths")]
#[serde(rename_all = "camelCase")]
struct WrittenRefusal<'a> {
    #[serde(flatten)]
    control: WrittenControl,
    /// The cluster that sends.
    #[schemars(example = &"red")]
    from: &'a str,
    /// The cluster that receives.
    #[schemars(example = &"green")]
    to: &'a str,
    /// The old clusters as which the addresses of the sender count.
    from_counts_as: Vec<&'a str>,
    /// The old clusters as which the addresses of the receiver count.
    to_counts_as: Vec<&'a str>,
    /// The number of paths.
    paths: u64,
    /// The addresses of one of the paths, the sender first, each with its owner.
    example: [String; 2],
}

/// A control that only one version has, or that differs.
#[derive(JsonSchema, Serialize)]
#[schemars(rename = "ControlChange")]
#[serde(rename_all = "camelCase")]
struct WrittenControlChange<'a> {
    /// Its name.
    #[schemars(example = &"`acceptedNetworks` of west in the mesh prod")]
    control: &'a str,
    /// Whether it forbids less than before.
    weaker: bool,
    /// Its old values.
    #[serde(skip_serializing_if = "Option::is_none")]
    before: Option<WrittenControlValues>,
    /// Its new values.
    #[serde(skip_serializing_if = "Option::is_none")]
    after: Option<WrittenControlValues>,
}

/// The values of a control.
#[derive(JsonSchema, Serialize)]
#[schemars(rename = "ControlValues")]
#[serde(rename_all = "camelCase")]
struct WrittenControlValues {
    /// The values.
    values: Vec<String>,
    /// Their place; a default has none.
    #[serde(skip_serializing_if = "Option::is_none")]
    place: Option<WrittenPlace>,
}

/// Returns what is known of the controls, if the old version has any.
pub(super) fn written<'a>(compared: &'a Compared<'a>) -> Option<WrittenControls<'a>> {
    let judged = compared.judged?;
    let old = compared.old_files.unwrap_or(compared.files);
    let unjudged = judged.unjudged.iter().filter_map(|it| control(judged, *it, old));
    let unread = judged.unread.iter().map(|it| WrittenControl {
        control: escaped(&it.message.to_string(), NAME),
        place: it.labels.first().map(|it| bare_place(&it.place, "", old)),
    });
    let messages = compared.control_notes().into_iter().take(MESSAGES);
    let messages = messages.map(|it| format!("{}: {}", it.kind, it.text));
    let refused = judged.refused.iter();
    let refused = refused.flat_map(|it| it.pairs.iter().map(move |pair| (it.control, pair)));
    let omitted = judged.refused.iter().map(|it| it.omitted).sum::<usize>();
    Some(WrittenControls {
        weaker: judged.is_weaker(),
        summary: compared.control_sentence(),
        messages: messages.collect(),
        unproven: judged.is_unproven,
        refused_omitted: omitted + refused.clone().count().saturating_sub(REFUSED),
        refused: refused.take(REFUSED).filter_map(|it| refusal(judged, it, old)).collect(),
        unjudged: unjudged.collect(),
        unread: unread.collect(),
        changes: judged.changes.iter().map(|it| change(it, old, compared.files)).collect(),
    })
}

fn control(judged: &JudgedChange, index: usize, old: &dyn SourceTexts) -> Option<WrittenControl> {
    let control = judged.controls.get(index)?;
    Some(WrittenControl {
        control: controls::subject(control),
        place: control.place().map(|it| bare_place(it, "", old)),
    })
}

fn refusal<'a>(
    judged: &JudgedChange,
    (index, paths): (usize, &'a RefusedPair),
    old: &dyn SourceTexts,
) -> Option<WrittenRefusal<'a>> {
    let [from, to] = &paths.between;
    let [from_counts_as, to_counts_as] =
        paths.counted_as.each_ref().map(|it| it.iter().map(ClusterName::as_str).collect());
    Some(WrittenRefusal {
        control: control(judged, index, old)?,
        from: from.as_str(),
        to: to.as_str(),
        from_counts_as,
        to_counts_as,
        paths: paths.paths,
        example: paths.example.clone(),
    })
}

fn change<'a>(
    change: &'a ControlChange,
    old: &dyn SourceTexts,
    new: &dyn SourceTexts,
) -> WrittenControlChange<'a> {
    let values = |it: &WrittenValues, files: &dyn SourceTexts| WrittenControlValues {
        values: it.values.iter().map(|it| escaped(it, NAME)).collect(),
        place: it.place.as_ref().map(|it| bare_place(it, "", files)),
    };
    WrittenControlChange {
        control: &change.subject,
        weaker: change.is_weaker,
        before: change.before.as_ref().map(|it| values(it, old)),
        after: change.after.as_ref().map(|it| values(it, new)),
    }
}
