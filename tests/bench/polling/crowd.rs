//! Many resources on one node, in simulated time: the clock goes on by what the work
//! really takes, and only idle time is skipped.
//!
//! So a resource that is begun late was kept waiting by work, or by a worker that looks
//! twice a second, as it would be in real time on the same machine.

use std::io;
use std::net::IpAddr;
use std::sync::Arc;
use std::time::{Duration, Instant};

use async_trait::async_trait;
use chrono::{DateTime, TimeDelta, Utc};
use feedgate::event_log::EventLog;
use feedgate::jobs::poll::{PollSettings, Poller};
use feedgate::metrics::Metrics;
use feedgate::net::{self, HttpClient, Lookup, Patience};
use feedgate_core::account::AccountId;
use feedgate_core::host_groups::HostGroups;
use feedgate_core::page::PageLimits;
use feedgate_core::store::{ClaimLimits, DueResource};
use feedgate_core::subscription::{Format, Lease, Statuses, SubscriptionRequest};
use feedgate_core::topic::{Callback, Topic};
use feedgate_protocol::Protocol;
use feedgate_store as store;
use feedgate_store::Store;
use futures_util::StreamExt;
use futures_util::future::join_all;

/// What goes wrong stops the measurement.
pub(crate) type AnyError = Box<dyn std::error::Error + Send + Sync>;

/// How often a worker looks when nothing is due.
const LOOK_EVERY: Duration = Duration::from_millis(500);
const CLAIM: Duration = Duration::from_secs(60);
/// Polls at once, as `FEEDGATE_FETCH_CONCURRENCY` is by default.
const CONCURRENCY: usize = 64;
/// Subscriptions made side by side, so that they are committed together.
const SUBSCRIBE_CONCURRENCY: usize = 200;

/// Whether the clock goes on while there is work. A benchmark wants the lateness that work
/// causes; a test wants what does not depend on how busy the machine is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum WorkTime {
    Counted,
    #[allow(dead_code, reason = "the benchmark always counts it")]
    Ignored,
}

/// A node and all that it watches.
pub(crate) struct Crowd {
    store: Arc<Store>,
    ingest: Poller,
    port: u16,
}

/// How a time of polling went.
#[derive(Debug)]
pub(crate) struct Course {
    /// By how much each poll was begun late, in milliseconds, ascending.
    pub(crate) late_ms: Vec<i64>,
    /// The memory of this process at each tenth of the time, in kilobytes; 0 where the
    /// system does not say.
    pub(crate) memory_kb: Vec<usize>,
    /// The share of the time in which there was work.
    pub(crate) busy: f64,
}

impl Course {
    /// The lateness that `share` of all polls do not exceed, in milliseconds.
    pub(crate) fn quantile_ms(&self, share: f64) -> i64 {
        let at = (self.late_ms.len() as f64 * share) as usize;
        self.late_ms.get(at).or(self.late_ms.last()).copied().unwrap_or_default()
    }
}

/// All names lead here, spread over some addresses as the hosts of the world are.
#[derive(Debug)]
struct Here;

#[async_trait]
impl Lookup for Here {
    async fn lookup(&self, name: &str) -> io::Result<Vec<IpAddr>> {
        let spread = name.bytes().fold(0_u8, |sum, byte| sum.wrapping_mul(31).wrapping_add(byte));
        Ok(vec![IpAddr::from([127, 0, 0, spread % 64 + 1])])
    }
}

/// The client, for names that all lead here.
pub(crate) fn client() -> HttpClient {
    let settings = net::NetworkSettings {
        user_agent: "feedgate/0.0 (+https://gateway.test/bot".to_owned(),
        allow_topics: vec![ipnet::IpNet::from(ipnet::Ipv4Net::new_assert(
            [127, 0, 0, 0].into(),
            8,
        ))],
        allow_callbacks: Vec::new(),
        fetch_timeout: Duration::from_secs(30),
        callback_timeout: Duration::from_secs(10),
        body_limit_bytes: 1_000_000,
        host_spacing: Duration::ZERO,
        fetch_concurrency: 64,
        document_memory_bytes: 1 << 30,
    };
    HttpClient::with_lookup(settings, Arc::new(Here))
}

/// The moment at which everything begins.
pub(crate) fn start() -> DateTime<Utc> {
    DateTime::UNIX_EPOCH + TimeDelta::days(20_000)
}

impl Crowd {
    /// A node on the database `url`, for resources of a server at `port`.
    pub(crate) async fn gather(url: String, port: u16) -> Result<Crowd, AnyError> {
        let groups = HostGroups::new(Duration::from_secs(1));
        let store = store::open(&store::StoreSettings {
            url,
            connections: 8,
            groups,
            page_limits: PageLimits::default(),
            listed: Default::default(),
            forwarding: Default::default(),
            anonymous_bytes_per_day: 256 << 20,
            account_bytes_per_day: 32 << 30,
            cells: 1,
            secret_keys: Default::default(),
        })
        .await?;
        let settings =
            PollSettings { claim: CLAIM, min_period_s: 300, porn_rank: false, upstream_url: None };
        let ingest =
            Poller::new(Arc::clone(&store), client(), Metrics::new(), EventLog::off(), settings);
        Ok(Crowd { store, ingest, port })
    }

    /// Watches `many` resources at `path` on `hosts` hosts; each is due `apart` after the
    /// one before it.
    pub(crate) async fn watch(
        &self,
        path: &str,
        (many, hosts): (usize, usize),
        apart: Duration,
    ) -> Result<(), AnyError> {
        let watching = (0..many).map(|n| async move {
            let topic = format!("http://h{}.test:{}{path}/{n}", n % hosts, self.port);
            let request = SubscriptionRequest {
                // The names of topics lead to this machine, and only accounts may watch what is inside.
                account: Some(AccountId(1)),
                format: Format::Atom,
                statuses: Statuses::default(),
                lease: Lease::from(Duration::from_secs(864_000)),
                ..SubscriptionRequest::new(
                    Topic::parse(topic)?,
                    Callback::parse("https://callback.test/")?,
                    Protocol::WebSub,
                )
            };
            let due = start() + apart * u32::try_from(n)?;
            self.store.subscribe(&request, due).await?;
            Ok::<_, AnyError>(())
        });
        let mut watching =
            futures_util::stream::iter(watching).buffer_unordered(SUBSCRIBE_CONCURRENCY);
        while let Some(watched) = watching.next().await {
            watched?;
        }
        Ok(())
    }

    /// Polls what is due at `now` until nothing is; how many that were.
    pub(crate) async fn poll_all(&self, now: DateTime<Utc>) -> Result<usize, AnyError> {
        let mut polled = 0;
        loop {
            let due = self.claim(now).await?;
            if due.is_empty() {
                return Ok(polled);
            }
            polled += due.len();
            self.poll(due, now).await?;
        }
    }

    /// Lets the time pass `from` a moment `to` another, and polls what becomes due.
    pub(crate) async fn pass(
        &self,
        from: DateTime<Utc>,
        to: DateTime<Utc>,
        work_time: WorkTime,
    ) -> Result<Course, AnyError> {
        let mut course = Course { late_ms: Vec::new(), memory_kb: Vec::new(), busy: 0.0 };
        let (mut now, mut busy) = (from, Duration::ZERO);
        while now < to {
            let passed = (now - from).as_seconds_f64() / (to - from).as_seconds_f64();
            if course.memory_kb.len() as f64 <= passed * 10.0 {
                course.memory_kb.push(memory_kb());
            }
            let begun = Instant::now();
            let due = self.claim(now).await?;
            let is_idle = due.is_empty();
            let late = due.iter().map(|due| (now - due.resource.next_fetch).num_milliseconds());
            course.late_ms.extend(late);
            self.poll(due, now).await?;
            busy += begun.elapsed();
            if work_time == WorkTime::Counted {
                now += begun.elapsed();
            }
            if is_idle {
                now += LOOK_EVERY;
            }
        }
        course.memory_kb.push(memory_kb());
        course.late_ms.sort_unstable();
        course.busy = busy.as_secs_f64() / (to - from).as_seconds_f64();
        Ok(course)
    }

    async fn claim(&self, now: DateTime<Utc>) -> Result<Vec<DueResource>, AnyError> {
        let room = ClaimLimits { limit: CONCURRENCY, per_host: 1, busy: Vec::new() };
        Ok(self.store.claim_resources(now, now + CLAIM, &room).await?)
    }

    async fn poll(&self, due: Vec<DueResource>, now: DateTime<Utc>) -> Result<(), AnyError> {
        let polls = due.into_iter().map(|due| {
            let ingest = self.ingest.clone();
            tokio::spawn(async move { ingest.poll(&due, now, Patience::Background).await })
        });
        for polled in join_all(polls).await {
            polled??;
        }
        Ok(())
    }
}

/// The memory this process holds, in kilobytes.
fn memory_kb() -> usize {
    let status = std::fs::read_to_string("/proc/self/status").unwrap_or_default();
    let line = status.lines().find_map(|line| line.strip_prefix("VmRSS:"));
    line.and_then(|line| line.split_whitespace().next()?.parse().ok()).unwrap_or_default()
}
