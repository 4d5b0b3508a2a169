//! Events lead to the attempt, the entries and the feed that they are about, and to nobody else's.

use feedgate_protocol::standard_webhooks;
use http::StatusCode;

use super::{Visitor, link, subscribe, world_of_two, world_of_two_with};
use crate::support::feeds::{between, rss};
use crate::support::subscriber::{Behavior, is_signed};
use crate::support::until;
use crate::support::world::World;

/// This machine is not in the operator's networks, in which everybody sees all events.
const NOBODY: (&str, &str) = ("FEEDGATE_METRICS_NETWORKS", "203.0.113.0/24");

/// Returns the address of the page of the newest event with these words.
fn event(page: &str, words: &str) -> String {
    let (before, _) =
        page.split_once(&format!("\">{words}</a>")).unwrap_or_else(|| panic!("{page}"));
    let (_, number) = before.rsplit_once("console/events/").unwrap();
    format!("/console/events/{number}")
}

/// Publishes an entry, and waits until it was sent to ada and the events are in the log.
async fn notify(world: &World, ada: &Visitor<'_>) {
    world.put_tides(4);
    world.gateway.post("/ping", &[("url", &world.topic)]).await;
    world.subscriber.until("/ada", |received| !received.is_empty()).await;
    until("the notification is in the log", async || {
        ada.page("/console/live").await.contains(">delivered</a>")
    })
    .await;
}

#[tokio::test]
async fn c03_an_event_leads_to_its_attempt_its_entry_and_its_feed() {
    let world = world_of_two_with(&[NOBODY]).await;
    let ada = Visitor::sign_in(&world, "ada", "ada").await;
    let bob = Visitor::sign_in(&world, "bob", "bob").await;
    let root = Visitor::sign_in(&world, "root", "root").await;
    let feed = link(&ada.page("/console/feeds").await, "console/feeds");
    let subscription = link(&ada.page("/console/subscriptions").await, "console/subscriptions");
    notify(&world, &ada).await;
    let notified = event(&ada.page("/console/live").await, "delivered");
    until("the attempt is stored", async || ada.page(&notified).await.contains("/attempts/")).await;
    let page = ada.page(&notified).await;
    let source = format!("href=\"{}\"", world.topic);
    for part in [&feed, &subscription, &format!("{feed}/entries/4"), &source] {
        assert!(page.contains(part), "{part}: {page}");
    }
    let (_, attempt) = page.split_once("/attempts/").unwrap();
    let attempt = format!("{subscription}/attempts/{}", attempt.split('"').next().unwrap());
    let page = ada.page(&attempt).await;
    for part in [&format!("{feed}/entries/4"), &source, "<pre data-copy", "-H 'webhook-id: "] {
        assert!(page.contains(part), "{part}: {page}");
    }
    let command = format!("curl --globoff '{}'", world.subscriber.url("/ada"));
    assert!(page.contains(&command) && !page.contains("opensesame"), "{page}");
    let page = ada.page(&format!("{feed}/entries/4")).await;
    assert!(page.contains(&source) && page.contains(&format!("{feed}\"")), "{page}");

    // A fetch leads to the entries that it found, from everywhere.
    let places = [
        (&ada, "/console", "fetched"),
        (&root, "/viewLog", "fetched"),
        (&ada, feed.as_str(), "ok"),
    ];
    for (visitor, path, words) in places {
        let fetched = event(&visitor.page(path).await, words);
        assert!(visitor.page(&fetched).await.contains(&format!("{feed}/entries/4")), "{path}");
        assert_eq!(bob.get(&fetched).await.0, StatusCode::NOT_FOUND);
    }
    assert_eq!(bob.get(&notified).await.0, StatusCode::NOT_FOUND);
    for id in ["0", "-1", "x", "99999", "9223372036854775807"] {
        let (status, page) = ada.get(&format!("/console/events/{id}")).await;
        assert_eq!(status, StatusCode::NOT_FOUND, "{id}: {page}");
    }
    let (_, page) = world.gateway.get("/viewLog").await;
    assert!(!page.contains("console/events"), "nobody else is led to the console: {page}");
}

#[tokio::test(flavor = "multi_thread")]
async fn c03_the_command_of_an_attempt_is_signed_for_its_own_body() {
    let world = world_of_two().await;
    let ada = Visitor::sign_in(&world, "ada", "ada").await;
    let subscription = link(&ada.page("/console/subscriptions").await, "console/subscriptions");
    notify(&world, &ada).await;
    until("the attempt is stored", async || ada.page(&subscription).await.contains("/attempts/"))
        .await;
    let page = ada.page(&subscription).await;
    let number = between(&page, "/attempts/", "\"").unwrap();
    let attempt = format!("{subscription}/attempts/{number}");
    let renamed = rss("tides", 1..5).replace("<title>tides</title>", "<title>high tides</title>");
    world.publisher.put_rss("/feed", renamed);
    world.gateway.post("/ping", &[("url", &world.topic)]).await;
    until("the body has another title", async || ada.page(&attempt).await.contains("high tides"))
        .await;

    let page = ada.page(&attempt).await;
    assert!(page.contains("<summary>Body, composed again</summary>"), "{page}");
    let command = between(&page, "<pre data-copy tabindex=\"0\"><code>", "</code>").unwrap();
    let mut command = command.replace("&lt;", "<").replace("&gt;", ">").replace("&quot;", "\"");
    command = command.replace("&amp;", "&");
    let script = format!("export no_proxy='*'\n{command}");
    let run = tokio::process::Command::new("sh").args(["-c", &script]).output().await.unwrap();
    assert!(run.status.success(), "{command}: {run:?}");
    let received = world.subscriber.notified("/ada");
    let [sent, by_hand] = &received[..] else { panic!("{} requests", received.len()) };
    assert!(by_hand.body != sent.body && is_signed(by_hand, "opensesame"), "{command}");
    let (id, at) = (by_hand.header("webhook-id").unwrap(), by_hand.header("webhook-timestamp"));
    let at = at.unwrap().parse().unwrap();
    let signature = standard_webhooks::sign(b"opensesame", id, at, &by_hand.body);
    assert_eq!(by_hand.header("webhook-signature"), Some(signature.as_str()), "{command}");
}

#[tokio::test]
async fn s37_an_account_sees_nothing_of_what_others_are_sent_of_the_same_feed() {
    let world = world_of_two_with(&[NOBODY]).await;
    world.subscriber.set("/of-bob", Behavior::Failing(500));
    subscribe(&world, "bob", "/of-bob").await;
    let ada = Visitor::sign_in(&world, "ada", "ada").await;
    let root = Visitor::sign_in(&world, "root", "root").await;
    let feed = link(&ada.page("/console/feeds").await, "console/feeds");
    notify(&world, &ada).await;
    until("the failure is in the log", async || {
        root.page("/console").await.contains(">delivery failed</a>")
    })
    .await;
    let failed = event(&root.page("/console").await, "delivery failed");
    assert!(root.page(&failed).await.contains("/of-bob"));
    assert_eq!(ada.get(&failed).await.0, StatusCode::NOT_FOUND);
    for path in ["/console", "/console/live", "/viewLog", &feed] {
        let page = ada.page(path).await;
        assert!(!page.contains(">delivery failed<") && !page.contains("of-bob"), "{path}: {page}");
        assert!(!page.contains("webhook delivery failed"), "{path}: {page}");
    }
}
