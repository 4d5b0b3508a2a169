//! The operations that a gateway runs all the time, each some hundred times on random resources.

use std::sync::Arc;
use std::time::{Duration, Instant};

use chrono::{DateTime, TimeDelta, Utc};
use feedgate_core::account::{AccountId, TokenHash};
use feedgate_core::change_detection::{Candidate, FeedDocument};
use feedgate_core::claim::QueuePosition;
use feedgate_core::ping::{Ping, PingSource};
use feedgate_core::poll::{NewContent, Poll, Polling, Trigger};
use feedgate_core::resource::ResourceId;
use feedgate_core::schedule::Demand;
use feedgate_core::status::Status;
use feedgate_core::store::{
    ChangesWindow, ClaimLimits, DeliveryOutcome, DeliveryResult, DueResource, SubscriptionFilter,
};
use feedgate_core::subscription::{Format, Lease, Statuses, SubscriptionRequest};
use feedgate_core::topic::{Callback, Topic};
use feedgate_core::upstream::UpstreamFinding;
use feedgate_core::visibility::SourceNetwork;
use feedgate_protocol::Protocol;
use feedgate_store::Store;

use super::Failure;
use super::fill::{BEGIN_US, FOR_AN_ACCOUNT, HOUR_US, login, topic};
use super::rows::RowCounter;
use super::table::{Cost, Table};

/// How often each operation is measured, after a tenth as often to fill the caches.
const SAMPLES: usize = 300;
/// How often an operation is measured that reads whole tables.
const FEW_SAMPLES: usize = 10;
/// Lines of changes.xml that are read together.
const CHANGES: i64 = 200;
/// Jobs in one claim.
const CLAIMED: usize = 10;

/// The operations on one database.
pub(crate) struct Operations {
    store: Arc<Store>,
    counter: RowCounter,
    size: i64,
    random: u64,
}

impl Operations {
    pub(crate) fn new(store: Arc<Store>, counter: RowCounter, size: i64) -> Operations {
        Operations { store, counter, size, random: 0x9e37_79b9_7f4a_7c15 }
    }

    /// Measures all of them.
    pub(crate) async fn measure(&mut self, table: &mut Table) -> Result<(), Failure> {
        self.lookups(table).await?;
        self.subscriptions(table).await?;
        self.polls(table).await?;
        self.deliveries(table).await?;
        self.lists(table).await?;
        self.surveys(table).await
    }

    async fn lookups(&mut self, table: &mut Table) -> Result<(), Failure> {
        let topics = self.numbers(SAMPLES).into_iter().map(|n| Topic::parse(topic(n)));
        let topics = topics.collect::<Result<Vec<_>, _>>()?;
        let store = &Arc::clone(&self.store);
        self.sample(table, "find a resource by its topic", topics, async |topic| {
            store.find(topic.as_str()).await?.ok_or("a resource is missing")?;
            Ok(())
        })
        .await?;
        let ids = self.numbers(SAMPLES);
        self.sample(table, "get a resource by its number", ids, async |n| {
            store.get(ResourceId(n)).await?.ok_or("a resource is missing")?;
            Ok(())
        })
        .await?;
        let topics = (0..SAMPLES).map(|n| Topic::parse(format!("https://new.test/{n}")));
        let topics = topics.collect::<Result<Vec<_>, _>>()?;
        self.sample(table, "create a resource", topics, async |topic| {
            store.ensure(&topic, begin()).await?;
            Ok(())
        })
        .await?;
        let logins = self.numbers(SAMPLES).into_iter().map(|n| login((n / FOR_AN_ACCOUNT).max(1)));
        let logins = logins.collect();
        self.sample(table, "authenticate a token", logins, async |login: String| {
            let found = store.authenticate(&login, &TokenHash::from_token(&login), begin()).await?;
            found.ok_or("a token is missing")?;
            Ok(())
        })
        .await
    }

    async fn subscriptions(&mut self, table: &mut Table) -> Result<(), Failure> {
        let requests = self.numbers(SAMPLES).into_iter().map(request);
        let requests = requests.collect::<Result<Vec<_>, Failure>>()?;
        let store = &Arc::clone(&self.store);
        self.sample(table, "subscribe", requests.clone(), async |request| {
            store.subscribe(&request, begin()).await?;
            Ok(())
        })
        .await?;
        self.sample(table, "renew a subscription", requests.clone(), async |request| {
            store.subscribe(&request, begin()).await?;
            Ok(())
        })
        .await?;
        self.sample(table, "unsubscribe", requests, async |request| {
            store.unsubscribe(None, &request.topic, &request.callback, None).await?;
            Ok(())
        })
        .await
    }

    async fn polls(&mut self, table: &mut Table) -> Result<(), Failure> {
        let store = &Arc::clone(&self.store);
        // Each claim comes when as many resources have become due as it takes.
        let apart = TimeDelta::microseconds(HOUR_US / self.size * CLAIMED as i64);
        let times = (1..=SAMPLES as i32).map(|n| begin() + apart * n).collect();
        let claimed = &tokio::sync::Mutex::new(Vec::new());
        self.sample(table, "claim 10 due resources", times, async |now| {
            let limits = ClaimLimits { limit: CLAIMED, per_host: CLAIMED, busy: Vec::new() };
            let due = store.claim_resources(now, now + TimeDelta::hours(9), &limits).await?;
            claimed.lock().await.extend(due);
            Ok(())
        })
        .await?;
        let mut claimed = std::mem::take(&mut *claimed.lock().await);
        claimed.truncate(2 * SAMPLES);
        let changed = claimed.split_off(claimed.len() / 2);
        self.sample(table, "record a poll that found nothing", claimed, async |due| {
            store.record(due.resource.id, &poll(&due, &[])).await?.ok_or("a claim is lost")?;
            Ok(())
        })
        .await?;
        self.sample(table, "record a poll that found an entry", changed, async |due| {
            let recorded = store.record(due.resource.id, &poll(&due, &["new"])).await?;
            recorded.ok_or("a claim is lost")?;
            Ok(())
        })
        .await?;
        let pings = self.numbers(SAMPLES).into_iter().map(ping).collect();
        self.sample(table, "receive a ping", pings, async |ping| {
            store.receive(&ping, Duration::from_secs(60)).await?;
            Ok(())
        })
        .await
    }

    async fn deliveries(&mut self, table: &mut Table) -> Result<(), Failure> {
        let store = &Arc::clone(&self.store);
        let (now, until) = (begin() + TimeDelta::hours(2), begin() + TimeDelta::hours(3));
        let claimed = &tokio::sync::Mutex::new(Vec::new());
        let turns = vec![(); SAMPLES / 2];
        self.sample(table, "claim 10 due subscriptions", turns, async |()| {
            let limits = ClaimLimits { limit: CLAIMED, per_host: CLAIMED, busy: Vec::new() };
            let start = QueuePosition::START;
            let due = store.claim_subscriptions(now, until, &limits, start).await?.due;
            claimed.lock().await.push(due);
            Ok(())
        })
        .await?;
        let results = std::mem::take(&mut *claimed.lock().await).into_iter().map(|due| {
            let results = due.into_iter().map(|due| {
                let outcome = DeliveryOutcome::Delivered { cursor: due.owed, status: 0 };
                DeliveryResult::new(&due, outcome, None)
            });
            results.collect::<Vec<_>>()
        });
        let results = results.collect();
        self.sample(table, "settle 10 deliveries", results, async |results: Vec<_>| {
            store.record_deliveries(&results, now).await?;
            Ok(())
        })
        .await
    }

    async fn lists(&mut self, table: &mut Table) -> Result<(), Failure> {
        let store = &Arc::clone(&self.store);
        let accounts = self.numbers(SAMPLES).into_iter().map(|n| (n / FOR_AN_ACCOUNT).max(1));
        let accounts = accounts.collect();
        let list = async |account| {
            let account = Some(AccountId(account));
            let filter = SubscriptionFilter { account, limit: 20, ..Default::default() };
            store.list(&filter).await?;
            Ok(())
        };
        self.sample(table, "list the subscriptions of an account", accounts, list).await?;
        let open = vec![AccountId::NOBODY.0; SAMPLES / 3];
        self.sample(table, "list open subscriptions", open, list).await?;
        let ids = self.numbers(SAMPLES);
        self.sample(table, "read an archive page", ids, async |n| {
            let located = store.page(ResourceId(n), Some(1)).await?.ok_or("a page is missing")?;
            store.read_page(ResourceId(n), &located.page).await?;
            Ok(())
        })
        .await?;
        let until = begin() - TimeDelta::hours(1);
        let (newest, _) = store.newest_change().await?;
        // There are as many lines in a day as resources: the window holds the same number of them.
        let length = TimeDelta::microseconds(24 * HOUR_US / self.size * CHANGES);
        let window = ChangesWindow { from: until - length, until, newest };
        self.sample(table, "read a page of changes", vec![window; SAMPLES], async |window| {
            store.changes(&window, None).await?;
            Ok(())
        })
        .await
    }

    /// Operations that read whole tables, and run once in a while.
    async fn surveys(&mut self, table: &mut Table) -> Result<(), Failure> {
        let store = &Arc::clone(&self.store);
        let turns = vec![(); FEW_SAMPLES];
        self.sample(table, "gauges (cached)", turns.clone(), async |()| {
            store.gauges(begin()).await?;
            Ok(())
        })
        .await?;
        self.sample(table, "planned polls (once a minute)", turns, async |()| {
            store.planned_polls_per_s(1.0).await?;
            Ok(())
        })
        .await
    }

    /// Runs an operation on each input. The first tenth of the runs does not count.
    async fn sample<T>(
        &self,
        table: &mut Table,
        name: &'static str,
        mut inputs: Vec<T>,
        operation: impl AsyncFn(T) -> Result<(), Failure>,
    ) -> Result<(), Failure> {
        let measured = inputs.split_off(inputs.len() / 10);
        for input in inputs {
            operation(input).await?;
        }
        let read = self.counter.count().await?;
        let mut times = Vec::with_capacity(measured.len());
        for input in measured {
            let begun = Instant::now();
            operation(input).await?;
            times.push(begun.elapsed());
        }
        let read = (self.counter.count().await? - read) / times.len() as f64;
        times.sort_unstable();
        let (median, p99) = (times[times.len() / 2], times[times.len() * 99 / 100]);
        table.add(name, Cost { median, p99, read });
        Ok(())
    }

    /// Random numbers of resources.
    fn numbers(&mut self, many: usize) -> Vec<i64> {
        let size = self.size as u64;
        let mut next = || {
            self.random ^= self.random << 13;
            self.random ^= self.random >> 7;
            self.random ^= self.random << 17;
            (self.random % size) as i64 + 1
        };
        (0..many).map(|_| next()).collect()
    }
}

/// The moment at which everything begins.
fn begin() -> DateTime<Utc> {
    DateTime::UNIX_EPOCH + TimeDelta::microseconds(BEGIN_US)
}

fn request(n: i64) -> Result<SubscriptionRequest, Failure> {
    Ok(SubscriptionRequest {
        format: Format::Atom,
        statuses: Statuses::default(),
        lease: Lease::from(Duration::from_secs(864_000)),
        ..SubscriptionRequest::new(
            Topic::parse(topic(n))?,
            Callback::parse(format!("https://callback.test/new/{n}"))?,
            Protocol::WebSub,
        )
    })
}

fn ping(n: i64) -> Ping {
    let at = begin() + TimeDelta::hours(1);
    Ping { at, source: PingSource::RssCloud, name: String::new(), url: topic(n), feed_url: None }
}

/// The result of a poll of a claimed resource, which found these entries.
fn poll(due: &DueResource, entries: &[&str]) -> Poll {
    let at = begin() + TimeDelta::hours(1);
    let candidates = entries.iter().map(|id| {
        Candidate::of_id(id, format!("<entry><id>{id}</id><title>A new entry</title></entry>"))
    });
    let document = FeedDocument { at, candidates: candidates.collect(), ..FeedDocument::default() };
    Poll {
        claim: due.claim,
        at,
        trigger: Trigger::Schedule,
        answered_well: true,
        kind: None,
        fetch_url: None,
        source_network: Some(SourceNetwork::Public),
        site_url: None,
        feed_head: None,
        body: None,
        upstream: UpstreamFinding::Unknown,
        semantic_digest: None,
        found: if entries.is_empty() { NewContent::Nothing } else { NewContent::Feed(document) },
        silent: false,
        is_baseline: false,
        next_fetch: at + TimeDelta::hours(1),
        demand: Demand::default(),
        status: Status { http_code: 200, ..Status::default() },
        polling: Polling::default(),
        leaves_details: entries.is_empty(),
    }
}
