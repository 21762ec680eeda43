//! Nodes and ranges that a render leaves out, as the cause of paths that fail without them.

use std::net::IpAddr;

use crate::agent::fabric::{Fabric, NodeRef};
use crate::fleet::Fleet;
use crate::name::ClusterName;
use crate::net::{Cidr, family};
use crate::packet::trace::Trace;
use crate::packet::{Ending, Goal, Unaccepted};
use crate::plan::{CapturedOutcome, TargetReason, Withheld};
use crate::rules::excused::given;
use crate::rules::rendered::PlannedFleet;
use crate::rules::{Finding, membership, plan};

/// An address of a cluster that the Peers of another one lack.
pub struct LackedAddress<'a> {
    /// The cluster with these Peers.
    pub target: &'a ClusterName,
    /// The cluster with the address.
    pub source: &'a ClusterName,
    /// The node with the address, if it is not of the whole cluster.
    pub node: Option<&'a str>,
    /// The address.
    pub address: IpAddr,
}

/// Returns the finding about what a render leaves out, if a packet fails because of that.
pub(super) fn cause(fabric: &Fabric, trace: &Trace, planned: PlannedFleet) -> Option<Finding> {
    LackedAddress::find(fabric, trace)?.cause(planned)
}

impl<'a> LackedAddress<'a> {
    /// Returns the finding about what a render leaves out, so that the target lacks the address. A render that would give the
    /// target the address leaves nothing out.
    pub fn cause(&self, planned: PlannedFleet) -> Option<Finding> {
        let Self { target, source, node, address } = *self;
        let PlannedFleet { fleet, plan } = planned;
        let mut targets = plan.targets.iter().chain(&plan.externals);
        let given_to = targets.find(|it| it.cluster == *target)?;
        if plan.gives(given_to, source, address) {
            return None;
        }
        if let Some(cut_off) = plan.cut_off().find(|it| it.cluster == *target) {
            return Some(plan::cut_off::finding(plan, cut_off));
        }
        let is_withheld = |it: &&Withheld| {
            it.target == *target
                && it.source == *source
                && it.reason.withholds()
                && self.is_of(fleet, &it.reason)
        };
        let members = || fleet.memberships(source);
        let is_excluded = |name: &str| {
            members().find_map(|member| {
                let mut excluded = member.membership.excluded.iter();
                let node = excluded.find(|it| it.node == name)?;
                Some(membership::excluded_by_line(member, node))
            })
        };
        let is_range_of_node = || {
            members().find_map(|member| {
                let mut ranges = member.membership.withheld.iter();
                let range = ranges.find(|it| {
                    let range = it.range.parse::<Cidr>();
                    range.is_ok_and(|it| it.contains(Cidr::host(address)))
                })?;
                Some(membership::withheld(member, range))
            })
        };
        let is_silent = || {
            let is_usable = members().any(|it| !it.membership.candidates.is_empty());
            let member = members().next().filter(|_| !is_usable)?;
            Some(membership::silent(member, plan))
        };
        node.and_then(is_excluded)
            .or_else(|| plan.withheld.iter().find(is_withheld).map(plan::finding))
            .or_else(is_range_of_node)
            .or_else(is_silent)
    }

    /// Returns the address for which a packet or its answer fails, if that is because no Peer has it or no Peer has the key of
    /// the sender.
    fn find(fabric: &Fabric<'a>, trace: &Trace) -> Option<Self> {
        let near = match trace.ending() {
            Ending::NoRoute { at: near }
            | Ending::NotAccepted { by: near, why: Unaccepted::NoPeer }
            | Ending::SourceRejected { by: near, owner: None, .. } => near.site,
            _ => return None,
        };
        let packet = &trace.packet;
        let (far, address) = if near == packet.from.site {
            (packet.to, packet.destination)
        } else {
            (Goal::Node(packet.from), packet.source)
        };
        let node = match far {
            Goal::Node(NodeRef { site, node }) => {
                Some(fabric.site(site).reading.nodes[node].node.name.as_str())
            }
            Goal::Services(_) | Goal::Network(_) => None,
        };
        let [target, source] = [near, far.site()].map(|it| fabric.site(it).cluster);
        Some(Self { target, source, node, address })
    }

    /// Returns whether a target lacks the address for this reason. That no range of a Peer is left follows from others.
    fn is_of(&self, fleet: &Fleet, reason: &TargetReason) -> bool {
        let has = |ranges: &[Cidr]| ranges.iter().any(|it| it.contains(Cidr::host(self.address)));
        match reason {
            TargetReason::OwnKey { node, .. } | TargetReason::SharedKey { node, .. } => {
                has(&given(fleet, self.source, node).collect::<Vec<_>>())
            }
            TargetReason::LoopingPeer(peer) => {
                has(&given(fleet, self.source, &peer.node).collect::<Vec<_>>())
            }
            TargetReason::LoopingRanges(looping) => has(&looping.ranges.cidrs),
            TargetReason::Captured(captured) => match &captured.outcome {
                CapturedOutcome::Without(holes) => has(holes),
                _ => has(&captured.ranges.cidrs),
            },
            TargetReason::Local(local) => has(&local.ranges.cidrs),
            TargetReason::Unaccepted { ranges, .. } => has(&ranges.cidrs),
            TargetReason::NoAnchor { ranges } => has(ranges),
            TargetReason::Family { family: left_out, .. } => *left_out == family(self.address),
            TargetReason::NoInitiator { .. } => true,
            _ => false,
        }
    }
}
