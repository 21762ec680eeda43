//! New paths: watched paths that a change opens, with the causes.

use std::collections::BTreeSet;

use super::Changes;
use super::cause::{Cause, ChangedSetting};
use super::path_change::PathChange;
use super::target::TargetChange;
use super::watched::WatchedPaths;
use crate::name::ClusterName;

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
        let opening = self.paths.iter().filter(|it| !it.opened.is_empty());
        let new = opening.map(|path| {
            let watched = watched.iter().filter(|it| it.has(&path.from, &path.to));
            let ends = [(&path.from, &path.to), (&path.to, &path.from)];
            let causes =
                ends.into_iter().flat_map(|(target, source)| self.causes_of(target, source));
            NewPaths { watched: watched.collect(), path, causes: causes.collect() }
        });
        new.collect()
    }

    /// Returns the causes of the changed Peers of a source in a target.
    fn causes_of(&self, target: &ClusterName, source: &ClusterName) -> impl Iterator<Item = usize> {
        let targets = self.targets.iter().filter(move |it: &&TargetChange| it.cluster == *target);
        let peers = targets.flat_map(|it| &it.peers);
        let peers = peers.filter(move |it| {
            let holder = it.peer.holder.as_ref();
            holder.is_some_and(|it| it.cluster == *source)
        });
        peers.flat_map(|it| it.causes.listed().iter().copied())
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
        let mut placed = settings.iter().filter(|it| it.after.is_some());
        placed.next().or(settings.first()).copied()
    }
}
