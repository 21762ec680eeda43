//! Alike clusters: those with the same row in a table, or with the same arrows to the same others. Forms for people show them
//! as one.

use std::collections::{BTreeMap, BTreeSet};

/// The largest number of rows of a table, and of arrows of a picture, that stay apart.
const FEW: usize = 24;

/// The largest number of arrows that stay apart as sentences.
const FEW_SENTENCES: usize = 4;

/// A change from a cluster to another one, such as that of its paths.
pub struct Arrow<'a, L> {
    /// The first cluster.
    pub from: &'a str,
    /// The other one.
    pub to: &'a str,
    /// The change.
    pub label: L,
}

/// The same change from each of some clusters to each of others, or to each other if both are the same clusters.
pub struct AlikeArrows<'l, 'a, L> {
    /// The first clusters.
    pub from: Vec<&'a str>,
    /// The other ones.
    pub to: Vec<&'a str>,
    /// The change.
    pub label: &'l L,
}

impl<L> AlikeArrows<'_, '_, L> {
    /// Returns whether they are between the same clusters.
    pub fn is_mutual(&self) -> bool {
        self.from == self.to
    }

    /// Returns the word before a label of several arrows.
    pub fn each(&self) -> &'static str {
        if self.number() == 1 { "" } else { "each " }
    }

    /// Returns the number of arrows.
    pub fn number(&self) -> usize {
        if self.is_mutual() {
            self.from.len() * (self.from.len() - 1)
        } else {
            self.from.len() * self.to.len()
        }
    }
}

/// An arrow of a cluster: the other one, whether it comes from there, and its label.
type ArrowEnd<'l, 'a, L> = (&'a str, bool, &'l L);

/// The arrows of each cluster.
type ArrowEnds<'l, 'a, L> = BTreeMap<&'a str, BTreeSet<ArrowEnd<'l, 'a, L>>>;

/// Returns arrows in their order, those of alike clusters as one unless there are few.
pub fn folded<'l, 'a, L: Ord>(arrows: &'l [Arrow<'a, L>]) -> Vec<AlikeArrows<'l, 'a, L>> {
    folded_above(arrows, FEW)
}

/// Returns arrows as [`folded`] does, for a list of sentences.
pub fn sentences<'l, 'a, L: Ord>(arrows: &'l [Arrow<'a, L>]) -> Vec<AlikeArrows<'l, 'a, L>> {
    folded_above(arrows, FEW_SENTENCES)
}

fn folded_above<'l, 'a, L: Ord>(
    arrows: &'l [Arrow<'a, L>],
    few: usize,
) -> Vec<AlikeArrows<'l, 'a, L>> {
    let groups = groups_above(arrows, few);
    let mut seen = BTreeSet::new();
    let folded = arrows.iter().filter_map(|arrow| {
        let (from, to) = (groups.get(arrow.from)?, groups.get(arrow.to)?);
        seen.insert((from, to)).then(|| AlikeArrows {
            from: from.clone(),
            to: to.clone(),
            label: &arrow.label,
        })
    });
    folded.collect()
}

/// Returns the clusters that are alike, for each of them. If a cluster is like two others, these are alike, too. An arrow from
/// a cluster to itself is a property of it.
pub fn groups<'a, L: Ord>(arrows: &[Arrow<'a, L>]) -> BTreeMap<&'a str, Vec<&'a str>> {
    groups_above(arrows, 0)
}

fn groups_above<'a, L: Ord>(
    arrows: &[Arrow<'a, L>],
    few: usize,
) -> BTreeMap<&'a str, Vec<&'a str>> {
    let mut ends: ArrowEnds<L> = BTreeMap::new();
    for Arrow { from, to, label } in arrows {
        ends.entry(from).or_default().insert((to, false, label));
        ends.entry(to).or_default().insert((from, true, label));
    }
    let is_few = arrows.len() <= few;
    let mut groups: Vec<Vec<&str>> = Vec::new();
    for name in ends.keys() {
        let is_like = |it: &&mut Vec<&str>| {
            let first = it.first().filter(|_| !is_few);
            first.is_some_and(|it| are_alike(&ends, it, name))
        };
        match groups.iter_mut().find(is_like) {
            Some(group) => group.push(name),
            None => groups.push(vec![name]),
        }
    }
    // Two with arrows between them are clearer apart.
    let is_pair = |group: &[&str]| match group {
        [one, other] => ends.get(one).is_some_and(|it| it.iter().any(|it| it.0 == *other)),
        _ => false,
    };
    let groups = groups.iter();
    let members = groups.flat_map(|group| {
        let is_pair = is_pair(group);
        let all = move |it| if is_pair { vec![it] } else { group.clone() };
        group.iter().map(move |it| (*it, all(*it)))
    });
    members.collect()
}

/// Returns whether two clusters have the same arrows from and to each other, and from and to all others.
fn are_alike<L: Ord>(ends: &ArrowEnds<L>, one: &str, other: &str) -> bool {
    let of = |cluster: &str, is_between: bool| {
        let ends = ends.get(cluster).into_iter().flatten();
        ends.filter(move |it| [one, other].contains(&it.0) == is_between)
    };
    let between = |cluster: &str| {
        let ends = of(cluster, true).map(|it| (it.0 == cluster, it.1, it.2));
        ends.collect::<BTreeSet<_>>()
    };
    of(one, false).eq(of(other, false)) && between(one) == between(other)
}

/// Returns rows in their order, each with the names of all that have it, unless there are few.
pub fn rows<K: Ord, N>(rows: impl IntoIterator<Item = (K, N)>) -> Vec<(K, Vec<N>)> {
    let rows: Vec<(K, N)> = rows.into_iter().collect();
    if rows.len() <= FEW {
        return rows.into_iter().map(|(row, name)| (row, vec![name])).collect();
    }
    grouped(rows)
}

/// Returns keys in the order of their first items, each with its items.
pub fn grouped<K: Ord, T>(items: impl IntoIterator<Item = (K, T)>) -> Vec<(K, Vec<T>)> {
    let mut groups: BTreeMap<K, (usize, Vec<T>)> = BTreeMap::new();
    for (key, item) in items {
        let place = groups.len();
        groups.entry(key).or_insert((place, Vec::new())).1.push(item);
    }
    let mut groups: Vec<(K, (usize, Vec<T>))> = groups.into_iter().collect();
    groups.sort_by_key(|it| it.1.0);
    groups.into_iter().map(|(key, (_, items))| (key, items)).collect()
}

#[cfg(test)]
mod tests;
