//! What moves a cursor, and what does not.

use feedgate::metrics::TextFormat;
use feedgate_core::record::Seq;

use super::{Node, told};
use crate::store::{on_both_stores, on_one_store};
use crate::support::feeds::entry_ids;
use crate::support::postgres::Database;
use crate::support::subscriber::{Behavior, Subscriber};

on_both_stores!(
    a_callback_that_says_gone_is_told_no_more,
    what_failed_is_brought_with_what_came_since,
    many_records_come_in_order_in_several_deliveries,
);

on_one_store!(
    only_a_2xx_moves_the_cursor,
    a_callback_that_nobody_serves_keeps_its_subscription,
    what_is_brought_again_is_not_late,
);

/// Row N-11, and WebSub 7: only 2xx is success.
async fn only_a_2xx_moves_the_cursor(database: Database) {
    let node = Node::start(&database).await;
    let subscriber = Subscriber::start().await;
    let cases = [(200, 1), (204, 1), (299, 1), (301, 0), (307, 0), (400, 0), (404, 0), (500, 0)];
    let mut resource = None;
    for (status, _) in cases {
        let path = format!("/{status}");
        subscriber.set(&path, Behavior::Failing(status));
        resource = Some(node.subscribe(&subscriber.url(&path), |_| {}).await.id.resource);
    }
    node.append(resource.unwrap(), 1..=1).await;
    for (status, cursor) in cases {
        let callback = subscriber.url(&format!("/{status}"));
        node.until(&callback, |held| {
            held.is_some_and(|held| (held.cursor, held.failures) != (Seq(0), 0))
        })
        .await;
        let held = node.now(&callback).await.unwrap();
        assert_eq!(held.cursor, Seq(cursor), "{status}");
        assert_eq!(held.failures, u32::from(cursor == 0), "{status}");
    }
    node.stop().await;
}

/// WebSub 7: 410 ends a subscription.
async fn a_callback_that_says_gone_is_told_no_more(database: Database) {
    let node = Node::start(&database).await;
    let subscriber = Subscriber::start().await;
    subscriber.set("/gone", Behavior::Failing(410));
    let gone = subscriber.url("/gone");
    let resource = node.subscribe(&gone, |_| {}).await.id.resource;
    node.append(resource, 1..=1).await;
    node.until(&gone, |held| held.is_none()).await;
    assert_eq!(subscriber.notified("/gone").len(), 1);
    node.stop().await;
}

/// Rows N-12 and N-16.
async fn what_failed_is_brought_with_what_came_since(database: Database) {
    let node = Node::start(&database).await;
    let subscriber = Subscriber::start().await;
    subscriber.set("/", Behavior::Failing(500));
    let callback = subscriber.url("/");
    let subscription = node.subscribe(&callback, |_| {}).await;
    node.append(subscription.id.resource, 1..=2).await;
    node.until(&callback, |held| held.is_some_and(|held| held.failures == 1)).await;

    node.append(subscription.id.resource, 3..=3).await;
    subscriber.set("/", Behavior::Accepting);
    // Its next attempt is seconds away; asking for a replay is a way not to wait.
    node.store.replay(subscription.id, Seq(0), feedgate::jobs::runner::now()).await.unwrap();
    node.until(&callback, told(3)).await;

    let notified = subscriber.notified("/");
    let brought: Vec<Vec<String>> =
        notified.iter().map(|request| entry_ids(&request.text())).collect();
    let ids = |numbers: &[usize]| -> Vec<String> {
        numbers.iter().map(|n| format!("tag:tides.test,2026:{n}")).collect()
    };
    assert_eq!(brought, [ids(&[2, 1]), ids(&[3, 2, 1])], "newest first (row N-16)");
    assert_eq!(notified[0].header("x-superfeedr-retried"), None);
    node.stop().await;
}

async fn many_records_come_in_order_in_several_deliveries(database: Database) {
    let node = Node::start(&database).await;
    let subscriber = Subscriber::start().await;
    let callback = subscriber.url("/");
    let resource = node.subscribe(&callback, |_| {}).await.id.resource;
    node.append(resource, 1..=250).await;
    node.until(&callback, told(250)).await;

    let notified = subscriber.notified("/");
    let ranges: Vec<&str> =
        notified.iter().filter_map(|request| request.header("x-feedgate-seq")).collect();
    assert_eq!(ranges, ["1-100", "101-200", "201-250"], "each number once, in order (rule D2)");
    let lengths: Vec<usize> =
        notified.iter().map(|request| entry_ids(&request.text()).len()).collect();
    assert_eq!(lengths, [100, 100, 50]);
    node.stop().await;
}

/// WebSub 7: failures do not end a subscription.
async fn a_callback_that_nobody_serves_keeps_its_subscription(database: Database) {
    let node = Node::start(&database).await;
    // A port that was free a moment ago: nobody listens there.
    let socket = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
    let callback = format!("http://{}/", socket.local_addr().unwrap());
    drop(socket);
    let resource = node.subscribe(&callback, |_| {}).await.id.resource;
    node.append(resource, 1..=1).await;
    node.until(&callback, |held| held.is_some_and(|held| held.failures == 1)).await;
    assert_eq!(node.now(&callback).await.unwrap().cursor, Seq(0));
    node.stop().await;
}

async fn what_is_brought_again_is_not_late(database: Database) {
    let node = Node::start(&database).await;
    let subscriber = Subscriber::start().await;
    let callback = subscriber.url("/");
    let id = node.subscribe(&callback, |_| {}).await.id;
    node.append(id.resource, 1..=2).await;
    node.until(&callback, told(2)).await;
    node.store.replay(id, Seq(0), feedgate::jobs::runner::now()).await.unwrap();
    subscriber.until("/", |told| told.len() == 2).await;
    node.until(&callback, told(2)).await;
    node.append(id.resource, 3..=3).await;
    node.until(&callback, told(3)).await;

    let text = node.metrics.encode(&Default::default(), TextFormat::OpenMetrics);
    for line in ["feedgate_delivery_seconds_count 3", "feedgate_delivery_delay_seconds_count 2"] {
        assert!(text.lines().any(|held| held == line), "{line} not in:\n{text}");
    }
    node.stop().await;
}
