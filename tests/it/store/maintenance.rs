//! The chores of upkeep: whose turn it is, what is dropped, and what is measured.

use std::sync::{Arc, Mutex};
use std::time::Duration;

use feedgate_core::intent::{Intent, IntentMode};
use feedgate_core::poll::Poll;
use feedgate_core::record::Seq;
use feedgate_core::schedule::{Demand, K_LEAST};
use feedgate_core::store::{DeliveryOutcome, EndedTransaction, Gauges, OldestDue};
use feedgate_core::subscription::{Format, Lease, SubscriptionRequest};
use feedgate_protocol::Protocol;

use super::{at, listed, on_both_stores, poll, request, resource, room, subscribe, topic};
use crate::support::claiming_store::ClaimingStore;
use crate::support::postgres::Database;

on_both_stores!(
    a_chore_is_done_by_one_node_at_a_time,
    ended_leases_are_dropped,
    d09_who_renews_within_a_week_continues_where_it_stopped,
    rsscloud_callbacks_that_keep_failing_are_dropped,
    errors_count_only_while_they_follow_each_other,
    velocity_is_what_was_appended_in_a_cycle,
    the_budget_adds_up_what_all_resources_want,
    the_dial_is_shared_and_kept,
    s44_what_nobody_watches_is_forgotten_in_the_end,
    t05_a_resource_that_never_had_a_subscriber_is_kept_for_a_short_time,
    gauges_count_what_there_is,
    a_database_has_a_size,
    each_transaction_is_reported_to_the_observer,
    a_store_that_takes_writes_is_ready,
    changes_wake_who_waits,
);

async fn a_chore_is_done_by_one_node_at_a_time(database: Database) {
    let nodes = [database.open().await, database.open().await];
    let hour = Duration::from_secs(3_600);
    let claims = nodes.each_ref().map(|node| node.claim_maintenance_task("leases", at(0), hour));
    let claims = futures_util::future::join_all(claims).await;
    assert_eq!(claims.into_iter().filter(|claim| *claim.as_ref().unwrap()).count(), 1);
    assert!(!nodes[1].claim_maintenance_task("leases", at(3_599), hour).await.unwrap());
    assert!(
        nodes[1].claim_maintenance_task("velocity", at(3_599), hour).await.unwrap(),
        "another chore"
    );
    assert!(nodes[1].claim_maintenance_task("leases", at(3_600), hour).await.unwrap());
}

/// WebSub 5.3.1: no lease is perpetual.
async fn ended_leases_are_dropped(database: Database) {
    let store = ClaimingStore::new(database.open().await);
    for n in 0..3 {
        let mut request = request("a", &format!("https://callback.test/{n}"));
        request.lease = Lease::from(Duration::from_secs(10 * (n + 1)));
        store.subscribe(&request, at(0)).await.unwrap();
    }
    assert_eq!(store.drop_expired(at(9)).await.unwrap(), []);
    assert_eq!(store.drop_expired(at(20)).await.unwrap().len(), 2);
    let left = listed(&store).await;
    assert_eq!(left.len(), 1);
    assert_eq!(resource(&store, left[0].id.resource).await.subscribers, 1);
    assert_eq!(store.drop_expired(at(99)).await.unwrap().len(), 1);
    assert_eq!(store.claim_resources(at(99), at(100), &room()).await.unwrap(), []);
}

/// An ended lease leaves its cursor, for as long as a subscriber may be late.
async fn d09_who_renews_within_a_week_continues_where_it_stopped(database: Database) {
    let day = 24 * 3_600;
    let store = ClaimingStore::new(database.open().await);
    let other = subscribe(&store, "a", "https://other.test/").await;
    let id = other.id.resource;
    store
        .subscribe(
            &SubscriptionRequest { lease: Lease::WEBSUB, ..request("a", "https://other.test/") },
            at(0),
        )
        .await
        .unwrap();
    let callbacks = ["https://late.test/", "https://later.test/", "https://too-late.test/"];
    for callback in callbacks {
        store.subscribe(&request("a", callback), at(0)).await.unwrap();
    }
    let mut ended = request("a", "https://left.test/");
    store.subscribe(&ended, at(0)).await.unwrap();
    store.unsubscribe(None, &ended.topic, &ended.callback, None).await.unwrap();
    store.record(id, &poll(at(3_700), &["1"])).await.unwrap();
    assert_eq!(store.drop_expired(at(3_800)).await.unwrap().len(), 3);

    let renewed = store.subscribe(&request("a", callbacks[0]), at(3_900)).await.unwrap();
    assert_eq!(renewed.cursor.0, 0, "the record that it has missed is owed");
    let due = store.claim_subscriptions(at(3_901), at(3_961), &room()).await.unwrap();
    assert!(due.iter().any(|due| due.subscription.id == renewed.id), "and due at once");

    // A cursor over records says nothing about bodies.
    let bodies = SubscriptionRequest { format: Format::Raw, ..request("a", callbacks[1]) };
    let body_version = resource(&store, id).await.body_version;
    assert_eq!(store.subscribe(&bodies, at(3_900)).await.unwrap().cursor.0, body_version);

    assert_eq!(store.drop_expired(at(3_800 + 7 * day)).await.unwrap().len(), 2);
    let too_late = store.subscribe(&request("a", callbacks[2]), at(3_801 + 7 * day)).await.unwrap();
    assert_eq!(too_late.cursor.0, 1, "it begins with what comes next");
    ended.lease = Lease::WEBSUB;
    assert_eq!(store.subscribe(&ended, at(3_900)).await.unwrap().cursor.0, 1, "it had left");
}

/// Seed 000: "after three consecutive errors". One change is one error, however often it is
/// tried.
async fn rsscloud_callbacks_that_keep_failing_are_dropped(database: Database) {
    let store = ClaimingStore::new(database.open().await);
    let mut ids = Vec::new();
    for protocol in [Protocol::WebSub, Protocol::HttpPost] {
        let mut request = request("a", "https://callback.test/");
        request.protocol = protocol;
        ids.push(store.subscribe(&request, at(0)).await.unwrap().id);
    }
    for change in 1..=3 {
        store.record(ids[0].resource, &poll(at(change), &[&change.to_string()])).await.unwrap();
        for attempt in 1..=4 {
            let (now, again) = (at(10 * change + attempt), at(10 * change + attempt + 1));
            assert_eq!(store.drop_failing(3).await.unwrap(), [], "change {change}, {attempt}");
            let due = store.claim_subscriptions(now, again, &room()).await.unwrap();
            assert_eq!(due.len(), 2, "change {change}, attempt {attempt}");
            let failed =
                ids.iter().map(|id| (*id, DeliveryOutcome::Failed { retry_at: Some(again) }));
            store.record_deliveries(&failed.collect::<Vec<_>>(), now).await.unwrap();
            if change == 3 {
                break;
            }
        }
    }
    let dropped = store.drop_failing(3).await.unwrap();
    assert_eq!(dropped.len(), 1);
    assert_eq!((dropped[0].protocol.as_str(), dropped[0].errors), ("http-post", 3));
    assert_eq!(dropped[0].topic, "https://feeds.test/a");
    let left = listed(&store).await;
    assert_eq!((left.len(), left[0].id, left[0].failures), (1, ids[0], 9));
    assert_eq!(resource(&store, ids[0].resource).await.subscribers, 1);
}

/// A success, or a renewal, forgets the errors before it.
async fn errors_count_only_while_they_follow_each_other(database: Database) {
    let store = ClaimingStore::new(database.open().await);
    let mut request = request("a", "https://callback.test/");
    request.protocol = Protocol::HttpPost;
    let id = store.subscribe(&request, at(0)).await.unwrap().id;
    for change in 1..=8 {
        store.record(id.resource, &poll(at(change), &[&change.to_string()])).await.unwrap();
        assert_eq!(store.claim_subscriptions(at(change), at(99), &room()).await.unwrap().len(), 1);
        let settled = match change {
            3 => (id, DeliveryOutcome::Delivered { cursor: Seq(change), status: 0 }),
            _ => (id, DeliveryOutcome::Failed { retry_at: None }),
        };
        store.record_deliveries(&[settled], at(change)).await.unwrap();
        if change == 5 {
            // What waits for a renewal is tried at once, and fails once more.
            store.subscribe(&request, at(change)).await.unwrap();
            assert_eq!(
                store.claim_subscriptions(at(change), at(99), &room()).await.unwrap().len(),
                1
            );
            store
                .record_deliveries(&[(id, DeliveryOutcome::Failed { retry_at: None })], at(change))
                .await
                .unwrap();
        }
        let want = usize::from(change == 7);
        assert_eq!(store.drop_failing(3).await.unwrap().len(), want, "change {change}");
        if want == 1 {
            break;
        }
    }
}

async fn velocity_is_what_was_appended_in_a_cycle(database: Database) {
    const DAY: i64 = 86_400;
    let store = ClaimingStore::new(database.open().await);
    let id = subscribe(&store, "a", "https://callback.test/").await.id.resource;
    store.record(id, &poll(at(10), &["1", "2"])).await.unwrap();
    assert_eq!(store.measure(at(0), at(DAY)).await.unwrap(), 0, "it was made just then");
    assert_eq!(store.measure(at(1), at(DAY)).await.unwrap(), 1);
    let measured = resource(&store, id).await.status;
    assert_eq!((measured.velocity, measured.entries_count_since_last_maintenance), (2, 0));
    assert_eq!(measured.last_maintenance_at, at(DAY));
    assert_eq!(store.measure(at(DAY), at(DAY + 1)).await.unwrap(), 0, "not twice");

    // A poll that began before the measurement does not undo it.
    store.record(id, &poll(at(DAY + 5), &["3"])).await.unwrap();
    let after = resource(&store, id).await.status;
    assert_eq!((after.velocity, after.entries_count_since_last_maintenance), (2, 1));
    assert_eq!(after.last_maintenance_at, at(DAY));
}

async fn s44_what_nobody_watches_is_forgotten_in_the_end(database: Database) {
    const DAY: i64 = 86_400;
    let store = ClaimingStore::new(database.open().await);
    let kept = subscribe(&store, "kept", "https://callback.test/").await.id.resource;
    let left = subscribe(&store, "left", "https://callback.test/").await.id.resource;
    store.record(left, &poll(at(1), &["1", "2"])).await.unwrap();
    let one = request("left", "https://callback.test/");
    let ended = store.unsubscribe(None, &one.topic, &one.callback, None).await.unwrap();
    let never = store.ensure(&topic("never"), at(DAY)).await.unwrap().id;
    assert!(ended);

    let forget = |days: i64| store.forget_unwatched(at((days - 30) * DAY), at(days * DAY));
    assert_eq!(forget(1).await.unwrap(), 0, "now it is noted");
    // Who comes back is told of nothing old, and begins the thirty days anew by leaving.
    assert_eq!(store.subscribe(&one, at(29 * DAY)).await.unwrap().id.resource, left);
    store.unsubscribe(None, &one.topic, &one.callback, None).await.unwrap();
    assert_eq!(forget(30).await.unwrap(), 0);
    // What is being read is let be.
    let claimed = store.claim_resource(never, at(31 * DAY), at(31 * DAY + 60)).await.unwrap();
    assert!(claimed.is_some());
    assert_eq!(forget(31).await.unwrap(), 0);
    assert_eq!(forget(32).await.unwrap(), 1, "nobody ever came");
    assert_eq!(store.get(never).await.unwrap(), None);
    assert!(store.get(left).await.unwrap().is_some());
    assert_eq!(forget(61).await.unwrap(), 1);
    assert_eq!(store.get(left).await.unwrap(), None);
    assert!(store.get(kept).await.unwrap().is_some());

    // It can be watched again, from the start.
    let again = store.subscribe(&one, at(62 * DAY)).await.unwrap().id.resource;
    assert_ne!(again, left);
    assert_eq!(store.record(again, &poll(at(62 * DAY), &["1"])).await.unwrap().new, 1);
}

async fn t05_a_resource_that_never_had_a_subscriber_is_kept_for_a_short_time(database: Database) {
    let store = ClaimingStore::new(database.open().await);
    let kept = subscribe(&store, "kept", "https://callback.test/").await.id.resource;
    let left = subscribe(&store, "left", "https://callback.test/").await.id.resource;
    let one = request("left", "https://callback.test/");
    assert!(store.unsubscribe(None, &one.topic, &one.callback, None).await.unwrap());
    let refused = store.ensure(&topic("refused"), at(100)).await.unwrap().id;
    store.record(refused, &poll(at(101), &["1", "2"])).await.unwrap();

    assert_eq!(store.forget_never_watched(at(99), at(200)).await.unwrap(), 0);
    let claimed = store.claim_resource(refused, at(200), at(260)).await.unwrap();
    assert!(claimed.is_some());
    assert_eq!(store.forget_never_watched(at(200), at(250)).await.unwrap(), 0, "it is polled");
    assert_eq!(store.forget_never_watched(at(200), at(300)).await.unwrap(), 1);
    assert_eq!(store.get(refused).await.unwrap(), None);
    assert!(store.get(left).await.unwrap().is_some());
    assert!(store.get(kept).await.unwrap().is_some());
}

async fn gauges_count_what_there_is(database: Database) {
    let store = ClaimingStore::new(database.open().await);
    // What each cell has is tested in `cells.rs`.
    let gauges = async |now| Gauges { cells: Vec::new(), ..store.gauges(now).await.unwrap() };
    assert_eq!(gauges(at(0)).await, Gauges::default());
    let well = subscribe(&store, "a", "https://callback.test/").await.id.resource;
    let ill = subscribe(&store, "b", "https://callback.test/").await.id.resource;
    let mut found = poll(at(1), &["1"]);
    store.record(well, &found).await.unwrap();
    found.status.error = "timed_out".to_owned();
    store.record(ill, &found).await.unwrap();
    let intent = Intent::new(IntentMode::Subscribe, request("c", "https://callback.test/"));
    store.enqueue_intent(&intent, at(3)).await.unwrap();
    let oldest_due = OldestDue { deliveries_s: 9, verifications_s: 7, ..OldestDue::default() };
    let want = Gauges {
        resources: 2,
        failing: 1,
        subscriptions: 2,
        due: 2,
        oldest_due,
        pending_verifications: 1,
        cells: Vec::new(),
    };
    assert_eq!(gauges(at(10)).await, want);
    let oldest_due = OldestDue {
        polls_s: 10_000 - 601,
        deliveries_s: 9_999,
        verifications_s: 9_997,
        forwarded_pings_s: 0,
    };
    let later = Gauges { subscriptions: 0, oldest_due, ..want };
    assert_eq!(gauges(at(10_000)).await, later, "the leases have ended");
}

async fn a_database_has_a_size(database: Database) {
    let store = database.open().await;
    assert!(store.size_bytes().await.unwrap() > 100_000);
}

async fn each_transaction_is_reported_to_the_observer(database: Database) {
    let store = database.open().await;
    let reported = Arc::new(Mutex::new(Vec::new()));
    let report = Arc::clone(&reported);
    store.observe_transactions(Arc::new(move |ended: &EndedTransaction| {
        report.lock().unwrap().push((ended.engine, ended.kind));
    }));
    store.poll_factor().await.unwrap();
    store.save_poll_factor(2.0).await.unwrap();
    let engine = if database.url.starts_with("sqlite:") { "sqlite" } else { "postgresql" };
    assert_eq!(*reported.lock().unwrap(), [(engine, "read"), (engine, "write")]);
}

async fn changes_wake_who_waits(database: Database) {
    let store = ClaimingStore::new(database.open().await);
    let signals = store.wake_signals();
    let woken = signals.resources.notified();
    let id = subscribe(&store, "a", "https://callback.test/").await.id.resource;
    woken.await;
    let woken = signals.subscriptions.notified();
    store.record(id, &poll(at(1), &["1"])).await.unwrap();
    woken.await;
    let woken = signals.intents.notified();
    let intent = Intent::new(IntentMode::Subscribe, request("a", "https://callback.test/"));
    store.enqueue_intent(&intent, at(1)).await.unwrap();
    woken.await;
}

async fn the_budget_adds_up_what_all_resources_want(database: Database) {
    let store = ClaimingStore::new(database.open().await);
    assert_eq!(store.planned_polls_per_s(K_LEAST).await.unwrap(), 0.0);
    #[rustfmt::skip]
    let demands = [
        ("a", Demand { unit_ms: 600_000,    least_s: 600 }),
        ("b", Demand { unit_ms: 600_000,    least_s: 3_600 }),
        ("c", Demand { unit_ms: 0,          least_s: 1_800 }),
        ("d", Demand { unit_ms: 10_000_000, least_s: 10_000 }),
        ("e", Demand { unit_ms: 10_000_000, least_s: 80_000 }),
    ];
    for (name, demand) in demands {
        let id = subscribe(&store, name, "https://callback.test/").await.id.resource;
        store.record(id, &Poll { demand, ..poll(at(10), &[]) }).await.unwrap();
    }
    store.ensure(&topic("nobody's"), at(0)).await.unwrap();
    for stretch in [1.0, 1.5, 4.0, 8.0, 1_000.0] {
        let k = K_LEAST * stretch;
        let want: f64 = demands.iter().map(|(_, demand)| 1.0 / demand.period_s(k)).sum();
        let planned = store.planned_polls_per_s(k).await.unwrap();
        assert!((planned / want - 1.0).abs() < 1e-3, "{stretch}: {planned}, not {want}");
    }
}

async fn the_dial_is_shared_and_kept(database: Database) {
    let nodes = [database.open().await, database.open().await];
    assert_eq!(nodes[0].poll_factor().await.unwrap(), K_LEAST);
    nodes[0].save_poll_factor(0.5).await.unwrap();
    assert_eq!(nodes[1].poll_factor().await.unwrap(), 0.5);
    nodes[1].save_poll_factor(0.6).await.unwrap();
    for node in &nodes {
        node.close().await;
    }
    assert_eq!(database.open().await.poll_factor().await.unwrap(), 0.6, "after a restart");
}

async fn a_store_that_takes_writes_is_ready(database: Database) {
    let store = database.open().await;
    store.ready().await.unwrap();
    store.close().await;
    assert!(store.ready().await.is_err());
}
