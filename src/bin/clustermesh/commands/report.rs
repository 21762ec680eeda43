//! `clustermesh report`

use std::ffi::OsString;
use std::path::{Path, PathBuf};

use anyhow::bail;
use clap::ValueHint;
use clap::builder::OsStringValueParser;

use crate::disk::{self, Roots};
use crate::failure::CommandResult;
use crate::output::Printer;
use crate::settings::FileOptions;
use crate::{Outcome, input_file};

mod answers;

/// The beginning of each page.
const PAGE_START: &str = "<!doctype html>";

/// The largest file that is replaced, in bytes.
const LARGEST: u64 = 64 << 20;

/// Write an HTML report about the mesh
///
/// Runs `validate`, `verify`, `outage`, `capacity` and `graph`, and `trace` for paths that fail. Writes the results as
/// one HTML file, which loads nothing from elsewhere: attach it to a CI job or an incident, or open it from a disk. The
/// exit code is 1 if the page shows an error or the change is unknown; the page is written nevertheless.
#[derive(clap::Args)]
#[command(after_help = EXAMPLES)]
pub(crate) struct ReportArgs {
    /// File to write [default: standard output]
    #[arg(long, value_name = "FILE", value_hint = ValueHint::FilePath)]
    out: Option<PathBuf>,

    /// Also show the changes since a commit, or compared with a rendered folder
    ///
    /// Takes the same values as `clustermesh diff --against`.
    #[arg(long, value_name = "REV|DIR|none", value_parser = OsStringValueParser::new())]
    against: Option<OsString>,
}

const EXAMPLES: &str = "\
Examples:
  clustermesh report > report.html
  clustermesh report --out report.html
  clustermesh report --against main... --out report.html";

/// Fails if a file is there that is not a page, such as a mesh.
fn refuse_other_file(path: &Path) -> anyhow::Result<()> {
    let roots = Roots::anywhere();
    if !disk::is_there(&roots, path)? {
        return Ok(());
    }
    if disk::is_folder(&roots, path)? {
        bail!("{} is a folder: name a file in it, such as `report.html`", input_file::name(path));
    }
    let text = disk::read_text(&roots, path, LARGEST)?;
    if text.is_empty() || text.starts_with(PAGE_START) {
        return Ok(());
    }
    bail!(
        "{} exists and is not an HTML page: delete it, or choose another path",
        input_file::name(path)
    )
}

pub(crate) fn run(args: &ReportArgs, files: &FileOptions, printer: &mut Printer) -> CommandResult {
    let page = answers::gather(files, args.against.as_deref(), printer)?;
    match &args.out {
        Some(path) => {
            refuse_other_file(path)?;
            disk::sweep(&Roots::anywhere(), disk::folder_of(path))?;
            disk::write_file(&Roots::anywhere(), path, page.html.as_bytes())?;
        }
        None => printer.print(&page.html)?,
    }
    if let Some(problem) = &page.problem {
        printer.note(problem);
    }
    Ok(Outcome::findings_if(page.problem.is_some()))
}
