//! The events of the event log.
//!
//! Numbers are assigned under the lock of one row, so that events become visible in their order: a
//! client that has read up to a number has missed no event before it, whichever node wrote it.

use std::borrow::Cow;
use std::time::Duration;

use chrono::{DateTime, Utc};

use super::engine::row::Row;
use super::engine::sql::{Value, params};
use super::engine::tx::Tx;
use crate::log::row::most;
use crate::{Db, Store};
use feedgate_core::account::AccountId;
use feedgate_core::event::{
    Event, EventFilter, EventKind, EventOutcome, EventPage, EventViewer, StoredEvent,
};
use feedgate_core::redaction;
use feedgate_core::store::{EventNumbers, StoreError};

/// The number of rows dropped in one transaction: few enough that no other transaction waits long.
const BATCH: i64 = 1_000;

/// The columns as [`kept`] reads them, and the conditions on the rows.
macro_rules! wanted {
    ($then:literal) => {
        concat!(
            "select id, at, kind, outcome, code, via, feed, callback, account_id, count, took_ms,
                    detail, private_detail, is_unlisted
               from events
              where id > $1 and id < $2
                and (cast($3 as text) is null or kind = $3)
                and (cast($4 as text) is null or outcome = $4)
                and (cast($5 as text) is null or lower(feed) like $5 escape '\\')
                and (cast($6 as text) is null or redacted_callback = $7
                     or lower(redacted_callback) like $6 escape '\\'
                     or ((account_id = $8 or cast($9 as bigint) = 1) and lower(callback) like $6 escape '\\'))",
            $then
        )
    };
}

/// The statements that keep a number of events of one kind. The condition is that of a partial index.
/// Rows are deleted by a range of their numbers: a list of numbers may be compared with all events, if PostgreSQL
/// made its plan while there were few.
struct KindStatements {
    /// The number of events, up to a limit.
    count: &'static str,
    /// The newest of those beyond a number of newest events.
    excess: &'static str,
    /// The last of a number of oldest events between two numbers.
    batch: &'static str,
    /// Deletes those between two numbers. Without the first, PostgreSQL would read again what was deleted.
    delete: &'static str,
}

macro_rules! kind_statements {
    ($condition:literal) => {
        KindStatements {
            count: concat!(
                "select count(*) from (select 1 from events where kind = $1 and ",
                $condition,
                " limit $2) found"
            ),
            excess: concat!(
                "select id from events where kind = $1 and ",
                $condition,
                " order by id desc limit 1 offset $2"
            ),
            batch: concat!(
                "select id from events where kind = $1 and ",
                $condition,
                " and id > $2 and id <= $3 order by id limit 1 offset $4"
            ),
            delete: concat!(
                "delete from events where kind = $1 and ",
                $condition,
                " and id > $2 and id <= $3"
            ),
        }
    };
}

const OF_ACCOUNTS: KindStatements = kind_statements!("account_id <> 0");
const OF_OTHERS: KindStatements = kind_statements!("account_id = 0");

/// The events of the event log.
impl Store {
    /// Stores events in this order. Returns the number of the last.
    pub async fn append_events(&self, events: Vec<Event>) -> Result<i64, StoreError> {
        self.shared.write(move |tx| Box::pin(insert_events(tx, events))).await
    }

    /// Returns the events selected by `query`: with `after` the oldest of them first, else the
    /// newest.
    pub async fn events(&self, wanted: &EventFilter) -> Result<EventPage, StoreError> {
        let db = &self.shared;
        const NEWEST: &str = wanted!(" order by id desc limit $10");
        const NEXT: &str = wanted!(" order by id limit $10");
        let (account, is_admin) = match wanted.viewer {
            // No account has this number, and no event without an account has it either.
            EventViewer::Anonymous => (-1, false),
            EventViewer::Account(id) => (id.0, false),
            EventViewer::Admin => (-1, true),
        };
        let callback = wanted.callback.as_str();
        let range = db.examined(wanted).await?;
        #[rustfmt::skip]
        let params = params![
            range.after, range.before,
            wanted.kind.map(EventKind::as_str), wanted.outcome.map(EventOutcome::as_str),
            holding(&redaction::feed(&wanted.feed)), holding(callback), redaction::callback(callback),
            account, is_admin, most(wanted.limit),
        ];
        let rows = db.rows(if wanted.after.is_some() { NEXT } else { NEWEST }, params).await?;
        let events = rows.into_iter().map(kept).collect::<Result<Vec<_>, StoreError>>()?;
        let last = events.last().filter(|_| events.len() == wanted.limit).map(|last| last.id);
        Ok(EventPage { next: last.or(range.next), next_if_empty: range.next, events })
    }

    /// Returns the numbers of the oldest and the newest event.
    pub async fn event_numbers(&self) -> Result<EventNumbers, StoreError> {
        self.shared.event_numbers().await
    }

    /// Deletes events from before `before`, and the oldest events of each kind that has more than
    /// `most_of_a_kind`. Events of accounts and of others have a half each, and what the others do not
    /// use: a flood of requests without an account deletes no event that an account can use. Returns the
    /// number of deleted events.
    pub async fn trim_events(
        &self,
        before: DateTime<Utc>,
        most_of_a_kind: usize,
    ) -> Result<u64, StoreError> {
        let db = &self.shared;
        const OLD: &str = "
            delete from events
             where id in (select id from (select id, at from events order by id limit $2) oldest
                           where at < $1)";
        let mut dropped = db.delete_in_batches(OLD, before, BATCH).await?;
        let most = most(most_of_a_kind);
        let half = most / 2;
        for kind in EventKind::ALL.iter().map(|kind| kind.as_str()) {
            let of_accounts = db.count(OF_ACCOUNTS.count, params![kind, half]).await? as i64;
            let of_others = db.count(OF_OTHERS.count, params![kind, most - half]).await? as i64;
            dropped += db.trim_kind(&OF_ACCOUNTS, kind, most - of_others).await?;
            dropped += db.trim_kind(&OF_OTHERS, kind, most - of_accounts).await?;
        }
        Ok(dropped)
    }
}

impl Db {
    async fn event_numbers(&self) -> Result<EventNumbers, StoreError> {
        const NUMBERS: &str = "
            select coalesce((select count from counters where name = 'events'), 0),
                   (select min(id) from events)";
        let mut rows = self.rows(NUMBERS, &[]).await?;
        let mut row = rows.pop().ok_or(StoreError::Corrupt("no numbers of events".into()))?;
        let newest = row.int()?;
        Ok(EventNumbers { newest, oldest: row.opt_int()?.unwrap_or(newest + 1) })
    }
}

/// The numbers of the events that a search examines, without the bounds.
struct Examined {
    after: i64,
    before: i64,
    /// Where the next search begins, if there are events beyond.
    next: Option<i64>,
}

impl Db {
    /// Returns which events a search examines.
    async fn examined(&self, wanted: &EventFilter) -> Result<Examined, StoreError> {
        let (after, before) = (wanted.after.unwrap_or(0), wanted.before.unwrap_or(i64::MAX));
        if !wanted.is_selective() {
            return Ok(Examined { after, before, next: None });
        }
        let newest = self.event_numbers().await?.newest;
        let before = before.min(newest + 1);
        if before.saturating_sub(after).saturating_sub(1) <= EventFilter::EXAMINED {
            return Ok(Examined { after, before, next: None });
        }
        Ok(match wanted.after {
            Some(after) => {
                let last = after + EventFilter::EXAMINED;
                Examined { after, before: last + 1, next: Some(last) }
            }
            None => {
                let first = before - EventFilter::EXAMINED;
                Examined { after: first - 1, before, next: Some(first) }
            }
        })
    }

    /// Deletes all but the newest `most` events of a kind. Returns how many.
    async fn trim_kind(
        &self,
        statements: &'static KindStatements,
        kind: &'static str,
        most: i64,
    ) -> Result<u64, StoreError> {
        let Some(last) = self.event_id(statements.excess, params![kind, most]).await? else {
            return Ok(0);
        };
        let (mut after, mut dropped) = (0, 0);
        while after < last {
            let batch =
                self.event_id(statements.batch, params![kind, after, last, BATCH - 1]).await?;
            let upto = batch.unwrap_or(last);
            let params = params![kind, after, upto].to_vec();
            let delete = self.write(move |tx| {
                Box::pin(async move { tx.execute(statements.delete, &params).await })
            });
            dropped += delete.await?;
            after = upto;
        }
        Ok(dropped)
    }

    async fn event_id(
        &self,
        sql: &'static str,
        params: &[Value],
    ) -> Result<Option<i64>, StoreError> {
        self.rows(sql, params).await?.pop().map(|mut row| row.int()).transpose()
    }
}

/// Returns the pattern of texts that contain `text`, or `None` if it is empty.
fn holding(text: &str) -> Option<String> {
    let text = without_nul(text.trim()).to_ascii_lowercase();
    let escaped = text.replace('\\', "\\\\").replace('%', "\\%").replace('_', "\\_");
    (!text.is_empty()).then(|| format!("%{escaped}%"))
}

/// Inserts `events` and returns the number of the last one.
async fn insert_events(tx: &Tx<'_>, events: Vec<Event>) -> Result<i64, StoreError> {
    const NUMBER: &str = "
        insert into counters (name, count) values ('events', $1)
            on conflict (name) do update set count = counters.count + excluded.count
        returning count";
    const KEEP: &str = "
        insert into events (id, at, kind, outcome, code, via, feed, callback,
                            redacted_callback, account_id, count, took_ms, detail,
                            private_detail, is_unlisted)
        select given.id, given.at, given.kind, given.outcome, given.code, given.via, given.feed,
               given.callback, given.redacted_callback, given.account_id, given.count,
               nullif(given.took_ms, -1), given.detail, given.private_detail, given.is_unlisted
          from {rows}";
    let many = events.len() as i64;
    let last = tx.first(NUMBER, params![many]).await?;
    let last = last.map_or(Ok(0), |mut row| row.int())?;
    let ints = |of: fn(&Event) -> i64| Value::Ints(events.iter().map(of).collect());
    let texts = |of: fn(&Event) -> String| Value::Texts(events.iter().map(of).collect());
    let columns = [
        ("id", Value::Ints((last - many + 1..=last).collect())),
        ("at", ints(|event| event.at.timestamp_micros())),
        ("kind", texts(|event| event.kind.as_str().to_owned())),
        ("outcome", texts(|event| event.outcome.as_str().to_owned())),
        ("code", texts(|event| event.code.to_string())),
        ("via", texts(|event| event.via.to_string())),
        ("feed", texts(|event| without_nul(&event.feed))),
        ("callback", texts(|event| without_nul(&event.callback))),
        ("redacted_callback", texts(|event| redaction::callback(&event.callback))),
        ("account_id", ints(|event| event.account.map_or(0, |account| account.0))),
        ("count", ints(|event| i64::try_from(event.many).unwrap_or(i64::MAX))),
        ("took_ms", ints(|event| event.took.map_or(-1, |took| took.as_millis() as i64))),
        ("detail", texts(|event| without_nul(&event.detail))),
        ("private_detail", texts(|event| without_nul(&event.private_detail))),
        ("is_unlisted", ints(|event| event.is_unlisted.into())),
    ];
    tx.execute_rows(KEEP, &[], &columns).await?;
    Ok(last)
}

/// Removes U+0000, which PostgreSQL does not store.
fn without_nul(text: &str) -> String {
    text.replace('\0', "")
}

fn kept(mut row: Row) -> Result<StoredEvent, StoreError> {
    let id = row.int()?;
    let event = Event {
        at: row.time()?,
        kind: row.word(EventKind::from_word)?,
        outcome: row.word(EventOutcome::from_word)?,
        code: Cow::Owned(row.text()?),
        via: Cow::Owned(row.text()?),
        feed: row.text()?,
        callback: row.text()?,
        account: Some(row.int()?).filter(|id| *id != 0).map(AccountId),
        many: row.count()?,
        took: row.opt_int()?.map(|ms| Duration::from_millis(ms.unsigned_abs())),
        detail: row.text()?,
        private_detail: row.text()?,
        is_unlisted: row.int()? != 0,
    };
    Ok(StoredEvent { id, event })
}
