//! Inputs: the meshes, the snapshots and the config, read as far as possible, and what is wrong with
//! them in themselves.

use std::collections::{BTreeMap, BTreeSet};
use std::ffi::OsStr;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use anyhow::{bail, ensure};
use clustermesh::config::ceilings::{Counted, Exceeded};
use clustermesh::diagnostic::{LISTED, Mistakes, Quoted, Severity};
use clustermesh::document::Source;
use clustermesh::fleet::{SnapshotFile, external_snapshots};
use clustermesh::mesh::{self, AssumedValue, Entry, KnownGroups, Mesh, State};
use clustermesh::mirror::ServiceSnapshots;
use clustermesh::name::ClusterName;
use clustermesh::place::Place;
use clustermesh::policy::Policy;
use clustermesh::proof::verify::Asked;
use clustermesh::results::source_texts::SourceTexts;
use clustermesh::rules::mesh::{
    StraySnapshots, beyond_ceiling, dropped_labels, invalid_snapshot, stray as stray_file,
    stray_rule,
};
use clustermesh::rules::{Finding, LevelledFindings};
use clustermesh::snapshot::stray::Stray;
use clustermesh::snapshot::{SIZE_LIMIT, Snapshot, SnapshotError};
use rayon::prelude::*;

use crate::Outcome;
use crate::disk::{self, Roots};
use crate::failure::{CommandFailure, CommandResult};
use crate::files::{LaterFile, ShownFiles};
use crate::input_file::{self, MESH_LIMIT};
use crate::settings::{FileOptions, Settings};

mod cluster_files;
mod known_snapshots;
mod policies;
pub(crate) mod services;
pub(crate) mod unread_controls;

pub(crate) use known_snapshots::KnownSnapshots;

use cluster_files::ClusterFiles;
pub(crate) use cluster_files::KnownClusters;
use known_snapshots::KnownSnapshot;
pub(crate) use policies::ReadPolicies;

/// Everything that a render is made from.
pub(crate) struct Inputs {
    /// The settings, which name the files.
    pub(crate) settings: Settings,
    /// The files, for excerpts.
    pub(crate) files: ShownFiles,
    /// The meshes, and what is left of those that are wrong in themselves.
    pub(crate) meshes: Vec<Mesh>,
    /// The names of all clusters, also of those whose entries have mistakes.
    pub(crate) named: BTreeSet<String>,
    /// The snapshots of their clusters, as far as there are any.
    pub(crate) snapshots: BTreeMap<ClusterName, SnapshotFile>,
    /// The Services that clusters have under the names in meshes.
    pub(crate) services: ServiceSnapshots,
    /// The policies of their clusters.
    pub(crate) policies: Vec<Policy>,
    /// The files of the recorded guards.
    pub(crate) guards: Vec<(ClusterName, PathBuf)>,
    /// The snapshots that no cluster is read from.
    pub(crate) strays: StraySnapshots,
    /// The mistakes in single files.
    pub(crate) findings: Vec<Finding>,
    /// Whether these are all meshes and all snapshots that are there.
    pub(crate) is_whole: bool,
    /// Whether a file is not YAML, or not JSON, at all.
    pub(crate) is_unparsable: bool,
}

/// A snapshot file that was read.
enum ReadSnapshot {
    Missing,
    Read(KnownSnapshot),
    Wrong(Source, SnapshotError),
}

/// Reads the meshes and the snapshots of every cluster that they name.
pub(crate) fn gather(options: &FileOptions) -> CommandResult<Inputs> {
    gather_all(options, None, &BTreeSet::new(), &[])
}

/// Reads the same, with other values in the entries of clusters.
pub(crate) fn gather_assuming(
    options: &FileOptions,
    assumed: &[AssumedValue],
) -> CommandResult<Inputs> {
    gather_all(options, None, &BTreeSet::new(), assumed)
}

/// Reads the same. Snapshots that are known already are shared, and all are kept for another version. Policies and guards
/// of the clusters that the other version has are read, too.
pub(crate) fn gather_and_keep(
    options: &FileOptions,
    known: &mut KnownSnapshots,
    joining: &BTreeSet<String>,
) -> CommandResult<Inputs> {
    gather_all(options, Some(known), joining, &[])
}

fn gather_all(
    options: &FileOptions,
    known: Option<&mut KnownSnapshots>,
    joining: &BTreeSet<String>,
    assumed: &[AssumedValue],
) -> CommandResult<Inputs> {
    let settings = options.settle()?;
    let MeshSources { mut sources, broken, mut findings } = MeshSources::read(&settings, assumed)?;
    let ceilings = settings.ceilings;
    let reading = mesh::read_at_most(&sources, ceilings.most(Counted::Clusters));
    let named = reading.named.clone();
    let with_files = &named | joining;
    let clusters = KnownClusters::new(&with_files, broken.is_empty());
    let mut policies = ReadPolicies::read(&settings, clusters)?;
    let is_unparsable = !broken.is_empty() || policies.is_unparsable;
    let are_meshes_whole = broken.is_empty() && reading.is_usable();
    let unread = unread_controls::find(&settings, &reading)?;
    let is_whole = are_meshes_whole
        && !policies.is_unparsable
        && !policies.is_broken
        && !unread.iter().any(|it| it.severity == Severity::Error);
    findings.extend(reading.diagnostics);
    sources.extend(broken);
    sources.extend(settings.config.source.clone());
    let meshes = reading.meshes.into_iter().chain(reading.salvaged);
    let mut meshes: Vec<Mesh> = meshes.collect();
    policies.apply(&mut meshes, are_meshes_whole);
    findings.extend(policies.findings);
    sources.extend(policies.sources);
    let mut inputs = Inputs {
        files: ShownFiles::new(sources),
        settings,
        meshes,
        named: reading.named,
        snapshots: BTreeMap::new(),
        services: ServiceSnapshots::new(),
        policies: policies.policies,
        guards: Vec::new(),
        strays: StraySnapshots::default(),
        findings,
        is_whole,
        is_unparsable,
    };
    inputs.add_guards(clusters)?;
    inputs.findings.extend(unread);
    if inputs.refuses(ceilings.exceeded_by(&inputs.meshes)) {
        return Ok(inputs);
    }
    inputs.read_snapshots(known)?;
    let nodes = inputs.snapshots.values().map(|file| file.snapshot.nodes.len()).sum();
    if inputs.refuses(ceilings.exceeded(Counted::Nodes, nodes)) {
        return Ok(inputs);
    }
    inputs.find_dropped_labels();
    let (_, repeated) = inputs.groups();
    inputs.findings.extend(repeated);
    if !is_unparsable && !named.is_empty() {
        inputs.find_strays(&named)?;
    }
    inputs.findings = inputs.files.presentable(&inputs.findings).into_owned();
    Ok(inputs)
}

/// The files of the meshes.
#[derive(Default)]
struct MeshSources {
    sources: Vec<Source>,
    /// Those that are not YAML.
    broken: Vec<Source>,
    /// The reasons why they are not.
    findings: Vec<Finding>,
}

impl MeshSources {
    /// Reads them, and writes other values into the entries of clusters.
    fn read(settings: &Settings, assumed: &[AssumedValue]) -> CommandResult<Self> {
        let mut read = Self::default();
        for file in settings.mesh_files()? {
            match input_file::source(&file, MESH_LIMIT) {
                Ok(source) => read.sources.push(source),
                Err(CommandFailure::Syntax(it)) => {
                    read.findings.extend(it.problems);
                    read.broken.push(it.source);
                }
                Err(failure) => return Err(failure),
            }
        }
        if read.broken.is_empty() {
            assume(assumed, &mut read.sources)?;
        }
        Ok(read)
    }
}

/// Writes values into the entries of clusters, each of which a mesh must have. None of them may be a mistake in a mesh
/// without mistakes.
fn assume(assumed: &[AssumedValue], sources: &mut [Source]) -> anyhow::Result<()> {
    let is_right = !assumed.is_empty() && mesh::read(sources).is_usable();
    for value in assumed {
        let text = value.to_string();
        ensure!(value.apply(sources), "--with {}: no mesh has this cluster", Quoted(&text));
        let diagnostics = if is_right { mesh::read(sources).diagnostics } else { Vec::new() };
        if let Some(wrong) = diagnostics.iter().find(|it| it.severity == Severity::Error) {
            let help = wrong.help.as_ref().map_or_else(String::new, |it| format!("; {it}"));
            bail!("--with {}: {}{help}", Quoted(&text), wrong.message);
        }
    }
    Ok(())
}

impl Inputs {
    /// Adds the guards, which are read only for the plan.
    fn add_guards(&mut self, clusters: KnownClusters) -> anyhow::Result<()> {
        let guards = ClusterFiles::guards(&self.settings, clusters)?;
        let misnamed = guards.misnamed.into_iter();
        self.findings.extend(misnamed.map(|it| Finding { severity: Severity::Warning, ..it }));
        self.findings.extend(guards.unnamed);
        let roots = self.settings.home_roots();
        for (_, path) in &guards.named {
            let later = LaterFile::manifests(path.clone(), &roots);
            self.files.add_later(input_file::name(path).into(), later);
        }
        self.guards = guards.named;
        Ok(())
    }

    /// Returns the outcome if there is no result.
    pub(crate) fn failure(&self) -> Outcome {
        if self.is_unparsable { Outcome::Unreadable } else { Outcome::Findings }
    }

    /// Returns the meshes that need the nodes of a cluster, with its entries.
    pub(crate) fn memberships(&self, cluster: &ClusterName) -> Vec<(&Mesh, &Entry)> {
        let meshes = self.meshes.iter();
        let entries = meshes.flat_map(|mesh| mesh.entries.iter().map(move |entry| (mesh, entry)));
        let own = entries.filter(|(_, it)| it.name == *cluster && it.state == State::Joined);
        own.collect()
    }

    /// Returns what is asked of a proof, without undeclared paths.
    pub(crate) fn asked(&self) -> Asked<'_> {
        Asked { meshes: &self.meshes, lists_undeclared: false, allowed: None }
    }

    /// Returns the groups of meshes and config, and reports names that occur more than once.
    pub(crate) fn groups(&self) -> (KnownGroups<'_>, Vec<Finding>) {
        let of_meshes = self.meshes.iter().flat_map(|it| &it.groups);
        KnownGroups::new(of_meshes.chain(&self.settings.config.content.groups))
    }

    /// Returns the mistakes that leave the entry of a cluster out, if a mesh names it.
    pub(crate) fn broken_entry(&self, cluster: &str) -> Option<CommandFailure> {
        let errors = self.findings.iter().filter(|it| it.severity == Severity::Error);
        let refuse = || self.refusal(LevelledFindings::fixed(errors.cloned().collect()));
        // A name with capital letters is a mistake itself.
        let is_meant = |it: &&str| it.eq_ignore_ascii_case(cluster);
        self.broken_entries().iter().any(is_meant).then(refuse)
    }

    /// Returns the clusters whose entries have mistakes.
    pub(crate) fn broken_entries(&self) -> BTreeSet<&str> {
        let entries = self.meshes.iter().flat_map(|it| &it.entries);
        let known: BTreeSet<&str> = entries.map(|it| it.name.as_str()).collect();
        self.named.iter().map(String::as_str).filter(|it| !known.contains(it)).collect()
    }

    /// Returns the failure of a command that these findings prevent.
    pub(crate) fn refusal(&self, findings: LevelledFindings) -> CommandFailure {
        CommandFailure::mistakes(self.files.of_people(), findings, self.failure())
    }

    /// Returns whether there is more of something than is accepted. Nothing is kept then that could
    /// be computed with.
    fn refuses(&mut self, exceeded: impl IntoIterator<Item = Exceeded>) -> bool {
        let before = self.findings.len();
        self.findings.extend(exceeded.into_iter().map(|it| beyond_ceiling(&it)));
        let refuses = before < self.findings.len();
        if refuses {
            self.is_whole = false;
            self.meshes.clear();
            self.snapshots.clear();
        }
        refuses
    }

    /// Reads the snapshots of every cluster that a mesh names, and of their Services; a missing one is left to the fleet.
    fn read_snapshots(&mut self, mut known: Option<&mut KnownSnapshots>) -> anyhow::Result<()> {
        let entries = self.meshes.iter().flat_map(|mesh| &mesh.entries);
        let clusters: BTreeSet<ClusterName> = entries.map(|entry| entry.name.clone()).collect();
        let clusters: Vec<ClusterName> = clusters.into_iter().collect();
        let folder = &self.settings.snapshots.value;
        let roots = self.settings.roots_of(&self.settings.snapshots);
        let read: Vec<_> = clusters
            .par_iter()
            .map(|cluster| read_snapshot(&roots, folder, cluster, known.as_deref()))
            .collect();
        for (cluster, read) in clusters.into_iter().zip(read) {
            match read? {
                ReadSnapshot::Missing => {}
                ReadSnapshot::Read(read) => {
                    let path = folder.join(format!("{cluster}.json"));
                    let source: Arc<str> = Arc::from(input_file::name(&path));
                    let later = LaterFile::json(path, &roots);
                    self.files.add_later(Arc::clone(&source), later);
                    let snapshot = Arc::clone(&read.snapshot);
                    let file = SnapshotFile { snapshot, source };
                    self.snapshots.insert(cluster.clone(), file);
                    if let Some(known) = &mut known {
                        known.add(cluster, read);
                    }
                }
                ReadSnapshot::Wrong(source, error) => {
                    self.is_whole = false;
                    self.is_unparsable |= error.is_syntax();
                    let place = place(&source, &error);
                    let path = folder.join(format!("{cluster}.json"));
                    let is_restorable = self.settings.is_restorable(&path, &source.text);
                    self.findings.push(invalid_snapshot(&cluster, place, &error, is_restorable));
                    self.files.add(source);
                }
            }
        }
        let externals = external_snapshots(&self.meshes);
        self.snapshots.extend(externals);
        self.read_services()
    }

    /// Looks for labels that meshes use and snapshots leave out.
    fn find_dropped_labels(&mut self) {
        let entries = self.meshes.iter().flat_map(|mesh| &mesh.entries);
        let dropped: Vec<Finding> = entries
            .flat_map(|entry| {
                let file = self.snapshots.get(&entry.name);
                file.map_or_else(Vec::new, |file| dropped_labels(entry, &file.snapshot))
            })
            .collect();
        self.is_whole &= dropped.is_empty();
        self.findings.extend(dropped);
    }

    /// Looks for files that no cluster is read from, where meshes name the clusters `named`.
    fn find_strays(&mut self, named: &BTreeSet<String>) -> anyhow::Result<()> {
        let folder = &self.settings.snapshots.value;
        let roots = self.settings.roots_of(&self.settings.snapshots);
        if !disk::is_folder(&roots, folder)? {
            return Ok(());
        }
        let known: BTreeSet<&str> = self.snapshots.keys().map(ClusterName::as_str).collect();
        let lacking = named.iter().map(String::as_str).filter(|it| !known.contains(it)).collect();
        // Those of a mesh with mistakes are unknown.
        let mirroring = services::concerned(&self.meshes);
        let mirroring: BTreeMap<&str, &ClusterName> =
            mirroring.iter().map(|it| (it.as_str(), it)).collect();
        let mut findings = Mistakes::default();
        for path in disk::files_in(&roots, folder, &["json"])? {
            let stem = path.file_stem().and_then(OsStr::to_str);
            let of_services = stem.and_then(services::cluster_of);
            if stem.is_some_and(|stem| named.contains(stem))
                || of_services.is_some_and(|it| !self.is_whole || mirroring.contains_key(it))
            {
                continue;
            }
            let file: Arc<str> = Arc::from(input_file::name(&path));
            let stray = match disk::read_text(&roots, &path, SIZE_LIMIT) {
                Ok(text) => Stray::read(&text, named),
                Err(_) => Stray::Foreign,
            };
            let own = match &stray {
                Stray::Duplicate(cluster) => {
                    input_file::name(&folder.join(format!("{cluster}.json")))
                }
                Stray::Services(cluster) => {
                    let own = mirroring.get(cluster.as_str());
                    own.map_or_else(String::new, |it| input_file::name(&services::file(folder, it)))
                }
                Stray::Unnamed(_) | Stray::NodeList | Stray::Foreign => String::new(),
            };
            let is_only = !own.is_empty() && !disk::is_there(&roots, Path::new(&own))?;
            let own_file = Arc::clone(&file);
            findings.push_with(stray_rule(&stray, &own), || {
                self.files.add_later(Arc::clone(&file), LaterFile::json(path, &roots));
                stray_file(&stray, &file, &own, named, &lacking, is_only)
            });
            // More would not be found among the names of a mesh in time.
            let strays = &mut self.strays;
            match stray {
                Stray::Unnamed(cluster) if strays.unnamed.len() < LISTED => {
                    strays.unnamed.push(cluster);
                }
                Stray::Duplicate(cluster) => {
                    strays.misnamed.insert(cluster, own_file);
                }
                _ => {}
            }
        }
        self.findings.extend(findings.into_findings_of_folder());
        Ok(())
    }
}

/// Reads the snapshot of one cluster, if there is a file.
fn read_snapshot(
    roots: &Roots,
    folder: &Path,
    cluster: &ClusterName,
    known: Option<&KnownSnapshots>,
) -> anyhow::Result<ReadSnapshot> {
    let path = folder.join(format!("{cluster}.json"));
    if !disk::is_there(roots, &path)? {
        return Ok(ReadSnapshot::Missing);
    }
    let text = disk::read_text(roots, &path, SIZE_LIMIT)?;
    let known = known.and_then(|it| it.of_text(cluster, &text));
    let snapshot = match known {
        Some(snapshot) => Ok(snapshot),
        None => Snapshot::read(cluster, &text).map(Arc::new),
    };
    Ok(match snapshot {
        Ok(snapshot) => ReadSnapshot::Read(KnownSnapshot { text, snapshot }),
        Err(error) => ReadSnapshot::Wrong(Source::unread(input_file::name(&path), text), error),
    })
}

/// Returns where in a snapshot file an error is.
fn place(source: &Source, error: &SnapshotError) -> Place {
    let whole = Place::document(&source.name, 0);
    let SnapshotError::Json(json) = error else {
        return match error {
            SnapshotError::Conflict(bytes) => whole.bytes(bytes),
            SnapshotError::Version(_) => whole.key("apiVersion"),
            SnapshotError::Kind(_) => whole.key("kind"),
            SnapshotError::Cluster { .. } => whole.key("cluster"),
            _ => whole.key("nodes"),
        };
    };
    let before: usize =
        source.text.split_inclusive('\n').take(json.line().saturating_sub(1)).map(str::len).sum();
    let mut start = (before + json.column().saturating_sub(1)).min(source.text.len());
    while !source.text.is_char_boundary(start) {
        start -= 1;
    }
    whole.bytes(&(start..start))
}
