//! Accounts with what they own: all, a page of them, or one.

use crate::Store;
use crate::accounts::is_nobodys;
use crate::cells::list_pages::end_of_prefix;
use crate::engine::row::Row;
use crate::engine::sql::params;
use crate::log::row::most;
use feedgate_core::account::{AccountId, AccountInfo};
use feedgate_core::store::StoreError;

/// The number of accounts that are read at once.
const READ: usize = 1_000;

/// A statement that reads some accounts, as [`account_info`] reads them.
macro_rules! accounts {
    ($which:literal) => {
        concat!(
            "select a.id, a.login, a.created_at, case when a.password_hash is null then 0 else 1 end,
                    case when a.removed_at is null then 0 else 1 end,
                    case when a.deactivated_at is null then 0 else 1 end,
                    (select count(*) from tokens t
                      where t.account_id = a.id and t.revoked_at is null),
                    (select count(*) from stored_files f where f.account_id = a.id),
                    (select cast(coalesce(sum(f.bytes), 0) as bigint) from stored_files f
                      where f.account_id = a.id) ",
            $which
        )
    };
}

/// Lists of accounts.
impl Store {
    /// Returns all accounts, in the order of the bytes of their logins.
    pub async fn list_accounts(&self) -> Result<Vec<AccountInfo>, StoreError> {
        let mut accounts: Vec<AccountInfo> = Vec::new();
        loop {
            let after = accounts.last().map_or(String::new(), |last| last.login.clone());
            let page = self.accounts_page("", &after, READ).await?;
            let is_end = page.len() < READ;
            accounts.extend(page);
            if is_end {
                return Ok(accounts);
            }
        }
    }

    /// Returns up to `limit` accounts whose logins begin with `prefix`, in the order of the bytes of their
    /// logins, after the login `after`.
    pub async fn accounts_page(
        &self,
        prefix: &str,
        after: &str,
        limit: usize,
    ) -> Result<Vec<AccountInfo>, StoreError> {
        const PAGE: &str = accounts!(
            "from accounts a
             where a.login {postgres collate \"C\"} >= $1 and a.login {postgres collate \"C\"} > $2
               and a.login {postgres collate \"C\"} < $3
             order by a.login {postgres collate \"C\"} limit $4"
        );
        let params = params![prefix, after, end_of_prefix(prefix), most(limit)].to_vec();
        let rows = self.shared.rows(PAGE, &params).await?;
        rows.into_iter().map(account_info).collect()
    }

    /// Returns the account with this login; `None` if there is none, or it was removed.
    pub async fn account(&self, login: &str) -> Result<Option<AccountInfo>, StoreError> {
        const ONE: &str = accounts!("from accounts a where a.login = $1 and a.removed_at is null");
        if is_nobodys(login) {
            return Ok(None);
        }
        let rows = self.shared.rows(ONE, params![login]).await?;
        rows.into_iter().next().map(account_info).transpose()
    }
}

fn account_info(mut row: Row) -> Result<AccountInfo, StoreError> {
    Ok(AccountInfo {
        id: AccountId(row.int()?),
        login: row.text()?,
        created_at: row.time()?,
        has_password: row.int()? != 0,
        is_removed: row.int()? != 0,
        is_deactivated: row.int()? != 0,
        tokens: row.count()?,
        files: row.count()?,
        bytes: row.count()?,
    })
}
