//! Absent sources: those that give it nothing although people let them.

use std::collections::BTreeSet;
use std::net::IpAddr;
use std::sync::Arc;

use super::conflicts::is_typed;
use super::target_view::{TargetSource, TargetView};
use super::withheld::TargetReason;
use crate::fleet::Member;
use crate::kilo::cluster::ClusterNode;
use crate::membership::{EndpointProblem, ExcludedByMesh, ExcludedNode, ExcludedReason};
use crate::net::Cidr;
use crate::wireguard::{Endpoint, Host};

/// The ranges that a target would get from a source that gives it nothing, without the claims of nodes.
#[derive(Clone, Debug, Default, Eq, PartialEq)]
#[expect(clippy::struct_excessive_bools, reason = "each is a fact of its own, in any combination")]
pub struct AbsentSource {
    /// The number of nodes of the source, except those that people leave out.
    pub nodes: usize,
    /// The ranges in which the mesh lets the target reach nodes: the source declares them, the target
    /// accepts them, and the target's Kilo could route them.
    pub ranges: Vec<Cidr>,
    /// The ranges and addresses of nodes that people leave out.
    pub barred: Vec<Cidr>,
    /// The ranges of the source as a whole, and whether people let the target have each.
    pub shared: Vec<(Cidr, bool)>,
    /// Whether the mesh declares the purpose of each range, so that only addresses of nodes are in
    /// these.
    pub is_typed: bool,
    /// Whether anything is known to be left out for what a node claims.
    pub is_claimed: bool,
    /// Whether a single node can be why.
    pub is_of_one: bool,
    /// The number of reasons in which the data of the target's own nodes has a part.
    pub own_reasons: usize,
    /// Whether no node of the source has an endpoint, and most nodes of the target have none. Then the
    /// source gives as little as one without nodes, and a target that had its Peers loses it. Always false for
    /// an external peer: a person left out its endpoint, so the nodes of the target are the only cause.
    pub has_no_endpoint: bool,
    /// The endpoints of its nodes in ranges of external peers, which no node gives or claims, and the addresses and names that
    /// nodes still have and at which the mesh lets no cluster dial them, or no longer does. Without `persistentKeepalive`,
    /// that is the placeholder, too.
    pub unmoved: Vec<Host>,
    /// The host at which the mesh lets clusters dial it, if it is an external peer.
    pub external: Option<Host>,
    /// The ranges that nodes still claim and that the mesh does not declare.
    pub undeclared: Vec<Cidr>,
}

impl AbsentSource {
    /// Returns what a target misses of a source that gives it nothing; nothing where several nodes are why the source has
    /// none left that can give anything to anyone: that is for the guards of its snapshot.
    pub(super) fn find(
        view: &TargetView,
        source: &TargetSource,
        reasons: &[Arc<TargetReason>],
    ) -> Option<Self> {
        let member = source.member;
        let membership = &member.membership;
        let is_of_one = membership.depends_on_one(member.cluster.granularity);
        if membership.candidates.is_empty() && !is_of_one {
            return None;
        }
        let by_people = ExcludedByMesh::find(&member.cluster, membership);
        let excluded =
            membership.excluded.iter().filter(|it| it.reason != ExcludedReason::NotSelected);
        let speaking: usize = membership.candidates.iter().map(|it| it.nodes).sum();
        let all = speaking + membership.excluded.len();
        let accepted = view.accepted(source);
        let is_routable = |it: &Cidr| view.families.contains(&it.family());
        let declared = member.entry.networks.all().into_iter().map(|it| it.cidr);
        let common = |range: Cidr| match accepted {
            Some(accepted) => accepted.common(range),
            None => vec![range],
        };
        let local = || source.own.entry.local_networks.iter().map(|it| &it.cidr);
        let others = |range: Cidr| range.without(local());
        let ranges = declared.filter(is_routable).flat_map(common).flat_map(others);
        let is_let = |range: &Cidr| {
            let is_accepted = accepted.is_none_or(|it| it.takes(*range));
            let is_local = local().any(|it| it.contains(*range));
            let is_unasked = by_people.is_unasked && lacks_anchor(reasons, *range);
            is_routable(range) && is_accepted && !is_local && !is_unasked
        };
        let shared = member.cluster.shared.iter().map(|it| (*it, is_let(it)));
        let looping = reasons.iter().filter_map(|it| looping(it));
        Some(Self {
            nodes: all - by_people.nodes,
            ranges: ranges.collect(),
            shared: shared.collect(),
            barred: by_people.claims,
            is_typed: is_typed(member),
            is_claimed: reasons.iter().any(|it| it.is_of_claims())
                || 0 < excluded.count()
                || !membership.withheld.is_empty(),
            own_reasons: own_reasons(view, source, reasons),
            is_of_one,
            has_no_endpoint: !membership.candidates.is_empty()
                && !member.entry.name.is_external()
                && source.own.roams()
                && membership.candidates.iter().all(|it| it.endpoint.is_none()),
            unmoved: looping
                .map(Host::Ip)
                .chain(undialled(member))
                .chain(replaced(member, reasons))
                .collect(),
            external: member.entry.name.is_external().then(|| {
                let mut endpoints =
                    membership.candidates.iter().filter_map(|it| it.endpoint.as_ref());
                endpoints.next().map_or(Endpoint::PLACEHOLDER.host, |it| it.host.clone())
            }),
            undeclared: undeclared(member).collect(),
        })
    }

    /// Returns whether people let the target have something, so that only nodes' claims keep it.
    pub(crate) fn is_by_claims(&self) -> bool {
        self.is_claimed && 0 < self.nodes && self.is_let()
    }

    /// Returns whether a claim of one node keeps everything that people let the target have.
    pub(super) fn is_lost_to_one(&self) -> bool {
        self.is_of_one && self.is_by_claims()
    }

    /// Returns whether people let the target have something.
    pub(super) fn is_let(&self) -> bool {
        !self.ranges.is_empty() || self.shared.iter().any(|(_, is_let)| *is_let)
    }

    /// Returns whether people let the target have a Peer that it had, with these ranges and this endpoint. If its node
    /// still has them, and is left out for them now, the node has not changed: a person has changed the mesh.
    pub fn lets(&self, ranges: &[Cidr], dialled: Option<&Host>) -> bool {
        let is_unmoved = dialled.is_some_and(|it| self.unmoved.contains(it))
            || ranges.iter().any(|it| self.undeclared.contains(it));
        let is_redirected = self.external.as_ref().is_some_and(|it| Some(it) != dialled);
        !self.has_no_endpoint
            && !is_unmoved
            && !is_redirected
            && ranges.iter().any(|it| self.lets_range(*it))
    }

    /// Returns whether people let the target have a range that it had.
    fn lets_range(&self, range: Cidr) -> bool {
        // A node's address within such a range is its own, and all else is a part of it. In a flat list
        // pods may be there too: nodes decide which of its ranges are the cluster's as a whole.
        let is_part = self.is_typed && !range.is_host();
        let is_of = |it: &Cidr| *it == range || is_part && it.contains(range);
        if let Some((_, is_let)) = self.shared.iter().find(|it| is_of(&it.0)) {
            return *is_let;
        }
        self.ranges.iter().any(|it| it.contains(range))
            && !self.barred.iter().any(|it| it.overlaps(range))
    }
}

/// Returns the endpoint that keeps a node out because an external peer has a range around it.
fn looping(reason: &TargetReason) -> Option<IpAddr> {
    match reason {
        TargetReason::LoopingPeer(peer) if peer.owner.is_external() => Some(peer.endpoint.address),
        _ => None,
    }
}

/// Returns the hosts of nodes without an endpoint where the mesh looks for one, or with a name that it does not allow, and
/// where those that dial themselves are expected, if the mesh no longer has any.
fn undialled(member: &Member) -> impl Iterator<Item = Host> {
    let mut excluded = member.membership.excluded.iter();
    let has_no_endpoint = |it: &ExcludedNode| matches!(it.reason, ExcludedReason::NoEndpoint(_));
    let roams = member.entry.keepalive.is_none() && excluded.any(has_no_endpoint);
    let given = member.membership.excluded.iter().flat_map(|it| {
        let node = member.cluster.node(&it.node);
        let is_undialled = |host: &Host| match &it.reason {
            ExcludedReason::NoEndpoint(_) => true,
            ExcludedReason::EndpointInvalid { error: EndpointProblem::UndeclaredName, .. } => {
                matches!(host, Host::Dns(_))
            }
            _ => false,
        };
        node.into_iter().flat_map(ClusterNode::given_hosts).filter(is_undialled).collect::<Vec<_>>()
    });
    given.chain(roams.then_some(Endpoint::PLACEHOLDER.host))
}

/// Returns the hosts that nodes still have, if the mesh takes other endpoints of several nodes, and these are in ranges that
/// lead there. One node could claim both.
fn replaced(member: &Member, reasons: &[Arc<TargetReason>]) -> impl Iterator<Item = Host> {
    let looping = reasons.iter().filter(|it| matches!(***it, TargetReason::LoopingPeer(_)));
    let are_several = 1 < looping.count();
    let candidates = &member.membership.candidates;
    let taken = candidates.iter().filter_map(|it| it.endpoint.as_ref());
    let taken: BTreeSet<&Host> = taken.map(|it| &it.host).collect();
    let nodes = member.cluster.nodes.iter().filter(move |_| are_several);
    nodes.flat_map(ClusterNode::given_hosts).filter(move |it| !taken.contains(it))
}

/// Returns the ranges and addresses for which nodes are left out, because the mesh does not declare them for any purpose.
fn undeclared(member: &Member) -> impl Iterator<Item = Cidr> {
    let claims = member.membership.excluded.iter().filter_map(|it| match it.reason {
        ExcludedReason::PodCidrOutOfRange { cidr } => Some(cidr),
        ExcludedReason::WireguardIpOutOfRange { address } => Some(Cidr::host(address)),
        _ => None,
    });
    claims.filter(|it| member.entry.networks.all().iter().all(|range| !range.cidr.overlaps(*it)))
}

/// Returns whether no node can carry a range of the cluster as a whole.
fn lacks_anchor(reasons: &[Arc<TargetReason>], range: Cidr) -> bool {
    reasons.iter().any(|it| match &**it {
        TargetReason::NoAnchor { ranges } => ranges.contains(&range),
        _ => false,
    })
}

/// Returns the number of reasons in which the data of the target's own nodes has a part. A key or an address that only one
/// of them has is a claim of this node. The addresses of the only node of a cluster are those of the cluster.
fn own_reasons(view: &TargetView, source: &TargetSource, reasons: &[Arc<TargetReason>]) -> usize {
    let is_single = source.own.cluster.nodes.len() == 1;
    let own = || reasons.iter().filter(|it| is_of_target(view, it));
    let claimant = |it: &Arc<TargetReason>| match &**it {
        TargetReason::OwnKey { own, .. } => Some(own.clone()),
        TargetReason::Captured(it) if it.nodes == 1 && !is_single => Some(it.node.clone()),
        _ => None,
    };
    let claimants: BTreeSet<String> = own().filter_map(claimant).collect();
    own().filter(|it| claimants.len() != 1 || claimant(it).is_none()).count()
}

/// Returns whether the data of the target's own nodes is a reason.
fn is_of_target(view: &TargetView, reason: &TargetReason) -> bool {
    match reason {
        TargetReason::OwnKey { .. }
        | TargetReason::Captured(_)
        | TargetReason::NoInitiator { .. } => reason.withholds(),
        // If the target declares both, its nodes decide.
        TargetReason::Family { .. } => 1 < view.families.len(),
        _ => false,
    }
}
