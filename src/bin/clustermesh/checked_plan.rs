//! The checked plan: the plan that the inputs allow, the tree beside it, and what the rules find in both.

use std::path::Path;

use clustermesh::config::ceilings::{Counted, Exceeded};
use clustermesh::fleet::{Fleet, MissingSnapshot, UnreadMember};
use clustermesh::manifest::{self, PeerSetTexts};
use clustermesh::mirror::Mirrors;
use clustermesh::plan::{self, Plan};
use clustermesh::rules::gitops::Fate;
use clustermesh::rules::rendered::{Allowing, PlannedFleet};
use clustermesh::rules::services::holds_back_services;
use clustermesh::rules::{self, CheckedPlan, CheckedTree, Finding, LevelledFindings, Purpose};
use clustermesh::tree_diff::Loss;
use rayon::prelude::*;

use crate::failure::CommandResult;
use crate::inputs::Inputs;
use crate::output::CheckedCounts;
use crate::threshold::FailOn;
use crate::tree_comparison::{self, TreeComparison};
use crate::{disk, guard_files, input_file};

/// The findings of the rules.
pub(crate) struct CheckResult<'a> {
    pub(crate) findings: LevelledFindings,
    /// The plan, unless a mistake prevents it.
    pub(crate) planned: Option<(Fleet<'a>, Plan)>,
    /// The differences of the rendered tree from the plan, if requested.
    pub(crate) rendered: Option<TreeComparison>,
}

/// A plan, and what it is made from.
pub(crate) struct RenderPlan<'a> {
    /// The clusters.
    pub(crate) fleet: Fleet<'a>,
    /// Their Peers.
    pub(crate) plan: Plan,
    /// The text of each peer set.
    pub(crate) texts: PeerSetTexts,
}

/// A plan, or the problems that prevent one.
struct PlanAttempt<'a> {
    fleet: Fleet<'a>,
    missing: Vec<MissingSnapshot>,
    exceeded: Option<Exceeded>,
    plan: Option<Plan>,
}

/// The comparison of the outputs beside the rendered tree.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(crate) enum OutputCheck {
    /// They are compared with the wanted ones, regardless of where the tree is.
    Compared,
    /// They are not needed, so no template is filled in.
    Unasked,
}

impl CheckResult<'_> {
    /// Returns how much was checked, if there is a plan.
    pub(crate) fn checked(&self) -> Option<CheckedCounts> {
        let (fleet, plan) = self.planned.as_ref()?;
        Some(CheckedCounts::plan(fleet, plan))
    }

    /// Adds what only a person may want.
    pub(crate) fn add_losses(&mut self, losses: &[Loss], allowing: Allowing) {
        if let Some((fleet, plan)) = &self.planned {
            let planned = PlannedFleet { fleet, plan };
            rules::rendered::add_losses(&mut self.findings, losses, planned, allowing);
        }
    }
}

/// Plans the inputs and applies the rules with their levels. The rendered tree is looked at if something
/// becomes of it; what targets would lose altogether is left to [`CheckResult::add_losses`].
///
/// # Errors
/// A tree that cannot be read, or a plan that goes beyond what was declared: a mistake of this
/// program.
pub(crate) fn check(
    inputs: &Inputs,
    purpose: Purpose,
    fate: Option<Fate>,
    outputs: OutputCheck,
) -> anyhow::Result<CheckResult<'_>> {
    let PlanAttempt { fleet, missing, exceeded, plan } = PlanAttempt::make(inputs)?;
    let settings = &inputs.settings;
    if fate.is_some() {
        settings.check_rendered()?;
    }
    let mut mistakes = mistakes(inputs, &missing, exceeded.as_ref())?;
    let texts = plan.as_ref().map(manifest::texts).unwrap_or_default();
    let mirrors = plan.as_ref().map(|plan| mirrors(inputs, &fleet, plan));
    let mut rendered = plan
        .as_ref()
        .filter(|_| fate.is_some())
        .map(|plan| tree_comparison::compare(plan, &texts, settings))
        .transpose()?;
    if let (OutputCheck::Compared, Some(plan), Some(mirrors), Some(rendered)) =
        (outputs, &plan, &mirrors, &mut rendered)
    {
        mistakes.extend(rendered.compare_outputs((&fleet, plan, mirrors), &texts, settings));
    }
    let alone =
        (plan.is_none() && fate.is_some()).then(|| tree_comparison::alone(settings)).transpose()?;
    let on_disk = rendered.as_ref().map(|it| &it.on_disk).or(alone.as_ref());
    let tree = fate.zip(on_disk).map(|(fate, on_disk)| {
        let changes = rendered.as_ref().map(|it| &it.changes);
        CheckedTree { on_disk, changes, fate }
    });
    let planned = plan.as_ref().map(|plan| CheckedPlan { plan, texts: &texts });
    let findings = findings(inputs, purpose, &mistakes, (&fleet, planned), tree, mirrors.as_ref())?;
    Ok(CheckResult { findings, planned: plan.map(|plan| (fleet, plan)), rendered })
}

/// Returns what a render of a plan would report, which replaces a compared tree.
///
/// # Errors
/// As for [`check`].
pub(crate) fn of_render(
    inputs: &Inputs,
    planned: &RenderPlan,
    rendered: &TreeComparison,
) -> anyhow::Result<LevelledFindings> {
    let RenderPlan { fleet, plan, texts } = planned;
    let mistakes = mistakes(inputs, &[], None)?;
    let mirrors = mirrors(inputs, fleet, plan);
    let TreeComparison { on_disk, changes, .. } = rendered;
    let tree = CheckedTree { on_disk, changes: Some(changes), fate: Fate::Replaced };
    let planned = (fleet, Some(CheckedPlan { plan, texts }));
    findings(inputs, Purpose::Render, &mistakes, planned, Some(tree), Some(&mirrors))
}

fn findings(
    inputs: &Inputs,
    purpose: Purpose,
    mistakes: &[Finding],
    (fleet, planned): (&Fleet, Option<CheckedPlan>),
    tree: Option<CheckedTree>,
    mirrors: Option<&Mirrors>,
) -> anyhow::Result<LevelledFindings> {
    let settings = &inputs.settings;
    if let Some(tree) = &tree {
        tree_comparison::show(tree.on_disk, &inputs.files, settings);
    }
    let checked = rules::CheckInputs {
        mistakes,
        meshes: &inputs.meshes,
        config: &settings.config.content,
        fleet,
        planned,
        tree,
        mirrors,
        guards: &guard_files::read(inputs)?,
    };
    Ok(rules::check(&checked, settings.standard(purpose)))
}

/// Returns the plan that `render` would write, for a result without Services of other clusters.
///
/// # Errors
/// A finding that stops a render of Peers.
pub(crate) fn right(inputs: &Inputs) -> CommandResult<(Fleet<'_>, Plan)> {
    let checked = check(inputs, Purpose::Render, None, OutputCheck::Unasked)?;
    let findings = checked.findings.iter().filter(|it| !holds_back_services(it));
    let is_wrong = FailOn::default().threshold().fails(findings);
    let planned = checked.planned.filter(|_| !is_wrong);
    planned.ok_or_else(|| inputs.refusal(checked.findings))
}

/// Returns the Services that clusters get of others.
pub(crate) fn mirrors<'a>(inputs: &'a Inputs, fleet: &Fleet, plan: &Plan) -> Mirrors<'a> {
    Mirrors::new(&inputs.meshes, fleet, plan, &inputs.services)
}

/// Plans the inputs, and looks for no problems; none if a mistake prevents it, which [`check`] reports.
///
/// # Errors
/// A plan that goes beyond what was declared: a mistake of this program.
pub(crate) fn plan(inputs: &Inputs) -> anyhow::Result<Option<RenderPlan<'_>>> {
    let PlanAttempt { fleet, plan, .. } = PlanAttempt::make(inputs)?;
    Ok(plan.map(|plan| RenderPlan { texts: manifest::texts(&plan), fleet, plan }))
}

/// Returns the same as [`plan`].
///
/// # Errors
/// As for [`plan`], or the mistakes that prevent one.
pub(crate) fn plan_or_refusal(inputs: &Inputs) -> CommandResult<RenderPlan<'_>> {
    if let Some(planned) = plan(inputs)? {
        return Ok(planned);
    }
    let checked = check(inputs, Purpose::Render, None, OutputCheck::Unasked)?;
    Err(inputs.refusal(checked.findings))
}

impl<'a> PlanAttempt<'a> {
    fn make(inputs: &'a Inputs) -> anyhow::Result<Self> {
        let (fleet, missing) = fleet(inputs);
        let exceeded = inputs.settings.ceilings.exceeded(Counted::Peers, fleet.peers());
        let is_whole = inputs.is_whole && missing.is_empty() && exceeded.is_none();
        let plan = is_whole.then(|| plan::plan(&fleet)).transpose()?;
        Ok(Self { fleet, missing, exceeded, plan })
    }
}

/// Returns the clusters of all meshes that have a snapshot, and those that have none.
pub(crate) fn fleet(inputs: &Inputs) -> (Fleet<'_>, Vec<MissingSnapshot>) {
    let (unread, missing) = UnreadMember::all(&inputs.meshes, &inputs.snapshots);
    let members = unread.into_par_iter().map(UnreadMember::member);
    (Fleet::assemble(&inputs.meshes, members.collect()), missing)
}

/// Returns the clusters that have a snapshot, beside another version of the fleet, with which they share
/// what both know alike.
pub(crate) fn fleet_beside<'a>(inputs: &'a Inputs, other: &Fleet<'a>) -> Fleet<'a> {
    let (unread, _) = UnreadMember::all(&inputs.meshes, &inputs.snapshots);
    let members = unread.into_par_iter().map(|it| it.member_beside(other));
    Fleet::assemble(&inputs.meshes, members.collect())
}

/// Returns the clusters of all meshes that need a snapshot and have none.
pub(crate) fn missing(inputs: &Inputs) -> Vec<MissingSnapshot> {
    UnreadMember::all(&inputs.meshes, &inputs.snapshots).1
}

/// Returns findings about missing snapshots. Those that no other file explains are one.
pub(crate) fn missing_snapshots(inputs: &Inputs, missing: &[MissingSnapshot]) -> Vec<Finding> {
    let unread = missing.iter().filter(|missing| {
        // A file that is there and wrong is not missing.
        let mut findings = inputs.findings.iter();
        !findings.any(|it| it.cluster.as_deref() == Some(missing.cluster.as_str()))
    });
    let head = (!missing.is_empty()).then(|| inputs.settings.head()).flatten();
    let folder = &inputs.settings.snapshots.value;
    let path = |it: &MissingSnapshot| folder.join(format!("{}.json", it.cluster));
    let is_committed = |it: &MissingSnapshot| {
        head.as_ref().is_some_and(|head| disk::is_file(head, &path(it)).unwrap_or(false))
    };
    let strays = &inputs.strays;
    let (mut apart, named): (Vec<&MissingSnapshot>, Vec<&MissingSnapshot>) =
        unread.partition(|it| strays.misnamed.contains_key(it.cluster.as_str()));
    let (committed, new): (Vec<_>, Vec<_>) = named.into_iter().partition(|it| is_committed(it));
    let (renamed, new): (Vec<_>, Vec<_>) =
        new.into_iter().partition(|_| !strays.unnamed.is_empty());
    apart.extend(renamed);
    let mut together = Vec::new();
    for (missing, is_committed) in [(committed, true), (new, false)] {
        if missing.len() < 2 {
            apart.extend(missing);
            continue;
        }
        let roots = inputs.settings.roots_of(&inputs.settings.snapshots);
        let is_there = disk::is_there(&roots, folder).unwrap_or(true);
        // No other file of the folder may have changes that are not in a commit.
        let files: Vec<String> = match inputs.snapshots.len() {
            0 => vec![input_file::name(folder)],
            _ => missing.iter().map(|it| input_file::name(&path(it))).collect(),
        };
        let lost = is_committed.then_some(&files[..]);
        let folder = input_file::name(folder);
        together.push(rules::mesh::missing_snapshots(&missing, &folder, is_there, lost));
    }
    let apart = apart.into_iter().map(|it| {
        rules::mesh::missing_snapshot(it, &input_file::name(&path(it)), strays, is_committed(it))
    });
    together.into_iter().chain(apart).collect()
}

/// Returns what is wrong with the files in themselves, which are missing, and whether there are too many.
fn mistakes(
    inputs: &Inputs,
    missing: &[MissingSnapshot],
    exceeded: Option<&Exceeded>,
) -> anyhow::Result<Vec<Finding>> {
    let mut mistakes = inputs.findings.clone();
    mistakes.extend(exceeded.map(rules::mesh::beyond_ceiling));
    mistakes.extend(missing_snapshots(inputs, missing));
    mistakes.extend(tree_comparison::overrides_above(&inputs.settings)?);
    if inputs.is_whole {
        let config = &inputs.settings.config;
        mistakes.extend(config.unnamed(&inputs.meshes));
    }
    if inputs.is_whole && inputs.meshes.is_empty() {
        let files: Vec<String> =
            inputs.settings.mesh_files()?.iter().map(|file| input_file::name(&file.path)).collect();
        let rendered = &inputs.settings.rendered;
        let has_peers = disk::is_there(&inputs.settings.roots_of(rendered), &rendered.value)?;
        let has_documents = mistakes.iter().any(rules::mesh::is_skipped_document);
        let committed = files.iter().filter(|it| inputs.settings.is_committed(Path::new(it)));
        let committed: Vec<String> = committed.cloned().collect();
        mistakes.push(rules::mesh::no_mesh(&files, has_peers, has_documents, &committed));
    }
    Ok(mistakes)
}
