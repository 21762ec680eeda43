//! Declared ranges that contain addresses which should not be routed to a cluster, or public
//! addresses.

use std::sync::LazyLock;

use super::{PUBLIC_RANGE, UNROUTABLE_RANGE};
use crate::mesh::{Entry, Range};
use crate::net::{Cidr, Family};
use crate::rules::Finding;

/// Addresses that mean a different host on each network, so they cannot be used between clusters.
const UNROUTABLE: [(&str, &str); 8] = [
    // RFC 1122 §3.2.1.3
    ("0.0.0.0/8", "addresses of the host itself"),
    ("127.0.0.0/8", "loopback addresses"),
    // RFC 3927
    ("169.254.0.0/16", "link-local addresses"),
    // RFC 5771
    ("224.0.0.0/4", "multicast addresses"),
    // RFC 4291 §2.4
    ("::/128", "the unspecified address"),
    ("::1/128", "the loopback address"),
    ("fe80::/10", "link-local addresses"),
    ("ff00::/8", "multicast addresses"),
];

/// Addresses that are not assigned on the internet.
const NOT_PUBLIC: [&str; 15] = [
    // RFC 1918
    "10.0.0.0/8",
    "172.16.0.0/12",
    "192.168.0.0/16",
    // Shared with a provider: RFC 6598
    "100.64.0.0/10",
    // Protocol assignments: RFC 6890
    "192.0.0.0/24",
    // Documentation: RFC 5737, RFC 3849, RFC 9637
    "192.0.2.0/24",
    "198.51.100.0/24",
    "203.0.113.0/24",
    "2001:db8::/32",
    "3fff::/20",
    // Benchmarks: RFC 2544, RFC 5180
    "198.18.0.0/15",
    "2001:2::/48",
    // ORCHIDs, which are not addresses: RFC 7343
    "2001:20::/28",
    // Deprecated relays: RFC 7526
    "192.88.99.0/24",
    // Reserved: RFC 1112 §4
    "240.0.0.0/4",
];

/// The block of all public IPv6 addresses: RFC 4291 §2.4, as IANA has assigned it.
const GLOBAL_UNICAST: &str = "2000::/3";

/// Returns findings about the ranges of an entry.
pub(super) fn findings(entry: &Entry) -> Vec<Finding> {
    let findings = entry.networks.all().into_iter().filter_map(|range| {
        if let Some(what) = unroutable(range.cidr) {
            return Some(of_unroutable(entry, range, what));
        }
        is_public(range.cidr).then(|| of_public(entry, range))
    });
    findings.collect()
}

/// The tables, read once. A test holds that all of them are ranges.
static BLOCKS: LazyLock<SpecialRanges> = LazyLock::new(|| SpecialRanges {
    unroutable: UNROUTABLE
        .iter()
        .filter_map(|(block, what)| Some((block.parse().ok()?, *what)))
        .collect(),
    not_public: NOT_PUBLIC.iter().filter_map(|it| it.parse().ok()).collect(),
    global_unicast: GLOBAL_UNICAST.parse().ok(),
});

struct SpecialRanges {
    unroutable: Vec<(Cidr, &'static str)>,
    not_public: Vec<Cidr>,
    global_unicast: Option<Cidr>,
}

/// Returns the part of a range that cannot be routed to a cluster.
fn unroutable(range: Cidr) -> Option<&'static str> {
    let mut blocks = BLOCKS.unroutable.iter();
    blocks.find(|(block, _)| block.overlaps(range)).map(|(_, what)| *what)
}

/// Returns whether a range holds addresses of the wide world.
fn is_public(range: Cidr) -> bool {
    let is_global = match range.family() {
        Family::V4 => true,
        Family::V6 => BLOCKS.global_unicast.is_some_and(|block| block.overlaps(range)),
    };
    is_global && !BLOCKS.not_public.iter().any(|block| block.contains(range))
}

fn of_unroutable(entry: &Entry, range: &Range, what: &str) -> Finding {
    let message =
        format!("{} contains {what}, which cannot be routed between clusters", range.cidr);
    Finding::on_cluster(&UNROUTABLE_RANGE, &entry.name, message)
        .at(range.place.clone(), "declared here")
        .help("write only the ranges that the cluster uses")
}

fn of_public(entry: &Entry, range: &Range) -> Finding {
    let message = format!("{} contains public addresses", range.cidr);
    Finding::on_cluster(&PUBLIC_RANGE, &entry.name, message)
        .at(range.place.clone(), "declared here")
        .help(format!(
            "remove the range; if `{0}` owns these addresses, ignore this rule for `{0}` in the config",
            entry.name
        ))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn cidr(text: &str) -> Cidr {
        text.parse().unwrap()
    }

    #[test]
    fn the_tables_hold_ranges() {
        let blocks = UNROUTABLE.iter().map(|(block, _)| block).chain(&NOT_PUBLIC);
        for block in blocks.chain([&GLOBAL_UNICAST]) {
            assert_eq!(cidr(block).to_string(), **block);
        }
        assert_eq!(BLOCKS.unroutable.len(), UNROUTABLE.len());
        assert_eq!(BLOCKS.not_public.len(), NOT_PUBLIC.len());
        assert!(BLOCKS.global_unicast.is_some());
    }

    #[test]
    fn what_is_private_or_reserved_is_not_public() {
        for private in [
            "10.0.0.0/8",
            "10.42.0.0/16",
            "172.31.0.0/16",
            "192.168.7.0/24",
            "100.127.0.0/16",
            "198.19.255.0/24",
            "203.0.113.7/32",
            "240.1.0.0/16",
            "fd00::/8",
            "fc00::/7",
            "2001:db8:1::/48",
            "64:ff9b::/96",
        ] {
            assert!(!is_public(cidr(private)), "{private}");
        }
        for public in [
            "10.0.0.0/7",
            "172.16.0.0/11",
            "172.32.0.0/16",
            "192.169.0.0/16",
            "100.64.0.0/9",
            "100.128.0.0/16",
            "198.20.0.0/24",
            "8.8.8.8/32",
            "2a01:4f8::/32",
            "2001:d00::/24",
            "2000::/3",
        ] {
            assert!(is_public(cidr(public)), "{public}");
        }
    }

    #[test]
    fn what_means_another_host_everywhere_cannot_be_routed() {
        let findings = [
            "0.0.0.0/1",
            "0.1.0.0/16",
            "127.0.0.53/32",
            "128.0.0.0/1",
            "169.254.20.10/32",
            "239.0.0.0/8",
            "::/1",
            "::1/128",
            "fe80::/64",
            "8000::/1",
            "1.0.0.0/8",
            "126.0.0.0/8",
            "169.253.0.0/16",
            "223.0.0.0/8",
            "240.0.0.0/4",
            "fec0::/10",
            "::2/127",
        ]
        .map(|range| format!("{range}: {}", unroutable(cidr(range)).unwrap_or("-")));
        insta::assert_snapshot!(findings.join("\n"), @"
        0.0.0.0/1: addresses of the host itself
        0.1.0.0/16: addresses of the host itself
        127.0.0.53/32: loopback addresses
        128.0.0.0/1: link-local addresses
        169.254.20.10/32: link-local addresses
        239.0.0.0/8: multicast addresses
        ::/1: the unspecified address
        ::1/128: the loopback address
        fe80::/64: link-local addresses
        8000::/1: link-local addresses
        1.0.0.0/8: -
        126.0.0.0/8: -
        169.253.0.0/16: -
        223.0.0.0/8: -
        240.0.0.0/4: -
        fec0::/10: -
        ::2/127: -
        ");
    }
}
