//! The Peers of every cluster, read from the rendered tree or from dumps, for the proof.

use std::collections::{BTreeMap, BTreeSet};
use std::ffi::{OsStr, OsString};
use std::path::{Path, PathBuf};
use std::ptr;
use std::sync::Arc;

use anyhow::anyhow;
use clustermesh::agent::applied::AppliedFile;
use clustermesh::agent::fabric::{Fabric, Site};
use clustermesh::changes::foreign_peers;
use clustermesh::config::ceilings::Counted;
use clustermesh::diagnostic::Severity;
use clustermesh::fleet::{Fleet, in_order_of_rank};
use clustermesh::kilo::cluster::Cluster;
use clustermesh::manifest::{self, PeerSetTexts};
use clustermesh::mesh::{Entry, Mesh};
use clustermesh::name::ClusterName;
use clustermesh::place::Place;
use clustermesh::plan::{EachPeerSet, Plan};
use clustermesh::results::source_texts::SourceTexts;
use clustermesh::rules::{self, Finding, LevelledFindings, reach};
use clustermesh::snapshot::Snapshot;
use rayon::prelude::*;

use crate::allowed_losses::unknown_cluster;
use crate::disk::tree;
use crate::failure::{CommandFailure, CommandResult};
use crate::files::{LaterFile, LaterFiles};

use crate::inputs::Inputs;
use crate::output::Printer;
use crate::settings::{FileOptions, Settings};
use crate::threshold::Threshold;
use crate::{Outcome, checked_plan, disk, input_file, inputs};

mod basis;
mod dumps;
mod kept;
mod known_contents;
mod left;
mod listing;
mod undelivered;

pub(crate) use basis::basis;
pub(crate) use dumps::{DumpedPeers, Dumps, read_file};
pub(crate) use known_contents::KnownContents;
use listing::FolderListing;
pub(crate) use undelivered::Undelivered;

/// The Peers of every cluster.
#[derive(Default)]
pub(crate) struct ClusterPeers {
    files: BTreeMap<ClusterName, Vec<AppliedFile>>,
    /// The files of clusters that are in no mesh, if they were asked for.
    left: BTreeMap<ClusterName, Vec<AppliedFile>>,
    /// Clusters that have no folder in the tree.
    pub(crate) absent: BTreeSet<ClusterName>,
    /// The parts that cannot be read, or that Kilo does not accept as Peers.
    pub(crate) findings: Vec<Finding>,
}

/// The inputs of a proof without the Peers.
pub(crate) struct Gathered {
    pub(crate) inputs: Inputs,
    /// Problems that are so severe that every proof must report them.
    pub(crate) grave: Vec<Finding>,
}

/// Gathers what a proof is made from.
///
/// # Errors
/// There is no mesh, and why.
pub(crate) fn gather(options: &FileOptions) -> CommandResult<Gathered> {
    provable(inputs::gather(options)?)
}

/// Returns inputs of which something can be proved.
///
/// # Errors
/// As for [`gather`].
pub(crate) fn provable(inputs: Inputs) -> CommandResult<Gathered> {
    let grave = |it: &&Finding| it.severity == Severity::Error;
    let mut grave: Vec<Finding> = inputs.findings.iter().filter(grave).cloned().collect();
    if !grave.is_empty() {
        grave.extend(rules::contradictions(&checked_plan::fleet(&inputs).0, &grave));
    }
    if inputs.is_unparsable || inputs.meshes.is_empty() {
        if grave.is_empty() {
            return Err(anyhow!("no mesh was found; run `clustermesh validate` for details").into());
        }
        let grave = LevelledFindings::fixed(grave);
        return Err(CommandFailure::mistakes(inputs.files, grave, Outcome::Unreadable));
    }
    Ok(Gathered { inputs, grave })
}

/// Reads the Peers of every cluster that a mesh names; without dumps, from the rendered tree alone.
///
/// # Errors
/// There is no rendered tree, a dump is of no cluster, or a folder cannot be looked into.
pub(crate) fn read(inputs: &mut Inputs, dumps: Option<&Dumps>) -> CommandResult<ClusterPeers> {
    read_and_keep(inputs, dumps, None)
}

/// Gathers the inputs of a proof and reads the Peers, and prints what is wrong with them. It decides the least outcome of the
/// command.
///
/// # Errors
/// As for [`gather`] and [`read`], or the entry of an `asked` cluster has mistakes.
pub(crate) fn gather_all<'a>(
    options: &FileOptions,
    dumps: &Dumps,
    asked: impl IntoIterator<Item = &'a String>,
    printer: &mut Printer,
) -> CommandResult<(Inputs, ClusterPeers, Outcome)> {
    let Gathered { mut inputs, grave } = gather(options)?;
    let mut clusters = asked.into_iter().filter_map(|it| it.split('/').next());
    if let Some(failure) = clusters.find_map(|it| inputs.broken_entry(it)) {
        return Err(failure);
    }
    let applied = read(&mut inputs, Some(dumps))?;
    let found = grave.into_iter().chain(applied.findings.clone());
    let findings = inputs.settings.in_force(found.collect());
    printer.findings(&inputs.files, &findings);
    let outcome = Threshold(Severity::Error).outcome(&findings);
    Ok((inputs, applied, outcome))
}

/// Reads the Peers of every cluster, and keeps the texts of the rendered tree for a comparison.
///
/// # Errors
/// As for [`read`].
pub(crate) fn read_and_keep(
    inputs: &mut Inputs,
    dumps: Option<&Dumps>,
    known: Option<&KnownContents>,
) -> CommandResult<ClusterPeers> {
    let clusters = clusters(inputs);
    let mut applied = ClusterPeers::default();
    if let Some(dumps) = dumps {
        // A version that is compared may have had other clusters.
        let dumped = match known {
            Some(_) => dumps.read_all(inputs)?,
            None => dumps.read(inputs)?,
        };
        applied.files = dumped.files;
        applied.left = dumped.left;
        applied.findings = dumped.findings;
    }
    let mut rest = clusters;
    rest.retain(|cluster| !applied.files.contains_key(cluster));
    if !rest.is_empty() {
        let help = match dumps {
            Some(_) => "run `clustermesh render`, or give each cluster's Peers with `--peers`",
            None => "run `clustermesh render`",
        };
        applied.read_tree(inputs, &rest, help, known)?;
    }
    if inputs.meshes.iter().any(|it| !it.externals.is_empty()) {
        match checked_plan::plan(inputs)? {
            Some(it) => applied.configure(&it.plan, &it.texts),
            // Without it, nothing is known of their side.
            None => inputs.snapshots.retain(|name, _| !name.is_external()),
        }
    }
    within_ceiling(inputs, applied.files.values().flatten())?;
    let findings: Vec<Finding> = applied
        .files
        .par_iter()
        .flat_map_iter(|(cluster, files)| reach::manifests(cluster, files))
        .collect();
    applied.findings.extend(findings);
    let shown = inputs.files.presentable(&applied.findings).into_owned();
    applied.findings = shown;
    Ok(applied)
}

/// Returns the cluster of this name.
///
/// # Errors
/// No mesh has it, or its entry has mistakes.
pub(crate) fn asked<'a>(
    name: &str,
    inputs: &Inputs,
    clusters: &'a [ClusterName],
) -> CommandResult<&'a ClusterName> {
    match inputs.broken_entry(name) {
        Some(failure) => Err(failure),
        None => Ok(named(name, clusters)?),
    }
}

/// Returns the cluster of this name.
pub(crate) fn named<'a>(
    name: &str,
    clusters: &'a [ClusterName],
) -> anyhow::Result<&'a ClusterName> {
    if let Some(known) = clusters.iter().find(|it| it.as_str() == name) {
        return Ok(known);
    }
    Err(unknown_cluster(name, clusters.iter().map(ClusterName::as_str)))
}

/// Returns every cluster that a mesh names.
pub(crate) fn clusters(inputs: &Inputs) -> Vec<ClusterName> {
    let clusters: BTreeSet<&ClusterName> =
        inputs.meshes.iter().flat_map(|mesh| &mesh.entries).map(|entry| &entry.name).collect();
    clusters.into_iter().cloned().collect()
}

/// Checks that clusters have no more Peers than a run accepts.
///
/// # Errors
/// They have more.
fn within_ceiling<'f>(
    inputs: &Inputs,
    files: impl IntoIterator<Item = &'f AppliedFile>,
) -> CommandResult<()> {
    let peers = files.into_iter().map(|file| file.content.peers.len()).sum();
    match inputs.settings.ceilings.exceeded(Counted::Peers, peers) {
        None => Ok(()),
        Some(exceeded) => Err(CommandFailure::beyond(&[exceeded], Vec::new())),
    }
}

impl ClusterPeers {
    /// Returns the Peers of a plan whose peer sets have these texts, as if they were rendered.
    pub(crate) fn planned(
        settings: &Settings,
        plan: &Plan,
        texts: &PeerSetTexts,
        known: &KnownContents,
    ) -> Self {
        let sets = plan.peer_sets.par_iter().zip(&**texts);
        let contents = sets.map(|(set, text)| known.file(Arc::from(manifest::file(set)), text));
        let contents: EachPeerSet<AppliedFile> = EachPeerSet::new(contents.collect());
        let files = plan.targets.iter().map(|target| {
            let folder = settings.rendered.value.join(target.cluster.as_str());
            let files = target.peer_sets.iter().map(|it| &contents[*it]).map(|it| AppliedFile {
                source: Arc::from(input_file::name(&folder.join(&*it.source))),
                content: Arc::clone(&it.content),
            });
            (target.cluster.clone(), files.collect())
        });
        let mut applied = Self { files: files.collect(), ..Self::default() };
        applied.configure(plan, texts);
        applied
    }

    /// Adds the WireGuard of each external peer. It is in no tree, so it is taken to be as `clustermesh wireguard`
    /// writes it.
    fn configure(&mut self, plan: &Plan, texts: &PeerSetTexts) {
        for external in &plan.externals {
            let name = external.cluster.external().unwrap_or_default();
            let source = Arc::from(format!("clustermesh wireguard {name}"));
            let files = external.peer_sets.iter().map(|it| AppliedFile::read(&source, &texts[*it]));
            self.files.insert(external.cluster.clone(), files.collect());
        }
    }

    /// Returns the same with the foreign Peers that clusters have, which no engine prunes, and the names of
    /// these by cluster.
    pub(crate) fn with_foreign(
        mut self,
        has: &Self,
        meshes: &[Mesh],
    ) -> (Self, Vec<(ClusterName, String)>) {
        let mut names = Vec::new();
        for (cluster, has) in &has.files {
            let gets = self.files.entry(cluster.clone()).or_default();
            if let Some(foreign) = foreign_peers(has, gets, meshes) {
                names.extend(
                    foreign.content.peers.iter().map(|it| (cluster.clone(), it.name.clone())),
                );
                gets.push(foreign);
            }
        }
        for (cluster, has) in &has.left {
            let foreign = foreign_peers(has, &[], meshes);
            let peers = foreign.iter().flat_map(|it| &it.content.peers);
            names.extend(peers.map(|it| (cluster.clone(), it.name.clone())));
        }
        (self, names)
    }

    /// Returns the files of a cluster.
    pub(crate) fn files(&self, cluster: &ClusterName) -> &[AppliedFile] {
        self.files.get(cluster).map_or(&[], Vec::as_slice)
    }

    /// Returns the same with other files for some clusters.
    ///
    /// # Errors
    /// More Peers than a run accepts.
    #[cfg(feature = "snapshot")]
    pub(crate) fn with(
        &self,
        inputs: &Inputs,
        files: &BTreeMap<ClusterName, Vec<AppliedFile>>,
    ) -> CommandResult<Self> {
        let mut all = self.files.clone();
        all.extend(files.clone());
        within_ceiling(inputs, all.values().flatten())?;
        Ok(Self { files: all, ..Self::default() })
    }

    /// Builds the view of every cluster's Kilo; clusters without a snapshot are omitted.
    pub(crate) fn fabric<'a>(&'a self, inputs: &'a Inputs) -> Fabric<'a> {
        self.fabric_of(inputs, None, None)
    }

    /// Builds the same from a fleet of these inputs, which has read the nodes already, and beside another
    /// version, of which it shares the tables that are the same.
    pub(crate) fn fabric_of<'a>(
        &'a self,
        inputs: &'a Inputs,
        fleet: Option<&Fleet<'a>>,
        other: Option<&Fabric>,
    ) -> Fabric<'a> {
        let members: Vec<(&Entry, &Snapshot)> = in_order_of_rank(&inputs.meshes)
            .into_iter()
            .filter_map(|entry| Some((entry, &*inputs.snapshots.get(&entry.name)?.snapshot)))
            .collect();
        let sites = members.into_par_iter().map(|(entry, snapshot)| {
            let files = self.files.get(&entry.name).map_or(&[][..], Vec::as_slice);
            let members = fleet.map(|it| it.memberships(&entry.name));
            let mut members = members.into_iter().flatten();
            let member = members.find(|it| ptr::eq(it.entry, entry));
            let reading = match member {
                Some(member) => Arc::clone(&member.cluster),
                None => Arc::new(Cluster::new(entry, snapshot)),
            };
            let version = other.and_then(|it| Some(it.site(it.site_named(entry.name.as_str())?)));
            Arc::new(Site::with_reading(reading, files, version))
        });
        Fabric::shared(sites.collect(), other)
    }

    /// Reads the folders of clusters.
    fn read_tree(
        &mut self,
        inputs: &mut Inputs,
        clusters: &[ClusterName],
        help: &str,
        known: Option<&KnownContents>,
    ) -> CommandResult<()> {
        let root = &inputs.settings.rendered.value;
        let roots = inputs.settings.roots_of(&inputs.settings.rendered);
        if !disk::is_folder(&roots, root)? {
            let treeless = vec![reach::treeless(&input_file::name(root), help)];
            return Err(CommandFailure::without_files(treeless, Outcome::Unreadable));
        }
        let later = self.read_folders(&inputs.settings, clusters, known, |_, _| true)?;
        inputs.files.add_all_later(later);
        Ok(())
    }

    /// Reads the manifests that are meant, in the folders of clusters in a tree that is there.
    fn read_folders(
        &mut self,
        settings: &Settings,
        clusters: &[ClusterName],
        known: Option<&KnownContents>,
        is_meant: impl Fn(&Path, &OsStr) -> bool,
    ) -> anyhow::Result<LaterFiles> {
        let root = &settings.rendered.value;
        let roots = settings.roots_of(&settings.rendered);
        let unkept = KnownContents::default();
        let known = known.unwrap_or(&unkept);
        let listings = clusters
            .par_iter()
            .map(|cluster| FolderListing::read(&roots, root.join(cluster.as_str())));
        let listings: Vec<FolderListing> = listings.collect::<anyhow::Result<_>>()?;
        let mut meant: Vec<(OsString, &ClusterName, PathBuf)> = Vec::new();
        for (cluster, listing) in clusters.iter().zip(listings) {
            let skipped = listing.skipped.iter().map(|(path, problem)| {
                let place = Place::document(&Arc::from(input_file::name(path)), 0);
                reach::unread(cluster, place, problem)
            });
            self.findings.extend(skipped);
            let Some(found) = listing.found else {
                self.absent.insert(cluster.clone());
                continue;
            };
            self.files.insert(cluster.clone(), Vec::with_capacity(found.len()));
            meant.extend(found.into_iter().filter(|it| is_meant(&listing.path, it)).map(|name| {
                let path = listing.path.join(&name);
                (name, cluster, path)
            }));
        }
        // Of each cluster by name.
        meant.sort();
        let read = meant.par_iter().map(|(_, _, path)| {
            let source: Arc<str> = Arc::from(input_file::name(path));
            let file = tree::read(&roots, path).map(|text| known.file(Arc::clone(&source), &text));
            (source, file)
        });
        let read: Vec<(Arc<str>, Result<AppliedFile, String>)> = read.collect();
        let mut later = LaterFiles::default();
        for ((source, file), (_, cluster, path)) in read.into_iter().zip(meant) {
            match file {
                Ok(file) => self.files.entry(cluster.clone()).or_default().push(file),
                Err(problem) => {
                    let place = Place::document(&source, 0);
                    self.findings.push(reach::unread(cluster, place, &problem));
                    let files = self.files.entry(cluster.clone()).or_default();
                    files.push(AppliedFile::unread(&source));
                }
            }
            later.add(source, LaterFile::manifests(path, &roots).of_tree());
        }
        Ok(later)
    }
}
