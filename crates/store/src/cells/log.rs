//! Logs, pages, fan-outs, moves and backfills: they lie in the cell of their resource.

use async_trait::async_trait;
use chrono::{DateTime, Utc};
use futures_util::future::try_join_all;

use crate::cells::Cells;
use crate::cells::claiming::CellClaims;
use feedgate_core::backfill::{Backfill, PastPage};
use feedgate_core::change_detection::Known;
use feedgate_core::claim::ClaimToken;
use feedgate_core::moves::Move;
use feedgate_core::page::{ArchiveRetention, Archived, LocatedPage, Page};
use feedgate_core::ports::{
    Archives, Backfills, CommitProgress, DueBackfill, EntryRange, FanOuts, Log, Moves, OwedRange,
    StoreError,
};
use feedgate_core::record::{EntryKey, Record, Seq};
use feedgate_core::resource::ResourceId;
use feedgate_core::subscription::{Subscription, SubscriptionRequest};
use feedgate_feed::Body;

#[async_trait]
impl Log for Cells {
    async fn read_after(
        &self,
        id: ResourceId,
        after: Seq,
        limit: usize,
    ) -> Result<Vec<Record>, StoreError> {
        self.of_number(id.0).read_after(id, after, limit).await
    }

    async fn owed(&self, id: ResourceId, owed: &OwedRange) -> Result<Vec<Record>, StoreError> {
        self.of_number(id.0).owed(id, owed).await
    }

    async fn read_current(
        &self,
        id: ResourceId,
        span: &EntryRange,
    ) -> Result<Vec<Record>, StoreError> {
        self.of_number(id.0).read_current(id, span).await
    }

    async fn heads(&self, ids: &[ResourceId]) -> Result<Vec<(ResourceId, Seq)>, StoreError> {
        let by_cell = self.by_cell(ids.iter().copied(), |id| id.0);
        let heads = self.cells.iter().zip(&by_cell).filter(|(_, ids)| !ids.is_empty());
        let heads = heads.map(|(cell, ids)| cell.heads(ids));
        Ok(try_join_all(heads).await?.concat())
    }

    async fn known(&self, id: ResourceId, keys: &[EntryKey]) -> Result<Known, StoreError> {
        self.of_number(id.0).known(id, keys).await
    }

    async fn find_seq(&self, id: ResourceId, entry_id: &str) -> Result<Option<Seq>, StoreError> {
        self.of_number(id.0).find_seq(id, entry_id).await
    }

    async fn body(&self, id: ResourceId) -> Result<Option<(i64, Body)>, StoreError> {
        self.of_number(id.0).body(id).await
    }
}

#[async_trait]
impl Archives for Cells {
    async fn page(
        &self,
        id: ResourceId,
        number: Option<i64>,
    ) -> Result<Option<LocatedPage>, StoreError> {
        self.of_number(id.0).page(id, number).await
    }

    async fn oldest_page(&self, id: ResourceId) -> Result<i64, StoreError> {
        self.of_number(id.0).oldest_page(id).await
    }

    async fn oldest_seq(&self, id: ResourceId) -> Result<Seq, StoreError> {
        self.of_number(id.0).oldest_seq(id).await
    }

    async fn read_page(&self, id: ResourceId, page: &Page) -> Result<Vec<Archived>, StoreError> {
        self.of_number(id.0).read_page(id, page).await
    }

    async fn drop_pages(
        &self,
        retention: &ArchiveRetention,
        now: DateTime<Utc>,
    ) -> Result<u64, StoreError> {
        let dropped = self.cells.iter().map(|cell| cell.drop_pages(retention, now));
        Ok(try_join_all(dropped).await?.into_iter().sum())
    }
}

#[async_trait]
impl FanOuts for Cells {
    async fn pending_fan_outs(&self, limit: usize) -> Result<Vec<ResourceId>, StoreError> {
        let mut pending = CellClaims::new(limit);
        for cell in self.in_turn() {
            if pending.left() == 0 {
                break;
            }
            pending.add(cell.pending_fan_outs(pending.left()).await);
        }
        pending.finish()
    }

    async fn continue_fan_out(
        &self,
        resource: ResourceId,
        now: DateTime<Utc>,
    ) -> Result<(), StoreError> {
        self.of_number(resource.0).continue_fan_out(resource, now).await
    }
}

#[async_trait]
impl Moves for Cells {
    async fn moves(&self, id: ResourceId) -> Result<Vec<Move>, StoreError> {
        self.of_number(id.0).moves(id).await
    }

    async fn undo_move(
        &self,
        id: ResourceId,
        number: i64,
        now: DateTime<Utc>,
    ) -> Result<bool, StoreError> {
        self.of_number(id.0).undo_move(id, number, now).await
    }
}

#[async_trait]
impl Backfills for Cells {
    async fn subscribe_with_history(
        &self,
        request: &SubscriptionRequest,
        now: DateTime<Utc>,
    ) -> Result<Subscription, StoreError> {
        self.of_topic(request.topic.as_str()).subscribe_with_history(request, now).await
    }

    async fn claim_backfills(
        &self,
        now: DateTime<Utc>,
        until: DateTime<Utc>,
        limit: usize,
    ) -> Result<Vec<DueBackfill>, StoreError> {
        let mut claims = CellClaims::new(limit);
        for cell in self.in_turn() {
            if claims.left() == 0 {
                break;
            }
            claims.add(cell.claim_backfills(now, until, claims.left()).await);
        }
        claims.finish()
    }

    async fn renew_backfill_claims(
        &self,
        claims: &[(ResourceId, ClaimToken)],
        now: DateTime<Utc>,
        until: DateTime<Utc>,
    ) -> Result<Vec<ResourceId>, StoreError> {
        let mut renewed = Vec::new();
        for (cell, claims) in self.cells.iter().zip(self.by_cell(claims.to_vec(), |(id, _)| id.0)) {
            if !claims.is_empty() {
                renewed.extend(cell.renew_backfill_claims(&claims, now, until).await?);
            }
        }
        Ok(renewed)
    }

    async fn stage_backfill(
        &self,
        backfill: &Backfill,
        claim: ClaimToken,
        page: PastPage,
        now: DateTime<Utc>,
    ) -> Result<bool, StoreError> {
        self.of_number(backfill.resource.0).stage_backfill(backfill, claim, page, now).await
    }

    async fn save_backfill(
        &self,
        backfill: &Backfill,
        claim: ClaimToken,
        due_at: DateTime<Utc>,
    ) -> Result<bool, StoreError> {
        self.of_number(backfill.resource.0).save_backfill(backfill, claim, due_at).await
    }

    async fn commit_staged(
        &self,
        id: ResourceId,
        claim: ClaimToken,
        now: DateTime<Utc>,
    ) -> Result<CommitProgress, StoreError> {
        self.of_number(id.0).commit_staged(id, claim, now).await
    }

    async fn drop_backfill(
        &self,
        id: ResourceId,
        claim: ClaimToken,
        now: DateTime<Utc>,
    ) -> Result<(), StoreError> {
        self.of_number(id.0).drop_backfill(id, claim, now).await
    }

    async fn backfills(&self, ids: &[ResourceId]) -> Result<Vec<Backfill>, StoreError> {
        let mut found = Vec::new();
        for (cell, ids) in self.cells.iter().zip(self.by_cell(ids.to_vec(), |id| id.0)) {
            if !ids.is_empty() {
                found.extend(cell.backfills(&ids).await?);
            }
        }
        Ok(found)
    }
}
