//! Tracks, as their subscribers use them.

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
