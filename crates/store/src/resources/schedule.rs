//! The polling state that all nodes share: the factor of the poll budget, and the correction after
//! a clock was wrong.

use async_trait::async_trait;
use chrono::{DateTime, TimeDelta, Utc};

use crate::Db;
use crate::engine::sql::params;
use crate::engine::tx::Wake;
use feedgate_core::ports::{Schedule, StoreError};
use feedgate_core::schedule::{K_LEAST, LONGEST_S};

/// The factor is stored in millionths.
const MILLION: f64 = 1e6;
/// Clocks of nodes differ a little; a poll that is less than this ahead of now is accepted. After one that
/// is further ahead, the resource would not be polled for so long.
const TOLERANCE: TimeDelta = TimeDelta::seconds(10);
/// The longest plausible claim: longer than any claim of a resource or of a maintenance task.
const LONGEST_HOLD: TimeDelta = TimeDelta::hours(2);

#[async_trait]
impl Schedule for Db {
    async fn planned(&self, k: f64) -> Result<f64, StoreError> {
        // The rate is in polls per million million seconds, so that sums of integers are exact
        // enough.
        const PLANNED: &str = "
            select cast(coalesce(sum(1000000000000000 / ms), 0) as bigint)
              from (select case when min_period_s * 1000 >= $2 then min_period_s * 1000
                                when wanted > $2 then $2
                                when wanted > min_period_s * 1000 then wanted
                                else min_period_s * 1000 end as ms
                      from (select min_period_s, base_period_ms * $1 / 1000000 as wanted
                              from resources
                             where subscribers > 0) by_rate) periods";
        let stretch = (k / K_LEAST * MILLION) as i64;
        let rows = self.rows(PLANNED, params![stretch, i64::from(LONGEST_S) * 1_000]).await?;
        let sum = rows.into_iter().next().map_or(Ok(0), |mut row| row.int())?;
        Ok(sum as f64 / 1e12)
    }

    async fn k(&self) -> Result<f64, StoreError> {
        const K: &str = "select value from control_values where name = 'k'";
        let kept = self.rows(K, params![]).await?.into_iter().next();
        let kept = kept.map(|mut row| row.int()).transpose()?;
        Ok(kept.map_or(K_LEAST, |millionths| (millionths as f64 / MILLION).max(K_LEAST)))
    }

    async fn save_k(&self, k: f64) -> Result<(), StoreError> {
        const KEEP: &str = "
            insert into control_values (name, value) values ('k', $1)
                on conflict (name) do update set value = excluded.value";
        let millionths = (k * MILLION) as i64;
        let kept = self
            .write(move |tx| Box::pin(async move { tx.execute(KEEP, params![millionths]).await }));
        kept.await.map(drop)
    }

    async fn set_back(&self, now: DateTime<Utc>) -> Result<u64, StoreError> {
        // The time until the next fetch is the planned one, counted from now.
        const POLLED: &str = "
            update resources
               set next_fetch = $1 + case when next_fetch > fetched_at
                                          then next_fetch - fetched_at else 0 end,
                   due_at = case when claimed_until is null
                                 then $1 + case when next_fetch > fetched_at
                                                then next_fetch - fetched_at else 0 end
                                 else due_at end,
                   fetched_at = $1
             where fetched_at > $2";
        const CLAIMED: &str = "
            update resources set due_at = $1, claimed_until = null, claim_token = 0
             where claimed_until > $2";
        const MAINTENANCE_TASKS: &str =
            "update maintenance_tasks set claimed_until = $1 where claimed_until > $2";
        let claims = self.claims.clone();
        let mended = self.write(move |tx| {
            Box::pin(async move {
                let begins = claims.claim_time(tx, now).await?;
                let latest = begins + LONGEST_HOLD;
                let polled = tx.execute(POLLED, params![now, now + TOLERANCE]).await?;
                let claimed = tx.execute(CLAIMED, params![now, latest]).await?;
                tx.execute(MAINTENANCE_TASKS, params![begins, latest]).await?;
                if polled + claimed > 0 {
                    tx.wake(Wake::Resources);
                }
                Ok(polled + claimed)
            })
        });
        mended.await
    }
}
