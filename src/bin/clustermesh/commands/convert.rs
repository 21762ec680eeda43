//! `clustermesh convert`

use std::path::PathBuf;

use anyhow::{anyhow, bail};
use clap::ValueHint;
use clustermesh::convert::{NetworkForm, converted};
use clustermesh::diagnostic::Severity;
use clustermesh::document::Source;
use clustermesh::fleet::Fleet;
use clustermesh::manifest::{self, Tree};
use clustermesh::mesh::{self, Mesh};
use clustermesh::plan;
use clustermesh::rules::Finding;
use clustermesh::text;

use crate::choice::choice;
use crate::failure::CommandFailure;
use crate::input_file::{self, InputFile, MESH_LIMIT};
use crate::inputs::{self, Inputs};
use crate::output::Printer;
use crate::settings::CommonOptions;
use crate::{Outcome, disk};

mod effects;

/// Convert the entries of a mesh between the typed and the flat form
///
/// Prints the file with all entries in one form: typed (`podCIDRs`, `wireguardCIDR`, `serviceCIDR`,
/// `additionalCIDRs`) or flat (`allowedNetworks`). Everything else in the file, with its comments, stays as
/// it is. The snapshots show what the ranges of a flat list are for; services and other networks become
/// `additionalCIDRs`, which has the same effect.
///
/// Renders both forms in memory, and writes nothing. If the Peers would differ, lists the files and exits with 1.
#[derive(clap::Args)]
#[command(after_help = EXAMPLES)]
pub(crate) struct ConvertArgs {
    /// File of the meshes to convert; not needed if there is only one
    #[arg(value_name = "FILE", value_hint = ValueHint::FilePath)]
    file: Option<PathBuf>,

    /// Form of the entries
    #[arg(long, value_name = "FORM")]
    to: WantedForm,

    #[command(flatten)]
    pub(crate) common: CommonOptions,
}

const EXAMPLES: &str = "\
Examples:
  clustermesh convert --to typed
  clustermesh convert --to flat meshes/prod.yaml > prod.yaml";

choice! {
    /// A form of entries.
    enum WantedForm of NetworkForm {
        /// A field for each use of a range
        Typed,
        /// One list, `allowedNetworks`
        Flat,
    }
}

pub(crate) fn run(args: &ConvertArgs, printer: &mut Printer) -> Result<Outcome, CommandFailure> {
    let inputs = inputs::gather(&args.common.files)?;
    let errors: Vec<Finding> = inputs
        .findings
        .iter()
        .filter(|it| it.severity == Severity::Error)
        .cloned()
        .collect();
    if !inputs.is_whole || !errors.is_empty() {
        let outcome = inputs.failure();
        return Err(CommandFailure::mistakes(inputs.files, errors, outcome));
    }
    let files = inputs.settings.mesh_files()?;
    let chosen = chosen(args, &files)?;
    let read = files.iter().map(|it| input_file::source(it, MESH_LIMIT));
    let mut sources: Vec<Source> = read.collect::<Result<_, _>>()?;
    let source = sources
        .get(chosen)
        .ok_or_else(|| anyhow!("no mesh was found"))?;
    // The result is a copy of the whole file, so a file of another program must not get this far.
    if !inputs
        .meshes
        .iter()
        .any(|it| it.place.source == source.name)
    {
        return Err(anyhow!("`{}` contains no ClusterMesh", source.name).into());
    }
    let converted = converted(source, &inputs.meshes, &inputs.snapshots, args.to.into());
    let text = match converted {
        Ok(text) => text,
        Err(findings) => {
            let outcome = Outcome::Findings;
            return Err(CommandFailure::mistakes(inputs.files, findings, outcome));
        }
    };
    let edited = Source::parse(source.name.clone(), text.as_str())
        .map_err(|_| anyhow!("internal error: the result is not YAML"))?;
    if let Some(source) = sources.get_mut(chosen) {
        *source = edited;
    }
    let meshes = mesh::read(&sources).meshes;
    printer.print(&text)?;
    Ok(compare(&inputs, &meshes, printer)?)
}

/// Returns which of the files is meant.
fn chosen(args: &ConvertArgs, files: &[InputFile]) -> anyhow::Result<usize> {
    let Some(wanted) = &args.file else {
        if files.len() == 1 {
            return Ok(0);
        }
        let names = text::quoted(files.iter().map(|it| input_file::name(&it.path)));
        bail!("there are several files of meshes; name the one to convert: {names}");
    };
    let canonical = disk::canonical(wanted);
    let mut files = files.iter();
    files
        .position(|it| disk::canonical(&it.path) == canonical)
        .ok_or_else(|| {
            let name = input_file::name(wanted);
            anyhow!("`{name}` is not one of the mesh files; to convert it, add `--mesh {name}`")
        })
}

/// Reports whether other meshes are rendered as the present ones are, and why not.
fn compare(inputs: &Inputs, meshes: &[Mesh], printer: &mut Printer) -> anyhow::Result<Outcome> {
    let Some((before, after)) = fleet(inputs, &inputs.meshes).zip(fleet(inputs, meshes)) else {
        printer.note(
            "the rendered Peers were not compared, because snapshots are missing; run `clustermesh \
             snapshot`",
        );
        return Ok(Outcome::Clean);
    };
    let (was, is) = (rendered(&before)?, rendered(&after)?);
    let differing: Vec<&String> = was
        .keys()
        .chain(is.keys().filter(|it| !was.contains_key(*it)))
        .filter(|path| was.get(*path) != is.get(*path))
        .collect();
    if differing.is_empty() {
        return Ok(Outcome::Clean);
    }
    let files = text::listed(&differing);
    printer.note(&format!(
        "the converted mesh changes rendered Peers: {files}"
    ));
    for effect in effects::effects(&before, &after) {
        printer.note(&effect);
    }
    Ok(Outcome::Findings)
}

/// Returns the clusters of meshes; nothing if a snapshot is missing.
fn fleet<'a>(inputs: &'a Inputs, meshes: &'a [Mesh]) -> Option<Fleet<'a>> {
    let fleet = Fleet::new(meshes, &inputs.snapshots).ok()?;
    Some(fleet.accepting(&inputs.settings.config.content.accepted))
}

/// Returns the tree that a fleet is rendered to.
fn rendered(fleet: &Fleet) -> anyhow::Result<Tree> {
    Ok(manifest::tree(&plan::plan(fleet)?)?)
}
