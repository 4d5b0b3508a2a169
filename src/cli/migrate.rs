//! `feedgate migrate`: brings the schema up to date without serving, for those who
//! let nobody but an administrator change it.

use std::process::ExitCode;

use crate::app::open_store;

use super::{Outcome, SettingsArgs, print_line};

/// Bring the database's schema up to date. Every start does this too.
#[derive(Debug, clap::Args)]
pub(super) struct MigrateArgs {
    #[command(flatten)]
    settings: SettingsArgs,
}

pub(super) async fn run(args: MigrateArgs) -> Outcome {
    let (config, _) = args.settings.load(&[])?;
    let store = open_store(&config).await?;
    store.ready().await?;
    store.close().await;
    print_line("the schema is up to date");
    Ok(ExitCode::SUCCESS)
}
