//! `clustermesh completions`

use clap::Command;
use clap_complete::Shell;

use crate::Outcome;
use crate::failure::CommandResult;
use crate::output::Printer;

/// Print shell completions
///
/// Add the line for your shell to its startup file. The script completes commands, options, their fixed values,
/// and paths.
#[derive(clap::Args)]
#[command(after_help = EXAMPLES)]
pub(crate) struct CompletionsArgs {
    /// Shell to complete in
    #[arg(value_name = "SHELL")]
    shell: Shell,
}

const EXAMPLES: &str = "\
Examples:
  source <(clustermesh completions bash)     in ~/.bashrc
  source <(clustermesh completions zsh)      in ~/.zshrc, below compinit
  clustermesh completions fish | source      in ~/.config/fish/config.fish";

/// Prints the script that completes the arguments of a program.
pub(crate) fn run(
    args: &CompletionsArgs,
    mut program: Command,
    printer: &mut Printer,
) -> CommandResult {
    let mut script = Vec::new();
    clap_complete::generate(args.shell, &mut program, "clustermesh", &mut script);
    printer.write(&script)?;
    Ok(Outcome::Clean)
}
