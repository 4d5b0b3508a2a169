//! What is watched: finding, making and claiming resources.

pub(crate) mod details;
pub(crate) mod forget;
pub(crate) mod moves;
pub(crate) mod poll_result;
pub(crate) mod poll_result_batcher;
pub(crate) mod reschedule;
pub(crate) mod schedule;
pub(crate) mod survey;
pub(crate) mod upstreams;

use std::sync::Arc;

use async_trait::async_trait;
use chrono::{DateTime, Utc};

use super::changes::pings;
use super::delivery::ping_forwarding;
use super::engine::claims::{self, ClaimQueue};
use super::engine::db::Db;
use super::engine::sql::{Row, Value, params};
use super::engine::tx::{Tx, Wake};
use super::hosts;
use super::log::append;
use feedgate_core::change_detection::FeedDocument;
use feedgate_core::host_groups::HostGroups;
use feedgate_core::poll::{Poll, Trigger};
use feedgate_core::ports::{Appended, ClaimLimits, DueResource, Resources, StoreError};
use feedgate_core::record::Seq;
use feedgate_core::resource::{Resource, ResourceId, ResourceKind};
use feedgate_core::status::Status;
use feedgate_core::topic::Topic;
use poll_result::PollResult;

/// The columns of a resource `r` with its details `d`, as [`resource`] reads them.
macro_rules! resource_columns {
    () => {
        "r.id, r.topic, r.fetch_url, r.kind, r.head, r.body_version, d.feed_head,
         r.next_fetch, d.status, d.polling, r.poll_times, r.subscribers,
         (select u.lease_until
            from upstreams u
           where u.resource_id = r.id and u.state = 'active' and u.is_trusted = 1),
         r.delay_reason"
    };
}
pub(super) use resource_columns;

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
                let picked = hosts::hold(tx, &groups, picked, (now, alone)).await?;
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
                hosts::hold_for(tx, &groups, id, (now, until)).await?;
                get(tx, id).await
            })
        });
        claimed.await
    }

    async fn record(&self, id: ResourceId, poll: &Poll) -> Result<Appended, StoreError> {
        if poll_result::is_all(poll) {
            if let Some(appended) =
                self.recorder.record(PollResult::from_poll(id, poll, false)).await?
            {
                return Ok(appended);
            }
            let kept = self.recorder.record(PollResult::from_poll(id, poll, true)).await?;
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
/// HostGroups that are being asked, or were a moment ago, or are left alone, are passed over
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

/// The resource with this topic, made if there is none, locked until the transaction
/// ends.
pub(super) async fn ensure(
    tx: &Tx<'_>,
    groups: &HostGroups,
    topic: &Topic,
    now: DateTime<Utc>,
) -> Result<Resource, StoreError> {
    const MAKE: &str = "
        insert into resources (topic, fetch_url, host, kind, next_fetch, due_at, measured_at)
        values ($1, $2, $3, $4, $5, $5, $5)
            on conflict (topic) do nothing
        returning id";
    const LOCK: &str = concat!(
        "select ",
        resource_columns!(),
        " from resources r join resource_details d on d.resource_id = r.id
         where r.topic = $1
           {for update}"
    );
    let fetch_url = topic.fetch_url();
    #[rustfmt::skip]
    let params = params![
        topic.as_str(), fetch_url.as_str(), groups.name(&fetch_url), ResourceKind::Unknown.as_str(), now,
    ];
    let made = tx.first(MAKE, params).await?.map(|mut row| row.int()).transpose()?;
    if let Some(id) = made {
        details::make(tx, id, &Status::default()).await?;
    }
    let locked = tx.first(LOCK, params![topic.as_str()]).await?;
    let mut locked = locked.ok_or_else(|| StoreError::Corrupt("a resource vanished".to_owned()))?;
    let resource = resource(&mut locked)?;
    if made.is_some() {
        pings::name(tx, resource.id, "topic", topic.as_str()).await?;
        pings::name(tx, resource.id, "fetch", fetch_url.as_str()).await?;
        tx.wake(Wake::Resources).await?;
    }
    Ok(resource)
}

/// Locks resources for writing, in the order that all who lock several keep to.
pub(super) async fn lock(tx: &Tx<'_>, mut ids: Vec<i64>) -> Result<(), StoreError> {
    const LOCK: &str = "select id from resources where id in ({ids $1}) order by id {for update}";
    ids.sort_unstable();
    ids.dedup();
    tx.query(LOCK, &[Value::Ints(ids)]).await.map(drop)
}

fn due_resource(mut row: Row) -> Result<DueResource, StoreError> {
    let resource = resource(&mut row)?;
    let trigger = if row.int()? > 0 { Trigger::Ping } else { Trigger::Schedule };
    Ok(DueResource { resource, trigger })
}

/// Reads `resource_columns!`. What was put off since its last poll tells why, and until
/// when, in place of what that poll said.
pub(super) fn resource(row: &mut Row) -> Result<Resource, StoreError> {
    let (id, topic) = (ResourceId(row.int()?), topic(row)?);
    let (fetch_url, kind) = (row.text()?, row.word(ResourceKind::from_word)?);
    let (head, body_version, feed_head) = (Seq(row.int()?), row.int()?, row.text()?);
    let next_fetch = row.time()?;
    let (mut status, polling) = details::read(row)?;
    let (subscribers, pushed_until) = (row.small()?, row.opt_time()?);
    if let Some(why) = row.opt_text()? {
        status.next_fetch = Some(next_fetch);
        status.period_reason = why;
    }
    #[rustfmt::skip]
    let resource = Resource {
        id, topic, fetch_url, kind, head, body_version, feed_head, next_fetch, status, polling,
        subscribers, pushed_until,
    };
    Ok(resource)
}

/// Reads a topic.
pub(super) fn topic(row: &mut Row) -> Result<Topic, StoreError> {
    Topic::parse(row.text()?).map_err(|err| StoreError::Corrupt(err.to_string()))
}
