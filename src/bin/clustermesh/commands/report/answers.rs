//! The answers of the other commands, of which the page is made.

use std::ffi::OsStr;

use clap::Args;
use clustermesh::html_report::MeshAnswers;
use serde_json::Value;

use super::captured::{arguments, document, text};
use crate::commands::{capacity, diff, graph, outage, trace, validate, verify};
use crate::failure::CommandResult;
use crate::output::Printer;
use crate::settings::FileOptions;

/// The most packets that are followed.
const PACKETS: usize = 200;

/// Runs the commands with the same files.
///
/// # Errors
/// There is no mesh, or a mistake in the arguments.
pub(super) fn gather(
    files: &FileOptions,
    against: Option<&OsStr>,
    printer: &Printer,
) -> CommandResult<MeshAnswers> {
    let progress = printer.progress("Validating the mesh");
    let args: validate::ValidateArgs = arguments(&["--output", "json"])?;
    let validation = text(|printer| validate::run(&args, files, printer))?;
    drop(progress);
    let _progress = printer.progress("Verifying the mesh");
    let json = ["--output", "json"];
    let with_nodes = ["--output", "json", "--level", "nodes"];
    let verification = answer(&json, verify::run, files)?;
    let traces = match &verification {
        Ok(verification) => traces(files, verification)?,
        Err(_) => String::new(),
    };
    Ok(MeshAnswers {
        validation,
        verification,
        outage: answer(&json, outage::run, files)?,
        capacity: answer(&json, capacity::run, files)?,
        graph: answer(&with_nodes, graph::run, files)?,
        picture: picture(files)?,
        difference: against.map(|it| difference(files, it)).transpose()?,
        traces,
    })
}

/// Returns the document that a command prints, or its failure.
fn answer<A: Args>(
    options: &[&str],
    run: fn(&A, &FileOptions, &mut Printer) -> CommandResult,
    files: &FileOptions,
) -> CommandResult<Result<String, String>> {
    let args: A = arguments(options)?;
    Ok(document(|printer| run(&args, files, printer)))
}

/// Draws the graph; nothing if that fails, which its document explains.
fn picture(files: &FileOptions) -> CommandResult<Option<String>> {
    let args: graph::GraphArgs = arguments(&["--output", "svg"])?;
    let picture = text(|printer| graph::run(&args, files, printer)).ok();
    Ok(picture.filter(|it| it.starts_with("<svg")))
}

fn difference(files: &FileOptions, against: &OsStr) -> CommandResult<Result<String, String>> {
    let mut args: diff::DiffArgs = arguments(&["--output", "json"])?;
    args.against = Some(against.to_owned());
    Ok(document(|printer| diff::run(&args, files, printer)))
}

/// Follows the smallest packet of each failure, in their order.
fn traces(files: &FileOptions, verification: &str) -> CommandResult<String> {
    let document: Value = serde_json::from_str(verification)?;
    let failures = document["failures"].as_array();
    let packets = failures.into_iter().flatten().take(PACKETS).map(|it| {
        let field = |pointer| it.pointer(pointer).and_then(Value::as_str).unwrap_or_default();
        let [from, source] = ["/from/cluster", "/source"].map(field);
        let [to, destination] = ["/to", "/destination"].map(field);
        format!("{from}/{source} {to}/{destination}\n")
    });
    let packets: String = packets.collect();
    if packets.is_empty() {
        return Ok(String::new());
    }
    let args: trace::TraceArgs = arguments(&["--batch"])?;
    Ok(text(|printer| trace::follow(&args, Some(&packets), files, printer))?)
}
