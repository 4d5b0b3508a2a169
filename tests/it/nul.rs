//! U+0000 in what subscribers send: PostgreSQL stores no text with it, so it is refused, on both
//! stores in the same words.

use http::StatusCode;

use crate::store::on_both_stores;
use crate::support::feeds::rss;
use crate::support::gateway::Gateway;
use crate::support::postgres::Database;
use crate::support::publisher::Publisher;
use crate::support::server::client;
use crate::support::subscriber::Subscriber;

on_both_stores!(
    a_subscription_to_the_open_hub,
    a_subscription_by_superfeedrs_api,
    a_registration_by_a_form,
    a_call_in_xml_rpc,
);

type Parameter<'a> = (&'a str, &'a str);

/// The form with one of its parameters replaced, or added.
fn with<'a>(form: &[Parameter<'a>], (name, value): Parameter<'a>) -> Vec<Parameter<'a>> {
    let others = form.iter().copied().filter(|(other, _)| *other != name);
    others.chain([(name, value)]).collect()
}

/// That nothing was stored for a request that was refused.
async fn assert_nothing_stored(database: &Database) {
    for table in ["resources", "subscriptions", "intents"] {
        let rows = database.texts(&format!("select 'a row' from {table}")).await;
        assert!(rows.is_empty(), "{table} has {} rows", rows.len());
    }
}

async fn a_subscription_to_the_open_hub(database: Database) {
    let gateway = Gateway::start(&database, &[]).await;
    let good = [
        ("hub.mode", "subscribe"),
        ("hub.topic", "https://feeds.test/feed"),
        ("hub.callback", "https://callback.test/cb"),
    ];
    let cases = [
        (("hub.topic", "https://feeds.test/\0"), "hub.topic cannot be used"),
        (("hub.callback", "https://callback.test/?a=\0"), "hub.callback cannot be used"),
        (("hub.secret", "open\0sesame"), "hub.secret must not contain"),
        (("hub.verify_token", "\0"), "hub.verify_token cannot be used"),
    ];
    for (parameter, words) in cases {
        let (status, text) = gateway.post("/hub", &with(&good, parameter)).await;
        assert_eq!(status, StatusCode::BAD_REQUEST, "{parameter:?}: {text}");
        assert!(text.contains(words) && text.contains("U+0000"), "{parameter:?}: {text}");
    }
    assert_nothing_stored(&database).await;
}

async fn a_subscription_by_superfeedrs_api(database: Database) {
    let gateway = Gateway::start(&database, &[]).await;
    let good = [
        ("hub.mode", "subscribe"),
        ("hub.topic", "https://feeds.test/feed"),
        ("hub.callback", "https://callback.test/cb"),
    ];
    let cases = [
        (("hub.topic", "https://feeds.test/a\0b"), "Please provide a valid hub.topic"),
        (("hub.callback", "https://callback.test/a\0b"), "Please provide a valid hub.callback"),
        (("hub.secret", "\0"), "Please provide a hub.secret"),
        (("hub.verify_token", "to\0ken"), "Please provide a valid hub.verify_token"),
    ];
    for (parameter, words) in cases {
        let (status, text) = gateway.superfeedr(&with(&good, parameter)).await;
        assert_eq!(status, StatusCode::UNPROCESSABLE_ENTITY, "{parameter:?}: {text}");
        assert!(text.contains(words) && text.contains("U+0000"), "{parameter:?}: {text}");
    }
    assert_nothing_stored(&database).await;
}

/// A refusal by rssCloud's form is a 200 that says `success="false"`.
async fn a_registration_by_a_form(database: Database) {
    let gateway = Gateway::start(&database, &[]).await;
    let (publisher, subscriber) = (Publisher::start().await, Subscriber::start().await);
    publisher.put_rss("/feed", rss("tides", 1..2));
    let (topic, port) = (publisher.url("/feed"), subscriber.port().to_string());
    let good = [
        ("notifyProcedure", "river.changed"),
        ("port", port.as_str()),
        ("path", "/cb"),
        ("protocol", "xml-rpc"),
        ("url1", topic.as_str()),
    ];
    let cases = [
        (("url1", "https://feeds.test/\0"), "error reading the resource"),
        (("path", "/c\0b"), "the call failed when we tested the handler"),
        (("domain", "callback\0.test"), "the call failed when we tested the handler"),
        (("notifyProcedure", "river\0"), "notifyProcedure contains the character U+0000"),
    ];
    for (parameter, words) in cases {
        let (status, text) = gateway.post("/pleaseNotify", &with(&good, parameter)).await;
        assert_eq!(status, StatusCode::OK, "{parameter:?}: {text}");
        assert!(
            text.contains("success=\"false\"") && text.contains(words),
            "{parameter:?}: {text}"
        );
    }
    let (status, text) = gateway.post("/ping", &[("url", "https://feeds.test/\0")]).await;
    assert!(status == StatusCode::OK && text.contains("success=\"false\""), "{status}: {text}");
    assert!(database.texts("select callback from subscriptions").await.is_empty());
}

/// XML has no such character: the call is not well-formed, and is answered by a fault.
async fn a_call_in_xml_rpc(database: Database) {
    let gateway = Gateway::start(&database, &[]).await;
    let call = |url: &str| {
        format!(
            "<methodCall><methodName>rssCloud.pleaseNotify</methodName><params>\
             <param><value></value></param><param><value><i4>80</i4></value></param>\
             <param><value>/cb</value></param><param><value>http-post</value></param>\
             <param><value><array><data><value>{url}</value></data></array></value></param>\
             </params></methodCall>"
        )
    };
    for url in ["https://feeds.test/\0", "\0https://feeds.test/"] {
        let answer = client().post(gateway.url("/RPC2")).body(call(url)).send().await.unwrap();
        let (status, text) = (answer.status(), answer.text().await.unwrap());
        assert_eq!(status, StatusCode::OK, "{text}");
        assert!(text.contains("<name>faultCode</name>") && text.contains("U+0000"), "{text}");
    }
    assert_nothing_stored(&database).await;
}
