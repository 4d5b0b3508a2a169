//! What the histories that strangers ask for cost others.

use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use feedgate::disk_space::DiskSpace;
use feedgate::event_log::EventLog;
use feedgate::jobs::backfill::{BackfillSettings, Backfiller};
use feedgate::jobs::runner::{self, Job};
use feedgate_core::account::AccountId;
use feedgate_core::backfill::Backfill;
use feedgate_core::registrant::RegistrantNetwork;
use feedgate_core::resource::ResourceId;
use feedgate_core::subscription::SubscriptionRequest;
use feedgate_store::{self as store, StoreSettings};
use http::StatusCode;

use super::{Bench, LIMITS, atom, node_with, request, steps};
use crate::store::on_both_stores;
use crate::support::postgres::Database;
use crate::support::publisher::Publisher;

on_both_stores!(
    h01_a_history_is_charged_to_those_for_whom_it_is_stored,
    h01_the_history_of_a_stranger_waits_for_disk_space,
    h01_histories_of_strangers_leave_workers_for_those_of_accounts,
    h01_an_account_does_not_wait_for_the_budget_of_strangers,
    h03_a_history_pauses_the_server_of_a_feed_that_is_read,
);

const CLAIM: Duration = Duration::from_secs(60);

/// A quarter of it may be stored at once: as much as the entries of some four pages.
const BYTES_PER_DAY: u64 = 60 << 10;

/// Opens a gateway where little is stored for strangers.
async fn open(database: &Database) -> Bench {
    let settings = StoreSettings { anonymous_bytes_per_day: BYTES_PER_DAY, ..database.settings() };
    let store = store::open(&settings).await.unwrap();
    let (store, ingest, backfills) = node_with(store, LIMITS, CLAIM);
    Bench { store, ingest, backfills, publisher: Publisher::start().await }
}

fn request_of(topic: &str, callback: &str, account: Option<i64>) -> SubscriptionRequest {
    let registrant = RegistrantNetwork::from_client(Some([192, 0, 2, 1].into()));
    let account = account.map(AccountId);
    SubscriptionRequest { registrant, account, ..request(topic, callback) }
}

/// Subscribes with a history. Returns the number of the resource.
async fn subscribe(bench: &Bench, request: &SubscriptionRequest) -> ResourceId {
    let held = bench.store.subscribe_with_history(request, runner::now()).await.unwrap();
    held.id.resource
}

async fn h01_a_history_is_charged_to_those_for_whom_it_is_stored(database: Database) {
    let bench = open(&database).await;
    bench.archive(60, 3);
    let id = subscribe(&bench, &request_of(&bench.topic(), "https://b.test/cb", None)).await;
    let waits: Backfill = bench.finish().await;
    assert_eq!(waits.state(), "reading");
    assert!((2..8).contains(&waits.pages), "{waits:?}");
    let earliest = bench.store.earliest_fetch(id).await.unwrap();
    assert!(earliest > runner::now(), "no request fetches it earlier: {earliest}");
    bench.poll().await;
    assert_eq!(bench.records().await, [], "nor does the poller");
}

async fn h01_an_account_does_not_wait_for_the_budget_of_strangers(database: Database) {
    let bench = open(&database).await;
    bench.archive(60, 3);
    subscribe(&bench, &request_of(&bench.topic(), "https://b.test/cb", None)).await;
    assert_eq!(bench.finish().await.state(), "reading");
    subscribe(&bench, &request_of(&bench.topic(), "https://own.test/cb", Some(7))).await;
    let done = bench.finish().await;
    assert_eq!((done.state(), done.appended), ("done", 60));
    bench.poll().await;
    assert_eq!(bench.records().await.len(), 60);
}

async fn h01_the_history_of_a_stranger_waits_for_disk_space(database: Database) {
    let bench = Bench::start(&database).await;
    let disk = DiskSpace::new(Some(Path::new("Cargo.toml")), Some(u64::MAX));
    let poller = bench.ingest.clone().with_disk_space(disk);
    let settings = BackfillSettings { claim: CLAIM, limits: LIMITS };
    let on_a_full_disk =
        Backfiller::new(Arc::clone(&bench.store), poller, EventLog::off(), settings);
    bench.archive(9, 3);
    subscribe(&bench, &request_of(&bench.topic(), "https://b.test/cb", None)).await;
    steps(&on_a_full_disk, usize::MAX).await;
    let waits = bench.backfill().await;
    assert_eq!((waits.pages, waits.ended_at), (0, None), "nothing is stored of it");
    assert_eq!(bench.publisher.fetches("/feed").len(), 0);

    subscribe(&bench, &request_of(&bench.topic(), "https://own.test/cb", Some(7))).await;
    steps(&on_a_full_disk, usize::MAX).await;
    assert_eq!(bench.backfill().await.appended, 9, "an account does not wait");
}

async fn h01_histories_of_strangers_leave_workers_for_those_of_accounts(database: Database) {
    let bench = Bench::start(&database).await;
    for n in 0..9 {
        let topic = bench.publisher.url(&format!("/{n}"));
        subscribe(&bench, &request_of(&topic, "https://b.test/cb", None)).await;
    }
    let anonymous = bench.backfills.claim(4).await.unwrap();
    assert_eq!(anonymous.len(), 2, "half of the workers");
    bench.archive(3, 3);
    let own = subscribe(&bench, &request_of(&bench.topic(), "https://b.test/cb", Some(7))).await;
    let of_accounts = bench.backfills.claim(2).await.unwrap();
    let claimed: Vec<_> = of_accounts.iter().map(|step| step.0.resource.id).collect();
    assert_eq!(claimed, [own]);
    drop(anonymous);
    assert_eq!(bench.backfills.claim(4).await.unwrap().len(), 2);
}

async fn h03_a_history_pauses_the_server_of_a_feed_that_is_read(database: Database) {
    let bench = Bench::start(&database).await;
    bench.archive(3, 2);
    bench.publisher.fail("/documents/1", StatusCode::TOO_MANY_REQUESTS);
    let feed = request_of(&bench.topic(), "https://b.test/cb", None);
    bench.store.subscribe(&feed, runner::now()).await.unwrap();
    bench.poll().await;
    let paused_until = async || {
        let group = bench.store.group(&bench.topic());
        bench.store.host(&group).await.unwrap().cool_until
    };

    // Anybody can name a feed that was never polled, whose history leads to what is refused.
    let links = [("prev-archive", "/documents/1".to_owned())];
    bench.publisher.put("/named", "application/atom+xml", atom(&links, 9..=9));
    let named = bench.publisher.url("/named");
    subscribe(&bench, &request_of(&named, "https://b.test/cb", None)).await;
    steps(&bench.backfills, usize::MAX).await;
    assert_eq!(bench.publisher.fetches("/documents/1").len(), 1);
    assert_eq!(paused_until().await, None);

    subscribe(&bench, &request_of(&bench.topic(), "https://c.test/cb", None)).await;
    assert_eq!(bench.finish().await.attempts, 1);
    assert!(paused_until().await.is_some(), "it answers polls of the feed well");
}
