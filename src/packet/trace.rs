//! Traces: a packet between two named ends, and its answer.

use std::net::IpAddr;

use thiserror::Error;

use super::rule;
use super::{Ending, Goal, Packet, Session, Way};
use crate::agent::fabric::{At, Fabric, Owner, Site, SiteId};
use crate::diagnostic::Quoted;
use crate::kilo::id::NodeId;
use crate::net::Cidr;
use crate::net::prefixes::Span;

mod contest;

/// One end of a trace.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub struct End {
    /// The number of its cluster.
    pub site: SiteId,
    /// The owner of the address.
    pub owner: Owner,
    /// The address.
    pub address: IpAddr,
}

/// The class of a source or destination.
#[derive(Clone, Copy, Debug, Eq, Hash, Ord, PartialEq, PartialOrd)]
pub enum AddressClass {
    /// Pods, with addresses of their own.
    Pod,
    /// Nodes and what shares their network: sent from the internal address since Kilo 0.7
    /// (`kilo.md` §6.3).
    Node,
    /// Services, behind the anchor of their cluster (`kilo.md` §6.4).
    Service,
    /// Other cluster-wide ranges, also behind the anchor.
    Network,
}

/// The path of the packet and that of its answer.
#[derive(Clone, Debug, Eq, PartialEq)]
pub struct Trace {
    /// The packet.
    pub packet: Packet,
    /// Its way.
    pub there: Way,
    /// The answer and its way, if the packet arrived.
    pub back: Option<(Packet, Way)>,
}

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
    /// An address of more than one cluster.
    #[error("{address} belongs to more than one cluster: {}; write `CLUSTER/{address}`", .clusters.join(", "))]
    Several {
        /// The address.
        address: IpAddr,
        /// The clusters.
        clusters: Vec<String>,
    },
    /// Neither an address nor a cluster with something of it.
    #[error("{} is neither `CLUSTER/NODE` nor an address", Quoted(.0))]
    Unreadable(String),
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

impl std::fmt::Display for AddressClass {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(match self {
            Self::Pod => "pod",
            Self::Node => "node",
            Self::Service => "service",
            Self::Network => "network",
        })
    }
}

impl Owner {
    /// Returns the class of traffic of its addresses; none if they have no owner.
    pub fn class(self) -> Option<AddressClass> {
        match self {
            Self::Pods(_) => Some(AddressClass::Pod),
            Self::Node(_) | Self::Tunnel(_) => Some(AddressClass::Node),
            Self::Services => Some(AddressClass::Service),
            Self::Network => Some(AddressClass::Network),
            Self::Pool => None,
        }
    }

    /// Returns whom a packet to one of its addresses is meant for, in the cluster of that number.
    pub fn goal(self, site: SiteId) -> Goal {
        match self {
            Self::Node(node) | Self::Tunnel(node) | Self::Pods(node) => {
                Goal::Node(At { site, node })
            }
            Self::Services => Goal::Services(site),
            Self::Network | Self::Pool => Goal::Network(site),
        }
    }

    /// Returns the node, where it is one's own.
    pub fn node(self) -> Option<NodeId> {
        match self {
            Self::Pods(node) | Self::Node(node) | Self::Tunnel(node) => Some(node),
            Self::Services | Self::Network | Self::Pool => None,
        }
    }
}

impl Trace {
    /// Returns how it ends: there, or else back.
    pub fn ending(&self) -> &Ending {
        match &self.back {
            Some((_, back)) if self.there.ending.is_delivered() => &back.ending,
            _ => &self.there.ending,
        }
    }

    /// Returns whether the packet arrives, and its answer too.
    pub fn is_delivered(&self) -> bool {
        self.back.is_some() && self.ending().is_delivered()
    }

    /// Returns whether the packet arrives and its answer doesn't.
    pub fn return_fails(&self) -> bool {
        let back = self.back.as_ref();
        back.is_some_and(|(_, way)| !way.ending.is_delivered())
    }

    /// Returns the name of how it ends, as `explain` knows it.
    pub fn verdict(&self) -> &'static str {
        if self.return_fails() {
            rule::RETURN_FAILS.name
        } else {
            self.there.ending.name()
        }
    }
}

impl Fabric<'_> {
    /// Finds the end that a text names: `cluster/node`, `cluster/address` or an address. A class
    /// selects the kind of address of a node or a cluster.
    ///
    /// # Errors
    /// The end does not exist, or exists more than once.
    pub fn end(&self, text: &str, class: Option<AddressClass>) -> Result<End, NoEnd> {
        let Some((cluster, rest)) = text.split_once('/') else {
            if let (Some(class), Some(site)) = (class, self.site_named(text)) {
                return self.of_cluster(site, class);
            }
            let address: IpAddr = text
                .parse()
                .map_err(|_| NoEnd::Unreadable(text.to_owned()))?;
            return self.of_address(address.to_canonical());
        };
        let number = self
            .site_named(cluster)
            .ok_or_else(|| NoEnd::Cluster(cluster.to_owned()))?;
        let site = self.site(number);
        if let Ok(address) = rest.parse::<IpAddr>() {
            let address = address.to_canonical();
            let cluster = || Some(cluster.to_owned());
            return end_at(number, site, address).ok_or_else(|| NoEnd::Nobody {
                address,
                cluster: cluster(),
            });
        }
        let node = site.node_named(rest).ok_or_else(|| NoEnd::Node {
            cluster: cluster.to_owned(),
            node: rest.to_owned(),
        })?;
        let class = class.unwrap_or(AddressClass::Pod);
        let address = match class {
            AddressClass::Pod => site.routed_pods(node).map(a_pod),
            AddressClass::Node => site.address(node),
            AddressClass::Service | AddressClass::Network => None,
        };
        let owner = match class {
            AddressClass::Pod => Owner::Pods(node),
            _ => Owner::Node(node),
        };
        let address = address.ok_or_else(|| NoEnd::NoAddress {
            node: text.to_owned(),
            class,
        })?;
        Ok(End {
            site: number,
            owner,
            address,
        })
    }

    /// Returns an address that a cluster has as a whole.
    fn of_cluster(&self, number: SiteId, class: AddressClass) -> Result<End, NoEnd> {
        let site = self.site(number);
        let name = site.cluster.to_string();
        let ranges = site
            .owned()
            .iter()
            .filter_map(|(range, owners)| Some((range, *owners.first()?)));
        let is_whole = |owner: Owner| matches!(owner, Owner::Services | Owner::Network);
        let mut of_class =
            ranges.filter(|(_, owner)| is_whole(*owner) && owner.class() == Some(class));
        // Within the range, nodes may have some of their own.
        let found = of_class.find_map(|(range, owner)| {
            let mut pieces = site
                .owned()
                .pieces(Span::new(range))
                .into_iter()
                .map(|piece| second(piece.span));
            let address = pieces.find(|it| site.owner(*it) == Some(owner))?;
            Some((owner, address))
        });
        let (owner, address) = found.ok_or(NoEnd::NoAddress { node: name, class })?;
        Ok(End {
            site: number,
            owner,
            address,
        })
    }

    fn of_address(&self, address: IpAddr) -> Result<End, NoEnd> {
        let sites = self.sites.numbered();
        let found: Vec<End> = sites
            .filter_map(|(number, site)| end_at(number, site, address))
            .collect();
        match found.as_slice() {
            [] => Err(NoEnd::Nobody {
                address,
                cluster: None,
            }),
            [one] => Ok(*one),
            many => {
                let names = many.iter().map(|it| self.site(it.site));
                let clusters = names.map(|site| site.cluster.to_string()).collect();
                Err(NoEnd::Several { address, clusters })
            }
        }
    }

    /// Follows a packet from one end to another, and its answer.
    ///
    /// # Errors
    /// Nothing is sent from the one, or both are in one cluster.
    pub fn trace(&self, from: End, to: End) -> Result<Trace, NoEnd> {
        let silent = NoEnd::Silent {
            address: from.address,
        };
        let node = from.owner.node().ok_or(silent)?;
        if from.site == to.site {
            let cluster = self.site(from.site).cluster.to_string();
            return Err(NoEnd::OneCluster(cluster));
        }
        let goal = to.owner.goal(to.site);
        let site = from.site;
        Ok(self.exchange(Packet {
            from: At { site, node },
            source: from.address,
            to: goal,
            destination: to.address,
            session: Session::New,
        }))
    }

    /// Follows a packet and its answer. If the result depends on a contest, every result of the
    /// contest is tried: if the packet arrives with all of them, it does not depend on the contest.
    pub fn exchange(&self, packet: Packet) -> Trace {
        let trace = self.exchange_as_it_is(packet);
        self.whatever_wins(&trace).unwrap_or(trace)
    }

    fn exchange_as_it_is(&self, packet: Packet) -> Trace {
        self.count();
        let there = self.way(&packet);
        let back = there.arrival().map(|arrival| {
            let answer = packet.answer(arrival);
            (answer, self.way(&answer))
        });
        Trace {
            packet,
            there,
            back,
        }
    }
}

fn end_at(number: SiteId, site: &Site, address: IpAddr) -> Option<End> {
    let owner = site.owner(address).filter(|it| *it != Owner::Pool)?;
    Some(End {
        site: number,
        owner,
        address,
    })
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
