//! `clustermesh snapshot`

use std::collections::BTreeSet;
use std::fmt::Display;
use std::io::Write;
use std::path::PathBuf;

use anyhow::bail;
use clap::ValueHint;
use clustermesh::diagnostic::{Quoted, Severity, escaped};
use clustermesh::mesh::Mesh;
use clustermesh::name::ClusterName;
use clustermesh::rules::{Finding, Purpose};
use clustermesh::snapshot::dump;

use self::keep::Keeper;
use crate::disk::Roots;
use crate::files::Files;
use crate::input::{self, Clusters};
use crate::output::Talk;
use crate::settings::{ConfigFile, Options, Settings};
use crate::threshold::Strict;
use crate::{Outcome, clock, disk};

mod keep;
#[cfg(feature = "snapshot")]
mod live;
#[cfg(feature = "snapshot")]
mod routes;

/// The largest dump that is read, in bytes: 25,000 nodes of 18 KB, with room.
const DUMP_LIMIT: u64 = 512 << 20;

/// Keep each cluster's nodes as JSON in git
///
/// Lists the nodes of every cluster that a mesh names, or of those given, and writes what a mesh
/// needs of them to `snapshots/CLUSTER.json`: names, labels, Kilo's annotations, pod CIDRs and
/// addresses. A cluster that cannot be read, or that seems to have lost its nodes, keeps its old
/// snapshot; the others are written.
#[derive(clap::Args)]
#[command(after_help = EXAMPLES)]
pub(crate) struct Args {
    /// The clusters, as the mesh calls them [default: all]
    #[arg(value_name = "CLUSTER", value_parser = cluster)]
    clusters: Vec<ClusterName>,

    /// Read a dump of one cluster's nodes, JSON or YAML, instead; `-` for standard input
    #[arg(long, value_name = "FILE", value_hint = ValueHint::FilePath)]
    from: Option<PathBuf>,

    /// Compare instead of writing; exits with 1 and a list if anything differs
    #[arg(long)]
    check: bool,

    /// Take a cluster that keeps its old snapshot for a warning, not for a failure
    #[arg(long)]
    keep_going: bool,

    /// Write a snapshot although it lost usable nodes, or has too many; repeatable
    #[arg(long, value_name = "CLUSTER", value_parser = cluster)]
    accept: Vec<ClusterName>,

    /// Let nodes lose what their Kilo agent wrote, as when Kilo is removed; repeatable
    #[arg(long, value_name = "CLUSTER", value_parser = cluster)]
    no_carry_over: Vec<ClusterName>,

    #[command(flatten)]
    strict: Strict,

    #[cfg(feature = "snapshot")]
    #[command(flatten)]
    reach: Reach,
}

/// How clusters are reached.
#[cfg(feature = "snapshot")]
#[derive(clap::Args)]
#[command(next_help_heading = "Reaching clusters")]
struct Reach {
    /// Kubeconfig with a context for each cluster [default: $KUBECONFIG, ~/.kube/config]
    #[arg(long, value_name = "FILE", conflicts_with = "from", value_hint = ValueHint::FilePath)]
    kubeconfig: Option<PathBuf>,

    /// Read the Secrets that the mesh refers to (`kubeconfigSecretRef`) from this context's cluster
    #[arg(long, value_name = "CONTEXT", conflicts_with = "from")]
    secrets_from: Option<String>,

    /// How many seconds an answer, or a login plugin, may take
    #[arg(
        long,
        value_name = "SECONDS",
        default_value_t = 60,
        value_parser = clap::value_parser!(u64).range(1..=3600),
        conflicts_with = "from"
    )]
    timeout: u64,
}

#[cfg(feature = "snapshot")]
const EXAMPLES: &str = "\
Examples:
  clustermesh snapshot                        all clusters, each by the context of its name
  clustermesh snapshot --check                has anything changed since?
  clustermesh snapshot east --accept east     east has really shrunk
  clustermesh snapshot --secrets-from hub     with the kubeconfigs of the ClusterMesh operator
  kubectl get nodes -o json | clustermesh snapshot east --from -";

#[cfg(not(feature = "snapshot"))]
const EXAMPLES: &str = "\
Examples:
  kubectl --context east get nodes -o json | clustermesh snapshot east --from -
  clustermesh snapshot west --from west-nodes.yaml --check

This build was made without a client for clusters: it needs --from.";

pub(crate) fn run(
    args: &Args,
    options: &Options,
    talk: &mut Talk,
    result: &mut impl Write,
) -> anyhow::Result<Outcome> {
    let settings = match options.settle() {
        Ok(settings) => settings,
        Err(unreadable) => return Ok(talk.unreadable(unreadable)),
    };
    let files = settings.mesh_files_if_any()?;
    let Clusters {
        meshes,
        sources,
        problems,
    } = match input::clusters(&files) {
        Ok(clusters) => clusters,
        Err(unreadable) => return Ok(talk.unreadable(unreadable)),
    };
    // They stop a render, but nodes can be listed.
    talk.findings(&Files::new(sources), &problems);
    let outcome = args.strict.threshold().outcome(&as_warnings(problems));
    #[cfg(feature = "snapshot")]
    let settings = settings.with_kubeconfig("--kubeconfig", args.reach.kubeconfig.as_ref());
    let kept = keep(args, &settings, &meshes, (talk, result))?;
    Ok(outcome.max(kept))
}

/// Returns findings as no graver than warnings.
fn as_warnings(mut findings: Vec<Finding>) -> Vec<Finding> {
    for finding in &mut findings {
        finding.severity = finding.severity.min(Severity::Warning);
    }
    findings
}

/// Keeps the nodes of live clusters, or those of a dump.
fn keep(
    args: &Args,
    settings: &Settings,
    meshes: &[Mesh],
    (talk, result): (&mut Talk, &mut impl Write),
) -> anyhow::Result<Outcome> {
    let Some(dump) = &args.from else {
        #[cfg(feature = "snapshot")]
        return live::run(args, settings, meshes, (talk, result));
        #[cfg(not(feature = "snapshot"))]
        bail!("this build has no client for clusters; name a dump of nodes with --from");
    };
    let [cluster] = args.clusters.as_slice() else {
        bail!("--from reads the nodes of one cluster; name it");
    };
    check_named(args, &[cluster].into())?;
    let text = disk::read_text(&Roots::anywhere(), dump, DUMP_LIMIT)?;
    let name = match dump.to_str() {
        Some("-") => "the standard input".to_owned(),
        _ => format!("`{}`", input::name(dump)),
    };
    if text.trim().is_empty() {
        bail!("{name} is empty; did the command that lists the nodes fail?");
    }
    let listing = dump::listing(&text).map_err(|error| no_snapshot(&name, &error))?;
    drop(text);
    let keeper = Keeper::new(args, settings, meshes);
    let kept = keeper.keep(cluster, listing, None);
    let kept = kept.map_err(|error| no_snapshot(&name, &error))?;
    let outcome = keeper.tell(kept, talk, result)?;
    let outcome = outcome.max(keeper.tell_twins(&[cluster].into(), talk));
    Ok(outcome.max(tell_of_config(args, settings, Vec::new(), talk)))
}

/// Tells what there is to tell of the config: these findings, and what in it has had its time.
fn tell_of_config(
    args: &Args,
    settings: &Settings,
    mut findings: Vec<Finding>,
    talk: &mut Talk,
) -> Outcome {
    let ConfigFile { source, levels, .. } = &settings.config;
    let (today, purpose) = (clock::today(), Purpose::Snapshot);
    findings.extend(levels.expired(today, purpose));
    let findings = levels.apply(findings, today, purpose);
    talk.findings(&Files::new(source.iter().cloned().collect()), &findings);
    args.strict.threshold().outcome(&findings)
}

fn no_snapshot(name: &str, error: &impl Display) -> anyhow::Error {
    let error = escaped(&error.to_string(), 400);
    anyhow::anyhow!("{name} makes no snapshot: {error}")
}

/// A flag for a cluster that is not looked at is a slip, and would not do what it was meant for.
fn check_named(args: &Args, clusters: &BTreeSet<&ClusterName>) -> anyhow::Result<()> {
    let flags = [
        ("--accept", &args.accept),
        ("--no-carry-over", &args.no_carry_over),
    ];
    for (flag, named) in flags {
        if let Some(other) = named.iter().find(|it| !clusters.contains(it)) {
            let clusters: Vec<String> = clusters.iter().map(|it| format!("`{it}`")).collect();
            bail!(
                "{flag} names `{other}`, but this is about {}",
                clusters.join(", ")
            );
        }
    }
    Ok(())
}

fn cluster(text: &str) -> Result<ClusterName, String> {
    text.parse()
        .map_err(|error| format!("{} is no cluster name: {error}", Quoted(text)))
}
