//! Hostility: what a cluster could do to the others if its root did whatever it liked to its own side.
//!
//! It has the keys of its nodes, and every address, route and tunnel that it wants. What the others
//! apply stays as it is, so that all it can be to them is what their own tables say of its keys: the
//! sources that they take from it, and the destinations that they send to it.

use std::collections::BTreeSet;
use std::iter;

use super::fabric::{At, Fabric, Owner, Site};
use super::model::{Claim, Holder, Tunnel};
use super::own::Leader;
use super::packet::{Doubt, Ending, keeps, stays};
use super::prefixes::{Prefixes, Span};
use super::reach::pieces;
use super::trace::Class;
use super::verify::are_linked;
use crate::mesh::Mesh;
use crate::net::Cidr;

/// What a cluster could do.
#[derive(Clone, Debug)]
pub struct Hostile {
    /// The number of the cluster.
    pub site: usize,
    /// What each of the others is exposed to.
    pub exposures: Vec<Exposure>,
}

/// What a cluster is exposed to from a hostile one.
#[derive(Clone, Debug)]
pub struct Exposure {
    /// The number of the cluster.
    pub site: usize,
    /// Whether a mesh links the two.
    pub is_linked: bool,
    /// The far ends of its tunnels that have a key of the hostile one's nodes. Without any it hears
    /// nothing at all.
    pub heard: Vec<Tunnel>,
    /// The sources that it takes from it, in the order of addresses.
    pub believed: Vec<Hold>,
    /// The destinations that it sends to it, in the order of addresses.
    pub attracted: Vec<Hold>,
    /// What the hostile one can send to there: Kilo has no firewall. And what is not among it is
    /// masqueraded (`kilo.md` §6.2), so that the cluster is a way out to wherever its nodes get.
    pub open: Vec<Open>,
    /// What the others do with what it passes on.
    pub onward: Vec<Onward>,
}

/// Addresses that a far end has in a cluster's tables.
#[derive(Clone, Debug, Eq, PartialEq)]
pub struct Hold {
    /// The addresses.
    pub span: Span,
    /// What gives them to it.
    pub claim: Claim,
    /// Whether it has them whatever came last.
    pub is_certain: bool,
    /// Whose they should be.
    pub whose: Whose,
}

/// Whose addresses are, as the meshes say and the other clusters' nodes.
#[derive(Clone, Debug, Eq, PartialEq)]
pub enum Whose {
    /// The hostile cluster's: it declares them. What its nodes say counts for nothing.
    Declared,
    /// Those of other clusters.
    Others(Vec<(usize, Owner)>),
    /// Nobody's.
    Nobody,
}

/// Something of a cluster that can be sent to from within.
#[derive(Clone, Copy, Debug, Eq, Ord, PartialEq, PartialOrd)]
pub enum Open {
    /// An owner's addresses.
    Owned(Owner, Cidr),
    /// A network that nodes say they are in.
    Lan(Cidr),
}

/// What becomes of packets of the hostile cluster that another one passes on to a third.
#[derive(Clone, Debug)]
pub struct Onward {
    /// The number of the third.
    pub site: usize,
    /// Whether a mesh links the third with the hostile one.
    pub is_linked: bool,
    /// The sources with which it gets through.
    pub passages: Vec<Passage>,
}

/// A source that the third takes from the second.
#[derive(Clone, Debug, Eq, PartialEq)]
pub struct Passage {
    /// The addresses.
    pub span: Span,
    /// The node of the second that passes them on.
    pub by: At,
    /// What lets them in at the third.
    pub claim: Claim,
}

/// Something that a hostile cluster can do and no mesh lets it do.
#[derive(Clone, Copy, Debug)]
pub enum Breach<'h> {
    /// A cluster that no link joins it with hears it.
    Heard(&'h Exposure),
    /// A cluster takes it for somebody else.
    Impersonation(&'h Exposure, &'h Hold),
    /// A cluster sends it what is not meant for it.
    Capture(&'h Exposure, &'h Hold),
    /// It gets through a cluster to one that no link joins it with.
    Passage(&'h Exposure, &'h Onward),
}

impl Open {
    /// Returns the addresses.
    pub fn range(self) -> Cidr {
        match self {
            Self::Owned(_, range) | Self::Lan(range) => range,
        }
    }

    /// Returns what they are addresses of; none of a network that is nobody's alone.
    pub fn class(self) -> Option<Class> {
        match self {
            Self::Owned(owner, _) => owner.class(),
            Self::Lan(_) => None,
        }
    }
}

impl Hostile {
    /// Returns everything that no mesh lets it do; of one that is contained nothing.
    pub fn breaches(&self) -> Vec<Breach<'_>> {
        let mut breaches = Vec::new();
        for exposure in &self.exposures {
            let is_heard = !exposure.believed.is_empty() || !exposure.attracted.is_empty();
            if is_heard && !exposure.is_linked {
                breaches.push(Breach::Heard(exposure));
            }
            let undeclared = |hold: &&Hold| hold.whose != Whose::Declared;
            let believed = exposure.believed.iter().filter(undeclared);
            breaches.extend(believed.map(|hold| Breach::Impersonation(exposure, hold)));
            let attracted = exposure.attracted.iter().filter(undeclared);
            breaches.extend(attracted.map(|hold| Breach::Capture(exposure, hold)));
            let through = exposure.onward.iter();
            let through = through.filter(|it| !it.is_linked && !it.passages.is_empty());
            breaches.extend(through.map(|it| Breach::Passage(exposure, it)));
        }
        breaches
    }
}

/// Finds what a cluster could do to the others. How far another one passes its packets on is followed
/// for one cluster more.
pub fn assume_hostile(fabric: &Fabric, meshes: &[Mesh], site: usize) -> Hostile {
    let Some(hostile) = fabric.site(site) else {
        let exposures = Vec::new();
        return Hostile { site, exposures };
    };
    let rights = Rights::new(fabric, site, hostile);
    let others = fabric.sites.iter().enumerate().filter(|it| it.0 != site);
    let exposures = others.map(|(number, target)| {
        let ends = FarEnds::of(fabric, target, site);
        let holds = ends.holds();
        let is_heard = !holds.is_empty();
        Exposure {
            site: number,
            is_linked: are_linked(meshes, hostile, target),
            attracted: rights.split(ends.attracted(number, &holds)),
            onward: if is_heard {
                onward(fabric, meshes, (site, number), (&ends, &holds))
            } else {
                Vec::new()
            },
            open: if is_heard { open(target) } else { Vec::new() },
            believed: rights.split(holds),
            heard: ends.ends.into_iter().collect(),
        }
    });
    let exposures = exposures.collect();
    Hostile { site, exposures }
}

/// What a far end has, before anybody asks whose it is.
#[derive(Clone, Copy)]
struct Held {
    span: Span,
    claim: Claim,
    is_certain: bool,
}

/// The far ends of a cluster's tunnels that another one has the keys of.
struct FarEnds<'f, 'a> {
    site: &'f Site<'a>,
    ends: BTreeSet<Tunnel>,
}

impl<'f, 'a> FarEnds<'f, 'a> {
    /// Finds those that have a key of `other`'s nodes. Somebody may claim a key that is not its own:
    /// then it is one of theirs all the same, for nobody can tell.
    fn of(fabric: &Fabric, site: &'f Site<'a>, other: usize) -> Self {
        let nodes = fabric.site(other).map(|it| it.model.own.nodes.as_slice());
        let keys: BTreeSet<[u8; 32]> = nodes
            .unwrap_or_default()
            .iter()
            .filter_map(|it| it.kilo.key)
            .collect();
        let model = &site.model;
        let peers = keys.iter().flat_map(|key| site.model.peers_with(key));
        let segments = (0..model.own.segments.len()).map(Tunnel::Segment);
        let has_key = |it: &Tunnel| model.key(*it).is_some_and(|key| keys.contains(&key));
        let segments = segments.filter(has_key);
        let ends = peers.copied().map(Tunnel::Peer).chain(segments).collect();
        Self { site, ends }
    }

    fn has(&self, claim: &Claim) -> bool {
        self.ends.contains(&claim.tunnel)
    }

    /// Returns the widest ranges that they lay claim to, in the order of addresses.
    fn claimed(&self) -> Vec<Cidr> {
        let tunnels = &self.site.model.tunnels;
        let mut widest: Vec<Cidr> = Vec::new();
        if self.ends.is_empty() {
            return widest;
        }
        for (range, claims) in tunnels.iter() {
            let is_inside = widest.last().is_some_and(|it| it.contains(range));
            if !is_inside && claims.iter().any(|it| self.has(it)) {
                widest.push(range);
            }
        }
        widest
    }

    /// Returns the addresses that any node's WireGuard gives to them.
    fn holds(&self) -> Vec<Held> {
        let tunnels = &self.site.model.tunnels;
        let claimed = self.claimed().into_iter();
        let pieces = claimed.flat_map(|range| tunnels.pieces(Span::of(range)));
        let held = pieces.filter_map(|piece| {
            let slot = piece.slot?;
            let segments = 0..self.site.model.own.segments.len();
            let alone = if self.is_alike(slot) { 1 } else { segments.end };
            let found = segments
                .take(alone)
                .filter_map(|segment| self.holder(segment, slot));
            let (claim, is_certain) = surest(found)?;
            Some(Held {
                span: piece.span,
                claim,
                is_certain,
            })
        });
        held.collect()
    }

    /// Returns whether all nodes have the same at a range and at the wider ones, which count where nobody
    /// may be there: the claims are Peers' whose keys are none of the cluster's own.
    fn is_alike(&self, slot: usize) -> bool {
        let tunnels = &self.site.model.tunnels;
        let mut around = iter::successors(Some(slot), |it| tunnels.parent(*it));
        around.all(|slot| {
            let mut claims = tunnels.get(slot).map_or(&[][..], |it| it.1).iter();
            claims.all(|claim| match claim.tunnel {
                Tunnel::Peer(peer) => !self.site.has_own_key(peer),
                Tunnel::Segment(_) => false,
            })
        })
    }

    /// Returns which of their claims the leader of a segment goes by for addresses of which `slot` is
    /// the longest range, and whether that is certain.
    fn holder(&self, segment: usize, slot: usize) -> Option<(Claim, bool)> {
        let model = &self.site.model;
        let (mut next, mut is_certain) = (Some(slot), true);
        while let Some(slot) = next {
            match model.holder(segment, slot) {
                Some(Holder::Certain(claim)) => {
                    return self.has(&claim).then_some((claim, is_certain));
                }
                Some(Holder::Ambiguous(claims)) => {
                    if let Some(claim) = claims.into_iter().find(|it| self.has(it)) {
                        return Some((claim, false));
                    }
                    // Where none of these is there, the next wider range counts.
                    is_certain = false;
                }
                None => {}
            }
            next = model.tunnels.parent(slot);
        }
        None
    }

    /// Returns what of the addresses that they have is sent to them: what a node has itself, or beside
    /// itself, it keeps.
    fn attracted(&self, number: usize, holds: &[Held]) -> Vec<Held> {
        let mut attracted = Vec::new();
        let own = &self.site.model.own.nodes;
        for hold in holds {
            for span in pieces(self.site, self.site, hold.span) {
                let slot = self.site.model.tunnels.around(span).next();
                let is_alike =
                    slot.is_some_and(|it| self.is_alike(it)) && !self.site.is_connected(span);
                let ready = (0..own.len()).filter(|it| self.site.segment(*it).is_some());
                let nodes = ready.take(if is_alike { 1 } else { own.len() });
                let sent = nodes.filter_map(|node| {
                    let at = At { site: number, node };
                    self.sent(at, span)
                });
                if let Some((claim, is_certain)) = surest(sent) {
                    attracted.push(Held {
                        span,
                        claim,
                        is_certain,
                    });
                }
            }
        }
        attracted
    }

    /// Returns by which of their claims a node sends packets for some addresses to them.
    fn sent(&self, from: At, span: Span) -> Option<(Claim, bool)> {
        let address = span.first_address();
        let segment = self.site.segment(from.node)?;
        let leader = self.site.leader(segment)?;
        let sender = At {
            node: leader.node(),
            ..from
        };
        stays(self.site, from, address).ok()?;
        stays(self.site, sender, address).ok()?;
        match keeps(self.site, sender, segment, address) {
            Ok(()) => {}
            Err(Ending::Ambiguous {
                doubt: Doubt::Range { claims, .. },
                ..
            }) => {
                // The segment itself is among them, and may have a key that somebody else has too.
                let is_sent =
                    |it: &Claim| self.has(it) && self.site.model.is_configured(segment, it.tunnel);
                return Some((claims.into_iter().find(is_sent)?, false));
            }
            Err(_) => return None,
        }
        let slot = self.site.model.tunnels.around(span).next()?;
        let (claim, is_certain) = self.holder(segment, slot)?;
        let is_led = matches!(leader, Leader::Certain(_));
        Some((claim, is_certain && is_led && self.site.refused().is_none()))
    }
}

/// Returns the first that is certain, or else the first.
fn surest(mut found: impl Iterator<Item = (Claim, bool)>) -> Option<(Claim, bool)> {
    let first = found.next()?;
    if first.1 {
        return Some(first);
    }
    Some(found.find(|it| it.1).unwrap_or(first))
}

/// Who should have which addresses.
struct Rights<'f, 'a> {
    declared: Prefixes<()>,
    others: Vec<(usize, &'f Site<'a>)>,
}

impl<'f, 'a> Rights<'f, 'a> {
    fn new(fabric: &'f Fabric<'a>, number: usize, hostile: &Site) -> Self {
        let declared = hostile.entry.networks.all().into_iter();
        let others = fabric.sites.iter().enumerate();
        Self {
            declared: Prefixes::new(&declared.map(|it| (it.cidr, ())).collect::<Vec<_>>()),
            others: others.filter(|it| it.0 != number).collect(),
        }
    }

    /// Splits addresses by those whose they should be.
    fn split(&self, held: Vec<Held>) -> Vec<Hold> {
        let mut holds: Vec<Hold> = Vec::new();
        for Held {
            span,
            claim,
            is_certain,
        } in held
        {
            for (span, whose) in self.whose(span) {
                let next = Hold {
                    span,
                    claim,
                    is_certain,
                    whose,
                };
                match holds.last_mut() {
                    Some(last) if last.is_continued_by(&next) => last.span.last = next.span.last,
                    _ => holds.push(next),
                }
            }
        }
        holds
    }

    fn whose(&self, span: Span) -> Vec<(Span, Whose)> {
        if self.declared.around(span).next().is_some() {
            return vec![(span, Whose::Declared)];
        }
        let declared = self.declared.across(span);
        let owned = self.others.iter().flat_map(|it| it.1.owned.across(span));
        let pieces = span.cut(declared.chain(owned)).into_iter();
        let whose = pieces.map(|span| (span, self.whose_piece(span)));
        whose.collect()
    }

    fn whose_piece(&self, span: Span) -> Whose {
        if self.declared.around(span).next().is_some() {
            return Whose::Declared;
        }
        let others = self.others.iter();
        let owners = others.filter_map(|(number, site)| {
            let slot = site.owned.around(span).next()?;
            Some((*number, *site.owned.get(slot)?.1.first()?))
        });
        let owners: Vec<(usize, Owner)> = owners.collect();
        if owners.is_empty() {
            Whose::Nobody
        } else {
            Whose::Others(owners)
        }
    }
}

impl Hold {
    fn is_continued_by(&self, next: &Self) -> bool {
        self.span.family == next.span.family
            && self.span.last.checked_add(1) == Some(next.span.first)
            && (self.claim, self.is_certain) == (next.claim, next.is_certain)
            && self.whose == next.whose
    }
}

/// Returns everything that the nodes of a cluster deliver to, whoever sends it.
fn open(site: &Site) -> Vec<Open> {
    let ranges = site.owned.iter();
    let ranges = ranges.filter_map(|(range, owners)| {
        let owner = owners.first().filter(|it| **it != Owner::Pool)?;
        Some(Open::Owned(*owner, range))
    });
    let lans = site.model.own.nodes.iter().filter_map(|it| it.lan);
    let open: BTreeSet<Open> = ranges.chain(lans.map(Open::Lan)).collect();
    open.into_iter().collect()
}

/// Follows packets of the hostile cluster through another one to all the rest.
fn onward(
    fabric: &Fabric,
    meshes: &[Mesh],
    (hostile, second): (usize, usize),
    (ends, believed): (&FarEnds, &[Held]),
) -> Vec<Onward> {
    let thirds = fabric.sites.iter().enumerate();
    let thirds = thirds.filter(|(number, _)| ![hostile, second].contains(number));
    let onward = thirds.filter_map(|(number, third)| {
        let there = FarEnds::of(fabric, ends.site, number);
        if there.holds().is_empty() {
            // It sends the third nothing.
            return None;
        }
        let back = FarEnds::of(fabric, third, second);
        let taken = back.holds();
        let passages = common(believed, &taken).into_iter();
        let passages = passages.filter_map(|(span, claim)| {
            let by = carrier(fabric, (ends, second), third, (span, claim))?;
            Some(Passage { span, by, claim })
        });
        Some(Onward {
            site: number,
            is_linked: are_linked(meshes, fabric.site(hostile)?, third),
            passages: passages.collect(),
        })
    });
    onward.collect()
}

/// Returns the addresses that are in both, both in the order of addresses, with the claims of the
/// second.
fn common(one: &[Held], other: &[Held]) -> Vec<(Span, Claim)> {
    let mut common = Vec::new();
    let (mut left, mut right) = (one.iter().peekable(), other.iter().peekable());
    while let (Some(a), Some(b)) = (left.peek(), right.peek()) {
        common.extend(a.span.common(b.span).map(|span| (span, b.claim)));
        let end = |span: Span| (span.family, span.last);
        if end(a.span) < end(b.span) {
            left.next();
        } else {
            right.next();
        }
    }
    common
}

/// Returns the node of the second cluster that has the key with which the third takes a source, if it
/// takes that source from the hostile one itself.
fn carrier(
    fabric: &Fabric,
    (ends, second): (&FarEnds, usize),
    third: &Site,
    (span, claim): (Span, Claim),
) -> Option<At> {
    let key = third.model.key(claim.tunnel)?;
    let slot = ends.site.model.tunnels.around(span).next()?;
    let mut holders = fabric.holders(&key).iter().copied();
    holders.find(|at| {
        let segment = ends.site.segment(at.node).filter(|_| at.site == second);
        let led = segment.filter(|it| {
            let leader = ends.site.leader(*it);
            leader.is_some_and(|it| it.node() == at.node)
        });
        led.is_some_and(|it| ends.holder(it, slot).is_some())
    })
}

#[cfg(test)]
mod tests;
