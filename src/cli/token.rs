//! `feedgate token`: manages the tokens that authenticate requests.

use std::process::ExitCode;

use clap::Subcommand;
use serde_json::{Value, json};

use crate::app::{create_token, open_existing_store};
use crate::jobs::runner;
use feedgate_core::account::{Scope, Scopes, TokenInfo};

use super::{Outcome, SettingsArgs, examples, print_database, print_line};

/// The header of the list.
const HEADER: &str = "NUMBER\tLOGIN\tNAME\tSCOPES\tCREATED\tSTATE";

/// Create, list and revoke tokens.
#[derive(Debug, clap::Args)]
#[command(after_long_help = examples::TOKEN)]
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
        /// The scopes of the token: subscribe, unsubscribe, list, retrieve, admin, publish.
        #[arg(long, default_value = "subscribe,unsubscribe,list,retrieve", value_parser = scopes)]
        scopes: Scopes,
    },
    /// List all tokens. The tokens themselves are not shown, because only their hashes are stored.
    List {
        /// Print one JSON object per line.
        #[arg(long)]
        json: bool,
    },
    /// Revoke a token.
    Revoke {
        /// The number of the token in the list.
        id: i64,
    },
}

pub(super) async fn run(args: TokenArgs) -> Outcome {
    let (config, _) = args.settings.load(&[])?;
    let store = open_existing_store(&config).await?;
    print_database(&config.store().url);
    let now = runner::now();
    let mut code = ExitCode::SUCCESS;
    match args.what {
        What::Create { login, name, scopes } => {
            let (token, _) = create_token(&*store, &login, &name, scopes, now).await?;
            print_line(format!("{login}:{token}"));
        }
        What::List { json } => {
            let tokens = store.list_tokens().await?;
            match json {
                true => tokens.iter().for_each(|token| print_line(json_of(token).to_string())),
                false => print_table(tokens),
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

fn print_table(tokens: Vec<TokenInfo>) {
    print_line(if tokens.is_empty() { "no tokens" } else { HEADER });
    for token in tokens {
        let created = token.created_at.format("%Y-%m-%d");
        let state = match token.revoked_at {
            Some(at) => format!("revoked {}", at.format("%Y-%m-%d")),
            None => "active".to_owned(),
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
    })
}

/// Checks that Basic authentication can carry a login, which ends there at the first colon.
fn login(text: &str) -> Result<String, String> {
    if text.is_empty() {
        return Err("a login must have at least one character".to_owned());
    }
    if text.contains(':') {
        return Err(
            "a login cannot contain a colon: in Basic authentication, a colon ends the login"
                .to_owned(),
        );
    }
    tame("a login", text)
}

fn name(text: &str) -> Result<String, String> {
    tame("a name", text)
}

fn tame(what: &str, text: &str) -> Result<String, String> {
    if text.chars().any(char::is_control) {
        return Err(format!("{what} cannot contain control characters"));
    }
    Ok(text.to_owned())
}

fn scopes(words: &str) -> Result<Scopes, String> {
    Scopes::from_words(words).map_err(|word| {
        let known: Vec<&str> = Scope::ALL.into_iter().map(Scope::as_str).collect();
        format!("unknown scope {word}; the scopes are {}", known.join(", "))
    })
}
