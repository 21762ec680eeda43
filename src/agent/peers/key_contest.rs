//! Contests: which of several Peers with one key, or with one name, Kilo keeps (`kilo.md` §2.2).

use super::{ClusterPeer, PeerId, PeerStanding, Peers};
use crate::kilo::id::{Id, Numbered};

/// Contests of a cluster.
#[derive(Clone, Copy, Debug, Eq, Hash, Ord, PartialEq, PartialOrd)]
pub enum OfContest {}

/// The number of a contest in its cluster: those for names come first.
pub type ContestId = Id<OfContest>;

/// Something about each contest of one cluster, in the same order.
pub type Contests<T> = Numbered<OfContest, T>;

/// More than one Peer where there is room for one.
#[derive(Clone, Debug, Eq, PartialEq)]
pub struct Contest {
    /// The property that they share.
    pub over: Prize,
    /// The Peers.
    pub peers: Vec<PeerId>,
}

/// The result of a contest.
#[derive(Clone, Copy, Debug, Eq, Ord, PartialEq, PartialOrd)]
pub struct Won {
    /// The number of the contest.
    pub contest: ContestId,
    /// The Peer that is there.
    pub by: PeerId,
}

/// A property that only one Peer can have.
#[derive(Clone, Copy, Debug, Eq, Ord, PartialEq, PartialOrd)]
pub enum Prize {
    /// The name: the last that is applied is the object.
    Name,
    /// The key: `Mesh.peers` has one entry for it, that of the last event (`kilo.md` §2.2).
    Key,
}

impl Contest {
    /// Returns whether any of the Peers may win it and be there alone: they want one key, and none of them
    /// wants the name of another one.
    pub fn is_open(&self, number: ContestId, all: &Peers<ClusterPeer>) -> bool {
        let is_in_no_other = |peer: &PeerId| match all[*peer].standing {
            PeerStanding::Contested(_, contest) => contest == number,
            PeerStanding::NotReady => true,
            PeerStanding::Certain(_) | PeerStanding::Faulty(_) => false,
        };
        self.over == Prize::Key && self.peers.iter().all(is_in_no_other)
    }
}

/// Finds the Peers of one name and, among those that an agent keeps in its memory, of one key. It keeps
/// them by key whether they are ready or not, so that one without a range can be in the way of one with
/// some.
///
/// A Peer in two contests takes part in that for the name, which comes first.
pub(super) fn contests(peers: &mut Peers<ClusterPeer>, by_key: &[PeerId]) -> Contests<Contest> {
    let names: Vec<PeerId> = peers.ids().collect();
    let of_names = runs(&names, Prize::Name, |peer| &*peers[peer].applied.name);
    let of_keys = runs(by_key, Prize::Key, |peer| peers[peer].key());
    // Without a Peer that Kilo would configure there is nothing to win.
    let is_worth_it = |it: &Contest| it.peers.iter().any(|it| peers[*it].share().is_some());
    let contests = Contests::new(of_names.chain(of_keys).filter(is_worth_it).collect());
    for (id, contest) in contests.numbered() {
        for peer in &contest.peers {
            enter(&mut peers[*peer], id);
        }
    }
    contests
}

/// Returns the runs of `order` in which more than one have the same.
fn runs<T: PartialEq>(
    order: &[PeerId],
    over: Prize,
    of: impl Fn(PeerId) -> T,
) -> impl Iterator<Item = Contest> {
    let runs = order.chunk_by(move |a, b| of(*a) == of(*b));
    runs.filter(|run| 1 < run.len()).map(move |run| Contest { over, peers: run.to_vec() })
}

/// Takes a Peer as the winner of a contest, or as not there.
pub(super) fn decide(peer: &mut ClusterPeer, id: PeerId, won: Won) {
    peer.standing = match std::mem::replace(&mut peer.standing, PeerStanding::NotReady) {
        PeerStanding::Contested(mut share, contest) if contest == won.contest => {
            if id != won.by {
                return;
            }
            share.is_certain = true;
            PeerStanding::Certain(share)
        }
        other => other,
    };
}

fn enter(peer: &mut ClusterPeer, contest: ContestId) {
    peer.standing = match std::mem::replace(&mut peer.standing, PeerStanding::NotReady) {
        PeerStanding::Certain(mut share) => {
            share.is_certain = false;
            PeerStanding::Contested(share, contest)
        }
        other => other,
    };
}
