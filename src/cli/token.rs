//! `feedgate token`: manages the tokens that authenticate requests.

use std::process::ExitCode;

use chrono::{DateTime, TimeDelta, Utc};
use clap::Subcommand;
use serde_json::{Value, json};

use crate::app::{StartError, open_existing_store};
use crate::jobs::runner;
use crate::tokens::{self, TokenRequest, create_token};
use feedgate_core::account::{Scope, Scopes, TokenInfo};

use super::{Outcome, SettingsArgs, help, print_database, print_line};

/// The header of the list.
const HEADER: &str = "NUMBER\tLOGIN\tNAME\tSCOPES\tCREATED\tSTATE";

/// The scopes of [`Scopes::of_owner`].
const OWNER_SCOPES: &str = "subscribe,unsubscribe,list,retrieve,tokens";

/// Create, list and revoke tokens.
#[derive(Debug, clap::Args)]
#[command(after_long_help = help::TOKEN.text())]
pub(super) struct TokenArgs {
    #[command(flatten)]
    settings: SettingsArgs,
    #[command(subcommand)]
    what: What,
}

#[derive(Debug, Subcommand)]
enum What {
    /// Create a token and print it. A token is shown only when it is created.
    Create {
        /// The login of the account. The account is created if it does not exist.
        #[arg(long, value_parser = login)]
        login: String,
        /// The name of the token.
        #[arg(long, default_value = "", value_parser = name)]
        name: String,
        /// The scopes of the token: subscribe, unsubscribe, list, retrieve, admin, publish, tokens.
        /// With "tokens", its owner can create and revoke tokens in the console, with no more rights
        /// and no later end than its own.
        #[arg(long, default_value = OWNER_SCOPES, value_parser = scopes)]
        scopes: Scopes,
        /// The number of days after which the token ends; without it, it is valid until it is revoked.
        #[arg(long, value_parser = clap::value_parser!(u32).range(1..=3_650))]
        days: Option<u32>,
    },
    /// List all tokens. The tokens themselves are not shown, because only their hashes are stored.
    List {
        /// Print one JSON object per line.
        #[arg(long)]
        json: bool,
    },
    /// Revoke a token, and those that were created with it in the console.
    Revoke {
        /// The number of the token in the list.
        id: i64,
    },
}

pub(super) async fn run(args: TokenArgs) -> Outcome {
    let (config, sources) = args.settings.load(&[])?;
    print_database(&config, &sources);
    let store = open_existing_store(&config).await?;
    let now = runner::now();
    let mut code = ExitCode::SUCCESS;
    match args.what {
        What::Create { login, name, scopes, days } => {
            let expires_at = days.map(|days| now + TimeDelta::days(days.into()));
            let request = TokenRequest { login: login.clone(), name, scopes, expires_at };
            let made = create_token(&store, request, now).await;
            let (token, _) = made.map_err(StartError::from)?;
            print_line(format!("{login}:{token}"));
        }
        What::List { json } => {
            let tokens = store.list_tokens().await?;
            match json {
                true => tokens.iter().for_each(|token| print_line(json_of(token).to_string())),
                false => print_table(tokens, now),
            }
        }
        What::Revoke { id } => {
            if store.revoke_token(id, now).await? {
                print_line(format!("token {id} has been revoked"));
            } else {
                print_line(format!("there is no active token {id}"));
                code = ExitCode::FAILURE;
            }
        }
    }
    store.close().await;
    Ok(code)
}

fn print_table(tokens: Vec<TokenInfo>, now: DateTime<Utc>) {
    print_line(if tokens.is_empty() { "no tokens" } else { HEADER });
    for token in tokens {
        let created = token.created_at.format("%Y-%m-%d");
        let state = match (token.revoked_at, token.expires_at) {
            (Some(at), _) => format!("revoked {}", at.format("%Y-%m-%d")),
            (None, Some(at)) if token.is_valid(now) => format!("until {}", at.format("%Y-%m-%d")),
            (None, Some(at)) => format!("expired {}", at.format("%Y-%m-%d")),
            (None, None) => "active".to_owned(),
        };
        let (id, login, name) = (token.id, token.login, token.name);
        print_line(format!(
            "{id}\t{login}\t{name}\t{}\t{created}\t{state}",
            token.scopes.to_words()
        ));
    }
}

fn json_of(token: &TokenInfo) -> Value {
    json!({
        "number": token.id,
        "login": token.login,
        "name": token.name,
        "scopes": token.scopes.to_words(),
        "created": token.created_at.to_rfc3339(),
        "revoked": token.revoked_at.map(|at| at.to_rfc3339()),
        "expires": token.expires_at.map(|at| at.to_rfc3339()),
        "used": token.used_at.map(|at| at.to_rfc3339()),
        "parent": token.parent,
    })
}

fn login(text: &str) -> Result<String, String> {
    tokens::check_login(text).map(|()| text.to_owned())
}

fn name(text: &str) -> Result<String, String> {
    match text.chars().any(char::is_control) {
        true => Err("a name cannot contain control characters".to_owned()),
        false => Ok(text.to_owned()),
    }
}

fn scopes(words: &str) -> Result<Scopes, String> {
    Scopes::from_words(words).map_err(|word| {
        let known: Vec<&str> = Scope::ALL.into_iter().map(Scope::as_str).collect();
        format!("unknown scope {word}; the scopes are {}", known.join(", "))
    })
}
