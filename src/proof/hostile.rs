//! Hostility: what an attacker with root in one cluster could do to the others.
//!
//! The attacker has the keys of its nodes, and can use any address, route and tunnel. The manifests
//! of the other clusters stay the same, so their own tables limit the attacker: they accept only
//! certain sources from its keys, and send only certain destinations to them.

use std::collections::BTreeSet;

use crate::agent::fabric::{At, Fabric, Owner, Site, SiteId};
use crate::agent::model::{Tunnel, TunnelClaim};
use crate::mesh::{Mesh, are_linked};
use crate::net::Cidr;
use crate::net::prefixes::Span;
use crate::packet::trace::AddressClass;
use far_end::{FarEnds, HeldPeer};
use rights::Rights;

mod far_end;
mod rights;

/// What a cluster could do.
#[derive(Clone, Debug)]
pub struct Hostile {
    /// The number of the cluster.
    pub site: SiteId,
    /// What the attacker could do to each of the other clusters.
    pub exposures: Vec<Exposure>,
}

/// What a cluster is exposed to from a hostile one.
#[derive(Clone, Debug)]
pub struct Exposure {
    /// The number of the cluster.
    pub site: SiteId,
    /// Whether a mesh links the two.
    pub is_linked: bool,
    /// The far ends of its tunnels that have a key of the hostile one's nodes. Without any it hears
    /// nothing at all.
    pub heard: Vec<Tunnel>,
    /// The sources that it takes from it, in the order of addresses.
    pub believed: Vec<Hold>,
    /// The destinations that it sends to it, in the order of addresses.
    pub attracted: Vec<Hold>,
    /// The destinations that the hostile cluster can reach there: Kilo has no firewall. Packets to
    /// other destinations are masqueraded (`kilo.md` §6.2), so they can reach everything that the nodes of
    /// the cluster can.
    pub open: Vec<OpenWay>,
    /// What the others do with what it passes on.
    pub onward: Vec<Onward>,
}

/// Addresses that a far end has in a cluster's tables.
#[derive(Clone, Debug, Eq, PartialEq)]
pub struct Hold {
    /// The addresses.
    pub span: Span,
    /// What gives them to it.
    pub claim: TunnelClaim,
    /// Whether it has them with every order of applied Peers.
    pub is_certain: bool,
    /// The rightful owner of the addresses.
    pub whose: Whose,
}

/// The owner of addresses, according to the meshes and the nodes of the other clusters.
#[derive(Clone, Debug, Eq, PartialEq)]
pub enum Whose {
    /// The hostile cluster, which declares them. Claims of its nodes are ignored.
    Declared,
    /// Those of other clusters.
    Others(Vec<(SiteId, Owner)>),
    /// No owner.
    Nobody,
}

/// Something of a cluster that can be sent to from within.
#[derive(Clone, Copy, Debug, Eq, Ord, PartialEq, PartialOrd)]
pub enum OpenWay {
    /// An owner's addresses.
    Owned(Owner, Cidr),
    /// A network that nodes report as their own.
    Lan(Cidr),
}

/// What becomes of packets of the hostile cluster that another one passes on to a third.
#[derive(Clone, Debug)]
pub struct Onward {
    /// The number of the third.
    pub site: SiteId,
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
    pub claim: TunnelClaim,
}

/// Something that a hostile cluster can do and no mesh lets it do.
#[derive(Clone, Copy, Debug)]
pub enum Breach<'h> {
    /// A cluster that no link joins it with hears it.
    Heard(&'h Exposure),
    /// A cluster accepts it as another cluster.
    Impersonation(&'h Exposure, &'h Hold),
    /// A cluster sends it what is not meant for it.
    Capture(&'h Exposure, &'h Hold),
    /// It gets through a cluster to one that no link joins it with.
    Passage(&'h Exposure, &'h Onward),
}

impl OpenWay {
    /// Returns the addresses.
    pub fn range(self) -> Cidr {
        match self {
            Self::Owned(_, range) | Self::Lan(range) => range,
        }
    }

    /// Returns the kind of the addresses; none for a network that several clusters share.
    pub fn class(self) -> Option<AddressClass> {
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
pub fn assume_hostile(fabric: &Fabric, meshes: &[Mesh], site: SiteId) -> Hostile {
    let hostile = fabric.site(site);
    let rights = Rights::new(fabric, site, hostile);
    let others = fabric.sites.numbered().filter(|it| it.0 != site);
    let exposures = others.map(|(number, target)| {
        let ends = FarEnds::of(fabric, target, site);
        let holds = ends.holds();
        let is_heard = !holds.is_empty();
        Exposure {
            site: number,
            is_linked: are_linked(meshes, hostile.cluster, target.cluster),
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

/// Returns all destinations to which the nodes of a cluster deliver, for any sender.
fn open(site: &Site) -> Vec<OpenWay> {
    let ranges = site.owned.iter();
    let ranges = ranges.filter_map(|(range, owners)| {
        let owner = owners.first().filter(|it| **it != Owner::Pool)?;
        Some(OpenWay::Owned(*owner, range))
    });
    let lans = site
        .model
        .topology
        .nodes
        .iter()
        .filter_map(|it| it.kilo.lan);
    let open: BTreeSet<OpenWay> = ranges.chain(lans.map(OpenWay::Lan)).collect();
    open.into_iter().collect()
}

/// Follows packets of the hostile cluster through another one to all the rest.
fn onward(
    fabric: &Fabric,
    meshes: &[Mesh],
    (hostile, second): (SiteId, SiteId),
    (ends, believed): (&FarEnds, &[HeldPeer]),
) -> Vec<Onward> {
    let thirds = fabric.sites.numbered();
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
            is_linked: are_linked(meshes, fabric.site(hostile).cluster, third.cluster),
            passages: passages.collect(),
        })
    });
    onward.collect()
}

/// Returns the addresses that are in both, both in the order of addresses, with the claims of the
/// second.
fn common(one: &[HeldPeer], other: &[HeldPeer]) -> Vec<(Span, TunnelClaim)> {
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
    (ends, second): (&FarEnds, SiteId),
    third: &Site,
    (span, claim): (Span, TunnelClaim),
) -> Option<At> {
    let key = third.model.key(claim.tunnel)?;
    let slot = ends.site.model.tunnels.around(span).next()?;
    let holders = fabric.holders(&key).iter().copied();
    let mut holders = holders.filter(|it| it.site == second);
    holders.find(|at| {
        let led = ends.site.led(at.node);
        led.is_some_and(|it| ends.holder(it, slot).is_some())
    })
}

#[cfg(test)]
mod tests;
