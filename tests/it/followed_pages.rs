//! Pages that are followed (rule P52): the feed that a page advertises is subscribed to, and the
//! subscriber knows the address of the page.

use http::header::{CONTENT_TYPE, HeaderMap};
use http::{Method, StatusCode};
use serde_json::{Value, json};

use crate::store::on_both_stores;
use crate::support::feeds::{entry_id, entry_ids, rss};
use crate::support::gateway::Gateway;
use crate::support::postgres::Database;
use crate::support::publisher::Publisher;
use crate::support::server::client;
use crate::support::subscriber::{Behavior, Subscriber};
use crate::support::until;

on_both_stores!(
    p52_a_followed_page_is_one_subscription_to_its_feed,
    p52_a_hub_follows_a_page_on_request,
    p52_the_answer_says_what_is_followed,
    p52_a_renewal_keeps_the_feed_until_it_fails,
    p52_the_newest_request_decides_what_an_address_means,
    p52_what_waits_for_a_followed_page_is_replaced_under_its_address,
    p52_a_request_without_a_callback_is_about_one_subscription_under_the_address,
    p52_pages_are_followed_by_default_if_so_set,
);

const HTML: &str = "text/html; charset=utf-8";
/// What is advertised on most pages of WordPress, and Atom besides.
const LINKS: &str = "<link rel=alternate type=application/rss+xml title=Comments href=/comments/feed>\
    <link rel=alternate type=application/rss+xml title=Tides href=/feed.rss>\
    <link rel=alternate type=application/atom+xml title=Tides href=/feed.xml>";

struct World {
    publisher: Publisher,
    subscriber: Subscriber,
    gateway: Gateway,
    _database: Database,
}

/// An answer of the API at `/`.
struct Got {
    status: StatusCode,
    headers: HeaderMap,
    text: String,
}

impl Got {
    fn header(&self, name: &str) -> &str {
        self.headers.get(name).map_or("", |value| value.to_str().unwrap())
    }

    fn code(&self) -> String {
        let problem: Value = serde_json::from_str(&self.text).unwrap_or_default();
        problem["code"].as_str().unwrap_or_default().to_owned()
    }
}

impl World {
    /// With a page at `/` and a feed at `/feed.xml`.
    async fn new(database: Database, settings: &[(&str, &str)]) -> World {
        let gateway = Gateway::start(&database, settings).await;
        let (publisher, subscriber) = (Publisher::start().await, Subscriber::start().await);
        publisher.put("/", HTML, page(LINKS));
        publisher.put_rss("/feed.xml", rss("tides", 1..=2));
        World { publisher, subscriber, gateway, _database: database }
    }

    /// Asks something of the API at `path`, as the account of the tests at `/`.
    async fn ask(&self, path: &str, form: &[(&str, &str)]) -> Got {
        let mut body = url::form_urlencoded::Serializer::new(String::new());
        let request = client().request(Method::POST, self.gateway.url(path));
        let request = match path {
            "/" => request.basic_auth("tester", Some("s3cret")),
            _ => request,
        };
        let request = request.header(CONTENT_TYPE, "application/x-www-form-urlencoded");
        let request = request.header("accept", "application/problem+json");
        let answer = request.body(body.extend_pairs(form).finish()).send().await.unwrap();
        let (status, headers) = (answer.status(), answer.headers().clone());
        Got { status, headers, text: answer.text().await.unwrap() }
    }

    async fn subscribe(&self, topic: &str, path: &str, further: &[(&str, &str)]) -> Got {
        let callback = self.subscriber.url(path);
        let form = [("hub.mode", "subscribe"), ("hub.topic", topic), ("hub.callback", &callback)];
        self.ask("/", &[&form, further].concat()).await
    }

    async fn publish(&self, url: &str) {
        self.gateway.post("/", &[("hub.mode", "publish"), ("hub.url", url)]).await;
    }

    /// Returns the address and the followed feed of each subscription of the account.
    async fn listed(&self) -> Vec<(String, Option<String>)> {
        let list = self.gateway.own("/?hub.mode=list").await;
        let text = |value: &Value| value.as_str().map(str::to_owned);
        let feeds = list.as_array().unwrap().iter().map(|it| &it["subscription"]["feed"]);
        feeds.map(|feed| (text(&feed["url"]).unwrap(), text(&feed["followed"]))).collect()
    }
}

fn page(head: &str) -> String {
    format!("<!doctype html><html><head><title>Tides</title>{head}</head><body><p>Hello")
}

fn link(href: &str) -> String {
    page(&format!("<link rel=alternate type=application/rss+xml href=\"{href}\">"))
}

async fn p52_a_followed_page_is_one_subscription_to_its_feed(database: Database) {
    let world = World::new(database, &[]).await;
    let (page, feed) = (world.publisher.url("/"), world.publisher.url("/feed.xml"));
    let got = world.subscribe(&page, "/cb", &[("follow", "true"), ("format", "json")]).await;
    assert_eq!(got.status, StatusCode::NO_CONTENT, "{}", got.text);
    assert_eq!(got.header("x-feedgate-topic"), feed);
    assert!(got.header("x-feedgate-note").ends_with(&feed), "{:?}", got.headers);
    assert_eq!(world.listed().await, [(page.clone(), Some(feed.clone()))]);

    world.publisher.put_rss("/feed.xml", rss("tides", 1..=3));
    world.publish(&feed).await;
    world.subscriber.until("/cb", |told| !told.is_empty()).await;
    let told = world.subscriber.notified("/cb").remove(0);
    assert_eq!(told.header("x-pubsubhubbub-topic"), Some(page.as_str()));
    assert!(told.header("link").unwrap().contains(&format!("<{page}>; rel=\"self\"")));
    assert_eq!(entry_ids(&told.text()), [entry_id("tides", 3)]);

    let named = |mode| [("hub.mode", mode), ("hub.topic", page.as_str())];
    let got = world.ask("/", &named("retrieve")).await;
    assert_eq!(entry_ids(&got.text).len(), 3, "{}", got.text);
    for (mode, want) in [("pause", 204), ("resume", 204), ("replay", 422), ("unsubscribe", 204)] {
        let got = world.ask("/", &named(mode)).await;
        assert_eq!(got.status.as_u16(), want, "{mode}: {}", got.text);
    }
    assert_eq!(world.listed().await, []);
    assert_eq!(world.publisher.fetches("/").len(), 1, "the page is read once");
    assert_eq!(world.publisher.fetches("/feed.rss").len(), 0);
    world.gateway.comes_to_rest().await;
}

async fn p52_a_hub_follows_a_page_on_request(database: Database) {
    let world = World::new(database, &[]).await;
    let (page, feed) = (world.publisher.url("/"), world.publisher.url("/feed.xml"));
    let callback = world.subscriber.url("/cb");
    let form = |mode, follow| {
        [
            ("hub.mode", mode),
            ("hub.topic", page.as_str()),
            ("hub.callback", callback.as_str()),
            ("follow", follow),
        ]
    };
    let got = world.ask("/hub", &form("subscribe", "true")).await;
    assert_eq!(got.status, StatusCode::ACCEPTED, "{}", got.text);
    assert_eq!(got.header("x-feedgate-topic"), feed);
    world.subscriber.verified("/cb", 1).await;
    let visit = world.subscriber.requests_to("/cb").remove(0);
    assert_eq!(visit.query("hub.topic"), Some(page.as_str()));
    world.gateway.comes_to_rest().await;

    let body = rss("tides", 1..=3);
    world.publisher.put_rss("/feed.xml", body.clone());
    world.publish(&feed).await;
    world.subscriber.until("/cb", |told| !told.is_empty()).await;
    let told = world.subscriber.notified("/cb").remove(0);
    assert_eq!(told.text(), body, "a hub sends the topic unchanged");
    assert!(told.header("link").unwrap().contains(&format!("<{page}>; rel=\"self\"")));

    let got = world.ask("/hub", &form("subscribe", "maybe")).await;
    assert_eq!((got.status, got.text.contains("true or false")), (StatusCode::BAD_REQUEST, true));
    let sync = [("hub.verify", "sync")];
    let got = world.ask("/hub", &[&form("unsubscribe", "")[..], &sync].concat()).await;
    assert_eq!(got.status, StatusCode::NO_CONTENT, "{}", got.text);
    world.gateway.measures("feedgate_subscriptions 0").await;
}

async fn p52_the_answer_says_what_is_followed(database: Database) {
    let world = World::new(database, &[]).await;
    let other = Publisher::start().await;
    other.put_rss("/feed", rss("elsewhere", 1..=1));
    let elsewhere = other.url("/feed");
    let hentry =
        "<div class=h-feed><div class=h-entry><a class='p-name u-url' href=/1>One</a></div></div>";
    world.publisher.put("/elsewhere", HTML, link(&elsewhere));
    world.publisher.put("/none", HTML, page(""));
    world.publisher.put("/inside", HTML, link("http://10.11.12.13/feed"));
    world.publisher.put("/entries", HTML, format!("{}{hentry}", page(LINKS)));
    world.publisher.put("/deaf", HTML, link("/missing"));
    let (feed, missing) = (world.publisher.url("/feed.xml"), world.publisher.url("/missing"));
    #[rustfmt::skip]
    let cases = [
        ("/elsewhere", 204, "",                   elsewhere.as_str(), "is followed"),
        ("/none",      200, "",                   "",                 "advertises no feed"),
        ("/feed.xml",  204, "",                   "",                 ""),
        ("/entries",   204, "",                   feed.as_str(),      "is followed"),
        ("/deaf",      200, "",                   missing.as_str(),   "is followed"),
        ("/inside",    422, "forbidden_address",  "",                 ""),
        ("/gone",      422, "page_unread",        "",                 ""),
        ("/#.price",   422, "part_not_followed",  "",                 ""),
    ];
    for (path, status, code, topic, note) in cases {
        let got = world.subscribe(&world.publisher.url(path), path, &[("follow", "true")]).await;
        assert_eq!(
            (got.status.as_u16(), got.code().as_str()),
            (status, code),
            "{path}: {}",
            got.text
        );
        assert_eq!(got.header("x-feedgate-topic"), topic, "{path}");
        assert!(got.header("x-feedgate-note").contains(note), "{path}: {:?}", got.headers);
        assert!(!note.is_empty() || got.header("x-feedgate-note").is_empty(), "{path}");
    }
    assert_eq!(world.listed().await.len(), 5, "and nothing is stored of a refusal");
    let gone = world.publisher.url("/gone");
    let callback = world.subscriber.url("/cb");
    let form = [("hub.mode", "subscribe"), ("hub.topic", &gone), ("hub.callback", &callback)];
    let got = world.ask("/hub", &[&form[..], &[("follow", "true")]].concat()).await;
    assert_eq!(got.status, StatusCode::BAD_REQUEST);
    assert!(got.text.contains("404 Not Found"), "{}", got.text);

    let items = json!([{ "hub.topic": world.publisher.url("/"), "hub.callback": callback }]);
    let request = client().post(world.gateway.url("/?follow=true"));
    let request = request.basic_auth("tester", Some("s3cret"));
    let request = request.header(CONTENT_TYPE, "application/json").body(items.to_string());
    let report = request.send().await.unwrap().text().await.unwrap();
    let report: Value = serde_json::from_str(&report).unwrap();
    assert_eq!(report["items"][0]["followed"], feed, "{report}");
    world.gateway.comes_to_rest().await;
}

async fn p52_a_renewal_keeps_the_feed_until_it_fails(database: Database) {
    let world = World::new(database, &[]).await;
    let (page, feed) = (world.publisher.url("/"), world.publisher.url("/feed.xml"));
    let second = world.publisher.url("/second.xml");
    world.subscribe(&page, "/cb", &[("follow", "true")]).await;
    world.publisher.put("/", HTML, link("/second.xml"));
    world.publisher.put_rss("/second.xml", rss("second", 1..=1));
    for further in [&[("follow", "true")][..], &[]] {
        let got = world.subscribe(&page, "/cb", further).await;
        assert_eq!(got.header("x-feedgate-topic"), feed, "{:?}", got.headers);
    }
    assert_eq!(world.publisher.fetches("/").len(), 1, "the page is not read again");

    world.publisher.fail("/feed.xml", StatusCode::GONE);
    world.publish(&feed).await;
    let failing = async || {
        let list = world.gateway.own("/?hub.mode=list&detailed=true").await;
        list["subscriptions"][0]["subscription"]["feed"]["status"]["code"] == 410
    };
    while !failing().await {
        tokio::task::yield_now().await;
    }
    let got = world.subscribe(&page, "/cb", &[("follow", "true")]).await;
    assert_eq!(got.header("x-feedgate-topic"), second, "{:?}", got.headers);
    assert_eq!(world.listed().await, [(page, Some(second))]);
}

async fn p52_the_newest_request_decides_what_an_address_means(database: Database) {
    let world = World::new(database, &[]).await;
    let (page, feed) = (world.publisher.url("/"), world.publisher.url("/feed.xml"));
    let itself = (page.clone(), None);
    let followed = (page.clone(), Some(feed));
    #[rustfmt::skip]
    let cases = [
        (&[][..],                                        &itself),
        (&[("follow", "true")][..],                      &followed),
        (&[("hub.verify", "sync")][..],                  &followed),
        (&[("follow", "false"), ("hub.verify", "sync")], &itself),
        (&[("follow", "true"), ("hub.verify", "async")], &followed),
        (&[("follow", "false")],                         &itself),
    ];
    for (further, want) in cases {
        let got = world.subscribe(&page, "/cb", further).await;
        assert!(got.status.is_success(), "{further:?}: {}", got.text);
        // What a request replaces ends just after its subscription is stored.
        let what = format!("{further:?} has replaced what was there");
        until(&what, async || world.listed().await == std::slice::from_ref(want)).await;
    }
    // Another callback has a subscription of its own.
    world.subscribe(&page, "/other", &[("follow", "true")]).await;
    assert_eq!(world.listed().await.len(), 2);
    let other = world.subscriber.url("/other");
    let form = [("hub.mode", "unsubscribe"), ("hub.topic", &page), ("hub.callback", &other)];
    assert_eq!(world.ask("/", &form).await.status, StatusCode::NO_CONTENT);
    assert_eq!(world.listed().await, [itself]);
}

async fn p52_what_waits_for_a_followed_page_is_replaced_under_its_address(database: Database) {
    let world = World::new(database, &[]).await;
    let (page, callback) = (world.publisher.url("/"), world.subscriber.url("/cb"));
    world.subscriber.set("/cb", Behavior::Hanging);
    let follow = [("follow", "true"), ("hub.verify", "async")];
    let unsubscribe =
        [("hub.mode", "unsubscribe"), ("hub.topic", &page), ("hub.callback", &callback)];
    for waiting in [1, 1, 0] {
        let got = world.subscribe(&page, "/cb", &follow).await;
        assert!(got.status.is_success(), "{}", got.text);
        world.gateway.measures("feedgate_pending_verifications 1").await;
        let got = match waiting {
            0 => world.ask("/", &unsubscribe).await,
            _ => {
                let itself = [("follow", "false"), ("hub.verify", "async")];
                world.subscribe(&page, "/cb", &itself).await
            }
        };
        assert!(got.status.is_success(), "{}", got.text);
        world.gateway.measures(&format!("feedgate_pending_verifications {waiting}")).await;
    }
    assert_eq!(world.listed().await, []);
}

async fn p52_a_request_without_a_callback_is_about_one_subscription_under_the_address(
    database: Database,
) {
    let world = World::new(database, &[]).await;
    let (page, feed) = (world.publisher.url("/"), world.publisher.url("/feed.xml"));
    for (path, follow) in [("/feed", "true"), ("/page", "false")] {
        let got = world.subscribe(&page, path, &[("follow", follow)]).await;
        assert!(got.status.is_success(), "{}", got.text);
    }
    for mode in ["pause", "unsubscribe"] {
        let got = world.ask("/", &[("hub.mode", mode), ("hub.topic", &page)]).await;
        assert_eq!(got.status, StatusCode::UNPROCESSABLE_ENTITY, "{mode}");
        assert!(got.text.contains("You have 2 subscriptions"), "{mode}: {}", got.text);
    }
    let callback = world.subscriber.url("/page");
    let form = [("hub.mode", "unsubscribe"), ("hub.topic", &page), ("hub.callback", &callback)];
    assert_eq!(world.ask("/", &form).await.status, StatusCode::NO_CONTENT);
    assert_eq!(world.listed().await, [(page.clone(), Some(feed))]);
    let got = world.ask("/", &form[..2]).await;
    assert_eq!(got.status, StatusCode::NO_CONTENT, "{}", got.text);
    assert_eq!(world.listed().await, []);
}

async fn p52_pages_are_followed_by_default_if_so_set(database: Database) {
    let world = World::new(database, &[("FEEDGATE_FOLLOW", "on")]).await;
    let (page, feed) = (world.publisher.url("/"), world.publisher.url("/feed.xml"));
    let gone = world.publisher.url("/gone");
    let got = world.subscribe(&page, "/cb", &[]).await;
    assert_eq!(got.header("x-feedgate-topic"), feed, "{:?}", got.headers);
    let got = world.subscribe(&gone, "/gone", &[]).await;
    assert!(got.status == StatusCode::OK && got.text.contains("404"), "{}", got.text);
    let got = world.subscribe(&page, "/page", &[("follow", "false")]).await;
    assert_eq!(got.header("x-feedgate-topic"), "");
    let want = [(page.clone(), Some(feed)), (gone, None), (page.clone(), None)];
    assert_eq!(world.listed().await, want);
    let callback = world.subscriber.url("/hub");
    let form = [("hub.mode", "subscribe"), ("hub.topic", &page), ("hub.callback", &callback)];
    let got = world.ask("/hub", &form).await;
    assert_eq!(got.header("x-feedgate-topic"), "", "the topics of a hub are exact");
}
