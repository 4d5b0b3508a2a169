//! `feedgate account`: manages the accounts that store feeds and sign in with a password.
//!
//! A password is never a command-line argument, because every user of the machine can list the
//! arguments of all processes. The password is read from standard input. At a terminal, which would
//! display it, a password is generated instead and printed once.

use std::io::{self, BufRead, IsTerminal};
use std::process::ExitCode;

use clap::Subcommand;
use serde_json::json;

use crate::app::{StartError, open_existing_store};
use crate::authoring::hash_password;
use crate::jobs::runner;
use feedgate_core::account::AccountHoldings;
use feedgate_core::password::Password;
use feedgate_core::stored_file::PathSegment;
use feedgate_store::Store;

use super::{Outcome, SettingsArgs, help, print_database, print_line};

/// The header of the list.
const HEADER: &str = "LOGIN\tCREATED\tPASSWORD\tTOKENS\tFILES\tBYTES\tSTATE";

/// Create, list, deactivate and remove accounts.
#[derive(Debug, clap::Args)]
#[command(after_long_help = help::ACCOUNT.text())]
pub(super) struct AccountArgs {
    #[command(flatten)]
    settings: SettingsArgs,
    #[command(subcommand)]
    what: What,
}

#[derive(Debug, Subcommand)]
enum What {
    /// Create an account. The password is the first line of standard input; at a terminal, one is
    /// generated and printed.
    Add(AccountLogin),
    /// Change the password of an account, which is read or generated as for "add".
    Passwd(AccountLogin),
    /// List all accounts.
    List {
        /// Print one JSON object per line.
        #[arg(long)]
        json: bool,
    },
    /// Deactivate an account: its credentials are refused, and its deliveries are paused until it is
    /// activated.
    Deactivate {
        /// The login of the account.
        login: String,
    },
    /// Activate an account that was deactivated: its deliveries continue where they were paused.
    Activate {
        /// The login of the account.
        login: String,
    },
    /// Remove an account with its password, tokens, files and subscriptions, for good. At a
    /// terminal, this has to be confirmed.
    Remove {
        /// The login of the account.
        login: String,
        /// Do not ask for confirmation.
        #[arg(long)]
        yes: bool,
    },
}

#[derive(Debug, clap::Args)]
struct AccountLogin {
    /// The login of the account; it is part of the addresses of stored feeds.
    #[arg(value_parser = login)]
    login: String,
    /// Generate a password even if standard input is not a terminal.
    #[arg(long)]
    generate: bool,
}

pub(super) async fn run(args: AccountArgs) -> Outcome {
    let (config, sources) = args.settings.load(&[])?;
    // The password is read before the store is opened, so that an invalid one changes nothing.
    let password = match &args.what {
        What::Add(whose) | What::Passwd(whose) => Some(password(whose)?),
        What::List { .. }
        | What::Remove { .. }
        | What::Deactivate { .. }
        | What::Activate { .. } => None,
    };
    print_database(&config, &sources);
    let store = open_existing_store(&config).await?;
    let done = carry_out(&store, &args.what, password).await;
    store.close().await;
    done
}

async fn carry_out(store: &Store, what: &What, password: Option<(Password, bool)>) -> Outcome {
    let now = runner::now();
    match (what, password) {
        (What::Add(whose), Some((password, is_generated))) => {
            let hash = hash_password(&password).map_err(StartError::Random)?;
            if !store.create_account(&whose.login, &hash, now).await? {
                let login = &whose.login;
                return fail(&format!(
                    "account {login} already exists; use \"passwd\" to change its password"
                ));
            }
            report(&whose.login, &password, is_generated, "has been created");
        }
        (What::Passwd(whose), Some((password, is_generated))) => {
            let hash = hash_password(&password).map_err(StartError::Random)?;
            if !store.set_password(&whose.login, &hash).await? {
                return fail(&format!("account {} does not exist", whose.login));
            }
            report(&whose.login, &password, is_generated, "has a new password");
        }
        (What::Remove { login, yes }, _) => return remove(store, login, *yes).await,
        (What::Deactivate { login }, _) => {
            let Some(paused) = store.deactivate_account(login, now).await? else {
                return missing(login);
            };
            let paused = plural(paused, "subscription");
            print_line(format!("account {login} is deactivated, and {paused} paused"));
        }
        (What::Activate { login }, _) => {
            let Some(resumed) = store.activate_account(login, now).await? else {
                return missing(login);
            };
            let resumed = plural(resumed, "subscription");
            print_line(format!("account {login} is active, and {resumed} resumed"));
        }
        (What::List { json: true }, _) => list_as_json(store).await?,
        (What::List { .. } | What::Add(_) | What::Passwd(_), _) => list(store).await?,
    }
    Ok(ExitCode::SUCCESS)
}

async fn remove(store: &Store, login: &str, is_confirmed: bool) -> Outcome {
    if !is_confirmed && io::stdin().is_terminal() {
        let Some(holdings) = store.account_holdings(login).await? else {
            return missing(login);
        };
        let counts = counts(holdings);
        print_line(format!("account {login} has {counts}. All are deleted, and the login"));
        print_line("cannot be used again. Type the login to confirm:");
        let mut line = String::new();
        io::stdin().lock().read_line(&mut line)?;
        if line.trim() != login {
            return fail("nothing was removed");
        }
    }
    let Some(removed) = store.remove_account(login, runner::now()).await? else {
        return missing(login);
    };
    print_line(format!("account {login} has been removed, with {}", counts(removed)));
    Ok(ExitCode::SUCCESS)
}

fn counts(holdings: AccountHoldings) -> String {
    let AccountHoldings { subscriptions, tokens, files } = holdings;
    let (tokens, files) = (plural(tokens, "token"), plural(files, "file"));
    format!("{}, {tokens} and {files}", plural(subscriptions, "subscription"))
}

fn plural(count: u64, noun: &str) -> String {
    match count {
        1 => format!("1 {noun}"),
        count => format!("{count} {noun}s"),
    }
}

fn missing(login: &str) -> Outcome {
    fail(&format!("account {login} does not exist"))
}

async fn list(store: &Store) -> Result<(), Box<dyn std::error::Error>> {
    let accounts = store.list_accounts().await?;
    print_line(if accounts.is_empty() { "no accounts" } else { HEADER });
    for account in accounts {
        let made = account.created_at.format("%Y-%m-%d");
        let password = if account.has_password { "yes" } else { "no" };
        let (login, tokens) = (account.login, account.tokens);
        let (files, bytes) = (account.files, account.bytes);
        let state = match (account.is_removed, account.is_deactivated) {
            (true, _) => "removed",
            (false, true) => "deactivated",
            (false, false) => "active",
        };
        print_line(format!("{login}\t{made}\t{password}\t{tokens}\t{files}\t{bytes}\t{state}"));
    }
    Ok(())
}

async fn list_as_json(store: &Store) -> Result<(), Box<dyn std::error::Error>> {
    for account in store.list_accounts().await? {
        let fields = json!({
            "login": account.login,
            "created": account.created_at.to_rfc3339(),
            "password": account.has_password,
            "tokens": account.tokens,
            "files": account.files,
            "bytes": account.bytes,
            "removed": account.is_removed,
            "deactivated": account.is_deactivated,
        });
        print_line(fields.to_string());
    }
    Ok(())
}

/// Prints a generated password, or that the account was changed.
fn report(login: &str, password: &Password, is_generated: bool, what: &str) {
    match is_generated {
        true => print_line(format!("{login}:{}", password.reveal())),
        false => print_line(format!("account {login} {what}")),
    }
}

fn fail(why: &str) -> Outcome {
    print_line(why);
    Ok(ExitCode::FAILURE)
}

/// Returns the password, and whether it was generated.
fn password(whose: &AccountLogin) -> Result<(Password, bool), Box<dyn std::error::Error>> {
    let input = io::stdin();
    if whose.generate || input.is_terminal() {
        let mut random = [0; 26];
        getrandom::fill(&mut random).map_err(StartError::Random)?;
        return Ok((Password::generated(random), true));
    }
    let mut line = String::new();
    input.lock().read_line(&mut line)?;
    Ok((Password::chosen(line.trim_end_matches(['\r', '\n']))?, false))
}

fn login(text: &str) -> Result<String, String> {
    PathSegment::login(text).map(|login| login.as_str().to_owned()).map_err(|bad| bad.to_string())
}
