//! Reach: what holds for whole classes of packets at once, so that a mesh is proved in the time that
//! its tables take and not in that of its pairs.
//!
//! The nodes of a cluster have the same WireGuard table, themselves aside. So what becomes of a packet
//! hangs on two views only: how the sender's cluster sees the destination, and how the receiver's sees
//! the source. Addresses that are seen alike are one class; what [`crate::packet`] finds for one packet
//! between two classes holds for all of them. Where nodes of one cluster see something differently, it
//! is looked at from each of them.

use std::borrow::Cow;
use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use rayon::prelude::*;

use crate::agent::network::{At, Fabric, SiteId, Sites};
use crate::net::Family;
use crate::net::prefixes::Span;
use crate::packet::trace::{Class, Trace};
use crate::packet::{Packet, Session};
use home::Home;
use scene::Scene;
use view::{Kin, Seen, View};

pub(super) use fate::{Endings, Fate};
pub use parcel::{Parcel, parcels};
pub(super) use parcel::{of_nodes, pieces};
pub use premised::Premised;
pub(super) use view::Sight;

mod fate;
mod ground;
mod home;
mod known;
mod parcel;
mod premised;
mod scene;
mod view;

/// How every cluster sees every other one.
#[derive(Clone, Debug)]
pub struct Reach<'f, 'a> {
    /// The clusters.
    pub fabric: &'f Fabric<'a>,
    seen: Sites<Seen>,
    counts: Sites<Counts>,
}

/// How many owners of each class a cluster has, or ranges that are declared for all.
pub type Counts = BTreeMap<(Class, Family), u64>;

/// A pair of classes, and what holds for all packets between them.
#[derive(Clone, Debug)]
pub struct Verdict<'r> {
    /// Class of the senders.
    pub from: Class,
    /// Class of the receivers.
    pub to: Class,
    /// The sender.
    pub senders: Cow<'r, [Parcel]>,
    /// Who receives.
    pub receivers: Cow<'r, [Parcel]>,
    /// Every way in which packets between them end, with a packet each; none where it is proven already
    /// that all of them arrive, there and back, or that all of them are kept.
    pub traces: Vec<Trace>,
    /// Whether no packet leaves the cluster of the senders. Then none was followed; see
    /// [`Reach::follow`].
    pub is_kept: bool,
}

/// Looks between which packets arrive, there and back, whichever clusters it is that have them.
#[derive(Clone, Debug, Default)]
pub struct Proven<'r>(BTreeSet<[Looks<'r>; 2]>);

/// What a way hangs on, as far as one side is concerned.
type Looks<'r> = (Class, &'r [View]);

impl Verdict<'_> {
    /// Returns how many pairs of an owner each it holds for.
    pub fn pairs(&self) -> u64 {
        let count = |parcels: &[Parcel]| u64::try_from(parcels.len()).unwrap_or(u64::MAX);
        count(&self.senders).saturating_mul(count(&self.receivers))
    }

    /// Returns whether every packet arrives, and its answer too.
    pub fn holds(&self) -> bool {
        let mut traces = self.traces.iter();
        !self.is_kept && traces.all(|trace| trace.ending().is_delivered())
    }
}

impl<'f, 'a> Reach<'f, 'a> {
    /// Looks at all clusters from each of them, from several at the same time.
    pub fn new(fabric: &'f Fabric<'a>) -> Self {
        let scene = Scene::new(fabric);
        let sites: Vec<SiteId> = fabric.sites.ids().collect();
        let seen = sites.into_par_iter();
        let seen = Sites::new(seen.map(|site| Seen::from(&scene, site)).collect());
        let counts = scene.homes.map(Home::counts);
        Self {
            fabric,
            seen,
            counts,
        }
    }

    /// Returns whether no packet leaves one cluster for another, whoever sends it.
    pub fn is_kept(&self, from: SiteId, to: SiteId) -> bool {
        self.sight(to, from).is_kept
    }

    /// Returns how many owners of each class a cluster has.
    pub fn counts(&self, site: SiteId) -> &Counts {
        &self.counts[site]
    }

    /// Returns what holds for packets from one cluster to another. What is proven for others before
    /// needs no new proof.
    pub fn between<'r>(
        &'r self,
        from: SiteId,
        to: SiteId,
        proven: &mut Proven<'r>,
    ) -> Vec<Verdict<'r>> {
        let mut verdicts = Vec::new();
        for source in self.kin(from, to) {
            if !matches!(source.class, Class::Pod | Class::Node) {
                continue;
            }
            for target in self.kin(to, from) {
                if source.family() != target.family() {
                    continue;
                }
                if target.is_kept() {
                    verdicts.extend(self.kept((from, source), target));
                    continue;
                }
                let pair = ((from, source), (to, target));
                if source.is_uniform() && target.is_uniform() {
                    verdicts.extend(self.verdict(pair, (&source.parcels, &target.parcels), proven));
                    continue;
                }
                for one in source.parcels.chunks(1) {
                    for other in target.parcels.chunks(1) {
                        verdicts.extend(self.verdict(pair, (one, other), proven));
                    }
                }
            }
        }
        verdicts
    }

    /// Returns every way in which packets end that are kept, with a packet each: who sends it decides, and
    /// those are alike.
    pub fn follow(&self, (from, to): (SiteId, SiteId), kept: &Verdict) -> Vec<Trace> {
        let ends = kept.senders.first().zip(kept.receivers.first());
        let (home, away) = (self.fabric.site(from), self.fabric.site(to));
        let Some((sender, receiver)) = ends else {
            return Vec::new();
        };
        let destinations = pieces(home, away, receiver.span);
        let traces = self.traces(
            (from, *sender, &[sender.span]),
            (to, *receiver, &destinations),
        );
        traces.unwrap_or_default()
    }

    /// Returns what holds for packets to addresses for which none leaves the cluster of the senders.
    fn kept<'r>(
        &'r self,
        (from, source): (SiteId, &'r Kin),
        target: &'r Kin,
    ) -> impl Iterator<Item = Verdict<'r>> {
        let groups = self.seen[from].split(target, &source.parcels).into_iter();
        groups.map(|senders| Verdict {
            from: source.class,
            to: target.class,
            senders,
            receivers: Cow::Borrowed(&target.parcels),
            traces: Vec::new(),
            is_kept: true,
        })
    }

    /// Returns what is alike in `home` to those in `viewer`.
    fn kin(&self, home: SiteId, viewer: SiteId) -> &[Kin] {
        &self.sight(home, viewer).kin
    }

    /// Returns how one cluster is seen from another one.
    pub(super) fn sight(&self, home: SiteId, viewer: SiteId) -> &Arc<Sight> {
        &self.seen[viewer].others[home]
    }

    fn verdict<'r>(
        &'r self,
        ((from, sender), (to, receiver)): ((SiteId, &'r Kin), (SiteId, &'r Kin)),
        (senders, receivers): (&'r [Parcel], &'r [Parcel]),
        proven: &mut Proven<'r>,
    ) -> Option<Verdict<'r>> {
        let (home, viewer) = (self.fabric.site(from), self.fabric.site(to));
        let looks = [sender, receiver].map(|kin| (kin.class, &*kin.views));
        let is_plain = [sender, receiver].iter().all(|it| it.is_plain())
            && [home, viewer].iter().all(|it| it.is_undisturbed());
        let traces = if is_plain && proven.0.contains(&looks) {
            Vec::new()
        } else {
            let ends = (*senders.first()?, *receivers.first()?);
            let cut = |kin: &Kin, (viewer, home), span| {
                if kin.is_whole() {
                    vec![span]
                } else {
                    pieces(viewer, home, span)
                }
            };
            let sources = cut(sender, (viewer, home), ends.0.span);
            let destinations = cut(receiver, (home, viewer), ends.1.span);
            let traces = self.traces((from, ends.0, &sources), (to, ends.1, &destinations))?;
            if is_plain && traces.iter().all(|it| it.ending().is_delivered()) {
                proven.0.insert(looks);
            }
            traces
        };
        Some(Verdict {
            from: sender.class,
            to: receiver.class,
            senders: Cow::Borrowed(senders),
            receivers: Cow::Borrowed(receivers),
            traces,
            is_kept: false,
        })
    }

    /// Returns every way in which packets between pieces of two parcels end.
    fn traces(
        &self,
        (from, sender, sources): (SiteId, Parcel, &[Span]),
        (to, receiver, destinations): (SiteId, Parcel, &[Span]),
    ) -> Option<Vec<Trace>> {
        let node = sender.owner.node()?;
        let mut traces: Vec<Trace> = Vec::new();
        for source in sources {
            for destination in destinations {
                let trace = self.fabric.exchange(Packet {
                    from: At { site: from, node },
                    source: source.first_address(),
                    to: receiver.owner.goal(to),
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
