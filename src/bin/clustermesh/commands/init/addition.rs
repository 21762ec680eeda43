//! One more cluster: its entry is added to the mesh that is there.

use std::collections::BTreeSet;

use anyhow::{anyhow, bail};
use clustermesh::diagnostic::{Quoted, Severity, escaped};
use clustermesh::document::Source;
use clustermesh::guard::{NodeUids, SameCluster};
use clustermesh::mesh::{self, Mesh};
use clustermesh::name::ClusterName;
use clustermesh::place::Pointer;
use clustermesh::proposal::{self, ExistingMesh, PlannedCluster, Proposal, RangeSizes};
use clustermesh::rules;
use clustermesh::snapshot::Snapshot;
use clustermesh::text;

use super::clusters::{ClusterOptions, ProposedMesh, add_service_ranges};
use super::mesh_addition::{MeshAddition, UnplacedEntries};
use super::starter_files::EXAMPLE_MESH;
use crate::Outcome;
use crate::disk;
use crate::failure::{CommandFailure, CommandResult};
use crate::input_file::{self, InputFile, MESH_LIMIT};
use crate::inputs::{self, Inputs};
use crate::output::Printer;
use crate::settings::{FileOptions, Settings};

/// The result of reading clusters for a mesh.
pub(super) enum Proposed {
    /// The text of a mesh.
    Mesh(Box<ProposedMesh>),
    /// Only entries, because the text of the mesh cannot be changed safely.
    Entries(UnplacedEntries),
}

/// The meshes that are there.
struct MeshRepository {
    files: Vec<InputFile>,
    sources: Vec<Source>,
    meshes: Vec<Mesh>,
    inputs: Inputs,
}

impl ClusterOptions {
    /// Proposes entries for clusters that no mesh has yet.
    ///
    /// # Errors
    /// A cluster that cannot be read or added, or mistakes in the meshes.
    pub(super) fn add(
        &self,
        options: &FileOptions,
        settings: &mut Settings,
    ) -> CommandResult<Proposed> {
        let repository = MeshRepository::read(options, settings)?;
        let chosen = repository.mesh(self)?;
        self.check_new(&repository.meshes)?;
        let read = self.read(settings)?;
        let snapshots: Vec<Snapshot> = read.iter().map(|it| it.snapshot.clone()).collect();
        repository.refuse_twins(&snapshots)?;
        let (_, source) =
            repository.source(chosen).ok_or_else(|| anyhow!("its file is unknown"))?;
        let existing = repository.existing(chosen, source);
        let proposal = Proposal::added(chosen.name.clone(), &snapshots, existing);
        let mut proposal = proposal.map_err(|obstacles| {
            let findings = rules::proposal::obstacles(&obstacles, &[]);
            CommandFailure::without_files(findings, Outcome::Findings)
        })?;
        add_service_ranges(&mut proposal, &read);
        let entries = proposal.to_entries();
        match repository.inserted(chosen, &entries) {
            Ok(yaml) => {
                let addition = repository.addition(chosen, &yaml, &snapshots)?;
                let mut mesh = ProposedMesh::new(yaml, read);
                mesh.subnets = proposal.subnets().map(|(name, it)| (name.clone(), it)).collect();
                self.add_to(&mut mesh);
                mesh.addition = Some(addition);
                Ok(Proposed::Mesh(Box::new(mesh)))
            }
            Err(reason) => {
                let message = repository.unplaced(chosen, &reason, &self.snapshot_commands());
                let entries = proposal::pasteable(source, chosen.place.document, &entries);
                Ok(Proposed::Entries(UnplacedEntries { entries, message }))
            }
        }
    }

    /// Refuses clusters that a mesh has already.
    fn check_new(&self, meshes: &[Mesh]) -> anyhow::Result<()> {
        for name in self.names() {
            let mut meshes = meshes.iter();
            if let Some(mesh) = meshes.find(|it| it.entry(name).is_some()) {
                let command = self.snapshot_command(name);
                bail!(
                    "`{name}` is already a cluster of the mesh `{}`; `{command}` saves its nodes again",
                    mesh.name
                );
            }
        }
        Ok(())
    }
}

/// Prints free ranges for clusters that do not exist yet.
pub(super) fn print_plan(
    names: &[ClusterName],
    sizes: RangeSizes,
    options: &FileOptions,
    printer: &mut Printer,
) -> CommandResult {
    let mut distinct = BTreeSet::new();
    if let Some(twice) = names.iter().find(|it| !distinct.insert(*it)) {
        return Err(anyhow!("--plan names `{twice}` twice").into());
    }
    let settings = options.settle()?;
    let mut existing = ExistingMesh::default();
    if !settings.mesh_files_if_any()?.is_empty() {
        let repository = MeshRepository::read(options, &settings)?;
        let known = |it: &Mesh| names.iter().find(|name| it.entry(name).is_some()).cloned();
        if let Some(name) = repository.meshes.iter().find_map(known) {
            return Err(anyhow!("--plan: `{name}` is already a cluster of a mesh").into());
        }
        if let Some(mesh) = repository.meshes.first() {
            let (_, source) =
                repository.source(mesh).ok_or_else(|| anyhow!("its file is unknown"))?;
            existing = repository.existing(mesh, source);
        }
    }
    let planned = proposal::plan(names, sizes, &existing);
    let planned = planned.map_err(|name| {
        anyhow!("--plan: no range in 10.0.0.0/8 is free for `{name}`; take longer prefixes with --plan-sizes")
    })?;
    let texts = planned.iter().map(PlannedCluster::to_text);
    printer.result(&texts.collect::<Vec<_>>().join("\n"))?;
    Ok(Outcome::Clean)
}

impl MeshRepository {
    /// Returns everything with which new ranges are compared.
    fn existing(&self, mesh: &Mesh, source: &Source) -> ExistingMesh {
        let known = self.inputs.snapshots.iter();
        let known = known.map(|(name, file)| (name.clone(), &*file.snapshot)).collect();
        ExistingMesh::new(mesh, source, &self.meshes, &known)
    }

    fn read(options: &FileOptions, settings: &Settings) -> CommandResult<Self> {
        let files = settings.mesh_files()?;
        let sources = files.iter().map(|it| input_file::source(it, MESH_LIMIT));
        let sources = sources.collect::<CommandResult<Vec<_>>>()?;
        if let Some(example) = sources.iter().find(|it| &*it.text == EXAMPLE_MESH) {
            let name = &example.name;
            return Err(anyhow!(
                "`{name}` is the example that `init` has written; remove it first"
            )
            .into());
        }
        let reading = mesh::read(&sources);
        if !reading.is_usable() {
            return Err(CommandFailure::wrong(sources, reading.diagnostics));
        }
        let inputs = inputs::gather(options)?;
        Ok(Self { files, sources, meshes: reading.meshes, inputs })
    }

    /// Returns the mesh that gets the clusters.
    fn mesh(&self, options: &ClusterOptions) -> anyhow::Result<&Mesh> {
        let names = || text::quoted(self.meshes.iter().map(|it| &it.name));
        match options.mesh_name() {
            Some(name) => {
                let chosen = self.meshes.iter().find(|it| it.name == *name);
                chosen.ok_or_else(|| {
                    let name = Quoted(name.as_str());
                    anyhow!(
                        "--name: {name} is not a mesh of this repository, which has {}",
                        names()
                    )
                })
            }
            None => match self.meshes.as_slice() {
                [mesh] => Ok(mesh),
                [] => {
                    let files = text::quoted(self.sources.iter().map(|it| &it.name));
                    bail!("{files} has no ClusterMesh; remove the file, and `init` proposes a mesh")
                }
                [first, ..] => bail!(
                    "there are several meshes, {}: name the one that gets the clusters, such as `--name {}`",
                    names(),
                    first.name
                ),
            },
        }
    }

    /// Refuses a cluster that has a node of another one.
    fn refuse_twins(&self, snapshots: &[Snapshot]) -> CommandResult<()> {
        let mut uids = NodeUids::default();
        for (name, file) in &self.inputs.snapshots {
            uids.set(name, &file.snapshot.nodes);
        }
        let new: BTreeSet<&ClusterName> = snapshots.iter().map(|it| &it.cluster).collect();
        for snapshot in snapshots {
            uids.set(&snapshot.cluster, &snapshot.nodes);
        }
        let entries = self.meshes.iter().flat_map(|it| &it.entries).map(|it| &it.name);
        let order: Vec<ClusterName> = entries.chain(new.iter().copied()).cloned().collect();
        let mut twins: Vec<SameCluster> = uids.twins(&order);
        twins.retain(|it| new.contains(&it.cluster));
        if twins.is_empty() {
            return Ok(());
        }
        let findings = rules::proposal::twins(&twins);
        Err(CommandFailure::without_files(findings, Outcome::Findings))
    }

    /// Returns the text of the mesh's file with the entries, or the reason why it stays as it is.
    fn inserted(&self, mesh: &Mesh, entries: &str) -> Result<String, String> {
        let (file, source) = self.source(mesh).ok_or("its file is unknown")?;
        if let Some(reason) = disk::kept_reason(&file.path) {
            return Err(format!("`{}` is {reason}", source.name));
        }
        disk::check_output(&file.roots, &file.path).map_err(|error| format!("{error:#}"))?;
        if mesh.place.pointer != Pointer::default() {
            return Err(format!("the mesh is an item of a list in `{}`", source.name));
        }
        proposal::insert(source, mesh.place.document, entries).map_err(|it| it.to_string())
    }

    /// Returns the addition, if the meshes are valid with it.
    fn addition(
        &self,
        mesh: &Mesh,
        yaml: &str,
        snapshots: &[Snapshot],
    ) -> CommandResult<MeshAddition> {
        let (file, old) = self.source(mesh).ok_or_else(|| anyhow!("its file is unknown"))?;
        let new = Source::parse(&*old.name, yaml).map_err(CommandFailure::Syntax)?;
        let others = self.sources.iter().filter(|it| it.name != old.name);
        let others: Vec<Source> = others.cloned().collect();
        let sources: Vec<Source> = others.iter().cloned().chain([new]).collect();
        let mut reading = mesh::read(&sources);
        if !reading.is_usable() {
            reading.diagnostics.retain(|it| it.severity == Severity::Error);
            return Err(CommandFailure::wrong(sources, reading.diagnostics));
        }
        let clusters = snapshots.iter().map(|it| it.cluster.clone()).collect();
        Ok(MeshAddition { file: file.clone(), old: old.clone(), others, clusters })
    }

    /// Describes why the entries were not added, and where they belong.
    fn unplaced(&self, mesh: &Mesh, reason: &str, snapshots: &str) -> String {
        let reason = escaped(reason, 400);
        let place = mesh.place.key("spec").key("clusters").named();
        let line = self
            .source(mesh)
            .and_then(|(_, source)| Some(source.position(source.locate(&place)?.start).line));
        let line = line.map_or_else(String::new, |it| format!(":{it}"));
        format!(
            "nothing was changed: {reason}. Add the entry above at the end of `spec.clusters` ({}{line}), and then run \
             {snapshots}",
            mesh.place.source
        )
    }

    fn source(&self, mesh: &Mesh) -> Option<(&InputFile, &Source)> {
        let mut files = self.files.iter().zip(&self.sources);
        files.find(|(_, source)| source.name == mesh.place.source)
    }
}
