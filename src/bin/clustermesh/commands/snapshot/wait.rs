//! Waiting: clusters are listed again and again until their nodes differ from the snapshots.

use std::collections::{BTreeMap, BTreeSet};
use std::ops::RangeInclusive;
use std::thread;
use std::time::{Duration, Instant};

use clustermesh::mesh::Mesh;
use clustermesh::name::ClusterName;
use clustermesh::text;

use super::SnapshotArgs;
use super::keep::Keeper;
use super::kept::KeptSnapshot;
use crate::clock;
use crate::cluster::Wanted;
use crate::output::Printer;
use crate::reach::Contact;
use crate::settings::Settings;

/// The options for waiting.
#[derive(clap::Args)]
pub(super) struct WaitOptions {
    /// Wait for a change, at most this long, such as 50m
    ///
    /// Lists nodes until they differ from the snapshots and have stayed the same for a while (`--debounce`), or the
    /// time is over, then writes the snapshots. Differences that need `--accept` do not end the wait. A refused login
    /// ends it, unless `--keep-going` is given.
    #[arg(
        long,
        value_name = "DURATION",
        value_parser = clock::duration,
        conflicts_with_all = ["from", "services"]
    )]
    pub(super) wait: Option<Duration>,

    /// Pause before clusters are listed again with `--wait`, from 5s to 1h
    #[arg(
        long,
        value_name = "DURATION",
        value_parser = interval,
        default_value = "30s",
        requires = "wait"
    )]
    interval: Duration,

    /// Time without a change before snapshots are written with `--wait`
    ///
    /// From 1s to 10m. Nodes that join together make one change, and Kilo has replaced a silent leader.
    #[arg(
        long,
        value_name = "DURATION",
        value_parser = debounce,
        default_value = "90s",
        requires = "wait"
    )]
    debounce: Duration,
}

/// The differences of a cluster, a line each.
type Differences = BTreeMap<ClusterName, Vec<String>>;

/// Lists nodes until a snapshot would change and the nodes have stayed the same for a while, or the time is over.
pub(super) fn until_changed(
    args: &SnapshotArgs,
    settings: &Settings,
    meshes: &[Mesh],
    clusters: &BTreeSet<&ClusterName>,
    contact: &mut Contact,
    printer: &mut Printer,
) -> anyhow::Result<()> {
    let options = &args.waiting;
    let Some(limit) = options.wait else {
        return Ok(());
    };
    let started = Instant::now();
    let left = || limit.saturating_sub(started.elapsed());
    let handling = args.handling.comparing();
    let (mut before, mut same_since) = (Differences::new(), started);
    let mut told = String::new();
    loop {
        let keeper = Keeper::new(&handling, settings, meshes);
        let total = left().max(args.reach.patience());
        let answers = contact.ask(clusters, Wanted::Nodes, Some(total), |cluster, answer| {
            let answer = answer.map_err(|fault| fault.is_final())?;
            let kept = keeper.keep(cluster, answer.listing, Some(answer.listed_at));
            // The last reading reports what makes no snapshot.
            Ok(kept.map_or_else(|_| Vec::new(), KeptSnapshot::writable_differences))
        })?;
        let is_refused = answers.values().any(|it| *it == Err(true));
        let now: Differences = answers
            .into_iter()
            .filter_map(|(cluster, answer)| Some((cluster, answer.ok()?)))
            .filter(|(_, differences)| !differences.is_empty())
            .collect();
        if now != before {
            same_since = Instant::now();
        }
        let calm = same_since.elapsed();
        let is_settled = !now.is_empty() && now == before && options.debounce <= calm;
        let left = left();
        if is_settled || left.is_zero() || (is_refused && !args.handling.keep_going) {
            return Ok(());
        }
        let line = waiting_for(&now, options.debounce, limit);
        if line != told {
            printer.line(&line);
            told = line;
        }
        let calm_left = options.debounce.saturating_sub(calm);
        let pause = if now.is_empty() { options.interval } else { options.interval.min(calm_left) };
        before = now;
        thread::sleep(pause.min(left));
    }
}

/// Describes what ends the wait.
fn waiting_for(differences: &Differences, debounce: Duration, limit: Duration) -> String {
    let limit = format!("at most {} s", limit.as_secs());
    if differences.is_empty() {
        return format!("waiting for a change of nodes, {limit}");
    }
    let clusters = text::list(differences.keys());
    let calm = debounce.as_secs();
    format!(
        "nodes of {clusters} have changed: waiting until they stay the same for {calm} s, {limit}"
    )
}

fn interval(text: &str) -> Result<Duration, String> {
    bounded(text, Duration::from_secs(5)..=Duration::from_secs(3600), "from 5s to 1h")
}

fn debounce(text: &str) -> Result<Duration, String> {
    bounded(text, Duration::from_secs(1)..=Duration::from_secs(600), "from 1s to 10m")
}

fn bounded(text: &str, range: RangeInclusive<Duration>, wanted: &str) -> Result<Duration, String> {
    let duration = clock::duration(text)?;
    let is_within = range.contains(&duration);
    is_within.then_some(duration).ok_or_else(|| format!("expected {wanted}"))
}
