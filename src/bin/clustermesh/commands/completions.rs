//! `clustermesh completions`

use std::io::Write;

use clap_complete::Shell;

use crate::{Outcome, completion};

/// Print shell completions
///
/// Save the output where the shell looks for completions, or load it in the shell's startup file. The
/// script calls `clustermesh`, which must be in `PATH`, and also completes the names of clusters, nodes,
/// rules and contexts. Completion starts no other program.
#[derive(clap::Args)]
#[command(after_help = EXAMPLES)]
pub(crate) struct CompletionsArgs {
    /// Shell to complete in
    #[arg(value_name = "SHELL")]
    shell: Shell,
}

const EXAMPLES: &str = "\
Examples:
  clustermesh completions bash > ~/.local/share/bash-completion/completions/clustermesh
  clustermesh completions fish > ~/.config/fish/completions/clustermesh.fish
  source <(clustermesh completions zsh)";

pub(crate) fn run(args: &CompletionsArgs, result: &mut impl Write) -> anyhow::Result<Outcome> {
    result.write_all(&completion::script(args.shell)?)?;
    result.flush()?;
    Ok(Outcome::Clean)
}
