//! Expectations, compared with the reachable paths.

use rayon::prelude::*;

use super::excused::Excused;
use super::reach::Reach;
use crate::agent::fabric::{AwakeClusters, Fabric, NodeRef, SiteId, Sites};
use crate::expectations::{Expectation, Expected, Selection};
use crate::kilo::id::NodeId;
use crate::net::Family;
use crate::net::prefixes::Span;
use crate::packet::trace::Trace;
use crate::packet::{Doubt, Ending};
use meant::{Chosen, Stock, TakenAddresses};

pub(super) use judge::{ExpectationJudge, keeps_for_certain};
pub(super) use meant::{Meant, OldBlock};
pub(super) use packets::traces;

mod group;
mod judge;
pub(super) mod masked;
mod meant;
mod packets;
mod survival;

pub use survival::{MeantBlocks, Survival};

/// The result of an expectation.
#[derive(Clone, Debug)]
pub struct Check<'e> {
    /// The expectation.
    pub expectation: &'e Expectation,
    /// The number of paths that it matches, between nodes and ranges that it names.
    pub pairs: u64,
    /// The number of paths that break it.
    pub broken: u64,
    /// The number of paths of `Reach` that fail only because of what a few nodes report, or because a few nodes take no
    /// part. They do not break it.
    pub excused: u64,
    /// The smallest packet of these paths.
    pub excused_example: Option<Trace>,
    /// The smallest packet that does.
    pub counterexample: Option<Trace>,
    /// The number of paths of `Reach` that work only under a condition.
    pub assumed: u64,
    /// The part of its meaning that does not exist.
    pub unmatched: Vec<MatchesNothing>,
    /// The effect of losses on its paths, if they must survive any.
    pub survival: Option<Survival>,
}

/// Something that an expectation means and that is not there: it may be a typo, and what is about
/// nothing always holds.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub enum MatchesNothing {
    /// No cluster has the name.
    Cluster {
        /// The side.
        side: ExpectationSide,
        /// The index of the cluster in the order of names.
        index: usize,
    },
    /// Nothing of what is meant has any of these addresses.
    Addresses {
        /// The side.
        side: ExpectationSide,
        /// The index of the range.
        index: usize,
    },
    /// There is nothing of all that must hold.
    Nothing(ExpectationSide),
    /// Both sides are in this cluster only.
    OneCluster(SiteId),
    /// One side has IPv4 addresses only and the other IPv6.
    Families,
}

/// A side of an expectation.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub enum ExpectationSide {
    /// The sender.
    From,
    /// The receiver.
    To,
}

impl Check<'_> {
    /// Returns the number of paths that are not as they are expected, for any reason.
    pub fn failing(&self) -> u64 {
        self.broken + self.excused
    }

    /// Returns whether it is about something and all of that is as it is expected.
    pub fn holds(&self) -> bool {
        let survival = self.survival.as_ref();
        self.counterexample.is_none()
            && (self.excused == 0 || self.excused < self.pairs)
            && self.unmatched.is_empty()
            && survival.is_none_or(Survival::holds)
    }
}

impl ExpectationSide {
    /// Returns whether an expectation matches it.
    pub fn selection(self, expectation: &Expectation) -> &Selection {
        match self {
            Self::From => &expectation.from,
            Self::To => &expectation.to,
        }
    }
}

/// The nodes and ranges that a plan leaves out because of claims of nodes.
pub trait LeftOut: Sync {
    /// Returns whether checks of the nodes leave one out of the mesh.
    fn has_node(&self, at: NodeRef) -> bool;

    /// Returns how many nodes of a cluster are why some of them are left out, and others take no part.
    fn causing(&self, _site: SiteId, others: &[NodeId]) -> usize {
        others.len()
    }

    /// Returns the ranges that clusters do not get; none if there is no plan.
    fn excused(&self) -> Option<&Excused> {
        None
    }
}

impl<F: Fn(NodeRef) -> bool + Sync> LeftOut for F {
    fn has_node(&self, at: NodeRef) -> bool {
        self(at)
    }
}

/// Compares expectations with what is reached, in their order. `Deny` asks which paths are open, however nodes dial now and
/// whether their agents are silent or not.
pub fn check<'e>(
    reach: &Reach,
    expectations: &'e [Expectation],
    left_out: &dyn LeftOut,
) -> Vec<Check<'e>> {
    if expectations.is_empty() {
        return Vec::new();
    }
    let awake = AwakeClusters::find(reach.fabric);
    let fabric = awake.open(reach.fabric);
    let open = reach.opened(&awake, &fabric);
    let (reached, open) =
        (ExpectationJudge::new(reach, left_out), ExpectationJudge::new(&open, left_out));
    let expectations = expectations.par_iter();
    expectations
        .map(|it| match it.expected {
            Expected::Reach => reached.check(it),
            Expected::Deny => {
                let mut check = open.check(it);
                // A packet that arrives today shows more: who dials whom.
                let shown = check.counterexample.as_ref();
                let today = shown.map(|it| reach.fabric.exchange(it.packet));
                if let Some(today) = today.filter(|it| it.there.ending.is_delivered()) {
                    check.counterexample = Some(today);
                } else if let Some(shown) =
                    check.counterexample.as_mut().filter(|_| !awake.are_none())
                {
                    forget_segments(shown);
                }
                check
            }
        })
        .collect()
}

/// Removes the numbers of segments, which are others in awake clusters.
fn forget_segments(shown: &mut Trace) {
    shown.back = None;
    if let Ending::Ambiguous { doubt, .. } = &mut shown.there.ending
        && matches!(doubt, Doubt::Range { .. } | Doubt::Refused(_))
    {
        *doubt = Doubt::Leader;
    }
}

/// The number of pairs of clusters that are compared with an expectation in the time of a step of a proof.
pub(in crate::proof) const PAIRS_OF_STEP: usize = 4;

/// Returns how many steps it takes to check expectations: each is compared with every pair of clusters that it selects.
pub fn steps(fabric: &Fabric, expectations: &[Expectation]) -> usize {
    let selected =
        |it: &Selection| fabric.sites.iter().filter(|site| it.has_cluster(site.cluster)).count();
    let pairs =
        expectations.par_iter().map(|it| selected(&it.from).saturating_mul(selected(&it.to)));
    pairs.sum::<usize>() / PAIRS_OF_STEP
}

/// Returns what of expectations is not there, regardless of the Peers that clusters have.
pub fn unmatched<'e>(
    fabric: &Fabric,
    expectations: &'e [Expectation],
) -> Vec<(&'e Expectation, MatchesNothing)> {
    let is_narrow =
        |it: &Selection| it.nodes.is_some() || it.class.is_some() || !it.addresses.is_empty();
    let narrow = expectations.par_iter().filter(|it| is_narrow(&it.from) || is_narrow(&it.to));
    let narrow: Vec<&Expectation> = narrow.collect();
    if narrow.is_empty() {
        return Vec::new();
    }
    let stocks = fabric.sites.map(|it| Stock::new(it));
    let unmatched = narrow.into_par_iter().flat_map_iter(|it| {
        let [senders, receivers] = [ExpectationSide::From, ExpectationSide::To].map(|side| {
            let meant = Meant::by(it, side);
            fabric.sites.map_ids(|id| meant.choose(&fabric.sites[id], &stocks[id]))
        });
        let have_pairs = have_pairs(&senders, &receivers);
        let unmatched = of_sides(fabric, it, [&senders, &receivers], have_pairs);
        unmatched.into_iter().map(move |unmatched| (it, unmatched))
    });
    unmatched.collect()
}

/// Returns whether an address of a sender is of the same family as one of a receiver in another cluster.
fn have_pairs(senders: &Sites<Chosen>, receivers: &Sites<Chosen>) -> bool {
    [Family::V4, Family::V6].into_iter().any(|family| {
        let sites = |chosen: &Sites<Chosen>| -> Vec<SiteId> {
            let of_family = |it: &Chosen| it.all().any(|block| block.span.family == family);
            chosen.numbered().filter(|it| of_family(it.1)).map(|it| it.0).take(2).collect()
        };
        match (&*sites(senders), &*sites(receivers)) {
            ([], _) | (_, []) => false,
            ([from], [to]) => from != to,
            _ => true,
        }
    })
}

/// Returns what of both sides of an expectation is not there.
fn of_sides(
    fabric: &Fabric,
    expectation: &Expectation,
    [senders, receivers]: [&Sites<Chosen>; 2],
    have_pairs: bool,
) -> Vec<MatchesNothing> {
    let mut all = Vec::new();
    for (side, chosen) in [(ExpectationSide::From, senders), (ExpectationSide::To, receivers)] {
        let selection = side.selection(expectation);
        let unknown = unknown(fabric, selection, expectation.expected);
        if !unknown.is_empty() {
            let unmatched = unknown.into_iter();
            all.extend(unmatched.map(|index| MatchesNothing::Cluster { side, index }));
            continue;
        }
        let ranges = selection.addresses.iter().enumerate();
        let taken = TakenAddresses::new(selection, chosen);
        let missing: Vec<MatchesNothing> = ranges
            .filter(|(_, range)| !taken.meets(Span::new(**range)))
            .map(|(index, _)| MatchesNothing::Addresses { side, index })
            .collect();
        if missing.is_empty() && chosen.iter().all(Chosen::is_empty) {
            all.push(MatchesNothing::Nothing(side));
        }
        all.extend(missing);
    }
    if !have_pairs && all.is_empty() {
        let meant = |chosen: &Sites<Chosen>| -> Vec<SiteId> {
            let meant = chosen.numbered().filter(|it| !it.1.is_empty());
            meant.map(|it| it.0).collect()
        };
        let of = |chosen: &Sites<Chosen>| meant(chosen).first().copied();
        let last = |chosen: &Sites<Chosen>| meant(chosen).last().copied();
        let ends = [of(senders), last(senders), of(receivers), last(receivers)];
        all.push(match ends {
            [Some(one), ..] if ends.iter().all(|it| *it == Some(one)) => {
                MatchesNothing::OneCluster(one)
            }
            _ => MatchesNothing::Families,
        });
    }
    all
}

/// Returns which clusters of a side are not there. The members of a group are clusters of meshes. One without a snapshot
/// has no Peers, so it keeps every denial.
fn unknown(fabric: &Fabric, selection: &Selection, expected: Expected) -> Vec<usize> {
    let Some(clusters) = &selection.clusters else {
        return Vec::new();
    };
    let names = clusters.members.keys().enumerate();
    let unknown = names.filter(|it| fabric.site_named(it.1.as_str()).is_none());
    let unknown: Vec<usize> = unknown.map(|it| it.0).collect();
    let is_kept = clusters.group.is_some() && expected == Expected::Deny;
    if is_kept && unknown.len() < clusters.members.len() {
        return Vec::new();
    }
    unknown
}

#[cfg(test)]
mod tests;
