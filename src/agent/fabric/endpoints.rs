//! Endpoints: the addresses at which nodes are dialled, and whether others get to a node there.

use std::collections::{BTreeMap, BTreeSet};
use std::net::IpAddr;

use super::{Fabric, NodeRef, Site, SiteId, SitePair};
use crate::kilo::id::NodeId;
use crate::net::{Cidr, Family, family, private_network};
use crate::wireguard::{Endpoint, Host};

/// A node that may be dialled at an address.
#[derive(Clone, Copy, Debug, Eq, Ord, PartialEq, PartialOrd)]
pub(super) struct Listener {
    pub(super) at: NodeRef,
    /// The port on which it listens there, if it is known.
    port: Option<u16>,
    /// Whether it is an internal address of the node.
    is_internal: bool,
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

impl Listener {
    pub(super) fn new(at: NodeRef, port: Option<u16>, is_internal: bool) -> Self {
        Self { at, port, is_internal }
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
        let listeners = self.listeners(address);
        let mut own = listeners.iter().filter(|it| it.at == at);
        listeners.is_empty() || own.any(|it| it.leads_to(endpoint.port.get()))
    }

    /// Returns the port on which a node listens at the address of an endpoint, if the endpoint has another one.
    pub fn other_port(&self, endpoint: &Endpoint, at: NodeRef) -> Option<u16> {
        let mut own = self.listeners(endpoint.address()?).iter().filter(|it| it.at == at);
        own.find_map(|it| it.port).filter(|it| *it != endpoint.port.get())
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
        self.listeners(address).is_empty().then_some(DialPremise::Stranger)
    }

    /// Returns whether another node's claim of an address makes that of `to` an assumption.
    fn outclaims(&self, other: NodeRef, to: NodeRef, address: IpAddr) -> bool {
        let (rival, home) = (self.site(other.site), self.site(to.site));
        // A private address is one place only within a network that both are in.
        let mut common = home.underlays_of(address);
        let is_one_place = private_network(address).is_none()
            || common.any(|it| rival.underlays_of(address).any(|other| other == it));
        other != to && self.stands_above(other, to, address) && is_one_place
    }

    /// Returns whether a node's claim of an address counts beside that of another node: Kubernetes gives the address to it
    /// alone, or to both or none, and its cluster ranks higher. The claims of the nodes of one cluster count against each
    /// other.
    fn stands_above(&self, one: NodeRef, other: NodeRef, address: IpAddr) -> bool {
        let reports = |it: NodeRef| self.site(it.site).reading.nodes[it.node].reports(address);
        match (reports(one), reports(other)) {
            (true, false) => true,
            (false, true) => false,
            _ => {
                one.site == other.site || self.index.ranks[one.site] < self.index.ranks[other.site]
            }
        }
    }

    /// Returns the first node that may be dialled at an address.
    pub fn first_at(&self, address: IpAddr) -> Option<NodeRef> {
        self.listeners(address).first().map(|it| it.at)
    }

    /// Returns whether a node of one of two clusters is dialled where others get to it only under a condition.
    pub fn has_assumed_dials(&self, pair: SitePair) -> bool {
        pair.both().iter().any(|it| self.index.assumed.contains(it))
    }

    /// Returns the clusters with nodes whose dials may depend on anything but the kinds of address that callers have, given
    /// the shared endpoints. A key without a node opens no tunnel.
    pub(super) fn assumed_sites(
        &self,
        shared: &BTreeMap<Endpoint, BTreeSet<NodeRef>>,
    ) -> BTreeSet<SiteId> {
        let owners = self.dialled_endpoints().filter_map(|(endpoint, owners)| {
            let first = *owners.first()?;
            let is_private = endpoint.address().is_some_and(|it| private_network(it).is_some());
            let premise = || self.premise_of_place(endpoint, first);
            (1 < owners.len() || is_private || premise().is_some()).then_some((first, owners))
        });
        // Several Peers may have the key of the same nodes.
        let owners: BTreeMap<NodeRef, &[NodeRef]> = owners.collect();
        let owners = owners.into_values().flatten();
        owners.chain(shared.values().flatten()).map(|it| it.site).collect()
    }

    /// Returns whether a node that dials an endpoint of `to` is there itself: it is an internal address of the node, or the
    /// node is the only one of its cluster that claims the place, and its claim counts beside that of `to`.
    pub fn is_at(&self, from: NodeRef, to: NodeRef, endpoint: &Endpoint) -> bool {
        let Some(address) = endpoint.address() else {
            return false;
        };
        let port = endpoint.port.get();
        let listeners = self.listeners(address);
        let has_internal = || listeners.iter().any(|it| it.at == from && it.is_internal);
        let claims = |at| listeners.iter().any(|it| it.at == at && it.leads_to(port));
        let is_outdone = || claims(to) && self.stands_above(to, from, address);
        has_internal() || self.claimant(from.site, address, port) == Some(from) && !is_outdone()
    }

    /// Returns the only node of a cluster that claims a place.
    fn claimant(&self, site: SiteId, address: IpAddr, port: u16) -> Option<NodeRef> {
        let claims = self.listeners(address).iter();
        let mut claims = claims.filter(|it| it.at.site == site && it.leads_to(port));
        let first = claims.next()?.at;
        claims.all(|it| it.at == first).then_some(first)
    }

    /// Returns whether any node of a cluster may be at an endpoint itself.
    pub fn may_be_at(&self, site: SiteId, endpoint: &Endpoint) -> bool {
        let Some(address) = endpoint.address() else {
            return false;
        };
        self.listeners(address).iter().filter(|it| it.at.site == site).any(|it| it.is_internal)
            || self.claimant(site, address, endpoint.port.get()).is_some()
    }

    /// Returns the clusters any of whose nodes may be at one of some endpoints. Unlike [`Self::may_be_at`], it takes a node
    /// that claims a place together with others of its cluster, too.
    pub fn sites_at<'e>(&self, endpoints: impl Iterator<Item = &'e Endpoint>) -> BTreeSet<SiteId> {
        let mut ports: BTreeMap<IpAddr, BTreeSet<u16>> = BTreeMap::new();
        for endpoint in endpoints {
            if let Some(address) = endpoint.address() {
                ports.entry(address).or_default().insert(endpoint.port.get());
            }
        }
        let listeners = ports.iter().flat_map(|(address, ports)| {
            let may_be_there =
                |it: &&Listener| it.is_internal || it.port.is_none_or(|port| ports.contains(&port));
            self.listeners(*address).iter().filter(may_be_there)
        });
        listeners.map(|it| it.at.site).collect()
    }

    /// Returns whether the node of another cluster may be dialled where this node is itself.
    pub fn may_dial_itself(&self, at: NodeRef) -> bool {
        self.site(at.site).reading.nodes[at.node]
            .endpoints()
            .filter(|&(address, _)| self.dialled(Cidr::host(address)).any(|it| it != Some(at.site)))
            .any(|(address, port)| {
                let mut listeners = self.listeners(address).iter();
                let is_sole =
                    || port.is_none_or(|it| self.claimant(at.site, address, it) == Some(at));
                listeners.any(|it| it.at == at && it.is_internal) || is_sole()
            })
    }

    /// Returns whether an address is one at which a node may be dialled.
    pub fn has_endpoint_at(&self, address: IpAddr, at: NodeRef) -> bool {
        self.listeners(address).iter().any(|it| it.at == at)
    }

    fn listeners(&self, address: IpAddr) -> &[Listener] {
        self.index.listeners.get(&address).map_or(&[], Vec::as_slice)
    }

    /// Returns the endpoints of Peers, each with the nodes that have the key.
    pub fn dialled_endpoints(&self) -> impl Iterator<Item = (&Endpoint, &[NodeRef])> {
        self.contents()
            .flat_map(|it| &it.peers)
            .filter_map(|it| it.spec.as_ref().ok().filter(|it| it.is_ready()))
            .filter_map(|it| Some((it.dialled()?, self.holders(&it.key))))
    }

    /// Returns the endpoints at which several nodes with different keys are dialled.
    pub(super) fn shared_endpoints(&self) -> BTreeMap<Endpoint, BTreeSet<NodeRef>> {
        let mut claims: Vec<(&Endpoint, NodeRef)> =
            self.dialled_endpoints().filter_map(|it| Some((it.0, *it.1.first()?))).collect();
        claims.sort_unstable();
        claims.dedup();
        let shared = claims.chunk_by(|one, other| one.0 == other.0).filter(|it| 1 < it.len());
        let shared = shared.filter_map(|it| Some((it.first()?.0.clone(), it)));
        shared.map(|(endpoint, it)| (endpoint, it.iter().map(|it| it.1).collect())).collect()
    }

    /// Returns the addresses that are dialled, each with the number of the cluster.
    pub(super) fn dialled_addresses(&self) -> impl Iterator<Item = (IpAddr, Option<SiteId>)> {
        let of_peers = self
            .dialled_endpoints()
            .filter_map(|(it, holders)| Some((it.address()?, holders.first().map(|it| it.site))));
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
        self.entry.underlays.iter().filter(move |it| it.holds(address)).map(|it| &*it.name)
    }

    /// Returns the underlays that a node is in by their places in the entry, with the kinds of its addresses there.
    pub fn underlays_with(&self, node: NodeId) -> &[(usize, Family)] {
        &self.own.underlays[node]
    }

    /// Returns whether a node is in an underlay with an internal address of a kind.
    pub fn is_in(&self, node: NodeId, underlay: &str, kind: Family) -> bool {
        let named =
            |place: usize| self.entry.underlays.get(place).is_some_and(|it| it.name == underlay);
        self.underlays_with(node).iter().any(|&(place, family)| family == kind && named(place))
    }
}
