//! Comparisons: the current Peers of a cluster with the wanted ones.

use std::cmp::Ordering;
use std::ptr;

use super::applied::Applied;
use super::peers::{ClusterPeer, PeerId, Peers};

/// The result for one Peer. Peers are compared by name.
#[derive(Clone, Copy, Debug)]
pub enum Pair<P> {
    /// It is up to date: the current Peer.
    Same(P),
    /// It is something else.
    Changed {
        /// The current Peer.
        before: P,
        /// The wanted Peer.
        after: P,
    },
    /// It is not there yet.
    Added(P),
    /// It should not exist.
    Removed(P),
}

impl Pair<PeerId> {
    /// Returns the Peers of these numbers.
    pub fn among<'p, 'a>(
        self,
        old: &'p Peers<ClusterPeer<'a>>,
        new: &'p Peers<ClusterPeer<'a>>,
    ) -> Pair<&'p ClusterPeer<'a>> {
        match self {
            Self::Same(peer) => Pair::Same(&old[peer]),
            Self::Changed { before, after } => {
                Pair::Changed { before: &old[before], after: &new[after] }
            }
            Self::Added(peer) => Pair::Added(&new[peer]),
            Self::Removed(peer) => Pair::Removed(&old[peer]),
        }
    }
}

/// Compares Peers, in order of name.
pub fn compare<'p>(
    before: &'p Peers<ClusterPeer>,
    after: &'p Peers<ClusterPeer>,
) -> impl Iterator<Item = Pair<PeerId>> + use<'p> {
    let mut old = before.numbered().peekable();
    let mut new = after.numbered().peekable();
    std::iter::from_fn(move || {
        let order = match (old.peek(), new.peek()) {
            (Some((_, old)), Some((_, new))) => by_name(old.applied, new.applied),
            (Some(_), None) => Ordering::Less,
            (None, Some(_)) => Ordering::Greater,
            (None, None) => return None,
        };
        let gone = old.next_if(|_| order != Ordering::Greater);
        let come = new.next_if(|_| order != Ordering::Less);
        match (gone, come) {
            (Some((peer, gone)), Some((_, come))) if are_same(gone.applied, come.applied) => {
                Some(Pair::Same(peer))
            }
            (Some((before, _)), Some((after, _))) => Some(Pair::Changed { before, after }),
            (Some((peer, _)), None) => Some(Pair::Removed(peer)),
            (None, come) => come.map(|(peer, _)| Pair::Added(peer)),
        }
    })
}

/// Compares names. Peers from the same text are one in memory.
fn by_name(old: &Applied, new: &Applied) -> Ordering {
    if ptr::eq(old, new) { Ordering::Equal } else { old.name.cmp(&new.name) }
}

/// Returns whether two Peers have the same content.
pub fn are_same(gone: &Applied, come: &Applied) -> bool {
    ptr::eq(gone, come) || gone.spec == come.spec
}
