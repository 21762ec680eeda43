//! Reach: what holds for whole classes of packets at once, so that a mesh is proved in the time that
//! its tables take and not in that of its pairs.
//!
//! The nodes of a cluster have the same WireGuard table, themselves aside. So what becomes of a packet
//! hangs on two views only: how the sender's cluster sees the destination, and how the receiver's sees
//! the source. Addresses that are seen alike are one class; what [`super::packet`] finds for one packet
//! between two classes holds for all of them. Where nodes of one cluster see something differently, it
//! is looked at from each of them.

use std::collections::BTreeSet;
use std::net::IpAddr;

use super::fabric::{At, Fabric, Owner, Site};
use super::model::{Dial, Holder, Tunnel};
use super::own::Leader;
use super::packet::{Goal, Packet, Session, stays};
use super::peers::Standing;
use super::prefixes::{Prefixes, Span};
use super::trace::{Class, Trace};
use crate::net::Family;
use crate::wireguard::Host;

/// How every cluster sees every other one.
#[derive(Clone, Debug)]
pub struct Reach<'f, 'a> {
    /// The clusters.
    pub fabric: &'f Fabric<'a>,
    seen: Vec<Seen>,
}

/// How one cluster sees the others.
#[derive(Clone, Debug)]
pub struct Seen {
    /// By number of the other cluster: what is alike in it.
    others: Vec<Vec<Kin>>,
}

/// Addresses of one cluster that another one sees alike.
#[derive(Clone, Debug)]
struct Kin {
    class: Class,
    /// How each piece of them is seen, in the order of addresses.
    views: Vec<View>,
    /// Whose they are.
    parcels: Vec<Parcel>,
}

/// Addresses of a cluster that have one owner.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub struct Parcel {
    /// The owner.
    pub owner: Owner,
    /// The addresses.
    pub span: Span,
}

/// Everything about a piece of a parcel that the way of a packet to it, or from it, hangs on.
#[derive(Clone, Copy, Debug, Eq, Ord, PartialEq, PartialOrd)]
struct View {
    family: Family,
    select: Select,
    link: Link,
    deliver: Deliver,
    /// Whether its leader calls others unasked.
    calls: bool,
    /// Whether it is certain who speaks for it.
    is_led: bool,
    /// A number of its own where nodes of the cluster that looks see it differently.
    unique: Option<usize>,
}

/// Where the cluster that looks would send a packet.
#[derive(Clone, Copy, Debug, Eq, Ord, PartialEq, PartialOrd)]
enum Select {
    NoRoute,
    Shadow,
    Doubt(usize),
    Unknown(usize),
    Thief(usize),
    Right,
}

/// Its Peer for whoever speaks for the piece.
#[derive(Clone, Copy, Debug, Eq, Ord, PartialEq, PartialOrd)]
enum Link {
    None,
    Doubt,
    /// Not the leader of its segment.
    Silent,
    One(Dialled),
}

/// Whether it gets there where it dials.
#[derive(Clone, Copy, Debug, Eq, Ord, PartialEq, PartialOrd)]
enum Dialled {
    Yes,
    No,
    Loops(usize),
}

/// What the cluster of the piece does with a packet for it.
#[derive(Clone, Copy, Debug, Eq, Ord, PartialEq, PartialOrd)]
enum Deliver {
    Takes,
    /// This range has other claims.
    Sends(usize),
}

/// What a cluster knows of a Peer whoever asks.
#[derive(Clone, Copy, Debug)]
struct Known {
    holder: Holding,
    link: Link,
    /// Whether all of its nodes say the same of it.
    is_uniform: bool,
}

/// Who has the key of a Peer.
#[derive(Clone, Copy, Debug)]
enum Holding {
    Nobody,
    One(At),
    Many,
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

impl Seen {
    /// Looks at all clusters from one of them; none needs another for that, so that a caller may look
    /// from several at once.
    pub fn from(fabric: &Fabric, viewer: usize) -> Self {
        let Some(site) = fabric.site(viewer) else {
            return Self { others: Vec::new() };
        };
        let known = known(fabric, site);
        let mut eye = Eye {
            fabric,
            site,
            known: &known,
            unique: 0,
        };
        let others = fabric.sites.iter().enumerate().map(|(number, home)| {
            let mut kin: Vec<Kin> = Vec::new();
            if number != viewer {
                for parcel in parcels(home) {
                    eye.sort(number, home, parcel, &mut kin);
                }
            }
            kin
        });
        Self {
            others: others.collect(),
        }
    }
}

impl<'f, 'a> Reach<'f, 'a> {
    /// Looks at all clusters from each of them.
    pub fn new(fabric: &'f Fabric<'a>) -> Self {
        let seen = (0..fabric.sites.len()).map(|site| Seen::from(fabric, site));
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
        let mut traces: Vec<Trace> = Vec::new();
        for source in pieces(viewer, home, one.span) {
            for destination in pieces(home, viewer, other.span) {
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

impl Kin {
    fn is_uniform(&self) -> bool {
        self.views.iter().all(|view| view.unique.is_none())
    }

    fn family(&self) -> Option<Family> {
        Some(self.views.first()?.family)
    }
}

/// Who looks.
struct Eye<'e, 'a> {
    fabric: &'e Fabric<'a>,
    site: &'e Site<'a>,
    known: &'e [Known],
    unique: usize,
}

impl Eye<'_, '_> {
    /// Puts a parcel to those that are seen like it.
    fn sort(&mut self, number: usize, home: &Site, parcel: Parcel, kin: &mut Vec<Kin>) {
        let Some(class) = parcel.owner.class() else {
            return;
        };
        let pieces = pieces(self.site, home, parcel.span).into_iter();
        let views: Vec<View> = pieces
            .map(|span| self.view(number, home, Parcel { span, ..parcel }))
            .collect();
        let alike = kin
            .iter_mut()
            .find(|it| it.class == class && it.views == views);
        match alike {
            Some(alike) => alike.parcels.push(parcel),
            None => kin.push(Kin {
                class,
                views,
                parcels: vec![parcel],
            }),
        }
    }

    fn view(&mut self, number: usize, home: &Site, parcel: Parcel) -> View {
        let segment = parcel.owner.node().and_then(|node| home.segment(node));
        let leader = segment.and_then(|it| home.leader(it));
        let speaker = leader.map(|it| At {
            site: number,
            node: it.node(),
        });
        let (selected, is_same) = self.select(parcel.span);
        let mut is_uniform = is_same;
        let (select, speaker, link) = match selected {
            Ok(peer) => {
                let known = self.known.get(peer).copied();
                is_uniform &= known.is_none_or(|it| it.is_uniform);
                match known.map(|it| it.holder) {
                    Some(Holding::One(at)) if is_meant(number, home, parcel, at) => {
                        let link = known.map(|it| it.link);
                        (Select::Right, Some(at), link)
                    }
                    Some(Holding::One(_)) => (Select::Thief(peer), speaker, None),
                    Some(Holding::Many) => (Select::Doubt(peer), speaker, None),
                    Some(Holding::Nobody) | None => (Select::Unknown(peer), speaker, None),
                }
            }
            Err(select) => (select, speaker, None),
        };
        let link = link.unwrap_or_else(|| {
            let known = speaker.and_then(|at| self.peer_of(at));
            is_uniform &= known.is_none_or(|it| it.is_uniform);
            known.map_or(Link::None, |it| it.link)
        });
        let calls = speaker.and_then(|at| self.fabric.node(at));
        let unique = (!is_uniform).then(|| {
            self.unique += 1;
            self.unique
        });
        View {
            family: parcel.span.family,
            select,
            link,
            deliver: deliver(home, segment.or_else(|| segment_of(home, speaker)), parcel),
            calls: calls.is_some_and(|it| 0 < it.keepalive),
            is_led: !matches!(
                leader.or_else(|| home.leader(segment_of(home, speaker)?)),
                Some(Leader::Ambiguous(_))
            ),
            unique,
        }
    }

    /// Returns what there is of a Peer with the key of a node.
    fn peer_of(&self, at: At) -> Option<Known> {
        let key = self.fabric.node(at)?.kilo.key?;
        let mut known = *self.known.get(*self.site.peers_with(&key).first()?)?;
        if let Link::One(_) = known.link
            && let Holding::Many = known.holder
        {
            known.link = Link::Doubt;
        }
        Some(known)
    }

    /// Returns which nodes have these addresses beside them.
    fn connected(&self, span: Span) -> Connected {
        let connections = self.site.connections();
        if !connections.meets(span) {
            return Connected::Nobody;
        }
        let longest = connections.around(span).next();
        let nodes = longest.and_then(|slot| connections.get(slot));
        let nodes = nodes.map(|it| it.1).unwrap_or_default();
        let own = &self.site.model.own.nodes;
        match nodes.first() {
            Some(first) if nodes.len() == own.len() => Connected::All(*first),
            _ => Connected::Some,
        }
    }

    /// Returns the Peer that a packet to these addresses would be given to, and whether that is so on
    /// all nodes.
    fn select(&self, span: Span) -> (Result<usize, Select>, bool) {
        let address = span.first_address();
        if self.site.owner(address) == Some(Owner::Services) {
            return (Err(Select::Shadow), true);
        }
        let is_same = match self.connected(span) {
            Connected::All(node) if stays_at(self.site, node, address) => {
                return (Err(Select::Shadow), true);
            }
            Connected::Nobody | Connected::All(_) => true,
            Connected::Some => false,
        };
        let tunnels = &self.site.model.tunnels;
        let Some(slot) = tunnels.around(span).next() else {
            return (Err(Select::NoRoute), is_same);
        };
        let claims = tunnels.get(slot).map(|it| it.1).unwrap_or_default();
        let is_known = |peer: usize| !self.site.has_own_key(peer);
        let is_same = is_same
            && claims.iter().all(|claim| match claim.tunnel {
                Tunnel::Peer(peer) => is_known(peer),
                Tunnel::Segment(_) => false,
            });
        let selected = match self.site.model.holder(0, slot) {
            Some(Holder::Certain(claim)) => match claim.tunnel {
                Tunnel::Peer(peer) => Ok(peer),
                Tunnel::Segment(_) => Err(Select::Shadow),
            },
            Some(Holder::Ambiguous(_)) => Err(Select::Doubt(slot)),
            None => Err(Select::NoRoute),
        };
        (selected, is_same)
    }
}

/// Returns whether a Peer that leads to `at` leads to the parcel.
fn is_meant(number: usize, home: &Site, parcel: Parcel, at: At) -> bool {
    let segment = parcel.owner.node().map(|node| home.segment(node));
    at.site == number && segment.is_none_or(|it| it.is_some() && home.segment(at.node) == it)
}

/// Which nodes of a cluster have some addresses beside them.
enum Connected {
    Nobody,
    Some,
    /// All of them alike; one of them.
    All(usize),
}

fn stays_at(site: &Site, node: usize, address: IpAddr) -> bool {
    let at = At { site: 0, node };
    stays(site, at, address).is_err()
}

/// Returns the segment of a node of a cluster.
fn segment_of(site: &Site, at: Option<At>) -> Option<usize> {
    site.segment(at?.node)
}

/// Returns what a cluster does with packets for a parcel of its own that arrive in a segment.
fn deliver(home: &Site, segment: Option<usize>, parcel: Parcel) -> Deliver {
    let tunnels = &home.model.tunnels;
    let slot = tunnels.around(parcel.span).next();
    let Some((slot, (_, claims))) = slot.and_then(|it| Some((it, tunnels.get(it)?))) else {
        return Deliver::Takes;
    };
    let is_own = |it: Tunnel| segment.is_some_and(|segment| it == Tunnel::Segment(segment));
    if parcel.owner == Owner::Services || claims.iter().all(|it| is_own(it.tunnel)) {
        return Deliver::Takes;
    }
    Deliver::Sends(slot)
}

/// Returns what there is to a cluster in the order of its Peers.
fn known(fabric: &Fabric, site: &Site) -> Vec<Known> {
    (0..site.model.peers.len())
        .map(|peer| known_of(fabric, site, peer))
        .collect()
}

fn known_of(fabric: &Fabric, site: &Site, peer: usize) -> Known {
    let tunnel = Tunnel::Peer(peer);
    let unknown = Known {
        holder: Holding::Nobody,
        link: Link::None,
        is_uniform: true,
    };
    let Some(key) = site.model.key(tunnel) else {
        return unknown;
    };
    let holder = match fabric.holders(&key) {
        [] => Holding::Nobody,
        [one] => Holding::One(*one),
        _ => Holding::Many,
    };
    let share = site.model.share(peer);
    let has_secret = share.is_some_and(|it| it.translation.preshared_key.is_some());
    let standing = site.model.peers.get(peer).map(|it| &it.standing);
    let is_certain = matches!(standing, Some(Standing::Certain(_)));
    let Holding::One(at) = holder else {
        return Known { holder, ..unknown };
    };
    let leads = fabric.site(at.site).is_some_and(|home| {
        let leader = home.segment(at.node).and_then(|it| home.leader(it));
        leader.is_some_and(|it| it.node() == at.node)
    });
    let may_loop = match site.model.endpoint(tunnel).map(|it| &it.host) {
        Some(Host::Ip(address)) => site.model.tunnels.holding(*address).next().is_some(),
        Some(Host::Dns(_)) | None => false,
    };
    let link = if !is_certain || 1 < site.peers_with(&key).len() {
        Link::Doubt
    } else if !leads {
        Link::Silent
    } else {
        Link::One(dialled(fabric, site, peer, at))
    };
    Known {
        holder,
        link,
        is_uniform: !has_secret && !may_loop && !site.has_own_key(peer),
    }
}

fn dialled(fabric: &Fabric, site: &Site, peer: usize, at: At) -> Dialled {
    let endpoint = site.model.endpoint(Tunnel::Peer(peer));
    let answers = || endpoint.is_some_and(|it| fabric.answers(it, at));
    match site.model.dial(0, Tunnel::Peer(peer)) {
        Dial::Name(_) => Dialled::Yes,
        Dial::Address(_) if answers() => Dialled::Yes,
        Dial::Loops(slot) if answers() => Dialled::Loops(slot),
        Dial::Address(_) | Dial::Loops(_) | Dial::Unknown => Dialled::No,
    }
}

/// Returns everything in a cluster that is sent to: what each node that Kilo counts has, and what is
/// declared for the whole.
pub fn parcels(site: &Site) -> Vec<Parcel> {
    let mut parcels = Vec::new();
    for (number, node) in site.model.own.nodes.iter().enumerate() {
        if node.segment.is_none() {
            continue;
        }
        let pods = node.kilo.pod_cidr.map(|range| Parcel {
            owner: Owner::Pods(number),
            span: Span::of(range),
        });
        let own = site.address(number).map(|address| Parcel {
            owner: Owner::Node(number),
            span: Span::host(address),
        });
        parcels.extend(pods.into_iter().chain(own));
    }
    for slot in 0..site.owned.len() {
        let Some((range, [owner, ..])) = site.owned.get(slot) else {
            continue;
        };
        if matches!(owner, Owner::Services | Owner::Network) {
            // What nodes have of their own in it is theirs.
            let pieces = site.owned.pieces(Span::of(range)).into_iter();
            let rest = pieces.filter(|piece| piece.slot == Some(slot));
            parcels.extend(rest.map(|piece| Parcel {
                owner: *owner,
                span: piece.span,
            }));
        }
    }
    parcels
}

/// Cuts addresses of `home` wherever anything changes for those in `viewer` or for itself.
pub fn pieces(viewer: &Site, home: &Site, span: Span) -> Vec<Span> {
    let is_one = span.first == span.last
        || is_whole(&viewer.owned, span)
            && is_whole(viewer.connections(), span)
            && is_whole(home.connections(), span)
            && is_whole(&viewer.model.tunnels, span)
            && is_whole(&home.model.tunnels, span);
    if is_one {
        return vec![span];
    }
    let mut starts = BTreeSet::from([span.first]);
    let mut cut = |inner: Span| {
        starts.insert(inner.first.max(span.first));
        if inner.last < span.last && span.first <= inner.last {
            starts.insert(inner.last + 1);
        }
    };
    spans(&viewer.model.tunnels, span).for_each(&mut cut);
    spans(&home.model.tunnels, span).for_each(&mut cut);
    spans(viewer.connections(), span).for_each(&mut cut);
    spans(home.connections(), span).for_each(&mut cut);
    spans(&viewer.owned, span).for_each(&mut cut);
    let starts: Vec<u128> = starts.into_iter().collect();
    let ends = starts.iter().skip(1).map(|it| it - 1).chain([span.last]);
    let both = starts.iter().zip(ends);
    both.map(|(&first, last)| Span {
        first,
        last,
        ..span
    })
    .collect()
}

/// Returns whether no range begins or ends within `span`.
fn is_whole<T>(prefixes: &Prefixes<T>, span: Span) -> bool {
    spans(prefixes, span).all(|it| it.holds(span))
}

/// Returns the ranges that may begin or end within `span`.
fn spans<T>(prefixes: &Prefixes<T>, span: Span) -> impl Iterator<Item = Span> {
    // What is a range itself holds others or is held, and nothing ends in it that began before.
    let ends = if span.is_range() { None } else { Some(()) };
    let ends = ends.into_iter().flat_map(move |()| {
        let last = Span {
            first: span.last,
            ..span
        };
        let first = Span {
            last: span.first,
            ..span
        };
        prefixes.around(first).chain(prefixes.around(last))
    });
    let slots = prefixes.within(span).chain(ends);
    slots.filter_map(|slot| Some(Span::of(prefixes.get(slot)?.0)))
}
