//! Upstreams: in the cell of their resource.

use std::time::Duration;

use async_trait::async_trait;
use chrono::{DateTime, Utc};
use futures_util::future::try_join_all;

use crate::cells::Cells;
use crate::cells::claiming::CellClaims;
use crate::cells::delivery::fill;
use feedgate_core::claim::ClaimToken;
use feedgate_core::ports::{ClaimLimits, DueUpstream, StoreError, Upstreams};
use feedgate_core::resource::ResourceId;
use feedgate_core::upstream::{Upstream, UpstreamSummary};

#[async_trait]
impl Upstreams for Cells {
    async fn claim_upstreams(
        &self,
        now: DateTime<Utc>,
        until: DateTime<Utc>,
        room: &ClaimLimits,
    ) -> Result<Vec<DueUpstream>, StoreError> {
        let (mut claims, mut room) = (CellClaims::new(room.limit), room.clone());
        for cell in self.in_turn() {
            if claims.left() == 0 {
                break;
            }
            claims.add(cell.claim_upstreams(now, until, &room).await);
            room.limit = claims.left();
            fill(&mut room, claims.claimed().iter().map(|due| due.upstream.offer.host()));
        }
        claims.finish()
    }

    async fn upstream(&self, token: &str) -> Result<Option<Upstream>, StoreError> {
        let found = try_join_all(self.cells.iter().map(|cell| cell.upstream(token))).await?;
        Ok(found.into_iter().flatten().next())
    }

    async fn upstream_summary(
        &self,
        id: ResourceId,
    ) -> Result<Option<UpstreamSummary>, StoreError> {
        self.of_number(id.0).upstream_summary(id).await
    }

    async fn save_upstream(
        &self,
        upstream: &Upstream,
        claim: Option<ClaimToken>,
        due_at: DateTime<Utc>,
    ) -> Result<bool, StoreError> {
        self.of_number(upstream.resource.0).save_upstream(upstream, claim, due_at).await
    }

    async fn end_upstream(
        &self,
        upstream: &Upstream,
        claim: Option<ClaimToken>,
    ) -> Result<(), StoreError> {
        self.of_number(upstream.resource.0).end_upstream(upstream, claim).await
    }

    async fn record_upstream_push(
        &self,
        upstream: &Upstream,
        hops: u32,
        spacing: Duration,
        now: DateTime<Utc>,
    ) -> Result<bool, StoreError> {
        self.of_number(upstream.resource.0).record_upstream_push(upstream, hops, spacing, now).await
    }
}
