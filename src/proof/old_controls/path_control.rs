//! Path controls: what each control of the old version is about, on both sides of a path.

use std::collections::{BTreeMap, BTreeSet};

use super::asked_paths::Question;
use super::old_clusters::{CountedAddresses, outside};
use crate::agent::fabric::Site;
use crate::expectations::{AllowedPaths, Expectation, Expected};
use crate::mesh::{Mesh, Range};
use crate::name::ClusterName;
use crate::net::prefixes::{Prefixes, Span};
use crate::place::Place;
use crate::policy::Policy;
use crate::proof::expectation::{ExpectationSide, Meant, OldBlock};
use crate::proof::reach::AddressBlock;

/// A control of the old version that refuses paths.
#[derive(Clone, Debug)]
pub enum PathControl<'c> {
    /// An expectation.
    Expectation(&'c Expectation),
    /// `undeclared: Deny`.
    Undeclared {
        /// The paths that are allowed nevertheless.
        allowed: Vec<AllowedPaths<'c>>,
        /// Its place.
        place: &'c Place,
    },
    /// The ranges that a cluster accepts.
    AcceptedNetworks(AcceptedNetworks<'c>),
    /// The clusters that a policy accepts.
    AcceptedClusters {
        /// The policy.
        policy: &'c Policy,
        /// The list.
        place: Place,
    },
    /// The networks of a cluster that no Peer may take over.
    LocalNetworks {
        /// The cluster.
        cluster: &'c ClusterName,
        /// The networks.
        networks: Prefixes<()>,
        /// The first one.
        place: &'c Place,
    },
}

/// The ranges that a cluster accepts from others.
#[derive(Clone, Debug)]
pub struct AcceptedNetworks<'c> {
    /// The cluster.
    pub cluster: &'c ClusterName,
    /// The first range that it accepts.
    place: Option<&'c Place>,
    by_policy: Option<Prefixes<()>>,
    by_mesh: Vec<AcceptedByMesh<'c>>,
}

/// The ranges that a cluster accepts in a mesh, from the other clusters in it.
#[derive(Clone, Debug)]
struct AcceptedByMesh<'c> {
    linked: BTreeSet<&'c ClusterName>,
    others: BTreeSet<&'c ClusterName>,
    ranges: Option<Prefixes<()>>,
}

/// Whether the cluster of a limit sends or receives.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(super) enum Direction {
    Sending,
    Receiving,
}

/// The common part of some addresses of one side.
#[derive(Clone, Debug, Eq, Ord, PartialEq, PartialOrd)]
pub(super) struct SideKey<'c> {
    /// The old cluster as which they count.
    pub(super) cluster: &'c ClusterName,
    /// The indexes of the allowed paths with all of them on this side.
    allowed: Vec<usize>,
}

/// Parts of blocks, by what they have in common.
pub(super) type SideParts<'c> = BTreeMap<SideKey<'c>, Vec<AddressBlock>>;

/// The addresses that a control is about, on one side.
pub(super) enum ControlledSide<'s, 'c> {
    /// The addresses that an expectation selects. If paths must be closed, what was selected still is: a node that has another
    /// label now, since only its snapshot shows its labels, and that needs no review, and a range that has another class.
    Selected { meant: Meant<'c>, as_before: bool },
    /// All addresses, by the allowed paths that they are in.
    Any(Vec<Meant<'c>>),
    /// All addresses of a cluster.
    Whole(&'c ClusterName),
    /// The addresses of other clusters that a cluster does not accept.
    Unaccepted(&'s AcceptedNetworks<'c>),
    /// The clusters that a policy does not accept.
    Strangers(&'c Policy),
    /// The addresses of other clusters in some networks.
    Inside(&'c ClusterName, &'s Prefixes<()>),
}

impl<'c> AcceptedNetworks<'c> {
    /// Returns the limits of a cluster in its meshes and its policy, if it has any.
    pub fn of(meshes: &'c [Mesh], cluster: &'c ClusterName) -> Option<Self> {
        let union = |it: &Vec<Range>| Prefixes::union(it.iter().map(|it| it.cidr));
        let own = meshes.iter().filter_map(|mesh| Some((mesh, mesh.entry(cluster)?)));
        let by_policy = own.clone().find_map(|it| it.1.accepted_by_policy.as_ref()).map(union);
        let by_mesh = own.map(|(mesh, entry)| AcceptedByMesh {
            linked: mesh
                .all_entries()
                .map(|it| &it.name)
                .filter(|it| mesh.is_linked(cluster, it))
                .collect(),
            others: mesh.all_entries().map(|it| &it.name).collect(),
            ranges: entry.accepted.as_ref().map(union),
        });
        let by_mesh: Vec<AcceptedByMesh> = by_mesh.collect();
        let is_any = by_policy.is_some() || by_mesh.iter().any(|it| it.ranges.is_some());
        let mut ranges = meshes
            .iter()
            .filter_map(|it| it.entry(cluster))
            .flat_map(|it| it.accepted_lists().flatten().map(|it| &it.place));
        is_any.then(|| Self { cluster, place: ranges.next(), by_policy, by_mesh })
    }

    /// Returns the addresses of another cluster that it does not accept: in the meshes that link both, without any in those
    /// that have both, else in all of its meshes.
    fn refused(&self, other: &ClusterName, span: Span) -> Vec<Span> {
        let of = |is_meant: &dyn Fn(&AcceptedByMesh) -> bool| {
            let lists = self.by_mesh.iter().filter(|it| is_meant(it));
            let refused = lists.map(|it| match &it.ranges {
                Some(ranges) => outside(ranges, span),
                None => Vec::new(),
            });
            refused.min_by_key(Vec::len)
        };
        let by_mesh = of(&|it| it.linked.contains(other))
            .or_else(|| of(&|it| it.others.contains(other)))
            .or_else(|| of(&|_| true))
            .unwrap_or_default();
        let by_policy = self.by_policy.iter().flat_map(|it| outside(it, span));
        by_mesh.into_iter().chain(by_policy).collect()
    }
}

impl<'c> PathControl<'c> {
    /// Returns its place in the old version.
    pub fn place(&self) -> Option<&Place> {
        match self {
            Self::Expectation(it) => Some(&it.place),
            Self::Undeclared { place, .. } | Self::LocalNetworks { place, .. } => Some(place),
            Self::AcceptedNetworks(it) => it.place,
            Self::AcceptedClusters { place, .. } => Some(place),
        }
    }

    /// Returns whether paths must work, and not be closed.
    pub fn is_reach(&self) -> bool {
        matches!(self, Self::Expectation(it) if it.expected == Expected::Reach)
    }

    /// Returns the question about paths to which it refuses a yes.
    pub(super) fn question(&self) -> Question {
        match self {
            Self::Undeclared { .. } => Question::IsUndeclared,
            _ if self.is_reach() => Question::Fails,
            _ => Question::IsOpen,
        }
    }

    /// Returns the directions of the paths: the limits of a cluster hold in both.
    pub(super) fn directions(&self) -> &'static [Direction] {
        match self {
            Self::Expectation(_) | Self::Undeclared { .. } => &[Direction::Sending],
            Self::AcceptedNetworks(_)
            | Self::AcceptedClusters { .. }
            | Self::LocalNetworks { .. } => &[Direction::Sending, Direction::Receiving],
        }
    }

    /// Returns what it is about: the senders and the receivers.
    pub(super) fn sides(&self, way: Direction) -> [ControlledSide<'_, 'c>; 2] {
        let (own, other) = match self {
            Self::Expectation(it) => {
                return [
                    ControlledSide::of_expectation(it, ExpectationSide::From),
                    ControlledSide::of_expectation(it, ExpectationSide::To),
                ];
            }
            Self::Undeclared { allowed, .. } => {
                let from = allowed.iter().map(|it| Meant::new(it.from, true));
                let to = allowed.iter().map(|it| Meant::new(it.to, false));
                return [ControlledSide::Any(from.collect()), ControlledSide::Any(to.collect())];
            }
            Self::AcceptedNetworks(it) => (it.cluster, ControlledSide::Unaccepted(it)),
            Self::AcceptedClusters { policy, .. } => {
                (&policy.cluster, ControlledSide::Strangers(policy))
            }
            Self::LocalNetworks { cluster, networks, .. } => {
                (*cluster, ControlledSide::Inside(cluster, networks))
            }
        };
        match way {
            Direction::Sending => [ControlledSide::Whole(own), other],
            Direction::Receiving => [other, ControlledSide::Whole(own)],
        }
    }

    /// Returns whether it refuses open paths between these sides. Paths within an old cluster are not between clusters.
    pub(super) fn forbids(&self, sender: &SideKey, receiver: &SideKey) -> bool {
        if sender.cluster == receiver.cluster {
            return false;
        }
        let Self::Undeclared { allowed, .. } = self else {
            return true;
        };
        let mut common = sender.allowed.iter().filter(|it| receiver.allowed.contains(it));
        !common.any(|it| {
            allowed.get(*it).is_some_and(|it| {
                it.from.has_cluster(sender.cluster) && it.to.has_cluster(receiver.cluster)
            })
        })
    }
}

impl<'c> ControlledSide<'_, 'c> {
    fn of_expectation(expectation: &'c Expectation, side: ExpectationSide) -> Self {
        let as_before = expectation.expected == Expected::Deny;
        Self::Selected { meant: Meant::by(expectation, side), as_before }
    }

    /// Returns whether it may have addresses that count as a cluster.
    pub(super) fn may_have(&self, cluster: &ClusterName) -> bool {
        match self {
            Self::Selected { meant, .. } => meant.selection().has_cluster(cluster),
            Self::Any(_) => true,
            Self::Whole(own) => *own == cluster,
            Self::Unaccepted(accepted) => accepted.cluster != cluster,
            Self::Strangers(policy) => policy.cluster != *cluster && !policy.accepts(cluster),
            Self::Inside(own, _) => *own != cluster,
        }
    }

    /// Returns the parts of blocks that it is about, by the old cluster as which they count.
    pub(super) fn parts(
        &self,
        counted: &CountedAddresses<'c>,
        site: &Site,
        blocks: &[AddressBlock],
    ) -> SideParts<'c> {
        let mut parts = SideParts::new();
        for block in blocks {
            let meant = match self {
                Self::Selected { meant, as_before } => {
                    let old = if *as_before { counted.old(block) } else { OldBlock::default() };
                    meant.parts(site, block, old)
                }
                _ => vec![*block],
            };
            if meant.is_empty() {
                continue;
            }
            let allowed = match self {
                Self::Any(allowed) => {
                    let allowed = allowed.iter().enumerate();
                    let old = counted.old(block);
                    let allowed = allowed
                        .filter(|it| it.1.contains(site, block) && !it.1.is_of_other_class(old));
                    allowed.map(|it| it.0).collect()
                }
                _ => Vec::new(),
            };
            let counting = counted.of(block).filter(|it| self.may_have(it));
            for cluster in counting {
                let cut = match self {
                    Self::Unaccepted(accepted) => Some(accepted.refused(cluster, block.span)),
                    Self::Inside(_, local) => {
                        let pieces = local.pieces(block.span).into_iter();
                        Some(pieces.filter(|it| it.slot.is_some()).map(|it| it.span).collect())
                    }
                    _ => None,
                };
                let key = SideKey { cluster, allowed: allowed.clone() };
                let blocks = match cut {
                    Some(spans) => {
                        spans.into_iter().map(|span| AddressBlock { span, ..*block }).collect()
                    }
                    None => meant.clone(),
                };
                if !blocks.is_empty() {
                    parts.entry(key).or_default().extend(blocks);
                }
            }
        }
        parts
    }
}
