//! What can never come to anything is refused at once, and says why.

use http::StatusCode;

use crate::support::feeds::rss;
use crate::support::gateway::{Gateway, LOGIN, TOKEN};
use crate::support::ports::free_port;
use crate::support::postgres::{Database, Kind};
use crate::support::publisher::Publisher;
use crate::support::server::client;

/// A form, what is wrong in it, and what is said about that.
type Case<'a> = (&'a [(&'a str, &'a str)], (&'a str, &'a str), &'a str);

const PUBLIC: &str = "https://feed.example/";

#[tokio::test]
async fn an_address_that_is_not_public_is_refused_at_once() {
    let database = Database::new(Kind::Sqlite).await;
    let gateway = Gateway::start(&database, &[]).await;
    #[rustfmt::skip]
    let cases = [
        (PUBLIC,                 "http://10.0.0.1/cb",        "10.0.0.1",    "CALLBACK"),
        (PUBLIC,                 "http://[::1]:8080/cb",      "::1",         "CALLBACK"),
        (PUBLIC,                 "http://0xa.1/cb?token=abc", "10.0.0.1",    "CALLBACK"),
        ("http://192.168.1.1/",  "https://call.example/",     "192.168.1.1", "TOPIC"),
        ("http://169.254.169.254/", "http://10.0.0.1/dev/null", "169.254.169.254", "TOPIC"),
    ];
    for (topic, callback, host, setting) in cases {
        let ask = |mode| [("hub.mode", mode), ("hub.topic", topic), ("hub.callback", callback)];
        let want = format!(
            "{host} is not a public address; an operator can allow it with \
             FEEDGATE_EGRESS_ALLOW_{setting}_CIDRS{}",
            if host == "::1" { " or feedgate serve --allow-local" } else { "" }
        );
        let (status, why) = gateway.post("/hub", &ask("subscribe")).await;
        assert_eq!(status, StatusCode::BAD_REQUEST, "{topic} {callback}: {why}");
        assert!(why.contains(&want), "{why}");
        let (status, why) = gateway.superfeedr(&ask("subscribe")).await;
        assert_eq!(status, StatusCode::UNPROCESSABLE_ENTITY, "{topic} {callback}: {why}");
        assert!(why.contains(&want), "{why}");
        // What was allowed once can still be ended. If no account vouches for that, the callback is
        // asked, which a program on this machine may have done at public and loopback addresses.
        let (status, why) = gateway.post("/hub", &ask("unsubscribe")).await;
        let of_anonymous = match setting {
            "CALLBACK" if host != "::1" => StatusCode::BAD_REQUEST,
            _ => StatusCode::ACCEPTED,
        };
        assert_eq!(status, of_anonymous, "{why}");
        let (status, why) = gateway.superfeedr(&ask("unsubscribe")).await;
        assert_eq!(status, StatusCode::NO_CONTENT, "{topic} {callback}: {why}");
    }
    let (_, list) = gateway.superfeedr(&[("hub.mode", "list")]).await;
    assert_eq!(list, "[]");
}

#[tokio::test]
async fn a_callback_that_is_not_there_is_not_blamed_for_its_answer() {
    let database = Database::new(Kind::Sqlite).await;
    let gateway = Gateway::start(&database, &[]).await;
    let publisher = Publisher::start().await;
    publisher.put_rss("/feed", rss("tides", 1..2));
    let callback = format!("http://127.0.0.1:{}/cb", free_port());
    let form = [
        ("hub.mode", "subscribe"),
        ("hub.topic", &publisher.url("/feed")),
        ("hub.callback", &callback),
        ("hub.verify", "sync"),
    ];
    let (status, why) = gateway.superfeedr(&form).await;
    assert_eq!(status, StatusCode::UNPROCESSABLE_ENTITY);
    let want = "Your callback URL could not be reached: 127.0.0.1: connect: the connection failed.";
    assert_eq!(why.trim_end(), want);
}

#[tokio::test]
async fn a_parameter_that_means_nothing_is_named() {
    let database = Database::new(Kind::Sqlite).await;
    let gateway = Gateway::start(&database, &[]).await;
    let subscribe = [
        ("hub.mode", "subscribe"),
        ("hub.topic", "https://feed.example/"),
        ("hub.callback", "https://call.example/"),
    ];
    let list = [("hub.mode", "list")];
    let publish = [("hub.mode", "publish"), ("hub.url", "http://a.test/")];
    #[rustfmt::skip]
    let cases: [Case<'_>; 6] = [
        (&subscribe, ("format", "yaml"),      "format must be atom, json or raw, not yaml."),
        (&subscribe, ("hub.verify", "maybe"), "hub.verify must be sync or async, not maybe."),
        (&list,      ("page", "abc"),         "page must be a number from 1, not abc."),
        (&list,      ("by_page", "all"),      "by_page must be a number from 1 to 500, not all."),
        (&publish,   ("hub.signature", "sha1=00"), "hub.signature signs hub.content, which is missing."),
        (&[],        ("hub.topic", "x"),      "(none) is not a supported mode subscribe|unsubscribe|list|retrieve|search|replay|authenticate|pause|resume|retry|test|attempts|publish"),
    ];
    for (form, further, want) in cases {
        let (status, why) = gateway.superfeedr(&[form, &[further]].concat()).await;
        assert_eq!(status, StatusCode::UNPROCESSABLE_ENTITY, "{further:?}: {why}");
        assert_eq!(why.trim_end(), want);
    }
    let clamped = [("hub.mode", "list"), ("page", "0"), ("by_page", "100000")];
    assert_eq!(gateway.superfeedr(&clamped).await.0, StatusCode::OK);
}

#[tokio::test]
async fn a_gateway_without_its_database_says_soon_that_it_is_not_ready() {
    let database = Database::new(Kind::Sqlite).await;
    let gateway = Gateway::start(&database, &[]).await;
    let path = database.url.strip_prefix("sqlite:").unwrap();
    let other = rusqlite::Connection::open(path).unwrap();
    other.busy_timeout(std::time::Duration::from_secs(10)).unwrap();
    other.execute_batch("begin immediate").unwrap();
    let (status, why) = gateway.get("/readyz").await;
    assert_eq!(status, StatusCode::SERVICE_UNAVAILABLE);
    assert_eq!(why.trim_end(), "not ready: the database did not respond within 2 s");
    assert_eq!(gateway.get("/livez").await.0, StatusCode::OK);
}

#[tokio::test]
async fn what_a_new_user_gets_wrong_is_answered_with_what_would_be_right() {
    let database = Database::new(Kind::Sqlite).await;
    let gateway = Gateway::start(&database, &[]).await;
    const FORM: &str = "application/x-www-form-urlencoded";
    let json = r#"{"hub.mode": "list"}"#;
    #[rustfmt::skip]
    let cases = [
        ("/hub", FORM, "mode=subscribe&topic=https://a.example/", "Did you mean hub.mode instead of mode?"),
        ("/hub", FORM, "hub.mode=subscribe&topic=https://a.example/", "hub.topic is missing. Did you mean hub.topic instead of topic?"),
        ("/hub", FORM, "hub.mode=publish&url=https://a.example/", "Did you mean hub.url instead of url?"),
        ("/hub", FORM, "hub.mode=subscribe&hub.topic=a.example/feed&hub.callback=https://b.example/", "did you mean https://a.example/feed? It has no http:// or https://"),
        ("/hub", FORM, json, "The body is JSON, which this address does not read. Send the parameters as application/x-www-form-urlencoded"),
        ("/",    FORM, "mode=list", "hub.mode is missing. Did you mean hub.mode instead of mode?"),
        ("/",    FORM, "hub.mode=subscribe&topic=https://a.example/", "topic is not a parameter of subscribe. Did you mean hub.topic?"),
        ("/",    FORM, "hub.mode=subscribe&hub.topic=https://a.example/&callback=https://b.example/", "Did you mean hub.callback instead of callback?"),
        ("/",    FORM, json, "its Content-Type is application/x-www-form-urlencoded. Send Content-Type: application/json."),
        ("/",    "",   json, "has no Content-Type. Send Content-Type: application/json."),
        ("/",    "text/yaml", json, "must be application/x-www-form-urlencoded, application/json or multipart/form-data, it is text/yaml"),
        ("/v1/subscriptions", FORM, r#"{"url": "https://a.example/"}"#, "Send Content-Type: application/json."),
        ("/v1/subscriptions", "application/json", r#"{"url": "a.example/feed"}"#, "Did you mean https://a.example/feed?"),
    ];
    for (path, content_type, body, want) in cases {
        let request = client().post(gateway.url(path)).basic_auth(LOGIN, Some(TOKEN)).body(body);
        let request = match content_type {
            "" => request,
            content_type => request.header("content-type", content_type),
        };
        let answer = request.send().await.unwrap();
        let (status, why) = (answer.status(), answer.text().await.unwrap());
        assert!(status.is_client_error() && why.contains(want), "{path} {body}: {status} {why}");
    }
}
