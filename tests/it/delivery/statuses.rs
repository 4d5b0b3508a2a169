//! A status that is told by itself (rule P33).

use feedgate_core::poll::{NewContent, Poll};
use feedgate_core::resource::{ResourceId, ResourceKind};
use feedgate_core::status::{AnnouncedHealth, Status};
use feedgate_core::subscription::{Format, Statuses};
use feedgate_protocol::Protocol;

use super::{Node, TOPIC, poll, secret};
use crate::store::on_both_stores;
use crate::support::postgres::Database;
use crate::support::subscriber::{Behavior, Subscriber, is_signed};

on_both_stores!(
    p33_a_status_without_entries_is_told_to_who_wants_it,
    p33_a_status_is_told_again_until_it_is_acknowledged,
    p33_a_status_goes_with_entries_as_it_is_then,
);

/// The resource is failing, which is news.
async fn fail(node: &Node, id: ResourceId) {
    let status = Status {
        http_code: 500,
        http_message: "the server responded with 500".to_owned(),
        error: "http_status".to_owned(),
        version: 1,
        announced: AnnouncedHealth { version: 1, ..AnnouncedHealth::default() },
        ..Status::default()
    };
    let (found, answered_well) = (NewContent::Nothing, false);
    let failed = Poll { found, status, answered_well, kind: None, ..poll(ResourceKind::Feed) };
    node.store.record(id, &failed).await.unwrap();
}

/// Row N-13.
async fn p33_a_status_without_entries_is_told_to_who_wants_it(database: Database) {
    let node = Node::start(&database).await;
    let subscriber = Subscriber::start().await;
    let mut ids = Vec::new();
    for (path, format, statuses) in [
        ("/atom", Format::Atom, Statuses::Transitions),
        ("/json", Format::Json, Statuses::Always),
        ("/never", Format::Atom, Statuses::Never),
    ] {
        let callback = subscriber.url(path);
        let wanted = node.subscribe(&callback, |request| {
            (request.format, request.statuses, request.signing.secret) =
                (format, statuses, secret());
        });
        ids.push(wanted.await.id);
    }
    let callback = subscriber.url("/cloud");
    let cloud = node.subscribe(&callback, |request| {
        (request.protocol, request.statuses) = (Protocol::HttpPost, Statuses::Never);
    });
    cloud.await;
    fail(&node, ids[0].resource).await;

    for path in ["/atom", "/json"] {
        subscriber.until(path, |told| told.len() == 1).await;
    }
    let atom = subscriber.notified("/atom").remove(0);
    assert_eq!(atom.header("content-type"), Some("application/atom+xml"));
    let id = format!("{}-{}-status-1", ids[0].resource, ids[0].number);
    assert_eq!(atom.header("webhook-id"), Some(id.as_str()));
    assert_eq!(atom.header("x-feedgate-seq"), None, "no number of the log is told");
    assert!(is_signed(&atom, "opensesame"));
    let text = atom.text();
    assert!(text.contains("<http code=\"500\">the server responded with 500</http>"), "{text}");
    assert!(!text.contains("<entry"), "{text}");
    crate::schemas::assert_valid("atom.rng", &[("status".to_owned(), text)]);

    let json = subscriber.notified("/json").remove(0);
    let json: serde_json::Value = serde_json::from_slice(&json.body).unwrap();
    assert_eq!((&json["status"]["code"], &json["status"]["feed"]), (&500.into(), &TOPIC.into()));
    assert!(json.get("items").is_none(), "row N-13: {json}");

    // Entries come after it, and go to all.
    node.append(ids[0].resource, 1..=1).await;
    for (path, times) in [("/atom", 2), ("/json", 2), ("/never", 1), ("/cloud", 1)] {
        subscriber.until(path, |told| told.len() == times).await;
    }
    node.stop().await;
    assert_eq!(subscriber.notified("/never").len(), 1, "the entry and nothing else");
}

async fn p33_a_status_is_told_again_until_it_is_acknowledged(database: Database) {
    let node = Node::start(&database).await;
    let subscriber = Subscriber::start().await;
    subscriber.set("/", Behavior::Failing(500));
    let callback = subscriber.url("/");
    let id = node.subscribe(&callback, |_| {}).await.id;
    fail(&node, id.resource).await;
    node.until(&callback, |held| held.is_some_and(|held| held.failures == 1)).await;
    assert_eq!(node.now(&callback).await.unwrap().status_told, 0);
    subscriber.set("/", Behavior::Accepting);
    // A renewal tries at once what waits for its retry.
    node.subscribe(&callback, |_| {}).await;
    node.until(&callback, |held| held.is_some_and(|held| held.status_told == 1)).await;
    let ids: Vec<_> = subscriber
        .notified("/")
        .iter()
        .map(|request| request.header("webhook-id").unwrap().to_owned())
        .collect();
    assert!(ids.len() >= 2 && ids.iter().all(|id| *id == ids[0]), "the same message: {ids:?}");
    node.stop().await;
}

async fn p33_a_status_goes_with_entries_as_it_is_then(database: Database) {
    let node = Node::start(&database).await;
    let subscriber = Subscriber::start().await;
    subscriber.set("/", Behavior::Failing(500));
    let callback = subscriber.url("/");
    let id = node.subscribe(&callback, |_| {}).await.id;
    node.append(id.resource, 1..=1).await;
    node.until(&callback, |held| held.is_some_and(|held| held.failures == 1)).await;
    // It changes while the entry waits for its retry.
    fail(&node, id.resource).await;
    subscriber.set("/", Behavior::Accepting);
    node.subscribe(&callback, |_| {}).await;
    node.until(&callback, |held| held.is_some_and(|held| held.status_told == 1)).await;
    let told: Vec<String> = subscriber.notified("/").iter().map(|request| request.text()).collect();
    let is_last = |text: &&String| text.contains("<http code=\"500\"");
    assert_eq!(told.iter().filter(is_last).count(), 1, "{told:?}");
    assert!(told.iter().all(|text| text.contains("<entry")), "in one message: {told:?}");
    node.stop().await;
}
