//! Asked paths: what becomes of the packets between two clusters, asked once for all controls.

use std::borrow::Cow;

use rayon::prelude::*;

use super::refused_paths::PathRectangle;
use crate::agent::fabric::{Fabric, SiteId, SitePair, Sites};
use crate::proof::expectation::{ExpectationJudge, keeps_for_certain, masked, traces};
use crate::proof::reach::{AddressBlock, ClassFate, ClassVerdict, Endings, Proven};
use crate::proof::verify::{ClassPair, Declared};

/// A question about paths.
#[derive(Clone, Copy, Eq, PartialEq)]
pub(in crate::proof) enum Question {
    /// Whether they do not work, for another reason than a few nodes.
    Fails,
    /// Whether they are open.
    IsOpen,
    /// Whether they are open, are answered, and no mesh declares them.
    IsUndeclared,
}

/// Paths between classes of two clusters for which the answer is yes.
pub(super) struct ClassPaths<'p> {
    pub(super) classes: ClassPair,
    pub(super) senders: Cow<'p, [AddressBlock]>,
    pub(super) receivers: Cow<'p, [AddressBlock]>,
    /// Whether it is yes for all of them; otherwise each is followed.
    is_whole: bool,
}

/// A question about the paths of a version.
pub(super) struct PathQuestion<'q, 'f, 'a> {
    pub(super) question: Question,
    pub(super) judge: &'q ExpectationJudge<'q, 'f, 'a>,
    pub(super) declared: &'q Declared<'q, 'a, 'q>,
}

impl<'q> PathQuestion<'q, '_, '_> {
    /// Asks it about pairs of clusters.
    pub(super) fn all(
        &self,
        is_asked: impl Fn(SitePair) -> bool + Sync,
    ) -> Sites<Sites<Vec<ClassPaths<'q>>>> {
        let reach = self.judge.reach;
        let sites = &reach.fabric.sites;
        let senders: Vec<SiteId> = sites.ids().collect();
        let found = senders.into_par_iter().map(|from| {
            let mut proven = Proven::default();
            let is_certain = self.question != Question::Fails && keeps_for_certain(&sites[from]);
            sites.map_ids(|to| {
                let pair = SitePair { from, to };
                if from == to || is_certain && reach.is_kept(from, to) || !is_asked(pair) {
                    return Vec::new();
                }
                let verdicts = reach.between(from, to, &mut proven);
                verdicts.flat_map(|it| self.answer(pair, it)).collect()
            })
        });
        Sites::new(found.collect())
    }

    fn answer(&self, pair: SitePair, verdict: ClassVerdict<'q>) -> Vec<ClassPaths<'q>> {
        if self.question == Question::Fails {
            return self.failing(pair, verdict).into_iter().collect();
        }
        let is_undeclared = self.question == Question::IsUndeclared;
        if is_undeclared && (verdict.is_unanswered() || self.are_declared(pair, &verdict)) {
            return Vec::new();
        }
        let followed = self.judge.reach.follow(pair, &verdict).into_iter();
        let open = followed.filter_map(|it| match self.is_open(&it) {
            Some(false) => self.masked(pair, it),
            is_open => Some(ClassPaths { is_whole: is_open.is_some(), ..ClassPaths::of(it) }),
        });
        open.collect()
    }

    /// Returns whether a mesh declares all paths.
    fn are_declared(&self, pair: SitePair, verdict: &ClassVerdict) -> bool {
        let all = |from, to, blocks| self.declared.promised(from, to, blocks).iter().all(|it| *it);
        Declared::are_declared(verdict.from, verdict.to)
            && all(pair.from, pair.to, &verdict.senders)
            && all(pair.to, pair.from, &verdict.receivers)
    }

    /// Returns whether paths are open: all, none, or those of some addresses.
    fn is_open(&self, verdict: &ClassVerdict) -> Option<bool> {
        if matches!(verdict.fate, ClassFate::Proven) {
            return Some(true);
        }
        let is_answered = self.question == Question::IsUndeclared;
        let mut open = verdict.traces().iter().map(|it| {
            if is_answered { it.is_delivered() } else { Endings::from_traces([it]).may_arrive }
        });
        let first = open.next().unwrap_or_default();
        open.all(|it| it == first).then_some(first)
    }

    /// Returns the paths that fail for another reason than what `verify` excuses: a few nodes.
    fn failing(&self, pair: SitePair, verdict: ClassVerdict<'q>) -> Option<ClassPaths<'q>> {
        if verdict.holds() {
            return None;
        }
        let mut paths = ClassPaths::of(verdict);
        self.judge.leave_out_few(pair.from, &mut paths.senders);
        self.judge.leave_out_few(pair.to, &mut paths.receivers);
        let (sender, receiver) = paths.senders.first().zip(paths.receivers.first())?;
        let mut traces = traces(self.judge.reach.fabric, pair, *sender, *receiver);
        let failing = traces.find(|it| !it.is_delivered());
        failing.is_none_or(|it| !self.judge.is_excused(&it)).then_some(paths)
    }

    /// Returns the paths of pods whose packets may arrive with an address of their node, although they are rejected with
    /// their own.
    fn masked(&self, pair: SitePair, verdict: ClassVerdict<'q>) -> Option<ClassPaths<'q>> {
        let fabric = self.judge.reach.fabric;
        let endings = Endings::from_traces(verdict.traces());
        let receiver = *verdict.receivers.first()?;
        let mut paths = ClassPaths::of(verdict);
        if self.question != Question::IsOpen || !endings.are_rejected || endings.may_arrive {
            return None;
        }
        let is_masked = |it: &&AddressBlock| {
            masked::may_hide(fabric, pair, it.owner)
                && masked::arriving(fabric, pair, **it, receiver).is_some()
        };
        paths.senders = paths.senders.iter().filter(is_masked).copied().collect();
        (!paths.senders.is_empty()).then_some(paths)
    }
}

impl<'p> ClassPaths<'p> {
    fn of(verdict: ClassVerdict<'p>) -> Self {
        Self {
            classes: (verdict.from, verdict.to),
            senders: verdict.senders,
            receivers: verdict.receivers,
            is_whole: true,
        }
    }

    /// Returns those between some blocks of both sides. If packets between them end differently, each pair is followed.
    pub(super) fn parts(
        &self,
        fabric: &Fabric,
        pair: SitePair,
        senders: &[AddressBlock],
        receivers: &[AddressBlock],
    ) -> Vec<PathRectangle> {
        let whole = |senders: &[AddressBlock], receivers: &[AddressBlock]| PathRectangle {
            pair,
            senders: senders.to_vec(),
            receivers: receivers.to_vec(),
        };
        if self.is_whole {
            return vec![whole(senders, receivers)];
        }
        let pairs = senders.iter().flat_map(|it| receivers.iter().map(move |to| (it, to)));
        let open = pairs.filter(|(sender, receiver)| {
            let mut traces = traces(fabric, pair, **sender, **receiver);
            traces.any(|it| Endings::from_traces([&it]).may_arrive)
        });
        open.map(|(one, other)| whole(&[*one], &[*other])).collect()
    }
}
