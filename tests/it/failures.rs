//! Publishers and subscribers who give trouble: they hurt nobody but themselves, and are
//! told later what they missed.

use std::fmt::Write;
use std::time::{Duration, SystemTime};

use http::StatusCode;

use crate::store::{on_both_stores, on_one_store};
use crate::support::feeds::{entry_id, entry_ids, rss};
use crate::support::gateway::Gateway;
use crate::support::postgres::Database;
use crate::support::publisher::Publisher;
use crate::support::subscriber::{Behavior, Subscriber};

on_both_stores!(
    a_callback_that_fails_holds_nobody_up_and_is_told_later,
    a_publisher_who_fails_and_recovers_loses_no_entry,
    h14_what_is_published_while_a_new_topic_fails_is_delivered,
);

on_one_store!(who_does_not_agree_is_not_subscribed);

async fn a_callback_that_fails_holds_nobody_up_and_is_told_later(database: Database) {
    // One attempt at a time for a host: a hanging one must give its place back.
    let settings =
        [("FEEDGATE_DELIVERY_TIMEOUT_S", "2"), ("FEEDGATE_DELIVERY_CONCURRENCY_PER_HOST", "2")];
    let gateway = Gateway::start(&database, &settings).await;
    let publisher = Publisher::start().await;
    let subscriber = Subscriber::start().await;
    let topic = publisher.url("/feed.xml");
    publisher.put_rss("/feed.xml", rss("tides", 0..1));
    for path in ["/failing", "/hanging", "/willing"] {
        gateway.subscribe_superfeedr(&topic, &subscriber.url(path), "atom").await;
    }
    gateway.archive_holds(&topic, &entry_id("tides", 0)).await;
    subscriber.set("/failing", Behavior::Failing(500));
    subscriber.set("/hanging", Behavior::Hanging);

    for upto in 1..=2 {
        publisher.put_rss("/feed.xml", rss("tides", 0..upto + 1));
        gateway.post("/ping", &[("url", &topic)]).await;
        let id = entry_id("tides", upto);
        subscriber.until("/willing", |told| told.iter().any(|n| n.text().contains(&id))).await;
    }
    subscriber.until("/failing", |told| !told.is_empty()).await;
    subscriber.until("/hanging", |told| !told.is_empty()).await;

    // Back again, it is brought what it missed, newest first and in one piece.
    subscriber.set("/failing", Behavior::Accepting);
    let missed = [2, 1].map(|n| entry_id("tides", n));
    subscriber.until("/failing", |told| told.iter().any(|n| entry_ids(&n.text()) == missed)).await;
    let unsubscribe = [("hub.mode", "unsubscribe"), ("hub.topic", &topic)];
    let hanging = subscriber.url("/hanging");
    gateway.superfeedr(&[&unsubscribe[..], &[("hub.callback", &hanging)]].concat()).await;
    gateway.comes_to_rest().await;
}

async fn who_does_not_agree_is_not_subscribed(database: Database) {
    let gateway = Gateway::start(&database, &[]).await;
    let publisher = Publisher::start().await;
    let subscriber = Subscriber::start().await;
    let topic = publisher.url("/feed.xml");
    publisher.put_rss("/feed.xml", rss("tides", 0..1));
    subscriber.set("/refusing", Behavior::Refusing);
    let callback = subscriber.url("/refusing");
    let form = [("hub.mode", "subscribe"), ("hub.topic", &topic), ("hub.callback", &callback)];

    // The hub takes the request, and asks (WebSub `#hub-verifies-intent`).
    let (status, _) = gateway.post("/hub", &form).await;
    assert_eq!(status, StatusCode::ACCEPTED);
    subscriber.verified("/refusing", 1).await;
    // Superfeedr's API says so at once, if asked to (row S-3).
    let (status, why) = gateway.superfeedr(&[&form[..], &[("hub.verify", "sync")]].concat()).await;
    assert_eq!(status, StatusCode::UNPROCESSABLE_ENTITY, "{why}");
    // So does rssCloud, whose answer is a 200 all the same.
    let form = [
        ("port", subscriber.port().to_string()),
        ("path", "/refusing".to_owned()),
        ("protocol", "http-post".to_owned()),
        ("url1", topic.clone()),
    ];
    let form = form.each_ref().map(|(name, value)| (*name, value.as_str()));
    let (status, why) = gateway.post("/pleaseNotify", &form).await;
    assert!(status == StatusCode::OK && why.contains("success=\"false\""), "{status}: {why}");

    // Nobody is subscribed, so there is nobody to be told.
    let (_, list) = gateway.superfeedr(&[("hub.mode", "list")]).await;
    assert_eq!(list, "[]");
    gateway.comes_to_rest().await;
}

async fn a_publisher_who_fails_and_recovers_loses_no_entry(database: Database) {
    let gateway = Gateway::start(&database, &[]).await;
    let publisher = Publisher::start().await;
    let subscriber = Subscriber::start().await;
    let topic = publisher.url("/feed.xml");
    publisher.put_rss("/feed.xml", rss("tides", 0..1));
    gateway.subscribe_superfeedr(&topic, &subscriber.url("/callback"), "atom").await;
    gateway.archive_holds(&topic, &entry_id("tides", 0)).await;

    publisher.fail("/feed.xml", StatusCode::NOT_FOUND);
    gateway.post("/ping", &[("url", &topic)]).await;
    let fetched = publisher.fetches("/feed.xml").len();
    publisher.fetched("/feed.xml", fetched.max(2)).await;
    publisher.put_rss("/feed.xml", rss("tides", 0..2));
    gateway.post("/ping", &[("url", &topic)]).await;
    let id = entry_id("tides", 1);
    subscriber.until("/callback", |told| told.iter().any(|n| n.text().contains(&id))).await;
}

/// A feed with these items and their dates, newest first.
fn dated(items: &[(usize, SystemTime)]) -> String {
    let mut feed = "<rss version=\"2.0\"><channel><title>tides</title>".to_owned();
    for (n, date) in items.iter().rev() {
        let (id, date) = (entry_id("tides", *n), httpdate::fmt_http_date(*date));
        write!(
            feed,
            "<item><title>Item {n}</title><guid isPermaLink=\"false\">{id}</guid>\
             <pubDate>{date}</pubDate></item>"
        )
        .unwrap();
    }
    feed + "</channel></rss>"
}

async fn h14_what_is_published_while_a_new_topic_fails_is_delivered(database: Database) {
    let gateway = Gateway::start(&database, &[]).await;
    let publisher = Publisher::start().await;
    let subscriber = Subscriber::start().await;
    let topic = publisher.url("/feed.xml");
    publisher.fail("/feed.xml", StatusCode::SERVICE_UNAVAILABLE);
    for path in ["/first", "/second"] {
        gateway.subscribe_superfeedr(&topic, &subscriber.url(path), "atom").await;
    }
    gateway.subscribe_websub(&topic, &subscriber.url("/raw"), &[]).await;
    publisher.fetched("/feed.xml", 1).await;

    let (now, hour) = (SystemTime::now(), Duration::from_secs(3_600));
    let items: Vec<(usize, SystemTime)> = vec![
        (1, now - 9 * hour),
        (2, now - hour),
        // Dates have no fractions of a second, and the clocks of publishers differ.
        (3, now + Duration::from_secs(1)),
        (4, now + Duration::from_secs(2)),
        (5, now + Duration::from_secs(3)),
        (6, now + Duration::from_secs(4)),
    ];
    publisher.put_rss("/feed.xml", dated(&items));
    gateway.post("/ping", &[("url", &topic)]).await;
    for path in ["/first", "/second"] {
        subscriber.until(path, |told| !told.is_empty()).await;
        let told: Vec<_> =
            subscriber.notified(path).iter().flat_map(|note| entry_ids(&note.text())).collect();
        assert_eq!(told, [6, 5, 4, 3].map(|n| entry_id("tides", n)), "{path}");
    }
    subscriber.until("/raw", |told| !told.is_empty()).await;
    assert_eq!(subscriber.notified("/raw")[0].text(), dated(&items));
    gateway.comes_to_rest().await;
    assert_eq!(subscriber.notified("/first").len(), 1);
}
