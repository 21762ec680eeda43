//! Meshes: what people wrote about which clusters shall be joined, and how.

use std::collections::BTreeSet;
use std::num::NonZeroU16;

use schemars::JsonSchema;
use serde::Deserialize;

use crate::granularity::Granularity;
use crate::name::{BlockName, ClusterName, MeshName};
use crate::net::Cidr;
use crate::place::Place;
use crate::selector::Selector;
use crate::wireguard::Keepalive;

/// A `ClusterMesh` that is right in itself.
#[derive(Clone, Debug)]
pub struct Mesh {
    /// Its name, which begins the names of all its Peers.
    pub name: MeshName,
    /// Who is linked to whom.
    pub topology: Topology,
    /// Its clusters in the order in which they were written, which is the order of trust.
    pub entries: Vec<Entry>,
    /// The document.
    pub place: Place,
}

/// Who is linked to whom.
#[derive(Clone, Debug, Eq, PartialEq)]
pub enum Topology {
    /// Everyone to everyone.
    FullMesh,
    /// Hubs to everyone, everyone to hubs.
    Hub(BTreeSet<ClusterName>),
    /// The pairs given, each with its names in order.
    Links(BTreeSet<(ClusterName, ClusterName)>),
}

/// What a mesh says about one cluster.
#[derive(Clone, Debug)]
pub struct Entry {
    /// The cluster.
    pub name: ClusterName,
    /// Whether the operator ran in this cluster.
    pub local: bool,
    /// The Secret from which the operator read this cluster's kubeconfig.
    pub kubeconfig: Option<SecretKeyRef>,
    /// The addresses that are the cluster's own.
    pub networks: Networks,
    /// The port of an endpoint that comes without one.
    pub port: NonZeroU16,
    /// Set where a person says: these nodes are behind NAT.
    pub keepalive: Option<Keepalive>,
    /// Whose ranges are given to others.
    pub selector: Selector,
    /// How Kilo cuts this cluster into segments, if a person says so.
    pub granularity: Option<Granularity>,
    /// The node label that names the location where the annotation doesn't.
    pub topology_label: String,
    /// Where a node's endpoint is looked for, first to last.
    pub endpoint_from: Vec<EndpointSource>,
    /// DNS suffixes under which an endpoint may be a name: lowercase, without a leading dot.
    pub endpoint_domains: Vec<String>,
    /// The entry.
    pub place: Place,
}

/// A key of a Secret in the mesh's namespace.
#[derive(Clone, Debug, Eq, PartialEq)]
pub struct SecretKeyRef {
    /// The Secret.
    pub name: String,
    /// The key in its data.
    pub key: String,
}

/// The addresses that are a cluster's own, in one of the operator's two forms.
#[derive(Clone, Debug)]
pub enum Networks {
    /// Each range with its use.
    Typed {
        /// Where the nodes' pod CIDRs lie.
        pods: Vec<Range>,
        /// Where the nodes' WireGuard addresses lie.
        wireguard: Range,
        /// Cluster IPs.
        services: Option<Range>,
        /// Whatever else the cluster reaches: host networks, storage.
        additional: Vec<Range>,
    },
    /// One list for all uses.
    Flat {
        /// Every range, whatever is in it.
        allowed: Vec<Range>,
    },
}

/// A declared range, and where it was declared.
#[derive(Clone, Debug)]
pub struct Range {
    /// The addresses.
    pub cidr: Cidr,
    /// The line.
    pub place: Place,
}

/// Where an endpoint may come from.
#[derive(Clone, Copy, Debug, Deserialize, Eq, JsonSchema, Ord, PartialEq, PartialOrd)]
pub enum EndpointSource {
    /// The annotations `kilo.squat.ai/clustermesh-endpoint`, then `kilo.squat.ai/force-endpoint`.
    Annotation,
    /// The node's external address, with the entry's `wireguardPort`.
    ExternalIP,
    /// The node's internal address, with the entry's `wireguardPort`.
    InternalIP,
    /// The endpoint that Kilo found by itself: the annotation `kilo.squat.ai/endpoint`.
    Kilo,
}

impl Mesh {
    /// Returns the common name of what `cluster` gives to others.
    pub fn block(&self, cluster: &ClusterName) -> BlockName {
        BlockName::new(&self.name, cluster)
    }
}

impl Topology {
    /// Returns whether two different clusters see each other.
    pub fn links(&self, a: &ClusterName, b: &ClusterName) -> bool {
        match self {
            Self::FullMesh => true,
            Self::Hub(hubs) => hubs.contains(a) || hubs.contains(b),
            Self::Links(pairs) => {
                let (first, second) = if a < b { (a, b) } else { (b, a) };
                pairs.contains(&(first.clone(), second.clone()))
            }
        }
    }

    /// Returns whether a cluster is a hub.
    pub fn is_hub(&self, cluster: &ClusterName) -> bool {
        matches!(self, Self::Hub(hubs) if hubs.contains(cluster))
    }
}

impl Networks {
    /// Returns every range, in the order in which the operator compares them.
    pub fn all(&self) -> Vec<&Range> {
        match self {
            Self::Typed {
                pods,
                wireguard,
                services,
                additional,
            } => pods
                .iter()
                .chain([wireguard])
                .chain(services)
                .chain(additional)
                .collect(),
            Self::Flat { allowed } => allowed.iter().collect(),
        }
    }
}
