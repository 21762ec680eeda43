//! Certain claims of the model, compared with Kilo and WireGuard in many orders.

use std::collections::BTreeSet;

use proptest::prelude::*;

use super::*;

fn near() -> impl Strategy<Value = String> {
    (0u32..4, 0u32..16, 20u8..=32)
        .prop_map(|(third, fourth, length)| format!("10.4.{third}.{fourth}/{length}"))
}

proptest! {
    /// A certain claim holds in every order in which Kilo may apply Peers.
    #[test]
    fn what_is_certain_is_so_in_any_order(
        peers in prop::collection::vec((0u8..4, 0u8..5, prop::collection::vec(near(), 0..4)), 1..6),
        order in any::<prop::sample::Index>(),
    ) {
        let mut lines = String::new();
        for ((name, letter, ranges), number) in peers.iter().zip(0..) {
            // Some names twice, some keys twice, and those of both nodes.
            let number = if *name == 0 { 0 } else { number };
            let ranges = if ranges.is_empty() { "-".to_owned() } else { ranges.join(",") };
            writeln!(lines, "p{name}{number} {} {ranges}", letter + 1).unwrap();
        }
        let agreed = with(TWO, &lines, |model| {
            let tables: BTreeSet<Vec<(Cidr, String)>> =
                (0..40).map(|seed| replayed(model, seed + order.index(1000))).collect();
            model.tunnels.ids().all(|slot| {
                let range = model.tunnels.at(slot).0;
                let all: BTreeSet<Option<&String>> = tables
                    .iter()
                    .map(|table| table.iter().find(|it| it.0 == range).map(|it| &it.1))
                    .collect();
                match model.holder(first(model), slot) {
                    Some(RangeHolder::Certain(claim)) => {
                        all.into_iter().eq([Some(&STANDARD.encode(model.key(claim.tunnel).unwrap()))])
                    }
                    Some(RangeHolder::Ambiguous(_)) => true,
                    None => all.into_iter().eq([None]),
                }
            })
        });
        prop_assert!(agreed);
    }
}

/// Kilo and WireGuard on the first node, as a program of maps, in one of many orders: of one name and
/// of one key the last is there; the first by name has a range; the last that is written keeps it; a
/// key that is written twice has what was written last.
fn replayed(model: &Model, seed: usize) -> Vec<(Cidr, String)> {
    let place =
        |number: usize, salt: usize| (number + 1).wrapping_mul(seed * 2 + salt + 3) * 7919 % 101;
    let shuffled = |mut order: Vec<PeerId>, salt: usize| {
        order.sort_by_key(|it| place(it.index(), salt));
        order
    };
    let ready = |peer: &PeerId| model.share(*peer).is_some();
    let mut objects: BTreeMap<&str, PeerId> = BTreeMap::new();
    for peer in shuffled(model.peers.ids().collect(), 1) {
        objects.insert(&model.peers[peer].applied.name, peer);
    }
    let mut by_key: BTreeMap<[u8; 32], PeerId> = BTreeMap::new();
    for peer in shuffled(objects.into_values().collect(), 5) {
        if let Ok(translation) = &model.peers[peer].applied.spec {
            by_key.insert(translation.key, peer);
        }
    }
    let mut there: Vec<PeerId> = by_key.into_values().filter(ready).collect();
    there.sort_by_key(|it| &model.peers[*it].applied.name);
    let mut taken = BTreeSet::new();
    let mut entries: Vec<([u8; 32], Vec<Cidr>)> = Vec::new();
    for (segment, own) in model.topology.segments.numbered().skip(1) {
        let mut ranges: Vec<Cidr> = own.allowed_ips.iter().map(|it| it.interface.network).collect();
        ranges.extend(own.wireguard_ip.computed().map(Cidr::host));
        entries.push((model.key(Tunnel::Segment(segment)).unwrap(), ranges));
    }
    for peer in there {
        let translation = model.share(peer).unwrap().translation;
        let kept = translation.allowed_ips.iter().filter(|it| taken.insert(it.to_string()));
        let ranges = kept.map(|it| it.interface.network).collect();
        entries.push((translation.key, ranges));
    }
    let own = model.key(Tunnel::Segment(first(model)));
    let mut device: BTreeMap<Cidr, [u8; 32]> = BTreeMap::new();
    let mut order: Vec<usize> = (0..entries.len()).collect();
    order.sort_by_key(|it| place(*it, 11));
    for entry in order {
        let (key, ranges) = &entries[entry];
        if Some(*key) != own {
            device.retain(|_, holder| holder != key);
            device.extend(ranges.iter().map(|it| (*it, *key)));
        }
    }
    device.into_iter().map(|(range, key)| (range, STANDARD.encode(key))).collect()
}
