//! The list of clusters whose new snapshots cause errors: a job that refreshes snapshots keeps their old ones.

use std::collections::{BTreeMap, BTreeSet};
use std::mem;
use std::sync::Arc;

use anyhow::anyhow;
use clustermesh::diagnostic::Severity;
use clustermesh::expectations::Expectations;
use clustermesh::fleet::SnapshotFile;
use clustermesh::mirror::Mirrors;
use clustermesh::name::ClusterName;
use clustermesh::rules::gitops::Fate;
use clustermesh::rules::rendered::{Allowing, PlannedFleet};
use clustermesh::rules::verified::{self, InputGaps};
use clustermesh::rules::{self, Finding, LevelledFindings, Purpose, Rule};
use clustermesh::text;

use super::{VerifyArgs, expectations, of_plan};
use crate::Outcome;
use crate::checked_plan::{self, CheckResult, OutputCheck};
use crate::disk::Revision;
use crate::failure::{CommandFailure, CommandResult};
use crate::inputs::{self, Inputs};
use crate::output::Printer;
use crate::settings::{FileOptions, NoMesh};
use crate::threshold::Threshold;

/// An error without its values, which change with the nodes: its rule and its cluster.
type ErrorKind = (&'static Rule, Option<String>);

/// The errors of some snapshots, one of each kind.
type Errors = BTreeMap<ErrorKind, LevelledFindings>;

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
    /// Whether others were admitted after one of them was held.
    are_others_admitted: bool,
}

/// Returns the clusters that errors name.
fn named(errors: &Errors) -> BTreeSet<&str> {
    errors.keys().filter_map(|(_, cluster)| cluster.as_deref()).collect()
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
        printer.note(&format!("the new snapshot of {cluster} would cause {problems}:"));
        // The mesh keeps the old snapshot, and with it none of these errors.
        let findings: LevelledFindings = errors.values().cloned().collect();
        let findings = findings.map(|it| Finding { severity: Severity::Warning, ..it });
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
        are_others_admitted: false,
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
        refresh.are_others_admitted = false;
        refresh.admit(&clusters)?;
        if !refresh.are_others_admitted {
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
    /// Admits the snapshots of clusters if these cause no new error together. Otherwise it tries those that no error
    /// names before the others, and each half if that does not divide them.
    fn admit(&mut self, clusters: &[ClusterName]) -> CommandResult<()> {
        if clusters.is_empty() {
            return Ok(());
        }
        let errors = self.new_errors(clusters)?;
        if errors.is_empty() {
            self.swap(clusters);
            self.are_others_admitted = !self.held.is_empty();
            return Ok(());
        }
        let named = named(&errors);
        let is_named = |it: &ClusterName| named.contains(it.as_str());
        let (named, rest): (Vec<_>, Vec<_>) = clusters.iter().cloned().partition(is_named);
        match clusters {
            [cluster] => {
                self.held.insert(cluster.clone(), errors);
                Ok(())
            }
            _ if rest.is_empty() => {
                let waiting = self.hold_causes(&named, &errors)?;
                if waiting.len() == clusters.len() {
                    self.admit_halves(clusters)
                } else {
                    self.admit(&waiting)
                }
            }
            _ if named.is_empty() => self.admit_halves(clusters),
            _ => {
                self.admit(&rest)?;
                self.admit(&named)
            }
        }
    }

    fn admit_halves(&mut self, clusters: &[ClusterName]) -> CommandResult<()> {
        let (first, rest) = clusters.split_at(clusters.len() / 2);
        self.admit(first)?;
        self.admit(rest)
    }

    /// Holds the snapshots of clusters that cause the errors that name them, and returns the other clusters.
    ///
    /// One by one, many hostile clusters would take as many proofs of the whole. The numbers of any two clusters differ
    /// in a bit, so of all groups of clusters with the same bit, one has the first cluster and not the second: a
    /// snapshot is the cause if errors name its cluster in all groups that have it, and in no other.
    fn hold_causes(
        &mut self,
        clusters: &[ClusterName],
        of_all: &Errors,
    ) -> CommandResult<Vec<ClusterName>> {
        let mut causes: BTreeSet<&ClusterName> = clusters.iter().collect();
        let bits = usize::BITS - clusters.len().saturating_sub(1).leading_zeros();
        for (bit, value) in (0..bits).flat_map(|bit| [(bit, 0), (bit, 1)]) {
            let numbered = clusters.iter().enumerate();
            let group: Vec<ClusterName> = numbered
                .filter(|(number, _)| number >> bit & 1 == value)
                .map(|(_, it)| it.clone())
                .collect();
            let errors = self.new_errors(&group)?;
            let named = named(&errors);
            causes.retain(|it| named.contains(it.as_str()) == group.contains(it));
        }
        for &cluster in &causes {
            let own = of_all.iter().filter(|(kind, _)| kind.1.as_deref() == Some(cluster.as_str()));
            let own = own.map(|(kind, finding)| (kind.clone(), finding.clone())).collect();
            self.held.insert(cluster.clone(), own);
        }
        let waiting = clusters.iter().filter(|it| !causes.contains(it));
        Ok(waiting.cloned().collect())
    }

    /// Returns the errors that the new snapshots of clusters would add to those that were admitted.
    fn new_errors(&mut self, clusters: &[ClusterName]) -> CommandResult<Errors> {
        self.swap(clusters);
        let errors = self.errors();
        self.swap(clusters);
        let mut errors = errors?;
        errors.retain(|kind, _| !self.known.contains(kind));
        Ok(errors)
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
        let mut errors = LevelledFindings::from_iter([checked.findings, proved]);
        errors.retain(|it| self.threshold.fails([it]));
        // The places are in files that are not there, or that have another version.
        let errors = errors.map(|it| Finding { labels: Vec::new(), ..it });
        let kind = |it: &Finding| (it.rule, it.cluster.clone());
        let by_kind = errors.split().filter_map(|it| Some((kind(it.first()?), it)));
        Ok(by_kind.collect())
    }

    /// Returns what `verify` would find in the Peers of a plan.
    fn proved(&self, checked: &CheckResult) -> CommandResult<Vec<Finding>> {
        let Some((fleet, plan)) = &checked.planned else {
            return Ok(Vec::new());
        };
        let config = &self.inputs.settings.config.content;
        let gaps = InputGaps {
            mistakes: &[],
            broken: &BTreeSet::new(),
            missing: &[],
            are_silenced: verified::silenced(fleet, Some(plan)),
            planned: Some(PlannedFleet { fleet, plan }),
            config,
        };
        let mut findings = rules::of_nodes(fleet, Some(plan), config);
        findings.extend(of_plan(&self.inputs, &self.expectations, gaps, &Mirrors::default(), &[])?);
        Ok(findings)
    }
}
