//! Parcels: the addresses of a cluster that have one owner, and where they have to be cut.

use std::collections::BTreeSet;

use crate::proof::fabric::{Owner, Site};
use crate::proof::prefixes::{Prefixes, Span};

/// Addresses of a cluster that have one owner.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub struct Parcel {
    /// The owner.
    pub owner: Owner,
    /// The addresses.
    pub span: Span,
}

/// Returns everything in a cluster that is sent to: what each node that Kilo counts has, and what is
/// declared for the whole.
pub fn parcels(site: &Site) -> Vec<Parcel> {
    let mut parcels = Vec::new();
    for (number, node) in site.model.own.nodes.iter().enumerate() {
        if node.segment.is_none() {
            continue;
        }
        let pods = node.kilo.pod_cidr.map(|range| Parcel {
            owner: Owner::Pods(number),
            span: Span::of(range),
        });
        let own = site.address(number).map(|address| Parcel {
            owner: Owner::Node(number),
            span: Span::host(address),
        });
        parcels.extend(pods.into_iter().chain(own));
    }
    for slot in 0..site.owned.len() {
        let Some((range, [owner, ..])) = site.owned.get(slot) else {
            continue;
        };
        if matches!(owner, Owner::Services | Owner::Network) {
            // What nodes have of their own in it is theirs.
            let pieces = site.owned.pieces(Span::of(range)).into_iter();
            let rest = pieces.filter(|piece| piece.slot == Some(slot));
            parcels.extend(rest.map(|piece| Parcel {
                owner: *owner,
                span: piece.span,
            }));
        }
    }
    parcels
}

/// Cuts addresses of `home` wherever anything changes for those in `viewer` or for itself.
pub(super) fn pieces(viewer: &Site, home: &Site, span: Span) -> Vec<Span> {
    let mut starts = BTreeSet::from([span.first]);
    cut(&mut starts, &viewer.model.tunnels, span);
    cut(&mut starts, &home.model.tunnels, span);
    cut(&mut starts, viewer.connections(), span);
    cut(&mut starts, home.connections(), span);
    cut(&mut starts, &viewer.owned, span);
    let starts: Vec<u128> = starts.into_iter().collect();
    let ends = starts.iter().skip(1).map(|it| it - 1).chain([span.last]);
    let both = starts.iter().zip(ends);
    both.map(|(&first, last)| Span {
        first,
        last,
        ..span
    })
    .collect()
}

/// Adds where ranges begin in `span`, and where they have ended.
fn cut<T>(starts: &mut BTreeSet<u128>, prefixes: &Prefixes<T>, span: Span) {
    let end = |last: u128| Span {
        first: last,
        last,
        ..span
    };
    let across = prefixes
        .around(end(span.first))
        .chain(prefixes.around(end(span.last)));
    for slot in prefixes.within(span).chain(across) {
        let Some(inner) = prefixes.get(slot).map(|it| Span::of(it.0)) else {
            continue;
        };
        starts.insert(inner.first.max(span.first));
        if inner.last < span.last {
            starts.insert(inner.last + 1);
        }
    }
}
