//! What an account is to be told: in one cell, and of all cells together.

use chrono::{DateTime, TimeDelta, Utc};

use crate::delivery::row::subscription_id;
use crate::engine::row::Row;
use crate::engine::sql::{Value, params};
use crate::engine::sqlite::WriteSize;
use crate::{Db, Store};
use feedgate_core::account::AccountId;
use feedgate_core::alert::{
    Alert, AlertAddressState, AlertKind, CallbackAlert, FeedAlert, OwedAlerts, ToldAlerts,
    is_quota_near,
};
use feedgate_core::delivery_health::{AttemptResponse, LastAttempt};
use feedgate_core::resource::ResourceId;
use feedgate_core::store::StoreError;
use feedgate_core::subscription::{SubscriptionId, SubscriptionOwner};
use feedgate_core::topic::displayed;

/// The most subscriptions of a cell that are told of together; what is kept of each are three numbers.
const MOST_SUBSCRIPTIONS: usize = 10_000;
/// The most feeds of a cell that are told of together, for each of the two reasons.
const MOST_FEEDS: usize = 1_000;
/// The most alerts that are listed: a request has at most some 500 kB, if all URLs are as long as they may be.
const MOST_LISTED: usize = 50;
/// The subscriptions that are marked in one transaction: few enough that no other one waits long.
const MARKED_TOGETHER: usize = 1_000;
/// A poll is stored within this time after it ended, before its claim has expired. Feeds are told of afterwards,
/// so that none is missed.
const STORED_WITHIN: TimeDelta = TimeDelta::minutes(1);

/// What may be the state of a subscription for its owner, as `subscriptions.alerted` has it: the expression of the
/// index `subscriptions_alerts`, which has no column that each delivery changes. Failures that are few say nothing.
macro_rules! possible_alert_state {
    () => {
        "case when is_suspended = 1 then 2 when failures >= 5 then 1 when failures = 0 then 0
              else alerted end"
    };
}

/// The state of a subscription for its owner. The end of failures by a renewal says nothing: the callback has
/// recovered once it has accepted something.
macro_rules! alert_state {
    () => {
        "case when is_suspended = 1 then 2 when failures >= 5 then 1
              when failures = 0 and attempt_status >= 200 and attempt_status < 300 then 0
              else alerted end"
    };
}

/// A subscription in another state than its owner was told, with that state.
type ChangedSubscription = (SubscriptionId, i64);

/// What there is to tell in one cell.
struct CellAlerts {
    subscriptions: Vec<ChangedSubscription>,
    /// Until when the feeds are among `feeds`.
    until: DateTime<Utc>,
    feeds: Vec<FeedAlert>,
}

impl Store {
    /// Returns what an account is to be told at `now`. `quota` is the most subscriptions that it may have.
    pub async fn owed_alerts(
        &self,
        state: &AlertAddressState,
        quota: u64,
        now: DateTime<Utc>,
    ) -> Result<OwedAlerts, StoreError> {
        let account = state.address.account;
        let from = state.feeds_told_until;
        let until = from.max(now - STORED_WITHIN);
        let cells = self.each(|db| db.owed_alerts(account, from, until)).await?;
        let used = self.count_owned(&SubscriptionOwner::Account(account)).await?;
        let is_near = is_quota_near(used, quota, state.is_quota_told);

        let feeds_until = cells.iter().map(|cell| cell.until).min().unwrap_or(until);
        let is_full = |cell: &CellAlerts| cell.subscriptions.len() == MOST_SUBSCRIPTIONS;
        let has_more = feeds_until < until || cells.iter().any(is_full);
        let (mut subscriptions, mut feeds) = (Vec::new(), Vec::new());
        for cell in cells {
            subscriptions.extend(cell.subscriptions);
            feeds.extend(cell.feeds.into_iter().filter(|feed| feed.at <= feeds_until));
        }
        let wants = |kind: AlertKind| state.address.kinds.contains(&kind);
        let quota_alerts = (is_near && !state.is_quota_told && wants(AlertKind::QuotaNear))
            .then_some(Alert::Quota { used, limit: quota });
        feeds.retain(|feed| wants(feed.kind));
        let changed = subscriptions.iter().filter(|(_, state)| wants(kind_of(*state)));
        let changed: Vec<ChangedSubscription> = changed.copied().collect();
        let count = |kind: AlertKind| {
            let of_feeds = feeds.iter().filter(|feed| feed.kind == kind).count();
            let of_callbacks = changed.iter().filter(|(_, state)| kind_of(*state) == kind).count();
            let of_quota = quota_alerts.iter().filter(|_| kind == AlertKind::QuotaNear).count();
            (kind, (of_feeds + of_callbacks + of_quota) as u64)
        };
        let counts = AlertKind::ALL.iter().map(|kind| count(*kind)).filter(|(_, count)| *count > 0);
        let counts = counts.collect();
        let few_feeds = feeds.into_iter().map(Alert::Feed).take(MOST_LISTED / 2);
        let mut listed: Vec<Alert> = quota_alerts.into_iter().chain(few_feeds).collect();
        let few: Vec<_> = changed.into_iter().take(MOST_LISTED - listed.len()).collect();
        let callbacks =
            self.gather(&few, |(id, _)| id.resource.0, |db, few| db.callback_alerts(few)).await?;
        listed.extend(callbacks.into_iter().map(Alert::Callback));
        let told = ToldAlerts { subscriptions, feeds_until, is_quota_near: is_near };
        Ok(OwedAlerts { counts, listed, has_more, told })
    }

    /// Stores that the owners of these subscriptions were told these states.
    pub(super) async fn mark_subscriptions_told(
        &self,
        told: Vec<ChangedSubscription>,
    ) -> Result<(), StoreError> {
        const MARK: &str = "
            update subscriptions set alerted = {given state} {from rows}
             where subscriptions.resource_id = {given resource_id}
               and subscriptions.id = {given id}";
        for (db, told) in self.by_cell(told, |(id, _)| id.resource.0) {
            for part in told.chunks(MARKED_TOGETHER) {
                let mut columns = subscription_columns(part);
                columns
                    .push(("state", Value::Ints(part.iter().map(|(_, state)| *state).collect())));
                let marked = db.write_sized(WriteSize::Large, move |tx| {
                    Box::pin(async move { tx.execute_rows(MARK, &[], &columns).await })
                });
                marked.await?;
            }
        }
        Ok(())
    }
}

impl Db {
    async fn owed_alerts(
        &self,
        account: AccountId,
        from: DateTime<Utc>,
        mut until: DateTime<Utc>,
    ) -> Result<CellAlerts, StoreError> {
        const CHANGED: &str = concat!(
            "select resource_id, id, ",
            alert_state!(),
            "  from subscriptions {sqlite indexed by subscriptions_alerts}
              where account_id = $1 and account_id <> 0 and alerted <> ",
            possible_alert_state!(),
            " and alerted <> ",
            alert_state!(),
            " order by resource_id, id
              limit $2"
        );
        let most = MOST_SUBSCRIPTIONS as i64;
        let changed = self.rows(CHANGED, params![account.0, most]).await?;
        let gone = self.rows(GONE, params![account.0, from, until, MOST_FEEDS as i64]).await?;
        let moved = self.rows(MOVED, params![account.0, from, until, MOST_FEEDS as i64]).await?;
        let mut feeds = Vec::new();
        for (kind, rows) in [(AlertKind::FeedGone, gone), (AlertKind::FeedMoved, moved)] {
            let is_full = rows.len() == MOST_FEEDS;
            for row in rows {
                feeds.push(feed_alert(kind, row)?);
            }
            if let Some(last) = feeds.last().filter(|_| is_full) {
                until = until.min(last.at);
            }
        }
        let read = |mut row: Row| Ok((subscription_id(&mut row)?, row.int()?));
        let subscriptions = changed.into_iter().map(read).collect::<Result<_, StoreError>>()?;
        Ok(CellAlerts { subscriptions, until, feeds })
    }

    /// Returns the alerts about these subscriptions, as far as they still exist.
    async fn callback_alerts(
        &self,
        changed: Vec<ChangedSubscription>,
    ) -> Result<Vec<CallbackAlert>, StoreError> {
        const DETAILS: &str = "
            select given.state, s.resource_id, s.id, r.topic, s.alias, s.callback, s.failures,
                   s.failing_since, s.attempted_at, s.attempt_status, s.attempt_excerpt
              from {rows}
              join subscriptions s on s.resource_id = given.resource_id and s.id = given.id
              join resources r on r.id = s.resource_id";
        let mut columns = subscription_columns(&changed);
        columns.push(("state", Value::Ints(changed.iter().map(|(_, state)| *state).collect())));
        let rows = self
            .read(move |tx| Box::pin(async move { tx.query_rows(DETAILS, &[], &columns).await }));
        rows.await?.into_iter().map(callback_alert).collect()
    }
}

/// The feeds of an account that were found to be gone in a range of time. The subscriptions are looked for one
/// feed at a time, because few feeds change and an account may have many subscriptions.
const GONE: &str = "
    select r.id, r.topic, r.gone_at, r.fetch_url
      from resources r
     where r.gone_at > $2 and r.gone_at <= $3
       and (select 1 from subscriptions s
             where s.account_id = $1 and s.account_id <> 0 and s.resource_id = r.id
             limit 1) = 1
     order by r.gone_at
     limit $4";

/// The feeds of an account that were found to have moved in a range of time, looked for in the same way as
/// those that are gone.
const MOVED: &str = "
    select r.id, r.topic, r.moved_at, r.fetch_url
      from resources r
     where r.moved_at > $2 and r.moved_at <= $3
       and (select 1 from subscriptions s
             where s.account_id = $1 and s.account_id <> 0 and s.resource_id = r.id
             limit 1) = 1
     order by r.moved_at
     limit $4";

fn kind_of(state: i64) -> AlertKind {
    match state {
        0 => AlertKind::Recovered,
        1 => AlertKind::Failing,
        _ => AlertKind::Suspended,
    }
}

fn subscription_columns(changed: &[ChangedSubscription]) -> Vec<(&'static str, Value)> {
    let numbers = |of: fn(&SubscriptionId) -> i64| {
        Value::Ints(changed.iter().map(|(id, _)| of(id)).collect())
    };
    vec![("resource_id", numbers(|id| id.resource.0)), ("id", numbers(|id| id.number))]
}

fn feed_alert(kind: AlertKind, mut row: Row) -> Result<FeedAlert, StoreError> {
    let (feed, topic, at) = (ResourceId(row.int()?), row.text()?, row.time()?);
    let (topic, fetch_url) = (displayed(&topic).into_owned(), displayed(&row.text()?).into_owned());
    Ok(FeedAlert { kind, feed, topic, at, fetch_url })
}

fn callback_alert(mut row: Row) -> Result<CallbackAlert, StoreError> {
    let (kind, subscription) = (kind_of(row.int()?), subscription_id(&mut row)?);
    let (topic, alias) = (row.text()?, row.text()?);
    let topic = if alias.is_empty() { topic } else { alias };
    let (callback, failures, failing_since) = (row.text()?, row.small()?, row.opt_time()?);
    let (at, status) = (row.opt_time()?, u16::try_from(row.int()?).ok().filter(|code| *code != 0));
    let response = AttemptResponse { status, excerpt: row.text()? };
    let last_attempt = at.map(|at| LastAttempt { at, response });
    #[rustfmt::skip]
    let alert = CallbackAlert {
        kind, subscription, topic, callback, failures, failing_since, last_attempt,
    };
    Ok(alert)
}
