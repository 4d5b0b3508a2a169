//! What the console tells of the past of a feed.

use http::StatusCode;

use super::{Visitor, link, world_of_two};
use crate::support::until;

#[tokio::test]
async fn the_list_of_feeds_tells_how_many_entries_came_a_day() {
    let world = world_of_two().await;
    let ada = Visitor::sign_in(&world, "ada", "ada").await;
    let feeds = ada.page("/console/feeds").await;
    let text = "aria-label=\"3 new entries in 30 days, at most 3 on a day, 3 today\"";
    assert!(feeds.contains(text), "{feeds}");
    let feed = ada.page(&link(&feeds, "console/feeds")).await;
    assert!(feed.contains(text), "{feed}");
}

#[tokio::test]
async fn the_page_of_a_feed_tells_when_its_state_changed() {
    let world = world_of_two().await;
    let ada = Visitor::sign_in(&world, "ada", "ada").await;
    let path = link(&ada.page("/console/feeds").await, "console/feeds");
    assert!(!ada.page(&path).await.contains("Changes of its state"));
    world.publisher.fail("/feed", StatusCode::NOT_FOUND);
    world.gateway.post("/ping", &[("url", &world.topic)]).await;
    until("the failure is listed", async || {
        let page = ada.page(&path).await;
        page.contains("Changes of its state") && page.contains("404")
    })
    .await;
}
