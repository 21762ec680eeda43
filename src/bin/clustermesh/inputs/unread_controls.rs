//! Controls that are not read, because their files have other names than those that are looked for.

use std::collections::{BTreeMap, BTreeSet};
use std::ffi::OsStr;
use std::path::{Path, PathBuf};

use clustermesh::diagnostic;
use clustermesh::document::Source;
use clustermesh::mesh::{self, ControlKind, MeshReading};
use clustermesh::place::Place;
use clustermesh::rules::Finding;
use clustermesh::rules::mesh::unread;

use crate::disk::{self, EntryType, Roots};
use crate::input_file::{self, MESH_LIMIT};
use crate::settings::Settings;

/// The most bytes of such files that are parsed. A file beyond them has a control if it has the words of one.
const PARSED: usize = 1 << 20;

/// The most folders below each other that are looked into.
const DEPTH: usize = 8;

/// The files beside the config and in the folders of meshes, and in folders whose names are like those of controls.
struct ControlSearch<'s> {
    settings: &'s Settings,
    roots: Roots,
    /// The names of clusters in meshes.
    named: &'s BTreeSet<String>,
    /// The files of meshes.
    meshes: BTreeSet<PathBuf>,
    /// The folders that were looked into.
    seen: BTreeSet<PathBuf>,
    /// The bytes that were parsed.
    parsed: usize,
    /// Findings that differ only in their places, by what they are about.
    found: BTreeMap<String, Vec<Finding>>,
}

/// The result of a look at a file.
enum FileContent {
    Controls(Vec<(ControlKind, Place)>),
    /// The reason why it is not known.
    Unknown(String),
    /// No control.
    Other,
}

/// Finds controls that are not read: beside the meshes that were read, and in other files.
pub(super) fn find(settings: &Settings, reading: &MeshReading) -> anyhow::Result<Vec<Finding>> {
    let meshes = settings.mesh_files()?.into_iter().map(|it| input_file::plain(&it.path));
    let mut search = ControlSearch {
        settings,
        roots: settings.home_roots(),
        named: &reading.named,
        meshes: meshes.collect(),
        seen: BTreeSet::new(),
        parsed: 0,
        found: BTreeMap::new(),
    };
    for (control, place) in &reading.controls {
        search.control(*control, place.clone(), None);
    }
    let is_here = settings.home.as_os_str().is_empty();
    let home = if is_here { Path::new(".") } else { &settings.home };
    for (name, kind) in disk::entries(&search.roots, home)? {
        search.entry(&settings.home.join(&name), kind, None, 0);
    }
    for folder in &settings.meshes.value {
        // A folder that cannot be listed fails when its meshes are read.
        for (name, kind) in disk::entries(&search.roots, folder).unwrap_or_default() {
            search.entry(&folder.join(&name), kind, None, 0);
        }
    }
    if let Some(folder) = &settings.policies.value {
        for (name, kind) in disk::entries(&search.roots, folder).unwrap_or_default() {
            let path = folder.join(&name);
            if search.is_folder(&path, kind) {
                search.entry(&path, kind, Some(ControlKind::Policy), 0);
            }
        }
    }
    let found = search.found.into_values();
    Ok(found.flat_map(|alike| diagnostic::few(alike, "file", |it| it)).collect())
}

impl ControlSearch<'_> {
    /// Looks at an entry of a folder; `within` is the control that the folder's name is like.
    fn entry(&mut self, path: &Path, kind: EntryType, within: Option<ControlKind>, depth: usize) {
        let is_read = self.is_read(path);
        if !self.is_folder(path, kind) {
            if !is_read {
                self.file(path, within);
            }
            return;
        }
        let alike = path.file_name().and_then(|it| alike(&it.to_string_lossy()));
        let alike = alike.filter(|_| !is_read && within.is_none());
        let Some(control) = within.or(alike).filter(|_| !is_read && depth < DEPTH) else {
            return;
        };
        // Links can lead back.
        if !self.seen.insert(disk::canonical(path)) {
            return;
        }
        let before = self.count();
        let is_empty = match disk::entries(&self.roots, path) {
            Ok(entries) => {
                for (name, kind) in &entries {
                    self.entry(&path.join(name), *kind, Some(control), depth + 1);
                }
                entries.is_empty()
            }
            Err(error) => {
                self.unknown(path, control, &format!("{error:#}"));
                false
            }
        };
        if alike.is_some() && self.count() == before && !is_empty {
            self.add(unread::named_alike(place(path), &self.own(control)));
        }
    }

    /// Looks at a file, in a folder whose name is like that of `within`.
    fn file(&mut self, path: &Path, within: Option<ControlKind>) {
        let stem = path.file_stem().unwrap_or_default().to_string_lossy();
        let alike = alike(&stem);
        let is_data = is_data(path);
        if self.meshes.contains(&input_file::plain(path)) || !is_data && alike.is_none() {
            return;
        }
        match (self.content(path, alike.is_some()), alike.or(within)) {
            (FileContent::Controls(controls), _) => {
                for (control, place) in controls {
                    self.control(control, place, within);
                }
            }
            (FileContent::Unknown(reason), Some(control)) if is_data => {
                self.unknown(path, control, &reason);
            }
            (FileContent::Other, _) if is_data && within.is_none() => {
                if let Some(control) = alike {
                    self.add(unread::named_alike(place(path), &self.own(control)));
                }
            }
            (FileContent::Unknown(_) | FileContent::Other, _) => {}
        }
    }

    /// Returns the controls in a file. Only one whose own name is like that of a control must be valid YAML: other tools
    /// have templates in such folders.
    fn content(&mut self, path: &Path, is_alike: bool) -> FileContent {
        let text = match disk::read_text(&self.roots, path, MESH_LIMIT) {
            Ok(text) => text,
            Err(error) => return FileContent::Unknown(format!("{error:#}")),
        };
        let has = |kind: &ControlKind| text.contains(kind.name());
        let is_ours = text.contains(ControlKind::API_VERSION);
        let words = ControlKind::ALL.into_iter().find(has).filter(|_| is_ours && is_data(path));
        // Most files have none, and some are large.
        if words.is_none() && !is_alike {
            return FileContent::Other;
        }
        let by_words = words.map(|control| FileContent::Controls(vec![(control, place(path))]));
        self.parsed = self.parsed.saturating_add(text.len());
        if PARSED < self.parsed {
            return by_words.unwrap_or(FileContent::Other);
        }
        match Source::parse(input_file::name(path), text) {
            Ok(source) => match mesh::read(&[source]).controls {
                none if none.is_empty() => FileContent::Other,
                controls => FileContent::Controls(controls),
            },
            Err(_) => {
                by_words.unwrap_or_else(|| FileContent::Unknown("it is not valid YAML".to_owned()))
            }
        }
    }

    /// Reports a control at a place.
    fn control(&mut self, control: ControlKind, place: Place, within: Option<ControlKind>) {
        let path = PathBuf::from(&*place.source);
        let stem = path.file_stem().map(OsStr::to_string_lossy).unwrap_or_default();
        let own = self.own(control);
        let (own, is_there, is_alike) = match control {
            ControlKind::Expectations => {
                (own, self.settings.expectations.value.is_some(), alike(&stem) == Some(control))
            }
            ControlKind::Policy => {
                let cluster = self.named.get(&stem.to_lowercase());
                let is_alike = cluster.is_some() || alike(&stem) == Some(control);
                let cluster = cluster.map_or("CLUSTER", String::as_str);
                let own = PathBuf::from(own).join(format!("{cluster}.yaml"));
                let is_absent = matches!(disk::is_there(&self.roots, &own), Ok(false));
                (input_file::name(&own), !is_absent, is_alike)
            }
        };
        let is_missing = !is_there && (is_alike || within == Some(control));
        self.add(unread::unread(control, place, &own, is_missing));
    }

    /// Reports that a path whose name is like that of a control cannot be read.
    fn unknown(&mut self, path: &Path, control: ControlKind, reason: &str) {
        self.add(unread::unknown(place(path), &self.own(control), reason));
    }

    fn add(&mut self, finding: Finding) {
        let key = format!("{}: {}", finding.severity, finding.message.shown());
        self.found.entry(key).or_default().push(finding);
    }

    fn count(&self) -> usize {
        self.found.values().map(Vec::len).sum()
    }

    fn is_folder(&self, path: &Path, kind: EntryType) -> bool {
        match kind {
            EntryType::Folder => true,
            EntryType::Link => disk::is_folder(&self.roots, path).unwrap_or(false),
            EntryType::File | EntryType::Submodule | EntryType::Special => false,
        }
    }

    /// Returns whether expectations or policies are read from here.
    fn is_read(&self, path: &Path) -> bool {
        let settings = self.settings;
        let read = [&settings.expectations.value, &settings.policies.value];
        read.into_iter().flatten().any(|it| input_file::plain(it) == input_file::plain(path))
    }

    /// Returns where a control is read from, or would be.
    fn own(&self, control: ControlKind) -> String {
        let path = match control {
            ControlKind::Expectations => &self.settings.expectations.value,
            ControlKind::Policy => &self.settings.policies.value,
        };
        let default = || match control {
            ControlKind::Expectations => self.settings.home.join("expectations.yaml"),
            ControlKind::Policy => self.settings.home.join("policies"),
        };
        input_file::name(&path.clone().unwrap_or_else(default))
    }
}

/// Returns the control whose name is the same but for case and plural.
fn alike(name: &str) -> Option<ControlKind> {
    match &*name.to_lowercase() {
        "expectation" | "expectations" => Some(ControlKind::Expectations),
        "policy" | "policies" | "policys" => Some(ControlKind::Policy),
        _ => None,
    }
}

/// Returns whether the ending of a name is that of YAML or JSON.
fn is_data(path: &Path) -> bool {
    let ending = path.extension().unwrap_or_default().to_ascii_lowercase();
    ["yaml", "yml", "json"].iter().any(|it| ending == *it)
}

fn place(path: &Path) -> Place {
    Place::document(&input_file::name(path).into(), 0)
}
