//! The origin of results: the commits, and when they changed the snapshots.

use std::collections::BTreeMap;
use std::ffi::OsStr;

use clustermesh::config::Date;
use clustermesh::diagnostic::escaped;
use clustermesh::name::ClusterName;
use clustermesh::report::origin::{AgainstCommit, ResultOrigin, SnapshotDate};

use crate::cluster_peers;
use crate::disk::Revision;
use crate::git::GitRepository;
use crate::inputs::Inputs;
use crate::settings::Settings;

/// The longest name of a commit that is shown, in characters.
const NAMED: usize = 80;

/// Returns the origin of a result about some inputs, which compares with an old version if one is named.
pub(crate) fn of(inputs: &Inputs, against: Option<&OsStr>) -> ResultOrigin {
    let clusters = cluster_peers::clusters(inputs);
    let head = head();
    let times = head.as_ref().map(|it| times(it, &clusters, &inputs.settings)).unwrap_or_default();
    let snapshots = times.into_iter().map(|(cluster, time)| SnapshotDate {
        cluster: cluster.to_string(),
        date: Date::from_unix_seconds(time).to_string(),
    });
    let commit = |name: &str| {
        Some(GitRepository::around_here().and_then(|it| it.commit(name)).ok()?.short().to_owned())
    };
    // Not a folder, and not `none`.
    let against = against
        .and_then(OsStr::to_str)
        .and_then(|name| Some(AgainstCommit { name: escaped(name, NAMED), commit: commit(name)? }));
    ResultOrigin {
        meshes: inputs.meshes.iter().map(|it| it.name.to_string()).collect(),
        commit: head.map(|it| it.commit().short().to_owned()),
        against,
        snapshots: snapshots.collect(),
    }
}

/// Returns when a commit last changed the snapshots of clusters, as far as the history here shows.
#[cfg(feature = "snapshot")]
pub(crate) fn commit_times(
    clusters: &[ClusterName],
    settings: &Settings,
) -> BTreeMap<ClusterName, i64> {
    head().map(|it| times(&it, clusters, settings)).unwrap_or_default()
}

/// Returns the commit that is checked out, if git is installed and this is a repository with a commit.
fn head() -> Option<Revision> {
    Revision::open("HEAD").ok()
}

fn times(
    head: &Revision,
    clusters: &[ClusterName],
    settings: &Settings,
) -> BTreeMap<ClusterName, i64> {
    let files: Vec<String> = clusters.iter().map(|it| format!("{it}.json")).collect();
    let names = files.iter().map(String::as_str).collect();
    let times = head.last_changes(&settings.snapshots.value, names).unwrap_or_default();
    let times = clusters
        .iter()
        .zip(&files)
        .map(|(cluster, file)| Some((cluster.clone(), *times.get(&**file)?)));
    times.flatten().collect()
}
