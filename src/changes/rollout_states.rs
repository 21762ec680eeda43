//! Rollout states: the states in which an agent can be while the objects of a target arrive one after another
//! (`kilo.md` §2.2), and the keys that it may forget then.
//!
//! An agent keeps Peers by key. An event of a Peer removes its old key and sets its new one, and a
//! deletion removes its key, even if the key belongs to another Peer by then (`syncPeers`).

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use crate::agent::applied::Applied;
use crate::engine::StepOrder;

/// The most objects whose orders are all tried. With more, the number of states explodes.
pub(super) const MOST_OBJECTS: usize = 6;

/// An object of the API server in both versions.
#[derive(Clone, Copy, Debug)]
pub(super) struct Object<'a> {
    /// Its old content; none if it is new.
    pub(super) old: Option<&'a Applied>,
    /// Its new content; none if it goes. Equal to the old one if nothing happens to it.
    pub(super) new: Option<&'a Applied>,
}

/// The version of an object that an agent has.
#[derive(Clone, Copy, Debug, Eq, Ord, PartialEq, PartialOrd)]
pub(super) struct Known {
    /// The place of the object among those that are tried together.
    pub(super) object: usize,
    /// True if it is the new content.
    pub(super) is_new: bool,
}

/// The object that an agent knows for each key, if any. Keys are numbered.
type Memory = Vec<Option<Known>>;

/// A state of an agent.
#[derive(Clone, Debug, Eq, Ord, PartialEq, PartialOrd)]
pub(super) struct RolloutState {
    /// The Peers that it has.
    memory: Memory,
    /// True if everything has arrived, so that the state stays until the agent lists all Peers
    /// again.
    pub(super) is_final: bool,
}

/// A step of a delivery.
#[derive(Clone, Copy, Debug, Eq, Ord, PartialEq, PartialOrd)]
struct Event {
    pub(super) object: usize,
    /// True if it is deleted; otherwise it is created or changed.
    is_deletion: bool,
}

impl<'a> Object<'a> {
    /// Takes an object to which nothing happens.
    pub(super) fn staying(content: &'a Applied) -> Self {
        Self { old: Some(content), new: Some(content) }
    }

    pub(super) fn name(&self) -> &'a str {
        self.new.or(self.old).map_or("", |it| it.name.as_str())
    }

    /// Returns its content in a version.
    pub(super) fn content(&self, is_new: bool) -> Option<&'a Applied> {
        if is_new { self.new } else { self.old }
    }

    /// Returns its key in a version. A Peer that no agent accepts has none.
    pub(super) fn key(&self, is_new: bool) -> Option<[u8; 32]> {
        Some(self.content(is_new)?.spec.as_ref().ok()?.key)
    }
}

/// The part of an object on which the states depend.
#[derive(Clone, Copy, Debug, Eq, Ord, PartialEq, PartialOrd)]
struct ObjectShape {
    /// The number of its old key.
    old_key: Option<usize>,
    /// The number of its new key.
    new_key: Option<usize>,
    /// True if nothing happens to it.
    is_same: bool,
    /// True if it is there in the old version.
    was_there: bool,
    /// True if it is there in the new version.
    is_there: bool,
}

/// Some objects of a target, whose orders are tried. Those that are equal have the same states.
#[derive(Clone, Debug, Eq, Ord, PartialEq, PartialOrd)]
pub(super) struct Rollout {
    objects: Vec<ObjectShape>,
    keys: usize,
}

/// The states of objects that were tried before.
#[derive(Default)]
pub(super) struct KnownRollouts(BTreeMap<(Rollout, StepOrder), Arc<BTreeSet<RolloutState>>>);

impl KnownRollouts {
    /// Returns every state in which an agent can be, with all sequences of steps that an order allows.
    pub(super) fn states(
        &mut self,
        rollout: &Rollout,
        order: StepOrder,
    ) -> Arc<BTreeSet<RolloutState>> {
        let known = self.0.entry((rollout.clone(), order));
        Arc::clone(known.or_insert_with(|| Arc::new(rollout.states(order))))
    }
}

impl Rollout {
    /// Takes objects.
    pub(super) fn new(objects: &[Object]) -> Self {
        let mut numbers: Vec<[u8; 32]> = Vec::new();
        let mut number = |key: [u8; 32]| {
            numbers.iter().position(|it| *it == key).unwrap_or_else(|| {
                numbers.push(key);
                numbers.len() - 1
            })
        };
        let objects = objects.iter().map(|it| ObjectShape {
            old_key: it.key(false).map(&mut number),
            new_key: it.key(true).map(&mut number),
            is_same: it.old.map(|it| &it.spec) == it.new.map(|it| &it.spec),
            was_there: it.old.is_some(),
            is_there: it.new.is_some(),
        });
        Self { objects: objects.collect(), keys: numbers.len() }
    }

    /// Returns what all objects are in a version, if they are there.
    pub(super) fn whole(&self, is_new: bool) -> Vec<Option<bool>> {
        let objects = self.objects.iter();
        let there = objects.map(|it| if is_new { it.is_there } else { it.was_there });
        there.map(|it| it.then_some(is_new)).collect()
    }

    /// Takes objects to which nothing happens as new.
    pub(super) fn unified(&self, versions: Vec<Option<bool>>) -> Vec<Option<bool>> {
        let versions = versions.into_iter().zip(&self.objects);
        let unified = versions.map(|(version, it)| version.map(|is_new| is_new || it.is_same));
        unified.collect()
    }

    /// Returns the version of each object that an agent has.
    pub(super) fn versions(&self, state: &RolloutState) -> Vec<Option<bool>> {
        let mut versions = vec![None; self.objects.len()];
        for it in state.memory.iter().flatten() {
            if let Some(version) = versions.get_mut(it.object) {
                *version = Some(it.is_new);
            }
        }
        versions
    }

    /// Returns the objects of which an agent should have the new content in the end, and does not have the key.
    pub(super) fn lost(&self, state: &RolloutState) -> impl Iterator<Item = usize> {
        let has = |key: usize| state.memory.get(key).is_some_and(Option::is_some);
        let objects = self.objects.iter().enumerate();
        let lost = objects.filter(move |it| it.1.new_key.is_some_and(|key| !has(key)));
        lost.map(|it| it.0)
    }

    /// Returns the step that each object needs, if it needs one.
    fn events(&self) -> Vec<Event> {
        let objects = self.objects.iter().enumerate();
        let changed = objects.filter(|(_, it)| !it.is_same);
        let events = changed.map(|(object, it)| Event { object, is_deletion: !it.is_there });
        events.collect()
    }

    /// Returns every state in which an agent can be, with all sequences of steps that an order allows. Of two Peers that
    /// have one key already, either may be the one that the agent has.
    fn states(&self, order: StepOrder) -> BTreeSet<RolloutState> {
        let events = self.events();
        let mut found = BTreeSet::new();
        let mut seen: BTreeSet<(BTreeSet<Event>, Memory)> = BTreeSet::new();
        let mut open: Vec<(BTreeSet<Event>, Memory)> =
            self.starts().into_iter().map(|it| (BTreeSet::new(), it)).collect();
        while let Some((done, memory)) = open.pop() {
            if !seen.insert((done.clone(), memory.clone())) {
                continue;
            }
            found.insert(RolloutState {
                memory: memory.clone(),
                is_final: done.len() == events.len(),
            });
            for event in next(&events, order, &done) {
                let mut done = done.clone();
                done.insert(event);
                open.push((done, self.after(memory.clone(), event)));
            }
        }
        found
    }

    /// Returns what an agent may have before the first step.
    fn starts(&self) -> Vec<Memory> {
        let mut choices = vec![Vec::new(); self.keys];
        for (object, it) in self.objects.iter().enumerate() {
            if let Some(choices) = it.old_key.and_then(|key| choices.get_mut(key)) {
                let is_new = false;
                choices.push(Some(Known { object, is_new }));
            }
        }
        choices.into_iter().fold(vec![Memory::new()], |starts, choices| {
            let choices = if choices.is_empty() { vec![None] } else { choices };
            let with = |start: Memory| {
                let choices = choices.iter().copied();
                choices.map(move |known| start.iter().copied().chain([known]).collect())
            };
            starts.into_iter().flat_map(with).collect()
        })
    }

    /// Returns what an agent has after a step (`syncPeers`). It ignores events about Peers that it does
    /// not accept.
    fn after(&self, mut memory: Memory, event: Event) -> Memory {
        let Some(&ObjectShape { old_key: old, new_key: new, .. }) = self.objects.get(event.object)
        else {
            return memory;
        };
        let mut set = |key: usize, known| {
            if let Some(place) = memory.get_mut(key) {
                *place = known;
            }
        };
        if !event.is_deletion && new.is_none() {
            return memory;
        }
        if let Some(old) = old {
            set(old, None);
        }
        if let Some(key) = new {
            let known = Known { object: event.object, is_new: true };
            set(key, Some(known));
        }
        memory
    }
}

/// Returns the steps that may come next.
fn next(events: &[Event], order: StepOrder, done: &BTreeSet<Event>) -> Vec<Event> {
    let left = events.iter().filter(|it| !done.contains(it)).copied();
    let left: Vec<Event> = left.collect();
    let is_first = |it: &Event| match order {
        StepOrder::AppliesFirst => !it.is_deletion,
        StepOrder::DeletesFirst => it.is_deletion,
        StepOrder::Mixed => true,
    };
    let first: Vec<Event> = left.iter().copied().filter(is_first).collect();
    if first.is_empty() { left } else { first }
}

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
        rollouts: &mut KnownRollouts,
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
        let own = Rollout::new(objects);
        let mut lost = |order: StepOrder| -> BTreeSet<usize> {
            let states = rollouts.states(&own, order);
            let states = states.iter().filter(|it| it.is_final);
            states.flat_map(|it| own.lost(it)).collect()
        };
        let by_order = orders.iter().map(|it| (*it, lost(*it)));
        let by_order: BTreeMap<StepOrder, BTreeSet<usize>> = by_order.collect();
        let is_mixed_lost = by_order.get(&StepOrder::Mixed).is_some_and(|it| !it.is_empty());
        let needs_background = is_mixed_lost && lost(StepOrder::DeletesFirst).is_empty();
        let of_orders = |is_meant: &dyn Fn(StepOrder) -> bool| {
            let lost: BTreeSet<usize> =
                by_order.iter().filter(|it| is_meant(*it.0)).flat_map(|it| it.1).copied().collect();
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
    places.into_iter().filter_map(|it| objects.get(it)).map(|it| it.name().to_owned()).collect()
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
        places.first().and_then(|it| objects.get(*it)).map(|it| it.name().to_owned())
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
