//! Pauses that the annotation avoids, and nodes behind NAT that it does not help.

use clustermesh::changes::TargetChange;

use super::sound::any_versions;
use super::*;

/// A mere pause has the better grade once the nodes that it names have the annotation. A change after which nodes behind
/// NAT may be forgotten never is one.
#[test]
fn a_mere_pause_ends_with_the_annotation() {
    let (marked, forgotten) = (Cell::new(0), Cell::new(0));
    let is_enough = || 3 < marked.get() && 3 < forgotten.get();
    holds_for(&any_versions(), 2 * cases(), is_enough, |(mut before, mut after)| {
        let versions = (Rendered::new(&before), Rendered::new(&after));
        let changes = compared(&versions.0, &versions.1);
        for target in &changes.targets {
            let is_at_risk = forgets(target, &versions);
            forgotten.set(forgotten.get() + usize::from(is_at_risk));
            let is_better = target.grade() <= Grade::Cleanup || target.is_pause_only();
            prop_assert!(!(is_at_risk && is_better), "{target:?}");
        }
        if !changes.is_pause_only() {
            return Ok(());
        }
        marked.set(marked.get() + 1);
        let named = changes.targets.iter().flat_map(|target| {
            let cluster = target.cluster.to_string();
            let nodes = target.pausing.iter();
            nodes.map(move |node| (cluster.clone(), node.clone()))
        });
        let named: BTreeSet<(String, String)> = named.collect();
        for edition in [&mut before, &mut after] {
            edition.annotated = named.clone();
        }
        let annotated = compared(&Rendered::new(&before), &Rendered::new(&after));
        prop_assert_eq!(annotated.grade(), changes.grade_without_pause());
        prop_assert!(annotated.grade() <= Grade::Cleanup);
        Ok(())
    });
}

/// Returns whether several Peers of a target change, one of its nodes can be dialled, and it knows a Peer only by the
/// address from which that connects.
fn forgets(target: &TargetChange, (before, after): &(Rendered, Rendered)) -> bool {
    let peers = |version: &Rendered| {
        let files = version.files.get(&target.cluster);
        let files = files.map_or(&[][..], Vec::as_slice);
        let specs = peers_of(files).into_values();
        let specs = specs.filter_map(|it| it.spec.clone().ok());
        specs.filter(Translation::is_ready).collect::<Vec<_>>()
    };
    let known: BTreeSet<[u8; 32]> = peers(before).iter().map(|it| it.key).collect();
    let is_learned = |it: &Translation| {
        known.contains(&it.key) && it.dialled().is_none() && it.keepalive.is_some()
    };
    let fabric = after.fabric(after, |_| false);
    let site = fabric.site_named(target.cluster.as_str());
    let is_public = site.map(|it| fabric.site(it)).is_some_and(|site| {
        let nodes = site.model.topology.nodes.ids();
        let mut leaders = nodes.filter(|it| site.led(*it).is_some());
        leaders.any(|it| site.reading.nodes[it].checked.endpoint().is_some())
    });
    1 < target.peers.len() && is_public && peers(after).iter().any(is_learned)
}
