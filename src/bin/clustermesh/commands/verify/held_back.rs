//! The list of clusters whose new snapshots cause errors: a job that refreshes snapshots keeps their old ones.

use std::collections::{BTreeMap, BTreeSet};
use std::mem;
use std::sync::Arc;

use anyhow::anyhow;
use clustermesh::expectations::Expectations;
use clustermesh::fleet::SnapshotFile;
use clustermesh::name::ClusterName;
use clustermesh::rules::gitops::Fate;
use clustermesh::rules::rendered::{Allowing, PlannedFleet};
use clustermesh::rules::verified::{self, InputGaps};
use clustermesh::rules::{self, Finding, Purpose, Rule};
use clustermesh::{manifest, text};

use super::{Proof, ProofRequest, VerifyArgs, expectations};
use crate::Outcome;
use crate::checked_plan::{self, CheckResult, OutputCheck};
use crate::cluster_peers::{ClusterPeers, KnownContents};
use crate::disk::Revision;
use crate::failure::{CommandFailure, CommandResult};
use crate::inputs::{self, Inputs};
use crate::output::Printer;
use crate::proving::look_with;
use crate::settings::{FileOptions, NoMesh};
use crate::threshold::Threshold;

/// An error without its values, which change with the nodes: its rule and its cluster.
type ErrorKind = (&'static Rule, Option<String>);

/// The errors of some snapshots, one of each kind.
type Errors = BTreeMap<ErrorKind, Finding>;

/// A refresh of snapshots, of which those without new errors are admitted.
struct Refresh {
    /// All inputs of a render, with the snapshots that are admitted so far.
    inputs: Inputs,
    expectations: Expectations,
    threshold: Threshold,
    /// The other versions of the snapshots that were refreshed.
    others: BTreeMap<ClusterName, SnapshotFile>,
    /// The errors without any new snapshot.
    known: BTreeSet<ErrorKind>,
    /// The errors of the snapshots that are not admitted.
    held: BTreeMap<ClusterName, Errors>,
}

/// Lists the clusters, and reports why.
pub(super) fn list(
    args: &VerifyArgs,
    files: &FileOptions,
    revision: &str,
    inputs: Inputs,
    printer: &mut Printer,
) -> CommandResult {
    if args.dumps.are_any() {
        return Err(anyhow!("--held-back cannot be combined with --peers and --live").into());
    }
    let refresh = held(args, files, revision, inputs)?;
    for (cluster, errors) in &refresh.held {
        let problems = text::count(errors.len(), "error");
        printer.note(&format!("the new snapshot of {cluster} causes {problems}:"));
        let findings: Vec<Finding> = errors.values().cloned().collect();
        printer.findings(&refresh.inputs.files, &findings);
    }
    let lines = refresh.held.keys().map(|it| format!("{it}\n"));
    printer.print(&lines.collect::<String>())?;
    Ok(Outcome::Clean)
}

/// Finds the snapshots to hold back, compared with those of a commit.
fn held(
    args: &VerifyArgs,
    files: &FileOptions,
    revision: &str,
    mut inputs: Inputs,
) -> CommandResult<Refresh> {
    // A typing error is one also if there is nothing to hold back.
    let revision = Arc::new(Revision::open(revision)?);
    let (expectations, _) = expectations::read(&mut inputs, None)?;
    let mut refresh = Refresh {
        inputs,
        expectations,
        threshold: args.fail_on.threshold(),
        others: BTreeMap::new(),
        known: BTreeSet::new(),
        held: BTreeMap::new(),
    };
    if refresh.errors()?.is_empty() {
        return Ok(refresh);
    }
    refresh.others = refreshed(files, &revision, &refresh.inputs)?;
    let mut clusters: Vec<ClusterName> = refresh.others.keys().cloned().collect();
    refresh.swap(&clusters);
    refresh.known = refresh.errors()?.into_keys().collect();
    // A snapshot may need another one that is admitted after it.
    loop {
        refresh.held.clear();
        refresh.admit(&clusters)?;
        if refresh.held.is_empty() || refresh.held.len() == clusters.len() {
            return Ok(refresh);
        }
        clusters = refresh.held.keys().cloned().collect();
    }
}

/// Reads the snapshots of a commit that have another version now. Those of new clusters are not among them.
fn refreshed(
    files: &FileOptions,
    revision: &Arc<Revision>,
    now: &Inputs,
) -> CommandResult<BTreeMap<ClusterName, SnapshotFile>> {
    let gathered = inputs::gather(&files.at(revision));
    revision.check()?;
    let mut old = match gathered {
        Ok(inputs) => inputs.snapshots,
        Err(CommandFailure::Error(error)) if error.is::<NoMesh>() => BTreeMap::new(),
        Err(failure) => return Err(failure),
    };
    old.retain(|cluster, was| {
        let is = now.snapshots.get(cluster);
        is.is_some_and(|it| it.snapshot != was.snapshot)
    });
    Ok(old)
}

impl Refresh {
    /// Admits the snapshots of clusters if these cause no new error together, else those of each half.
    fn admit(&mut self, clusters: &[ClusterName]) -> CommandResult<()> {
        self.swap(clusters);
        let mut errors = self.errors()?;
        errors.retain(|kind, _| !self.known.contains(kind));
        if errors.is_empty() {
            return Ok(());
        }
        self.swap(clusters);
        match clusters {
            [] => Ok(()),
            [cluster] => {
                self.held.insert(cluster.clone(), errors);
                Ok(())
            }
            _ => {
                let (first, rest) = clusters.split_at(clusters.len() / 2);
                self.admit(first)?;
                self.admit(rest)
            }
        }
    }

    /// Exchanges both versions of the snapshots of clusters.
    fn swap(&mut self, clusters: &[ClusterName]) {
        for cluster in clusters {
            let other = self.others.get_mut(cluster);
            if let Some((one, other)) = self.inputs.snapshots.get_mut(cluster).zip(other) {
                mem::swap(one, other);
            }
        }
    }

    /// Returns the errors that the checks of a pull request would report after a render.
    fn errors(&self) -> CommandResult<Errors> {
        let inputs = &self.inputs;
        let fate = Some(Fate::Replaced);
        let mut checked =
            checked_plan::check(inputs, Purpose::Validate, fate, OutputCheck::Unasked)?;
        let losses = checked.rendered.iter();
        let losses: Vec<_> = losses.flat_map(|it| it.changes.losses.clone()).collect();
        checked.add_losses(&losses, Allowing::Write);
        let proved = inputs.settings.in_force(self.proved(&checked)?);
        let findings = checked.findings.into_iter().chain(proved);
        let errors = findings.filter(|it| self.threshold.fails([it]));
        let by_kind = errors.map(|finding| {
            let kind = (finding.rule, finding.cluster.clone());
            // The places are in files that are not there, or that have another version.
            let labels = Vec::new();
            (kind, Finding { labels, ..finding })
        });
        Ok(by_kind.collect())
    }

    /// Returns what `verify` would find in the Peers of a plan.
    fn proved(&self, checked: &CheckResult) -> CommandResult<Vec<Finding>> {
        let Some((fleet, plan)) = &checked.planned else {
            return Ok(Vec::new());
        };
        let settings = &self.inputs.settings;
        let texts = manifest::texts(plan);
        let known = KnownContents::default();
        let applied = ClusterPeers::planned(settings, plan, &texts, &known);
        let fabric = applied.fabric_of(&self.inputs, Some(fleet), None);
        let are_silenced = verified::silenced(fleet, Some(plan));
        let gaps = InputGaps {
            mistakes: &[],
            missing: &[],
            are_silenced,
            planned: Some(PlannedFleet { fleet, plan }),
            config: &settings.config.content,
        };
        let request = ProofRequest {
            asked: self.inputs.asked(),
            expectations: &self.expectations,
            gaps,
            most: settings.ceilings.most_steps(),
        };
        let reach = look_with(&fabric, &self.expectations, settings.ceilings)?;
        let proof = Proof::new(&reach, request, || rules::excused(fleet, plan));
        let mut findings = rules::of_nodes(fleet, Some(plan), &settings.config.content);
        findings.extend(proof.findings);
        Ok(findings)
    }
}
