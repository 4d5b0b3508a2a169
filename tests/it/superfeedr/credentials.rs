//! Who may send requests: credentials, the rights of tokens, and methods.

use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use feedgate::jobs::runner;
use feedgate_core::account::{NewToken, Scope, Scopes, TokenHash};
use http::header::{CONTENT_TYPE, WWW_AUTHENTICATE};
use http::{Method, StatusCode};
use serde_json::json;

use super::{BASIC, Got, World};
use crate::support::server::client;

/// Sends a request, and reads the response to its end.
pub(super) async fn send(request: reqwest::RequestBuilder) -> Got {
    let response = request.send().await.unwrap();
    let (status, headers) = (response.status(), response.headers().clone());
    Got { status, headers, text: response.text().await.unwrap() }
}

/// A text as it stands in a query.
fn encoded(text: &str) -> String {
    url::form_urlencoded::byte_serialize(text.as_bytes()).collect()
}

impl World {
    /// Creates a token of the account with these scopes; returns `login:token` in base64.
    async fn new_token(&self, token: &str, scopes: Scopes) -> String {
        let login = "tester".to_owned();
        let hash = TokenHash::from_token(token);
        let new = NewToken { login, name: String::new(), scopes, hash, expires_at: None };
        let store = self.database.open().await;
        store.create_token(&new, runner::now()).await.unwrap();
        store.close().await;
        STANDARD.encode(format!("tester:{token}"))
    }
}

/// Rows.
#[tokio::test]
async fn credentials_have_the_same_rights_wherever_they_are_sent() {
    let world = World::subscribed("atom").await;
    // Ruby breaks lines of 60 characters, and a plus sign becomes a space if nobody encodes it.
    let packed = world.new_token(&format!("ab{}", "~?>".repeat(20)), Scopes::all()).await;
    let lines: Vec<&str> = [&packed[..60], &packed[60..]].into();
    let broken = format!("{}\n", lines.join("\n"));
    assert!(packed.contains('+'));
    let in_header = format!("Basic {packed}");
    let (as_sent, raw) = (encoded(&broken), broken.replace('\n', "%0A"));
    let topic = encoded(&world.topic);
    let callback = encoded(&world.subscriber.url("/cb"));
    let modes = [
        ("authenticate".to_owned(), StatusCode::NO_CONTENT),
        ("list".to_owned(), StatusCode::OK),
        (format!("retrieve&hub.topic={topic}"), StatusCode::OK),
        (format!("subscribe&hub.topic={topic}&hub.callback={callback}"), StatusCode::NO_CONTENT),
    ];
    for (mode, want) in modes {
        let form = format!("hub.mode={mode}");
        let post = |body: String| {
            let request = client().post(world.gateway.url("/"));
            request.header(CONTENT_TYPE, "application/x-www-form-urlencoded").body(body)
        };
        let requests = [
            post(form.clone()).header("authorization", &in_header),
            post(form.clone()).header("authorization", in_header.replace("Basic", "basic")),
            client().get(world.gateway.url(&format!("/?{form}&authorization={as_sent}"))),
            client().get(world.gateway.url(&format!("/?{form}&authorization={raw}"))),
            post(format!("{form}&authorization={as_sent}")),
            post(format!("{form}&authorization={raw}")),
        ];
        for (n, request) in requests.into_iter().enumerate() {
            let got = send(request).await;
            assert_eq!(got.status, want, "{mode}, {n}: {}", got.text);
        }
    }
}

/// Rows.
#[tokio::test]
async fn a_request_without_valid_credentials_is_refused_with_a_challenge() {
    let world = World::subscribed("atom").await;
    let wrong = format!("Basic {}", STANDARD.encode("tester:wrong"));
    for mode in ["authenticate", "list", "retrieve", "subscribe", "unsubscribe", "replay"] {
        for credentials in [None, Some(wrong.as_str()), Some("Basic !"), Some("Bearer wrong")] {
            let request = client().post(world.gateway.url(&format!("/?hub.mode={mode}")));
            let request = match credentials {
                Some(credentials) => request.header("authorization", credentials),
                None => request,
            };
            let got = send(request).await;
            assert_eq!(got.status, StatusCode::UNAUTHORIZED, "{mode}, {credentials:?}");
            assert!(got.header(WWW_AUTHENTICATE).starts_with("Basic realm="), "{:?}", got.headers);
            assert_eq!(got.header(CONTENT_TYPE), "text/plain; charset=utf-8");
            assert!(got.text.ends_with(".\n"), "{}", got.text);
        }
    }
}

/// Rows and P-1.
#[tokio::test]
async fn a_token_is_good_for_the_modes_of_its_rights_only() {
    let world = World::subscribed("atom").await;
    let callback = world.subscriber.url("/cb");
    #[rustfmt::skip]
    let modes = [
        ("subscribe",   "",            Scope::Subscribe),
        ("unsubscribe", "",            Scope::Unsubscribe),
        ("list",        "",            Scope::List),
        ("retrieve",    "",            Scope::Retrieve),
        ("retrieve",    "wait=stream", Scope::Retrieve),
        ("replay",      "",            Scope::Retrieve),
    ];
    let scopes = [Scope::Subscribe, Scope::Unsubscribe, Scope::List, Scope::Retrieve];
    for scope in scopes {
        let packed = world.new_token(scope.as_str(), Scopes::from_iter([scope])).await;
        let request = |query: String| {
            let url = world.gateway.url(&format!("/?{query}"));
            client().post(url).header("authorization", format!("Basic {packed}"))
        };
        for (mode, further, needed) in modes {
            if further == "wait=stream" && scope == needed {
                continue; // a stream has no end
            }
            let topic = encoded(&world.topic);
            let callback = encoded(&callback);
            let (topic, callback) =
                (format!("hub.topic={topic}"), format!("hub.callback={callback}"));
            let got = send(request(format!("hub.mode={mode}&{topic}&{callback}&{further}"))).await;
            if scope == needed {
                assert_ne!(got.status, StatusCode::FORBIDDEN, "{mode}: {}", got.text);
            } else {
                let reason = format!("This token does not have the scope {}.\n", needed.as_str());
                assert_eq!((got.status, got.text), (StatusCode::FORBIDDEN, reason), "{mode}");
            }
        }
        let rights = send(request("hub.mode=authenticate&rights=true".to_owned())).await;
        let want = scopes.map(|one| (one.as_str().to_owned(), json!(one == scope)));
        assert_eq!(rights.json(), want.into_iter().collect::<serde_json::Value>());
        let valid = send(request("hub.mode=authenticate".to_owned())).await;
        assert_eq!((valid.status, valid.text.as_str()), (StatusCode::NO_CONTENT, ""));
    }
}

/// Row A-16.
#[tokio::test]
async fn an_unknown_mode_is_refused_with_the_known_ones() {
    let world = World::subscribed("atom").await;
    let got = world.ask(Method::POST, &[("hub.mode", "dance")], &[]).await;
    assert_eq!(got.status, StatusCode::UNPROCESSABLE_ENTITY);
    let known = "dance is not a supported mode subscribe|unsubscribe|list|retrieve|";
    assert!(got.text.starts_with(known) && got.text.contains("|publish"), "{}", got.text);
}

/// Rows.
#[tokio::test]
async fn the_mode_counts_and_not_the_method() {
    let world = World::subscribed("atom").await;
    let subscribe = |path: &str| {
        let (topic, callback) = (encoded(&world.topic), encoded(&world.subscriber.url(path)));
        format!("hub.mode=subscribe&hub.topic={topic}&hub.callback={callback}")
    };
    let url = |query: &str| world.gateway.url(&format!("/?{query}"));
    let overridden = |request: reqwest::RequestBuilder, method: &str| {
        request.header("x-http-method-override", method)
    };
    let requests = [
        (client().get(url(&subscribe("/get"))), StatusCode::NO_CONTENT),
        (overridden(client().get(url(&subscribe("/override"))), "POST"), StatusCode::NO_CONTENT),
        (overridden(client().post(url("hub.mode=list")), "GET"), StatusCode::OK),
        (overridden(client().post(url("")), "GET"), StatusCode::OK),
    ];
    for (n, (request, want)) in requests.into_iter().enumerate() {
        let got = send(request.header("authorization", BASIC)).await;
        assert_eq!(got.status, want, "{n}: {}", got.text);
    }
    assert_eq!(world.subscriptions().await, 3);
}

/// Rows.
#[tokio::test]
async fn parameters_are_read_in_every_encoding() {
    let world = World::subscribed("atom").await;
    let callback = |path: &str| world.subscriber.url(path);
    let fields = |path: &str| {
        [
            ("hub.mode", "subscribe".to_owned()),
            ("hub.topic", world.topic.clone()),
            ("hub.callback", callback(path)),
            ("format", "json".to_owned()),
        ]
    };
    let query = |path: &str| {
        let mut query = url::form_urlencoded::Serializer::new(String::new());
        query.extend_pairs(fields(path)).finish()
    };
    let parts: String = fields("/multipart")
        .iter()
        .map(|(name, value)| {
            format!("--cut\r\nContent-Disposition: form-data; name=\"{name}\"\r\n\r\n{value}\r\n")
        })
        .collect();
    let mut object: serde_json::Map<_, _> = fields("/object")
        .map(|(name, value)| (name.to_owned(), json!(value)))
        .into_iter()
        .collect();
    object.insert("retrieve".to_owned(), json!(false));
    object.insert("hub.secret".to_owned(), json!(null));
    let form = "application/x-www-form-urlencoded";
    let root = world.gateway.url("/");
    let requests = [
        client().post(&root).header(CONTENT_TYPE, form).body(query("/form") + "&"),
        client().post(format!("{root}?{}", query("/query"))).header("content-length", "0"),
        client().get(&root).header(CONTENT_TYPE, form).body(query("/get") + "&"),
        client()
            .post(&root)
            .header(CONTENT_TYPE, "multipart/form-data; boundary=cut")
            .body(parts + "--cut--\r\n"),
        client()
            .post(&root)
            .header(CONTENT_TYPE, "application/json")
            .body(json!(object).to_string()),
    ];
    for (n, request) in requests.into_iter().enumerate() {
        let got = send(request.header("authorization", BASIC)).await;
        assert_eq!(got.status, StatusCode::NO_CONTENT, "{n}: {}", got.text);
    }
    let listed = world.ask(Method::GET, &[("hub.mode", "list"), ("search[format]", "json")], &[]);
    let listed = listed.await.json();
    let subscriptions = listed.as_array().unwrap().iter().map(|one| &one["subscription"]);
    let got: Vec<_> = subscriptions.map(|one| (&one["endpoint"], &one["secret"])).collect();
    let want =
        ["/form", "/query", "/get", "/multipart", "/object"].map(|path| json!(callback(path)));
    assert_eq!(got, want.iter().map(|url| (url, &serde_json::Value::Null)).collect::<Vec<_>>());
}
