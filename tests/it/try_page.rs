//! `/try`: what is at an address, for somebody without an account.

use http::StatusCode;
use http::header::{CONTENT_SECURITY_POLICY, RETRY_AFTER};
use serde_json::json;

use crate::support::browser::Browser;
use crate::support::feeds::{between, rss};
use crate::support::gateway::Gateway;
use crate::support::origin::{Origin, Step, answer};
use crate::support::ports::free_port;
use crate::support::postgres::{Database, Kind};
use crate::support::publisher::Publisher;
use crate::support::server::client;
use crate::support::world::World;

/// Behind a proxy on this machine, which says whom it speaks for.
const PROXIED: (&str, &str) = ("FEEDGATE_TRUSTED_PROXIES", "127.0.0.1");
/// The longest page, in bytes.
const LONGEST_PAGE: usize = 100_000;

fn tried(url: &str) -> String {
    let mut query = url::form_urlencoded::Serializer::new(String::new());
    format!("/try?{}", query.append_pair("url", url).finish())
}

async fn get(gateway: &Gateway, url: &str) -> (StatusCode, String) {
    let (status, page) = gateway.get(&tried(url)).await;
    assert!(page.len() < LONGEST_PAGE, "{} bytes: {url}", page.len());
    (status, page)
}

#[tokio::test]
async fn a_stranger_sees_the_feeds_of_a_page_and_the_entries_of_one_as_they_are_sent() {
    let world = World::with_tides(12, &[]).await;
    let html = "<html><head><title>Sea</title><link rel=alternate type='application/rss+xml' \
                href='/feed' title='The &lt;tides&gt;'></head><body><p>High</p></body></html>";
    world.publisher.put("/page", "text/html", html);
    let (_, front) = world.gateway.get("/").await;
    assert!(!front.contains("<form"), "programs get a text");
    let request = client().get(world.gateway.url("/")).header("accept", "text/html");
    let front = request.send().await.unwrap().text().await.unwrap();
    let (before, _) = front.split_once("<h2>").unwrap();
    let (what, form) = before.split_once("This gateway fetches").unwrap();
    assert!(what.contains("<h1>Any feed") && form.contains("action=\"try\""), "{front}");

    let (status, page) = get(&world.gateway, &world.publisher.url("/page")).await;
    assert_eq!(status, StatusCode::OK);
    assert!(page.contains("Feeds of this page") && page.contains("The &lt;tides&gt;"), "{page}");
    assert!(page.contains("data-name=\"Type\">RSS<"), "{page}");
    let link = between(&page, "href=\"try?url=", "\"").unwrap();
    let (_, page) = world.gateway.get(&format!("/try?url={link}")).await;
    #[rustfmt::skip]
    let parts = [
        "<h2>tides</h2>", "<dd>12</dd>", "<dd>rss2.0</dd>", "Item 12", "Item 3",
        "The text of 12", "&lt;entry", "&quot;permalinkUrl&quot;", "/rss/channel/item[1]/title",
        "What was adapted", "the feed has no author: tides ", "How often it would be fetched", "names no hub",
        "href=\"console/feeds/add?url=", "Link to this page", &format!("/try?url={link}\""),
    ];
    for part in parts {
        assert!(page.contains(part), "{part}: {page}");
    }
    assert!(!page.contains("Item 2<") && !page.contains("The text of 11"), "{page}");
    assert_eq!(page.matches("<code>author_missing").count(), 1, "{page}");
    let (_, other) = world.gateway.get(&format!("/try?url={link}&entry=2")).await;
    assert!(other.contains("The text of 11") && !other.contains("The text of 12"), "{other}");
    assert_eq!(world.publisher.fetches("/feed").len(), 1, "for a minute, one fetch is enough");

    let local = world.topic.replace("http://127.0.0.1", "localhost");
    let (_, page) = get(&world.gateway, &local).await;
    assert!(page.contains("<h2>tides</h2>"), "without a scheme: {page}");
    let store = world.database.open().await;
    assert!(store.find(&world.topic).await.unwrap().is_none(), "nothing is stored");
    store.close().await;
}

#[tokio::test]
async fn what_cannot_be_displayed_says_what_was_wrong_and_what_would_be_right() {
    let settings = [("FEEDGATE_BODY_LIMIT_BYTES", "20000"), ("FEEDGATE_FETCH_TIMEOUT_S", "1")];
    let world = World::with_tides(1, &settings).await;
    let origin = Origin::start().await;
    origin.script("/slow", [Step::Hang]);
    origin.script("/failing", [answer("500 Oops", &[], "")]);
    let publisher = Publisher::start().await;
    publisher.put("/empty", "text/plain", "");
    publisher.put("/page", "text/html", "<html><body><p>Nothing here</p></body></html>");
    publisher.put("/large", "text/plain", "x".repeat(30_000));
    publisher.put_rss("/new", rss("new", 1..1));
    let own = |path: &str| publisher.url(path);
    let closed = format!("http://127.0.0.1:{}/", free_port());
    #[rustfmt::skip]
    let cases = [
        (String::new(),                    200, "Paste the address of a feed or of a page.", "Nothing is stored"),
        ("ftp://a.test/".to_owned(),       422, "ftp: URLs are not supported", "Paste the address of a feed or a page"),
        ("two words".to_owned(),           422, "This address cannot be used", "such as example.com"),
        ("https://me:pw@a.test/".to_owned(), 422, "contains a login", "Sign in"),
        ("http://10.1.2.3/feed".to_owned(), 422, "10.1.2.3 is not a public address", "everybody reaches"),
        (closed,                           200, "127.0.0.1 could not be reached", "write http:// before its name"),
        (own("/missing"),                  200, "has nothing at this address (404 Not Found)", "The start page usually links to the feed"),
        (origin.url("/failing"),           200, "failed to send the document (500 Internal Server Error)", "error log"),
        (origin.url("/slow"),              200, "127.0.0.1 is too slow", "within a few seconds"),
        (own("/large"),                    200, "The document is too large", "A feed needs its newest entries only"),
        (own("/empty"),                    200, "This is an empty document, not a feed", "A page names its feed in its head"),
        (own("/page"),                     200, "This is an HTML page, not a feed", "paste that"),
        (own("/new"),                      200, "The feed has no entries yet", "subscribed to all the same"),
    ];
    for (url, want, wrong, right) in cases {
        let (status, page) = get(&world.gateway, &url).await;
        assert_eq!(status.as_u16(), want, "{url}: {page}");
        assert!(page.contains(wrong) && page.contains(right), "{url}: {page}");
        assert!(page.contains("name=\"url\""), "the form stays: {page}");
    }
}

#[tokio::test]
async fn the_page_fetches_for_people_only_and_not_without_limit() {
    // A browser that another site leads here is not taken for a program on this machine.
    let settings = [("FEEDGATE_ANONYMOUS", "try,inner-addresses")];
    let world = World::with_tides(1, &settings).await;
    let path = tried(&world.topic);
    #[rustfmt::skip]
    let others = [
        [("sec-fetch-site", "cross-site"), ("sec-fetch-dest", "image")],
        [("sec-fetch-site", "cross-site"), ("sec-fetch-dest", "empty")],
        [("user-agent", "feedgate/1.0 (+https://gate.test/bot; 1 subscribers)"), ("accept", "*/*")],
    ];
    for headers in others {
        let request = client().get(world.gateway.url(&path));
        let request =
            headers.iter().fold(request, |request, (name, value)| request.header(*name, *value));
        let response = request.send().await.unwrap();
        assert_eq!(response.status(), StatusCode::FORBIDDEN, "{headers:?}");
    }
    assert!(world.publisher.fetches("/feed").is_empty(), "nothing was fetched");
    let link = client().get(world.gateway.url(&path)).header("sec-fetch-site", "cross-site");
    let response = link.header("sec-fetch-dest", "document").send().await.unwrap();
    assert_eq!(response.status(), StatusCode::OK, "a link of another site can be opened");
    let headers = response.headers();
    assert_eq!(headers["x-robots-tag"], "noindex, nofollow");
    let policy = headers[CONTENT_SECURITY_POLICY].to_str().unwrap();
    assert!(policy.starts_with("default-src 'none'") && !policy.contains("script"), "{policy}");

    for n in 1..20 {
        let (status, page) = get(&world.gateway, &world.publisher.url(&format!("/{n}"))).await;
        assert_eq!(status, StatusCode::OK, "{page}");
    }
    let response =
        client().get(world.gateway.url(&tried(&world.publisher.url("/20")))).send().await;
    let response = response.unwrap();
    assert_eq!(response.status(), StatusCode::TOO_MANY_REQUESTS);
    assert!(response.headers().contains_key(RETRY_AFTER));
    let page = response.text().await.unwrap();
    assert!(page.contains("Too many addresses were tried"), "{page}");
    let (status, page) = get(&world.gateway, &world.topic).await;
    assert!(status == StatusCode::OK && page.contains("<h2>tides</h2>"), "what is held: {page}");
}

#[tokio::test]
async fn each_network_of_strangers_has_a_budget_and_sees_public_addresses_only() {
    let settings = [PROXIED, ("FEEDGATE_ANONYMOUS_REQUESTS_PER_MIN", "1")];
    let world = World::with_tides(1, &settings).await;
    let try_from = async |client_address: &str, url: &str| {
        let request = client().get(world.gateway.url(&tried(url)));
        let response = request.header("x-forwarded-for", client_address).send().await.unwrap();
        (response.status().as_u16(), response.text().await.unwrap())
    };
    let (status, page) = try_from("8.8.8.8", &world.topic).await;
    assert_eq!(status, 422, "{page}");
    assert!(page.contains("127.0.0.1 is not a public address"), "{page}");
    assert!(world.publisher.fetches("/feed").is_empty());
    let (status, page) = try_from("8.8.8.8", "http://other.test/").await;
    assert_eq!(status, 429, "{page}");
    assert_ne!(try_from("9.9.9.9", "http://other.test/").await.0, 429, "another network");
}

#[tokio::test]
async fn an_operator_can_close_the_page_to_strangers() {
    let database = Database::new(Kind::Sqlite).await;
    let gateway = Gateway::start(&database, &[("FEEDGATE_ANONYMOUS", "hub,views")]).await;
    let (status, page) = gateway.get(&tried("https://a.test/feed")).await;
    assert_eq!(status, StatusCode::NOT_FOUND);
    assert!(page.contains("to accounts only"), "{page}");
    let add = "href=\"console/feeds/add?url=https%3A%2F%2Fa.test%2Ffeed\"";
    assert!(page.contains(add), "it leads to where accounts see the same: {page}");
    let request = client().get(gateway.url("/")).header("accept", "text/html");
    let front = request.send().await.unwrap().text().await.unwrap();
    assert!(!front.contains("action=\"try\""), "{front}");
}

#[tokio::test(flavor = "multi_thread")]
async fn the_text_of_an_entry_can_do_nothing_in_the_page() {
    let world = World::with_tides(1, &[]).await;
    let hostile = rss("tides", 1..2).replace(
        "The text of 1",
        "&lt;p onclick='alert(1)'&gt;High at &lt;b&gt;noon&lt;/b&gt;&lt;script&gt;parent.ran = 1&lt;/script&gt;",
    );
    world.publisher.put_rss("/feed", hostile);
    let browser = Browser::start().await;
    browser.open(&world.gateway.url("/try")).await;
    browser.fill("input[name=url]", &world.topic).await;
    browser.click("main form button").await;
    browser.until("document.querySelector('iframe.preview')").await;
    browser.enter_frame().await;
    assert_eq!(browser.text("main").await, "High at noon");
    browser.leave_frame().await;
    assert_eq!(browser.run("return window.ran ?? null").await, json!(null));
    assert_eq!(browser.complaints().await, [""; 0]);
}
