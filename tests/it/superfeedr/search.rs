//! `hub.mode=search`: the stored entries that match a query.

use feedgate_core::account::{NewToken, Scopes, TokenHash};
use http::header::{CONTENT_TYPE, ETAG, IF_NONE_MATCH, LINK};
use http::{Method, StatusCode};
use serde_json::Value;

use super::{Got, World, ids};
use crate::support::feeds::{entry_ids, link, rss};
use crate::support::gateway::LOGIN;
use crate::support::until;

const CASES: &str = include_str!("../../../fixtures/query/cases.json");
/// Every entry of the feed has these words.
const TEXT: &str = "\"text of\" -nonsense";

impl World {
    async fn search(&self, query: &str, further: &[(&str, &str)]) -> Got {
        let form = [("hub.mode", "search"), ("query", query)];
        self.ask(Method::GET, &[&form, further].concat(), &[]).await
    }

    /// Waits until a search finds so many entries.
    async fn has_indexed(&self, query: &str, count: usize) {
        until(&format!("{count} entries match {query}"), async || {
            entry_ids_without_source(&self.search(query, &[("count", "50")]).await.text).len()
                == count
        })
        .await;
    }
}

/// The ids of the entries, without those of the feeds that they come from.
fn entry_ids_without_source(atom: &str) -> Vec<String> {
    entry_ids(&atom.replace("<source>", ""))
}

/// The address in `Link: <…>; rel="next"`.
fn next(got: &Got) -> Option<String> {
    let text = got.header(LINK).strip_suffix(">; rel=\"next\"")?;
    text.strip_prefix('<').map(str::to_owned)
}

/// Row Q-1.
#[tokio::test]
async fn q01_stored_entries_are_found_with_their_source() {
    let world = World::subscribed("atom").await;
    world.has_indexed(TEXT, 3).await;
    let got = world.search(TEXT, &[]).await;
    assert_eq!((got.status, got.header(CONTENT_TYPE)), (StatusCode::OK, "application/atom+xml"));
    assert_eq!(entry_ids_without_source(&got.text), ids(&[3, 2, 1]), "{}", got.text);
    assert!(got.text.contains("<http code=\"200\">"), "{}", got.text);
    assert_eq!(got.text.matches("<source>").count(), 3, "{}", got.text);
    assert_eq!(next(&got), None);
    let own = link(&got.text, "self").unwrap();
    assert!(own.starts_with(&world.gateway.url("/?hub.mode=search&query=")), "{own}");

    let json = world.search(TEXT, &[("format", "json")]).await;
    assert_eq!(json.header(CONTENT_TYPE), "application/json; charset=utf-8");
    let json = json.json();
    assert_eq!(json["status"]["code"], 200);
    assert_eq!(json["title"], format!("Entries that match {TEXT}"));
    assert_eq!(json["items"].as_array().unwrap().len(), 3);
    assert_eq!(json["items"][0]["source"]["title"], "tides");
    let track = json["status"]["feed"].as_str().unwrap();
    let form = [("hub.mode", "subscribe"), ("hub.topic", track)];
    let callback = ("hub.callback", "https://push.superfeedr.com/dev/null");
    let (status, text) = world.gateway.superfeedr(&[form[0], form[1], callback]).await;
    assert_eq!(status, StatusCode::NO_CONTENT, "the same query as a track: {text}");

    let none = world.search("nonsense", &[("format", "json")]).await;
    assert_eq!((none.status, &none.json()["items"]), (StatusCode::OK, &Value::Array(Vec::new())));
    let form = [("hub.mode", "search"), ("query", TEXT), ("detailed", "true"), ("count", "1")];
    let (status, text) = world.gateway.superfeedr(&form).await;
    assert_eq!((status, entry_ids_without_source(&text)), (StatusCode::OK, ids(&[3])));

    let etag = got.header(ETAG).to_owned();
    let form = [("hub.mode", "search"), ("query", TEXT)];
    let same = world.ask(Method::GET, &form, &[(IF_NONE_MATCH.as_str(), &etag)]).await;
    assert_eq!(same.status, StatusCode::NOT_MODIFIED);
}

#[tokio::test]
async fn q01_a_long_result_is_read_page_by_page() {
    let world = World::with_tides(7, &[]).await;
    let callback = world.subscriber.url("/cb");
    world.gateway.subscribe_superfeedr(&world.topic, &callback, "atom").await;
    world.has_indexed(TEXT, 7).await;
    let mut got = world.search(TEXT, &[("count", "3")]).await;
    let mut found = entry_ids_without_source(&got.text);
    let json = world.search(TEXT, &[("count", "3"), ("format", "json")]).await.json();
    let in_json = json["standardLinks"]["next"][0]["href"].as_str().unwrap().to_owned();
    assert_eq!(Some(in_json.replace("&format=json", "")), next(&got));
    while let Some(address) = next(&got) {
        let address = url::Url::parse(&address).unwrap();
        let query: Vec<(String, String)> = address.query_pairs().into_owned().collect();
        let query: Vec<(&str, &str)> =
            query.iter().map(|(name, value)| (name.as_str(), value.as_str())).collect();
        got = world.ask(Method::GET, &query, &[]).await;
        let page = entry_ids_without_source(&got.text);
        assert!(!page.is_empty() && page.len() <= 3, "{page:?}");
        found.extend(page);
    }
    assert_eq!(found, ids(&[7, 6, 5, 4, 3, 2, 1]));
}

#[tokio::test]
async fn q01_a_search_survives_a_kill_and_finds_each_entry_once() {
    let mut world = World::subscribed("atom").await;
    for newest in [4, 5] {
        world.put_tides(newest);
        let publish = [("hub.mode", "publish"), ("hub.url", &world.topic)];
        world.gateway.post("/", &publish).await;
        let numbers: Vec<usize> = (1..=newest).rev().collect();
        world.has_indexed(TEXT, newest).await;
        world.gateway.kill();
        world.gateway.restart().await;
        let found = world.search(TEXT, &[]).await;
        assert_eq!(entry_ids_without_source(&found.text), ids(&numbers));
    }
}

#[tokio::test]
async fn q01_what_is_private_is_not_found() {
    let world = World::subscribed("atom").await;
    let private = world.publisher.url("/private?token=opensesame");
    world.publisher.put_rss("/private", rss("mine", 1..3));
    let callback = world.subscriber.url("/private");
    world.gateway.subscribe_superfeedr(&private, &callback, "atom").await;
    world.has_indexed(TEXT, 3).await;
    world.put_tides(4);
    world.gateway.post("/", &[("hub.mode", "publish"), ("hub.url", &world.topic)]).await;
    world.has_indexed("\"text of 4\"", 1).await;
    let found = world.search(TEXT, &[]).await;
    assert_eq!(entry_ids_without_source(&found.text), ids(&[4, 3, 2, 1]));
}

/// Row Q-1.
#[tokio::test]
async fn q01_a_search_that_cannot_be_made_is_rejected_with_its_reason() {
    let world = World::subscribed("atom").await;
    let rejected = async |further: &[(&str, &str)]| {
        let form = [&[("hub.mode", "search")], further].concat();
        let got = world.ask(Method::GET, &form, &[("accept", "application/json")]).await;
        assert_eq!(got.status, StatusCode::UNPROCESSABLE_ENTITY, "{}", got.text);
        got.json()
    };
    let cases: Value = serde_json::from_str(CASES).unwrap();
    for case in cases["errors"].as_array().unwrap() {
        let problem = rejected(&[("query", case["query"].as_str().unwrap())]).await;
        assert_eq!(problem["code"], "bad_query", "{problem}");
        let reason = case["reason"].as_str().unwrap();
        assert_eq!(problem["detail"], format!("Please provide a valid query. ({reason}.)"));
    }
    #[rustfmt::skip]
    let others = [
        (("format", "raw"), "format must be atom, json, rss or json-feed, not raw."),
        (("count", "few"),  "count must be a number from 1 to 50, not few."),
        (("before", "zzz"), "before must be a position in the search, as in the link to its next page, not zzz."),
        (("qurey", "apple"), "qurey is not a parameter of search. Did you mean query?"),
    ];
    for (parameter, reason) in others {
        let problem = rejected(&[("query", "apple"), parameter]).await;
        assert_eq!(problem["detail"], reason);
    }
}

#[tokio::test]
async fn q01_a_search_needs_the_scope_retrieve() {
    let world = World::subscribed("atom").await;
    let store = world.database.open().await;
    let now = feedgate::jobs::runner::now();
    // `tester:list` and `tester:retrieve`.
    let cases = [
        ("list", "dGVzdGVyOmxpc3Q=", StatusCode::FORBIDDEN),
        ("retrieve", "dGVzdGVyOnJldHJpZXZl", StatusCode::OK),
    ];
    for (scope, credentials, want) in cases {
        let scopes = Scopes::from_words(scope).unwrap();
        let (login, hash) = (LOGIN.to_owned(), TokenHash::from_token(scope));
        let token = NewToken { login, name: scope.to_owned(), scopes, hash, expires_at: None };
        store.create_token(&token, now).await.unwrap();
        let form = [("hub.mode", "search"), ("query", "apple"), ("authorization", credentials)];
        let (status, text) = world.gateway.post("/", &form).await;
        assert_eq!(status, want, "{text}");
    }
    store.close().await;
}

#[tokio::test]
async fn q01_the_index_can_be_switched_off() {
    let world = World::with_tides(3, &[("FEEDGATE_SEARCH", "off")]).await;
    let got = world.search("apple", &[]).await;
    assert_eq!(got.status, StatusCode::UNPROCESSABLE_ENTITY);
    assert!(got.text.starts_with("This gateway has no search index"), "{}", got.text);
}
