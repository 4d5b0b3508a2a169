//! Accounts, stored files and the event log: they lie in the shared schema.

use async_trait::async_trait;
use chrono::{DateTime, TimeDelta, Utc};
use futures_util::future::try_join_all;

use crate::cells::Cells;
use feedgate_core::account::{
    Access, AccountHoldings, AccountId, AccountInfo, NewToken, SessionHash, TokenHash, TokenId,
    TokenInfo,
};
use feedgate_core::event::{Event, EventFilter, EventPage};
use feedgate_core::password::PasswordHash;
use feedgate_core::ports::{Accounts, EventNumbers, Events, Sessions, StoreError, StoredFiles};
use feedgate_core::stored_file::{
    FileLocation, FileToSave, PathSegment, SaveOutcome, StoredFile, WriteCondition,
};

#[async_trait]
impl Accounts for Cells {
    async fn create_token(&self, token: &NewToken, now: DateTime<Utc>) -> Result<i64, StoreError> {
        self.shared.create_token(token, now).await
    }

    async fn create_child_token(
        &self,
        token: &NewToken,
        parent: TokenId,
        now: DateTime<Utc>,
    ) -> Result<Option<i64>, StoreError> {
        self.shared.create_child_token(token, parent, now).await
    }

    async fn authenticate(
        &self,
        login: &str,
        hash: &TokenHash,
        now: DateTime<Utc>,
    ) -> Result<Option<Access>, StoreError> {
        self.shared.authenticate(login, hash, now).await
    }

    async fn tokens_of(&self, login: &str) -> Result<Vec<TokenInfo>, StoreError> {
        self.shared.tokens_of(login).await
    }

    async fn list_tokens(&self) -> Result<Vec<TokenInfo>, StoreError> {
        self.shared.list_tokens().await
    }

    async fn revoke_token(&self, id: i64, now: DateTime<Utc>) -> Result<bool, StoreError> {
        self.shared.revoke_token(id, now).await
    }

    async fn create_account(
        &self,
        login: &str,
        password: &PasswordHash,
        now: DateTime<Utc>,
    ) -> Result<bool, StoreError> {
        self.shared.create_account(login, password, now).await
    }

    async fn set_password(&self, login: &str, password: &PasswordHash) -> Result<bool, StoreError> {
        self.shared.set_password(login, password).await
    }

    async fn password(&self, login: &str) -> Result<Option<(AccountId, PasswordHash)>, StoreError> {
        self.shared.password(login).await
    }

    async fn list_accounts(&self) -> Result<Vec<AccountInfo>, StoreError> {
        self.shared.list_accounts().await
    }

    async fn account_holdings(&self, login: &str) -> Result<Option<AccountHoldings>, StoreError> {
        let Some((account, mut holdings)) = self.shared.holdings(login).await? else {
            return Ok(None);
        };
        let counts = self.cells.iter().map(|cell| cell.count_subscriptions(account));
        holdings.subscriptions = try_join_all(counts).await?.into_iter().sum();
        Ok(Some(holdings))
    }

    /// The account is removed first. If this is interrupted afterwards, the subscriptions that are
    /// left are deleted by [`drop_ownerless`](feedgate_core::ports::Maintenance::drop_ownerless).
    async fn remove_account(
        &self,
        login: &str,
        now: DateTime<Utc>,
    ) -> Result<Option<AccountHoldings>, StoreError> {
        let Some((account, mut holdings)) = self.shared.remove_owner(login, now).await? else {
            return Ok(None);
        };
        let ended = self.cells.iter().map(|cell| cell.end_subscriptions(account));
        holdings.subscriptions = try_join_all(ended).await?.into_iter().sum();
        Ok(Some(holdings))
    }

    /// The account is marked first. If this is interrupted afterwards, the subscriptions that are left
    /// are paused by [`pause_deactivated`](feedgate_core::ports::Maintenance::pause_deactivated).
    async fn deactivate_account(
        &self,
        login: &str,
        now: DateTime<Utc>,
    ) -> Result<Option<u64>, StoreError> {
        let Some(account) = self.shared.deactivate_owner(login, now).await? else {
            return Ok(None);
        };
        let paused = self.cells.iter().map(|cell| cell.pause_owned(account));
        Ok(Some(try_join_all(paused).await?.into_iter().sum()))
    }

    async fn activate_account(
        &self,
        login: &str,
        now: DateTime<Utc>,
    ) -> Result<Option<u64>, StoreError> {
        let Some(account) = self.shared.deactivated_account(login).await? else {
            return Ok(self.shared.holdings(login).await?.map(|_| 0));
        };
        let resume = || self.cells.iter().map(|cell| cell.resume_owned(account, now));
        let resumed: u64 = try_join_all(resume()).await?.into_iter().sum();
        self.shared.activate_owner(account).await?;
        // A subscription may have been verified, and paused, in the meantime.
        let late: u64 = try_join_all(resume()).await?.into_iter().sum();
        Ok(Some(resumed + late))
    }

    async fn is_deactivated(&self, login: &str) -> Result<bool, StoreError> {
        self.shared.is_deactivated(login).await
    }
}

#[async_trait]
impl Sessions for Cells {
    async fn begin_session(
        &self,
        session: &SessionHash,
        token: &TokenHash,
        now: DateTime<Utc>,
    ) -> Result<bool, StoreError> {
        self.shared.begin_session(session, token, now).await
    }

    async fn session(
        &self,
        session: &SessionHash,
        idle: TimeDelta,
        now: DateTime<Utc>,
    ) -> Result<Option<Access>, StoreError> {
        self.shared.session(session, idle, now).await
    }

    async fn end_session(&self, session: &SessionHash) -> Result<(), StoreError> {
        self.shared.end_session(session).await
    }
}

#[async_trait]
impl StoredFiles for Cells {
    async fn save_file(
        &self,
        file: FileToSave<'_>,
        now: DateTime<Utc>,
    ) -> Result<SaveOutcome, StoreError> {
        self.shared.save_file(file, now).await
    }

    async fn file(
        &self,
        login: &PathSegment,
        name: &PathSegment,
    ) -> Result<Option<StoredFile>, StoreError> {
        self.shared.file(login, name).await
    }

    async fn remove_file(
        &self,
        location: FileLocation<'_>,
        condition: &WriteCondition,
    ) -> Result<Option<bool>, StoreError> {
        self.shared.remove_file(location, condition).await
    }
}

#[async_trait]
impl Events for Cells {
    async fn append_events(&self, events: Vec<Event>) -> Result<i64, StoreError> {
        self.shared.append_events(events).await
    }

    async fn events(&self, wanted: &EventFilter) -> Result<EventPage, StoreError> {
        self.shared.events(wanted).await
    }

    async fn event_numbers(&self) -> Result<EventNumbers, StoreError> {
        self.shared.event_numbers().await
    }

    async fn trim_events(
        &self,
        before: DateTime<Utc>,
        most_of_a_kind: usize,
    ) -> Result<u64, StoreError> {
        self.shared.trim_events(before, most_of_a_kind).await
    }
}
