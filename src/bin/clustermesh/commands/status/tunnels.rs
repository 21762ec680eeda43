//! Tunnels: the handshakes that the agents of clusters report, read again until the reports are up to date.

use std::collections::{BTreeMap, BTreeSet};
use std::thread;
use std::time::{Duration, Instant};

use clustermesh::agent::applied::AppliedFile;
use clustermesh::agent::handshakes::{AgentReports, ClusterReading, HandshakeWatch};
use clustermesh::fleet::in_order_of_rank;
use clustermesh::kilo::lost_lead::mark_lost_leads;
use clustermesh::mesh::Entry;
use clustermesh::name::ClusterName;
use clustermesh::results::status::tunnels::TunnelReport;
use clustermesh::rules::clusters::Fault;
use clustermesh::snapshot::Snapshot;

use super::StatusArgs;
use crate::clock;
use crate::cluster::{ClusterAnswer, Wanted};
use crate::cluster_peers::ClusterPeers;
use crate::failure::CommandResult;
use crate::inputs::Inputs;
use crate::output::Printer;
use crate::reach::Contact;

/// The pause before nodes are listed again. Agents check in every 30 s.
const PAUSE: Duration = Duration::from_secs(10);

/// The options for the reports of agents.
#[derive(clap::Args)]
pub(super) struct TunnelOptions {
    /// List the tunnels that have had a handshake, as Kilo's agents report it
    ///
    /// Reads nodes and Peers again until the reports are up to date, at most two minutes more than `--resync`, or as long
    /// as `--wait`. Exits with 1 if a tunnel that should come up has had no handshake. The agents are believed, so this
    /// proves nothing; see `verify`.
    #[arg(long)]
    tunnels: bool,

    /// Kilo's `--resync-period`, if it is not the default, such as 60s
    #[arg(
        long,
        value_name = "DURATION",
        value_parser = clock::duration,
        default_value = "30s",
        requires = "tunnels"
    )]
    resync: Duration,
}

/// The inputs of the reports.
pub(super) struct TunnelReading<'a> {
    pub(super) args: &'a StatusArgs,
    pub(super) inputs: &'a Inputs,
    pub(super) rendered: &'a ClusterPeers,
    pub(super) started: Instant,
}

/// A cluster as it was read.
struct LiveTunnels {
    snapshot: Snapshot,
    peers: Vec<AppliedFile>,
    reports: AgentReports,
}

impl TunnelReading<'_> {
    /// Reads the reports of clusters, if they are wanted, until they are up to date or the time is over.
    pub(super) fn reports(
        &self,
        clusters: &BTreeSet<&ClusterName>,
        contact: &mut Contact,
        printer: &mut Printer,
    ) -> CommandResult<Option<TunnelReport>> {
        let StatusArgs { wait, tunnels: options, reach, .. } = self.args;
        if !options.tunnels {
            return Ok(None);
        }
        let started = if wait.is_some() { self.started } else { Instant::now() };
        let mut watch = HandshakeWatch::new(options.resync.as_secs());
        let limit = wait.unwrap_or(Duration::from_secs(watch.limit()));
        let entries = in_order_of_rank(&self.inputs.meshes);
        let mut answered: BTreeMap<ClusterName, LiveTunnels> = BTreeMap::new();
        let mut last_line = String::new();
        loop {
            let total = limit.saturating_sub(started.elapsed()).max(reach.patience());
            let wanted = Wanted::NodesAndPeers;
            let answers = contact
                .ask(clusters, wanted, Some(total), |cluster, answer| self.read(cluster, answer))?;
            // The last answer of a cluster counts until there is another one.
            answered
                .extend(answers.into_iter().filter_map(|(cluster, it)| Some((cluster, it.ok()?))));
            let read = entries.iter().filter_map(|entry| self.cluster(entry, &answered));
            let read: Vec<ClusterReading> = read.collect();
            let report = TunnelReport::new(watch.read(&self.inputs.meshes, &read));
            let left = limit.saturating_sub(started.elapsed());
            let Some(line) = report.waits_for(&watch, wait.is_some()).filter(|_| !left.is_zero())
            else {
                return Ok(Some(report));
            };
            if line != last_line {
                printer.line(&format!("{line}, at most {} s", limit.as_secs()));
                last_line = line;
            }
            thread::sleep(left.min(PAUSE));
        }
    }

    /// Reads the answer of a cluster.
    fn read(
        &self,
        cluster: &ClusterName,
        answer: Result<ClusterAnswer, Fault>,
    ) -> anyhow::Result<LiveTunnels> {
        let ClusterAnswer { listing, listed_at, peers, .. } =
            answer.map_err(|fault| anyhow::anyhow!("{fault}"))?;
        let reports = AgentReports {
            heartbeats: listing.heartbeats(listed_at),
            handshakes: listing.handshakes(),
            changed_at: peers.changed_at(),
        };
        let peers = peers.into_file(cluster).map_err(|fault| anyhow::anyhow!("{fault}"))?;
        let stale_after = self.inputs.settings.config.content.limits.stale_after_seconds;
        let (mut snapshot, _) = listing.snapshot(cluster.clone(), stale_after, Some(listed_at))?;
        let entries = in_order_of_rank(&self.inputs.meshes);
        let entry = entries.iter().find(|it| it.name == *cluster);
        if let Some(entry) = entry {
            mark_lost_leads(&mut snapshot, &reports.heartbeats, &entry.topology_label);
        }
        Ok(LiveTunnels { snapshot, peers: peers.into_iter().collect(), reports })
    }

    /// Returns a cluster as it was read, or else as its snapshot and the rendered Peers show it.
    fn cluster<'r>(
        &'r self,
        entry: &'r Entry,
        answered: &'r BTreeMap<ClusterName, LiveTunnels>,
    ) -> Option<ClusterReading<'r>> {
        if entry.name.is_external() {
            return None;
        }
        if let Some(LiveTunnels { snapshot, peers, reports }) = answered.get(&entry.name) {
            return Some(ClusterReading { entry, snapshot, files: peers, reports: Some(reports) });
        }
        let snapshot = &*self.inputs.snapshots.get(&entry.name)?.snapshot;
        let files = self.rendered.files(&entry.name);
        Some(ClusterReading { entry, snapshot, files, reports: None })
    }
}
