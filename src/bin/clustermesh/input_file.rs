//! Input files: read, and put through their gates.

use std::borrow::Cow;
use std::fmt;
use std::path::{Path, PathBuf};

use clustermesh::config::ceilings::{Ceilings, Counted, Exceeded};
use clustermesh::diagnostic::{Finding, Severity, escaped};
use clustermesh::document::{Broken, Source};
use clustermesh::mesh::{self, Mesh, MeshReading};
use clustermesh::rules::mesh::beyond_ceiling;
use clustermesh::text;

use crate::Outcome;
use crate::disk::{self, Roots};
use crate::files::ShownFiles;

/// The largest file of meshes that is read, in bytes.
pub(crate) const MESH_LIMIT: u64 = 8 << 20;

/// A file, and the folders that it may be in.
#[derive(Clone, Debug)]
pub(crate) struct InputFile {
    /// The file, as it was named.
    pub(crate) path: PathBuf,
    /// The folders in which it may be.
    pub(crate) roots: Roots,
}

/// The reason why there is nothing to work with.
pub(crate) enum Unreadable {
    /// Could not be read at all.
    Failed(anyhow::Error),
    /// A file that is not YAML.
    Syntax(Box<Broken>),
    /// Files that were read, but are wrong.
    Wrong {
        /// The files, for the excerpts.
        sources: Vec<Source>,
        /// The mistakes.
        problems: Vec<Finding>,
    },
    /// Files in which there is nothing to work with.
    Nothing(FileMistakes),
}

/// The mistakes in files that were read.
pub(crate) struct FileMistakes {
    /// The files, for the excerpts.
    pub(crate) files: ShownFiles,
    /// The mistakes.
    pub(crate) findings: Vec<Finding>,
    /// The outcome.
    pub(crate) outcome: Outcome,
}

impl Unreadable {
    /// Returns the refusal of more than a run accepts.
    pub(crate) fn beyond(exceeded: &[Exceeded], sources: Vec<Source>) -> Self {
        Self::Wrong {
            sources,
            problems: exceeded.iter().map(beyond_ceiling).collect(),
        }
    }

    /// Returns what is wrong with the files.
    ///
    /// # Errors
    /// One could not be read at all.
    pub(crate) fn mistakes(self) -> anyhow::Result<FileMistakes> {
        Ok(match self {
            Self::Failed(error) => return Err(error),
            Self::Syntax(broken) => {
                let Broken { source, problems } = *broken;
                FileMistakes {
                    files: ShownFiles::new(vec![source]),
                    findings: problems,
                    outcome: Outcome::Unreadable,
                }
            }
            Self::Wrong { sources, problems } => FileMistakes {
                files: ShownFiles::new(sources),
                findings: problems,
                outcome: Outcome::Findings,
            },
            Self::Nothing(mistakes) => mistakes,
        })
    }
}

impl From<anyhow::Error> for Unreadable {
    fn from(error: anyhow::Error) -> Self {
        Self::Failed(error)
    }
}

impl fmt::Display for Unreadable {
    /// Describes it in a few words, for optional inputs.
    fn fmt(&self, formatter: &mut fmt::Formatter) -> fmt::Result {
        match self {
            Self::Failed(error) => formatter.write_str(&escaped(&format!("{error:#}"), 4000)),
            Self::Syntax(broken) => {
                write!(formatter, "`{}` is not YAML", broken.source.name)
            }
            Self::Wrong { sources, .. } => {
                let names = text::quoted(sources.iter().map(|it| &it.name));
                write!(formatter, "{names} contains errors")
            }
            Self::Nothing(_) => formatter.write_str("no mesh was found"),
        }
    }
}

/// Reads meshes, which must be right.
pub(crate) fn meshes(files: &[InputFile], ceilings: Ceilings) -> Result<Vec<Mesh>, Unreadable> {
    let (sources, reading) = read(sources(files)?, ceilings)?;
    if !reading.is_usable() {
        return Err(Unreadable::Wrong {
            sources,
            problems: reading.diagnostics,
        });
    }
    Ok(reading.meshes)
}

/// Meshes of which every cluster is known, though they may not go together.
pub(crate) struct Clusters {
    /// The meshes.
    pub(crate) meshes: Vec<Mesh>,
    /// The files, for the excerpts.
    pub(crate) sources: Vec<Source>,
    /// The reasons why they do not fit together.
    pub(crate) problems: Vec<Finding>,
}

/// Reads meshes for who looks at each cluster by itself.
pub(crate) fn clusters(files: &[InputFile], ceilings: Ceilings) -> Result<Clusters, Unreadable> {
    clusters_of(sources(files)?, ceilings)
}

/// Reads meshes as [`clusters`], from texts that may not be in files yet.
pub(crate) fn clusters_of(
    sources: Vec<Source>,
    ceilings: Ceilings,
) -> Result<Clusters, Unreadable> {
    let (sources, mut reading) = read(sources, ceilings)?;
    if !reading.knows_clusters() {
        return Err(Unreadable::Wrong {
            sources,
            problems: reading.diagnostics,
        });
    }
    reading.meshes.extend(reading.salvaged);
    let mut problems = reading.diagnostics;
    problems.retain(|problem| problem.severity == Severity::Error);
    for problem in &mut problems {
        problem.severity = Severity::Warning;
    }
    Ok(Clusters {
        meshes: reading.meshes,
        sources,
        problems,
    })
}

fn sources(files: &[InputFile]) -> Result<Vec<Source>, Unreadable> {
    files.iter().map(|path| source(path, MESH_LIMIT)).collect()
}

/// Reads meshes, unless they are larger than a run accepts.
fn read(
    sources: Vec<Source>,
    ceilings: Ceilings,
) -> Result<(Vec<Source>, MeshReading), Unreadable> {
    let reading = mesh::read_at_most(&sources, ceilings.most(Counted::Clusters));
    let exceeded = ceilings.exceeded_by(&reading.meshes);
    if exceeded.is_empty() {
        Ok((sources, reading))
    } else {
        Err(Unreadable::beyond(&exceeded, sources))
    }
}

/// Reads a YAML file of at most `limit` bytes.
pub(crate) fn source(file: &InputFile, limit: u64) -> Result<Source, Unreadable> {
    let text = disk::read_text(&file.roots, &file.path, limit)?;
    Source::parse(name(&file.path), text).map_err(Unreadable::Syntax)
}

/// Returns what a file is called in messages.
pub(crate) fn name(path: &Path) -> String {
    let lossy = || path.to_string_lossy();
    escaped(&path.to_str().map_or_else(lossy, Cow::Borrowed), 400)
}
