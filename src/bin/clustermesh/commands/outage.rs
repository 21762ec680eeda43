//! `clustermesh outage`

use std::mem::ManuallyDrop;
use std::sync::Arc;

use anyhow::anyhow;
use clap::builder::NonEmptyStringValueParser;
use clustermesh::diagnostic::Severity;
use clustermesh::fleet::{Fleet, SnapshotFile};
use clustermesh::guard::{GuardRefusal, NewSnapshot, decide};
use clustermesh::outage::{
    FleetPart, LostNodes, LostPaths, OutageProof, OutageReport, SelectionError,
};
use clustermesh::results::outage::{LossProof, NextRender, PartsLoss, TriedLosses};
use clustermesh::rules::{rendered, snapshots};
use clustermesh::{manifest, plan};

use crate::cluster_peers::{self, ClusterPeers, Dumps, Gathered, KnownContents, basis};
use crate::failure::CommandResult;
use crate::inputs::Inputs;
use crate::output::{Printer, TableFormat};
use crate::proving::{self, WantedPeers};
use crate::settings::FileOptions;
use crate::threshold::Threshold;
use crate::{allowed_losses, checked_plan, tree_comparison};

/// List the failures that break paths between other nodes
///
/// A Peer leads to one node. If this node fails, paths between other nodes can break too, until the next render.
/// Without PART, `outage` tries the loss of every single node, location and cluster, and lists those that break
/// declared paths between the remaining nodes, the worst first. With PART, it prints which of these paths break
/// without the named parts, what the next render restores, and whether a loss limit stops it. Sends nothing and
/// writes nothing.
///
/// Losses and paths that do not work today do not change the exit code. Errors in files do, because they make the
/// result incomplete. To require that paths survive, write `survives` into an expectation of `verify`.
#[derive(clap::Args)]
#[command(after_help = EXAMPLES)]
pub(crate) struct OutageArgs {
    /// Parts to lose together [default: each part alone]
    ///
    /// A part is a cluster, a node (`CLUSTER/NODE`), a location (`CLUSTER:LOCATION`), or all nodes with an address in
    /// a range. Its nodes, agents and links are gone.
    #[arg(value_name = "PART", value_parser = NonEmptyStringValueParser::new())]
    parts: Vec<String>,

    /// Output format
    #[arg(short, long, value_name = "FORMAT", default_value = "human")]
    pub(crate) output: TableFormat,

    #[command(flatten)]
    dumps: Dumps,
}

const EXAMPLES: &str = "\
Examples:
  clustermesh outage
  clustermesh outage west/worker-1
  clustermesh outage east:zone-a 10.30.4.0/24
  clustermesh outage --output json | jq -r '.single.harmful[].part'";

pub(crate) fn run(args: &OutageArgs, files: &FileOptions, printer: &mut Printer) -> CommandResult {
    let Gathered { mut inputs, grave } = cluster_peers::gather(files)?;
    let mut named = args.parts.iter().filter_map(|it| it.split('/').next());
    if let Some(failure) = named.find_map(|it| inputs.broken_entry(it)) {
        return Err(failure);
    }
    let applied = ManuallyDrop::new(cluster_peers::read(&mut inputs, Some(&args.dumps))?);
    // The process ends after this, and to free the nodes of a large fleet takes a twentieth of a run.
    let inputs = ManuallyDrop::new(inputs);
    let wanted = ManuallyDrop::new(WantedPeers::plan(&inputs, &args.dumps, &applied, None)?);
    let fabric = applied.fabric_of(&inputs, Some(&wanted.fleet), None);
    let fabric = ManuallyDrop::new(wanted.delivered(fabric));
    let progress = printer.progress(format!("Losing parts of {} clusters", fabric.sites.len()));
    let ceilings = inputs.settings.ceilings;
    let reach = proving::look(&fabric, ceilings)?;
    let verification = proving::verified(&reach, inputs.asked(), || wanted.excused());
    let proof = OutageProof::new(&reach, inputs.asked(), ceilings.most_steps());
    let tried = if args.parts.is_empty() {
        TriedLosses::Single(proof.survey())
    } else {
        TriedLosses::Together(lose(&args.parts, &inputs, &proof)?)
    };
    drop(progress);
    let missing = checked_plan::missing(&inputs);
    let outdated = wanted.outdated.iter().map(|it| it.finding.clone());
    let found = outdated.chain(grave).chain(applied.findings.clone());
    let found = found.chain(checked_plan::missing_snapshots(&inputs, &missing));
    let findings = inputs.settings.in_force(found.collect());
    printer.findings(&inputs.files, &findings);
    let basis = basis(&inputs, &args.dumps);
    let total = verification.total();
    printer.finish(&LossProof { basis, fabric: &fabric, total, tried: &tried }, args.output)?;
    Ok(Threshold(Severity::Error).outcome(&findings))
}

/// Loses the named parts together.
fn lose(texts: &[String], inputs: &Inputs, proof: &OutageProof) -> anyhow::Result<PartsLoss> {
    let select = |text: &String| {
        let part = FleetPart::select(text, proof.fabric());
        part.map_err(|error| match error {
            SelectionError::Cluster(name) => anyhow!(allowed_losses::without_site(inputs, &name)),
            error => error.into(),
        })
    };
    let parts: Vec<FleetPart> = texts.iter().map(select).collect::<anyhow::Result<_>>()?;
    let mut lost = LostNodes::default();
    for part in &parts {
        lost.extend(part.nodes(proof.fabric()).nodes());
    }
    let report = proof.report(&lost);
    let next_render = match &report {
        Ok(report) if !report.ended.is_empty() => next_render(inputs, proof, &lost, report)?,
        _ => None,
    };
    Ok(PartsLoss { parts, report, next_render })
}

/// Renders the Peers of the clusters as they are during an outage; none if there is no plan, or if it is not known
/// what the snapshots would be.
fn next_render(
    inputs: &Inputs,
    proof: &OutageProof,
    lost: &LostNodes,
    report: &OutageReport,
) -> anyhow::Result<Option<NextRender>> {
    let Ok(changed) = proof.next_snapshots(lost) else {
        return Ok(None);
    };
    let limits = &inputs.settings.config.content.limits;
    let mut refusals = Vec::new();
    let mut all = inputs.snapshots.clone();
    for (cluster, snapshot) in changed {
        let Some(file) = all.get_mut(&cluster) else {
            continue;
        };
        let decision = decide(
            NewSnapshot {
                old: Some(&file.snapshot),
                new: &snapshot,
                memberships: &inputs.memberships(&cluster),
            },
            limits,
        );
        refusals.extend(snapshots::refusals(&cluster, &decision.refusals, None));
        // Without nodes, the old snapshot is kept.
        if !decision.refusals.iter().any(|it| matches!(it, GuardRefusal::Empty)) {
            *file = SnapshotFile { snapshot: Arc::new(snapshot), source: Arc::clone(&file.source) };
        }
    }
    let Some(fleet) = Fleet::new(&inputs.meshes, &all).ok().filter(|_| inputs.is_whole) else {
        return Ok(None);
    };
    let plan = plan::plan(&fleet)?;
    let texts = manifest::texts(&plan);
    let compared = tree_comparison::compare(&plan, &texts, &inputs.settings)?;
    let losses = compared.changes.losses.iter();
    let mut rules: Vec<&'static str> = refusals.iter().map(|it| it.rule.name()).collect();
    rules.extend(losses.map(|it| rendered::rule_of(it).name()));
    rules.sort_unstable();
    rules.dedup();
    let applied = ClusterPeers::planned(&inputs.settings, &plan, &texts, &KnownContents::default());
    let still = proof.still_ended(&report.ended, lost, |cluster| applied.files(cluster));
    let ended = report.ended.iter().map(LostPaths::count).sum::<u64>();
    Ok(Some(NextRender { restored: still.map(|still| ended.saturating_sub(still)), guards: rules }))
}
