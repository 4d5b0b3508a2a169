//! Whoever kills feedgate, at whatever moment, loses nothing: every subscriber has every
//! entry, in order, after the last restart (D2, D18). Tracks and searches have every entry once.

use tokio::task::JoinSet;
use tokio::time::{Duration, sleep, timeout};

use crate::store::on_both_stores;
use crate::support::PATIENCE;
use crate::support::cases::cases;
use crate::support::feeds::{entry_id, entry_ids, rss};
use crate::support::gateway::Gateway;
use crate::support::postgres::Database;
use crate::support::publisher::Publisher;
use crate::support::random::Random;
use crate::support::reader::Reader;
use crate::support::subscriber::{Subscriber, named};
use crate::support::tracked::{found_once, track_topic, tracked_once};

const FEEDS: usize = 4;
/// Entries and kills of a full run.
const ENTRIES_PER_FEED: usize = 125;
const KILLS: usize = 20;
/// Subscribers of each protocol; every one of them wants every feed.
const SUBSCRIBERS: [(&str, usize); 5] =
    [("websub", 4), ("superfeedr", 4), ("http-post", 4), ("xml-rpc", 4), ("soap", 4)];
/// Queries that every entry matches.
const QUERIES: [&str; 2] = ["\"the text of\"", "item -nothing"];
/// The longest that feedgate is left alone between a start and a kill.
const LONGEST_LIFE_MS: u64 = 1_200;

on_both_stores!(a_kill_loses_nothing);

async fn a_kill_loses_nothing(database: Database) {
    // A claim must outlast a request, and whoever is killed holds its claims so long.
    let settings = [
        ("FEEDGATE_JOB_LEASE_S", "2"),
        ("FEEDGATE_FETCH_TIMEOUT_S", "1"),
        ("FEEDGATE_DELIVERY_TIMEOUT_S", "1"),
        ("FEEDGATE_DELIVERY_CONCURRENCY_PER_HOST", "64"),
    ];
    let mut gateway = Gateway::start(&database, &settings).await;
    let publisher = Publisher::start().await;
    let subscriber = Subscriber::start().await;
    for feed in 0..FEEDS {
        publish(&publisher, feed, 0);
    }
    subscribe(&gateway, &publisher, &subscriber).await;

    let mut jitter = Random::thrown();
    let mut published = 0;
    let (kills, entries_per_feed) = (cases(KILLS), cases(ENTRIES_PER_FEED));
    for life in 1..=kills {
        let upto = FEEDS * entries_per_feed * life / kills;
        let before_the_kill = published + jitter.below((upto - published) as u64) as usize;
        while published < before_the_kill {
            published += 1;
            publish_next(&publisher, published);
            ping(&gateway, &publisher, published % FEEDS).await;
            sleep(Duration::from_millis(jitter.below(30))).await;
        }
        sleep(Duration::from_millis(jitter.below(LONGEST_LIFE_MS))).await;
        gateway.kill();
        while published < upto {
            published += 1;
            publish_next(&publisher, published);
        }
        gateway.restart().await;
    }
    for feed in 0..FEEDS {
        ping(&gateway, &publisher, feed).await;
    }
    everybody_has_everything(&gateway, &publisher, &subscriber, entries_per_feed).await;
    let entries = |feed: usize| (1..=entries_per_feed).map(move |n| entry_id(&name(feed), n));
    let all: Vec<String> = (0..FEEDS).flat_map(entries).collect();
    for query in QUERIES {
        tracked_once(&gateway, &track_topic(&gateway, query), &all).await;
    }
    let first = (0..FEEDS).map(|feed| entry_id(&name(feed), 0));
    let stored: Vec<String> = all.into_iter().chain(first).collect();
    for query in QUERIES {
        found_once(&gateway, query, &stored).await;
    }
    gateway.comes_to_rest().await;
}

fn name(feed: usize) -> String {
    format!("feed{feed}")
}

fn path(feed: usize) -> String {
    format!("/{}.xml", name(feed))
}

/// Publishes the entries up to `upto` of a feed, which keeps all it ever had.
fn publish(publisher: &Publisher, feed: usize, upto: usize) {
    publisher.put_rss(&path(feed), rss(&name(feed), 0..upto + 1));
}

/// Publishes entry `nth` of all, on the feed whose turn it is.
fn publish_next(publisher: &Publisher, nth: usize) {
    publish(publisher, nth % FEEDS, nth.div_ceil(FEEDS));
}

/// Says that a feed changed; whether anybody listens is not the publisher's business.
async fn ping(gateway: &Gateway, publisher: &Publisher, feed: usize) {
    gateway.try_post("/rsscloud/ping", &[("url", &publisher.url(&path(feed)))]).await.ok();
}

async fn subscribe(gateway: &Gateway, publisher: &Publisher, subscriber: &Subscriber) {
    for (protocol, count) in SUBSCRIBERS {
        for number in 0..count {
            for feed in 0..FEEDS {
                let topic = publisher.url(&path(feed));
                let callback = callback(protocol, number, feed);
                let url = subscriber.url(&callback);
                match protocol {
                    "websub" => gateway.subscribe_websub(&topic, &url, &[]).await,
                    "superfeedr" => gateway.subscribe_superfeedr(&topic, &url, "atom").await,
                    _ => {
                        gateway.subscribe_rsscloud(protocol, &topic, subscriber, &callback).await;
                    }
                }
            }
        }
    }
    for feed in 0..FEEDS {
        gateway.archive_holds(&publisher.url(&path(feed)), &entry_id(&name(feed), 0)).await;
    }
    for query in QUERIES {
        let callback = subscriber.url("/track");
        gateway.subscribe_superfeedr(&track_topic(gateway, query), &callback, "json").await;
    }
}

fn callback(protocol: &str, number: usize, feed: usize) -> String {
    format!("/{protocol}/{number}/{feed}")
}

async fn everybody_has_everything(
    gateway: &Gateway,
    publisher: &Publisher,
    subscriber: &Subscriber,
    entries_per_feed: usize,
) {
    let mut waiting = JoinSet::new();
    for feed in 0..FEEDS {
        let topic = publisher.url(&path(feed));
        let all: Vec<String> = (1..=entries_per_feed).map(|n| entry_id(&name(feed), n)).collect();
        for (protocol, number) in everybody() {
            let callback = callback(protocol, number, feed);
            let (all, subscriber) = (all.clone(), subscriber.clone());
            if matches!(protocol, "websub" | "superfeedr") {
                waiting.spawn(async move { brought(&subscriber, &callback, &all).await });
            } else {
                let recent = gateway.archive_of(&topic);
                let topic = topic.clone();
                waiting.spawn(async move {
                    told(&subscriber, &callback, &topic, &recent, &all).await;
                });
            }
        }
    }
    waiting.join_all().await;
}

fn everybody() -> impl Iterator<Item = (&'static str, usize)> {
    SUBSCRIBERS
        .into_iter()
        .flat_map(|(protocol, count)| (0..count).map(move |number| (protocol, number)))
}

/// A subscriber of a fat protocol was brought every entry, and in order. WebSub brings
/// the feed as it is, so what is old, and the entry from before, may be in it as well.
async fn brought(subscriber: &Subscriber, callback: &str, all: &[String]) {
    let mut got = Vec::new();
    subscriber
        .until(callback, |notifications| {
            got.clear();
            for notification in notifications {
                for id in entry_ids(&notification.text()).into_iter().rev() {
                    if all.contains(&id) && !got.contains(&id) {
                        got.push(id);
                    }
                }
            }
            got.len() >= all.len()
        })
        .await;
    assert_eq!(got, all, "{callback}");
}

/// An rssCloud subscriber reads the archive whenever it is told, and no other time: so
/// it has everything only if it was told after the last entry.
async fn told(subscriber: &Subscriber, callback: &str, topic: &str, recent: &str, all: &[String]) {
    let mut reader = Reader::default();
    let mut handled = 0;
    let reading = async {
        // The archive also has the entry from before the subscription.
        while reader.processed.len() <= all.len() {
            subscriber.until(callback, |notifications| notifications.len() > handled).await;
            let notifications = subscriber.notified(callback);
            for notification in &notifications {
                assert_eq!(named(notification).as_deref(), Some(topic), "{callback}");
            }
            handled = notifications.len();
            reader.catch_up(recent).await.unwrap();
        }
    };
    let in_time = timeout(PATIENCE, reading).await;
    assert!(in_time.is_ok(), "{callback} was last told when {} were there", reader.processed.len());
    assert_eq!(reader.processed[1..], *all, "{callback}");
}
