//! `feedgate completions`: the completions of commands and options for a shell.

use std::process::ExitCode;

use clap::CommandFactory;
use clap_complete::Shell;

use super::{Cli, Outcome, help, print_bytes};

/// Print a script that lets a shell complete commands and options.
#[derive(Debug, clap::Args)]
#[command(after_long_help = help::COMPLETIONS.text())]
pub(super) struct CompletionsArgs {
    /// The shell.
    shell: Shell,
}

pub(super) fn run(args: &CompletionsArgs) -> Outcome {
    let mut script = Vec::new();
    clap_complete::generate(args.shell, &mut Cli::command(), "feedgate", &mut script);
    print_bytes(&script);
    Ok(ExitCode::SUCCESS)
}
