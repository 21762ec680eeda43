//! Endpoints: how other clusters can dial the nodes of a cluster.

use std::collections::BTreeMap;
use std::net::IpAddr;
use std::num::NonZeroU16;

use crate::kilo::cluster::{Cluster, ClusterNode};
use crate::kilo::node;
use crate::kilo::node_checks::{ENDPOINT_ANNOTATIONS, NodeChecks};
use crate::mesh::{DEFAULT_PORT, EndpointSource, Entry};
use crate::net::{Cidr, merged, private_network};
use crate::wireguard::{Endpoint, Host};

/// The fields that let other clusters dial the nodes that lead segments.
#[derive(Clone, Debug, Default, Eq, PartialEq)]
pub struct EndpointAdvice {
    /// The number of these nodes.
    pub leaders: usize,
    /// The number of those that can be dialled.
    pub reached: usize,
    /// The names of endpoints in the domain of most of them.
    pub names: Vec<String>,
    /// The port on which most of them listen, if it is not the default.
    pub port: Option<NonZeroU16>,
    /// The source that more endpoints are taken from than by default.
    pub source: Option<EndpointSource>,
    /// The private networks of the nodes that others cannot dial.
    pub networks: Vec<Cidr>,
}

impl EndpointAdvice {
    /// Returns how the nodes of a cluster can be dialled.
    pub(super) fn new(cluster: &Cluster) -> Self {
        let leaders = leaders(cluster);
        let advice = Self {
            leaders: leaders.len(),
            names: names(&leaders),
            port: port(&leaders),
            ..Self::default()
        };
        let by_default = advice.entry(cluster.entry);
        let is_silent = |it: &&&ClusterNode| endpoint(&by_default, it).is_none();
        let unreached: Vec<&ClusterNode> = leaders.iter().filter(is_silent).copied().collect();
        let with_kilo = advice.clone().with_source(EndpointSource::Kilo);
        let entry = with_kilo.entry(cluster.entry);
        let found = unreached.iter().filter_map(|it| endpoint(&entry, it));
        let found: Vec<Endpoint> = found.collect();
        if !found.is_empty() && found.iter().all(is_public) {
            return with_kilo.counted(cluster);
        }
        // Only people know whether a network leads to internal addresses.
        let internal = unreached.iter().flat_map(|it| it.internal_addresses());
        let networks = merged(internal.filter_map(private_network));
        Self { networks, ..advice }.counted(cluster)
    }

    fn with_source(self, source: EndpointSource) -> Self {
        let source = Some(source);
        Self { source, ..self }
    }

    /// Counts the nodes that can be dialled with this advice.
    fn counted(self, cluster: &Cluster) -> Self {
        let entry = self.entry(cluster.entry);
        let reached =
            leaders(cluster).into_iter().filter(|it| endpoint(&entry, it).is_some()).count();
        Self { reached, ..self }
    }

    /// Returns whether any node can be dialled.
    pub fn is_reached(&self) -> bool {
        0 < self.reached
    }

    /// Returns the number of nodes that others cannot dial.
    pub fn unreached(&self) -> usize {
        self.leaders - self.reached
    }

    /// Returns the sources, first to last, if they are not the default.
    pub(super) fn sources(&self) -> Option<Vec<EndpointSource>> {
        let default = crate::mesh::DEFAULT_ENDPOINT_FROM.into_iter();
        let source = self.source?;
        Some(default.chain([source]).collect())
    }

    /// Returns an entry with the advice in it.
    fn entry(&self, entry: &Entry) -> Entry {
        let mut entry = entry.clone();
        entry.endpoint_domains.clone_from(&self.names);
        entry.port = self.port.unwrap_or(DEFAULT_PORT);
        if let Some(sources) = self.sources() {
            entry.endpoint_from = sources;
        }
        entry
    }
}

/// Returns the nodes with an address in Kilo's subnet, or all of them if Kilo does not run yet.
fn leaders<'c, 'a>(cluster: &'c Cluster<'a>) -> Vec<&'c ClusterNode<'a>> {
    let leads = |it: &&ClusterNode| it.kilo.has_wireguard_ip();
    let leaders: Vec<&ClusterNode> = cluster.nodes.iter().filter(leads).collect();
    if leaders.is_empty() {
        return cluster.nodes.iter().collect();
    }
    leaders
}

fn endpoint(entry: &Entry, node: &ClusterNode) -> Option<Endpoint> {
    NodeChecks::new(entry, node.node, &node.kilo).endpoint().cloned()
}

/// Returns the names of endpoints in the domain that those of most nodes are in. A whole name is listed, because others may
/// register names in the domain.
fn names(leaders: &[&ClusterNode]) -> Vec<String> {
    let names = leaders.iter().filter_map(|leader| {
        let mut annotations = ENDPOINT_ANNOTATIONS.into_iter();
        let text = annotations.find_map(|it| leader.node.annotations.get(it))?;
        match node::endpoint(text).ok()?.host {
            Host::Dns(name) => Some(name),
            Host::Ip(_) => None,
        }
    });
    let mut names: Vec<String> = names.collect();
    let domain = |name: &String| name.split_once('.').map(|it| it.1.to_owned());
    let common = most(names.iter().filter_map(domain), leaders.len());
    let common = common.filter(|it| it.contains('.'));
    names.retain(|it| common.is_some() && domain(it) == common);
    names.sort_unstable();
    names.dedup();
    names
}

/// Returns the port on which most nodes listen, if it is not the default.
fn port(leaders: &[&ClusterNode]) -> Option<NonZeroU16> {
    let ports = leaders.iter();
    let ports = ports.filter_map(|it| Some(it.kilo.endpoint.as_ref()?.port));
    most(ports, leaders.len()).filter(|it| *it != DEFAULT_PORT)
}

/// Returns the value that more than half of this number of nodes have.
fn most<T: Ord>(values: impl Iterator<Item = T>, nodes: usize) -> Option<T> {
    let mut counts: BTreeMap<T, usize> = BTreeMap::new();
    for value in values {
        *counts.entry(value).or_default() += 1;
    }
    let (value, count) = counts.into_iter().max_by_key(|it| it.1)?;
    (nodes < 2 * count).then_some(value)
}

/// Returns whether an endpoint can be dialled from anywhere, as far as its address shows.
fn is_public(endpoint: &Endpoint) -> bool {
    let is_link_local = |address: IpAddr| match address {
        IpAddr::V4(v4) => v4.is_link_local(),
        IpAddr::V6(v6) => v6.is_unicast_link_local(),
    };
    endpoint.address().is_none_or(|address| {
        private_network(address).is_none() && !address.is_loopback() && !is_link_local(address)
    })
}
