//! Clusters that are not joined, and what is left to do for them.

use std::collections::BTreeSet;

use super::Finding;
use crate::config::Config;
use crate::fleet::Fleet;
use crate::mesh::{Entry, Mesh, State};
use crate::name::{ClusterName, MeshName};
use crate::plan::Plan;

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

/// Returns the clusters that join and have no snapshot yet.
fn unchecked(meshes: &[Mesh], fleet: &Fleet) -> Vec<Finding> {
    let entries = meshes.iter().flat_map(|mesh| &mesh.entries);
    let mut known = BTreeSet::new();
    let unchecked = entries.filter(|it| {
        let is_unread = fleet.memberships(&it.name).next().is_none();
        it.state == State::Joining && is_unread && known.insert(&it.name)
    });
    let findings = unchecked.map(|entry| {
        let message = "is joining and has no snapshot, so its nodes are not checked".to_owned();
        Finding::on_cluster(&UNCHECKED_CLUSTER, &entry.name, message)
            .at(entry.place.key("state"), "")
            .help(format!("run `clustermesh snapshot {}`", entry.name))
    });
    findings.collect()
}

/// Returns the clusters whose folder has no Peers any more because of a cluster that leaves: some ways
/// to apply an empty folder delete nothing.
fn emptied(config: &Config, meshes: &[Mesh], plan: &Plan) -> Vec<Finding> {
    let targets = plan.targets.iter();
    let emptied = targets.filter(|it| it.peer_sets.is_empty() && !it.parted.is_empty());
    let findings = emptied.filter_map(|target| {
        let name = &target.cluster;
        let message = format!(
            "no longer gets Peers; `kubectl apply -k` and automated sync of Argo CD refuse the \
             empty folder `{name}` and keep the old Peers"
        );
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
        let mut entries = left.iter().flat_map(|mesh| &mesh.entries);
        let leaving = entries.find(|it| it.state == State::Leaving && is_left(&it.name))?;
        let names: Vec<&str> = left.iter().map(|it| MeshName::as_str(&it.name)).collect();
        let selector = match names.as_slice() {
            [mesh] => format!("kilo-clustermesh.io/mesh={mesh}"),
            meshes => format!("'kilo-clustermesh.io/mesh in ({})'", meshes.join(", ")),
        };
        let finding = Finding::on_cluster(&LEAVING_CLUSTER, name, message);
        Some(finding.at(leaving.place.key("state"), "").help(format!(
            "unless Flux applies the folder, run `{} delete peers -l {selector}`",
            config.kubectl(name)
        )))
    });
    findings.collect()
}
