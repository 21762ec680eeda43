//! Key moves: Peers that change in a way in which an agent may forget a key.

use std::collections::{BTreeMap, BTreeSet};

use super::arrival::{Arrivals, KnownArrivals, MOST_OBJECTS, Object};
use crate::engine::StepOrder;

/// Peers that change together because keys move between them.
#[derive(Clone, Debug, Eq, PartialEq)]
pub struct KeyMove {
    /// The kind of the move.
    pub kind: KeyMoveKind,
    /// The Peers, by name.
    pub peers: Vec<String>,
    /// Peers that agents do not have after the worst order of steps, until they list all Peers again.
    pub lost: Vec<String>,
    /// Those of the lost Peers that have to change once more when everything has arrived, for example in an annotation:
    /// then agents have them again.
    pub touched: Vec<String>,
    /// True if Argo CD loses keys only because it deletes and applies in no order. It loses none with
    /// `PrunePropagationPolicy=background`.
    pub needs_background: bool,
}

/// A kind of move of keys.
#[derive(Clone, Debug, Eq, PartialEq)]
pub enum KeyMoveKind {
    /// A Peer gets another name and keeps its key.
    Renamed {
        /// The old name.
        from: String,
        /// The new one.
        to: String,
    },
    /// A Peer takes the key of another one, and one of the two comes or goes.
    Moved,
    /// Two Peers take the keys of each other.
    Swapped,
    /// Each Peer takes the key of the next one, and the last one gets a new key.
    Chain,
    /// Several Peers have one key, before or after.
    Shared,
    /// More Peers than can be tried.
    Unproven,
}

impl KeyMove {
    /// Describes what happens to some objects of a target that are connected by their keys; none if
    /// each keeps its own.
    pub(super) fn find(
        objects: &[Object],
        orders: &BTreeSet<StepOrder>,
        arrivals: &mut KnownArrivals,
    ) -> Option<Self> {
        let kind = kind(objects)?;
        let mut peers: Vec<String> = names(objects, 0..objects.len());
        peers.sort();
        peers.dedup();
        if kind == KeyMoveKind::Unproven {
            return Some(Self {
                kind,
                lost: peers.clone(),
                touched: peers.clone(),
                needs_background: false,
                peers,
            });
        }
        let own = Arrivals::new(objects);
        let mut lost = |order: StepOrder| -> BTreeSet<usize> {
            let states = arrivals.states(&own, order);
            let states = states.iter().filter(|it| it.is_final);
            states.flat_map(|it| own.lost(it)).collect()
        };
        let by_order = orders.iter().map(|it| (*it, lost(*it)));
        let by_order: BTreeMap<StepOrder, BTreeSet<usize>> = by_order.collect();
        let is_mixed_lost = by_order.get(&StepOrder::Mixed).is_some_and(|it| !it.is_empty());
        let needs_background = is_mixed_lost && lost(StepOrder::DeletesFirst).is_empty();
        let of_orders = |is_meant: &dyn Fn(StepOrder) -> bool| {
            let meant = by_order.iter().filter(|it| is_meant(*it.0));
            let lost: BTreeSet<usize> = meant.flat_map(|it| it.1).copied().collect();
            names(objects, lost)
        };
        Some(Self {
            kind,
            peers,
            lost: of_orders(&|_| true),
            touched: of_orders(&|it| !needs_background || it != StepOrder::Mixed),
            needs_background,
        })
    }
}

fn names(objects: &[Object], places: impl IntoIterator<Item = usize>) -> Vec<String> {
    let objects = places.into_iter().filter_map(|it| objects.get(it));
    objects.map(|it| it.name().to_owned()).collect()
}

fn kind(objects: &[Object]) -> Option<KeyMoveKind> {
    let keys = |is_new: bool| {
        let mut keys: BTreeMap<[u8; 32], Vec<usize>> = BTreeMap::new();
        for (place, object) in objects.iter().enumerate() {
            if let Some(key) = object.key(is_new) {
                keys.entry(key).or_default().push(place);
            }
        }
        keys
    };
    let (old, new) = (keys(false), keys(true));
    // The Peer that had a key and the one that gets it.
    let moves = new.iter().filter_map(|(key, to)| {
        let from = old.get(key)?;
        (from != to).then_some((from, to))
    });
    let moves: Vec<(&Vec<usize>, &Vec<usize>)> = moves.collect();
    let is_shared = |keys: &BTreeMap<[u8; 32], Vec<usize>>| keys.values().any(|it| 1 < it.len());
    if moves.is_empty() && !is_shared(&old) && !is_shared(&new) {
        return None;
    }
    if MOST_OBJECTS < objects.len() {
        return Some(KeyMoveKind::Unproven);
    }
    if is_shared(&old) || is_shared(&new) {
        return Some(KeyMoveKind::Shared);
    }
    let name = |places: &Vec<usize>| {
        let place = places.first().and_then(|it| objects.get(*it));
        place.map(|it| it.name().to_owned())
    };
    Some(match &*moves {
        [(from, to)] => {
            let is = |places: &Vec<usize>, test: fn(&Object) -> bool| {
                places.iter().filter_map(|it| objects.get(*it)).all(test)
            };
            match (name(from), name(to)) {
                (Some(old), Some(new))
                    if is(from, |it| it.new.is_none()) && is(to, |it| it.old.is_none()) =>
                {
                    KeyMoveKind::Renamed { from: old, to: new }
                }
                _ if is(from, |it| it.new.is_some()) && is(to, |it| it.old.is_some()) => {
                    KeyMoveKind::Chain
                }
                _ => KeyMoveKind::Moved,
            }
        }
        [(a, b), (c, d)] if a == d && b == c => KeyMoveKind::Swapped,
        _ => KeyMoveKind::Chain,
    })
}
