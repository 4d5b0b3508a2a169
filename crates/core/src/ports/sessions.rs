//! The port of sessions: browsers that are signed in to the console.

use async_trait::async_trait;
use chrono::{DateTime, TimeDelta, Utc};

use super::StoreError;
use crate::account::{Access, SessionHash, TokenHash};

/// Sessions. A session has the account and the scopes of the token with which it was begun, and ends
/// with that token (S39).
#[async_trait]
pub trait Sessions: Send + Sync {
    /// Begins a session for the owner of a valid token; `false` if there is no such token.
    async fn begin_session(
        &self,
        session: &SessionHash,
        token: &TokenHash,
        now: DateTime<Utc>,
    ) -> Result<bool, StoreError>;

    /// Returns whose session it is, and records that it was used. `None` if there is no such session,
    /// if it was not used for `idle`, if its token was revoked, or if the account was removed or
    /// deactivated.
    async fn session(
        &self,
        session: &SessionHash,
        idle: TimeDelta,
        now: DateTime<Utc>,
    ) -> Result<Option<Access>, StoreError>;

    /// Ends a session.
    async fn end_session(&self, session: &SessionHash) -> Result<(), StoreError>;
}
