//! `feedgate import-superfeedr`: moves the subscriptions of an account from Superfeedr to a gateway.
//!
//! There are three steps, each a run of the command or several: to import, to compare, and to switch.
//! Both services speak the same API, so one client serves both ([`account_api`]). Until the switch,
//! Superfeedr sends, and the gateway collects entries for a placeholder that is never called, so that no
//! callback receives an entry from both. What was done is in a file ([`journal`]): a run goes on where
//! another one ended, wherever that was. Nothing ends at Superfeedr before the gateway has its
//! subscription.

mod account_api;
mod compare;
mod comparison;
mod import;
mod journal;
mod report;
mod source;
mod switch;

use std::error::Error;
use std::path::PathBuf;
use std::process::ExitCode;
use std::time::Duration;

use url::Url;

use super::remote::{self, RemoteArgs, TRY_AGAIN};
use super::{Outcome, help, print_note};

use account_api::{AccountApi, AccountApiError};
use journal::{BadJournal, ImportJournal};
use report::ResultPrinter;

/// The environment variable with the credentials at Superfeedr.
const SUPERFEEDR_CREDENTIALS: &str = "SUPERFEEDR_TOKEN";

/// Move the subscriptions of an account from Superfeedr to a gateway: first import them, then compare what
/// both find, then switch.
#[derive(Debug, clap::Args)]
#[command(after_long_help = help::IMPORT_SUPERFEEDR.text())]
pub(super) struct ImportSuperfeedrArgs {
    #[command(flatten)]
    remote: RemoteArgs,
    /// The file in which the command stores what it has done. Give each run the same one.
    #[arg(long, value_name = "FILE")]
    state: PathBuf,
    /// The URL of Superfeedr's API.
    #[arg(long, value_name = "URL", default_value = "https://push.superfeedr.com/")]
    superfeedr: Url,
    /// Import the callbacks too, which are then notified by both until the switch. Without it, feeds are
    /// subscribed to with a placeholder, and callbacks are called by the gateway after the switch only.
    #[arg(long, conflicts_with_all = ["compare", "switch"])]
    deliver: bool,
    /// Compare the newest entries of each imported feed at both.
    #[arg(long, conflicts_with = "switch")]
    compare: bool,
    /// Compare every hour for this long, such as 90m, 12h or 7d.
    #[arg(long = "for", value_name = "DURATION", requires = "compare", value_parser = duration)]
    lasts: Option<Duration>,
    /// Subscribe the callbacks here, and unsubscribe them at Superfeedr, where the last comparison
    /// found no differences.
    #[arg(long)]
    switch: bool,
    /// Switch all feeds that were imported, also those with differences.
    #[arg(long, requires = "switch")]
    despite_differences: bool,
}

/// Both services, and what they are told.
struct MovedAccount {
    superfeedr: AccountApi,
    gateway: AccountApi,
    /// The callback of subscriptions that collect entries and notify nobody.
    placeholder: String,
}

/// The command cannot go on.
#[derive(Debug, thiserror::Error)]
enum MoveError {
    #[error(transparent)]
    Api(#[from] AccountApiError),
    #[error(transparent)]
    Journal(#[from] BadJournal),
}

pub(super) async fn run(args: &ImportSuperfeedrArgs) -> Outcome {
    let (account, mut journal) = open(args)?;
    let mut printer = ResultPrinter::new(args.remote.json);
    let result = if args.compare {
        compare::compare(&account, &mut journal, args.lasts, &mut printer).await
    } else if args.switch {
        switch::switch(&account, &mut journal, args.despite_differences, &mut printer).await
    } else {
        import::import(&account, &mut journal, args.deliver, &mut printer).await
    };
    match result {
        Ok(()) if printer.has_exceptions() => Ok(ExitCode::FAILURE),
        Ok(()) => Ok(ExitCode::SUCCESS),
        Err(MoveError::Api(err)) if err.is_passing() => {
            print_note(format!("{err}; run the command again to go on"));
            Ok(ExitCode::from(TRY_AGAIN))
        }
        Err(err) => Err(err.into()),
    }
}

/// Opens both services and the file, which must be of these accounts.
fn open(args: &ImportSuperfeedrArgs) -> Result<(MovedAccount, ImportJournal), Box<dyn Error>> {
    let missing = |variable: &str| format!("set {variable}=LOGIN:TOKEN");
    let there = remote::credentials_in(SUPERFEEDR_CREDENTIALS)?
        .ok_or_else(|| missing(SUPERFEEDR_CREDENTIALS))?;
    let here = remote::given_credentials(args.remote.user.as_ref())?
        .ok_or_else(|| format!("{}, or use --user", missing("FEEDGATE_TOKEN")))?;
    let client = args.remote.client()?;
    let account_name = |url: &Url, login: &str| format!("{login} at {url}");
    let names = [
        account_name(&args.superfeedr, there.login()),
        account_name(&args.remote.server, here.login()),
    ];
    let journal = ImportJournal::open(&args.state, names)?;
    let mut placeholder = args.remote.server.clone();
    placeholder.set_path("/dev/null");
    let account = MovedAccount {
        superfeedr: AccountApi::new(client.clone(), &args.superfeedr, there.to_header()?),
        gateway: AccountApi::new(client, &args.remote.server, here.to_header()?),
        placeholder: placeholder.into(),
    };
    Ok((account, journal))
}

fn duration(text: &str) -> Result<Duration, String> {
    const UNITS: [(char, u64); 3] = [('m', 60), ('h', 3_600), ('d', 86_400)];
    let read = UNITS.iter().find_map(|(unit, seconds)| {
        let number: u32 = text.strip_suffix(*unit)?.parse().ok()?;
        (number > 0).then(|| Duration::from_secs(u64::from(number) * seconds))
    });
    read.ok_or_else(|| "give minutes, hours or days, such as 90m, 12h or 7d".to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn durations_are_minutes_hours_or_days() {
        let cases = [("90m", Some(5_400)), ("2h", Some(7_200)), ("7d", Some(604_800))];
        for (text, want) in cases.into_iter().chain([("0d", None), ("5", None), ("d", None)]) {
            assert_eq!(duration(text).ok(), want.map(Duration::from_secs), "{text}");
        }
    }
}
