//! Tallies: how many paths between two clusters are declared, and how many work.

use std::collections::BTreeSet;
use std::ops::AddAssign;
use std::sync::Arc;

use schemars::JsonSchema;
use serde::Serialize;

use crate::agent::fabric::{SiteId, SitePair};
use crate::mesh::AddressClass;
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
    /// By class of sender and receiver. Many pairs have the same.
    pub tallies: Arc<Tallies>,
}

impl Pairing {
    /// Returns its clusters.
    pub fn pair(&self) -> SitePair {
        SitePair { from: self.from, to: self.to }
    }

    /// Returns whether there are declared paths.
    pub(super) fn has_declared(&self) -> bool {
        self.tallies.values().any(|it| 0 < it.promised)
    }
}

/// The classes of a sender and a receiver.
pub type ClassPair = (AddressClass, AddressClass);

/// Tallies by class of sender and receiver, in their order.
#[derive(Clone, Debug, Default, Eq, Ord, PartialEq, PartialOrd)]
pub struct Tallies(Vec<(ClassPair, Tally)>);

// A path is a pair of owners. An owner is a node, or a range that is declared for the whole cluster.
/// Numbers of paths between nodes and cluster-wide ranges.
#[derive(Clone, Copy, Debug, Default, Eq, JsonSchema, Ord, PartialEq, PartialOrd, Serialize)]
pub struct Tally {
    /// Paths that a link declares.
    #[serde(rename = "declared")]
    pub promised: u64,
    /// Declared paths that work in both directions.
    #[serde(rename = "working")]
    pub kept: u64,
    /// Declared paths that depend on a condition that no snapshot shows; not counted in `working`.
    pub assumed: u64,
    /// Those of the assumed paths that need only a route of an anchor into a network that no snapshot shows.
    #[serde(skip)]
    pub routed: u64,
    /// Paths that no link declares.
    #[serde(rename = "undeclared")]
    pub others: u64,
    /// Undeclared paths that work.
    #[serde(rename = "undeclaredWorking")]
    pub reached: u64,
}

/// The number of pairs of classes for which there is room at first.
const PAIRS: usize = 8;

impl Tallies {
    /// Returns room for the tallies of two clusters.
    pub(super) fn with_room() -> Self {
        Self(Vec::with_capacity(PAIRS))
    }

    /// Returns the tally of two classes, if there are any paths between them.
    pub fn get(&self, classes: ClassPair) -> Option<&Tally> {
        let place = self.0.binary_search_by_key(&classes, |it| it.0).ok()?;
        self.0.get(place).map(|it| &it.1)
    }

    /// Returns all tallies with their classes.
    pub fn iter(&self) -> impl Iterator<Item = (ClassPair, &Tally)> {
        self.0.iter().map(|(classes, tally)| (*classes, tally))
    }

    /// Returns all tallies.
    pub fn values(&self) -> impl Iterator<Item = &Tally> {
        self.0.iter().map(|it| &it.1)
    }

    /// Adds paths between two classes.
    pub(super) fn add(&mut self, classes: ClassPair, paths: Tally) {
        match self.0.binary_search_by_key(&classes, |it| it.0) {
            Ok(place) => {
                if let Some((_, tally)) = self.0.get_mut(place) {
                    *tally += paths;
                }
            }
            Err(place) => self.0.insert(place, (classes, paths)),
        }
    }
}

impl AddAssign for Tally {
    fn add_assign(&mut self, others: Self) {
        self.promised += others.promised;
        self.kept += others.kept;
        self.assumed += others.assumed;
        self.routed += others.routed;
        self.others += others.others;
        self.reached += others.reached;
    }
}

impl Tally {
    /// Returns whether a promise does not hold, assumed ones aside.
    pub fn fails(&self) -> bool {
        0 < self.failing()
    }

    /// Returns the number of declared paths that fail.
    pub fn failing(&self) -> u64 {
        self.promised.saturating_sub(self.kept + self.assumed)
    }
}

/// Returns known tallies that are equal to some, or these, which are then known.
pub(super) fn shared(mut tallies: Tallies, known: &mut BTreeSet<Arc<Tallies>>) -> Arc<Tallies> {
    if let Some(equal) = known.get(&tallies) {
        return Arc::clone(equal);
    }
    tallies.0.shrink_to_fit();
    let tallies = Arc::new(tallies);
    known.insert(Arc::clone(&tallies));
    tallies
}

/// Returns the tallies of two clusters with nothing between them: nothing is promised, and no packet
/// leaves.
pub(super) fn nothing(senders: &Counts, receivers: &Counts) -> Tallies {
    let mut tallies = Tallies::default();
    for ((from, sends), ones) in senders {
        for ((to, receives), others) in receivers {
            if matches!(from, AddressClass::Pod | AddressClass::Node) && sends == receives {
                let tally = Tally { others: ones.saturating_mul(*others), ..Tally::default() };
                tallies.add((*from, *to), tally);
            }
        }
    }
    tallies
}
