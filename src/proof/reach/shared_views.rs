//! Shared views: forwarding views that several clusters have alike, computed once.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::{Arc, Mutex};

use super::forwarding_view::ForwardingView;
use super::local_addresses::LocalAddresses;
use super::uncovered::grounds;
use crate::agent::applied::Content;
use crate::agent::fabric::{Fabric, Owner, Site, SiteId, Sites};
use crate::kilo::topology::WireguardIp;
use crate::net::Cidr;
use crate::net::prefixes::{Prefixes, Span};

/// What is the same for every cluster that looks at others.
#[derive(Debug)]
pub(super) struct SharedViews<'f, 'a> {
    pub(super) fabric: &'f Fabric<'a>,
    pub(super) homes: Sites<LocalAddresses>,
    /// What all clusters have of their own, each with its number.
    owned: Prefixes<SiteId>,
    /// The grounds of all clusters, and which clusters have something of their own in them.
    grounds: BTreeMap<Cidr, Arc<Sites<bool>>>,
    /// Every different text of manifests.
    texts: BTreeMap<ManifestId, ManifestSubject>,
    /// How each cluster is seen.
    alike: Sites<Mutex<BTreeMap<ViewKey, Arc<ForwardingView>>>>,
}

/// What decides how a cluster is seen.
#[derive(Clone, Debug, Eq, Ord, PartialEq, PartialOrd)]
struct ViewKey {
    /// The texts about it that the one who looks gets.
    texts: Vec<ManifestId>,
    /// The grounds of the one who looks in which the cluster has something of its own.
    grounds: Vec<Cidr>,
}

/// A text of manifests, by where it is in memory: what many clusters get is there once.
#[derive(Clone, Copy, Debug, Eq, Ord, PartialEq, PartialOrd)]
struct ManifestId(usize);

/// What a text is about.
#[derive(Debug)]
struct ManifestSubject {
    /// The clusters in whose addresses its ranges lie, or whose keys its Peers have.
    sites: BTreeSet<SiteId>,
    /// Whether a node is dialled in its ranges.
    is_dialled: bool,
}

/// What of its own a cluster has to do with what it sees.
pub(super) struct Standpoint {
    /// The texts about each cluster, if these decide how it is seen.
    about: Sites<Vec<ManifestId>>,
    /// Clusters in whose addresses it has something of its own, grounds aside.
    entangled: BTreeSet<SiteId>,
    /// Its grounds, and whether there is something of each cluster in them.
    grounds: Vec<(Cidr, Arc<Sites<bool>>)>,
    /// Whether texts decide at all.
    is_plain: bool,
}

impl ManifestId {
    fn of(content: &Arc<Content>) -> Self {
        Self(Arc::as_ptr(content).addr())
    }
}

impl Standpoint {
    /// Returns the grounds that have something of a cluster in them.
    fn grounds_with(&self, home: SiteId) -> Vec<Cidr> {
        self.grounds
            .iter()
            .filter(|(_, has)| has[home])
            .map(|(ground, _)| *ground)
            .collect()
    }
}

impl<'f, 'a> SharedViews<'f, 'a> {
    /// Looks at each cluster by itself.
    pub(super) fn new(fabric: &'f Fabric<'a>) -> Self {
        let mut shared = Self {
            homes: fabric.sites.map(|site| LocalAddresses::of(site)),
            owned: owned(fabric),
            grounds: BTreeMap::new(),
            texts: BTreeMap::new(),
            alike: fabric.sites.map(|_| Mutex::default()),
            fabric,
        };
        for ground in fabric.sites.iter().flat_map(|it| grounds(it)) {
            if !shared.grounds.contains_key(&ground) {
                let mut has = fabric.sites.map(|_| false);
                for site in shared.within(ground) {
                    has[site] = true;
                }
                shared.grounds.insert(ground, Arc::new(has));
            }
        }
        for content in fabric.contents() {
            let about = shared.about(content);
            shared.texts.insert(ManifestId::of(content), about);
        }
        shared
    }

    fn about(&self, content: &Content) -> ManifestSubject {
        let specs = content.peers.iter();
        let specs: Vec<_> = specs.filter_map(|it| it.spec.as_ref().ok()).collect();
        let ranges = specs.iter().flat_map(|it| &it.allowed_ips);
        let widest = widest(ranges.map(|it| it.interface.network).collect());
        let mut sites = self.holding(&widest);
        let keys = specs.iter().flat_map(|it| self.fabric.holders(&it.key));
        sites.extend(keys.map(|at| at.site));
        let mut dialled = widest.iter().flat_map(|it| self.fabric.dialled(*it));
        ManifestSubject {
            sites,
            is_dialled: dialled.next().is_some(),
        }
    }

    /// Returns the clusters that have anything of their own in some ranges, or around them.
    fn holding(&self, widest: &[Cidr]) -> BTreeSet<SiteId> {
        let sites = widest
            .iter()
            .flat_map(|it| self.within(*it).chain(self.around(*it)));
        sites.collect()
    }

    /// Returns the clusters that have anything of their own in a range.
    fn within(&self, range: Cidr) -> impl Iterator<Item = SiteId> {
        self.claims(self.owned.within(Span::of(range)))
    }

    /// Returns the clusters that have a range of their own around a range.
    fn around(&self, range: Cidr) -> impl Iterator<Item = SiteId> {
        self.claims(self.owned.around(Span::of(range)))
    }

    fn claims(&self, slots: impl Iterator<Item = usize>) -> impl Iterator<Item = SiteId> {
        let claims = slots.filter_map(|slot| Some(self.owned.get(slot)?.1));
        claims.flatten().copied()
    }

    /// Returns where a cluster stands.
    pub(super) fn standpoint(&self, viewer: SiteId, site: &Site) -> Standpoint {
        let own = own(site);
        let grounds = Prefixes::new(&grounds(site).iter().map(|it| (*it, ())).collect::<Vec<_>>());
        let is_ground = |range: &Cidr| grounds.around(Span::of(*range)).next().is_some();
        // On a ground only the cluster's own addresses count, not those between them.
        let routed = own.iter().filter(|it| grounds.exactly(**it).is_none());
        let routed = widest(routed.copied().collect());
        let mut dialled = routed.iter().flat_map(|it| self.fabric.dialled(*it));
        let others: Vec<Cidr> = own.iter().filter(|it| !is_ground(it)).copied().collect();
        let mut standpoint = Standpoint {
            about: self.fabric.sites.map(|_| Vec::new()),
            entangled: self.holding(&widest(others)),
            grounds: Vec::new(),
            is_plain: site.model.contests.is_empty()
                && site.model.upsets.is_empty()
                && !site.has_own_keys()
                && dialled.all(|it| it == Some(viewer)),
        };
        for (ground, _) in grounds.iter() {
            standpoint.entangled.extend(self.around(ground));
            if let Some(has) = self.grounds.get(&ground) {
                standpoint.grounds.push((ground, Arc::clone(has)));
            }
        }
        for file in site.files {
            let text = ManifestId::of(&file.content);
            let Some(about) = self.texts.get(&text) else {
                standpoint.is_plain = false;
                continue;
            };
            standpoint.is_plain &= !about.is_dialled;
            for &it in &about.sites {
                standpoint.about[it].push(text);
            }
        }
        standpoint
    }

    /// Returns the view of a cluster from another one. It is computed once for all clusters that
    /// get the same Peers of it.
    ///
    /// The view of another cluster depends only on the Peers of it, unless the viewing cluster has
    /// something of its own there: ranges, keys, or a reason why its Kilo does not work. A ground
    /// is not one of these: clusters with the same ground have the same view.
    pub(super) fn alike(
        &self,
        home: SiteId,
        standpoint: &Standpoint,
        look: impl FnOnce() -> ForwardingView,
    ) -> Arc<ForwardingView> {
        let alike = &self.alike[home];
        if !standpoint.is_plain || standpoint.entangled.contains(&home) {
            return Arc::new(look());
        }
        let key = ViewKey {
            texts: standpoint.about[home].clone(),
            grounds: standpoint.grounds_with(home),
        };
        let known = alike.lock().ok();
        if let Some(known) = known.and_then(|known| known.get(&key).cloned()) {
            return known;
        }
        let view = Arc::new(look());
        if view.is_portable()
            && let Ok(mut known) = alike.lock()
        {
            known.insert(key, Arc::clone(&view));
        }
        view
    }
}

/// Returns the own ranges of all clusters; ranges out of which nodes get theirs have no owner.
fn owned(fabric: &Fabric) -> Prefixes<SiteId> {
    let mut owned = Vec::new();
    for (number, site) in fabric.sites.numbered() {
        let ranges = site.owned.iter();
        let ranges = ranges.filter(|(_, owners)| owners.iter().any(|it| *it != Owner::Pool));
        owned.extend(ranges.map(|(range, _)| (range, number)));
        let nodes = site.model.topology.nodes.ids();
        let hosts = nodes.filter_map(|node| site.address(node));
        owned.extend(hosts.map(|it| (Cidr::host(it), number)));
    }
    Prefixes::new(&owned)
}

/// Returns everything that a cluster routes by itself.
fn own(site: &Site) -> Vec<Cidr> {
    let mut own: Vec<Cidr> = site.owned.iter().map(|it| it.0).collect();
    own.extend(site.connections().iter().map(|it| it.0));
    for segment in site.model.topology.segments.iter() {
        let ranges = segment.allowed_ips.iter().chain(&segment.location_ranges);
        own.extend(ranges.map(|it| it.interface.network));
        match segment.wireguard_ip {
            WireguardIp::Certain(address) => own.push(Cidr::host(address)),
            WireguardIp::Ambiguous {
                computed,
                announced,
            } => own.extend([computed, announced].map(Cidr::host)),
            WireguardIp::None => {}
        }
    }
    own
}

/// Returns the ranges that are in no other.
fn widest(ranges: Vec<Cidr>) -> Vec<Cidr> {
    let claims: Vec<(Cidr, ())> = ranges.into_iter().map(|it| (it, ())).collect();
    let sorted = Prefixes::new(&claims);
    let slots = (0..sorted.len()).filter(|slot| sorted.parent(*slot).is_none());
    slots.filter_map(|slot| Some(sorted.get(slot)?.0)).collect()
}
