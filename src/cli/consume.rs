//! `feedgate consume URL`: reads an archive of entries that never change, each of them
//! once and in order, from wherever it was left (seed 004, "Consuming feeds").
//!
//! It works with any provider that links its documents by `prev-archive` (RFC 5005). All
//! that it remembers is which entry was taken last: its id and what it said, since an
//! update is an entry under an old id (rule N7).

mod handler;
pub mod item;
pub mod pages;
pub mod place;
pub mod walk;

use std::path::PathBuf;
use std::process::ExitCode;
use std::time::Duration;

use tokio::time::sleep;
use url::Url;

use super::Outcome;
use crate::config::Config;
use crate::http::routes::archive::render::Order;

use handler::CommandHandler;
use pages::Web;
use place::PositionFile;
use walk::{CaughtUp, Stopped};

/// Read an archive entry by entry, each once and in order. Ends with 1 if an entry was
/// not taken; the next run begins with that entry.
#[derive(Debug, clap::Args)]
pub(super) struct ConsumeArgs {
    /// The recent document of the archive.
    url: Url,
    /// Begin behind the newest entry with this id. Without it, or a place kept by --state, begin
    /// with the oldest entry there is.
    #[arg(long, value_name = "ID")]
    from: Option<String>,
    /// Keep the place in this file, and begin there.
    #[arg(long, value_name = "FILE")]
    state: Option<PathBuf>,
    /// Run this command for each entry, with the entry on its standard input and its id in
    /// FEEDGATE_ENTRY_ID; FEEDGATE_ENTRY_DELETED is 1 where the publisher took the entry back.
    /// An entry is taken if the command ends with 0. Without it, entries are printed, one a
    /// line.
    #[arg(long, value_name = "CMD")]
    exec: Option<String>,
    /// What an entry is handed over as.
    #[arg(long, value_enum, default_value = "json")]
    format: Format,
    /// The documents list the oldest entry first. Taken for granted where the URL says
    /// order=asc.
    #[arg(long)]
    oldest_first: bool,
    /// Look again every so many seconds, and do not end.
    #[arg(long, value_name = "SECONDS", value_parser = clap::value_parser!(u64).range(1..))]
    every: Option<u64>,
    /// Read settings from this TOML file.
    #[arg(long, value_name = "FILE")]
    config: Option<PathBuf>,
}

/// How an entry is written.
#[derive(Clone, Copy, Debug, PartialEq, Eq, clap::ValueEnum)]
enum Format {
    /// One line of JSON, in Superfeedr's names.
    Json,
    /// An Atom entry.
    Atom,
}

pub(super) async fn run(args: ConsumeArgs) -> Outcome {
    let order = order(&args);
    let (config, _) = Config::load(args.config, &[])?;
    let mut web = Web::new(&config, &args.url, order)?;
    let mut place = PositionFile::open(args.state, args.from)?;
    let handler = CommandHandler::new(args.exec, args.format);
    loop {
        let caught_up = match web.open().await {
            Ok(()) => walk::catch_up(&mut web, &args.url, &mut place, &handler).await,
            Err(err) => Err(err),
        };
        if let Ok(CaughtUp { lost: Some(gone), .. }) = &caught_up {
            super::complain(&Stopped::Dropped(gone.clone()));
        }
        match (caught_up, args.every) {
            (Ok(_), None) => return Ok(ExitCode::SUCCESS),
            (Ok(_), Some(_)) => {}
            // A server that is out for a while is no reason to stop for who looks again.
            (Err(err), Some(_)) if err.is_passing() => super::complain(&err),
            (Err(err), _) => return Err(err.into()),
        }
        sleep(Duration::from_secs(args.every.unwrap_or(1))).await;
    }
}

/// In which order each document lists its entries.
fn order(args: &ConsumeArgs) -> Order {
    let is_ascending =
        args.url.query_pairs().any(|(name, value)| name == "order" && value == "asc");
    if args.oldest_first || is_ascending { Order::OldestFirst } else { Order::NewestFirst }
}
