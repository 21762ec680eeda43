//! Cases: what changes in the Peers of targets, short of losing all.

use std::collections::BTreeSet;

use crate::name::MeshName;
use crate::net::Cidr;
use crate::place::Place;

/// Something that is the same in several targets.
#[derive(Clone, Debug, Eq, PartialEq)]
pub struct Case<T> {
    /// The change.
    pub what: T,
    /// The targets, at least one.
    pub targets: Vec<String>,
    /// The place in the files of the first target.
    pub place: Place,
}

/// A target loses Peers of a source.
#[derive(Clone, Debug, Eq, Ord, PartialEq, PartialOrd)]
pub struct Shrunk {
    /// The source.
    pub source: String,
    /// The number of Peers that it gives now.
    pub before: usize,
    /// The names of those that are removed.
    pub gone: Vec<String>,
}

/// A key gets another name.
#[derive(Clone, Debug, Eq, Ord, PartialEq, PartialOrd)]
pub struct Renamed {
    /// The source, from now on.
    pub source: String,
    /// The node, from now on.
    pub node: String,
    /// The Peer's name now.
    pub from: String,
    /// The Peer's name from now on.
    pub to: String,
    /// The mesh, if all of its Peers from this source get new names.
    pub mesh: Option<MeshName>,
}

/// Peers of targets that are those of another mesh from now on, so that their names change.
#[derive(Clone, Debug, Eq, Ord, PartialEq, PartialOrd)]
pub struct RenamedMesh {
    /// The name of the mesh that they have now.
    pub from: String,
    /// The mesh that they have from now on.
    pub to: MeshName,
    /// The targets, at least one.
    pub targets: BTreeSet<String>,
    /// The number of Peers.
    pub peers: usize,
    /// The first of them.
    pub place: Place,
}

/// A name gets another key.
#[derive(Clone, Debug, Eq, Ord, PartialEq, PartialOrd)]
pub struct Rekeyed {
    /// The source.
    pub source: String,
    /// The node.
    pub node: String,
    /// The Peer's name.
    pub peer: String,
}

/// A cluster-wide range gets another Peer.
#[derive(Clone, Debug, Eq, Ord, PartialEq, PartialOrd)]
pub struct Moved {
    /// The source.
    pub source: String,
    /// The range.
    pub range: Cidr,
    /// The Peer that carries it now.
    pub from: String,
    /// The Peer that carries it from now on.
    pub to: String,
}
