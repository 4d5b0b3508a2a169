//! `feedgate check-config`: the settings as they take effect, or everything that is wrong with them.

use std::process::ExitCode;

use super::{Outcome, SettingsArgs, help, print_database, print_line, print_note};
use crate::config::{SECRETS_IN_CLEAR, reference};
use crate::http::serve::listener;

/// Print the settings as they take effect, and where each was set. Secrets are masked. Fails if the folder
/// of the database or the files of the certificate are missing.
#[derive(Debug, clap::Args)]
#[command(after_long_help = help::CHECK_CONFIG.text_after(&reference::help()))]
pub(super) struct CheckConfigArgs {
    #[command(flatten)]
    settings: SettingsArgs,
}

pub(super) fn run(args: &CheckConfigArgs) -> Outcome {
    let (config, sources) = args.settings.load(&[])?;
    for setting in &sources.effective {
        let assignment = format!("{}={}", setting.name, setting.value);
        print_line(format!("{assignment:<60} # {}", setting.origin.as_str()));
    }
    feedgate_store::check_folder(&config.store().url)?;
    listener::check(&config.listener())?;
    print_note(match &config.secrets_key {
        Some(key) => format!("secrets in the database are encrypted with the key {}", key.id()),
        None => SECRETS_IN_CLEAR.to_owned(),
    });
    print_database(&config, &sources);
    sources.overridden.iter().for_each(print_note);
    Ok(ExitCode::SUCCESS)
}
