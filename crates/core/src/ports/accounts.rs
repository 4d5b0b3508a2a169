//! The ports of accounts and of their stored files.

use async_trait::async_trait;
use chrono::{DateTime, Utc};

use super::StoreError;
use crate::account::{
    Access, AccountHoldings, AccountId, AccountInfo, NewToken, TokenHash, TokenId, TokenInfo,
};
use crate::password::PasswordHash;
use crate::stored_file::{
    FileLocation, FileToSave, PathSegment, SaveOutcome, StoredFile, WriteCondition,
};

/// Accounts and their tokens.
#[async_trait]
pub trait Accounts: Send + Sync {
    /// Stores a token, and creates its account if necessary. Returns the number of the token. Fails
    /// with [`StoreError::AccountRemoved`] if the account was removed.
    async fn create_token(&self, token: &NewToken, now: DateTime<Utc>) -> Result<i64, StoreError>;

    /// Stores a token that was created with the token `parent`, with which it is revoked. Returns its
    /// number; `None` if the parent is not valid any more.
    async fn create_child_token(
        &self,
        token: &NewToken,
        parent: TokenId,
        now: DateTime<Utc>,
    ) -> Result<Option<i64>, StoreError>;

    /// Returns the account and the scopes of the token with this hash, and records that it was used;
    /// `None` if the token is unknown, revoked or expired, or belongs to another account. Fails with
    /// [`StoreError::AccountDeactivated`] if the account is deactivated.
    async fn authenticate(
        &self,
        login: &str,
        hash: &TokenHash,
        now: DateTime<Utc>,
    ) -> Result<Option<Access>, StoreError>;

    /// Returns all tokens, oldest first.
    async fn list_tokens(&self) -> Result<Vec<TokenInfo>, StoreError>;

    /// Returns the tokens of an account, oldest first.
    async fn tokens_of(&self, login: &str) -> Result<Vec<TokenInfo>, StoreError>;

    /// Revokes a token, and those that were created with it; `false` if there is no active token with this number.
    async fn revoke_token(&self, id: i64, now: DateTime<Utc>) -> Result<bool, StoreError>;

    /// Creates an account with a password; `false` if the login exists. Fails with
    /// [`StoreError::AccountRemoved`] if an account with the login was removed.
    async fn create_account(
        &self,
        login: &str,
        password: &PasswordHash,
        now: DateTime<Utc>,
    ) -> Result<bool, StoreError>;

    /// Changes the password of an account; `false` if there is no such account.
    async fn set_password(&self, login: &str, password: &PasswordHash) -> Result<bool, StoreError>;

    /// Returns the account with this login and its password hash, if it has a password.
    async fn password(&self, login: &str) -> Result<Option<(AccountId, PasswordHash)>, StoreError>;

    /// Returns all accounts, by login.
    async fn list_accounts(&self) -> Result<Vec<AccountInfo>, StoreError>;

    /// Returns what an account owns; `None` if there is no such account, or it was removed.
    async fn account_holdings(&self, login: &str) -> Result<Option<AccountHoldings>, StoreError>;

    /// Removes an account: its password, its tokens with those that were created with them, its files, and its subscriptions with their
    /// secrets are deleted. Nobody can use its login again. Returns what was deleted; `None` if
    /// there is no such account.
    async fn remove_account(
        &self,
        login: &str,
        now: DateTime<Utc>,
    ) -> Result<Option<AccountHoldings>, StoreError>;

    /// Deactivates an account: its credentials are refused, and its subscriptions are paused. May be
    /// repeated. Returns how many subscriptions were paused; `None` if there is no such account.
    async fn deactivate_account(
        &self,
        login: &str,
        now: DateTime<Utc>,
    ) -> Result<Option<u64>, StoreError>;

    /// Activates an account, and resumes the subscriptions that were paused when it was deactivated,
    /// but not those that their owner had paused. Returns how many were resumed; `None` if there is
    /// no such account.
    async fn activate_account(
        &self,
        login: &str,
        now: DateTime<Utc>,
    ) -> Result<Option<u64>, StoreError>;

    /// Returns whether an account is deactivated; for a login with a correct password.
    async fn is_deactivated(&self, login: &str) -> Result<bool, StoreError>;
}

/// The files of accounts.
#[async_trait]
pub trait StoredFiles: Send + Sync {
    /// Stores a file if the condition holds and the quota suffices. A file that is stored again
    /// without changes keeps its modification time.
    async fn save_file(
        &self,
        file: FileToSave<'_>,
        now: DateTime<Utc>,
    ) -> Result<SaveOutcome, StoreError>;

    /// Returns the file with this login and name.
    async fn file(
        &self,
        login: &PathSegment,
        name: &PathSegment,
    ) -> Result<Option<StoredFile>, StoreError>;

    /// Deletes a file. Returns `None` if there is none, and `false` if the condition does not hold.
    async fn remove_file(
        &self,
        location: FileLocation<'_>,
        condition: &WriteCondition,
    ) -> Result<Option<bool>, StoreError>;
}
