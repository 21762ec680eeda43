//! Tallies: how many paths between two clusters are declared, and how many work.

use std::collections::BTreeMap;
use std::sync::Arc;

use crate::agent::fabric::SiteId;
use crate::packet::trace::AddressClass;
use crate::proof::reach::Counts;

/// Paths from one cluster to another.
#[derive(Clone, Debug)]
pub struct Pairing {
    /// The cluster that sends.
    pub from: SiteId,
    /// The receiver.
    pub to: SiteId,
    /// Whether a mesh links the two.
    pub is_linked: bool,
    /// By class of sender and receiver. Of clusters with nothing between them many have the same.
    pub tallies: Arc<Tallies>,
}

/// Tallies by class of sender and receiver.
pub type Tallies = BTreeMap<(AddressClass, AddressClass), Tally>;

/// Numbers of pairs of owners. An owner is a node, or a range that is declared for the whole cluster.
#[derive(Clone, Debug, Default, Eq, PartialEq)]
pub struct Tally {
    /// Paths that a link declares.
    pub promised: u64,
    /// Declared paths that work in both directions.
    pub kept: u64,
    /// Those of them that hold only if something is so that no snapshot shows.
    pub assumed: u64,
    /// Paths that no link declares.
    pub others: u64,
    /// Undeclared paths that work.
    pub reached: u64,
}

impl Tally {
    /// Returns whether a promise does not hold, assumed ones aside.
    pub fn fails(&self) -> bool {
        self.kept + self.assumed < self.promised
    }
}

/// Returns the tallies of two clusters with nothing between them: nothing is promised, and no packet
/// leaves.
pub(super) fn nothing(senders: &Counts, receivers: &Counts) -> Tallies {
    let mut tallies = Tallies::new();
    for ((from, sends), ones) in senders {
        for ((to, receives), others) in receivers {
            if matches!(from, AddressClass::Pod | AddressClass::Node) && sends == receives {
                let tally = tallies.entry((*from, *to)).or_default();
                tally.others += ones.saturating_mul(*others);
            }
        }
    }
    tallies
}
