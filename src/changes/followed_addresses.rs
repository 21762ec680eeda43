//! Followed addresses: the addresses of all clusters between which packets are followed.

use std::collections::BTreeSet;

use crate::agent::fabric::{Fabric, Owner, SiteId};
use crate::net::Cidr;
use crate::net::prefixes::{Prefixes, Span};

/// The addresses that nodes have, or that clusters declare as a whole.
pub(super) struct FollowedAddresses<'f, 'a> {
    pub(super) fabric: &'f Fabric<'a>,
    sites: Prefixes<SiteId>,
}

impl<'f, 'a> FollowedAddresses<'f, 'a> {
    /// Collects the addresses of all clusters. Addresses in Kilo's subnet are the ends of no declared path,
    /// unless a node has no other.
    pub(super) fn new(fabric: &'f Fabric<'a>) -> Self {
        let mut addresses = Vec::new();
        for (number, site) in fabric.sites.numbered() {
            let is_end = |it: &Owner| !matches!(it, Owner::Tunnel(_) | Owner::Pool);
            let owned = site.owned().iter().filter(|it| it.1.iter().any(is_end));
            addresses.extend(owned.map(|(range, _)| (range, number)));
            let nodes = site.model.topology.nodes.ids();
            let hosts = nodes.filter_map(|node| site.address(node));
            addresses.extend(hosts.map(|it| (Cidr::host(it), number)));
        }
        Self { fabric, sites: Prefixes::new(addresses) }
    }

    /// Returns whether a range shares addresses with any of them.
    pub(super) fn meet(&self, range: Cidr) -> bool {
        self.sites.meets(Span::new(range))
    }

    /// Returns the clusters that have addresses in a range.
    pub(super) fn owners(&self, range: Cidr) -> BTreeSet<SiteId> {
        let span = Span::new(range);
        let slots = self.sites.within(span).chain(self.sites.around(span));
        slots.flat_map(|slot| self.sites.at(slot).1).copied().collect()
    }
}
