//! Endpoints: the addresses at which nodes are dialled, and whether others get to a node there.

use std::collections::{BTreeMap, BTreeSet};
use std::net::IpAddr;

use super::{Fabric, NodeRef, Site, SiteId};
use crate::kilo::id::NodeId;
use crate::net::{Cidr, Family, family, private_network};
use crate::wireguard::{Endpoint, Host};

/// An address at which a node may be dialled.
#[derive(Clone, Copy, Debug, Eq, Ord, PartialEq, PartialOrd)]
pub(super) struct Door {
    pub(super) at: NodeRef,
    /// The port on which it listens there, if it is known.
    port: Option<u16>,
}

/// Whether a node gets to another one where it dials it.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub enum Dials {
    /// As far as its snapshot shows, and as people declare.
    Shown,
    /// If something is so that neither shows.
    Assumed(DialPremise),
    /// Not at all.
    No,
}

/// The condition under which a node gets to another one where it dials it, the weakest one last.
#[derive(Clone, Copy, Debug, Eq, Ord, PartialEq, PartialOrd)]
pub enum DialPremise {
    /// The endpoint is a private address, and no underlay of the mesh joins the two nodes. Equal numbers are not a
    /// common network: two homes may both have 192.168.1.0/24.
    Private,
    /// Another node is dialled at the same address and port.
    Claimed,
    /// The node that dials has an address of this kind, which its snapshot does not show.
    Family(Family),
    /// The address, which no node has, is that of a device in front of the node.
    Stranger,
    /// The name, which others may register under a declared suffix, is that of the node.
    Name,
}

impl Dials {
    /// Returns whether it does, unless there is evidence against it.
    pub fn may_be(self) -> bool {
        self != Self::No
    }
}

impl Door {
    pub(super) fn new(at: NodeRef, port: Option<u16>) -> Self {
        Self { at, port }
    }

    fn leads_to(&self, port: u16) -> bool {
        self.port.is_none_or(|it| it == port)
    }
}

impl Fabric<'_> {
    /// Returns whether `from` gets to `to` at an endpoint.
    pub fn reaches(&self, from: NodeRef, to: NodeRef, endpoint: &Endpoint) -> Dials {
        if !self.answers(endpoint, to) {
            return Dials::No;
        }
        let (home, away) = (self.site(from.site), self.site(to.site));
        let Host::Ip(address) = endpoint.host else {
            return self.premise_of_place(endpoint, to).map_or(Dials::Shown, Dials::Assumed);
        };
        if self.is_at(from, to, endpoint) {
            return Dials::No;
        }
        let family = family(address);
        let mut common = away.underlays_of(address).filter(|it| home.is_in(from.node, it, family));
        if private_network(address).is_some() && common.next().is_none() {
            return Dials::Assumed(DialPremise::Private);
        }
        let premise = self.premise_of_place(endpoint, to);
        let unseen = (!home.shows(from.node, family)).then_some(DialPremise::Family(family));
        premise.into_iter().chain(unseen).min().map_or(Dials::Shown, Dials::Assumed)
    }

    /// Returns whether callers of `endpoint` that do not have its address themselves may reach a node. An address that the
    /// node does not have may belong to a device in front of it, and so may a name.
    pub fn answers(&self, endpoint: &Endpoint, at: NodeRef) -> bool {
        let Host::Ip(address) = endpoint.host else {
            return true;
        };
        let endpoints = self.endpoints(address);
        let mut own = endpoints.iter().filter(|it| it.at == at);
        endpoints.is_empty() || own.any(|it| it.leads_to(endpoint.port.get()))
    }

    /// Returns the condition under which an endpoint is that of a node, for every node that dials it.
    pub fn premise_of_place(&self, endpoint: &Endpoint, to: NodeRef) -> Option<DialPremise> {
        let address = match &endpoint.host {
            Host::Ip(address) => *address,
            Host::Dns(name) => {
                let is_listed = self.site(to.site).entry.lists_name(name);
                return (!is_listed).then_some(DialPremise::Name);
            }
        };
        let mut claimants = self.index.shared.get(endpoint).into_iter().flatten();
        if claimants.any(|it| self.outclaims(*it, to, address)) {
            return Some(DialPremise::Claimed);
        }
        self.endpoints(address).is_empty().then_some(DialPremise::Stranger)
    }

    /// Returns whether another node's claim of an address makes that of `to` an assumption. That to which Kubernetes gives
    /// the address is judged as if it were alone, else that of the cluster of higher rank. The nodes of one cluster have
    /// the same rank.
    fn outclaims(&self, other: NodeRef, to: NodeRef, address: IpAddr) -> bool {
        let (rival, home) = (self.site(other.site), self.site(to.site));
        let is_above = match self.reporting([other, to], address) {
            [true, false] => true,
            [false, true] => false,
            _ => other.site == to.site || self.ranks_above(other.site, to.site),
        };
        // A private address is one place only within a network that both are in.
        let mut common = home.underlays_of(address);
        let is_one_place = private_network(address).is_none()
            || common.any(|it| rival.underlays_of(address).any(|other| other == it));
        other != to && is_above && is_one_place
    }

    /// Returns of each node whether Kubernetes reports that it has an address.
    fn reporting(&self, nodes: [NodeRef; 2], address: IpAddr) -> [bool; 2] {
        nodes.map(|it| self.site(it.site).reading.nodes[it.node].reports(address))
    }

    fn ranks_above(&self, one: SiteId, other: SiteId) -> bool {
        self.index.ranks[one] < self.index.ranks[other]
    }

    /// Returns the first node that may be dialled at an address.
    pub fn first_at(&self, address: IpAddr) -> Option<NodeRef> {
        self.endpoints(address).first().map(|it| it.at)
    }

    /// Returns whether any Peer or node is dialled where others get to it only under a condition.
    pub fn has_assumed_dials(&self) -> bool {
        self.index.has_assumed_dials
    }

    /// Returns whether a dial of an endpoint may depend on anything but the kinds of address that callers have.
    pub(super) fn may_be_assumed(&self, endpoint: &Endpoint, owner: Option<NodeRef>) -> bool {
        let is_private = endpoint.address().is_some_and(|it| private_network(it).is_some());
        let premise = || owner.is_none_or(|it| self.premise_of_place(endpoint, it).is_some());
        is_private || premise()
    }

    /// Returns whether a node that dials an endpoint of `to` is there itself. If both claim the place and nothing but
    /// their endpoints shows who has it, the cluster of higher rank does.
    pub fn is_at(&self, from: NodeRef, to: NodeRef, endpoint: &Endpoint) -> bool {
        let Some(address) = endpoint.address() else {
            return false;
        };
        let port = endpoint.port.get();
        let claims =
            |at: NodeRef| self.endpoints(address).iter().any(|it| it.at == at && it.leads_to(port));
        let is_outranked = || {
            claims(to)
                && match self.reporting([to, from], address) {
                    [true, false] => true,
                    [false, true] => false,
                    _ => self.ranks_above(to.site, from.site),
                }
        };
        let mut internal = self.site(from.site).reading.nodes[from.node].internal_addresses();
        internal.any(|it| it == address) || claims(from) && !is_outranked()
    }

    /// Returns whether any node of a cluster may be at an address.
    pub fn may_be_at(&self, site: SiteId, address: IpAddr) -> bool {
        self.endpoints(address).iter().any(|it| it.at.site == site)
    }

    /// Returns whether the node of another cluster may be dialled at the place of this node.
    pub fn may_dial_itself(&self, at: NodeRef) -> bool {
        let own = self.site(at.site).reading.nodes[at.node].endpoints();
        let mut dialled = own.flat_map(|it| self.dialled(Cidr::host(it.0)));
        dialled.any(|it| it != Some(at.site))
    }

    /// Returns whether an address is one at which a node may be dialled.
    pub fn has_endpoint_at(&self, address: IpAddr, at: NodeRef) -> bool {
        self.endpoints(address).iter().any(|it| it.at == at)
    }

    /// Returns the places at an address.
    fn endpoints(&self, address: IpAddr) -> &[Door] {
        self.index.endpoints.get(&address).map_or(&[], Vec::as_slice)
    }

    /// Returns the endpoints of Peers, each with the first node that has the key.
    pub(super) fn dialled_endpoints(&self) -> impl Iterator<Item = (&Endpoint, Option<NodeRef>)> {
        let specs = self
            .contents()
            .flat_map(|it| &it.peers)
            .filter_map(|it| it.spec.as_ref().ok().filter(|it| it.is_ready()));
        specs.filter_map(|it| Some((it.dialled()?, self.holders(&it.key).first().copied())))
    }

    /// Returns the endpoints at which several nodes with different keys are dialled.
    pub(super) fn shared_endpoints(&self) -> BTreeMap<Endpoint, BTreeSet<NodeRef>> {
        let peers = self.dialled_endpoints();
        let mut claims: Vec<(&Endpoint, NodeRef)> =
            peers.filter_map(|(it, holder)| Some((it, holder?))).collect();
        claims.sort_unstable();
        claims.dedup();
        let shared = claims.chunk_by(|one, other| one.0 == other.0).filter(|it| 1 < it.len());
        let shared = shared.filter_map(|it| Some((it.first()?.0.clone(), it)));
        shared.map(|(endpoint, it)| (endpoint, it.iter().map(|it| it.1).collect())).collect()
    }

    /// Returns the addresses that are dialled, each with the number of the cluster.
    pub(super) fn dialled_addresses(&self) -> impl Iterator<Item = (IpAddr, Option<SiteId>)> {
        let peers = self.dialled_endpoints();
        let of_peers =
            peers.filter_map(|(it, holder)| Some((it.address()?, holder.map(|it| it.site))));
        let of_nodes = self.sites.numbered().flat_map(|(number, site)| {
            let nodes = site.model.topology.nodes.iter();
            nodes.filter_map(move |it| Some((it.endpoint()?.address()?, Some(number))))
        });
        of_peers.chain(of_nodes)
    }
}

impl Site<'_> {
    /// Returns the names of the underlays in which an address is one of the cluster's.
    pub fn underlays_of(&self, address: IpAddr) -> impl Iterator<Item = &str> {
        let underlays = self.entry.underlays.iter();
        underlays.filter(move |it| it.holds(address)).map(|it| &*it.name)
    }

    /// Returns the underlays that a node is in, with the kinds of its addresses there.
    pub fn underlays_with(&self, node: NodeId) -> Vec<(&str, Family)> {
        let underlays = self.entry.underlays.iter();
        let families = [Family::V4, Family::V6];
        let all = underlays.flat_map(|it| families.map(|family| (&*it.name, family)));
        all.filter(|(name, family)| self.is_in(node, name, *family)).collect()
    }

    /// Returns whether a node is in an underlay with an internal address of a kind. An external peer is in
    /// those that its entry names.
    pub fn is_in(&self, node: NodeId, underlay: &str, kind: Family) -> bool {
        let mut named = self.entry.underlays.iter().filter(|it| it.name == underlay);
        named.any(|it| {
            let internal = self.reading.nodes[node].internal_addresses();
            let mut own = internal.filter(|it| family(*it) == kind);
            self.cluster.is_external() || own.any(|own| it.holds(own))
        })
    }
}
