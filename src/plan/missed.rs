//! What a target misses: sources that give it nothing although people let them.

use std::net::IpAddr;
use std::sync::Arc;

use super::cut::CutOff;
use super::seen::{Seen, Source};
use crate::fleet::Member;
use crate::kilo::node::{KiloNode, annotation, endpoint};
use crate::net::{Cidr, Interface};
use crate::roster::Reason;
use crate::snapshot::{AddressKind, Node};
use crate::wireguard::Host;

/// What a target might get of a source that gives it nothing, were it not for what nodes claim.
#[derive(Clone, Debug, Default, Eq, PartialEq)]
pub struct Missed {
    /// How many nodes the source has, but for those that people leave out.
    pub nodes: usize,
    /// Where the target may get what nodes have, by what people wrote: the source declares it, the target
    /// accepts it, and the target's Kilo could route it.
    pub ranges: Vec<Cidr>,
    /// What nodes have that people leave out.
    pub barred: Vec<Cidr>,
    /// The ranges of the source as a whole, and whether people let the target have each.
    pub shared: Vec<(Cidr, bool)>,
    /// Whether anything is known to be left out for what a node claims.
    pub is_claimed: bool,
}

impl Missed {
    /// Returns what a target misses of a source that gives it nothing; nothing where the source has no node
    /// left that can give anything to anyone: that is for the guards of its snapshot.
    pub(super) fn of(seen: &Seen, source: &Source, cuts: &[Arc<CutOff>]) -> Option<Self> {
        let member = source.member;
        let roster = &member.roster;
        if roster.speakers.is_empty() {
            return None;
        }
        let accepted = seen.accepted(source);
        let is_routable = |it: &Cidr| seen.families.contains(&it.family());
        let declared = member.entry.networks.all().into_iter().map(|it| it.cidr);
        let common = |range: Cidr| match accepted {
            Some(accepted) => accepted.common(range),
            None => vec![range],
        };
        let ranges = declared.filter(is_routable).flat_map(common);
        let is_let = |range: &Cidr| {
            let is_accepted = accepted.is_none_or(|it| it.takes(*range));
            is_routable(range) && is_accepted && !is_unasked(member, *range, cuts)
        };
        let shared = roster.shared.iter().map(|it| (*it, is_let(it)));
        let left_out = || {
            let left_out = roster.left_out.iter();
            left_out.filter_map(|it| Some((node(member, &it.node)?, &it.reason)))
        };
        let is_barred = |it: &(&Node, &Reason)| match it.1 {
            Reason::NotSelected => true,
            Reason::NoEndpoint(_) => is_dialable(it.0),
            _ => false,
        };
        let barred = left_out().filter(is_barred);
        let count = left_out().filter(|it| !is_barred(it)).count();
        let speaking: usize = roster.speakers.iter().map(|it| it.nodes).sum();
        Some(Self {
            nodes: speaking + count,
            ranges: ranges.collect(),
            barred: barred.flat_map(|it| claims(member, it.0)).collect(),
            shared: shared.collect(),
            is_claimed: cuts.iter().any(|it| it.is_of_claims())
                || 0 < count
                || !roster.lost.is_empty(),
        })
    }

    /// Returns whether people let the target have a range that it had.
    pub fn lets(&self, range: Cidr) -> bool {
        // A node's address within such a range is its own.
        let is_of = |it: &Cidr| it.contains(range) && (*it == range || !range.is_host());
        if let Some((_, is_let)) = self.shared.iter().find(|it| is_of(&it.0)) {
            return *is_let;
        }
        self.ranges.iter().any(|it| it.contains(range))
            && !self.barred.iter().any(|it| it.overlaps(range))
    }
}

/// Returns whether nobody carries a range of the cluster as a whole since people do not ask for the
/// endpoints that its nodes have.
fn is_unasked(member: &Member, range: Cidr, cuts: &[Arc<CutOff>]) -> bool {
    let lacks_anchor = |it: &Arc<CutOff>| match &**it {
        CutOff::NoAnchor { ranges } => ranges.contains(&range),
        _ => false,
    };
    let silent = member.roster.speakers.iter();
    let mut silent = silent.filter(|it| it.endpoint.is_none());
    cuts.iter().any(lacks_anchor)
        && silent.any(|it| node(member, it.leader.as_str()).is_some_and(is_dialable))
}

fn node<'f>(member: &Member<'f>, name: &str) -> Option<&'f Node> {
    let mut nodes = member.file.snapshot.nodes.iter();
    nodes.find(|it| it.name == name)
}

/// Returns whether a node says where it can be dialled, whoever asks: in an annotation that a person
/// writes, or by an external address.
fn is_dialable(node: &Node) -> bool {
    let keys = [annotation::CLUSTERMESH_ENDPOINT, annotation::FORCE_ENDPOINT];
    let written = keys.iter().filter_map(|key| node.annotations.get(*key));
    let is_address = |it: &String| endpoint(it).is_ok_and(|it| matches!(it.host, Host::Ip(_)));
    let mut external = node.addresses.iter();
    written.into_iter().any(is_address)
        || external
            .any(|it| it.kind == AddressKind::ExternalIP && it.address.parse::<IpAddr>().is_ok())
}

/// Returns what a node says that it has.
fn claims(member: &Member, node: &Node) -> Vec<Cidr> {
    let kilo = KiloNode::read(node, &member.entry.topology_label);
    let wireguard = node.annotations.get(annotation::WIREGUARD_IP);
    let wireguard = wireguard.and_then(|it| it.parse::<Interface>().ok());
    let addresses = kilo.internal_address().into_iter();
    let addresses = addresses.chain(wireguard.map(|it| it.address));
    let pods = node.pod_cidrs.iter().filter_map(|it| it.parse().ok());
    pods.chain(addresses.map(Cidr::host)).collect()
}
