//! External peers of random meshes.

use super::*;

/// An external peer. Its number is a part of its addresses.
#[derive(Clone, Debug)]
pub(super) struct External {
    ranges: Vec<String>,
    is_dialled: bool,
    /// The clusters that it reaches, at least the first one.
    pub(super) clusters: BTreeSet<usize>,
}

/// Returns the field of a mesh that contains those of a world.
pub(super) fn written(world: &World) -> String {
    if world.externals.is_empty() {
        return String::new();
    }
    let externals = (0u8..).zip(&world.externals).map(|(i, external)| {
        let clusters: Vec<String> = external.clusters.iter().map(|&it| cluster_name(it)).collect();
        let endpoint = format!(", endpoint: 198.18.{}.1:51820", 220 + i);
        format!(
            "\n  - {{ name: e{i}, publicKey: {}, ranges: {:?}, clusters: {clusters:?}{} }}",
            key(200 + i),
            external.ranges,
            if external.is_dialled { &endpoint } else { "" }
        )
    });
    format!("  externalPeers:{}\n", externals.collect::<String>())
}

/// Draws up to three.
pub(super) fn externals() -> impl Strategy<Value = Vec<External>> {
    (0..=3u8).prop_flat_map(|count| (0..count).map(external).collect::<Vec<_>>())
}

fn external(number: u8) -> impl Strategy<Value = External> {
    let i = 220 + number;
    let ranges = vec![
        format!("10.{i}.0.5/32"),
        format!("10.{i}.1.0/24"),
        format!("10.{i}.2.0/24"),
        format!("172.31.{i}.0/28"),
        format!("fd00:{i}::5/128"),
        format!("fd00:{i}:0:1::/64"),
    ];
    let clusters = prop::collection::btree_set(0..3usize, 0..=3);
    (proptest::sample::subsequence(ranges, 1..4).prop_shuffle(), any::<bool>(), clusters).prop_map(
        |(ranges, is_dialled, mut clusters)| {
            clusters.insert(0);
            External { ranges, is_dialled, clusters }
        },
    )
}
