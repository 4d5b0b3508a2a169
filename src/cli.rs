//! The command line: one file per command, and what they share.
//!
//! The output of a command goes to standard output through `print_line`; logs and errors go to
//! standard error, so that the output can be piped.

mod account;
mod backup;
mod check_config;
mod completions;
pub mod consume;
mod copy;
mod demo;
mod event_printer;
mod export;
mod forward;
mod healthcheck;
mod help;
mod import;
mod import_superfeedr;
mod list;
mod listen;
mod man;
mod migrate;
mod new_file;
mod normalize;
mod poll;
mod post;
mod progress;
mod remote;
mod replay;
mod restore;
mod rotate_key;
mod serve;
mod simulate;
mod subscribe;
mod tail;
pub(crate) mod terminal;
mod token;
mod web_url;

use std::error::Error;
use std::io::{self, IsTerminal, Write};
use std::path::PathBuf;
use std::process::ExitCode;

use clap::{Args, Parser, Subcommand};
use rustix::event::{PollFd, PollFlags, Timespec, poll};

use crate::config::{BadConfig, Config, FEEDGATE_DATABASE, SettingSources};

use terminal::escaped;

/// The result of a command. An error is printed with its causes, and the exit code is 1.
type Outcome = Result<ExitCode, Box<dyn Error>>;

/// Polls feeds of any format, normalizes them to Atom, and notifies subscribers of new entries.
#[derive(Debug, Parser)]
#[command(name = "feedgate", version, propagate_version = true)]
#[command(after_long_help = help::PROGRAM.text())]
struct Cli {
    #[command(subcommand)]
    command: Command,
}

#[derive(Debug, Subcommand)]
enum Command {
    Serve(serve::ServeArgs),
    Demo(demo::DemoArgs),
    Normalize(normalize::NormalizeArgs),
    Poll(poll::PollArgs),
    Post(Box<post::PostArgs>),
    Subscribe(Box<subscribe::SubscribeArgs>),
    Unsubscribe(subscribe::UnsubscribeArgs),
    List(list::ListArgs),
    Replay(replay::ReplayArgs),
    Consume(consume::ConsumeArgs),
    Listen(listen::ListenArgs),
    Tail(Box<tail::TailArgs>),
    SimulateSchedule(simulate::SimulateArgs),
    Token(token::TokenArgs),
    Account(account::AccountArgs),
    Migrate(migrate::MigrateArgs),
    Backup(backup::BackupArgs),
    Restore(restore::RestoreArgs),
    Copy(copy::CopyArgs),
    RotateKey(rotate_key::RotateKeyArgs),
    Export(export::ExportArgs),
    Import(import::ImportArgs),
    ImportSuperfeedr(Box<import_superfeedr::ImportSuperfeedrArgs>),
    CheckConfig(check_config::CheckConfigArgs),
    Healthcheck(healthcheck::HealthcheckArgs),
    Completions(completions::CompletionsArgs),
    Man(man::ManArgs),
}

/// Runs the command that the process was started with.
pub async fn run() -> ExitCode {
    let outcome = match Cli::parse().command {
        Command::Serve(args) => serve::run(args).await,
        Command::Demo(args) => demo::run(&args).await,
        Command::Normalize(args) => normalize::run(&args),
        Command::Poll(args) => poll::run(&args).await,
        Command::Post(args) => post::run(*args).await,
        Command::Subscribe(args) => subscribe::subscribe(&args).await,
        Command::Unsubscribe(args) => subscribe::unsubscribe(&args).await,
        Command::List(args) => list::run(&args).await,
        Command::Replay(args) => replay::run(&args).await,
        Command::Consume(args) => consume::run(args).await,
        Command::Listen(args) => listen::run(&args).await,
        Command::Tail(args) => tail::run(&args).await,
        Command::SimulateSchedule(args) => simulate::run(&args),
        Command::Token(args) => token::run(args).await,
        Command::Account(args) => account::run(args).await,
        Command::Migrate(args) => migrate::run(args).await,
        Command::Backup(args) => backup::run(&args),
        Command::Restore(args) => restore::run(&args),
        Command::Copy(args) => copy::run(args).await,
        Command::RotateKey(args) => rotate_key::run(args).await,
        Command::Export(args) => export::run(args).await,
        Command::Import(args) => import::run(args).await,
        Command::ImportSuperfeedr(args) => import_superfeedr::run(&args).await,
        Command::CheckConfig(args) => check_config::run(&args),
        Command::Healthcheck(args) => healthcheck::run(args).await,
        Command::Completions(args) => completions::run(&args),
        Command::Man(args) => man::run(&args),
    };
    outcome.unwrap_or_else(|err| match is_broken_pipe(&*err) {
        true => ExitCode::from(READER_GONE),
        false => {
            print_error(&*err);
            ExitCode::FAILURE
        }
    })
}

/// The exit code of a command whose output nobody reads to its end: that which shells report for programs
/// that the signal SIGPIPE ended.
const READER_GONE: u8 = 141;

/// Returns whether a command failed because the reader of its output has gone.
fn is_broken_pipe(err: &(dyn Error + 'static)) -> bool {
    let mut cause = Some(err);
    while let Some(err) = cause {
        let io_error = err.downcast_ref::<io::Error>();
        if io_error.is_some_and(|err| err.kind() == io::ErrorKind::BrokenPipe) {
            return true;
        }
        cause = err.source();
    }
    false
}

/// The source of the settings, shared by the commands that need them.
#[derive(Debug, Args)]
pub(crate) struct SettingsArgs {
    /// Read settings from this TOML file.
    #[arg(long, value_name = "FILE", global = true)]
    config: Option<PathBuf>,
    #[arg(long, value_name = "URL", global = true, help = FEEDGATE_DATABASE.option_help())]
    database: Option<String>,
}

impl SettingsArgs {
    /// Reads the settings, with further options from the command line.
    pub(crate) fn load(
        &self,
        options: &[(&'static str, Option<&str>)],
    ) -> Result<(Config, SettingSources), BadConfig> {
        let database = [(FEEDGATE_DATABASE.name, self.database.as_deref())];
        let given = database.iter().chain(options);
        let given: Vec<(&'static str, String)> =
            given.filter_map(|(name, value)| Some((*name, (*value)?.to_owned()))).collect();
        Config::load(self.config.clone(), &given)
    }
}

/// Prints one or more lines of a command's output. A reader that stops early, as `head` does, is not
/// an error.
pub(crate) fn print_line(text: impl AsRef<str>) {
    writeln!(io::stdout().lock(), "{}", escaped(text.as_ref())).unwrap_or_default();
}

/// Returns whether the reader of standard output has gone, so that a command that would go on printing
/// can end.
pub(crate) fn is_output_closed() -> bool {
    let stdout = io::stdout();
    let mut polled = [PollFd::new(&stdout, PollFlags::empty())];
    let is_ready = poll(&mut polled, Some(&Timespec::default())).is_ok_and(|ready| ready > 0);
    is_ready && polled[0].revents().contains(PollFlags::ERR)
}

/// Prints a document of a command: to the byte, unless it is displayed on a terminal. A reader that
/// stops early is not an error.
fn print_bytes(document: &[u8]) {
    let mut stdout = io::stdout().lock();
    let printed = match stdout.is_terminal() {
        true => stdout.write_all(escaped(&String::from_utf8_lossy(document)).as_bytes()),
        false => stdout.write_all(document),
    };
    printed.unwrap_or_default();
}

/// Prints a line that is not part of a command's output.
pub(crate) fn print_note(text: impl AsRef<str>) {
    writeln!(io::stderr().lock(), "feedgate: {}", escaped(text.as_ref())).unwrap_or_default();
}

/// Prints which database and which file of settings a command uses, so that a wrong folder or a forgotten
/// setting is noticed.
fn print_database(config: &Config, sources: &SettingSources) {
    print_note(database_in_use(config, sources));
}

/// Says which database and which file of settings a process uses.
fn database_in_use(config: &Config, sources: &SettingSources) -> String {
    let place = feedgate_store::database_place(&config.store().url);
    match &sources.file {
        Some(file) => format!("using the database {place} and the settings in {file}"),
        None => format!("using the database {place}"),
    }
}

fn print_error(err: &dyn Error) {
    writeln!(io::stderr().lock(), "{}", error_text(err)).unwrap_or_default();
}

/// Returns the line that says why a command failed.
fn error_text(err: &dyn Error) -> String {
    let mut text = format!("feedgate: {err}");
    let mut cause = err.source();
    while let Some(err) = cause {
        text.push_str(&format!(": {err}"));
        cause = err.source();
    }
    escaped(&text).into_owned()
}
