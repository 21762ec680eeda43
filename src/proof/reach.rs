//! Reach: what holds for whole classes of packets at once, so that a mesh is proved in the time that
//! its tables take and not in that of its pairs.
//!
//! The nodes of a cluster have the same WireGuard table, themselves aside. So what becomes of a packet
//! hangs on two views only: how the sender's cluster sees the destination, and how the receiver's sees
//! the source. Addresses that are seen alike are one class; what [`super::packet`] finds for one packet
//! between two classes holds for all of them. Where nodes of one cluster see something differently, it
//! is looked at from each of them.

use super::fabric::{At, Fabric, Owner};
use super::packet::{Goal, Packet, Session};
use super::trace::{Class, Trace};
use home::Home;
use view::Kin;

pub(super) use parcel::pieces;
pub use parcel::{Parcel, parcels};
pub use view::Seen;

mod home;
mod known;
mod parcel;
mod view;

/// How every cluster sees every other one.
#[derive(Clone, Debug)]
pub struct Reach<'f, 'a> {
    /// The clusters.
    pub fabric: &'f Fabric<'a>,
    seen: Vec<Seen>,
}

/// What there is to see, the same for all who look.
#[derive(Clone, Debug)]
pub struct Scene<'f, 'a> {
    fabric: &'f Fabric<'a>,
    homes: Vec<Home>,
}

/// A pair of classes, and what holds for all packets between them.
#[derive(Clone, Debug)]
pub struct Verdict {
    /// Class of the senders.
    pub from: Class,
    /// Class of the receivers.
    pub to: Class,
    /// The nodes that send; empty where it is the whole class of one pair only.
    pub senders: Vec<Parcel>,
    /// Who receives.
    pub receivers: Vec<Parcel>,
    /// Every way in which packets between them end, with a packet each.
    pub traces: Vec<Trace>,
}

impl Verdict {
    /// Returns how many pairs of an owner each it holds for.
    pub fn pairs(&self) -> u64 {
        let count = |parcels: &[Parcel]| u64::try_from(parcels.len()).unwrap_or(u64::MAX);
        count(&self.senders).saturating_mul(count(&self.receivers))
    }

    /// Returns the first way that does not end well, there and back.
    pub fn failure(&self) -> Option<&Trace> {
        let mut traces = self.traces.iter();
        traces.find(|trace| !trace.ending().is_delivered())
    }
}

impl<'f, 'a> Scene<'f, 'a> {
    /// Looks at each cluster by itself.
    pub fn new(fabric: &'f Fabric<'a>) -> Self {
        let homes = (0..fabric.sites.len()).map(|site| Home::of(fabric, site));
        let homes = homes.collect();
        Self { fabric, homes }
    }

    /// Looks at all clusters from one of them; none needs another for that, so that a caller may look
    /// from several at once.
    pub fn seen(&self, viewer: usize) -> Seen {
        Seen::from(self.fabric, &self.homes, viewer)
    }
}

impl<'f, 'a> Reach<'f, 'a> {
    /// Looks at all clusters from each of them.
    pub fn new(fabric: &'f Fabric<'a>) -> Self {
        let scene = Scene::new(fabric);
        let seen = (0..fabric.sites.len()).map(|site| scene.seen(site));
        Self::assemble(fabric, seen.collect())
    }

    /// Joins what was seen from each of the clusters, in their order.
    pub fn assemble(fabric: &'f Fabric<'a>, seen: Vec<Seen>) -> Self {
        Self { fabric, seen }
    }

    /// Returns what holds for packets from one cluster to another.
    pub fn between(&self, from: usize, to: usize) -> Vec<Verdict> {
        let everything = |_: &Parcel| true;
        self.among((from, &everything), (to, &everything))
    }

    /// Returns what holds for packets from some of one cluster's owners to some of another's.
    pub fn among(
        &self,
        (from, sends): (usize, &dyn Fn(&Parcel) -> bool),
        (to, receives): (usize, &dyn Fn(&Parcel) -> bool),
    ) -> Vec<Verdict> {
        let mut verdicts = Vec::new();
        for source in self.kin(from, to) {
            let senders: Vec<Parcel> = source.parcels.iter().copied().filter(sends).collect();
            if senders.is_empty() || !matches!(source.class, Class::Pod | Class::Node) {
                continue;
            }
            for target in self.kin(to, from) {
                let parcels = target.parcels.iter().copied();
                let wanted: Vec<Parcel> = parcels.filter(receives).collect();
                if wanted.is_empty() || source.family() != target.family() {
                    continue;
                }
                let pair = ((from, source), (to, target));
                if source.is_uniform() && target.is_uniform() {
                    verdicts.extend(self.verdict(pair, senders.clone(), wanted));
                    continue;
                }
                for &one in &senders {
                    for &other in &wanted {
                        verdicts.extend(self.verdict(pair, vec![one], vec![other]));
                    }
                }
            }
        }
        verdicts
    }

    /// Returns what is alike in `home` to those in `viewer`.
    fn kin(&self, home: usize, viewer: usize) -> &[Kin] {
        let seen = self.seen.get(viewer);
        let kin = seen.and_then(|it| it.others.get(home));
        kin.map_or(&[], Vec::as_slice)
    }

    fn verdict(
        &self,
        ((from, sender), (to, receiver)): ((usize, &Kin), (usize, &Kin)),
        senders: Vec<Parcel>,
        receivers: Vec<Parcel>,
    ) -> Option<Verdict> {
        let (one, other) = (*senders.first()?, *receivers.first()?);
        let (home, viewer) = (self.fabric.site(from)?, self.fabric.site(to)?);
        let node = one.owner.node()?;
        let goal = match other.owner {
            Owner::Services => Goal::Services(to),
            Owner::Network | Owner::Pool => Goal::Network(to),
            owner => Goal::Node(At {
                site: to,
                node: owner.node()?,
            }),
        };
        let cut = |kin: &Kin, (viewer, home), span| {
            if kin.is_whole() {
                vec![span]
            } else {
                pieces(viewer, home, span)
            }
        };
        let sources = cut(sender, (viewer, home), one.span);
        let destinations = cut(receiver, (home, viewer), other.span);
        let mut traces: Vec<Trace> = Vec::new();
        for source in &sources {
            for destination in &destinations {
                let trace = self.fabric.exchange(Packet {
                    from: At { site: from, node },
                    source: source.first_address(),
                    to: goal,
                    destination: destination.first_address(),
                    session: Session::New,
                });
                let is_new = |it: &Trace| it.verdict() != trace.verdict();
                if traces.iter().all(is_new) {
                    traces.push(trace);
                }
            }
        }
        Some(Verdict {
            from: sender.class,
            to: receiver.class,
            senders,
            receivers,
            traces,
        })
    }
}
