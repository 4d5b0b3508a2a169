//! `feedgate copy`: copies a gateway into a new PostgreSQL database, with another number of cells.

use std::process::ExitCode;

use feedgate_store::{self as store, CopyProgress};

use super::progress::Progress;
use super::{Outcome, SettingsArgs, help, print_line, print_note};
use crate::config::{FEEDGATE_CELLS, FEEDGATE_COPY_FROM, FEEDGATE_DATABASE};

/// Copy a gateway into a new PostgreSQL database, which may have another number of cells. No node
/// may run on either of them. If the copy is interrupted, the same command continues it.
#[derive(Debug, clap::Args)]
#[command(after_long_help = help::COPY.text())]
pub(super) struct CopyArgs {
    #[command(flatten)]
    settings: SettingsArgs,
    #[arg(long, alias = "copy-from", value_name = "URL", help = FEEDGATE_COPY_FROM.option_help())]
    from: Option<String>,
    /// The new database. The same as --database.
    #[arg(long, value_name = "URL", conflicts_with = "database")]
    to: Option<String>,
    #[arg(long, value_name = "NUMBER", help = FEEDGATE_CELLS.option_help())]
    cells: Option<String>,
}

pub(super) async fn run(args: CopyArgs) -> Outcome {
    let mut options = vec![
        (FEEDGATE_COPY_FROM.name, args.from.as_deref()),
        (FEEDGATE_CELLS.name, args.cells.as_deref()),
    ];
    if args.to.is_some() {
        options.push((FEEDGATE_DATABASE.name, args.to.as_deref()));
    }
    let (config, _) = args.settings.load(&options)?;
    let settings =
        config.copy().ok_or("name the database to copy: --from or FEEDGATE_COPY_FROM")?;
    let [from, to] = [&settings.from, &settings.to.url].map(|url| store::database_place(url));
    print_note(format!("copying the database {from} to {to}"));
    let bar = Progress::of_items(0);
    let mut report = |progress: &CopyProgress| {
        bar.set(progress.table, progress.rows, progress.of);
        if !bar.is_visible() && progress.rows >= progress.of {
            print_line(format!("{}: {} of {} rows", progress.table, progress.rows, progress.of));
        }
    };
    let copied = store::copy(&settings, &mut report).await;
    bar.finish();
    let copied = copied?;
    print_line(match copied.was_complete {
        true => "the copy is complete already".to_owned(),
        false => format!("the copy is complete; this run copied {} rows", copied.rows),
    });
    Ok(ExitCode::SUCCESS)
}
