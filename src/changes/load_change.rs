//! Load changes: what the Kilo of a target has to carry, before and after.

use super::passage::Passage;
use crate::capacity::{Estimate, KnownBundles, Load, PeerDelta, estimates};
use crate::config::Capacity;
use crate::config::capacity::Quantity;
use crate::diagnostic::Severity;

/// The load of a target, before and after.
#[derive(Clone, Debug, PartialEq)]
pub struct LoadChange {
    /// The estimates for the old Peers.
    pub before: Vec<Estimate>,
    /// The estimates for the new Peers.
    pub after: Vec<Estimate>,
    /// The seconds for which Kilo is busy with the change on the busiest node.
    pub seconds: f64,
}

impl LoadChange {
    /// Estimates the load of a target.
    pub(super) fn new<'s>(
        passage: &Passage<'s>,
        capacity: &Capacity,
        known: &mut KnownBundles<'s>,
    ) -> Self {
        let (old, new) = (&passage.peers.now.model, &passage.peers.after.model);
        let delta = PeerDelta::count(old, new, passage.peers.pairs.iter().copied());
        let load = Load::count_knowing(new, None, known);
        Self {
            before: estimates(&Load::count_knowing(old, None, known), capacity),
            seconds: delta.seconds(&load.nodes, &capacity.costs),
            after: estimates(&load, capacity),
        }
    }

    /// Returns the quantities that pass a warning, or a more severe limit, by the change.
    pub fn passed(&self) -> impl Iterator<Item = Quantity> {
        let before = |quantity: Quantity| {
            let mut before = self.before.iter().filter(move |it| it.quantity == quantity);
            before.next().and_then(|it| it.grade)
        };
        let passed = self.after.iter().filter(move |it| {
            Some(Severity::Warning) <= it.grade && before(it.quantity) < it.grade
        });
        passed.map(|it| it.quantity)
    }
}
