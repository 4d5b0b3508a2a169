//! What the first poll of a resource finds is sent to nobody, unless a ping says that it changed.

use std::time::Duration;

use chrono::{DateTime, TimeDelta, Utc};
use feedgate_core::change_detection::Candidate;
use feedgate_core::poll::{NewContent, Poll};
use feedgate_core::polling::Polling;
use feedgate_core::record::Seq;
use feedgate_core::resource::{ResourceId, ResourceKind};
use feedgate_core::subscription::{Format, SubscriptionId};
use feedgate_feed::Body;

use super::pings::ping;
use super::{at, document, entry, on_both_stores, poll, request, resource, room};
use crate::support::claiming_store::ClaimingStore;
use crate::support::postgres::Database;

on_both_stores!(
    f19_a_ping_after_the_subscription_makes_the_first_poll_news,
    f19_a_ping_during_the_first_poll_is_decided_by_the_next,
    f19_a_ping_about_something_newer_or_much_later_brings_nothing_old,
    f19_who_subscribes_while_the_first_poll_runs_is_sent_nothing_that_was_there,
    h14_each_subscription_is_sent_what_was_published_since_it_was_made,
    h14_what_returns_after_a_while_without_subscriptions_is_baseline,
    e03_a_clock_that_was_set_makes_nothing_baseline,
    e03_an_answer_of_another_time_hides_no_entry_from_who_was_subscribed,
);

/// Two subscribers of a resource that was not polled yet: to its entries, and to its body.
async fn subscribed(store: &ClaimingStore) -> (ResourceId, [SubscriptionId; 2]) {
    let entries = request("a", "https://entries.test/");
    let mut body = request("a", "https://body.test/");
    body.format = Format::Raw;
    let entries = store.subscribe(&entries, at(0)).await.unwrap().id;
    let body = store.subscribe(&body, at(0)).await.unwrap().id;
    (entries.resource, [entries, body])
}

/// A poll that finds these entries in a body of the same words.
fn found(seconds: i64, ids: &[&str]) -> Poll {
    let mut poll = poll(at(seconds), ids);
    poll.body = Some(Body { content_type: None, bytes: ids.concat().into_bytes() });
    poll
}

/// The first one, of a resource of which nothing was known.
fn first(seconds: i64, ids: &[&str]) -> Poll {
    Poll { silent: true, ..found(seconds, ids) }
}

/// A poll that finds nothing new, and knows what the claim told it.
async fn unchanged(store: &ClaimingStore, id: ResourceId, seconds: i64) -> Poll {
    let polling = resource(store, id).await.polling;
    Poll { found: NewContent::Nothing, polling, ..poll(at(seconds), &[]) }
}

/// A poll that failed at `at`, of a resource that was known so.
fn failed(at: DateTime<Utc>, known: &Poll) -> Poll {
    let mut failed = Poll { found: NewContent::Nothing, answered_well: false, ..poll(at, &[]) };
    failed.polling = Polling { failing_since: Some(at), ..known.polling.clone() };
    failed.status.error = "http_5xx".to_owned();
    failed
}

async fn pinged(store: &ClaimingStore, seconds: i64) {
    let spacing = Duration::from_secs(1);
    assert_eq!(store.receive(&ping(seconds, "https://feeds.test/a"), spacing).await.unwrap(), 1);
}

async fn claim(store: &ClaimingStore, id: ResourceId, seconds: i64) {
    assert!(store.claim_resource(id, at(seconds), at(seconds + 30)).await.unwrap().is_some());
}

/// What is due, from which cursor to which number.
async fn due(store: &ClaimingStore, seconds: i64) -> Vec<(SubscriptionId, i64, i64)> {
    let due = store.claim_subscriptions(at(seconds), at(seconds + 10), &room()).await.unwrap();
    let mut due: Vec<_> = due
        .iter()
        .map(|due| (due.subscription.id, due.subscription.cursor.0, due.owed.0))
        .collect();
    due.sort_by_key(|(id, ..)| id.number);
    due
}

async fn f19_a_ping_after_the_subscription_makes_the_first_poll_news(database: Database) {
    let store = ClaimingStore::new(database.open().await);
    let (id, [entries, body]) = subscribed(&store).await;
    pinged(&store, 1).await;
    claim(&store, id, 2).await;
    store.record(id, &first(3, &["1", "2", "3"])).await.unwrap();
    assert_eq!(due(&store, 4).await, [(entries, 2, 3), (body, 0, 1)]);
}

async fn f19_a_ping_during_the_first_poll_is_decided_by_the_next(database: Database) {
    let store = ClaimingStore::new(database.open().await);
    let (id, [entries, body]) = subscribed(&store).await;
    claim(&store, id, 1).await;
    pinged(&store, 2).await;
    store.record(id, &first(3, &["1", "2"])).await.unwrap();
    assert_eq!(due(&store, 4).await, [], "it is not known yet what was there before");
    claim(&store, id, 5).await;
    store.record(id, &unchanged(&store, id, 6).await).await.unwrap();
    assert_eq!(due(&store, 7).await, [(entries, 1, 2), (body, 0, 1)]);
}

async fn f19_a_ping_about_something_newer_or_much_later_brings_nothing_old(database: Database) {
    let store = ClaimingStore::new(database.open().await);
    let (id, [entries, body]) = subscribed(&store).await;
    claim(&store, id, 1).await;
    store.record(id, &first(2, &["1", "2"])).await.unwrap();
    pinged(&store, 3).await;
    claim(&store, id, 4).await;
    store.record(id, &found(5, &["2", "3"])).await.unwrap();
    assert_eq!(due(&store, 6).await, [(entries, 2, 3), (body, 1, 2)], "the new entry alone");

    let other = request("b", "https://entries.test/");
    let id = store.subscribe(&other, at(0)).await.unwrap().id.resource;
    claim(&store, id, 7).await;
    store.record(id, &first(8, &["1", "2"])).await.unwrap();
    let spacing = Duration::from_secs(1);
    store.receive(&ping(99, "https://feeds.test/b"), spacing).await.unwrap();
    claim(&store, id, 100).await;
    store.record(id, &unchanged(&store, id, 101).await).await.unwrap();
    let of_other = |due: &&(SubscriptionId, i64, i64)| due.0.resource == id;
    assert_eq!(due(&store, 102).await.iter().find(of_other), None);
    assert_eq!(resource(&store, id).await.polling.baseline_at, None);
}

async fn f19_who_subscribes_while_the_first_poll_runs_is_sent_nothing_that_was_there(
    database: Database,
) {
    let store = ClaimingStore::new(database.open().await);
    let id = store.ensure(&request("a", "https://x.test/").topic, at(0)).await.unwrap().id;
    store.record(id, &first(1, &["1"])).await.unwrap();
    claim(&store, id, 2).await;
    subscribed(&store).await;
    let poll = Poll { is_baseline: true, ..first(3, &["1", "2"]) };
    store.record(id, &poll).await.unwrap();
    assert_eq!(due(&store, 4).await, []);
    claim(&store, id, 5).await;
    store.record(id, &found(6, &["2", "3"])).await.unwrap();
    assert_eq!(due(&store, 7).await.iter().map(|due| due.1).collect::<Vec<_>>(), [2, 2]);
}

/// An entry that its source dates so.
fn dated(id: &str, seconds: Option<i64>) -> Candidate {
    Candidate { published: seconds.map(at), ..entry(id) }
}

async fn h14_each_subscription_is_sent_what_was_published_since_it_was_made(database: Database) {
    let store = ClaimingStore::new(database.open().await);
    let mut made = Vec::new();
    for (seconds, format) in
        [(105, Format::Atom), (305, Format::Atom), (305, Format::Raw), (905, Format::Raw)]
    {
        let mut wanted = request("a", &format!("https://{seconds}-{}.test/", format.as_str()));
        wanted.format = format;
        made.push(store.subscribe(&wanted, at(seconds)).await.unwrap().id);
    }
    let id = made[0].resource;
    claim(&store, id, 910).await;
    let entries = [
        dated("after both", Some(401)),
        dated("undated", None),
        dated("before", Some(99)),
        dated("long before", Some(-9_999)),
        dated("after the first", Some(201)),
    ];
    let kind = Some(ResourceKind::Feed);
    let poll = Poll { found: document(at(911), entries.into()), kind, ..first(911, &["x"]) };
    store.record(id, &poll).await.unwrap();
    let want = [(made[0], 3, 5), (made[1], 4, 5), (made[2], 0, 1)];
    assert_eq!(due(&store, 912).await, want, "from which cursor to which number");
    let log = store.read_after(id, Seq::NONE, 9).await.unwrap();
    let ids: Vec<_> = log.iter().map(|record| record.entry_id.as_str()).collect();
    assert_eq!(ids, ["undated", "before", "long before", "after the first", "after both"]);
}

async fn h14_what_returns_after_a_while_without_subscriptions_is_baseline(database: Database) {
    const DAY: i64 = 86_400;
    let store = ClaimingStore::new(database.open().await);
    let id = store.ensure(&request("a", "https://x.test/").topic, at(0)).await.unwrap().id;
    let kind = Some(ResourceKind::Feed);
    let mut known = Poll { kind, is_baseline: true, ..first(1, &["1"]) };
    known.polling.rate_at = Some(at(1));
    store.record(id, &known).await.unwrap();

    let made = store.subscribe(&request("a", "https://x.test/"), at(DAY)).await.unwrap().id;
    claim(&store, id, DAY + 1).await;
    store.record(id, &failed(at(DAY + 2), &known)).await.unwrap();

    claim(&store, id, DAY + 3).await;
    let entries = [dated("1", Some(0)), dated("2", Some(DAY - 9)), dated("3", Some(DAY + 9))];
    let back =
        Poll { found: document(at(DAY + 20), entries.into()), kind, ..poll(at(DAY + 20), &[]) };
    store.record(id, &back).await.unwrap();
    assert_eq!(
        due(&store, DAY + 21).await,
        [(made, 2, 3)],
        "the entry of the day of the subscription"
    );
}

async fn e03_a_clock_that_was_set_makes_nothing_baseline(database: Database) {
    let store = ClaimingStore::new(database.open().await);
    let id = store.ensure(&request("a", "https://x.test/").topic, at(0)).await.unwrap().id;
    let kind = Some(ResourceKind::Feed);
    let mut known = Poll { kind, is_baseline: true, ..first(100, &["1"]) };
    known.polling.rate_at = Some(at(100));
    store.record(id, &known).await.unwrap();

    let forward = TimeDelta::hours(6);
    store.record_clock_set(0, forward).await.unwrap();
    store.move_due_times(1, forward).await.unwrap();
    let now = |seconds: i64| at(6 * 3_600 + seconds);
    let made = store.subscribe(&request("a", "https://x.test/"), now(110)).await.unwrap().id;
    assert!(store.claim_resource(id, now(111), now(141)).await.unwrap().is_some());
    store.record(id, &failed(now(112), &known)).await.unwrap();

    assert!(store.claim_resource(id, now(120), now(150)).await.unwrap().is_some());
    let entries = [dated("1", Some(0)), dated("2", Some(115))];
    let back = Poll { found: document(now(121), entries.into()), kind, ..poll(now(121), &[]) };
    store.record(id, &back).await.unwrap();
    assert_eq!(
        due(&store, 6 * 3_600 + 122).await,
        [(made, 1, 2)],
        "publishers have the right time"
    );
}

/// As if the clock is set back by six hours while the answer is recorded: it is dated before the subscription.
async fn e03_an_answer_of_another_time_hides_no_entry_from_who_was_subscribed(database: Database) {
    let store = ClaimingStore::new(database.open().await);
    let later = |seconds: i64| 6 * 3_600 + seconds;
    let made = store.subscribe(&request("a", "https://x.test/"), at(later(0))).await.unwrap().id;
    let (id, kind) = (made.resource, Some(ResourceKind::Feed));
    let known = Poll { kind, ..first(1, &["1"]) };
    claim(&store, id, later(1)).await;
    store.record(id, &known).await.unwrap();

    claim(&store, id, later(10)).await;
    store.record(id, &failed(at(later(11)), &known)).await.unwrap();
    claim(&store, id, later(20)).await;
    store.record(id, &Poll { kind, ..found(later(21), &["1", "2"]) }).await.unwrap();
    assert_eq!(due(&store, later(22)).await, [(made, 1, 2)]);
}
