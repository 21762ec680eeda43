//! Contests: which of several Peers with one key, or with one name, Kilo keeps (`kilo.md` §2.2).

use super::{ClusterPeer, PeerId, PeerStanding, Peers};

/// More than one Peer where there is room for one.
#[derive(Clone, Debug, Eq, PartialEq)]
pub struct Contest {
    /// What they have in common.
    pub over: Prize,
    /// The Peers.
    pub peers: Vec<PeerId>,
}

/// The result of a contest.
#[derive(Clone, Copy, Debug, Eq, Ord, PartialEq, PartialOrd)]
pub struct Won {
    /// The number of the contest.
    pub contest: usize,
    /// The Peer that is there.
    pub by: PeerId,
}

/// What only one Peer can have.
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
    pub fn is_open(&self, number: usize, all: &Peers<ClusterPeer>) -> bool {
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
pub(super) fn contests(peers: &mut Peers<ClusterPeer>, by_key: &[PeerId]) -> Vec<Contest> {
    let names: Vec<PeerId> = peers.ids().collect();
    let runs = runs(&names, |peer| &*peers[peer].applied.name);
    let mut contests = Vec::new();
    enter(&mut contests, peers, Prize::Name, runs);
    let runs = self::runs(by_key, |peer| peers[peer].key());
    enter(&mut contests, peers, Prize::Key, runs);
    contests
}

/// Returns the runs of `order` in which more than one have the same.
fn runs<T: PartialEq>(order: &[PeerId], of: impl Fn(PeerId) -> T) -> Vec<Vec<PeerId>> {
    let runs = order.chunk_by(|a, b| of(*a) == of(*b));
    let runs = runs.filter(|run| 1 < run.len());
    runs.map(<[PeerId]>::to_vec).collect()
}

/// Adds a contest for each run in which there is a Peer that Kilo would configure.
fn enter(
    contests: &mut Vec<Contest>,
    peers: &mut Peers<ClusterPeer>,
    over: Prize,
    runs: Vec<Vec<PeerId>>,
) {
    for run in runs {
        if run.iter().any(|peer| peers[*peer].share().is_some()) {
            for &peer in &run {
                contest(&mut peers[peer], contests.len());
            }
            contests.push(Contest { over, peers: run });
        }
    }
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

fn contest(peer: &mut ClusterPeer, number: usize) {
    peer.standing = match std::mem::replace(&mut peer.standing, PeerStanding::NotReady) {
        PeerStanding::Certain(mut share) => {
            share.is_certain = false;
            PeerStanding::Contested(share, number)
        }
        other => other,
    };
}
