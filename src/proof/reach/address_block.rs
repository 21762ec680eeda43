//! Address blocks: the addresses of a cluster that have one owner, and where they have to be cut.

use crate::agent::fabric::{Owner, Site};
use crate::net::prefixes::Span;

/// Addresses of a cluster that have one owner.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub struct AddressBlock {
    /// The owner.
    pub owner: Owner,
    /// The addresses.
    pub span: Span,
}

/// Returns everything in a cluster that is sent to: what each node that Kilo counts has, and what is
/// declared for the whole.
pub fn address_blocks(site: &Site) -> Vec<AddressBlock> {
    let mut blocks = of_nodes(site, true);
    for slot in site.owned().ids() {
        let (range, [owner, ..]) = site.owned().at(slot) else {
            continue;
        };
        if matches!(owner, Owner::Services | Owner::Network) {
            // Addresses that belong to nodes are theirs.
            let pieces = site.owned().pieces(Span::new(range)).into_iter();
            let rest = pieces.filter(|piece| piece.slot == Some(slot));
            blocks.extend(rest.map(|piece| AddressBlock { owner: *owner, span: piece.span }));
        }
    }
    blocks
}

/// Returns what each node of a cluster has, of those that Kilo counts or of those that it does not.
pub(crate) fn of_nodes(site: &Site, is_counted: bool) -> Vec<AddressBlock> {
    let mut blocks = Vec::new();
    for (number, node) in site.model.topology.nodes.numbered() {
        if node.segment.is_some() != is_counted {
            continue;
        }
        let pods = node
            .kilo
            .pods()
            .map(|range| AddressBlock { owner: Owner::Pods(number), span: Span::new(range) });
        let own = site
            .address(number)
            .map(|address| AddressBlock { owner: Owner::Node(number), span: Span::host(address) });
        blocks.extend(pods.chain(own));
    }
    blocks
}

/// Returns how many pieces there are at most, without cutting.
pub(super) fn most_pieces(viewer: &Site, home: &Site, span: Span) -> u64 {
    let inside = [
        viewer.model.tunnels.within(span).len(),
        home.model.tunnels.within(span).len(),
        viewer.connections().within(span).len(),
        home.connections().within(span).len(),
        viewer.owned().within(span).len(),
    ];
    let borders: usize = inside.into_iter().sum();
    u64::try_from(1 + 2 * borders).unwrap_or(u64::MAX)
}

/// Cuts addresses of `home` at every boundary at which the view of `viewer` or its own changes.
pub(crate) fn pieces(viewer: &Site, home: &Site, span: Span) -> Vec<Span> {
    span.cut(
        viewer
            .model
            .tunnels
            .across(span)
            .chain(home.model.tunnels.across(span))
            .chain(viewer.connections().across(span))
            .chain(home.connections().across(span))
            .chain(viewer.owned().across(span)),
    )
}
