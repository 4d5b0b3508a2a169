//! The hours of changes.xml that are over: stored whole, so that their documents do not change when
//! the lines in them are deleted.
//!
//! An hour is stored page by page, each in a transaction of its own, and is complete once its row
//! in `change_hours` exists. Two nodes that store an hour at the same time write the same.

use std::io::{Read, Write};

use chrono::{DateTime, TimeDelta, Utc};
use flate2::Compression;
use flate2::read::GzDecoder;
use flate2::write::GzEncoder;

use crate::Store;
use crate::engine::sql::params;
use crate::engine::tx::Tx;
use feedgate_core::ping::{HOUR, TimeUnit, WeblogChange, start_of_hour};
use feedgate_core::store::{ChangesHour, ChangesWindow, StoreError};

/// How long after its end an hour is stored. No transaction takes so long, so every line that was
/// received in the hour has been committed by then.
const SETTLED: TimeDelta = TimeDelta::minutes(2);
/// The most hours stored in one run: a node that starts after a long time needs several runs.
const MOST_HOURS: u64 = 1_000;
/// The number of hours deleted in one transaction: a day, which may have hundreds of parts.
const HOUR_BATCH: i64 = 24;

/// A packed line: microseconds, name, address, the feed's address.
type Packed = (i64, String, String, Option<String>);

/// Returns the hour that begins at this time.
pub(crate) async fn find(
    tx: &Tx<'_>,
    begins: DateTime<Utc>,
) -> Result<Option<ChangesHour>, StoreError> {
    const FIND: &str = "select unit, count, parts from change_hours where hour = $1";
    let Some(mut row) = tx.first(FIND, params![begins]).await? else { return Ok(None) };
    let (unit, count) = (row.word(TimeUnit::from_word)?, row.count()?);
    Ok(Some(ChangesHour { unit, count, parts: row.small()? as usize }))
}

/// Returns a page of the lines of an hour.
pub(crate) async fn part(
    tx: &Tx<'_>,
    begins: DateTime<Utc>,
    part: usize,
) -> Result<Vec<WeblogChange>, StoreError> {
    const PART: &str = "select lines from change_hour_parts where hour = $1 and part = $2";
    let row = tx.first(PART, params![begins, part as i64]).await?;
    let mut row = row.ok_or_else(|| StoreError::Corrupt(format!("no page {part} of {begins}")))?;
    unpack(&row.blob()?)
}

/// Returns the first hour that is not stored yet.
pub(crate) async fn open(tx: &Tx<'_>) -> Result<Option<DateTime<Utc>>, StoreError> {
    const LAST: &str = "select max(hour) from change_hours";
    const FIRST: &str = "select min(at) from changes";
    let last = tx.first(LAST, &[]).await?.map_or(Ok(None), |mut row| row.opt_time())?;
    if let Some(last) = last {
        return Ok(Some(last + HOUR));
    }
    let first = tx.first(FIRST, &[]).await?.map_or(Ok(None), |mut row| row.opt_time())?;
    Ok(first.map(start_of_hour))
}

/// Stores the hours that are over at `now`, with their lines. If
/// no change was ever listed, the hour that ended last is the first.
pub(crate) async fn keep_all(
    store: &Store,
    now: DateTime<Utc>,
    unit: TimeUnit,
) -> Result<u64, StoreError> {
    let settled = start_of_hour(now - SETTLED);
    let mut hour = store.open_hour().await?.unwrap_or(settled - HOUR);
    let mut kept = 0;
    while hour < settled && kept < MOST_HOURS {
        save_hour(store, hour, unit).await?;
        hour += HOUR;
        kept += 1;
    }
    Ok(kept)
}

async fn save_hour(store: &Store, hour: DateTime<Utc>, unit: TimeUnit) -> Result<(), StoreError> {
    const KEEP: &str = "
        insert into change_hours (hour, unit, count, parts) values ($1, $2, $3, $4)
            on conflict (hour) do nothing";
    let (newest, count) = store.newest_change().await?;
    let window = ChangesWindow { from: hour, until: hour + HOUR, newest };
    let (mut parts, mut after) = (0, None);
    loop {
        let lines = store.changes(&window, after.as_ref()).await?;
        if lines.is_empty() {
            break;
        }
        after = lines.last().cloned();
        let packed = pack(lines.into_iter().map(|line| line.change))?;
        store.shared.write(move |tx| Box::pin(keep_part(tx, hour, parts, packed))).await?;
        parts += 1;
    }
    let count = i64::try_from(count).unwrap_or(i64::MAX);
    let kept = store.shared.write(move |tx| {
        let params = params![hour, unit.as_str(), count, parts].to_vec();
        Box::pin(async move { tx.execute(KEEP, &params).await })
    });
    kept.await.map(drop)
}

/// Stores a page of an hour that is not complete yet, and replaces a page from an interrupted
/// attempt.
async fn keep_part(
    tx: &Tx<'_>,
    hour: DateTime<Utc>,
    part: i64,
    lines: Vec<u8>,
) -> Result<(), StoreError> {
    const KEPT: &str = "select 1 from change_hours where hour = $1";
    const KEEP: &str = "
        insert into change_hour_parts (hour, part, lines) values ($1, $2, $3)
            on conflict (hour, part) do update set lines = excluded.lines";
    if tx.first(KEPT, params![hour]).await?.is_some() {
        return Ok(());
    }
    tx.execute(KEEP, params![hour, part, lines]).await.map(drop)
}

/// Deletes up to a day of the hours before `before`, but never the last one, which marks where to
/// continue. Returns how many; 0 once none is left.
pub(crate) async fn forget(tx: &Tx<'_>, before: DateTime<Utc>) -> Result<u64, StoreError> {
    const HOURS: &str = "
        delete from change_hours
         where hour in (select hour from change_hours
                         where hour < $1 and hour < (select max(hour) from change_hours)
                         order by hour limit $2)";
    const PARTS: &str = "
        delete from change_hour_parts where hour < coalesce((select min(hour) from change_hours), 0)";
    let forgotten = tx.execute(HOURS, params![before, HOUR_BATCH]).await?;
    tx.execute(PARTS, &[]).await?;
    Ok(forgotten)
}

fn pack(lines: impl Iterator<Item = WeblogChange>) -> Result<Vec<u8>, StoreError> {
    let lines = lines.map(|line| {
        let packed: Packed = (line.at.timestamp_micros(), line.name, line.url, line.feed_url);
        packed
    });
    let json = serde_json::to_vec(&lines.collect::<Vec<_>>());
    let json = json.map_err(|err| StoreError::Corrupt(err.to_string()))?;
    let mut gzip = GzEncoder::new(Vec::new(), Compression::default());
    let packed = gzip.write_all(&json).and_then(|()| gzip.finish());
    packed.map_err(|err| StoreError::Corrupt(err.to_string()))
}

fn unpack(packed: &[u8]) -> Result<Vec<WeblogChange>, StoreError> {
    let corrupt = |err: &dyn std::error::Error| StoreError::Corrupt(err.to_string());
    let mut json = Vec::new();
    GzDecoder::new(packed).read_to_end(&mut json).map_err(|err| corrupt(&err))?;
    let lines: Vec<Packed> = serde_json::from_slice(&json).map_err(|err| corrupt(&err))?;
    let change = |(micros, name, url, feed_url)| {
        let at = DateTime::from_timestamp_micros(micros);
        let at = at.ok_or_else(|| StoreError::Corrupt(format!("{micros} is not a valid time")))?;
        Ok(WeblogChange { at, name, url, feed_url })
    };
    lines.into_iter().map(change).collect()
}
