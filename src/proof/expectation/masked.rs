//! Masked senders: pods whose packets a network plugin may send on with an address of their node.

use super::Check;
use super::group::Lot;
use super::judge::ExpectationJudge;
use crate::agent::fabric::{Fabric, NodeRef, Owner, SitePair};
use crate::expectations::Expected;
use crate::mesh::PodSource;
use crate::packet::trace::Trace;
use crate::packet::{Packet, Session};
use crate::proof::reach::{AddressBlock, Endings};

impl Check<'_> {
    /// Returns whether a `Deny` that holds for packets of pods may be broken by the same packets with an address of
    /// their node: the receiver rejects nothing but the source, and no person declares that pods keep theirs.
    pub(super) fn may_be_masked(
        &self,
        fabric: &Fabric,
        endings: Endings,
        pair: SitePair,
        senders: Lot,
    ) -> bool {
        self.expectation.expected == Expected::Deny
            && endings.are_rejected
            && !endings.may_arrive
            && may_hide(fabric, pair, senders.first.owner)
    }

    /// Counts pairs of pods of one node with receivers that fare alike.
    pub(super) fn tally_masked(
        &mut self,
        judge: &ExpectationJudge,
        endings: Endings,
        pair: SitePair,
        sender: Lot,
        receivers: Lot,
    ) {
        let Some(masked) = arriving(judge.reach.fabric, pair, sender.first, receivers.least) else {
            self.tally(judge, endings, pair, sender, receivers);
            return;
        };
        let pairs = sender.count.saturating_mul(receivers.count);
        self.pairs += pairs;
        self.broken += pairs;
        if self.is_smaller(&masked.packet) {
            self.counterexample = Some(masked);
        }
    }
}

/// Returns whether packets of an owner may be sent on with an address of its node: no person declares that pods keep
/// theirs.
pub(in crate::proof) fn may_hide(fabric: &Fabric, pair: SitePair, owner: Owner) -> bool {
    matches!(owner, Owner::Pods(_))
        && fabric.site(pair.from).entry.pod_source != Some(PodSource::Kept)
}

/// Returns a packet from an address of a sender's node that arrives or may arrive.
pub(in crate::proof) fn arriving(
    fabric: &Fabric,
    pair: SitePair,
    sender: AddressBlock,
    receiver: AddressBlock,
) -> Option<Trace> {
    let at = NodeRef { site: pair.from, node: sender.owner.node()? };
    let masks = fabric.site(at.site).masks(at.node, sender.span.family);
    let taken = masks.filter(|it| fabric.takes_masked(at, pair.to, *it) != Some(false));
    let traces = taken.map(|source| {
        fabric.exchange(Packet {
            from: at,
            source,
            to: receiver.owner.goal(pair.to),
            destination: receiver.span.first_address(),
            session: Session::New,
        })
    });
    let mut traces = traces.filter(|it| Endings::from_traces([it]).may_arrive);
    traces.next()
}
