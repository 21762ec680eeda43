//! Failures: the reasons why a command has no result, which are printed at the end of the run.

use std::fmt;

use clustermesh::config::ceilings::Exceeded;
use clustermesh::diagnostic::escaped;
use clustermesh::document::{Broken, Source};
use clustermesh::rules::mesh::beyond_ceiling;
use clustermesh::rules::{Finding, LevelledFindings};
use clustermesh::text;

use crate::Outcome;
use crate::files::ShownFiles;

/// The result of a command, or of a step of one.
pub(crate) type CommandResult<T = Outcome> = Result<T, CommandFailure>;

/// The reason why a command has no result.
pub(crate) enum CommandFailure {
    /// A failure that has no place in a file.
    Error(anyhow::Error),
    /// A file that is not YAML.
    Syntax(Box<Broken>),
    /// Mistakes in what was read.
    Mistakes(FileMistakes),
}

/// The mistakes in what was read.
pub(crate) struct FileMistakes {
    /// The files, for the excerpts.
    pub(crate) files: ShownFiles,
    /// The mistakes.
    pub(crate) findings: LevelledFindings,
    pub(crate) outcome: Outcome,
    /// A note for a person, below the mistakes.
    pub(crate) note: Option<String>,
}

impl CommandFailure {
    /// Returns the mistakes in files.
    pub(crate) fn mistakes(
        files: ShownFiles,
        findings: LevelledFindings,
        outcome: Outcome,
    ) -> Self {
        Self::Mistakes(FileMistakes { files, findings, outcome, note: None })
    }

    /// Returns mistakes that are in no file.
    pub(crate) fn without_files(findings: Vec<Finding>, outcome: Outcome) -> Self {
        Self::mistakes(ShownFiles::default(), LevelledFindings::fixed(findings), outcome)
    }

    /// Returns the mistakes in files that are YAML.
    pub(crate) fn wrong(files: Vec<Source>, findings: Vec<Finding>) -> Self {
        Self::mistakes(ShownFiles::new(files), LevelledFindings::fixed(findings), Outcome::Findings)
    }

    /// Returns the refusal of more than a run accepts.
    pub(crate) fn beyond(exceeded: &[Exceeded], files: Vec<Source>) -> Self {
        Self::wrong(files, exceeded.iter().map(beyond_ceiling).collect())
    }

    /// Returns what is wrong with the files.
    ///
    /// # Errors
    /// The reason is in no file.
    pub(crate) fn into_mistakes(self) -> anyhow::Result<FileMistakes> {
        match self {
            Self::Error(error) => Err(error),
            Self::Syntax(broken) => Ok(FileMistakes {
                files: ShownFiles::new(vec![broken.source]),
                findings: LevelledFindings::fixed(broken.problems),
                outcome: Outcome::Unreadable,
                note: None,
            }),
            Self::Mistakes(mistakes) => Ok(mistakes),
        }
    }

    /// Returns the same with other mistakes, if there are any.
    pub(crate) fn map(self, change: impl FnOnce(FileMistakes) -> FileMistakes) -> Self {
        self.into_mistakes().map_or_else(Self::Error, |it| Self::Mistakes(change(it)))
    }
}

impl<E: Into<anyhow::Error>> From<E> for CommandFailure {
    fn from(error: E) -> Self {
        Self::Error(error.into())
    }
}

impl fmt::Display for CommandFailure {
    /// Describes it in a few words, for optional inputs.
    fn fmt(&self, formatter: &mut fmt::Formatter) -> fmt::Result {
        match self {
            Self::Error(error) => formatter.write_str(&escaped(&format!("{error:#}"), 4000)),
            Self::Syntax(broken) => {
                write!(formatter, "`{}` is not YAML", broken.source.name)
            }
            Self::Mistakes(mistakes) => {
                let names = text::quoted(mistakes.files.read().map(|it| &it.name));
                write!(formatter, "{names} contains errors")
            }
        }
    }
}
