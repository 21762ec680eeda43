//! Homes: what nodes have of their own, which nothing may take away where their cluster is a target.

use std::net::IpAddr;

use super::Reason;
use super::survey::Survey;
use crate::kilo::check;
use crate::kilo::cluster::ClusterNode;
use crate::kilo::node::InternalIp;
use crate::net::{Cidr, Family};
use crate::wireguard::Endpoint;

/// A node that passes the checks, selected or not: Kilo joins it to the others of its cluster either
/// way.
#[derive(Clone, Debug)]
pub struct Home {
    /// Which node of the snapshot it is.
    pub node: usize,
    /// Where it is dialled, by its own cluster or by others.
    pub endpoints: Vec<IpAddr>,
    /// The network in which its internal address stands, unless that is too wide to be believed.
    pub lan: Option<Cidr>,
    /// Its internal addresses, at most one of a family.
    pub addresses: Vec<IpAddr>,
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
        let stands = |index: usize, candidate: &ClusterNode| match self.left_out.get(&index) {
            None => true,
            Some(Reason::NotSelected) => {
                candidate.checked.is_sound() && candidate.checked.pods.is_ok()
            }
            Some(_) => false,
        };
        let candidates = self.candidates.iter().enumerate();
        candidates
            .filter(|(index, candidate)| stands(*index, candidate))
            .map(|(index, candidate)| home(index, candidate))
            .collect()
    }
}

fn home(
    node: usize,
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
    Home {
        node,
        endpoints,
        lan: kilo.lan.filter(|lan| is_known && is_believable(lan)),
        addresses: check::internal_addresses(read, kilo),
        location: kilo.location.clone(),
    }
}
