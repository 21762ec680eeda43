//! `clustermesh status`

use std::collections::{BTreeMap, BTreeSet};
use std::thread;
use std::time::{Duration, Instant};

use clap::ValueEnum;
use clustermesh::agent::applied::AppliedFile;
use clustermesh::agent::inventory::Inventory;
use clustermesh::diagnostic::{Severity, escaped};
use clustermesh::name::ClusterName;
use clustermesh::results::findings::Report;
use clustermesh::results::status::StatusResult;
use clustermesh::results::status::peers::{ComparedPeers, RenderedFolder};
use clustermesh::results::status::state::{
    ClusterState, ClusterStatus, GuardStatus, NodeCounts, UnreadCluster,
};
use clustermesh::results::status::tunnels::TunnelReport;
use clustermesh::rules::clusters::{self, Fault};
use clustermesh::rules::{Finding, Purpose, reach, unrouted_pods};
use clustermesh::text::count;
use serde_json::Value;

use crate::checked_plan::OutputCheck;
use crate::cluster::{ClusterAnswer, Wanted};
use crate::cluster_peers::{ClusterPeers, Gathered};
use crate::commands::snapshot::Comparison;
use crate::failure::CommandResult;
use crate::git::GitRepository;
use crate::inputs::Inputs;
use crate::output::{Printer, TableFormat};
use crate::reach::{Addressed, Contact, ReachOptions};
use crate::settings::FileOptions;
use crate::threshold::FailOn;
use crate::{Outcome, checked_plan, clock, cluster_peers, input_file, origin};

mod guard;
mod tunnels;

use guard::GuardComparison;
use tunnels::{TunnelOptions, TunnelReading};

/// The pause before clusters are read again.
const PAUSE: Duration = Duration::from_secs(5);

/// Compare what clusters have with what is rendered
///
/// Reads Kilo's Peers and the nodes of all clusters in the meshes, or of the given clusters. Reports
/// rendered Peers that are missing or were changed, other Peers and the ranges that they take, Peers with
/// the same key, and snapshots and guards that are out of date. If a cluster cannot be read, the others are still
/// reported. Writes nothing.
#[derive(clap::Args)]
#[command(after_help = EXAMPLES)]
pub(crate) struct StatusArgs {
    /// Clusters, by their names in the mesh [default: all]
    #[arg(value_name = "CLUSTER")]
    clusters: Vec<String>,

    /// Output format
    #[arg(short, long, value_name = "FORMAT", default_value = "human")]
    output: StatusFormat,

    /// Wait until the rendered Peers are applied, at most this long, such as 90s
    ///
    /// The last attempt may exceed this time by one `--timeout`. A cluster that refuses the login or a
    /// request is not read again. With `--tunnels`, the rest of the time is for handshakes: it also waits
    /// while a tunnel that should come up has had none, or while a later report can still change an answer.
    #[arg(long, value_name = "DURATION", value_parser = clock::duration)]
    wait: Option<Duration>,

    #[command(flatten)]
    tunnels: TunnelOptions,

    #[command(flatten)]
    reach: ReachOptions,
}

/// The format of states.
#[derive(Clone, Copy, Debug, Eq, PartialEq, ValueEnum)]
enum StatusFormat {
    /// Text for people
    Human,
    /// JSON
    Json,
    /// Markdown, for a comment on a pull request
    Markdown,
    /// Metrics in the text format of Prometheus, for a file that the node exporter reads
    Prometheus,
}

const EXAMPLES: &str = "\
Examples:
  clustermesh status
  clustermesh status east --wait 5m           after a push: wait until GitOps has applied it
  clustermesh status --tunnels                list which tunnels have come up
  clustermesh status --output json | jq '.clusters[] | select(.peers.foreign != [])'
  clustermesh status --output prometheus > clustermesh.prom
  clustermesh rbac --peers | kubectl --context east apply -f -";

pub(crate) fn run(args: &StatusArgs, files: &FileOptions, printer: &mut Printer) -> CommandResult {
    let gathered = cluster_peers::gather(files).and_then(|gathered| {
        let Gathered { mut inputs, mut grave } = gathered;
        if !grave.is_empty() {
            // A mistake in a mesh may follow from what its nodes show.
            let checked =
                checked_plan::check(&inputs, Purpose::Validate, None, OutputCheck::Unasked)?;
            let findings = checked.findings.iter().filter(|it| it.severity == Severity::Error);
            grave = findings.cloned().collect();
        }
        let rendered = cluster_peers::read(&mut inputs, None)?;
        Ok((inputs, grave, rendered))
    });
    let (mut inputs, mut findings, rendered) = gathered?;
    args.reach.settle(&mut inputs.settings);
    let clusters = clusters(args, &inputs)?;
    let started = Instant::now();
    let asked: BTreeSet<&ClusterName> = clusters.iter().collect();
    let addressed = Addressed { read: &asked, nameable: &asked };
    let mut contact = args.reach.contact(addressed, &inputs.settings, &inputs.meshes)?;
    let states = states(args, &mut contact, started, &clusters, &inputs, &rendered)?;
    let readable = states.iter().filter(|it| it.is_readable()).map(|it| &it.cluster);
    let reading = TunnelReading { args, inputs: &inputs, rendered: &rendered, started };
    let tunnels = reading.reports(&readable.collect(), &mut contact, printer)?;
    let is_about = |it: &&Finding| {
        let mut asked = clusters.iter().map(ClusterName::as_str);
        let cluster = it.cluster.as_deref();
        cluster.is_none_or(|cluster| asked.any(|it| it == cluster))
    };
    findings.extend(rendered.findings.iter().filter(is_about).cloned());
    findings.extend(states.iter().flat_map(|it| it.findings.clone()));
    let findings = inputs.settings.in_force(findings);
    let failed = if states.iter().all(ClusterStatus::is_readable) {
        let is_clean = states.iter().all(ClusterStatus::is_clean);
        Outcome::findings_if(!is_clean || tunnels.as_ref().is_some_and(TunnelReport::has_missing))
    } else {
        Outcome::Unreadable
    };
    let outcome = failed.max(FailOn::default().threshold().outcome(&findings));
    let report = Report::new(&inputs.files, &findings);
    let is_success = outcome == Outcome::Clean && findings.is_empty();
    let basis = match args.output {
        StatusFormat::Human => basis(&inputs, states.len()),
        _ => String::new(),
    };
    let result = StatusResult::new(&states, tunnels.as_ref(), &report, basis, is_success);
    match args.output {
        StatusFormat::Human => printer.finish(&result, TableFormat::Human)?,
        StatusFormat::Json => printer.finish(&result, TableFormat::Json)?,
        StatusFormat::Markdown => printer.finish(&result, TableFormat::Markdown)?,
        StatusFormat::Prometheus => {
            let committed = origin::commit_times(&clusters, &inputs.settings);
            printer.print(&result.metrics(clock::now(), &committed))?;
            for line in result.unreadable() {
                printer.note(&line);
            }
        }
    }
    if args.output == StatusFormat::Human && !findings.is_empty() {
        printer.findings(&inputs.files, &findings);
        printer.counts(&findings, None);
    }
    Ok(outcome)
}

/// Describes what the clusters are compared with, in a line.
fn basis(inputs: &Inputs, clusters: usize) -> String {
    let folder = escaped(&input_file::name(&inputs.settings.rendered.value), 120);
    // There is no commit without git, nor in a new repository.
    let commit = GitRepository::around_here().and_then(|it| it.commit("HEAD"));
    let commit = commit.map_or_else(|_| String::new(), |it| format!(" at commit {}", it.short()));
    let clusters = count(clusters, "cluster");
    format!("{clusters}, compared with {folder}{commit}\n\n")
}

/// Reads clusters, with `--wait` until they have what is rendered or cannot get there.
fn states(
    args: &StatusArgs,
    contact: &mut Contact,
    started: Instant,
    clusters: &[ClusterName],
    inputs: &Inputs,
    rendered: &ClusterPeers,
) -> CommandResult<Vec<ClusterStatus>> {
    let left = |wait: Duration| wait.saturating_sub(started.elapsed());
    let mut pending: BTreeSet<ClusterName> = clusters.iter().cloned().collect();
    let mut states: BTreeMap<ClusterName, ClusterStatus> = BTreeMap::new();
    loop {
        // The rest of the time may be too short for any answer.
        let limit = args.wait.map(|it| left(it).max(args.reach.patience()));
        let nodes = Comparison::new(&inputs.settings, &inputs.meshes);
        let answers =
            contact.ask(&pending.iter().collect(), Wanted::All, limit, |cluster, answer| {
                let kubectl = args.reach.kubectl(cluster, &inputs.settings);
                LiveCluster::read(cluster, answer, kubectl, &nodes, rendered)
            })?;
        states.extend(compared(answers, inputs, rendered)?);
        pending.retain(|it| states.get(it).is_some_and(ClusterStatus::is_pending));
        let left = left(args.wait.unwrap_or_default());
        if pending.is_empty() || left.is_zero() {
            return Ok(states.into_values().collect());
        }
        thread::sleep(left.min(PAUSE));
    }
}

/// Returns the clusters that were asked for, else all that a mesh names.
fn clusters(args: &StatusArgs, inputs: &Inputs) -> CommandResult<Vec<ClusterName>> {
    let all = cluster_peers::clusters(inputs);
    if args.clusters.is_empty() {
        return Ok(all);
    }
    let named = args.clusters.iter();
    named.map(|it| cluster_peers::asked(it, inputs, &all).cloned()).collect()
}

/// The answers of a cluster.
struct LiveCluster {
    /// Its state, with an empty inventory.
    state: ClusterStatus,
    /// Its Peers.
    has: Vec<AppliedFile>,
    /// The objects of its guard.
    guard: Result<Vec<Value>, Fault>,
}

impl LiveCluster {
    /// Reads an answer, and compares the nodes with the snapshot.
    fn read(
        cluster: &ClusterName,
        answer: Result<ClusterAnswer, Fault>,
        kubectl: Option<String>,
        nodes: &Comparison,
        rendered: &ClusterPeers,
    ) -> Self {
        let read = answer.and_then(|answer| {
            let mut findings = answer.findings(cluster);
            let guard = answer.guard;
            let pods = answer.pods;
            let versions = answer.peers.versions.clone();
            let has = answer.peers.into_file(cluster)?;
            let (outside, sampled) = pods.outside(answer.listing.nodes());
            findings.extend(unrouted_pods(cluster, &outside, sampled));
            let differences = nodes.differences(cluster, answer.listing, answer.listed_at);
            let found = ClusterState {
                guard: GuardStatus::default(),
                crd_versions: versions,
                peers: ComparedPeers {
                    rendered: folder(cluster, rendered),
                    inventory: Inventory::default(),
                },
                nodes: NodeCounts::new(
                    differences.map_err(|error| answer.hidden.hide(&format!("{error:#}"))),
                ),
            };
            Ok((found, has, findings, guard))
        });
        let mut state = ClusterStatus::new(cluster, kubectl);
        let mut has = Vec::new();
        let mut guard = Ok(Vec::new());
        match read {
            Ok((found, file, weaknesses, objects)) => {
                guard = objects;
                has.extend(file);
                state.findings = weaknesses;
                state.findings.extend(reach::manifests(cluster, &has));
                state.found = Some(found);
            }
            Err(fault) => {
                let finding = clusters::unread(cluster, &fault);
                state.found = None;
                state.error = Some(UnreadCluster::new(&finding, fault.is_final()));
            }
        }
        Self { state, has, guard }
    }
}

/// Compares what clusters answered with the snapshots and the rendered tree.
fn compared(
    answers: BTreeMap<ClusterName, LiveCluster>,
    inputs: &Inputs,
    rendered: &ClusterPeers,
) -> CommandResult<Vec<(ClusterName, ClusterStatus)>> {
    let mut has: BTreeMap<ClusterName, Vec<AppliedFile>> = BTreeMap::new();
    let mut states: Vec<(ClusterName, ClusterStatus)> = Vec::new();
    let guards = GuardComparison::new(inputs)?;
    for (cluster, mut live) in answers {
        let guard = guards.status(&live.state, live.guard);
        if let Some(found) = &mut live.state.found {
            found.guard = guard;
            has.insert(cluster.clone(), live.has);
        }
        states.push((cluster, live.state));
    }
    // The Peers of the others are unknown; using the wanted ones does no harm here.
    let applied = rendered.with(inputs, &has)?;
    let fabric = applied.fabric(inputs);
    for (cluster, state) in &mut states {
        if let (Some(found), Some(has)) = (&mut state.found, has.get(cluster)) {
            let peers = &mut found.peers;
            let rendered = rendered.files(cluster);
            peers.inventory = Inventory::new(cluster, has, rendered, &inputs.meshes, &fabric);
            if peers.rendered != RenderedFolder::Whole {
                // They may be rendered, in what cannot be read.
                peers.inventory.left_over.clear();
            }
        }
    }
    Ok(states)
}

/// Returns what the rendered tree has for a cluster.
fn folder(cluster: &ClusterName, rendered: &ClusterPeers) -> RenderedFolder {
    let mut findings = rendered.findings.iter();
    if findings.any(|it| it.cluster.as_deref() == Some(cluster.as_str())) {
        RenderedFolder::Damaged
    } else if rendered.absent.contains(cluster) {
        RenderedFolder::Absent
    } else {
        RenderedFolder::Whole
    }
}
