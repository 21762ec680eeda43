//! Can one side of every pair dial the other?

use super::{Finding, Rule};
use crate::fleet::{Fleet, Member};
use crate::packet::rule::NO_INITIATOR;
use dialled::DialledEndpoint;

mod dialled;
mod address;
mod network;
mod port;
mod roaming;

rules! {
    "Endpoints and who can dial" in "endpoints" about Plan with crate::packet::rule: NO_INITIATOR;
    INVALID_ENDPOINT = "invalid-endpoint" Warning "NodeEndpointInvalid";
    NO_ENDPOINT = "missing-endpoint" Warning "NodeNoEndpoint";
    ROAMING_NODE = "roaming-node" Warning;
    NO_ANCHOR = "no-anchor" Warning;
    UNKNOWN_ANCHOR = "unknown-anchor" Warning;
    FEWER_ANCHORS = "fewer-anchors" Warning;
    SILENT_ANCHOR = "silent-anchor" Warning;
    MISSING_CARRIER = "missing-carrier" Warning;
    DISTANT_ANCHOR = "distant-anchor" Notice;
    LOOPING_ENDPOINT = "looping-endpoint" Warning;
    UNANSWERED_PORT = "unanswered-port" Warning;
    UNDECLARED_PORT = "undeclared-port" Notice;
    DNS_ENDPOINT = "dns-endpoint" Notice;
    DOCUMENTATION_ENDPOINT = "documentation-endpoint" Notice;
    PRIVATE_ENDPOINT = "private-endpoint" Notice;
    UNREACHABLE_FAMILY = "unreachable-family" Notice;
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
    findings.extend(roaming::findings(&members));
    super::once(findings)
}

/// Returns a finding about an endpoint, at its place.
fn on_endpoint(dialled: &DialledEndpoint, rule: &'static Rule, message: String) -> Finding {
    let leader = dialled.candidate.leader.as_str();
    let cluster = &dialled.member.entry.name;
    Finding::on_node(rule, cluster, leader, message).at(dialled.place(), "")
}
