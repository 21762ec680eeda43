//! Controls that are not read, because their files have other names than those that are looked for.

use std::collections::BTreeSet;
use std::ffi::OsStr;
use std::path::{Component, Path, PathBuf};

use clustermesh::document::Source;
use clustermesh::place::Place;
use clustermesh::rules::Finding;
use clustermesh::rules::mesh::unread::{self, ControlFile};

use crate::disk::{self, EntryType, Roots};
use crate::input_file::{self, MESH_LIMIT};
use crate::settings::Settings;

/// The files beside the config, and in folders whose names are like those of controls.
struct ControlSearch<'s> {
    settings: &'s Settings,
    roots: Roots,
    /// The names of clusters in meshes.
    named: &'s BTreeSet<String>,
}

/// Finds controls that are not read; meshes name the clusters `named`.
pub(super) fn find(settings: &Settings, named: &BTreeSet<String>) -> anyhow::Result<Vec<Finding>> {
    let search = ControlSearch { settings, roots: settings.home_roots(), named };
    let is_here = settings.home.as_os_str().is_empty();
    let home = if is_here { Path::new(".") } else { &settings.home };
    let mut findings = Vec::new();
    for (name, kind) in disk::entries(&search.roots, home)? {
        let path = settings.home.join(&name);
        let alike = alike(&name.to_string_lossy());
        if kind == EntryType::Folder {
            let Some(control) = alike.filter(|_| !search.is_read(&path)) else {
                continue;
            };
            let files = disk::entries(&search.roots, &path)?;
            let before = findings.len();
            for (name, _) in &files {
                findings.extend(search.file(&path.join(name), Some(control)));
            }
            if before == findings.len() && !files.is_empty() {
                findings.push(unread::named_alike(place(&path), &search.own(control)));
            }
        } else {
            let stem = path.file_stem().map(OsStr::to_string_lossy);
            let alike = stem.and_then(|it| self::alike(&it));
            findings.extend(search.file(&path, None).or_else(|| {
                let control = alike.filter(|_| is_data(&path) && !search.is_read(&path))?;
                Some(unread::named_alike(place(&path), &search.own(control)))
            }));
        }
    }
    Ok(findings)
}

impl ControlSearch<'_> {
    /// Returns whether expectations or policies are read from here.
    fn is_read(&self, path: &Path) -> bool {
        let settings = self.settings;
        let read = [&settings.expectations.value, &settings.policies.value];
        // A config may write `./` before a path.
        let plain = |path: &Path| -> PathBuf {
            path.components().filter(|it| *it != Component::CurDir).collect()
        };
        read.into_iter().flatten().any(|it| plain(it) == plain(path))
    }

    /// Returns where a control is read from, or would be.
    fn own(&self, control: ControlFile) -> String {
        let path = match control {
            ControlFile::Expectations => &self.settings.expectations.value,
            ControlFile::Policy => &self.settings.policies.value,
        };
        let default = || match control {
            ControlFile::Expectations => self.settings.home.join("expectations.yaml"),
            ControlFile::Policy => self.settings.home.join("policies"),
        };
        input_file::name(&path.clone().unwrap_or_else(default))
    }

    /// Reports a file with a control that is not read, in a folder whose name is like that of `folder`.
    fn file(&self, path: &Path, folder: Option<ControlFile>) -> Option<Finding> {
        if !is_data(path) || self.is_read(path) {
            return None;
        }
        let text = disk::read_text(&self.roots, path, MESH_LIMIT).ok()?;
        // Most files have none, and some are large.
        let has = |word: &str| text.contains(word);
        if !has("kilo-clustermesh.io/v1") || !(has("Expectations") || has("ClusterPolicy")) {
            return None;
        }
        let control = ControlFile::of(&Source::parse(input_file::name(path), text).ok()?)?;
        let stem = path.file_stem()?.to_string_lossy();
        let is_alike = folder == Some(control) || alike(&stem) == Some(control);
        let own = self.own(control);
        let (own, is_there) = match control {
            ControlFile::Expectations => (own, self.settings.expectations.value.is_some()),
            ControlFile::Policy => {
                let cluster = stem.to_lowercase();
                let cluster = self.named.get(&cluster).map_or("CLUSTER", String::as_str);
                let own = PathBuf::from(own).join(format!("{cluster}.yaml"));
                let is_absent = matches!(disk::is_there(&self.roots, &own), Ok(false));
                (input_file::name(&own), !is_absent)
            }
        };
        Some(unread::unread(control, place(path), &own, is_alike && !is_there))
    }
}

/// Returns the control whose name is the same but for case and plural.
fn alike(name: &str) -> Option<ControlFile> {
    let name = name.to_lowercase();
    let singular = match name.strip_suffix("ies") {
        Some(stem) => format!("{stem}y"),
        None => name.strip_suffix('s').unwrap_or(&name).to_owned(),
    };
    [ControlFile::Expectations, ControlFile::Policy].into_iter().find(|it| it.stem() == singular)
}

/// Returns whether the ending of a name is that of YAML or JSON.
fn is_data(path: &Path) -> bool {
    let ending = path.extension().unwrap_or_default().to_ascii_lowercase();
    ["yaml", "yml", "json"].iter().any(|it| ending == *it)
}

fn place(path: &Path) -> Place {
    Place::document(&input_file::name(path).into(), 0)
}
