//! Can one side of every pair dial the other?

use std::net::IpAddr;

use super::membership::on_node;
use super::{Finding, Rule};
use crate::fleet::{Fleet, Member};
use crate::kilo::node;
use crate::membership::{Origin, PeerCandidate};
use crate::packet::rule::NO_INITIATOR;
use crate::place::Place;
use crate::snapshot::Node;
use crate::wireguard::Endpoint;

mod address;
mod network;
mod port;

pub(super) use network::site;

rules! {
    "endpoints" about Plan with crate::packet::rule::NO_INITIATOR;
    INVALID_ENDPOINT = "invalid-endpoint" Warning "NodeEndpointInvalid";
    NO_ENDPOINT = "missing-endpoint" Warning "NodeNoEndpoint";
    ROAMING_NODE = "roaming-node" Warning;
    NO_ANCHOR = "no-anchor" Warning;
    UNKNOWN_ANCHOR = "unknown-anchor" Warning;
    FEWER_ANCHORS = "fewer-anchors" Warning;
    DISTANT_ANCHOR = "distant-anchor" Notice;
    LOOPING_ENDPOINT = "looping-endpoint" Warning;
    UNANSWERED_PORT = "unanswered-port" Warning;
    UNDECLARED_PORT = "undeclared-port" Notice;
    DNS_ENDPOINT = "dns-endpoint" Notice;
    DOCUMENTATION_ENDPOINT = "documentation-endpoint" Notice;
    PRIVATE_ENDPOINT = "private-endpoint" Notice;
    UNREACHABLE_FAMILY = "unreachable-family" Notice;
}

/// Returns the command that gives a node an endpoint.
pub(super) fn annotate(node: &str) -> String {
    format!("kubectl annotate nodes {node} kilo.squat.ai/clustermesh-endpoint=HOST:51820")
}

/// A node that others dial.
#[derive(Clone, Copy, Debug)]
struct DialledEndpoint<'f> {
    member: &'f Member<'f>,
    candidate: &'f PeerCandidate,
    node: &'f Node,
    endpoint: &'f Endpoint,
    origin: Origin,
}

/// Returns findings about which clusters can dial which nodes.
pub(super) fn findings(fleet: &Fleet) -> Vec<Finding> {
    let mut members: Vec<&Member> = fleet.members().iter().collect();
    members.sort_by_key(|member| (&member.entry.name, member.rank));
    let mut findings = Vec::new();
    for member in &members {
        let dialled = DialledEndpoint::all(member);
        findings.extend(dialled.iter().filter_map(address::finding));
        findings.extend(dialled.iter().filter_map(port::finding));
    }
    findings.extend(network::findings(fleet, &members));
    super::once(findings)
}

impl<'f> DialledEndpoint<'f> {
    /// Returns the nodes of a cluster that are dialled, in order of name.
    fn all(member: &'f Member<'f>) -> Vec<Self> {
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
    fn address(&self) -> Option<IpAddr> {
        self.endpoint.address()
    }

    /// Returns where the snapshot has the endpoint.
    fn place(&self) -> Place {
        self.member.endpoint_place(self.candidate)
    }

    /// Returns where Kilo itself dials the node, and the annotation with that endpoint.
    fn of_kilo(&self) -> Option<(&'static str, Endpoint)> {
        node::listening(self.node)
    }

    /// Returns a finding about it, at its place.
    fn finding(&self, rule: &'static Rule, message: String) -> Finding {
        let leader = self.candidate.leader.as_str();
        on_node(rule, self.member, leader, message, &self.place())
    }
}
