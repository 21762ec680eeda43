//! `clustermesh report`

use std::ffi::OsString;
use std::path::PathBuf;

use clap::ValueHint;
use clap::builder::OsStringValueParser;
use clustermesh::html_report;

use crate::Outcome;
use crate::disk::{self, Roots};
use crate::failure::CommandFailure;
use crate::output::Printer;
use crate::settings::CommonOptions;

mod answers;
mod captured;

/// Write everything about the mesh as one page for a browser
///
/// Runs `validate`, `verify --survive 1`, `capacity` and `graph`, and `trace` for paths that fail. Writes the results as
/// one HTML file, which loads nothing from elsewhere: attach it to a CI job or an incident, or open it from a disk. The
/// exit code is 0 if the page was written, also if it lists problems.
#[derive(clap::Args)]
#[command(after_help = EXAMPLES)]
pub(crate) struct ReportArgs {
    /// File to write [default: standard output]
    #[arg(long, value_name = "FILE", value_hint = ValueHint::FilePath)]
    out: Option<PathBuf>,

    /// Also show what changed since a commit, or compared with a rendered folder
    ///
    /// As `clustermesh diff --against`.
    #[arg(long, value_name = "REV|DIR|none", value_parser = OsStringValueParser::new())]
    against: Option<OsString>,

    #[command(flatten)]
    pub(crate) common: CommonOptions,
}

const EXAMPLES: &str = "\
Examples:
  clustermesh report > report.html
  clustermesh report --out report.html
  clustermesh report --against main... --out report.html";

/// Fails if a file is there that is not a page, such as a mesh.
fn refuse_other_file(path: &Path) -> anyhow::Result<()> {
    let Ok(mut file) = File::open(path) else {
        return Ok(());
    };
    let mut start = [0; PAGE_START.len()];
    if file.metadata()?.len() == 0 || file.read_exact(&mut start).is_ok() && start == PAGE_START {
        return Ok(());
    }
    bail!(
        "{} exists and is not an HTML page: delete it, or choose another path",
        input_file::name(path)
    )
}

pub(crate) fn run(args: &ReportArgs, printer: &mut Printer) -> Result<Outcome, CommandFailure> {
    let answers = answers::gather(&args.common.files, args.against.as_deref(), printer)?;
    let page = html_report::page(&answers).map_err(anyhow::Error::from)?;
    match &args.out {
        Some(path) => {
            refuse_other_file(path)?;
            disk::write_file(&Roots::anywhere(), path, page.as_bytes())?;
        }
        None => printer.print(&page)?,
    }
    Ok(Outcome::Clean)
}
