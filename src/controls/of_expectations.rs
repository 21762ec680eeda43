//! Expectations that changed: a denial is kept if the new ones deny all of its paths, under any name and in any file.

use std::cell::Cell;
use std::collections::{BTreeMap, BTreeSet};

use super::lineage::Lineage;
use super::{ControlChange, Controls, WrittenValues};
use crate::diagnostic::Quoted;
use crate::expectations::{Exception, Expectation, Expected, SelectedClusters, Selection};
use crate::mesh::AddressClass;
use crate::name::ClusterName;
use crate::net::Cidr;
use crate::net::prefixes::{Prefixes, Span};
use crate::place::Place;
use crate::text::first;

/// The most names and ranges that are compared for all controls that changed; others count as weaker.
const MOST_COMPARED: usize = 16_000_000;

/// The most clusters that are listed by name.
const LISTED: usize = 8;

/// Both sides of paths.
type Sides<'e> = [&'e Selection; 2];

/// The meaning of a side of an expectation without its selector: clusters, ranges and class.
type SideMeaning<'e> = (Option<Vec<&'e ClusterName>>, Vec<Cidr>, Option<AddressClass>);

/// The expectations of a version, by their names and by what they mean.
#[derive(Default)]
struct KnownExpectations<'e> {
    by_name: BTreeMap<&'e str, Vec<usize>>,
    by_meaning: BTreeMap<([bool; 2], [SideMeaning<'e>; 2]), Vec<usize>>,
}

impl<'e> KnownExpectations<'e> {
    fn new(all: &'e [Expectation]) -> Self {
        let mut known = Self::default();
        for (number, it) in all.iter().enumerate() {
            known.by_meaning.entry(meaning(it)).or_default().push(number);
            if let Some(name) = &it.name {
                known.by_name.entry(name).or_default().push(number);
            }
        }
        known
    }

    /// Returns the numbers of those that an old expectation may have become.
    fn alike(&self, old: &'e Expectation) -> &[usize] {
        let alike = match &old.name {
            Some(name) => self.by_name.get(&**name),
            None => self.by_meaning.get(&meaning(old)),
        };
        alike.map_or(&[], Vec::as_slice)
    }
}

fn meaning(expectation: &Expectation) -> ([bool; 2], [SideMeaning<'_>; 2]) {
    let is_reach = expectation.expected == Expected::Reach;
    let sides = sides(expectation).map(|it| {
        let clusters = it.clusters.as_ref().map(|it| it.members.keys().collect());
        let addresses = Prefixes::union(it.addresses.iter().copied());
        (clusters, addresses.iter().map(|it| it.0).collect(), it.class)
    });
    ([is_reach, expectation.survives_a_node], sides)
}

/// A count of what is still compared.
struct ComparisonBudget {
    left: Cell<usize>,
}

impl ComparisonBudget {
    /// Returns whether two selections may still be compared, in all clusters or in one.
    fn may_compare(&self, one: &Selection, other: &Selection, is_in_one: bool) -> bool {
        let clusters = |it: &Selection| it.clusters.as_ref().map_or(0, |it| it.members.len());
        let clusters = if is_in_one { 1 } else { 1 + clusters(one) + clusters(other) };
        let spent = clusters + one.addresses.len() + other.addresses.len();
        let left = self.left.get().checked_sub(spent);
        self.left.set(left.unwrap_or_default());
        left.is_some()
    }

    /// Returns whether a selection has everything of another one; not if too much is compared.
    fn covers(&self, wide: &Selection, narrow: &Selection) -> bool {
        self.may_compare(wide, narrow, false) && covers(wide, narrow)
    }
}

/// Returns the expectations, the exceptions and the general denial that one version has otherwise than the other.
pub(super) fn changes(old: &Controls, new: &Controls, lineage: &Lineage) -> Vec<ControlChange> {
    let compared = ComparisonBudget { left: Cell::new(MOST_COMPARED) };
    let denials: Vec<Sides> = denials(new).map(sides).collect();
    let (had, has) = (&old.expectations.expectations, &new.expectations.expectations);
    let surviving: Vec<Sides> = has.iter().filter(|it| it.survives_a_node).map(sides).collect();
    let known = KnownExpectations::new(has);
    let mut changes = Vec::new();
    let mut seen: BTreeSet<usize> = BTreeSet::new();
    for it in had {
        let mut alike = known.alike(it).iter().copied();
        let same = alike.find(|number| {
            !seen.contains(number) && (it.name.is_some() || is_same(it, &has[*number]))
        });
        seen.extend(same);
        let same = same.map(|it| &has[it]);
        if same.is_some_and(|other| is_same(it, other)) {
            continue;
        }
        // That paths work is judged in the new version, but not that they survive.
        let keeping = match it.expected {
            Expected::Deny => Some(&denials),
            Expected::Reach => it.survives_a_node.then_some(&surviving),
        };
        let is_kept = keeping.is_none_or(|all| are_kept(sides(it), all, lineage, &compared));
        changes.push(ControlChange {
            subject: subject(it),
            is_weaker: !is_kept || same.is_some_and(|it| prolongs(old, it, &compared)),
            before: Some(written(it)),
            after: same.map(written),
        });
    }
    let added = has.iter().enumerate().filter(|it| !seen.contains(&it.0));
    changes.extend(added.map(|(_, it)| ControlChange {
        subject: subject(it),
        is_weaker: prolongs(old, it, &compared),
        before: None,
        after: Some(written(it)),
    }));
    changes.extend(of_undeclared(old, new, &compared));
    changes
}

/// Compares `undeclared: Deny` and its exceptions.
fn of_undeclared(
    old: &Controls,
    new: &Controls,
    compared: &ComparisonBudget,
) -> Vec<ControlChange> {
    let [before, after] = [old, new].map(|it| it.expectations.denied.as_ref());
    let value = |place: &Place| WrittenValues {
        values: vec!["Deny".to_owned()],
        place: Some(place.clone()),
    };
    let mut changes = Vec::new();
    if before.is_some() != after.is_some() {
        changes.push(ControlChange {
            subject: "`undeclared`".to_owned(),
            is_weaker: after.is_none(),
            before: before.map(|it| value(&it.place)),
            after: after.map(|it| value(&it.place)),
        });
    }
    let [had, has] = [before, after].map(|it| it.map_or(&[][..], |it| &it.exceptions));
    let [by_old_name, by_new_name] = [had, has].map(|it| {
        let by_name = it.iter().rev().map(|it| (&it.name, it));
        by_name.collect::<BTreeMap<&String, &Exception>>()
    });
    let allows = |old: &Exception, new: &Exception| {
        let is_as_long = old.until.is_none_or(|old| new.until.is_some_and(|new| new <= old));
        is_as_long && compared.covers(&old.from, &new.from) && compared.covers(&old.to, &new.to)
    };
    for it in has {
        let same = by_old_name.get(&it.name).copied();
        if same.is_some_and(|old| allows(old, it) && allows(it, old)) {
            continue;
        }
        changes.push(ControlChange {
            subject: format!("exception {}", Quoted(&it.name)),
            is_weaker: before.is_some() && !had.iter().any(|old| allows(old, it)),
            before: same.map(written_exception),
            after: Some(written_exception(it)),
        });
    }
    let gone = had.iter().filter(|it| !by_new_name.contains_key(&it.name));
    changes.extend(gone.map(|it| ControlChange {
        subject: format!("exception {}", Quoted(&it.name)),
        is_weaker: false,
        before: Some(written_exception(it)),
        after: None,
    }));
    changes
}

fn denials<'c>(controls: &Controls<'c>) -> impl Iterator<Item = &'c Expectation> {
    controls.expectations.expectations.iter().filter(|it| it.expected == Expected::Deny)
}

fn sides(expectation: &Expectation) -> Sides<'_> {
    [&expectation.from, &expectation.to]
}

/// Returns whether two expectations are about the same, also in different files.
fn is_same(one: &Expectation, other: &Expectation) -> bool {
    one.expected == other.expected
        && one.survives_a_node == other.survives_a_node
        && sides(one)
            .into_iter()
            .zip(sides(other))
            .all(|(one, other)| covers(one, other) && covers(other, one))
}

/// Returns whether some expectations are about all paths of an old one: one of them is, or one for each pair of its clusters.
fn are_kept(old: Sides, new: &[Sides], lineage: &Lineage, compared: &ComparisonBudget) -> bool {
    let has = |new: &SelectedClusters, old: &ClusterName| {
        lineage.has_all(old, |it| new.members.contains_key(it))
    };
    let is_covered = |of: [Option<&ClusterName>; 2]| {
        new.iter().any(|new| {
            let mut sides = new.iter().zip(old).zip(of);
            sides.all(|((new, old), cluster)| {
                compared.may_compare(new, old, cluster.is_some())
                    && has_parts(new, old, cluster, has)
            })
        })
    };
    if is_covered([None, None]) {
        return true;
    }
    let clusters = old.map(|it| it.clusters.as_ref());
    let [Some(from), Some(to)] = clusters else {
        return false;
    };
    let (from, to) = (from.members.keys(), to.members.keys());
    let pairs = from.flat_map(|one| to.clone().map(move |other| [one, other]));
    pairs.filter(|[one, other]| one != other).all(|pair| is_covered(pair.map(Some)))
}

/// Returns whether a selection has everything of another one.
fn covers(wide: &Selection, narrow: &Selection) -> bool {
    has_parts(wide, narrow, None, |wide, it| wide.members.contains_key(it))
}

/// Returns whether a selection has everything of another one, or all that it has of a cluster, where `has` finds clusters.
fn has_parts(
    wide: &Selection,
    narrow: &Selection,
    cluster: Option<&ClusterName>,
    has: impl Fn(&SelectedClusters, &ClusterName) -> bool,
) -> bool {
    let has_clusters = match (&wide.clusters, &narrow.clusters, cluster) {
        (None, _, _) => true,
        (Some(wide), _, Some(cluster)) => has(wide, cluster),
        (Some(wide), Some(narrow), None) => narrow.members.keys().all(|it| has(wide, it)),
        (Some(_), None, None) => false,
    };
    let has_addresses = wide.addresses.is_empty() || {
        let ranges = Prefixes::union(wide.addresses.iter().copied());
        !narrow.addresses.is_empty() && narrow.addresses.iter().all(|it| ranges.contain(*it))
    };
    has_clusters
        && has_addresses
        && (wide.nodes.is_none() || wide.nodes == narrow.nodes)
        && (wide.class.is_none() || wide.class == narrow.class)
}

/// Returns whether an expectation allows for good what the old version allowed until a day: with `undeclared: Deny`, paths
/// that must work are allowed.
fn prolongs(old: &Controls, new: &Expectation, compared: &ComparisonBudget) -> bool {
    let reached = |it: &&Expectation| it.expected == Expected::Reach;
    let has_all =
        |it: &Expectation| compared.covers(&it.from, &new.from) && compared.covers(&it.to, &new.to);
    let mut ending = old.expectations.denied.iter().flat_map(|it| &it.exceptions);
    let may_meet = |one: &Selection, other: &Selection| {
        !compared.may_compare(one, other, false) || meet(one, other)
    };
    new.expected == Expected::Reach
        && ending.any(|it| {
            it.until.is_some() && may_meet(&it.from, &new.from) && may_meet(&it.to, &new.to)
        })
        && !old.expectations.expectations.iter().filter(reached).any(has_all)
}

/// Returns whether two selections may have addresses in common.
fn meet(one: &Selection, other: &Selection) -> bool {
    let clusters = one.clusters.as_ref().zip(other.clusters.as_ref());
    let has_common = |(one, other): (&SelectedClusters, &SelectedClusters)| {
        one.members.keys().any(|it| other.members.contains_key(it))
    };
    let ranges = Prefixes::union(one.addresses.iter().copied());
    let mut addresses = other.addresses.iter().map(|it| Span::new(*it));
    let is_any = one.addresses.is_empty() || other.addresses.is_empty();
    clusters.is_none_or(has_common)
        && (is_any || addresses.any(|it| ranges.meets(it)))
        && (one.class.is_none() || other.class.is_none() || one.class == other.class)
}

fn subject(expectation: &Expectation) -> String {
    match &expectation.name {
        Some(name) => format!("expectation {}", Quoted(name)),
        None => "expectation without a name".to_owned(),
    }
}

fn written(expectation: &Expectation) -> WrittenValues {
    let expected = match expectation.expected {
        Expected::Reach if expectation.survives_a_node => "Reach, and survive",
        Expected::Reach => "Reach",
        Expected::Deny => "Deny",
    };
    let paths = paths(&expectation.from, &expectation.to);
    WrittenValues {
        values: vec![format!("{expected} {paths}")],
        place: Some(expectation.place.clone()),
    }
}

fn written_exception(exception: &Exception) -> WrittenValues {
    let until = exception.until.map(|it| format!(" until {it}")).unwrap_or_default();
    let paths = paths(&exception.from, &exception.to);
    WrittenValues { values: vec![format!("{paths}{until}")], place: Some(exception.place.clone()) }
}

fn paths(from: &Selection, to: &Selection) -> String {
    format!("{} → {}", selected(from), selected(to))
}

/// Returns what a selection has, in a few words.
fn selected(selection: &Selection) -> String {
    let clusters = match &selection.clusters {
        None => "any cluster".to_owned(),
        Some(clusters) => {
            let members = first(LISTED, clusters.members.keys());
            match &clusters.group {
                Some(group) => format!("{group} ({members})"),
                None => members,
            }
        }
    };
    let class = selection.class.map(|it| format!("class {it:?}"));
    let nodes = selection.nodes.as_ref().map(|it| it.conditions().join(", "));
    let nodes = nodes.map(|it| if it.is_empty() { "all nodes".to_owned() } else { it });
    let addresses =
        (!selection.addresses.is_empty()).then(|| first(LISTED, selection.addresses.iter()));
    let more: Vec<String> = [class, nodes, addresses].into_iter().flatten().collect();
    if more.is_empty() { clusters } else { format!("{clusters}, {}", more.join(", ")) }
}
