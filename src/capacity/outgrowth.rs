//! Outgrowth: how many more clusters like one of the mesh fit.

use schemars::JsonSchema;
use serde::Serialize;

use super::bundle::Bundle;
use super::growth::{ClusterLoad, Growth, Room};
use super::ledger::Cost;
use super::units::written_number;
use crate::config::Capacity;
use crate::config::capacity::Quantity;
use crate::mesh::{Mesh, State};
use crate::name::ClusterName;

/// The number of clusters that can be added if they are like one of the mesh.
#[derive(Clone, Debug, JsonSchema, Serialize)]
#[schemars(rename = "Growth")]
pub struct Outgrowth {
    /// The cluster that they would be like: the last one of the mesh.
    #[schemars(with = "&str")]
    pub like: ClusterName,
    /// The limits, the tightest first. Limits that no number of such clusters exceeds are omitted.
    #[serde(rename = "limits")]
    pub rooms: Vec<Room>,
    /// The seconds of a restart of Kilo with as many clusters more as the tightest limit allows.
    #[serde(
        rename = "restartSeconds",
        serialize_with = "written_number",
        skip_serializing_if = "Option::is_none"
    )]
    pub restart: Option<f64>,
}

impl Outgrowth {
    /// Counts how many clusters fit that are like the last one of the meshes. Nothing if it gives no Peers to any
    /// cluster.
    pub fn new(meshes: &[Mesh], costs: &[Cost], capacity: &Capacity) -> Option<Self> {
        let mut entries = meshes.iter().rev().flat_map(|it| it.entries.iter().rev());
        let like = &entries.find(|it| it.state == State::Joined)?.name;
        let files = GivenFiles::new(meshes, like);
        let targets: Vec<ClusterLoad> = costs
            .iter()
            .filter_map(|cost| {
                let added = files.given(cost, costs);
                let target = ClusterLoad::new(&cost.cluster, &cost.load, &added);
                (!added.is_empty()).then_some(target)
            })
            .collect();
        if targets.is_empty() {
            return None;
        }
        let growth = Growth { capacity, targets };
        let rooms = growth.rooms();
        let tightest = rooms.first().map(Room::clusters);
        Some(Self {
            like: like.clone(),
            restart: tightest.and_then(|it| growth.value(Quantity::RestartSeconds, it)),
            rooms,
        })
    }
}

/// The files with the Peers of a cluster, one for each of its meshes.
struct GivenFiles<'a> {
    like: &'a ClusterName,
    /// The names, each with whether the cluster would be linked with another one like itself.
    names: Vec<(String, bool)>,
}

impl<'a> GivenFiles<'a> {
    fn new(meshes: &[Mesh], like: &'a ClusterName) -> Self {
        let own = meshes.iter().filter(|mesh| mesh.entries.iter().any(|it| it.name == *like));
        let names = own.map(|mesh| {
            // The added cluster is in no list of links; a hub is linked with everything.
            let is_linked = mesh.topology.is_hub(like) || mesh.topology.is_full();
            (mesh.peer_set_name(like).to_string(), is_linked)
        });
        Self { like, names: names.collect() }
    }

    /// Returns the Peers that a cluster gets of each added one.
    fn given<'c>(&self, cost: &'c Cost, costs: &'c [Cost]) -> Vec<&'c Bundle> {
        let given = self.names.iter().filter_map(|(name, is_linked)| {
            let of = |cost: &'c Cost| cost.load.bundles.iter().find(|it| it.name == *name);
            if cost.cluster == self.like.as_str() {
                // It has no Peers of its own: those of another cluster are the same.
                return is_linked.then(|| costs.iter().find_map(of)).flatten();
            }
            of(cost)
        });
        given.collect()
    }
}
