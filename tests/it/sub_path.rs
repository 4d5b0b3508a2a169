//! A gateway below a path of a host with other sites, behind nginx: `https://example.org/feeds/`.

use std::collections::BTreeSet;

use http::header::{CONTENT_TYPE, LINK, LOCATION, SET_COOKIE};
use http::{HeaderMap, StatusCode};
use reqwest::{Client, redirect};
use scraper::{Html, Selector};
use serde_json::Value;
use tokio::time::timeout;
use url::Url;

use crate::support::PATIENCE;
use crate::support::feeds::{entry_id, rss};
use crate::support::gateway::{Gateway, LOGIN, TOKEN};
use crate::support::nginx::Nginx;
use crate::support::ports::free_port;
use crate::support::postgres::{Database, Kind};
use crate::support::publisher::Publisher;
use crate::support::server::{ReceivedRequest, Server, say};
use crate::support::subscriber::{Subscriber, is_signed};

/// A gateway, its proxy, and others who know the address of the proxy only.
struct Site {
    publisher: Publisher,
    subscriber: Subscriber,
    gateway: Gateway,
    topic: String,
    /// The public URL, which is that of the proxy.
    public: Url,
    client: Client,
    _nginx: Nginx,
    _database: Database,
}

/// What was received from an address.
struct Received {
    url: Url,
    status: StatusCode,
    headers: HeaderMap,
    text: String,
}

impl Site {
    /// Starts a gateway below `location`. `is_removed`: nginx removes the location from the path of
    /// each request.
    async fn below(location: &str, is_removed: bool) -> Site {
        let (publisher, subscriber) = (Publisher::start().await, Subscriber::start().await);
        publisher.put_rss("/feed", rss("tides", 1..4));
        let (port, own) = (free_port(), free_port());
        let public = Url::parse(&format!("http://127.0.0.1:{port}{location}")).unwrap();
        let database = Database::new(Kind::Sqlite).await;
        let settings = [
            ("FEEDGATE_PUBLIC_URL", public.as_str()),
            ("FEEDGATE_TRUSTED_PROXIES", "127.0.0.1"),
            ("FEEDGATE_METRICS_NETWORKS", "127.0.0.2"),
            ("FEEDGATE_COLLECT_ALL", "on"),
        ];
        let gateway = Gateway::start_at(own, &database, &settings).await;
        let upstream = gateway.url(if is_removed { "/" } else { "" });
        let nginx = Nginx::start(port, location, &upstream).await;
        let topic = publisher.url("/feed");
        let client = client_at(None);
        #[rustfmt::skip]
        let site = Site {
            publisher, subscriber, gateway, topic, public, client, _nginx: nginx, _database: database,
        };
        site
    }

    /// Returns the public address of a path without a leading slash.
    fn url(&self, path: &str) -> Url {
        self.public.join(path).unwrap()
    }

    async fn post(&self, path: &str, form: &[(&str, &str)], is_signed_in: bool) -> Received {
        let mut body = url::form_urlencoded::Serializer::new(String::new());
        let mut request = self.client.post(self.url(path));
        if is_signed_in {
            request = request.basic_auth(LOGIN, Some(TOKEN));
        }
        let request = request.header(CONTENT_TYPE, "application/x-www-form-urlencoded");
        self.receive(request.body(body.extend_pairs(form).finish())).await
    }

    async fn get(&self, url: &Url, cookie: &str) -> Received {
        let request = self.client.get(url.clone()).header("cookie", cookie);
        self.receive(request.header("accept", "text/html,*/*;q=0.8")).await
    }

    /// Sends a request. Whatever the response says of this gateway has its public address.
    async fn receive(&self, request: reqwest::RequestBuilder) -> Received {
        let response = request.send().await.unwrap();
        let (url, status) = (response.url().clone(), response.status());
        let headers = response.headers().clone();
        let text = response.text().await.unwrap();
        self.check_addresses(&url, &text);
        for (name, value) in &headers {
            self.check_addresses(&url, &format!("{name}: {}", value.to_str().unwrap()));
        }
        Received { url, status, headers, text }
    }

    /// Fails if a text names the host of the gateway without its path, or its private address.
    fn check_addresses(&self, at: &Url, text: &str) {
        let origin = self.public.origin().ascii_serialization();
        for (found, _) in text.match_indices(&origin) {
            let rest = &text[found + origin.len()..];
            let excerpt: String = rest.chars().take(60).collect();
            let below = rest.strip_prefix(self.public.path().trim_end_matches('/'));
            let is_below = below.is_some_and(|below| below.starts_with(['/', '"']));
            // The null device is never contacted, and has no path of a gateway.
            let is_below = is_below || rest.starts_with("/dev/null");
            // The keys of signed requests are at the root of the host, and the page says so.
            let is_below = is_below || at.path().ends_with("/bot");
            assert!(is_below, "{at}: {origin}{excerpt}");
        }
        let private = self.gateway.url("");
        assert!(!text.contains(&private), "{at} names {private}:\n{text}");
    }

    async fn follow(&self) {
        let callback = self.subscriber.url("/cb");
        let form = [
            ("hub.mode", "subscribe"),
            ("hub.topic", self.topic.as_str()),
            ("hub.callback", callback.as_str()),
            ("hub.verify", "sync"),
            ("hub.secret", "s3cret"),
        ];
        let subscribed = self.post("hub", &form, false).await;
        assert!(subscribed.status.is_success(), "{}: {}", subscribed.status, subscribed.text);
        self.subscriber.verified("/cb", 1).await;
    }

    /// Publishes item `n`, and tells the hub.
    async fn publish(&self, n: usize) {
        self.publisher.put_rss("/feed", rss("tides", 1..n + 1));
        let form = [("hub.mode", "publish"), ("hub.url", self.topic.as_str())];
        assert_eq!(self.post("hub", &form, false).await.status, StatusCode::NO_CONTENT);
    }

    /// Signs in to the console; returns the cookie.
    async fn sign_in(&self) -> String {
        let form = [("login", LOGIN), ("token", TOKEN)];
        let signed_in = self.post("console/sign-in", &form, false).await;
        assert_eq!(signed_in.status, StatusCode::SEE_OTHER, "{}", signed_in.text);
        let target = signed_in.url.join(signed_in.headers[LOCATION].to_str().unwrap()).unwrap();
        assert!(target.as_str().starts_with(self.url("console").as_str()), "{target}");
        let cookie = signed_in.headers[SET_COOKIE].to_str().unwrap();
        assert!(cookie.contains(&format!("; Path={};", self.public.path())), "{cookie}");
        cookie.split(';').next().unwrap().to_owned()
    }
}

/// Returns a client that follows no redirects, at an address of this machine.
fn client_at(address: Option<[u8; 4]>) -> Client {
    #[expect(clippy::disallowed_methods, reason = "the proxy under test listens on loopback")]
    let client = Client::builder().no_proxy().redirect(redirect::Policy::none());
    client.local_address(address.map(Into::into)).pool_max_idle_per_host(0).build().unwrap()
}

/// Returns the addresses that a page links to, loads from or sends forms to.
fn linked(page: &Received) -> Vec<(String, Url)> {
    let document = Html::parse_document(&page.text);
    let selector = Selector::parse("[href], [src], [action]").unwrap();
    let elements = document.select(&selector);
    let found = elements.flat_map(|element| {
        let element = element.value();
        let held = ["href", "src", "action"].map(|name| element.attr(name));
        held.into_iter().flatten().map(|held| (element.name().to_owned(), held.to_owned()))
    });
    found.map(|(element, held)| (element, page.url.join(&held).unwrap())).collect()
}

async fn pages_lead_to_each_other(site: &Site) {
    site.follow().await;
    let archived = site.get(&site.url(&format!("feeds?topic={}", site.topic)), "").await;
    assert!(archived.status.is_redirection() || archived.status.is_success());
    let cookie = site.sign_in().await;
    let (mut todo, mut seen) = (vec![site.public.clone()], BTreeSet::new());
    while let Some(url) = todo.pop() {
        // Pages that differ in their query alone are of one kind.
        if !seen.insert(url.path().to_owned()) {
            continue;
        }
        let page = site.get(&url, &cookie).await;
        assert!(page.status.is_success() || page.status.is_redirection(), "{url}: {}", page.status);
        let is_page = page.headers.get(CONTENT_TYPE);
        if !is_page.is_some_and(|kind| kind.to_str().unwrap().starts_with("text/html")) {
            continue;
        }
        for (element, mut target) in linked(&page) {
            // Well-known addresses are at the root of their host (RFC 8615).
            let is_well_known = target.path().starts_with("/.well-known/");
            if target.origin() != site.public.origin() || is_well_known {
                continue;
            }
            assert!(target.path().starts_with(site.public.path()), "{url}: {element} {target}");
            target.set_fragment(None);
            if element != "form" {
                todo.push(target);
            }
        }
    }
    for path in ["console", "console/feeds", "console/subscriptions", "viewLog", "console/page.js"]
    {
        assert!(seen.contains(site.url(path).path()), "{path} is not in {seen:?}");
    }
    for path in ["pingSiteForm", "author", "stats", "bot", "stats.json"] {
        assert_eq!(site.get(&site.url(path), "").await.status, StatusCode::OK, "{path}");
    }
    for path in ["changes.xml", "feeds.opml", "subscriptions.json", "log.json", "all/recent"] {
        assert_eq!(site.get(&site.url(path), "").await.status, StatusCode::OK, "{path}");
    }
}

async fn what_programs_are_told_has_the_path(site: &Site) {
    let described = site.get(&site.url("openapi.json"), "").await;
    let described: Value = serde_json::from_str(&described.text).unwrap();
    assert_eq!(described["servers"][0]["url"], site.public.as_str().trim_end_matches('/'));

    site.publish(4).await;
    site.subscriber.until("/cb", |told| !told.is_empty()).await;
    let told = site.subscriber.notified("/cb").remove(0);
    assert!(is_signed(&told, "s3cret"));
    let hub = format!("<{}>; rel=\"hub\"", site.url("hub"));
    assert!(told.header("link").unwrap().contains(&hub), "{:?}", told.header("link"));
    let agent = told.header("user-agent").unwrap();
    assert!(agent.contains(&format!("(+{}", site.url("bot"))), "{agent}");

    // The archive, from its beginning to the hub that it names.
    let query = format!("feeds?topic={}", site.topic);
    let mut archive = site.get(&site.url(&query), "").await;
    while let Some(target) = archive.headers.get(LOCATION) {
        archive = site.get(&archive.url.join(target.to_str().unwrap()).unwrap(), "").await;
    }
    assert_eq!(archive.status, StatusCode::OK, "{}", archive.url);
    assert!(archive.text.contains(&entry_id("tides", 4)), "{}", archive.text);
    let links = archive.headers.get_all(LINK).iter().map(|link| link.to_str().unwrap());
    let links = links.collect::<Vec<_>>().join(", ");
    assert!(links.contains(&hub) || archive.text.contains(site.url("hub").as_str()), "{links}");

    // An account subscribes and retrieves at the path itself.
    let callback = site.subscriber.url("/account");
    let form = [
        ("hub.mode", "subscribe"),
        ("hub.topic", site.topic.as_str()),
        ("hub.callback", callback.as_str()),
    ];
    assert_eq!(site.post("", &form, true).await.status, StatusCode::NO_CONTENT);
    let form = [("hub.mode", "retrieve"), ("hub.topic", site.topic.as_str()), ("format", "json")];
    let retrieved = site.post("", &form, true).await;
    assert_eq!(retrieved.status, StatusCode::OK, "{}", retrieved.text);
}

async fn streams_pass_and_clients_are_known(site: &Site) {
    let open = site.client.get(site.url("log/stream?kind=ping")).send();
    let mut stream = timeout(PATIENCE, open).await.expect("the stream opens").unwrap();
    assert_eq!(stream.status(), StatusCode::OK);
    // A topic that was pinged lately would be counted with the earlier event.
    let pinged = site.post("ping", &[("url", "https://feed.invalid/")], false).await;
    assert_eq!(pinged.status, StatusCode::OK, "{}", pinged.text);
    let mut received = String::new();
    let wait = async {
        while !received.contains("\ndata:") {
            let piece = stream.chunk().await.unwrap().expect("the stream is open");
            received.push_str(std::str::from_utf8(&piece).unwrap());
        }
    };
    assert!(timeout(PATIENCE, wait).await.is_ok(), "no event was passed on:\n{received}");
    // Metrics are shown to 127.0.0.2 only.
    let cases = [(2, None, 200), (3, None, 403), (3, Some("127.0.0.2"), 403)];
    for (last, claimed, want) in cases {
        let client = client_at(Some([127, 0, 0, last]));
        let mut request = client.get(site.url("metrics"));
        if let Some(claimed) = claimed {
            request = request.header("x-forwarded-for", claimed);
        }
        assert_eq!(request.send().await.unwrap().status(), want, "127.0.0.{last} {claimed:?}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_gateway_below_a_path_works_behind_a_proxy_that_passes_the_path_on() {
    // Requests for archives have the same first segment.
    let site = Site::below("/feeds/", false).await;
    pages_lead_to_each_other(&site).await;
    what_programs_are_told_has_the_path(&site).await;
    streams_pass_and_clients_are_known(&site).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_gateway_below_a_path_works_behind_a_proxy_that_removes_the_path() {
    let site = Site::below("/news/gate/", true).await;
    pages_lead_to_each_other(&site).await;
    what_programs_are_told_has_the_path(&site).await;
    streams_pass_and_clients_are_known(&site).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_hub_that_a_feed_names_reaches_a_gateway_below_a_path() {
    let site = Site::below("/news/gate/", false).await;
    let request = tokio::sync::watch::Sender::new(None);
    let seen = request.clone();
    let hub = Server::start(move |request: ReceivedRequest| {
        seen.send_replace(request.form("hub.callback"));
        async move { say(StatusCode::ACCEPTED, "") }
    })
    .await;
    let names = format!(
        "<channel xmlns:atom=\"http://www.w3.org/2005/Atom\"><atom:link rel=\"hub\" href=\"{}\"/>\
         <atom:link rel=\"self\" href=\"{}\"/>",
        hub.url("/"),
        site.topic
    );
    site.publisher.put_rss("/feed", rss("tides", 1..3).replace("<channel>", &names));
    site.follow().await;
    let mut request = request.subscribe();
    let callback = timeout(PATIENCE, request.wait_for(Option::is_some)).await.unwrap();
    let callback = Url::parse(callback.unwrap().as_deref().unwrap()).unwrap();
    assert!(callback.as_str().starts_with(site.url("upstream/").as_str()), "{callback}");
    let mut verification = callback.clone();
    verification
        .query_pairs_mut()
        .append_pair("hub.mode", "subscribe")
        .append_pair("hub.topic", &site.topic)
        .append_pair("hub.challenge", "ch4llenge")
        .append_pair("hub.lease_seconds", "3600");
    let verified = site.get(&verification, "").await;
    assert_eq!((verified.status, verified.text.as_str()), (StatusCode::OK, "ch4llenge"));
}

#[tokio::test(flavor = "multi_thread")]
async fn a_request_may_leave_the_path_out_and_one_without_its_last_slash_is_redirected() {
    let site = Site::below("/news/gate/", false).await;
    let within = site.gateway.get("/news/gate/openapi.json").await;
    assert_eq!(within, site.gateway.get("/openapi.json").await);
    assert_eq!(within.0, StatusCode::OK);
    let request = site.client.get(site.gateway.url("/news/gate?hub.mode=list"));
    let redirected = request.send().await.unwrap();
    assert_eq!(redirected.status(), StatusCode::PERMANENT_REDIRECT);
    assert_eq!(redirected.headers()[LOCATION], "/news/gate/?hub.mode=list");
    assert_eq!(site.gateway.get("/news/gateway/openapi.json").await.0, StatusCode::NOT_FOUND);
}
