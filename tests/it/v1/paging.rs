//! Lists are read to their end page by page, and cursors that are none are rejected.

use http::StatusCode;
use serde_json::{Value, json};

use crate::support::feeds::rss;
use crate::support::world::World;

impl World {
    /// All items of a list, `limit` at a time.
    async fn read_to_end(&self, path: &str, limit: usize) -> Vec<Value> {
        let separator = if path.contains('?') { '&' } else { '?' };
        let (mut items, mut cursor) = (Vec::new(), None);
        for _ in 0..100 {
            let next =
                cursor.map_or_else(String::new, |cursor: String| format!("&cursor={cursor}"));
            let page = self.rest_get(&format!("{path}{separator}limit={limit}{next}")).await;
            assert_eq!(page.status, StatusCode::OK, "{}", page.json);
            let data = page.json["data"].as_array().unwrap();
            assert!(data.len() <= limit, "{}", page.json);
            items.extend(data.iter().cloned());
            match page.json.get("nextCursor") {
                Some(next) => {
                    cursor = Some(next.as_str().unwrap().to_owned());
                    let link = format!("cursor={}>; rel=\"next\"", next.as_str().unwrap());
                    assert!(page.header("link").ends_with(&link), "{:?}", page.headers);
                }
                None => return items,
            }
        }
        panic!("{path} has no end");
    }
}

/// A world with two feeds, and three subscriptions to each.
async fn crowded() -> World {
    let world = World::with_tides(5, &[]).await;
    world.publisher.put_rss("/winds", rss("winds", 1..3));
    for path in ["/feed", "/winds"] {
        for n in 1..=3 {
            let callback = world.subscriber.url(&format!("/{n}"));
            let body = json!({ "url": world.publisher.url(path), "callback": callback });
            let made = world.rest_post("/v1/subscriptions", body).await;
            assert_eq!(made.status, StatusCode::CREATED, "{}", made.json);
        }
    }
    world
}

fn ids(items: &[Value]) -> Vec<&str> {
    items.iter().map(|item| item["id"].as_str().unwrap()).collect()
}

#[tokio::test]
async fn a02_lists_are_read_to_their_end_page_by_page() {
    let world = crowded().await;
    let callback = world.subscriber.url("/2");
    let feeds = world.read_to_end("/v1/feeds", 200).await;
    assert_eq!(feeds.len(), 2, "{feeds:?}");
    let tides = feeds.iter().find(|feed| feed["url"] == world.topic.as_str()).unwrap();
    let tides = tides["id"].as_str().unwrap();
    let winds = world.publisher.url("/winds");
    for name in ["one", "two"] {
        let made = world.rest_post("/v1/tokens", json!({ "name": name })).await;
        assert_eq!(made.status, StatusCode::CREATED, "{}", made.json);
    }
    #[rustfmt::skip]
    let lists = [
        ("/v1/subscriptions".to_owned(),                     6),
        (format!("/v1/subscriptions?feed={tides}"),          3),
        (format!("/v1/subscriptions?url={winds}"),           3),
        (format!("/v1/subscriptions?callback={callback}"),   2),
        (format!("/v1/subscriptions?url={winds}&callback={callback}"), 1),
        ("/v1/subscriptions?state=ok".to_owned(),            6),
        ("/v1/subscriptions?state=paused".to_owned(),        0),
        ("/v1/subscriptions?url=https://nobody.test/".to_owned(), 0),
        ("/v1/feeds".to_owned(),                             2),
        (format!("/v1/feeds?url={winds}"),                   1),
        ("/v1/feeds?url=https://nobody.test/".to_owned(),    0),
        (format!("/v1/feeds/{tides}/entries"),               5),
        (format!("/v1/feeds/{tides}/entries?filter=text"),   5),
        (format!("/v1/feeds/{tides}/entries?filter=storm"),  0),
        ("/v1/tokens".to_owned(),                            3),
        ("/v1/tracks".to_owned(),                            0),
    ];
    for (path, want) in lists {
        let whole = world.read_to_end(&path, 200).await;
        assert_eq!(whole.len(), want, "{path}: {whole:?}");
        for limit in [1, 2, 5] {
            let parts = world.read_to_end(&path, limit).await;
            assert_eq!(ids(&parts), ids(&whole), "{path}, {limit} at a time");
        }
    }
}

#[tokio::test]
async fn a02_a_page_that_cannot_be_is_rejected() {
    let world = crowded().await;
    let page = world.rest_get("/v1/subscriptions?limit=1").await.json;
    let cursor = page["nextCursor"].as_str().unwrap();
    #[rustfmt::skip]
    let cases = [
        ("/v1/subscriptions?limit=0".to_owned(),          422, "invalid_parameter", "limit"),
        ("/v1/subscriptions?limit=201".to_owned(),        422, "invalid_parameter", "limit"),
        ("/v1/subscriptions?limit=many".to_owned(),       422, "invalid_parameter", "limit"),
        ("/v1/subscriptions?cursor=nonsense".to_owned(),  422, "bad_cursor",        "cursor"),
        (format!("/v1/feeds?cursor={cursor}"),            422, "bad_cursor",        "cursor"),
        ("/v1/subscriptions?feed=first".to_owned(),       422, "invalid_parameter", "feed"),
        ("/v1/subscriptions?state=idle".to_owned(),       422, "invalid_parameter", "state"),
        ("/v1/subscriptions?page=2".to_owned(),           422, "unknown_parameter", "page"),
        ("/v1/feeds/1?limit=2".to_owned(),                422, "unknown_parameter", "limit"),
        ("/v1/attempts".to_owned(),                       422, "invalid_parameter", "subscription"),
        ("/v1/deliveries?subscription=1-999".to_owned(),  404, "no_subscription",   ""),
        ("/v1/entries".to_owned(),                        422, "bad_query",         "query"),
    ];
    for (path, status, code, field) in cases {
        let reply = world.rest_get(&path).await;
        assert_eq!(reply.problem(), (status, code, field), "{path}: {}", reply.json);
    }
}

#[tokio::test]
async fn a02_a_long_page_costs_as_many_requests_as_it_may_take_reading() {
    let settings = [("FEEDGATE_ACCOUNT_REQUESTS_PER_MIN", "40")];
    let world = World::with_tides(1, &settings).await;
    let made = world.create_subscription("/cb").await;
    let id = made["id"].as_str().unwrap();
    let remaining = |header: &str| -> u32 {
        let count = header.split_once("r=").and_then(|(_, rest)| rest.split(';').next());
        count.unwrap().parse().unwrap()
    };
    // 200 rows are 13 requests.
    while remaining(world.rest_get("/v1/tokens/self").await.header("ratelimit")) > 11 {}
    for path in [
        format!("/v1/attempts?subscription={id}&limit=200"),
        format!("/v1/deliveries?subscription={id}&limit=1"),
        "/v1/tracks?limit=200".to_owned(),
        "/v1/tokens?limit=200".to_owned(),
        "/v1/feeds?limit=200".to_owned(),
        "/v1/subscriptions?limit=200".to_owned(),
    ] {
        assert_eq!(world.rest_get(&path).await.problem(), (429, "rate_limited", ""), "{path}");
    }
    let short = world.rest_get(&format!("/v1/attempts?subscription={id}&limit=1")).await;
    assert_eq!(short.status, StatusCode::OK, "{}", short.json);
}
