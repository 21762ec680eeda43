//! Rollout tables: the tables that a target's agents can have between the old and the new version.
//!
//! The fate of a packet depends only on the Peers around its addresses, and on those with the keys of
//! its ends. So only Peers that share a key, a segment or addresses are tried together; the states of
//! others are combined in the same tables.

use std::collections::{BTreeMap, BTreeSet};
use std::mem;
use std::sync::Arc;

use super::blocks::FollowedAddresses;
use super::peer_change::PeerDifferences;
use super::rollout_states::{KeyMove, KnownRollouts, MOST_OBJECTS, Object, Rollout};
use crate::agent::applied::{Applied, AppliedFile};
use crate::agent::comparison::Pair;
use crate::agent::fabric::{Fabric, Holding, SiteId};
use crate::agent::peers::has_same_routes;
use crate::engine::StepOrder;
use crate::kilo::id::SegmentId;
use crate::net::Cidr;
use crate::net::prefixes::{Prefixes, Span};

/// The most tables between the old and the new one that are proved for a target.
const MOST_TABLES: usize = 24;

/// The states of a target's agents between the old and the new version.
#[derive(Default)]
pub(super) struct RolloutTables<'s> {
    /// The tables, apart from the old and the new one.
    pub(super) tables: Vec<TransientTable<'s>>,
    /// Peers whose keys move.
    pub(super) key_moves: Vec<KeyMove>,
    /// Peers of which not every order was tried.
    pub(super) unproven: BTreeSet<String>,
    /// The number of states.
    pub(super) states: usize,
}

/// A table between the old and the new one. All Peers that it does not name are the new ones.
pub(super) struct TransientTable<'s> {
    /// The names of new Peers that it does not have.
    absent: BTreeSet<&'s str>,
    /// The old Peers that it has.
    old: Vec<&'s Applied>,
    /// True if everything has arrived, but a Peer is missing.
    pub(super) is_final: bool,
}

/// Objects that are tried together, and all states but the old and the new one.
struct Trial {
    objects: Vec<usize>,
    states: Arc<[TrialState]>,
}

struct TrialState {
    /// The version of each object, or nothing if the agent does not have it.
    versions: Vec<Option<bool>>,
    is_final: bool,
}

/// Trials in some orders of steps. Many are of equal objects.
struct Trials<'o> {
    orders: &'o BTreeSet<StepOrder>,
    rollouts: KnownRollouts,
    states: BTreeMap<Rollout, Arc<[TrialState]>>,
}

impl<'s> RolloutTables<'s> {
    /// Finds the tables of a target that has the nodes of the new version.
    pub(super) fn find(
        target: SiteId,
        peers: &PeerDifferences<'s>,
        followed: &FollowedAddresses,
        orders: &BTreeSet<StepOrder>,
    ) -> Self {
        if are_independent(peers, target, followed.fabric) {
            return Self::default();
        }
        let objects = objects(peers);
        let groups = Groups::new(&objects, followed.fabric);
        let mut tables = Self::default();
        let mut known =
            Trials { orders, rollouts: KnownRollouts::default(), states: BTreeMap::new() };
        let mut trials = Vec::new();
        for group in groups.members.iter().filter(|it| !it.is_empty()) {
            let members: Vec<Object> =
                group.iter().filter_map(|it| objects.get(*it).copied()).collect();
            let moved = KeyMove::find(&members, orders, &mut known.rollouts);
            tables.key_moves.extend(moved);
        }
        let sets = groups.sets(&objects, followed);
        tables.give_up(&objects, &sets.too_many);
        for set in sets.tried {
            let trial = known.of(&objects, set);
            tables.states += trial.states.len();
            if !trial.states.is_empty() {
                trials.push(trial);
            }
        }
        let (rounds, rest) = rounds(trials);
        for trial in &rest {
            tables.give_up(&objects, &trial.objects);
        }
        for round in rounds {
            let count = round.iter().map(|it| it.states.len()).max();
            let count = count.unwrap_or_default();
            if MOST_TABLES < tables.tables.len() + count {
                for trial in &round {
                    tables.give_up(&objects, &trial.objects);
                }
                continue;
            }
            for place in 0..count {
                let states = round.iter().filter_map(|it| it.state(place));
                let table = TransientTable::new(&objects, states);
                tables.tables.push(table);
            }
        }
        tables
    }

    fn give_up<'p>(&mut self, objects: &[Object], set: impl IntoIterator<Item = &'p usize>) {
        self.unproven.extend(
            set.into_iter().filter_map(|it| objects.get(*it)).map(|it| it.name().to_owned()),
        );
    }
}

/// Returns the objects that change, and those that stay and share a key with them.
fn objects<'s>(peers: &PeerDifferences<'s>) -> Vec<Object<'s>> {
    let changes = peers.changes().map(|pair| match pair {
        Pair::Same(peer) => Object::staying(peer.applied),
        Pair::Changed { before, after } => {
            Object { old: Some(before.applied), new: Some(after.applied) }
        }
        Pair::Added(after) => Object { old: None, new: Some(after.applied) },
        Pair::Removed(before) => Object { old: Some(before.applied), new: None },
    });
    let mut objects: Vec<Object> = changes.collect();
    let keys = objects.iter().flat_map(|it| [it.key(false), it.key(true)]);
    let keys: BTreeSet<[u8; 32]> = keys.flatten().collect();
    objects.extend(peers.staying(&keys).map(Object::staying));
    objects
}

/// Sets of objects that have to be tried together.
#[derive(Default)]
struct TrialSets {
    tried: Vec<Vec<usize>>,
    /// The objects of sets that are too large.
    too_many: Vec<usize>,
}

/// Objects that share a key, or lead to one segment.
struct Groups {
    /// The group of each object.
    of: Vec<usize>,
    /// By group, in order; none of a group that was joined with another one.
    members: Vec<Vec<usize>>,
}

impl Groups {
    fn new(objects: &[Object], fabric: &Fabric) -> Self {
        let mut groups = Self {
            of: (0..objects.len()).collect(),
            members: (0..objects.len()).map(|it| vec![it]).collect(),
        };
        let mut keys: BTreeMap<[u8; 32], usize> = BTreeMap::new();
        let mut segments: BTreeMap<(usize, SegmentId), usize> = BTreeMap::new();
        for (place, object) in objects.iter().enumerate() {
            for key in [object.key(false), object.key(true)].into_iter().flatten() {
                if let Some(first) = keys.get(&key) {
                    groups.join(*first, place);
                    continue;
                }
                keys.insert(key, place);
                for at in fabric.holders(&key) {
                    let Some(segment) = fabric.site(at.site).segment(at.node) else {
                        continue;
                    };
                    let of_site = (at.site.index(), segment);
                    let first = *segments.entry(of_site).or_insert(place);
                    groups.join(first, place);
                }
            }
        }
        groups.members.iter_mut().for_each(|it| it.sort_unstable());
        groups
    }

    fn join(&mut self, one: usize, other: usize) {
        let (Some(&keep), Some(&gone)) = (self.of.get(one), self.of.get(other)) else {
            return;
        };
        if keep == gone {
            return;
        }
        let size = |group: usize| self.members.get(group).map(Vec::len);
        let (keep, gone) = if size(keep) < size(gone) { (gone, keep) } else { (keep, gone) };
        let moved = self.members.get_mut(gone).map(mem::take).unwrap_or_default();
        for place in &moved {
            if let Some(group) = self.of.get_mut(*place) {
                *group = keep;
            }
        }
        if let Some(members) = self.members.get_mut(keep) {
            members.extend(moved);
        }
    }

    /// Returns whether an object shares its key and its segment with no other.
    fn is_alone(&self, object: usize) -> bool {
        self.of.get(object).and_then(|it| self.members.get(*it)).is_some_and(|it| it.len() == 1)
    }

    /// Returns the objects that have to be tried together: each group of several, and the groups that
    /// meet at addresses of a cluster.
    fn sets(&self, objects: &[Object], followed: &FollowedAddresses) -> TrialSets {
        let meetings = meetings(objects, followed, |it| self.is_alone(it)).into_iter();
        let groups =
            meetings.map(|it| sorted(it.iter().filter_map(|it| self.of.get(*it)).collect()));
        // Most of the objects of a large group meet, each pair at other addresses.
        let groups = sorted(groups.chain(self.of.iter().map(|it| vec![it])).collect());
        let (mut sets, mut too_many) = (TrialSets::default(), Vec::<&usize>::new());
        for set in groups {
            let members = || set.iter().filter_map(|it| self.members.get(**it));
            match members().map(Vec::len).sum() {
                ..2 => {}
                2..=MOST_OBJECTS => sets.tried.push(sorted(members().flatten().copied().collect())),
                _ => too_many.extend(set),
            }
        }
        let too_many = sorted(too_many).into_iter();
        sets.too_many =
            too_many.filter_map(|it| self.members.get(*it)).flatten().copied().collect();
        sets.tried = sorted(sets.tried);
        sets
    }
}

/// Returns things in order, each once.
fn sorted<T: Ord>(mut things: Vec<T>) -> Vec<T> {
    things.sort_unstable();
    things.dedup();
    things
}

/// Returns the objects that have ranges around the same addresses of a cluster, or around the same
/// endpoint.
fn meetings(
    objects: &[Object],
    followed: &FollowedAddresses,
    is_alone: impl Fn(usize) -> bool,
) -> Vec<Vec<usize>> {
    let mut claims: Vec<(Cidr, usize)> = Vec::new();
    for (place, object) in objects.iter().enumerate() {
        let contents = [object.old, object.new].into_iter().flatten();
        let specs = contents.filter_map(|it| it.spec.as_ref().ok());
        let ranges = specs.flat_map(|it| &it.allowed_ips);
        claims.extend(ranges.map(|it| (it.interface.network, place)));
    }
    let claims = Prefixes::new(claims);
    let mut meetings = Vec::new();
    for (range, _) in claims.iter() {
        let mut meeting: Vec<usize> = Vec::new();
        // A Peer that always has a range keeps the addresses from all wider ones.
        for (range, places) in claims.around(Span::new(range)).map(|it| claims.at(it)) {
            meeting.extend(places);
            let mut alone = places.iter().filter(|it| is_alone(**it));
            if alone.any(|it| has_always(objects, *it, range)) {
                break;
            }
        }
        let is_dialled = || followed.fabric.dialled(range).next().is_some();
        let meeting = sorted(meeting);
        if 1 < meeting.len() && (followed.meet(range) || is_dialled()) {
            meetings.push(meeting);
        }
    }
    sorted(meetings)
}

/// Returns whether an object has a range in both versions, with one key.
fn has_always(objects: &[Object], place: usize, range: Cidr) -> bool {
    let Some(object) = objects.get(place) else {
        return false;
    };
    let key = object.key(false);
    let mut specs =
        [object.old, object.new].into_iter().map(|it| it.and_then(|it| it.spec.as_ref().ok()));
    key.is_some()
        && specs.all(|it| {
            it.is_some_and(|it| {
                let mut allowed = it.allowed_ips.iter();
                Some(it.key) == key && allowed.any(|it| it.interface.network == range)
            })
        })
}

impl Trials<'_> {
    /// Tries all orders of some objects.
    fn of(&mut self, objects: &[Object], set: Vec<usize>) -> Trial {
        let members = set.iter().filter_map(|it| objects.get(*it).copied());
        let members: Vec<Object> = members.collect();
        let rollout = Rollout::new(&members);
        let known = self.states.get(&rollout).map(Arc::clone);
        Trial { objects: set, states: known.unwrap_or_else(|| self.tried(rollout)) }
    }

    fn tried(&mut self, rollout: Rollout) -> Arc<[TrialState]> {
        let mut found: BTreeMap<Vec<Option<bool>>, bool> = BTreeMap::new();
        for order in self.orders {
            for state in &*self.rollouts.states(&rollout, *order) {
                *found.entry(rollout.versions(state)).or_default() |= state.is_final;
            }
        }
        let ends = [false, true].map(|is_new| rollout.unified(rollout.whole(is_new)));
        let states = found.into_iter().map(|(versions, is_final)| TrialState {
            versions: rollout.unified(versions),
            is_final,
        });
        let states: Arc<[TrialState]> = states.filter(|it| !ends.contains(&it.versions)).collect();
        self.states.insert(rollout, Arc::clone(&states));
        states
    }
}

impl Trial {
    /// Returns a state, with its objects.
    fn state(&self, place: usize) -> Option<(&[usize], &TrialState)> {
        Some((&self.objects, self.states.get(place)?))
    }
}

/// Puts trials together that have no object in common, and returns those for which the most rounds have no place.
fn rounds(trials: Vec<Trial>) -> (Vec<Vec<Trial>>, Vec<Trial>) {
    let mut rounds: Vec<(BTreeSet<usize>, Vec<Trial>)> = Vec::new();
    let mut rest = Vec::new();
    for trial in trials {
        let is_full = rounds.len() == MOST_TABLES;
        let mut free = rounds.iter_mut();
        match free.find(|it| trial.objects.iter().all(|object| !it.0.contains(object))) {
            Some(round) => {
                round.0.extend(&trial.objects);
                round.1.push(trial);
            }
            // Each round needs a table.
            None if is_full => rest.push(trial),
            None => rounds.push((trial.objects.iter().copied().collect(), vec![trial])),
        }
    }
    (rounds.into_iter().map(|it| it.1).collect(), rest)
}

impl<'s> TransientTable<'s> {
    /// Combines some states of objects.
    fn new<'t>(
        objects: &[Object<'s>],
        states: impl Iterator<Item = (&'t [usize], &'t TrialState)>,
    ) -> Self {
        let mut table = Self { absent: BTreeSet::new(), old: Vec::new(), is_final: false };
        for (places, state) in states {
            table.is_final |= state.is_final;
            for (place, version) in places.iter().zip(&state.versions) {
                let Some(object) = objects.get(*place) else {
                    continue;
                };
                if *version != Some(true) {
                    table.absent.insert(object.name());
                }
                if *version == Some(false) {
                    table.old.extend(object.old);
                }
            }
        }
        table
    }

    /// Returns its Peers, given those of the new version.
    pub(super) fn files(&self, new: &[AppliedFile]) -> Vec<AppliedFile> {
        let mut files: Vec<AppliedFile> = new.iter().map(|it| without(it, &self.absent)).collect();
        if !self.old.is_empty() {
            let old = self.old.iter().map(|it| (*it).clone());
            files.push(AppliedFile::of_peers(&Arc::from(""), old.collect()));
        }
        files
    }
}

fn without(file: &AppliedFile, absent: &BTreeSet<&str>) -> AppliedFile {
    let is_absent = |it: &Applied| absent.contains(it.name.as_str());
    if !file.content.peers.iter().any(is_absent) {
        return file.clone();
    }
    let present = file.content.peers.iter().filter(|it| !is_absent(it)).cloned();
    AppliedFile::of_peers(&file.source, present.collect())
}

/// Returns whether nothing of any Peer of a target that changes depends on another Peer: each keeps its key
/// and its ranges, and no other has them or leads to its segment.
fn are_independent(peers: &PeerDifferences, target: SiteId, fabric: &Fabric) -> bool {
    let model = &peers.after.model;
    if !model.contests.is_empty() || !model.tunnels.are_unique() {
        return false;
    }
    let have_same_routes = peers.have_same_routes();
    let mut segments = Vec::with_capacity(peers.pairs.len());
    for pair in &peers.pairs {
        let Pair::Changed { before, after } = *pair else {
            return false;
        };
        let new = &model.peers[after];
        let keeps_all = new.share().is_some_and(|it| it.lost().is_empty());
        let old = || &peers.now.model.peers[before];
        let has_same_routes = || have_same_routes || has_same_routes(old().applied, new.applied);
        if !keeps_all || !has_same_routes() {
            return false;
        }
        match fabric.holding(target, after) {
            Holding::Nobody => {}
            Holding::One(at) => {
                segments.extend(fabric.site(at.site).segment(at.node).map(|it| (at.site, it)));
            }
            Holding::Many => return false,
        }
    }
    segments.sort_unstable();
    segments.windows(2).all(|pair| match pair {
        [one, other] => one != other,
        _ => true,
    })
}
