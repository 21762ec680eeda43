//! `clustermesh man`

use std::io;

use clap::Command;
use clap::builder::PossibleValuesParser;
use clap_mangen::Man;
use clap_mangen::roff::{Roff, roman};

use crate::failure::CommandResult;
use crate::output::Printer;
use crate::{Outcome, command_groups};

/// Print a manual page
///
/// Without COMMAND, the page of the program is printed, which refers to the others.
#[derive(clap::Args)]
#[command(after_help = EXAMPLES)]
pub(crate) struct ManArgs {
    /// Command to describe
    #[arg(value_name = "COMMAND", value_parser = PossibleValuesParser::new(command_groups::names()))]
    command: Option<String>,
}

const EXAMPLES: &str = "\
Examples:
  clustermesh man render | man -l -
  clustermesh man > /usr/local/share/man/man1/clustermesh.1";

/// Prints a page of a program.
pub(crate) fn run(args: &ManArgs, program: Command, printer: &mut Printer) -> CommandResult {
    // There is no page for `help`.
    let mut program = program.disable_help_subcommand(true);
    // So that commands know the options of every command, and their full names.
    program.build();
    let wanted = args.command.as_deref();
    let command = wanted.and_then(|name| program.find_subcommand(name).cloned());
    printer.write(&page(command.unwrap_or(program))?)?;
    Ok(Outcome::Clean)
}

/// Returns the page of a command. The end of its help is printed verbatim, because it has columns
/// and commands.
fn page(command: Command) -> io::Result<Vec<u8>> {
    let end = command
        .get_after_long_help()
        .or(command.get_after_help())
        .map(ToString::to_string)
        .unwrap_or_default();
    let command = command.after_help(None::<&str>).after_long_help(None::<&str>);
    let mut page = Vec::new();
    let source = format!("clustermesh {}", env!("CARGO_PKG_VERSION"));
    Man::new(command).source(source).render(&mut page)?;
    let mut rest = Roff::new();
    rest.control("nf", []);
    for line in end.lines() {
        match line.strip_suffix(':').filter(|it| !it.starts_with(' ')) {
            Some(heading) => rest
                .control("fi", [])
                .control("SH", [heading.to_uppercase().as_str()])
                .control("nf", []),
            None => rest.text([roman(line)]),
        };
    }
    rest.control("fi", []);
    page.extend(rest.to_roff().into_bytes());
    Ok(page)
}
