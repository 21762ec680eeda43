//! The files that need the approval of their owners: those with controls and meshes, and the snapshots.

use std::path::{Component, Path, PathBuf};

use super::starter_files::{CONFIG, MESH};
use crate::settings::{SettingOrigin, Settings};
use crate::{disk, input_file};

/// Returns their patterns in CODEOWNERS. Names that nothing sets are the default ones, whether a file exists or not.
pub(super) fn patterns(settings: &Settings) -> Vec<String> {
    let roots = &settings.config.roots;
    let path = |path: &Path| (path.to_owned(), disk::is_folder(roots, path).unwrap_or_default());
    let beside = |value: &Option<PathBuf>, name: &str, is_folder| match value {
        Some(value) => path(value),
        None => (settings.home.join(name), is_folder),
    };
    let mut paths = if matches!(settings.meshes.origin, SettingOrigin::Default) {
        vec![(PathBuf::from(MESH), false), (PathBuf::from("meshes"), true)]
    } else {
        settings.meshes.value.iter().map(|it| path(it)).collect()
    };
    paths.extend([
        beside(&settings.config.path.value, CONFIG, false),
        beside(&settings.expectations.value, "expectations.yaml", false),
        beside(&settings.policies.value, "policies", true),
        (settings.home.join("guards"), true),
        (settings.snapshots.value.clone(), true),
    ]);
    paths.iter().filter_map(|(path, is_folder)| pattern(path, *is_folder)).collect()
}

/// Returns the pattern of a path in the repository.
fn pattern(path: &Path, is_folder: bool) -> Option<String> {
    let plain = input_file::plain(path);
    let is_inside = plain.components().all(|it| matches!(it, Component::Normal(_)));
    let end = if is_folder { "/" } else { "" };
    is_inside.then(|| format!("/{}{end}", input_file::name(&plain).replace(' ', "\\ ")))
}
