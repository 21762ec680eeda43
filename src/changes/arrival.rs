//! Arrivals: the states in which an agent can be while the objects of a target arrive one after another
//! (`kilo.md` §2.2).
//!
//! An agent keeps Peers by key. An event of a Peer removes its old key and sets its new one, and a
//! deletion removes its key, even if the key belongs to another Peer by then (`syncPeers`).

use std::collections::{BTreeMap, BTreeSet};

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

/// The objects that an agent knows, by key.
pub(super) type Memory = BTreeMap<[u8; 32], Known>;

/// A state of an agent.
#[derive(Clone, Debug, Eq, Ord, PartialEq, PartialOrd)]
pub(super) struct ArrivalState {
    /// The Peers that it has.
    pub(super) memory: Memory,
    /// True if everything has arrived, so that the state stays until the agent lists all Peers
    /// again.
    pub(super) is_final: bool,
}

/// A step of a delivery.
#[derive(Clone, Copy, Debug, Eq, Ord, PartialEq, PartialOrd)]
pub(super) struct Event {
    /// The object.
    pub(super) object: usize,
    /// True if it is deleted; otherwise it is created or changed.
    pub(super) is_deletion: bool,
}

impl<'a> Object<'a> {
    /// Takes an object to which nothing happens.
    pub(super) fn staying(content: &'a Applied) -> Self {
        Self {
            old: Some(content),
            new: Some(content),
        }
    }

    /// Returns its name.
    pub(super) fn name(&self) -> &'a str {
        let either = self.new.or(self.old);
        either.map_or("", |it| it.name.as_str())
    }

    /// Returns its content in a version.
    pub(super) fn content(&self, is_new: bool) -> Option<&'a Applied> {
        if is_new { self.new } else { self.old }
    }

    /// Returns its key in a version. A Peer that no agent accepts has none.
    pub(super) fn key(&self, is_new: bool) -> Option<[u8; 32]> {
        let content = self.content(is_new)?;
        Some(content.spec.as_ref().ok()?.key)
    }

    /// Returns the step that it needs, if it needs one.
    fn event(&self, object: usize) -> Option<Event> {
        match (self.old, self.new) {
            (Some(old), Some(new)) if old.spec == new.spec => None,
            (None, None) => None,
            (_, new) => Some(Event {
                object,
                is_deletion: new.is_none(),
            }),
        }
    }
}

/// Some objects of a target, whose orders are tried.
pub(super) struct Arrivals<'o, 'a> {
    objects: &'o [Object<'a>],
    events: Vec<Event>,
}

impl<'o, 'a> Arrivals<'o, 'a> {
    /// Takes objects.
    pub(super) fn new(objects: &'o [Object<'a>]) -> Self {
        let events = objects.iter().enumerate();
        let events = events.filter_map(|(place, it)| it.event(place));
        Self {
            objects,
            events: events.collect(),
        }
    }

    /// Returns every state in which an agent can be, with all sequences of steps that an order allows. Of two Peers that
    /// have one key already, either may be the one that the agent has.
    pub(super) fn states(&self, order: StepOrder) -> BTreeSet<ArrivalState> {
        let mut found = BTreeSet::new();
        let mut seen: BTreeSet<(BTreeSet<Event>, Memory)> = BTreeSet::new();
        let starts = self.starts().into_iter();
        let mut open: Vec<(BTreeSet<Event>, Memory)> =
            starts.map(|it| (BTreeSet::new(), it)).collect();
        while let Some((done, memory)) = open.pop() {
            if !seen.insert((done.clone(), memory.clone())) {
                continue;
            }
            found.insert(ArrivalState {
                memory: memory.clone(),
                is_final: done.len() == self.events.len(),
            });
            for event in self.next(order, &done) {
                let mut done = done.clone();
                done.insert(event);
                open.push((done, self.after(memory.clone(), event)));
            }
        }
        found
    }

    /// Returns the objects of which an agent should have the new content in the end.
    pub(super) fn wanted(&self) -> BTreeMap<usize, [u8; 32]> {
        let objects = self.objects.iter().enumerate();
        let keyed = objects.filter_map(|(place, it)| Some((place, it.key(true)?)));
        keyed.collect()
    }

    /// Returns what an agent may have before the first step.
    fn starts(&self) -> Vec<Memory> {
        let mut by_key: BTreeMap<[u8; 32], Vec<Known>> = BTreeMap::new();
        for (object, it) in self.objects.iter().enumerate() {
            if let Some(key) = it.key(false) {
                let is_new = false;
                by_key
                    .entry(key)
                    .or_default()
                    .push(Known { object, is_new });
            }
        }
        let mut starts = vec![Memory::new()];
        for (key, choices) in by_key {
            let with = |start: Memory| {
                let choices = choices.iter().copied();
                choices.map(move |known| {
                    let mut start = start.clone();
                    start.insert(key, known);
                    start
                })
            };
            starts = starts.into_iter().flat_map(with).collect();
        }
        starts
    }

    /// Returns the steps that may come next.
    fn next(&self, order: StepOrder, done: &BTreeSet<Event>) -> Vec<Event> {
        let left: Vec<Event> = self
            .events
            .iter()
            .filter(|it| !done.contains(it))
            .copied()
            .collect();
        let is_first = |it: &Event| match order {
            StepOrder::AppliesFirst => !it.is_deletion,
            StepOrder::DeletesFirst => it.is_deletion,
            StepOrder::Mixed => true,
        };
        let first: Vec<Event> = left.iter().copied().filter(is_first).collect();
        if first.is_empty() { left } else { first }
    }

    /// Returns what an agent has after a step (`syncPeers`). It ignores events about Peers that it does
    /// not accept.
    fn after(&self, mut memory: Memory, event: Event) -> Memory {
        let Some(object) = self.objects.get(event.object) else {
            return memory;
        };
        let old = object.key(false);
        if event.is_deletion {
            old.map(|key| memory.remove(&key));
            return memory;
        }
        let Some(key) = object.key(true) else {
            return memory;
        };
        if let Some(old) = old.filter(|old| *old != key) {
            memory.remove(&old);
        }
        memory.insert(
            key,
            Known {
                object: event.object,
                is_new: true,
            },
        );
        memory
    }
}

/// Returns the objects whose key nothing has any more.
pub(super) fn lost<'w>(
    memory: &Memory,
    wanted: &'w BTreeMap<usize, [u8; 32]>,
) -> impl Iterator<Item = usize> + use<'w> {
    let keys: BTreeSet<[u8; 32]> = memory.keys().copied().collect();
    let lost = wanted.iter().filter(move |it| !keys.contains(it.1));
    lost.map(|it| *it.0)
}
