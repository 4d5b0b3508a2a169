//! Polls a resource at once, for a request that waits for the result.

use std::time::Duration;

use chrono::{DateTime, Utc};
use tokio::sync::oneshot;
use tokio::task::JoinHandle;
use tokio::time::{Instant, sleep};
use tracing::{debug, warn};

use crate::document_budget::GatewayBusy;
use crate::jobs::runner;
use crate::net::Patience;
use feedgate_core::resource::Resource;
use feedgate_core::store::{DueResource, ReleasedResource, StoreError};

use super::worker::PollPlace;
use super::{PollEnd, Poller};

/// How often to check whether another worker's poll of the resource has ended.
const CHECK_INTERVAL: Duration = Duration::from_millis(50);
/// The number of checks before the resource is claimed again.
const CHECKS: usize = 4;

/// `None` if another worker polls the resource.
type PollTaskResult = Result<Option<PollEnd>, StoreError>;

/// A resource after a poll for a request.
#[derive(Clone, Debug)]
pub struct PolledNow {
    /// The resource.
    pub resource: Resource,
    /// Set if it was not polled because this gateway is busy.
    pub busy: Option<GatewayBusy>,
}

impl PolledNow {
    /// Returns a resource that this gateway is not too busy to poll.
    pub fn idle(resource: Resource) -> PolledNow {
        PolledNow { resource, busy: None }
    }
}

/// A poll that was started for a request. It runs to its end even if nobody waits for it.
#[derive(Debug)]
pub struct StartedPoll {
    poller: Poller,
    /// The resource before the poll.
    before: Resource,
    patience: Patience,
    /// The task that polls, and returns `None` if another worker polls the resource. There is no
    /// task if no poll is necessary or possible.
    task: Option<JoinHandle<PollTaskResult>>,
}

impl StartedPoll {
    /// Waits until the poll has been recorded, and returns the resource as it is afterwards.
    pub async fn result(self) -> Result<PolledNow, StoreError> {
        let StartedPoll { poller, before, patience, mut task } = self;
        let (mut busy, until) = (None, Instant::now() + poller.settings.claim);
        while let Some(polling) = task.take() {
            let polled = polling.await.unwrap_or_else(|err| {
                warn!(resource = before.id.0, error = %err, "a poll panicked");
                Ok(Some(PollEnd::Recorded))
            })?;
            match polled {
                Some(PollEnd::PutOff(reason)) => busy = reason,
                Some(PollEnd::Recorded) => {}
                None if poller.was_polled(&before).await? || Instant::now() >= until => {}
                // The other worker may have given the resource back without a result.
                None => task = Some(poller.spawn_poll(before.clone(), patience).0),
            }
        }
        Ok(PolledNow { resource: poller.current(&before).await?, busy })
    }
}

impl Poller {
    /// Polls a resource now, due or not, unless it must wait because much was stored for its
    /// subscribers, and returns it as it is afterwards. The result of another worker's poll is used instead if one is running, or was recorded since the caller
    /// read `resource`.
    ///
    /// Once started, the poll runs to its end even if the caller stops waiting.
    pub async fn poll_now(&self, resource: &Resource) -> Result<PolledNow, StoreError> {
        self.start_poll(resource, Patience::Interactive).await?.result().await
    }

    /// Starts a poll as [`poll_now`](Self::poll_now) does, and returns once the resource is claimed
    /// for it.
    pub async fn start_poll(
        &self,
        resource: &Resource,
        patience: Patience,
    ) -> Result<StartedPoll, StoreError> {
        let before = self.current(resource).await?;
        let mut started = StartedPoll { poller: self.clone(), before, patience, task: None };
        // A resource that has used up its budget of appends waits, whoever asks for a poll.
        let is_paid = self.store.earliest_fetch(started.before.id).await? <= runner::now();
        if is_paid && started.before.status.last_fetch == resource.status.last_fetch {
            let (task, is_claimed) = self.spawn_poll(started.before.clone(), patience);
            started.task = Some(task);
            // An error of the claim is the result of the task.
            let _ = is_claimed.await;
        }
        Ok(started)
    }

    /// Spawns the task that claims and polls a resource; it returns `None` if another worker polls the
    /// resource. The receiver is notified once the claim was made or refused.
    ///
    /// The claim is made by the task that polls: if the caller stopped waiting while the claim is made,
    /// no other task would know of it, and the resource could not be polled until the claim ends.
    fn spawn_poll(
        &self,
        before: Resource,
        patience: Patience,
    ) -> (JoinHandle<PollTaskResult>, oneshot::Receiver<()>) {
        let (this, now) = (self.clone(), runner::now());
        let (claimed, is_claimed) = oneshot::channel();
        let task = tokio::spawn(async move {
            if before.polling.left_alone_after(now).is_some() {
                return Ok(Some(PollEnd::PutOff(None)));
            }
            let until = this.claims.end_of_claim(now);
            let due = this.store.claim_resource(before.id, now, until).await?;
            // Nobody may be waiting for it.
            let _ = claimed.send(());
            let Some(due) = due else { return Ok(None) };
            let _held = this.claims.hold_claim(due.resource.id, due.claim, until);
            if due.resource.status.last_fetch != before.status.last_fetch {
                this.give_back(&due, now).await?;
                return Ok(Some(PollEnd::Recorded)); // by another worker
            }
            this.poll_unless_paused(due, now, patience).await.map(Some)
        });
        (task, is_claimed)
    }

    /// Polls a claimed resource, or releases it if requests to its host are paused. The claim comes
    /// first: another worker's poll may have found just now that the host wants a pause, and its
    /// result may not be recorded yet.
    async fn poll_unless_paused(
        &self,
        due: DueResource,
        now: DateTime<Utc>,
        patience: Patience,
    ) -> Result<PollEnd, StoreError> {
        let paused_until = match self.host_backoff_until(&due.resource, now).await {
            Ok(None) => {
                let permit = self.permits.acquire(self.store.group(&due.resource.fetch_url));
                let place = PollPlace { permit: Some(permit), slot: None };
                return self.poll_in(place, &due, now, patience).await;
            }
            paused_until => paused_until,
        };
        self.give_back(&due, now).await?;
        let (id, until) = (due.resource.id.0, paused_until?);
        debug!(resource = id, ?until, "resource not polled: requests to its host are paused");
        Ok(PollEnd::PutOff(None))
    }

    /// Releases a claimed resource as it was.
    async fn give_back(&self, due: &DueResource, now: DateTime<Utc>) -> Result<(), StoreError> {
        self.store.release_resource(&ReleasedResource::unchanged(due, now)).await
    }

    /// Returns the time until which a resource must not be fetched, if there is one: its server requested that
    /// for the resource, or for all of its resources.
    pub async fn host_backoff_until(
        &self,
        resource: &Resource,
        now: DateTime<Utc>,
    ) -> Result<Option<DateTime<Utc>>, StoreError> {
        let host = self.store.host(&self.store.group(&resource.fetch_url)).await?;
        let of_host = host.cool_until.filter(|until| *until > now);
        Ok(of_host.max(resource.polling.left_alone_after(now)))
    }

    /// Returns the resource as it is in the store now.
    async fn current(&self, resource: &Resource) -> Result<Resource, StoreError> {
        let current = self.store.get(resource.id).await?;
        current.ok_or_else(|| StoreError::Corrupt(format!("resource {} vanished", resource.id)))
    }

    /// Waits a moment for another worker's poll. Returns whether it has been recorded.
    async fn was_polled(&self, resource: &Resource) -> Result<bool, StoreError> {
        for _ in 0..CHECKS {
            if self.current(resource).await?.status.last_fetch != resource.status.last_fetch {
                return Ok(true);
            }
            sleep(CHECK_INTERVAL).await;
        }
        Ok(false)
    }
}
