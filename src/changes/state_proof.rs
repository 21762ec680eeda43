//! State proofs: between which blocks of two clusters packets and their answers arrive, in one state and in all of them.

use std::borrow::Cow;
use std::collections::{BTreeMap, BTreeSet};
use std::net::IpAddr;

use by_address::ByAddress;
use fixedbitset::FixedBitSet;

use super::blocks::Blocks;
use super::path_set::PathSet;
use crate::agent::fabric::{Fabric, NodeRef, SiteId, SitePair, Sites};
use crate::net::prefixes::Span;
use crate::packet::premise::Premise;
use crate::packet::{Packet, Session};
use crate::proof::reach::{AddressBlock, Proven, Reach, pieces};

/// The paths of one state, by how much of them holds.
#[derive(Clone, Debug, Default)]
pub(crate) struct StateProof {
    /// Paths on which all packets and their answers arrive.
    pub(crate) whole: PathSet,
    /// Paths on which some of them do: a block has addresses that others claim too.
    pub(crate) partial: PathSet,
}

/// The most packets that are followed for the partial paths of two clusters in a state. Other paths count as
/// interrupted.
const MOST_PACKETS: usize = 20_000;

/// Results of one proof that are valid for other clusters too.
pub(crate) struct KnownPaths<'r> {
    proven: Proven<'r>,
    /// The places of blocks that are seen alike. Most clusters see the same ones of another cluster.
    rows: BlockRows<'r>,
}

/// The places of some blocks.
type BlockRows<'r> = BTreeMap<ByAddress<&'r [AddressBlock]>, FixedBitSet>;

/// Senders with the same receivers.
struct AlikeRows<'r> {
    blocks: Cow<'r, [AddressBlock]>,
    senders: FixedBitSet,
    whole: FixedBitSet,
    partial: FixedBitSet,
}

impl Default for KnownPaths<'_> {
    fn default() -> Self {
        Self {
            // Only which paths hold is of interest.
            proven: Proven::with_lost(),
            rows: BTreeMap::new(),
        }
    }
}

/// Returns the places of blocks that are seen alike, among all blocks of their cluster.
#[expect(clippy::ptr_arg, reason = "places of borrowed blocks are found again")]
fn row<'k, 'r>(
    rows: &'k mut BlockRows<'r>,
    blocks: &Cow<'r, [AddressBlock]>,
    all: &Blocks,
) -> Cow<'k, FixedBitSet> {
    match *blocks {
        Cow::Borrowed(it) => {
            let row = rows.entry(ByAddress(it));
            Cow::Borrowed(row.or_insert_with(|| all.places(it)))
        }
        Cow::Owned(ref it) => Cow::Owned(all.places(it)),
    }
}

impl StateProof {
    /// Proves which paths hold.
    pub(crate) fn new<'r>(
        reach: &'r Reach,
        SitePair { from, to }: SitePair,
        blocks: &Sites<Blocks>,
        known: &mut KnownPaths<'r>,
    ) -> Self {
        let mut proof = Self::default();
        if reach.is_kept(from, to) {
            return proof;
        }
        let KnownPaths { proven, rows } = known;
        let receivers = &blocks[to];
        let mut alike: Option<AlikeRows> = None;
        for verdict in reach.between(from, to, proven) {
            let is_other =
                |it: &mut AlikeRows| ByAddress(&*it.blocks) != ByAddress(&*verdict.senders);
            if let Some(alike) = alike.take_if(is_other) {
                proof.add(&alike);
            }
            let alike = alike.get_or_insert_with(|| AlikeRows {
                blocks: verdict.senders.clone(),
                senders: row(rows, &verdict.senders, &blocks[from]).into_owned(),
                whole: receivers.none(),
                partial: receivers.none(),
            });
            let own = if verdict.holds() {
                &mut alike.whole
            } else if verdict.holds_in_part() {
                &mut alike.partial
            } else {
                continue;
            };
            own.union_with(&row(rows, &verdict.receivers, receivers));
        }
        if let Some(alike) = alike {
            proof.add(&alike);
        }
        proof
    }

    /// Returns the whole paths on which packets arrive only under a premise. That a node has a route to a
    /// range is judged where the range moves.
    pub(super) fn assumed<'r>(
        reach: &'r Reach,
        pair: SitePair,
        blocks: &Sites<Blocks>,
        known: &mut KnownPaths<'r>,
    ) -> PathSet {
        let mut assumed = PathSet::default();
        if reach.is_kept(pair.from, pair.to) {
            return assumed;
        }
        for verdict in reach.between(pair.from, pair.to, &mut known.proven) {
            if verdict.holds() && reach.may_be_premised(pair, [verdict.from, verdict.to]) {
                let premised = reach.premised(pair, &verdict.senders, &verdict.receivers);
                for it in premised.iter().filter(|it| !matches!(it.premise, Premise::Route(_))) {
                    let senders = blocks[pair.from].places(&it.senders);
                    assumed.add_rows(&senders, &blocks[pair.to].places(&it.receivers));
                }
            }
        }
        assumed
    }

    fn add(&mut self, alike: &AlikeRows) {
        self.whole.add_rows(&alike.senders, &alike.whole);
        self.partial.add_rows(&alike.senders, &alike.partial);
    }

    /// Returns the partial paths that hold where they hold with the old Peers: an address of a node that left is lost
    /// in both states.
    pub(super) fn parts_as_before(
        &self,
        pair: SitePair,
        blocks: &Sites<Blocks>,
        old: &Fabric,
        new: &Fabric,
    ) -> PathSet {
        let mut as_before = PathSet::default();
        let mut left = MOST_PACKETS;
        let mut equal = blocks[pair.to].none();
        for (sender, receivers) in self.partial.rows() {
            equal.clear();
            let Some(from) = blocks[pair.from].all.get(sender) else {
                continue;
            };
            for receiver in receivers.ones() {
                let to = blocks[pair.to].all.get(receiver);
                let packets = to.map(|to| packets(pair, [from, to], old, new));
                let packets = packets.unwrap_or_default();
                left = left.saturating_sub(packets.len());
                let holds = |packet: &Packet| {
                    !old.exchange(*packet).is_delivered() || new.exchange(*packet).is_delivered()
                };
                if 0 < left && !packets.is_empty() && packets.iter().all(holds) {
                    equal.insert(receiver);
                }
            }
            as_before.add_rows(&std::iter::once(sender).collect(), &equal);
        }
        as_before
    }

    /// Returns the paths that are not among others.
    pub(super) fn without(&self, others: &PathSet) -> Self {
        Self { whole: self.whole.without(others), partial: self.partial.without(others) }
    }

    /// Returns whether none holds.
    pub(super) fn is_empty(&self) -> bool {
        self.whole.is_empty() && self.partial.is_empty()
    }

    /// Returns the paths that hold at least in part.
    pub(super) fn any(&self) -> PathSet {
        let mut any = self.whole.clone();
        any.add(&self.partial);
        any
    }
}

/// Returns a packet for each part of two blocks that any of some states treats as one. Only nodes send.
fn packets(
    SitePair { from, to }: SitePair,
    [sender, receiver]: [&AddressBlock; 2],
    old: &Fabric,
    new: &Fabric,
) -> Vec<Packet> {
    let Some(node) = sender.owner.node() else {
        return Vec::new();
    };
    let starts = |viewer: SiteId, home: SiteId, span: Span| {
        let of_old = pieces(old.site(viewer), old.site(home), span).into_iter();
        let parts = of_old.chain(pieces(new.site(viewer), new.site(home), span));
        parts.map(Span::first_address).collect::<BTreeSet<IpAddr>>()
    };
    let sources = starts(to, from, sender.span);
    let destinations = starts(from, to, receiver.span);
    let packets = sources.iter().flat_map(|source| {
        destinations.iter().map(|destination| Packet {
            from: NodeRef { site: from, node },
            source: *source,
            to: receiver.owner.goal(to),
            destination: *destination,
            session: Session::New,
        })
    });
    packets.collect()
}

/// The paths from one cluster to another in every state.
pub(super) struct Proved {
    /// The clusters.
    pub(super) pair: SitePair,
    /// The paths that work with the old Peers.
    pub(super) old: StateProof,
    /// The paths of which everything works with the new Peers.
    pub(super) new: PathSet,
    /// The paths that work with the old Peers and still do with the new ones. Of a path that works in
    /// part, the proof does not know which part that is, so it counts only if all of it works now, or if
    /// both clusters treat its packets as before.
    pub(super) kept: StateProof,
    /// The paths that work only under a premise: with the old Peers, and with the new ones.
    pub(super) assumed: [PathSet; 2],
    /// The paths that work with both, but not while one cluster has its old and the other its new
    /// Peers.
    pub(super) apart: PathSet,
    /// The paths that work with both, but not in a state that stays.
    pub(super) stuck: PathSet,
    /// The paths that work with both, but not in a state that passes.
    pub(super) paused: PathSet,
    /// The paths that work in other states than that of the old Peers; only of watched pairs.
    pub(super) seen: Option<SeenPaths>,
    /// The number of states that were proved.
    pub(super) states: usize,
    /// The number of mixed states that were followed.
    pub(super) followed: usize,
}

/// The watched paths between two clusters that work, at least in part.
#[derive(Clone, Debug, Default)]
pub(super) struct SeenPaths {
    /// With the new Peers of both.
    pub(super) new: PathSet,
    /// In any state on the way.
    pub(super) passing: PathSet,
}

/// The way in which a path is interrupted, the longest first. A path counts in the first one that applies.
#[derive(Clone, Copy, Debug, Eq, Ord, PartialEq, PartialOrd)]
pub(super) enum Interruption {
    /// Until the other cluster has its new Peers.
    Apart,
    /// Until agents list all Peers again.
    Stuck,
    /// Until everything has arrived.
    Paused,
}

impl Interruption {
    /// All of them.
    pub(super) const ALL: [Self; 3] = [Self::Apart, Self::Stuck, Self::Paused];
}

impl Proved {
    /// Returns the paths that work with the old and the new Peers, and are not known to be interrupted in a way, or for
    /// longer.
    pub(super) fn rest(&self, interruption: Interruption) -> PathSet {
        let known = [&self.apart, &self.stuck, &self.paused];
        let known = Interruption::ALL.into_iter().zip(known);
        let known = known.filter(|it| it.0 <= interruption);
        known.fold(self.kept.any(), |rest, it| rest.without(it.1))
    }

    /// Returns the paths that are interrupted in a way.
    pub(super) fn interrupted(&mut self, interruption: Interruption) -> &mut PathSet {
        match interruption {
            Interruption::Apart => &mut self.apart,
            Interruption::Stuck => &mut self.stuck,
            Interruption::Paused => &mut self.paused,
        }
    }
}

/// The number of steps that proofs may still take ([`Reach::steps`]).
pub(super) struct ProofBudget(pub(super) u64);

impl ProofBudget {
    /// Looks at the pairs of clusters that are wanted, as [`Reach::among`]; none if a proof of their paths takes more
    /// steps than are left.
    pub(super) fn look<'f, 'a>(
        &mut self,
        fabric: &'f Fabric<'a>,
        is_wanted: impl Fn(SiteId, SiteId) -> bool + Sync,
    ) -> Option<Reach<'f, 'a>> {
        let reach = Reach::among(fabric, self.0, is_wanted);
        self.0 = self.0.checked_sub(reach.steps())?;
        Some(reach)
    }
}
