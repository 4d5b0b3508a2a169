//! Searching entries, and streaming them.

use http::StatusCode;
use serde_json::json;

use crate::support::gateway::TOKEN;
use crate::support::server::client;
use crate::support::until;
use crate::support::world::World;

#[tokio::test]
async fn a02_entries_are_found_by_a_query_page_by_page() {
    let world = World::with_tides(5, &[]).await;
    world.create_subscription("/cb").await;
    until("the entries are indexed", async || {
        let found = world.rest_get("/v1/entries?query=text").await.json;
        found["data"].as_array().is_some_and(|data| data.len() == 5)
    })
    .await;
    let (mut titles, mut path) = (Vec::new(), "/v1/entries?query=text&limit=2".to_owned());
    loop {
        let page = world.rest_get(&path).await.json;
        for entry in page["data"].as_array().unwrap() {
            assert_eq!(entry["item"]["source"]["title"], "tides", "{entry}");
            titles.push(entry["item"]["title"].as_str().unwrap().to_owned());
        }
        let Some(next) = page["nextCursor"].as_str() else { break };
        path = format!("/v1/entries?query=text&limit=2&cursor={next}");
    }
    assert_eq!(titles, ["Item 5", "Item 4", "Item 3", "Item 2", "Item 1"]);
    let wrong = world.rest_get("/v1/entries?query=-a").await;
    assert_eq!(wrong.problem(), (422, "bad_query", "query"));
}

#[tokio::test]
async fn a02_a_gateway_without_an_index_says_so() {
    let world = World::with_tides(1, &[("FEEDGATE_SEARCH", "off")]).await;
    let reply = world.rest_get("/v1/entries?query=a").await;
    assert_eq!(reply.problem(), (422, "search_disabled", ""));
}

#[tokio::test]
async fn a02_entries_are_streamed_as_events() {
    let world = World::with_tides(2, &[]).await;
    let made = world.create_subscription("/cb").await;
    let (id, feed) = (made["id"].as_str().unwrap(), made["feed"]["id"].as_str().unwrap());
    for selection in [format!("?subscription={id}"), format!("?feed={feed}"), String::new()] {
        let url = world.gateway.url(&format!("/v1/streams{selection}"));
        let mut answer = client().get(&url).bearer_auth(TOKEN).send().await.unwrap();
        assert_eq!(answer.status(), StatusCode::OK, "{selection}");
        assert_eq!(answer.headers()["content-type"], "text/event-stream; charset=utf-8");
        let mut text = String::new();
        while !text.contains("Item 2") {
            let chunk = answer.chunk().await.unwrap().expect("the stream stays open");
            text.push_str(&String::from_utf8_lossy(&chunk));
        }
        assert!(text.contains("data:") && text.contains("id:"), "{text}");
    }
    let wrong = world.rest_get("/v1/streams?count=many").await;
    assert_eq!(wrong.status, StatusCode::UNPROCESSABLE_ENTITY, "{}", wrong.json);
    for (selection, field) in [
        ("subscription=".to_owned(), "subscription"),
        ("feed=+".to_owned(), "feed"),
        (format!("subscription={id}&feed={feed}"), "feed"),
    ] {
        let refused = world.rest_get(&format!("/v1/streams?{selection}")).await;
        assert_eq!(refused.problem(), (422, "invalid_parameter", field), "{selection}");
    }
    let unsubscribed = json!({ "url": world.publisher.url("/other") });
    world.publisher.put_rss("/other", crate::support::feeds::rss("other", 1..2));
    let other = unsubscribed["url"].as_str().unwrap();
    world.gateway.open_to_anonymous(other).await;
    let other = world.rest_get(&format!("/v1/feeds?url={other}")).await.json;
    let other = other["data"][0]["id"].as_str().unwrap();
    let refused = world.rest_get(&format!("/v1/streams?feed={other}")).await;
    assert_eq!(refused.problem(), (422, "no_subscription", "feed"));
}
