//! All watched resources and all their subscriptions, read one range of keys at a time.
//!
//! A caller that needs everything requests one range after another: between requests no connection
//! is occupied, and no snapshot stays open for long.

use std::collections::BTreeSet;

use chrono::{DateTime, Utc};
use serde::Deserialize;

use crate::Store;
use crate::cells::numbers::number_at;
use crate::delivery::row::subscription_id;
use crate::engine::row::Row;
use crate::engine::sql::{Value, params};
use crate::engine::tx::Tx;
use crate::log::row::most;
use crate::resources::row::{exposure, exposure_columns, resource, resource_columns, topic};
use feedgate_core::account::AccountId;
use feedgate_core::resource::{ResourceId, ResourceKind};
use feedgate_core::store::{
    BodySummary, OpenSubscription, OpenSubscriptions, ResourcesPage, StoreError, SubscriberGroup,
    SubscriptionCounts, WatchedResource,
};
use feedgate_core::subscription::SubscriptionId;

/// The number of resources read at once.
const RESOURCES: i64 = 1_000;
/// The number of subscriptions counted at once.
const SUBSCRIPTIONS: i64 = 10_000;

/// The columns of a resource `r` with its details, as [`watched`] reads them, and its newest
/// record.
macro_rules! watched {
    ($which:literal) => {
        concat!(
            "select r.id, r.topic, d.status, r.site_url, r.kind, r.subscribers, r.fetched_at, n.appended_at, ",
            exposure_columns!(),
            " from resources r
               join resource_details d on d.resource_id = r.id
               left join records n on n.resource_id = r.id and n.seq = r.head
              where ",
            $which
        )
    };
}

/// A statement that reads some subscriptions in the order of their key, as [`open_page`] reads
/// them.
macro_rules! read {
    ($which:literal, $limit:literal) => {
        concat!(
            "select resource_id, id, account_id, callback, protocol, failed_changes, failures,
                    failing_since, created_at, lease_until, generation
               from subscriptions
              where ",
            $which,
            " order by resource_id, id limit ",
            $limit
        )
    };
}

/// A statement that counts some subscriptions with a valid lease, grouped by their common columns.
macro_rules! count {
    ($which:literal, $now:literal) => {
        concat!(
            "select host, protocol,
                    case when lower(substr(callback, 1, 6)) = 'https:' then 1 else 0 end as secure,
                    case when account_id = 0 then 1 else 0 end as open,
                    count(*), count(case when failures > 0 then 1 end)
               from subscriptions
              where ",
            $which,
            " and lease_until > ",
            $now,
            " group by 1, 2, 3, 4"
        )
    };
}

/// Surveys of everything that is stored. A survey may or may not include changes made while it
/// runs.
impl Store {
    /// Returns resources with subscriptions, ascending, after `after`; empty at the end.
    pub async fn watched(&self, after: ResourceId) -> Result<Vec<WatchedResource>, StoreError> {
        const SOME: &str = watched!("r.subscribers > 0 and r.id > $1 order by r.id limit $2");
        for cell in &self.cells[self.place_of(after.0)..] {
            let rows = cell.rows(SOME, params![after.0, RESOURCES]).await?;
            if !rows.is_empty() {
                return rows.into_iter().map(watched).collect();
            }
        }
        Ok(Vec::new())
    }

    /// Returns up to `limit` resources with subscriptions, ascending, after `after`, with all their
    /// properties. Collections are left out, so that a page may be shorter than `limit` although more
    /// follow.
    pub async fn resources_page(
        &self,
        after: ResourceId,
        limit: usize,
    ) -> Result<ResourcesPage, StoreError> {
        const SOME: &str = concat!(
            "select ",
            resource_columns!(),
            " from resources r
              join resource_details d on d.resource_id = r.id
             where r.subscribers > 0 and r.id > $1 order by r.id limit $2"
        );
        let cell = self.of_number(after.0);
        let mut rows = cell.rows(SOME, params![after.0, most(limit)]).await?;
        let is_full = rows.len() >= limit;
        let mut resources = rows.iter_mut().map(resource).collect::<Result<Vec<_>, _>>()?;
        let next = resources.last().map(|last| last.id).filter(|_| is_full);
        resources.retain(|resource| resource.kind != ResourceKind::Collection);
        let next_cell = || self.next_cell(after).map(|next| next.resource);
        Ok(ResourcesPage { resources, next: next.or_else(next_cell) })
    }

    /// Returns resources that an account subscribes to, ascending, after `after`. Up to `limit`
    /// subscriptions are read, so that a page may be shorter although more follow.
    pub async fn resources_of_account(
        &self,
        account: AccountId,
        after: ResourceId,
        limit: usize,
    ) -> Result<ResourcesPage, StoreError> {
        const OWN: &str = "
            select resource_id from subscriptions
             where account_id = $1 and account_id <> 0 and resource_id > $2
             order by resource_id limit $3";
        const NAMED: &str = concat!(
            "select ",
            resource_columns!(),
            " from resources r
              join resource_details d on d.resource_id = r.id
             where r.id in ({ids $1}) order by r.id"
        );
        let mut page = ResourcesPage::default();
        for cell in &self.cells[self.place_of(after.0)..] {
            let rows = cell.rows(OWN, params![account.0, after.0, most(limit)]).await?;
            if rows.is_empty() {
                continue;
            }
            let is_full = rows.len() >= limit;
            let ids = rows.into_iter().map(|mut row| row.int()).collect::<Result<Vec<_>, _>>()?;
            let last = ids.last().copied().map(ResourceId);
            let distinct: BTreeSet<i64> = ids.into_iter().collect();
            let mut rows = cell.rows(NAMED, &[Value::Ints(distinct.into_iter().collect())]).await?;
            page.resources = rows.iter_mut().map(resource).collect::<Result<_, _>>()?;
            let is_last_cell = self.place_of(last.unwrap_or(after).0) + 1 == self.cells.len();
            page.next = last.filter(|_| is_full || !is_last_cell);
            break;
        }
        Ok(page)
    }

    /// Reads up to `limit` subscriptions after `after`, and returns the open ones whose lease has
    /// not ended at `now`.
    pub async fn open_page(
        &self,
        after: SubscriptionId,
        limit: usize,
        now: DateTime<Utc>,
    ) -> Result<OpenSubscriptions, StoreError> {
        let cell = self.of_number(after.resource.0);
        let mut page = cell.read(move |tx| Box::pin(open_page(tx, after, limit, now))).await?;
        page.next = page.next.or_else(|| self.next_cell(after.resource));
        Ok(page)
    }

    /// Counts a batch of subscriptions after `after` whose lease has not ended at `now`.
    pub async fn count_some(
        &self,
        after: SubscriptionId,
        now: DateTime<Utc>,
    ) -> Result<SubscriptionCounts, StoreError> {
        let cell = self.of_number(after.resource.0);
        let mut counts = cell.read(move |tx| Box::pin(count_some(tx, after, now))).await?;
        counts.next = counts.next.or_else(|| self.next_cell(after.resource));
        Ok(counts)
    }

    /// Returns the number of pings listed since `since`.
    pub async fn pings_since(&self, since: DateTime<Utc>) -> Result<u64, StoreError> {
        const COUNT: &str = "select count(*) from changes where at >= $1 and source <> 'seen'";
        self.sum(|db| async move { db.count(COUNT, params![since]).await }).await
    }

    /// Returns the position at the beginning of the cell after that of `resource`, if there is one.
    fn next_cell(&self, resource: ResourceId) -> Option<SubscriptionId> {
        let next = self.place_of(resource.0) + 1;
        let begin = SubscriptionId { resource: ResourceId(number_at(next)), number: 0 };
        (next < self.cells.len()).then_some(begin)
    }
}

async fn open_page(
    tx: &Tx<'_>,
    after: SubscriptionId,
    limit: usize,
    now: DateTime<Utc>,
) -> Result<OpenSubscriptions, StoreError> {
    const OF_IT: &str = read!("resource_id = $1 and id > $2", "$3");
    const BEHIND_IT: &str = read!("resource_id > $1", "$2");
    const WHOSE: &str = watched!("r.id in ({ids $1}) and r.kind <> 'collection' order by r.id");
    // Neither database reads the bytes for their length.
    const BODIES: &str = "
        select resource_id, hash, cast(length(bytes) as bigint) from bodies where resource_id in ({ids $1})";
    // Skipped rows are read as well, so that the work for a page is bounded whatever is in it.
    let resource = after.resource.0;
    let mut rows = tx.query(OF_IT, params![resource, after.number, most(limit)]).await?;
    let left = limit.saturating_sub(rows.len());
    rows.extend(tx.query(BEHIND_IT, params![resource, most(left)]).await?);
    let mut page = OpenSubscriptions::default();
    let (is_full, mut last) = (rows.len() >= limit, None);
    for mut row in rows {
        let id = subscription_id(&mut row)?;
        last = Some(id);
        let is_open = row.int()? == 0;
        let open = open(id, &mut row)?;
        if is_open && open.lease_until > now {
            page.open.push(open);
        }
    }
    page.next = last.filter(|_| is_full);
    let ids: BTreeSet<i64> = page.open.iter().map(|open| open.id.resource.0).collect();
    let rows = tx.query(WHOSE, &[Value::Ints(ids.into_iter().collect())]).await?;
    page.resources = rows.into_iter().map(watched).collect::<Result<_, _>>()?;
    let is_known = |open: &OpenSubscription| {
        page.resources.binary_search_by_key(&open.id.resource, |held| held.id).is_ok()
    };
    page.open.retain(is_known);
    let known = page.resources.iter().map(|held| held.id.0).collect();
    let rows = tx.query(BODIES, &[Value::Ints(known)]).await?;
    page.bodies = rows.into_iter().map(body).collect::<Result<_, _>>()?;
    Ok(page)
}

/// Counts part of the subscriptions of one resource if it has many, or else the rest of them and
/// whole resources after it. So no longer range is read than is counted.
async fn count_some(
    tx: &Tx<'_>,
    after: SubscriptionId,
    now: DateTime<Utc>,
) -> Result<SubscriptionCounts, StoreError> {
    const END_OF_IT: &str = "
        select id from subscriptions
         where resource_id = $1 and id > $2 order by id limit 1 offset $3";
    const END_BEHIND_IT: &str = "
        select resource_id from subscriptions
         where resource_id > $1 order by resource_id, id limit 1 offset $2";
    const OF_IT: &str = count!("resource_id = $1 and id > $2 and id <= $3", "$4");
    const BEHIND_IT: &str = count!("resource_id > $1 and resource_id < $2", "$3");
    let (resource, number) = (after.resource.0, after.number);
    let end = tx.first(END_OF_IT, params![resource, number, SUBSCRIPTIONS - 1]).await?;
    let end = end.map(|mut row| row.int()).transpose()?;
    let upto = end.unwrap_or(i64::MAX);
    let mut rows = tx.query(OF_IT, params![resource, number, upto, now]).await?;
    let next = match end {
        Some(number) => Some(SubscriptionId { resource: after.resource, number }),
        None => {
            let end = tx.first(END_BEHIND_IT, params![resource, SUBSCRIPTIONS - 1]).await?;
            let end = end.map(|mut row| row.int()).transpose()?;
            let before = end.unwrap_or(i64::MAX);
            rows.extend(tx.query(BEHIND_IT, params![resource, before, now]).await?);
            end.map(|id| SubscriptionId { resource: ResourceId(id), number: 0 })
        }
    };
    let groups = rows.into_iter().map(group).collect::<Result<_, _>>()?;
    Ok(SubscriptionCounts { groups, next })
}

fn open(id: SubscriptionId, row: &mut Row) -> Result<OpenSubscription, StoreError> {
    Ok(OpenSubscription {
        id,
        callback: row.text()?,
        protocol: row.text()?,
        errors: row.small()?,
        failures: row.small()?,
        failing_since: row.opt_time()?,
        created_at: row.time()?,
        lease_until: row.time()?,
        is_unchanged: row.int()? == 0,
    })
}

fn body(mut row: Row) -> Result<BodySummary, StoreError> {
    let resource = ResourceId(row.int()?);
    Ok(BodySummary { resource, sha256: row.blob()?, length_bytes: row.count()? })
}

fn group(mut row: Row) -> Result<SubscriberGroup, StoreError> {
    Ok(SubscriberGroup {
        host: row.text()?,
        protocol: row.text()?,
        is_https: row.int()? == 1,
        is_open: row.int()? == 1,
        many: row.count()?,
        failing: row.count()?,
    })
}

fn watched(mut row: Row) -> Result<WatchedResource, StoreError> {
    /// The fields of a status that a list shows.
    #[derive(Deserialize)]
    struct Titled {
        #[serde(default)]
        title: String,
    }
    let (id, topic) = (ResourceId(row.int()?), topic(&mut row)?);
    let Titled { title } = row.json()?;
    Ok(WatchedResource {
        id,
        topic,
        title,
        site_url: row.opt_text()?,
        kind: row.word(ResourceKind::from_word)?,
        subscribers: row.small()?,
        fetched_at: row.opt_time()?,
        changed_at: row.opt_time()?,
        exposure: exposure(&mut row)?,
    })
}
