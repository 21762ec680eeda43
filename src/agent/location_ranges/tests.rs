use std::fmt::Write as _;

use proptest::prelude::*;

use super::*;
use crate::granularity::Granularity;
use crate::kilo::peer::translation::AllowedIp;
use crate::testing::numbered;

/// `filterAllowedLocationIPs` word for word: segments in their order, each range against all
/// segments as they are then, and against all Peers.
fn filtered(topology: &KiloTopology, peers: &[Cidr]) -> Vec<Vec<AllowedIp>> {
    let mut ranges: Vec<Vec<AllowedIp>> =
        topology.segments.iter().map(|it| it.location_ranges.clone()).collect();
    for here in 0..ranges.len() {
        let kept = ranges[here].iter().filter(|range| {
            let network = range.interface.network;
            let mut elsewhere =
                ranges.iter().enumerate().filter(|(other, _)| *other != here).flat_map(|it| it.1);
            let mut allowed = topology.segments.iter().enumerate().flat_map(|(number, segment)| {
                let address = segment.wireguard_ip.computed().filter(|_| number <= here);
                let allowed = segment.allowed_ips.iter().map(|it| it.interface.network);
                allowed.chain(address.map(Cidr::host)).collect::<Vec<_>>()
            });
            !elsewhere.any(|it| it.interface.network.overlaps(network))
                && !allowed.any(|it| it.holds(range.interface.address))
                && !peers.iter().any(|it| it.overlaps(network))
        });
        ranges[here] = kept.copied().collect();
    }
    ranges
}

fn near() -> impl Strategy<Value = String> {
    (0u32..4, 0u32..16, 20u8..=32)
        .prop_map(|(third, fourth, length)| format!("10.4.{third}.{fourth}/{length}"))
}

proptest! {
    #[test]
    fn location_ranges_are_left_out_as_by_kilo(
        wanted in prop::collection::vec(prop::collection::vec(near(), 0..5), 1..6),
        peers in prop::collection::vec(near(), 0..2),
    ) {
        let mut lines = String::new();
        for (ranges, number) in wanted.iter().zip(1..) {
            let basics = format!("n{number} pod=10.4.3.{number}/32 endpoint=192.0.2.1:1");
            let ranges = ranges.join(",");
            writeln!(lines, "{basics} allowed-location-ips={ranges}").unwrap();
        }
        let mut topology = numbered(&lines, Granularity::Full);
        let peers: Vec<Cidr> = peers.iter().map(|it| it.parse().unwrap()).collect();
        let expected = filtered(&topology, &peers);
        let outranked = topology.outranked_location_ranges();
        let without_peers = filtered(&topology, &[]);
        for it in &outranked {
            prop_assert!(it.segment < it.by && it.range.overlaps(it.stronger));
            let kept = &without_peers[it.segment.index()];
            prop_assert!(kept.iter().all(|kept| kept.interface.network != it.range));
            let of_stronger = &topology.segments[it.by].location_ranges;
            prop_assert!(of_stronger.iter().any(|other| other.interface.network == it.stronger));
        }
        for (id, segment) in topology.segments.numbered() {
            for range in segment.location_ranges.iter().map(|it| it.interface.network) {
                let mut later = topology.segments.iter().skip(id.index() + 1).flat_map(|it| &it.location_ranges);
                let is_met = later.any(|it| it.interface.network.overlaps(range));
                let found = outranked.iter().any(|it| it.segment == id && it.range == range);
                prop_assert_eq!(found, is_met);
            }
        }
        topology.filter_location_ranges(&peers.iter().map(|it| (*it, ())).collect());
        let found: Vec<Vec<AllowedIp>> = topology.segments.iter().map(|it| it.location_ranges.clone()).collect();
        prop_assert_eq!(found, expected);
    }
}
