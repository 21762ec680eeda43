//! The load of changes that are applied together.

use super::*;
use crate::agent::peers::PeerShare;
use crate::id::Numbered;

#[test]
fn a_delta_is_what_differs() {
    let snapshot = nodes(3);
    let before = [peers("a", 0..10)];
    let mut edited = peers("a", 5..12);
    let mut content = (*edited.content).clone();
    let spec = content.peers[0].spec.as_mut().unwrap();
    spec.allowed_ips = Numbered::new(spec.allowed_ips.iter().take(1).copied().collect());
    edited.content = content.into();
    let after = [edited];
    let (before, after) = (
        Model::new(&own(&snapshot.nodes, Granularity::Full), &before),
        Model::new(&own(&snapshot.nodes, Granularity::Full), &after),
    );
    let delta = PeerDelta::between(&before, &after);
    let expected = PeerDelta {
        ranges_before: 20,
        changed: 1,
        changed_from: 2,
        changed_to: 1,
        added: 2,
        added_ranges: 4,
        removed: 5,
        removed_ranges: 10,
    };
    assert_eq!(delta, expected);
    let kept = after.peers.iter().filter_map(|it| it.share());
    assert_eq!(delta.ranges_after(), kept.map(PeerShare::count).sum::<usize>());
    assert!(PeerDelta::between(&after, &after).is_empty());
}
