//! `feedgate account`: who may store feeds, with a password.
//!
//! A password is never an argument: those of all processes can be seen by everybody on the
//! machine. It is read from standard input; at a terminal, where it would be seen as well,
//! one is made up instead and printed once.

use std::io::{self, BufRead, IsTerminal};
use std::process::ExitCode;

use clap::Subcommand;

use crate::app::{StartError, open_store};
use crate::authoring::hash_password;
use crate::jobs::runner;
use feedgate_core::password::Password;
use feedgate_core::ports::Store;
use feedgate_core::stored_file::PathSegment;

use super::{Outcome, SettingsArgs, print_line};

/// What stands above the columns of the list.
const HEADER: &str = "LOGIN\tMADE\tPASSWORD\tTOKENS\tFILES\tBYTES";

/// Make, list and close accounts with passwords.
#[derive(Debug, clap::Args)]
pub(super) struct AccountArgs {
    #[command(flatten)]
    settings: SettingsArgs,
    #[command(subcommand)]
    what: What,
}

#[derive(Debug, Subcommand)]
enum What {
    /// Make an account. Its password is the first line of standard input; at a terminal,
    /// one is made up and printed.
    Add(Whose),
    /// Give an account another password, in the same way.
    Passwd(Whose),
    /// List all accounts.
    List,
    /// Close an account: its password, its tokens and its files end at once.
    Remove {
        /// Whose.
        login: String,
    },
}

#[derive(Debug, clap::Args)]
struct Whose {
    /// What its owner signs in with; it stands in the addresses of stored feeds.
    #[arg(value_parser = login)]
    login: String,
    /// Make up a password, whatever standard input is.
    #[arg(long)]
    generate: bool,
}

pub(super) async fn run(args: AccountArgs) -> Outcome {
    let (config, _) = args.settings.load(&[])?;
    // Asked for before the store is opened: a password that is none changes nothing.
    let password = match &args.what {
        What::Add(whose) | What::Passwd(whose) => Some(password(whose)?),
        What::List | What::Remove { .. } => None,
    };
    let store = open_store(&config).await?;
    let done = carry_out(&*store, &args.what, password).await;
    store.close().await;
    done
}

async fn carry_out(store: &dyn Store, what: &What, password: Option<(Password, bool)>) -> Outcome {
    let now = runner::now();
    match (what, password) {
        (What::Add(whose), Some((password, is_generated))) => {
            let hash = hash_password(&password).map_err(StartError::Random)?;
            if !store.create_account(&whose.login, &hash, now).await? {
                let login = &whose.login;
                return fail(&format!(
                    "there is an account {login}; \"passwd\" changes its password"
                ));
            }
            report(&whose.login, &password, is_generated, "is made");
        }
        (What::Passwd(whose), Some((password, is_generated))) => {
            let hash = hash_password(&password).map_err(StartError::Random)?;
            if !store.set_password(&whose.login, &hash).await? {
                return fail(&format!("there is no account {}", whose.login));
            }
            report(&whose.login, &password, is_generated, "has another password");
        }
        (What::Remove { login }, _) => {
            if !store.close_account(login, now).await? {
                return fail(&format!("there is no account {login}"));
            }
            print_line(format!("account {login} is closed"));
        }
        (What::List | What::Add(_) | What::Passwd(_), _) => list(store).await?,
    }
    Ok(ExitCode::SUCCESS)
}

async fn list(store: &dyn Store) -> Result<(), Box<dyn std::error::Error>> {
    let accounts = store.list_accounts().await?;
    print_line(if accounts.is_empty() { "no accounts" } else { HEADER });
    for account in accounts {
        let made = account.created_at.format("%Y-%m-%d");
        let password = if account.has_password { "yes" } else { "no" };
        let (login, tokens) = (account.login, account.tokens);
        let (files, bytes) = (account.files, account.bytes);
        print_line(format!("{login}\t{made}\t{password}\t{tokens}\t{files}\t{bytes}"));
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

/// The password, and whether it was made up.
fn password(whose: &Whose) -> Result<(Password, bool), Box<dyn std::error::Error>> {
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
