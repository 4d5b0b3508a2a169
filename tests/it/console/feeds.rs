//! What the console tells of the past of a feed.

use http::StatusCode;

use super::{Visitor, link, subscribe, world_of_two};
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

#[tokio::test]
async fn c05_the_page_of_a_feed_has_a_timeline_and_the_health_of_its_document() {
    let world = world_of_two().await;
    let ada = Visitor::sign_in(&world, "ada", "ada").await;
    let bob = Visitor::sign_in(&world, "bob", "bob").await;
    subscribe(&world, "bob", "/of-bob").await;
    let path = link(&ada.page("/console/feeds").await, "console/feeds");
    world.put_tides(4);
    world.gateway.post("/ping", &[("url", &world.topic)]).await;
    until("both are notified", async || {
        let page = bob.page(&path).await;
        page.contains("aria-label=\"Deliveries: 1\"") && page.contains("aria-label=\"Pings: 1\"")
    })
    .await;
    let page = ada.page(&path).await;
    for part in [
        "Deliveries: 1\"",
        "Entries, updates: 4\"",
        "entry 4: new",
        "1 new entry",
        "<dt>Repaired</dt>",
    ] {
        assert!(page.contains(part), "of the own subscription only, {part}: {page}");
    }
    assert!(page.contains("author_missing") && page.contains("The text of 4"), "{page}");
    assert!(page.contains("<dd>4\u{a0}entries</dd>"), "{page}");
    let places =
        ["Timeline", "id=\"entries\"", ">Subscriptions</h2>", "id=\"traffic\"", "Health of"];
    let places = places.map(|part| page.find(part).unwrap_or_else(|| panic!("{part}: {page}")));
    assert!(places.is_sorted(), "what is read first comes first: {places:?}");
    assert!(page.len() < 100_000, "{} bytes", page.len());
    world.publisher.fail("/feed", StatusCode::NOT_FOUND);
    world.gateway.post("/ping", &[("url", &world.topic)]).await;
    until("the failure is marked", async || {
        let page = ada.page(&path).await;
        page.contains("1 failed\"") && page.contains("class=\"bad\"")
    })
    .await;
}

#[tokio::test]
async fn the_page_of_a_feed_traces_its_last_fetches() {
    let world = world_of_two().await;
    let root = Visitor::sign_in(&world, "root", "root").await;
    let path = link(&root.page("/console/feeds").await, "console/feeds");
    world.publisher.fail("/feed", StatusCode::NOT_FOUND);
    world.gateway.post("/ping", &[("url", &world.topic)]).await;
    until("the failure is traced", async || root.page(&path).await.contains("404 Not Found after"))
        .await;
    let page = root.page(&path).await;
    let get = format!("GET {}", world.topic);
    let parts = [
        get.as_str(),
        "&gt; user-agent: ",
        "&lt; HTTP/1.1 200 OK after",
        "&lt; content-type: ",
        "after a ping or by hand",
        "<dt>Decision</dt>",
        "<dt>Next fetch</dt>",
    ];
    for part in parts {
        assert!(page.contains(part), "{part}: {page}");
    }

    // The publisher of the test has an inner address.
    let ada = Visitor::sign_in(&world, "ada", "ada").await;
    let page = ada.page(&path).await;
    assert!(
        page.contains("an inner address: only administrators") && page.contains(&get),
        "{page}"
    );
    assert!(!page.contains("&lt; content-type: "), "{page}");
}

#[tokio::test]
async fn the_page_of_a_feed_searches_its_entries() {
    let world = world_of_two().await;
    let ada = Visitor::sign_in(&world, "ada", "ada").await;
    let path = link(&ada.page("/console/feeds").await, "console/feeds");
    let entries = async |query: &str| {
        let page = ada.page(&format!("{path}{query}")).await;
        let (_, rest) = page.split_once("id=\"entries\"").unwrap();
        rest.split_once("<h2>Subscriptions").unwrap().0.to_owned()
    };
    #[rustfmt::skip]
    let cases = [
        ("",                         &["Item 1<", "Item 2<", "Item 3<"][..]),
        ("?q=item+2",                &["Item 2<"]),
        ("?q=item+-2",               &["Item 1<", "Item 3<"]),
        ("?q=2+%7C+3&before=3",      &["Item 2<"]),
        ("?q=nothing",               &["No entry matches."]),
        ("?q=%22",                   &["Invalid query: "]),
    ];
    let all = ["Item 1<", "Item 2<", "Item 3<", "No entry matches.", "cannot be searched for: "];
    for (query, want) in cases {
        let found = entries(query).await;
        for part in want {
            assert!(found.contains(part), "{query}: {part}: {found}");
        }
        let others = all.iter().filter(|part| !want.iter().any(|want| want.contains(*part)));
        for part in others {
            assert!(!found.contains(part), "{query}: {part}: {found}");
        }
    }

    // A search goes on behind the entries that it has compared.
    world.put_tides(130);
    world.gateway.post("/ping", &[("url", &world.topic)]).await;
    until("all entries are stored", async || entries("").await.contains("Item 130<")).await;
    let page = entries("?q=item").await;
    assert!(page.contains("Item 121<") && !page.contains("Item 120<"), "{page}");
    let (_, next) = page.split_once("rel=\"next\" href=\"").unwrap();
    let (_, next) = next.split_once('?').unwrap();
    let next = next.split('#').next().unwrap().replace("&amp;", "&");
    let page = entries(&format!("?{next}")).await;
    assert!(page.contains("Item 120<") && !page.contains("Item 121<"), "{page}");
    let page = entries("?q=2").await;
    assert!(page.contains("Item 2<") && !page.contains("rel=\"next\""), "{page}");
}
