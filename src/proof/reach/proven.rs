//! Proven results: what was proved about packets between two classes, for all classes that are seen alike.

use std::collections::BTreeSet;

use super::ClassFate;
use super::equivalence_class::PieceView;
use crate::mesh::AddressClass;
use crate::packet::trace::Trace;

/// Finds the pairs between which packets and their answers arrive, in any clusters.
#[derive(Clone, Debug, Default)]
pub struct Proven<'r> {
    delivered: BTreeSet<[ClassKey<'r>; 2]>,
    /// Those between which none does, if the reason is of no interest.
    lost: Option<BTreeSet<[ClassKey<'r>; 2]>>,
}

/// The conditions of a path on one side.
type ClassKey<'r> = (AddressClass, &'r [PieceView]);

impl<'r> Proven<'r> {
    /// Also remembers where nothing arrives. Of other clusters there is no packet then that shows the reason.
    pub fn with_lost() -> Self {
        Self { lost: Some(BTreeSet::new()), ..Self::default() }
    }

    /// Returns what becomes of packets between two classes, if that is known.
    pub(super) fn fate(&self, looks: &[ClassKey<'r>; 2]) -> Option<ClassFate> {
        if self.delivered.contains(looks) {
            return Some(ClassFate::Proven);
        }
        let lost = self.lost.as_ref();
        lost.and_then(|it| it.contains(looks).then_some(ClassFate::Lost))
    }

    /// Remembers how packets end that were followed between two classes.
    pub(super) fn add(&mut self, looks: [ClassKey<'r>; 2], traces: &[Trace]) {
        let mut arrive = traces.iter().map(|it| it.ending().is_delivered());
        if arrive.clone().all(|it| it) {
            self.delivered.insert(looks);
        } else if let Some(lost) = &mut self.lost
            && arrive.all(|it| !it)
        {
            lost.insert(looks);
        }
    }
}
