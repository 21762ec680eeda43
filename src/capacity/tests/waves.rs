//! The load of changes that are applied together.

use super::*;
use crate::agent::peers::PeerShare;
use crate::id::Numbered;

#[test]
fn a_wave_is_what_differs() {
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
    let wave = Wave::between(&before, &after);
    let expected = Wave {
        ranges_before: 20,
        changed: 1,
        changed_from: 2,
        changed_to: 1,
        added: 2,
        added_ranges: 4,
        removed: 5,
        removed_ranges: 10,
    };
    assert_eq!(wave, expected);
    let kept = after.peers.iter().filter_map(|it| it.share());
    assert_eq!(
        wave.ranges_after(),
        kept.map(PeerShare::count).sum::<usize>()
    );
    assert!(Wave::between(&after, &after).is_empty());
}

#[test]
fn waves_are_as_large_as_may_be() {
    let nodes = load(&nodes(30), &[]).nodes;
    let costs = Costs::default();
    let wave = Wave {
        added: 200,
        added_ranges: 400,
        ..Wave::default()
    };
    let most = wave.most_within(10.0, &nodes, &costs);
    let last = |peers: usize| {
        let applies = Applies {
            times: peers,
            before: 400 - 2 * peers,
            after: 400,
        };
        applies.seconds(&nodes, &costs)
    };
    assert!(last(most) <= 10.0 && 10.0 < last(most + 1), "{most}");
    assert_eq!(wave.most_within(0.0, &nodes, &costs), 1);
    assert_eq!(wave.most_within(1e9, &nodes, &costs), 200);
}
