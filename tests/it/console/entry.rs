//! The page of an entry, also in a real browser, where the text of others must not do anything.

use feedgate_core::account::Scopes;
use http::StatusCode;
use serde_json::json;

use super::{Visitor, link, make_token, subscribe, subscribe_with, world_of_two};
use crate::support::browser::Browser;
use crate::support::until;
use crate::support::world::World;

/// A feed with one entry, whose text is hostile.
const HOSTILE: &str = "<rss version='2.0'><channel><title>Tides</title><item>\
    <guid isPermaLink='false'>spring 1</guid><title>Spring &lt;b&gt;tide&lt;/b&gt;</title>\
    <link>https://tides.test/1</link><author>ada@tides.test (Ada)</author>\
    <pubDate>Mon, 02 Nov 2026 08:00:00 GMT</pubDate>\
    <description>&lt;p onclick='alert(1)'&gt;High at &lt;b&gt;noon&lt;/b&gt;\
    &lt;script&gt;parent.ran = 1&lt;/script&gt;&lt;img src='https://tides.test/x.png' \
    onerror='parent.ran = 1'&gt;&lt;/p&gt;</description></item></channel></rss>";

async fn world_with(path: &str, content_type: &str, body: &str) -> (World, String) {
    let world = World::with_tides(1, &[]).await.about(path);
    world.publisher.put(path, content_type, body.to_owned());
    make_token(&world, "ada", Scopes::all()).await;
    subscribe(&world, "ada", "/ada").await;
    world.publisher.fetched(path, 1).await;
    world.gateway.comes_to_rest().await;
    let ada = Visitor::sign_in(&world, "ada", "ada").await;
    let feed = link(&ada.page("/console/feeds").await, "console/feeds");
    (world, feed)
}

#[tokio::test]
async fn an_entry_has_its_formats_and_the_elements_that_its_fields_came_from() {
    let (world, feed) = world_with("/tides", "application/rss+xml", HOSTILE).await;
    let ada = Visitor::sign_in(&world, "ada", "ada").await;
    assert!(ada.page(&feed).await.contains("/entries/1\""));
    let page = ada.page(&format!("{feed}/entries/1")).await;
    #[rustfmt::skip]
    let parts = [
        "<h1>Spring tide</h1>", "<dt>Authors</dt><dd>Ada</dd>", "href=\"https://tides.test/1\"",
        "2026-11-02 08:00:00", "&lt;entry", "&quot;permalinkUrl&quot;", "iframe class=\"preview\" sandbox=\"\"",
        "/rss/channel/item/pubDate", "&lt;title&gt;Spring", "id_not_an_iri",
    ];
    for part in parts {
        assert!(page.contains(part), "{part}: {page}");
    }
    let (_, frame) = page.split_once("srcdoc=\"").unwrap();
    let frame = frame.split('"').next().unwrap();
    assert!(frame.contains("&lt;p&gt;High at &lt;b&gt;noon&lt;/b&gt;"), "{frame}");
    assert!(!frame.contains("script") && !frame.contains("onerror"), "{frame}");

    let other = HOSTILE.replace("spring 1", "spring 2");
    world.publisher.put_rss("/tides", other);
    world.gateway.post("/ping", &[("url", &world.topic)]).await;
    world.publisher.fetched("/tides", 2).await;
    world.gateway.comes_to_rest().await;
    let page = ada.page(&format!("{feed}/entries/1")).await;
    assert!(page.contains("no longer stored"), "{page}");
}

#[tokio::test]
async fn a_record_of_another_document_has_its_text() {
    let text = "High tide at noon.\nLow tide at <six>.";
    let (world, feed) = world_with("/page", "text/plain", text).await;
    let ada = Visitor::sign_in(&world, "ada", "ada").await;
    let page = ada.page(&format!("{feed}/entries/1")).await;
    assert!(page.contains("High tide at noon.\nLow tide at &lt;six&gt;."), "{page}");
    assert!(!page.contains("<iframe") && !page.contains("Origin of each field"), "{page}");
}

#[tokio::test]
async fn s37_an_entry_of_others_does_not_exist() {
    let world = world_of_two().await;
    let ada = Visitor::sign_in(&world, "ada", "ada").await;
    let bob = Visitor::sign_in(&world, "bob", "bob").await;
    let feed = link(&ada.page("/console/feeds").await, "console/feeds");
    assert_eq!(ada.get(&format!("{feed}/entries/1")).await.0, StatusCode::OK);
    let (status, page) = bob.get(&format!("{feed}/entries/1")).await;
    assert_eq!(status, StatusCode::NOT_FOUND);
    assert!(page.contains("no such feed") && page.contains("<h1>Page not found"), "{page}");
    assert!(page.contains(">All feeds<"), "{page}");
    for seq in ["0", "99", "-1", "x", "9223372036854775807"] {
        let (status, page) = ada.get(&format!("{feed}/entries/{seq}")).await;
        assert_eq!(status, StatusCode::NOT_FOUND, "{seq}: {page}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn the_text_of_an_entry_is_displayed_in_a_frame_that_runs_no_script() {
    let (world, feed) = world_with("/tides", "application/rss+xml", HOSTILE).await;
    let browser = Browser::start().await;
    browser.open(&world.gateway.url("/console")).await;
    browser.fill("#login", "ada").await;
    browser.fill("#token", "ada").await;
    browser.click("main form button").await;
    browser.until("document.querySelector('.account')").await;
    let page = world.gateway.url(&format!("{feed}/entries/1"));
    browser.open(&page).await;
    browser.until("document.querySelector('iframe.preview')").await;
    browser.enter_frame().await;
    assert_eq!(browser.text("main").await, "High at noon");
    browser.leave_frame().await;
    assert_eq!(browser.run("return window.ran ?? null").await, json!(null));
    browser.complaints().await; // that the image of another server is not loaded

    // The frame is safe without the sanitizer as well.
    let script = "return new Promise((loaded) => {
        const frame = document.querySelector('iframe');
        frame.onload = loaded;
        frame.srcdoc = '<script>parent.ran = 1</script><img src=\"x\" onerror=\"parent.ran = 1\">';
    }).then(() => true)";
    assert_eq!(browser.run(script).await, json!(true));
    assert_eq!(browser.run("return window.ran ?? null").await, json!(null));
}

#[tokio::test]
async fn c08_an_entry_has_its_revisions_what_changed_and_to_whom_it_was_sent() {
    let (world, feed) = world_with("/tides", "application/rss+xml", HOSTILE).await;
    make_token(&world, "bob", Scopes::of_owner()).await;
    subscribe_with(&world, "ada", "/all", &[("updates", "true")]).await;
    subscribe_with(&world, "bob", "/of-bob", &[("updates", "true")]).await;
    let ada = Visitor::sign_in(&world, "ada", "ada").await;
    assert!(!ada.page(&format!("{feed}/entries/1")).await.contains("Revisions"));
    world.publisher.put_rss("/tides", HOSTILE.replace("High at", "Low &lt;i&gt;at&lt;/i&gt;"));
    world.gateway.post("/ping", &[("url", &world.topic)]).await;
    world.subscriber.until("/all", |received| !received.is_empty()).await;
    world.subscriber.until("/of-bob", |received| !received.is_empty()).await;
    let updated = format!("{feed}/entries/2");
    until("the attempt is stored", async || ada.page(&updated).await.contains("/attempts/")).await;
    let page = ada.page(&updated).await;
    let parts = [
        "Compared with number 1",
        "<del>High</del><ins>Low</ins>",
        "it is an update, and the subscription receives only those that",
        "<dt>Number</dt><dd>2 in the log of the feed, an update ",
    ];
    for part in parts {
        assert!(page.contains(part), "{part}: {page}");
    }
    for (path, is_visible) in [("/ada", true), ("/all", true), ("/of-bob", true)] {
        assert_eq!(page.contains(&world.subscriber.url(path)), is_visible, "{path}: {page}");
    }
    let bob = Visitor::sign_in(&world, "bob", "bob").await;
    let page = bob.page(&updated).await;
    for (path, is_visible) in [("/ada", false), ("/all", false), ("/of-bob", true)] {
        assert_eq!(page.contains(&world.subscriber.url(path)), is_visible, "{path}: {page}");
    }
    let older = bob.page(&format!("{feed}/entries/1?compare=2")).await;
    assert!(older.contains("Compared with number 2"), "{older}");
    let other = bob.page(&format!("{feed}/entries/1?compare=99")).await;
    assert!(!other.contains("Compared with"), "{other}");
}
