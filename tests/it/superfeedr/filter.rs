//! Filters: who wants a part of a feed is sent that part, and nothing is requested for the rest
//! (row Q-5).

use std::fmt::Write;

use http::header::ETAG;
use http::{Method, StatusCode};
use serde_json::Value;

use super::streams::EVENTS;
use super::{Retrieval, World};
use crate::store::on_both_stores;
use crate::support::feeds::{entry_id, entry_ids};
use crate::support::gateway::Gateway;
use crate::support::postgres::Database;

on_both_stores!(
    q05_only_entries_that_match_the_filter_are_sent,
    q05_a_filter_is_chosen_again_by_each_renewal,
    q05_what_an_account_retrieves_and_streams_can_be_filtered,
);

/// A feed with the items 1 to `items`, each of which says whether its number is even.
fn numbered_rss(items: usize) -> String {
    let mut feed = "<rss version=\"2.0\"><channel><title>tides</title>\
                    <link>https://tides.test/</link>"
        .to_owned();
    for n in (1..=items).rev() {
        let (id, word) = (entry_id("tides", n), if n.is_multiple_of(2) { "Even" } else { "Odd" });
        write!(
            feed,
            "<item><title>{word} {n}</title><guid isPermaLink=\"false\">{id}</guid></item>"
        )
        .unwrap();
    }
    feed + "</channel></rss>"
}

fn ids(numbers: &[usize]) -> Vec<String> {
    numbers.iter().map(|n| entry_id("tides", *n)).collect()
}

/// A gateway, and a publisher of a feed with two items.
async fn world(database: Database) -> World {
    let gateway = Gateway::start(&database, &[]).await;
    let world = World::on(database, gateway).await;
    world.publisher.put_rss("/feed", numbered_rss(2));
    world
}

/// Publishes the items 1 to `items`.
async fn publish(world: &World, items: usize) {
    world.publisher.put_rss("/feed", numbered_rss(items));
    world.gateway.post("/ping", &[("url", &world.topic)]).await;
}

async fn subscribe(world: &World, path: &str, further: &[(&str, &str)]) -> (StatusCode, String) {
    let callback = world.subscriber.url(path);
    let own = [
        ("hub.mode", "subscribe"),
        ("hub.topic", world.topic.as_str()),
        ("hub.callback", callback.as_str()),
    ];
    world.gateway.superfeedr(&[&own, further].concat()).await
}

/// What is listed of the subscription with this callback.
async fn listed(world: &World, path: &str) -> Value {
    let callback = world.subscriber.url(path);
    let list = world.ask(Method::GET, &[("hub.mode", "list")], &[]).await.json();
    let mut listed = list.as_array().unwrap().iter().map(|one| &one["subscription"]);
    listed.find(|one| one["endpoint"] == callback).unwrap().clone()
}

/// The ids of all entries that a callback was sent, and the requests that sent them.
fn received(world: &World, path: &str) -> (Vec<String>, usize) {
    let all = world.subscriber.notified(path);
    (all.iter().flat_map(|one| entry_ids(&one.text())).collect(), all.len())
}

async fn q05_only_entries_that_match_the_filter_are_sent(database: Database) {
    let world = world(database).await;
    for (path, further) in [
        ("/all", &[("format", "atom")][..]),
        ("/even", &[("filter", "EVEN")]),
        ("/neither", &[("filter", "neither"), ("format", "json")]),
    ] {
        let answer = subscribe(&world, path, further).await;
        assert_eq!(answer.0, StatusCode::NO_CONTENT, "{}", answer.1);
    }
    assert_eq!(listed(&world, "/all").await["filter"], Value::Null);
    assert_eq!(listed(&world, "/even").await["filter"], "EVEN");
    assert_eq!(listed(&world, "/even").await["format"], "atom");

    for items in 3..=6 {
        publish(&world, items).await;
        let newest = entry_id("tides", items);
        world
            .subscriber
            .until("/all", |all| all.iter().any(|one| one.text().contains(&newest)))
            .await;
    }
    world.gateway.comes_to_rest().await;
    assert_eq!(received(&world, "/all").0, ids(&[3, 4, 5, 6]));
    assert_eq!(received(&world, "/even"), (ids(&[4, 6]), 2), "no request without an entry");
    assert_eq!(received(&world, "/neither"), (vec![], 0));
    for path in ["/all", "/even", "/neither"] {
        let delivery = &listed(&world, path).await["delivery"];
        assert_eq!((&delivery["state"], &delivery["lag"]), (&"ok".into(), &0.into()), "{path}");
        assert_eq!(delivery["cursor"], 6, "{path}");
    }
    let last = world.subscriber.notified("/even").pop().unwrap();
    assert_eq!(last.header("x-feedgate-seq"), Some("6-6"), "the fifth was left out before");

    let callback = world.subscriber.url("/even");
    let replay = [
        ("hub.mode", "replay"),
        ("hub.topic", world.topic.as_str()),
        ("hub.callback", callback.as_str()),
        ("count", "4"),
    ];
    assert_eq!(world.gateway.superfeedr(&replay).await.0, StatusCode::NO_CONTENT);
    world.subscriber.until("/even", |all| all.len() == 3).await;
    let again = entry_ids(&world.subscriber.notified("/even").pop().unwrap().text());
    assert_eq!(again, ids(&[6, 4]), "a replay is filtered, too");
}

async fn q05_a_filter_is_chosen_again_by_each_renewal(database: Database) {
    let world = world(database).await;
    for (further, want) in [
        (&[("filter", "even")][..], Value::from("even")),
        (
            &[("filter", "\"odd one\" | even site:tides.test")],
            "\"odd one\" | even site:tides.test".into(),
        ),
        (&[("sanitize", "true")], Value::Null),
        // The choice is kept until the callback is verified.
        (&[("filter", "odd"), ("hub.verify", "async")], "odd".into()),
    ] {
        let (status, text) = subscribe(&world, "/renewed", further).await;
        assert!(status.is_success(), "{status} {text}");
        world.gateway.comes_to_rest().await;
        assert_eq!(listed(&world, "/renewed").await["filter"], want);
    }

    for (further, reason) in [
        (&[("filter", "-even")][..], "the query requires nothing of an entry"),
        (&[("filter", "\"even")], "a quotation mark is not closed"),
        (&[("filter", "sight:a")], "sight: is not a flag"),
        (
            &[("filter", "even"), ("format", "raw")],
            "filter has an effect with format=atom or format=json only.",
        ),
    ] {
        let (status, text) = subscribe(&world, "/refused", further).await;
        assert_eq!(status, StatusCode::UNPROCESSABLE_ENTITY, "{text}");
        assert!(text.contains(reason), "{text}");
    }
    let callback = world.subscriber.url("/refused");
    let hub = [
        ("hub.mode", "subscribe"),
        ("hub.topic", world.topic.as_str()),
        ("hub.callback", callback.as_str()),
        ("filter", "even"),
    ];
    let port = world.subscriber.port().to_string();
    let cloud = [
        ("notifyProcedure", ""),
        ("port", port.as_str()),
        ("path", "/refused"),
        ("protocol", "http-post"),
        ("url1", world.topic.as_str()),
        ("filter", "even"),
    ];
    for (path, form) in [("/hub", &hub[..]), ("/rsscloud/pleaseNotify", &cloud)] {
        let (_, text) = world.gateway.post(path, form).await;
        assert!(text.contains("filter has no effect here"), "{path}: {text}");
    }
    assert_eq!(world.subscriber.requests_to("/refused").len(), 0);
}

async fn q05_what_an_account_retrieves_and_streams_can_be_filtered(database: Database) {
    let world = world(database).await;
    world.publisher.put_rss("/feed", numbered_rss(6));
    let further = [("filter", "odd"), ("retrieve", "true")];
    let answer = subscribe(&world, "/odd", &further).await;
    assert_eq!((answer.0, entry_ids(&answer.1)), (StatusCode::OK, ids(&[5, 3, 1])));

    let (second, callback) = (entry_id("tides", 2), world.subscriber.url("/odd"));
    let cases: [Retrieval<'_>; 5] = [
        (&[], &[6, 5, 4, 3, 2, 1]),
        (&[("filter", "odd")], &[5, 3, 1]),
        (&[("filter", "odd"), ("count", "2")], &[5, 3]),
        (&[("filter", "odd"), ("after", &second)], &[5, 3]),
        (&[("filter", "neither")], &[]),
    ];
    let mut etags = Vec::new();
    for (further, want) in cases {
        let got = world.retrieve(further).await;
        assert_eq!((got.status, entry_ids(&got.text)), (StatusCode::OK, ids(want)), "{further:?}");
        etags.push(got.header(ETAG).to_owned());
    }
    assert_ne!(etags[0], etags[1]);
    assert_ne!(etags[1], etags[4]);
    let combined = [
        ("hub.mode", "retrieve"),
        ("hub.callback", callback.as_str()),
        ("filter", "odd"),
        ("count", "1"),
    ];
    let combined = world.ask(Method::GET, &combined, &[]).await;
    assert_eq!(entry_ids(&combined.text), ids(&[5]), "{}", combined.text);
    let refused = world.retrieve(&[("filter", "-odd"), ("wait", "stream")]).await;
    assert_eq!(refused.status, StatusCode::UNPROCESSABLE_ENTITY, "{}", refused.text);

    let odd = [("filter", "odd"), ("count", "1")];
    let mut stream = world.open(&odd, &[EVENTS]).await;
    assert_eq!(stream.json_event().await.1, ids(&[5]));
    for items in 7..=9 {
        publish(&world, items).await;
        world.gateway.archive_holds(&world.topic, &entry_id("tides", items)).await;
    }
    let (_, seventh) = stream.json_event().await;
    let (position, ninth) = stream.json_event().await;
    assert_eq!((seventh, ninth), (ids(&[7]), ids(&[9])), "the eighth is no event");
    // Who comes back goes on behind what was left out.
    let mut again = world.open(&odd, &[EVENTS, ("last-event-id", &position)]).await;
    publish(&world, 11).await;
    assert_eq!(again.json_event().await.1, ids(&[11]));
}
