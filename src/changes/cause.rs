//! Causes: why Peers change.

use std::slice;

use schemars::JsonSchema;
use serde::Serialize;

use crate::granularity::Granularity;
use crate::kilo::reason::ExcludedReason;
use crate::mesh::State;
use crate::name::{ClusterName, MeshName};
use crate::net::Cidr;
use crate::place::Place;
use crate::proof::bounded_list::APART;
use crate::wireguard::Endpoint;

/// A reason for changes of Peers.
#[derive(Clone, Debug, PartialEq)]
pub enum Cause {
    /// A cluster is in a mesh that was in none.
    ClusterJoined(ClusterName),
    /// A cluster is in a mesh in which it was not, but does not exchange Peers there.
    ClusterAdded {
        /// The cluster.
        cluster: ClusterName,
        /// The mesh, if the cluster was in another one before.
        mesh: Option<MeshName>,
        /// The state of its entry.
        state: State,
    },
    /// A cluster is in no mesh any more.
    ClusterLeft(ClusterName),
    /// A cluster has another name. Its nodes have the same keys.
    ClusterRenamed {
        /// The old name.
        from: ClusterName,
        /// The new name.
        to: ClusterName,
    },
    /// A cluster that was in another mesh is in this one.
    MeshJoined {
        /// The cluster.
        cluster: ClusterName,
        /// The mesh.
        mesh: MeshName,
    },
    /// A cluster is not in this mesh any more, but in another one.
    MeshLeft {
        /// The cluster.
        cluster: ClusterName,
        /// The mesh, by its old name, with which the names of its Peers begin.
        mesh: MeshName,
    },
    /// A line of a mesh or of the config is another one.
    Setting(ChangedSetting),
    /// A node takes part otherwise.
    Node {
        /// The node.
        node: NamedNode,
        /// The difference.
        change: NodeChange,
    },
    /// Most nodes of a cluster report another granularity.
    OtherGranularity {
        /// The cluster.
        cluster: ClusterName,
        /// The old one.
        from: Granularity,
        /// The new one.
        to: Granularity,
    },
    /// A node has another name and the same key.
    NodeRenamed {
        /// The cluster.
        cluster: ClusterName,
        /// The old name.
        from: String,
        /// The new one.
        to: String,
    },
    /// Another node leads a segment.
    LeaderChanged {
        /// The cluster.
        cluster: ClusterName,
        /// The location.
        location: String,
        /// The old leader.
        from: String,
        /// The new one.
        to: String,
    },
    /// A range that belongs to a cluster as a whole has another carrier.
    AnchorMoved {
        /// The cluster.
        cluster: ClusterName,
        /// The range.
        range: Cidr,
        /// The node that carried it.
        from: String,
        /// The node that carries it now.
        to: String,
    },
    /// A cluster has a Peer that belongs to no mesh.
    ForeignPeer {
        /// The cluster.
        target: ClusterName,
        /// The Peer.
        peer: String,
    },
    /// None of these: a conflict with other clusters that is gone or new, a tree that was out of date, or
    /// another version of clustermesh.
    Other,
}

/// A difference of a node, or of how it takes part.
#[derive(Clone, Debug, Eq, PartialEq)]
pub enum NodeChange {
    /// It takes part and was not there.
    Joined,
    /// It took part and is not there any more.
    Left,
    /// It took part and is excluded, and why.
    Excluded(ExcludedReason),
    /// It was excluded, and why, and takes part again.
    Back(ExcludedReason),
    /// It has another key: it or its Kilo was reinstalled.
    NewKey,
    /// It is dialled somewhere else.
    NewEndpoint {
        /// The old endpoint; none if it had to connect first.
        from: Option<Endpoint>,
        /// The new one.
        to: Option<Endpoint>,
    },
    /// It has another internal address, or another one in Kilo's subnet.
    NewAddress {
        /// The old addresses.
        from: Vec<Cidr>,
        /// The new ones.
        to: Vec<Cidr>,
    },
    /// It is in another location.
    OtherLocation {
        /// The old one; empty for none.
        from: String,
        /// The new one.
        to: String,
    },
    /// It has more pod CIDRs.
    RangesGained(Vec<Cidr>),
    /// It has fewer pod CIDRs.
    RangesLost(Vec<Cidr>),
}

/// A node of a cluster.
#[derive(Clone, Debug, Eq, Ord, PartialEq, PartialOrd)]
pub struct NamedNode {
    /// The cluster, as it is called in the new version if it is there.
    pub cluster: ClusterName,
    /// The name of the node.
    pub node: String,
}

/// The form of an entry, as if it were a field: typed or flat.
pub const FORM: &str = "form";

/// The fields of an entry that decide which paths from and to its cluster are proved.
pub(super) const DECIDING_PROOF: [&str; 3] = ["endpointDomains", "podSource", "underlays"];

/// A line of a mesh or of the config that is another one.
#[derive(Clone, Debug, Eq, PartialEq)]
pub struct ChangedSetting {
    /// The cluster that it is about; none for a whole mesh.
    pub cluster: Option<ClusterName>,
    /// The field, or [`FORM`].
    pub field: &'static str,
    /// The place in the old version, if it was there.
    pub before: Option<Place>,
    /// The place in the new version, if it is there.
    pub after: Option<Place>,
    /// The values that differ.
    pub value: ChangedValue,
}

impl ChangedSetting {
    /// Returns whether it decides which paths from and to its cluster are proved.
    pub fn decides_proof(&self) -> bool {
        DECIDING_PROOF.contains(&self.field)
    }
}

/// The values of a setting in two versions.
#[derive(Clone, Debug, Eq, PartialEq)]
pub enum ChangedValue {
    /// The state of a cluster.
    State {
        /// The old one.
        from: State,
        /// The new one.
        to: State,
    },
    /// The values that only one version has, as people write them. Both lists are empty if only the order or the form
    /// differs.
    Listed {
        /// Those of the old version.
        before: Vec<String>,
        /// Those of the new version.
        after: Vec<String>,
    },
}

/// A cause with everything that it changes.
#[derive(Clone, Debug)]
pub struct CauseEffect {
    /// The cause.
    pub cause: Cause,
    /// Its effects on each target, by name. Empty if it changes no Peer.
    pub targets: Vec<TargetEffect>,
}

/// The effect of a cause on a target.
#[derive(Clone, Copy, Debug)]
pub struct TargetEffect {
    /// Its place in [`super::Changes::targets`].
    pub target: usize,
    /// The number of its changed Peers of each kind.
    pub counts: PeerCounts,
}

/// Numbers of Peers that change.
#[derive(Clone, Copy, Debug, Default, Eq, JsonSchema, PartialEq, Serialize)]
pub struct PeerCounts {
    /// New Peers.
    pub added: usize,
    /// Peers with another content.
    pub changed: usize,
    /// Peers that are removed.
    pub removed: usize,
}

/// The causes of a change, by their places in [`super::Changes::causes`], in order. Most changes have one; of many,
/// the first ones are listed.
#[derive(Clone, Debug, Eq, PartialEq)]
pub enum CauseList {
    /// A single one.
    One(usize),
    /// None or several.
    Several {
        /// The first ones.
        listed: Box<[usize]>,
        /// The number of the others.
        more: usize,
    },
}

impl Default for CauseList {
    fn default() -> Self {
        Self::new(&mut Vec::new(), 0)
    }
}

impl CauseList {
    /// Lists the first of some causes, of which there are more.
    pub(super) fn new(first: &mut Vec<usize>, all: usize) -> Self {
        first.sort_unstable();
        first.truncate(APART);
        match first[..] {
            [one] if all == 1 => Self::One(one),
            _ => Self::Several { listed: first.as_slice().into(), more: all - first.len() },
        }
    }

    /// Returns those that are listed.
    pub fn listed(&self) -> &[usize] {
        match self {
            Self::One(cause) => slice::from_ref(cause),
            Self::Several { listed, .. } => listed,
        }
    }

    /// Returns how many more there are.
    pub fn more(&self) -> usize {
        match self {
            Self::One(_) => 0,
            Self::Several { more, .. } => *more,
        }
    }
}

impl Cause {
    /// Returns the cluster that it is about, if it is about one.
    pub fn cluster(&self) -> Option<&ClusterName> {
        match self {
            Self::ClusterJoined(cluster)
            | Self::ClusterLeft(cluster)
            | Self::ClusterAdded { cluster, .. }
            | Self::ClusterRenamed { to: cluster, .. }
            | Self::MeshJoined { cluster, .. }
            | Self::MeshLeft { cluster, .. }
            | Self::OtherGranularity { cluster, .. }
            | Self::NodeRenamed { cluster, .. }
            | Self::LeaderChanged { cluster, .. }
            | Self::AnchorMoved { cluster, .. }
            | Self::ForeignPeer { target: cluster, .. } => Some(cluster),
            Self::Setting(setting) => setting.cluster.as_ref(),
            Self::Node { node, .. } => Some(&node.cluster),
            Self::Other => None,
        }
    }

    /// Returns the node that it is about, if it is about one.
    pub fn node(&self) -> Option<&NamedNode> {
        match self {
            Self::Node { node, .. } => Some(node),
            _ => None,
        }
    }
}
