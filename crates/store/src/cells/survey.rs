//! Surveys of all cells: one cell after the other, in the order of the numbers of their rows.

use async_trait::async_trait;
use chrono::{DateTime, Utc};
use futures_util::future::try_join_all;

use crate::cells::Cells;
use crate::cells::numbers::{cell_of_number, number_at};
use feedgate_core::ports::{
    OpenSubscriptions, ResourcesPage, StoreError, SubscriptionCounts, Survey, WatchedResource,
};
use feedgate_core::resource::ResourceId;
use feedgate_core::subscription::SubscriptionId;

impl Cells {
    /// Returns the position at the beginning of the cell after that of `position`, if there is one.
    fn next_cell(&self, position: SubscriptionId) -> Option<SubscriptionId> {
        let next = cell_of_number(position.resource.0) + 1;
        let begin = SubscriptionId { resource: ResourceId(number_at(next)), number: 0 };
        (next < self.cells.len()).then_some(begin)
    }
}

#[async_trait]
impl Survey for Cells {
    async fn watched(&self, after: ResourceId) -> Result<Vec<WatchedResource>, StoreError> {
        for cell in self.cells.iter().skip(cell_of_number(after.0)) {
            let watched = cell.watched(after).await?;
            if !watched.is_empty() {
                return Ok(watched);
            }
        }
        Ok(Vec::new())
    }

    async fn resources_page(
        &self,
        after: ResourceId,
        limit: usize,
    ) -> Result<ResourcesPage, StoreError> {
        let mut page = self.of_number(after.0).resources_page(after, limit).await?;
        let position = SubscriptionId { resource: after, number: 0 };
        page.next = page.next.or_else(|| self.next_cell(position).map(|next| next.resource));
        Ok(page)
    }

    async fn open_page(
        &self,
        after: SubscriptionId,
        limit: usize,
        now: DateTime<Utc>,
    ) -> Result<OpenSubscriptions, StoreError> {
        let mut page = self.of_number(after.resource.0).open_page(after, limit, now).await?;
        page.next = page.next.or_else(|| self.next_cell(after));
        Ok(page)
    }

    async fn count_some(
        &self,
        after: SubscriptionId,
        now: DateTime<Utc>,
    ) -> Result<SubscriptionCounts, StoreError> {
        let mut counts = self.of_number(after.resource.0).count_some(after, now).await?;
        counts.next = counts.next.or_else(|| self.next_cell(after));
        Ok(counts)
    }

    async fn pings_since(&self, since: DateTime<Utc>) -> Result<u64, StoreError> {
        let counts = self.cells.iter().map(|cell| cell.pings_since(since));
        Ok(try_join_all(counts).await?.into_iter().sum())
    }
}
