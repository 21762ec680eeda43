//! Candidates: names from the meshes, snapshots and kubeconfigs that the command line means.

use std::collections::BTreeSet;
use std::path::Path;
use std::sync::mpsc::channel;
use std::thread;
use std::time::Duration;

use clustermesh::mesh::Mesh;
use clustermesh::name::ClusterName;
use clustermesh::rules;
use clustermesh::rules::reach::TERMS;
use clustermesh::snapshot::Snapshot;

use crate::disk::{self, Roots};
use crate::input_file;
use crate::settings::{FileOptions, Settings};

/// The time that a person waits for candidates.
const PATIENCE: Duration = Duration::from_secs(1);

/// The largest snapshot that is read, in bytes: some thousand nodes.
const SNAPSHOT: u64 = 8 << 20;

/// The longest candidate.
const LONGEST: usize = 253;

/// Returns whether a name is not too long and means nothing else to any shell or terminal.
pub(super) fn is_plain(name: &str) -> bool {
    let is_first = |it: char| it.is_ascii_alphanumeric() || "./_".contains(it);
    let is_inner = |it: char| it.is_ascii_alphanumeric() || "./_-:@+,%=".contains(it);
    (1..=LONGEST).contains(&name.len()) && name.starts_with(is_first) && name.chars().all(is_inner)
}

/// Returns the clusters of the meshes and of the config.
pub(super) fn clusters() -> Vec<String> {
    found(|settings| {
        let meshes = meshes(settings);
        let entries = meshes.iter().flat_map(|mesh| &mesh.entries);
        let config = &settings.config.content;
        let names = entries
            .map(|entry| &entry.name)
            .chain(config.clusters.keys());
        names.map(ToString::to_string).collect()
    })
}

/// Returns the nodes in the snapshot of a cluster.
pub(super) fn nodes(cluster: &str) -> Vec<String> {
    let Ok(cluster) = cluster.parse::<ClusterName>() else {
        return Vec::new();
    };
    found(move |settings| {
        let folder = &settings.snapshots;
        let path = folder.value.join(format!("{cluster}.json"));
        let text = disk::is_file(&Roots::anywhere(), &path)
            .then(|| disk::read_text(&settings.roots_of(folder), &path, SNAPSHOT).ok());
        let snapshot = text
            .flatten()
            .and_then(|text| Snapshot::read(&cluster, &text).ok());
        let nodes = snapshot.into_iter().flat_map(|it| it.nodes);
        nodes.map(|node| node.name).collect()
    })
}

/// Returns the contexts of the kubeconfig that `kubectl` would read, or of the one on the command line.
#[cfg(feature = "snapshot")]
pub(super) fn contexts() -> Vec<String> {
    use std::path::PathBuf;

    use crate::cluster::Kubeconfigs;

    let matches = super::matches();
    let file = matches.and_then(|it| it.try_get_one::<PathBuf>("kubeconfig").ok()?.cloned());
    found(move |settings| {
        let files: Vec<PathBuf> = file
            .map_or_else(|| settings.kubeconfig.value.clone(), |file| vec![file])
            .into_iter()
            .filter(|it| is_regular(it))
            .collect();
        Kubeconfigs::new(PATIENCE)
            .names(&files)
            .into_iter()
            .collect()
    })
}

/// Returns the names that can be explained.
pub(super) fn rules() -> Vec<String> {
    rules::all()
        .into_iter()
        .flat_map(|rule| {
            [rule.name()]
                .into_iter()
                .chain(rule.aliases.iter().copied())
        })
        .chain(TERMS.iter().map(|term| term.name))
        .map(str::to_owned)
        .collect()
}

/// Looks for names with the settings of the command line, but not for long.
fn found(find: impl FnOnce(&Settings) -> BTreeSet<String> + Send + 'static) -> Vec<String> {
    let (sender, receiver) = channel();
    let search = move || {
        let names = settings().map(|it| find(&it)).unwrap_or_default();
        // If it took too long, the caller no longer waits.
        let _ = sender.send(names);
    };
    if thread::Builder::new().spawn(search).is_err() {
        return Vec::new();
    }
    let names = receiver.recv_timeout(PATIENCE).unwrap_or_default();
    names.into_iter().filter(|name| is_plain(name)).collect()
}

/// Settles the settings of the command line. Pipes are for the command itself.
fn settings() -> Option<Settings> {
    let options =
        super::matches().map_or_else(FileOptions::default, |it| FileOptions::from_matches(&it));
    options.enter().ok()?;
    if !options.named_inputs().all(is_regular) {
        return None;
    }
    options.settle().ok()
}

fn meshes(settings: &Settings) -> Vec<Mesh> {
    let files: Vec<_> = settings
        .mesh_files_if_any()
        .unwrap_or_default()
        .into_iter()
        .filter(|file| is_regular(&file.path))
        .collect();
    input_file::clusters(&files, settings.ceilings)
        .map(|it| it.meshes)
        .unwrap_or_default()
}

/// Returns whether a path leads to a file or a folder, and not to a pipe or a device.
fn is_regular(path: &Path) -> bool {
    let roots = Roots::anywhere();
    disk::is_file(&roots, path) || disk::is_folder(&roots, path)
}
