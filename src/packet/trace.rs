//! Traces: a packet between two named ends, and its answer.

use std::net::IpAddr;

use super::{Ending, Goal, Packet, Session, Way, rule};
use crate::agent::fabric::{Fabric, NodeRef, Owner, SiteId};
use crate::diagnostic::Rule;
use crate::kilo::id::NodeId;
use crate::mesh::AddressClass;

pub use ends::{EndFinder, NamedEnd, NoEnd};

mod contest;
mod ends;

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
                Goal::Node(NodeRef { site, node })
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
        self.back.as_ref().is_some_and(|(_, way)| !way.ending.is_delivered())
    }

    /// Returns the name of how it ends, as `explain` knows it.
    pub fn verdict_name(&self) -> &'static str {
        self.verdict().map_or("delivered", Rule::name)
    }

    /// Returns the rule about its end, unless it is delivered.
    pub fn verdict(&self) -> Option<&'static Rule> {
        if self.return_fails() { Some(&rule::RETURN_FAILS) } else { self.there.ending.rule() }
    }
}

impl Fabric<'_> {
    /// Follows a packet from one end to another, and its answer.
    ///
    /// # Errors
    /// Nothing is sent from the one, or both are in one cluster.
    pub fn trace(&self, from: End, to: End) -> Result<Trace, NoEnd> {
        let silent = NoEnd::Silent { address: from.address };
        let node = from.owner.node().ok_or(silent)?;
        if from.site == to.site {
            let cluster = self.site(from.site).cluster.to_string();
            return Err(NoEnd::OneCluster(cluster));
        }
        let goal = to.owner.goal(to.site);
        let site = from.site;
        Ok(self.exchange(Packet {
            from: NodeRef { site, node },
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
        Trace { packet, there, back }
    }
}
