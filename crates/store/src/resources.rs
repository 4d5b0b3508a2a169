//! Watched resources: finding, creating and claiming them.

pub(crate) mod claim;
pub(crate) mod details;
pub(crate) mod ensure;
pub(crate) mod forget;
pub(crate) mod former_numbers;
pub(crate) mod group_queue;
mod measured;
pub(crate) mod moves;
pub(crate) mod poll_result;
pub(crate) mod poll_result_batcher;
pub(crate) mod release;
pub(crate) mod reschedule;
pub(crate) mod row;
pub(crate) mod schedule;
pub(crate) mod survey;
pub(crate) mod upstreams;

use std::error::Error;
use std::sync::Arc;

use async_trait::async_trait;
use chrono::{DateTime, TimeDelta, Utc};
use tracing::warn;

use super::delivery::ping_forwarding;
use super::engine::sql::{Value, params};
use super::log::anonymous_documents::AnonymousPlace;
use super::log::append::{self, AppendSettings};
use super::log::append_budget;
use super::log::document_parts::AppendProgress;
use super::log::entries::{self, OldEntries};
use super::log::recording::{self, PushedPart, Recorded, Recording};
use crate::Db;
use crate::engine::sqlite::WriteSize;
use claim::ClaimedResources;
use ensure::ensure;
use feedgate_core::account::AccountId;
use feedgate_core::change_detection::FeedDocument;
use feedgate_core::claim::ClaimToken;
use feedgate_core::poll::{Poll, Trigger};
use feedgate_core::ports::{
    Appended, ClaimLimits, DueResource, Log, ReleasedResource, Resources, StoreError,
};
use feedgate_core::record::Seq;
use feedgate_core::registrant::RegistrantNetwork;
use feedgate_core::resource::{Resource, ResourceId};
use feedgate_core::topic::Topic;
use feedgate_core::visibility::SourceNetwork;
use poll_result::{PollResult, StoredResult};
use row::{resource, resource_columns};

/// The most transactions of one claim that finds nothing, because the resources that it reads must
/// wait for their group or were claimed by another node.
const MOST_ATTEMPTS: usize = 16;

#[async_trait]
impl Resources for Db {
    async fn ensure_for(
        &self,
        topic: &Topic,
        registrant: RegistrantNetwork,
        now: DateTime<Utc>,
    ) -> Result<Resource, StoreError> {
        if let Some(known) = self.find(topic.as_str()).await? {
            return Ok(known);
        }
        let (topic, groups) = (topic.clone(), self.groups.clone());
        let ensured = self.write(move |tx| {
            Box::pin(async move { ensure(tx, &groups, (&topic, registrant), now).await })
        });
        ensured.await
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
        self.find_by_any_number(id).await
    }

    async fn has_trusted_watcher(&self, id: ResourceId) -> Result<bool, StoreError> {
        self.read(move |tx| Box::pin(append_budget::has_trusted_watcher(tx, id))).await
    }

    async fn subscribed_by(
        &self,
        account: AccountId,
        ids: &[ResourceId],
    ) -> Result<Vec<ResourceId>, StoreError> {
        const SUBSCRIBED: &str = "
            select r.id from resources r
             where r.id in ({ids $1})
               and exists (select 1 from subscriptions s
                            where s.resource_id = r.id and s.account_id = $2
                              and s.account_id <> 0)";
        let ids = Value::Ints(ids.iter().map(|id| id.0).collect());
        let rows = self.rows(SUBSCRIBED, &[ids, account.0.into()]).await?;
        rows.into_iter().map(|mut row| row.int().map(ResourceId)).collect()
    }

    async fn note_inner(&self, id: ResourceId) -> Result<(), StoreError> {
        const NOTE: &str =
            "update resources set source_network = $2 where id = $1 and source_network < $2";
        let params = params![id.0, SourceNetwork::Inner.as_number()].to_vec();
        let noted = self.write(move |tx| Box::pin(async move { tx.execute(NOTE, &params).await }));
        noted.await.map(drop)
    }

    async fn earliest_fetch(&self, id: ResourceId) -> Result<DateTime<Utc>, StoreError> {
        const PAID: &str = "select appends_paid_at from resources where id = $1";
        let rows = self.rows(PAID, params![id.0]).await?;
        let paid_at = rows.into_iter().next().map(|mut row| row.time()).transpose()?;
        Ok(append_budget::earliest(paid_at.unwrap_or(DateTime::UNIX_EPOCH)))
    }

    async fn claim_resources(
        &self,
        now: DateTime<Utc>,
        until: DateTime<Utc>,
        room: &ClaimLimits,
    ) -> Result<Vec<DueResource>, StoreError> {
        for _ in 0..MOST_ATTEMPTS {
            let (room, groups, claims) = (room.clone(), self.groups.clone(), self.claims.clone());
            let claimed = self.write(move |tx| {
                Box::pin(async move {
                    let lease = claims.lease(now, until);
                    claim::claim(tx, &groups, &room, lease).await
                })
            });
            let ClaimedResources { due, delays, may_have_more } = claimed.await?;
            let delayed = match delays.is_empty() {
                true => Ok(()),
                false => self.write(move |tx| Box::pin(delays.store(tx))).await,
            };
            if !may_have_more {
                // Resources that were not delayed are read again by the next claim.
                if let Err(err) = delayed {
                    warn!(error = &err as &dyn Error, "resources of busy groups were not delayed");
                }
                return Ok(due);
            }
            delayed?;
        }
        Ok(Vec::new())
    }

    async fn claim_resource(
        &self,
        id: ResourceId,
        now: DateTime<Utc>,
        until: DateTime<Utc>,
    ) -> Result<Option<DueResource>, StoreError> {
        let (groups, claims) = (self.groups.clone(), self.claims.clone());
        let claimed = self.write(move |tx| {
            Box::pin(async move {
                let lease = claims.lease(now, until);
                claim::claim_one(tx, &groups, id, lease).await
            })
        });
        claimed.await
    }

    async fn renew_resource_claims(
        &self,
        claims: &[(ResourceId, ClaimToken)],
        now: DateTime<Utc>,
        until: DateTime<Utc>,
    ) -> Result<Vec<ResourceId>, StoreError> {
        let (held, claims) = (claims.to_vec(), self.claims.clone());
        let renewed = self.write(move |tx| {
            Box::pin(async move {
                let lease = claims.lease(now, until);
                claim::renew(tx, held, lease).await
            })
        });
        renewed.await
    }

    async fn release_resource(&self, released: &ReleasedResource) -> Result<(), StoreError> {
        let released = released.clone();
        self.write(move |tx| Box::pin(release::release(tx, released))).await
    }

    async fn record(&self, id: ResourceId, poll: &Poll) -> Result<Option<Appended>, StoreError> {
        if poll_result::is_all(poll) {
            for with_details in [false, true] {
                let result = PollResult::from_poll(id, poll, with_details);
                match self.poll_results.record(self, result).await? {
                    StoredResult::Stored(appended) => return Ok(Some(appended)),
                    StoredResult::ClaimLost => return Ok(None),
                    StoredResult::DetailsChanged => {}
                }
            }
            return Err(poll_result::missing(id));
        }
        let mut recording = Recording::new(poll.clone());
        let _place = match recording.is_divided() {
            true => match self.document_place(id).await? {
                Some(place) => Some(place),
                None => return Err(self.wait_for_place(id, poll.at + PLACE_AGAIN).await?),
            },
            false => None,
        };
        let _permit = self.append_permit().await?;
        let size = recording.write_size();
        loop {
            match self.record_part(id, size, recording.clone(), poll.silent).await? {
                Recorded::ClaimLost => return Ok(None),
                Recorded::Part(rest) => recording = rest,
                Recorded::OverBudget(until) => return Err(postponed(until, NETWORK_BUDGET)),
                Recorded::All(appended, old) => {
                    self.forget_entries(id, old).await;
                    return Ok(Some(appended));
                }
            }
        }
    }

    async fn push(
        &self,
        id: ResourceId,
        document: FeedDocument,
        now: DateTime<Utc>,
    ) -> Result<Appended, StoreError> {
        let _place = match recording::is_divided(&document) {
            true => match self.document_place(id).await? {
                Some(place) => Some(place),
                // The next poll finds it.
                None => {
                    let heads = self.heads(&[id]).await?;
                    let head = heads.first().map_or(Seq::NONE, |(_, head)| *head);
                    return Ok(Appended { head, new: 0 });
                }
            },
            false => None,
        };
        let _permit = self.append_permit().await?;
        let size = if recording::is_large(&document) { WriteSize::Large } else { WriteSize::Small };
        let (document, mut progress) =
            (Arc::new(document), AppendProgress::new(now, Trigger::Push));
        loop {
            let (groups, cut, budget) = (self.groups.clone(), self.cut, self.append_budget);
            let listed = self.listed;
            let forwarding = Arc::clone(&self.forwarding);
            let document = Arc::clone(&document);
            let pushed = self.write_sized(size, move |tx| {
                Box::pin(async move {
                    let settings = AppendSettings { groups: &groups, cut: &cut, budget, listed };
                    let pushed = append::push(tx, settings, id, (&document, now), progress).await?;
                    if pushed.appended.new > 0 {
                        ping_forwarding::queue_changed_resource(tx, &forwarding, id, now).await?;
                    }
                    Ok(pushed)
                })
            });
            let PushedPart { appended, rest } = pushed.await?;
            let Some(rest) = rest else { return Ok(appended) };
            progress = rest;
        }
    }
}

/// When a poll is repeated whose document found no place.
const PLACE_AGAIN: TimeDelta = TimeDelta::minutes(2);
/// Why a document is stored later.
const NO_PLACE: &str =
    "this gateway is busy with other large documents for subscribers without an account";
const NETWORK_BUDGET: &str = "as much was stored today for subscriptions that were requested from the same network as may be \
     stored in a day";

fn postponed(until: DateTime<Utc>, reason: &'static str) -> StoreError {
    StoreError::Postponed { until, reason }
}

/// The place of a large document that is being stored; `None` if its subscribers need none.
type DocumentPlace = Option<AnonymousPlace>;

impl Db {
    /// Returns the place in which a large document is stored; `None` if there is none now.
    async fn document_place(&self, id: ResourceId) -> Result<Option<DocumentPlace>, StoreError> {
        let registrant =
            self.read(move |tx| Box::pin(append_budget::anonymous_registrant(tx, id))).await?;
        Ok(match registrant {
            Some(network) => self.anonymous_documents.admit(network).map(Some),
            None => Some(None),
        })
    }

    /// Stores that a resource is not fetched before `until`, whoever asks for it or pings, and returns why.
    async fn wait_for_place(
        &self,
        id: ResourceId,
        until: DateTime<Utc>,
    ) -> Result<StoreError, StoreError> {
        const WAIT: &str = "
            update resources set appends_paid_at = $2 where id = $1 and appends_paid_at < $2";
        let paid_at = until + append_budget::OVERDRAFT;
        let waits = self.write(move |tx| {
            Box::pin(async move { tx.execute(WAIT, params![id.0, paid_at]).await })
        });
        waits.await.map(|_| postponed(until, NO_PLACE))
    }

    /// Stores the next part of what a poll found.
    async fn record_part(
        &self,
        id: ResourceId,
        size: WriteSize,
        recording: Recording,
        is_silent: bool,
    ) -> Result<Recorded, StoreError> {
        let (groups, cut, budget) = (self.groups.clone(), self.cut, self.append_budget);
        let listed = self.listed;
        let forwarding = Arc::clone(&self.forwarding);
        let recorded = self.write_sized(size, move |tx| {
            Box::pin(async move {
                let at = recording.at();
                let settings = AppendSettings { groups: &groups, cut: &cut, budget, listed };
                let recorded = append::record(tx, settings, id, recording).await?;
                let is_changed =
                    matches!(&recorded, Recorded::All(appended, _) if appended.new > 0);
                if is_changed && !is_silent {
                    ping_forwarding::queue_changed_resource(tx, &forwarding, id, at).await?;
                }
                Ok(recorded)
            })
        });
        recorded.await
    }

    /// Forgets old entries of a resource. Those of which this fails are forgotten in a week.
    async fn forget_entries(&self, id: ResourceId, old: Option<OldEntries>) {
        let Some(old) = old else { return };
        loop {
            let forgotten = self
                .write_sized(WriteSize::Large, move |tx| Box::pin(entries::forget(tx, id, old)));
            match forgotten.await {
                Ok(true) => {}
                Ok(false) => return,
                Err(err) => {
                    let err = &err as &dyn Error;
                    return warn!(resource = id.0, error = err, "old entries were not forgotten");
                }
            }
        }
    }
}
