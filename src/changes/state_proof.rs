//! State proofs: between which blocks of two clusters packets and their answers arrive in a state.

use std::borrow::Cow;
use std::collections::BTreeMap;

use by_address::ByAddress;
use fixedbitset::FixedBitSet;

use super::blocks::Blocks;
use super::path_set::PathSet;
use crate::agent::fabric::{SitePair, Sites};
use crate::proof::reach::{AddressBlock, Proven, Reach};

/// The paths of one state, by how much of them holds.
#[derive(Clone, Debug, Default)]
pub(crate) struct StateProof {
    /// Paths on which all packets and their answers arrive.
    pub(crate) whole: PathSet,
    /// Paths on which some of them do: a block has addresses that others claim too.
    pub(crate) partial: PathSet,
}

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

    fn add(&mut self, alike: &AlikeRows) {
        self.whole.add_rows(&alike.senders, &alike.whole);
        self.partial.add_rows(&alike.senders, &alike.partial);
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
