//! The Peers of a rendered tree, read as the program reads them.

use std::collections::BTreeMap;
use std::sync::Arc;

use clustermesh::agent::applied::AppliedFile;
use clustermesh::agent::fabric::Site;
use clustermesh::fleet::SnapshotFile;
use clustermesh::mesh::Entry;
use clustermesh::name::ClusterName;

/// The Peers that clusters have.
pub(crate) type AppliedFiles = BTreeMap<ClusterName, Vec<AppliedFile>>;

/// Reads the manifests of a tree, given with their paths.
pub(crate) fn applied(tree: impl IntoIterator<Item = (String, String)>) -> AppliedFiles {
    let manifests = tree.into_iter().filter(|(path, _)| !path.ends_with("kustomization.yaml"));
    let texts: Vec<(Arc<str>, Arc<str>)> =
        manifests.map(|(path, text)| (path.into(), text.into())).collect();
    let mut files = AppliedFiles::new();
    for file in AppliedFile::read_all(&texts) {
        let (cluster, _) = file.source.split_once('/').unwrap();
        let cluster = ClusterName::of_member(cluster).unwrap();
        files.entry(cluster).or_default().push(file);
    }
    files
}

/// Returns a cluster with its Peers.
pub(crate) fn site<'a>(
    entry: &'a Entry,
    snapshots: &'a BTreeMap<ClusterName, SnapshotFile>,
    files: &'a AppliedFiles,
) -> Site<'a> {
    let files = files.get(&entry.name).map_or(&[][..], Vec::as_slice);
    Site::new(entry, &snapshots[&entry.name].snapshot, files)
}
