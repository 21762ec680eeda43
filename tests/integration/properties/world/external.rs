//! External peers, which people write: no claim of a node changes them.

use super::*;

/// The number of the first one among clusters. It is a part of all its addresses.
pub(in super::super) const EXTERNALS: usize = 220;

/// How many a world has at most.
pub(super) const MOST: usize = 3;

/// An external peer.
#[derive(Clone, Debug)]
pub(in super::super) struct External {
    /// None of them overlaps ranges of clusters or of other external peers.
    pub(in super::super) ranges: Vec<String>,
    pub(in super::super) endpoint: Option<String>,
    pub(in super::super) key: usize,
    /// The clusters that it reaches.
    pub(in super::super) clusters: BTreeSet<usize>,
}

impl External {
    /// Gives it addresses and a key of its own.
    pub(in super::super) fn rename(&mut self, number: usize, key: usize) {
        let i = EXTERNALS + number;
        self.ranges = vec![format!("10.{i}.0.0/24"), format!("fd00:{i}::5/128")];
        let endpoint = || format!("198.51.{i}.1:51820");
        self.endpoint = self.endpoint.as_ref().map(|_| endpoint());
        self.key = key;
    }
}

/// Returns the field of a mesh that contains those of a world.
pub(super) fn written(world: &World) -> String {
    if world.externals.is_empty() {
        return String::new();
    }
    let mut yaml = "  externalPeers:\n".to_owned();
    for (i, external) in world.externals.iter().enumerate() {
        let clusters: Vec<String> = external.clusters.iter().map(|&it| name(it)).collect();
        let ranges = &external.ranges;
        let _ = write!(
            yaml,
            "  - name: e{}\n    publicKey: {}\n    ranges: {ranges:?}\n    clusters: {clusters:?}\n",
            EXTERNALS + i,
            key(external.key),
        );
        if let Some(endpoint) = &external.endpoint {
            let _ = writeln!(yaml, "    endpoint: '{endpoint}'");
        }
    }
    yaml
}

/// Draws those of a world with `n` clusters. Nodes may claim their keys, and they may be dialled at addresses of
/// others.
pub(super) fn externals(n: usize) -> impl Strategy<Value = Vec<External>> {
    (0..=MOST).prop_flat_map(move |count| {
        let externals = (0..count).map(|it| external(it, n));
        externals.collect::<Vec<_>>()
    })
}

fn external(number: usize, n: usize) -> impl Strategy<Value = External> {
    let i = EXTERNALS + number;
    let ranges = vec![
        format!("10.{i}.0.5/32"),
        format!("10.{i}.1.0/24"),
        format!("10.{i}.2.0/24"),
        format!("192.168.{i}.0/24"),
        format!("172.20.{i}.0/25"),
        format!("fd00:{i}::5/128"),
        format!("fd00:{i}:0:1::/64"),
        format!("fd00:{i}:0:2::/64"),
    ];
    let endpoint = prop_oneof![
        6 => Just(format!("198.51.{i}.1:51820")),
        1 => Just(format!("[2001:db8::{i}]:51820")),
        1 => (member(n), 0..3u8).prop_map(|(j, k)| format!("10.{j}.{k}.9:51820")),
        1 => (0..n, 1..5u8).prop_map(|(j, k)| format!("192.168.{j}.{k}:51820")),
        1 => Just("198.51.0.1:51820".to_owned()),
    ];
    let clusters = proptest::collection::btree_set(0..n, 1..=n);
    (
        proptest::sample::subsequence(ranges, 1..4).prop_shuffle(),
        proptest::option::of(endpoint),
        clusters,
    )
        .prop_map(move |(ranges, endpoint, clusters)| External {
            ranges,
            endpoint,
            key: KEYS - 1 - number,
            clusters,
        })
}
