//! Waves: what each cluster has to carry as others join, one wave after another.

use std::collections::BTreeSet;
use std::fmt::Write as _;

use clustermesh::capacity::{Cost, Estimate, Ledger, Outgrowth, units};
use clustermesh::config::capacity::Quantity;
use clustermesh::diagnostic::Severity;
use clustermesh::fleet::Fleet;
use clustermesh::joining::{self, JoinWave, Joiner, Joining};
use clustermesh::name::ClusterName;
use clustermesh::rules::{Finding, costs};
use clustermesh::text::{self, count};

use super::shown;
use clustermesh::report::style::bold;
use clustermesh::report::table::TextTable;
use clustermesh::report::width::Width;

/// The hint at `--waves`.
pub(super) const ASK_FOR_WAVES: &str =
    "Run `clustermesh capacity --waves` to see which clusters can join together.";

/// Everything that is shown about clusters that join.
#[derive(Default)]
pub(super) struct JoinOutlook {
    /// Clusters that cannot join before they have a snapshot.
    pub(super) waiting: Vec<Joiner>,
    /// All others as one wave; nothing if there are none.
    pub(super) together: Option<JoinWave>,
    /// The same one after another, if that is asked for.
    pub(super) waves: Option<Vec<JoinWave>>,
    /// The number of clusters that can be added; nothing if no cluster gets Peers.
    pub(super) outgrowth: Option<Outgrowth>,
    /// Sentences about the steps before the first wave, and the order within each.
    pub(super) advice: Vec<String>,
}

impl JoinOutlook {
    /// Plans the clusters that join, together or one wave after another.
    pub(super) fn plan(
        joining: &Joining,
        ledger: &Ledger,
        is_in_waves: bool,
    ) -> anyhow::Result<Self> {
        let ready = joining.ready();
        let together = if ready.is_empty() {
            None
        } else {
            joining.planned(ledger, vec![ready])?.pop()
        };
        let waves = if is_in_waves {
            let waves = joining.waves(ledger.capacity())?;
            Some(joining.planned(ledger, waves)?)
        } else {
            None
        };
        Ok(Self {
            waiting: joining.waiting(),
            together,
            waves,
            ..Self::default()
        })
    }

    /// Leaves out the clusters that are not asked for.
    pub(super) fn retain(&mut self, is_asked: impl Fn(&str) -> bool) {
        let waves = self
            .together
            .iter_mut()
            .chain(self.waves.iter_mut().flatten());
        for wave in waves {
            wave.costs.retain(|it| is_asked(&it.cluster));
        }
    }

    /// Adds the costs of any change of Peers, with their remedies, and the order of clusters within a wave.
    pub(super) fn advise(&mut self, findings: &[Finding], fleet: &Fleet) {
        let of_changes = findings.iter().filter(|it| costs::is_about(it.rule));
        self.advice.extend(of_changes.map(|it| {
            let help = it.help.as_deref().unwrap_or_default();
            format!("{}. Before the first wave, {help}.", it.message)
        }));
        let members = fleet.members().iter();
        let behind_nat: BTreeSet<&ClusterName> = members
            .filter(|it| it.is_behind_nat())
            .map(|it| &it.entry.name)
            .collect();
        if !behind_nat.is_empty() {
            self.advice.push(format!(
                "Apply each wave in one cluster after another, and change the clusters behind NAT last: {}.",
                text::listed(behind_nat)
            ));
        }
    }

    /// Returns whether anything that is shown is this severe.
    pub(super) fn is_as_grave_as(&self, severity: Severity) -> bool {
        let mut costs = self.waves.iter().flatten().flat_map(|it| &it.costs);
        costs.any(|it| Some(severity) <= it.grade())
    }
}

/// Returns a block for each cluster for which a wave is worth a warning.
pub(super) fn exceeded(waves: &[JoinWave], width: Width) -> String {
    let mut text = String::new();
    for (number, wave) in (1..).zip(waves) {
        for (cost, grave) in wave.beyond() {
            let head = bold(&format!("wave {number}, {}", cost.cluster));
            let estimates = shown::estimates(&grave, "  ", width);
            let levers = shown::levers(cost, &grave, "  ", width);
            let why = hopeless(wave, cost, &grave);
            let _ = write!(text, "\n{head}\n{estimates}  {why}\n{levers}");
        }
    }
    text
}

/// Returns how many waves there are, and what to do for each.
pub(super) fn closing(waves: &[JoinWave]) -> String {
    let joiners: usize = waves.iter().map(|it| it.joiners.len()).sum();
    format!(
        "{} for {}. For each wave, remove `state: Joining` of its clusters, run \
         `clustermesh render`, commit, and wait until `clustermesh status` finds no difference.",
        count(waves.len(), "wave"),
        count(joiners, "cluster")
    )
}

/// Returns a row for each wave, below the head.
pub(super) fn table(waves: &[JoinWave]) -> TextTable {
    let mut table = TextTable::new([
        ">WAVE", "CLUSTERS", "BUSIEST", ">CHANGE", ">BUSY", ">APPLY", "GRADE",
    ]);
    for (number, wave) in (1..).zip(waves) {
        let grade = wave.costs.iter().filter_map(Cost::grade).max();
        let busiest = wave.busiest();
        let cell = |text: &dyn Fn(&Cost, f64) -> String| {
            busiest.map_or_else(String::new, |(cost, seconds)| text(cost, seconds))
        };
        table.add(vec![
            number.to_string(),
            joining::listed(&wave.joiners),
            cell(&|cost, _| cost.cluster.clone()),
            cell(&|cost, _| shown::change(cost)),
            cell(&|_, seconds| units::seconds(seconds)),
            cell(&|cost, _| {
                let seconds = cost.value(Quantity::ApplySeconds);
                seconds.map_or_else(String::new, units::seconds)
            }),
            shown::grade(grade),
        ]);
    }
    table
}

/// Returns why other waves would not help.
fn hopeless(wave: &JoinWave, cost: &Cost, grave: &[&Estimate]) -> String {
    let is_of_change =
        |it: &&Estimate| matches!(it.quantity, Quantity::WavePeers | Quantity::WaveSeconds);
    if !grave.iter().all(is_of_change) {
        return "no order of joining helps: the Peers of all clusters together exceed the limit"
            .to_owned();
    }
    let target = &cost.cluster;
    let peers = count(cost.wave.added, "Peer");
    if wave.joiners.iter().any(|it| it.cluster.as_str() == target) {
        return format!("{target} alone exceeds the limit: it gets {peers} in one change");
    }
    let names = joining::listed(&wave.joiners);
    format!("the Peers of {names} alone exceed the limit: {target} gets {peers} in one change")
}

/// Returns the clusters that are not counted.
pub(super) fn waiting(waiting: &[Joiner]) -> String {
    if waiting.is_empty() {
        return String::new();
    }
    let names = joining::listed(waiting);
    format!("\nNot counted, because a snapshot is missing: {names}.\n")
}
