//! `feedgate restore`: makes a database of a backup.

use std::path::PathBuf;
use std::process::ExitCode;

use feedgate_store as store;

use super::backup::describe;
use super::progress::Progress;
use super::{Outcome, SettingsArgs, help, print_database, print_line};

/// Restore a backup to the database, which must be missing or empty. No gateway may run on it. A
/// PostgreSQL database is restored by pg_restore; then the command to run is printed, and the exit
/// code is 1.
#[derive(Debug, clap::Args)]
#[command(after_long_help = help::RESTORE.text())]
pub(super) struct RestoreArgs {
    #[command(flatten)]
    settings: SettingsArgs,
    /// A file that "feedgate backup" wrote.
    #[arg(value_name = "FILE")]
    file: PathBuf,
}

pub(super) fn run(args: &RestoreArgs) -> Outcome {
    let (config, sources) = args.settings.load(&[])?;
    let url = config.store().url;
    print_database(&config, &sources);
    let bar = Progress::of_bytes(1);
    let restored = store::restore(&args.file, &url, &|bytes, of| bar.set("", bytes, of));
    bar.finish();
    let counts = restored?;
    print_line(format!("restored {}", describe(counts)));
    Ok(ExitCode::SUCCESS)
}
