//! The promise, held on the result: nothing outside what the source declares and the target accepts.

use thiserror::Error;

use super::PeerSet;
use super::accepted::Accepted;
use crate::fleet::Member;
use crate::kilo::peer::Peer;
use crate::name::{ClusterName, PeerName};
use crate::net::Cidr;
use crate::net::prefixes::Prefixes;

/// A mistake of this program: a range was about to be given away that must not be.
#[derive(Debug, Error)]
pub enum BrokenPromise {
    /// The source never declared it.
    #[error(
        "internal error: {cidr} of Peer {peer} is in no range that {source_cluster} declares; please report this"
    )]
    Undeclared {
        /// The range.
        cidr: Cidr,
        /// The Peer.
        peer: PeerName,
        /// Its source.
        source_cluster: ClusterName,
    },
    /// The target does not accept it.
    #[error(
        "internal error: {cidr} of Peer {peer} is in no range that {target} accepts; please report this"
    )]
    Unaccepted {
        /// The range.
        cidr: Cidr,
        /// The Peer.
        peer: PeerName,
        /// Its target.
        target: ClusterName,
    },
}

/// Holds Peers against what their source declares.
pub(super) fn is_declared(source: &Member, peers: &[Peer]) -> Result<(), BrokenPromise> {
    let given = source.entry.given();
    let declared = Prefixes::union(given.into_iter().map(|it| it.cidr));
    match first(peers, |cidr| !declared.contain(cidr)) {
        Some((cidr, peer)) => Err(BrokenPromise::Undeclared {
            cidr,
            peer: peer.name.clone(),
            source_cluster: source.entry.name.clone(),
        }),
        None => Ok(()),
    }
}

/// Holds a set of Peers against what a target accepts.
pub(super) fn is_accepted(
    target: &ClusterName,
    accepted: &Accepted,
    peer_set: &PeerSet,
) -> Result<(), BrokenPromise> {
    match first(&peer_set.peers, |cidr| !accepted.takes(cidr)) {
        Some((cidr, peer)) => {
            Err(BrokenPromise::Unaccepted { cidr, peer: peer.name.clone(), target: target.clone() })
        }
        None => Ok(()),
    }
}

fn first(peers: &[Peer], is_wrong: impl Fn(Cidr) -> bool) -> Option<(Cidr, &Peer)> {
    let ranges = |peer: &Peer| peer.allowed_ips.iter().copied().find(|it| is_wrong(*it));
    peers.iter().find_map(|peer| Some((ranges(peer)?, peer)))
}
