//! The polling state that all nodes share: the factor of the poll budget.

use async_trait::async_trait;

use crate::Db;
use crate::engine::sql::params;
use feedgate_core::ports::{Schedule, StoreError};
use feedgate_core::schedule::{K_LEAST, LONGEST_S};

/// The factor is stored in millionths.
const MILLION: f64 = 1e6;

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
}
