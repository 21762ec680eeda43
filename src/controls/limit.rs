//! Limits: the controls of a version as values, and whether one lets more pass than those that it replaces.
//!
//! A version has a limit also where nothing is written, with the default. So a limit that was removed, moved or renamed is
//! compared like one that was edited.

use std::collections::{BTreeMap, BTreeSet};
use std::iter::once;

use super::lineage::{Lineage, counted};
use super::{ControlChange, WrittenValues, are_covered};
use crate::admission::{Enforcement, Guard};
use crate::config::{Date, Ignore};
use crate::name::ClusterName;
use crate::net::Cidr;
use crate::place::Place;
use crate::rules::{self, Rule};

/// A limit of one version.
pub(super) struct Limit<'c> {
    /// The name of those limits that can replace each other if their clusters and meshes are the same.
    pub(super) kind: String,
    /// The cluster that it is about.
    pub(super) cluster: Option<&'c ClusterName>,
    /// The mesh that has it.
    pub(super) mesh: Option<&'c str>,
    /// Its name for people.
    pub(super) subject: String,
    /// Its values as people write them; nothing if it is a default.
    pub(super) written: Option<WrittenValues>,
    /// The things that pass it.
    pub(super) passing: Passing<'c>,
    /// The things that pass all limits of the cluster for the same field, if others exist.
    pub(super) in_effect: Option<Passing<'c>>,
    /// Whether nothing passes without it.
    pub(super) is_permission: bool,
}

/// The things that pass a limit.
#[derive(Clone, Debug, PartialEq)]
pub(super) enum Passing<'c> {
    /// Everything: it decides nothing.
    Undecided,
    /// Addresses.
    Ranges(Vec<Cidr>),
    /// Names; without a list, all.
    Names(Option<BTreeSet<String>>),
    /// Numbers up to one; after a day, up to another one.
    UpTo(u64, Option<(Date, u64)>),
    /// Findings that are hidden.
    Findings(&'c Ignore),
    /// The Peers that a guard accepts; without one, all.
    Peers(Option<Box<GuardRules>>),
}

/// The rules of a guard.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct GuardRules {
    /// The guard that they were printed for.
    pub(super) guard: Guard,
    /// The rules themselves, if they are not those that this version prints for it.
    pub(super) others: Option<String>,
}

impl<'c> Limit<'c> {
    /// Returns a limit of the whole version.
    pub(super) fn new(
        subject: String,
        values: impl IntoIterator<Item = impl ToString>,
        place: Option<Place>,
        passing: Passing<'c>,
    ) -> Self {
        let values = values.into_iter().map(|it| it.to_string()).collect();
        Self {
            kind: subject.clone(),
            cluster: None,
            mesh: None,
            subject,
            written: Some(WrittenValues { values, place }),
            passing,
            in_effect: None,
            is_permission: false,
        }
    }

    /// Returns whether everything passes it that passes a newer one, alone or in effect.
    fn passes(&self, new: &Self) -> bool {
        let [before, after] = [self, new].map(|it| it.in_effect.as_ref().unwrap_or(&it.passing));
        self.passing.includes(&new.passing) || before.includes(after)
    }
}

impl Passing<'_> {
    /// Returns whether it has everything of another one.
    pub(super) fn includes(&self, new: &Self) -> bool {
        match (self, new) {
            (Self::Undecided | Self::Names(None) | Self::Peers(None), _) => true,
            (Self::Ranges(old), Self::Ranges(new)) => are_covered(new, old),
            (Self::Names(Some(old)), Self::Names(Some(new))) => new.is_subset(old),
            (Self::UpTo(_, before), Self::UpTo(_, after)) => {
                let ends = [before, after].into_iter().flatten().map(|it| Some(it.0));
                once(None).chain(ends).all(|day| new.most_after(day) <= self.most_after(day))
            }
            (Self::Peers(Some(old)), Self::Peers(Some(new))) => allowed(old, new).is_empty(),
            _ => false,
        }
    }

    /// Returns the largest number after a day, or in the beginning.
    fn most_after(&self, day: Option<Date>) -> u64 {
        match self {
            Self::UpTo(_, Some((end, then))) if day.is_some_and(|it| *end <= it) => *then,
            Self::UpTo(most, _) => *most,
            _ => 0,
        }
    }
}

/// The limits of the old version with their indexes, by their kinds and the old clusters as which theirs count.
type KnownLimits<'l, 'c> =
    BTreeMap<(&'l str, Option<&'c ClusterName>), Vec<(usize, &'l Limit<'c>)>>;

/// Returns the limits that one version has otherwise than the other.
pub(super) fn changes<'c>(
    old: &[Limit<'c>],
    new: &[Limit<'c>],
    lineage: &Lineage<'c>,
) -> Vec<ControlChange> {
    let mut known: KnownLimits = BTreeMap::new();
    for numbered @ (_, it) in old.iter().enumerate() {
        for cluster in counted(&lineage.before, it.cluster) {
            known.entry((&it.kind, cluster)).or_default().push(numbered);
        }
    }
    let hidden = HiddenFindings::by(old);
    let mut seen = BTreeSet::new();
    let mut changes = Vec::new();
    for it in new {
        let counted = counted(&lineage.now, it.cluster).into_iter();
        let counted = counted.filter_map(|cluster| {
            let all = known.get(&(&*it.kind, cluster))?;
            Some(replaced(lineage, it, cluster, all)).filter(|it| !it.is_empty())
        });
        let counted: Vec<Vec<&(usize, &Limit)>> = counted.collect();
        let is_weaker = match it.passing {
            Passing::Findings(ignore) => !hidden.have(ignore),
            _ if counted.is_empty() => it.is_permission && it.written.is_some(),
            _ => counted.iter().any(|all| !all.iter().any(|old| old.1.passes(it))),
        };
        let replaced = counted.into_iter().flatten();
        let replaced: Vec<&(usize, &Limit)> = replaced.collect();
        let same = replaced.iter().find(|old| old.1.subject == it.subject);
        let before = same.or(replaced.first().filter(|_| it.cluster.is_some()));
        seen.extend(before.map(|it| it.0));
        changes.extend(change(before.map(|it| it.1), Some(it), is_weaker));
    }
    let gone = old.iter().enumerate().filter(|it| !seen.contains(&it.0));
    changes.extend(gone.filter_map(|(_, it)| change(Some(it), None, false)));
    changes
}

/// Returns what differs; nothing if people see no difference. A limit that decides nothing is not reported
/// together with its cluster.
fn change(old: Option<&Limit>, new: Option<&Limit>, is_weaker: bool) -> Option<ControlChange> {
    let limit = new.or(old)?;
    let written = |it: Option<&Limit>| it.and_then(|it| it.written.clone());
    let (before, mut after) = (written(old), written(new));
    let values = |it: &Option<WrittenValues>| it.as_ref().map(|it| it.values.clone());
    let is_same = old.zip(new).is_some_and(|(old, new)| old.passing == new.passing);
    let is_silent = limit.passing == Passing::Undecided && limit.cluster.is_some();
    if !is_weaker && values(&before) == values(&after) && (is_same || before.is_none())
        || is_silent && old.is_none() != new.is_none()
        || before.is_none() && after.is_none()
    {
        return None;
    }
    if let (Some(Passing::Peers(Some(old))), Passing::Peers(Some(new)), Some(after)) =
        (old.map(|it| &it.passing), &limit.passing, &mut after)
    {
        after.values = allowed(old, new);
    }
    Some(ControlChange { subject: limit.subject.clone(), is_weaker, before, after })
}

/// Returns which old limits of a cluster a new one replaces: those of its mesh, else those of meshes that the cluster
/// left, else all. Names that are permitted in one mesh are not permitted in the others.
fn replaced<'l, 'a, 'c>(
    lineage: &Lineage<'c>,
    new: &Limit<'c>,
    cluster: Option<&'c ClusterName>,
    all: &'l [(usize, &'a Limit<'c>)],
) -> Vec<&'l (usize, &'a Limit<'c>)> {
    let own = new.mesh.and_then(|it| lineage.meshes.get(it)).copied();
    let is_left = |it: &Limit<'c>| {
        let both = it.mesh.zip(cluster);
        both.is_some_and(|both| !lineage.kept.contains(&both))
    };
    let of = |is_meant: &dyn Fn(&Limit<'c>) -> bool| -> Vec<&'l (usize, &'a Limit<'c>)> {
        all.iter().filter(|it| is_meant(it.1)).collect()
    };
    let is_own = |it: &Limit| it.is_permission && matches!(it.passing, Passing::Names(_));
    let choices = [of(&|it| it.mesh == own), of(&is_left), of(&|it| !is_own(it))];
    choices.into_iter().find(|it| !it.is_empty()).unwrap_or_default()
}

/// The findings that are hidden: of a rule, of one cluster or all, and of one node or all.
type Hidden<'i> = (&'static Rule, Option<&'i ClusterName>, Option<&'i str>);

/// The findings that a version hides, with the last day; nothing for those without an end.
struct HiddenFindings<'i>(BTreeMap<Hidden<'i>, Option<Date>>);

impl<'i> HiddenFindings<'i> {
    fn by(limits: &[Limit<'i>]) -> Self {
        let mut hidden = BTreeMap::new();
        for limit in limits {
            let Passing::Findings(it) = limit.passing else {
                continue;
            };
            for rule in rules::find(&it.rule) {
                let key = (rule, it.cluster.as_ref(), it.node.as_deref());
                let until = hidden.entry(key).or_insert(it.until);
                *until = until.zip(it.until).map(|(one, other)| one.max(other));
            }
        }
        Self(hidden)
    }

    /// Returns whether everything that a new entry hides is among them, for as long.
    fn have(&self, new: &Ignore) -> bool {
        let (cluster, node) = (new.cluster.as_ref(), new.node.as_deref());
        let is_as_long =
            |old: &Option<Date>| old.is_none_or(|old| new.until.is_some_and(|new| new <= old));
        rules::find(&new.rule).into_iter().all(|rule| {
            let wider = [(cluster, node), (cluster, None), (None, node), (None, None)];
            let mut old =
                wider.iter().filter_map(|(cluster, node)| self.0.get(&(rule, *cluster, *node)));
            old.any(is_as_long)
        })
    }
}

/// Returns what a guard allows that an older one did not.
fn allowed(before: &GuardRules, after: &GuardRules) -> Vec<String> {
    let (old, new) = (&before.guard, &after.guard);
    let mut allowed: Vec<String> =
        new.beyond(old).iter().map(|it| format!("accepts {it}")).collect();
    if after.others.is_some() && before.others != after.others {
        allowed.push("has other rules than clustermesh prints".to_owned());
    }
    let (had, has) = (&old.access, &new.access);
    if had.enforcement == Enforcement::Deny && has.enforcement == Enforcement::Warn {
        allowed.push("only warns".to_owned());
    }
    let is_wider = match (&had.writers, &has.writers) {
        (None, _) => false,
        (Some(_), None) => true,
        (Some(had), Some(has)) => !has.are_within(had),
    };
    if is_wider || !has.peer_writers.are_within(&had.peer_writers) {
        allowed.push("more accounts may write Peers".to_owned());
    }
    let peers = has
        .peers
        .iter()
        .filter(|(name, ranges)| had.peers.get(*name).is_none_or(|old| !are_covered(ranges, old)));
    allowed.extend(peers.map(|it| format!("allows the Peer {}", it.0)));
    allowed
}
