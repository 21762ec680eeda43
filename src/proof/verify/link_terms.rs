//! Link terms: which addresses of a cluster a link promises to another one.

use super::promise::Promises;
use crate::agent::fabric::Site;
use crate::mesh::Range;
use crate::net::prefixes::Span;
use crate::proof::reach::AddressBlock;

/// The terms on which a cluster gives its ranges to another one.
pub(super) struct LinkTerms<'a> {
    /// The ranges that the cluster promises to all that it is linked with.
    pub(super) promises: &'a Promises,
    /// The lists of ranges that the other one accepts: a range must be in each of them.
    pub(super) accepted: Vec<&'a [Range]>,
    /// The networks of the other one that no Peer may take over.
    pub(super) local: &'a [Range],
}

impl LinkTerms<'_> {
    /// Returns whether a block of the cluster is promised.
    pub(super) fn promise(&self, site: &Site, block: &AddressBlock) -> bool {
        !meets(self.local, block.span)
            && self.promises.include(block)
            && is_accepted(site, block, &self.accepted)
    }
}

/// Returns whether any of some ranges shares addresses with a span.
fn meets(ranges: &[Range], span: Span) -> bool {
    let mut ranges = ranges.iter();
    ranges.any(|it| Span::new(it.cidr).common(span).is_some())
}

/// Returns whether the range with which a cluster would give an address away lies wholly in one entry
/// of each list.
fn is_accepted(site: &Site, block: &AddressBlock, lists: &[&[Range]]) -> bool {
    if lists.is_empty() {
        return true;
    }
    let mut around = site.owned().around(block.span);
    let given = around.find_map(|slot| {
        let (range, owners) = site.owned().at(slot);
        owners.contains(&block.owner).then_some(range)
    });
    given.is_some_and(|given| {
        let mut lists = lists.iter();
        lists.all(|list| list.iter().any(|it| it.cidr.contains(given)))
    })
}
