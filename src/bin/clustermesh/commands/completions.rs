//! `clustermesh completions`

use std::io;

use clap_complete::Shell;
use clap_complete::env::Shells;

use crate::Outcome;
use crate::failure::CommandFailure;
use crate::output::Printer;

/// Print shell completions
///
/// Add the line for your shell to its startup file. The script calls `clustermesh`, which must be in
/// `PATH`, and also completes the names of clusters, nodes, rules and contexts. Completion starts no
/// other program.
#[derive(clap::Args)]
#[command(after_help = EXAMPLES)]
pub(crate) struct CompletionsArgs {
    /// Shell to complete in
    #[arg(value_name = "SHELL")]
    shell: Shell,
}

/// The variable with which a script calls the program. It has our prefix, so that a `COMPLETE` in the
/// environment of a CI job means nothing to us.
pub(crate) const VARIABLE: &str = "CLUSTERMESH_COMPLETE";

/// The name of the program in scripts.
pub(crate) const PROGRAM: &str = "clustermesh";

/// The script for bash. That of `clap_complete` cannot complete behind `=` and `:`; this one calls the
/// program with the same variables.
const BASH: &str = include_str!("completions/clustermesh.bash");

const EXAMPLES: &str = "\
Examples:
  source <(clustermesh completions bash)     in ~/.bashrc
  source <(clustermesh completions zsh)      in ~/.zshrc, below compinit
  clustermesh completions fish | source      in ~/.config/fish/config.fish";

pub(crate) fn run(
    args: &CompletionsArgs,
    printer: &mut Printer,
) -> Result<Outcome, CommandFailure> {
    printer.write(&script(args.shell)?)?;
    Ok(Outcome::Clean)
}

/// Writes the script for a shell.
fn script(shell: Shell) -> io::Result<Vec<u8>> {
    if shell == Shell::Bash {
        return Ok(BASH.into());
    }
    let name = shell.to_string();
    let shells = Shells::builtins();
    let shell = shells.completer(&name).ok_or(io::ErrorKind::Unsupported)?;
    let mut script = Vec::new();
    shell.write_registration(VARIABLE, PROGRAM, PROGRAM, PROGRAM, &mut script)?;
    Ok(script)
}
