//! The comparison of rendered trees: the wanted one, the one on disk, and their differences.

use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};
use std::sync::Arc;

use clustermesh::agent::applied::AppliedFile;
use clustermesh::changes::PeerCounts;
use clustermesh::fleet::Fleet;
use clustermesh::kilo::peer::Translation;
use clustermesh::kilo::peer::translation::TranslationFault;
use clustermesh::manifest::{self, KUSTOMIZATION, Kustomization, PeerSetTexts};
use clustermesh::mirror::Mirrors;
use clustermesh::plan::Plan;
use clustermesh::rules::{Finding, gitops};
use clustermesh::tree_diff::{self, ChangedContent, ChangedFile, OnDiskTree, Overriding, TreeDiff};
use rayon::prelude::*;

use crate::disk::tree::{FileText, TreeSurvey, WantedFiles as Tree, survey};
use crate::disk::{self, Roots, tree};
use crate::files::{LaterFile, ShownFiles};
use crate::input_file;
use crate::outputs::{self, Outputs};
use crate::settings::{SettingOrigin, Settings};

/// The wanted tree and the one on disk.
pub(crate) struct TreeComparison {
    /// The wanted tree.
    pub(crate) tree: Tree,
    /// The differences of its files.
    pub(crate) survey: TreeSurvey,
    /// The content of the files that differ.
    pub(crate) on_disk: OnDiskTree,
    /// The changes of the next render.
    pub(crate) changes: TreeDiff,
    /// The outputs beside it.
    pub(crate) outputs: Outputs,
}

impl TreeComparison {
    /// Returns a note if the tree or an output beside it is not up to date. One with the default name that is in no commit
    /// is perhaps never rendered.
    pub(crate) fn outdated(&self, settings: &Settings) -> Option<String> {
        let tree = &settings.rendered.value;
        let is_committed =
            || settings.head().is_some_and(|it| disk::is_there(&it, tree).unwrap_or(false));
        let is_current = self.survey.is_current() && self.outputs.are_current();
        match &settings.rendered.origin {
            _ if is_current => None,
            _ if self.survey.is_there() || is_committed() => Some(OUTDATED.to_owned()),
            SettingOrigin::Default => None,
            SettingOrigin::Flag(_) | SettingOrigin::Variable(_) | SettingOrigin::File(_) => {
                let folder = input_file::name(tree);
                Some(format!(
                    "`rendered` is set to `{folder}`, which has no Peers: run `clustermesh render`, or correct the path"
                ))
            }
        }
    }

    /// Compares the outputs beside the tree too, and returns what is wrong with them.
    pub(crate) fn compare_outputs(
        &mut self,
        planned: (&Fleet, &Plan, &Mirrors),
        texts: &PeerSetTexts,
        settings: &Settings,
    ) -> Vec<Finding> {
        match outputs::compare(planned, texts, settings) {
            Ok(outputs) => self.outputs = outputs,
            Err(wrong) => return wrong,
        }
        Vec::new()
    }
}

/// Compares the tree on disk with a plan whose peer sets have these texts.
pub(crate) fn compare(
    plan: &Plan,
    texts: &PeerSetTexts,
    settings: &Settings,
) -> anyhow::Result<TreeComparison> {
    let tree = manifest::tree_of(plan, texts)?;
    let root = &settings.rendered.value;
    let roots = settings.roots_of(&settings.rendered);
    let survey = survey(&roots, root, &tree)?;
    let mut on_disk = on_disk(&roots, root, &survey);
    on_disk.uncommitted = uncommitted(&survey, &tree, settings);
    let limits = &settings.config.content.limits;
    let changes = tree_diff::changes(plan, &on_disk.files, &on_disk.same, limits);
    Ok(TreeComparison { tree, survey, on_disk, changes, outputs: Outputs::default() })
}

/// The most files that a person edits by hand at a time.
const EDITED: usize = 20;

/// Returns the files that differ from the wanted ones and do not in the last commit.
fn uncommitted(survey: &TreeSurvey, tree: &Tree, settings: &Settings) -> BTreeSet<String> {
    let few = Some(&survey.changed).filter(|it| (1..=EDITED).contains(&it.len()));
    let Some((changed, head)) = few.zip(settings.head()) else {
        return BTreeSet::new();
    };
    let is_wanted = |path: &&String| {
        let committed = tree::read(&head, &settings.rendered.value.join(path));
        committed.ok().as_ref() == tree.get(*path)
    };
    changed.iter().filter(is_wanted).cloned().collect()
}

/// The note if the tree on disk is not that of the meshes and snapshots beside it.
pub(crate) const OUTDATED: &str = "the rendered tree is not up to date: run `clustermesh render`";

/// Returns whether the tree on disk is that of a plan whose peer sets have these texts, except for foreign files.
pub(crate) fn is_current(
    plan: &Plan,
    texts: &PeerSetTexts,
    settings: &Settings,
) -> anyhow::Result<bool> {
    let tree = manifest::tree_of(plan, texts)?;
    let roots = settings.roots_of(&settings.rendered);
    Ok(survey(&roots, &settings.rendered.value, &tree)?.is_current())
}

/// The numbers of changed Peers, by target.
pub(crate) type CountsByTarget = BTreeMap<String, PeerCounts>;

/// Returns how many Peers the next render adds, changes and removes in each target of which a file
/// changes or goes. It is unknown for a target with a file that cannot be read.
pub(crate) fn peer_counts(rendered: &TreeComparison, settings: &Settings) -> CountsByTarget {
    let TreeComparison { tree, survey, .. } = rendered;
    let unread = rendered.on_disk.unread_targets();
    let mut old = peers_by_target(&differing(rendered, settings));
    old.retain(|target, _| !unread.contains(target.as_str()));
    let new = survey
        .changed
        .iter()
        .chain(&survey.missing)
        .filter(|path| old.contains_key(target_of(path)))
        .filter_map(|path| Some((Arc::from(path.as_str()), Arc::clone(tree.get(path)?))));
    let new = peers_by_target(&new.collect::<Vec<_>>());
    let nothing = NamedPeers::new();
    let counts = old.iter().map(|(target, old)| {
        let new = new.get(target).unwrap_or(&nothing);
        let stays: Vec<_> =
            old.iter().filter_map(|(name, spec)| Some((spec, new.get(name)?))).collect();
        let counts = PeerCounts {
            added: new.len() - stays.len(),
            changed: stays.iter().filter(|(before, after)| before != after).count(),
            removed: old.len() - stays.len(),
        };
        (target.clone(), counts)
    });
    counts.collect()
}

/// Returns the texts of files of the tree that change or go, by path. An unreadable file is a finding.
pub(crate) fn differing(
    rendered: &TreeComparison,
    settings: &Settings,
) -> Vec<(Arc<str>, Arc<str>)> {
    let root = &settings.rendered.value;
    let roots = settings.roots_of(&settings.rendered);
    let old = rendered.survey.changed.iter().chain(&rendered.survey.stale);
    let texts = old.filter_map(|path| {
        let text = tree::read(&roots, &root.join(path)).ok()?;
        Some((Arc::from(path.as_str()), text))
    });
    texts.collect()
}

/// The specs of Peers, by name.
type NamedPeers = BTreeMap<String, Result<Translation, TranslationFault>>;

/// Returns the Peers in files of a tree, which are given by path and text.
fn peers_by_target(files: &[(Arc<str>, Arc<str>)]) -> BTreeMap<String, NamedPeers> {
    let mut targets: BTreeMap<String, NamedPeers> = BTreeMap::new();
    for file in AppliedFile::read_all(files) {
        let peers = targets.entry(target_of(&file.source).to_owned()).or_default();
        peers.extend(file.content.peers.iter().map(|peer| (peer.name.clone(), peer.spec.clone())));
    }
    targets
}

/// Returns the target of a path in the tree.
pub(crate) fn target_of(path: &str) -> &str {
    path.split('/').next().unwrap_or(path)
}

/// Returns the tree on disk if the wanted one is unknown.
pub(crate) fn alone(settings: &Settings) -> anyhow::Result<OnDiskTree> {
    let root = &settings.rendered.value;
    let roots = settings.roots_of(&settings.rendered);
    let survey = survey(&roots, root, &Tree::new())?;
    Ok(on_disk(&roots, root, &survey))
}

/// Finds what changes the tree's delivery from the folders above it, up to the repository's root.
pub(crate) fn overrides_above(settings: &Settings) -> anyhow::Result<Vec<Finding>> {
    let Some(repository) = settings.surroundings.repository() else {
        return Ok(Vec::new());
    };
    let repository = disk::canonical(&repository);
    let tree = disk::canonical(&settings.rendered.value);
    let here = disk::canonical(Path::new("."));
    let folders = tree.ancestors().skip(1).take_while(|folder| folder.starts_with(&repository));
    let mut found = Vec::new();
    for folder in folders {
        let file_type = disk::type_of(&Roots::anywhere(), &folder.join(Overriding::IGNORE))?;
        if let Some(file_type) = file_type.filter(|file_type| !file_type.is_dir()) {
            let path = input_file::name(&seen_from(&here, folder).join(Overriding::IGNORE));
            found.push(gitops::override_file(&path, disk::kind(file_type), Overriding::Ignore));
        }
    }
    Ok(found)
}

/// Finds what changes the delivery from a folder, unless it is found in the tree or above it.
pub(crate) fn overrides_in(
    roots: &Roots,
    folder: &Path,
    settings: &Settings,
) -> anyhow::Result<Vec<Finding>> {
    let tree = disk::canonical(&settings.rendered.value);
    if folder.starts_with(&tree) {
        return Ok(Vec::new());
    }
    let here = disk::canonical(Path::new("."));
    let mut found = Vec::new();
    for (name, file_type) in disk::entries(roots, folder)? {
        let name = name.to_str().unwrap_or_default();
        let is_above = name == Overriding::IGNORE && tree.starts_with(folder);
        if let Some(overriding) =
            Overriding::from_name(name).filter(|_| !file_type.is_dir() && !is_above)
        {
            let path = input_file::name(&seen_from(&here, folder).join(name));
            found.push(gitops::override_file(&path, disk::kind(file_type), overriding));
        }
    }
    found.sort_by(|a, b| a.message.cmp(&b.message));
    Ok(found)
}

/// Returns a folder as seen from another one.
fn seen_from(here: &Path, folder: &Path) -> PathBuf {
    match (folder.strip_prefix(here), here.strip_prefix(folder)) {
        (Ok(below), _) => below.to_owned(),
        (_, Ok(above)) => above.components().map(|_| "..").collect(),
        _ => folder.to_owned(),
    }
}

/// Lets people see what findings about a tree point to.
pub(crate) fn show(on_disk: &OnDiskTree, files: &ShownFiles, settings: &Settings) {
    let differing = on_disk.files.iter().map(|it| it.path.as_str());
    let kustomizations =
        on_disk.same.iter().map(String::as_str).filter(|path| path.ends_with(KUSTOMIZATION));
    let root = &settings.rendered.value;
    let roots = settings.roots_of(&settings.rendered);
    let paths = differing.chain(kustomizations);
    let later = |path: &str| LaterFile::json(root.join(path), &roots).of_tree();
    files.add_rendered(paths.map(|path| (on_disk.source(path), later(path))));
}

fn on_disk(roots: &Roots, root: &Path, survey: &TreeSurvey) -> OnDiskTree {
    let mut on_disk = OnDiskTree {
        root: input_file::name(root),
        same: survey.same.iter().cloned().collect(),
        missing: survey.missing.clone(),
        foreign: survey.foreign.clone(),
        blocked: survey.blocked.clone(),
        ..OnDiskTree::default()
    };
    on_disk.files = read_back(roots, survey, &on_disk, root);
    on_disk
}

/// Reads our files that differ, and parses each text once: most are the same in all targets.
fn read_back(
    roots: &Roots,
    survey: &TreeSurvey,
    on_disk: &OnDiskTree,
    root: &Path,
) -> Vec<ChangedFile> {
    let changed = survey.changed.iter().map(|path| (path, false));
    let stale = survey.stale.iter().map(|path| (path, true));
    let mut by_text: BTreeMap<(bool, FileText), Vec<(&String, bool)>> = BTreeMap::new();
    for (path, is_stale) in changed.chain(stale) {
        let text = tree::read(roots, &root.join(path));
        let key = (Path::new(path).ends_with(KUSTOMIZATION), text);
        by_text.entry(key).or_default().push((path, is_stale));
    }
    let read = by_text.into_par_iter().flat_map_iter(|(key, files)| {
        let content = content(key.0, key.1);
        let file = move |(path, is_stale): (&String, bool)| ChangedFile {
            path: path.clone(),
            source: on_disk.source(path),
            is_stale,
            content: content.clone(),
        };
        files.into_iter().map(file)
    });
    let mut files: Vec<ChangedFile> = read.collect();
    files.sort_by(|a, b| a.path.cmp(&b.path));
    files
}

fn content(is_kustomization: bool, text: FileText) -> ChangedContent {
    let read = text.and_then(|text| {
        if is_kustomization {
            Kustomization::read(&text).map(ChangedContent::Kustomization)
        } else {
            Ok(ChangedContent::Peers(Arc::new(manifest::reading(&text))))
        }
    });
    read.unwrap_or_else(ChangedContent::Unread)
}
