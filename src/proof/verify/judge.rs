//! The judge: what holds between two clusters, held against what their link promises.

use std::collections::BTreeSet;
use std::collections::btree_map::{BTreeMap, Entry};

use super::promise::Promises;
use super::{Failure, Leak, Tally};
use crate::mesh::Range;
use crate::net::Cidr;
use crate::proof::fabric::{At, Site};
use crate::proof::model::Tunnel;
use crate::proof::packet::{Ending, Goal, Packet, Session};
use crate::proof::reach::{Parcel, Reach, Verdict};
use crate::proof::trace::{Class, Trace};

/// What fails together: the verdict, where it is decided, and by what.
pub(super) type Cause = (&'static str, usize, usize, Option<(Tunnel, Cidr)>);

/// Counts what holds between two clusters.
pub(super) struct Judge<'j, 'f, 'a> {
    pub(super) reach: &'j Reach<'f, 'a>,
    pub(super) from: usize,
    pub(super) to: usize,
    pub(super) is_linked: bool,
    pub(super) sends: &'j Promises,
    pub(super) receives: &'j Promises,
    /// What the one that sends takes, and what the one that receives does.
    pub(super) takes: [Vec<&'j [Range]>; 2],
    pub(super) tallies: BTreeMap<(Class, Class), Tally>,
}

impl Judge<'_, '_, '_> {
    pub(super) fn count(
        &mut self,
        verdict: &Verdict,
        failures: &mut BTreeMap<Cause, Failure>,
        leaks: &mut Vec<Leak>,
    ) {
        // What a cluster has as a whole is promised to pods.
        let is_promise = self.is_linked
            && (verdict.from == Class::Pod || matches!(verdict.to, Class::Pod | Class::Node));
        let [near, far] = &self.takes;
        let is_promised = |parcel: &&Parcel, promises: &Promises, (number, takes)| {
            is_promise
                && promises.include(parcel)
                && is_accepted(self.reach.fabric.site(number), parcel, takes)
        };
        // Answers need the way back, so each must take what the other has.
        let is_sent = |it: &&Parcel| is_promised(it, self.sends, (self.from, far));
        let is_taken = |it: &&Parcel| is_promised(it, self.receives, (self.to, near));
        let senders = || verdict.senders.iter().filter(is_sent);
        let receivers = || verdict.receivers.iter().filter(is_taken);
        let promised = count(senders()).saturating_mul(count(receivers()));
        let others = verdict.pairs().saturating_sub(promised);
        let tally = self.tallies.entry((verdict.from, verdict.to)).or_default();
        tally.promised += promised;
        tally.others += others;
        if verdict.holds() {
            tally.kept += promised;
            tally.reached += others;
        } else if 0 < promised {
            let followed;
            let traces = if verdict.is_kept {
                followed = self.reach.follow((self.from, self.to), verdict);
                &followed
            } else {
                &verdict.traces
            };
            let mut traces = traces.iter();
            if let Some(failing) = traces.find(|it| !it.ending().is_delivered()) {
                let promised: [Vec<Parcel>; 2] =
                    [senders().copied().collect(), receivers().copied().collect()];
                self.fail(failing, verdict, &promised, failures);
            }
        }
        let mut traces = verdict.traces.iter();
        let arrived = traces.find(|trace| trace.there.ending.is_delivered());
        if let Some(arrived) = arrived
            && !self.is_linked
        {
            leaks.push(Leak {
                trace: arrived.clone(),
                pairs: others,
                claim: None,
            });
        }
    }

    /// Adds a failure to those of its cause.
    fn fail(
        &self,
        failing: &Trace,
        verdict: &Verdict,
        [senders, receivers]: &[Vec<Parcel>; 2],
        failures: &mut BTreeMap<Cause, Failure>,
    ) {
        let trace = self.smallest(failing, senders, receivers);
        let cause = cause(&trace);
        let owners = receivers.iter().map(|it| (self.to, it.owner));
        let failure = Failure {
            trace,
            pairs: count(senders.iter()).saturating_mul(count(receivers.iter())),
            between: BTreeSet::from([(self.from, self.to)]),
            classes: BTreeSet::from([(verdict.from, verdict.to)]),
            receivers: owners.collect(),
        };
        match failures.entry(cause) {
            Entry::Vacant(entry) => drop(entry.insert(failure)),
            Entry::Occupied(mut entry) => entry.get_mut().add(failure),
        }
    }

    /// Returns how the packet between the smallest of these addresses fails, if it fails as this one
    /// does.
    fn smallest(&self, failing: &Trace, senders: &[Parcel], receivers: &[Parcel]) -> Trace {
        let smallest = |parcels: &[Parcel]| parcels.iter().min_by_key(|it| it.span.first).copied();
        let (Some(sender), Some(receiver)) = (smallest(senders), smallest(receivers)) else {
            return failing.clone();
        };
        let Some(node) = sender.owner.node() else {
            return failing.clone();
        };
        let to = match receiver.owner.node() {
            Some(node) => Goal::Node(At {
                site: self.to,
                node,
            }),
            None => failing.packet.to,
        };
        let trace = self.reach.fabric.exchange(Packet {
            from: At {
                site: self.from,
                node,
            },
            source: sender.span.first_address(),
            to,
            destination: receiver.span.first_address(),
            session: Session::New,
        });
        if trace.verdict() == failing.verdict() {
            return trace;
        }
        failing.clone()
    }
}

/// Returns whether the range with which a cluster would give an address away lies wholly in one entry
/// of each list.
fn is_accepted(site: Option<&Site>, parcel: &Parcel, lists: &[&[Range]]) -> bool {
    if lists.is_empty() {
        return true;
    }
    let given = site.and_then(|site| {
        let mut around = site.owned.around(parcel.span);
        around.find_map(|slot| {
            let (range, owners) = site.owned.get(slot)?;
            owners.contains(&parcel.owner).then_some(range)
        })
    });
    given.is_some_and(|given| {
        let mut lists = lists.iter();
        lists.all(|list| list.iter().any(|it| it.cidr.contains(given)))
    })
}

fn count<'p>(parcels: impl Iterator<Item = &'p Parcel>) -> u64 {
    u64::try_from(parcels.count()).unwrap_or(u64::MAX)
}

/// Returns what a failure has in common with others.
fn cause(trace: &Trace) -> Cause {
    let (from, to) = (trace.packet.from.site, trace.packet.to.site());
    let verdict = trace.verdict();
    match trace.ending() {
        Ending::StolenBy {
            at, claim, range, ..
        }
        | Ending::UnknownKey { at, claim, range } => {
            (verdict, at.site, to, Some((claim.tunnel, *range)))
        }
        Ending::Loops {
            at, peer, range, ..
        } => (verdict, at.site, to, Some((Tunnel::Peer(*peer), *range))),
        Ending::SourceRejected {
            by,
            owner: Some((claim, range)),
            ..
        } => (verdict, by.site, from, Some((claim.tunnel, *range))),
        Ending::SourceRejected { by, .. } | Ending::NotAccepted { by, .. } => {
            (verdict, by.site, from, None)
        }
        Ending::Delivered
        | Ending::LocalShadow { .. }
        | Ending::NoRoute { .. }
        | Ending::NoInitiator { .. }
        | Ending::Ambiguous { .. }
        | Ending::NotReady { .. } => (verdict, from, to, None),
    }
}
