//! `mink completions`: what a shell needs to complete our words.
//!
//! Lives on: the main thread.
use crate::cli::Cli;
use crate::failure::Failure;
use clap::{Args, CommandFactory};
use std::io::Write;

const EXAMPLES: &str = "\
Examples:
  mink completions bash > ~/.local/share/bash-completion/completions/mink
  mink completions zsh > ~/.zfunc/_mink
  mink completions fish > ~/.config/fish/completions/mink.fish";

#[derive(Debug, Args)]
#[command(after_help = EXAMPLES)]
pub(crate) struct CompletionsArgs {
    /// The shell
    shell: clap_complete::Shell,
}

pub(crate) fn run(args: &CompletionsArgs) -> Result<(), Failure> {
    let mut script = Vec::new();
    clap_complete::generate(args.shell, &mut Cli::command(), "mink", &mut script);
    Ok(std::io::stdout().write_all(&script)?)
}
