//! `feedgate check-config`: the settings as they take effect, or everything that is wrong with them.

use std::process::ExitCode;

use super::{Outcome, SettingsArgs, help, print_line};
use crate::config::reference;

/// Print the settings as they take effect, and where each was set. Secrets are masked.
#[derive(Debug, clap::Args)]
#[command(after_long_help = help::CHECK_CONFIG.text_after(&reference::help()))]
pub(super) struct CheckConfigArgs {
    #[command(flatten)]
    settings: SettingsArgs,
}

pub(super) fn run(args: &CheckConfigArgs) -> Outcome {
    let (_, effective) = args.settings.load(&[])?;
    for setting in effective {
        let assignment = format!("{}={}", setting.name, setting.value);
        print_line(format!("{assignment:<60} # {}", setting.origin.as_str()));
    }
    Ok(ExitCode::SUCCESS)
}
