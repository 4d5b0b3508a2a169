//! The lines of changes.xml: pings, and changes that a poll found without a ping.
//!
//! A line contains what was known when it was stored, and is never changed. A line is deleted only
//! within its own hour, when a ping reports the same change. An address with a password in it is
//! never listed, nor is a topic with a token in it (rule S48), nor, unless a ping says so, that a topic
//! is watched that only accounts subscribe to (rule S56).

pub(crate) mod change_marks;
pub(crate) mod hours;
pub(crate) mod ping_batcher;
pub(crate) mod pings;

use std::collections::HashMap;

use chrono::{DateTime, TimeDelta, Utc};
use futures_util::future::try_join_all;
use url::Url;

use super::engine::row::Row;
use super::engine::sql::{Value, params};
use super::engine::tx::Tx;
use crate::resources::row::{self, exposure_columns};
use crate::{Db, Store};
use feedgate_core::ping::{Ping, PingSource, TimeUnit, WeblogChange, start_of_hour};
use feedgate_core::redaction;
use feedgate_core::resource::ResourceId;
use feedgate_core::status::Status;
use feedgate_core::store::{ChangeLine, ChangesHour, ChangesWindow, StoreError};
use feedgate_core::topic::Topic;
use feedgate_core::visibility::{ListedTopics, Visibility};

/// A ping this soon after a poll found a change reports that same change.
const SAME_CHANGE: TimeDelta = TimeDelta::minutes(5);
/// The most lines read at once, whatever limit the caller gives.
const PAGE_LINES: i64 = 1_000;
/// The source of a line without a ping.
const SEEN: &str = "seen";
/// The number of lines dropped in one transaction.
const BATCH: i64 = 1_000;

/// The lines of changes.xml and related documents: pings, and changes found by polls. All reads are
/// paged.
impl Store {
    /// Returns the number of the newest line, and the total number of pings received.
    pub async fn newest_change(&self) -> Result<(i64, u64), StoreError> {
        if let Some(db) = self.only_cell() {
            return db.newest_change().await;
        }
        let each = self.each(|db| db.newest_change()).await?;
        let (newest, counts): (Vec<i64>, Vec<u64>) = each.into_iter().unzip();
        Ok((self.change_marks.add(&newest), counts.into_iter().sum()))
    }

    /// Returns a page of the lines in `window`, newest first, after the line `after`; empty at the
    /// end.
    pub async fn changes(
        &self,
        window: &ChangesWindow,
        after: Option<&ChangeLine>,
    ) -> Result<Vec<ChangeLine>, StoreError> {
        if let Some(db) = self.only_cell() {
            return db.changes(window, after).await;
        }
        let newest = self.change_marks.get(window.newest);
        let pages = self.cells.iter().enumerate().map(|(number, cell)| {
            let newest = newest.as_ref().and_then(|newest| newest.get(number).copied());
            let window = ChangesWindow { newest: newest.unwrap_or(i64::MAX), ..*window };
            async move { cell.changes(&window, after).await }
        });
        let mut lines: Vec<ChangeLine> = try_join_all(pages).await?.into_iter().flatten().collect();
        lines.sort_by_key(|line| std::cmp::Reverse((line.change.at, line.id)));
        lines.truncate(PAGE_LINES as usize);
        Ok(lines)
    }

    /// Returns the stored hour that begins at this time.
    pub async fn hour(&self, begins: DateTime<Utc>) -> Result<Option<ChangesHour>, StoreError> {
        self.shared.read(move |tx| Box::pin(hours::find(tx, begins))).await
    }

    /// Returns a page of the lines of an hour, newest first.
    pub async fn hour_part(
        &self,
        begins: DateTime<Utc>,
        part: usize,
    ) -> Result<Vec<WeblogChange>, StoreError> {
        self.shared.read(move |tx| Box::pin(hours::part(tx, begins, part))).await
    }

    /// Returns the beginning of the first hour that is not stored yet; `None` if there was never a
    /// line.
    pub async fn open_hour(&self) -> Result<Option<DateTime<Utc>>, StoreError> {
        if let Some(db) = self.only_cell() {
            return db.open_hour().await;
        }
        if let Some(open) = self.shared.open_hour().await? {
            return Ok(Some(open));
        }
        let first = self.each(|db| db.open_hour()).await?;
        Ok(first.into_iter().flatten().min())
    }

    /// Stores the hours that ended long enough before `now` for all lines to have been written.
    /// Their documents count in `unit`. Returns the number of hours.
    pub async fn save_hours(&self, now: DateTime<Utc>, unit: TimeUnit) -> Result<u64, StoreError> {
        hours::keep_all(self, now, unit).await
    }

    /// Deletes lines from before `before` whose hour is stored, and hours from before
    /// `hours_before` if given. Returns the number of lines.
    pub async fn prune_changes(
        &self,
        before: DateTime<Utc>,
        hours_before: Option<DateTime<Utc>>,
    ) -> Result<u64, StoreError> {
        if let Some(before) = hours_before {
            self.shared.prune_hours(before).await?;
        }
        let Some(open) = self.open_hour().await? else { return Ok(0) };
        self.sum(|db| db.prune_lines(before.min(open))).await
    }
}

impl Db {
    async fn newest_change(&self) -> Result<(i64, u64), StoreError> {
        // Earlier versions counted all pings in the row `pings`.
        const NEWEST: &str = "
            select coalesce((select max(id) from changes), 0),
                   coalesce((select cast(sum(count) as bigint) from counters
                              where name = 'pings' or name like 'pings/%'), 0)";
        let rows = self.rows(NEWEST, &[]).await?;
        rows.into_iter().next().map_or(Ok((0, 0)), |mut row| Ok((row.int()?, row.count()?)))
    }

    async fn changes(
        &self,
        window: &ChangesWindow,
        after: Option<&ChangeLine>,
    ) -> Result<Vec<ChangeLine>, StoreError> {
        let (window, after) = (*window, after.map(|line| (line.change.at, line.id)));
        self.read(move |tx| Box::pin(page(tx, window, after))).await
    }

    async fn open_hour(&self) -> Result<Option<DateTime<Utc>>, StoreError> {
        self.read(|tx| Box::pin(hours::open(tx))).await
    }
}

impl Db {
    /// Deletes the stored hours before `before`, except the last.
    pub(crate) async fn prune_hours(&self, before: DateTime<Utc>) -> Result<(), StoreError> {
        while self.write(move |tx| Box::pin(hours::forget(tx, before))).await? > 0 {}
        Ok(())
    }

    /// Deletes the lines before `before`, which are in stored hours. Returns how many.
    pub(crate) async fn prune_lines(&self, before: DateTime<Utc>) -> Result<u64, StoreError> {
        const LINES: &str = "
            delete from changes
             where id in (select id from changes where at < $1 order by at limit $2)";
        self.delete_in_batches(LINES, before, BATCH).await
    }
}

/// Returns a page of the lines in `window`, newest first, after the line of that time and number.
async fn page(
    tx: &Tx<'_>,
    window: ChangesWindow,
    after: Option<(DateTime<Utc>, i64)>,
) -> Result<Vec<ChangeLine>, StoreError> {
    // The plus keeps both databases from reading by number and sorting.
    const PAGE: &str = "
        select id, at, name, url, feed_url
          from changes
         where at >= $1 and (at, id) < ($2, $3) and +id <= $4
         order by at desc, id desc
         limit $5";
    // No line has the number 0, so the end of the window itself is left out.
    let (at, id) = after.unwrap_or((window.until, 0));
    let params = params![window.from, at, id, window.newest, PAGE_LINES];
    tx.query(PAGE, params).await?.into_iter().map(line).collect()
}

fn line(mut row: Row) -> Result<ChangeLine, StoreError> {
    let id = row.int()?;
    let (at, name, url, feed_url) = (row.time()?, row.text()?, row.text()?, row.opt_text()?);
    Ok(ChangeLine { id, change: WeblogChange { at, name, url, feed_url } })
}

/// What the line of a ping may say of a resource that the ping names.
#[derive(Clone, Debug)]
pub(super) struct NamedResource {
    id: i64,
    topic: Topic,
    site: Option<String>,
    title: String,
    visibility: Visibility,
}

impl NamedResource {
    /// Returns whether the sender may learn that the resource is watched.
    pub(super) fn is_readable(&self) -> bool {
        self.visibility > Visibility::Private
    }
}

/// Returns what lines may say of these resources, by their number.
pub(super) async fn named_resources(
    tx: &Tx<'_>,
    ids: Vec<i64>,
    listed: ListedTopics,
) -> Result<HashMap<i64, NamedResource>, StoreError> {
    const WHOSE: &str = concat!(
        "select r.id, r.topic, r.site_url, d.status, ",
        exposure_columns!(),
        " from resources r join resource_details d on d.resource_id = r.id
         where r.id in ({ids $1})"
    );
    if ids.is_empty() {
        return Ok(HashMap::new());
    }
    let rows = tx.query(WHOSE, &[Value::Ints(ids)]).await?;
    let read = |mut row: Row| {
        let (id, topic, site) = (row.int()?, row::topic(&mut row)?, row.opt_text()?);
        let (status, exposure): (Status, _) = (row.json()?, row::exposure(&mut row)?);
        let visibility = exposure.visibility(&topic, listed);
        Ok((id, NamedResource { id, topic, site, title: status.title, visibility }))
    };
    rows.into_iter().map(read).collect()
}

/// Adds a line to changes.xml for each ping, with the resources that it named.
pub(super) async fn insert_ping_lines(
    tx: &Tx<'_>,
    pings: &[(&Ping, &[i64])],
    resources: &HashMap<i64, NamedResource>,
) -> Result<(), StoreError> {
    let lines = pings.iter().filter_map(|(ping, named)| {
        let named: Vec<_> = named.iter().filter_map(|id| resources.get(id)).collect();
        let (change, resource) = line_of(ping, &named)?;
        Some(async move { insert_change(tx, &change, ping.source.as_str(), resource).await })
    });
    // The statements are sent one after another, without waiting for the answers in between.
    try_join_all(lines).await.map(drop)
}

/// Removes the lines of these resources that a ping at `at` replaces: a change that a poll found a
/// moment ago is the same change, unless its line is in an hour that is over.
pub(super) async fn replace_seen(
    tx: &Tx<'_>,
    ids: Vec<i64>,
    at: DateTime<Utc>,
) -> Result<(), StoreError> {
    const SAME: &str = "
        delete from changes
         where source = 'seen' and resource_id in ({ids $1}) and at between $2 and $3";
    let since = (at - SAME_CHANGE).max(start_of_hour(at));
    tx.execute(SAME, params![Value::Ints(ids), since, at]).await.map(drop)
}

/// Lists a change that a poll found without a ping, if lists contain the resource.
pub(super) async fn seen(
    tx: &Tx<'_>,
    (id, listed): (ResourceId, ListedTopics),
    title: &str,
    at: DateTime<Utc>,
) -> Result<(), StoreError> {
    const WHERE: &str = concat!(
        "select r.topic, r.site_url, ",
        exposure_columns!(),
        " from resources r where r.id = $1"
    );
    let Some(mut row) = tx.first(WHERE, params![id.0]).await? else { return Ok(()) };
    let (topic, site) = (row::topic(&mut row)?, row.opt_text()?);
    let visibility = row::exposure(&mut row)?.visibility(&topic, listed);
    let topic = topic.as_str().to_owned();
    let url = site.unwrap_or_else(|| topic.clone());
    if visibility < Visibility::Listed || !is_public(&url) {
        return Ok(());
    }
    let change = WeblogChange { at, name: title.to_owned(), url, feed_url: Some(topic) };
    insert_change(tx, &change, SEEN, Some(id.0)).await
}

async fn insert_change(
    tx: &Tx<'_>,
    change: &WeblogChange,
    source: &'static str,
    resource: Option<i64>,
) -> Result<(), StoreError> {
    const KEEP: &str = "
        insert into changes (at, source, name, url, feed_url, resource_id)
        values ($1, $2, $3, $4, $5, $6)";
    let WeblogChange { at, name, url, feed_url } = change;
    // PostgreSQL stores no text with U+0000 in it, and the content of a ping is untrusted.
    let plain = |text: &String| text.replace('\0', "");
    let (name, url, feed_url) = (plain(name), plain(url), feed_url.as_ref().map(plain));
    let params = params![*at, source, name, url, feed_url, resource];
    tx.execute(KEEP, params).await.map(drop)
}

/// Returns the line of a ping with the resource that it is about, or `None` if the line would reveal a
/// password. A ping whose sender need not know the password in the topic is listed unchanged.
///
/// Of a resource that is not listed, the line says nothing but what the sender said, as if nobody
/// watched it.
fn line_of(ping: &Ping, named: &[&NamedResource]) -> Option<(WeblogChange, Option<i64>)> {
    let (at, name, url) = (ping.at, ping.name.clone(), ping.url.clone());
    let feed_url = ping.feed_url.clone();
    if ping.source == PingSource::Console {
        return None;
    }
    if has_credentials(&url) || feed_url.as_deref().is_some_and(has_credentials) {
        return None;
    }
    let is_secret = named.iter().any(|resource| !resource.topic.is_public());
    if is_secret && !(is_public(&url) && feed_url.as_deref().is_none_or(is_public)) {
        return None;
    }
    let listed = named.iter().find(|resource| resource.visibility == Visibility::Listed);
    if ping.source == PingSource::Upstream && listed.is_none() {
        return None; // the address in it is what was subscribed to, and its sender did not choose it
    }
    let Some(NamedResource { id, topic, site, title, .. }) = listed else {
        return Some((WeblogChange { at, name, url, feed_url }, None));
    };
    let feed_url = feed_url.or_else(|| Some(topic.as_str().to_owned()));
    // A ping without a name is a ping of the feed; the line is about the weblog of that feed.
    let site = site.clone().filter(|site| is_public(site));
    let (name, url) =
        if name.is_empty() { (title.clone(), site.unwrap_or(url)) } else { (name, url) };
    Some((WeblogChange { at, name, url, feed_url }, Some(*id)))
}

fn is_public(url: &str) -> bool {
    Url::parse(url).map_or(true, |url| redaction::is_public(&url))
}

fn has_credentials(url: &str) -> bool {
    Url::parse(url).is_ok_and(|url| !url.username().is_empty() || url.password().is_some())
}
