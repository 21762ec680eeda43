//! The answers of the other commands, of which the page is made.

use std::ffi::OsStr;

use clustermesh::html_report::MeshAnswers;
use serde::Deserialize;

use super::captured::{arguments, document, text};
use crate::commands::{capacity, diff, graph, outage, trace, validate, verify};
use crate::failure::CommandFailure;
use crate::output::Printer;
use crate::settings::FileOptions;

/// The most packets that are followed.
const PACKETS: usize = 200;

/// The failures of a verification; none in a report of mistakes.
#[derive(Deserialize)]
struct FailingPaths {
    #[serde(default)]
    failures: Vec<FailingPacket>,
}

/// The smallest packet of a failure.
#[derive(Deserialize)]
struct FailingPacket {
    from: PacketSource,
    source: String,
    to: String,
    destination: String,
}

/// The sender of a packet.
#[derive(Deserialize)]
struct PacketSource {
    cluster: String,
}

/// Runs the commands with the same files.
///
/// # Errors
/// There is no mesh, or a mistake in the arguments.
pub(super) fn gather(
    files: &FileOptions,
    against: Option<&OsStr>,
    printer: &Printer,
) -> Result<MeshAnswers, CommandFailure> {
    let progress = printer.progress("Validating the mesh");
    let mut args: validate::ValidateArgs = arguments(&["--output", "json"])?;
    args.common.files = files.clone();
    let validation = text(|printer| validate::run(&args, printer))?;
    drop(progress);
    let _progress = printer.progress("Verifying the mesh");
    let verification = verification(files)?;
    let traces = match &verification {
        Ok(verification) => traces(files, verification)?,
        Err(_) => String::new(),
    };
    Ok(MeshAnswers {
        validation,
        verification,
        outage: outage(files)?,
        capacity: capacity(files)?,
        graph: graph(files)?,
        picture: picture(files)?,
        difference: against.map(|it| difference(files, it)).transpose()?,
        traces,
    })
}

fn verification(files: &FileOptions) -> Result<Result<String, String>, CommandFailure> {
    let mut args: verify::VerifyArgs = arguments(&["--output", "json"])?;
    args.common.files = files.clone();
    Ok(document(|printer| verify::run(&args, printer)))
}

fn outage(files: &FileOptions) -> Result<Result<String, String>, CommandFailure> {
    let mut args: outage::OutageArgs = arguments(&["--output", "json"])?;
    args.common.files = files.clone();
    Ok(document(|printer| outage::run(&args, printer)))
}

fn capacity(files: &FileOptions) -> Result<Result<String, String>, CommandFailure> {
    let mut args: capacity::CapacityArgs = arguments(&["--output", "json"])?;
    args.common.files = files.clone();
    Ok(document(|printer| capacity::run(&args, printer)))
}

fn graph(files: &FileOptions) -> Result<Result<String, String>, CommandFailure> {
    let mut args: graph::GraphArgs = arguments(&["--output", "json", "--level", "nodes"])?;
    args.common.files = files.clone();
    Ok(document(|printer| graph::run(&args, printer)))
}

/// Draws the graph; nothing if that fails, which its document explains.
fn picture(files: &FileOptions) -> Result<Option<String>, CommandFailure> {
    let mut args: graph::GraphArgs = arguments(&["--output", "svg"])?;
    args.common.files = files.clone();
    let picture = text(|printer| graph::run(&args, printer)).ok();
    Ok(picture.filter(|it| it.starts_with("<svg")))
}

fn difference(
    files: &FileOptions,
    against: &OsStr,
) -> Result<Result<String, String>, CommandFailure> {
    let mut args: diff::DiffArgs = arguments(&["--output", "json"])?;
    args.against = Some(against.to_owned());
    args.common.files = files.clone();
    Ok(document(|printer| diff::run(&args, printer)))
}

/// Follows the smallest packet of each failure, in their order.
fn traces(files: &FileOptions, verification: &str) -> Result<String, CommandFailure> {
    let FailingPaths { failures } = serde_json::from_str(verification)?;
    let packets = failures.iter().take(PACKETS).map(|it| {
        let FailingPacket {
            from,
            source,
            to,
            destination,
        } = it;
        format!("{}/{source} {to}/{destination}\n", from.cluster)
    });
    let packets: String = packets.collect();
    if packets.is_empty() {
        return Ok(String::new());
    }
    let mut args: trace::TraceArgs = arguments(&["--batch"])?;
    args.common.files = files.clone();
    Ok(text(|printer| trace::run_batch(&args, &packets, printer))?)
}
