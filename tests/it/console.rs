//! The console as a program sees it; `console/pages.rs` opens it in a browser.

mod add_feed;
mod alerts;
mod callback_host;
mod entry;
mod events;
mod feeds;
mod frame;
mod lists;
mod live;
mod opml;
mod pages;
mod replay;
mod subscribed;
mod tokens;
mod traffic;
mod true_states;

use feedgate_core::account::{NewToken, Scope, Scopes, TokenHash};
use http::StatusCode;
use http::header::{CONTENT_SECURITY_POLICY, SET_COOKIE};
use reqwest::{Client, Response, redirect};

use crate::support::feeds::between;
use crate::support::gateway;
use crate::support::server::client;
use crate::support::subscriber::Behavior;
use crate::support::until;
use crate::support::world::World;

/// A browser without scripts that is signed in.
struct Visitor<'w> {
    world: &'w World,
    client: Client,
    cookie: String,
}

impl<'w> Visitor<'w> {
    /// Signs in with a token.
    async fn sign_in(world: &'w World, login: &str, token: &str) -> Visitor<'w> {
        #[expect(clippy::disallowed_methods, reason = "feedgate under test listens on loopback")]
        let client = Client::builder().no_proxy().redirect(redirect::Policy::none());
        let client = client.pool_max_idle_per_host(0).build().unwrap();
        let mut visitor = Visitor { world, client, cookie: String::new() };
        let response =
            visitor.post("/console/sign-in", &[("login", login), ("token", token)]).await;
        assert_eq!(response.status(), StatusCode::SEE_OTHER);
        let cookie = response.headers()[SET_COOKIE].to_str().unwrap();
        for part in ["; Path=/", "; HttpOnly", "; SameSite=Lax"] {
            assert!(cookie.contains(part), "{cookie}");
        }
        visitor.cookie = cookie.split(';').next().unwrap().to_owned();
        visitor
    }

    async fn post(&self, path: &str, form: &[(&str, &str)]) -> Response {
        let mut body = url::form_urlencoded::Serializer::new(String::new());
        let request = self.client.post(self.world.gateway.url(path));
        let request = request.header("cookie", &self.cookie);
        let request = request.header("content-type", "application/x-www-form-urlencoded");
        request.body(body.extend_pairs(form).finish()).send().await.unwrap()
    }

    async fn get(&self, path: &str) -> (StatusCode, String) {
        let request = self.client.get(self.world.gateway.url(path)).header("cookie", &self.cookie);
        let response = request.send().await.unwrap();
        (response.status(), response.text().await.unwrap())
    }

    /// Returns a page that is there.
    async fn page(&self, path: &str) -> String {
        let (status, text) = self.get(path).await;
        assert_eq!(status, StatusCode::OK, "{path}: {text}");
        text
    }

    /// Sends the form of a page.
    async fn act(&self, path: &str, form: &[(&str, &str)]) -> Response {
        let page = self.page(path).await;
        let (_, token) = page.split_once("name=\"csrf_token\" value=\"").unwrap();
        let token = token.split('"').next().unwrap();
        self.post(path, &[form, &[("csrf_token", token)]].concat()).await
    }
}

/// Creates a token; the login is also the token.
pub(crate) async fn make_token(world: &World, login: &str, scopes: Scopes) {
    let store = world.database.open().await;
    let (login, name) = (login.to_owned(), String::new());
    let hash = TokenHash::from_token(&login);
    let token = NewToken { login, name, scopes, hash, expires_at: None };
    store.create_token(&token, feedgate::jobs::runner::now()).await.unwrap();
    store.close().await;
}

/// Subscribes a callback for the account with this token.
async fn subscribe(world: &World, login: &str, path: &str) {
    subscribe_with(world, login, path, &[]).await;
}

/// The same, with further parameters.
async fn subscribe_with(world: &World, login: &str, path: &str, further: &[(&str, &str)]) {
    let callback = world.subscriber.url(path);
    let mut body = url::form_urlencoded::Serializer::new(String::new());
    let own = [
        ("hub.mode", "subscribe"),
        ("hub.topic", &world.topic),
        ("hub.callback", &callback),
        ("hub.secret", "opensesame"),
    ];
    let request = client().post(world.gateway.url("/")).basic_auth(login, Some(login));
    let request = request.header("content-type", "application/x-www-form-urlencoded");
    let body = body.extend_pairs(own).extend_pairs(further).finish();
    let response = request.body(body).send().await.unwrap();
    assert_eq!(response.status(), StatusCode::NO_CONTENT);
}

/// Returns the address of the first link in a table of a page to somewhere below `folder`.
fn link(page: &str, folder: &str) -> String {
    let start = format!("href=\"../{folder}/");
    let (_, tables) = page.split_once("<table").unwrap();
    let (_, rest) = tables.split_once(&start).unwrap_or_else(|| panic!("{folder}: {page}"));
    format!("/{folder}/{}", rest.split('"').next().unwrap())
}

async fn world_of_two() -> World {
    world_of_two_with(&[]).await
}

async fn world_of_two_with(settings: &[(&str, &str)]) -> World {
    let world = World::with_tides(3, settings).await;
    let own: Scopes =
        [Scope::Subscribe, Scope::Unsubscribe, Scope::List, Scope::Retrieve].into_iter().collect();
    make_token(&world, "ada", own).await;
    make_token(&world, "bob", own).await;
    make_token(&world, "root", Scopes::all()).await;
    subscribe(&world, "ada", "/ada").await;
    world
}

#[tokio::test]
async fn a_stranger_sees_the_front_page_and_may_sign_in() {
    let world = World::with_tides(1, &[]).await;
    let browser = client().get(world.gateway.url("/")).header("accept", "text/html,*/*;q=0.8");
    let page = browser.send().await.unwrap().text().await.unwrap();
    assert!(page.contains("hub.mode=subscribe") && page.contains("href=\"console\""), "{page}");
    let (_, text) = world.gateway.get("/").await;
    assert!(text.starts_with("feedgate:"), "programs are sent text: {text}");

    for path in ["/console", "/console/feeds", "/console/subscriptions/1-1", "/console/nothing"] {
        let response = client().get(world.gateway.url(path)).send().await.unwrap();
        assert_eq!(response.headers()["cache-control"], "private, no-store");
        let policy = response.headers()[CONTENT_SECURITY_POLICY].to_str().unwrap();
        assert!(policy.contains("frame-ancestors 'none'"), "{policy}");
        let page = response.text().await.unwrap();
        assert!(page.contains("<h1>Sign in</h1>"), "{path}: {page}");
    }
    let nobody = Visitor { world: &world, client: client().clone(), cookie: String::new() };
    for (login, token) in [("eve", "eve"), ("", ""), ("tests", "wrong")] {
        let response = nobody.post("/console/sign-in", &[("login", login), ("token", token)]).await;
        assert_eq!(response.status(), StatusCode::FORBIDDEN);
        assert!(!response.headers().contains_key(SET_COOKIE));
        let page = response.text().await.unwrap();
        assert!(page.contains("The login or the token is wrong."), "{page}");
    }
    // The login and the token, copied as a whole from where they are shown.
    let displayed = format!("{}:{}", gateway::LOGIN, gateway::TOKEN);
    for (login, want) in [(gateway::LOGIN, 200), ("eve", 403), ("", 403)] {
        let form = [("login", login), ("token", displayed.as_str())];
        assert_eq!(nobody.post("/console/sign-in", &form).await.status(), want, "{login}");
    }
    let response = nobody.post("/console/feeds/1", &[("action", "poll")]).await;
    assert!(response.text().await.unwrap().contains("<h1>Sign in</h1>"), "nothing was done");
}

#[tokio::test]
async fn s37_an_account_sees_its_own_feeds_and_subscriptions_only() {
    let world = world_of_two().await;
    let ada = Visitor::sign_in(&world, "ada", "ada").await;
    let bob = Visitor::sign_in(&world, "bob", "bob").await;
    let root = Visitor::sign_in(&world, "root", "root").await;
    let feeds = ada.page("/console/feeds").await;
    let feed = link(&feeds, "console/feeds");
    let subscriptions = ada.page("/console/subscriptions").await;
    let subscription = link(&subscriptions, "console/subscriptions");
    for own in [&ada, &root] {
        assert!(own.page(&feed).await.contains(&world.topic));
        assert!(own.page(&subscription).await.contains(&world.subscriber.url("/ada")));
    }
    for (path, missing) in [(feed, "no such feed"), (subscription, "no such subscription")] {
        let (status, page) = bob.get(&path).await;
        assert_eq!(status, StatusCode::NOT_FOUND);
        assert!(page.contains(missing), "{page}");
    }
    assert!(bob.page("/console/feeds").await.contains("No feeds found."));
    assert!(!bob.page("/console").await.contains(&world.topic));
}

#[tokio::test]
async fn s22_a_subscription_shows_that_it_is_sanitized_and_stays_so() {
    let world = world_of_two().await;
    let ada = Visitor::sign_in(&world, "ada", "ada").await;
    let path = link(&ada.page("/console/subscriptions").await, "console/subscriptions");
    assert!(!ada.page(&path).await.contains(", sanitized"));
    subscribe_with(&world, "ada", "/ada", &[("sanitize", "true")]).await;
    assert!(ada.page(&path).await.contains(", sanitized"));
    ada.act(&path, &[("action", "rotate-secret")]).await;
    assert!(ada.page(&path).await.contains(", sanitized"));
}

#[tokio::test]
async fn s38_a_form_that_no_page_of_the_session_sent_changes_nothing() {
    let world = world_of_two().await;
    let ada = Visitor::sign_in(&world, "ada", "ada").await;
    let path = link(&ada.page("/console/subscriptions").await, "console/subscriptions");
    for token in ["", "guessed"] {
        let form = [("action", "end"), ("csrf_token", token)];
        let response = ada.post(&path, &form).await;
        assert_eq!(response.status(), StatusCode::FORBIDDEN);
    }
    // The API does not read the cookie.
    let response = ada.post("/", &[("hub.mode", "list")]).await;
    assert_eq!(response.status(), StatusCode::UNAUTHORIZED);
    assert!(ada.page(&path).await.contains("up to date"));

    let response = ada.act(&path, &[("action", "end")]).await;
    assert_eq!(response.status(), StatusCode::SEE_OTHER);
    assert_eq!(ada.get(&path).await.0, StatusCode::NOT_FOUND);
}

/// The page of a subscription whose callback responded with 500 says so, and so does that of the host.
async fn says_what_fails(world: &World, ada: &Visitor<'_>, path: &str) {
    let failure =
        "The callback responds with 500 Internal Server Error: 1\u{a0}failed attempt in a row";
    until("the page says what is wrong", async || ada.page(path).await.contains(failure)).await;
    let root = Visitor::sign_in(world, "root", "root").await;
    let page = root.page(path).await;
    let (_, of_host) = page.split_once("console/hosts/").unwrap();
    let page = root.page(&format!("/console/hosts/{}", of_host.split('"').next().unwrap())).await;
    let (_, failing) = page.split_once("Subscriptions whose callback fails").unwrap();
    assert!(failing.contains("/ada") && failing.contains(">500, <time"), "{page}");
}

#[tokio::test]
async fn a_subscription_is_paused_resumed_retried_replayed_and_tested() {
    let world = world_of_two().await;
    let ada = Visitor::sign_in(&world, "ada", "ada").await;
    let path = link(&ada.page("/console/subscriptions").await, "console/subscriptions");
    let act = async |action: &str| {
        let response = ada.act(&path, &[("action", action)]).await;
        assert_eq!(response.status(), StatusCode::SEE_OTHER, "{action}");
        ada.page(&path).await
    };
    assert!(act("pause").await.contains(">paused<"));
    assert!(ada.page("/console/subscriptions?state=paused").await.contains("/ada"));
    let response = ada.act(&path, &[("action", "replay"), ("count", "1")]).await;
    assert_eq!(response.status(), StatusCode::UNPROCESSABLE_ENTITY);
    act("resume").await;

    world.subscriber.set("/ada", Behavior::Failing(500));
    act("replay").await;
    world.subscriber.until("/ada", |received| !received.is_empty()).await;
    world
        .gateway
        .measures("feedgate_deliveries_total{protocol=\"websub\",result=\"http_5xx\"} 1")
        .await;
    says_what_fails(&world, &ada, &path).await;
    world.subscriber.set("/ada", Behavior::Accepting);
    act("retry").await;
    world.subscriber.until("/ada", |received| received.len() >= 2).await;
    world.gateway.comes_to_rest().await;

    // Attempts are stored soon after they were made.
    until("both attempts are listed", async || {
        let page = ada.page(&path).await;
        page.contains(">failed<") && page.contains(">delivered<")
    })
    .await;
    let attempts = ada.page(&path).await;
    let (_, number) = attempts.rsplit_once("/attempts/").unwrap();
    let number = number.split('"').next().unwrap();
    let attempt = ada.page(&format!("{path}/attempts/{number}")).await;
    let pieces = [
        "Status 500",
        "x-hub-signature",
        "&lt;feed",
        ">failed</span>: 500 Internal",
        "Attempt after",
    ];
    for piece in pieces {
        assert!(attempt.contains(piece), "{piece}: {attempt}");
    }
    assert!(attempt.contains(&format!("POST {}", world.subscriber.url("/ada"))), "{attempt}");
    // The retry that was planned did not wait: another attempt was made by hand.
    assert!(!attempts.contains("next attempt"), "{attempts}");
    let (_, next) = attempt.split_once("<dt>Next attempt</dt>").unwrap();
    assert!(next.starts_with("<dd><a href"), "{attempt}");
    let bob = Visitor::sign_in(&world, "bob", "bob").await;
    assert_eq!(bob.get(&format!("{path}/attempts/{number}")).await.0, StatusCode::NOT_FOUND);
    assert_eq!(ada.get(&format!("{path}/attempts/0")).await.0, StatusCode::NOT_FOUND);

    let tested = ada.act(&path, &[("action", "test")]).await;
    let page = tested.text().await.unwrap();
    assert!(page.contains("The callback accepted the test"), "{page}");
    let response = ada.act(&path, &[("action", "party")]).await;
    assert_eq!(response.status(), StatusCode::BAD_REQUEST);
}

#[tokio::test]
async fn a_new_secret_is_shown_once_and_signs_beside_the_previous_one() {
    let world = world_of_two().await;
    let ada = Visitor::sign_in(&world, "ada", "ada").await;
    let path = link(&ada.page("/console/subscriptions").await, "console/subscriptions");
    let rotated = ada.act(&path, &[("action", "rotate-secret")]).await.text().await.unwrap();
    let fingerprint = |page: &str| between(page, "sha256:", "<").unwrap().to_owned();
    assert_eq!(
        fingerprint(&rotated),
        fingerprint(&ada.page(&path).await),
        "that of the new secret"
    );
    let (_, secret) = rotated.split_once("<code>whsec_").unwrap();
    let secret = format!("whsec_{}", secret.split('<').next().unwrap());
    assert!(!ada.page(&path).await.contains(&secret), "only once");
    assert!(!ada.page(&path).await.contains("opensesame"));
    let page = ada.page(&path).await;
    assert!(page.contains("the previous one"), "{page}");
    ada.act(&path, &[("action", "replay")]).await;
    world.subscriber.until("/ada", |received| !received.is_empty()).await;
    let received = &world.subscriber.notified("/ada")[0];
    assert!(crate::support::subscriber::is_signed(received, &secret));
}

#[tokio::test]
async fn who_signs_out_is_a_stranger_again() {
    let world = world_of_two().await;
    let ada = Visitor::sign_in(&world, "ada", "ada").await;
    let token = ada.page("/console").await;
    let (_, token) = token.split_once("name=\"csrf_token\" value=\"").unwrap();
    let form = [("csrf_token", token.split('"').next().unwrap())];
    let response = ada.post("/console/sign-out", &form).await;
    assert_eq!(response.status(), StatusCode::SEE_OTHER);
    assert!(response.headers()[SET_COOKIE].to_str().unwrap().contains("Max-Age=0"));
    assert!(ada.page("/console").await.contains("<h1>Sign in</h1>"));
}

#[tokio::test]
async fn what_others_wrote_is_text_in_every_page() {
    let world = World::with_tides(1, &[]).await;
    make_token(&world, "root", Scopes::all()).await;
    let title = "&lt;script&gt;alert(1)&lt;/script&gt;";
    let feed = format!(
        "<rss><channel><title>{title}</title><item><guid>1</guid><title>{title}</title></item>\
         </channel></rss>"
    );
    world.publisher.put_rss("/feed", feed);
    subscribe(&world, "root", "/<b>root").await;
    let root = Visitor::sign_in(&world, "root", "root").await;
    let feeds = root.page("/console/feeds").await;
    let feed = link(&feeds, "console/feeds");
    for path in ["/console", "/console/feeds", "/console/subscriptions", &feed] {
        let page = root.page(path).await;
        assert!(!page.contains("<script>alert") && !page.contains("<b>root"), "{path}: {page}");
    }
    assert!(
        root.page("/console/feeds?q=%22%3E%3Cb%3E").await.contains("value=\"&quot;&gt;&lt;b&gt;")
    );
}

#[tokio::test]
async fn h20_pages_of_other_sites_may_not_read_the_console() {
    let world = world_of_two().await;
    let ada = Visitor::sign_in(&world, "ada", "ada").await;
    let paths =
        ["/console", "/console/feeds", "/console/page.js", "/console/opml/feeds.opml", "/viewLog"];
    for path in paths {
        let request = ada.client.get(world.gateway.url(path)).header("cookie", &ada.cookie);
        let response = request.header("origin", "https://evil.test").send().await.unwrap();
        assert!(response.status().is_success(), "{path}");
        let allowed =
            response.headers().keys().filter(|name| name.as_str().contains("access-control"));
        assert_eq!(allowed.count(), 0, "{path}");
    }
    let preflight =
        client().request(http::Method::OPTIONS, world.gateway.url("/console/accounts/ada"));
    let preflight = preflight.header("origin", "https://evil.test");
    let response = preflight.header("access-control-request-headers", "x-a").send().await.unwrap();
    assert!(response.headers().keys().all(|name| !name.as_str().contains("access-control")));
    let response = client().get(world.gateway.url("/changes.xml")).send().await.unwrap();
    assert_eq!(response.headers()["access-control-allow-origin"], "*", "what is for programs");
}
