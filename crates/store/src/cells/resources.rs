//! Resources: each in the cell of its topic.

use async_trait::async_trait;
use chrono::{DateTime, Utc};
use futures_util::future::try_join_all;
use tracing::warn;

use crate::cells::Cells;
use crate::cells::claiming::CellClaims;
use crate::cells::pacing::{ClaimTimes, EndedPoll};
use feedgate_core::account::AccountId;
use feedgate_core::change_detection::FeedDocument;
use feedgate_core::claim::ClaimToken;
use feedgate_core::poll::Poll;
use feedgate_core::ports::{
    Appended, ClaimLimits, DueResource, Hosts, ReleasedResource, Rescheduler, Resources, Schedule,
    StoreError,
};
use feedgate_core::registrant::RegistrantNetwork;
use feedgate_core::resource::{Resource, ResourceId};
use feedgate_core::topic::Topic;

#[async_trait]
impl Resources for Cells {
    async fn ensure_for(
        &self,
        topic: &Topic,
        registrant: RegistrantNetwork,
        now: DateTime<Utc>,
    ) -> Result<Resource, StoreError> {
        self.of_topic(topic.as_str()).ensure_for(topic, registrant, now).await
    }

    async fn find(&self, topic: &str) -> Result<Option<Resource>, StoreError> {
        self.of_topic(topic).find(topic).await
    }

    async fn get(&self, id: ResourceId) -> Result<Option<Resource>, StoreError> {
        if let Some(found) = self.of_number(id.0).find_by_number(id).await? {
            return Ok(Some(found));
        }
        match self.shared.current_number(id).await? {
            Some(current) => self.of_number(current.0).find_by_number(current).await,
            None => Ok(None),
        }
    }

    async fn has_trusted_watcher(&self, id: ResourceId) -> Result<bool, StoreError> {
        self.of_number(id.0).has_trusted_watcher(id).await
    }

    async fn subscribed_by(
        &self,
        account: AccountId,
        ids: &[ResourceId],
    ) -> Result<Vec<ResourceId>, StoreError> {
        let mut subscribed = Vec::new();
        for (cell, ids) in self.cells.iter().zip(self.by_cell(ids.to_vec(), |id| id.0)) {
            if !ids.is_empty() {
                subscribed.extend(cell.subscribed_by(account, &ids).await?);
            }
        }
        Ok(subscribed)
    }

    async fn note_inner(&self, id: ResourceId) -> Result<(), StoreError> {
        self.of_number(id.0).note_inner(id).await
    }

    async fn earliest_fetch(&self, id: ResourceId) -> Result<DateTime<Utc>, StoreError> {
        self.of_number(id.0).earliest_fetch(id).await
    }

    async fn claim_resources(
        &self,
        now: DateTime<Utc>,
        until: DateTime<Utc>,
        room: &ClaimLimits,
    ) -> Result<Vec<DueResource>, StoreError> {
        let mut claims = CellClaims::new(if room.per_host == 0 { 0 } else { room.limit });
        for cell in self.in_turn() {
            if claims.left() == 0 {
                break;
            }
            let room = ClaimLimits { limit: claims.left(), ..room.clone() };
            claims.add(self.claim_from_cell(cell, &room, ClaimTimes { now, until }).await);
        }
        claims.finish()
    }

    async fn claim_resource(
        &self,
        id: ResourceId,
        now: DateTime<Utc>,
        until: DateTime<Utc>,
    ) -> Result<Option<DueResource>, StoreError> {
        let claimed = self.of_number(id.0).claim_resource(id, now, until).await?;
        if let Some(due) = &claimed {
            let group = self.shared.group(&due.resource.fetch_url);
            self.hold_host(&group, ClaimTimes { now, until }).await?;
        }
        Ok(claimed)
    }

    async fn renew_resource_claims(
        &self,
        claims: &[(ResourceId, ClaimToken)],
        now: DateTime<Utc>,
        until: DateTime<Utc>,
    ) -> Result<Vec<ResourceId>, StoreError> {
        let (mut renewed, mut groups) = (Vec::new(), Vec::new());
        for (cell, claims) in self.cells.iter().zip(self.by_cell(claims.to_vec(), |(id, _)| id.0)) {
            if !claims.is_empty() {
                let ids = cell.renew_resource_claims(&claims, now, until).await?;
                groups.extend(cell.groups_of(&ids).await?);
                renewed.extend(ids);
            }
        }
        if !groups.is_empty() {
            self.renew_hosts(groups, ClaimTimes { now, until }).await?;
        }
        Ok(renewed)
    }

    async fn release_resource(&self, released: &ReleasedResource) -> Result<(), StoreError> {
        let (cell, at) = (self.of_number(released.id.0), released.at);
        let group = cell.group_of(released.id).await?;
        cell.release_resource(released).await?;
        if let Some(group) = group {
            let next_fetch = DateTime::<Utc>::MAX_UTC;
            self.release_host(EndedPoll { group, is_well: false, at, next_fetch }).await?;
        }
        Ok(())
    }

    async fn record(&self, id: ResourceId, poll: &Poll) -> Result<Option<Appended>, StoreError> {
        let cell = self.of_number(id.0);
        // A poll that moves the resource to another URL was sent to the host before.
        let mut group = match poll.fetch_url {
            Some(_) => cell.group_of(id).await?,
            None => None,
        };
        let Some(appended) = cell.record(id, poll).await? else { return Ok(None) };
        let released = async {
            if group.is_none() {
                group = cell.group_of(id).await?;
            }
            let Some(group) = group else { return Ok(()) };
            let (is_well, at, next_fetch) = (poll.answered_well, poll.at, poll.next_fetch);
            let ended = EndedPoll { group, is_well, at, next_fetch };
            match self.release_host(ended).await? {
                Some(put_off) => cell.queue_behind(id, put_off).await,
                None => Ok(()),
            }
        };
        match released.await {
            // The poll is stored. Without this, the claim of its host expires.
            Err(err) if !matches!(err, StoreError::Closed) => {
                let error = &err as &dyn std::error::Error;
                warn!(error, "a host was not released after a poll; its claim will expire");
            }
            _ => {}
        }
        Ok(Some(appended))
    }

    async fn push(
        &self,
        id: ResourceId,
        document: FeedDocument,
        now: DateTime<Utc>,
    ) -> Result<Appended, StoreError> {
        self.of_number(id.0).push(id, document, now).await
    }
}

#[async_trait]
impl Rescheduler for Cells {
    async fn release_backlog(&self, now: DateTime<Utc>) -> Result<u64, StoreError> {
        let released = self.cells.iter().map(|cell| cell.release_backlog(now));
        Ok(try_join_all(released).await?.into_iter().sum())
    }

    async fn poll_soon(&self, ids: &[ResourceId], at: DateTime<Utc>) -> Result<u64, StoreError> {
        let mut rescheduled = 0;
        for (cell, ids) in self.cells.iter().zip(self.by_cell(ids.to_vec(), |id| id.0)) {
            if !ids.is_empty() {
                rescheduled += cell.poll_soon(&ids, at).await?;
            }
        }
        Ok(rescheduled)
    }
}

#[async_trait]
impl Schedule for Cells {
    async fn planned(&self, k: f64) -> Result<f64, StoreError> {
        let planned = self.cells.iter().map(|cell| cell.planned(k));
        Ok(try_join_all(planned).await?.into_iter().sum())
    }

    async fn k(&self) -> Result<f64, StoreError> {
        self.shared.k().await
    }

    async fn save_k(&self, k: f64) -> Result<(), StoreError> {
        self.shared.save_k(k).await
    }
}
