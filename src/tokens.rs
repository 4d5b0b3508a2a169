//! Making API tokens, for the command line and the console.

use chrono::{DateTime, Utc};

use feedgate_core::account::{NewToken, Scope, Scopes, TokenHash};
use feedgate_core::ports::{Store, StoreError};

/// Returns the scopes of a token for which none are chosen: those of a subscriber.
pub fn subscriber_scopes() -> Scopes {
    [Scope::Subscribe, Scope::Unsubscribe, Scope::List, Scope::Retrieve].into_iter().collect()
}

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

/// Makes a token. Returns it, which is the only time that it can be seen, and its number.
pub async fn create_token(
    store: &dyn Store,
    request: TokenRequest,
    now: DateTime<Utc>,
) -> Result<(String, i64), TokenError> {
    let mut bytes = [0; 32];
    getrandom::fill(&mut bytes).map_err(TokenError::Random)?;
    let token = hex::encode(bytes);
    let TokenRequest { login, name, scopes, expires_at } = request;
    let hash = TokenHash::from_token(&token);
    let number =
        store.create_token(&NewToken { login, name, scopes, hash, expires_at }, now).await?;
    Ok((token, number))
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
