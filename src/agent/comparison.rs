//! Comparisons: the current Peers of a cluster with the wanted ones.

use std::cmp::Ordering;

use super::peers::{ClusterPeer, Peers};

/// The result for one Peer. Peers are compared by name.
#[derive(Clone, Copy, Debug)]
pub enum Pair<'p, 'a> {
    /// It is up to date.
    Same(&'p ClusterPeer<'a>),
    /// It is something else.
    Changed {
        /// The current Peer.
        before: &'p ClusterPeer<'a>,
        /// The wanted Peer.
        after: &'p ClusterPeer<'a>,
    },
    /// It is not there yet.
    Added(&'p ClusterPeer<'a>),
    /// It should not exist.
    Removed(&'p ClusterPeer<'a>),
}

/// Compares Peers, in order of name.
pub fn compare<'p, 'a>(
    before: &'p Peers<ClusterPeer<'a>>,
    after: &'p Peers<ClusterPeer<'a>>,
) -> Vec<Pair<'p, 'a>> {
    let (mut old, mut new) = (before.iter().peekable(), after.iter().peekable());
    let mut pairs = Vec::with_capacity(before.len().max(after.len()));
    loop {
        let order = match (old.peek(), new.peek()) {
            (Some(old), Some(new)) => old.applied.name.cmp(&new.applied.name),
            (Some(_), None) => Ordering::Less,
            (None, Some(_)) => Ordering::Greater,
            (None, None) => return pairs,
        };
        let gone = old.next_if(|_| order != Ordering::Greater);
        let come = new.next_if(|_| order != Ordering::Less);
        pairs.push(match (gone, come) {
            (Some(gone), Some(come)) if are_same(gone, come) => Pair::Same(gone),
            (Some(before), Some(after)) => Pair::Changed { before, after },
            (Some(gone), None) => Pair::Removed(gone),
            (None, Some(come)) => Pair::Added(come),
            (None, None) => return pairs,
        });
    }
}

/// Returns whether two Peers have the same content. Those from the same text are one in memory.
fn are_same(gone: &ClusterPeer, come: &ClusterPeer) -> bool {
    std::ptr::eq(gone.applied, come.applied) || gone.applied.spec == come.applied.spec
}
