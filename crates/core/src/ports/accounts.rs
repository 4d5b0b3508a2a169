//! What may be asked about accounts, and about the files that are stored for them.

use async_trait::async_trait;
use chrono::{DateTime, Utc};

use super::StoreError;
use crate::account::{Access, AccountId, AccountInfo, NewToken, TokenHash, TokenInfo};
use crate::password::PasswordHash;
use crate::stored_file::{
    FileLocation, FileToSave, PathSegment, SaveOutcome, StoredFile, WriteCondition,
};

/// Accounts and their tokens.
#[async_trait]
pub trait Accounts: Send + Sync {
    /// Keeps a token, and makes its account if there is none yet. Returns the token's
    /// number.
    async fn create_token(&self, token: &NewToken, now: DateTime<Utc>) -> Result<i64, StoreError>;

    /// What the token with this hash allows; `None` if it is unknown, revoked, or
    /// another account's.
    async fn authenticate(
        &self,
        login: &str,
        hash: &TokenHash,
    ) -> Result<Option<Access>, StoreError>;

    /// All tokens, oldest first.
    async fn list_tokens(&self) -> Result<Vec<TokenInfo>, StoreError>;

    /// Ends a token; `false` if there is none of that number left to end.
    async fn revoke_token(&self, id: i64, now: DateTime<Utc>) -> Result<bool, StoreError>;

    /// Makes an account with a password; `false` if there is one with this login.
    async fn create_account(
        &self,
        login: &str,
        password: &PasswordHash,
        now: DateTime<Utc>,
    ) -> Result<bool, StoreError>;

    /// Gives an account another password; `false` if there is no such account.
    async fn set_password(&self, login: &str, password: &PasswordHash) -> Result<bool, StoreError>;

    /// The account with this login and what is kept of its password, if it has one.
    async fn password(&self, login: &str) -> Result<Option<(AccountId, PasswordHash)>, StoreError>;

    /// All accounts, by login.
    async fn list_accounts(&self) -> Result<Vec<AccountInfo>, StoreError>;

    /// Closes an account: its password, its live tokens and its files end at once. Its
    /// login stays taken, because its subscriptions go by it. `false` if there is none.
    async fn close_account(&self, login: &str, now: DateTime<Utc>) -> Result<bool, StoreError>;
}

/// Files that are stored for accounts.
#[async_trait]
pub trait StoredFiles: Send + Sync {
    /// Keeps a file of an account, by its login and name, if the condition holds and it
    /// fits into the quota. What is the same as before keeps its time.
    async fn save_file(
        &self,
        file: FileToSave<'_>,
        now: DateTime<Utc>,
    ) -> Result<SaveOutcome, StoreError>;

    /// The file of this login and name.
    async fn file(
        &self,
        login: &PathSegment,
        name: &PathSegment,
    ) -> Result<Option<StoredFile>, StoreError>;

    /// Removes a file: `None` if there is none, `false` if the condition does not hold.
    async fn remove_file(
        &self,
        location: FileLocation<'_>,
        condition: &WriteCondition,
    ) -> Result<Option<bool>, StoreError>;
}
