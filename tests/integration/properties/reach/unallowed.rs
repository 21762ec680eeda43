//! Undeclared paths that nothing allows, against every path by itself.

use super::expectations::{is_meant, read, written};
use super::*;
use clustermesh::agent::fabric::AwakeClusters;
use clustermesh::expectations::{AllowedPaths, Selection};
use clustermesh::proof::verify::Declared;

/// Whether a side means all addresses of a block.
fn holds(selection: &Selection, site: &Site, block: &AddressBlock) -> bool {
    let ranges = selection.addresses.iter().map(|it| Span::new(*it));
    let is_covered = selection.addresses.is_empty() || block.span.is_covered_by(ranges);
    let anywhere = Selection { addresses: Vec::new(), ..selection.clone() };
    is_covered && is_meant(&anywhere, site, block.owner, block.span.first_address())
}

/// Counts the working paths that no link declares and nothing allows, each by itself.
fn counted(
    fabric: &Fabric,
    asked: Asked,
    allowed: &[AllowedPaths],
) -> BTreeMap<(AddressClass, AddressClass), u64> {
    let (reach, declared) = (Reach::new(fabric, u64::MAX), Declared::new(fabric, asked));
    let mut counts = BTreeMap::new();
    for from in fabric.sites.ids() {
        for to in fabric.sites.ids().filter(|it| *it != from) {
            let [home, away] = [from, to].map(|it| fabric.site(it));
            for verdict in reach.between(from, to, &mut Proven::default()) {
                if !verdict.holds() {
                    continue;
                }
                let are_declared = Declared::are_declared(verdict.from, verdict.to);
                let sent = declared.promised(from, to, &verdict.senders);
                let taken = declared.promised(to, from, &verdict.receivers);
                for (sender, is_sent) in verdict.senders.iter().zip(sent) {
                    for (receiver, is_taken) in verdict.receivers.iter().zip(&taken) {
                        let is_allowed = allowed
                            .iter()
                            .any(|it| holds(it.from, home, sender) && holds(it.to, away, receiver));
                        if !(is_allowed || are_declared && is_sent && *is_taken) {
                            *counts.entry((verdict.from, verdict.to)).or_default() += 1;
                        }
                    }
                }
            }
        }
    }
    counts
}

proptest! {
    #![proptest_config(ProptestConfig { cases: cases(150), failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn every_undeclared_path_is_allowed_or_found(
        world in world(),
        written in prop::collection::vec(written(), 0..4),
    ) {
        let input = input(&world);
        let fabric = fabric(&input);
        let expectations = if written.is_empty() { Vec::new() } else { read(&written) };
        let allowed: Vec<AllowedPaths> = expectations
            .iter()
            .map(|it| AllowedPaths { from: &it.from, to: &it.to })
            .collect();
        let asked = Asked {
            meshes: &input.meshes,
            lists_undeclared: false,
            allowed: Some(&allowed),
        };
        let verification = verify(&Reach::new(&fabric, u64::MAX), asked);
        let found: BTreeMap<_, _> =
            verification.unallowed.iter().map(|it| (it.classes, it.paths)).collect();
        // A forbidden path must not be open, however nodes dial.
        let awake = AwakeClusters::find(&fabric);
        let open = awake.open(&fabric);
        prop_assert_eq!(&found, &counted(&open, asked, &allowed));
        if allowed.is_empty() {
            let open = verify(&Reach::new(&open, u64::MAX), asked);
            prop_assert_eq!(found.values().sum::<u64>(), open.total().reached);
        }
    }
}
