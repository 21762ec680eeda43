//! Homes: what nodes have of their own, which nothing may take away where their cluster is a target.

use std::net::IpAddr;

use super::Reason;
use super::survey::Survey;
use crate::kilo::check;
use crate::kilo::cluster::ClusterNode;
use crate::kilo::id::NodeId;
use crate::kilo::node::{InternalIp, annotation};
use crate::net::{Cidr, Family, Interface};
use crate::snapshot::{AddressKind, Node};
use crate::wireguard::Endpoint;

/// A node that passes the checks, selected or not: Kilo joins it to the others of its cluster either
/// way.
#[derive(Clone, Debug)]
pub struct Home {
    /// Which node of the snapshot it is.
    pub node: NodeId,
    /// Where it is dialled, by its own cluster or by others.
    pub endpoints: Vec<IpAddr>,
    /// The network in which its internal address stands, unless that is too wide to be believed.
    pub lan: Option<Cidr>,
    /// Its internal addresses, at most one of a family.
    pub addresses: Vec<IpAddr>,
    /// Where Kilo or Kubernetes found it: networks, and single addresses. What a person forced is not
    /// among them.
    pub seats: Vec<Cidr>,
    /// Its location; empty for none.
    pub location: String,
}

/// The shortest prefix of a network of one site: what is shorter was given to a device for want of
/// a better one.
fn is_believable(lan: &Cidr) -> bool {
    match lan.family() {
        Family::V4 => 16 <= lan.prefix_length(),
        Family::V6 => 48 <= lan.prefix_length(),
    }
}

impl Survey<'_> {
    /// Returns the homes of all nodes that stand, once it is known who is left out.
    pub(super) fn homes(&self) -> Vec<Home> {
        let stands = |index: NodeId, candidate: &ClusterNode| match self.left_out.get(&index) {
            None => true,
            Some(Reason::NotSelected) => {
                candidate.checked.is_sound() && candidate.checked.pods.is_ok()
            }
            Some(_) => false,
        };
        self.nodes
            .numbered()
            .filter(|(index, candidate)| stands(*index, candidate))
            .map(|(index, candidate)| home(index, candidate))
            .collect()
    }
}

fn home(
    node: NodeId,
    ClusterNode {
        node: read,
        kilo,
        checked,
        ..
    }: &ClusterNode,
) -> Home {
    let of_kilo = kilo.endpoint.iter().filter_map(Endpoint::address);
    let mut endpoints: Vec<IpAddr> = of_kilo.collect();
    let dialled = checked.endpoint().and_then(Endpoint::address);
    endpoints.extend(dialled.filter(|it| !endpoints.contains(it)));
    let is_known = matches!(kilo.internal_ip, InternalIp::Known(_));
    let lan = kilo.lan.filter(|lan| is_known && is_believable(lan));
    Home {
        node,
        endpoints,
        lan,
        addresses: check::internal_addresses(read, kilo),
        seats: seats(read, lan),
        location: kilo.location.clone(),
    }
}

/// How many addresses of a node are looked at; Kubernetes reports one or two.
const ADDRESSES: usize = 8;

/// Returns where a node stands by what Kilo found, or by what Kubernetes reports. A LAN that a person
/// forced counts if Kubernetes reports an address in it.
fn seats(node: &Node, lan: Option<Cidr>) -> Vec<Cidr> {
    let found = node.annotations.get(annotation::INTERNAL_IP);
    let found = found.and_then(|text| text.parse::<Interface>().ok());
    let found = found.map(|it| {
        Some(it.network)
            .filter(is_believable)
            .unwrap_or(Cidr::host(it.address))
    });
    let reported: Vec<IpAddr> = node
        .addresses
        .iter()
        .filter(|it| it.kind == AddressKind::InternalIP)
        .filter_map(|it| it.address.parse().ok())
        .take(ADDRESSES)
        .collect();
    let confirmed = lan.filter(|lan| reported.iter().any(|it| lan.holds(*it)));
    let hosts = reported.iter().copied().map(Cidr::host);
    found.into_iter().chain(confirmed).chain(hosts).collect()
}
