//! Shared views: forwarding views that several clusters have alike, computed once.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex};

use by_address::ByAddress;

use super::disputed::Disputed;
use super::forwarding_view::ForwardingView;
use super::local_addresses::LocalAddresses;
use crate::agent::applied::Content;
use crate::agent::fabric::{Fabric, Owner, Site, SiteId, Sites};
use crate::agent::model::Tunnel;
use crate::net::Cidr;
use crate::net::prefixes::{Prefixes, SlotId, Span, widest};

/// The facts that are the same for every cluster that looks at others.
#[derive(Debug)]
pub(super) struct SharedViews<'f, 'a> {
    pub(super) fabric: &'f Fabric<'a>,
    pub(super) homes: Sites<Arc<LocalAddresses>>,
    /// The ranges and addresses of all clusters, each with the number of its cluster.
    owned: Prefixes<SiteId>,
    /// Every different text of manifests.
    texts: BTreeMap<ManifestId<'a>, ManifestSubject>,
    /// Whether views are shared at all.
    are_shared: bool,
    /// The number of steps that were taken to look at clusters.
    looked: AtomicU64,
    /// The largest number of steps in which they are looked at.
    most: u64,
    /// The view of each cluster from those that get the same texts about it.
    alike: Sites<Mutex<BTreeMap<Vec<ManifestId<'a>>, Arc<ForwardingView>>>>,
}

/// A text of manifests: what many clusters get is there once.
type ManifestId<'a> = ByAddress<&'a Content>;

/// The clusters that a text concerns.
#[derive(Debug)]
struct ManifestSubject {
    /// The clusters in whose addresses its ranges lie, or whose keys its Peers have.
    sites: BTreeSet<SiteId>,
    /// Whether a node is dialled in its ranges.
    is_dialled: bool,
    /// The clusters with a node that may itself be where a Peer is dialled.
    at_endpoints: BTreeSet<SiteId>,
}

/// The properties of a cluster on which its view of others depends.
pub(super) struct Standpoint<'a> {
    /// The texts about each cluster, if these decide how it is seen.
    about: Sites<Vec<ManifestId<'a>>>,
    /// Clusters in whose addresses it has something of its own, ground aside, or that are dialled at its addresses.
    entangled: BTreeSet<SiteId>,
    /// Whether texts decide at all.
    is_plain: bool,
    /// Whether it is known which clusters each of its texts concerns.
    is_known: bool,
}

impl Standpoint<'_> {
    /// Returns whether any Peer may have a range around addresses of a cluster.
    pub(super) fn may_lead_to(&self, home: SiteId) -> bool {
        !self.is_known || !self.about[home].is_empty()
    }
}

impl<'f, 'a> SharedViews<'f, 'a> {
    /// Looks at each cluster by itself, and at the texts if views are to be shared.
    pub(super) fn new(
        fabric: &'f Fabric<'a>,
        homes: Sites<Arc<LocalAddresses>>,
        are_shared: bool,
        most: u64,
    ) -> Self {
        let mut shared = Self {
            homes,
            owned: Prefixes::new([]),
            texts: BTreeMap::new(),
            are_shared,
            looked: AtomicU64::new(0),
            most,
            alike: fabric.sites.map(|_| Mutex::default()),
            fabric,
        };
        if !are_shared {
            return shared;
        }
        shared.owned = owned(fabric);
        for content in fabric.contents() {
            let about = shared.about(content);
            shared.texts.insert(ByAddress(content), about);
        }
        shared
    }

    /// Takes some steps to look at a cluster, unless they are too many.
    pub(super) fn take(&self, steps: u64) -> bool {
        let before = self.looked.fetch_add(steps, Ordering::Relaxed);
        before.saturating_add(steps) <= self.most
    }

    /// Returns how many steps were taken, or too many.
    pub(super) fn steps(&self) -> u64 {
        self.looked.load(Ordering::Relaxed)
    }

    fn about(&self, content: &Content) -> ManifestSubject {
        let specs: Vec<_> = content.peers.iter().filter_map(|it| it.spec.as_ref().ok()).collect();
        let ranges = specs.iter().flat_map(|it| &it.allowed_ips);
        let widest = widest(ranges.map(|it| it.interface.network));
        let mut sites = self.holding(&widest);
        let keys = specs.iter().map(|it| &it.key);
        sites.extend(keys.flat_map(|it| self.fabric.holding_sites(it)));
        let mut dialled = widest.iter().flat_map(|it| self.fabric.dialled(*it));
        let endpoints = specs.iter().filter_map(|it| it.dialled());
        ManifestSubject {
            sites,
            is_dialled: dialled.next().is_some(),
            at_endpoints: self.fabric.sites_at(endpoints),
        }
    }

    /// Returns the clusters that have anything of their own in some ranges, or around them.
    fn holding(&self, widest: &[Cidr]) -> BTreeSet<SiteId> {
        let sites = widest.iter().flat_map(|it| self.within(*it).chain(self.around(*it)));
        sites.collect()
    }

    /// Returns the clusters that have anything of their own in a range.
    fn within(&self, range: Cidr) -> impl Iterator<Item = SiteId> {
        self.claims(self.owned.within(Span::new(range)))
    }

    /// Returns the clusters that have a range of their own around a range.
    fn around(&self, range: Cidr) -> impl Iterator<Item = SiteId> {
        self.claims(self.owned.around(Span::new(range)))
    }

    /// Returns the clusters that have a range of their own around a range that is wider than it.
    fn beyond(&self, range: Cidr) -> impl Iterator<Item = SiteId> {
        let around = self.owned.around(Span::new(range)).map(|slot| self.owned.at(slot));
        let wider = around.filter(move |it| it.0 != range);
        wider.flat_map(|it| it.1).copied()
    }

    fn claims(&self, slots: impl Iterator<Item = SlotId>) -> impl Iterator<Item = SiteId> {
        slots.flat_map(|slot| self.owned.at(slot).1).copied()
    }

    /// Returns where a cluster stands, if views are shared.
    pub(super) fn standpoint(&self, viewer: SiteId, disputed: &Disputed) -> Option<Standpoint<'a>> {
        if !self.are_shared {
            return None;
        }
        let site = self.fabric.site(viewer);
        let routed = widest(routed(site));
        let mut dialled = routed.iter().flat_map(|it| self.fabric.dialled(*it));
        let is_disputed = |it: &Cidr| disputed.meets(Span::new(*it));
        let (others, grounds): (Vec<Cidr>, Vec<Cidr>) =
            own(site).into_iter().partition(is_disputed);
        let mut standpoint = Standpoint {
            about: self.fabric.sites.map(|_| Vec::new()),
            entangled: self.holding(&widest(others)),
            // Without a segment no node sends or accepts anything, with any Peers.
            is_plain: !site.model.topology.segments.is_empty()
                && site.model.contests.is_empty()
                && site.model.stoppers.is_empty()
                && !site.has_own_keys()
                && dialled.all(|it| it == Some(viewer)),
            is_known: true,
        };
        // A ground cuts ranges that are wider than itself into pieces.
        for ground in widest(grounds) {
            standpoint.entangled.extend(self.beyond(ground));
        }
        for file in site.files {
            let text = ByAddress(&*file.content);
            let Some(about) = self.texts.get(&text) else {
                (standpoint.is_plain, standpoint.is_known) = (false, false);
                continue;
            };
            standpoint.is_plain &= !about.is_dialled;
            for &it in &about.sites {
                standpoint.about[it].push(text);
            }
            // A node dials no other one at an address of its own.
            if about.at_endpoints.contains(&viewer) {
                standpoint.entangled.extend(&about.sites);
            }
        }
        Some(standpoint)
    }

    /// Returns the view of a cluster from another one. It is computed once for all clusters that
    /// get the same Peers of it.
    ///
    /// The view of another cluster depends only on the Peers of it, unless the viewing cluster has
    /// something of its own there: ranges, keys, or a reason why its Kilo does not work. Ground is
    /// not one of these: no packet leaves for it, and none from it is accepted, regardless of the
    /// cluster's own ranges there.
    pub(super) fn alike(
        &self,
        home: SiteId,
        standpoint: Option<&Standpoint<'a>>,
        look: impl FnOnce() -> ForwardingView,
    ) -> Arc<ForwardingView> {
        let alike = &self.alike[home];
        let can_share = |it: &&Standpoint<'a>| it.is_plain && !it.entangled.contains(&home);
        let Some(standpoint) = standpoint.filter(can_share) else {
            return Arc::new(look());
        };
        let texts = &standpoint.about[home];
        let known = alike.lock().ok();
        if let Some(known) = known.and_then(|known| known.get(texts).cloned()) {
            return known;
        }
        let view = Arc::new(look());
        if view.is_portable()
            && let Ok(mut known) = alike.lock()
        {
            known.insert(texts.clone(), Arc::clone(&view));
        }
        view
    }
}

/// Returns the own ranges of all clusters; ranges out of which nodes get theirs have no owner.
fn owned(fabric: &Fabric) -> Prefixes<SiteId> {
    let mut owned = Vec::new();
    for (number, site) in fabric.sites.numbered() {
        let ranges =
            site.owned().iter().filter(|(_, owners)| owners.iter().any(|it| *it != Owner::Pool));
        owned.extend(ranges.map(|(range, _)| (range, number)));
        let nodes = site.model.topology.nodes.ids();
        let hosts = nodes.filter_map(|node| site.address(node));
        owned.extend(hosts.map(|it| (Cidr::host(it), number)));
    }
    Prefixes::new(owned)
}

/// Returns what a cluster routes into its tunnels by itself.
fn routed(site: &Site) -> Vec<Cidr> {
    let segments = site.model.topology.segments.ids();
    let ranges = segments.flat_map(|it| site.model.ranges(Tunnel::Segment(it)));
    ranges.collect()
}

/// Returns everything that a cluster has, is connected to or routes by itself.
fn own(site: &Site) -> Vec<Cidr> {
    let mut own = routed(site);
    own.extend(site.owned().iter().map(|it| it.0));
    own.extend(site.connections().iter().map(|it| it.0));
    // A range of a node is all three.
    own.sort_unstable();
    own.dedup();
    own
}
