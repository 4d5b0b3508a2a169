//! Pages of logs: created when records are appended, read by their number, and dropped whole.

use std::collections::HashMap;

use chrono::{DateTime, Utc};

use crate::engine::row::Row;
use crate::engine::sql::{Value, params};
use crate::engine::sqlite::WriteSize;
use crate::engine::tx::Tx;
use crate::log::row::{most, record, record_columns};
use crate::resources::row;
use crate::search::removal;
use crate::{Db, Store};
use feedgate_core::page::{ArchiveRetention, Archived, ArchivedId, LocatedPage, Page, PageLimits};
use feedgate_core::record::{Record, Seq};
use feedgate_core::resource::ResourceId;
use feedgate_core::store::StoreError;

/// The most pages dropped in one transaction, for which other writes wait: each may have 50 records.
const FEW: i64 = 4;
/// The most resources examined in one statement.
const BATCH: i64 = 500;

/// The columns of a page `p`, as [`page`] reads them.
macro_rules! page_columns {
    () => {
        "p.page, p.first_seq, p.last_seq, p.bytes, p.begun_at, p.ended_at"
    };
}

/// The pages of logs.
impl Store {
    /// Returns a page of a log, or the newest page if `number` is `None`. `None` if there is no
    /// page with this number, or no longer.
    pub async fn page(
        &self,
        id: ResourceId,
        number: Option<i64>,
    ) -> Result<Option<LocatedPage>, StoreError> {
        let db = self.of_number(id.0);
        const NUMBERED: &str = concat!(
            "select ",
            page_columns!(),
            ", (select min(page) from pages where resource_id = $1),
               (select max(page) from pages where resource_id = $1)
               from pages p
              where p.resource_id = $1 and p.page = $2"
        );
        const NEWEST: &str = concat!(
            "select ",
            page_columns!(),
            ", (select min(page) from pages where resource_id = $1), p.page
               from pages p
              where p.resource_id = $1
              order by p.page desc
              limit 1"
        );
        let rows = match number {
            Some(number) => db.rows(NUMBERED, params![id.0, number]).await?,
            None => db.rows(NEWEST, params![id.0]).await?,
        };
        match rows.into_iter().next() {
            Some(mut row) => {
                let page = page(&mut row)?;
                Ok(Some(LocatedPage { page, oldest: row.int()?, newest: row.int()? }))
            }
            None if number.is_none() => Ok(Some(LocatedPage::EMPTY)),
            None if number == Some(1) => {
                Ok((db.oldest(id).await?.is_none()).then_some(LocatedPage::EMPTY))
            }
            None => Ok(None),
        }
    }

    /// Returns the number of the oldest stored page; the pages before it were dropped.
    pub async fn oldest_page(&self, id: ResourceId) -> Result<i64, StoreError> {
        let db = self.of_number(id.0);
        Ok(db.oldest(id).await?.unwrap_or(1))
    }

    /// Returns the number of the oldest stored record, 1 if the log is empty; the records before it
    /// were dropped with their pages.
    pub async fn oldest_seq(&self, id: ResourceId) -> Result<Seq, StoreError> {
        let db = self.of_number(id.0);
        const OLDEST: &str = "
            select first_seq from pages where resource_id = $1 order by page limit 1";
        let rows = db.rows(OLDEST, params![id.0]).await?;
        rows.into_iter().next().map_or(Ok(Seq(1)), |mut row| Ok(Seq(row.int()?)))
    }

    /// Returns the records of a page, ascending, with their archive ids. Which records belong to a
    /// page was decided when they were appended. It is an error if records are missing because the
    /// page was dropped meanwhile, because archived documents never change.
    pub async fn read_page(
        &self,
        id: ResourceId,
        page: &Page,
    ) -> Result<Vec<Archived>, StoreError> {
        let db = self.of_number(id.0);
        const READ: &str = concat!(
            "select r.repeats_id, coalesce(r.replaces_id, ''), ",
            record_columns!(),
            " from records r
              where r.resource_id = $1 and r.seq >= $2 and r.seq <= $3
              order by r.seq"
        );
        let rows = db.rows(READ, params![id.0, page.first.0, page.last.0]).await?;
        if most(rows.len()) != page.len() {
            let number = page.number;
            return Err(StoreError::Corrupt(format!("page {number} of {id} is incomplete")));
        }
        rows.into_iter().map(archived).collect()
    }

    /// Returns records of one log with their archive ids, in their order.
    pub async fn archived(
        &self,
        id: ResourceId,
        records: Vec<Record>,
    ) -> Result<Vec<Archived>, StoreError> {
        const NAMES: &str = "
            select seq, repeats_id, coalesce(replaces_id, '') from records
             where resource_id = $1 and seq in ({ids $2})";
        if records.is_empty() {
            return Ok(Vec::new());
        }
        let seqs = records.iter().map(|record| record.seq.0).collect();
        let rows = self.of_number(id.0).rows(NAMES, params![id.0, Value::Ints(seqs)]).await?;
        let mut names = HashMap::new();
        for mut row in rows {
            names.insert(row.int()?, (row.int()? != 0, row.text()?));
        }
        let archived = records.into_iter().map(|record| {
            // A record that was dropped meanwhile has the id of its entry.
            let (is_again, replaces) = names.remove(&record.seq.0).unwrap_or_default();
            Archived { is_again, replaces: ArchivedId::read(&replaces), record }
        });
        Ok(archived.collect())
    }

    /// Drops the pages that are no longer retained, the oldest of each log first, and their
    /// records. Records owed to a subscription are kept, and so are known entries (N6). Returns the
    /// number of dropped pages.
    pub async fn drop_pages(
        &self,
        retention: &ArchiveRetention,
        now: DateTime<Utc>,
    ) -> Result<u64, StoreError> {
        const NEXT: &str = "select id from resources where id > $1 order by id limit $2";
        self.sum(|db| async move {
            let (mut dropped, mut last, retention) = (0, 0, *retention);
            if retention.keeps_all() {
                return Ok(0);
            }
            loop {
                let next = db.rows(NEXT, params![last, BATCH]).await?;
                let next = next.into_iter().map(|mut row| row.int());
                let next = next.collect::<Result<Vec<_>, StoreError>>()?;
                let Some(end) = next.last() else { return Ok(dropped) };
                last = *end;
                for id in next {
                    while !db
                        .read(move |tx| Box::pin(find(tx, id, retention, now)))
                        .await?
                        .is_empty()
                    {
                        let some = db.write_sized(WriteSize::Large, move |tx| {
                            Box::pin(drop_some(tx, id, retention, now))
                        });
                        match some.await? {
                            0 => break,
                            some => dropped += some,
                        }
                    }
                }
            }
        })
        .await
    }
}

impl Db {
    async fn oldest(&self, id: ResourceId) -> Result<Option<i64>, StoreError> {
        const OLDEST: &str = "select min(page) from pages where resource_id = $1";
        let rows = self.rows(OLDEST, params![id.0]).await?;
        rows.into_iter().next().map_or(Ok(None), |mut row| row.opt_int())
    }
}

/// Assigns records that are appended at the time `at` to pages, and stores the pages. `records` are
/// the numbers and lengths of the records. The row of the resource must be locked.
pub(crate) async fn place(
    tx: &Tx<'_>,
    page_limits: &PageLimits,
    id: ResourceId,
    at: DateTime<Utc>,
    records: impl Iterator<Item = (i64, i64)>,
) -> Result<(), StoreError> {
    const NEWEST: &str = concat!(
        "select ",
        page_columns!(),
        " from pages p where p.resource_id = $1 order by p.page desc limit 1"
    );
    const KEEP: &str = "
        insert into pages (resource_id, page, first_seq, last_seq, bytes, begun_at, ended_at)
        select cast($1 as bigint), given.page, given.first_seq, given.last_seq, given.bytes,
               given.begun_at, given.ended_at
          from {rows} where true
            on conflict (resource_id, page) do update
           set last_seq = excluded.last_seq, bytes = excluded.bytes, ended_at = excluded.ended_at";
    let newest = tx.first(NEWEST, params![id.0]).await?;
    let newest = newest.map(|mut row| page(&mut row)).transpose()?;
    let mut pages = Vec::from_iter(newest);
    for (seq, bytes) in records {
        page_limits.place(&mut pages, Seq(seq), bytes, at);
    }
    let ints = |value: fn(&Page) -> i64| Value::Ints(pages.iter().map(value).collect());
    let columns = [
        ("page", ints(|page| page.number)),
        ("first_seq", ints(|page| page.first.0)),
        ("last_seq", ints(|page| page.last.0)),
        ("bytes", ints(|page| page.bytes)),
        ("begun_at", ints(|page| page.begun_at.timestamp_micros())),
        ("ended_at", ints(|page| page.ended_at.timestamp_micros())),
    ];
    tx.execute_rows(KEEP, params![id.0], &columns).await.map(drop)
}

/// Returns the oldest pages of a log that can be dropped because no subscription is owed a record
/// in them; at most [`FEW`].
async fn find(
    tx: &Tx<'_>,
    id: i64,
    retention: ArchiveRetention,
    now: DateTime<Utc>,
) -> Result<Vec<Page>, StoreError> {
    const OLDEST: &str = concat!(
        "select ",
        page_columns!(),
        ", (select max(page) from pages where resource_id = $1)
           from pages p
          where p.resource_id = $1
          order by p.page
          limit $2"
    );
    // A subscription whose delivery failed is owed records, even if it waits for the next change or is paused.
    // While there is a backlog, all subscriptions count, because some of them are in it; so they do
    // while a pass has yet to find those that are behind. A lease
    // that ended may be renewed, and the subscription then continues where it stopped (rule D9).
    // The cursor of a subscription to whole documents counts versions of the body and not records.
    const OWED: &str = "
        select min(owed.cursor)
          from (select cursor
                  from subscriptions
                 where resource_id = $1 and format <> 'raw'
                   and (failures > 0 or paused_at is not null
                        or exists (select 1 from fan_outs where resource_id = $1)
                        or exists (select 1 from backlogs where resource_id = $1))
                union all
                select cursor from collection_cursors where resource_id = $1
                union all
                select cursor from kept_cursors
                 where resource_id = $1 and counts_bodies = 0 and until > $2) owed";
    let mut pages = Vec::new();
    for mut row in tx.query(OLDEST, params![id, FEW]).await? {
        let (page, newest) = (page(&mut row)?, row.int()?);
        if !retention.drops(&page, newest, now) {
            break;
        }
        pages.push(page);
    }
    if !pages.is_empty() {
        let owed = tx.first(OWED, params![id, now]).await?;
        if let Some(cursor) = owed.map_or(Ok(None), |mut row| row.opt_int())? {
            pages.retain(|page| page.last.0 <= cursor);
        }
    }
    Ok(pages)
}

/// Drops the pages that [`find`] returns once the resource is locked. Returns how many.
async fn drop_some(
    tx: &Tx<'_>,
    id: i64,
    retention: ArchiveRetention,
    now: DateTime<Utc>,
) -> Result<u64, StoreError> {
    const RECORDS: &str = "delete from records where resource_id = $1 and seq <= $2";
    const PAGES: &str = "delete from pages where resource_id = $1 and page <= $2";
    row::lock(tx, vec![id]).await?;
    let pages = find(tx, id, retention, now).await?;
    let Some(newest) = pages.last() else { return Ok(0) };
    removal::remove_old(tx, id, newest.last.0).await?;
    tx.execute(RECORDS, params![id, newest.last.0]).await?;
    tx.execute(PAGES, params![id, newest.number]).await
}

fn page(row: &mut Row) -> Result<Page, StoreError> {
    Ok(Page {
        number: row.int()?,
        first: Seq(row.int()?),
        last: Seq(row.int()?),
        bytes: row.int()?,
        begun_at: row.time()?,
        ended_at: row.time()?,
    })
}

fn archived(mut row: Row) -> Result<Archived, StoreError> {
    let (is_again, replaces) = (row.int()? != 0, row.text()?);
    Ok(Archived { is_again, replaces: ArchivedId::read(&replaces), record: record(row)? })
}
