//! Promises: what of a cluster a link lets others reach.

use std::net::IpAddr;

use super::Excused;
use crate::kilo::node::annotation;
use crate::kilo::own::Leader;
use crate::mesh::{EndpointSource, Networks, Range};
use crate::net::{Cidr, Family};
use crate::proof::fabric::{At, Fabric, Owner, Site, SiteId};
use crate::proof::reach::Parcel;
use crate::snapshot::{AddressKind, Node};
use crate::wireguard::PublicKey;

/// What a cluster promises to those that it is linked with, by number of the node.
#[derive(Clone, Debug, Default)]
pub(super) struct Promises {
    /// Whether it takes part.
    pub(super) peered: Vec<bool>,
    /// Which of its pods are reached.
    pods: Vec<Vec<Family>>,
    /// Declared pod CIDRs that its Kilo does not carry packets to.
    pub(super) uncarried: Vec<Cidr>,
    /// Whether its internal address is.
    nodes: Vec<bool>,
}

impl Promises {
    pub(super) fn of(fabric: &Fabric, number: SiteId, excused: Option<&Excused>) -> Self {
        let site = fabric.site(number);
        let (for_pods, for_nodes) = match &site.entry.networks {
            Networks::Typed {
                pods, additional, ..
            } => (pods, additional),
            Networks::Flat { allowed } => (allowed, allowed),
        };
        let within = |ranges: &[Range], inner: Cidr| {
            let mut ranges = ranges.iter();
            ranges.any(|range| range.cidr.contains(inner))
        };
        let mut promises = Self::default();
        for (node, own) in site.model.own.nodes.iter().enumerate() {
            let name = own.kilo.name.as_str();
            let is_excused = excused.is_some_and(|it| it.has_node(site.cluster, name));
            let is_peered = is_peered(fabric, At { site: number, node }) && !is_excused;
            let is_lost =
                |range: Cidr| excused.is_some_and(|it| it.has_lost(site.cluster, name, range));
            // No tunnel can lead to where anybody is dialled (`kilo.md` §2.6).
            let is_dialled = |it: &IpAddr| fabric.dialled(Cidr::host(*it)).next().is_some();
            let address = site.address(node).filter(|it| !is_dialled(it));
            let address = address.filter(|it| !is_lost(Cidr::host(*it)));
            promises.peered.push(is_peered);
            let pods = own.kilo.pods().filter(|it| is_peered && !is_lost(*it));
            let (carried, others): (Vec<Cidr>, Vec<Cidr>) = pods
                .filter(|it| within(for_pods, *it))
                .partition(|it| site.carries_pods(node, *it));
            promises
                .pods
                .push(carried.into_iter().map(Cidr::family).collect());
            promises.uncarried.extend(others);
            promises
                .nodes
                .push(is_peered && address.is_some_and(|it| within(for_nodes, Cidr::host(it))));
        }
        promises
    }

    /// Returns whether a link promises these addresses.
    pub(super) fn include(&self, parcel: &Parcel) -> bool {
        let says = |all: &[bool], node: usize| all.get(node).copied().unwrap_or(false);
        match parcel.owner {
            Owner::Pods(node) => {
                let families = self.pods.get(node);
                families.is_some_and(|it| it.contains(&parcel.span.family))
            }
            Owner::Node(node) => says(&self.nodes, node),
            Owner::Services | Owner::Network => self.peered.contains(&true),
            Owner::Tunnel(_) | Owner::Pool => false,
        }
    }
}

/// Returns whether a node takes part in a mesh: somebody has a Peer for its segment, or there is
/// nothing about it that would keep anybody from having one.
fn is_peered(fabric: &Fabric, at: At) -> bool {
    let site = fabric.site(at.site);
    let Some(own) = site.node(at.node) else {
        return false;
    };
    let leader = own.segment.and_then(|it| site.leader(it));
    let (Some(Leader::Certain(leader)), Some(node)) = (leader, site.snapshot.nodes.get(at.node))
    else {
        return false;
    };
    if !site.entry.selector.matches(&node.labels) {
        return false;
    }
    let Some(key) = site.node(leader).and_then(|it| it.kilo.key) else {
        return false;
    };
    let mut sites = fabric.sites.iter();
    sites.any(|it| !it.model.peers_with(&key).is_empty())
        || speaks(site, leader)
            && fabric.holders(&key).len() == 1
            && PublicKey::try_from(key).is_ok()
}

/// Returns whether a leader has what a Peer needs: a WireGuard address that was declared, and an
/// endpoint where its cluster looks for one.
fn speaks(site: &Site, leader: usize) -> bool {
    let (Some(own), Some(node)) = (site.node(leader), site.snapshot.nodes.get(leader)) else {
        return false;
    };
    let is_declared = own.kilo.wireguard_ip().is_some_and(|announced| {
        let mut ranges = site.entry.networks.all().into_iter();
        ranges.any(|range| range.cidr.holds(announced.address))
    });
    let mut sources = site.entry.endpoint_from.iter();
    is_declared
        && (site.entry.keepalive.is_some() || sources.any(|source| has_endpoint(node, *source)))
}

fn has_endpoint(node: &Node, source: EndpointSource) -> bool {
    let says = |key: &str| node.annotations.contains_key(key);
    let has = |kind| node.addresses.iter().any(|it| it.kind == kind);
    match source {
        EndpointSource::Annotation => {
            says(annotation::CLUSTERMESH_ENDPOINT) || says(annotation::FORCE_ENDPOINT)
        }
        EndpointSource::ExternalIP => has(AddressKind::ExternalIP),
        EndpointSource::InternalIP => has(AddressKind::InternalIP),
        EndpointSource::Kilo => says(annotation::ENDPOINT),
    }
}
