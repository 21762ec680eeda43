//! `clustermesh status`

use std::collections::{BTreeMap, BTreeSet};
use std::io::Write;
use std::thread;
use std::time::{Duration, Instant};

use clap::ValueEnum;
use clustermesh::agent::applied::AppliedFile;
use clustermesh::agent::inventory::Inventory;
use clustermesh::name::{ClusterName, is_peer_of};
use clustermesh::rules::clusters::{self, Fault};

use crate::cluster::{ClusterAnswer, Wanted};
use crate::commands::snapshot::Comparison;
use crate::fabric::{AppliedFiles, Dumps, Gathered};
use crate::files::ShownFiles;
use crate::input_file::Unreadable;
use crate::inputs::Inputs;
use crate::output::{Printer, ReportFormat};
use crate::reach::ReachOptions;
use crate::settings::{Options, Voice};
use crate::{Outcome, clock, fabric};

mod json;
mod markdown;
mod shown;
mod state;

pub(crate) use json::schema;

use state::{ClusterState, NodeCounts, State};

/// How long to wait before clusters are read again.
const PAUSE: Duration = Duration::from_secs(5);

/// Compare what clusters have with what is rendered
///
/// Reads Kilo's Peers and the nodes of all clusters in the meshes, or of the given clusters. Reports
/// rendered Peers that are missing or were changed, Peers that come from elsewhere and what they take,
/// Peers with one key, and whether the snapshots are still true. If a cluster cannot be read, the others
/// are still reported. Writes nothing.
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
    #[arg(long, value_name = "DURATION", value_parser = duration)]
    wait: Option<Duration>,

    #[command(flatten)]
    reach: ReachOptions,

    #[command(flatten)]
    pub(crate) options: Options,

    #[command(flatten)]
    pub(crate) voice: Voice,
}

const EXAMPLES: &str = "\
Examples:
  clustermesh status
  clustermesh status east --wait 5m           after a push: wait until GitOps has applied it
  clustermesh status --output json | jq '.clusters[] | select(.peers.foreign != [])'
  clustermesh rbac --peers | kubectl --context east apply -f -";

/// How it is printed.
#[derive(Clone, Copy, Debug, Eq, PartialEq, ValueEnum)]
enum StatusFormat {
    /// A table, and what differs
    Human,
    /// JSON
    Json,
    /// The same in Markdown, for a comment on a pull request
    Markdown,
}

impl From<StatusFormat> for ReportFormat {
    /// Returns the form of findings alone.
    fn from(format: StatusFormat) -> Self {
        match format {
            StatusFormat::Human => Self::Human,
            StatusFormat::Json => Self::Json,
            StatusFormat::Markdown => Self::Markdown,
        }
    }
}

pub(crate) fn run(
    args: &StatusArgs,
    printer: &mut Printer,
    result: &mut impl Write,
) -> anyhow::Result<Outcome> {
    let gathered = fabric::gather(&args.options).and_then(|gathered| {
        let Gathered { mut inputs, grave } = gathered;
        let rendered = fabric::read(&mut inputs, &Dumps::default())?;
        Ok((inputs, grave, rendered))
    });
    let (mut inputs, grave, rendered) = match gathered {
        Ok(gathered) => gathered,
        Err(unreadable) => return printer.unreadable_as(unreadable, args.output.into(), result),
    };
    printer.findings(&inputs.files, &grave);
    args.reach.settle(&mut inputs.settings);
    let mut pending = clusters(args, &inputs)?;
    let mut states: BTreeMap<ClusterName, State> = BTreeMap::new();
    let started = Instant::now();
    loop {
        let asked: BTreeSet<&ClusterName> = pending.iter().collect();
        let (settings, meshes) = (&inputs.settings, &inputs.meshes);
        let answers = args.reach.ask(&asked, settings, meshes, Wanted::All)?;
        match compared(answers, &inputs, &rendered) {
            Ok(compared) => states.extend(compared),
            Err(unreadable) => {
                return printer.unreadable_as(unreadable, args.output.into(), result);
            }
        }
        let unfinished = states.iter().filter(|(_, state)| !state.is_delivered());
        pending = unfinished.map(|(cluster, _)| cluster.clone()).collect();
        let left = args
            .wait
            .unwrap_or_default()
            .saturating_sub(started.elapsed());
        if pending.is_empty() || left.is_zero() {
            break;
        }
        thread::sleep(left.min(PAUSE));
    }
    let states: Vec<State> = states.into_values().collect();
    match args.output {
        StatusFormat::Human => printer.result(result, &shown::text(&states))?,
        StatusFormat::Json => crate::print(result, &json::text(&states)?)?,
        StatusFormat::Markdown => crate::print(result, &markdown::text(&states))?,
    }
    let weaknesses: Vec<_> = states.iter().flat_map(|it| it.weaknesses.clone()).collect();
    printer.findings(&ShownFiles::new(Vec::new()), &weaknesses);
    let outcomes = states.iter().map(State::outcome);
    Ok(outcomes.max().unwrap_or(Outcome::Clean))
}

/// Returns the clusters that were asked for, else all that a mesh names.
fn clusters(args: &StatusArgs, inputs: &Inputs) -> anyhow::Result<Vec<ClusterName>> {
    let all = fabric::clusters(inputs);
    if args.clusters.is_empty() {
        return Ok(all);
    }
    let named = args.clusters.iter();
    named.map(|it| fabric::named(it, &all).cloned()).collect()
}

/// Compares what clusters answered with the snapshots and the rendered tree.
fn compared(
    answers: BTreeMap<ClusterName, Result<ClusterAnswer, Fault>>,
    inputs: &Inputs,
    rendered: &AppliedFiles,
) -> Result<Vec<(ClusterName, State)>, Unreadable> {
    let nodes = Comparison::new(&inputs.settings, &inputs.meshes);
    let mut has: BTreeMap<ClusterName, Vec<AppliedFile>> = BTreeMap::new();
    let mut states: Vec<(ClusterName, State)> = Vec::new();
    for (cluster, answer) in answers {
        let mut state = State::new(&cluster);
        match answer.and_then(|answer| Ok((fabric::live(&cluster, &answer)?, answer))) {
            Err(fault) => state.found = Err(clusters::unread(&cluster, &fault)),
            Ok((file, answer)) => {
                let weaknesses = answer.weaknesses.into_iter();
                state.weaknesses = weaknesses
                    .map(|it| clusters::weakness(&cluster, it))
                    .collect();
                state.found = Ok(ClusterState {
                    versions: answer.peers.versions,
                    inventory: Inventory::default(),
                    is_rendered: !rendered.absent.contains(&cluster),
                    nodes: match nodes.differences(&cluster, answer.listing, clock::now()) {
                        Ok(differences) => NodeCounts::Compared(differences),
                        Err(error) => {
                            NodeCounts::Unreadable(answer.hidden.hide(&format!("{error:#}")))
                        }
                    },
                });
                has.insert(cluster.clone(), file.into_iter().collect());
            }
        }
        states.push((cluster, state));
    }
    // The Peers of the others are unknown; using the wanted ones does no harm here.
    let applied = rendered.with(inputs, &has)?;
    let fabric = applied.fabric(inputs);
    let is_ours = |peer: &str| {
        let mut meshes = inputs.meshes.iter();
        meshes.any(|mesh| is_peer_of(mesh.name.as_str(), peer))
    };
    for (cluster, state) in &mut states {
        if let (Ok(found), Some(has)) = (&mut state.found, has.get(cluster)) {
            let files = (has.as_slice(), rendered.files(cluster));
            found.inventory = Inventory::new(cluster, files, is_ours, &fabric);
        }
    }
    Ok(states)
}

/// Reads a time, such as 90s, 5m or 1h.
fn duration(text: &str) -> Result<Duration, String> {
    let units = [("s", 1), ("m", 60), ("h", 3600)];
    let unit = units.iter().find_map(|(unit, seconds)| {
        let number = text.strip_suffix(unit)?.parse::<u64>().ok()?;
        number.checked_mul(*seconds)
    });
    let most = 24 * 3600;
    match unit {
        Some(seconds) if seconds <= most => Ok(Duration::from_secs(seconds)),
        Some(_) => Err("at most 24h".to_owned()),
        None => Err("expected a number with s, m or h, such as 90s or 5m".to_owned()),
    }
}
