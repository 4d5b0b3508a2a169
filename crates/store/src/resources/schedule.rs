//! The polling state that all nodes share: the factor of the poll budget.

use crate::Store;
use crate::engine::sql::params;
use feedgate_core::schedule::{K_LEAST, LONGEST_S};
use feedgate_core::store::StoreError;

/// The factor is stored in millionths.
const MILLION: f64 = 1e6;

/// The factor of the poll schedule, which all nodes share.
impl Store {
    /// Returns the number of polls per second of all resources with this `k` (`schedule::Demand`).
    pub async fn planned_polls_per_s(&self, k: f64) -> Result<f64, StoreError> {
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

        let rates = self.each(|db| async move {
            let stretch = (k / K_LEAST * MILLION) as i64;
            let rows = db.rows(PLANNED, params![stretch, i64::from(LONGEST_S) * 1_000]).await?;
            let sum = rows.into_iter().next().map_or(Ok(0), |mut row| row.int())?;
            Ok(sum as f64 / 1e12)
        });
        Ok(rates.await?.into_iter().sum())
    }

    /// Returns the `k` that all nodes share, which starts at the minimum.
    pub async fn poll_factor(&self) -> Result<f64, StoreError> {
        const K: &str = "select value from control_values where name = 'k'";
        let kept = self.shared.rows(K, params![]).await?.into_iter().next();
        let kept = kept.map(|mut row| row.int()).transpose()?;
        Ok(kept.map_or(K_LEAST, |millionths| (millionths as f64 / MILLION).max(K_LEAST)))
    }

    /// Stores `k` for all nodes.
    pub async fn save_poll_factor(&self, k: f64) -> Result<(), StoreError> {
        const KEEP: &str = "
            insert into control_values (name, value) values ('k', $1)
                on conflict (name) do update set value = excluded.value";
        let millionths = (k * MILLION) as i64;
        let kept = self
            .shared
            .write(move |tx| Box::pin(async move { tx.execute(KEEP, params![millionths]).await }));
        kept.await.map(drop)
    }
}
