//! Hubs and clouds that feeds name, from the feed to the subscriber (rule P53).

use http::{Method, StatusCode};
use tokio::sync::watch;
use tokio::time::timeout;

use crate::support::PATIENCE;
use crate::support::gateway::Gateway;
use crate::support::postgres::{Database, Kind};
use crate::support::server::{ReceivedRequest, Server, client, say};
use crate::support::world::World;

/// A feed with these items that names a hub or cloud.
fn feed(items: std::ops::Range<usize>, names: &str) -> String {
    let items: String = items
        .rev()
        .map(|n| format!("<item><title>Item {n}</title><guid>tag:a.test:{n}</guid></item>"))
        .collect();
    format!(
        "<rss version=\"2.0\" xmlns:atom=\"http://www.w3.org/2005/Atom\" \
         xmlns:source=\"http://source.scripting.com/\"><channel><title>Ships</title>\
         <link>https://a.test/</link><description>d</description>{names}{items}</channel></rss>"
    )
}

impl World {
    /// Publishes a feed that names somebody, and follows it.
    async fn following(names: &str) -> World {
        let world = World::reachable().await;
        let names = names.replace("TOPIC", &world.topic);
        world.publisher.put_rss("/feed", feed(1..3, &names));
        let callback = world.subscriber.url("/cb");
        world.gateway.subscribe_superfeedr(&world.topic, &callback, "atom").await;
        world
    }

    async fn hears_of(&self, item: usize) {
        let title = format!("Item {item}<");
        self.subscriber.until("/cb", |told| told.iter().any(|n| n.text().contains(&title))).await;
    }
}

/// A hub that remembers what it was asked and answers 202.
struct Hub {
    server: Server,
    request: watch::Sender<Vec<ReceivedRequest>>,
}

impl Hub {
    async fn start() -> Hub {
        let request = watch::Sender::new(Vec::new());
        let seen = request.clone();
        let server = Server::start(move |request: ReceivedRequest| {
            seen.send_modify(|all| all.push(request));
            async move { say(StatusCode::ACCEPTED, "") }
        })
        .await;
        Hub { server, request }
    }

    /// The form of the first request.
    async fn requests_to(&self) -> Vec<(String, String)> {
        let mut request = self.request.subscribe();
        let first = timeout(PATIENCE, request.wait_for(|all| !all.is_empty())).await;
        let first = first.expect("the hub is asked in time").unwrap()[0].clone();
        url::form_urlencoded::parse(&first.body).into_owned().collect()
    }
}

fn value<'a>(form: &'a [(String, String)], name: &str) -> &'a str {
    form.iter().find(|(held, _)| held == name).map_or("", |(_, value)| value)
}

/// Verifies as a hub does; status code and text of the answer.
async fn verify(form: &[(String, String)], topic: &str, lease: &str) -> (StatusCode, String) {
    let mut url = url::Url::parse(value(form, "hub.callback")).unwrap();
    url.query_pairs_mut()
        .append_pair("hub.mode", "subscribe")
        .append_pair("hub.topic", topic)
        .append_pair("hub.challenge", "ch<a>llenge")
        .append_pair("hub.lease_seconds", lease);
    let answer = client().get(url).send().await.unwrap();
    (answer.status(), answer.text().await.unwrap())
}

async fn push(form: &[(String, String)], body: &str, signature: Option<String>) -> StatusCode {
    let mut request = client()
        .request(Method::POST, value(form, "hub.callback"))
        .header("content-type", "application/rss+xml")
        .body(body.to_owned());
    if let Some(signature) = signature {
        request = request.header("x-hub-signature", signature);
    }
    request.send().await.unwrap().status()
}

#[tokio::test]
async fn p53_a_hub_is_asked_with_a_secret_and_believed_when_it_signs() {
    let hub = Hub::start().await;
    let names = format!("<atom:link rel=\"hub\" href=\"{}\"/>", hub.server.url("/"));
    let world = World::following(&names).await;
    let form = hub.requests_to().await;
    let expected = [
        ("hub.mode", "subscribe"),
        ("hub.topic", &world.topic),
        ("hub.lease_seconds", "864000"),
        ("hub.verify", "async"),
    ];
    for (name, want) in expected {
        assert_eq!(value(&form, name), want);
    }
    let secret = value(&form, "hub.secret").to_owned();
    assert_eq!(secret.len(), 32);

    let (status, _) = verify(&form, "https://other.test/", "9").await;
    assert_eq!(status, StatusCode::NOT_FOUND, "another topic was not asked for");
    let (status, echoed) = verify(&form, &world.topic, "3600").await;
    assert_eq!((status, echoed.as_str()), (StatusCode::OK, "ch<a>llenge"));

    // Signed: its entries are taken though the publisher does not have them.
    let body = feed(3..4, "");
    let signed = feedgate_protocol::signature::sign(
        feedgate_protocol::signature::SignatureMethod::Sha256,
        &secret,
        body.as_bytes(),
    );
    assert_eq!(push(&form, &body, Some(signed.clone())).await, StatusCode::OK);
    world.hears_of(3).await;
    assert!(!world.publisher.fetches("/feed").is_empty());

    // Not signed, or not rightly: a hint that leads to a poll, and nothing more.
    let forged = feed(666..667, "");
    assert_eq!(push(&form, &forged, Some(signed)).await, StatusCode::OK);
    world.publisher.put_rss("/feed", feed(1..5, &names));
    assert_eq!(push(&form, &forged, None).await, StatusCode::OK);
    world.hears_of(4).await;
    let told = world.subscriber.notified("/cb");
    assert!(
        !told.iter().any(|told| told.text().contains("Item 666<")),
        "a stranger is not believed"
    );
}

#[tokio::test]
async fn p53_an_old_entry_that_a_hub_pushes_is_left_to_the_poll() {
    let hub = Hub::start().await;
    let names = format!("<atom:link rel=\"hub\" href=\"{}\"/>", hub.server.url("/"));
    let world = World::following(&names).await;
    let form = hub.requests_to().await;
    let secret = value(&form, "hub.secret").to_owned();
    assert_eq!(verify(&form, &world.topic, "3600").await.0, StatusCode::OK);
    let method = feedgate_protocol::signature::SignatureMethod::Sha256;
    let date = "<pubDate>Sat, 07 Sep 2002 00:00:01 GMT</pubDate></item>";
    // The hub says that an entry was edited that left the feed years ago.
    for body in [feed(77..78, "").replace("</item>", date), feed(3..4, "")] {
        let signed = feedgate_protocol::signature::sign(method, &secret, body.as_bytes());
        assert_eq!(push(&form, &body, Some(signed)).await, StatusCode::OK);
    }
    world.hears_of(3).await;
    let told = world.subscriber.notified("/cb");
    assert!(!told.iter().any(|told| told.text().contains("Item 77<")), "it is not news");
}

#[tokio::test]
async fn f21_a_hub_that_redirects_is_followed_with_the_whole_request() {
    for code in [StatusCode::TEMPORARY_REDIRECT, StatusCode::PERMANENT_REDIRECT] {
        let hub = Hub::start().await;
        let target = hub.server.url("/moved");
        let old = Server::start(move |_| {
            let mut answer = say(code, "");
            answer.headers_mut().insert("location", target.parse().unwrap());
            async move { answer }
        })
        .await;
        let names = format!("<atom:link rel=\"hub\" href=\"{}\"/>", old.url("/"));
        let world = World::following(&names).await;
        let form = hub.requests_to().await;
        assert_eq!(value(&form, "hub.topic"), world.topic, "{code}");
        let first = hub.request.borrow()[0].clone();
        assert_eq!((first.method, first.path.as_str()), (Method::POST, "/moved"));
    }
}

#[tokio::test]
async fn p53_who_has_no_address_of_ours_is_sent_away() {
    let hub = Hub::start().await;
    let names = format!("<atom:link rel=\"hub\" href=\"{}\"/>", hub.server.url("/"));
    let world = World::following(&names).await;
    let form = hub.requests_to().await;
    let anonymous = world.gateway.url("/upstream/0123456789abcdef0123456789abcdef");
    let wrong = [("hub.callback".to_owned(), anonymous)];
    assert_eq!(push(&wrong, "x", None).await, StatusCode::GONE);
    assert_eq!(verify(&wrong, &world.topic, "9").await.0, StatusCode::NOT_FOUND);

    // Nor has anybody once the last subscriber has left.
    let callback = world.subscriber.url("/cb");
    let leave =
        [("hub.mode", "unsubscribe"), ("hub.topic", &world.topic), ("hub.callback", &callback)];
    assert!(world.gateway.superfeedr(&leave).await.0.is_success());
    assert_eq!(push(&form, "x", None).await, StatusCode::GONE);
}

#[tokio::test]
async fn p53_another_gateway_tells_by_websub_and_by_each_kind_of_cloud() {
    let database = Database::new(Kind::Sqlite).await;
    let other = Gateway::start(&database, &[]).await;
    let port = url::Url::parse(&other.url("/")).unwrap().port().unwrap();
    let cloud = |path: &str, procedure: &str, protocol: &str| {
        format!(
            "<cloud domain=\"127.0.0.1\" port=\"{port}\" path=\"{path}\" \
             registerProcedure=\"{procedure}\" protocol=\"{protocol}\"/>"
        )
    };
    let cases = [
        format!("<atom:link rel=\"hub\" href=\"{}\"/>", other.url("/hub")),
        format!("<source:cloud>{}</source:cloud>", other.url("/pleaseNotify")),
        cloud("/pleaseNotify", "", "http-post"),
        cloud("/RPC2", "rssCloud.pleaseNotify", "xml-rpc"),
        cloud("/RPC2", "pleaseNotify", "soap"),
    ];
    for (n, names) in cases.iter().enumerate() {
        let world = World::following(names).await;
        let at_other = format!("feedgate_subscriptions {}", n + 1);
        other.measures(&at_other).await;
        world.publisher.put_rss("/feed", feed(1..4, names));
        let (status, _) = other.post("/ping", &[("url", &world.topic)]).await;
        assert!(status.is_success());
        world.hears_of(3).await;
        other.comes_to_rest().await;
    }
}

#[tokio::test]
async fn h05_a_hub_that_does_not_answer_is_not_asked_for_all_feeds_that_name_it() {
    let live = Hub::start().await;
    let world = World::following("").await;
    let counted = |result: &str, n: usize| {
        format!("feedgate_upstream_requests_total{{protocol=\"websub\",result=\"{result}\"}} {n}")
    };
    let follow = async |path: &str, hub: &str| {
        let names = format!("<atom:link rel=\"hub\" href=\"{hub}\"/>");
        world.publisher.put_rss(path, feed(1..3, &names));
        let (topic, callback) = (world.publisher.url(path), world.subscriber.url("/cb"));
        world.gateway.subscribe_superfeedr(&topic, &callback, "atom").await;
    };
    for n in 0..30 {
        // A name that nobody has, since what leads to this machine is not counted.
        follow(&format!("/{n}"), &format!("http://nowhere.invalid/{n}")).await;
    }
    world.gateway.measures(&counted("unreachable", 10)).await;
    follow("/live", &live.server.url("/")).await;
    live.requests_to().await;
    world.gateway.measures(&counted("ok", 1)).await;
    world.gateway.measures(&counted("unreachable", 10)).await;
}

#[tokio::test]
async fn h01_hubs_that_strangers_name_delay_no_hub_of_an_account() {
    let world = World::following("").await;
    let callback = world.subscriber.url("/cb");
    let name = |path: &str| {
        let names = format!("<atom:link rel=\"hub\" href=\"http://nowhere.invalid{path}\"/>");
        world.publisher.put_rss(path, feed(1..3, &names));
        world.publisher.url(path)
    };
    let unreachable = async |n: usize| {
        let of_hubs =
            "feedgate_upstream_requests_total{protocol=\"websub\",result=\"unreachable\"}";
        world.gateway.measures(&format!("{of_hubs} {n}")).await;
    };
    for n in 0..12 {
        world.gateway.subscribe_websub(&name(&format!("/{n}")), &callback, &[]).await;
    }
    unreachable(10).await;
    world.gateway.subscribe_superfeedr(&name("/own"), &callback, "atom").await;
    unreachable(11).await;
}

#[tokio::test]
async fn h20_pushes_of_a_hub_are_limited_for_each_topic() {
    let hub = Hub::start().await;
    let names = format!("<atom:link rel=\"hub\" href=\"{}\"/>", hub.server.url("/"));
    let world = World::following(&names).await;
    let form = hub.requests_to().await;
    // Somebody behind a proxy that is not known is a stranger.
    let push = async |url: &str| {
        let request = client().request(Method::POST, url).header("x-forwarded-for", "192.0.2.1");
        request.body("hint").send().await.unwrap()
    };
    let own = value(&form, "hub.callback");
    let mut answers = Vec::new();
    while answers.last() != Some(&StatusCode::TOO_MANY_REQUESTS) && answers.len() < 1_000 {
        let answer = push(own).await;
        if answer.status() == StatusCode::TOO_MANY_REQUESTS {
            let wait: u64 = answer.headers()["retry-after"].to_str().unwrap().parse().unwrap();
            assert!((1..=60).contains(&wait), "{wait}");
        }
        answers.push(answer.status());
    }
    assert!((100..1_000).contains(&answers.len()), "{}", answers.len());
    let other = push(&world.gateway.url("/upstream/another")).await;
    assert_eq!(other.status(), StatusCode::GONE, "another topic has a budget of its own");
    let local = client().request(Method::POST, own).body("hint").send().await.unwrap();
    assert_eq!(local.status(), StatusCode::OK, "programs on this machine are not limited");
}
