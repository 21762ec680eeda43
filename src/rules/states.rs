//! Clusters that are not joined, and what is left to do for them.

use std::collections::BTreeSet;

use super::Finding;
use crate::config::Config;
use crate::diagnostic::FindingCause;
use crate::fleet::Fleet;
use crate::mesh::{Entry, Mesh, State, leaves};
use crate::name::{ClusterName, MeshName};
use crate::plan::{Plan, Target};
use crate::text::listed;

rules! {
    "Clusters that join or leave" in "states" about Plan;
    UNCHECKED_CLUSTER = "unchecked-cluster" Notice;
    LEAVING_CLUSTER = "leaving-cluster" Notice;
}

/// Returns findings about clusters that join or leave.
pub(super) fn findings(
    config: &Config,
    meshes: &[Mesh],
    fleet: &Fleet,
    plan: Option<&Plan>,
) -> Vec<Finding> {
    let unchecked = unchecked(meshes, fleet);
    let emptied = plan.into_iter().flat_map(|plan| emptied(config, meshes, plan));
    unchecked.into_iter().chain(emptied).collect()
}

/// Returns the clusters that join and have no snapshot yet, or one without nodes.
fn unchecked(meshes: &[Mesh], fleet: &Fleet) -> Vec<Finding> {
    let entries = meshes.iter().flat_map(|mesh| &mesh.entries);
    let mut known = BTreeSet::new();
    let joining = entries.filter(|it| it.state == State::Joining && known.insert(&it.name));
    let findings = joining.filter_map(|entry| {
        let lack = match fleet.memberships(&entry.name).next() {
            None => "has no snapshot",
            Some(it) if it.cluster.nodes.is_empty() => "its snapshot has no nodes",
            Some(_) => return None,
        };
        let message = format!("is joining and {lack}, so its nodes are not checked");
        let finding = Finding::on_cluster(&UNCHECKED_CLUSTER, &entry.name, message)
            .at(entry.place.key("state"), "");
        Some(finding.help(format!("run `clustermesh snapshot {}`", entry.name)))
    });
    findings.collect()
}

/// Returns the clusters whose folder has no Peers any more because of a cluster that leaves: some ways
/// to apply an empty folder delete nothing.
fn emptied(config: &Config, meshes: &[Mesh], plan: &Plan) -> Vec<Finding> {
    let targets = plan.targets.iter();
    // A linked cluster that gives nothing for another reason has findings of its own.
    let is_left = |it: &&Target| it.absent.is_empty() && it.without.is_empty();
    let leaves = |it: &&Target| leaves(meshes, &it.cluster);
    let emptied = targets.filter(|it| it.peer_sets.is_empty() && !it.parted.is_empty());
    let emptied = emptied.filter(|it| leaves(it) || is_left(it));
    let emptied: Vec<EmptiedTarget> =
        emptied.filter_map(|it| EmptiedTarget::find(config, meshes, it)).collect();
    let findings = emptied.iter().map(|it| {
        let EmptiedTarget { name, leaving, .. } = it;
        let why = match &leaving[..] {
            _ if it.is_leaving() => "leaves and".to_owned(),
            [only] => format!("is linked only to `{}`, which leaves, and", only.name),
            all => {
                let names = listed(all.iter().map(|it| format!("`{}`", it.name)));
                format!("is linked only to {names}, which leave, and")
            }
        };
        let message = format!(
            "{why} gets no Peers any more; `kubectl apply -k` and automated sync of Argo CD refuse the empty folder \
             `{name}` and keep the old Peers"
        );
        // The cluster that leaves has the commands for all.
        let of_leaving = emptied.iter().filter(|other| {
            let is_meant = it.is_leaving() || other.name == *name;
            is_meant && other.leaving == *leaving
        });
        let commands: Vec<&str> = of_leaving.map(|it| it.command.as_str()).collect();
        let folders = if commands.len() == 1 { "folder" } else { "folders" };
        let ended = match leaving[..] {
            [only] if it.is_leaving() => {
                let name = &only.name;
                format!("; `clustermesh render` lists the next steps for {name}")
            }
            _ => String::new(),
        };
        let cause = match leaving[..] {
            [only] if !it.is_leaving() => Some(FindingCause::of(&LEAVING_CLUSTER, &only.name)),
            _ => None,
        };
        Finding::on_cluster(&LEAVING_CLUSTER, name, message)
            .at_each(leaving.iter().map(|it| (it.place.key("state"), "")))
            .with_cause(cause)
            .help(format!("unless Flux applies the {folders}, run {}{ended}", listed(commands)))
    });
    findings.collect()
}

/// A cluster that gets no Peers any more because clusters leave: itself or all linked clusters.
struct EmptiedTarget<'m> {
    name: &'m ClusterName,
    leaving: Vec<&'m Entry>,
    /// The command that deletes its Peers.
    command: String,
}

impl<'m> EmptiedTarget<'m> {
    fn is_leaving(&self) -> bool {
        self.leaving.iter().any(|it| it.name == *self.name)
    }

    fn find(config: &Config, meshes: &'m [Mesh], target: &'m Target) -> Option<Self> {
        let name = &target.cluster;
        let is_left = |cluster: &ClusterName| cluster == name || target.parted.contains(cluster);
        let left: Vec<&Mesh> = meshes
            .iter()
            .filter(|mesh| {
                // A cluster that joins had no Peers that it could lose.
                let is_own = |it: &Entry| it.name == *name && it.state != State::Joining;
                mesh.entries.iter().any(is_own)
            })
            .filter(|mesh| {
                let mut leaving = mesh.entries.iter().filter(|it| it.state == State::Leaving);
                leaving.any(|it| is_left(&it.name))
            })
            .collect();
        let entries = left.iter().flat_map(|mesh| &mesh.entries);
        let leaving = entries.filter(|it| it.state == State::Leaving && is_left(&it.name));
        let mut seen = BTreeSet::new();
        let leaving = leaving.filter(|it| seen.insert(&it.name));
        let (own, others): (Vec<_>, Vec<_>) = leaving.partition(|it| it.name == *name);
        let leaving = if own.is_empty() { others } else { own };
        leaving.first()?;
        let names: Vec<&str> = left.iter().map(|it| MeshName::as_str(&it.name)).collect();
        let selector = match names.as_slice() {
            [mesh] => format!("kilo-clustermesh.io/mesh={mesh}"),
            meshes => format!("'kilo-clustermesh.io/mesh in ({})'", meshes.join(", ")),
        };
        let command = format!("`{} delete peers -l {selector}`", config.kubectl(name));
        Some(Self { name, leaving, command })
    }
}
