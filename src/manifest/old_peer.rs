//! Old Peers: those in files that were rendered before, as far as they can be read.

use std::ops::Range;

use crate::kilo::peer::EndpointFlaw;
use crate::net::Cidr;
use crate::wireguard::Host;

/// A Peer as written in a file; any part of it may be invalid.
#[derive(Clone, Debug, Default, Eq, PartialEq)]
pub struct OldPeer {
    /// Its name; empty where it has none.
    pub name: String,
    /// The cluster that it leads to, if it has the label.
    pub source: Option<String>,
    /// Its key, if it has one that Kilo can read.
    pub key: Option<[u8; 32]>,
    /// Its ranges, as far as they are any.
    pub ranges: Vec<Cidr>,
    /// The flaw in how it is dialled; none if Kilo ignores it anyway.
    pub endpoint_flaw: Option<EndpointFlaw>,
    /// The address or name at which it is dialled.
    pub dialled: Option<Host>,
    /// The place of its name in the file.
    pub bytes: Range<usize>,
}
