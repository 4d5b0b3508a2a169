//! The icons of sites in the lists of the console.

use feedgate_core::account::{Scope, Scopes};
use futures_util::future::join_all;
use http::StatusCode;
use reqwest::Response;
use serde_json::json;

use crate::console::pages::{axe, check_displayed, sign_in};
use crate::console::{Visitor, make_token, subscribe, world_of_two};
use crate::support::browser::Browser;
use crate::support::feeds::rss;
use crate::support::origin::{Origin, answer};
use crate::support::publisher::Publisher;
use crate::support::world::World;

/// A picture of 16 and 32 pixels.
const ICON: &[u8] = include_bytes!("../../../../src/http/routes/icon/favicon.ico");

/// The height of a row without an icon in pixels: 2.5 times the size of the text.
const ROW_HEIGHT: u32 = 38;

/// Publishes a feed that names an icon.
fn put_feed_with_icon(publisher: &Publisher, path: &str, icon: &str) {
    let feed = format!(
        "<feed xmlns=\"http://www.w3.org/2005/Atom\"><id>urn:x:{path}</id><title>{path}</title>\
         <updated>2026-01-01T00:00:00Z</updated><icon>{icon}</icon></feed>"
    );
    publisher.put(path, "application/atom+xml", feed);
}

/// Returns the path of the icon of the feed that the world is about.
async fn icon_path(world: &World) -> String {
    let store = world.database.open().await;
    let feed = store.find(&world.topic).await.unwrap().expect("it is subscribed to");
    store.close().await;
    format!("/console/icons/{}", feed.id)
}

async fn request(visitor: &Visitor<'_>, path: &str) -> Response {
    let request = visitor.client.get(visitor.world.gateway.url(path));
    request.header("cookie", &visitor.cookie).send().await.unwrap()
}

#[tokio::test]
async fn c04_the_icon_of_a_site_is_fetched_once_for_all_who_may_see_its_feed() {
    let world = world_of_two().await;
    make_token(&world, "sub", [Scope::Subscribe].into_iter().collect()).await;
    world.publisher.put("/favicon.ico", "text/plain", ICON);
    let icon = icon_path(&world).await;
    let ada = Visitor::sign_in(&world, "ada", "ada").await;
    let root = Visitor::sign_in(&world, "root", "root").await;
    let list = ada.page("/console/feeds").await;
    assert!(list.contains(&format!("data-icon=\"..{icon}\" data-letter=\"1\"")), "{list}");

    let bob = Visitor::sign_in(&world, "bob", "bob").await;
    for path in [&icon, "/console/icons/0", "/console/icons/x"] {
        let (status, page) = bob.get(path).await;
        assert_eq!(status, StatusCode::NOT_FOUND);
        assert!(page.contains("There is no such feed."), "{page}");
    }
    let sub = Visitor::sign_in(&world, "sub", "sub").await;
    assert_eq!(request(&sub, &icon).await.status(), StatusCode::FORBIDDEN);
    let (_, page) = world.gateway.get(&icon).await;
    assert!(page.contains("<h1>Sign in</h1>"), "{page}");
    assert!(world.publisher.fetches("/favicon.ico").is_empty());

    let viewers = [&ada, &root].repeat(4).into_iter().map(|viewer| request(viewer, &icon));
    for response in join_all(viewers).await {
        assert_eq!(response.status(), StatusCode::OK);
        let headers = response.headers();
        assert_eq!(headers["content-type"], "image/x-icon");
        assert_eq!(headers["x-content-type-options"], "nosniff");
        assert_eq!(headers["cache-control"], "private, max-age=86400");
        assert_eq!(response.bytes().await.unwrap(), ICON);
    }
    let fetches = world.publisher.fetches("/favicon.ico");
    assert_eq!(fetches.len(), 1);
    let agent = fetches[0].request.header("user-agent").unwrap();
    assert!(!agent.contains("feed-id") && !agent.contains("subscribers"), "{agent}");
}

#[tokio::test]
async fn c04_what_is_no_small_picture_is_no_icon_and_not_requested_again() {
    let mut world = world_of_two().await;
    let long = [b"\x89PNG\r\n\x1a\n".as_slice(), &[0; 64 << 10]].concat();
    let svg = b"<svg xmlns='http://www.w3.org/2000/svg'/>".to_vec();
    let mut icons = Vec::new();
    for (name, body) in [("/svg", Some(svg)), ("/long", Some(long)), ("/missing", None)] {
        if let Some(body) = body {
            world.publisher.put(name, "image/png", body);
        }
        let path = format!("/feed-of{name}");
        put_feed_with_icon(&world.publisher, &path, &world.publisher.url(name));
        world = world.about(&path);
        subscribe(&world, "ada", name).await;
        icons.push((name, icon_path(&world).await));
    }
    let ada = Visitor::sign_in(&world, "ada", "ada").await;
    for (name, icon) in icons {
        assert_eq!(ada.get(&icon).await, (StatusCode::NO_CONTENT, String::new()), "{name}");
        world.publisher.put(name, "image/png", ICON);
        assert_eq!(ada.get(&icon).await.0, StatusCode::NO_CONTENT, "{name}");
        assert_eq!(world.publisher.fetches(name).len(), 1, "{name}");
    }
}

#[tokio::test]
async fn s49_an_icon_tells_nobody_else_of_a_private_feed() {
    let mut world = world_of_two().await;
    let elsewhere = Publisher::start().await;
    elsewhere.put("/icon", "image/png", ICON);
    put_feed_with_icon(&world.publisher, "/named", &elsewhere.url("/icon"));
    world = world.about("/named");
    world.topic = world.topic.replace("http://", "http://user:pass@");
    subscribe(&world, "ada", "/named").await;
    let named = icon_path(&world).await;
    let origin = Origin::start().await;
    let location = format!("Location: {}", elsewhere.url("/icon"));
    origin.script("/favicon.ico", [answer("302 Found", &[&location], "")]);
    let feed = rss("tides", 1..2);
    origin.script("/feed", [answer("200 OK", &["Content-Type: application/rss+xml"], feed)]);
    world.topic = origin.url("/feed");
    subscribe(&world, "ada", "/moved").await;
    let moved = icon_path(&world).await;

    let ada = Visitor::sign_in(&world, "ada", "ada").await;
    for icon in [named, moved] {
        assert_eq!(ada.get(&icon).await.0, StatusCode::NO_CONTENT);
    }
    assert!(elsewhere.fetches("/icon").is_empty());
    assert!(world.publisher.fetches("/named")[0].request.header("authorization").is_some());
    let fetches = world.publisher.fetches("/favicon.ico");
    assert_eq!(fetches.len(), 1);
    assert_eq!(fetches[0].request.header("authorization"), None);
}

#[tokio::test(flavor = "multi_thread")]
async fn c04_the_icon_of_a_site_appears_in_the_lists() {
    let axe = axe();
    let world = World::with_tides(3, &[]).await;
    make_token(&world, "root", Scopes::all()).await;
    subscribe(&world, "root", "/root").await;
    world.publisher.put("/favicon.ico", "image/x-icon", ICON);
    let browser = Browser::start().await;
    sign_in(&browser, &world, "root").await;
    let mut wrong = Vec::new();
    for (path, theme) in [("feeds", "light"), ("subscriptions", "dark")] {
        browser.emulate(1280, theme).await;
        browser.open(&world.gateway.url(&format!("/console/{path}"))).await;
        browser.until("document.querySelector('.site img')?.naturalWidth > 0").await;
        let size = "const icon = document.querySelector('.site img'); \
                    return [icon.width, icon.height, icon.closest('tr').offsetHeight]";
        assert_eq!(browser.run(size).await, json!([16, 16, ROW_HEIGHT]), "{path}");
        let name = format!("icons-in-{path}");
        check_displayed(&browser, &axe, (&name, 1280, theme), &mut wrong).await;
    }
    assert_eq!(world.publisher.fetches("/favicon.ico").len(), 1);
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
    assert_eq!(browser.complaints().await, [""; 0]);
}
