//! The REST API: every resource, as a program with a token uses it.

mod alerts;
mod attempts;
mod creating;
mod entries;
mod feed_headers;
mod feeds;
mod idempotency;
mod paging;
mod reading_lists;
mod rights;
mod subscriptions;
mod tokens;
mod tracks;

use feedgate::jobs::runner;
use feedgate_core::account::{NewToken, Scopes, TokenHash};
use http::header::{CONTENT_TYPE, HeaderMap};
use http::{Method, StatusCode};
use serde_json::{Value, json};

use crate::support::gateway::TOKEN;
use crate::support::server::client;
use crate::support::world::World;

/// A reply, read to its end.
struct RestReply {
    status: StatusCode,
    headers: HeaderMap,
    json: Value,
}

impl RestReply {
    /// The code of a problem, and the field that it names.
    fn problem(&self) -> (u16, &str, &str) {
        let text = |name: &str| self.json[name].as_str().unwrap_or_default();
        (self.status.as_u16(), text("code"), text("field"))
    }

    fn header(&self, name: &str) -> &str {
        self.headers.get(name).and_then(|value| value.to_str().ok()).unwrap_or_default()
    }
}

impl World {
    /// Calls the API with a token of the account of the tests.
    async fn rest(&self, method: Method, path: &str, body: Option<Value>) -> RestReply {
        self.rest_as(TOKEN, method, path, body).await
    }

    async fn rest_get(&self, path: &str) -> RestReply {
        self.rest(Method::GET, path, None).await
    }

    async fn rest_post(&self, path: &str, body: Value) -> RestReply {
        self.rest(Method::POST, path, Some(body)).await
    }

    /// Calls the API with this token. Each problem leads to a page that explains it.
    async fn rest_as(
        &self,
        token: &str,
        method: Method,
        path: &str,
        body: Option<Value>,
    ) -> RestReply {
        let request = client().request(method, self.gateway.url(path)).bearer_auth(token);
        let request = match body {
            Some(body) => request.header(CONTENT_TYPE, "application/json").body(body.to_string()),
            None => request,
        };
        self.read_reply(request).await
    }

    async fn read_reply(&self, request: reqwest::RequestBuilder) -> RestReply {
        let answer = request.send().await.unwrap();
        let (status, headers) = (answer.status(), answer.headers().clone());
        let text = answer.text().await.unwrap();
        let json = if text.is_empty() { Value::Null } else { serde_json::from_str(&text).unwrap() };
        let reply = RestReply { status, headers, json };
        if status.as_u16() >= 400 {
            assert_eq!(reply.header("content-type"), "application/problem+json", "{text}");
            let page = reply.json["type"].as_str().unwrap();
            let code = reply.json["code"].as_str().unwrap();
            assert!(page.ends_with(&format!("/errors/{code}")), "{text}");
            let page = client().get(page).send().await.unwrap();
            assert_eq!(page.status(), StatusCode::OK, "docs/errors.md explains {code}");
        }
        reply
    }

    /// Creates a token of an account.
    async fn create_token(&self, login: &str, scopes: &str) -> String {
        let token = format!("{login} {scopes}").replace(' ', "-");
        let new = NewToken {
            login: login.to_owned(),
            name: String::new(),
            scopes: Scopes::from_words(scopes).unwrap(),
            hash: TokenHash::from_token(&token),
            expires_at: None,
        };
        let store = self.database.open().await;
        store.create_token(&new, runner::now()).await.unwrap();
        store.close().await;
        token
    }

    /// Subscribes to the feed of this world, in JSON; the subscription.
    async fn create_subscription(&self, callback: &str) -> Value {
        let body = json!({ "url": self.topic, "callback": self.subscriber.url(callback) });
        let made = self.rest_post("/v1/subscriptions", body).await;
        assert_eq!(made.status, StatusCode::CREATED, "{}", made.json);
        made.json
    }
}

/// The path of a resource.
fn path_of(collection: &str, item: &Value) -> String {
    format!("/v1/{collection}/{}", item["id"].as_str().unwrap())
}

#[tokio::test]
async fn a02_a_token_alone_opens_the_old_endpoints_as_well() {
    let world = World::with_tides(1, &[]).await;
    let storage = world.gateway.url("/storage/tester/news.xml");
    for (method, url, status) in [
        (Method::GET, world.gateway.url("/?hub.mode=list"), 200),
        (Method::PUT, storage, 201),
        (
            Method::GET,
            world.gateway.url("/?hub.mode=authenticate&authorization=Bearer+s3cret"),
            204,
        ),
    ] {
        let feed = crate::support::feeds::rss("news", 1..2);
        let mut request = client().request(method.clone(), &url);
        if !url.contains("authorization") {
            request = request.bearer_auth(TOKEN);
        }
        let request = if method == Method::PUT { request.body(feed) } else { request };
        let answer = request.send().await.unwrap();
        assert_eq!(answer.status().as_u16(), status, "{url}");
    }
    let wrong = client().get(world.gateway.url("/v1/subscriptions")).bearer_auth("wrong");
    let wrong = world.read_reply(wrong).await;
    assert_eq!(wrong.problem(), (401, "unauthorized", ""));
    let schemes: Vec<_> = wrong.headers.get_all("www-authenticate").iter().collect();
    assert!(schemes.iter().any(|scheme| scheme.to_str().unwrap().starts_with("Bearer")));
    let bare = world.read_reply(client().get(world.gateway.url("/v1/feeds"))).await;
    assert_eq!(bare.problem(), (401, "unauthorized", ""));
}

#[tokio::test]
async fn a02_each_reply_tells_what_is_left_of_the_budget_of_the_account() {
    let settings = [("FEEDGATE_ACCOUNT_REQUESTS_PER_MIN", "100")];
    let world = World::with_tides(1, &settings).await;
    let first = world.rest_get("/v1/subscriptions").await;
    assert_eq!(first.header("ratelimit-policy"), "\"account\";q=100;w=60");
    assert!(first.header("ratelimit").starts_with("\"account\";r=9"), "{:?}", first.headers);
    let mut last = first;
    while last.status == StatusCode::OK {
        last = world.rest_get("/v1/subscriptions").await;
    }
    assert_eq!(last.problem(), (429, "rate_limited", ""));
    assert!(!last.header("retry-after").is_empty());
}

#[tokio::test]
async fn a02_a_method_that_a_path_does_not_have_is_a_problem_too() {
    let world = World::with_tides(1, &[]).await;
    let reply = world.rest(Method::PUT, "/v1/subscriptions", None).await;
    assert_eq!(reply.problem(), (405, "method_not_allowed", ""));
    assert_eq!(reply.header("allow"), "GET, POST, HEAD, OPTIONS");
    for path in ["/v1", "/v1/", "/v1/subscription", "/v1/feeds/1/entries/2"] {
        let reply = world.rest_get(path).await;
        assert_eq!(reply.problem(), (404, "not_found", ""), "{path}");
    }
}
