//! Keeping: nodes that were listed become the snapshot of their cluster, or are compared with it.

use std::cell::RefCell;
use std::collections::BTreeSet;
use std::fmt::{Display, Write as _};
use std::io;
use std::path::PathBuf;

use clustermesh::config::Limits;
use clustermesh::diagnostic::{Severity, escaped};
use clustermesh::document::nearest;
use clustermesh::guard::{GuardRefusal, NewSnapshot, NodeOwners, NodeUids, SameCluster, decide};
use clustermesh::kilo::carry_over::{carry_over, replaced};
use clustermesh::kilo::lost_lead::mark_lost_leads;
use clustermesh::kilo::node::annotation;
use clustermesh::mesh::{DEFAULT_TOPOLOGY_LABEL, Entry, Mesh};
use clustermesh::name::ClusterName;
use clustermesh::results::own_files;
#[cfg(feature = "snapshot")]
use clustermesh::rules::clusters::{self, Fault};
use clustermesh::rules::{CheckStandard, Finding, Purpose, snapshots};
use clustermesh::snapshot::listing::{Heartbeats, Listing};
use clustermesh::snapshot::services::{FoundServices, ServiceSnapshot};
use clustermesh::snapshot::{Node, SIZE_LIMIT, Snapshot, SnapshotError};
use clustermesh::text;

use super::kept::KeptSnapshot;
use super::new_text::NewText;
use super::old_snapshot::{OldSnapshot, compared, counted, node_differences};
use super::{Handling, services};
use crate::disk::Roots;
use crate::files::ShownFiles;
use crate::output::Printer;
use crate::settings::Settings;
use crate::{Outcome, clock, disk, input_file, inputs};

/// The remedy for a file that is not the snapshot of a new cluster.
const RESTORE: &str = "restore the committed file or move it away, and run this again";

/// The keeper of snapshots.
pub(super) struct Keeper<'a> {
    pub(super) handling: &'a Handling,
    /// Whether the clusters are new in their mesh, so that an older snapshot has nothing to lose.
    is_first: bool,
    limits: Limits,
    standard: CheckStandard<'a>,
    dropped_labels: &'a [String],
    folder: PathBuf,
    /// The folders in which the snapshots may be.
    roots: Roots,
    meshes: &'a [Mesh],
    /// The clusters of the meshes, in the order of trust.
    order: Vec<ClusterName>,
    /// The nodes of each, as far as they are known: first from the snapshots that are there.
    nodes: RefCell<NodeUids>,
    /// The clusters of the nodes in the snapshots that are there.
    owners: NodeOwners,
}

impl<'a> Keeper<'a> {
    /// Returns a keeper of the snapshots that `settings` name, for clusters of `meshes`.
    pub(super) fn new(handling: &'a Handling, settings: &'a Settings, meshes: &'a [Mesh]) -> Self {
        let entries = meshes.iter().flat_map(|mesh| {
            let by_trust = |it: &&Entry| !mesh.topology.is_hub(&it.name);
            let mut entries: Vec<&Entry> = mesh.entries.iter().collect();
            entries.sort_by_key(by_trust);
            entries
        });
        let mut order: Vec<ClusterName> = Vec::new();
        for entry in entries {
            if !order.contains(&entry.name) {
                order.push(entry.name.clone());
            }
        }
        let mut keeper = Self {
            handling,
            is_first: false,
            limits: settings.config.content.limits,
            standard: settings.standard(Purpose::Snapshot),
            dropped_labels: &settings.dropped_labels.value,
            folder: settings.snapshots.value.clone(),
            roots: settings.roots_of(&settings.snapshots),
            meshes,
            nodes: RefCell::default(),
            owners: NodeOwners::default(),
            order,
        };
        // Services are compared with nothing else.
        for cluster in keeper.order.iter().filter(|_| !handling.services) {
            // A file that is not a snapshot is reported when its own turn comes.
            if let Ok(OldSnapshot::Read(snapshot)) = keeper.old(cluster, Snapshot::read) {
                keeper.nodes.borrow_mut().set(cluster, &snapshot.nodes);
            }
        }
        keeper.owners = keeper.nodes.borrow().owners();
        keeper
    }

    /// Removes temporary files that killed runs have left in its folder.
    pub(super) fn swept(self) -> io::Result<Self> {
        if !self.handling.check {
            disk::sweep(&self.roots, &self.folder)?;
        }
        Ok(self)
    }

    /// Returns it for clusters that are new in their mesh.
    pub(super) fn for_new_clusters(self) -> Self {
        Self { is_first: true, owners: NodeOwners::default(), ..self }
    }

    /// Makes a listing a snapshot of its cluster, and writes or compares it. `now` is the time at which the list began,
    /// if the cluster was listed just now.
    ///
    /// # Errors
    /// A listing that makes no snapshot.
    pub(super) fn keep(
        &self,
        cluster: &ClusterName,
        listing: Listing,
        now: Option<i64>,
    ) -> Result<KeptSnapshot, SnapshotError> {
        let stale_after = self.limits.stale_after_seconds;
        let heartbeats = now.map(|now| listing.heartbeats(now));
        // No snapshot has times, so an old dump can be recognized only here.
        let age = listing.heartbeats(clock::now()).age().filter(|_| now.is_none());
        let is_single = listing.is_single;
        let (new, stale) = listing.snapshot(cluster.clone(), stale_after, now)?;
        let memberships = self.memberships(cluster);
        let used =
            memberships.iter().flat_map(|(_, entry)| entry.labels()).map(|(_, key)| key).collect();
        let new = new.without_labels(self.dropped_labels, &used);
        let stale = snapshots::stale(cluster, &stale);
        let kept = self.renew(cluster, new, heartbeats.as_ref(), stale);
        let mut kept = kept.unwrap_or_else(KeptSnapshot::failed);
        snapshots::doubt_losses(&mut kept.findings, is_single, age.unwrap_or_default());
        Ok(kept)
    }

    /// Makes Services the service snapshot of their cluster, and writes or compares it.
    pub(super) fn keep_services(
        &self,
        cluster: &ClusterName,
        found: FoundServices,
    ) -> KeptSnapshot {
        let renew = || {
            let names = services::named(self.meshes, cluster)?;
            let new = ServiceSnapshot::new(cluster, &names, found);
            let (all, found) = new.counts();
            let mut described = text::count(all, "Service");
            if found < all {
                let _ = write!(described, ", {} missing", all - found);
            }
            let old = self.old(cluster, ServiceSnapshot::read)?;
            let new_text = NewText::new(self.path(cluster), new.to_json()?, described)?;
            let is_same = new_text.is_in(&self.roots, &old)?;
            new_text.put(&self.roots, self.handling.check, is_same, |name| {
                compared(name, &old, |old| old.differences(&new))
            })
        };
        renew().unwrap_or_else(KeptSnapshot::failed)
    }

    /// Keeps the snapshots that are there, for there is nothing else.
    #[cfg(feature = "snapshot")]
    pub(super) fn keep_old(&self, faults: &[(ClusterName, Fault)]) -> KeptSnapshot {
        let (mut findings, mut outcome) = (Vec::new(), Outcome::Clean);
        for (cluster, fault) in faults {
            let file = self.file(cluster);
            let finding = clusters::fault(cluster, fault, file.as_deref());
            // Without a comparison, nothing is up to date.
            let is_bearable = !self.handling.check && self.has_snapshot(cluster);
            let reported = self.settled(vec![finding], is_bearable);
            if reported.iter().any(|it| it.severity == Severity::Error) {
                outcome = Outcome::Unreadable;
            }
            findings.extend(reported);
        }
        KeptSnapshot { findings, outcome, ..KeptSnapshot::default() }
    }

    /// Replaces the old snapshot with a new one, if the new one is plausible.
    fn renew(
        &self,
        cluster: &ClusterName,
        mut new: Snapshot,
        heartbeats: Option<&Heartbeats>,
        mut findings: Vec<Finding>,
    ) -> anyhow::Result<KeptSnapshot> {
        let old = self.old(cluster, Snapshot::read)?;
        let before = old.snapshot().filter(|_| !self.is_first);
        if let Some(before) = before.filter(|_| !self.handling.no_carry_over.contains(cluster)) {
            let carried = carry_over(before, &mut new);
            findings.extend(snapshots::carried_over(cluster, &carried));
        }
        let memberships = self.memberships(cluster);
        if let Some(heartbeats) = heartbeats {
            let label =
                memberships.first().map_or(DEFAULT_TOPOLOGY_LABEL, |it| &it.1.topology_label);
            let lost = mark_lost_leads(&mut new, heartbeats, label);
            findings.extend(snapshots::lost_leads(cluster, &lost));
        }
        if memberships.is_empty() {
            findings.extend(self.unknown(cluster));
        }
        let candidate = NewSnapshot { old: before, new: &new, memberships: &memberships };
        let mut decision = decide(candidate, &self.limits);
        if let Some(twin) = self.owners.of_most(&new, old.snapshot()) {
            decision.refusals = vec![GuardRefusal::Twin(twin)];
        } else {
            // Also if it is refused: this is what the name leads to.
            self.nodes.borrow_mut().set(cluster, &new.nodes);
        }
        findings.extend(snapshots::losses(cluster, &decision.losses));
        let asked = before.filter(|_| !self.handling.accept.contains(cluster));
        let replaced = asked.and_then(|before| replaced(before, &new)).zip(self.file(cluster));
        findings.extend(replaced.map(|(nodes, file)| snapshots::replaced(cluster, nodes, &file)));
        let described = described(&new.nodes, decision.usable);
        let mut new_text = NewText::new(self.path(cluster), new.to_json()?, described)?;
        let is_same = new_text.is_in(&self.roots, &old)?;
        let refusals = if is_same {
            // It was accepted before.
            Vec::new()
        } else {
            self.refusals(cluster, &old, &decision.refusals)
        };
        // However much it matters: what is refused is not written.
        new_text.is_refused = !refusals.is_empty();
        new_text.counted = counted(&old, &new);
        let refusals = self.settled(refusals, before.is_some());
        let kept = new_text.put(&self.roots, self.handling.check, is_same, |name| {
            compared(name, &old, |old| node_differences(old, &new))
        })?;
        findings.extend(refusals);
        Ok(KeptSnapshot { findings, ..kept })
    }

    /// Reports a cluster that no mesh names, if there are any meshes.
    fn unknown(&self, cluster: &ClusterName) -> Option<Finding> {
        let entries = self.meshes.iter().flat_map(|mesh| &mesh.entries);
        let nearest = nearest(cluster.as_str(), entries.map(|entry| entry.name.as_str()));
        (!self.meshes.is_empty()).then(|| snapshots::unknown(cluster, nearest))
    }

    /// Returns what a person must be asked about, unless one has answered.
    fn refusals(
        &self,
        cluster: &ClusterName,
        old: &OldSnapshot,
        refusals: &[GuardRefusal],
    ) -> Vec<Finding> {
        let is_twin = matches!(refusals, [GuardRefusal::Twin(_)]);
        if self.handling.accept.contains(cluster) && !is_twin {
            return Vec::new();
        }
        let kept = self.file(cluster);
        let is_first = self.is_first;
        let refusals = if is_first { &[] } else { refusals };
        let mut findings = snapshots::refusals(cluster, refusals, kept.as_deref());
        if let (OldSnapshot::Unreadable(problem), Some(file)) = (old, kept) {
            let finding = snapshots::unreadable(cluster, &file, problem);
            findings.push(if is_first { finding.help(RESTORE) } else { finding });
        }
        findings
    }

    /// Decides the severity of an old snapshot that stays. If none can be used, the severity cannot
    /// be lowered.
    fn settled(&self, mut findings: Vec<Finding>, is_bearable: bool) -> Vec<Finding> {
        if is_bearable {
            findings = self.standard.level(findings).to_vec();
        }
        for finding in &mut findings {
            if is_bearable && self.handling.keep_going {
                finding.severity = finding.severity.min(Severity::Warning);
            }
            finding.is_final = true;
        }
        findings
    }

    /// Reports which of these clusters have nodes of others, once all clusters have answered.
    pub(super) fn report_twins(
        &self,
        clusters: &BTreeSet<&ClusterName>,
        printer: &mut Printer,
    ) -> Outcome {
        let twins = self.nodes.borrow().twins(&self.order);
        let findings = twins
            .iter()
            .filter(|it| clusters.contains(&it.cluster) || clusters.contains(&it.other))
            .map(|it| {
                // Of both clusters, the one that was asked now is named: its context or file is the mistake.
                if !clusters.contains(&it.cluster) {
                    return snapshots::twin(&SameCluster {
                        cluster: it.other.clone(),
                        other: it.cluster.clone(),
                        node: it.node.clone(),
                    });
                }
                snapshots::twin(it)
            })
            .collect();
        self.report_findings(findings, printer)
    }

    /// Reports findings with their levels.
    fn report_findings(&self, findings: Vec<Finding>, printer: &mut Printer) -> Outcome {
        let findings = self.standard.level(findings);
        printer.findings(&ShownFiles::default(), &findings);
        self.handling.fail_on.threshold().outcome(&findings)
    }

    /// Reports what happened to a snapshot: differences as a result, everything else as messages.
    pub(super) fn report(
        &self,
        kept: KeptSnapshot,
        printer: &mut Printer,
    ) -> anyhow::Result<Outcome> {
        if let Some(line) = &kept.line {
            printer.line(line);
        }
        if let Some(error) = &kept.error {
            printer.error(error);
        }
        let outcome = self.report_findings(kept.findings, printer);
        printer.print(&kept.differences)?;
        Ok(kept.outcome.max(outcome))
    }

    /// Returns the file of a cluster, if there is one.
    pub(super) fn file(&self, cluster: &ClusterName) -> Option<String> {
        let path = self.path(cluster);
        let is_absent = matches!(disk::is_there(&Roots::anywhere(), &path), Ok(false));
        (!is_absent).then(|| input_file::name(&path))
    }

    /// Returns whether a cluster has a snapshot that can be used.
    #[cfg(feature = "snapshot")]
    fn has_snapshot(&self, cluster: &ClusterName) -> bool {
        if self.handling.services {
            matches!(self.old(cluster, ServiceSnapshot::read), Ok(OldSnapshot::Read(_)))
        } else {
            matches!(self.old(cluster, Snapshot::read), Ok(OldSnapshot::Read(_)))
        }
    }

    fn path(&self, cluster: &ClusterName) -> PathBuf {
        if self.handling.services {
            inputs::services::file(&self.folder, cluster)
        } else {
            self.folder.join(format!("{cluster}.json"))
        }
    }

    fn memberships(&self, cluster: &ClusterName) -> Vec<(&'a Mesh, &'a Entry)> {
        let entries = self.meshes.iter().flat_map(|mesh| {
            let named = mesh.entries.iter().filter(|entry| entry.name == *cluster);
            named.map(move |entry| (mesh, entry))
        });
        entries.collect()
    }

    fn old<T, E: Display>(
        &self,
        cluster: &ClusterName,
        read: fn(&ClusterName, &str) -> Result<T, E>,
    ) -> anyhow::Result<OldSnapshot<T>> {
        if self.file(cluster).is_none() {
            return Ok(OldSnapshot::None);
        }
        let text = disk::read_text(&self.roots, &self.path(cluster), SIZE_LIMIT)?;
        Ok(match read(cluster, &text) {
            Ok(snapshot) => OldSnapshot::Read(snapshot),
            Err(_) if !own_files::is_ours(&text) => {
                OldSnapshot::Unreadable(own_files::withheld(&text).to_owned())
            }
            Err(error) => OldSnapshot::Unreadable(escaped(&error.to_string(), 400)),
        })
    }
}

/// Prints the number of nodes, and what is unusual about them.
fn described(nodes: &[Node], usable: Option<usize>) -> String {
    let mut parts = vec![text::count(nodes.len(), "node")];
    let has_key = |node: &Node| node.annotations.contains_key(annotation::KEY);
    if !nodes.is_empty() && !nodes.iter().any(has_key) {
        parts.push("none with a Kilo key (does Kilo run there?)".to_owned());
    } else if let Some(usable) = usable {
        parts.push(format!("{usable} usable"));
    }
    let counts = [
        (nodes.iter().filter(|it| it.stale).count(), "stale"),
        (nodes.iter().filter(|it| it.carried_over).count(), "carried over"),
        (nodes.iter().filter(|it| it.lost_lead).count(), "replaced as leader"),
    ];
    let there = counts.into_iter().filter(|(count, _)| 0 < *count);
    parts.extend(there.map(|(count, what)| format!("{count} {what}")));
    parts.join(", ")
}
