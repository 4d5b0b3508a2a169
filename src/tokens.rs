//! Making API tokens, for the command line and the console.

use chrono::{DateTime, Utc};

use feedgate_core::account::{
    Access, ChildTokenOutcome, MOST_TOKENS, NewToken, Scope, Scopes, TokenHash,
};
use feedgate_core::store::StoreError;
use feedgate_store::Store;

/// A token to be made.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TokenRequest {
    /// The login of the account, which is created if it does not exist.
    pub login: String,
    /// The name of the token.
    pub name: String,
    /// The scopes of the token.
    pub scopes: Scopes,
    /// When the token ends; `None`: it is valid until it is revoked.
    pub expires_at: Option<DateTime<Utc>>,
}

/// Why a token was not made.
#[derive(Debug, thiserror::Error)]
pub enum TokenError {
    /// The token cannot be stored.
    #[error(transparent)]
    Store(#[from] StoreError),
    /// The system provides no random numbers.
    #[error("the system provides no random numbers: {0}")]
    Random(getrandom::Error),
}

/// Why a token was not made with another one.
#[derive(Debug, thiserror::Error)]
pub enum ChildTokenError {
    /// The token cannot be made at all.
    #[error(transparent)]
    Token(#[from] TokenError),
    /// The token that creates it lacks a scope.
    #[error("your token does not have the scope {}", .0.as_str())]
    MissingScope(Scope),
    /// The account has as many tokens as it may have.
    #[error("the account has {MOST_TOKENS} valid tokens")]
    TooMany,
    /// The token that creates it was revoked or has ended.
    #[error("your token is not valid any more")]
    ParentEnded,
}

/// Makes a token. Returns it, which is the only time that it can be seen, and its number.
pub async fn create_token(
    store: &Store,
    request: TokenRequest,
    now: DateTime<Utc>,
) -> Result<(String, i64), TokenError> {
    let (token, new) = generate(request)?;
    let number = store.create_token(&new, now).await?;
    Ok((token, number))
}

/// Makes a token with another one, `parent`. It has at most the scopes and the end of its parent, and
/// is revoked with it. Returns it, which is the only time that it can be seen, and its number.
pub async fn create_child_token(
    store: &Store,
    mut request: TokenRequest,
    parent: &Access,
    now: DateTime<Utc>,
) -> Result<(String, i64), ChildTokenError> {
    let needed = request.scopes.with(Scope::Tokens);
    if let Some(missing) = parent.scopes.first_missing(needed) {
        return Err(ChildTokenError::MissingScope(missing));
    }
    request.expires_at = parent.end_of_child(request.expires_at);
    let (token, new) = generate(request)?;
    let created = store.create_child_token(&new, parent.token, now).await;
    match created.map_err(TokenError::from)? {
        ChildTokenOutcome::Created(id) => Ok((token, id.0)),
        ChildTokenOutcome::ParentEnded => Err(ChildTokenError::ParentEnded),
        ChildTokenOutcome::TooMany => Err(ChildTokenError::TooMany),
    }
}

/// Returns a random token, and what is stored of it.
fn generate(request: TokenRequest) -> Result<(String, NewToken), TokenError> {
    let mut bytes = [0; 32];
    getrandom::fill(&mut bytes).map_err(TokenError::Random)?;
    let token = hex::encode(bytes);
    let TokenRequest { login, name, scopes, expires_at } = request;
    let hash = TokenHash::from_token(&token);
    Ok((token, NewToken { login, name, scopes, hash, expires_at }))
}

/// Checks that Basic authentication can carry a login, which ends there at the first colon.
pub fn check_login(login: &str) -> Result<(), String> {
    if login.is_empty() {
        return Err("a login must have at least one character".to_owned());
    }
    if login.contains(':') {
        return Err(
            "a login cannot contain a colon: in Basic authentication, a colon ends the login"
                .to_owned(),
        );
    }
    match login.chars().any(char::is_control) {
        true => Err("a login cannot contain control characters".to_owned()),
        false => Ok(()),
    }
}
