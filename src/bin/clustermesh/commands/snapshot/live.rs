//! Live clusters: all are read in parallel, and each snapshot is kept as it arrives.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt::Write as _;

use anyhow::{bail, ensure};
use clustermesh::document::nearest;
use clustermesh::mesh::{Mesh, State};
use clustermesh::name::ClusterName;
use clustermesh::rules::clusters::UNREADABLE;
use clustermesh::text;

use super::keep::Keeper;
use super::kept::KeptSnapshot;
use super::{SnapshotArgs, check_named, report_config, services, wait};
use crate::Outcome;
use crate::allowed_losses::unknown_cluster;
use crate::cluster::{self, Arrival, TimeLimits, Wanted, useless};
use crate::output::Printer;
use crate::reach::Addressed;
use crate::settings::{ClusterAccess, Settings};

/// Asks clusters, and keeps what they answer.
pub(super) fn run(
    args: &SnapshotArgs,
    settings: &Settings,
    meshes: &[Mesh],
    printer: &mut Printer,
) -> anyhow::Result<Outcome> {
    let config = &settings.config;
    let unnamed = config.unnamed(meshes);
    let mut outcome = report_config(args, settings, unnamed, printer);
    let mut clusters = clusters(args, settings, meshes)?;
    let wanted = wanted(args, meshes, &mut clusters)?;
    if clusters.is_empty() && args.handling.services {
        printer.note(&format!("{}, so there is nothing to save", services::NONE));
        return Ok(outcome);
    }
    check_named(args, &clusters)?;
    check_secrets(args, &clusters, settings, meshes)?;
    let addressed = Addressed { read: &clusters, nameable: &clusters };
    let mut contact = args.reach.contact(addressed, settings, meshes)?;
    wait::until_changed(args, settings, meshes, &clusters, &mut contact, printer)?;
    let (routes, lost) = contact.routes(&clusters);
    let keeper = Keeper::new(&args.handling, settings, meshes).swept()?;
    let asked: BTreeSet<ClusterName> = routes.keys().cloned().collect();
    outcome = outcome.max(keeper.report(keeper.keep_old(&lost), printer)?);
    // At a terminal, results are printed as they arrive; elsewhere in a fixed order, so that two
    // runs print the same.
    let progress = printer.progress(waiting(&asked, asked.len()));
    let (all, mut left) = (asked.len(), asked.clone());
    let mut queue = Queue::new(asked, !printer.is_terminal());
    let mut failure = None;
    let mut answered = 0_usize;
    let limits = TimeLimits { answer: args.reach.patience(), total: None };
    cluster::ask(routes, wanted, limits, |arrival| {
        answered += usize::from(arrival.answer.is_ok());
        let cluster = arrival.cluster.clone();
        left.remove(&cluster);
        queue.arrived(cluster, kept(&keeper, arrival, printer.is_terminal()));
        let print = || {
            while let Some(kept) = queue.next() {
                match keeper.report(kept, printer) {
                    Ok(other) => outcome = outcome.max(other),
                    Err(error) => failure = Some(error),
                }
            }
        };
        progress.aside(print, || waiting(&left, all));
    })?;
    drop(progress);
    match failure {
        Some(error) => Err(error),
        // A job that runs on without any answer would never notice that its login has expired.
        None if answered == 0 && args.handling.keep_going => {
            bail!("no cluster could be read, so all snapshots are old")
        }
        None => Ok(outcome.max(keeper.report_twins(&clusters, printer))),
    }
}

/// Returns the line that is shown while clusters are read.
fn waiting(left: &BTreeSet<ClusterName>, all: usize) -> String {
    format!("Waiting for {} of {all} clusters: {}", left.len(), text::list(left))
}

/// Returns what clusters are asked for, and keeps only those that have to be asked.
fn wanted(
    args: &SnapshotArgs,
    meshes: &[Mesh],
    clusters: &mut BTreeSet<&ClusterName>,
) -> anyhow::Result<Wanted> {
    if !args.handling.services {
        return Ok(Wanted::Nodes);
    }
    for cluster in &args.clusters {
        services::named(meshes, cluster)?;
    }
    let names = services::all_named(meshes, clusters);
    // A job saves the Services of the meshes that it finds.
    ensure!(!names.is_empty() || args.handling.keep_going, services::NONE);
    clusters.retain(|it| names.contains_key(*it));
    Ok(Wanted::Services(names))
}

/// A flag for Secrets that no mesh names is a mistake, and would not do what it was meant for.
fn check_secrets(
    args: &SnapshotArgs,
    clusters: &BTreeSet<&ClusterName>,
    settings: &Settings,
    meshes: &[Mesh],
) -> anyhow::Result<()> {
    let is_configured =
        |it: &&ClusterName| matches!(settings.access(it), ClusterAccess::Secret { .. });
    let has_any = clusters.iter().any(is_configured)
        || meshes.iter().flat_map(|mesh| &mesh.entries).any(|entry| {
            clusters.contains(&entry.name) && (entry.local || entry.kubeconfig.is_some())
        });
    if args.reach.secrets_from.is_some() && !has_any {
        bail!(
            "--secrets-from has nothing to read: no mesh sets `kubeconfigSecretRef` (`{{ name: …, \
             key: … }}`), and no config sets `kubeconfigSecret`, for these clusters"
        );
    }
    Ok(())
}

/// Returns the clusters that were asked for, else all that a mesh names, except those that only leave:
/// their nodes no longer matter, and they may be gone.
fn clusters<'a>(
    args: &'a SnapshotArgs,
    settings: &'a Settings,
    meshes: &'a [Mesh],
) -> anyhow::Result<BTreeSet<&'a ClusterName>> {
    let entries = || meshes.iter().flat_map(|mesh| &mesh.entries);
    let named: BTreeSet<&ClusterName> = entries().map(|entry| &entry.name).collect();
    if args.clusters.is_empty() {
        let staying = entries().filter(|entry| entry.state != State::Leaving);
        let named: BTreeSet<&ClusterName> = staying.map(|entry| &entry.name).collect();
        if named.is_empty() {
            // Lists the files that were looked for.
            settings.mesh_files()?;
            bail!("the meshes contain no cluster; name the clusters to read");
        }
        return Ok(named);
    }
    let configured = settings.config.content.clusters.keys();
    let known: BTreeSet<&ClusterName> = named.into_iter().chain(configured).collect();
    if let Some(unknown) = args.clusters.iter().find(|it| !known.contains(it))
        && !known.is_empty()
    {
        let known = known.iter().map(|it| it.as_str());
        let is_misspelled = nearest(unknown.as_str(), known.clone()).is_some();
        let error = unknown_cluster(unknown.as_str(), known);
        if is_misspelled {
            return Err(error);
        }
        bail!("{error}; `clustermesh init --context CLUSTER=CONTEXT` adds a cluster");
    }
    Ok(args.clusters.iter().collect())
}

/// Keeps the answer of a cluster, or reports why it has not answered.
fn kept(keeper: &Keeper, arrival: Arrival, is_terminal: bool) -> KeptSnapshot {
    let Arrival { cluster, answer, took } = arrival;
    let answer = match answer {
        Ok(answer) => answer,
        Err(fault) => return keeper.keep_old(&[(cluster, fault)]),
    };
    let findings = answer.findings(&cluster);
    let kept = if keeper.handling.services {
        Ok(keeper.keep_services(&cluster, answer.services))
    } else {
        keeper.keep(&cluster, answer.listing, Some(answer.listed_at))
    };
    let mut kept = match kept {
        Ok(kept) => kept,
        Err(error) => {
            let problem = answer.hidden.hide(&error.to_string());
            return keeper.keep_old(&[(cluster, useless(&UNREADABLE, &problem))]);
        }
    };
    kept.findings.extend(findings);
    if let Some(line) = kept.line.as_mut().filter(|_| is_terminal && 0 < answer.pages) {
        let pages = text::count(answer.pages, "page");
        let _ = write!(line, " ({pages}, {:.1} s)", took.as_secs_f64());
    }
    kept
}

/// Reports on their way to the output.
struct Queue {
    waiting: BTreeMap<ClusterName, KeptSnapshot>,
    /// The next one to report, if they are reported in order.
    order: Option<BTreeSet<ClusterName>>,
}

impl Queue {
    fn new(clusters: BTreeSet<ClusterName>, is_ordered: bool) -> Self {
        Self { waiting: BTreeMap::new(), order: is_ordered.then_some(clusters) }
    }

    fn arrived(&mut self, cluster: ClusterName, kept: KeptSnapshot) {
        self.waiting.insert(cluster, kept);
    }

    /// Returns the reports that can be printed now.
    fn next(&mut self) -> Option<KeptSnapshot> {
        let Some(order) = &mut self.order else {
            return self.waiting.pop_first().map(|(_, kept)| kept);
        };
        let kept = self.waiting.remove(order.first()?)?;
        order.pop_first();
        Some(kept)
    }
}
