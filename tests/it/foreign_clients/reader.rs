//! Feed readers: newsboat of Debian, and libraries of npm and PyPI.

use std::fs;

use serde_json::{Value, json};
use tokio::process::Command;
use tokio::time::timeout;

use super::Client;
use crate::support::PATIENCE;
use crate::support::feeds::link;
use crate::support::world::World;

#[tokio::test]
async fn newsboat_reads_the_feed_of_the_gateway() {
    let world = World::with_tides(3, &[]).await;
    let callback = world.subscriber.url("/cb");
    world.gateway.subscribe_superfeedr(&world.topic, &callback, "atom").await;
    world.gateway.open_to_anonymous(&world.topic).await;
    world.gateway.comes_to_rest().await;
    let feed = world.gateway.archive_of(&world.topic);
    assert_eq!(unread(&feed).await, "3 unread articles");
}

/// What newsboat prints of a feed that it has not read before.
async fn unread(feed: &str) -> String {
    let folder = tempfile::tempdir().unwrap();
    let file = |name: &str| folder.path().join(name);
    fs::write(file("urls"), format!("{feed}\n")).unwrap();
    fs::write(file("config"), "").unwrap();
    let reading = Command::new("newsboat")
        .env("HOME", folder.path())
        .arg("-C")
        .arg(file("config"))
        .arg("-u")
        .arg(file("urls"))
        .arg("-c")
        .arg(file("cache"))
        .args(["-x", "reload", "print-unread"])
        .kill_on_drop(true)
        .output();
    let ended = timeout(PATIENCE, reading).await.expect("newsboat ends");
    let ended = ended.expect("is newsboat there? tests/run installs what is missing");
    assert!(ended.status.success(), "{ended:?}");
    String::from_utf8(ended.stdout).unwrap().trim().to_owned()
}

/// rss-parser, feedparser and podcastparser read the RSS of a podcast: what podcast software must not lose.
#[tokio::test]
async fn a03_feed_libraries_find_enclosures_and_durations_in_rss() {
    let world = World::with_tides(1, &[]).await;
    let source = "<rss version=\"2.0\" xmlns:itunes=\"http://www.itunes.com/dtds/podcast-1.0.dtd\">\
        <channel><title>Tides</title><link>https://tides.test/</link>\
        <description>High and low</description><item><title>One</title>\
        <guid isPermaLink=\"false\">episode-14</guid><link>https://tides.test/1</link>\
        <enclosure url=\"https://tides.test/1.mp3\" length=\"17\" type=\"audio/mpeg\"/>\
        <itunes:duration>1:02</itunes:duration></item></channel></rss>";
    let topic = world.publisher.url("/podcast");
    world.publisher.put_rss("/podcast", source.to_owned());
    world.gateway.subscribe_superfeedr(&topic, &world.subscriber.url("/cb"), "atom").await;
    world.gateway.open_to_anonymous(&topic).await;
    world.gateway.comes_to_rest().await;
    let (_, recent) = world.gateway.fetch(&world.gateway.archive_of(&topic)).await;
    let feed = link(&recent, "self").unwrap().replace("/recent", ".rss");
    let clients = [
        (Client::node("feed_reader.js", &[&feed]), json!("1:02")),
        (Client::python("feed_reader.py", &["feedparser", &feed]), json!("1:02")),
        (Client::python("feed_reader.py", &["podcastparser", &feed]), json!(62)),
    ];
    for (mut client, duration) in clients {
        let found: Value = serde_json::from_str(&client.next_line().await.unwrap()).unwrap();
        let want = json!({
            "title": "One",
            "link": "https://tides.test/1",
            "id": "episode-14",
            "enclosure": "https://tides.test/1.mp3",
            "duration": duration,
        });
        assert_eq!(found, want);
    }
}
