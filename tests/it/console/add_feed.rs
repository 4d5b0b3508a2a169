//! Adding a feed: nothing is stored before the form is sent, and errors are sentences on the form.

use feedgate_core::account::Scopes;
use http::StatusCode;
use http::header::LOCATION;

use super::{Visitor, link, make_token, world_of_two};
use crate::support::gateway::{LOGIN, TOKEN};
use crate::support::subscriber::is_signed;
use crate::support::until;
use crate::support::world::World;

/// The address of the page with the preview of `url`.
fn preview(url: &str) -> String {
    let mut query = url::form_urlencoded::Serializer::new(String::new());
    format!("/console/feeds/add?{}", query.append_pair("url", url).finish())
}

#[tokio::test]
async fn a_feed_is_displayed_before_anything_is_stored() {
    let world = World::with_tides(12, &[]).await;
    make_token(&world, "ada", Scopes::all()).await;
    let ada = Visitor::sign_in(&world, "ada", "ada").await;
    let page = ada.page(&preview(&world.topic)).await;
    for text in ["<h2>tides</h2>", "<dd>12</dd>", "<dd>RSS 2.0</dd>", "Item 12", "Item 3"] {
        assert!(page.contains(text), "{text}: {page}");
    }
    assert!(!page.contains("Item 2<"), "ten entries: {page}");
    assert!(ada.page("/console/feeds").await.contains("No feeds found."));

    let form = [("url", world.topic.as_str()), ("callback", ""), ("format", "json")];
    let response = ada.act("/console/feeds/add", &form).await;
    assert_eq!(response.status(), StatusCode::SEE_OTHER);
    let feed = response.headers()[LOCATION].to_str().unwrap().trim_start_matches("..").to_owned();
    let page = ada.page(&feed).await;
    assert!(page.contains("The subscription is stored.") && page.contains("/dev/null"), "{page}");

    let page = ada.page(&preview(&world.topic)).await;
    assert!(page.contains("You are subscribed to this address"), "{page}");
    let response = ada.act("/console/feeds/add", &form).await;
    assert!(response.headers()[LOCATION].to_str().unwrap().ends_with("done=existing"));
}

#[tokio::test]
async fn a_callback_is_notified_with_the_secret_that_was_displayed_once() {
    let world = World::with_tides(1, &[]).await;
    make_token(&world, "ada", Scopes::all()).await;
    let ada = Visitor::sign_in(&world, "ada", "ada").await;
    let callback = world.subscriber.url("/ada");
    let form = [("url", world.topic.as_str()), ("callback", &callback)];
    let page = ada.act("/console/feeds/add", &form).await.text().await.unwrap();
    let (_, secret) = page.split_once("<code>whsec_").unwrap_or_else(|| panic!("{page}"));
    let secret = format!("whsec_{}", secret.split('<').next().unwrap());
    world.publisher.fetched("/feed", 1).await;
    world.gateway.comes_to_rest().await;
    world.put_tides(2);
    world.gateway.post("/ping", &[("url", &world.topic)]).await;
    world.subscriber.until("/ada", |received| !received.is_empty()).await;
    assert!(is_signed(&world.subscriber.notified("/ada")[0], &secret));
}

#[tokio::test]
async fn a_page_offers_its_feeds() {
    let world = World::with_tides(1, &[]).await;
    make_token(&world, "ada", Scopes::all()).await;
    let ada = Visitor::sign_in(&world, "ada", "ada").await;
    let html = "<html><head><title>Sea</title><link rel=alternate type='application/rss+xml' \
                href='/feed' title='The &lt;tides&gt;'></head><body><p>High</p></body></html>";
    world.publisher.put("/page", "text/html", html);
    let page = ada.page(&preview(&world.publisher.url("/page"))).await;
    assert!(page.contains("This is an HTML page, not a feed."), "{page}");
    assert!(page.contains("The &lt;tides&gt;") && page.contains(">RSS<"), "{page}");
    let follows = "name=\"follow\" value=\"true\" checked";
    assert!(page.contains(follows) && page.contains("value=\"json\" selected"), "{page}");
    let (_, link) = page.split_once("feeds/add?url=").unwrap();
    let link = link.split('"').next().unwrap();
    let page = ada.page(&format!("/console/feeds/add?url={link}")).await;
    assert!(page.contains("<h2>tides</h2>"), "{page}");
}

#[tokio::test]
async fn p52_a_page_is_followed_if_the_form_says_so() {
    let world = World::with_tides(1, &[]).await;
    let head = "<link rel=alternate type=application/rss+xml title=Tides href=/feed>";
    world.publisher.put("/home", "text/html", format!("<html><head>{head}</head><body><p>x"));
    let ada = Visitor::sign_in(&world, LOGIN, TOKEN).await;
    let home = world.publisher.url("/home");
    let page = ada.page(&preview(&home)).await;
    assert!(page.contains("name=\"follow\""), "{page}");
    let form = [("url", home.as_str()), ("follow", "true")];
    assert_eq!(ada.act("/console/feeds/add", &form).await.status(), StatusCode::SEE_OTHER);
    let list = world.gateway.own("/?hub.mode=list").await;
    let feed = &list[0]["subscription"]["feed"];
    assert_eq!(
        (&feed["url"], &feed["followed"]),
        (&home.as_str().into(), &world.topic.as_str().into())
    );
}

#[tokio::test]
async fn a36_a_reading_list_is_followed_if_the_form_says_so() {
    let world = World::with_tides(1, &[]).await;
    let outline = format!("<outline text='tides' xmlUrl='{}'/>", world.topic);
    let opml = format!("<opml version='2.0'><head/><body>{outline}</body></opml>");
    world.publisher.put("/list.opml", "text/x-opml", opml);
    let ada = Visitor::sign_in(&world, LOGIN, TOKEN).await;
    let list = world.publisher.url("/list.opml");
    let page = ada.page(&preview(&list)).await;
    assert!(page.contains("This is a list of 1\u{a0}feed in OPML."), "{page}");
    assert!(page.contains("name=\"follow\"") && page.contains("Follow the list"), "{page}");
    let form = [("url", list.as_str()), ("follow", "true")];
    assert_eq!(ada.act("/console/feeds/add", &form).await.status(), StatusCode::SEE_OTHER);
    until("the feed of the list is subscribed to", async || {
        world.gateway.own("/?hub.mode=list").await.as_array().is_some_and(|held| held.len() == 2)
    })
    .await;
}

#[tokio::test]
async fn what_cannot_be_added_is_explained_on_the_form() {
    let world = world_of_two().await;
    let ada = Visitor::sign_in(&world, "ada", "ada").await;
    let missing = world.publisher.url("/missing");
    #[rustfmt::skip]
    let cases = [
        ("ftp://tides.test/",          "This address cannot be used: ftp: URLs are not supported"),
        ("http://10.1.2.3/feed",       "10.1.2.3 is not a public address"),
        (missing.as_str(),             "There is no preview: "),
        ("http://a.test/#.",           "cannot be used"),
    ];
    for (url, want) in cases {
        let (_, page) = ada.get(&preview(url)).await;
        assert!(page.contains(want) && page.contains("name=\"url\""), "{url}: {page}");
    }
    let page = ada.page(&preview(&missing)).await;
    assert!(page.contains("Subscribe without a preview"), "{page}");

    let secret = "x".repeat(300);
    #[rustfmt::skip]
    let cases = [
        ("ftp://a.test/",        "",      "The callback cannot be used"),
        ("http://10.1.2.3/cb",   "",      "The callback cannot be used: 10.1.2.3 is not a public address"),
        ("http://a.test/cb",     &secret, "The secret must be shorter than 200 bytes."),
    ];
    for (callback, secret, want) in cases {
        let form = [("url", world.topic.as_str()), ("callback", callback), ("secret", secret)];
        let response = ada.act("/console/feeds/add", &form).await;
        assert_eq!(response.status(), StatusCode::UNPROCESSABLE_ENTITY);
        let page = response.text().await.unwrap();
        assert!(page.contains(want), "{page}");
        assert!(page.contains(&format!("value=\"{callback}\"")), "kept: {page}");
    }
}

#[tokio::test]
async fn previews_are_not_made_for_other_sites_and_not_without_limit() {
    let world = world_of_two().await;
    let ada = Visitor::sign_in(&world, "ada", "ada").await;
    let fetches = world.publisher.fetches("/feed").len();
    let request = ada.client.get(world.gateway.url(&preview(&world.topic)));
    let request = request.header("cookie", &ada.cookie).header("sec-fetch-site", "cross-site");
    let request = request.header("sec-fetch-mode", "navigate").header("sec-fetch-dest", "document");
    let page = request.send().await.unwrap().text().await.unwrap();
    assert!(page.contains("Another site filled in this form."), "{page}");
    assert_eq!(world.publisher.fetches("/feed").len(), fetches, "nothing was fetched");

    for _ in 0..20 {
        assert_eq!(ada.get(&preview(&world.topic)).await.0, StatusCode::OK);
    }
    let (status, page) = ada.get(&preview(&world.topic)).await;
    assert_eq!(status, StatusCode::TOO_MANY_REQUESTS);
    assert!(page.contains("Too many previews"), "{page}");
    let bob = Visitor::sign_in(&world, "bob", "bob").await;
    assert!(bob.page(&preview(&world.topic)).await.contains("<h2>tides</h2>"), "another account");
}

#[tokio::test]
async fn the_texts_of_entries_are_sanitized_if_the_form_says_so() {
    let world = World::with_tides(1, &[]).await;
    make_token(&world, "ada", Scopes::all()).await;
    let ada = Visitor::sign_in(&world, "ada", "ada").await;
    let form = |format| [("url", world.topic.as_str()), ("format", format), ("sanitize", "true")];
    let response = ada.act("/console/feeds/add", &form("raw")).await;
    assert_eq!(response.status(), StatusCode::UNPROCESSABLE_ENTITY);
    assert!(response.text().await.unwrap().contains("Only Atom and JSON can be sanitized"));

    let response = ada.act("/console/feeds/add", &form("fitting")).await;
    assert_eq!(response.status(), StatusCode::SEE_OTHER);
    let list = ada.page("/console/subscriptions").await;
    let page = ada.page(&link(&list, "console/subscriptions")).await;
    assert!(page.contains("Atom, sanitized"), "{page}");
}

#[tokio::test]
async fn q05_the_forms_that_subscribe_take_a_filter() {
    let world = World::with_tides(1, &[]).await;
    make_token(&world, "ada", Scopes::all()).await;
    let ada = Visitor::sign_in(&world, "ada", "ada").await;
    for path in [preview(&world.topic), "/console/opml".to_owned()] {
        assert!(ada.page(&path).await.contains("name=\"filter\""), "{path}");
    }
    for (format, filter, reason) in [
        ("atom", "-remake", "The filter cannot be used: the query requires nothing of an entry"),
        ("raw", "laurel", "Only Atom and JSON can be filtered"),
    ] {
        let form = [("url", world.topic.as_str()), ("format", format), ("filter", filter)];
        let response = ada.act("/console/feeds/add", &form).await;
        assert_eq!(response.status(), StatusCode::UNPROCESSABLE_ENTITY);
        assert!(response.text().await.unwrap().contains(reason), "{filter}");
    }

    let form = [("url", world.topic.as_str()), ("format", "fitting"), ("filter", "laurel -remake")];
    assert_eq!(ada.act("/console/feeds/add", &form).await.status(), StatusCode::SEE_OTHER);
    let list = ada.page("/console/subscriptions").await;
    let page = ada.page(&link(&list, "console/subscriptions")).await;
    assert!(page.contains("<code>laurel -remake</code>"), "{page}");
}

#[tokio::test]
async fn the_forms_that_subscribe_take_headers_for_the_callback_and_never_show_them() {
    let world = World::with_tides(1, &[]).await;
    make_token(&world, "ada", Scopes::all()).await;
    let ada = Visitor::sign_in(&world, "ada", "ada").await;
    for path in [preview(&world.topic), "/console/opml".to_owned()] {
        assert!(ada.page(&path).await.contains("name=\"callback_headers\""), "{path}");
    }
    let form = [("url", world.topic.as_str()), ("callback_headers", "Host: s3cret.test")];
    let response = ada.act("/console/feeds/add", &form).await;
    assert_eq!(response.status(), StatusCode::UNPROCESSABLE_ENTITY);
    let page = response.text().await.unwrap();
    assert!(page.contains("The headers cannot be used: host cannot be chosen."), "{page}");
    assert!(!page.contains("s3cret"), "{page}");

    let callback = world.subscriber.url("/cb");
    let form = [
        ("url", world.topic.as_str()),
        ("callback", callback.as_str()),
        ("callback_headers", "Authorization: Bearer t0ken-of-ada"),
    ];
    let response = ada.act("/console/feeds/add", &form).await;
    assert!(!response.text().await.unwrap().contains("t0ken-of-ada"));
    let list = ada.page("/console/subscriptions").await;
    let page = ada.page(&link(&list, "console/subscriptions")).await;
    assert!(page.contains("authorization with the fingerprint <code>sha256:"), "{page}");
    assert!(!page.contains("t0ken-of-ada"), "{page}");
}

#[tokio::test]
async fn a36_the_form_takes_headers_for_the_feed_and_never_shows_them() {
    let world = World::with_tides(1, &[]).await;
    make_token(&world, "ada", Scopes::all()).await;
    let ada = Visitor::sign_in(&world, "ada", "ada").await;
    assert!(ada.page(&preview(&world.topic)).await.contains("name=\"feed_headers\""));
    let form = [("url", world.topic.as_str()), ("feed_headers", "Range: s3cret")];
    let response = ada.act("/console/feeds/add", &form).await;
    assert_eq!(response.status(), StatusCode::UNPROCESSABLE_ENTITY);
    let page = response.text().await.unwrap();
    assert!(page.contains("range cannot be chosen.") && !page.contains("s3cret"), "{page}");

    let form = [("url", world.topic.as_str()), ("feed_headers", "Cookie: session=k3y-of-ada")];
    assert_eq!(ada.act("/console/feeds/add", &form).await.status(), StatusCode::SEE_OTHER);
    let list = ada.page("/console/subscriptions").await;
    let page = ada.page(&link(&list, "console/subscriptions")).await;
    assert!(page.contains("cookie with the fingerprint <code>sha256:"), "{page}");
    let feeds = ada.page("/console/feeds").await;
    let feed = ada.page(&link(&feeds, "console/feeds")).await;
    for page in [list, page, feeds, feed] {
        assert!(!page.contains("k3y-of-ada") && !page.contains("feedgate-headers-"), "{page}");
    }
}
