//! Judgement: the plan that the evidence allows, the tree beside it, and what the rules find in both.

use clustermesh::change::Loss;
use clustermesh::config::ceilings::Counted;
use clustermesh::fleet::{Fleet, Member, MissingSnapshot, UnreadMember};
use clustermesh::plan::{self, Plan};
use clustermesh::rules::gitops::Fate;
use clustermesh::rules::rendered::Allowing;
use clustermesh::rules::{self, Finding, Planned, Purpose, Standard, Tree};
use rayon::prelude::*;

use crate::evidence::Evidence;
use crate::output::Checked;
use crate::outputs;
use crate::rendered::{self, Rendered};
use crate::{clock, input};

/// The findings of the rules.
pub(crate) struct Judgement<'a> {
    /// All findings.
    pub(crate) findings: Vec<Finding>,
    /// What can be rendered, unless something keeps it from being planned.
    pub(crate) planned: Option<(Fleet<'a>, Plan)>,
    /// How the rendered tree differs from that, if requested.
    pub(crate) rendered: Option<Rendered>,
}

/// What becomes of the outputs beside the rendered tree.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(crate) enum Outputs {
    /// They are compared with the wanted ones, regardless of where the tree is.
    Compared,
    /// They are not needed, so no template is filled in.
    Unasked,
}

impl Judgement<'_> {
    /// Returns how much was checked, if there is a plan.
    pub(crate) fn checked(&self) -> Option<Checked> {
        let (fleet, plan) = self.planned.as_ref()?;
        Some(Checked::plan(fleet, plan))
    }

    /// Adds what only a person may want.
    pub(crate) fn add_losses(&mut self, losses: &[Loss], allowing: Allowing) {
        if let Some((fleet, _)) = &self.planned {
            rules::rendered::add_losses(&mut self.findings, losses, fleet, allowing);
        }
    }
}

/// Judges the evidence, and how much of it is to matter. The rendered tree is looked at if something
/// becomes of it; what targets would lose altogether is left to [`Judgement::add_losses`].
///
/// # Errors
/// A tree that cannot be read, or a plan that goes beyond what was declared: a mistake of this
/// program.
pub(crate) fn judge(
    evidence: &Evidence,
    purpose: Purpose,
    fate: Option<Fate>,
    outputs: Outputs,
) -> anyhow::Result<Judgement<'_>> {
    let (unread, missing) = UnreadMember::all(&evidence.meshes, &evidence.snapshots);
    let members: Vec<Member> = unread.into_par_iter().map(UnreadMember::member).collect();
    let settings = &evidence.settings;
    let config = &settings.config.content;
    let fleet = Fleet::assemble(members, &evidence.snapshots).accepting(&config.accepted);
    let ceilings = settings.ceilings;
    let exceeded = ceilings.exceeded(Counted::Peers, fleet.peers());
    let mut mistakes = mistakes(evidence, &missing)?;
    mistakes.extend(exceeded.iter().map(rules::mesh::beyond_ceiling));
    let is_whole = evidence.is_whole && missing.is_empty() && exceeded.is_none();
    let plan = is_whole.then(|| plan::plan(&fleet)).transpose()?;
    let texts = plan.as_ref().map(rendered::texts).unwrap_or_default();
    let bytes: Vec<usize> = texts.iter().map(|text| text.len()).collect();
    let mut rendered = plan
        .as_ref()
        .filter(|_| fate.is_some())
        .map(|plan| rendered::compare(plan, &texts, settings))
        .transpose()?;
    if let (Outputs::Compared, Some(plan), Some(rendered)) = (outputs, &plan, &mut rendered) {
        match outputs::compare((&fleet, plan), &bytes, settings) {
            Ok(outputs) => rendered.outputs = outputs,
            Err(wrong) => mistakes.extend(wrong),
        }
    }
    let alone = (plan.is_none() && fate.is_some())
        .then(|| rendered::alone(settings))
        .transpose()?;
    let standing = rendered.as_ref().map(|it| &it.standing).or(alone.as_ref());
    if let Some(standing) = standing {
        rendered::show(standing, &evidence.files, settings);
    }
    let findings = rules::judge(
        &rules::Evidence {
            mistakes: &mistakes,
            meshes: &evidence.meshes,
            config,
            fleet: &fleet,
            planned: plan.as_ref().map(|plan| Planned {
                plan,
                bytes: &bytes,
            }),
            tree: fate.zip(standing).map(|(fate, standing)| Tree {
                standing,
                changes: rendered.as_ref().map(|it| &it.changes),
                fate,
            }),
        },
        Standard {
            levels: &settings.config.levels,
            today: clock::today(),
            purpose,
        },
    );
    Ok(Judgement {
        findings,
        planned: plan.map(|plan| (fleet, plan)),
        rendered,
    })
}

/// Returns what is wrong with the files in themselves, and which are missing.
fn mistakes(evidence: &Evidence, missing: &[MissingSnapshot]) -> anyhow::Result<Vec<Finding>> {
    let mut mistakes = evidence.findings.clone();
    let unread = missing.iter().filter(|missing| {
        // A file that is there and wrong is not missing.
        let mut findings = evidence.findings.iter();
        !findings.any(|it| it.cluster.as_deref() == Some(missing.cluster.as_str()))
    });
    mistakes.extend(unread.map(|missing| {
        let folder = &evidence.settings.snapshots.value;
        let path = folder.join(format!("{}.json", missing.cluster));
        rules::mesh::missing_snapshot(missing, &input::name(&path))
    }));
    mistakes.extend(rendered::overrides_above(&evidence.settings));
    let config = &evidence.settings.config;
    mistakes.extend(config.content.warnings.iter().cloned());
    if evidence.is_whole {
        mistakes.extend(config.unnamed(&evidence.meshes));
    }
    if evidence.is_whole && evidence.meshes.is_empty() {
        let files = evidence.settings.mesh_files()?;
        let files: Vec<String> = files.iter().map(|file| input::name(&file.path)).collect();
        mistakes.push(rules::mesh::no_mesh(&files));
    }
    Ok(mistakes)
}
