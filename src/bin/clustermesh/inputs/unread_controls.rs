//! Controls that are not read, because their files have other names than those that are looked for.

use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};

use clustermesh::diagnostic;
use clustermesh::document::Source;
use clustermesh::mesh::{self, ControlKind, Mesh, MeshReading};
use clustermesh::place::Place;
use clustermesh::rules::Finding;
use clustermesh::rules::mesh::unread;

pub(super) use self::file_name::alike;
use self::file_name::{alike_stem, has_data_ending, is_data, stems};
use super::Inputs;
use crate::disk::{self, EntryType, Roots};
use crate::input_file::{self, MESH_LIMIT};
use crate::settings::Settings;

mod file_name;
mod foreign_folder;

/// The most bytes of such files that are parsed. A file beyond them has a control if it has the words of one.
const PARSED: usize = 1 << 20;

/// The most folders below each other that are looked into if their names are like those of controls.
const DEPTH: usize = 8;

/// The most folders below each other that are looked into elsewhere in the repository.
const SEARCH_DEPTH: usize = 32;

/// The most entries of folders that are looked at elsewhere in the repository.
const ENTRIES: usize = 100_000;

/// The most bytes that are read elsewhere in the repository.
const BYTES: usize = 128 << 20;

/// The most bytes that are read of a file whose name is not like that of a control.
const OTHER: u64 = 64 << 10;

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
    /// The files that were looked at.
    looked: BTreeSet<PathBuf>,
    /// The bytes that were read.
    read: usize,
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

/// A folder of the repository that is looked into later.
///
/// Folders that people seldom look into come last, as some of them are large.
#[derive(Eq, Ord, PartialEq, PartialOrd)]
struct QueuedFolder {
    is_seldom_seen: bool,
    depth: usize,
    path: PathBuf,
}

/// Finds controls that are not read: beside the meshes that were read, and in other files.
pub(super) fn find(settings: &Settings, reading: &MeshReading) -> anyhow::Result<Vec<Finding>> {
    let mut search = ControlSearch::new(settings, &reading.named)?;
    for (control, place) in &reading.controls {
        search.control(*control, place.clone(), (None, true));
    }
    search.near()?;
    Ok(search.findings())
}

/// Finds the controls that are not read in all other files of the repository.
pub(crate) fn find_elsewhere(inputs: &Inputs) -> anyhow::Result<Vec<Finding>> {
    let settings = &inputs.settings;
    let Some((relative, root)) = settings.surroundings.path_to_repository() else {
        return Ok(Vec::new());
    };
    let home = disk::canonical(&folder(&settings.home));
    if settings.config.roots.revision().is_some() || !home.starts_with(&root) {
        return Ok(Vec::new());
    }
    let entries = inputs.meshes.iter().flat_map(Mesh::all_entries);
    let named = entries.map(|it| it.name.to_string()).collect();
    let mut search = ControlSearch::new(settings, &named)?;
    search.near()?;
    search.found.clear();
    search.below(&settings.home, true);
    if home != root {
        search.below(&relative, false);
    }
    Ok(search.findings())
}

impl<'s> ControlSearch<'s> {
    fn new(settings: &'s Settings, named: &'s BTreeSet<String>) -> anyhow::Result<Self> {
        let meshes = settings.mesh_files()?.into_iter().map(|it| input_file::plain(&it.path));
        Ok(Self {
            settings,
            roots: settings.home_roots(),
            named,
            meshes: meshes.collect(),
            seen: BTreeSet::new(),
            looked: BTreeSet::new(),
            read: 0,
            parsed: 0,
            found: BTreeMap::new(),
        })
    }

    /// Looks beside the config and the meshes, and into folders whose names are like those of controls.
    fn near(&mut self) -> anyhow::Result<()> {
        let settings = self.settings;
        for (name, kind) in disk::entries(&self.roots, &folder(&settings.home))? {
            self.entry(&settings.home.join(&name), kind, None, 0);
        }
        let guards = settings.home.join("guards");
        let others = settings.meshes.value.iter().chain([&settings.snapshots.value, &guards]);
        let others = others.map(|it| (it, None));
        let policies = settings.policies.value.iter().map(|it| (it, Some(ControlKind::Policy)));
        for (folder, within) in others.chain(policies) {
            // A folder that cannot be listed fails when its files are read.
            for (name, kind) in disk::entries(&self.roots, folder).unwrap_or_default() {
                self.entry(&folder.join(&name), kind, within, 0);
            }
        }
        Ok(())
    }

    /// Looks at all files below a folder, without links: what is below a link is looked at where it is. Controls that are
    /// not `own` may be those of another mesh, so only their names show that they are meant.
    fn below(&mut self, start: &Path, is_own: bool) {
        let first = QueuedFolder { is_seldom_seen: false, depth: 0, path: start.to_owned() };
        let mut queued = BTreeSet::from([first]);
        let mut left = ENTRIES;
        while let Some(QueuedFolder { is_seldom_seen, depth, path }) = queued.pop_first() {
            // The folder of the config is looked into before those around it.
            if !self.seen.insert(disk::canonical(&folder(&path))) {
                continue;
            }
            let entries = match disk::entries(&self.roots, &folder(&path)) {
                Ok(_) if SEARCH_DEPTH < depth => {
                    let reason = format!("it is more than {SEARCH_DEPTH} folders below the first");
                    self.unsearched(&path, &reason);
                    continue;
                }
                Ok(entries) => entries,
                Err(error) => {
                    self.unsearched(&path, &error.root_cause().to_string());
                    continue;
                }
            };
            if (0 < depth || !is_own) && self.is_foreign(&path, &entries, 0 < depth) {
                continue;
            }
            if left < entries.len() || BYTES < self.read {
                let reason = "the repository is too large to search the rest of it";
                self.unsearched(&path, reason);
                return;
            }
            left -= entries.len();
            for (name, kind) in entries {
                let path = path.join(&name);
                match kind {
                    EntryType::Folder if name != ".git" && !self.is_left_out(&path) => {
                        let is_hidden = name.as_encoded_bytes().starts_with(b".");
                        let is_seldom_seen = is_seldom_seen || is_hidden || name == "node_modules";
                        queued.insert(QueuedFolder { is_seldom_seen, depth: depth + 1, path });
                    }
                    EntryType::File
                        if (has_data_ending(&path) || self.is_named_alike(&path))
                            && !self.is_read(&path) =>
                    {
                        self.file_elsewhere(&path, is_own);
                    }
                    _ => {}
                }
            }
        }
    }

    /// Looks at a file elsewhere in the repository. Other tools have files with similar names there.
    fn file_elsewhere(&mut self, path: &Path, is_own: bool) {
        let plain = input_file::plain(path);
        if self.meshes.contains(&plain) || self.looked.contains(&plain) || self.is_of_cluster(path)
        {
            return;
        }
        if let FileContent::Controls(controls) = self.content(path, false) {
            for (control, place) in controls {
                self.control(control, place, (None, is_own));
            }
        }
    }

    /// Returns whether a folder is looked at as a whole by others.
    fn is_left_out(&self, folder: &Path) -> bool {
        self.is_read(folder) || is_same(folder, &self.settings.rendered.value)
    }

    /// Reports a folder that was not looked into.
    fn unsearched(&mut self, folder: &Path, reason: &str) {
        self.add(unread::unsearched(place(folder), reason));
    }

    fn findings(self) -> Vec<Finding> {
        let found = self.found.into_values();
        found.flat_map(|alike| diagnostic::few(alike, "file", |it| it)).collect()
    }
}

impl ControlSearch<'_> {
    /// Looks at an entry of a folder; `within` is the control that the folder's name is like.
    fn entry(&mut self, path: &Path, kind: EntryType, within: Option<ControlKind>, depth: usize) {
        let is_read = self.is_read(path);
        if !self.is_folder(path, kind) {
            // Opening a pipe may wait for its writer.
            if !is_read && (kind != EntryType::Special || is_data(path)) {
                self.file(path, within.filter(|_| 0 < depth));
            }
            return;
        }
        let alike = stems(path).iter().find_map(|it| alike(it));
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
        let is_data = is_data(path);
        let alike = alike_stem(path).filter(|_| is_data);
        let plain = input_file::plain(path);
        if self.meshes.contains(&plain) || self.is_of_cluster(path) || !self.looked.insert(plain) {
            return;
        }
        // A policy of another cluster is reported as such.
        let is_policy =
            is_data && alike.is_none() && path.parent().is_some_and(|it| self.is_read(it));
        match (self.content(path, alike.is_some()), alike.or(within)) {
            (FileContent::Controls(controls), _) => {
                for (control, place) in controls {
                    if !is_policy || control != ControlKind::Policy {
                        self.control(control, place, (within, true));
                    }
                }
            }
            (FileContent::Unknown(reason), Some(control)) if is_data => {
                self.unknown(path, control, &reason);
            }
            (FileContent::Other, Some(control)) if alike.is_some() => {
                self.add(unread::named_alike(place(path), &self.own(control)));
            }
            (FileContent::Unknown(_) | FileContent::Other, _) => {}
        }
    }

    /// Returns whether a file is a snapshot, or the guard or policy of a cluster, and looked at as such.
    fn is_of_cluster(&self, path: &Path) -> bool {
        let settings = self.settings;
        let is_in = |folder: &Path| path.parent().is_some_and(|it| is_same(it, folder));
        let is_named = self
            .named
            .contains(&*path.file_stem().unwrap_or_default().to_string_lossy().to_lowercase());
        let is_json = path.extension().is_some_and(|it| it == "json");
        is_json && is_in(&settings.snapshots.value) && (is_named || alike_stem(path).is_none())
            || is_named
                && is_data(path)
                && (is_in(&settings.home.join("guards"))
                    || settings.policies.value.as_deref().is_some_and(is_in))
    }

    /// Returns whether the name of a file is like that of a control, or that of a cluster, with any ending.
    fn is_named_alike(&self, path: &Path) -> bool {
        stems(path).iter().any(|it| self.named.contains(it) || alike(it).is_some())
    }

    /// Returns the controls in a file. Only one whose own name is like that of a control must be valid YAML: other tools
    /// have templates in such folders.
    fn content(&mut self, path: &Path, is_alike: bool) -> FileContent {
        let is_named = is_data(path) || self.is_named_alike(path);
        let limit = if is_named { MESH_LIMIT } else { OTHER };
        let text = match disk::read_text(&self.roots, path, limit) {
            Ok(text) => text,
            Err(error) => return FileContent::Unknown(format!("{error:#}")),
        };
        self.read = self.read.saturating_add(text.len());
        let is_ours = text.contains(ControlKind::API_VERSION);
        let has = |kind: &ControlKind| {
            text.split(|it: char| !it.is_alphanumeric()).any(|word| word == kind.name())
        };
        let words = ControlKind::ALL.into_iter().find(|it| is_ours && has(it));
        // Most files have none, and some are large.
        if words.is_none() && !is_alike {
            return FileContent::Other;
        }
        // Prose and programs have them, too.
        let by_words = words.filter(|_| has_data_ending(path));
        let by_words = by_words.map(|control| FileContent::Controls(vec![(control, place(path))]));
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

    /// Reports a control at a place. One that is not `own` may be read by another mesh.
    fn control(
        &mut self,
        control: ControlKind,
        place: Place,
        (within, is_own): (Option<ControlKind>, bool),
    ) {
        let path = PathBuf::from(&*place.source);
        let own = self.own(control);
        let stems = stems(&path);
        let is_alike = stems.iter().any(|it| alike(it) == Some(control));
        let (own, is_there, is_alike) = match control {
            ControlKind::Config => {
                // Another config may be for other runs.
                let (is_there, plain) =
                    (self.settings.config.source.is_some(), input_file::plain(&path));
                if is_there && !self.meshes.contains(&plain) || plain == Path::new(&own) {
                    return;
                }
                (own, is_there, is_alike)
            }
            ControlKind::Expectations => {
                (own, self.settings.expectations.value.is_some(), is_alike)
            }
            ControlKind::Policy => {
                let cluster = stems.iter().find_map(|it| self.named.get(it));
                let is_alike = cluster.is_some() || is_alike;
                let cluster = cluster.map_or("CLUSTER", String::as_str);
                let own = PathBuf::from(own).join(format!("{cluster}.yaml"));
                let is_absent = matches!(disk::is_there(&self.roots, &own), Ok(false));
                (input_file::name(&own), !is_absent, is_alike)
            }
        };
        // Around the folder of the config are also examples and the files of other meshes.
        if !is_own && !is_alike {
            return;
        }
        let is_missing = is_own && !is_there && (is_alike || within == Some(control));
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
        read.into_iter().flatten().any(|it| is_same(it, path))
    }

    /// Returns where a control is read from, or would be.
    fn own(&self, control: ControlKind) -> String {
        let path = match control {
            ControlKind::Config => &self.settings.config.path.value,
            ControlKind::Expectations => &self.settings.expectations.value,
            ControlKind::Policy => &self.settings.policies.value,
        };
        let default = || match control {
            ControlKind::Config => self.settings.home.join("clustermesh.yaml"),
            ControlKind::Expectations => self.settings.home.join("expectations.yaml"),
            ControlKind::Policy => self.settings.home.join("policies"),
        };
        input_file::name(&path.clone().unwrap_or_else(default))
    }
}

/// Returns the path of a folder, which has a name even if it is the working folder.
fn folder(path: &Path) -> PathBuf {
    if path.as_os_str().is_empty() { PathBuf::from(".") } else { path.to_owned() }
}

fn is_same(path: &Path, other: &Path) -> bool {
    input_file::plain(path) == input_file::plain(other)
}

fn place(path: &Path) -> Place {
    Place::document(&input_file::name(path).into(), 0)
}
