//! Polls of resources: claiming the resources that are due, and recording what their polls found.

use std::error::Error;
use std::sync::Arc;

use chrono::{DateTime, TimeDelta, Utc};
use tracing::warn;

use crate::cells::pacing::EndedPoll;
use crate::delivery::ping_forwarding;
use crate::engine::lease::ClaimLease;
use crate::engine::sql::params;
use crate::engine::sqlite::WriteSize;
use crate::log::anonymous_documents::AnonymousPlace;
use crate::log::append::{self, AppendSettings};
use crate::log::append_budget;
use crate::log::document_parts::AppendProgress;
use crate::log::entries::{self, OldEntries};
use crate::log::recording::{self, PushedPart, Recorded, Recording};
use crate::resources::claim::{self, ClaimedResources, RenewedClaims};
use crate::resources::details;
use crate::resources::poll_result::{self, PollResult, StoredResult};
use crate::resources::release;
use crate::{Db, Store};
use feedgate_core::change_detection::FeedDocument;
use feedgate_core::claim::ClaimToken;
use feedgate_core::poll::{Poll, Trigger};
use feedgate_core::record::Seq;
use feedgate_core::resource::ResourceId;
use feedgate_core::store::{Appended, ClaimLimits, DueResource, ReleasedResource, StoreError};

/// The most transactions of one claim that finds nothing, because the resources that it reads must
/// wait for their group or were claimed by another node.
const MOST_ATTEMPTS: usize = 16;
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

/// Polls, and what publishers send by themselves.
impl Store {
    /// Claims resources that are due at `now`, longest due first, until `until`. Groups of servers
    /// in a pause, or to which a request was sent a moment ago, are skipped, and their skipped
    /// resources become due when the group may be free. If `limits` allows one job per host, only one
    /// claim of a group exists at a time, on any node, until its poll is recorded (P41).
    ///
    /// No lock is held in between. If the process ends, its claim expires and the resource can be
    /// claimed again. The clock of the database decides when. A resource without subscriptions is
    /// never due.
    pub async fn claim_resources(
        &self,
        now: DateTime<Utc>,
        until: DateTime<Utc>,
        limits: &ClaimLimits,
    ) -> Result<Vec<DueResource>, StoreError> {
        if let Some(db) = self.only_cell() {
            return db.claim_resources(db.claims.lease(now, until), limits).await;
        }
        let limit = if limits.per_host == 0 { 0 } else { limits.limit };
        self.claim_in_turn(limit, |db, limit| async move {
            let limits = ClaimLimits { limit, ..limits.clone() };
            self.claim_from_cell(db, &limits, db.claims.lease(now, until)).await
        })
        .await
    }

    /// Claims this resource, whether it is due or not; `None` while it is claimed by somebody else.
    pub async fn claim_resource(
        &self,
        id: ResourceId,
        now: DateTime<Utc>,
        until: DateTime<Utc>,
    ) -> Result<Option<DueResource>, StoreError> {
        let db = self.of_number(id.0);
        let (groups, lease) = (db.groups.clone(), db.claims.lease(now, until));
        let claimed = db.write(move |tx| {
            Box::pin(async move { claim::claim_one(tx, &groups, id, lease).await })
        });
        let claimed = claimed.await?;
        if let (Some(due), None) = (&claimed, self.only_cell()) {
            let group = self.group(&due.resource.fetch_url);
            self.hold_host(&group, lease).await?;
        }
        Ok(claimed)
    }

    /// Extends those of `claims` that were not lost to `until`, with the claims of the groups of
    /// their servers, and returns their resources.
    pub async fn renew_resource_claims(
        &self,
        claims: &[(ResourceId, ClaimToken)],
        now: DateTime<Utc>,
        until: DateTime<Utc>,
    ) -> Result<Vec<ResourceId>, StoreError> {
        if let Some(db) = self.only_cell() {
            let lease = db.claims.lease(now, until);
            return Ok(db.renew_resource_claims(claims.to_vec(), lease).await?.resources);
        }
        let lease = self.shared.claims.lease(now, until);
        let (mut renewed, mut groups) = (Vec::new(), Vec::new());
        for (cell, claims) in self.by_cell(claims.to_vec(), |(id, _)| id.0) {
            let of_cell = cell.renew_resource_claims(claims, lease).await?;
            renewed.extend(of_cell.resources);
            groups.extend(of_cell.groups);
        }
        if !groups.is_empty() {
            self.renew_hosts(groups, lease).await?;
        }
        Ok(renewed)
    }

    /// Gives a claimed resource back, with the group of its servers. Nothing else of it changes,
    /// and a ping that made it due still waits for its poll. If the claim was lost, nothing changes.
    pub async fn release_resource(&self, released: &ReleasedResource) -> Result<(), StoreError> {
        if let Some(db) = self.only_cell() {
            return db.release_resource(released).await;
        }
        let (cell, at) = (self.of_number(released.id.0), released.at);
        let group = cell.group_of(released.id).await?;
        cell.release_resource(released).await?;
        if let Some(group) = group {
            let next_fetch = DateTime::<Utc>::MAX_UTC;
            self.release_host(EndedPoll { group, is_well: false, at, next_fetch }).await?;
        }
        Ok(())
    }

    /// Appends the new content to the log and stores everything else that a poll found, in one
    /// transaction, which also ends the claim. Of a document with many new entries, the first are
    /// appended in transactions of their own; if the caller stops waiting, the next poll finds the
    /// others. `None` if the claim was lost: then nothing more changes, because the poll that holds
    /// the resource now finds the same content.
    ///
    /// Entries are classified here ([`feedgate_core::change_detection::classify`]). The records are
    /// numbered from head + 1 in the given order, and every subscription that is sent some of them
    /// becomes due, unless the poll is `silent`. A revision of a resource that is not a feed is
    /// appended if the body has changed. Two nodes that found the same change append it once. A
    /// ping that arrived during the poll makes the resource due again as soon as its minimum
    /// interval allows, because the change may have happened after the response.
    pub async fn record(
        &self,
        id: ResourceId,
        poll: &Poll,
    ) -> Result<Option<Appended>, StoreError> {
        if let Some(db) = self.only_cell() {
            return db.record(id, poll).await;
        }
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

    /// Appends the new content sent by an upstream, as [`record`](Self::record) does. The claim,
    /// the schedule and the polling state stay unchanged.
    pub async fn push(
        &self,
        id: ResourceId,
        document: FeedDocument,
        now: DateTime<Utc>,
    ) -> Result<Appended, StoreError> {
        let db = self.of_number(id.0);
        let _place = match recording::is_divided(&document) {
            true => match db.document_place(id).await? {
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
        let _permit = db.append_permit().await?;
        let size = if recording::is_large(&document) { WriteSize::Large } else { WriteSize::Small };
        let (document, mut progress) =
            (Arc::new(document), AppendProgress::new(now, Trigger::Push));
        loop {
            let (groups, page_limits, budget) =
                (db.groups.clone(), db.page_limits, db.append_budget);
            let listed = db.listed;
            let forwarding = Arc::clone(&db.forwarding);
            let document = Arc::clone(&document);
            let pushed = db.write_sized(size, move |tx| {
                Box::pin(async move {
                    let settings = AppendSettings {
                        groups: &groups,
                        page_limits: &page_limits,
                        budget,
                        listed,
                    };
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

impl Db {
    pub(crate) async fn claim_resources(
        &self,
        lease: ClaimLease,
        limits: &ClaimLimits,
    ) -> Result<Vec<DueResource>, StoreError> {
        for _ in 0..MOST_ATTEMPTS {
            let (limits, groups) = (limits.clone(), self.groups.clone());
            let claimed = self.write(move |tx| {
                Box::pin(async move { claim::claim(tx, &groups, &limits, lease).await })
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

    async fn renew_resource_claims(
        &self,
        claims: Vec<(ResourceId, ClaimToken)>,
        lease: ClaimLease,
    ) -> Result<RenewedClaims, StoreError> {
        self.write(move |tx| Box::pin(claim::renew(tx, claims, lease))).await
    }

    async fn release_resource(&self, released: &ReleasedResource) -> Result<(), StoreError> {
        let released = released.clone();
        self.write(move |tx| Box::pin(release::release(tx, released))).await
    }

    async fn record(&self, id: ResourceId, poll: &Poll) -> Result<Option<Appended>, StoreError> {
        let mut clock = self.clock_moves.stamp();
        if poll_result::is_all(poll) {
            for with_details in [false, true] {
                let result = PollResult::from_poll(id, poll, with_details);
                match self.poll_results.record(self, result, clock).await? {
                    StoredResult::Stored(appended) => return Ok(Some(appended)),
                    StoredResult::ClaimLost => return Ok(None),
                    StoredResult::DetailsChanged => {}
                }
            }
            return Err(details::missing(id));
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
            recording.move_times(self.clock_moves.since(clock));
            clock = self.clock_moves.stamp();
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
        let (groups, page_limits, budget) =
            (self.groups.clone(), self.page_limits, self.append_budget);
        let listed = self.listed;
        let forwarding = Arc::clone(&self.forwarding);
        let recorded = self.write_sized(size, move |tx| {
            Box::pin(async move {
                let at = recording.at();
                let settings =
                    AppendSettings { groups: &groups, page_limits: &page_limits, budget, listed };
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
