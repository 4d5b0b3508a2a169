//! The publishers and all subscribers.

use std::collections::VecDeque;
use std::fmt::Write;
use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Instant;

use super::AnyError;
use super::responder::{self, Respond};

/// The subscribers of each feed, each on a platform of its own.
pub(crate) const SUBSCRIBERS_PER_FEED: usize = 10;
/// The newest entries that a feed has. What is not fetched within so many seconds is lost.
const ENTRIES_IN_FEED: usize = 30;
/// What the title of each entry begins with; its number and its time follow.
const MARKER: &str = "soak-";
const NUMBER_DIGITS: usize = 8;
const TIME_DIGITS: usize = 10;
/// Delays from so many milliseconds on are counted as one.
const LONGEST_MS: usize = 120_000;

/// All feeds and subscribers of a run.
pub(crate) struct Traffic {
    port: u16,
    state: Arc<State>,
    /// The feed that changes next.
    next: AtomicUsize,
}

struct State {
    begun: Instant,
    feeds: Vec<Mutex<Feed>>,
    subscribers: Vec<Subscriber>,
    published: AtomicU64,
    received: AtomicU64,
    again: AtomicU64,
    gaps: AtomicU64,
    delays: Mutex<Delays>,
}

/// The numbers and times of the newest entries.
#[derive(Default)]
struct Feed {
    newest: u64,
    entries: VecDeque<(u64, u64)>,
}

/// The number of the last entry that a subscriber has received.
struct Subscriber {
    last: AtomicU64,
}

/// How many notifications took how many milliseconds from the publication of an entry.
pub(crate) struct Delays {
    counts: Vec<u64>,
}

impl Traffic {
    /// Starts so many feeds with one entry each.
    pub(crate) fn start(feeds: usize) -> Result<Arc<Traffic>, AnyError> {
        let subscriber = |_| Subscriber { last: AtomicU64::new(1) };
        let state = Arc::new(State {
            begun: Instant::now(),
            feeds: (0..feeds).map(|_| Mutex::default()).collect(),
            subscribers: (0..feeds * SUBSCRIBERS_PER_FEED).map(subscriber).collect(),
            published: AtomicU64::new(0),
            received: AtomicU64::new(0),
            again: AtomicU64::new(0),
            gaps: AtomicU64::new(0),
            delays: Mutex::new(Delays::none()),
        });
        (0..feeds).for_each(|feed| state.publish(feed));
        let port = responder::start(Arc::clone(&state))?;
        Ok(Arc::new(Traffic { port, state, next: AtomicUsize::new(0) }))
    }

    /// Topic, callback and format of each subscription.
    pub(crate) fn subscriptions(
        &self,
    ) -> impl Iterator<Item = (String, String, &'static str)> + '_ {
        (0..self.state.subscribers.len()).map(|number| {
            let platform = number % SUBSCRIBERS_PER_FEED;
            let format = if platform.is_multiple_of(2) { "atom" } else { "json" };
            let callback = format!("http://127.2.0.{}:{}/s/{number}", platform + 1, self.port);
            (self.topic(number / SUBSCRIBERS_PER_FEED), callback, format)
        })
    }

    fn topic(&self, feed: usize) -> String {
        format!("http://127.1.{}.{}:{}/f/{feed}", feed / 250, feed % 250 + 1, self.port)
    }

    /// Gives an entry to the next feeds, one `share`th of all, and returns their addresses.
    pub(crate) fn publish_share(&self, share: usize) -> Vec<String> {
        let feeds = self.state.feeds.len();
        let publish = |_| {
            let feed = self.next.fetch_add(1, Ordering::Relaxed) % feeds;
            self.state.publish(feed);
            self.topic(feed)
        };
        (0..feeds.div_ceil(share)).map(publish).collect()
    }

    /// The entries of all feeds.
    pub(crate) fn published(&self) -> u64 {
        self.state.published.load(Ordering::SeqCst)
    }

    /// The notifications that were received.
    pub(crate) fn received(&self) -> u64 {
        self.state.received.load(Ordering::SeqCst)
    }

    /// The entries that some subscriber received more than once.
    pub(crate) fn again(&self) -> u64 {
        self.state.again.load(Ordering::SeqCst)
    }

    /// The entries that a subscriber did not receive before a newer one.
    pub(crate) fn gaps(&self) -> u64 {
        self.state.gaps.load(Ordering::SeqCst)
    }

    /// The entries that subscribers have not received yet.
    pub(crate) fn undelivered(&self) -> u64 {
        let owed = |(number, subscriber): (usize, &Subscriber)| {
            let feed = self.state.feed(number / SUBSCRIBERS_PER_FEED, |feed| feed.newest);
            feed.saturating_sub(subscriber.last.load(Ordering::SeqCst))
        };
        self.state.subscribers.iter().enumerate().map(owed).sum()
    }

    /// Returns the delays since the last call.
    pub(crate) fn take_delays(&self) -> Delays {
        let mut delays = self.state.delays.lock().unwrap_or_else(PoisonError::into_inner);
        std::mem::replace(&mut delays, Delays::none())
    }
}

impl State {
    fn feed<T>(&self, number: usize, read: impl FnOnce(&mut Feed) -> T) -> T {
        read(&mut self.feeds[number].lock().unwrap_or_else(PoisonError::into_inner))
    }

    fn now_ms(&self) -> u64 {
        u64::try_from(self.begun.elapsed().as_millis()).unwrap_or(u64::MAX)
    }

    fn publish(&self, feed: usize) {
        let now = self.now_ms();
        self.feed(feed, |feed| {
            feed.newest += 1;
            feed.entries.push_front((feed.newest, now));
            feed.entries.truncate(ENTRIES_IN_FEED);
        });
        self.published.fetch_add(1, Ordering::SeqCst);
    }

    fn receive(&self, number: usize, body: &str) {
        let Some(subscriber) = self.subscribers.get(number) else { return };
        let now = self.now_ms();
        let mut entries: Vec<_> = body.split(MARKER).skip(1).filter_map(entry).collect();
        entries.sort_unstable();
        entries.dedup();
        self.received.fetch_add(1, Ordering::Relaxed);
        let mut delays = self.delays.lock().unwrap_or_else(PoisonError::into_inner);
        for (entry, published) in entries {
            let last = subscriber.last.load(Ordering::SeqCst);
            if entry <= last {
                self.again.fetch_add(1, Ordering::Relaxed);
                continue;
            }
            self.gaps.fetch_add(entry - last - 1, Ordering::Relaxed);
            subscriber.last.store(entry, Ordering::SeqCst);
            delays.add(now.saturating_sub(published));
        }
    }

    fn document(&self, number: usize) -> String {
        let mut items = String::new();
        self.feed(number, |feed| {
            for (entry, published) in &feed.entries {
                let text = "High water, and what it left behind. ".repeat(8);
                // Writing to a string cannot fail.
                let _ = write!(
                    items,
                    "<item><title>{MARKER}{entry:0NUMBER_DIGITS$}-{published:0TIME_DIGITS$}</title>\
                     <guid isPermaLink='false'>{number}-{entry}</guid>\
                     <description>{text}</description></item>"
                );
            }
        });
        format!(
            "<rss version='2.0'><channel><title>Tides {number}</title>\
             <link>http://tides.test/{number}</link><description>Every tide</description>{items}\
             </channel></rss>"
        )
    }
}

/// Reads the number and the time of an entry after its marker.
fn entry(text: &str) -> Option<(u64, u64)> {
    let time = NUMBER_DIGITS + 1;
    let number = text.get(..NUMBER_DIGITS)?.parse().ok()?;
    Some((number, text.get(time..time + TIME_DIGITS)?.parse().ok()?))
}

impl Respond for State {
    fn respond(&self, request: &str) -> String {
        let target = request.split_whitespace().nth(1).unwrap_or_default();
        let (path, query) = target.split_once('?').unwrap_or((target, ""));
        if let Some(challenge) = query.split("challenge=").nth(1) {
            return challenge.split('&').next().unwrap_or_default().to_owned();
        }
        let number = |prefix| path.strip_prefix(prefix)?.parse::<usize>().ok();
        if let Some(feed) = number("/f/").filter(|feed| *feed < self.feeds.len()) {
            return self.document(feed);
        }
        if let Some(subscriber) = number("/s/") {
            self.receive(subscriber, request);
        }
        String::new()
    }
}

impl Delays {
    fn none() -> Delays {
        Delays { counts: vec![0; LONGEST_MS + 1] }
    }

    fn add(&mut self, ms: u64) {
        let ms = usize::try_from(ms).unwrap_or(LONGEST_MS).min(LONGEST_MS);
        self.counts[ms] += 1;
    }

    /// The delay in milliseconds that so many percent do not exceed.
    pub(crate) fn percentile(&self, percent: u64) -> usize {
        let all: u64 = self.counts.iter().sum();
        let wanted = (all * percent).div_ceil(100);
        let mut counted = 0;
        let is_reached = |count: &u64| {
            counted += count;
            counted >= wanted
        };
        self.counts.iter().position(is_reached).unwrap_or(LONGEST_MS)
    }
}
