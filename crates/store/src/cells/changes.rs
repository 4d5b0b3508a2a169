//! Pings, and the lines of changes.xml: a line is in the cell of the resource that it is about, or
//! in one that the address chooses. The hours that are over are in the shared schema.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use async_trait::async_trait;
use chrono::{DateTime, Utc};
use futures_util::future::try_join_all;

use crate::Db;
use crate::cells::Cells;
use crate::cells::numbers::number_at;
use crate::changes::{hours, pings};
use feedgate_core::ping::{Ping, TimeUnit, WeblogChange};
use feedgate_core::ports::{ChangeLine, Changes, ChangesHour, ChangesWindow, Pings, StoreError};

/// The most lines of a page, as in a store of one cell.
const PAGE_LINES: usize = 1_000;
/// The number of marks that are remembered: more than documents are rendered at the same time.
const MARKS: usize = 1_024;

/// The newest line of each cell, by the mark that stands for all of them.
#[derive(Debug, Default)]
pub(super) struct ChangeMarks(Mutex<BTreeMap<i64, Arc<[i64]>>>);

impl ChangeMarks {
    /// Returns the mark of these newest lines: their sum without the numbers of their cells, which
    /// grows with each line.
    fn add(&self, newest: &[i64]) -> i64 {
        let local = newest.iter().enumerate().map(|(cell, newest)| newest - number_at(cell));
        let mark = local.map(|newest| newest.max(0)).sum();
        let mut marks = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        marks.insert(mark, newest.into());
        if marks.len() > MARKS {
            marks.pop_first();
        }
        mark
    }

    /// Returns the newest line of each cell when this mark was made, if that is known.
    fn get(&self, mark: i64) -> Option<Arc<[i64]>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).get(&mark).cloned()
    }
}

#[async_trait]
impl Changes for Cells {
    async fn newest_change(&self) -> Result<(i64, u64), StoreError> {
        let each = try_join_all(self.cells.iter().map(|cell| cell.newest_change())).await?;
        let (newest, counts): (Vec<i64>, Vec<u64>) = each.into_iter().unzip();
        Ok((self.change_marks.add(&newest), counts.into_iter().sum()))
    }

    async fn changes(
        &self,
        window: &ChangesWindow,
        after: Option<&ChangeLine>,
    ) -> Result<Vec<ChangeLine>, StoreError> {
        let newest = self.change_marks.get(window.newest);
        let pages = self.cells.iter().enumerate().map(|(number, cell)| {
            let newest = newest.as_ref().and_then(|newest| newest.get(number).copied());
            let window = ChangesWindow { newest: newest.unwrap_or(i64::MAX), ..*window };
            async move { cell.changes(&window, after).await }
        });
        let mut lines: Vec<ChangeLine> = try_join_all(pages).await?.into_iter().flatten().collect();
        lines.sort_by_key(|line| std::cmp::Reverse((line.change.at, line.id)));
        lines.truncate(PAGE_LINES);
        Ok(lines)
    }

    async fn hour(&self, begins: DateTime<Utc>) -> Result<Option<ChangesHour>, StoreError> {
        self.shared.hour(begins).await
    }

    async fn hour_part(
        &self,
        begins: DateTime<Utc>,
        part: usize,
    ) -> Result<Vec<WeblogChange>, StoreError> {
        self.shared.hour_part(begins, part).await
    }

    async fn open_hour(&self) -> Result<Option<DateTime<Utc>>, StoreError> {
        if let Some(open) = self.shared.open_hour().await? {
            return Ok(Some(open));
        }
        let first = try_join_all(self.cells.iter().map(|cell| cell.open_hour())).await?;
        Ok(first.into_iter().flatten().min())
    }

    async fn save_hours(&self, now: DateTime<Utc>, unit: TimeUnit) -> Result<u64, StoreError> {
        hours::keep_all(&self.shared, self, now, unit).await
    }

    async fn prune_changes(
        &self,
        before: DateTime<Utc>,
        hours_before: Option<DateTime<Utc>>,
    ) -> Result<u64, StoreError> {
        if let Some(before) = hours_before {
            self.shared.prune_hours(before).await?;
        }
        let Some(open) = self.open_hour().await? else { return Ok(0) };
        let pruned = self.cells.iter().map(|cell| cell.prune_lines(before.min(open)));
        Ok(try_join_all(pruned).await?.into_iter().sum())
    }
}

#[async_trait]
impl Pings for Cells {
    async fn receive(&self, ping: &Ping, spacing: Duration) -> Result<usize, StoreError> {
        let named = try_join_all(self.cells.iter().map(|cell| cell.names(ping))).await?;
        let mut naming = self.cells.iter().zip(named).filter(|(_, names)| *names);
        // One cell lists the ping; in the others that have such resources, these become due.
        let listing = naming.next().map_or_else(|| self.of_topic(&ping.url), |(cell, _)| cell);
        let mut count = listing.receive(ping, spacing).await?;
        for (cell, _) in naming {
            count += cell.mark_named_resources(ping, spacing).await?;
        }
        Ok(count)
    }
}

impl Db {
    /// Returns whether a ping names resources here.
    async fn names(&self, ping: &Ping) -> Result<bool, StoreError> {
        let ping = [ping.clone()];
        let named = self.read(move |tx| Box::pin(async move { pings::named(tx, &ping).await }));
        Ok(named.await?.iter().any(|named| !named.is_empty()))
    }

    /// Makes the resources that a ping names due. The ping is listed in changes.xml by another cell.
    /// Returns their number.
    async fn mark_named_resources(
        &self,
        ping: &Ping,
        spacing: Duration,
    ) -> Result<usize, StoreError> {
        let ping = ping.clone();
        self.write(move |tx| Box::pin(pings::mark_named_resources(tx, ping, spacing))).await
    }
}
