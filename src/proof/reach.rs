//! Reach: results for whole classes of packets, so that the time of a proof depends on the size of
//! the tables and not on the number of pairs.
//!
//! The nodes of a cluster have the same WireGuard table, except for their own entries. The result
//! of a packet therefore depends on only two views: how the sender's cluster sees the destination,
//! and how the receiver's cluster sees the source. Addresses with the same view are one class, and
//! the result of [`crate::packet`] for one packet between two classes is valid for all of them. If
//! nodes of one cluster have different views, each of them is considered.

use std::borrow::Cow;
use std::collections::BTreeMap;
use std::ptr;
use std::sync::{Arc, PoisonError};

use rayon::prelude::*;

use crate::agent::fabric::{AwakeClusters, Fabric, NodeRef, SiteId, SitePair, Sites};
use crate::mesh::AddressClass;
use crate::net::Family;
use crate::packet::trace::Trace;
use crate::packet::{Packet, Session};
use class_part::{ClassPart, CutBlock, PartPair};
use cluster_view::ForwardingViews;
use equivalence_class::EquivalenceClass;
use local_addresses::LocalAddresses;
use shared_views::SharedViews;
use uncovered::{Lookup, NodeEndings};

pub(super) use address_block::of_nodes;
pub(crate) use address_block::pieces;
pub use address_block::{AddressBlock, address_blocks};
pub(super) use class_outcome::{ClassOutcome, Endings};
pub(super) use forwarding_view::ForwardingView;
pub use masqueraded::PremisedPaths;
pub use premised::Premised;
pub use proof_reuse::BlockLikeness;
pub use proven::Proven;

mod class_outcome;
mod proof_reuse;
mod uncovered;
mod local_addresses;
mod known_peer;
mod disputed;
mod address_block;
mod masqueraded;
mod premised;
mod proven;
mod shared_views;
mod equivalence_class;
mod class_part;
mod forwarding_view;
mod cluster_view;

/// The views of all clusters of each other.
#[derive(Clone, Debug)]
pub struct Reach<'f, 'a> {
    /// The clusters.
    pub fabric: &'f Fabric<'a>,
    views: Sites<ForwardingViews>,
    homes: Sites<Arc<LocalAddresses>>,
    /// The view of a cluster that is not looked at.
    unseen: Arc<ForwardingView>,
    /// The number of steps for the views.
    looked: u64,
}

/// With fewer pairs of clusters than one of this many, it takes longer to find out which clusters see
/// another one alike than to look at each pair.
const RARE: usize = 4;

/// The part of what a cluster sees of others that a proof needs.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
enum Depth {
    /// The ends of all packets.
    Everything,
    /// The paths that hold. None leads to a cluster around whose addresses no Peer has a range.
    Held,
}

/// The number of owners of each class in a cluster; a range that is declared for all counts as one.
pub type Counts = BTreeMap<(AddressClass, Family), u64>;

/// A pair of classes, and what holds for all packets between them.
#[derive(Clone, Debug)]
pub struct ClassVerdict<'r> {
    /// Class of the senders.
    pub from: AddressClass,
    /// Class of the receivers.
    pub to: AddressClass,
    /// The senders.
    pub senders: Cow<'r, [AddressBlock]>,
    /// The receivers.
    pub receivers: Cow<'r, [AddressBlock]>,
    /// The fate of the packets.
    pub fate: ClassFate,
}

/// The fate of all packets between two classes.
#[derive(Clone, Debug)]
pub enum ClassFate {
    /// All of them arrive, and their answers too: that was proved for other clusters.
    Proven,
    /// None arrives and is answered: that was proved for other clusters. None was followed.
    Lost,
    /// None leaves the cluster of the senders. None was followed; see [`Reach::follow`].
    Kept,
    /// Every node of the receivers' cluster rejects them, since no Peer there has a range around their
    /// sources. None was followed.
    Rejected,
    /// Every way in which they end, with a packet for each.
    Followed(Vec<Trace>),
}

impl<'r> ClassVerdict<'r> {
    /// No packet leaves the cluster of the senders.
    fn kept(source: &'r EquivalenceClass, target: &'r EquivalenceClass) -> Self {
        Self {
            from: source.class,
            to: target.class,
            senders: Cow::Borrowed(&source.blocks),
            receivers: Cow::Borrowed(&target.blocks),
            fate: ClassFate::Kept,
        }
    }

    /// Returns how many pairs of an owner each it holds for.
    pub fn pairs(&self) -> u64 {
        let count = |blocks: &[AddressBlock]| u64::try_from(blocks.len()).unwrap_or(u64::MAX);
        count(&self.senders).saturating_mul(count(&self.receivers))
    }

    /// Returns whether every packet arrives, and its answer too.
    pub fn holds(&self) -> bool {
        match &self.fate {
            ClassFate::Proven => true,
            ClassFate::Lost | ClassFate::Kept | ClassFate::Rejected => false,
            ClassFate::Followed(traces) => traces.iter().all(|it| it.ending().is_delivered()),
        }
    }

    /// Returns whether no packet arrives and is answered, without following any.
    pub fn is_unanswered(&self) -> bool {
        matches!(self.fate, ClassFate::Lost | ClassFate::Kept | ClassFate::Rejected)
    }

    /// Returns the packets that were followed.
    pub fn traces(&self) -> &[Trace] {
        match &self.fate {
            ClassFate::Followed(traces) => traces,
            ClassFate::Proven | ClassFate::Lost | ClassFate::Kept | ClassFate::Rejected => &[],
        }
    }

    /// Returns whether some packets arrive, and their answers too, and others do not.
    pub fn holds_in_part(&self) -> bool {
        let mut traces = self.traces().iter();
        !self.holds() && traces.any(|trace| trace.ending().is_delivered())
    }
}

impl<'f, 'a> Reach<'f, 'a> {
    /// Looks at all clusters from each of them, from several at the same time, unless that takes more than
    /// `most` steps. A proof must not be asked for then: see [`Reach::steps`].
    pub fn new(fabric: &'f Fabric<'a>, most: u64) -> Self {
        let homes = fabric.sites.map(|it| Arc::new(LocalAddresses::new(it)));
        Self::looking(fabric, most, |_, _| true, Depth::Everything, homes)
    }

    /// Looks only at the pairs of clusters that are wanted, the one that looks first. Between the others
    /// nothing is known: a proof must not ask for them. Only which paths hold can be asked: it is not known
    /// why nothing leaves for a cluster.
    pub fn among(
        fabric: &'f Fabric<'a>,
        most: u64,
        is_wanted: impl Fn(SiteId, SiteId) -> bool + Sync,
    ) -> Self {
        let homes = fabric.sites.map(|it| Arc::new(LocalAddresses::new(it)));
        Self::looking(fabric, most, is_wanted, Depth::Held, homes)
    }

    /// Looks at the same pairs, beside another proof that has the same clusters, except for some that have other
    /// versions.
    pub fn beside<'o>(
        fabric: &'o Fabric<'a>,
        other: &Reach,
        most: u64,
        is_wanted: impl Fn(SiteId, SiteId) -> bool + Sync,
    ) -> Reach<'o, 'a> {
        let homes = fabric.sites.map_ids(|it| {
            let (site, before) = (&fabric.sites[it], &other.fabric.sites[it]);
            if ptr::addr_eq(Arc::as_ptr(site), Arc::as_ptr(before)) {
                Arc::clone(&other.homes[it])
            } else {
                Arc::new(LocalAddresses::new(site))
            }
        });
        Reach::looking(fabric, most, is_wanted, Depth::Held, homes)
    }

    /// Returns the same for [`AwakeClusters::open`]. No view depends on whether tunnels are up.
    pub fn opened<'o, 'b>(&self, awake: &AwakeClusters, fabric: &'o Fabric<'b>) -> Reach<'o, 'b> {
        if !awake.are_none() {
            return Reach::new(fabric, u64::MAX);
        }
        Reach {
            fabric,
            views: self.views.clone(),
            homes: self.homes.clone(),
            unseen: Arc::clone(&self.unseen),
            looked: self.looked,
        }
    }

    fn looking(
        fabric: &'f Fabric<'a>,
        most: u64,
        is_wanted: impl Fn(SiteId, SiteId) -> bool + Sync,
        depth: Depth,
        homes: Sites<Arc<LocalAddresses>>,
    ) -> Self {
        let sites: Vec<SiteId> = fabric.sites.ids().collect();
        let pairs = sites.iter().flat_map(|one| sites.iter().map(move |other| (*one, *other)));
        let wanted = pairs.filter(|(one, other)| one != other && is_wanted(*one, *other));
        let are_shared = sites.len() * sites.len().saturating_sub(1) <= RARE * wanted.count();
        let shared = SharedViews::new(fabric, homes, are_shared, most);
        let views = sites.into_par_iter();
        let views = Sites::new(
            views
                .map(|site| {
                    ForwardingViews::from(&shared, site, depth, |home| is_wanted(site, home))
                })
                .collect(),
        );
        Self { fabric, looked: shared.steps(), views, homes: shared.homes, unseen: Arc::default() }
    }

    /// Returns how many steps a proof takes at most: for the looks at all clusters, and for each pair of classes.
    pub fn steps(&self) -> u64 {
        let sites = self.fabric.sites.numbered();
        let looking = sites.filter(|it| !self.views[it.0].others.is_empty());
        let looking: Vec<(SiteId, usize)> =
            looking.map(|(site, it)| (site, it.model.tunnels.most_claims())).collect();
        let pairs = looking.iter().flat_map(|from| looking.iter().map(move |to| (from, to)));
        let of_pair = |((from, claims), (to, others)): (&(SiteId, usize), &(SiteId, usize))| {
            let most = *claims.max(others);
            self.view(*from, *to).steps_to(self.view(*to, *from), most)
        };
        pairs.map(of_pair).fold(self.looked, u64::saturating_add)
    }

    /// Returns whether no packet of any sender leaves one cluster for another.
    pub fn is_kept(&self, from: SiteId, to: SiteId) -> bool {
        self.view(to, from).is_kept
    }

    /// Returns how many owners of each class a cluster has.
    pub fn counts(&self, site: SiteId) -> &Counts {
        &self.homes[site].counts
    }

    /// Finds what holds for packets from one cluster to another, the pairs of the same senders one after another.
    /// Results that were proved for others before are used again.
    pub fn between<'r, 'p>(
        &'r self,
        from: SiteId,
        to: SiteId,
        proven: &'p mut Proven<'r>,
    ) -> impl Iterator<Item = ClassVerdict<'r>> + use<'r, 'p, 'f, 'a> {
        let pair = SitePair { from, to };
        let sources = self.classes(from, to).iter().filter(|it| it.can_send());
        // There can be millions, so none is kept.
        let parts = sources.flat_map(move |source| source.parts_to(self.classes(to, from)));
        parts.filter_map(move |PartPair { sender, receiver }| {
            if receiver.class.is_kept() {
                return Some(ClassVerdict::kept(sender.class, receiver.class));
            }
            self.verdict(pair, sender, receiver, proven)
        })
    }

    /// Follows packets between classes, if none was followed yet: senders and receivers between which they
    /// end alike are together, with every way in which they end and a packet for each.
    pub fn follow<'v>(&self, pair: SitePair, verdict: &ClassVerdict<'v>) -> Vec<ClassVerdict<'v>> {
        match verdict.fate {
            ClassFate::Kept => self.follow_kept(pair, verdict),
            ClassFate::Rejected if self.keeps_some(pair, &verdict.receivers) => {
                self.follow_kept(pair, verdict)
            }
            ClassFate::Proven | ClassFate::Followed(_) => vec![verdict.clone()],
            ClassFate::Lost | ClassFate::Rejected => {
                let traces = self.first_traces(pair, &verdict.senders, &verdict.receivers);
                vec![ClassVerdict { fate: ClassFate::Followed(traces), ..verdict.clone() }]
            }
        }
    }

    /// Returns whether packets to a part of receivers that are seen alike leave the cluster of the senders on no
    /// node. Such packets end differently on different nodes.
    fn keeps_some(&self, pair: SitePair, receivers: &[AddressBlock]) -> bool {
        let [home, away] = pair.both().map(|it| self.fabric.site(it));
        let pieces = receivers.first().map(|it| pieces(home, away, it.span));
        let mut pieces = pieces.into_iter().flatten();
        pieces.any(|it| !Lookup::new(home, it).are_claimed(home))
    }

    fn follow_kept(&self, pair: SitePair, kept: &ClassVerdict) -> Vec<ClassVerdict<'static>> {
        let mut verdicts = Vec::new();
        for (endings, receivers) in self.ending_alike(pair, &kept.receivers) {
            let mut groups: BTreeMap<Vec<Option<&str>>, Vec<AddressBlock>> = BTreeMap::new();
            for sender in &*kept.senders {
                let on_node = |it: &NodeEndings| it[sender.owner.node()?];
                let names = endings.iter().map(on_node).collect();
                groups.entry(names).or_default().push(*sender);
            }
            for senders in groups.into_values() {
                verdicts.push(ClassVerdict {
                    from: kept.from,
                    to: kept.to,
                    fate: ClassFate::Followed(self.first_traces(pair, &senders, &receivers)),
                    senders: Cow::Owned(senders),
                    receivers: Cow::Owned(receivers.clone()),
                });
            }
        }
        verdicts
    }

    /// Puts receivers together by how kept packets to their pieces end on each node.
    fn ending_alike(
        &self,
        SitePair { from, to }: SitePair,
        receivers: &[AddressBlock],
    ) -> BTreeMap<Vec<NodeEndings>, Vec<AddressBlock>> {
        let (home, away) = (self.fabric.site(from), self.fabric.site(to));
        let mut uncovered =
            self.views[from].uncovered.lock().unwrap_or_else(PoisonError::into_inner);
        let mut alike: BTreeMap<Vec<NodeEndings>, Vec<AddressBlock>> = BTreeMap::new();
        for receiver in receivers {
            let pieces = pieces(home, away, receiver.span).into_iter();
            let mut endings: Vec<NodeEndings> =
                pieces.map(|piece| uncovered.endings(from, home, piece).clone()).collect();
            endings.sort_unstable();
            endings.dedup();
            alike.entry(endings).or_default().push(*receiver);
        }
        alike
    }

    /// Returns every way in which packets from the first sender to the first receiver end. For packets that
    /// are kept or rejected, the address in the sender's block makes no difference.
    fn first_traces(
        &self,
        pair: SitePair,
        senders: &[AddressBlock],
        receivers: &[AddressBlock],
    ) -> Vec<Trace> {
        let ends = senders.first().zip(receivers.first());
        let traces = ends.and_then(|(sender, receiver)| {
            let [home, away] = pair.both().map(|it| self.fabric.site(it));
            let sender = CutBlock { block: *sender, pieces: vec![sender.span] };
            let receiver = CutBlock { block: *receiver, pieces: pieces(home, away, receiver.span) };
            self.traces(pair, &sender, &receiver)
        });
        traces.unwrap_or_default()
    }

    /// Returns what is alike in `home` to those in `viewer`.
    fn classes(&self, home: SiteId, viewer: SiteId) -> &[EquivalenceClass] {
        &self.view(home, viewer).classes
    }

    /// Returns how one cluster is seen from another one.
    pub(super) fn view(&self, home: SiteId, viewer: SiteId) -> &Arc<ForwardingView> {
        let others = &self.views[viewer].others;
        others.get(home.index()).unwrap_or(&self.unseen)
    }

    fn verdict<'r>(
        &'r self,
        pair: SitePair,
        senders: ClassPart<'r>,
        receivers: ClassPart<'r>,
        proven: &mut Proven<'r>,
    ) -> Option<ClassVerdict<'r>> {
        let [home, viewer] = pair.both().map(|it| self.fabric.site(it));
        let (sender, receiver) = (senders.class, receivers.class);
        let looks = [sender, receiver].map(|side| (side.class, &*side.views));
        let is_plain = [sender, receiver].iter().all(|it| it.is_plain())
            && [home, viewer].iter().all(|it| it.is_undisturbed());
        let known = || is_plain.then(|| proven.fate(&looks)).flatten();
        let fate = if sender.is_rejected() {
            ClassFate::Rejected
        } else if let Some(known) = known() {
            known
        } else {
            let from = senders.first(|span| pieces(viewer, home, span))?;
            let to = receivers.first(|span| pieces(home, viewer, span))?;
            let traces = self.traces(pair, &from, &to)?;
            if is_plain {
                proven.add(looks, &traces);
            }
            ClassFate::Followed(traces)
        };
        Some(ClassVerdict {
            from: sender.class,
            to: receiver.class,
            senders: Cow::Borrowed(senders.blocks),
            receivers: Cow::Borrowed(receivers.blocks),
            fate,
        })
    }

    /// Returns every way in which packets between pieces of two blocks end.
    fn traces(&self, pair: SitePair, sender: &CutBlock, receiver: &CutBlock) -> Option<Vec<Trace>> {
        let node = sender.block.owner.node()?;
        let mut traces: Vec<Trace> = Vec::new();
        for source in &sender.pieces {
            for destination in &receiver.pieces {
                let trace = self.fabric.exchange(Packet {
                    from: NodeRef { site: pair.from, node },
                    source: source.first_address(),
                    to: receiver.block.owner.goal(pair.to),
                    destination: destination.first_address(),
                    session: Session::New,
                });
                let is_new = |it: &Trace| it.verdict() != trace.verdict();
                if traces.iter().all(is_new) {
                    traces.push(trace);
                }
            }
        }
        Some(traces)
    }
}
