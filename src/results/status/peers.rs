//! The Peers in a cluster, and their form for programs.

use crate::agent::applied::removal;
use crate::agent::inventory::{DriftedPeer, Foreign, Holder, Inventory};
use crate::diagnostic::escaped;
use crate::rules::refusal::effect;
use schemars::JsonSchema;
use serde::{Serialize, Serializer};
use serde_json::Value;

/// The longest description of a problem, in characters.
const PROBLEM: usize = 400;

/// The folder of a cluster in the rendered tree.
#[derive(Clone, Copy, Debug, Default, Eq, PartialEq)]
pub enum RenderedFolder {
    /// It is there, and all of it could be read.
    #[default]
    Whole,
    /// Some of it could not be read, so more may be rendered than is known.
    Damaged,
    /// It is not there.
    Absent,
}

/// The Peers in a cluster, compared with the rendered ones.
#[derive(Default, JsonSchema)]
#[schemars(rename = "Peers", with = "WrittenPeers")]
pub struct ComparedPeers {
    /// The folder.
    pub rendered: RenderedFolder,
    /// The Peers, compared with the rendered ones.
    pub inventory: Inventory,
}

impl Serialize for ComparedPeers {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        peers(self).serialize(serializer)
    }
}

/// The Peers in a cluster, compared with the rendered ones.
#[derive(JsonSchema, Serialize)]
#[serde(rename_all = "camelCase")]
struct WrittenPeers<'a> {
    /// Whether the rendered tree has a folder for the cluster and all of it could be read. Otherwise
    /// `leftOver` is empty, and more Peers than those listed may be rendered.
    is_rendered: bool,
    /// The number of rendered Peers that are applied as they are.
    in_sync: usize,
    /// Rendered Peers that the cluster does not have, or is deleting.
    missing: &'a [String],
    /// Rendered Peers with another spec in the cluster.
    changed: Vec<&'a str>,
    /// Those of `changed` with fields that the rendered Peer does not have. Flux and Argo CD may leave these fields as
    /// they are.
    added_fields: Vec<WrittenAddition<'a>>,
    /// Peers of a mesh that are no longer rendered.
    left_over: &'a [String],
    /// Peers that no mesh has.
    foreign: Vec<WrittenForeign<'a>>,
    /// Groups of Peers with one key.
    same_key: &'a [Vec<String>],
    /// Peers with the key of a node of this cluster.
    own_key: &'a [String],
}

/// The fields that another program added to a rendered Peer.
#[derive(JsonSchema, Serialize)]
#[schemars(rename = "AddedFields")]
struct WrittenAddition<'a> {
    /// The name of the Peer.
    peer: &'a str,
    /// The fields, without their values.
    #[schemars(example = &["spec.presharedKey"])]
    fields: Vec<String>,
    /// The merge patch (RFC 7396) that removes them.
    patch: Value,
}

/// A Peer that no mesh has.
#[derive(JsonSchema, Serialize)]
#[serde(rename_all = "camelCase")]
struct WrittenForeign<'a> {
    /// Its name.
    name: &'a str,
    /// Its allowed IPs.
    ranges: Vec<String>,
    /// The reason for which Kilo does not use it; absent if it does.
    #[serde(skip_serializing_if = "Option::is_none")]
    problem: Option<String>,
    /// The node with its key, as `CLUSTER/NODE`; absent for laptops and other networks.
    #[serde(skip_serializing_if = "Option::is_none")]
    node: Option<String>,
    /// The ranges of clusters that it claims too.
    takes: Vec<WrittenTaken<'a>>,
}

/// A range of a cluster.
#[derive(JsonSchema, Serialize)]
struct WrittenTaken<'a> {
    /// The cluster.
    cluster: &'a str,
    /// The range.
    range: String,
}

fn peers(peers: &ComparedPeers) -> WrittenPeers<'_> {
    let Inventory { in_sync, missing, changed, left_over, foreign, same_key, own_key } =
        &peers.inventory;
    WrittenPeers {
        is_rendered: peers.rendered == RenderedFolder::Whole,
        in_sync: *in_sync,
        missing,
        changed: changed.iter().map(|it| it.name.as_str()).collect(),
        added_fields: changed.iter().filter(|it| !it.added.is_empty()).map(addition).collect(),
        left_over,
        foreign: foreign.iter().map(self::foreign).collect(),
        same_key,
        own_key,
    }
}

fn addition(it: &DriftedPeer) -> WrittenAddition<'_> {
    WrittenAddition {
        peer: &it.name,
        fields: it.added.iter().map(ToString::to_string).collect(),
        patch: removal(&it.added),
    }
}

fn foreign(it: &Foreign) -> WrittenForeign<'_> {
    let takes = it
        .takes
        .iter()
        .map(|it| WrittenTaken { cluster: &it.cluster, range: it.range.to_string() });
    WrittenForeign {
        name: &it.name,
        ranges: it.ranges.iter().map(ToString::to_string).collect(),
        problem: it.fault.as_ref().map(|it| escaped(&effect("it", it), PROBLEM)),
        node: match &it.holder {
            Holder::Node { cluster, node } => Some(format!("{cluster}/{node}")),
            Holder::Outsider | Holder::Nodes => None,
        },
        takes: takes.collect(),
    }
}
