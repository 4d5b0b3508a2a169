//! What is watched: finding, making and claiming resources.

pub(crate) mod details;
pub(crate) mod ensure;
pub(crate) mod forget;
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
use super::engine::claims::{self, ClaimQueue};
use super::engine::sql::{Row, params};
use super::engine::tx::Tx;
use super::hosts;
use super::log::append;
use crate::Db;
use ensure::ensure;
use feedgate_core::change_detection::FeedDocument;
use feedgate_core::poll::{Poll, Trigger};
use feedgate_core::ports::{
    Appended, ClaimLimits, DueResource, ReleasedResource, Resources, StoreError,
};
use feedgate_core::resource::{Resource, ResourceId};
use feedgate_core::topic::Topic;
use poll_result::PollResult;
use row::{resource, resource_columns};

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
        let (room, groups) = (room.clone(), self.groups.clone());
        let claimed = self.write(move |tx| {
            Box::pin(async move {
                let picked = claims::pick(tx, &QUEUE, now, &room).await?;
                let alone = (room.per_host == 1).then_some(until);
                let picked = hosts::claim_groups(tx, &groups, picked, (now, alone)).await?;
                tx.execute_rows(CLAIM, params![until], &claims::columns(&picked)).await?;
                let rows = tx.query_rows(CLAIMED, &[], &claims::columns(&picked)).await?;
                Ok(claims::read(rows, &picked, due_resource, |due| due.resource.id.0))
            })
        });
        claimed.await
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

/// Whether the group of a row of this table is nobody's at `$1`. SQLite looks each up, because
/// an index of groups by their time would be written twice for each poll.
macro_rules! is_free {
    ($table:literal) => {
        concat!(
            "{postgres host not in (select host from hosts where next_fetch_at > $1)}
             {sqlite coalesce((select h.next_fetch_at from hosts h where h.host = ",
            $table,
            ".host), 0) <= $1}"
        )
    };
}

/// Due resources. One that nobody subscribes to is in none of the indexes used here.
///
/// Host groups that are being asked, or were a moment ago, or are left alone, are passed over
/// before the front is cut off: one that is always behind must not fill it. So is what is
/// claimed, which keeps its place: of two indexes that have it, neither is written for a claim.
const QUEUE: ClaimQueue = ClaimQueue {
    front: concat!(
        "
        select id, id, host
          from resources
         where subscribers > 0 and due_at <= $1
           and (claimed_until is null or claimed_until <= $1)
           and ",
        is_free!("resources"),
        "
         order by due_at, id
         limit $2
           {skip locked}"
    ),
    // Steps from host to host through the index instead of reading all that is due.
    hosts: concat!(
        "
        with recursive step (host) as (
            select min(host) from resources where subscribers > 0
            union all
            select (select min(r.host) from resources r
                     where r.subscribers > 0 and r.host > step.host)
              from step
             where step.host is not null),
        first as (
            select host, (select min(r.due_at) from resources r
                           where r.subscribers > 0 and r.host = step.host) as due_at
              from step
             where host is not null)
        select host
          from first
         where due_at <= $1
           and host not in ({texts $2})
           and ",
        is_free!("first"),
        "
         order by due_at
         limit $3"
    ),
    of_host: "
        select id, id, host
          from resources
         where subscribers > 0 and host = $2 and due_at <= $1
           and (claimed_until is null or claimed_until <= $1)
         order by due_at
         limit $3
           {skip locked}",
};

const CLAIM: &str = "
    update resources
       set claimed_until = $1,
           pinged = case when pinged = 1 then 2 else pinged end
      {from rows}
     where resources.id = {given id}";

const CLAIMED: &str = concat!(
    "select ",
    resource_columns!(),
    ", r.pinged
       from {rows}
       join resources r on r.id = given.id
       join resource_details d on d.resource_id = r.id"
);

async fn get(tx: &Tx<'_>, id: ResourceId) -> Result<Option<Resource>, StoreError> {
    const GET: &str = concat!(
        "select ",
        resource_columns!(),
        " from resources r join resource_details d on d.resource_id = r.id
         where r.id = $1"
    );
    tx.first(GET, params![id.0]).await?.as_mut().map(resource).transpose()
}

fn due_resource(mut row: Row) -> Result<DueResource, StoreError> {
    let resource = resource(&mut row)?;
    let trigger = if row.int()? > 0 { Trigger::Ping } else { Trigger::Schedule };
    Ok(DueResource { resource, trigger })
}
