//! `feedgate consume URL`: reads the entries of an archive, each once and in order, and continues
//! where the last run stopped (seed 004, "Consuming feeds").
//!
//! Any provider that links its documents by `prev-archive` (RFC 5005) is supported. The only state
//! is the last entry that was handled: its id, and a hash of its content, because an update has the
//! id of the entry that it replaces (N7).

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

use super::web_url::web_url;
use super::{Outcome, help};
use crate::config::Config;
use crate::http::routes::archive::render::Order;

use handler::CommandHandler;
use pages::Web;
use place::PositionFile;
use walk::{CaughtUp, Stopped};

/// Read an archive entry by entry, each once and in order. Exits with 1 if an entry was not
/// handled; the next run begins with that entry.
#[derive(Debug, clap::Args)]
#[command(after_long_help = help::CONSUME.text())]
pub(super) struct ConsumeArgs {
    /// The URL of the recent document of the archive. That of a private archive contains the login and
    /// the token of an account, which are sent to this server only.
    #[arg(value_parser = web_url)]
    url: Url,
    /// Begin after the newest entry with this id. Without it, or a position saved by --state, begin
    /// with the oldest entry of the archive.
    #[arg(long, value_name = "ID")]
    from: Option<String>,
    /// Save the position in this file, and begin at it.
    #[arg(long, value_name = "FILE")]
    state: Option<PathBuf>,
    /// Run this command for each entry, with the entry on standard input and its id in
    /// FEEDGATE_ENTRY_ID. FEEDGATE_ENTRY_DELETED is 1 if the publisher deleted the entry. An entry
    /// counts as handled if the command exits with 0. Without this option, entries are printed, one
    /// per line, until a reader such as "head" closes the output.
    #[arg(long, value_name = "CMD")]
    exec: Option<String>,
    /// The format in which entries are passed on.
    #[arg(long, value_enum, default_value = "json")]
    format: Format,
    /// The documents list the oldest entry first. Assumed if the URL contains order=asc.
    #[arg(long)]
    oldest_first: bool,
    /// Check for new entries every so many seconds, and do not exit.
    #[arg(long, value_name = "SECONDS", value_parser = clap::value_parser!(u64).range(1..))]
    every: Option<u64>,
    /// Read settings from this TOML file.
    #[arg(long, value_name = "FILE")]
    config: Option<PathBuf>,
}

/// The format of an entry.
#[derive(Clone, Copy, Debug, PartialEq, Eq, clap::ValueEnum)]
enum Format {
    /// One line of JSON, with the field names of Superfeedr.
    Json,
    /// An Atom entry.
    Atom,
}

pub(super) async fn run(args: ConsumeArgs) -> Outcome {
    let order = order(&args);
    let (config, _) = Config::load(args.config, &[])?;
    let mut web = Web::new(&config, &args.url, order)?;
    let recent = web.recent();
    let mut place = PositionFile::open(args.state, args.from)?;
    let handler = CommandHandler::new(args.exec, args.format);
    loop {
        let caught_up = match web.open().await {
            Ok(()) => walk::catch_up(&mut web, &recent, &mut place, &handler).await,
            Err(err) => Err(err),
        };
        if let Ok(CaughtUp { lost: Some(gone), .. }) = &caught_up {
            super::print_error(&Stopped::Dropped(gone.clone()));
        }
        match (caught_up, args.every) {
            // A reader that stops early, as "head" does, has what it needs.
            (Err(Stopped::OutputClosed(_)), _) | (Ok(_), None) => return Ok(ExitCode::SUCCESS),
            (Ok(_), Some(_)) => {}
            // With --every, a temporary failure of the server does not end the command.
            (Err(err), Some(_)) if err.is_passing() => super::print_error(&err),
            (Err(err), _) => return Err(err.into()),
        }
        sleep(Duration::from_secs(args.every.unwrap_or(1))).await;
    }
}

/// Returns the order in which each document lists its entries.
fn order(args: &ConsumeArgs) -> Order {
    let is_ascending =
        args.url.query_pairs().any(|(name, value)| name == "order" && value == "asc");
    if args.oldest_first || is_ascending { Order::OldestFirst } else { Order::NewestFirst }
}
