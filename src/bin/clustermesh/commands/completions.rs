//! `clustermesh completions`

use std::io::Write;

use clap_complete::Shell;

use crate::Outcome;

/// Print shell completions
///
/// Save the output where the shell looks for completions, or load it in the shell's startup file.
#[derive(clap::Args)]
#[command(after_help = EXAMPLES)]
pub(crate) struct Args {
    /// Shell to complete in
    #[arg(value_name = "SHELL")]
    shell: Shell,
}

const EXAMPLES: &str = "\
Examples:
  clustermesh completions bash > ~/.local/share/bash-completion/completions/clustermesh
  clustermesh completions fish > ~/.config/fish/completions/clustermesh.fish
  source <(clustermesh completions zsh)";

pub(crate) fn run(args: &Args, result: &mut impl Write) -> anyhow::Result<Outcome> {
    let mut command = crate::arguments::command();
    let name = command.get_name().to_owned();
    // Not straight to `result`: what writes them panics where a reader has gone.
    let mut script = Vec::new();
    clap_complete::generate(args.shell, &mut command, name, &mut script);
    result.write_all(&script)?;
    result.flush()?;
    Ok(Outcome::Clean)
}
