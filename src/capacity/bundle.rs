//! Bundles: the Peers of one file, and the load that they are.

use std::collections::BTreeMap;

use by_address::ByAddress;

use super::text_length::{address_length, digits, endpoint_length};
use crate::agent::applied::Content;
use crate::agent::peers::{ClusterPeer, PeerStanding};
use crate::kilo::peer::translation::{AllowedIp, TranslationFault};
use crate::net::Interface;
use crate::wireguard::{Endpoint, Host};

/// The Peers of one file: those that one source gives.
#[derive(Clone, Debug, Default, Eq, PartialEq)]
pub struct Bundle {
    /// Its name, harmless to print.
    pub name: String,
    /// The number of Peers in the API server.
    pub objects: usize,
    /// The number of them that Kilo configures.
    pub peers: usize,
    /// The number of allowed IPs that those keep.
    pub ranges: usize,
    /// The number of endpoints that are names.
    pub names: usize,
    /// Their size in a WireGuard configuration, in bytes, without the digits of keepalives.
    pub bytes: usize,
}

/// The Peers of texts of which clusters keep all ranges, so that they are the same load for each.
#[derive(Debug, Default)]
pub struct KnownBundles<'a>(BTreeMap<ByAddress<&'a Content>, Bundle>);

/// The section of a far end without ranges, endpoint and the digits of its keepalive.
pub(super) const SECTION_BYTES: usize = "\n[Peer]\n".len()
    + "PersistentKeepalive = \n".len()
    + "PublicKey = ".len()
    + KEY_BYTES
    + "\n".len();

/// A key as text.
pub(super) const KEY_BYTES: usize = 44;

impl<'a> KnownBundles<'a> {
    /// Counts Peers of a text, which follow each other.
    pub(super) fn count(&mut self, content: &'a Content, peers: &[&ClusterPeer]) -> Bundle {
        let keeps_all = |it: &&ClusterPeer| it.share().is_some_and(|it| it.lost().is_empty());
        let is_whole = peers.len() == content.peers.len() && peers.iter().all(keeps_all);
        if !is_whole {
            return Bundle::count(peers);
        }
        let known = self.0.entry(ByAddress(content));
        known.or_insert_with(|| Bundle::count(peers)).clone()
    }
}

impl Bundle {
    fn count(peers: &[&ClusterPeer]) -> Self {
        let mut bundle = Self::default();
        for peer in peers {
            bundle.add_peer(peer);
        }
        bundle
    }

    /// Adds other Peers of the same file.
    pub(super) fn add_all(&mut self, other: &Self) {
        self.objects += other.objects;
        self.peers += other.peers;
        self.ranges += other.ranges;
        self.names += other.names;
        self.bytes += other.bytes;
    }

    /// Adds a Peer that is configured.
    pub fn add(&mut self, ranges: impl Iterator<Item = AllowedIp>, endpoint: Option<&Endpoint>) {
        self.objects += 1;
        self.peers += 1;
        let (number, bytes) = allowed_ips(ranges);
        self.ranges += number;
        self.bytes += SECTION_BYTES + bytes + endpoint_bytes(endpoint);
        self.names += usize::from(endpoint.is_some_and(|it| matches!(it.host, Host::Dns(_))));
    }

    fn add_peer(&mut self, peer: &ClusterPeer) {
        let Some(share) = peer.share() else {
            let is_stored =
                !matches!(peer.standing, PeerStanding::Faulty(TranslationFault::NotStored(_)));
            self.objects += usize::from(is_stored);
            return;
        };
        let kept = share.kept().map(|it| it.allowed);
        self.add(kept, share.translation.dialled());
        if share.translation.preshared_key.is_some() {
            self.bytes += "PresharedKey = \n".len() + KEY_BYTES;
        }
    }
}

/// Returns the number of ranges, and the bytes of the line with them.
pub(super) fn allowed_ips(ranges: impl Iterator<Item = AllowedIp>) -> (usize, usize) {
    let (mut number, mut length) = (0, 0);
    for range in ranges {
        let Interface { address, network } = range.interface;
        length += address_length(address) + "/".len() + digits(network.prefix_length().into());
        number += 1;
    }
    match number {
        0 => (0, 0),
        // A comma and a space between them, and a line feed.
        _ => (number, "AllowedIPs = ".len() + length + 2 * number - 1),
    }
}

/// Returns the bytes of the line with the endpoint.
pub(super) fn endpoint_bytes(endpoint: Option<&Endpoint>) -> usize {
    endpoint.map_or(0, |it| "Endpoint = \n".len() + endpoint_length(it))
}
