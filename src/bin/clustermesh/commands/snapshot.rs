//! `clustermesh snapshot`

use std::collections::BTreeSet;
use std::ffi::OsStr;
use std::fmt::Display;
use std::path::{Path, PathBuf};
#[cfg(feature = "snapshot")]
use std::sync::LazyLock;

use anyhow::{anyhow, bail};
use clap::ValueHint;
use clustermesh::diagnostic::{Quoted, escaped};
use clustermesh::document::nearest;
use clustermesh::mesh::Mesh;
use clustermesh::name::ClusterName;
use clustermesh::rules::{Finding, LevelledFindings, Purpose};
use clustermesh::snapshot::dump::{self, DumpError};
use clustermesh::snapshot::listing::Listing;
use clustermesh::snapshot::{Snapshot, SnapshotError};
use clustermesh::text;

use self::keep::Keeper;
use self::kept::KeptSnapshot;
use crate::disk::Roots;
use crate::failure::CommandResult;
use crate::files::ShownFiles;
use crate::input_file::{self, Clusters};
use crate::output::Printer;
#[cfg(feature = "snapshot")]
use crate::reach::ReachOptions;
use crate::settings::{FileOptions, Settings};
use crate::threshold::FailOn;
use crate::{Outcome, disk};

mod keep;
mod kept;
mod new_text;
mod old_snapshot;
pub(crate) mod services;
#[cfg(feature = "snapshot")]
mod live;
#[cfg(feature = "snapshot")]
mod wait;

/// The largest dump that is read, in bytes: 25,000 nodes of 18 KB, with room.
const DUMP_LIMIT: u64 = 512 << 20;

/// The name of a dump of nodes.
const NODE_LIST: &str = "node list";

/// Save the nodes of each cluster as JSON
///
/// Lists the nodes of all clusters in the meshes, or of the given clusters, and writes the parts that a
/// mesh needs to `snapshots/CLUSTER.json`: names, labels, Kilo's annotations, pod CIDRs and addresses.
/// If a cluster cannot be read, or has lost many nodes, its old snapshot stays and the other clusters
/// are still written.
#[derive(clap::Args)]
#[command(after_help = EXAMPLES)]
pub(crate) struct SnapshotArgs {
    /// Clusters, by their names in the mesh [default: all]
    #[arg(value_name = "CLUSTER", value_parser = cluster)]
    clusters: Vec<ClusterName>,

    /// Read a cluster from a JSON or YAML file, `-` for standard input; repeatable
    ///
    /// The output of `kubectl get nodes -o json`, or with `--services` of `kubectl get services -A -o json`.
    #[arg(long, value_name = "CLUSTER=FILE", value_hint = ValueHint::FilePath)]
    #[cfg_attr(feature = "snapshot", arg(conflicts_with_all = ReachOptions::NAMES))]
    from: Vec<PathBuf>,

    #[command(flatten)]
    handling: Handling,

    #[cfg(feature = "snapshot")]
    #[command(flatten)]
    waiting: wait::WaitOptions,

    #[cfg(feature = "snapshot")]
    #[command(flatten)]
    reach: ReachOptions,
}

/// The nodes of a cluster.
pub(crate) struct ListedNodes {
    pub(crate) cluster: ClusterName,
    /// The nodes.
    pub(crate) listing: Listing,
    /// The time if they were listed just now, in Unix seconds.
    pub(crate) now: Option<i64>,
}

impl ListedNodes {
    /// Returns them as a snapshot, with all their labels.
    ///
    /// # Errors
    /// They make no snapshot.
    pub(crate) fn snapshot(&self, settings: &Settings) -> Result<Snapshot, SnapshotError> {
        let stale_after = settings.config.content.limits.stale_after_seconds;
        let listing = self.listing.clone();
        let (snapshot, _) = listing.snapshot(self.cluster.clone(), stale_after, self.now)?;
        Ok(snapshot)
    }
}

/// The options for nodes that were listed.
#[derive(Clone, Default, clap::Args)]
struct Handling {
    /// Save the Services that meshes name, instead of nodes
    ///
    /// Reads each Service of `spec.services` by its name, in the cluster that has it and in the clusters that get it.
    /// Writes `snapshots/CLUSTER.services.json`. `clustermesh rbac --services CLUSTER` prints the manifests that grant
    /// the right.
    #[arg(long, conflicts_with_all = ["accept", "no_carry_over"])]
    services: bool,

    /// Compare instead of writing; list differences, and exit with 1 if there are any
    #[arg(long)]
    check: bool,

    /// Warn instead of fail when a cluster cannot be refreshed
    ///
    /// Its old snapshot stays. If no cluster can be read, the exit code is still 2. With `--services`, it is not an error that
    /// no mesh names a Service.
    #[arg(long)]
    keep_going: bool,

    /// Accept the loss of many nodes, or too many nodes, in a cluster; repeatable
    #[arg(long, value_name = "CLUSTER", value_parser = cluster)]
    accept: Vec<ClusterName>,

    /// Drop Kilo's annotations where the agent removed them; repeatable
    ///
    /// By default, a node that loses its annotations keeps those of the old snapshot, because the agent
    /// removes them during a restart. Use this after Kilo was removed from the cluster.
    #[arg(long, value_name = "CLUSTER", value_parser = cluster)]
    no_carry_over: Vec<ClusterName>,

    #[command(flatten)]
    fail_on: FailOn,
}

#[cfg(feature = "snapshot")]
impl Handling {
    /// Returns the same without writing.
    fn comparing(&self) -> Self {
        Self { check: true, fail_on: FailOn::default(), ..self.clone() }
    }
}

#[cfg(feature = "snapshot")]
const EXAMPLES: &str = "\
Examples:
  clustermesh snapshot                        all clusters, with the contexts of their names
  clustermesh snapshot east --context kind-east
  clustermesh snapshot --check                list what has changed since the last snapshot
  clustermesh snapshot --wait 50m             wait until something has changed
  clustermesh snapshot east --accept east     accept that east has lost nodes
  kubectl get nodes -o json | clustermesh snapshot --from east=-";

#[cfg(not(feature = "snapshot"))]
const EXAMPLES: &str = "\
Examples:
  kubectl --context east get nodes -o json | clustermesh snapshot --from east=-
  clustermesh snapshot --from west=west-nodes.yaml --check

This build cannot connect to clusters; use --from.";

/// The nodes of clusters, compared with their snapshots as with `--check`.
#[cfg(feature = "snapshot")]
pub(crate) struct Comparison<'a>(Keeper<'a>);

#[cfg(feature = "snapshot")]
impl<'a> Comparison<'a> {
    /// Reads the snapshots.
    pub(crate) fn new(settings: &'a Settings, meshes: &'a [Mesh]) -> Self {
        static COMPARING: LazyLock<Handling> = LazyLock::new(|| Handling::default().comparing());
        Self(Keeper::new(&COMPARING, settings, meshes))
    }

    /// Returns what differs from the snapshot of a cluster, a line each.
    ///
    /// # Errors
    /// The nodes make no snapshot, or the one that is there cannot be read.
    pub(crate) fn differences(
        &self,
        cluster: &ClusterName,
        listing: Listing,
        now: i64,
    ) -> anyhow::Result<Vec<String>> {
        let kept = self.0.keep(cluster, listing, Some(now))?;
        kept.differences()
    }
}

pub(crate) fn run(
    args: &SnapshotArgs,
    files: &FileOptions,
    printer: &mut Printer,
) -> CommandResult {
    let settings = files.settle()?;
    #[cfg(feature = "snapshot")]
    let mut settings = settings;
    #[cfg(feature = "snapshot")]
    args.reach.settle(&mut settings);
    if args.handling.services {
        let meshes = input_file::meshes(&settings.mesh_files()?, settings.ceilings)?;
        return Ok(keep(args, &settings, &meshes, printer)?);
    }
    let files = settings.mesh_files_if_any()?;
    if files.is_empty()
        && !settings.snapshots.is_named()
        && let Some(folder) = settings.mesh_above()
    {
        let error = anyhow!(
            "this folder has no mesh, but `{0}` has; use -C {0}, or --snapshots to write elsewhere",
            folder.display()
        );
        return Err(error.into());
    }
    let Clusters { meshes, sources, problems } = input_file::clusters(&files, settings.ceilings)?;
    if problems.is_empty() {
        args.check_dumps(&meshes)?;
    }
    // They stop a render, but nodes can be listed.
    let problems = LevelledFindings::fixed(problems);
    printer.findings(&ShownFiles::new(sources), &problems);
    let outcome = args.handling.fail_on.threshold().outcome(&problems);
    let kept = keep(args, &settings, &meshes, printer)?;
    Ok(outcome.max(kept))
}

impl SnapshotArgs {
    /// Fails if a file is for a cluster that these meshes do not have: its name is a mistake.
    fn check_dumps(&self, meshes: &[Mesh]) -> anyhow::Result<()> {
        if self.from.is_empty() || meshes.is_empty() {
            return Ok(());
        }
        let entries = meshes.iter().flat_map(|it| &it.entries).map(|it| &it.name);
        let known: BTreeSet<&ClusterName> = entries.collect();
        let dumps = dumps(self)?;
        let Some(unknown) = dumps.iter().find(|it| !known.contains(&it.cluster)) else {
            return Ok(());
        };
        let nearest = nearest(unknown.cluster.as_str(), known.iter().map(|it| it.as_str()));
        let help = match nearest {
            Some(meant) => format!("did you mean `{meant}`?"),
            None => "`clustermesh init --from` adds a cluster".to_owned(),
        };
        bail!("--from: `{}` is not a cluster of any mesh; {help}", unknown.cluster)
    }
}

/// Keeps the nodes of live clusters, or those of a dump.
fn keep(
    args: &SnapshotArgs,
    settings: &Settings,
    meshes: &[Mesh],
    printer: &mut Printer,
) -> anyhow::Result<Outcome> {
    if args.from.is_empty() {
        #[cfg(feature = "snapshot")]
        return live::run(args, settings, meshes, printer);
        #[cfg(not(feature = "snapshot"))]
        bail!("this build cannot connect to clusters; read a file with --from");
    }
    let dumps = dumps(args)?;
    let clusters: BTreeSet<&ClusterName> = dumps.iter().map(|it| &it.cluster).collect();
    check_named(args, &clusters)?;
    let keeper = Keeper::new(&args.handling, settings, meshes).swept()?;
    // All files are read before the first snapshot is written.
    let kept: Vec<KeptSnapshot> = if args.handling.services {
        let read = dumps.iter().map(|it| {
            let names = services::named(meshes, &it.cluster)?;
            Ok((&it.cluster, services::read_dump(&it.path, &names)?))
        });
        let read = read.collect::<anyhow::Result<Vec<_>>>()?.into_iter();
        read.map(|(cluster, found)| keeper.keep_services(cluster, found)).collect()
    } else {
        let read = dumps.iter().map(|it| read_nodes(it, settings));
        let read = read.collect::<anyhow::Result<Vec<_>>>()?.into_iter();
        let kept = read.map(|(it, _)| keeper.keep(&it.cluster, it.listing, None));
        kept.collect::<Result<_, _>>()?
    };
    let mut outcome = Outcome::Clean;
    for kept in kept {
        outcome = outcome.max(keeper.report(kept, printer)?);
    }
    let outcome = outcome.max(keeper.report_twins(&clusters, printer));
    Ok(outcome.max(report_config(args, settings, Vec::new(), printer)))
}

/// A cluster and the dump of its nodes, Services or Peers.
#[derive(Clone, Debug)]
pub(crate) struct ClusterDump {
    pub(crate) cluster: ClusterName,
    pub(crate) path: PathBuf,
}

/// Reads `CLUSTER=FILE`.
pub(crate) fn cluster_dump(text: &str) -> Result<ClusterDump, String> {
    let (name, path) =
        text.split_once('=').filter(|it| !it.1.is_empty()).ok_or_else(|| expected_dump(text))?;
    Ok(ClusterDump { cluster: cluster(name)?, path: PathBuf::from(path) })
}

/// Returns what to write instead of a file, or of a name, alone.
fn expected_dump(text: &str) -> String {
    let name = Path::new(text).file_stem().and_then(OsStr::to_str);
    let name = name.filter(|it| text.contains('.') && cluster(it).is_ok());
    let example = name.map(|it| format!(", such as `{it}={}`", escaped(text, usize::MAX)));
    format!("expected CLUSTER=FILE{}", example.unwrap_or_default())
}

/// Returns the dumps that are read, each with its cluster.
fn dumps(args: &SnapshotArgs) -> anyhow::Result<Vec<ClusterDump>> {
    let dumps: Vec<ClusterDump> = match (args.clusters.as_slice(), args.from.as_slice()) {
        ([], files) => {
            let named = files.iter().map(|it| {
                cluster_dump(&it.to_string_lossy())
                    .map_err(|error| anyhow!("--from {}: {error}", disk::shown(it)))
            });
            named.collect::<anyhow::Result<_>>()?
        }
        ([cluster], [path]) => {
            vec![ClusterDump { cluster: cluster.clone(), path: path.clone() }]
        }
        _ => bail!("--from: write `CLUSTER=FILE` for each cluster, and no other clusters"),
    };
    let mut clusters = BTreeSet::new();
    match dumps.iter().find(|it| !clusters.insert(&it.cluster)) {
        Some(twice) => bail!("--from names two files for `{}`", twice.cluster),
        None => Ok(dumps),
    }
}

/// Reads the nodes of a dump, which make this snapshot.
pub(crate) fn read_nodes(
    dump: &ClusterDump,
    settings: &Settings,
) -> anyhow::Result<(ListedNodes, Snapshot)> {
    let ClusterDump { cluster, path } = dump;
    let listing = read_list(path, NODE_LIST, dump::listing)?;
    let nodes = ListedNodes { cluster: cluster.clone(), listing, now: None };
    let snapshot = nodes.snapshot(settings);
    let snapshot = snapshot.map_err(|error| unusable(&dump_name(path), NODE_LIST, &error))?;
    Ok((nodes, snapshot))
}

/// Reads what a dump should be.
fn read_list<T>(
    dump: &Path,
    expected: &str,
    read: fn(&str) -> Result<T, DumpError>,
) -> anyhow::Result<T> {
    let name = dump_name(dump);
    let text = disk::read_text(&Roots::anywhere(), dump, DUMP_LIMIT)?;
    if text.trim().is_empty() {
        bail!("{name} is empty; did the command that wrote it fail?");
    }
    read(&text).map_err(|error| unusable(&name, expected, &error))
}

/// Returns the name of a dump in messages.
fn dump_name(dump: &Path) -> String {
    match dump.to_str() {
        Some("-") => "the standard input".to_owned(),
        _ => format!("`{}`", input_file::name(dump)),
    }
}

/// Writes the first snapshots of clusters for a mesh.
pub(crate) fn write_first(
    nodes: Vec<ListedNodes>,
    settings: &Settings,
    meshes: &[Mesh],
    printer: &mut Printer,
) -> anyhow::Result<Outcome> {
    let clusters: Vec<ClusterName> = nodes.iter().map(|it| it.cluster.clone()).collect();
    let handling = Handling::default();
    let keeper = Keeper::new(&handling, settings, meshes).swept()?.for_new_clusters();
    let mut outcome = Outcome::Clean;
    for ListedNodes { cluster, listing, now } in nodes {
        let kept = keeper.keep(&cluster, listing, now)?;
        outcome = outcome.max(keeper.report(kept, printer)?);
    }
    Ok(outcome.max(keeper.report_twins(&clusters.iter().collect(), printer)))
}

/// Reports the findings about the config, and its expired entries.
fn report_config(
    args: &SnapshotArgs,
    settings: &Settings,
    mut findings: Vec<Finding>,
    printer: &mut Printer,
) -> Outcome {
    let standard = settings.standard(Purpose::Snapshot);
    findings.extend(standard.expired());
    let findings = standard.level(findings);
    let source = settings.config.source.clone();
    printer.findings(&ShownFiles::new(source.into_iter().collect()), &findings);
    args.handling.fail_on.threshold().outcome(&findings)
}

fn unusable(name: &str, expected: &str, error: &impl Display) -> anyhow::Error {
    let error = escaped(&error.to_string(), 400);
    anyhow!("{name} is not a usable {expected}: {error}")
}

/// A flag for a cluster that is not looked at is a mistake, and would not do what it was meant for.
fn check_named(args: &SnapshotArgs, clusters: &BTreeSet<&ClusterName>) -> anyhow::Result<()> {
    let flags =
        [("--accept", &args.handling.accept), ("--no-carry-over", &args.handling.no_carry_over)];
    for (flag, named) in flags {
        if let Some(other) = named.iter().find(|it| !clusters.contains(it)) {
            bail!("{flag} names `{other}`, but this run is for {}", text::quoted(clusters));
        }
    }
    Ok(())
}

/// Reads the name of a cluster on the command line.
pub(crate) fn cluster(text: &str) -> Result<ClusterName, String> {
    text.parse().map_err(|error| format!("{} is not a valid cluster name: {error}", Quoted(text)))
}
