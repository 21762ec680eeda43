//! The origin of results: the commits, and when they changed the snapshots.

use std::collections::BTreeMap;
use std::ffi::OsStr;

use clustermesh::config::Date;
use clustermesh::diagnostic::escaped;
use clustermesh::name::ClusterName;
use clustermesh::report::origin::{AgainstCommit, ResultOrigin, SnapshotDate};

use crate::cluster_peers;
use crate::git::{self, GitRepository};
use crate::inputs::Inputs;
use crate::settings::Settings;

/// The longest name of a commit that is shown, in characters.
const NAMED: usize = 80;

/// Returns the origin of a result about some inputs, which compares with an old version if one is named.
pub(crate) fn of(inputs: &Inputs, against: Option<&OsStr>) -> ResultOrigin {
    let clusters = cluster_peers::clusters(inputs);
    let times = commit_times(&clusters, &inputs.settings);
    let snapshots = times.into_iter().map(|(cluster, time)| SnapshotDate {
        cluster: cluster.to_string(),
        date: Date::from_unix_seconds(time).to_string(),
    });
    let commit = |name: &str| {
        let commit = GitRepository::around_here().and_then(|it| it.commit(name)).ok()?;
        Some(commit.short().to_owned())
    };
    // Not a folder, and not `none`.
    let against = against
        .and_then(OsStr::to_str)
        .and_then(|name| Some(AgainstCommit { name: escaped(name, NAMED), commit: commit(name)? }));
    ResultOrigin {
        meshes: inputs.meshes.iter().map(|it| it.name.to_string()).collect(),
        commit: commit("HEAD"),
        against,
        snapshots: snapshots.collect(),
    }
}

/// Returns when a commit last changed the snapshots of clusters, as far as the history here shows.
pub(crate) fn commit_times(
    clusters: &[ClusterName],
    settings: &Settings,
) -> BTreeMap<ClusterName, i64> {
    let folder = &settings.snapshots.value;
    let paths = clusters.iter().map(|it| folder.join(format!("{it}.json")).display().to_string());
    let head = GitRepository::around_here().and_then(|it| it.commit("HEAD"));
    // Without git, a repository or a commit, no time is known.
    let times = head.and_then(|it| git::last_changes(&it, paths)).unwrap_or_default();
    let times = clusters.iter().zip(times);
    times.filter_map(|(cluster, time)| Some((cluster.clone(), time?))).collect()
}
