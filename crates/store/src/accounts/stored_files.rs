//! The files of accounts.

use chrono::{DateTime, Utc};

use crate::engine::sql::params;
use crate::engine::sqlite::WriteSize;
use crate::engine::tx::Tx;
use crate::{Db, Store};
use feedgate_core::account::AccountId;
use feedgate_core::store::StoreError;
use feedgate_core::stored_file::{
    FileContent, FileLocation, FileToSave, PathSegment, Quota, SaveOutcome, StoredFile,
    WriteCondition,
};

/// The number of files deleted in one transaction: each may have megabytes.
const FEW: i64 = 4;

/// The files of accounts.
impl Store {
    /// Stores a file if the condition holds and the quota suffices. A file that is stored again
    /// without changes keeps its modification time.
    pub async fn save_file(
        &self,
        file: FileToSave<'_>,
        now: DateTime<Utc>,
    ) -> Result<SaveOutcome, StoreError> {
        let (login, name) = (file.location.login.clone(), file.location.name.clone());
        let (content, condition) = (file.content.clone(), file.condition.clone());
        let quota = file.quota;
        self.shared
            .write(move |tx| {
                Box::pin(async move {
                    let Some((account, held)) = lock(tx, &login, &name).await? else {
                        return Ok(SaveOutcome::NoAccount);
                    };
                    if !condition.allows(held.as_deref()) {
                        return Ok(SaveOutcome::Unmet);
                    }
                    if !has_room(tx, account, &name, content.body.len(), quota).await? {
                        return Ok(SaveOutcome::Full);
                    }
                    save_file(tx, account, &name, &content, now).await?;
                    Ok(match held {
                        None => SaveOutcome::Made,
                        Some(tag) if tag == content.tag() => SaveOutcome::Same,
                        Some(_) => SaveOutcome::Replaced,
                    })
                })
            })
            .await
    }

    /// Returns the file with this login and name.
    pub async fn file(
        &self,
        login: &PathSegment,
        name: &PathSegment,
    ) -> Result<Option<StoredFile>, StoreError> {
        const FILE: &str = "
            select f.media_type, f.body, f.etag, f.changed_at
              from stored_files f
              join accounts a on a.id = f.account_id
             where a.login = $1 and f.name = $2 and a.removed_at is null";
        let params = [login.as_str().into(), name.as_str().into()];
        let found =
            self.shared.read(move |tx| Box::pin(async move { tx.first(FILE, &params).await }));
        let Some(mut row) = found.await? else { return Ok(None) };
        let content = FileContent { media_type: row.text()?, body: row.blob()? };
        Ok(Some(StoredFile { content, tag: row.text()?, changed_at: row.time()? }))
    }

    /// Deletes a file. Returns `None` if there is none, and `false` if the condition does not hold.
    pub async fn remove_file(
        &self,
        location: FileLocation<'_>,
        condition: &WriteCondition,
    ) -> Result<Option<bool>, StoreError> {
        const REMOVE: &str = "delete from stored_files where account_id = $1 and name = $2";
        let (login, name) = (location.login.clone(), location.name.clone());
        let condition = condition.clone();
        self.shared
            .write(move |tx| {
                Box::pin(async move {
                    let found = lock(tx, &login, &name).await?;
                    let Some((account, Some(tag))) = found else { return Ok(None) };
                    if !condition.allows(Some(&tag)) {
                        return Ok(Some(false));
                    }
                    tx.execute(REMOVE, params![account, name.as_str()]).await?;
                    Ok(Some(true))
                })
            })
            .await
    }
}

impl Db {
    /// Deletes all files of an account, a few in each transaction. Returns how many there were.
    pub(crate) async fn delete_files(&self, account: AccountId) -> Result<u64, StoreError> {
        const DELETE: &str = "
            delete from stored_files
             where account_id = $1
               and name in (select name from stored_files
                             where account_id = $1 order by name limit $2)";
        let mut deleted = 0;
        loop {
            let delete = self.write_sized(WriteSize::Large, move |tx| {
                Box::pin(async move { tx.execute(DELETE, params![account.0, FEW]).await })
            });
            let some = delete.await?;
            deleted += some;
            if some < FEW as u64 {
                return Ok(deleted);
            }
        }
    }
}

/// Locks the account, so that its files change one after the other. Returns the number of the account
/// and the entity tag of the file.
async fn lock(
    tx: &Tx<'_>,
    login: &PathSegment,
    name: &PathSegment,
) -> Result<Option<(i64, Option<String>)>, StoreError> {
    const ACCOUNT: &str =
        "select id from accounts where login = $1 and removed_at is null {for update}";
    const TAG: &str = "select etag from stored_files where account_id = $1 and name = $2";
    let Some(mut account) = tx.first(ACCOUNT, params![login.as_str()]).await? else {
        return Ok(None);
    };
    let account = account.int()?;
    let held = tx.first(TAG, params![account, name.as_str()]).await?;
    let held = held.map(|mut row| row.text()).transpose()?;
    Ok(Some((account, held)))
}

/// Returns whether a file of this size fits into the quota beside the other files of the account.
async fn has_room(
    tx: &Tx<'_>,
    account: i64,
    name: &PathSegment,
    bytes: usize,
    quota: Quota,
) -> Result<bool, StoreError> {
    const OTHERS: &str = "
        select count(*), cast(coalesce(sum(bytes), 0) as bigint)
          from stored_files
         where account_id = $1 and name <> $2";
    let others = tx.first(OTHERS, params![account, name.as_str()]).await?;
    let Some(mut others) = others else { return Ok(false) };
    let (files, held) = (others.count()?, others.count()?);
    Ok(files < quota.files as u64 && held + bytes as u64 <= quota.bytes as u64)
}

async fn save_file(
    tx: &Tx<'_>,
    account: i64,
    name: &PathSegment,
    content: &FileContent,
    now: DateTime<Utc>,
) -> Result<(), StoreError> {
    // A file that is saved again without changes keeps its modification time.
    const KEEP: &str = "
        insert into stored_files (account_id, name, media_type, body, bytes, etag, changed_at)
        values ($1, $2, $3, $4, $5, $6, $7)
            on conflict (account_id, name) do update
           set media_type = excluded.media_type, body = excluded.body, bytes = excluded.bytes,
               changed_at = case when stored_files.etag = excluded.etag then stored_files.changed_at
                                 else excluded.changed_at end,
               etag = excluded.etag";
    let bytes = content.body.len() as i64;
    let tag = content.tag();
    let (name, body) = (name.as_str(), content.body.clone());
    let media_type = content.media_type.as_str();
    tx.execute(KEEP, params![account, name, media_type, body, bytes, tag, now]).await?;
    Ok(())
}
