//! Recorded attempts to deliver: they lie in the cell of their subscription.

use async_trait::async_trait;
use futures_util::future::try_join_all;

use crate::cells::Cells;
use feedgate_core::attempt::{DeliveryAttempt, StoredAttempt};
use feedgate_core::ports::{AttemptRange, AttemptRetention, Attempts, StoreError};
use feedgate_core::subscription::SubscriptionId;

#[async_trait]
impl Attempts for Cells {
    async fn append_attempts(
        &self,
        attempts: Vec<DeliveryAttempt>,
        most_of_subscription: usize,
    ) -> Result<u64, StoreError> {
        let by_cell = self.by_cell(attempts, |attempt| attempt.subscription.resource.0);
        let stored = self.cells.iter().zip(by_cell).filter(|(_, attempts)| !attempts.is_empty());
        let stored =
            stored.map(|(cell, attempts)| cell.append_attempts(attempts, most_of_subscription));
        Ok(try_join_all(stored).await?.into_iter().sum())
    }

    async fn attempts(
        &self,
        id: SubscriptionId,
        range: AttemptRange,
    ) -> Result<Vec<StoredAttempt>, StoreError> {
        self.of_number(id.resource.0).attempts(id, range).await
    }

    async fn attempt(
        &self,
        id: SubscriptionId,
        number: i64,
    ) -> Result<Option<StoredAttempt>, StoreError> {
        self.of_number(id.resource.0).attempt(id, number).await
    }

    async fn trim_attempts(&self, retention: &AttemptRetention) -> Result<u64, StoreError> {
        // Subscriptions are spread evenly over the cells.
        let most = retention.most.div_ceil(self.cells.len());
        let of_cell = AttemptRetention { most, ..*retention };
        let trimmed = self.cells.iter().map(|cell| cell.trim_attempts(&of_cell));
        Ok(try_join_all(trimmed).await?.into_iter().sum())
    }
}
