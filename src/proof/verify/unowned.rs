//! Unowned addresses: those that a cluster sends to another one although no node there has them.

use std::collections::{BTreeMap, BTreeSet};

use super::linked_peers::linked_peers;
use super::links::MeshLinks;
use crate::agent::fabric::{Fabric, NodeRef, Owner, Site, SiteId};
use crate::net::Cidr;
use crate::net::prefixes::Span;

/// Addresses of a node range that other clusters send to a node, which has no route for them: they leave by its default
/// route. A range that an anchor carries as a whole has such addresses, and an old tree those of a node that is gone.
#[derive(Clone, Debug, Eq, PartialEq)]
pub struct Unowned {
    /// The node that gets the packets.
    pub at: NodeRef,
    /// The range.
    pub range: Cidr,
    /// The number of its addresses that no node has, at most the largest number of 64 bits.
    pub addresses: u64,
    /// The clusters that send to them.
    pub senders: BTreeSet<SiteId>,
}

/// Finds what linked clusters send to each other.
pub(super) fn unowned(fabric: &Fabric, links: &MeshLinks) -> Vec<Unowned> {
    let mut found: BTreeMap<(NodeRef, Cidr), Unowned> = BTreeMap::new();
    for viewer in fabric.sites.ids() {
        for peer in linked_peers(fabric, viewer, links) {
            let at = peer.at;
            for range in peer.share.kept().map(|it| it.allowed.interface.network) {
                if let Some(known) = found.get_mut(&(at, range)) {
                    known.senders.insert(viewer);
                    continue;
                }
                let addresses = addresses(fabric.site(at.site), range);
                if 0 < addresses {
                    let senders = BTreeSet::from([viewer]);
                    found.insert((at, range), Unowned { at, range, addresses, senders });
                }
            }
        }
    }
    found.into_values().collect()
}

/// Returns how many addresses of a range are only there for nodes to get theirs out of.
fn addresses(site: &Site, range: Cidr) -> u64 {
    let owners = site.owned();
    let free = owners.pieces(Span::new(range)).into_iter().filter(|piece| {
        let owner = piece.slot.and_then(|it| owners.at(it).1.first());
        owner == Some(&Owner::Pool)
    });
    let all = free.map(|it| (it.span.last - it.span.first).saturating_add(1));
    u64::try_from(all.fold(0, u128::saturating_add)).unwrap_or(u64::MAX)
}
