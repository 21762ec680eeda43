//! Proof reuse: whether two proofs of the same nodes with other Peers see some addresses alike.

use std::collections::BTreeMap;

use super::Reach;
use super::equivalence_class::{EquivalenceClass, PieceView};
use super::forwarding_view::ForwardingView;
use crate::agent::fabric::SiteId;

/// The differences of a block of addresses between two proofs.
#[derive(Clone, Copy, Debug, Default, Eq, PartialEq)]
pub struct BlockLikeness {
    /// Whether the other cluster sees it the same way.
    pub is_seen_alike: bool,
    /// Whether its own cluster handles its packets the same way.
    pub is_handled_alike: bool,
}

impl Reach<'_, '_> {
    /// Compares how `viewer` sees each block of `home`, in the order of
    /// [`address_blocks`](super::address_blocks), with another proof of the same nodes.
    pub fn likeness(&self, other: &Reach, home: SiteId, viewer: SiteId) -> Vec<BlockLikeness> {
        let (one, two) = (self.view(home, viewer), other.view(home, viewer));
        let sites = [home, viewer].map(|it| [self.fabric.site(it), other.fabric.site(it)]);
        // A disturbance of a whole cluster is in no view of it.
        let is_undisturbed = sites.as_flattened().iter().all(|it| it.is_undisturbed());
        let blocks = one.blocks().max(two.blocks());
        if !is_undisturbed {
            return vec![BlockLikeness::default(); blocks];
        }
        // There are few kinds of blocks.
        let mut known: BTreeMap<[Option<usize>; 2], BlockLikeness> = BTreeMap::new();
        let likeness = |block| {
            let classes = [one, two].map(|it| it.class_of(block));
            let found = known.entry(classes);
            *found.or_insert_with(|| compare((one, two), classes).unwrap_or_default())
        };
        (0..blocks).map(likeness).collect()
    }
}

fn compare(
    (one, two): (&ForwardingView, &ForwardingView),
    classes: [Option<usize>; 2],
) -> Option<BlockLikeness> {
    let [of_one, of_two] = classes;
    let (one, two) = (one.classes.get(of_one?)?, two.classes.get(of_two?)?);
    let is_comparable = |class: &EquivalenceClass| class.is_portable() && !class.has_secret();
    if !is_comparable(one) || !is_comparable(two) {
        return None;
    }
    Some(BlockLikeness {
        is_seen_alike: one.class == two.class && one.views == two.views,
        is_handled_alike: handled(one).eq(handled(two)),
    })
}

/// Returns the parts of a view that do not depend on the cluster that looks.
fn handled(class: &EquivalenceClass) -> impl Iterator<Item = impl PartialEq + use<'_>> {
    let handled = |it: &PieceView| (it.deliver, it.calls, it.is_led, it.segment);
    class.views.iter().map(handled)
}
