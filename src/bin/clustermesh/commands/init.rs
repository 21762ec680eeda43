//! `clustermesh init`

use std::collections::BTreeSet;
use std::mem;
use std::path::Path;

use anyhow::{Context as _, anyhow, bail};
use clap::ValueEnum;
use clustermesh::diagnostic::Severity;
use clustermesh::document::Source;
use clustermesh::name::ClusterName;
use clustermesh::proposal::RangeSizes;
use clustermesh::rules::{Purpose, costs, snapshots};
use clustermesh::text;
use serde::Serialize;

use self::addition::{Proposed, print_plan};
use self::clusters::{ClusterOptions, ProposedMesh};
use self::home::Home;
use self::mesh_addition::MeshAddition;
use self::new_guard::NewGuard;
use self::next_steps::next;
use self::program_source::ProgramSource;
use self::starter_files::{MESH, StarterFile};
use crate::checked_plan::{self, OutputCheck};
use crate::commands::snapshot;
use crate::disk::{self, Roots};
use crate::failure::{CommandFailure, CommandResult};
use crate::files::ShownFiles;
use crate::output::Printer;
use crate::settings::FileOptions;
use crate::threshold::Threshold;
use crate::{Outcome, input_file, inputs};

mod addition;
mod clusters;
mod code_owners;
mod home;
mod kilo_kustomization;
mod mesh_addition;
mod new_guard;
mod next_steps;
mod program_source;
mod starter_files;

/// Create the files of a new repository
///
/// Creates a commented config and mesh and, on request, the files for Flux or Argo CD, CI jobs and
/// pre-commit hooks. With `--context` or `--from` it takes snapshots of your clusters and proposes the mesh,
/// with a reason for every line. A mesh that exists gets the entries of new clusters. Their older
/// snapshots are replaced, and no other file is changed. Prints the next steps.
#[derive(clap::Args)]
#[command(after_help = EXAMPLES)]
pub(crate) struct InitArgs {
    /// Tool that applies the Peers
    #[arg(long, value_name = "TOOL", default_value = "none")]
    gitops: Gitops,

    /// CI service, for jobs that check pull requests and refresh snapshots
    #[arg(long, value_name = "SERVICE", default_value = "none")]
    ci: Ci,

    /// Commit of clustermesh that the CI jobs build
    ///
    /// The address of a git repository and the full hash of a commit. Without it, the jobs fail until you write both at
    /// the top of the workflow.
    #[arg(long, value_name = "URL@COMMIT", requires = "ci")]
    program_source: Option<ProgramSource>,

    /// Add pre-commit hooks that check each commit
    #[arg(long)]
    pre_commit: bool,

    #[command(flatten)]
    clusters: ClusterOptions,

    /// Print free ranges for clusters to be installed; write nothing
    #[arg(long, value_name = "CLUSTER", num_args = 1.., value_parser = snapshot::cluster)]
    #[arg(conflicts_with_all = ["from", "peers", "name", "gitops", "ci", "pre_commit"])]
    #[cfg_attr(feature = "snapshot", arg(conflicts_with_all = ["contexts", "secrets_from"]))]
    plan: Vec<ClusterName>,

    /// Prefix lengths of pods, Services, WireGuard [default: 16,16,16]
    #[arg(
        long,
        value_name = "LENGTHS",
        default_value = "16,16,16",
        hide_default_value = true,
        requires = "plan"
    )]
    plan_sizes: RangeSizes,
}

#[cfg(feature = "snapshot")]
const EXAMPLES: &str = "\
Examples:
  clustermesh init --context east --context west=admin@west.example.com
  clustermesh init --from east=east.json --from west=west.json
  clustermesh init --context north            add a cluster to the mesh
  clustermesh init --plan north south         free ranges for new clusters
  clustermesh init --secrets-from hub         take over the operator's meshes
  clustermesh init --gitops flux --ci github --pre-commit";

#[cfg(not(feature = "snapshot"))]
const EXAMPLES: &str = "\
Examples:
  clustermesh init --from east=east.json --from west=west.json
  clustermesh init --from north=north.json    add a cluster to the mesh
  clustermesh init --gitops flux --ci github --pre-commit
  clustermesh -C mesh init --gitops argocd";

/// The tool that applies the Peers.
#[derive(Clone, Copy, Debug, Eq, PartialEq, Serialize, ValueEnum)]
#[serde(rename_all = "lowercase")]
enum Gitops {
    /// A Kustomization for each cluster
    Flux,
    /// An Application for each cluster
    Argocd,
    /// No files for a tool
    None,
}

/// The CI service.
#[derive(Clone, Copy, Debug, Eq, PartialEq, Serialize, ValueEnum)]
#[serde(rename_all = "lowercase")]
enum Ci {
    /// GitHub Actions
    Github,
    /// GitLab CI
    Gitlab,
    /// No CI jobs
    None,
}

pub(crate) fn run(args: &InitArgs, files: &FileOptions, printer: &mut Printer) -> CommandResult {
    if !args.plan.is_empty() {
        return print_plan(&args.plan, args.plan_sizes, files, printer);
    }
    let home = Home::find();
    let flag = (args.ci != Ci::None).then_some("--ci");
    if let Some(flag) = flag.or(args.pre_commit.then_some("--pre-commit"))
        && !home.is_root()
    {
        let root = disk::shown(home.root());
        return Err(anyhow!(
            "CI jobs and hooks must be in the root of the repository: run this in {root}, or without {flag}"
        )
        .into());
    }
    if args.gitops != Gitops::None {
        home.check()?;
    }
    args.clusters.check()?;
    let mut proposed = match proposed(args, files, &home)? {
        Some(Proposed::Entries(entries)) => return Ok(entries.print(printer)?),
        Some(Proposed::Mesh(mesh)) => Some(*mesh),
        None => None,
    };
    let starters = starter_files::files(args, &home, proposed.as_ref());
    // Only the last step makes a mesh: without one, a run was killed, and the next one does what is left.
    let mesh = starter_files::mesh(proposed.as_ref());
    let settings = files.settle()?;
    let meshes = settings.mesh_files_if_any()?;
    let has_other = !meshes.is_empty() && meshes.iter().all(|it| it.path != Path::new(MESH));
    check_outputs(starters.iter().chain([&mesh]), proposed.as_ref())?;
    let mut kept = write(&starters, printer)?;
    let saved = proposed.as_mut().map(|proposed| save(files, proposed, printer));
    let saved = saved.transpose()?;
    // Without all snapshots, the next run has to propose the mesh again.
    if let Some(refused @ (Outcome::Findings | Outcome::Unreadable)) = saved {
        return Ok(refused);
    }
    match proposed.as_ref().and_then(|it| Some((it, it.addition.as_ref()?))) {
        Some((proposed, addition)) => addition.write(&proposed.yaml, printer)?,
        // Nothing would read it.
        None if proposed.is_none() && has_other => kept.push(MESH),
        None => kept.extend(write(&[mesh], printer)?),
    }
    let written = match saved {
        Some(saved) => check_saved(files, saved, proposed.as_ref(), printer)?,
        None => KeptNodes::default(),
    };
    let owned = code_owners::patterns(&settings);
    let config = &settings.config.content;
    printer.result(&next(args, &home, (&kept, &owned), proposed.as_ref(), &written, config)?)?;
    Ok(written.outcome)
}

/// Proposes a mesh, or more clusters of the one that is there, if clusters are given.
fn proposed(args: &InitArgs, files: &FileOptions, home: &Home) -> CommandResult<Option<Proposed>> {
    if !args.clusters.are_given() {
        return Ok(None);
    }
    let mut settings = files.settle()?;
    let is_new = settings.mesh_files_if_any()?.is_empty()
        && !disk::is_there(&Roots::within(Path::new(".")), Path::new(MESH))?;
    if is_new {
        let mesh = args.clusters.propose(&mut settings, home)?;
        return Ok(Some(Proposed::Mesh(Box::new(mesh))));
    }
    if let Some(flag) = args.clusters.only_for_new() {
        let problem = "works only for a new mesh, and there is one already; move its file away";
        return Err(anyhow!("{flag} {problem}").into());
    }
    args.clusters.add(files, &mut settings).map(Some)
}

/// Fails if a file cannot be written: all or nothing, as far as can be known before.
fn check_outputs<'f>(
    files: impl Iterator<Item = &'f StarterFile>,
    proposed: Option<&ProposedMesh>,
) -> anyhow::Result<()> {
    let roots = Roots::within(Path::new("."));
    let snapshots = proposed.map(|_| "snapshots/CLUSTER.json");
    for path in files.map(|it| it.path).chain(snapshots) {
        disk::check_output(&roots, Path::new(path))
            .with_context(|| format!("cannot write `{path}`"))?;
        for folder in Path::new(path).ancestors().skip(1) {
            if folder != Path::new("")
                && disk::is_there(&roots, folder)?
                && !disk::is_folder(&roots, folder)?
            {
                bail!("cannot write `{path}`: {} is not a folder", disk::shown(folder));
            }
        }
    }
    Ok(())
}

/// Writes the files that do not exist, and returns the paths of the others. Temporary files of killed runs are
/// removed.
fn write(files: &[StarterFile], printer: &mut Printer) -> anyhow::Result<Vec<&'static str>> {
    let roots = Roots::within(Path::new("."));
    let folders: BTreeSet<&Path> =
        files.iter().filter_map(|it| Path::new(it.path).parent()).collect();
    for folder in folders {
        disk::sweep(&roots, &Path::new(".").join(folder))?;
    }
    let mut kept = Vec::new();
    for file in files {
        let path = Path::new(file.path);
        if disk::is_there(&roots, path)? {
            kept.push(file.path);
            printer.line(&format!("kept existing {}", file.path));
        } else {
            disk::write_file(&roots, path, file.text.as_bytes())?;
            printer.line(&format!("wrote {}", file.path));
        }
    }
    Ok(kept)
}

/// The result for the nodes that were saved.
#[derive(Default)]
struct KeptNodes {
    outcome: Outcome,
    /// The steps before any Peer is applied.
    first: Vec<String>,
    /// The commands that give new clusters guards.
    guards: Vec<NewGuard>,
}

/// Saves the nodes of the proposed mesh, which is not written yet.
fn save(files: &FileOptions, proposed: &mut ProposedMesh, printer: &mut Printer) -> CommandResult {
    let settings = files.settle()?;
    let findings = settings.standard(Purpose::Snapshot).level(mem::take(&mut proposed.findings));
    printer.findings(&ShownFiles::default(), &findings);
    let addition = proposed.addition.as_ref();
    let name = addition.map_or_else(|| MESH.to_owned(), MeshAddition::name);
    let source = Source::parse(name, proposed.yaml.clone()).map_err(CommandFailure::Syntax)?;
    let others = addition.map(|it| it.others.clone()).unwrap_or_default();
    let sources = others.into_iter().chain([source]).collect();
    let meshes = input_file::clusters_of(sources, settings.ceilings)?.meshes;
    let nodes = mem::take(&mut proposed.nodes);
    Ok(snapshot::write_first(nodes, &settings, &meshes, printer)?)
}

/// Checks the nodes that were saved with the mesh that was written. A cluster in which Kilo does not run yet gets one
/// finding, because the next steps start it.
fn check_saved(
    files: &FileOptions,
    outcome: Outcome,
    proposed: Option<&ProposedMesh>,
    printer: &mut Printer,
) -> anyhow::Result<KeptNodes> {
    let inputs = match inputs::gather(files) {
        Ok(inputs) => inputs,
        Err(failure) => {
            return Ok(KeptNodes { outcome: printer.failure(failure), ..KeptNodes::default() });
        }
    };
    let subnets = proposed.iter().flat_map(|it| &it.subnets);
    let idle: Vec<&str> = subnets.map(|(cluster, _)| cluster.as_str()).collect();
    let mut checked = checked_plan::check(&inputs, Purpose::Snapshot, None, OutputCheck::Unasked)?;
    checked.findings.retain(|it| {
        let is_idle = it.cluster.as_deref().is_some_and(|it| idle.contains(&it));
        // Stale nodes were reported when the snapshots were taken.
        !snapshots::is_stale_node(it) && (it.node.is_none() || !is_idle)
    });
    printer.findings(&inputs.files, &checked.findings);
    printer.counts(&checked.findings, checked.checked().as_ref());
    let outcome = outcome.max(Threshold(Severity::Error).outcome(&checked.findings));
    let of_changes = checked.findings.iter().filter(|it| costs::is_about(it.rule));
    let helps: Vec<String> = of_changes.filter_map(|it| it.help.clone()).collect();
    let config = &inputs.settings.config.content;
    let next = proposed.map(|it| &it.next_snapshots).filter(|it| it.len() <= text::NAMED);
    let first = match (&checked.planned, next) {
        (Some((fleet, _)), Some(next)) if !helps.is_empty() => {
            let steps = next.iter().map(|it| costs::first_steps(fleet, config, it.0, it.1));
            steps.flatten().collect()
        }
        _ => helps,
    };
    let addition = proposed.and_then(|it| it.addition.as_ref());
    let guards = addition.map(|it| NewGuard::of_added(&inputs, it)).transpose()?;
    Ok(KeptNodes { outcome, first, guards: guards.unwrap_or_default() })
}
