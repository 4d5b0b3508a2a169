//! The token with which an operator begins.

use chrono::{DateTime, Utc};

use super::StartError;
use crate::tokens::{TokenError, TokenRequest, create_token};
use feedgate_core::account::Scopes;
use feedgate_core::store::StoreError;
use feedgate_store::Store;

/// Creates a token for the operator if there are no tokens yet.
pub(super) async fn create(
    store: &Store,
    now: DateTime<Utc>,
) -> Result<Option<String>, StartError> {
    if !store.list_tokens().await?.is_empty() {
        return Ok(None);
    }
    let (login, name) = ("admin".to_owned(), "first start".to_owned());
    let request = TokenRequest { login, name, scopes: Scopes::all(), expires_at: None };
    match create_token(store, request, now).await {
        Ok((token, _)) => Ok(Some(token)),
        // The operator removed this account, and creates tokens of others when they are needed.
        Err(TokenError::Store(StoreError::AccountRemoved(_))) => Ok(None),
        Err(err) => Err(err.into()),
    }
}
