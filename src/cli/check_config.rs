//! `feedgate check-config`: the settings as they take effect, or all their faults.

use std::process::ExitCode;

use super::{Outcome, Settings, say};

/// Print the settings as they take effect, secrets masked.
#[derive(Debug, clap::Args)]
pub(super) struct Args {
    #[command(flatten)]
    settings: Settings,
}

pub(super) fn run(args: &Args) -> Outcome {
    let (_, effective) = args.settings.load(&[])?;
    for setting in effective {
        let shown = format!("{}={}", setting.name, setting.value);
        say(format!("{shown:<60} # {}", setting.origin.as_str()));
    }
    Ok(ExitCode::SUCCESS)
}
