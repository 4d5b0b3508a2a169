//! The last fetches of each feed by this node, for the page of the feed in the console.
//!
//! The traces are in memory only. A table would be written with every poll, most of which find
//! nothing, and be read when somebody opens a page; the event log keeps the polls that changed
//! something, and outlives a restart. So a poll costs a few short strings and a lock here, and a
//! page says that it shows this node since its start. Traces are bounded in number for each feed and
//! in bytes for all feeds: the oldest are dropped first.
//!
//! A trace never contains credentials: the headers in it are those of two fixed lists, and addresses
//! are redacted like those in the event log.

use std::collections::{BTreeMap, HashMap, VecDeque};
use std::net::IpAddr;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use chrono::{DateTime, Utc};
use http::HeaderMap;
use http::header::{self, HeaderName};
use url::{Host, Url};

use crate::net::{Hop, is_public};
use feedgate_core::poll::Trigger;
use feedgate_core::polling_hints::PollingHints;
use feedgate_core::redaction;
use feedgate_core::resource::ResourceId;
use feedgate_core::schedule::PeriodStep;

/// The most fetches that are kept of a feed.
const PER_FEED: usize = 10;
/// The most memory that all traces take: about 16,000 fetches of one request each.
const MAX_BYTES: usize = 16 << 20;
/// The memory that a trace or a request takes besides its texts, as an estimate.
const FIXED_BYTES: usize = 300;
/// The most requests that are kept of a fetch: the redirects of two documents.
const MAX_REQUESTS: usize = 12;
/// The maximum length of a header's value, in characters.
const VALUE_CHARS: usize = 200;

/// The headers of requests that are kept.
const SENT: [HeaderName; 3] =
    [header::IF_NONE_MATCH, header::IF_MODIFIED_SINCE, header::USER_AGENT];
/// The headers of responses that are kept: those that decide about freshness and about the next
/// request.
const RECEIVED: [HeaderName; 11] = [
    header::DATE,
    header::ETAG,
    header::LAST_MODIFIED,
    header::CACHE_CONTROL,
    header::EXPIRES,
    header::AGE,
    header::RETRY_AFTER,
    header::LOCATION,
    header::CONTENT_TYPE,
    header::CONTENT_ENCODING,
    header::CONTENT_LENGTH,
];

/// One fetch of a feed, and what was decided after it.
#[derive(Clone, Debug)]
pub struct FetchTrace {
    /// When the fetch started.
    pub at: DateTime<Utc>,
    /// Why the feed was fetched.
    pub trigger: Trigger,
    /// The requests, with their responses; none if the document came from the fetch of another feed.
    pub requests: Vec<TracedRequest>,
    /// How long the fetch took.
    pub took: Duration,
    /// The number of bytes received, before content decoding.
    pub wire_bytes: u64,
    /// How the poll ended, as a stable word (`docs/errors.md`).
    pub outcome: &'static str,
    /// The number of new records.
    pub new: usize,
    /// The reason of a failure, as a sentence; otherwise empty.
    pub message: String,
    /// The wishes of the publisher that were known after the fetch.
    pub hints: PollingHints,
    /// What each rule made of the period, in order.
    pub steps: Vec<PeriodStep>,
    /// When the feed is fetched next.
    pub next_fetch: DateTime<Utc>,
    /// The period that was chosen, in seconds.
    pub period_s: u32,
    /// Why the period is that long.
    pub period_reason: String,
}

/// One request of a fetch.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TracedRequest {
    /// The requested address, redacted.
    pub url: String,
    /// The names and values of headers that were sent.
    pub sent: Vec<(HeaderName, String)>,
    /// The version of HTTP and the status, if there was a response.
    pub status: Option<String>,
    /// The names and values of headers that were received.
    pub received: Vec<(HeaderName, String)>,
    /// The time until the headers were received.
    pub took: Duration,
    /// Whether the server has a public address: accounts see nothing of responses of others.
    pub is_public: bool,
}

impl TracedRequest {
    /// Returns what is kept of the first requests of a fetch.
    pub fn from_hops(hops: &[Hop]) -> Vec<TracedRequest> {
        hops.iter().take(MAX_REQUESTS).map(TracedRequest::from_hop).collect()
    }

    fn from_hop(hop: &Hop) -> TracedRequest {
        TracedRequest {
            url: redaction::feed(hop.url.as_str()),
            sent: kept_headers(&hop.request, &SENT, &hop.url),
            status: hop
                .version
                .zip(hop.status)
                .map(|(version, code)| format!("{version:?} {code}")),
            received: kept_headers(&hop.response, &RECEIVED, &hop.url),
            took: hop.took,
            is_public: is_at_public_address(hop),
        }
    }

    fn bytes(&self) -> usize {
        let headers = self.sent.iter().chain(&self.received);
        let headers: usize = headers.map(|(_, value)| value.len() + size_of::<HeaderName>()).sum();
        FIXED_BYTES + self.url.len() + headers
    }
}

fn kept_headers(
    headers: &HeaderMap,
    names: &[HeaderName],
    base: &Url,
) -> Vec<(HeaderName, String)> {
    let kept = names.iter().filter_map(|name| {
        let value = headers.get(name).filter(|value| !value.is_sensitive())?;
        let text = String::from_utf8_lossy(value.as_bytes());
        let text = match *name == header::LOCATION {
            true => redaction::feed(base.join(&text).ok()?.as_str()),
            false => redaction::line(&text, VALUE_CHARS),
        };
        Some((name.clone(), text))
    });
    kept.collect()
}

/// Returns whether all addresses of the server are public.
fn is_at_public_address(hop: &Hop) -> bool {
    let literal = match hop.url.host() {
        Some(Host::Ipv4(ip)) => Some(IpAddr::V4(ip)),
        Some(Host::Ipv6(ip)) => Some(IpAddr::V6(ip)),
        _ => None,
    };
    hop.addresses.iter().copied().chain(literal).all(is_public)
}

impl FetchTrace {
    fn bytes(&self) -> usize {
        let requests: usize = self.requests.iter().map(TracedRequest::bytes).sum();
        let steps = self.steps.len() * size_of::<PeriodStep>();
        FIXED_BYTES + requests + steps + self.message.len() + self.period_reason.len()
    }
}

/// The traces of this node. Clones share them.
#[derive(Clone, Debug, Default)]
pub struct FetchTraces(Arc<Mutex<KeptTraces>>);

/// The kept traces, by the order in which they were recorded, and the place of those of each feed.
#[derive(Debug, Default)]
struct KeptTraces {
    traces: BTreeMap<u64, (ResourceId, Arc<FetchTrace>)>,
    of_feed: HashMap<ResourceId, VecDeque<u64>>,
    next: u64,
    bytes: usize,
}

impl FetchTraces {
    /// Records a fetch of a feed.
    pub fn record(&self, feed: ResourceId, trace: FetchTrace) {
        self.lock().record(feed, trace, MAX_BYTES);
    }

    /// Returns the last fetches of a feed, newest first.
    pub fn of_feed(&self, feed: ResourceId) -> Vec<Arc<FetchTrace>> {
        let kept = self.lock();
        let places = kept.of_feed.get(&feed).into_iter().flatten().rev();
        places
            .filter_map(|place| kept.traces.get(place))
            .map(|(_, trace)| Arc::clone(trace))
            .collect()
    }

    fn lock(&self) -> MutexGuard<'_, KeptTraces> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl KeptTraces {
    fn record(&mut self, feed: ResourceId, trace: FetchTrace, max_bytes: usize) {
        let place = self.next;
        self.next += 1;
        self.bytes += trace.bytes();
        self.traces.insert(place, (feed, Arc::new(trace)));
        let places = self.of_feed.entry(feed).or_default();
        places.push_back(place);
        let surplus = if places.len() > PER_FEED { places.pop_front() } else { None };
        if let Some((_, trace)) = surplus.and_then(|place| self.traces.remove(&place)) {
            self.bytes -= trace.bytes();
        }
        while self.bytes > max_bytes {
            let Some((_, (feed, trace))) = self.traces.pop_first() else { break };
            self.bytes -= trace.bytes();
            // The oldest trace of all is the oldest of its feed.
            if let Some(places) = self.of_feed.get_mut(&feed) {
                places.pop_front();
                if places.is_empty() {
                    self.of_feed.remove(&feed);
                }
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn trace(new: usize) -> FetchTrace {
        FetchTrace {
            at: DateTime::UNIX_EPOCH,
            trigger: Trigger::Schedule,
            requests: Vec::new(),
            took: Duration::ZERO,
            wire_bytes: 0,
            outcome: "ok_new",
            new,
            message: String::new(),
            hints: PollingHints::default(),
            steps: Vec::new(),
            next_fetch: DateTime::UNIX_EPOCH,
            period_s: 60,
            period_reason: String::new(),
        }
    }

    #[test]
    fn the_last_ten_fetches_of_each_feed_are_kept() {
        let traces = FetchTraces::default();
        for new in 0..15 {
            traces.record(ResourceId(1), trace(new));
            traces.record(ResourceId(2), trace(100 + new));
        }
        let found: Vec<_> = traces.of_feed(ResourceId(1)).iter().map(|trace| trace.new).collect();
        assert_eq!(found, [14, 13, 12, 11, 10, 9, 8, 7, 6, 5]);
        assert_eq!(traces.lock().traces.len(), 20);
        assert!(traces.of_feed(ResourceId(3)).is_empty());
    }

    #[test]
    fn the_oldest_fetches_of_all_feeds_are_dropped_when_they_take_too_much_memory() {
        let mut kept = KeptTraces::default();
        for feed in 0..100 {
            kept.record(ResourceId(feed), trace(1), 5 * FIXED_BYTES);
        }
        assert_eq!((kept.traces.len(), kept.of_feed.len(), kept.bytes), (5, 5, 5 * FIXED_BYTES));
        assert!(kept.of_feed.contains_key(&ResourceId(99)));
    }

    #[test]
    fn credentials_are_not_kept() {
        let mut request = HeaderMap::new();
        request.insert(header::AUTHORIZATION, "Basic c2VjcmV0".parse().unwrap());
        request.insert(header::IF_NONE_MATCH, "\"1\"".parse().unwrap());
        let mut response = HeaderMap::new();
        response.insert(header::SET_COOKIE, "id=s3cret".parse().unwrap());
        response.insert(header::LOCATION, "/feed?token=s3cret".parse().unwrap());
        let hop = Hop {
            url: "https://ada:s3cret@a.test/feed?token=s3cret".parse().unwrap(),
            addresses: vec!["10.0.0.1".parse().unwrap()],
            request,
            version: None,
            status: None,
            response,
            took: Duration::ZERO,
            failure: None,
        };
        let kept = TracedRequest::from_hops(&[hop]);
        let text = format!("{kept:?}");
        assert!(!text.contains("s3cret") && !text.contains("c2VjcmV0"), "{text}");
        assert_eq!(kept[0].sent, [(header::IF_NONE_MATCH, "\"1\"".to_owned())]);
        assert!(!kept[0].is_public);
    }
}
