//! The publisher and all subscribers: one thread that answers and counts.

use std::fmt;
use std::net::Ipv4Addr;
use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};

use super::AnyError;
use super::responder::{self, Respond};

/// Subscribers are spread over this machine's addresses, each at one of its own.
const ON_A_NET: usize = 250;
/// A feed of the usual size.
const FEED_BYTES: usize = 20_000;

/// How the subscribers are spread over addresses.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Spread {
    /// Each has an address of its own.
    OwnAddresses,
    /// All are on one.
    OneHost,
}

impl fmt::Display for Spread {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Spread::OwnAddresses => "own addresses",
            Spread::OneHost => "one host",
        })
    }
}

/// What the thread and whoever asks share.
struct State {
    /// Notifications of each subscriber since the beginning.
    told: Vec<AtomicUsize>,
    /// Subscribers that have been told at least once.
    reached: AtomicUsize,
    version: AtomicU64,
    /// When the first and the last subscriber was first told.
    times: Mutex<(Option<Instant>, Option<Instant>)>,
}

/// A publisher with one feed, and its subscribers.
pub(crate) struct CallbackServer {
    port: u16,
    spread: Spread,
    state: Arc<State>,
}

impl CallbackServer {
    /// Starts one with so many subscribers.
    pub(crate) fn start(many: usize, spread: Spread) -> Result<CallbackServer, AnyError> {
        let state = Arc::new(State {
            told: (0..many).map(|_| AtomicUsize::new(0)).collect(),
            reached: AtomicUsize::new(0),
            version: AtomicU64::new(0),
            times: Mutex::default(),
        });
        let port = responder::start(Arc::clone(&state))?;
        Ok(CallbackServer { port, spread, state })
    }

    /// Whether each subscriber has an address of its own.
    pub(crate) fn has_own_addresses(&self) -> bool {
        self.spread == Spread::OwnAddresses
    }

    /// The port of all.
    pub(crate) fn port(&self) -> u16 {
        self.port
    }

    /// The feed.
    pub(crate) fn topic(&self) -> String {
        format!("http://127.0.0.1:{}/feed", self.port)
    }

    /// The address of a subscriber.
    pub(crate) fn domain(&self, n: usize) -> String {
        if self.spread == Spread::OneHost {
            return Ipv4Addr::LOCALHOST.to_string();
        }
        let octet = |n: usize| u8::try_from(n % ON_A_NET + 1).unwrap_or(u8::MAX);
        let (nets, rest) = (n / (ON_A_NET * ON_A_NET), n / ON_A_NET);
        Ipv4Addr::new(127, octet(nets + 1), octet(rest), octet(n)).to_string()
    }

    /// Where a subscriber is told.
    pub(crate) fn callback(&self, n: usize) -> String {
        format!("http://{}:{}/{n}", self.domain(n), self.port)
    }

    /// Changes the feed, and counts from here.
    pub(crate) fn begin(&self) {
        self.state.told.iter().for_each(|told| told.store(0, Ordering::Relaxed));
        self.state.reached.store(0, Ordering::Relaxed);
        *self.state.times.lock().unwrap_or_else(PoisonError::into_inner) = (None, None);
        self.state.version.fetch_add(1, Ordering::SeqCst);
    }

    /// How many subscribers have been told.
    pub(crate) fn told(&self) -> usize {
        self.state.reached.load(Ordering::SeqCst)
    }

    /// How many notifications there were beyond one for each subscriber.
    pub(crate) fn twice(&self) -> usize {
        let beyond = |told: &AtomicUsize| told.load(Ordering::Relaxed).saturating_sub(1);
        self.state.told.iter().map(beyond).sum()
    }

    /// When the first and the last were told, counted from `begun`.
    pub(crate) fn course(&self, begun: Instant) -> (Duration, Duration) {
        let (first, last) = *self.state.times.lock().unwrap_or_else(PoisonError::into_inner);
        let since = |at: Option<Instant>| at.unwrap_or(begun).saturating_duration_since(begun);
        (since(first), since(last))
    }
}

impl Respond for State {
    fn respond(&self, request: &str) -> String {
        let target = request.split_whitespace().nth(1).unwrap_or_default();
        let (path, query) = target.split_once('?').unwrap_or((target, ""));
        if path == "/feed" {
            return feed(self.version.load(Ordering::SeqCst));
        }
        if let Some(challenge) = query.split("challenge=").nth(1) {
            return challenge.to_owned();
        }
        path[1..].parse().map(|n: usize| self.count(n)).unwrap_or_default();
        String::new()
    }
}

impl State {
    fn count(&self, n: usize) {
        let Some(told) = self.told.get(n) else { return };
        if told.fetch_add(1, Ordering::Relaxed) == 0 {
            let now = Some(Instant::now());
            let mut times = self.times.lock().unwrap_or_else(PoisonError::into_inner);
            *times = (times.0.or(now), now);
            self.reached.fetch_add(1, Ordering::SeqCst);
        }
    }
}

fn feed(version: u64) -> String {
    format!(
        "<rss version='2.0'><channel><title>Tides</title><link>http://tides.test/</link>\
         <description>{}</description><item><title>Version {version}</title>\
         <guid isPermaLink='false'>tides-{version}</guid></item></channel></rss>",
        "High and low. ".repeat(FEED_BYTES / 14)
    )
}
