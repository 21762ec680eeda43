//! Orders: what a filler gets and returns, so that it can be a process of its own.

use serde::{Deserialize, Serialize};
use thiserror::Error as ThisError;

use crate::template::Problem;

/// A template, to be filled in once for each subject.
#[derive(Debug, Deserialize, Serialize)]
pub struct FillOrder {
    /// The path of the template.
    pub template: String,
    /// Its text.
    pub text: String,
    /// The path of each result.
    pub path: ResultPath,
    /// The subjects of the results.
    pub subjects: Vec<ResultSubject>,
}

/// The path of a result, whose extension is the format.
#[derive(Debug, Deserialize, Serialize)]
pub enum ResultPath {
    /// A template with the same values.
    Template(String),
    /// The same for all.
    Fixed(String),
}

/// The subject of a result.
#[derive(Clone, Debug, Deserialize, Eq, PartialEq, Serialize)]
pub enum ResultSubject {
    /// A cluster that gets Peers; the template has `target`.
    Target(String),
    /// A mesh; the template has `mesh`.
    Mesh(String),
    /// The repository as a whole.
    Repository,
}

/// A result.
#[derive(Debug)]
pub struct FilledText {
    /// Its path.
    pub path: String,
    /// Its text.
    pub text: String,
}

/// The first part of an order without a result.
#[derive(Debug)]
pub struct FillFailure {
    /// The part.
    pub part: OrderPart,
    /// The problem.
    pub problem: FillProblem,
}

/// A part of an order.
#[derive(Debug)]
pub enum OrderPart {
    /// The paths of all results.
    Paths,
    /// The text for a subject.
    Text(ResultSubject),
}

/// A reason why there is no result.
#[derive(Debug, ThisError)]
pub enum FillProblem {
    /// The path, the template or its result has a mistake.
    #[error("{0}")]
    Mistake(Problem),
    /// The filler has ended.
    #[error("{0}")]
    Ended(FillerEnd),
}

/// The end of a filler that is a process of its own.
#[derive(Debug, ThisError)]
pub enum FillerEnd {
    /// The template took more memory or stack than the process may have.
    #[error("it needs more than {mebibytes} MiB of memory, or is nested too deeply")]
    Exhausted {
        /// The limit of memory.
        mebibytes: u64,
    },
    /// The templates took more time than the process may have.
    #[error("the templates of this run need more than {seconds} seconds of CPU time")]
    Slow {
        /// The limit.
        seconds: u64,
    },
    /// The engine panicked.
    #[error("the template engine cannot fill it in")]
    Panicked,
    /// Something else, which no template can cause.
    #[error("{0}")]
    Failed(String),
}

impl FillProblem {
    /// Returns whether no later template can be filled in.
    pub(super) fn ends_run(&self) -> bool {
        matches!(self, Self::Ended(_) | Self::Mistake(Problem::TooManySteps))
    }
}
