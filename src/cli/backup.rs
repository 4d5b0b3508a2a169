//! `feedgate backup`: writes a copy of the database to a file, while gateways run.

use std::path::PathBuf;
use std::process::ExitCode;

use feedgate_store::{self as store, BackupCounts};

use super::progress::Progress;
use super::{Outcome, SettingsArgs, help, print_database, print_line};

/// Write a backup of the database to a file. Gateways may go on running. A PostgreSQL database is
/// backed up by pg_dump; then the command to run is printed, and the exit code is 1.
#[derive(Debug, clap::Args)]
#[command(after_long_help = help::BACKUP.text())]
pub(super) struct BackupArgs {
    #[command(flatten)]
    settings: SettingsArgs,
    /// The backup, which must not exist yet.
    #[arg(value_name = "FILE")]
    file: PathBuf,
}

pub(super) fn run(args: &BackupArgs) -> Outcome {
    let (config, sources) = args.settings.load(&[])?;
    let url = config.store().url;
    print_database(&config, &sources);
    let bar = Progress::of_bytes(1);
    let written = store::back_up(&url, &args.file, &|bytes, of| bar.set("", bytes, of));
    bar.finish();
    let counts = written?;
    print_line(format!("{} has {}", args.file.display(), describe(counts)));
    Ok(ExitCode::SUCCESS)
}

/// Returns the counts in words.
pub(super) fn describe(counts: BackupCounts) -> String {
    let plural = |count: u64, one: &str, more: &str| match count {
        1 => format!("1 {one}"),
        count => format!("{count} {more}"),
    };
    let feeds = plural(counts.feeds, "feed", "feeds");
    let subscriptions = plural(counts.subscriptions, "subscription", "subscriptions");
    let entries = plural(counts.entries, "entry", "entries");
    format!("{feeds}, {subscriptions} and {entries}")
}
