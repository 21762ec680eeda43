//! Endpoints: which nodes of a cluster are dialled.

use std::net::IpAddr;

use crate::fleet::Member;
use crate::kilo::node;
use crate::membership::{Origin, PeerCandidate};
use crate::place::Place;
use crate::snapshot::Node;
use crate::wireguard::Endpoint;

/// A node that others dial.
#[derive(Clone, Copy, Debug)]
pub(super) struct DialledEndpoint<'f> {
    /// Its cluster.
    pub(super) member: &'f Member<'f>,
    pub(super) candidate: &'f PeerCandidate,
    pub(super) node: &'f Node,
    pub(super) endpoint: &'f Endpoint,
    /// The origin of the endpoint.
    pub(super) origin: Origin,
}

impl<'f> DialledEndpoint<'f> {
    /// Returns the nodes of a cluster that are dialled, in order of name.
    pub(super) fn all(member: &'f Member<'f>) -> Vec<Self> {
        let dialled = member.membership.candidates.iter().filter_map(|candidate| {
            Some(Self {
                member,
                candidate,
                node: member.node(candidate.leader.as_str())?,
                endpoint: candidate.endpoint.as_ref()?,
                origin: candidate.origin?,
            })
        });
        dialled.collect()
    }

    /// Returns the address that is dialled, if it is not behind a name.
    pub(super) fn address(&self) -> Option<IpAddr> {
        self.endpoint.address()
    }

    /// Returns where the snapshot has the endpoint.
    pub(super) fn place(&self) -> Place {
        self.member.endpoint_place(self.candidate)
    }

    /// Returns where Kilo itself dials the node, and the annotation with that endpoint.
    pub(super) fn of_kilo(&self) -> Option<(&'static str, Endpoint)> {
        node::listening(self.node)
    }
}
