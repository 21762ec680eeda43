//! States as metrics, in the text format of Prometheus.

use std::collections::BTreeMap;
use std::fmt::Write as _;

use super::StatusResult;
use super::state::{ClusterState, ClusterStatus, GuardState};
use crate::agent::inventory::Inventory;
use crate::diagnostic::Severity;
use crate::name::ClusterName;
use crate::report::origin::VERSION;

/// A name and a value.
type MetricLabel<'a> = (&'a str, &'a str);

/// The metrics that are written.
#[derive(Default)]
struct MetricsText(String);

impl MetricsText {
    /// Adds a gauge with its samples, unless it has none.
    fn gauge<'a, const N: usize>(
        &mut self,
        name: &str,
        help: &str,
        samples: impl IntoIterator<Item = ([MetricLabel<'a>; N], i64)>,
    ) {
        let mut samples = samples.into_iter().peekable();
        if samples.peek().is_none() {
            return;
        }
        let _ = writeln!(self.0, "# HELP {name} {help}\n# TYPE {name} gauge");
        for (labels, value) in samples {
            let labels = labels.map(|(key, value)| format!("{key}=\"{}\"", label(value)));
            let labels = labels.join(",");
            let labels = if labels.is_empty() { labels } else { format!("{{{labels}}}") };
            let _ = writeln!(self.0, "{name}{labels} {value}");
        }
    }
}

/// Returns a value of a label, in which three characters are escaped.
fn label(value: &str) -> String {
    value.replace('\\', "\\\\").replace('"', "\\\"").replace('\n', "\\n")
}

impl StatusResult<'_> {
    /// Returns the metrics of a moment, given when a commit last changed each snapshot, in Unix seconds.
    pub fn metrics(&self, now: i64, committed: &BTreeMap<ClusterName, i64>) -> String {
        let mut text = MetricsText::default();
        let info = [([("version", VERSION)], 1)];
        text.gauge("clustermesh_build_info", "The version of clustermesh.", info);
        let time = [([], now)];
        let help = "When the clusters were read, in Unix seconds.";
        text.gauge("clustermesh_status_timestamp_seconds", help, time);
        self.clusters(&mut text);
        let times = committed.iter().map(|(it, time)| ([("cluster", it.as_str())], *time));
        let help =
            "When a commit last changed the snapshot, in Unix seconds, if the history shows it.";
        text.gauge("clustermesh_snapshot_committed_timestamp_seconds", help, times);
        self.findings(&mut text);
        self.tunnels(&mut text);
        text.0
    }

    fn clusters(&self, text: &mut MetricsText) {
        let each = |value: fn(&ClusterStatus) -> bool| {
            let clusters = self.clusters.iter();
            clusters.map(move |it| ([("cluster", it.cluster.as_str())], i64::from(value(it))))
        };
        let help = "Whether the cluster could be read, with nodes that make a snapshot.";
        text.gauge("clustermesh_cluster_readable", help, each(ClusterStatus::is_readable));
        let help = "Whether nothing has to be done about the cluster.";
        text.gauge("clustermesh_cluster_clean", help, each(ClusterStatus::is_clean));
        let found = || {
            let clusters = self.clusters.iter();
            clusters.filter_map(|it| Some((it.cluster.as_str(), it.found.as_ref()?)))
        };
        let has_crd = |it: &ClusterState| i64::from(!it.crd_versions.is_empty());
        let crds = found().map(|(cluster, it)| ([("cluster", cluster)], has_crd(it)));
        let help = "Whether the cluster has the CRD of Kilo's Peers.";
        text.gauge("clustermesh_crd_installed", help, crds);
        let peers = found().flat_map(|(cluster, it)| {
            let counts = peer_counts(&it.peers.inventory);
            counts.map(|(state, count)| ([("cluster", cluster), ("state", state)], number(count)))
        });
        let help = "The Peers of the cluster, compared with the rendered ones.";
        text.gauge("clustermesh_peers", help, peers);
        let read = || found().filter(|(_, it)| it.nodes.error.is_none());
        let current = |it: &ClusterState| i64::from(it.nodes.is_current);
        let snapshots = read().map(|(cluster, it)| ([("cluster", cluster)], current(it)));
        let help = "Whether the snapshot is what the nodes of the cluster are now.";
        text.gauge("clustermesh_snapshot_current", help, snapshots);
        let count = |it: &ClusterState| number(it.nodes.differences.len());
        let differences = read().map(|(cluster, it)| ([("cluster", cluster)], count(it)));
        let help = "The differences between the snapshot and the nodes of the cluster.";
        text.gauge("clustermesh_snapshot_differences", help, differences);
        let guards = found().flat_map(|(cluster, it)| {
            GUARDS.map(|(state, name)| {
                ([("cluster", cluster), ("state", name)], i64::from(it.guard.state == state))
            })
        });
        let help = "1 for the state of the guard of the cluster, 0 for the other states.";
        text.gauge("clustermesh_guard", help, guards);
    }

    fn findings(&self, text: &mut MetricsText) {
        let mut counts: BTreeMap<(&str, Severity), usize> = BTreeMap::new();
        for it in &self.findings {
            *counts.entry((it.finding.rule.name(), it.finding.severity)).or_default() += 1;
        }
        let words = counts
            .into_iter()
            .map(|((rule, severity), count)| (rule, severity.to_string(), number(count)));
        let words: Vec<(&str, String, i64)> = words.collect();
        let samples = words
            .iter()
            .map(|(rule, severity, count)| ([("rule", *rule), ("severity", severity)], *count));
        let help =
            "The findings about the mesh, the snapshots, the rendered tree and the connections.";
        text.gauge("clustermesh_findings", help, samples);
    }

    fn tunnels(&self, text: &mut MetricsText) {
        let counts = self.tunnels.into_iter().flat_map(|it| it.counts());
        let samples = counts.map(|([one, other], answer, count)| {
            let labels = [("cluster", one.as_str()), ("other", other.as_str()), ("answer", answer)];
            (labels, number(count))
        });
        let help = "The tunnels between two clusters, by the report of Kilo's agents.";
        text.gauge("clustermesh_tunnels", help, samples);
    }
}

/// The states of a guard with their names.
const GUARDS: [(GuardState, &str); 5] = [
    (GuardState::Absent, "absent"),
    (GuardState::Current, "current"),
    (GuardState::Warning, "warning"),
    (GuardState::Outdated, "outdated"),
    (GuardState::Unknown, "unknown"),
];

/// Returns the number of Peers in each state.
fn peer_counts(inventory: &Inventory) -> [(&'static str, usize); 7] {
    let Inventory { in_sync, missing, changed, left_over, foreign, same_key, own_key } = inventory;
    [
        ("in_sync", *in_sync),
        ("missing", missing.len()),
        ("changed", changed.len()),
        ("left_over", left_over.len()),
        ("foreign", foreign.len()),
        ("same_key", same_key.iter().map(Vec::len).sum()),
        ("own_key", own_key.len()),
    ]
}

fn number(count: usize) -> i64 {
    i64::try_from(count).unwrap_or(i64::MAX)
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use super::super::tunnels::TunnelReport;
    use super::*;
    use crate::agent::handshakes::{HandshakeAnswer, PairReport, TunnelGroup};
    use crate::results::findings::Report;
    use crate::results::status::state::{GuardStatus, NodeCounts, UnreadCluster};
    use crate::rules::{self, Finding, LevelledFindings};
    use crate::testing::NoTexts;

    /// The metrics that the alerts of the gallery are checked with, also by Prometheus' own parsers in `tests/metrics`.
    const EXAMPLE: &str = include_str!("metrics/example.prom");

    fn name(text: &str) -> ClusterName {
        text.parse().unwrap()
    }

    #[test]
    fn every_state_is_a_metric() {
        let mut east = ClusterStatus::new(&name("east"), None);
        east.found = Some(ClusterState {
            crd_versions: vec!["v1alpha1".to_owned()],
            nodes: NodeCounts::new(Ok(vec!["`n3` added".to_owned()])),
            guard: GuardStatus { state: GuardState::Current, problem: None },
            ..ClusterState::default()
        });
        let inventory = &mut east.found.as_mut().unwrap().peers.inventory;
        inventory.in_sync = 3;
        inventory.missing = vec!["prod--west--n2".to_owned()];
        let mut west = ClusterStatus::new(&name("west"), None);
        let rule = rules::find("missing-endpoint")[0];
        let finding = |node| Finding::on_node(rule, &name("east"), node, "left out".to_owned());
        west.found = None;
        west.error = Some(UnreadCluster::new(&finding("n1"), true));
        let group = |count| TunnelGroup { count, first: Vec::new() };
        let one = HandshakeAnswer::One(name("east"));
        let answers = [
            (HandshakeAnswer::Both, group(2)),
            (one, group(1)),
            (HandshakeAnswer::NoneReported, group(1)),
        ];
        let tunnels = TunnelReport::new(vec![PairReport {
            clusters: [name("east"), name("west")],
            answers: answers.into(),
        }]);
        let findings = LevelledFindings::fixed(vec![finding("n1"), finding("n2")]);
        let report = Report::new(&NoTexts, &findings);
        let clusters = [east, west];
        let result = StatusResult::new(&clusters, Some(&tunnels), &report, String::new(), false);
        let committed = BTreeMap::from([(name("east"), 1_700_000_000)]);
        let version = format!("version=\"{}\"", env!("CARGO_PKG_VERSION"));
        let metrics = result.metrics(1_700_000_600, &committed);
        assert_eq!(metrics.replace(&version, "version=\"0.1.0\""), EXAMPLE);
    }

    #[test]
    fn a_label_has_no_line_break_and_no_quote() {
        assert_eq!(label("a\"b\\c\nd"), r#"a\"b\\c\nd"#);
    }
}
