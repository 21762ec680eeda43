//! Breaches: the powers of a hostile cluster that go beyond the meshes.

use super::{Exposure, Hold, Hostile, Relay, RelayKind, WhoseKind};
use crate::proof::bounded_list::{BoundedList, Kinded as _};

/// Something that a hostile cluster can do and no mesh lets it do.
#[derive(Clone, Copy, Debug)]
pub enum Breach<'h> {
    /// A cluster that no link joins it with hears it.
    Heard(&'h Exposure),
    /// A cluster accepts it as another cluster.
    Impersonation(&'h Exposure, &'h Hold),
    /// A cluster accepts it as others with this many more ranges.
    Impersonations(&'h Exposure, usize),
    /// A cluster sends it what is not meant for it.
    Capture(&'h Exposure, &'h Hold),
    /// A cluster sends it this many more ranges that are not meant for it.
    Captures(&'h Exposure, usize),
    /// It gets through a cluster to one that no link joins it with.
    Passage(&'h Exposure, &'h Relay),
    /// It gets through a cluster to this many more that no link joins it with.
    Passages(&'h Exposure, usize),
}

impl Breach<'_> {
    /// Returns how many things the hostile cluster can do.
    pub fn count(&self) -> usize {
        match self {
            Self::Heard(_) | Self::Impersonation(..) | Self::Capture(..) | Self::Passage(..) => 1,
            Self::Impersonations(_, count)
            | Self::Captures(_, count)
            | Self::Passages(_, count) => *count,
        }
    }
}

impl Hostile {
    /// Returns everything that no mesh lets it do; of one that is contained nothing.
    pub fn breaches(&self) -> Vec<Breach<'_>> {
        let mut breaches = Vec::new();
        for exposure in &self.exposures {
            let is_heard = !exposure.believed.is_empty() || !exposure.attracted.is_empty();
            if is_heard && !exposure.is_linked {
                breaches.push(Breach::Heard(exposure));
            }
            let believed = undeclared(&exposure.believed);
            breaches.extend(believed.map(|hold| Breach::Impersonation(exposure, hold)));
            let more = more_undeclared(&exposure.believed);
            breaches.extend((0 < more).then_some(Breach::Impersonations(exposure, more)));
            let attracted = undeclared(&exposure.attracted);
            breaches.extend(attracted.map(|hold| Breach::Capture(exposure, hold)));
            let more = more_undeclared(&exposure.attracted);
            breaches.extend((0 < more).then_some(Breach::Captures(exposure, more)));
            let through = exposure.relays.listed().iter();
            let through = through.filter(|it| it.kind() == RelayKind::Unlinked);
            breaches.extend(through.map(|it| Breach::Passage(exposure, it)));
            let more = exposure.relays.more(RelayKind::Unlinked);
            breaches.extend((0 < more).then_some(Breach::Passages(exposure, more)));
        }
        breaches
    }
}

/// Returns the listed addresses that the hostile cluster does not declare.
fn undeclared(holds: &BoundedList<Hold>) -> impl Iterator<Item = &Hold> {
    let listed = holds.listed().iter();
    listed.filter(|it| it.kind() != WhoseKind::Declared)
}

/// Returns how many ranges that the hostile cluster does not declare are not listed.
fn more_undeclared(holds: &BoundedList<Hold>) -> usize {
    holds.more(WhoseKind::Others) + holds.more(WhoseKind::Nobody)
}
