//! `feedgate migrate`: migrates the schema without serving, for deployments in which only an
//! administrator may change it.

use std::process::ExitCode;

use crate::app::open_store;

use super::serve::start_logging;
use super::{Outcome, SettingsArgs, help, print_database, print_line};

/// Migrate the schema of the database to the current version. Every start does this, too.
#[derive(Debug, clap::Args)]
#[command(after_long_help = help::MIGRATE.text())]
pub(super) struct MigrateArgs {
    #[command(flatten)]
    settings: SettingsArgs,
}

pub(super) async fn run(args: MigrateArgs) -> Outcome {
    let (config, sources) = args.settings.load(&[])?;
    print_database(&config, &sources);
    let log = start_logging(&config)?;
    let opened = open_store(&config).await;
    log.flush();
    let store = opened?;
    store.ready().await?;
    store.close().await;
    print_line("the schema is up to date");
    Ok(ExitCode::SUCCESS)
}
