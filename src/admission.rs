//! Admission: the guard of a cluster, a policy by which its API server refuses Peers that the meshes do not allow.
//!
//! A guard holds only what people declared, so it does not change with a node. The policy decides in CEL, and
//! [`Guard::refusals`] decides the same here, for Peers that are not written yet or that are there already.
//! `tests/cluster` compares the two on a real API server.

use std::collections::{BTreeMap, BTreeSet};

use thiserror::Error;

use crate::mesh::{Entry, Link, Mesh, Range};
use crate::name::ClusterName;
use crate::net::{Cidr, Family, merged};
use crate::plan::accepted_of;

mod accounts;
mod judgement;
mod options;
mod policy;

pub use accounts::{Account, Accounts};
pub use judgement::{GuardCost, MOST_COST, PeerForm};
pub use options::{AllowedPeerError, GuardOptions};
pub use policy::{Excess, GuardError, NAME, OtherRules, Recorded, RecordedError};

/// The most allowed IPs of a Peer.
pub const MOST_RANGES: usize = 1500;

/// The most allowed IPs that are compared with each other. More would cost too much; Kilo merges those that a Peer
/// has twice.
const MOST_COMPARED: usize = 400;

/// The key of what holds for Peers without the label of a mesh. No label has this value.
const ANY: &str = "/";

/// The guard of a cluster.
#[derive(Clone, Debug, Eq, PartialEq)]
pub struct Guard {
    /// The cluster.
    pub cluster: ClusterName,
    /// The declarations of the meshes.
    declared: GuardDeclarations,
    /// The decisions of the owner of the cluster.
    pub access: GuardAccess,
}

/// Declarations, as the policy looks them up.
#[derive(Clone, Debug, Default, Eq, PartialEq)]
struct GuardDeclarations {
    /// The ranges that the cluster accepts, by mesh and source: `MESH/SOURCE`.
    sources: BTreeMap<String, Vec<Cidr>>,
    /// The suffixes of DNS names in endpoints, by mesh and source.
    domains: BTreeMap<String, Vec<String>>,
    /// The cluster's own ranges, by mesh, and of all meshes under [`ANY`].
    own: BTreeMap<String, Vec<Cidr>>,
    /// Own ranges in which no endpoint of another cluster can be, by mesh, and of all meshes under [`ANY`].
    closed: BTreeMap<String, Vec<Cidr>>,
    /// The families of its own ranges.
    families: BTreeSet<Family>,
}

/// The decisions of the owner of a cluster about its guard.
#[derive(Clone, Debug, Default, Eq, PartialEq)]
pub struct GuardAccess {
    /// The accounts that may write Peers with our labels; without it, everyone with the right to write Peers.
    pub writers: Option<Accounts>,
    /// Peers without our labels, with their ranges.
    pub peers: BTreeMap<String, Vec<Cidr>>,
    /// The accounts that may write these.
    pub peer_writers: Accounts,
    /// The fate of a Peer that breaks a rule.
    pub enforcement: Enforcement,
}

/// The fate of a Peer that breaks a rule. An API server takes no policy that both denies and warns.
#[derive(Clone, Copy, Debug, Default, Eq, Ord, PartialEq, PartialOrd)]
pub enum Enforcement {
    /// It is stored. The user gets a warning, and the audit log an entry.
    Warn,
    /// It is refused.
    #[default]
    Deny,
}

impl Guard {
    /// Returns the guard of a cluster: what it accepts of each cluster that it is linked to, also of those that are
    /// still joining.
    pub fn new(meshes: &[Mesh], cluster: &ClusterName, mut access: GuardAccess) -> Self {
        // The policy accepts an allowed IP only if exactly one range has it.
        for ranges in access.peers.values_mut() {
            *ranges = merged(ranges.iter().copied());
        }
        let mut declared = GuardDeclarations::default();
        for mesh in meshes {
            let own = mesh.entries.iter().find(|it| it.name == *cluster);
            if let Some(own) = own {
                declared.add(mesh, own);
            }
        }
        let cluster = cluster.clone();
        Self { cluster, declared, access }
    }

    /// Returns whether an endpoint may be in the cluster's own ranges of pods, services and WireGuard addresses, because an
    /// entry with `allowedNetworks` does not show which ranges these are.
    pub fn is_open(&self) -> bool {
        self.declared.closed.values().any(Vec::is_empty)
    }
}

impl GuardDeclarations {
    /// Adds what one mesh declares.
    fn add(&mut self, mesh: &Mesh, own: &Entry) {
        let networks = own.networks.all();
        let kept: Vec<Cidr> = cidrs(networks.iter().copied().chain(&own.local_networks));
        self.families.extend(networks.iter().map(|it| it.cidr.family()));
        for (ranges, more) in
            [(&mut self.own, kept.clone()), (&mut self.closed, cidrs(own.networks.exclusive()))]
        {
            for name in [mesh.name.as_str(), ANY] {
                let all = ranges.entry(name.to_owned()).or_default();
                *all = merged(all.iter().chain(&more).copied());
            }
        }
        let linked = |it: &&Entry| {
            let link = mesh.link(own, it);
            it.name != own.name && matches!(link, Some(Link::Exchange | Link::Planned))
        };
        for source in mesh.all_entries().filter(linked) {
            let given = source.given().into_iter().map(|it| it.cidr);
            let accepted = accepted_of(own.accepted_lists(), given).into_iter();
            let accepted = accepted.filter(|it| self.families.contains(&it.family()));
            let accepted = merged(accepted.flat_map(|it| it.without(&kept)));
            if accepted.is_empty() {
                continue;
            }
            let key = format!("{}/{}", mesh.name, source.name);
            if !source.endpoint_domains.is_empty() {
                let domains = source.endpoint_domains.clone();
                self.domains.insert(key.clone(), domains);
            }
            self.sources.insert(key, accepted);
        }
    }
}

fn cidrs<'r>(ranges: impl IntoIterator<Item = &'r Range>) -> Vec<Cidr> {
    merged(ranges.into_iter().map(|it| it.cidr))
}

macro_rules! refusals {
    ($($(#[doc = $doc:literal])* $name:ident $sentence:literal)*) => {
        /// A rule that a Peer breaks, in order of weight.
        #[derive(Clone, Copy, Debug, Eq, Error, Ord, PartialEq, PartialOrd)]
        pub enum Refusal {$(
            $(#[doc = $doc])*
            #[error($sentence)]
            $name,
        )*}

        impl Refusal {
            /// Every rule, in order of weight.
            const ALL: &[Self] = &[$(Self::$name),*];
        }
    };
}

refusals! {
    /// The user may not write Peers with our labels.
    Writer "this user may not create, change or delete Peers with the labels of clustermesh (`--writers`)"
    /// A Peer without our labels that the owner does not allow.
    Unlisted "the Peer has no labels of clustermesh and is not one that the owner of the cluster allows (`--allow-peer`)"
    /// The user may not write a Peer that the owner allows.
    PeerWriter "this user may not create, change or delete this Peer (`--allow-peer-writers`)"
    /// Labels that name no source.
    Source "the labels name no mesh and source from which this cluster accepts Peers"
    /// The name of another source.
    Name "the name of the Peer does not fit its labels: MESH--SOURCE--NODE, or MESH--external.NAME of an external peer"
    /// Too many allowed IPs.
    ManyRanges "the Peer has more than {MOST_RANGES} allowed IPs"
    /// No allowed IP.
    NoRange "the Peer has no allowed IP"
    /// An IPv4 range written as IPv6.
    MappedRange "an allowed IP is an IPv4-mapped IPv6 range"
    /// A text that is not a range.
    UnreadableRange "an allowed IP is not a range such as 10.42.0.0/24"
    /// Every address of a family.
    DefaultRoute "an allowed IP is a default route"
    /// A range of the cluster itself.
    OwnRange "an allowed IP overlaps a range of this cluster itself"
    /// A family that the cluster does not declare.
    Family "an allowed IP is of an address family that no range of this cluster has"
    /// A range that the cluster does not accept of this source.
    Outside "an allowed IP is outside of the ranges that this cluster accepts of this source"
    /// A range that is not masked.
    HostBits "an allowed IP has host bits"
    /// One range twice.
    Twice "the Peer has an allowed IP twice"
    /// A text that is not a key.
    Key "the public key is not 44 characters of canonical base64"
    /// No endpoint.
    NoEndpoint "the Peer has no endpoint, so Kilo would not apply later changes of other Peers"
    /// An endpoint that Kilo does not read.
    Address "the endpoint has no valid address"
    /// A name beside an address.
    NameAndAddress "the endpoint has a DNS name and an address"
    /// A name that is not of a declared domain.
    Domain "the DNS name of the endpoint is not under a domain in `endpointDomains` of this source"
    /// An address that no other cluster can dial.
    Undialable "the endpoint is a loopback, link-local, multicast, broadcast or unspecified address"
    /// An endpoint in the ranges of its own Peer.
    Loop "the endpoint is inside an allowed IP of the same Peer"
    /// An endpoint inside of the cluster.
    OwnEndpoint "the endpoint is inside a pod, service or WireGuard range of this cluster"
    /// A placeholder without a keepalive.
    IdlePlaceholder "the endpoint is the placeholder 192.0.2.1:9, which needs a keepalive"
    /// A port that UDP does not have.
    Port "the port of the endpoint is not from 1 to 65535"
    /// A keepalive that WireGuard cannot have.
    Keepalive "the keepalive is not from 0 to 65535"
}

#[cfg(test)]
mod tests;
