//! What a server asks of us by name in its `robots.txt`, before it is asked for anything
//! else (rule P40).

use std::collections::HashMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use chrono::{DateTime, Utc};
use url::Url;

use crate::net::{Place, RobotsAnswer};
use feedgate_core::ports::{DueResource, StoreError};
use feedgate_core::schedule::FailureClass;
use feedgate_protocol::robots::Robots;

use super::Ingest;
use super::observe::{Found, Seen, Trouble};

/// What was read is believed for a day.
const GOOD_FOR: Duration = Duration::from_secs(24 * 3_600);

impl Ingest {
    /// What is found of a resource that its server does not want us to fetch; `None` if it
    /// does not mind.
    pub(super) async fn forbidden(
        &self,
        due: &DueResource,
        now: DateTime<Utc>,
    ) -> Result<Option<Seen>, StoreError> {
        let Ok(url) = Url::parse(&due.resource.fetch_url) else { return Ok(None) };
        let is_allowed = self.is_allowed(&url, now).await?;
        Ok((!is_allowed).then(|| Seen::nothing(now, Trouble::disallowed(&url))))
    }

    /// Whether its server does not mind that we fetch `url`.
    pub async fn is_allowed(&self, url: &Url, now: DateTime<Utc>) -> Result<bool, StoreError> {
        let robots = self.robots(url, now).await?;
        let path = match url.query() {
            Some(query) => format!("{}?{query}", url.path()),
            None => url.path().to_owned(),
        };
        Ok(robots.allows(&path))
    }

    /// What the server of `url` said within the last day; it is asked if it was not.
    async fn robots(&self, url: &Url, now: DateTime<Utc>) -> Result<Robots, StoreError> {
        let origin = url.origin().ascii_serialization();
        if self.unruled.holds(&origin, now) {
            return Ok(Robots::default());
        }
        let held = self.store.robots(&origin).await?;
        if let Some((robots, asked_at)) = &held
            && now < *asked_at + GOOD_FOR
        {
            self.unruled.learn(origin, robots, *asked_at);
            return Ok(robots.clone());
        }
        let before = held.map(|(robots, _)| robots).unwrap_or_default();
        let robots = match self.fetch.robots(url).await {
            RobotsAnswer::Text(text) => Robots::parse(&text),
            RobotsAnswer::None => Robots::default(),
            RobotsAnswer::Trouble => before,
            // Nor will the resource be: it is asked for both again.
            RobotsAnswer::Unreached => return Ok(before),
        };
        self.store.save_robots(&origin, &robots, now).await?;
        self.unruled.learn(origin, &robots, now);
        Ok(robots)
    }
}

/// The servers that had nothing to say to us, which are nearly all, and when they were
/// asked. So most polls need not look into the store. Clones are the same.
#[derive(Clone, Debug, Default)]
pub(super) struct Unruled(Arc<Mutex<HashMap<String, DateTime<Utc>>>>);

/// The most servers that are remembered: some megabytes.
const MOST: usize = 50_000;

impl Unruled {
    fn holds(&self, origin: &str, now: DateTime<Utc>) -> bool {
        self.lock().get(origin).is_some_and(|asked_at| now < *asked_at + GOOD_FOR)
    }

    fn learn(&self, origin: String, robots: &Robots, asked_at: DateTime<Utc>) {
        let mut held = self.lock();
        if *robots != Robots::default() {
            held.remove(&origin);
            return;
        }
        if held.len() >= MOST {
            held.retain(|_, held| asked_at < *held + GOOD_FOR);
        }
        if held.len() >= MOST {
            held.clear();
        }
        held.insert(origin, asked_at);
    }

    fn lock(&self) -> MutexGuard<'_, HashMap<String, DateTime<Utc>>> {
        // What a panic interrupted can only be a server that is missing.
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Trouble {
    fn disallowed(url: &Url) -> Trouble {
        let host = url.host_str().unwrap_or_default();
        Trouble {
            code: "robots_disallowed",
            message: format!("the robots.txt of {host} asks feedgate not to fetch this"),
            class: FailureClass::Denied,
            http_code: 0,
            retry_after_s: None,
        }
    }
}

impl Seen {
    /// A look that was not made.
    pub(super) fn nothing(at: DateTime<Utc>, why: Trouble) -> Seen {
        let (took, place, found) = (Duration::ZERO, Place::Unknown, Found::Trouble(why));
        Seen { at, took, wire_bytes: 0, doubted: false, place, found }
    }
}
