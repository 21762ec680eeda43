//! Relays: clusters through which an attacker may get to others.

use std::cell::OnceCell;
use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use super::far_end::{FarEnds, HeldPeer};
use super::{OpenWay, Relay, RelayedSource};
use crate::agent::fabric::{Fabric, NodeRef, Owner, Site, SiteId, Sites};
use crate::agent::model::TunnelClaim;
use crate::net::prefixes::Span;
use crate::proof::bounded_list::BoundedList;

/// A cluster through which an attacker may get to others: what is the same for all attackers is
/// computed once, when the first of them needs it.
pub(super) struct RelayCluster<'r, 'f, 'a> {
    pub(super) number: SiteId,
    /// The largest number of things of one kind in a list.
    pub(super) most: usize,
    fabric: &'f Fabric<'a>,
    /// The far ends of every cluster's tunnels, by the cluster that has their keys.
    ends: &'r Sites<BTreeMap<SiteId, FarEnds<'f, 'a>>>,
    thirds: OnceCell<Vec<Third<'f, 'a>>>,
    open: OnceCell<Arc<BoundedList<OpenWay>>>,
}

/// Sources that a third takes from the relay, with the claim by which it does.
#[derive(Clone, Copy)]
struct TakenSource {
    span: Span,
    claim: TunnelClaim,
}

/// A cluster to which the relay sends anything.
struct Third<'f, 'a> {
    number: SiteId,
    site: &'f Site<'a>,
    /// The sources that it takes from the relay.
    taken: Vec<HeldPeer>,
}

impl<'r, 'f, 'a> RelayCluster<'r, 'f, 'a> {
    pub(super) fn new(
        fabric: &'f Fabric<'a>,
        ends: &'r Sites<BTreeMap<SiteId, FarEnds<'f, 'a>>>,
        number: SiteId,
        most: usize,
    ) -> Self {
        Self { number, most, fabric, ends, thirds: OnceCell::new(), open: OnceCell::new() }
    }

    /// Returns the far ends of its tunnels of which another cluster has the keys; nothing without any.
    pub(super) fn ends_of(&self, other: SiteId) -> Option<&'r FarEnds<'f, 'a>> {
        self.ends[self.number].get(&other)
    }

    /// Returns all destinations to which its nodes deliver, for any sender.
    pub(super) fn open(&self) -> Arc<BoundedList<OpenWay>> {
        let open = || Arc::new(BoundedList::new(self.most, open(self.fabric.site(self.number))));
        Arc::clone(self.open.get_or_init(open))
    }

    /// Follows packets of an attacker through it to all the rest. `links`: whether a mesh links the
    /// attacker with each of the clusters.
    pub(super) fn relays(
        &self,
        links: &Sites<bool>,
        ends: &FarEnds,
        believed: &[HeldPeer],
    ) -> BoundedList<Relay> {
        let thirds =
            self.thirds.get_or_init(|| self.thirds()).iter().filter(|it| it.number != ends.keeper);
        let paths = thirds.map(|third| {
            let passages = common(believed, &third.taken).into_iter().filter_map(|taken| {
                let by = self.carrier(ends, third.site, taken)?;
                let TakenSource { span, claim } = taken;
                Some(RelayedSource { span, by, claim })
            });
            Relay {
                site: third.number,
                is_linked: links[third.number],
                passages: BoundedList::new(self.most, passages),
            }
        });
        BoundedList::new(self.most, paths)
    }

    fn thirds(&self) -> Vec<Third<'f, 'a>> {
        let sent =
            self.ends[self.number].iter().filter(|(_, there)| there.holds().next().is_some());
        let thirds = sent.map(|(&number, _)| {
            let back = self.ends[number].get(&self.number);
            Third {
                number,
                site: self.fabric.site(number),
                taken: back.map_or_else(Vec::new, |it| it.holds().collect()),
            }
        });
        thirds.collect()
    }

    /// Returns its node that has the key with which a third takes a source, if the node takes that
    /// source from the attacker itself.
    fn carrier(&self, ends: &FarEnds, third: &Site, taken: TakenSource) -> Option<NodeRef> {
        let key = third.model.key(taken.claim.tunnel)?;
        let slot = ends.site.model.tunnels.around(taken.span).next()?;
        self.fabric.holders(&key).iter().copied().filter(|it| it.site == self.number).find(|at| {
            let led = ends.site.led(at.node);
            led.is_some_and(|it| ends.holder(it, slot).is_some())
        })
    }
}

/// Returns all destinations to which the nodes of a cluster deliver, for any sender.
fn open(site: &Site) -> BTreeSet<OpenWay> {
    let ranges = site.owned().iter().filter_map(|(range, owners)| {
        let owner = owners.first().filter(|it| **it != Owner::Pool)?;
        Some(OpenWay::Owned(*owner, range))
    });
    let nodes = site.model.topology.nodes.iter();
    let lans = nodes.filter_map(|it| it.kilo.lan).map(OpenWay::Lan);
    ranges.chain(lans).collect()
}

/// Returns the addresses that are in both, both in the order of addresses, with the claims of the
/// second.
fn common(one: &[HeldPeer], other: &[HeldPeer]) -> Vec<TakenSource> {
    let mut common = Vec::new();
    let (mut left, mut right) = (one.iter().peekable(), other.iter().peekable());
    while let (Some(a), Some(b)) = (left.peek(), right.peek()) {
        common.extend(a.span.common(b.span).map(|span| TakenSource { span, claim: b.claim }));
        let end = |span: Span| (span.family, span.last);
        if end(a.span) < end(b.span) {
            left.next();
        } else {
            right.next();
        }
    }
    common
}
