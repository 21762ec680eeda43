//! Undeclared: what gets through although no link promises it, by range.

use std::collections::BTreeMap;

use super::Asked;
use crate::agent::fabric::{Fabric, Owner, SiteId, SitePair};
use crate::mesh::AddressClass;
use crate::net::Cidr;
use crate::net::prefixes::{Prefixes, Span};
use crate::proof::reach::{AddressBlock, ClassVerdict};

/// Paths that hold although no link promises them, from or to the addresses of one owner.
#[derive(Clone, Debug, Eq, PartialEq)]
pub struct Undeclared {
    /// The paths.
    pub paths: Paths,
    /// The declared range with these addresses, the narrowest of them.
    pub declared: Option<Cidr>,
    /// The number of pairs of owners.
    pub pairs: u64,
}

/// Paths between two clusters that have the addresses of one owner in common.
#[derive(Clone, Copy, Debug, Eq, Ord, PartialEq, PartialOrd)]
pub struct Paths {
    /// The cluster that sends.
    pub from: SiteId,
    /// The receiver.
    pub to: SiteId,
    /// The class of a source.
    pub sender: AddressClass,
    /// The class of the destination.
    pub receiver: AddressClass,
    /// Whether the addresses are those of the sender.
    pub is_source: bool,
    /// The addresses.
    pub span: Span,
    /// The owner of the addresses.
    pub owner: Owner,
}

/// The number of pairs of owners, by paths.
pub(super) type FoundPaths = BTreeMap<Paths, u64>;

/// Adds the pairs of a working path that no link declares: all pairs of receivers that no link
/// declares, and for other receivers those with undeclared senders.
pub(super) fn add<'v>(
    found: &mut FoundPaths,
    SitePair { from, to }: SitePair,
    verdict: &'v ClassVerdict,
    is_sent: impl Fn(&&'v AddressBlock) -> bool,
    is_taken: impl Fn(&&'v AddressBlock) -> bool,
) {
    let mut add = |block: &AddressBlock, is_source: bool, pairs: usize| {
        let paths = Paths {
            from,
            to,
            sender: verdict.from,
            receiver: verdict.to,
            is_source,
            span: block.span,
            owner: block.owner,
        };
        let pairs = u64::try_from(pairs).unwrap_or(u64::MAX);
        *found.entry(paths).or_default() += pairs;
    };
    let receivers = verdict.receivers.iter();
    let (taken, others): (Vec<&AddressBlock>, Vec<&AddressBlock>) = receivers.partition(is_taken);
    for block in others {
        add(block, false, verdict.senders.len());
    }
    if taken.is_empty() {
        return;
    }
    for block in verdict.senders.iter().filter(|it| !is_sent(it)) {
        add(block, true, taken.len());
    }
}

/// Returns what was found, with the ranges that are declared, if it was asked for.
pub(super) fn listed(fabric: &Fabric, asked: Asked, found: FoundPaths) -> Option<Vec<Undeclared>> {
    if !asked.lists_undeclared {
        return None;
    }
    let mut declared: BTreeMap<SiteId, Prefixes<()>> = BTreeMap::new();
    let undeclared = found.into_iter().map(|(paths, pairs)| {
        let home = if paths.is_source { paths.from } else { paths.to };
        let nest = declared.entry(home).or_insert_with(|| {
            let ranges = fabric.site(home).entry.networks.all().into_iter();
            ranges.map(|it| (it.cidr, ())).collect()
        });
        let mut around = nest.holders(paths.span.first_address());
        let around = around.find(|(range, ())| Span::new(*range).holds(paths.span));
        Undeclared { paths, declared: around.map(|it| it.0), pairs }
    });
    Some(undeclared.collect())
}
