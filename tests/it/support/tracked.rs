//! Tracks and searches, as their users see them.

use super::gateway::Gateway;
use super::until;

/// The topic of the track of a query.
pub(crate) fn track_topic(gateway: &Gateway, query: &str) -> String {
    gateway.url(&format!("/track?query={}", encoded(query)))
}

/// Waits until as many entries were tracked as are wanted, and checks that each is there once.
pub(crate) async fn tracked_once(gateway: &Gateway, topic: &str, want: &[String]) {
    let mut want = want.to_vec();
    want.sort_unstable();
    let mut ids = Vec::new();
    until(&format!("{topic} has {} entries", want.len()), async || {
        ids = tracked(gateway, topic).await;
        ids.len() >= want.len()
    })
    .await;
    ids.sort_unstable();
    assert_eq!(ids, want, "{topic}");
}

/// Waits until a search finds as many entries as are wanted, and checks that each is found once.
pub(crate) async fn found_once(gateway: &Gateway, query: &str, want: &[String]) {
    let mut want = want.to_vec();
    want.sort_unstable();
    let mut ids = Vec::new();
    until(&format!("a search for {query} finds {} entries", want.len()), async || {
        ids = found(gateway, query).await;
        ids.len() >= want.len()
    })
    .await;
    ids.sort_unstable();
    assert_eq!(ids, want, "{query}");
}

/// The ids of all entries that a search finds, newest first.
async fn found(gateway: &Gateway, query: &str) -> Vec<String> {
    let mut ids: Vec<String> = Vec::new();
    let query = encoded(query);
    let mut address = format!("/?hub.mode=search&format=json&count=50&query={query}");
    loop {
        let page = gateway.own(&address).await;
        let items = page["items"].as_array().unwrap();
        ids.extend(items.iter().map(|item| item["id"].as_str().unwrap().to_owned()));
        let next = page["standardLinks"]["next"][0]["href"].as_str();
        match next.and_then(|next| next.split_once("/?")) {
            Some((_, query)) => address = format!("/?{query}"),
            None => return ids,
        }
    }
}

/// The ids of all entries of a track, newest first.
async fn tracked(gateway: &Gateway, topic: &str) -> Vec<String> {
    let mut ids: Vec<String> = Vec::new();
    loop {
        let before = ids.last().map(|id| format!("&before={}", encoded(id))).unwrap_or_default();
        let topic = encoded(topic);
        let page = format!("/?hub.mode=retrieve&format=json&count=50&hub.topic={topic}{before}");
        let page = gateway.own(&page).await;
        let items = page["items"].as_array().unwrap();
        if items.is_empty() {
            return ids;
        }
        ids.extend(items.iter().map(|item| item["id"].as_str().unwrap().to_owned()));
    }
}

fn encoded(text: &str) -> String {
    url::form_urlencoded::byte_serialize(text.as_bytes()).collect()
}
