//! `feedgate token`: who may use the authenticated doors.

use std::process::ExitCode;

use clap::Subcommand;

use crate::app::{create_token, open_store};
use crate::jobs::runner;
use feedgate_core::account::{Scope, Scopes};

use super::{Outcome, SettingsArgs, print_line};

/// What stands above the columns of the list.
const HEADER: &str = "NUMBER\tLOGIN\tNAME\tRIGHTS\tMADE\tSTATE";

/// Make, list and revoke tokens.
#[derive(Debug, clap::Args)]
pub(super) struct TokenArgs {
    #[command(flatten)]
    settings: SettingsArgs,
    #[command(subcommand)]
    what: What,
}

#[derive(Debug, Subcommand)]
enum What {
    /// Make a token and print it. It is shown this once.
    Create {
        /// Whose it is; the account is made if there is none of that name.
        #[arg(long, value_parser = login)]
        login: String,
        /// What to call the token.
        #[arg(long, default_value = "", value_parser = name)]
        name: String,
        /// What it allows: subscribe, unsubscribe, list, retrieve, admin, publish.
        #[arg(long, default_value = "subscribe,unsubscribe,list,retrieve", value_parser = rights)]
        rights: Scopes,
    },
    /// List all tokens, without themselves: only their hashes are kept.
    List,
    /// End a token.
    Revoke {
        /// Its number in the list.
        id: i64,
    },
}

pub(super) async fn run(args: TokenArgs) -> Outcome {
    let (config, _) = args.settings.load(&[])?;
    let store = open_store(&config).await?;
    let now = runner::now();
    let mut code = ExitCode::SUCCESS;
    match args.what {
        What::Create { login, name, rights } => {
            let (token, _) = create_token(&*store, &login, &name, rights, now).await?;
            print_line(format!("{login}:{token}"));
        }
        What::List => {
            let tokens = store.list_tokens().await?;
            print_line(if tokens.is_empty() { "no tokens" } else { HEADER });
            for token in tokens {
                let made = token.created_at.format("%Y-%m-%d");
                let state = match token.revoked_at {
                    Some(at) => format!("revoked {}", at.format("%Y-%m-%d")),
                    None => "live".to_owned(),
                };
                let (id, login, name) = (token.id, token.login, token.name);
                print_line(format!(
                    "{id}\t{login}\t{name}\t{}\t{made}\t{state}",
                    token.rights.to_words()
                ));
            }
        }
        What::Revoke { id } => {
            if store.revoke_token(id, now).await? {
                print_line(format!("token {id} is revoked"));
            } else {
                print_line(format!("there is no live token {id}"));
                code = ExitCode::FAILURE;
            }
        }
    }
    store.close().await;
    Ok(code)
}

/// A login that Basic authentication can carry: it ends at the first colon there.
fn login(text: &str) -> Result<String, String> {
    if text.is_empty() {
        return Err("a login is at least one character".to_owned());
    }
    if text.contains(':') {
        return Err("a login holds no colon: Basic authentication ends it there".to_owned());
    }
    tame("a login", text)
}

fn name(text: &str) -> Result<String, String> {
    tame("a name", text)
}

fn tame(what: &str, text: &str) -> Result<String, String> {
    if text.chars().any(char::is_control) {
        return Err(format!("{what} holds no control characters"));
    }
    Ok(text.to_owned())
}

fn rights(words: &str) -> Result<Scopes, String> {
    Scopes::from_words(words).map_err(|word| {
        let known: Vec<&str> = Scope::ALL.into_iter().map(Scope::as_str).collect();
        format!("{word} is no right; there are {}", known.join(", "))
    })
}
