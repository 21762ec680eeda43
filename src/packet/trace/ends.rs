//! Ends: what people name as the source or the destination of a packet.

use std::collections::BTreeMap;
use std::net::{IpAddr, SocketAddr};

use thiserror::Error;

use super::End;
use crate::agent::fabric::{Fabric, NodeRef, Owner, SiteId};
use crate::diagnostic::Quoted;
use crate::mesh::AddressClass;
use crate::net::prefixes::Span;
use crate::net::{Cidr, Families, family};

/// The reason why something is not a valid end of a trace.
#[derive(Clone, Debug, Eq, Error, PartialEq)]
pub enum NoEnd {
    /// No mesh has a cluster of that name.
    #[error("unknown cluster {}", Quoted(.0))]
    Cluster(String),
    /// The cluster has no node of that name.
    #[error("{} has no node {}", .cluster, Quoted(.node))]
    Node {
        /// The cluster.
        cluster: String,
        /// The name.
        node: String,
    },
    /// A node, or a cluster, without an address of the class that is asked for.
    #[error("{} has no address for traffic of the class `{class}`", Quoted(.node))]
    NoAddress {
        /// The node, with its cluster, or the cluster.
        node: String,
        /// The class.
        class: AddressClass,
    },
    /// An address without an owner.
    #[error("{address} belongs to no node and to no range of {}", .cluster.as_deref().unwrap_or("any cluster"))]
    Nobody {
        /// The address.
        address: IpAddr,
        /// The cluster, if one was named.
        cluster: Option<String>,
    },
    /// An address in a range that a cluster declares for nodes, of which no node has it.
    #[error("{address} is in a range that {cluster} declares, but no node has it")]
    Unassigned {
        /// The address.
        address: IpAddr,
        /// The cluster.
        cluster: String,
    },
    /// Ends without addresses of one family.
    #[error("{} and {} are addresses of different families", .from.address, .to.address)]
    Families {
        /// The source.
        from: End,
        /// The destination.
        to: End,
    },
    /// An address of more than one cluster.
    #[error("{address} belongs to more than one cluster: {}; write `CLUSTER/{address}`", .clusters.join(", "))]
    Several {
        /// The address.
        address: IpAddr,
        /// The clusters.
        clusters: Vec<String>,
    },
    /// Neither an address nor a cluster nor something of it.
    #[error("{} is neither a cluster, nor `CLUSTER/NODE`, nor an address", Quoted(.0))]
    Unreadable(String),
    /// An address with a port that does not exist.
    #[error("{} has a port that is not a number from 0 to 65535", Quoted(.0))]
    Port(String),
    /// A range of addresses.
    #[error("{} is a range, not an address", Quoted(.0))]
    Range(String),
    /// The name of a cluster or of a node with a port.
    #[error("{} has a port, but {} is not an address", Quoted(.0), Quoted(.1))]
    PortOfName(String, String),
    /// Something that nothing is sent from.
    #[error("{address} cannot be a source: it is not the address of a pod or a node")]
    Silent {
        /// The address.
        address: IpAddr,
    },
    /// Both ends in one cluster.
    #[error("both ends are in {0}; clustermesh does not check traffic within a cluster")]
    OneCluster(String),
}

/// A named end.
#[derive(Clone, Debug, Eq, PartialEq)]
pub struct NamedEnd {
    /// The end, with an address that Kilo routes if there is one.
    pub end: End,
    /// The same with the other addresses that the name may mean.
    others: Vec<End>,
    /// The port behind the address. No route depends on it.
    pub port: Option<u16>,
    /// Whether only a cluster was named, and a node of it was picked.
    pub is_picked: bool,
}

/// Finds the ends that people name. It keeps those of whole clusters.
#[derive(Debug)]
pub struct EndFinder<'f, 'a> {
    fabric: &'f Fabric<'a>,
    of_clusters: BTreeMap<(SiteId, AddressClass), NamedEnd>,
}

impl From<End> for NamedEnd {
    fn from(end: End) -> Self {
        Self { end, others: Vec::new(), port: None, is_picked: false }
    }
}

impl NamedEnd {
    /// Returns the first of these ends, or none.
    fn first_of(mut ends: Vec<End>) -> Option<Self> {
        if ends.is_empty() {
            return None;
        }
        let first = ends.remove(0);
        Some(Self { others: ends, ..Self::from(first) })
    }

    /// Chooses addresses of one family for a packet between two ends.
    ///
    /// # Errors
    /// The ends have none.
    pub fn pair(from: &mut Self, to: &mut Self) -> Result<(), NoEnd> {
        let pairs = from.all().flat_map(|from| to.all().map(move |to| (from, to)));
        let is_alike = |(from, to): &(End, End)| family(from.address) == family(to.address);
        let alike = { pairs }.find(is_alike);
        let Some(found) = alike else {
            return Err(NoEnd::Families { from: from.end, to: to.end });
        };
        (from.end, to.end) = found;
        Ok(())
    }

    fn all(&self) -> impl Iterator<Item = End> {
        [self.end].into_iter().chain(self.others.iter().copied())
    }
}

impl<'f, 'a> EndFinder<'f, 'a> {
    /// Returns a finder for these clusters.
    pub fn new(fabric: &'f Fabric<'a>) -> Self {
        Self { fabric, of_clusters: BTreeMap::new() }
    }

    /// Finds the end that a text names: `cluster`, `cluster/node`, `cluster/address` or an address, each
    /// address also with a port. A class selects the kind of address of a node or a cluster.
    ///
    /// # Errors
    /// The end does not exist, or exists more than once.
    pub fn find(&mut self, text: &str, class: Option<AddressClass>) -> Result<NamedEnd, NoEnd> {
        let found = self.named(text, class);
        if let (Err(NoEnd::Unreadable(_) | NoEnd::Node { .. }), Some((name, port))) =
            (&found, text.rsplit_once(':'))
            && is_port(port)
            && self.named(name, None).is_ok()
        {
            return Err(NoEnd::PortOfName(text.to_owned(), name.to_owned()));
        }
        if found.is_err() && is_range(text) {
            return Err(NoEnd::Range(text.to_owned()));
        }
        found
    }

    fn named(&mut self, text: &str, class: Option<AddressClass>) -> Result<NamedEnd, NoEnd> {
        let Some((cluster, rest)) = text.split_once('/') else {
            if let Some(site) = self.fabric.site_named(text) {
                return self.of_cluster(site, class.unwrap_or(AddressClass::Pod));
            }
            let (address, port) =
                address(text)?.ok_or_else(|| NoEnd::Unreadable(text.to_owned()))?;
            let found = self.of_address(address)?;
            return Ok(NamedEnd { port, ..found });
        };
        let site =
            self.fabric.site_named(cluster).ok_or_else(|| NoEnd::Cluster(cluster.to_owned()))?;
        if let Some((address, port)) = address(rest)? {
            let found = self.at(site, address)?;
            return Ok(NamedEnd { port, ..found });
        }
        let node = self.fabric.site(site).node_named(rest);
        let node =
            node.ok_or_else(|| NoEnd::Node { cluster: cluster.to_owned(), node: rest.to_owned() })?;
        let class = class.unwrap_or(AddressClass::Pod);
        let ends = of_node(self.fabric, NodeRef { site, node }, class).collect();
        NamedEnd::first_of(ends).ok_or_else(|| NoEnd::NoAddress { node: text.to_owned(), class })
    }

    fn of_cluster(&mut self, site: SiteId, class: AddressClass) -> Result<NamedEnd, NoEnd> {
        if let Some(known) = self.of_clusters.get(&(site, class)) {
            return Ok(known.clone());
        }
        let ends = match class {
            AddressClass::Pod | AddressClass::Node => picked(self.fabric, site, class),
            AddressClass::Service | AddressClass::Network => whole(self.fabric, site, class),
        };
        let found = NamedEnd::first_of(ends).ok_or_else(|| NoEnd::NoAddress {
            node: self.fabric.site(site).cluster.to_string(),
            class,
        })?;
        let found = NamedEnd { is_picked: found.end.owner.node().is_some(), ..found };
        self.of_clusters.insert((site, class), found.clone());
        Ok(found)
    }

    fn of_address(&self, address: IpAddr) -> Result<NamedEnd, NoEnd> {
        let sites = self.fabric.sites.numbered();
        let (found, missed): (Vec<_>, Vec<_>) =
            sites.map(|(site, _)| self.at(site, address)).partition(Result::is_ok);
        let mut found: Vec<NamedEnd> = found.into_iter().flatten().collect();
        let Some(one) = found.pop() else {
            let mut missed = missed.into_iter().filter_map(Result::err);
            let unassigned = missed.find(|it| matches!(it, NoEnd::Unassigned { .. }));
            return Err(unassigned.unwrap_or(NoEnd::Nobody { address, cluster: None }));
        };
        if found.is_empty() {
            return Ok(one);
        }
        let all = found.iter().chain([&one]);
        let clusters = all.map(|it| self.fabric.site(it.end.site).cluster.to_string());
        Err(NoEnd::Several { address, clusters: clusters.collect() })
    }

    fn at(&self, number: SiteId, address: IpAddr) -> Result<NamedEnd, NoEnd> {
        let site = self.fabric.site(number);
        let cluster = site.cluster.to_string();
        let owner = match site.owner(address) {
            Some(Owner::Pool) => {
                return Err(NoEnd::Unassigned { address, cluster });
            }
            Some(owner) => owner,
            None => {
                return Err(NoEnd::Nobody { address, cluster: Some(cluster) });
            }
        };
        Ok(NamedEnd::from(End { site: number, owner, address }))
    }
}

/// Returns the addresses of a cluster for a packet, one of each family. Nodes that take part with a declared address
/// come first, then other nodes that take part, then the rest.
fn picked(fabric: &Fabric, site: SiteId, class: AddressClass) -> Vec<End> {
    let nodes = fabric.site(site).model.topology.nodes.numbered();
    let networks = &fabric.site(site).entry.networks;
    let ends = nodes.flat_map(|(node, _)| {
        let at = NodeRef { site, node };
        let takes_part = fabric.takes_part(at);
        let ends = of_node(fabric, at, class);
        ends.map(move |end| {
            let mut ranges = networks.all().into_iter();
            let is_declared = ranges.any(|range| range.cidr.holds(end.address));
            (!takes_part, !is_declared, end)
        })
    });
    let mut ends: Vec<_> = ends.collect();
    ends.sort_by_key(|(is_absent, is_undeclared, _)| (*is_absent, *is_undeclared));
    one_of_each_family(ends.into_iter().map(|(.., end)| end))
}

/// Returns addresses of a cluster-wide range, one of each family.
fn whole(fabric: &Fabric, number: SiteId, class: AddressClass) -> Vec<End> {
    let site = fabric.site(number);
    let ranges = site.owned().iter();
    let ranges = ranges.filter_map(|(range, owners)| Some((range, *owners.first()?)));
    let of_class = ranges.filter(|(_, owner)| {
        matches!(owner, Owner::Services | Owner::Network) && owner.class() == Some(class)
    });
    one_of_each_family(of_class.filter_map(|(range, owner)| {
        // Within the range, nodes may have some of their own.
        let pieces = site.owned().pieces(Span::new(range)).into_iter();
        let mut addresses = pieces.map(|piece| second(piece.span));
        let address = addresses.find(|it| site.owner(*it) == Some(owner))?;
        Some(End { site: number, owner, address })
    }))
}

fn one_of_each_family(ends: impl Iterator<Item = End>) -> Vec<End> {
    let mut families = Families::default();
    let mut first = Vec::new();
    for end in ends {
        if !families.has(family(end.address)) {
            families.insert(family(end.address));
            first.push(end);
        }
    }
    first
}

/// Returns the addresses of a node of a class, those that its Kilo routes first.
fn of_node(fabric: &Fabric, at: NodeRef, class: AddressClass) -> impl Iterator<Item = End> {
    let site = fabric.site(at.site);
    let pods = site.routed_pods(at.node).into_iter();
    let others = site.node(at.node).kilo.pods();
    let pods = pods.chain(others).map(a_pod);
    let of_pods = (class == AddressClass::Pod).then_some(pods);
    let of_itself = (class == AddressClass::Node).then(|| site.address(at.node));
    let pods = of_pods.into_iter().flatten();
    let pods = pods.map(move |it| (Owner::Pods(at.node), it));
    let itself = of_itself.flatten().map(|it| (Owner::Node(at.node), it));
    pods.chain(itself).map(move |(owner, address)| End { site: at.site, owner, address })
}

/// Reads an address, which may have a port: `10.0.0.1`, `10.0.0.1:443`, `fd00::1` or `[fd00::1]:443`.
fn address(text: &str) -> Result<Option<(IpAddr, Option<u16>)>, NoEnd> {
    let alone = text.parse().ok().map(|it: IpAddr| (it, None));
    let address = alone.or_else(|| {
        let both: SocketAddr = text.parse().ok()?;
        Some((both.ip(), Some(both.port())))
    });
    let without_port = || Some(text.rsplit_once(':')?.0);
    let has_address = |host: &str| format!("{host}:0").parse::<SocketAddr>().is_ok();
    if address.is_none() && without_port().is_some_and(has_address) {
        return Err(NoEnd::Port(text.to_owned()));
    }
    Ok(address.map(|(address, port)| (address.to_canonical(), port)))
}

/// Returns whether a text is the number of a port. Rust's parser also takes a sign.
fn is_port(text: &str) -> bool {
    text.bytes().all(|it| it.is_ascii_digit()) && text.parse::<u16>().is_ok()
}

/// Returns whether a text is a range, or `cluster/range`.
fn is_range(text: &str) -> bool {
    let rest = text.split_once('/').map_or(text, |(_, rest)| rest);
    [text, rest].iter().any(|it| it.parse::<Cidr>().is_ok())
}

/// Returns an address that a pod could have: the first one behind that of the bridge.
fn a_pod(range: Cidr) -> IpAddr {
    nth(Span::new(range), 2)
}

/// Returns the address behind the first.
fn second(span: Span) -> IpAddr {
    nth(span, 1)
}

fn nth(span: Span, number: u128) -> IpAddr {
    let first = span.first.saturating_add(number).min(span.last);
    Span { first, ..span }.first_address()
}
