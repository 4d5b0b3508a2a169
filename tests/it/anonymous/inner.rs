//! Whom strangers make the gateway contact in the private network that it is in.

use std::sync::Arc;

use http::header::{CONTENT_TYPE, HeaderValue, LINK};
use http::{Method, StatusCode};
use tokio::sync::watch;

use super::{Caller, FORM, PROXIED, SYNC, call, post, send};
use crate::support::feeds::rss;
use crate::support::gateway::Gateway;
use crate::support::postgres::{Database, Kind};
use crate::support::publisher::Publisher;
use crate::support::server::{ReceivedRequest, Server, client, say};
use crate::support::subscriber::Subscriber;

/// What strangers send to name a callback on this machine, in all protocols.
fn inner_callbacks(topic: &str, port: &str) -> Vec<(&'static str, &'static str, String)> {
    let mut sent = Vec::new();
    for host in ["127.0.0.1", "localhost", "127.0.0.9"] {
        for mode in ["subscribe", "unsubscribe"] {
            let callback = format!("http://{host}:{port}/inner");
            let form = format!("hub.mode={mode}&hub.topic={topic}&hub.callback={callback}");
            sent.push(("/hub", FORM, form.clone()));
            sent.push(("/hub", FORM, form + "&hub.verify=sync"));
        }
        for protocol in ["http-post", "xml-rpc", "soap"] {
            let form = format!(
                "port={port}&path=/inner&protocol={protocol}&notifyProcedure=blog.delete\
                 &domain={host}&url1={topic}"
            );
            sent.push(("/rsscloud/pleaseNotify", FORM, form));
            let params = ["blog.delete", port, "/inner", protocol, topic, host];
            sent.push(("/RPC2", "text/xml", call("rssCloud.pleaseNotify", &params)));
        }
    }
    sent
}

#[tokio::test]
async fn h05_callbacks_in_private_networks_are_for_those_who_are_known() {
    let database = Database::new(Kind::Sqlite).await;
    let networks = ("FEEDGATE_EGRESS_ALLOW_CALLBACK_CIDRS", "127.0.0.0/8,::1/128");
    let (publisher, inner) = (Publisher::start().await, Subscriber::start().await);
    publisher.put_rss("/feed", rss("tides", 1..2));
    let (topic, port) = (publisher.url("/feed"), inner.port().to_string());
    let gateway = Gateway::start(&database, &[PROXIED, networks]).await;
    for (path, content_type, body) in inner_callbacks(&topic, &port) {
        let target = (Method::POST, path);
        let answer = send(&gateway, Caller::Anonymous, target, (content_type, &body)).await;
        let (status, text) = (answer.status(), answer.text().await.unwrap());
        let is_refused = status == StatusCode::BAD_REQUEST
            || text.contains("success=\"false\"")
            || text.contains("<fault>");
        assert!(is_refused, "{path} {body}: {status} {text}");
    }
    // A proxy that nobody declared, and a page of another site in a browser on this machine.
    let form = format!("hub.mode=subscribe&hub.topic={topic}&hub.callback={}", inner.url("/inner"));
    for (name, value) in [
        ("x-forwarded-for", "unknown"),
        ("x-forwarded-for", ""),
        ("forwarded", "for=127.0.0.1"),
        ("via", "1.1 proxy"),
        ("origin", "https://page.test"),
        ("host", "page.test"),
    ] {
        let request = client().post(gateway.url("/hub")).header(CONTENT_TYPE, FORM);
        let answer = request.header(name, value).body(form.clone()).send().await.unwrap();
        assert_eq!(answer.status(), StatusCode::BAD_REQUEST, "{name}: {value}");
    }
    gateway.measures("feedgate_pending_verifications 0").await;
    assert!(inner.requests_to("/inner").is_empty(), "{:?}", inner.requests_to("/inner"));

    // Accounts may, by the same request, and programs on this machine for callbacks on it.
    for (caller, path) in [(Caller::Account, "/account"), (Caller::Local, "/local")] {
        let callback = inner.url(path);
        let form =
            [("hub.mode", "subscribe"), ("hub.topic", &topic), ("hub.callback", &callback), SYNC];
        let answer = post(&gateway, caller, "/hub", &form).await;
        assert!(answer.starts_with("204"), "{caller:?}: {answer}");
    }
    publisher.put_rss("/feed", rss("tides", 1..3));
    post(&gateway, Caller::Local, "/ping", &[("url", &topic)]).await;
    for path in ["/account", "/local"] {
        inner.until(path, |told| told.len() == 1).await;
    }
    drop(gateway);

    // The operator of a private network may open it to everybody.
    let open = ("FEEDGATE_ANONYMOUS", "hub,rsscloud,pings,inner-addresses");
    let gateway = Gateway::start(&database, &[PROXIED, networks, open]).await;
    let callback = inner.url("/open");
    let form =
        [("hub.mode", "subscribe"), ("hub.topic", &topic), ("hub.callback", &callback), SYNC];
    let answer = post(&gateway, Caller::Anonymous, "/hub", &form).await;
    assert!(answer.starts_with("204"), "{answer}");
}

#[tokio::test]
async fn h04_topics_in_private_networks_are_for_those_who_are_known() {
    let database = Database::new(Kind::Sqlite).await;
    let (publisher, subscriber) = (Publisher::start().await, Subscriber::start().await);
    publisher.put_rss("/feed", rss("tides", 1..2));
    let topic = publisher.url("/feed");
    let gateway = Gateway::start(&database, &[PROXIED]).await;
    let subscribe = format!("hub.mode=subscribe&hub.topic={topic}&hub.callback=http://b.test/");
    let register = format!("port=80&path=/&protocol=http-post&domain=b.test&url1={topic}");
    let refused = async |when: &str| {
        for (path, form) in [
            ("/hub", subscribe.clone()),
            ("/hub", subscribe.clone() + "&hub.verify=sync"),
            ("/rsscloud/pleaseNotify", register.clone()),
        ] {
            let target = (Method::POST, path);
            let answer = send(&gateway, Caller::Anonymous, target, (FORM, &form)).await;
            let (status, text) = (answer.status(), answer.text().await.unwrap());
            let is_refused =
                status == StatusCode::BAD_REQUEST || text.contains("success=\"false\"");
            assert!(is_refused, "{when} {path} {form}: {status} {text}");
        }
    };
    refused("nobody subscribes").await;
    let ping = post(&gateway, Caller::Anonymous, "/ping", &[("url", &topic)]).await;
    assert!(ping.contains("success=\"false\""), "{ping}");
    assert!(publisher.fetches("/feed").is_empty(), "{:?}", publisher.fetches("/feed"));

    let callback = subscriber.url("/account");
    let form = [("hub.mode", "subscribe"), ("hub.topic", &topic), ("hub.callback", &callback)];
    let answer = post(&gateway, Caller::Account, "/", &form).await;
    assert!(answer.starts_with("204"), "{answer}");
    refused("an account subscribes").await;
}

#[tokio::test]
async fn h05_a_publisher_is_asked_at_the_origin_of_its_topic_only() {
    let database = Database::new(Kind::Sqlite).await;
    let victim_received = watch::Sender::new(Vec::<ReceivedRequest>::new());
    let received = victim_received.clone();
    let victim = Server::start(move |request| {
        received.send_modify(|received| received.push(request));
        async { say(StatusCode::IM_A_TEAPOT, "secret") }
    })
    .await;
    let link = format!("<{}>; rel=\"validate\"", victim.url("/inner"));
    let link = HeaderValue::from_str(&link).unwrap();
    let (request, own) =
        (Arc::new(std::sync::Mutex::new(0)), HeaderValue::from_static("</own>; rel=\"validate\""));
    let counted = Arc::clone(&request);
    let publisher = Server::start(move |request: ReceivedRequest| {
        if request.path == "/own" {
            *counted.lock().unwrap() += 1;
        }
        let link = if request.path == "/elsewhere" { link.clone() } else { own.clone() };
        async move {
            if request.path == "/own" {
                return say(StatusCode::IM_A_TEAPOT, "secret");
            }
            let mut answer = say(StatusCode::OK, rss("tides", 1..2));
            answer.headers_mut().insert(LINK, link);
            answer
        }
    })
    .await;
    let subscriber = Subscriber::start().await;
    let gateway = Gateway::start(&database, &[PROXIED]).await;
    for (caller, path) in [(Caller::Local, "/hub"), (Caller::Account, "/")] {
        for (topic, callback) in [("/elsewhere", "/a"), ("/here", "/b")] {
            let (topic, callback) = (publisher.url(topic), subscriber.url(callback));
            let form = [
                ("hub.mode", "subscribe"),
                ("hub.topic", &topic),
                ("hub.callback", &callback),
                SYNC,
            ];
            let answer = post(&gateway, caller, path, &form).await;
            assert!(answer.starts_with("403"), "{answer}");
            let is_told = caller == Caller::Account && topic.ends_with("/here");
            assert_eq!(answer.contains("418"), is_told, "{answer}");
        }
    }
    assert_eq!(*request.lock().unwrap(), 2);
    // A stranger has nobody asked in a private network.
    let callback = "http://callback.invalid/";
    let form = [
        ("hub.mode", "subscribe"),
        ("hub.topic", &publisher.url("/here")),
        ("hub.callback", callback),
        SYNC,
    ];
    let answer = post(&gateway, Caller::Anonymous, "/hub", &form).await;
    assert!(answer.starts_with("400") && !answer.contains("418"), "{answer}");
    assert_eq!(*request.lock().unwrap(), 2);
    assert!(victim_received.borrow().is_empty(), "{:?}", victim_received.borrow());
}

#[tokio::test]
async fn h05_the_procedure_of_a_handler_is_a_short_name() {
    let database = Database::new(Kind::Sqlite).await;
    let (publisher, subscriber) = (Publisher::start().await, Subscriber::start().await);
    publisher.put_rss("/feed", rss("tides", 1..2));
    let gateway = Gateway::start(&database, &[]).await;
    let (topic, port) = (publisher.url("/feed"), subscriber.port().to_string());
    let long = "x".repeat(129);
    for (procedure, path, want) in [
        ("river.changed", "/rpc", true),
        ("a<b>", "/bad", false),
        ("a b", "/bad", false),
        ("a\r\nb", "/bad", false),
        (long.as_str(), "/bad", false),
    ] {
        let form = [
            ("notifyProcedure", procedure),
            ("port", &port),
            ("path", path),
            ("protocol", "xml-rpc"),
            ("url1", &topic),
        ];
        let answer = post(&gateway, Caller::Local, "/pleaseNotify", &form).await;
        assert_eq!(answer.contains("success=\"true\""), want, "{procedure}: {answer}");
    }
    assert!(subscriber.requests_to("/bad").is_empty());
}
