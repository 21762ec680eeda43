//! Path changes: what becomes of the paths between two clusters, and of their link.

use std::cmp::Reverse;
use std::collections::{BTreeMap, BTreeSet};

use schemars::JsonSchema;
use serde::Serialize;

use super::Changes;
use super::cause::{NamedNode, PeerCounts};
use crate::name::ClusterName;

/// The changes of the paths from one cluster to another. A path counts in the first field that
/// applies to it.
#[derive(Clone, Debug, Eq, PartialEq)]
pub struct PathChange {
    /// The cluster that sends.
    pub from: ClusterName,
    /// The cluster that receives.
    pub to: ClusterName,
    /// Paths that work in the new version only.
    pub gained: PathCounts,
    /// Those of the gained paths that are only assumed to work.
    pub assumed: PathCounts,
    /// Paths that worked, and do not work in the new version. A path that worked for a part of its
    /// addresses counts unless it is known that this part still works.
    pub lost: PathCounts,
    /// Paths that were proved, and are only assumed to work in the new version.
    pub no_longer_proved: PathCounts,
    /// Paths that worked, and of which the new version does not have one end.
    pub ended: EndedPaths,
    /// Paths that worked, do not work with the old Peers any more, and do with the new ones.
    pub repaired: PathCounts,
    /// Paths that do not work while only one of the two clusters has its new Peers.
    pub apart: PathCounts,
    /// Paths that may stay interrupted after everything has arrived, until agents list all Peers again.
    pub stuck: PathCounts,
    /// Paths that may be interrupted while the Peers of a cluster arrive.
    pub paused: PathCounts,
    /// Watched paths that no state before the change has.
    pub opened: OpenedPaths,
    /// True if any path works in the new version.
    pub holds_any: bool,
    /// The number of states of the two clusters that were proved.
    pub states: usize,
    /// An interrupted or lost path: its sender and its receiver, as `cluster/node` or a range.
    pub example: Option<(String, String)>,
}

/// Paths that end with a node, or with addresses of a node, that the new version does not have.
#[derive(Clone, Debug, Default, Eq, PartialEq)]
pub struct EndedPaths {
    /// The paths.
    pub paths: PathCounts,
    /// The nodes that left.
    pub left: BTreeSet<NamedNode>,
    /// The nodes that have other addresses now.
    pub moved: BTreeSet<NamedNode>,
}

/// Watched paths that did not work before a change. They need not work for all of their addresses.
#[derive(Clone, Debug, Default, Eq, PartialEq)]
pub struct OpenedPaths {
    /// Paths that work in the new version.
    pub stay: PathCounts,
    /// Paths that work only while the change is applied.
    pub pass: PathCounts,
    /// One of the paths, as `cluster/node` or a range each.
    pub example: Option<(String, String)>,
}

impl OpenedPaths {
    /// Returns whether there are none.
    pub fn is_empty(&self) -> bool {
        self.stay.is_empty() && self.pass.is_empty()
    }
}

/// Numbers of paths.
#[derive(Clone, Copy, Debug, Default, Eq, JsonSchema, PartialEq, Serialize)]
pub struct PathCounts {
    /// Paths that a link of a mesh declares.
    pub declared: u64,
    /// All other paths.
    pub undeclared: u64,
}

impl PathCounts {
    /// Returns the number of all.
    pub fn all(self) -> u64 {
        self.declared + self.undeclared
    }

    /// Returns whether there are none.
    pub fn is_empty(self) -> bool {
        self.all() == 0
    }

    /// Adds others.
    pub fn add(&mut self, other: Self) {
        self.declared += other.declared;
        self.undeclared += other.undeclared;
    }

    pub(super) fn count(&mut self, paths: u64, are_declared: bool) {
        if are_declared {
            self.declared += paths;
        } else {
            self.undeclared += paths;
        }
    }
}

impl EndedPaths {
    pub(super) fn add(&mut self, other: &Self) {
        self.paths.add(other.paths);
        self.left.extend(other.left.iter().cloned());
        self.moved.extend(other.moved.iter().cloned());
    }
}

impl PathChange {
    /// Returns a change of nothing between two clusters.
    pub(super) fn none(from: &ClusterName, to: &ClusterName) -> Self {
        Self {
            from: from.clone(),
            to: to.clone(),
            gained: PathCounts::default(),
            assumed: PathCounts::default(),
            lost: PathCounts::default(),
            no_longer_proved: PathCounts::default(),
            ended: EndedPaths::default(),
            repaired: PathCounts::default(),
            apart: PathCounts::default(),
            stuck: PathCounts::default(),
            paused: PathCounts::default(),
            opened: OpenedPaths::default(),
            holds_any: false,
            states: 0,
            example: None,
        }
    }

    /// Returns the same with nothing but the opened paths.
    pub(super) fn only_opened(self) -> Self {
        Self { opened: self.opened, ..Self::none(&self.from, &self.to) }
    }

    /// Returns whether paths that were proved are lost, or only assumed to work.
    pub(super) fn is_weakened(&self) -> bool {
        !self.lost.is_empty() || !self.no_longer_proved.is_empty()
    }

    /// Returns whether any path is gained, lost or interrupted.
    pub fn has_changes(&self) -> bool {
        let counts = [
            self.gained,
            self.lost,
            self.no_longer_proved,
            self.ended.paths,
            self.repaired,
            self.apart,
            self.stuck,
            self.paused,
        ];
        !self.opened.is_empty() || counts.iter().any(|it| !it.is_empty())
    }
}

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
    /// Paths that were proved, and are only assumed to work afterwards.
    pub no_longer_proved: u64,
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
        let altered = paths.no_longer_proved + paths.interrupted + paths.opened + paths.repaired;
        let changes = 0 < changed || 0 < altered;
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
        self.no_longer_proved += change.no_longer_proved.all();
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
