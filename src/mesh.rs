//! Meshes: which clusters to join, and how, as people declare it.

use std::collections::BTreeSet;
use std::num::NonZeroU16;

use schemars::JsonSchema;
use serde::Deserialize;

use crate::diagnostic::{Finding, Severity, mistake};
use crate::document::Source;
use crate::granularity::Granularity;
use crate::name::{ClusterName, MeshName, Namespace, PeerSetName, is_peer_of};
use crate::net::Cidr;
use crate::place::Place;
use crate::schema;
use crate::selector::Selector;
use crate::wireguard::Keepalive;

mod between_meshes;
mod address_class;
mod advertise;
mod anchor;
mod assumed;
mod anchored_ranges;
mod control;
mod defaults;
mod distribution;
mod dns;
mod entry;
mod external;
mod fields;
mod gate;
mod group;
mod mistakes;
mod mtu;
mod networks;
mod operator;
mod overlap;
mod raw;
mod reading;
mod refused_link;
mod secret_key_ref;
mod selector;
mod service;
mod state;
mod topology;
mod underlay;

pub use address_class::AddressClass;
pub use advertise::{Advertise, PodRanges, WireguardAddresses};
pub(crate) use anchor::without_effect;
pub use anchor::{Anchor, Named};
pub use assumed::{AssumedValue, AssumedValueError};
pub use control::ControlKind;
pub use distribution::{Distribution, K3S, KUBEADM};
pub use dns::ClusterDns;
pub use external::ExternalPeer;
pub use group::{Group, KnownGroups, or_cluster};
pub use mistakes::invalid_name;
pub use mtu::{LEAST_WITH_IPV6, Mtu};
pub use networks::{accepted, local_networks};
pub use refused_link::{
    Refusals, RefusedLink, RefusedLinks, acceptance, at_policies, refusals, refusing,
};
pub use secret_key_ref::SecretKeyRef;
pub use service::MirroredService;
pub use state::{Link, State};
pub use topology::separating;
pub use underlay::Underlay;

use defaults::Inherited;
use dns::DEFAULT_DOMAIN;
pub(crate) use group::{WrittenGroups, groups, members, or_group, unknown_cluster};
pub(crate) use mistakes::member_name;
pub(crate) use raw::RawSelector as WrittenSelector;
pub(crate) use selector::selector;

/// The default port of endpoints that are given without a port.
pub const DEFAULT_PORT: NonZeroU16 = match NonZeroU16::new(51820) {
    Some(port) => port,
    None => NonZeroU16::MIN,
};

/// The default node label with the location.
pub const DEFAULT_TOPOLOGY_LABEL: &str = "topology.kubernetes.io/region";

/// The default sources of endpoints.
pub const DEFAULT_ENDPOINT_FROM: [EndpointSource; 2] =
    [EndpointSource::Annotation, EndpointSource::ExternalIP];

/// The meshes of some files.
#[derive(Clone, Debug, Default)]
pub struct MeshReading {
    /// The meshes in the order of files and documents. Without errors these are all of them.
    pub meshes: Vec<Mesh>,
    /// The valid parts of meshes with mistakes: enough to check nodes, but never rendered.
    pub salvaged: Vec<Mesh>,
    /// The names of the clusters of all meshes.
    pub named: BTreeSet<String>,
    /// The controls beside them, which are not read there.
    pub controls: Vec<(ControlKind, Place)>,
    /// The findings of each file in order, then those about several meshes.
    pub diagnostics: Vec<Finding>,
}

/// A `ClusterMesh` that is right in itself.
#[derive(Clone, Debug)]
pub struct Mesh {
    /// Its name, which begins the names of all its Peers.
    pub name: MeshName,
    /// The namespace of the operator's object, if set.
    pub namespace: Option<String>,
    /// The links between clusters.
    pub topology: Topology,
    /// Its clusters in the order in which they were written, which is the order of trust.
    pub entries: Vec<Entry>,
    /// Its hosts outside of all clusters, in the order in which they were written.
    pub externals: Vec<ExternalPeer>,
    /// The fields for which it has defaults.
    pub defaults: Vec<&'static str>,
    /// The Services of one cluster that others get.
    pub services: Vec<MirroredService>,
    /// Clusters that expectations select under one name.
    pub groups: Vec<Group>,
    /// The links that policies refuse.
    pub refused: RefusedLinks,
    /// The document.
    pub place: Place,
}

/// The links between clusters.
#[derive(Clone, Debug, Eq, PartialEq)]
pub enum Topology {
    /// Everyone to everyone.
    FullMesh,
    /// Hubs to everyone, everyone to hubs.
    Hub(BTreeSet<ClusterName>),
    /// The pairs given, each with its names in order.
    Links(BTreeSet<(ClusterName, ClusterName)>),
}

/// The entry of one cluster in a mesh.
#[derive(Clone, Debug, Eq, PartialEq)]
pub struct Entry {
    /// The cluster.
    pub name: ClusterName,
    /// Whether it exchanges Peers with the others.
    pub state: State,
    /// Whether the operator ran in this cluster.
    pub local: bool,
    /// The Secret from which the operator read this cluster's kubeconfig.
    pub kubeconfig: Option<SecretKeyRef>,
    /// The addresses that are the cluster's own.
    pub networks: Networks,
    /// The port of an endpoint that comes without one.
    pub port: NonZeroU16,
    /// Set if the nodes are behind NAT.
    pub keepalive: Option<Keepalive>,
    /// The nodes whose ranges are given to other clusters.
    pub selector: Selector,
    /// Kilo's `--mesh-granularity` in this cluster, if set.
    pub granularity: Option<Granularity>,
    /// The node label that names the location where the annotation doesn't.
    pub topology_label: String,
    /// The sources of a node's endpoint, in order of precedence.
    pub endpoint_from: Vec<EndpointSource>,
    /// DNS suffixes under which an endpoint may be a name: lowercase, without a leading dot.
    pub endpoint_domains: Vec<String>,
    /// The ranges that it accepts from other clusters by the mesh. None for everything.
    pub accepted: Option<Vec<Range>>,
    /// The ranges that it accepts by its policy. None for everything.
    pub accepted_by_policy: Option<Vec<Range>>,
    /// The namespaces in which it gets Services of others.
    pub accepted_services: BTreeSet<Namespace>,
    /// Networks of its own that no Peer may take over.
    pub local_networks: Vec<Range>,
    /// The nodes that carry the cluster-wide ranges.
    pub anchors: Vec<Anchor>,
    /// The addresses of its nodes that other clusters get.
    pub advertise: Advertise,
    /// Its DNS service, if other clusters should ask it.
    pub dns: Option<ClusterDns>,
    /// The source of packets from its pods, if a person declares it.
    pub pod_source: Option<PodSource>,
    /// The sizes of its packets.
    pub mtu: Mtu,
    /// The networks under the tunnels that its nodes are in.
    pub underlays: Vec<Underlay>,
    /// The fields that it leaves to the mesh's `defaults`.
    inherited: Inherited,
    /// The entry.
    pub place: Place,
}

/// The source of packets from pods as other clusters see it.
#[derive(Clone, Copy, Debug, Deserialize, Eq, JsonSchema, PartialEq)]
pub enum PodSource {
    /// The address of the pod.
    Kept,
    /// The address of the pod, or one of its node: the WireGuard address of a leader, or the internal IP of another node.
    Masqueraded,
}

/// The addresses that are a cluster's own, in one of the operator's two forms.
#[derive(Clone, Debug, Eq, PartialEq)]
pub enum Networks {
    /// Each range with its use.
    Typed {
        /// The ranges of the pods' addresses.
        pods: Vec<Range>,
        /// The range of the nodes' WireGuard addresses.
        wireguard: Range,
        /// Cluster IPs.
        services: Option<Range>,
        /// Other networks of the cluster: host networks, storage.
        additional: Vec<Range>,
    },
    /// One list for all uses.
    Flat {
        /// All ranges, of any purpose.
        allowed: Vec<Range>,
    },
}

/// A declared range, and where it was declared.
#[derive(Clone, Debug, Eq, PartialEq)]
pub struct Range {
    /// The addresses.
    pub cidr: Cidr,
    /// The line.
    pub place: Place,
}

/// A source of endpoints.
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

/// Returns the meshes of some files, and all that is wrong with them.
pub fn read(sources: &[Source]) -> MeshReading {
    read_at_most(sources, usize::MAX)
}

/// Returns the same. If the meshes have more than `most` clusters, they are not compared with each other: the
/// caller must refuse them.
pub fn read_at_most(sources: &[Source], most: usize) -> MeshReading {
    let mut reading = reading::read(sources);
    let clusters: usize = reading.meshes.iter().map(|it| it.all_entries().count()).sum();
    if clusters <= most {
        reading.diagnostics.extend(between_meshes::check(&reading.meshes));
    }
    reading
}

/// Returns the clusters in these meshes whose entries keep the addresses of their nodes. A declared network of the nodes is
/// given nevertheless.
pub fn without_node_addresses(meshes: &[Mesh]) -> BTreeSet<&ClusterName> {
    let entries = meshes.iter().flat_map(|it| &it.entries);
    let keeping = entries.filter(|it| it.state == State::Joined && it.advertise.keeps_nodes());
    keeping.map(|it| &it.name).collect()
}

/// Returns the JSON Schema of a `ClusterMesh`.
pub fn schema() -> schemars::Schema {
    schema::of_written::<raw::RawMesh>()
}

impl Entry {
    /// Returns the place of a field: in the entry, or in the mesh's `defaults`.
    pub fn field(&self, field: &str) -> Place {
        self.inherited.place(&self.place, field)
    }

    /// Returns the place of a field in the mesh's `defaults`, if the entry inherits it.
    pub fn default_of(&self, field: &str) -> Option<Place> {
        let place = self.field(field);
        (!place.pointer.is_within(&self.place.pointer)).then_some(place)
    }

    /// Returns whether an endpoint may be this DNS name.
    pub fn declares_domain(&self, name: &str) -> bool {
        fields::is_under(&self.endpoint_domains, name)
    }

    /// Returns whether a DNS name is listed itself, and not only a suffix under which others may register names.
    pub fn lists_name(&self, name: &str) -> bool {
        self.endpoint_domains.iter().any(|it| it == name)
    }

    /// Returns the node labels that it uses, each with the field that names it.
    pub fn labels(&self) -> impl Iterator<Item = (&'static str, &str)> {
        let selected = self.selector.keys().map(|key| ("nodeSelector", key));
        selected.chain([("topologyLabel", self.topology_label.as_str())])
    }

    /// Returns the values of a field for which a mesh can have defaults, or that decides which paths are proved.
    pub fn values(&self, field: &str) -> Vec<String> {
        match field {
            "wireguardPort" => vec![self.port.to_string()],
            "nodeSelector" => self.selector.conditions(),
            "granularity" => self.granularity.iter().map(ToString::to_string).collect(),
            "topologyLabel" => vec![self.topology_label.clone()],
            "endpointFrom" => self.endpoint_from.iter().map(|it| format!("{it:?}")).collect(),
            "endpointDomains" => self.endpoint_domains.clone(),
            "podSource" => self.pod_source.iter().map(|it| format!("{it:?}")).collect(),
            "underlays" => self.underlays.iter().map(ToString::to_string).collect(),
            _ => vec![self.advertise.to_string()],
        }
    }

    /// Returns the declared ranges in which pod CIDRs of nodes may be.
    pub fn pod_ranges(&self) -> &[Range] {
        match &self.networks {
            Networks::Typed { pods, .. } => pods,
            Networks::Flat { allowed } => allowed,
        }
    }

    /// Returns the declared ranges in which other clusters may get addresses.
    pub fn given(&self) -> Vec<&Range> {
        let mut given = self.networks.all();
        given.retain(|it| !self.keeps(it));
        given
    }

    /// Returns whether a declared range of it is Kilo's subnet, and no other cluster gets addresses in it. Two
    /// clusters that keep theirs may have the same one.
    pub fn keeps(&self, range: &Range) -> bool {
        self.advertise.keeps(&self.networks, range)
    }
}

impl MeshReading {
    /// Returns whether the meshes can be used.
    pub fn is_usable(&self) -> bool {
        self.diagnostics.iter().all(|diagnostic| diagnostic.severity < Severity::Error)
    }

    /// Returns whether every cluster is known with its whole entry, so that only the combination of
    /// clusters is wrong. This is sufficient for checks of single clusters.
    pub fn knows_clusters(&self) -> bool {
        let together =
            [&mistake::OVERLAPPING_RANGES, &mistake::INCONSISTENT_CLUSTER, &mistake::LINKED_TWICE];
        self.diagnostics
            .iter()
            .filter(|diagnostic| diagnostic.severity == Severity::Error)
            .all(|diagnostic| together.contains(&diagnostic.rule))
    }
}

/// Returns whether a Peer is ours: its name is one that a mesh gives.
pub fn is_ours<'m>(peer: &str, meshes: impl IntoIterator<Item = &'m Mesh>) -> bool {
    meshes.into_iter().any(|it| is_peer_of(it.name.as_str(), peer))
}

impl Mesh {
    /// Returns the common name of what `cluster` gives to others.
    pub fn peer_set_name(&self, cluster: &ClusterName) -> PeerSetName {
        PeerSetName::new(&self.name, cluster)
    }

    /// Returns whether two different clusters are in it and exchange Peers.
    pub fn links(&self, one: &ClusterName, other: &ClusterName) -> bool {
        self.entry(one)
            .zip(self.entry(other))
            .is_some_and(|(one, other)| self.link(one, other) == Some(Link::Exchange))
    }

    /// Returns the entries of its clusters, then those of its external peers.
    pub fn all_entries(&self) -> impl Iterator<Item = &Entry> + Clone {
        let externals = self.externals.iter().map(|it| &it.entry);
        self.entries.iter().chain(externals)
    }

    /// Returns the entry of a cluster or of an external peer.
    pub fn entry(&self, name: &ClusterName) -> Option<&Entry> {
        let external = || self.external(name).map(|it| &it.entry);
        self.entries.iter().find(|it| it.name == *name).or_else(external)
    }

    /// Returns an external peer, by its name among clusters.
    pub fn external(&self, name: &ClusterName) -> Option<&ExternalPeer> {
        let externals = name.is_external().then_some(&self.externals);
        externals?.iter().find(|it| it.entry.name == *name)
    }

    /// Returns whether any of its clusters exchange Peers.
    pub fn exchanges(&self) -> bool {
        let joined: Vec<&Entry> =
            self.entries.iter().filter(|it| it.state == State::Joined).collect();
        let rests = joined.iter().zip(1..);
        let links = |(one, rest): (&&Entry, usize)| {
            joined.iter().skip(rest).any(|other| self.is_linked(&one.name, &other.name))
        };
        rests.into_iter().any(links)
    }

    /// Returns how two different entries of it are linked, if its topology links them.
    pub fn link(&self, one: &Entry, other: &Entry) -> Option<Link> {
        self.is_linked(&one.name, &other.name).then(|| Link::new(one.state, other.state))
    }

    /// Returns whether its topology links two different clusters, or one is an external peer that reaches the other, and their
    /// policies accept each other.
    pub(crate) fn is_linked(&self, one: &ClusterName, other: &ClusterName) -> bool {
        let is_wanted = match (self.external(one), self.external(other)) {
            (None, None) => self.topology.links(one, other),
            (Some(host), None) => host.clusters.contains(other),
            (None, Some(host)) => host.clusters.contains(one),
            (Some(_), Some(_)) => false,
        };
        is_wanted && !self.refused.contains(one, other)
    }
}

/// Returns whether two clusters exchange Peers by a mesh.
pub fn are_linked(meshes: &[Mesh], one: &ClusterName, other: &ClusterName) -> bool {
    meshes.iter().any(|mesh| mesh.links(one, other))
}

/// Returns whether a cluster leaves all meshes that name it.
pub fn leaves(meshes: &[Mesh], cluster: &ClusterName) -> bool {
    let mut entries =
        meshes.iter().flat_map(|it| &it.entries).filter(|it| it.name == *cluster).peekable();
    entries.peek().is_some() && entries.all(|it| it.state == State::Leaving)
}

/// Returns the entry because of whose state two clusters exchange no Peers although a mesh links them.
pub fn unjoined<'a>(
    meshes: &'a [Mesh],
    one: &ClusterName,
    other: &ClusterName,
) -> Option<&'a Entry> {
    meshes.iter().find_map(|mesh| {
        let ends = [mesh.entry(one)?, mesh.entry(other)?];
        let is_linked = mesh.is_linked(one, other);
        ends.into_iter().filter(|_| is_linked).find(|it| it.state != State::Joined)
    })
}

#[cfg(test)]
pub(crate) mod tests;
