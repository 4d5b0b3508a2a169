//! Backfills: imports the history of a resource. A backfill is claimed step by step, its entries
//! are staged, and the staged entries are appended to the log.
//!
//! Every change of a backfill locks the row of its resource first, as every change of the log does.
//! While the history must be complete before the first poll, the resource is claimed, so that no
//! node polls it. Each step extends that claim, which expires if no further step runs.

pub(crate) mod claim;
mod documents;
pub(crate) mod staging;

use chrono::{DateTime, TimeDelta, Utc};

use super::delivery::subscriptions::subscribe;
use super::engine::row::Row;
use super::engine::sql::{Value, params};
use super::engine::sqlite::WriteSize;
use super::engine::tx::{Tx, Wake};
use super::log::before;
use crate::Store;
use claim::{BACKFILLS, hold_back, lock_claimed};
use feedgate_core::backfill::{Backfill, BackfillEnd, BackfillShare, Chain};
use feedgate_core::claim::ClaimToken;
use feedgate_core::page::PageLimits;
use feedgate_core::record::EntryKey;
use feedgate_core::resource::{ResourceId, ResourceKind};
use feedgate_core::store::{CommitProgress, DueBackfill, StoreError};
use feedgate_core::subscription::{Subscription, SubscriptionRequest};
use feedgate_feed::model::KnownBy;

/// How long a resource stays claimed after its next step is due: longer than any step waits for a
/// node to run it.
const HOLD: TimeDelta = TimeDelta::minutes(30);
/// The time after which a completed backfill may be started again.
const ONCE_IN: TimeDelta = TimeDelta::hours(1);

/// The columns of a backfill `b`, as [`backfill`] reads them.
macro_rules! backfill_columns {
    () => {
        "b.resource_id, b.chain, b.next_url, b.pages, b.entries, b.bytes, b.empty_pages, b.attempts,
         b.known_by, b.delays_polling, b.result, b.appended, b.ended_at"
    };
}
pub(crate) use backfill_columns;

/// Backfills: entries that sources published before their first subscription.
impl Store {
    /// Stores a verified subscription request as
    /// [`subscribe`](Self::subscribe) does, and starts a backfill of
    /// its resource, in one transaction. No backfill is started if one is in progress or ended
    /// within the last hour. A resource that was never fetched is not polled meanwhile, so that the
    /// older entries are appended first.
    pub async fn subscribe_with_history(
        &self,
        request: &SubscriptionRequest,
        now: DateTime<Utc>,
    ) -> Result<Subscription, StoreError> {
        let db = self.of_topic(request.topic.as_str());
        let (request, groups) = (request.clone(), db.groups.clone());
        let share = BackfillShare::of_request(request.account);
        let subscribed = db.write(move |tx| {
            Box::pin(async move {
                let subscription = subscribe(tx, &groups, request, now).await?;
                begin(tx, (subscription.id.resource, share), now).await?;
                Ok(subscription)
            })
        });
        subscribed.await
    }

    /// Claims up to `limit` backfills of a share that are due at `now`, until `until`.
    pub async fn claim_backfills(
        &self,
        share: BackfillShare,
        now: DateTime<Utc>,
        until: DateTime<Utc>,
        limit: usize,
    ) -> Result<Vec<DueBackfill>, StoreError> {
        self.claim_in_turn(limit, |db, limit| async move {
            let lease = db.claims.lease(now, until);
            db.write(move |tx| Box::pin(claim::claim(tx, share, lease, limit))).await
        })
        .await
    }

    /// Extends those of `claims` that were not lost to `until`, and returns their resources.
    pub async fn renew_backfill_claims(
        &self,
        claims: &[(ResourceId, ClaimToken)],
        until: DateTime<Utc>,
    ) -> Result<Vec<ResourceId>, StoreError> {
        let claims: Vec<_> = claims.iter().map(|(id, token)| ([id.0], *token)).collect();
        let renewed = self.renew_claims(BACKFILLS, &claims, until).await?;
        Ok(renewed.into_iter().map(|[id]| ResourceId(id)).collect())
    }

    /// Stores the state of a backfill, due at `due_at`, and ends the claim. Returns `false` without
    /// changes if the claim was lost.
    pub async fn save_backfill(
        &self,
        backfill: &Backfill,
        claim: ClaimToken,
        due_at: DateTime<Utc>,
    ) -> Result<bool, StoreError> {
        let db = self.of_number(backfill.resource.0);
        let backfill = backfill.clone();
        let settled = db.write(move |tx| {
            Box::pin(async move {
                if !lock_claimed(tx, backfill.resource, claim).await? {
                    return Ok(false);
                }
                save_progress(tx, &backfill, backfill.pages, due_at).await
            })
        });
        settled.await
    }

    /// Appends a batch of staged entries to the log, oldest first. Entries that the log contains
    /// stay as they are, and the new records have no audience. Once none is left, the backfill is
    /// complete, and a delayed resource becomes due.
    pub async fn commit_staged(
        &self,
        id: ResourceId,
        claim: ClaimToken,
        now: DateTime<Utc>,
    ) -> Result<CommitProgress, StoreError> {
        let db = self.of_number(id.0);
        let page_limits = db.page_limits;
        let _permit = db.append_permit().await?;
        let committed = db.write_sized(WriteSize::Large, move |tx| {
            Box::pin(async move {
                if !lock_claimed(tx, id, claim).await? {
                    return Ok(CommitProgress::ClaimLost);
                }
                commit_staged(tx, &page_limits, id, now).await
            })
        });
        committed.await
    }

    /// Deletes a backfill and its staged entries. If the claim was lost, nothing changes.
    pub async fn drop_backfill(
        &self,
        id: ResourceId,
        claim: ClaimToken,
        now: DateTime<Utc>,
    ) -> Result<(), StoreError> {
        let db = self.of_number(id.0);
        const DROP: &str = "delete from backfills where resource_id = $1";
        let dropped = db.write(move |tx| {
            Box::pin(async move {
                if !lock_claimed(tx, id, claim).await? {
                    return Ok(());
                }
                let Some(dropped) = find(tx, id).await? else { return Ok(()) };
                forget(tx, id).await?;
                tx.execute(DROP, params![id.0]).await?;
                release(tx, &dropped, now).await
            })
        });
        dropped.await
    }

    /// Returns the backfills of these resources, in any order.
    pub async fn backfills(&self, ids: &[ResourceId]) -> Result<Vec<Backfill>, StoreError> {
        const FIND: &str = concat!(
            "select ",
            backfill_columns!(),
            " from backfills b where b.resource_id in ({ids $1})"
        );
        self.gather(
            ids,
            |id| id.0,
            |db, ids| async move {
                let ids = Value::Ints(ids.iter().map(|id| id.0).collect());
                let rows = db.rows(FIND, &[ids]).await?;
                rows.into_iter().map(|mut row| backfill(&mut row)).collect()
            },
        )
        .await
    }
}

/// Starts the backfill of a resource, whose row is locked, unless one is running or has just
/// completed.
pub(super) async fn begin(
    tx: &Tx<'_>,
    (id, share): (ResourceId, BackfillShare),
    now: DateTime<Utc>,
) -> Result<(), StoreError> {
    const BEGIN: &str = "
        insert into backfills (resource_id, started_at, due_at, for_accounts)
        values ($1, $2, $2, $4)
            on conflict (resource_id) do update
           set chain = '', next_url = null, pages = 0, entries = 0, bytes = 0, empty_pages = 0,
               attempts = 0, known_by = '', delays_polling = 0, result = '', appended = 0,
               started_at = excluded.started_at, ended_at = null, due_at = excluded.due_at,
               claim_token = 0, for_accounts = excluded.for_accounts, is_postponed = 0
         where backfills.ended_at <= $3";
    // What waits for the budget of strangers does not keep an account waiting. A claim is left alone:
    // nodes of the release before do not reset `is_postponed` when they claim a step.
    const JOIN: &str = "
        update backfills
           set for_accounts = 1,
               due_at = case when is_postponed = 1 and claim_token = 0 then $2 else due_at end
         where resource_id = $1 and ended_at is null";
    // A poll in progress is not interrupted: the resource is claimed only if no node has claimed
    // it. A backfill's claim of its resource has no token, which tells it from that of a poll.
    const HOLD_BACK: &str = "
        update resources
           set due_at = $3, claimed_until = $3, claim_token = 0
         where id = $1 and head = 0 and body_version = 0 and fetched_at is null
           and (claimed_until is null or claimed_until <= $2)";
    const HELD: &str = "update backfills set delays_polling = 1 where resource_id = $1";
    let begun = params![id.0, now, now - ONCE_IN, for_accounts(share)];
    if tx.execute(BEGIN, begun).await? == 0 {
        if share == BackfillShare::Accounts {
            tx.execute(JOIN, params![id.0, now]).await?;
        }
        return Ok(());
    }
    if tx.execute(HOLD_BACK, params![id.0, now, now + HOLD]).await? > 0 {
        tx.execute(HELD, params![id.0]).await?;
    }
    Ok(())
}

/// Returns what `for_accounts` is for a share.
fn for_accounts(share: BackfillShare) -> i64 {
    i64::from(share == BackfillShare::Accounts)
}

fn hash(url: &str) -> Vec<u8> {
    EntryKey::from_id(url).0.to_vec()
}

/// Saves the progress of a backfill and when it is due, if it is still at page `pages`.
async fn save_progress(
    tx: &Tx<'_>,
    backfill: &Backfill,
    pages: u32,
    due_at: DateTime<Utc>,
) -> Result<bool, StoreError> {
    const KEEP: &str = "
        update backfills
           set chain = $3, next_url = $4, pages = $5, entries = $6, bytes = $7, empty_pages = $8,
               attempts = $9, known_by = $10, result = $11, due_at = $12, claim_token = 0
         where resource_id = $1 and pages = $2 and result = '' and ended_at is null";
    let known_by = if backfill.known_by == KnownBy::Link { "link" } else { "" };
    #[rustfmt::skip]
    let params = params![
        backfill.resource.0, i64::from(pages), backfill.chain.map_or("", Chain::as_str),
        backfill.next.clone(), i64::from(backfill.pages), number(backfill.entries),
        number(backfill.bytes), i64::from(backfill.barren), i64::from(backfill.attempts),
        known_by, backfill.ending.as_ref().map_or("", BackfillEnd::as_str), due_at,
    ];
    let kept = tx.execute(KEEP, params).await? > 0;
    hold_back(tx, &[backfill.resource.0], due_at).await?;
    Ok(kept)
}

fn number(count: u64) -> i64 {
    i64::try_from(count).unwrap_or(i64::MAX)
}

/// Moves the oldest staged entries into the log, or completes the backfill if none is left.
async fn commit_staged(
    tx: &Tx<'_>,
    page_limits: &PageLimits,
    id: ResourceId,
    now: DateTime<Utc>,
) -> Result<CommitProgress, StoreError> {
    const FILLED: &str = "
        update backfills set appended = appended + $2 where resource_id = $1";
    let before = before::lock(tx, id).await?;
    let Some(backfill) = find(tx, id).await?.filter(|held| held.ended_at.is_none()) else {
        return Ok(CommitProgress::Complete);
    };
    let candidates = staging::oldest(tx, id).await?;
    if candidates.is_empty() {
        finish(tx, &backfill, now).await?;
        return Ok(CommitProgress::Complete);
    }
    let keys = candidates.iter().map(|candidate| candidate.id.0.to_vec()).collect();
    let appended = staging::append_old(tx, page_limits, &before, candidates, now).await?;
    staging::forget_entries(tx, id, keys).await?;
    tx.execute(FILLED, params![id.0, appended]).await?;
    hold_back(tx, &[id.0], now).await?;
    Ok(CommitProgress::More)
}

/// Completes a backfill whose entries are all in the log.
async fn finish(tx: &Tx<'_>, backfill: &Backfill, now: DateTime<Utc>) -> Result<(), StoreError> {
    const FINISH: &str = "
        update backfills set ended_at = $2, due_at = null, claim_token = 0 where resource_id = $1";
    // Entries that the first poll finds in addition to the log were published since.
    const KNOWN: &str = "update resources set kind = $2 where id = $1 and kind = $3";
    let id = backfill.resource;
    tx.execute(FINISH, params![id.0, now]).await?;
    forget(tx, id).await?;
    if backfill.holds && backfill.pages > 0 {
        let params = params![id.0, ResourceKind::Feed.as_str(), ResourceKind::Unknown.as_str()];
        tx.execute(KNOWN, params).await?;
    }
    release(tx, backfill, now).await
}

/// Makes a resource due again that was not polled during its backfill.
async fn release(tx: &Tx<'_>, backfill: &Backfill, now: DateTime<Utc>) -> Result<(), StoreError> {
    const RELEASE: &str = "
        update resources set claimed_until = null, due_at = $2, next_fetch = $2
         where id = $1 and fetched_at is null and claim_token = 0";
    if backfill.holds {
        tx.execute(RELEASE, params![backfill.resource.0, now]).await?;
        tx.wake(Wake::Resources);
    }
    Ok(())
}

async fn forget(tx: &Tx<'_>, id: ResourceId) -> Result<(), StoreError> {
    const PAGES: &str = "delete from backfill_visits where resource_id = $1";
    const ENTRIES: &str = "delete from staged_entries where resource_id = $1";
    tx.execute(PAGES, params![id.0]).await?;
    tx.execute(ENTRIES, params![id.0]).await.map(drop)
}

async fn find(tx: &Tx<'_>, id: ResourceId) -> Result<Option<Backfill>, StoreError> {
    const FIND: &str =
        concat!("select ", backfill_columns!(), " from backfills b where b.resource_id = $1");
    tx.first(FIND, params![id.0]).await?.as_mut().map(backfill).transpose()
}

/// Reads `backfill_columns!`.
fn backfill(row: &mut Row) -> Result<Backfill, StoreError> {
    Ok(Backfill {
        resource: ResourceId(row.int()?),
        chain: Chain::from_word(&row.text()?),
        next: row.opt_text()?,
        pages: row.small()?,
        entries: row.count()?,
        bytes: row.count()?,
        barren: row.small()?,
        attempts: row.small()?,
        known_by: if row.text()? == "link" { KnownBy::Link } else { KnownBy::Id },
        holds: row.int()? != 0,
        ending: Some(row.text()?)
            .filter(|word| !word.is_empty())
            .map(|word| BackfillEnd::from_word(&word)),
        appended: row.count()?,
        ended_at: row.opt_time()?,
    })
}
