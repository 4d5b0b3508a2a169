//! The main job: a feed changes, and a webhook, an rssCloud callback, changes.xml and
//! the archive all show it.

use crate::store::on_both_stores;
use crate::support::feeds::{entry_id, entry_ids, rss};
use crate::support::gateway::Gateway;
use crate::support::postgres::Database;
use crate::support::publisher::Publisher;
use crate::support::reader::Reader;
use crate::support::subscriber::{Subscriber, is_signed, named};

on_both_stores!(a_change_is_shown_in_every_way);

async fn a_change_is_shown_in_every_way(database: Database) {
    let gateway = Gateway::start(&database, &[]).await;
    let publisher = Publisher::start().await;
    let subscriber = Subscriber::start().await;
    let topic = publisher.url("/tides.xml");
    publisher.put_rss("/tides.xml", rss("tides", 1..3));

    let secret = [("hub.secret", "opensesame")];
    gateway.subscribe_websub(&topic, &subscriber.url("/websub"), &secret).await;
    gateway.subscribe_superfeedr(&topic, &subscriber.url("/superfeedr"), "json").await;
    for protocol in ["http-post", "xml-rpc", "soap"] {
        let path = format!("/{protocol}");
        gateway.subscribe_rsscloud(protocol, &topic, &subscriber, &path).await;
    }
    gateway.archive_holds(&topic, &entry_id("tides", 2)).await;

    publisher.put_rss("/tides.xml", rss("tides", 1..4));
    let tested = ["http-post", "xml-rpc", "soap"].map(|protocol| {
        let path = format!("/{protocol}");
        (subscriber.notified(&path).len(), path)
    });
    let (status, text) = gateway.post("/rsscloud/ping", &[("url", &topic)]).await;
    assert!(text.contains("success=\"true\""), "{status}: {text}");

    // WebSub brings the topic as it is, signed.
    subscriber.until("/websub", |notifications| !notifications.is_empty()).await;
    let notification = subscriber.notified("/websub").remove(0);
    assert!(is_signed(&notification, "opensesame"), "{:?}", notification.headers);
    assert_eq!(notification.text(), rss("tides", 1..4));

    // Superfeedr's webhook brings what is new, and only that.
    subscriber.until("/superfeedr", |notifications| !notifications.is_empty()).await;
    let notification = subscriber.notified("/superfeedr").remove(0);
    assert_eq!(entry_ids(&notification.text()), [entry_id("tides", 3)]);

    // rssCloud says where to look.
    for (tests, path) in tested {
        subscriber.until(&path, |notifications| notifications.len() > tests).await;
        let notification = subscriber.notified(&path).pop().unwrap();
        assert_eq!(named(&notification).as_deref(), Some(topic.as_str()), "{path}");
    }

    // The archive has everything, in the order in which it came.
    let mut reader = Reader::default();
    reader.catch_up(&gateway.archive_of(&topic)).await.unwrap();
    assert_eq!(reader.processed, [1, 2, 3].map(|n| entry_id("tides", n)));

    // changes.xml has the ping.
    let (status, changes) = gateway.get("/changes.xml").await;
    assert!(status.is_success() && changes.contains(&format!("\"{topic}\"")), "{changes}");
    gateway.comes_to_rest().await;
}
