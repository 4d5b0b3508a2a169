//! Honours a server's `robots.txt`, before anything else is requested from the server (rule P40).
//!
//! Rules that name feedgate hold for everything, those for all robots for pages and other documents that
//! are not feeds. What a resource is shows at its first fetch, which somebody asked for who subscribed.
//! If it is a page that may not be fetched, nothing of it is stored or sent, and it is not fetched
//! again. A list of entries in microformats is a feed; a page that describes itself stays a page.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use chrono::{DateTime, Utc};
use url::Url;

use crate::net::{HostBusy, HttpClient, Patience, ResourceLocation, RobotsResponse};
use feedgate_core::resource::{Resource, ResourceKind};
use feedgate_core::schedule::FailureClass;
use feedgate_core::store::StoreError;
use feedgate_core::visibility::SourceNetwork;
use feedgate_feed::documents::Fragment;
use feedgate_feed::model::FeedFormat;
use feedgate_protocol::robots::Robots;

use super::Poller;
use super::observation::{Failure, Found, Observation, ROBOTS_DISALLOWED};
use super::put_off::{Busy, PollStop, PutOff};

/// How long a fetched `robots.txt` is valid: a day.
const VALID_FOR: Duration = Duration::from_secs(24 * 3_600);

impl Poller {
    /// Returns what `robots.txt` allows of a resource at one of the addresses that lead to it.
    pub(super) async fn check_robots(
        &self,
        client: &HttpClient,
        (resource, url): (&Resource, &str),
        at: (DateTime<Utc>, Patience),
    ) -> Result<RobotsVerdict, PollStop> {
        let Ok(url) = Url::parse(url) else { return Ok(RobotsVerdict::Allowed) };
        let needed =
            if is_known_as_feed(resource) { RobotsRules::ForFeeds } else { RobotsRules::ForPages };
        let robots = match self.robots(client, (&url, needed), at).await? {
            RobotsLookup::Known(robots) => robots,
            RobotsLookup::HostBusy { busy, .. } => {
                let busy = Busy::Host(busy);
                return Err(PollStop::PutOff(PutOff { busy, has_begun: false }));
            }
        };
        let path = path_and_query(&url);
        if !robots.allows_feed(&path) {
            let failure = Failure::disallowed(&url, "this address");
            return Ok(RobotsVerdict::Disallowed(failure));
        }
        if needed == RobotsRules::ForFeeds || robots.allows_page(&path) {
            return Ok(RobotsVerdict::Allowed);
        }
        let failure = Failure::disallowed(&url, "pages at this address, and this is not a feed");
        Ok(match is_known_as_page(resource) {
            true => RobotsVerdict::Disallowed(failure),
            false => RobotsVerdict::OnlyFeed(failure),
        })
    }

    /// Replaces what was found by a failure if redirects have led to an address, which is the `last` one, whose
    /// `robots.txt` disallows it. If its server is too busy to be asked, the next poll asks.
    pub(super) async fn check_redirected_robots(
        &self,
        client: &HttpClient,
        (resource, observation): (&Resource, &mut Observation),
        last: Option<String>,
        at: (DateTime<Utc>, Patience),
    ) -> Result<(), PollStop> {
        let is_good = !matches!(observation.found, Found::Failure(_));
        let url = last.filter(|url| is_good && *url != resource.fetch_url);
        let Some(url) = url else { return Ok(()) };
        match self.check_robots(client, (resource, &url), at).await {
            Ok(RobotsVerdict::Disallowed(failure)) => observation.found = Found::Failure(failure),
            Ok(verdict) => verdict.reject_page(observation),
            Err(PollStop::PutOff(_)) => {}
            Err(stop) => return Err(stop),
        }
        Ok(())
    }

    /// Returns whether `robots.txt` allows fetching the feed at `url`. If its server is too busy to fetch it,
    /// the stored one decides.
    pub async fn is_allowed(
        &self,
        client: &HttpClient,
        url: &Url,
        now: DateTime<Utc>,
    ) -> Result<bool, StoreError> {
        let (needed, at) = (RobotsRules::ForFeeds, (now, Patience::Interactive));
        let robots = match self.robots(client, (url, needed), at).await? {
            RobotsLookup::Known(robots) => robots,
            RobotsLookup::HostBusy { before, .. } => before,
        };
        Ok(robots.allows_feed(&path_and_query(url)))
    }

    /// Returns the `robots.txt` of the server of `url`, fetched if the stored one is older than a
    /// day.
    async fn robots(
        &self,
        client: &HttpClient,
        (url, needed): (&Url, RobotsRules),
        (now, patience): (DateTime<Utc>, Patience),
    ) -> Result<RobotsLookup, StoreError> {
        let origin = url.origin().ascii_serialization();
        if self.robots_cache.has_none(&origin, needed, now) {
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
        let robots = match client.robots(url, patience).await {
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

/// What `robots.txt` allows of a resource.
pub(super) enum RobotsVerdict {
    /// It may be fetched.
    Allowed,
    /// It may not be fetched.
    Disallowed(Failure),
    /// It may be fetched if it is a feed, which is not known yet. If it is not, this is its failure.
    OnlyFeed(Failure),
}

impl RobotsVerdict {
    /// Replaces what was found by a failure if it is not what may be fetched.
    pub(super) fn reject_page(self, observation: &mut Observation) {
        let is_page = match &observation.found {
            Found::Other(_) | Found::FragmentMissing(_) => true,
            Found::Feed { feed, .. } => describes_page(feed.format),
            Found::NotModified { .. } | Found::Same(_) | Found::Failure(_) => false,
        };
        if let (true, RobotsVerdict::OnlyFeed(failure)) = (is_page, self) {
            let kind = Some(ResourceKind::Other);
            observation.found = Found::Failure(Failure { kind, ..failure });
        }
    }
}

/// The rules that a resource needs.
#[derive(Clone, Copy, PartialEq, Eq)]
enum RobotsRules {
    ForFeeds,
    ForPages,
}

/// Returns whether a format is that of pages which describe what is on them.
fn describes_page(format: FeedFormat) -> bool {
    format.is_page() && format != FeedFormat::HFeed
}

/// Returns whether a resource was read as a feed that is not the description of a page.
fn is_known_as_feed(resource: &Resource) -> bool {
    let format = resource.polling.format.parse::<FeedFormat>();
    resource.kind == ResourceKind::Feed && !format.is_ok_and(describes_page)
}

/// Returns whether a resource is a page or another document that is not a feed, or the part of one that
/// no feed has.
fn is_known_as_page(resource: &Resource) -> bool {
    let fragment = resource.topic.fragment().map(Fragment::parse);
    let is_page = resource.kind == ResourceKind::Feed && !is_known_as_feed(resource);
    resource.kind == ResourceKind::Other
        || is_page
        || matches!(fragment, Some(Ok(fragment)) if !fragment.is_anchor())
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

/// The servers without rules for feeds, which are nearly all, and when their `robots.txt` was fetched,
/// so that most polls need not read it from the store. Clones share the cache.
#[derive(Clone, Debug, Default)]
pub(super) struct RobotsCache(Arc<Mutex<HashMap<String, CachedRobots>>>);

#[derive(Clone, Copy, Debug)]
struct CachedRobots {
    fetched_at: DateTime<Utc>,
    /// Whether there are rules for pages.
    is_for_pages: bool,
}

/// The most servers in the cache: some megabytes.
const MAX_SERVERS: usize = 50_000;

impl RobotsCache {
    /// Returns whether a server has none of the rules that are needed.
    fn has_none(&self, origin: &str, needed: RobotsRules, now: DateTime<Utc>) -> bool {
        self.lock().get(origin).is_some_and(|held| {
            let applies = held.is_for_pages && needed == RobotsRules::ForPages;
            !applies && now < held.fetched_at + VALID_FOR
        })
    }

    fn update(&self, origin: String, robots: &Robots, fetched_at: DateTime<Utc>) {
        let mut held = self.lock();
        if !robots.allows_all_feeds() {
            held.remove(&origin);
            return;
        }
        if held.len() >= MAX_SERVERS {
            held.retain(|_, held| fetched_at < held.fetched_at + VALID_FOR);
        }
        if held.len() >= MAX_SERVERS {
            held.clear();
        }
        let is_for_pages = *robots != Robots::default();
        held.insert(origin, CachedRobots { fetched_at, is_for_pages });
    }

    fn lock(&self) -> MutexGuard<'_, HashMap<String, CachedRobots>> {
        // A panic can only have left out a server.
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Failure {
    pub(super) fn disallowed(url: &Url, what: &str) -> Failure {
        let host = url.host_str().unwrap_or_default();
        Failure {
            code: ROBOTS_DISALLOWED,
            message: format!("the robots.txt of {host} disallows fetching {what}"),
            class: FailureClass::Denied,
            http_code: 0,
            retry_after_s: None,
            kind: None,
        }
    }
}

impl Observation {
    /// Returns the observation of a resource that was not fetched.
    pub(super) fn skipped(at: DateTime<Utc>, failure: Failure) -> Observation {
        let (took, location) = (Duration::ZERO, ResourceLocation::Unknown);
        let found = Found::Failure(failure);
        let (requests, visits) = (Vec::new(), Vec::new());
        let (wire_bytes, doubted, source_network) = (0, false, SourceNetwork::Unknown);
        Observation {
            at,
            took,
            wire_bytes,
            requests,
            visits,
            doubted,
            location,
            source_network,
            found,
        }
    }
}
