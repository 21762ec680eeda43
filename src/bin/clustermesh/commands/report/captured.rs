//! Captured results: the JSON documents that other commands print.

use clap::Args;
use clustermesh::diagnostic::escaped;

use crate::failure::CommandResult;
use crate::output::{Printer, ReportFormat};

/// The longest reason of a failure that is shown, in characters.
const SHOWN: usize = 4000;

/// Returns the arguments of a command, as if they were written behind its name.
pub(super) fn arguments<A: Args>(words: &[&str]) -> CommandResult<A> {
    let command = A::augment_args(clap::Command::new("clustermesh").no_binary_name(true));
    let matches = command.try_get_matches_from(words);
    Ok(matches.and_then(|it| A::from_arg_matches(&it))?)
}

/// Runs a command and returns the text that it prints. Mistakes in the input are printed as a document, too.
///
/// # Errors
/// The command cannot run.
pub(super) fn text(run: impl FnOnce(&mut Printer) -> CommandResult) -> anyhow::Result<String> {
    let mut printer = Printer::capturing();
    run(&mut printer).or_else(|it| printer.failure_as(it, ReportFormat::Json))?;
    Ok(String::from_utf8(printer.into_captured())?)
}

/// Runs a command and returns the document that it prints. If it fails, the error is its message.
pub(super) fn document(run: impl FnOnce(&mut Printer) -> CommandResult) -> Result<String, String> {
    text(run).map_err(|error| escaped(&format!("{error:#}"), SHOWN))
}
