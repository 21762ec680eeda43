//! Hostility: what an attacker with root in one cluster could do to the others.
//!
//! The attacker has the keys of its nodes, and can use any address, route and tunnel. The manifests
//! of the other clusters stay the same, so their own tables limit the attacker: they accept only
//! certain sources from its keys, and send only certain destinations to them.

use std::sync::Arc;

use rayon::prelude::*;
use schemars::JsonSchema;
use serde::Serialize;

use crate::agent::fabric::{Fabric, NodeRef, Owner, SiteId, Sites};
use crate::agent::model::{Tunnel, TunnelClaim};
use crate::mesh::{AddressClass, Mesh, Refusals, are_linked, refusals};
use crate::net::Cidr;
use crate::net::prefixes::Span;
use crate::proof::bounded_list::{BoundedList, Kinded};
use far_end::{FarEnds, HeldPeer};
use relay::RelayCluster;
use rights::Rights;

pub use breach::Breach;

mod breach;
mod far_end;
mod relay;
mod rights;

/// A cluster that is taken for hostile, and the exposure of the others to it.
#[derive(Clone, Debug)]
pub struct Hostile {
    /// The number of the cluster.
    pub site: SiteId,
    /// The exposure of each of the other clusters.
    pub exposures: Vec<Exposure>,
}

/// The attacks of a hostile cluster to which another one is exposed.
#[derive(Clone, Debug)]
pub struct Exposure {
    /// The number of the cluster.
    pub site: SiteId,
    /// Whether a mesh links the two.
    pub is_linked: bool,
    /// The ends whose policies refuse the link between the two.
    pub refusals: Refusals,
    /// The far ends of its tunnels that have a key of the hostile one's nodes. Without any it hears
    /// nothing at all.
    pub heard: BoundedList<Tunnel>,
    /// The sources that it takes from it, in the order of addresses.
    pub believed: BoundedList<Hold>,
    /// The destinations that it sends to it, in the order of addresses.
    pub attracted: BoundedList<Hold>,
    /// Whether these destinations are the same addresses as the sources, also where neither is listed.
    pub is_mirrored: bool,
    /// The destinations that the hostile cluster can reach there: Kilo has no firewall. Packets to
    /// other destinations are masqueraded (`kilo.md` §6.2), so they can reach everything that the nodes of
    /// the cluster can.
    pub open: Arc<BoundedList<OpenWay>>,
    /// The clusters to which it passes packets of the hostile cluster on.
    ///
    /// With all clusters hostile there is one for every three clusters.
    pub relays: BoundedList<Relay>,
}

/// The two sorts of far ends of a cluster's tunnels.
#[derive(Clone, Copy, Debug, Eq, Ord, PartialEq, PartialOrd)]
pub enum FarEndKind {
    /// A Peer.
    Peer,
    /// A segment of the cluster itself.
    Segment,
}

/// Addresses that a far end has in a cluster's tables.
#[derive(Clone, Debug, Eq, PartialEq)]
pub struct Hold {
    /// The addresses.
    pub span: Span,
    /// The claim that gives them to it.
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

/// The rightful owner of addresses.
#[derive(Clone, Copy, Debug, Eq, JsonSchema, Ord, PartialEq, PartialOrd, Serialize)]
#[schemars(rename = "Whose")]
#[serde(rename_all = "lowercase")]
pub enum WhoseKind {
    /// The hostile cluster declares them.
    Declared,
    /// Another cluster.
    Others,
    /// No cluster of a mesh.
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

/// The result of packets that are passed on to a cluster.
#[derive(Clone, Copy, Debug, Eq, Ord, PartialEq, PartialOrd)]
pub enum RelayKind {
    /// None of them gets through.
    Dropped,
    /// Some get through, and a mesh links the cluster with the hostile one.
    Linked,
    /// Some get through, and no mesh links the cluster with the hostile one.
    Unlinked,
}

/// The result of packets of the hostile cluster that another one passes on to a third.
#[derive(Clone, Debug)]
pub struct Relay {
    /// The number of the third.
    pub site: SiteId,
    /// Whether a mesh links the third with the hostile one.
    pub is_linked: bool,
    /// The sources with which it gets through.
    pub passages: BoundedList<RelayedSource>,
}

/// A source that the third takes from the second.
#[derive(Clone, Debug, Eq, PartialEq)]
pub struct RelayedSource {
    /// The addresses.
    pub span: Span,
    /// The node of the second that passes them on.
    pub by: NodeRef,
    /// The claim that lets them in at the third.
    pub claim: TunnelClaim,
}

impl Kinded for Tunnel {
    type Kind = FarEndKind;

    fn kind(&self) -> FarEndKind {
        match self {
            Self::Peer(_) => FarEndKind::Peer,
            Self::Segment(_) => FarEndKind::Segment,
        }
    }
}

impl Kinded for Hold {
    type Kind = WhoseKind;

    fn kind(&self) -> WhoseKind {
        match self.whose {
            Whose::Declared => WhoseKind::Declared,
            Whose::Others(_) => WhoseKind::Others,
            Whose::Nobody => WhoseKind::Nobody,
        }
    }
}

impl Kinded for OpenWay {
    type Kind = Option<AddressClass>;

    fn kind(&self) -> Option<AddressClass> {
        self.class()
    }
}

impl Kinded for RelayedSource {
    type Kind = ();

    fn kind(&self) {}
}

impl Kinded for Relay {
    type Kind = RelayKind;

    fn kind(&self) -> RelayKind {
        match (self.passages.is_empty(), self.is_linked) {
            (true, _) => RelayKind::Dropped,
            (false, true) => RelayKind::Linked,
            (false, false) => RelayKind::Unlinked,
        }
    }
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

/// A cluster that is taken for hostile.
struct Attacker<'f, 'a> {
    site: SiteId,
    rights: Rights<'f, 'a>,
    /// Whether a mesh links it with each of the clusters.
    links: Sites<bool>,
    /// The ends whose policies refuse a link, for each of the clusters.
    refusals: Sites<Refusals>,
}

/// Finds what clusters could do to the others, each of them alone. Packets that
/// another one passes on are followed for one cluster more.
///
/// The far ends of each cluster are looked up once for all attackers. Each list has `most` things of each kind.
pub fn assume_hostile(
    fabric: &Fabric,
    meshes: &[Mesh],
    sites: &[SiteId],
    most: usize,
) -> Vec<Hostile> {
    if sites.is_empty() {
        return Vec::new();
    }
    let attackers: Vec<Attacker> =
        sites.iter().map(|site| Attacker::new(fabric, meshes, *site)).collect();
    let ends = fabric.sites.map_ids(|site| FarEnds::by_site(fabric, site));
    let targets: Vec<SiteId> = fabric.sites.ids().collect();
    let exposures: Vec<Vec<Option<Exposure>>> = targets
        .into_par_iter()
        .map(|target| {
            let relay = RelayCluster::new(fabric, &ends, target, most);
            attackers.iter().map(|it| it.exposes(&relay)).collect()
        })
        .collect();
    let mut hostiles: Vec<Hostile> =
        sites.iter().map(|site| Hostile { site: *site, exposures: Vec::new() }).collect();
    for of_target in exposures {
        for (hostile, exposure) in hostiles.iter_mut().zip(of_target) {
            hostile.exposures.extend(exposure);
        }
    }
    hostiles
}

impl<'f, 'a> Attacker<'f, 'a> {
    fn new(fabric: &'f Fabric<'a>, meshes: &[Mesh], site: SiteId) -> Self {
        let hostile = fabric.site(site);
        Self {
            site,
            rights: Rights::new(fabric, site, hostile),
            links: fabric.sites.map(|it| are_linked(meshes, hostile.cluster, it.cluster)),
            refusals: fabric.sites.map(|it| refusals(meshes, hostile.cluster, it.cluster)),
        }
    }

    /// Returns what another cluster is exposed to; nothing for the attacker itself.
    fn exposes(&self, relay: &RelayCluster) -> Option<Exposure> {
        if relay.number == self.site {
            return None;
        }
        let most = relay.most;
        let mut exposure = Exposure {
            site: relay.number,
            is_linked: self.links[relay.number],
            refusals: self.refusals[relay.number].clone(),
            heard: BoundedList::new(most, []),
            believed: BoundedList::new(most, []),
            attracted: BoundedList::new(most, []),
            is_mirrored: true,
            open: Arc::new(BoundedList::new(most, [])),
            relays: BoundedList::new(most, []),
        };
        let Some(ends) = relay.ends_of(self.site) else {
            return Some(exposure);
        };
        let holds: Vec<HeldPeer> = ends.holds().collect();
        exposure.heard = BoundedList::new(most, ends.ends.iter().copied());
        if !holds.is_empty() {
            let attracted = self.rights.split(ends.attracted(relay.number, &holds));
            exposure.relays = relay.relays(&self.links, ends, &holds);
            exposure.open = relay.open();
            let believed = self.rights.split(holds);
            exposure.is_mirrored = attracted == believed;
            exposure.attracted = BoundedList::new(most, attracted);
            exposure.believed = BoundedList::new(most, believed);
        }
        Some(exposure)
    }
}

#[cfg(test)]
mod tests;
