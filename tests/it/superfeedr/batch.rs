//! Many subscriptions in one request.

use http::StatusCode;
use serde_json::{Value, json};

use super::{BASIC, World};
use crate::support::server::client;
use crate::support::subscriber::Behavior;

impl World {
    /// Posts a body of this type to `/` with a query.
    pub(super) async fn post_batch(
        &self,
        query: &[(&str, &str)],
        content_type: &str,
        body: impl Into<reqwest::Body>,
    ) -> (StatusCode, Value) {
        let mut url = url::Url::parse(&self.gateway.url("/")).unwrap();
        url.query_pairs_mut().extend_pairs(query);
        let request = client()
            .post(url)
            .header("authorization", BASIC)
            .header("accept", "application/json")
            .header("content-type", content_type)
            .body(body);
        let answer = request.send().await.unwrap();
        let status = answer.status();
        (status, serde_json::from_str(&answer.text().await.unwrap()).unwrap())
    }

    /// How many subscriptions the account has.
    pub(super) async fn subscriptions(&self) -> usize {
        let list = [("hub.mode", "list"), ("by_page", "500")];
        self.ask(http::Method::GET, &list, &[]).await.json().as_array().unwrap().len()
    }
}

/// The status and the code of each item in a report.
fn outcomes(report: &Value) -> Vec<(u64, Option<&str>)> {
    let items = report["items"].as_array().unwrap().iter();
    items.map(|item| (item["status"].as_u64().unwrap(), item["code"].as_str())).collect()
}

#[tokio::test]
async fn f17_each_item_of_a_json_array_has_its_own_report() {
    let world = World::subscribed("atom").await;
    let other = world.publisher.url("/other");
    world.publisher.put_rss("/other", crate::support::feeds::rss("other", 1..3));
    let callback = world.subscriber.url("/batch");
    let items = json!([
        { "hub.topic": world.topic, "format": "json" },
        { "hub": { "topic": other, "callback": world.subscriber.url("/own") } },
        { "hub.topic": "nonsense" },
        { "hub.topic": other, "fromat": "json" },
        { "hub.topic": world.topic, "format": "atom" },
        "https://feeds.test/",
        { "hub.mode": "unsubscribe", "hub.topic": world.topic, "hub.callback": world.subscriber.url("/cb") },
        { "hub.mode": "list" , "hub.topic": "http://a.test/" },
        { "hub.topic": "http://b.test/", "hub.verify": "sync" },
        { "hub.topic": "http://c.test/", "retrieve": true },
    ]);
    let query = [("hub.callback", callback.as_str())];
    let (status, report) =
        world.post_batch(&query, "application/json; charset=utf-8", items.to_string()).await;
    assert_eq!(status, StatusCode::MULTI_STATUS, "{report}");
    let want = [
        (204, None),
        (204, None),
        (422, Some("bad_topic")),
        (422, Some("unknown_parameter")),
        (422, Some("repeated_item")),
        (422, Some("bad_item")),
        (204, None),
        (422, Some("unknown_mode")),
        (422, Some("bad_request")),
        (422, Some("bad_request")),
    ];
    assert_eq!(outcomes(&report), want, "{report}");
    assert_eq!(report["meta"], json!({ "total": 10, "succeeded": 3, "failed": 7 }));
    let first = json!({ "topic": world.topic, "callback": callback, "status": 204, "code": null, "reason": null });
    assert_eq!(report["items"][0], first);
    assert_eq!(world.subscriptions().await, 2);
    world.publish(4).await;
    world.subscriber.until("/batch", |told| told.len() == 1).await;
}

#[tokio::test]
async fn f17_the_feeds_of_an_opml_list_are_subscribed_to() {
    let world = World::subscribed("atom").await;
    let refusing = world.subscriber.url("/refusing");
    world.subscriber.set("/refusing", Behavior::Refusing);
    let opml = |topics: &[&str]| {
        let outlines: String =
            topics.iter().map(|topic| format!("<outline type='rss' xmlUrl='{topic}'/>")).collect();
        format!("<opml version='2.0'><body><outline text='News'>{outlines}</outline></body></opml>")
    };
    let missing = world.publisher.url("/missing");
    let list = opml(&[&world.topic, &missing]);
    let query = [("hub.callback", refusing.as_str()), ("format", "json")];
    let (status, report) = world.post_batch(&query, "text/x-opml", list.clone()).await;
    assert_eq!(status, StatusCode::MULTI_STATUS, "{report}");
    assert_eq!(outcomes(&report), [(204, None), (204, None)]);
    let note = report["items"][1]["reason"].as_str().unwrap();
    assert!(note.starts_with("the topic could not be fetched"), "{note}");
    assert_eq!(world.subscriptions().await, 3);

    // As a file in a form, beside the parameters.
    let part = |name: &str, value: &str| {
        format!("--b\r\nContent-Disposition: form-data; name=\"{name}\"\r\n\r\n{value}\r\n")
    };
    let form =
        [part("hub.mode", "unsubscribe"), part("hub.callback", &refusing), part("opml", &list)];
    let body = format!("{}--b--\r\n", form.concat());
    let (status, report) = world.post_batch(&[], "multipart/form-data; boundary=b", body).await;
    assert_eq!((status, outcomes(&report)), (StatusCode::MULTI_STATUS, vec![(204, None); 2]));
    assert_eq!(world.subscriptions().await, 1);
}

#[tokio::test]
async fn f17_a_batch_that_cannot_be_read_changes_nothing() {
    let world = World::subscribed("atom").await;
    let many = Value::Array(vec![json!({ "hub.topic": "http://a.test/" }); 501]).to_string();
    #[rustfmt::skip]
    let cases = [
        ("application/json", "[]",                    422, "empty_batch"),
        ("application/json", many.as_str(),           413, "batch_too_large"),
        ("application/json", "[{",                    400, "unreadable_body"),
        ("text/xml",         "<rss/>",                400, "unreadable_body"),
        ("text/x-opml",      "<opml><body/></opml>",  422, "empty_batch"),
    ];
    for (content_type, body, want, code) in cases {
        let query = [("hub.callback", "http://b.test/")];
        let (status, problem) = world.post_batch(&query, content_type, body.to_owned()).await;
        assert_eq!((status.as_u16(), &problem["code"]), (want, &code.into()), "{problem}");
    }
    assert_eq!(world.subscriptions().await, 1);
    let without = client().post(world.gateway.url("/")).header("content-type", "application/json");
    let refused = without.body("[{}]").send().await.unwrap();
    assert_eq!(refused.status(), StatusCode::UNAUTHORIZED);
}

#[tokio::test]
async fn f17_what_a_search_finds_is_unsubscribed() {
    let world = World::subscribed("json").await;
    for path in ["/one", "/two", "/kept"] {
        let callback = world.subscriber.url(path);
        world.gateway.subscribe_superfeedr(&world.topic, &callback, "atom").await;
    }
    let unsubscribe = async |search: &[(&str, &str)]| {
        let query = [&[("hub.mode", "unsubscribe")], search].concat();
        let got = world.ask(http::Method::POST, &query, &[("accept", "application/json")]).await;
        (got.status.as_u16(), got.json())
    };
    let (status, report) = unsubscribe(&[("search[endpoint][inurl]", "/nothing")]).await;
    assert_eq!((status, &report["meta"]["total"]), (207, &0.into()));
    for refused in [
        &[("search", "")][..],
        &[("search", "tides"), ("hub.topic", &world.topic)],
        &[("search", "tides"), ("hub.verify", "sync")],
    ] {
        assert_eq!(unsubscribe(refused).await.0, 422, "{refused:?}");
    }
    assert_eq!(world.subscriptions().await, 4);

    for path in ["/one", "/two"] {
        let (status, report) = unsubscribe(&[("search[endpoint][inurl]", path)]).await;
        assert_eq!((status, outcomes(&report)), (207, vec![(204, None)]), "{report}");
        assert_eq!(report["items"][0]["callback"], world.subscriber.url(path));
        assert_eq!(report["meta"]["remaining"], 0);
    }
    let (_, report) = unsubscribe(&[("search[format]", "json"), ("search", "tides")]).await;
    assert_eq!(report["items"][0]["topic"], world.topic);
    assert_eq!(world.subscriptions().await, 1);
}
