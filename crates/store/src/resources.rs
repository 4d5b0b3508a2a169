//! Watched resources: finding, creating and claiming them.

pub(crate) mod claim;
pub(crate) mod details;
pub(crate) mod ensure;
pub(crate) mod forget;
pub(crate) mod group_queue;
pub(crate) mod moves;
pub(crate) mod poll_result;
pub(crate) mod poll_result_batcher;
pub(crate) mod release;
pub(crate) mod reschedule;
pub(crate) mod row;
pub(crate) mod schedule;
pub(crate) mod survey;
pub(crate) mod upstreams;

use std::sync::Arc;

use async_trait::async_trait;
use chrono::{DateTime, Utc};

use super::delivery::ping_forwarding;
use super::engine::sql::params;
use super::engine::tx::Tx;
use super::hosts;
use super::log::append;
use crate::Db;
use claim::ClaimTimes;
use ensure::ensure;
use feedgate_core::change_detection::FeedDocument;
use feedgate_core::poll::Poll;
use feedgate_core::ports::{
    Appended, ClaimLimits, DueResource, ReleasedResource, Resources, StoreError,
};
use feedgate_core::resource::{Resource, ResourceId};
use feedgate_core::topic::Topic;
use poll_result::PollResult;
use row::{resource, resource_columns};

/// The most transactions of one claim that finds nothing, because the resources that it reads must
/// wait for their group or were claimed by another node.
const MOST_ATTEMPTS: usize = 16;

#[async_trait]
impl Resources for Db {
    async fn ensure(&self, topic: &Topic, now: DateTime<Utc>) -> Result<Resource, StoreError> {
        if let Some(known) = self.find(topic.as_str()).await? {
            return Ok(known);
        }
        let (topic, groups) = (topic.clone(), self.groups.clone());
        self.write(move |tx| Box::pin(async move { ensure(tx, &groups, &topic, now).await })).await
    }

    async fn find(&self, topic: &str) -> Result<Option<Resource>, StoreError> {
        const FIND: &str = concat!(
            "select ",
            resource_columns!(),
            " from resources r join resource_details d on d.resource_id = r.id
             where r.topic = $1"
        );
        let topic = topic.to_owned();
        let found = self.read(|tx| Box::pin(async move { tx.first(FIND, params![topic]).await }));
        found.await?.as_mut().map(resource).transpose()
    }

    async fn get(&self, id: ResourceId) -> Result<Option<Resource>, StoreError> {
        self.read(move |tx| Box::pin(get(tx, id))).await
    }

    async fn claim_resources(
        &self,
        now: DateTime<Utc>,
        until: DateTime<Utc>,
        room: &ClaimLimits,
    ) -> Result<Vec<DueResource>, StoreError> {
        let times = ClaimTimes { now, until };
        for _ in 0..MOST_ATTEMPTS {
            let (room, groups) = (room.clone(), self.groups.clone());
            let claimed = self.write(move |tx| {
                Box::pin(async move { claim::claim(tx, &groups, &room, times).await })
            });
            let claimed = claimed.await?;
            if !claimed.may_have_more {
                return Ok(claimed.due);
            }
        }
        Ok(Vec::new())
    }

    async fn claim_resource(
        &self,
        id: ResourceId,
        now: DateTime<Utc>,
        until: DateTime<Utc>,
    ) -> Result<Option<Resource>, StoreError> {
        const CLAIM_ONE: &str = "
            update resources
               set claimed_until = $3,
                   pinged = case when pinged = 1 then 2 else pinged end
             where id = $1 and (claimed_until is null or claimed_until <= $2)
               and kind <> 'collection'";
        let groups = self.groups.clone();
        let claimed = self.write(move |tx| {
            Box::pin(async move {
                if tx.execute(CLAIM_ONE, params![id.0, now, until]).await? == 0 {
                    return Ok(None);
                }
                hosts::claim_group_for(tx, &groups, id, (now, until)).await?;
                get(tx, id).await
            })
        });
        claimed.await
    }

    async fn release_resource(&self, released: &ReleasedResource) -> Result<(), StoreError> {
        let released = released.clone();
        self.write(move |tx| Box::pin(release::release(tx, released))).await
    }

    async fn record(&self, id: ResourceId, poll: &Poll) -> Result<Appended, StoreError> {
        if poll_result::is_all(poll) {
            if let Some(appended) =
                self.poll_results.record(PollResult::from_poll(id, poll, false)).await?
            {
                return Ok(appended);
            }
            let kept = self.poll_results.record(PollResult::from_poll(id, poll, true)).await?;
            return kept.ok_or_else(|| poll_result::missing(id));
        }
        let (poll, groups, cut) = (poll.clone(), self.groups.clone(), self.cut);
        let forwarding = Arc::clone(&self.forwarding);
        let record = self.write(move |tx| {
            Box::pin(async move {
                let (at, silent) = (poll.at, poll.silent);
                let appended = append::record(tx, (&groups, &cut), id, poll).await?;
                if appended.new > 0 && !silent {
                    ping_forwarding::queue_changed_resource(tx, &forwarding, id, at).await?;
                }
                Ok(appended)
            })
        });
        record.await
    }

    async fn push(
        &self,
        id: ResourceId,
        document: FeedDocument,
        now: DateTime<Utc>,
    ) -> Result<Appended, StoreError> {
        let (cut, forwarding) = (self.cut, Arc::clone(&self.forwarding));
        let push = self.write(move |tx| {
            Box::pin(async move {
                let appended = append::push(tx, &cut, id, (document, now)).await?;
                if appended.new > 0 {
                    ping_forwarding::queue_changed_resource(tx, &forwarding, id, now).await?;
                }
                Ok(appended)
            })
        });
        push.await
    }
}

async fn get(tx: &Tx<'_>, id: ResourceId) -> Result<Option<Resource>, StoreError> {
    const GET: &str = concat!(
        "select ",
        resource_columns!(),
        " from resources r join resource_details d on d.resource_id = r.id
         where r.id = $1"
    );
    tx.first(GET, params![id.0]).await?.as_mut().map(resource).transpose()
}
