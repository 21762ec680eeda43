//! Class outcomes: the result of packets between two equivalence classes, found once for all of them.

use super::equivalence_class::EquivalenceClass;
use super::{ClassFate, ClassVerdict, Proven, Reach};
use crate::agent::fabric::SitePair;
use crate::packet::Ending;
use crate::packet::trace::Trace;

/// The result of packets between addresses that are seen alike.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(crate) enum ClassOutcome {
    /// The same for all senders and receivers.
    Alike {
        /// The results of the packets.
        endings: Endings,
        /// Whether all packets between two of them have the same result, with any of their
        /// addresses.
        is_whole: bool,
    },
    /// Each sender and each receiver has to be looked at.
    Apart,
}

/// The results of some packets.
#[derive(Clone, Copy, Debug, Default, Eq, PartialEq)]
pub(crate) struct Endings {
    /// Whether some do not arrive, or have no answer.
    pub(crate) are_lost: bool,
    /// Whether some arrive, or may.
    pub(crate) may_arrive: bool,
    /// Whether the receiver rejects some by their source.
    pub(crate) are_rejected: bool,
}

impl Endings {
    /// No packet arrives, for certain.
    pub(crate) const LOST: Self = Self { are_lost: true, may_arrive: false, are_rejected: false };

    /// All packets and their answers arrive.
    const DELIVERED: Self = Self { are_lost: false, may_arrive: true, are_rejected: false };

    /// Returns how packets that were followed end.
    pub(crate) fn from_traces<'t>(traces: impl IntoIterator<Item = &'t Trace>) -> Self {
        let mut endings = Self::default();
        for trace in traces {
            let there = &trace.there.ending;
            endings.are_lost |= !trace.is_delivered();
            endings.are_rejected |= matches!(there, Ending::SourceRejected { .. });
            // WireGuard works on without the agent of a node that others have as a Peer.
            endings.may_arrive |= match there {
                Ending::Delivered | Ending::Ambiguous { .. } => true,
                Ending::NotReady { node } => *node != trace.packet.from,
                _ => false,
            };
        }
        endings
    }
}

impl Reach<'_, '_> {
    /// Returns what becomes of packets from everything that is alike in one cluster to everything that
    /// is alike in another, by their places there. Packets that are known to arrive are not followed again.
    pub(crate) fn fate_of<'r>(
        &'r self,
        pair: SitePair,
        [source, target]: [usize; 2],
        proven: &mut Proven<'r>,
    ) -> ClassOutcome {
        let SitePair { from, to } = pair;
        let source = self.classes(from, to).get(source);
        let ends = source.zip(self.classes(to, from).get(target));
        ends.map_or(ClassOutcome::Apart, |(source, target)| self.fate(pair, source, target, proven))
    }

    fn fate<'r>(
        &'r self,
        pair: SitePair,
        source: &'r EquivalenceClass,
        target: &'r EquivalenceClass,
        proven: &mut Proven<'r>,
    ) -> ClassOutcome {
        if target.is_kept() {
            return self.fate_of_kept(pair, source, target);
        }
        let is_pair = source.family() == target.family() && source.is_uniform();
        if !is_pair || !target.is_uniform() {
            return ClassOutcome::Apart;
        }
        let verdict = self.verdict(pair, source.into(), target.into(), proven);
        verdict.map_or(ClassOutcome::Apart, |verdict| {
            let endings = if matches!(verdict.fate, ClassFate::Proven) {
                Endings::DELIVERED
            } else {
                let followed = self.follow(pair, &verdict);
                Endings::from_traces(followed.iter().flat_map(ClassVerdict::traces))
            };
            ClassOutcome::Alike { endings, is_whole: source.is_whole() && target.is_whole() }
        })
    }

    /// Returns what becomes of packets that do not leave their cluster. None of them arrives, but it may
    /// be uncertain how they end.
    fn fate_of_kept(
        &self,
        pair: SitePair,
        source: &EquivalenceClass,
        target: &EquivalenceClass,
    ) -> ClassOutcome {
        let kept = self.follow(pair, &ClassVerdict::kept(source, target));
        let mut endings = kept.iter().map(|verdict| Endings::from_traces(verdict.traces()));
        let Some(first) = endings.next() else {
            return ClassOutcome::Apart;
        };
        if endings.any(|it| it != first) {
            return ClassOutcome::Apart;
        }
        ClassOutcome::Alike { endings: first, is_whole: !first.may_arrive }
    }
}
