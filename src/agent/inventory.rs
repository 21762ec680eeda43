//! Inventories: the Peers that a cluster has, compared with the wanted ones, and the ranges that
//! foreign ones take over.

use std::collections::BTreeMap;

use super::applied::{AppliedFile, OptionalField, OptionalFields};
use super::comparison::{Pair, compare};
use super::difference::Difference;
use super::fabric::{Fabric, Holding, Site, SiteId};
use super::peers::{AppliedPeers, ClusterPeer, PeerId, Prize};
use crate::kilo::peer::translation::TranslationFault;
use crate::mesh::{Mesh, is_ours};
use crate::name::ClusterName;
use crate::net::Cidr;
use crate::net::prefixes::{Span, widest};

/// The Peers of a cluster, each by name and in that order.
#[derive(Clone, Debug, Default, Eq, PartialEq)]
pub struct Inventory {
    /// The number of Peers that are up to date.
    pub in_sync: usize,
    /// Wanted Peers that do not exist, or are being deleted.
    pub missing: Vec<String>,
    /// Peers that are out of date.
    pub changed: Vec<DriftedPeer>,
    /// Peers that were rendered for a mesh and are no longer wanted.
    pub left_over: Vec<String>,
    /// Peers that belong to no mesh.
    pub foreign: Vec<Foreign>,
    /// Peers that share a key, of which Kilo configures one.
    pub same_key: Vec<Vec<String>>,
    /// Peers with the key of a node of the cluster.
    pub own_key: Vec<String>,
}

/// A Peer that is out of date.
#[derive(Clone, Debug, Eq, PartialEq)]
pub struct DriftedPeer {
    /// Its name.
    pub name: String,
    /// The differences, from the wanted Peer to that in the cluster.
    pub differences: Vec<Difference>,
    /// The fields that another program added, which Flux and Argo CD may leave as they are.
    pub added: Vec<OptionalField>,
}

/// A Peer that belongs to no mesh.
#[derive(Clone, Debug, Eq, PartialEq)]
pub struct Foreign {
    /// Its name.
    pub name: String,
    /// Its allowed IPs; none if Kilo does not take it.
    pub ranges: Vec<Cidr>,
    /// The reason for which Kilo does not take it.
    pub fault: Option<TranslationFault>,
    /// The owner of its key.
    pub holder: Holder,
    /// The ranges that it takes from the clusters of the meshes.
    pub takes: Vec<Taken>,
}

/// The owner of a key.
#[derive(Clone, Debug, Eq, Ord, PartialEq, PartialOrd)]
pub enum Holder {
    /// No node of any cluster: a laptop, or another network.
    Outsider,
    /// This node.
    Node {
        /// Its cluster.
        cluster: String,
        /// Its name.
        node: String,
    },
    /// More than one node.
    Nodes,
}

/// A range of a cluster that another Peer claims too.
#[derive(Clone, Debug, Eq, Ord, PartialEq, PartialOrd)]
pub struct Taken {
    /// The cluster.
    pub cluster: String,
    /// The range.
    pub range: Cidr,
}

impl DriftedPeer {
    /// Returns the differences that no added field explains.
    pub fn others(&self) -> impl Iterator<Item = &Difference> {
        self.differences.iter().filter(|it| !self.added.iter().any(|field| explains(*field, it)))
    }
}

/// Returns whether a difference is nothing but an added field.
fn explains(added: OptionalField, difference: &Difference) -> bool {
    // A field that is not valid makes the Peer so.
    if *difference == Difference::Validity {
        return true;
    }
    match added {
        OptionalField::Dns | OptionalField::Ip | OptionalField::Endpoint => {
            matches!(difference, Difference::Endpoint { .. })
        }
        OptionalField::PersistentKeepalive => matches!(difference, Difference::Keepalive { .. }),
        OptionalField::PresharedKey => *difference == Difference::PresharedKey,
    }
}

impl Inventory {
    /// Compares the Peers of a cluster with the wanted ones. The fabric is that of the current
    /// Peers; a cluster without a snapshot is not in it.
    pub fn new(
        cluster: &ClusterName,
        live: &[AppliedFile],
        rendered: &[AppliedFile],
        meshes: &[Mesh],
        fabric: &Fabric,
    ) -> Self {
        let has = AppliedPeers::decided(live, &[]);
        let shall = AppliedPeers::decided(rendered, &[]);
        let rendered_fields: BTreeMap<&str, OptionalFields> =
            shall.all.iter().map(|it| it.applied).map(|it| (it.name.as_str(), it.fields)).collect();
        let site = fabric.sites.position(|it| it.cluster == cluster);
        let mut inventory = Self::default();
        let name = |peer: &ClusterPeer| peer.applied.name.clone();
        for pair in compare(&has.all, &shall.all) {
            match pair.among(&has.all, &shall.all) {
                // Kilo still uses it, but it is going to be missing.
                Pair::Same(peer) | Pair::Changed { before: peer, .. } if peer.applied.is_ending => {
                    inventory.missing.push(name(peer));
                }
                Pair::Same(peer) => {
                    let rendered = rendered_fields.get(peer.applied.name.as_str());
                    inventory.add_same(peer, rendered.copied().unwrap_or_default());
                }
                Pair::Added(peer) => inventory.missing.push(name(peer)),
                Pair::Changed { before, after } => inventory.changed.push(DriftedPeer {
                    name: name(before),
                    differences: Difference::between(after, before),
                    added: before.applied.fields.beyond(after.applied.fields),
                }),
                Pair::Removed(peer) if is_ours(&peer.applied.name, meshes) => {
                    inventory.left_over.push(name(peer));
                }
                Pair::Removed(peer) => inventory.foreign.push(foreign(peer, site, fabric)),
            }
        }
        let contests = has.contests.iter().filter(|it| it.over == Prize::Key);
        let names = |peers: &[PeerId]| peers.iter().map(|it| name(&has.all[*it])).collect();
        inventory.same_key = contests.map(|it| names(&it.peers)).collect();
        inventory.same_key.sort();
        if let Some(site) = site.map(|it| fabric.site(it)) {
            let own = site.model.peers.numbered().filter(|(id, _)| site.has_own_key(*id));
            inventory.own_key = own.map(|(_, peer)| name(peer)).collect();
        }
        inventory
    }

    /// Adds a Peer that has the same effect as the rendered one. Fields without an effect stay until a person
    /// removes them.
    fn add_same(&mut self, peer: &ClusterPeer, rendered: OptionalFields) {
        let added = peer.applied.fields.beyond(rendered);
        if added.is_empty() {
            self.in_sync += 1;
        } else {
            self.changed.push(DriftedPeer {
                name: peer.applied.name.clone(),
                differences: Vec::new(),
                added,
            });
        }
    }

    /// Returns whether the delivery of what is rendered is done.
    pub fn is_delivered(&self) -> bool {
        self.missing.is_empty() && self.changed.is_empty() && self.left_over.is_empty()
    }

    /// Returns whether there is nothing to act on.
    pub fn is_clean(&self) -> bool {
        self.is_delivered()
            && self.same_key.is_empty()
            && self.own_key.is_empty()
            && self.foreign.iter().all(|it| it.takes.is_empty())
    }
}

/// Returns whether a cluster has the wanted Peers, and no other Peer of a mesh. Fields that others added to a Peer count only
/// if they change what Kilo does, unlike in [`Inventory::is_delivered`].
pub fn has_wanted_peers(has: &[AppliedFile], shall: &[AppliedFile], meshes: &[Mesh]) -> bool {
    let [has, shall] = [has, shall].map(|it| AppliedPeers::decided(it, &[]));
    let is_right = |pair: Pair<PeerId>| match pair.among(&has.all, &shall.all) {
        Pair::Same(peer) => !peer.applied.is_ending,
        Pair::Added(_) | Pair::Changed { .. } => false,
        Pair::Removed(peer) => !is_ours(&peer.applied.name, meshes),
    };
    compare(&has.all, &shall.all).all(is_right)
}

fn foreign(peer: &ClusterPeer, site: Option<SiteId>, fabric: &Fabric) -> Foreign {
    let ranges = peer.applied.networks();
    let holding = site.and_then(|number| {
        let peers = &fabric.site(number).model.peers;
        let peer = peers.find(|it| it.applied.name.cmp(&peer.applied.name))?;
        Some(fabric.holding(number, peer))
    });
    Foreign {
        name: peer.applied.name.clone(),
        takes: taken(&ranges, fabric),
        ranges,
        fault: peer.applied.spec.as_ref().err().cloned(),
        holder: match holding {
            None | Some(Holding::Nobody) => Holder::Outsider,
            Some(Holding::Many) => Holder::Nodes,
            Some(Holding::One(at)) => {
                let site = fabric.site(at.site);
                Holder::Node {
                    cluster: site.cluster.to_string(),
                    node: site.node(at.node).kilo.name.clone(),
                }
            }
        },
    }
}

/// Returns what ranges have in common with those of clusters, of ranges in each other the widest.
fn taken(ranges: &[Cidr], fabric: &Fabric) -> Vec<Taken> {
    let ranges = widest(ranges.iter().copied());
    let of_site = |site: &Site| {
        let common = ranges.iter().flat_map(|range| {
            let span = Span::new(*range);
            let around = site.owned().around(span).next().map(|_| *range);
            let within = site.owned().within(span).map(|slot| site.owned().at(slot).0);
            around.into_iter().chain(within)
        });
        widest(common)
            .into_iter()
            .map(|range| Taken { cluster: site.cluster.to_string(), range })
            .collect::<Vec<_>>()
    };
    fabric.sites.iter().flat_map(|it| of_site(it)).collect()
}
