//! Publishers that validate subscriptions to their topics (row P-5).

use http::header::{HeaderValue, LINK};
use http::{Method, StatusCode};
use tokio::sync::watch;
use tokio::time::timeout;

use super::SYNC;
use crate::support::feeds::rss;
use crate::support::gateway::Gateway;
use crate::support::postgres::{Database, Kind};
use crate::support::publisher::Publisher;
use crate::support::server::{ReceivedRequest, Server, say};
use crate::support::subscriber::Subscriber;
use crate::support::{PATIENCE, until};

/// A publisher whose topic names where subscriptions are validated.
struct Validating {
    server: Server,
    /// The requests for validation so far.
    requests: watch::Sender<Vec<ReceivedRequest>>,
    /// Whether the topic is served; until then requests for it wait.
    is_served: watch::Sender<bool>,
}

impl Validating {
    /// Starts one that responds to requests for validation with this.
    async fn start(status: StatusCode, text: &'static str) -> Validating {
        let (requests, is_served) = (watch::Sender::new(Vec::new()), watch::Sender::new(true));
        let (received, served) = (requests.clone(), is_served.clone());
        let server = Server::start(move |request: ReceivedRequest| {
            let (received, mut served) = (received.clone(), served.subscribe());
            async move {
                if request.path == "/validate" {
                    received.send_modify(|all| all.push(request));
                    return say(status, text);
                }
                served.wait_for(|is_served| *is_served).await.unwrap();
                let mut answer = say(StatusCode::OK, rss("tides", 1..3));
                let link = HeaderValue::from_static("</validate>; rel=\"validate\"");
                answer.headers_mut().insert(LINK, link);
                answer
            }
        });
        Validating { server: server.await, requests, is_served }
    }

    async fn request(&self) -> ReceivedRequest {
        let mut requests = self.requests.subscribe();
        let first = requests.wait_for(|all| !all.is_empty());
        timeout(PATIENCE, first).await.expect("a validation").unwrap()[0].clone()
    }
}

/// The publisher, a subscriber and a gateway.
struct World {
    publisher: Validating,
    subscriber: Subscriber,
    gateway: Gateway,
    topic: String,
    _database: Database,
}

impl World {
    async fn with(publisher: Validating) -> World {
        let database = Database::new(Kind::Sqlite).await;
        let gateway = Gateway::start(&database, &[]).await;
        let topic = publisher.server.url("/feed");
        let subscriber = Subscriber::start().await;
        World { publisher, subscriber, gateway, topic, _database: database }
    }

    fn form<'a>(&'a self, callback: &'a str) -> [(&'a str, &'a str); 3] {
        [("hub.mode", "subscribe"), ("hub.topic", &self.topic), ("hub.callback", callback)]
    }

    async fn hub(&self, path: &str, further: &[(&str, &str)]) -> (StatusCode, String) {
        let callback = self.subscriber.url(path);
        self.gateway.post("/hub", &[&self.form(&callback), further].concat()).await
    }

    async fn account(&self, path: &str) -> (StatusCode, String) {
        let callback = self.subscriber.url(path);
        self.gateway.superfeedr(&self.form(&callback)).await
    }

    /// The callbacks of the account's subscriptions.
    async fn callbacks(&self) -> Vec<String> {
        let (status, text) = self.gateway.superfeedr(&[("hub.mode", "list")]).await;
        assert_eq!(status, StatusCode::OK, "{text}");
        let listed: serde_json::Value = serde_json::from_str(&text).unwrap();
        let endpoint =
            |one: &serde_json::Value| one["subscription"]["endpoint"].as_str().map(str::to_owned);
        listed.as_array().unwrap().iter().filter_map(endpoint).collect()
    }

    /// Waits for the only request that this callback gets: the denial.
    async fn denial(&self, path: &str) -> ReceivedRequest {
        self.subscriber.verified(path, 1).await;
        let requests = self.subscriber.requests_to(path);
        assert_eq!(requests.len(), 1, "{requests:?}");
        assert_eq!(requests[0].query("hub.mode"), Some("denied"));
        assert_eq!(requests[0].query("hub.topic"), Some(self.topic.as_str()));
        requests[0].clone()
    }
}

/// Row P-5.
#[tokio::test]
async fn a_subscription_that_the_publisher_denies_is_not_stored() {
    let publisher = Validating::start(StatusCode::UNAUTHORIZED, "For members\nonly.");
    let world = World::with(publisher.await).await;
    let further = [("hub.secret", "hidden"), ("hub.verify_token", "token"), ("member", "no 7")];
    let (status, text) = world.hub("/one", &further).await;
    assert_eq!((status, text.as_str()), (StatusCode::ACCEPTED, ""));

    let request = world.publisher.request().await;
    assert_eq!(request.method, Method::POST);
    assert_eq!(request.header("content-type"), Some("application/x-www-form-urlencoded"));
    let callback = world.subscriber.url("/one");
    let want: Vec<_> = world.form(&callback).into_iter().chain([("member", "no 7")]).collect();
    let sent: Vec<_> = url::form_urlencoded::parse(&request.body).into_owned().collect();
    let sent: Vec<_> = sent.iter().map(|(name, value)| (name.as_str(), value.as_str())).collect();
    assert_eq!(sent, want, "all parameters but secrets");
    assert_eq!(world.denial("/one").await.query("hub.reason"), Some("For members only."));

    let (status, text) = world.hub("/two", &[SYNC]).await;
    let want = "The request was not carried out: the publisher denied the subscription (For members only.).";
    assert_eq!((status, text.trim_end()), (StatusCode::FORBIDDEN, want));
    world.denial("/two").await;
}

/// Row P-5.
#[tokio::test]
async fn an_account_learns_why_its_subscription_is_denied() {
    let publisher = Validating::start(StatusCode::UNAUTHORIZED, "Pay first.").await;
    let world = World::with(publisher).await;
    let (status, text) = world.account("/cb").await;
    let want =
        "The subscription was not accepted: the publisher denied the subscription (Pay first.).";
    assert_eq!((status, text.trim_end()), (StatusCode::FORBIDDEN, want));
    assert_eq!(world.denial("/cb").await.query("hub.reason"), Some("Pay first."));
    assert_eq!(world.callbacks().await, [""; 0]);
}

/// Row P-5.
#[tokio::test]
async fn a_publisher_allows_with_204_and_refuses_with_anything_else() {
    let world = World::with(Validating::start(StatusCode::NO_CONTENT, "").await).await;
    assert_eq!(world.hub("/open", &[SYNC]).await.0, StatusCode::NO_CONTENT);
    assert_eq!(world.account("/own").await.0, StatusCode::NO_CONTENT);
    assert_eq!(world.callbacks().await, [world.subscriber.url("/own")]);
    assert_eq!(world.publisher.requests.borrow().len(), 2);

    let world = World::with(Validating::start(StatusCode::OK, "fine").await).await;
    let (status, text) = world.account("/own").await;
    let want = "The subscription was not accepted: the publisher did not allow the subscription: \
                it responded with 200 OK instead of 204.";
    assert_eq!((status, text.trim_end()), (StatusCode::FORBIDDEN, want));
    assert_eq!(world.callbacks().await, [""; 0]);
}

/// Row P-5: what the topic asks for is known only after its first fetch, for which nobody waits long.
#[tokio::test]
async fn a_subscription_to_a_slow_topic_is_validated_later_and_ends_if_it_is_denied() {
    let world = World::with(Validating::start(StatusCode::UNAUTHORIZED, "").await).await;
    world.publisher.is_served.send_replace(false);
    assert_eq!(world.account("/own").await.0, StatusCode::NO_CONTENT);
    assert_eq!(world.callbacks().await, [world.subscriber.url("/own")]);
    world.publisher.is_served.send_replace(true);
    let reason = world.denial("/own").await.query("hub.reason").map(str::to_owned);
    assert_eq!(reason.as_deref(), Some("the publisher denied the subscription"));
    until("the subscription ends", async || world.callbacks().await.is_empty()).await;
}

/// Row P-5: a subscription that a reading list has made and ended before its feed was read.
#[tokio::test]
async fn nobody_is_notified_that_a_subscription_is_denied_which_has_ended() {
    let world = World::with(Validating::start(StatusCode::UNAUTHORIZED, "").await).await;
    world.publisher.is_served.send_replace(false);
    let lists = Publisher::start().await;
    let body = format!("<outline type='rss' text='tides' xmlUrl='{}'/>", world.topic);
    let list = format!("<opml version='2.0'><head/><body>{body}</body></opml>");
    lists.put("/list.opml", "text/x-opml", list);
    let (topic, callback) = (lists.url("/list.opml"), world.subscriber.url("/own"));
    let form = |mode| [("hub.mode", mode), ("hub.topic", &*topic), ("hub.callback", &*callback)];
    let follow = [&form("subscribe")[..], &[("follow", "true")]].concat();
    let (status, text) = world.gateway.superfeedr(&follow).await;
    assert_eq!(status, StatusCode::NO_CONTENT, "{text}");
    until("the feed is subscribed to", async || world.callbacks().await.len() == 2).await;

    let (status, text) = world.gateway.superfeedr(&form("unsubscribe")).await;
    assert_eq!(status, StatusCode::NO_CONTENT, "{text}");
    until("all has ended", async || world.callbacks().await.is_empty()).await;
    world.publisher.is_served.send_replace(true);
    world.gateway.comes_to_rest().await;
    assert!(world.subscriber.requests_to("/own").is_empty());
}
