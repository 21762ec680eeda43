//! Key moves: Peers that change in a way in which an agent may forget a key.

use std::collections::{BTreeMap, BTreeSet};

use super::arrival::{self, Arrivals, Event, MOST_OBJECTS, Object};
use super::grade::Engine;

/// Peers that change together because keys move between them.
#[derive(Clone, Debug, Eq, PartialEq)]
pub struct KeyMove {
    /// The kind of the move.
    pub kind: KeyMoveKind,
    /// The Peers, by name.
    pub peers: Vec<String>,
    /// Peers that agents do not have after the worst order of steps, until they list all Peers again.
    pub lost: Vec<String>,
    /// The way to avoid the loss, or to end it.
    pub cure: Cure,
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

/// The way to avoid that keys are lost, or to restore them.
#[derive(Clone, Debug, Eq, PartialEq)]
pub enum Cure {
    /// With this engine no order loses a key.
    Unneeded,
    /// Delete these Peers before the others are applied.
    DeleteFirst(Vec<String>),
    /// Apply these Peers first, in this order.
    ApplyFirst(Vec<String>),
    /// Every order loses a key. Change these Peers again after everything has arrived, for example an
    /// annotation.
    Touch(Vec<String>),
}

impl KeyMove {
    /// Describes what happens to some objects of a target that are connected by their keys; none if
    /// each keeps its own.
    pub(super) fn find(objects: &[Object], engines: &[Engine]) -> Option<Self> {
        let kind = kind(objects)?;
        let mut peers: Vec<String> = names(objects, 0..objects.len());
        peers.sort();
        peers.dedup();
        if kind == KeyMoveKind::Unproven {
            return Some(Self {
                kind,
                lost: peers.clone(),
                cure: Cure::Touch(peers.clone()),
                peers,
            });
        }
        let arrivals = Arrivals::new(objects);
        let wanted = arrivals.wanted();
        let mut lost: BTreeSet<usize> = BTreeSet::new();
        for engine in engines {
            let states = arrivals.states(*engine);
            let states = states.iter().filter(|it| it.is_final);
            lost.extend(states.flat_map(|it| arrival::lost(&it.memory, &wanted)));
        }
        let lost = names(objects, lost);
        let cure = if lost.is_empty() {
            Cure::Unneeded
        } else {
            let order = arrivals.lossless();
            order.map_or_else(|| Cure::Touch(lost.clone()), |it| cure(objects, &it))
        };
        Some(Self {
            kind,
            peers,
            lost,
            cure,
        })
    }
}

/// Returns what of an order has to be done by hand: the steps up to the last that an engine would take in
/// another order.
fn cure(objects: &[Object], order: &[Event]) -> Cure {
    let of = |is_deletion| {
        let events = order.iter().filter(move |it| it.is_deletion == is_deletion);
        let objects = events.filter_map(|it| objects.get(it.object));
        objects.map(|it| it.name().to_owned()).collect::<Vec<_>>()
    };
    let deletions = of(true);
    if deletions.is_empty() {
        // The last one may come with the rest.
        let mut applied = of(false);
        applied.pop();
        return Cure::ApplyFirst(applied);
    }
    let starts_with_all = order.iter().take(deletions.len()).all(|it| it.is_deletion);
    if starts_with_all {
        Cure::DeleteFirst(deletions)
    } else {
        Cure::ApplyFirst(of(false))
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
                let mut places = places.iter().filter_map(|it| objects.get(*it));
                places.all(test)
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
