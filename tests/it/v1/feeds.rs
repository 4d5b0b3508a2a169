//! Feeds and their entries.

use http::StatusCode;

use super::path_of;
use crate::support::feeds::entry_id;
use crate::support::world::World;

#[tokio::test]
async fn a02_a_feed_is_looked_up_by_its_url_and_its_entries_are_read() {
    let world = World::with_tides(3, &[]).await;
    let made = world.create_subscription("/cb").await;
    let list = world.rest_get(&format!("/v1/feeds?url={}", world.topic)).await.json;
    let feed = &list["data"][0];
    assert_eq!(*feed, made["feed"]);
    assert_eq!((&feed["kind"], &feed["entries"]), (&"feed".into(), &3.into()), "{feed}");
    let path = path_of("feeds", feed);
    assert_eq!(world.rest_get(&path).await.json, *feed);
    assert!(feed["archive"].as_str().unwrap().ends_with("/recent"), "{feed}");
    let status = &feed["status"];
    assert_eq!((&status["state"], &status["code"]), (&"ok".into(), &200.into()), "{status}");
    assert!(status["nextFetchAt"].is_string() && status.get("error").is_none(), "{status}");

    let entries = world.rest_get(&format!("{path}/entries")).await.json["data"].take();
    let entries = entries.as_array().unwrap();
    let ids: Vec<_> = entries.iter().map(|entry| entry["item"]["id"].as_str().unwrap()).collect();
    assert_eq!(ids, [entry_id("tides", 3), entry_id("tides", 2), entry_id("tides", 1)]);
    let newest = &entries[0];
    assert_eq!((&newest["number"], &newest["feed"]), (&3.into(), &feed["id"]), "{newest}");
    assert_eq!(newest["item"]["permalinkUrl"], "https://tides.test/3");
    let one = world.rest_get(&path_of("entries", newest)).await;
    assert_eq!((one.status, &one.json), (StatusCode::OK, newest));
}

#[tokio::test]
async fn a02_a_feed_that_everybody_may_read_needs_no_subscription() {
    let world = World::with_tides(2, &[]).await;
    world.gateway.open_to_anonymous(&world.topic).await;
    let list = world.rest_get(&format!("/v1/feeds?url={}", world.topic)).await.json;
    let path = path_of("feeds", &list["data"][0]);
    let entries = world.rest_get(&format!("{path}/entries")).await.json;
    assert_eq!(entries["data"].as_array().unwrap().len(), 2, "{entries}");
    assert_eq!(world.rest_get("/v1/feeds").await.json["data"].as_array().unwrap().len(), 0);
    for (path, status) in
        [("/v1/feeds/99", 404), ("/v1/feeds/first", 404), ("/v1/entries/1-99", 404)]
    {
        assert_eq!(world.rest_get(path).await.problem(), (status, "not_found", ""), "{path}");
    }
}
