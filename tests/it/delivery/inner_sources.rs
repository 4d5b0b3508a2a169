//! What comes from inside a private network under a name that looks public (H4).

use feedgate_core::account::AccountId;
use feedgate_core::poll::{NewContent, Poll};
use feedgate_core::resource::ResourceKind;
use feedgate_core::status::Status;
use feedgate_core::subscription::{Format, Statuses};
use feedgate_core::visibility::SourceNetwork;
use feedgate_protocol::Protocol;

use super::{Node, poll, told};
use crate::store::on_both_stores;
use crate::support::postgres::Database;
use crate::support::subscriber::Subscriber;

on_both_stores!(h04_strangers_are_sent_nothing_of_a_feed_whose_name_now_leads_inside);

async fn h04_strangers_are_sent_nothing_of_a_feed_whose_name_now_leads_inside(database: Database) {
    let node = Node::start(&database).await;
    let subscriber = Subscriber::start().await;
    let anonymous_clients = [
        ("/atom", Protocol::WebSub, Format::Atom, Statuses::Always),
        ("/json", Protocol::WebSub, Format::Json, Statuses::Never),
        ("/raw", Protocol::WebSub, Format::Raw, Statuses::Never),
        ("/cloud", Protocol::HttpPost, Format::Atom, Statuses::Never),
    ];
    let mut id = None;
    for (path, protocol, format, statuses) in &anonymous_clients {
        let callback = subscriber.url(path);
        let subscribed = node.subscribe(&callback, |request| {
            (request.protocol, request.format, request.statuses) =
                (protocol.clone(), *format, *statuses);
        });
        id = Some(subscribed.await.id.resource);
    }
    let id = id.unwrap();
    let callback = subscriber.url("/account");
    let of_account = node.subscribe(&callback, |request| {
        request.account = Some(AccountId(7));
    });
    of_account.await;
    node.append(id, 1..=1).await;
    for path in ["/atom", "/json", "/cloud", "/account"] {
        subscriber.until(path, |told| told.len() == 1).await;
    }

    // The name of the feed leads inside from now on, with a status that would be told.
    let status =
        Status { version: 1, title: "Salaries".to_owned(), ..poll(ResourceKind::Feed).status };
    let source_network = Some(SourceNetwork::Inner);
    let found = NewContent::Nothing;
    let moved = Poll { source_network, status, found, ..poll(ResourceKind::Feed) };
    node.store.record(id, &moved).await.unwrap();
    node.append(id, 2..=2).await;
    subscriber
        .until("/account", |told| told.last().is_some_and(|last| last.text().contains("2026:2")))
        .await;
    for path in ["/atom", "/json", "/cloud"] {
        // They are not owed it any more either.
        node.until(&subscriber.url(path), told(2)).await;
        assert_eq!(subscriber.notified(path).len(), 1, "{path} got what was public, and no more");
    }
    node.change_body(id, Some("text/plain"), b"salaries").await;
    subscriber.until("/account", |told| told.len() >= 3).await;
    node.until(&subscriber.url("/raw"), told(1)).await;
    assert!(subscriber.notified("/raw").is_empty());
    node.stop().await;
}
