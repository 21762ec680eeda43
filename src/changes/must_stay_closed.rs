//! Paths that must stay closed: those between clusters that no change should open, in any state on the way.

use std::collections::{BTreeMap, BTreeSet};

use super::Changes;
use super::cause::{Cause, ChangedSetting};
use super::cluster_transition::{NEW, OLD, StagedClusters};
use super::path_change::PathChange;
use super::prover::{Mixture, OpenPairs, Prover};
use super::state_proof::{KnownPaths, ProofBudget, Proved, SeenPaths, StateProof};
use super::target::TargetChange;
use crate::agent::fabric::{Fabric, SiteId};
use crate::name::ClusterName;
use crate::proof::reach::Reach;

/// The clusters at both ends of paths that no change should open.
#[derive(Clone, Debug, Default, Eq, PartialEq)]
pub struct WatchedPaths {
    /// Their name, such as `dev:prod`.
    pub name: String,
    /// The senders.
    pub from: BTreeSet<ClusterName>,
    /// The receivers.
    pub to: BTreeSet<ClusterName>,
}

/// The most mixed states of two clusters in which their paths are looked for.
const MOST_OF_PAIR: usize = 64;

impl WatchedPaths {
    pub(super) fn has(&self, from: &ClusterName, to: &ClusterName) -> bool {
        self.from.contains(from) && self.to.contains(to)
    }
}

impl Prover<'_, '_, '_, '_> {
    /// Finds the watched paths that work in any state but that of the old Peers. Clusters for which the steps do not
    /// last are returned.
    pub(super) fn watch(
        &self,
        pairs: &mut [Proved],
        watched: &[WatchedPaths],
        steps: &mut ProofBudget,
    ) -> BTreeSet<SiteId> {
        let cluster = |site: SiteId| self.transitions.0[site].peers.after.cluster;
        let is_watched = |it: &Proved| {
            let [from, to] = it.pair.both().map(cluster);
            watched.iter().any(|paths| paths.has(from, to))
        };
        let open = OpenPairs::find(pairs, is_watched);
        let sites = open.sites();
        let most = sites.iter().map(|it| self.transitions.0[*it].stages()).max();
        let staged = (OLD..most.unwrap_or(OLD)).map(|it| open.staged(self.transitions, |_| it));
        let staged: Vec<StagedClusters> = staged.collect();
        let [_, with_new] = self.ends;
        let fabrics = staged.iter().map(|it| it.fabric(with_new.fabric));
        let fabrics: Vec<Fabric> = fabrics.collect();
        let reaches = fabrics.iter().map(|it| open.reach(it, steps));
        let Some(reaches) = reaches.collect::<Option<Vec<Reach>>>() else {
            return sites;
        };
        let mut groups: BTreeMap<Mixture, Vec<usize>> = BTreeMap::new();
        let mut unproven = BTreeSet::new();
        for (place, proved) in pairs.iter_mut().enumerate().filter(|it| is_watched(it.1)) {
            proved.seen = Some(self.seen(proved, &reaches));
            let leaving = self.mixed(proved.pair).filter(|stages| {
                reaches
                    .get(stages.sender)
                    .is_none_or(|it| !it.is_kept(proved.pair.from, proved.pair.to))
            });
            for (followed, stages) in leaving.enumerate() {
                if followed == MOST_OF_PAIR {
                    unproven.extend(proved.pair.both());
                    break;
                }
                let mixture = Mixture::new(proved.pair, stages);
                groups.entry(mixture).or_default().push(place);
            }
        }
        for (mixture, places) in groups {
            let among = OpenPairs::of(places.iter().filter_map(|it| pairs.get(*it)));
            let Some(held) = self.held(mixture, &among, steps) else {
                unproven.extend(among.sites());
                continue;
            };
            for place in places {
                let Some(proved) = pairs.get_mut(place) else {
                    continue;
                };
                if let Some((seen, held)) = proved.seen.as_mut().zip(held.get(&proved.pair)) {
                    seen.passing.add(&held.any());
                }
            }
        }
        unproven
    }

    /// Returns the paths that work while both clusters are in the same stage.
    fn seen(&self, proved: &Proved, reaches: &[Reach]) -> SeenPaths {
        let mut seen = SeenPaths::default();
        for (stage, reach) in reaches.iter().enumerate().skip(NEW) {
            let known = &mut KnownPaths::default();
            let works = StateProof::new(reach, proved.pair, self.blocks, known).any();
            if stage == NEW {
                seen.new = works;
            } else {
                seen.passing.add(&works);
            }
        }
        seen
    }
}

/// The paths from one cluster to another that a change opens although they are watched.
#[derive(Clone, Debug)]
pub struct NewPaths<'c> {
    /// The watched paths to which they belong.
    pub watched: Vec<&'c WatchedPaths>,
    /// The two clusters, and the numbers of paths.
    pub path: &'c PathChange,
    /// The causes of the changed Peers of the two clusters for each other, as indexes of [`Changes::causes`]: of many,
    /// the first ones.
    pub causes: BTreeSet<usize>,
}

impl Changes {
    /// Returns the watched paths that the change opens, or may open.
    pub fn new_paths<'c>(&'c self, watched: &'c [WatchedPaths]) -> Vec<NewPaths<'c>> {
        let new = self.paths.iter().filter(|it| !it.opened.is_empty()).map(|path| {
            let watched = watched.iter().filter(|it| it.has(&path.from, &path.to));
            let causes = [(&path.from, &path.to), (&path.to, &path.from)]
                .into_iter()
                .flat_map(|(target, source)| self.causes_of(target, source));
            NewPaths { watched: watched.collect(), path, causes: causes.collect() }
        });
        new.collect()
    }

    /// Returns the causes of the changed Peers of a source in a target.
    fn causes_of(&self, target: &ClusterName, source: &ClusterName) -> impl Iterator<Item = usize> {
        self.targets
            .iter()
            .filter(move |it: &&TargetChange| it.cluster == *target)
            .flat_map(|it| &it.peers)
            .filter(move |it| it.peer.holder.as_ref().is_some_and(|it| it.cluster == *source))
            .flat_map(|it| it.causes.listed().iter().copied())
    }
}

impl NewPaths<'_> {
    /// Returns a changed setting that is one of its causes, if there is one with its place in the new version.
    pub fn setting<'c>(&self, changes: &'c Changes) -> Option<&'c ChangedSetting> {
        let causes = self.causes.iter().filter_map(|it| changes.causes.get(*it));
        let settings = causes.filter_map(|it| match &it.cause {
            Cause::Setting(setting) => Some(setting),
            _ => None,
        });
        let settings: Vec<&ChangedSetting> = settings.collect();
        settings.iter().find(|it| it.after.is_some()).or(settings.first()).copied()
    }
}
