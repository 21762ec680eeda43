//! Undeclared paths, as they are written.

use crate::mesh::AddressClass;
use crate::proof::verify::{Paths, Unallowed, Undeclared, Unowned};
use crate::rules::verified::whose;
use schemars::JsonSchema;
use serde::Serialize;

use super::WrittenNode;
use crate::results::verify::Verified;

/// Paths from or to one range that work although no mesh declares them.
#[derive(JsonSchema, Serialize)]
#[schemars(rename = "Undeclared")]
#[serde(rename_all = "camelCase")]
pub struct WrittenUndeclaredPaths {
    /// The cluster that sends.
    pub(in crate::results::verify) from: String,
    /// The cluster that receives.
    pub(in crate::results::verify) to: String,
    /// The class of a source.
    sender: AddressClass,
    /// The class of the destination.
    receiver: AddressClass,
    /// Whether the range is that of the sender or of the receiver.
    pub(in crate::results::verify) side: PathSide,
    /// The range: a CIDR, or its first and last address.
    #[schemars(example = &"10.42.1.0/24")]
    pub(in crate::results::verify) range: String,
    /// The owner of the addresses.
    #[schemars(example = &"pods of east/worker-1")]
    pub(in crate::results::verify) owner: String,
    /// The narrowest declared range that contains it, if any.
    #[schemars(example = &"10.42.0.0/16")]
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(in crate::results::verify) declared: Option<String>,
    /// The number of paths between owners: nodes, or cluster-wide ranges.
    pub(in crate::results::verify) pairs: u64,
}

/// Undeclared paths from one class of addresses to another that the expectations forbid, and one of them.
#[derive(JsonSchema, Serialize)]
#[schemars(rename = "Unallowed")]
#[serde(rename_all = "camelCase")]
pub struct WrittenUnallowed {
    /// The class of a source.
    sender: AddressClass,
    /// The class of the destination.
    receiver: AddressClass,
    /// The number of paths.
    pairs: u64,
    /// The number of pairs of clusters.
    clusters: usize,
    /// The cluster that sends, on one of the paths.
    from: String,
    /// The cluster that receives.
    to: String,
    /// The first source of this path.
    #[schemars(example = &"10.0.0.1")]
    source: String,
    /// The first destination of this path.
    #[schemars(example = &"10.44.1.0")]
    destination: String,
}

/// Addresses that no node has, in a range that a node carries as a whole. Packets to them leave by the node's default route.
#[derive(JsonSchema, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct WrittenUnowned {
    /// The node that gets the packets.
    node: WrittenNode,
    /// The range.
    #[schemars(example = &"10.42.0.0/16")]
    range: String,
    /// The number of its addresses that no node has, at most 2⁶⁴ − 1.
    addresses: u64,
    /// The clusters that send packets to them.
    senders: Vec<String>,
}

/// A side of a path.
#[derive(JsonSchema, Serialize)]
#[serde(rename_all = "lowercase")]
#[schemars(rename = "Side")]
pub(in crate::results::verify) enum PathSide {
    /// The sender.
    Sender,
    /// The receiver.
    Receiver,
}

impl Verified<'_, '_> {
    /// Returns addresses of no node in their written form.
    pub(super) fn written_unowned(&self, unowned: &Unowned) -> WrittenUnowned {
        let senders = unowned.senders.iter();
        WrittenUnowned {
            node: self.node(unowned.at),
            range: unowned.range.to_string(),
            addresses: unowned.addresses,
            senders: senders.map(|it| self.cluster(*it)).collect(),
        }
    }

    /// Returns unallowed paths in their written form.
    pub(super) fn unallowed(&self, unallowed: &Unallowed) -> WrittenUnallowed {
        let Unallowed { classes: (sender, receiver), paths, between, example: (pair, ends) } =
            unallowed;
        let [source, destination] = ends.map(|it| it.span.first_address().to_string());
        WrittenUnallowed {
            sender: *sender,
            receiver: *receiver,
            pairs: *paths,
            clusters: between.len(),
            from: self.cluster(pair.from),
            to: self.cluster(pair.to),
            source,
            destination,
        }
    }

    /// Returns undeclared paths in their written form.
    pub(in crate::results::verify) fn undeclared(
        &self,
        undeclared: &Undeclared,
    ) -> WrittenUndeclaredPaths {
        let Paths { from, to, sender, receiver, is_source, span, owner } = undeclared.paths;
        let home = if is_source { from } else { to };
        WrittenUndeclaredPaths {
            from: self.cluster(from),
            to: self.cluster(to),
            sender,
            receiver,
            side: if is_source { PathSide::Sender } else { PathSide::Receiver },
            range: span.to_string(),
            owner: whose(self.fabric, home, owner),
            declared: undeclared.declared.map(|it| it.to_string()),
            pairs: undeclared.pairs,
        }
    }
}
