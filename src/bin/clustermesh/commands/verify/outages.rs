//! Outages that a verification tries: parts that people name, and every single part.

use std::sync::Arc;

use anyhow::anyhow;
use clustermesh::fleet::{Fleet, SnapshotFile};
use clustermesh::guard::{GuardRefusal, NewSnapshot, decide};
use clustermesh::outage::{
    FleetPart, LostNodes, LostPaths, OutageProof, OutageReport, SelectionError,
};
use clustermesh::proof::reach::Reach;
use clustermesh::rules::{rendered, snapshots};
use clustermesh::{manifest, plan};

use super::hostile::unknown;
use crate::applied_files::{AppliedFiles, KnownContents};
use crate::inputs::Inputs;
use crate::output::{NextRender, ProvedOutage, ProvedOutages};
use crate::tree_comparison;

/// The parts that are lost.
#[derive(clap::Args)]
pub(super) struct OutageOptions {
    /// List declared paths of other nodes that break if this part fails; repeatable
    ///
    /// A part is a cluster, a node (`CLUSTER/NODE`), a location (`CLUSTER:LOCATION`), or all nodes with an address in
    /// a range. Its nodes, agents and links are gone, and the Peers are those of the last render. Also prints what the
    /// next render restores, and whether a loss limit stops it. Does not change the exit code.
    #[arg(long, value_name = "PART")]
    without: Vec<String>,

    /// List nodes, locations and clusters whose loss breaks declared paths of others
    ///
    /// Tries each of them alone, and lists the worst first. Does not change the exit code: to require that paths survive,
    /// write `survives` into an expectation.
    #[arg(long, value_name = "NUMBER", value_parser = clap::value_parser!(u8).range(1..=1))]
    survive: Option<u8>,
}

impl OutageOptions {
    /// Tries what is asked about.
    ///
    /// # Errors
    /// A part that does not exist, or a tree that cannot be read.
    pub(super) fn prove(&self, inputs: &Inputs, reach: &Reach) -> anyhow::Result<ProvedOutages> {
        let mut proved = ProvedOutages::default();
        let is_named = !self.without.is_empty();
        if !is_named && self.survive.is_none() {
            return Ok(proved);
        }
        let most = inputs.settings.ceilings.most_steps();
        let proof = OutageProof::new(reach, inputs.asked(), most);
        if is_named {
            proved.named = Some(self.named(inputs, &proof)?);
        }
        proved.survey = self.survive.map(|_| proof.survey());
        Ok(proved)
    }

    /// Tries the parts that are named, together.
    fn named(&self, inputs: &Inputs, proof: &OutageProof) -> anyhow::Result<ProvedOutage> {
        let select = |text: &String| {
            let part = FleetPart::select(text, proof.fabric());
            part.map_err(|error| match error {
                SelectionError::Cluster(name) => anyhow!("--without: {}", unknown(inputs, &name)),
                error => anyhow!("--without: {error}"),
            })
        };
        let parts = self.without.iter().map(select);
        let parts = parts.collect::<anyhow::Result<Vec<FleetPart>>>()?;
        let mut lost = LostNodes::default();
        for part in &parts {
            lost.extend(part.nodes(proof.fabric()).nodes());
        }
        let report = proof.report(&lost);
        let next_render = match &report {
            Ok(report) if !report.ended.is_empty() => next_render(inputs, proof, &lost, report)?,
            _ => None,
        };
        Ok(ProvedOutage {
            parts,
            report,
            next_render,
        })
    }
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
        if !decision
            .refusals
            .iter()
            .any(|it| matches!(it, GuardRefusal::Empty))
        {
            *file = SnapshotFile {
                snapshot: Arc::new(snapshot),
                source: Arc::clone(&file.source),
            };
        }
    }
    let Some(fleet) = Fleet::new(&inputs.meshes, &all)
        .ok()
        .filter(|_| inputs.is_whole)
    else {
        return Ok(None);
    };
    let fleet = fleet.accepting(&inputs.settings.config.content.accepted);
    let plan = plan::plan(&fleet)?;
    let texts = manifest::texts(&plan);
    let compared = tree_comparison::compare(&plan, &texts, &inputs.settings)?;
    let losses = compared.changes.losses.iter();
    let mut rules: Vec<&'static str> = refusals.iter().map(|it| it.rule.name()).collect();
    rules.extend(losses.map(|it| rendered::rule_of(it).name()));
    rules.sort_unstable();
    rules.dedup();
    let applied = AppliedFiles::planned(&inputs.settings, &plan, &texts, &KnownContents::default());
    let still = proof.still_ended(&report.ended, lost, |cluster| applied.files(cluster));
    let ended = report.ended.iter().map(LostPaths::count).sum::<u64>();
    Ok(Some(NextRender {
        restored: still.map(|still| ended.saturating_sub(still)),
        guards: rules,
    }))
}
