//! `feedgate migrate`: brings the schema up to date without serving, for those who
//! let nobody but an administrator change it.

use std::process::ExitCode;

use crate::app::open_store;

use super::{Outcome, Settings, say};

/// Bring the database's schema up to date. Every start does this too.
#[derive(Debug, clap::Args)]
pub(super) struct Args {
    #[command(flatten)]
    settings: Settings,
}

pub(super) async fn run(args: Args) -> Outcome {
    let (config, _) = args.settings.load(&[])?;
    let store = open_store(&config).await?;
    store.ready().await?;
    store.close().await;
    say("the schema is up to date");
    Ok(ExitCode::SUCCESS)
}
