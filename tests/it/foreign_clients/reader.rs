//! A feed reader of Debian: newsboat.

use std::fs;

use tokio::process::Command;
use tokio::time::timeout;

use crate::support::PATIENCE;
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
