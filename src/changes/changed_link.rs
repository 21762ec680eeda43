//! Changed links: what becomes of the Peers and the paths between two clusters, in both directions together.

use std::cmp::Reverse;
use std::collections::BTreeMap;

use super::Changes;
use super::cause::PeerCounts;
use super::path_change::PathChange;
use crate::name::ClusterName;

/// The changes between two clusters.
#[derive(Clone, Debug)]
pub struct ChangedLink<'c> {
    /// The two clusters, in order of name.
    pub clusters: [&'c ClusterName; 2],
    /// The changed Peers that one of them gets of the other.
    pub peers: PeerCounts,
    /// Whether one of them loses all Peers of the other.
    pub is_cut: bool,
    /// The numbers of paths.
    pub paths: LinkPaths,
}

/// Numbers of paths between two clusters, the worst first: see [`PathChange`].
#[derive(Clone, Copy, Debug, Default, Eq, Ord, PartialEq, PartialOrd)]
pub struct LinkPaths {
    /// Paths that no longer work.
    pub lost: u64,
    /// Paths that may be interrupted while the change is applied.
    pub interrupted: u64,
    /// Watched paths that the change opens.
    pub opened: u64,
    /// Paths of which one end no longer exists.
    pub ended: u64,
    /// Paths that are down until the change is applied.
    pub repaired: u64,
    /// Paths that work only in the new version.
    pub gained: u64,
}

/// An effect of a change on a link, the worst first.
#[derive(Clone, Copy, Debug, Eq, Ord, PartialEq, PartialOrd)]
pub enum LinkEffect {
    /// Paths are lost, or Peers and paths only go.
    Lost,
    /// Peers or paths change, or some go while others come.
    Changed,
    /// Peers and paths only come.
    Gained,
}

impl ChangedLink<'_> {
    /// Returns the effect.
    pub fn effect(&self) -> LinkEffect {
        let PeerCounts { added, changed, removed } = self.peers;
        let paths = self.paths;
        let changes = 0 < changed || 0 < paths.interrupted + paths.opened + paths.repaired;
        let gains = 0 < added || 0 < paths.gained;
        let loses = 0 < removed || 0 < paths.ended;
        if self.is_cut || 0 < paths.lost || loses && !gains && !changes {
            LinkEffect::Lost
        } else if loses || changes {
            LinkEffect::Changed
        } else {
            LinkEffect::Gained
        }
    }
}

impl LinkPaths {
    fn add(&mut self, change: &PathChange) {
        let interrupted = [change.apart, change.stuck, change.paused];
        self.lost += change.lost.all();
        self.interrupted += interrupted.iter().map(|it| it.all()).sum::<u64>();
        self.opened += change.opened.stay.all() + change.opened.pass.all();
        self.ended += change.ended.paths.all();
        self.repaired += change.repaired.all();
        self.gained += change.gained.all();
    }
}

impl Changes {
    /// Returns the links that change, the worst first.
    pub fn links(&self) -> Vec<ChangedLink<'_>> {
        let mut links: BTreeMap<[&ClusterName; 2], ChangedLink> = BTreeMap::new();
        for target in &self.targets {
            let mut sources: BTreeMap<&ClusterName, PeerCounts> = BTreeMap::new();
            for peer in &target.peers {
                if let Some(holder) = &peer.peer.holder {
                    sources.entry(&holder.cluster).or_default().count(peer);
                }
            }
            for (source, counts) in sources {
                link(&mut links, &target.cluster, source).peers.add(counts);
            }
            for source in &target.sources_gone {
                link(&mut links, &target.cluster, source).is_cut = true;
            }
        }
        for change in &self.paths {
            link(&mut links, &change.from, &change.to).paths.add(change);
        }
        // A cluster may have a Peer with a key of its own.
        links.retain(|clusters, _| clusters[0] != clusters[1]);
        let mut links: Vec<ChangedLink> = links.into_values().collect();
        links.sort_by_key(|it| {
            let PeerCounts { added, changed, removed } = it.peers;
            let peers = (removed, changed, added);
            (it.effect(), Reverse((it.is_cut, it.paths, peers)))
        });
        links
    }
}

/// Returns the link between two clusters, which is added if it is not there yet.
fn link<'l, 'c>(
    links: &'l mut BTreeMap<[&'c ClusterName; 2], ChangedLink<'c>>,
    one: &'c ClusterName,
    other: &'c ClusterName,
) -> &'l mut ChangedLink<'c> {
    let clusters = [one.min(other), one.max(other)];
    links.entry(clusters).or_insert_with(|| ChangedLink {
        clusters,
        peers: PeerCounts::default(),
        is_cut: false,
        paths: LinkPaths::default(),
    })
}
