//! Possible attacks of hostile clusters, as objects for programs.

use crate::agent::fabric::{NodeRef, SiteId};
use crate::agent::model::TunnelClaim;
use crate::diagnostic::escaped;
use crate::mesh::AddressClass;
use crate::net::prefixes::Span;
use crate::proof::bounded_list::{BoundedList, Kinded as _};
use crate::proof::hostile::{
    Exposure, Hold, Hostile, OpenWay, Relay, RelayKind, RelayedSource, WhoseKind,
};
use crate::proof::messages::hostile::{far_end, owners};
use crate::results::findings::json::{WrittenPlace, bare_place};
use schemars::JsonSchema;
use serde::Serialize;
use serde_json::{Value, json};

use super::{NAMED, Verified, each};

/// The powers of an attacker with root in one cluster over the others.
#[derive(JsonSchema, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct WrittenHostile {
    /// The cluster.
    cluster: String,
    /// Whether the attacker is limited to what the meshes declare.
    contained: bool,
    /// The powers of the attacker over each of the other clusters.
    exposures: Vec<WrittenExposure>,
}

/// The powers of the hostile cluster over another one.
#[derive(JsonSchema, Serialize)]
#[serde(rename_all = "camelCase")]
struct WrittenExposure {
    /// The cluster.
    cluster: String,
    /// Whether a mesh links it with the hostile cluster.
    linked: bool,
    /// The ends of its tunnels that have a key of the hostile cluster: the first 16 Peers, and the
    /// first 16 of its own segments. If there are none, it receives nothing from it.
    heard_by: Vec<String>,
    /// The number of ends that `heardBy` does not list.
    heard_by_more: usize,
    /// The source addresses that it accepts from the hostile cluster: the first 16 ranges of each
    /// kind of owner.
    sends_as: Vec<WrittenHold>,
    /// The ranges that `sendsAs` does not list.
    sends_as_more: WrittenMoreHolds,
    /// The destinations that the hostile cluster can reach there: the first 16 of each kind. Packets
    /// to other destinations are masqueraded and leave the cluster like those of its nodes.
    sends_to: Vec<WrittenOpen>,
    /// The destinations that `sendsTo` does not list.
    sends_to_more: WrittenMoreOpen,
    /// The destinations whose packets it sends to the hostile cluster: the first 16 ranges of each
    /// kind of owner.
    captures: Vec<WrittenHold>,
    /// The ranges that `captures` does not list.
    captures_more: WrittenMoreHolds,
    /// The treatment by the other clusters of packets that it passes on for the hostile cluster: the
    /// first 16 clusters of each kind.
    through: Vec<WrittenOnward>,
    /// The clusters that `through` does not list.
    through_more: WrittenMoreOnward,
}

/// Addresses that a cluster accepts from the hostile cluster, or sends to it.
#[derive(JsonSchema, Serialize)]
#[serde(rename_all = "camelCase")]
struct WrittenHold {
    /// A range, a single address, or the first and the last address.
    #[schemars(example = &"10.42.0.1-10.42.0.255")]
    addresses: String,
    /// The rightful owner of the addresses.
    whose: WhoseKind,
    /// The owner as text, unless it is the hostile cluster.
    #[serde(skip_serializing_if = "Option::is_none")]
    owner: Option<String>,
    /// Whether this is true in any order in which Kilo may have applied the Peers.
    certain: bool,
    /// The end of the tunnel that has them.
    by: String,
    /// The place that assigns the addresses, unless it is a node of the cluster itself.
    #[schemars(with = "Option<WrittenPlace>")]
    #[serde(skip_serializing_if = "Option::is_none")]
    place: Option<Value>,
}

/// Numbers of ranges by their rightful owners.
#[derive(JsonSchema, Serialize)]
struct WrittenMoreHolds {
    /// Those that the hostile cluster declares.
    declared: usize,
    /// Those of other clusters.
    others: usize,
    /// Those of no cluster of a mesh.
    nobody: usize,
}

/// A destination that can be reached.
#[derive(JsonSchema, Serialize)]
#[serde(rename_all = "camelCase")]
struct WrittenOpen {
    /// The kind.
    kind: WrittenKind,
    /// The node, as `CLUSTER/NODE`, if it is one's own.
    #[serde(skip_serializing_if = "Option::is_none")]
    node: Option<String>,
    /// The range or the address.
    addresses: String,
}

/// A destination that can be reached.
#[derive(JsonSchema, Serialize)]
#[schemars(rename = "OpenKind")]
#[serde(rename_all = "lowercase")]
enum WrittenKind {
    /// Pods.
    Pod,
    /// A node, including the pods in its host network.
    Node,
    /// Services.
    Service,
    /// Another network that the cluster declares.
    Network,
    /// A network that nodes report as their own.
    Lan,
}

/// Numbers of destinations by kind.
#[derive(JsonSchema, Serialize)]
struct WrittenMoreOpen {
    /// Ranges of pods.
    pod: usize,
    /// Addresses of nodes.
    node: usize,
    /// Ranges of services.
    service: usize,
    /// Other networks that the cluster declares.
    network: usize,
    /// Networks that nodes report as their own.
    lan: usize,
}

/// The treatment by a cluster of packets that another one passes on.
#[derive(JsonSchema, Serialize)]
#[serde(rename_all = "camelCase")]
struct WrittenOnward {
    /// The cluster that receives them.
    cluster: String,
    /// Whether a mesh links it with the hostile cluster.
    linked: bool,
    /// The source addresses that it accepts: the first 16 ranges. If there are none, no packet arrives.
    passages: Vec<WrittenPassage>,
    /// The number of ranges that `passages` does not list.
    passages_more: usize,
}

/// Numbers of clusters to which another one passes packets on.
#[derive(JsonSchema, Serialize)]
#[serde(rename_all = "camelCase")]
struct WrittenMoreOnward {
    /// Those that accept no packet.
    dropping: usize,
    /// Those that accept packets and that a mesh links with the hostile cluster.
    linked: usize,
    /// Those that accept packets although no mesh links them with the hostile cluster.
    unlinked: usize,
}

/// Source addresses with which packets are accepted.
#[derive(JsonSchema, Serialize)]
#[serde(rename_all = "camelCase")]
struct WrittenPassage {
    /// A range, a single address, or the first and the last address.
    addresses: String,
    /// The node that passes the packets on, as `CLUSTER/NODE`.
    by: String,
    /// The place that allows them.
    #[schemars(with = "Option<WrittenPlace>")]
    #[serde(skip_serializing_if = "Option::is_none")]
    place: Option<Value>,
}

/// Returns every cluster that is taken for hostile, by name.
pub(super) fn written(verified: &Verified) -> Vec<WrittenHostile> {
    each(verified.hostiles, |it| one(verified, it))
}

fn one(verified: &Verified, hostile: &Hostile) -> WrittenHostile {
    WrittenHostile {
        cluster: verified.cluster(hostile.site),
        contained: hostile.breaches().is_empty(),
        exposures: each(&hostile.exposures, |it| exposure(verified, it)),
    }
}

fn exposure(verified: &Verified, exposure: &Exposure) -> WrittenExposure {
    let site = exposure.site;
    let holds = |holds: &BoundedList<Hold>| each(holds.listed(), |it| hold(verified, site, it));
    WrittenExposure {
        cluster: verified.cluster(site),
        linked: exposure.is_linked,
        heard_by: each(exposure.heard.listed(), |it| far_end(verified.fabric, site, *it)),
        heard_by_more: exposure.heard.unlisted(),
        sends_as: holds(&exposure.believed),
        sends_as_more: more_holds(&exposure.believed),
        sends_to: each(exposure.open.listed(), |it| open(verified, site, *it)),
        sends_to_more: more_open(&exposure.open),
        captures: holds(&exposure.attracted),
        captures_more: more_holds(&exposure.attracted),
        through: each(exposure.relays.listed(), |it| relay(verified, it)),
        through_more: more_relays(&exposure.relays),
    }
}

fn hold(verified: &Verified, site: SiteId, hold: &Hold) -> WrittenHold {
    WrittenHold {
        addresses: hold.span.to_string(),
        whose: hold.kind(),
        owner: (hold.kind() == WhoseKind::Others).then(|| owners(verified.fabric, hold)),
        certain: hold.is_certain,
        by: far_end(verified.fabric, site, hold.claim.tunnel),
        place: claimed(verified, site, hold.claim),
    }
}

fn more_holds(holds: &BoundedList<Hold>) -> WrittenMoreHolds {
    WrittenMoreHolds {
        declared: holds.more(WhoseKind::Declared),
        others: holds.more(WhoseKind::Others),
        nobody: holds.more(WhoseKind::Nobody),
    }
}

fn open(verified: &Verified, site: SiteId, open: OpenWay) -> WrittenOpen {
    let node = match open {
        OpenWay::Owned(owner, _) => owner.node(),
        OpenWay::Lan(_) => None,
    };
    WrittenOpen {
        kind: match open.class() {
            Some(AddressClass::Pod) => WrittenKind::Pod,
            Some(AddressClass::Node) => WrittenKind::Node,
            Some(AddressClass::Service) => WrittenKind::Service,
            Some(AddressClass::Network) => WrittenKind::Network,
            None => WrittenKind::Lan,
        },
        node: node.map(|node| name(verified, NodeRef { site, node })),
        addresses: Span::new(open.range()).to_string(),
    }
}

fn more_open(open: &BoundedList<OpenWay>) -> WrittenMoreOpen {
    let more = |class| open.more(Some(class));
    WrittenMoreOpen {
        pod: more(AddressClass::Pod),
        node: more(AddressClass::Node),
        service: more(AddressClass::Service),
        network: more(AddressClass::Network),
        lan: open.more(None),
    }
}

fn relay(verified: &Verified, relay: &Relay) -> WrittenOnward {
    let passage = |it: &RelayedSource| WrittenPassage {
        addresses: it.span.to_string(),
        by: name(verified, it.by),
        place: claimed(verified, relay.site, it.claim),
    };
    WrittenOnward {
        cluster: verified.cluster(relay.site),
        linked: relay.is_linked,
        passages: each(relay.passages.listed(), passage),
        passages_more: relay.passages.unlisted(),
    }
}

fn more_relays(relays: &BoundedList<Relay>) -> WrittenMoreOnward {
    WrittenMoreOnward {
        dropping: relays.more(RelayKind::Dropped),
        linked: relays.more(RelayKind::Linked),
        unlinked: relays.more(RelayKind::Unlinked),
    }
}

/// Returns where a range is written.
fn claimed(verified: &Verified, site: SiteId, claim: TunnelClaim) -> Option<Value> {
    let place = verified.fabric.site(site).model.place(claim)?;
    Some(json!(bare_place(&place, "", verified.files)))
}

fn name(verified: &Verified, at: NodeRef) -> String {
    escaped(&verified.fabric.name(at), NAMED)
}
