//! `/try`: what is at an address, for somebody without an account.

use http::StatusCode;
use http::header::{CONTENT_SECURITY_POLICY, RETRY_AFTER};
use serde_json::json;

use feedgate::jobs::runner;
use feedgate_core::poll::Poll;
use feedgate_core::registrant::RegistrantNetwork;
use feedgate_core::topic::Topic;
use feedgate_core::visibility::SourceNetwork;

use crate::store::poll;
use crate::support::browser::Browser;
use crate::support::feeds::{between, rss};
use crate::support::gateway::Gateway;
use crate::support::origin::{Origin, Step, answer};
use crate::support::ports::free_port;
use crate::support::postgres::{Database, Kind};
use crate::support::publisher::Publisher;
use crate::support::server::client;
use crate::support::until;
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
        "<h2>tides</h2>", "<dd>12</dd>", "<dd>RSS 2.0</dd>", "Item 12", "Item 3",
        "The text of 12", "&lt;entry", "&quot;permalinkUrl&quot;", "/rss/channel/item[1]/title",
        "What was adapted", "the feed has no author: tides ", "How often it would be fetched", "the feed names none",
        "href=\"console/feeds/add?url=", "Link to this page", &format!("/try?url={link}\""),
    ];
    for part in parts {
        assert!(page.contains(part), "{part}: {page}");
    }
    assert!(!page.contains("Item 2<") && !page.contains("The text of 11"), "{page}");
    assert_eq!(page.matches("<code>author_missing").count(), 1, "{page}");
    let (_, other) = world.gateway.get(&format!("/try?url={link}&entry=2")).await;
    assert!(other.contains("The text of 11") && !other.contains("The text of 12"), "{other}");
    assert!(other.contains(&format!("/try?url={link}&amp;entry=2\"")), "{other}");
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
        [("referer", "http://other.test/page"), ("accept", "text/html")],
        [("origin", "http://other.test"), ("accept", "*/*")],
        [("accept", "image/avif,image/webp,*/*;q=0.8"), ("user-agent", "Mozilla/5.0")],
        [("accept", "text/css,*/*;q=0.1"), ("user-agent", "Mozilla/5.0")],
        [("accept", "application/json"), ("user-agent", "Mozilla/5.0")],
        [("sec-fetch-site", "none"), ("sec-purpose", "prefetch;prerender")],
        [("purpose", "prefetch"), ("accept", "text/html")],
        [("user-agent", "feedgate/1.0 (+https://gate.test/bot; 1 subscribers)"), ("accept", "*/*")],
    ];
    for headers in others {
        let request = client().get(world.gateway.url(&path));
        let request =
            headers.iter().fold(request, |request, (name, value)| request.header(*name, *value));
        let response = request.send().await.unwrap();
        assert_eq!(response.status(), StatusCode::FORBIDDEN, "{headers:?}");
    }
    let response = client().head(world.gateway.url(&path)).send().await.unwrap();
    assert_eq!(response.status(), StatusCode::OK);
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
async fn s56_the_page_does_not_tell_what_accounts_are_subscribed_to() {
    let world = World::with_tides(1, &[PROXIED]).await;
    let try_from = async |client_address: &str, url: &str| {
        let request = client().get(world.gateway.url(&tried(url)));
        let request = request.header("x-forwarded-for", client_address);
        let response = request.send().await.unwrap();
        let has_time = response.headers().contains_key(RETRY_AFTER);
        let (status, page) = (response.status(), response.text().await.unwrap());
        (status, has_time, page.replace("inside.test", "NAME").replace("other.test", "NAME"))
    };
    let store = world.database.open().await;
    let inside = Topic::parse("http://inside.test/feed").unwrap();
    let now = runner::now();
    let id = store.ensure_for(&inside, RegistrantNetwork::UNKNOWN, now).await.unwrap().id;
    let source_network = Some(SourceNetwork::Inner);
    store
        .record(id, &Poll { source_network, ..poll(now, &["tag:inside.test,2026:1"]) })
        .await
        .unwrap();
    let known = try_from("8.8.8.8", inside.as_str()).await;
    assert_eq!(known, try_from("8.8.8.8", "http://other.test/feed").await, "a name inside");

    let origin = Origin::start().await;
    origin.script("/feed", [answer("503 Oops", &["Retry-After: 3600"], "")]);
    let topic = origin.url("/feed");
    let fresh = try_from("127.0.0.1", &topic).await;
    assert!(fresh.2.contains("failed to send the document (503"), "{}", fresh.2);
    let callback = world.subscriber.url("/own");
    world.gateway.subscribe_superfeedr(&topic, &callback, "atom").await;
    until("the feed is left alone", async || {
        let known = store.find(&topic).await.unwrap();
        known.is_some_and(|known| known.polling.left_alone_after(runner::now()).is_some())
    })
    .await;
    let requests = origin.requests().len();
    assert_eq!(try_from("127.0.0.1", &topic).await, fresh, "of an account");
    world.gateway.open_to_anonymous(&topic).await;
    let (_, has_time, page) = try_from("127.0.0.1", &topic).await;
    assert!(has_time && page.contains("requested a pause"), "of somebody without one: {page}");
    assert_eq!(origin.requests().len(), requests, "the pause is respected");
    store.close().await;
}

#[tokio::test]
async fn b4_no_document_makes_the_page_long() {
    let world = World::with_tides(1, &[]).await;
    let long = |what: &str, bytes: usize| what.repeat(bytes / what.len());
    let entry = |n: usize, inner: &str| {
        format!(
            "<entry><id>tag:long.test,2026:{n}</id><title>{}</title>{inner}</entry>",
            long("&amp;", 2_000)
        )
    };
    let elsewhere =
        format!("<content type='a/{}' src='http://a/{}'/>", long("b", 500), long("a", 900_000));
    let inline = format!("<content type='a/{}'>x</content>", long("b", 300_000));
    let categories: String =
        (0..300).map(|n| format!("<category term='{n}{}'/>", long("&quot;", 600))).collect();
    let several: String =
        (2..12).map(|n| entry(n, &long("<link href='http://a/?&amp;&amp;'/>", 8_000))).collect();
    let feed = |entries: &str| {
        format!(
            "<feed xmlns='http://www.w3.org/2005/Atom'><title>{}</title>{entries}</feed>",
            long("&lt;", 4_000)
        )
    };
    let links: String = (0..40)
        .map(|n| {
            format!(
                "<link rel=alternate type='application/rss+xml' title='{0}' href='/{n}?{0}'>",
                long("&amp;", 9_000)
            )
        })
        .collect();
    #[rustfmt::skip]
    let documents = [
        ("/elsewhere",  "application/atom+xml", feed(&entry(1, &elsewhere)), "The content is at http://a/aaa"),
        ("/inline",     "application/atom+xml", feed(&entry(1, &inline)),    "What subscribers are sent"),
        ("/categories", "application/atom+xml", feed(&entry(1, &categories)), "Documents over 128 kB"),
        ("/several",    "application/atom+xml", feed(&several),              "What subscribers are sent"),
        ("/links",      "text/html", format!("<html><head>{links}</head></html>"), "Feeds of this page"),
    ];
    for (path, media_type, document, part) in documents {
        world.publisher.put(path, media_type, document);
        let (status, page) = world.gateway.get(&tried(&world.publisher.url(path))).await;
        assert!(status == StatusCode::OK && page.contains(part), "{path}: {page:.9000}");
        assert!(page.len() < 256 << 10, "{path}: {} bytes", page.len());
    }
}

#[tokio::test]
async fn crawlers_are_told_to_leave_the_page_alone() {
    let database = Database::new(Kind::Sqlite).await;
    let gateway = Gateway::start(&database, &[]).await;
    let (status, rules) = gateway.get("/robots.txt").await;
    assert_eq!(status, StatusCode::OK);
    let lines =
        ["User-agent: *", "Disallow: /try?", "Disallow: /feed-health?", "Disallow: /console"];
    assert_eq!(rules.lines().collect::<Vec<_>>(), lines);
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
