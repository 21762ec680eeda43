//! Outputs: files that users keep for each cluster or mesh, filled in from their templates.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use serde::{Deserialize, Serialize};
use thiserror::Error as ThisError;

use crate::config::{Output, Per};
use crate::diagnostic::{Finding, Quoted, mistake};
use crate::template::Problem;
use crate::text::{CONFLICT, conflict};

pub mod context;
mod filler;
mod record;

pub use context::{Facts, FleetFacts, Values};
pub use filler::{Filler, OrderResults};
pub use record::{Digest, Record};

use record::TakenPaths;

/// Texts by path, each relative to the config's folder and with `/` between names.
pub type TemplateTexts = BTreeMap<String, Arc<str>>;

/// A template that cannot be read.
#[derive(Clone, Debug)]
pub struct UnreadTemplate {
    /// The reason.
    pub reason: String,
    /// The help of a finding.
    pub help: String,
}

/// The number of outputs with a mistake after which no more are filled in.
const FINDINGS: usize = 1000;

/// Returns the files of all outputs, given what returns the text of a template by the path that the config
/// has for it, and what fills in an order.
///
/// # Errors
/// Mistakes in templates, paths and results.
pub fn fill(
    outputs: &[Output],
    facts: &FleetFacts,
    load: impl Fn(&str) -> Result<String, UnreadTemplate>,
    mut fill: impl FnMut(&FillOrder) -> Result<Vec<FilledText>, FillFailure>,
) -> Result<TemplateTexts, Vec<Finding>> {
    let mut texts = TemplateTexts::new();
    let mut places = TakenPaths::default();
    let mut findings = Vec::new();
    for output in outputs {
        if FINDINGS <= findings.len() {
            break;
        }
        let order = match order(output, facts, &load) {
            Ok(order) => order,
            Err(finding) => {
                findings.push(*finding);
                continue;
            }
        };
        match fill(&order) {
            Ok(filled) => {
                let mut own = BTreeSet::new();
                for FilledText { path, text } in filled {
                    if !places.take(&path) {
                        findings.push(repeated(output, &path, own.contains(&path)));
                        break;
                    }
                    own.insert(path.clone());
                    texts.insert(path, Arc::from(text));
                }
            }
            Err(failure) => {
                findings.push(failed(output, &failure));
                if failure.problem.ends_run() {
                    break;
                }
            }
        }
    }
    if findings.is_empty() { Ok(texts) } else { Err(findings) }
}

fn order(
    output: &Output,
    facts: &FleetFacts,
    load: impl Fn(&str) -> Result<String, UnreadTemplate>,
) -> Result<FillOrder, Box<Finding>> {
    let text = load(&output.template).map_err(|UnreadTemplate { reason, help }| {
        let message = format!("cannot read the template {}: {reason}", Quoted(&output.template));
        Box::new(wrong(output, "template", message).help(help))
    })?;
    if conflict(&text).is_some() {
        let message = format!("the template {} has {CONFLICT}", Quoted(&output.template));
        let help = "resolve the conflict by hand, and remove all markers";
        return Err(Box::new(wrong(output, "template", message).help(help)));
    }
    Ok(FillOrder {
        template: output.template.clone(),
        text,
        path: ResultPath::Template(output.path.clone()),
        subjects: facts.subjects(output.per),
    })
}

fn failed(output: &Output, failure: &FillFailure) -> Finding {
    let problem = &failure.problem;
    let template = Quoted(&output.template);
    let (field, what) = match (&failure.part, problem) {
        (_, FillProblem::Ended(FillerEnd::Failed(_)))
        | (OrderPart::Text(ResultSubject::Repository), _) => {
            ("template", format!("template {template}"))
        }
        (OrderPart::Paths, _) => ("path", "invalid output path".to_owned()),
        (OrderPart::Text(ResultSubject::Target(name) | ResultSubject::Mesh(name)), _) => {
            ("template", format!("template {template} for {}", Quoted(name)))
        }
    };
    let finding = wrong(output, field, format!("{what}: {problem}"));
    match help(output, problem) {
        Some(help) => finding.help(help),
        None => finding,
    }
}

/// Returns what a person can change.
fn help(output: &Output, problem: &FillProblem) -> Option<&'static str> {
    match problem {
        FillProblem::Mistake(Problem::Part { .. }) => Some(
            "make the whole value one expression, such as `{{ \"./rendered/\" ~ target.name }}`; \
             where quotes are not allowed, use `{{ target.name | plain }}`",
        ),
        FillProblem::Mistake(Problem::Malformed { .. }) => Some(
            "correct the template; a file of another format needs a path with another ending, such as `.txt`",
        ),
        FillProblem::Mistake(Problem::TooLarge) if output.per == Per::Repository => {
            Some("write several smaller files, with `per: Target` or `per: Mesh`")
        }
        FillProblem::Mistake(Problem::TooManySteps)
        | FillProblem::Ended(FillerEnd::Slow { .. })
            if output.per == Per::Target =>
        {
            Some("write what all targets share to one file, with `per: Repository`")
        }
        FillProblem::Ended(FillerEnd::Exhausted { .. }) => Some(
            "write each text where it belongs, instead of a variable that grows with each step",
        ),
        _ => None,
    }
}

/// Reports a path that is taken: by the same output for another subject, or by another output.
fn repeated(output: &Output, path: &str, is_own: bool) -> Finding {
    let path = Quoted(path);
    let (noun, value) = match output.per {
        Per::Mesh => ("mesh", "mesh"),
        Per::Target | Per::Repository => ("cluster", "target"),
    };
    if !is_own {
        let message = format!("another output is also at {path}, or in it as a folder");
        return wrong(output, "path", message).help("give each output its own path");
    }
    wrong(output, "path", format!("{path} would be written once for each {noun}")).help(format!(
        "write `per: Repository` for one file, or add `{{{{ {value}.name }}}}` to the path"
    ))
}

/// Returns whether an output can be written at a path.
pub fn is_path(path: &str) -> bool {
    record::check_path(path).is_ok()
}

/// Returns a finding about a file that cannot be an output.
pub fn wrong_output(message: String) -> Finding {
    Finding::new(&mistake::INVALID_OUTPUT, message)
}

fn wrong(output: &Output, field: &str, message: String) -> Finding {
    wrong_output(message).at(output.place.key(field), "")
}

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
    fn ends_run(&self) -> bool {
        matches!(self, Self::Ended(_) | Self::Mistake(Problem::TooManySteps))
    }
}
