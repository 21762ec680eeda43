//! Expectations, held against what is reached.

use super::fabric::{At, Fabric};
use super::packet::{Ending, Packet, Session};
use super::prefixes::Span;
use super::reach::{Parcel, Reach, Verdict, pieces};
use super::trace::{Class, Trace};
use crate::expectations::{Class as Wanted, Expectation, Expected, Selection};
use meant::{Chosen, Meant, Part, Stock, count};

mod meant;

/// What came of an expectation.
#[derive(Clone, Debug)]
pub struct Check<'e> {
    /// The expectation.
    pub expectation: &'e Expectation,
    /// How many pairs it is about, of an owner or a range that it names each.
    pub pairs: u64,
    /// How many of them break it.
    pub broken: u64,
    /// The smallest packet that does.
    pub counterexample: Option<Trace>,
    /// What it means and is not there.
    pub voids: Vec<Void>,
}

/// Something that an expectation means and that is not there: it may be a typo, and what is about
/// nothing always holds.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub enum Void {
    /// No cluster has the name.
    Cluster(Side),
    /// Nothing of what is meant has any of these addresses.
    Addresses {
        /// Which side.
        side: Side,
        /// The index of the range.
        index: usize,
    },
    /// There is nothing of all that must hold.
    Nothing(Side),
    /// Both sides are in this cluster only.
    OneCluster(usize),
    /// One side has IPv4 addresses only and the other IPv6.
    Families,
}

/// A side of an expectation.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub enum Side {
    /// Who sends.
    From,
    /// Who is sent to.
    To,
}

impl Check<'_> {
    /// Returns whether it is about something and all of that is as it is expected.
    pub fn holds(&self) -> bool {
        self.counterexample.is_none() && self.voids.is_empty()
    }
}

impl Side {
    /// Returns what an expectation says of it.
    pub fn of(self, expectation: &Expectation) -> &Selection {
        match self {
            Self::From => &expectation.from,
            Self::To => &expectation.to,
        }
    }
}

/// Holds expectations against what is reached, in their order.
pub fn check<'e>(reach: &Reach, expectations: &'e [Expectation]) -> Vec<Check<'e>> {
    if expectations.is_empty() {
        return Vec::new();
    }
    let sites = &reach.fabric.sites;
    let stock: Vec<Stock> = sites.iter().map(|it| Stock::of(it)).collect();
    expectations
        .iter()
        .map(|it| check_one(reach, &stock, it))
        .collect()
}

fn check_one<'e>(reach: &Reach, stock: &[Stock], expectation: &'e Expectation) -> Check<'e> {
    let sites = &reach.fabric.sites;
    let choose = |meant: &Meant| -> Vec<Chosen> {
        let sites = sites.iter().zip(stock);
        let chosen = sites.map(|(site, stock)| Chosen {
            ready: meant.of(site, &stock.ready),
            unready: meant.of(site, &stock.unready),
        });
        chosen.collect()
    };
    let (from, to) = (
        Meant::by(expectation, Side::From),
        Meant::by(expectation, Side::To),
    );
    let (senders, receivers) = (choose(&from), choose(&to));
    let mut check = Check {
        expectation,
        pairs: 0,
        broken: 0,
        counterexample: None,
        voids: Vec::new(),
    };
    for (one, senders) in senders.iter().enumerate().filter(|it| !it.1.is_empty()) {
        for (other, receivers) in receivers.iter().enumerate().filter(|it| !it.1.is_empty()) {
            let (Some(home), Some(away)) = (sites.get(one), sites.get(other)) else {
                continue;
            };
            if one == other {
                continue;
            }
            let sent = |parcel: &Parcel| from.part(home, parcel);
            let taken = |parcel: &Parcel| to.part(away, parcel);
            for verdict in parts(reach, (one, &sent), (other, &taken)) {
                check.judge(reach.fabric, &verdict);
            }
            check.judge_unready(reach.fabric, (one, senders), (other, receivers));
        }
    }
    check.look_for_voids(reach.fabric, &senders, &receivers);
    check
}

/// Returns what holds for packets from some of one cluster's addresses to some of another's. Owners
/// whose addresses are alike stay together where all of them are meant; of a part not all that is true
/// of the whole needs to be.
fn parts<'r>(
    reach: &'r Reach,
    (from, sent): (usize, &dyn Fn(&Parcel) -> Part),
    (to, taken): (usize, &dyn Fn(&Parcel) -> Part),
) -> Vec<Verdict<'r>> {
    let is_sent = |parcel: &Parcel| sent(parcel) != Part::None;
    let is_taken = |parcel: &Parcel| taken(parcel) != Part::None;
    let alike = reach.among((from, &is_sent), (to, &is_taken));
    let mut verdicts = Vec::new();
    for verdict in alike {
        let senders = groups(&verdict.senders, sent);
        let receivers = groups(&verdict.receivers, taken);
        if senders == [&*verdict.senders] && receivers == [&*verdict.receivers] {
            verdicts.push(verdict);
            continue;
        }
        for senders in &senders {
            for receivers in &receivers {
                verdicts.push(Verdict {
                    from: verdict.from,
                    to: verdict.to,
                    senders: senders.clone().into(),
                    receivers: receivers.clone().into(),
                    traces: traces(reach.fabric, (from, senders), (to, receivers)),
                    is_kept: false,
                });
            }
        }
    }
    verdicts
}

/// Returns what is meant of parcels that are alike: whole ones together, parts by themselves.
fn groups(parcels: &[Parcel], is_meant: &dyn Fn(&Parcel) -> Part) -> Vec<Vec<Parcel>> {
    let (mut whole, mut groups) = (Vec::new(), Vec::new());
    for &parcel in parcels {
        match is_meant(&parcel) {
            Part::None => {}
            Part::Whole => whole.push(parcel),
            Part::Spans(spans) => {
                let parts = spans.into_iter();
                groups.extend(parts.map(|span| vec![Parcel { span, ..parcel }]));
            }
        }
    }
    if !whole.is_empty() {
        groups.push(whole);
    }
    groups
}

/// Returns every way in which packets between parcels that are alike end, with a packet each.
fn traces(
    fabric: &Fabric,
    (from, senders): (usize, &[Parcel]),
    (to, receivers): (usize, &[Parcel]),
) -> Vec<Trace> {
    let mut traces: Vec<Trace> = Vec::new();
    let ends = senders.first().zip(receivers.first());
    let sites = fabric.site(from).zip(fabric.site(to));
    let (Some((&sender, &receiver)), Some((home, away))) = (ends, sites) else {
        return traces;
    };
    for source in pieces(away, home, sender.span) {
        for destination in pieces(home, away, receiver.span) {
            let sender = Parcel {
                span: source,
                ..sender
            };
            let receiver = Parcel {
                span: destination,
                ..receiver
            };
            let trace = packet((from, sender), (to, receiver)).map(|it| fabric.exchange(it));
            traces.extend(trace.filter(|trace| {
                let mut known = traces.iter();
                known.all(|it| it.verdict() != trace.verdict())
            }));
        }
    }
    traces
}

impl Check<'_> {
    fn is_broken_by(&self, trace: &Trace) -> bool {
        match self.expectation.expected {
            Expected::Reach => !trace.is_delivered(),
            // What may arrive is not kept out.
            Expected::Deny => matches!(
                trace.there.ending,
                Ending::Delivered | Ending::Ambiguous { .. }
            ),
        }
    }

    fn judge(&mut self, fabric: &Fabric, verdict: &Verdict) {
        self.pairs += verdict.pairs();
        let mut traces = verdict.traces.iter();
        let Some(breaking) = traces.find(|it| self.is_broken_by(it)) else {
            return;
        };
        self.broken += verdict.pairs();
        let smallest = |parcels: &[Parcel]| parcels.iter().min_by_key(|it| it.span.first).copied();
        let (from, to) = (breaking.packet.from.site, breaking.packet.to.site());
        let both = smallest(&verdict.senders).zip(smallest(&verdict.receivers));
        let packet = both.and_then(|(sender, receiver)| packet((from, sender), (to, receiver)));
        let smaller = packet.map(|it| fabric.exchange(it));
        let smaller = smaller.filter(|it| self.is_broken_by(it));
        self.show(smaller.unwrap_or_else(|| breaking.clone()));
    }

    /// Counts the pairs with nodes that Kilo does not count: nothing reaches them, nor they anything.
    fn judge_unready(
        &mut self,
        fabric: &Fabric,
        (from, senders): (usize, &Chosen),
        (to, receivers): (usize, &Chosen),
    ) {
        let ready = senders.ready.iter().map(|it| (*it, true));
        let unready = senders.unready.iter().map(|it| (*it, false));
        for (sender, is_ready) in ready.chain(unready) {
            let apart = if is_ready {
                count(&receivers.unready, sender.span.family)
            } else {
                receivers.fitting(sender)
            };
            self.pairs += apart;
            if apart == 0 || self.expectation.expected == Expected::Deny {
                continue;
            }
            self.broken += apart;
            let fits = |it: &Parcel| it.span.family == sender.span.family;
            let ready = receivers.ready.iter().filter(|_| !is_ready);
            let others = ready.chain(&receivers.unready).copied().filter(fits);
            let smallest = others.min_by_key(|it| it.span.first);
            let packet = smallest.and_then(|it| packet((from, sender), (to, it)));
            if let Some(packet) = packet {
                self.show(fabric.exchange(packet));
            }
        }
    }

    /// Keeps the smaller counterexample.
    fn show(&mut self, trace: Trace) {
        let size = |trace: &Trace| (trace.packet.source, trace.packet.destination);
        let known = self.counterexample.as_ref();
        if known.is_none_or(|known| size(&trace) < size(known)) {
            self.counterexample = Some(trace);
        }
    }

    fn look_for_voids(&mut self, fabric: &Fabric, senders: &[Chosen], receivers: &[Chosen]) {
        for (side, chosen) in [(Side::From, senders), (Side::To, receivers)] {
            let selection = side.of(self.expectation);
            let cluster = selection.cluster.as_ref();
            if cluster.is_some_and(|it| fabric.site_named(it.as_str()).is_none()) {
                self.voids.push(Void::Cluster(side));
                continue;
            }
            let ranges = selection.addresses.iter().enumerate();
            let missing = ranges.filter(|(_, range)| {
                let span = Span::of(**range);
                let mut all = chosen.iter().flat_map(Chosen::all);
                !all.any(|it| it.span.common(span).is_some())
            });
            let missing: Vec<Void> = missing
                .map(|(index, _)| Void::Addresses { side, index })
                .collect();
            if missing.is_empty() && chosen.iter().all(Chosen::is_empty) {
                self.voids.push(Void::Nothing(side));
            }
            self.voids.extend(missing);
        }
        if self.pairs == 0 && self.voids.is_empty() {
            let of = |chosen: &[Chosen]| chosen.iter().position(|it| !it.is_empty());
            let last = |chosen: &[Chosen]| chosen.iter().rposition(|it| !it.is_empty());
            let ends = [of(senders), last(senders), of(receivers), last(receivers)];
            self.voids.push(match ends {
                [Some(one), ..] if ends.iter().all(|it| *it == Some(one)) => Void::OneCluster(one),
                _ => Void::Families,
            });
        }
    }
}

/// Returns the smallest packet from one parcel to another.
fn packet((from, sender): (usize, Parcel), (to, receiver): (usize, Parcel)) -> Option<Packet> {
    let node = sender.owner.node()?;
    Some(Packet {
        from: At { site: from, node },
        source: sender.span.first_address(),
        to: receiver.owner.goal(to),
        destination: receiver.span.first_address(),
        session: Session::New,
    })
}

impl From<Wanted> for Class {
    fn from(wanted: Wanted) -> Self {
        match wanted {
            Wanted::Pod => Self::Pod,
            Wanted::Node => Self::Node,
            Wanted::Service => Self::Service,
            Wanted::Network => Self::Network,
        }
    }
}

#[cfg(test)]
mod tests;
