//! Unapplied changes: what an agent keeps from WireGuard while a Peer without endpoint has not
//! connected (`kilo.md` §2.10).

use super::model::{Model, Tunnel};
use super::peers::PeerId;
use crate::kilo::id::SegmentId;
use crate::wireguard::text_of_key;

/// Peers at which Kilo's comparison stops, and what it never compares because of them.
#[derive(Clone, Debug, Eq, PartialEq)]
pub struct Unapplied {
    /// The Peers without an endpoint, in the order of the comparison; the first decides.
    pub because_of: Vec<PeerId>,
    /// Peers of which no change reaches WireGuard, in the order of the comparison.
    pub peers: Vec<PeerId>,
    /// Segments of the cluster itself of which no change reaches WireGuard on the other nodes.
    pub segments: Vec<SegmentId>,
}

impl Model<'_> {
    /// Finds what `Conf.Equal` does not compare until a Peer without endpoint has connected.
    ///
    /// The comparison walks the entries by the text of their keys, and calls the configurations equal
    /// at the first entry that has no endpoint on either side. The number of entries is compared
    /// before that, so one entry more or less applies everything that waited.
    pub fn unapplied(&self) -> Option<Unapplied> {
        let is_endless = |tunnel: Tunnel| match tunnel {
            Tunnel::Peer(peer) => {
                self.share(peer).is_some_and(|it| it.translation.endpoint.is_none())
            }
            // Without an endpoint a node is in no segment.
            Tunnel::Segment(_) => false,
        };
        // Without one, which is usual, all keys need not be written and sorted.
        if !self.peers.ids().map(Tunnel::Peer).any(is_endless) {
            return None;
        }
        let mut entries: Vec<(String, Tunnel)> = self
            .compared()
            .filter_map(|tunnel| Some((text_of_key(&self.key(tunnel)?), tunnel)))
            .collect();
        entries.sort();
        let start = entries.iter().position(|it| is_endless(it.1))?;
        let (_, behind) = entries.split_at(start);
        let mut unapplied =
            Unapplied { because_of: Vec::new(), peers: Vec::new(), segments: Vec::new() };
        for &(_, tunnel) in behind {
            match tunnel {
                Tunnel::Peer(peer) if is_endless(tunnel) => unapplied.because_of.push(peer),
                Tunnel::Peer(peer) => unapplied.peers.push(peer),
                Tunnel::Segment(segment) => unapplied.segments.push(segment),
            }
        }
        Some(unapplied)
    }

    /// Returns what any agent of the cluster has in its configuration.
    fn compared(&self) -> impl Iterator<Item = Tunnel> {
        let segments = self.topology.segments.ids();
        let is_seen = |segment: &SegmentId| {
            self.topology.segments.ids().any(|other| !self.topology.are_one(other, *segment))
        };
        let peers = self.peers.ids();
        segments
            .filter(is_seen)
            .map(Tunnel::Segment)
            .chain(peers.filter(|peer| self.share(*peer).is_some()).map(Tunnel::Peer))
    }
}
