//! What every store must do: one suite, run on SQLite and on PostgreSQL.

mod account_lists;
mod accounts;
pub(crate) mod alerts;
mod append_budgets;
mod attempts;
mod backfills;
mod backlogs;
mod baselines;
mod callback_slots;
mod cells;
mod changes;
mod claims;
mod clock;
mod collecting;
mod collections;
mod copy;
mod crash;
mod deliveries;
mod delivery_queue;
mod digests;
mod endings;
mod entries;
mod events;
mod fan_outs;
mod feed_headers;
mod generations;
mod hosts;
mod idempotency;
mod indexed_columns;
mod intents;
mod large_documents;
pub(crate) mod lists;
mod log;
mod maintenance;
mod moves;
mod nodes;
mod nul;
mod opening;
mod option_changes;
mod page_bytes;
mod pages;
mod pausing;
mod ping_targets;
mod pings;
mod plans;
mod properties;
mod queue;
mod queue_claims;
mod reading_lists;
mod redirected_hosts;
mod resource_claims;
mod retention;
mod retries;
mod row_locks;
mod search;
mod secrets;
mod sessions;
mod signing_keys;
mod statuses;
mod storage;
mod subscription_counts;
mod subscriptions;
mod survey;
mod tracks;
mod traffic;
mod transfers;
mod upgrade;
mod upstreams;
mod visibility;

use std::sync::Arc;
use std::time::Duration;

use chrono::{DateTime, Utc};
use feedgate_core::change_detection::{Candidate, FeedDocument};
use feedgate_core::claim::ClaimToken;
use feedgate_core::poll::{NewContent, Poll, Polling, Trigger};
use feedgate_core::resource::{Resource, ResourceId};
use feedgate_core::schedule::Demand;
use feedgate_core::status::Status;
use feedgate_core::store::{ClaimLimits, SubscriptionFilter};
use feedgate_core::subscription::{Format, Lease, Statuses, Subscription, SubscriptionRequest};
use feedgate_core::topic::{Callback, Topic};
use feedgate_core::upstream::UpstreamFinding;
use feedgate_core::visibility::SourceNetwork;
use feedgate_protocol::Protocol;
use feedgate_store::Store;
use futures_util::future::LocalBoxFuture;

use crate::support::postgres::Database;

/// Runs each function on both kinds of database.
macro_rules! on_both_stores {
    ($($name:ident),* $(,)?) => {
        /// These functions, for the test of plans, which runs them in one process.
        #[allow(dead_code, reason = "only those of the contract suite are used")]
        pub(crate) fn contract_cases() -> Vec<crate::store::Case> {
            vec![$(crate::store::Case {
                name: stringify!($name),
                run: |database| Box::pin($name(database)),
            }),*]
        }
        mod sqlite {
            use crate::support::postgres::{Database, Kind};
            $(
                #[tokio::test(flavor = "multi_thread")]
                async fn $name() {
                    super::$name(Database::new(Kind::Sqlite).await).await;
                }
            )*
        }
        mod postgres {
            use crate::support::postgres::{Database, Kind};
            $(
                #[tokio::test(flavor = "multi_thread")]
                async fn $name() {
                    super::$name(Database::new(Kind::Postgres).await).await;
                }
            )*
        }
    };
}
pub(crate) use on_both_stores;

/// Runs each function on both kinds of database, always with one cell: tests of an order among
/// different resources, which holds within a cell only, and tests that write rows past the store.
macro_rules! in_one_cell {
    ($($name:ident),* $(,)?) => {
        /// These functions, for the test of plans, which runs them in one process.
        #[allow(dead_code, reason = "only those of the contract suite are used")]
        pub(crate) fn one_cell_cases() -> Vec<crate::store::Case> {
            vec![$(crate::store::Case {
                name: stringify!($name),
                run: |database| Box::pin($name(database)),
            }),*]
        }
        mod sqlite_in_one_cell {
            use crate::support::postgres::{Database, Kind};
            $(
                #[tokio::test(flavor = "multi_thread")]
                async fn $name() {
                    super::$name(Database::new(Kind::Sqlite).await).await;
                }
            )*
        }
        mod postgres_in_one_cell {
            use crate::support::postgres::{Database, Kind};
            $(
                #[tokio::test(flavor = "multi_thread")]
                async fn $name() {
                    super::$name(Database::with_cells(Kind::Postgres, 1).await).await;
                }
            )*
        }
    };
}
pub(crate) use in_one_cell;

/// A function of the contract suite.
#[derive(Clone)]
pub(crate) struct Case {
    pub(crate) name: &'static str,
    pub(crate) run: fn(Database) -> LocalBoxFuture<'static, ()>,
}

/// Runs each function on SQLite alone: tests of what no SQL decides, such as how documents are
/// compared, what is sent and how an endpoint replies. What they use of the store is tested on
/// both engines by this module.
macro_rules! on_one_store {
    ($($name:ident),* $(,)?) => {
        mod one_store {
            use crate::support::postgres::{Database, Kind};
            $(
                #[tokio::test(flavor = "multi_thread")]
                async fn $name() {
                    super::$name(Database::new(Kind::Sqlite).await).await;
                }
            )*
        }
    };
}
pub(crate) use on_one_store;

/// A moment `seconds` after the tests began, as it were.
pub(crate) fn at(seconds: i64) -> DateTime<Utc> {
    DateTime::from_timestamp(1_790_000_000 + seconds, 123_456_000).unwrap()
}

pub(crate) fn topic(name: &str) -> Topic {
    Topic::parse(format!("https://feeds.test/{name}")).unwrap()
}

/// Limits that let everything be claimed.
fn room() -> ClaimLimits {
    ClaimLimits { limit: 1_000_000, per_host: 1_000_000, busy: Vec::new() }
}

/// Limits that let `limit` jobs be claimed, whatever their hosts.
fn few(limit: usize) -> ClaimLimits {
    ClaimLimits { limit, per_host: limit, busy: Vec::new() }
}

fn request(topic_name: &str, callback: &str) -> SubscriptionRequest {
    SubscriptionRequest {
        format: Format::Atom,
        statuses: Statuses::default(),
        lease: Lease::from(Duration::from_secs(3_600)),
        ..SubscriptionRequest::new(
            topic(topic_name),
            Callback::parse(callback).unwrap(),
            Protocol::WebSub,
        )
    }
}

async fn subscribe(store: &Arc<Store>, topic_name: &str, callback: &str) -> Subscription {
    store.subscribe(&request(topic_name, callback), at(0)).await.unwrap()
}

fn entry(id: &str) -> Candidate {
    Candidate::of_id(id, format!("<entry><id>{id}</id></entry>"))
}

/// A document that was fetched at `at` and holds these entries, oldest first.
fn document(at: DateTime<Utc>, candidates: Vec<Candidate>) -> NewContent {
    NewContent::Feed(FeedDocument { at, candidates, ..FeedDocument::default() })
}

/// A poll that ended at `at` and found these entries.
pub(crate) fn poll(at: DateTime<Utc>, ids: &[&str]) -> Poll {
    Poll {
        claim: ClaimToken::NONE,
        at,
        trigger: Trigger::Schedule,
        answered_well: true,
        kind: None,
        fetch_url: None,
        source_network: (!ids.is_empty()).then_some(SourceNetwork::Public),
        site_url: None,
        feed_head: None,
        body: None,
        upstream: UpstreamFinding::Unknown,
        semantic_digest: None,
        found: document(at, ids.iter().map(|id| entry(id)).collect()),
        silent: false,
        is_baseline: false,
        next_fetch: at + Duration::from_secs(600),
        demand: Demand::default(),
        status: Status { http_code: 200, ..Status::default() },
        polling: Polling::default(),
        leaves_details: false,
    }
}

async fn resource(store: &Arc<Store>, id: ResourceId) -> Resource {
    store.get(id).await.unwrap().unwrap()
}

/// All subscriptions.
async fn listed(store: &Arc<Store>) -> Vec<Subscription> {
    let all = SubscriptionFilter { limit: 1_000_000, ..SubscriptionFilter::default() };
    let (page, total) = store.list(&all).await.unwrap();
    assert_eq!(page.len() as u64, total);
    page.into_iter().map(|listed| listed.subscription).collect()
}
