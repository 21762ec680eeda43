//! Link terms: which addresses of a cluster a link promises to another one.

use std::borrow::Cow;
use std::collections::BTreeMap;

use by_address::ByAddress;

use super::promise::Promises;
use crate::agent::fabric::Site;
use crate::mesh::{Entry, Range};
use crate::net::prefixes::{Prefixes, Span};
use crate::proof::reach::AddressBlock;

/// The terms on which a cluster gives its ranges to another one.
pub(super) struct LinkTerms<'a> {
    /// The ranges that the cluster promises to all that it is linked with.
    promises: &'a Promises,
    /// The addresses that the other one accepts by each list: those of a range must be in all of them.
    accepted: Vec<Prefixes<()>>,
    /// The networks of the other one that no Peer may take over.
    local: &'a [Range],
    /// The number of promised blocks in lists that were counted.
    counted: CountedBlocks<'a>,
}

/// Lists of blocks and how many of each are promised. Every class of the other cluster meets the same lists.
type CountedBlocks<'a> = BTreeMap<ByAddress<&'a [AddressBlock]>, u64>;

/// Lists with fewer blocks are counted each time.
const FEW: usize = 8;

impl<'a> LinkTerms<'a> {
    /// Returns the terms on which a cluster with some promises gives its ranges to another one.
    pub(super) fn new(promises: &'a Promises, other: &'a Entry) -> Self {
        let union = |list: &[Range]| Prefixes::union(list.iter().map(|it| it.cidr));
        Self {
            promises,
            accepted: other.accepted_lists().map(union).collect(),
            local: &other.local_networks,
            counted: CountedBlocks::new(),
        }
    }

    /// Returns how many blocks of a list are promised.
    #[expect(clippy::ptr_arg, reason = "only a borrowed list stays where it is in memory")]
    pub(super) fn count(&mut self, site: &Site, blocks: &Cow<'a, [AddressBlock]>) -> u64 {
        let &Cow::Borrowed(blocks) = blocks else {
            return self.count_anew(site, blocks);
        };
        if blocks.len() < FEW {
            return self.count_anew(site, blocks);
        }
        if let Some(count) = self.counted.get(&ByAddress(blocks)) {
            return *count;
        }
        let count = self.count_anew(site, blocks);
        self.counted.insert(ByAddress(blocks), count);
        count
    }

    fn count_anew(&self, site: &Site, blocks: &[AddressBlock]) -> u64 {
        u64::try_from(blocks.iter().filter(|it| self.promise(site, it)).count()).unwrap_or(u64::MAX)
    }

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

/// Returns whether the addresses of the range with which a cluster would give a block away are all in each
/// list.
fn is_accepted(site: &Site, block: &AddressBlock, lists: &[Prefixes<()>]) -> bool {
    if lists.is_empty() {
        return true;
    }
    let mut around = site.owned().around(block.span);
    let given = around.find_map(|slot| {
        let (range, owners) = site.owned().at(slot);
        owners.contains(&block.owner).then_some(range)
    });
    given.is_some_and(|given| lists.iter().all(|it| it.contain(given)))
}
