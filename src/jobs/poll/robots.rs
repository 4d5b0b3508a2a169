//! Honours the rules for feedgate in a server's `robots.txt`, before anything else is requested
//! from the server (rule P40).

use std::collections::HashMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use chrono::{DateTime, Utc};
use url::Url;

use crate::net::{HostBusy, Patience, ResourceLocation, RobotsResponse};
use feedgate_core::ports::{DueResource, StoreError};
use feedgate_core::schedule::FailureClass;
use feedgate_protocol::robots::Robots;

use super::Poller;
use super::observation::{Failure, Found, Observation};
use super::put_off::{Busy, PollStop, PutOff};

/// How long a fetched `robots.txt` is valid: a day.
const VALID_FOR: Duration = Duration::from_secs(24 * 3_600);

impl Poller {
    /// Returns the observation of a resource that `robots.txt` disallows; `None` if it is allowed.
    pub(super) async fn check_robots(
        &self,
        due: &DueResource,
        now: DateTime<Utc>,
        patience: Patience,
    ) -> Result<Option<Observation>, PollStop> {
        let Ok(url) = Url::parse(&due.resource.fetch_url) else { return Ok(None) };
        let robots = match self.robots(&url, now, patience).await? {
            RobotsLookup::Known(robots) => robots,
            RobotsLookup::HostBusy { busy, .. } => {
                let busy = Busy::Host(busy);
                return Err(PollStop::PutOff(PutOff { busy, has_begun: false }));
            }
        };
        let is_allowed = robots.allows(&path_and_query(&url));
        Ok((!is_allowed).then(|| Observation::skipped(now, Failure::disallowed(&url))))
    }

    /// Returns whether `robots.txt` allows fetching `url`. If its server is too busy to fetch it,
    /// the stored one decides.
    pub async fn is_allowed(&self, url: &Url, now: DateTime<Utc>) -> Result<bool, StoreError> {
        let robots = match self.robots(url, now, Patience::Interactive).await? {
            RobotsLookup::Known(robots) => robots,
            RobotsLookup::HostBusy { before, .. } => before,
        };
        Ok(robots.allows(&path_and_query(url)))
    }

    /// Returns the `robots.txt` of the server of `url`, fetched if the stored one is older than a
    /// day.
    async fn robots(
        &self,
        url: &Url,
        now: DateTime<Utc>,
        patience: Patience,
    ) -> Result<RobotsLookup, StoreError> {
        let origin = url.origin().ascii_serialization();
        if self.robots_cache.contains(&origin, now) {
            return Ok(RobotsLookup::Known(Robots::default()));
        }
        let held = self.store.robots(&origin).await?;
        if let Some((robots, fetched_at)) = &held
            && now < *fetched_at + VALID_FOR
        {
            self.robots_cache.update(origin, robots, *fetched_at);
            return Ok(RobotsLookup::Known(robots.clone()));
        }
        let before = held.map(|(robots, _)| robots).unwrap_or_default();
        let robots = match self.client.robots(url, patience).await {
            RobotsResponse::Text(text) => Robots::parse(&text),
            RobotsResponse::None => Robots::default(),
            RobotsResponse::Unavailable => before,
            // The resource will not be reached either; both are requested again.
            RobotsResponse::Unreached => return Ok(RobotsLookup::Known(before)),
            RobotsResponse::HostBusy(busy) => return Ok(RobotsLookup::HostBusy { busy, before }),
        };
        self.store.save_robots(&origin, &robots, now).await?;
        self.robots_cache.update(origin, &robots, now);
        Ok(RobotsLookup::Known(robots))
    }
}

/// The rules of a server.
enum RobotsLookup {
    Known(Robots),
    /// The server was too busy to fetch them.
    HostBusy {
        busy: HostBusy,
        /// The rules that were stored before.
        before: Robots,
    },
}

fn path_and_query(url: &Url) -> String {
    match url.query() {
        Some(query) => format!("{}?{query}", url.path()),
        None => url.path().to_owned(),
    }
}

/// The servers without rules for feedgate, which are nearly all, and when their `robots.txt` was
/// fetched, so that most polls need not read it from the store. Clones share the cache.
#[derive(Clone, Debug, Default)]
pub(super) struct RobotsCache(Arc<Mutex<HashMap<String, DateTime<Utc>>>>);

/// The most servers in the cache: some megabytes.
const MAX_SERVERS: usize = 50_000;

impl RobotsCache {
    fn contains(&self, origin: &str, now: DateTime<Utc>) -> bool {
        self.lock().get(origin).is_some_and(|fetched_at| now < *fetched_at + VALID_FOR)
    }

    fn update(&self, origin: String, robots: &Robots, fetched_at: DateTime<Utc>) {
        let mut held = self.lock();
        if *robots != Robots::default() {
            held.remove(&origin);
            return;
        }
        if held.len() >= MAX_SERVERS {
            held.retain(|_, held| fetched_at < *held + VALID_FOR);
        }
        if held.len() >= MAX_SERVERS {
            held.clear();
        }
        held.insert(origin, fetched_at);
    }

    fn lock(&self) -> MutexGuard<'_, HashMap<String, DateTime<Utc>>> {
        // A panic can only have left out a server.
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Failure {
    fn disallowed(url: &Url) -> Failure {
        let host = url.host_str().unwrap_or_default();
        Failure {
            code: "robots_disallowed",
            message: format!("the robots.txt of {host} disallows fetching this address"),
            class: FailureClass::Denied,
            http_code: 0,
            retry_after_s: None,
        }
    }
}

impl Observation {
    /// Returns the observation of a resource that was not fetched.
    pub(super) fn skipped(at: DateTime<Utc>, failure: Failure) -> Observation {
        let (took, location) = (Duration::ZERO, ResourceLocation::Unknown);
        let found = Found::Failure(failure);
        let requests = Vec::new();
        Observation { at, took, wire_bytes: 0, requests, doubted: false, location, found }
    }
}
