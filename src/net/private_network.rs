//! Private networks: addresses that are not the same host everywhere.

use std::net::IpAddr;

use super::Cidr;

/// Returns the usual network of a private address, `None` for a public one.
///
/// A node knows how long the prefix of its subnet is, but not how many subnets its site has, so
/// the usual size of one network counts: `/24` of the 192.168s, `/16` of the others of RFC 1918,
/// `/48` of unique local addresses (RFC 4193), and all of a carrier's shared space (RFC 6598).
pub fn private_network(address: IpAddr) -> Option<Cidr> {
    let length = match address {
        IpAddr::V4(v4) => match v4.octets() {
            [10, ..] | [172, 16..=31, ..] => 16,
            [192, 168, ..] => 24,
            [100, 64..=127, ..] => 10,
            _ => return None,
        },
        IpAddr::V6(v6) => match v6.octets() {
            [0xfc | 0xfd, ..] => 48,
            _ => return None,
        },
    };
    Cidr::host(address).widened(length)
}
