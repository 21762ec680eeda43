//! The load of targets, and what the next render adds to it: by the plan alone, without a proof.

use std::collections::BTreeSet;

use crate::capacity::{Bundle, FileLoad, Load, NodeLoad, Wave};
use crate::fleet::Fleet;
use crate::kilo::peer::translation::AllowedIp;
use crate::plan::{PeerSet, Plan, Target};
use crate::tree_diff::{ChangedContent, OnDiskTree};

/// Returns the load of every target of a plan, in order. The sizes of its sets of Peers as files
/// are given.
///
/// Ranges with several claims, which Kilo drops, are not considered: a plan has none.
pub fn loads(fleet: &Fleet, plan: &Plan, bytes: &[usize]) -> Vec<Load> {
    let bundles: Vec<Bundle> = plan.peer_sets.iter().map(bundle).collect();
    let load = |target: &Target| {
        let bundles = target.peer_sets.iter().filter_map(|&it| bundles.get(it));
        let largest = target
            .peer_sets
            .iter()
            .filter_map(|&it| bytes.get(it))
            .max();
        Load {
            nodes: nodes(fleet, target),
            bundles: bundles.cloned().collect(),
            files: Some(FileLoad {
                entries: target.peer_sets.len() + 1,
                largest: largest.copied().unwrap_or_default(),
            }),
        }
    };
    plan.targets.iter().map(load).collect()
}

fn bundle(peer_set: &PeerSet) -> Bundle {
    let mut bundle = Bundle {
        name: peer_set.name.to_string(),
        ..Bundle::default()
    };
    for peer in &peer_set.peers {
        let ranges = peer.allowed_ips.iter().copied().map(AllowedIp::new);
        bundle.add(ranges, peer.endpoint.as_ref());
    }
    bundle
}

fn nodes(fleet: &Fleet, target: &Target) -> NodeLoad {
    let member = fleet.memberships(&target.cluster).next();
    let own = member.map(|member| NodeLoad::count(&member.cluster.topology));
    own.unwrap_or_default()
}

/// Returns the wave of every target of a plan, in order: what it gets that the tree on disk does not
/// have. That of a target with an unreadable file is unknown, and empty.
pub fn waves(plan: &Plan, loads: &[Load], on_disk: &OnDiskTree) -> Vec<Wave> {
    let differing = on_disk
        .files
        .iter()
        .filter(|it| !it.is_stale)
        .map(|it| it.path.as_str());
    let missing = on_disk.missing.iter().map(String::as_str);
    let paths: BTreeSet<&str> = differing.chain(missing).collect();
    let unread = on_disk.unread_targets();
    let waves = plan.targets.iter().zip(loads).map(|(target, load)| {
        if unread.contains(target.cluster.as_str()) {
            return Wave::default();
        }
        wave(plan, target, load, &paths, on_disk)
    });
    waves.collect()
}

/// Returns what a target gets that it has not.
fn wave(
    plan: &Plan,
    target: &Target,
    load: &Load,
    paths: &BTreeSet<&str>,
    on_disk: &OnDiskTree,
) -> Wave {
    let peer_sets = target
        .peer_sets
        .iter()
        .filter_map(|&it| plan.peer_sets.get(it));
    let is_new = |peer_set: &&PeerSet| {
        let path = format!("{}/{}.yaml", target.cluster, peer_set.name);
        paths.contains(path.as_str())
    };
    let peer_sets: Vec<&PeerSet> = peer_sets.filter(is_new).collect();
    let prefix = format!("{}/", target.cluster);
    let of_target = |path: &str| !peer_sets.is_empty() && path.starts_with(&prefix);
    let mut there: BTreeSet<&str> = BTreeSet::new();
    for file in on_disk.files.iter().filter(|it| of_target(&it.path)) {
        if let ChangedContent::Peers(reading) = &file.content {
            there.extend(reading.peers.iter().map(|it| it.name.as_str()));
        }
    }
    let peers = peer_sets.iter().flat_map(|peer_set| &peer_set.peers);
    let mut wave = Wave::default();
    for peer in peers.filter(|it| !there.contains(it.name.as_str())) {
        wave.added += 1;
        wave.added_ranges += peer.allowed_ips.len();
    }
    wave.ranges_before = load.ranges().saturating_sub(wave.added_ranges);
    wave
}
