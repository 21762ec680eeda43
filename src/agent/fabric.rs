//! The fabric: all clusters, each as its own Kilo makes it of the Peers that it gets, and who in them
//! has which key and which address.

use std::collections::{BTreeMap, BTreeSet};
use std::net::IpAddr;
use std::ptr;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, OnceLock};

use by_address::ByAddress;

use super::applied::Content;
use super::peers::{PeerId, Peers, Won};
use crate::kilo::id::{Id, NodeId, Numbered};
use crate::kilo::topology::TopologyNode;
use crate::net::Cidr;
use crate::wireguard::Endpoint;

pub use awake::AwakeClusters;
pub use diversion::Diversion;
pub use endpoints::{DialPremise, Dials};
pub use hops::HopFault;
pub use minority::are_few;
pub use own_addresses::Owner;
pub use secrets::Secret;
pub use site::Site;

use delivered_tree::DeliveredTree;
use endpoints::Listener;
use secrets::MutualSecrets;

mod secrets;
mod awake;
mod delivered_tree;
mod diversion;
mod endpoints;
mod hops;
mod masking;
mod minority;
mod outlying;
mod own_addresses;
mod participation;
mod site;

/// With fewer Peers than one for this many keys, a search for each takes less than a walk past all keys.
const RARE: usize = 16;

/// All clusters.
#[derive(Clone, Debug)]
pub struct Fabric<'a> {
    /// By name of the cluster.
    pub sites: Sites<Arc<Site<'a>>>,
    index: Arc<FabricIndex>,
    /// Every different text of manifests, in the order in which the clusters get them.
    contents: Arc<OnceLock<Vec<&'a Arc<Content>>>>,
    /// Clusters whose contests come out one way or another, by number.
    tried: Tried<'a>,
    /// The number of packets that were followed, without their answers.
    followed: Arc<AtomicU64>,
    /// The number of lookups of the Peers that one cluster gives to another.
    looked_up: Arc<AtomicU64>,
    /// The rendered tree as applied, if it is up to date and the Peers here are others.
    delivery: Option<Arc<DeliveredTree<'a>>>,
    /// Whether every tunnel is up whose two ends hold each other's keys.
    has_open_tunnels: bool,
}

/// Clusters by their numbers and by what is taken as won.
type Tried<'a> = Arc<Mutex<BTreeMap<(SiteId, Vec<Won>), Arc<Site<'a>>>>>;

/// The nodes that have each key.
type KeyHolders = BTreeMap<[u8; 32], Vec<NodeRef>>;

/// The owners of keys and endpoints in all clusters.
#[derive(Debug, Default)]
struct FabricIndex {
    keys: KeyHolders,
    /// The nodes that have the keys of Peers.
    holdings: Sites<Arc<Peers<Holding>>>,
    secrets: MutualSecrets,
    listeners: BTreeMap<IpAddr, Vec<Listener>>,
    /// Endpoints at which several nodes are dialled, with these.
    shared: BTreeMap<Endpoint, BTreeSet<NodeRef>>,
    /// The clusters in order of trust.
    ranks: Sites<usize>,
    /// The addresses at which Peers and nodes are dialled, in order, with the cluster to which each
    /// leads; none if no node has the key.
    dialled: Vec<(IpAddr, Option<SiteId>)>,
    /// The clusters of which others get to a node only under a condition.
    assumed: BTreeSet<SiteId>,
}

/// The clusters of a fabric.
#[derive(Clone, Copy, Debug, Eq, Hash, Ord, PartialEq, PartialOrd)]
pub enum OfSite {}

/// The number of a cluster in its fabric, in order of name.
pub type SiteId = Id<OfSite>;

/// Something about each cluster of a fabric, in order of name.
pub type Sites<T> = Numbered<OfSite, T>;

/// A node of a cluster.
#[derive(Clone, Copy, Debug, Eq, Hash, Ord, PartialEq, PartialOrd)]
pub struct NodeRef {
    /// The cluster.
    pub site: SiteId,
    /// The node.
    pub node: NodeId,
}

/// Two clusters, in the direction of packets from one to the other.
#[derive(Clone, Copy, Debug, Eq, Hash, Ord, PartialEq, PartialOrd)]
pub struct SitePair {
    /// The cluster of the senders.
    pub from: SiteId,
    /// The cluster of the receivers.
    pub to: SiteId,
}

impl SitePair {
    /// Returns the direction of the answers.
    #[must_use]
    pub fn back(self) -> Self {
        Self { from: self.to, to: self.from }
    }

    /// Returns both clusters.
    pub fn both(self) -> [SiteId; 2] {
        [self.from, self.to]
    }
}

/// The node of any cluster that has the key of a Peer.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub enum Holding {
    /// No node.
    Nobody,
    /// This one.
    One(NodeRef),
    /// More than one.
    Many,
}

impl<'a> Fabric<'a> {
    /// Joins clusters, which are in order of rank.
    pub fn new(sites: Vec<Site<'a>>) -> Self {
        Self::shared(sites.into_iter().map(Arc::new).collect(), None)
    }

    /// Joins clusters, which are in order of rank, and another fabric may have too, with which it shares what is the same.
    pub fn shared(sites: Vec<Arc<Site<'a>>>, other: Option<&Fabric>) -> Self {
        Self::with_idle(sites, other, &BTreeSet::new())
    }

    /// Joins the same. Nodes of `idle` clusters have no Peers yet, so they connect to none of the others: of several nodes with
    /// one key, they do not count, unless every tunnel is taken as up.
    pub(crate) fn with_idle(
        sites: Vec<Arc<Site<'a>>>,
        other: Option<&Fabric>,
        idle: &BTreeSet<SiteId>,
    ) -> Self {
        let mut ranked: Vec<(usize, Arc<Site>)> = sites.into_iter().enumerate().collect();
        ranked.sort_by_key(|it| it.1.cluster);
        let (ranks, sites): (Vec<usize>, Vec<Arc<Site>>) = ranked.into_iter().unzip();
        let sites: Sites<Arc<Site>> = Sites::new(sites);
        let has_open_tunnels = other.is_some_and(|it| it.has_open_tunnels);
        if let Some(other) = other.filter(|it| it.has_sites(&sites)) {
            return Self { has_open_tunnels, ..Self::with_index(sites, Arc::clone(&other.index)) };
        }
        let mut keys = KeyHolders::new();
        let mut listeners: BTreeMap<IpAddr, Vec<Listener>> = BTreeMap::new();
        for (site, it) in sites.numbered() {
            for (node, own) in it.model.topology.nodes.numbered() {
                if let Some(key) = own.kilo.key {
                    keys.entry(key).or_default().push(NodeRef { site, node });
                }
            }
            for &(address, node, port) in it.endpoints() {
                let at = NodeRef { site, node };
                let mut internal = it.reading.nodes[node].internal_addresses();
                let listener = Listener::new(at, port, internal.any(|it| it == address));
                listeners.entry(address).or_default().push(listener);
            }
        }
        let connects = |it: &NodeRef| !idle.contains(&it.site);
        let several = keys.values_mut().filter(|it| 1 < it.len() && !has_open_tunnels);
        for holders in several.filter(|it| it.iter().any(connects)) {
            holders.retain(connects);
        }
        let contents = contents(&sites);
        // If nodes have the same keys, the holders of the same Peers are the same.
        let other = other.filter(|it| it.index.keys == keys);
        let index = FabricIndex {
            holdings: sites.map(|site| {
                other
                    .and_then(|it| it.holdings_of_keys(site))
                    .unwrap_or_else(|| Arc::new(holdings(site, &keys)))
            }),
            secrets: MutualSecrets::collect(&sites, &contents, &keys),
            keys,
            listeners,
            shared: BTreeMap::new(),
            ranks: Sites::new(ranks),
            dialled: Vec::new(),
            assumed: BTreeSet::new(),
        };
        let mut fabric = Self {
            contents: Arc::new(contents.into()),
            has_open_tunnels,
            ..Self::with_index(sites, Arc::new(index))
        };
        let shared = fabric.shared_endpoints();
        let assumed = fabric.assumed_sites(&shared);
        let mut dialled: Vec<_> = fabric.dialled_addresses().collect();
        dialled.sort_unstable();
        dialled.dedup();
        if let Some(index) = Arc::get_mut(&mut fabric.index) {
            index.dialled = dialled;
            index.shared = shared;
            index.assumed = assumed;
        }
        fabric
    }

    /// Returns whether its clusters are these ones.
    fn with_index(sites: Sites<Arc<Site<'a>>>, index: Arc<FabricIndex>) -> Self {
        Self {
            sites,
            index,
            contents: Arc::default(),
            tried: Tried::default(),
            followed: Arc::default(),
            looked_up: Arc::default(),
            delivery: None,
            has_open_tunnels: false,
        }
    }

    /// Returns the same with every tunnel up whose two ends hold each other's keys and pre-shared keys, however they dial.
    ///
    /// An endpoint keeps no packet out: a node with the key can dial in from any address, which `WireGuard` then learns.
    #[must_use]
    pub fn with_open_tunnels(&self) -> Self {
        Self { has_open_tunnels: true, ..self.clone() }
    }

    /// Returns whether every tunnel is up whose two ends hold each other's keys.
    pub(crate) fn has_open_tunnels(&self) -> bool {
        self.has_open_tunnels
    }

    /// Returns the same with other versions of some clusters. Their nodes have the same keys and endpoints, whether
    /// Kilo counts them or not, and they get the same Peers.
    pub fn with_versions<'f>(&self, versions: BTreeMap<SiteId, Arc<Site<'f>>>) -> Fabric<'f>
    where
        'a: 'f,
    {
        let mut sites: Sites<Arc<Site<'f>>> = self.sites.map(|it| Arc::clone(it) as _);
        for (number, version) in versions {
            sites[number] = version;
        }
        Fabric::with_index(sites, Arc::clone(&self.index))
    }

    fn has_sites(&self, sites: &Sites<Arc<Site>>) -> bool {
        let are_same = |(one, other): (&Arc<Site>, &Arc<Site>)| {
            ptr::addr_eq(Arc::as_ptr(one), Arc::as_ptr(other))
        };
        self.sites.len() == sites.len() && self.sites.iter().zip(sites.iter()).all(are_same)
    }

    /// Returns who has the keys of the Peers of a cluster, if its version here has the same ones.
    fn holdings_of_keys(&self, site: &Site) -> Option<Arc<Peers<Holding>>> {
        let number = self.site_named(site.cluster.as_str())?;
        let is_same = self.site(number).model.has_keys_of(&site.model);
        is_same.then(|| Arc::clone(&self.index.holdings[number]))
    }

    /// Returns the same where a contest of a cluster is won.
    #[must_use]
    pub fn after(&self, number: SiteId, won: Won) -> Self {
        let mut fabric = self.clone();
        let site = &mut fabric.sites[number];
        let mut key = (number, site.won.clone());
        key.1.push(won);
        let known = self.tried.lock().ok();
        let known = known.and_then(|known| known.get(&key).cloned());
        *site = known.unwrap_or_else(|| {
            let tried = Arc::new(site.after(won));
            if let Ok(mut known) = self.tried.lock() {
                known.insert(key, Arc::clone(&tried));
            }
            tried
        });
        fabric
    }

    /// Returns how many packets were followed so far, answers aside: what a proof costs on any machine.
    pub fn followed(&self) -> u64 {
        self.followed.load(Ordering::Relaxed)
    }

    /// Counts a packet that is followed.
    pub(crate) fn count(&self) {
        self.followed.fetch_add(1, Ordering::Relaxed);
    }

    /// Returns how many times the addresses that one cluster gives to another were looked up: what hostile
    /// clusters cost on any machine.
    pub fn looked_up(&self) -> u64 {
        self.looked_up.load(Ordering::Relaxed)
    }

    /// Counts a look-up of the addresses that one cluster gives to another.
    pub(crate) fn count_look_up(&self) {
        self.looked_up.fetch_add(1, Ordering::Relaxed);
    }

    /// Returns every different text of manifests.
    pub fn contents(&self) -> impl Iterator<Item = &'a Arc<Content>> {
        self.contents.get_or_init(|| contents(&self.sites)).iter().copied()
    }

    /// Returns the clusters that are dialled at addresses of a range; none if no node has the key.
    pub fn dialled(&self, range: Cidr) -> impl Iterator<Item = Option<SiteId>> {
        let dialled = &self.index.dialled;
        let start = dialled.partition_point(|it| it.0 < range.first());
        dialled.iter().skip(start).take_while(move |it| it.0 <= range.last()).map(|it| it.1)
    }

    /// Returns who has the key of a Peer of a cluster.
    pub fn holding(&self, site: SiteId, peer: PeerId) -> Holding {
        self.index.holdings[site][peer]
    }

    /// Returns the only node that has the key of a Peer of a cluster.
    pub fn held_by(&self, site: SiteId, peer: PeerId) -> Option<NodeRef> {
        match self.holding(site, peer) {
            Holding::One(at) => Some(at),
            Holding::Nobody | Holding::Many => None,
        }
    }

    /// Returns the preshared key of a Peer of a cluster as a number.
    pub fn secret(&self, site: &Site, peer: PeerId) -> Secret {
        let key = site.model.share(peer).and_then(|it| it.translation.preshared_key);
        self.index.secrets.secret(key)
    }

    /// Returns the clusters in order of rank.
    pub fn in_order_of_rank(&self) -> impl Iterator<Item = SiteId> {
        let mut sites: Vec<SiteId> = self.sites.ids().collect();
        sites.sort_by_key(|it| self.index.ranks[*it]);
        sites.into_iter()
    }

    /// Returns a cluster.
    pub fn site(&self, site: SiteId) -> &Site<'a> {
        &self.sites[site]
    }

    /// Returns the number of a cluster.
    pub fn site_named(&self, name: &str) -> Option<SiteId> {
        self.sites.find(|it| it.cluster.as_str().cmp(name))
    }

    /// Returns a node.
    pub fn node(&self, at: NodeRef) -> &TopologyNode {
        self.site(at.site).node(at.node)
    }

    /// Returns `cluster/node`, as the node calls itself. An external peer is one host.
    pub fn name(&self, at: NodeRef) -> String {
        let cluster = self.site(at.site).cluster;
        if cluster.is_external() {
            return cluster.to_string();
        }
        format!("{cluster}/{}", self.node(at).kilo.name)
    }

    /// Returns the nodes of all clusters that have a key.
    pub fn holders(&self, key: &[u8; 32]) -> &[NodeRef] {
        self.index.keys.get(key).map_or(&[], Vec::as_slice)
    }

    /// Returns the only node of all clusters that has a key, if it is one.
    pub fn only_holder(&self, key: &[u8; 32]) -> Option<NodeRef> {
        match *self.holders(key) {
            [at] => Some(at),
            _ => None,
        }
    }

    /// Returns the clusters with a node that has a key, each once.
    pub fn holding_sites(&self, key: &[u8; 32]) -> impl Iterator<Item = SiteId> {
        sites_of(self.holders(key))
    }

    /// Returns the nodes that have an address, in any cluster, where a mesh knows it by that.
    pub fn owners(&self, address: IpAddr) -> Vec<(SiteId, Owner)> {
        self.sites
            .numbered()
            .filter_map(|(number, site)| Some((number, site.owner(address)?)))
            .collect()
    }
}

/// Returns every different text of the manifests of some clusters, in the order in which they get them.
fn contents<'a>(sites: &Sites<Arc<Site<'a>>>) -> Vec<&'a Arc<Content>> {
    let files = sites.iter().flat_map(|site| site.files);
    let mut known = BTreeSet::new();
    files.map(|it| &it.content).filter(|it| known.insert(ByAddress(&***it))).collect()
}

/// Returns the clusters of nodes that are in their order, each once. Of a cluster with many, few are looked at.
fn sites_of(mut holders: &[NodeRef]) -> impl Iterator<Item = SiteId> {
    std::iter::from_fn(move || {
        let site = holders.first()?.site;
        let others = holders.partition_point(|it| it.site <= site);
        holders = holders.get(others..).unwrap_or_default();
        Some(site)
    })
}

/// Returns who has the keys of a cluster's Peers. Both sides are in the order of keys.
fn holdings(site: &Site, keys: &KeyHolders) -> Peers<Holding> {
    let mut holdings = site.model.peers.map(|_| Holding::Nobody);
    let held = |holders: &[NodeRef]| match holders {
        [] => Holding::Nobody,
        [one] => Holding::One(*one),
        _ => Holding::Many,
    };
    if site.model.peers.len() < keys.len() / RARE {
        for (key, peer) in site.model.by_key() {
            holdings[peer] = held(keys.get(key).map_or(&[], Vec::as_slice));
        }
        return holdings;
    }
    let mut keys = keys.iter().peekable();
    for (key, peer) in site.model.by_key() {
        while keys.next_if(|it| it.0 < key).is_some() {}
        if let Some((_, holders)) = keys.peek().filter(|it| it.0 == key) {
            holdings[peer] = held(holders);
        }
    }
    holdings
}
