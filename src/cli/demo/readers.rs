//! The readers of the demo, which poll the gateway instead of receiving notifications.
//!
//! One reader follows the archives as Simplefeed specifies (seed 004, "Consuming feeds"): it starts
//! at the recent document and follows `prev-archive` to the first known entry. The other reads
//! changes.xml.

use std::collections::HashMap;
use std::time::{Duration, Instant};

use tokio::sync::mpsc::UnboundedSender;
use tokio::time::sleep;
use url::Url;

use crate::net::{FetchRequest, FetchResponse, FetchedDocument, HttpClient};
use feedgate_core::poll::Validators;
use feedgate_protocol::xml;

use super::samples::numbers_in;
use super::tally::{Channel, DemoEvent, Received};

/// The interval between two requests of a reader. Real readers check every few minutes; the demo
/// should show new entries quickly.
const LOOK_EVERY: Duration = Duration::from_millis(250);

/// Reads from the gateway.
#[derive(Clone)]
pub(super) struct DemoReader {
    fetch: HttpClient,
    gateway: Url,
}

impl DemoReader {
    /// A reader of this gateway.
    pub(super) fn new(fetch: HttpClient, gateway: Url) -> DemoReader {
        DemoReader { fetch, gateway }
    }

    /// The recent document of the archive of `topic`; `None` while there is none.
    pub(super) async fn recent(&self, topic: &str) -> Option<FetchedDocument> {
        let mut address = self.gateway.join("feeds").ok()?;
        address.query_pairs_mut().append_pair("topic", topic);
        self.document(address.as_str(), &Validators::default()).await
    }

    /// The entries of the archive of `topic` that are newer than `known`.
    pub(super) async fn entries(&self, topic: &str, known: &[u32]) -> Vec<u32> {
        let mut found = Vec::new();
        let mut next = self.recent(topic).await;
        while let Some(document) = next {
            let text = String::from_utf8_lossy(&document.body).into_owned();
            let numbers = numbers_in(&text);
            found.extend(numbers.iter().filter(|number| !known.contains(number)));
            if numbers.iter().any(|number| known.contains(number)) {
                break;
            }
            next = match link(&text, "prev-archive") {
                Some(address) => self.document(&address, &Validators::default()).await,
                None => None,
            };
        }
        found
    }

    /// Follows the archives of `topics` for ever, and sends the new entries to `received`.
    pub(super) async fn walk_archives(
        self,
        topics: Vec<String>,
        received: UnboundedSender<Received>,
    ) {
        let mut known = vec![Vec::new(); topics.len()];
        loop {
            for (sample, topic) in topics.iter().enumerate() {
                let new = self.entries(topic, &known[sample]).await;
                if new.is_empty() {
                    continue;
                }
                known[sample].extend(&new);
                let (at, event) = (Instant::now(), DemoEvent::Entries(new));
                received
                    .send(Received { way: Channel::Archive, sample, at, event })
                    .unwrap_or_default();
            }
            sleep(LOOK_EVERY).await;
        }
    }

    /// Reads changes.xml for ever, and sends how often it lists each of `topics` to `received`.
    pub(super) async fn read_changes(
        self,
        topics: Vec<String>,
        received: UnboundedSender<Received>,
    ) {
        let Ok(address) = self.gateway.join("changes.xml") else { return };
        let mut validators = Validators::default();
        loop {
            if let Some(document) = self.document(address.as_str(), &validators).await {
                validators = document.validators.clone();
                let lines = weblogs(&document.body);
                for (sample, topic) in topics.iter().enumerate() {
                    let times = lines.get(topic).copied().unwrap_or_default();
                    let (at, event) = (Instant::now(), DemoEvent::Times(times));
                    received
                        .send(Received { way: Channel::Changes, sample, at, event })
                        .unwrap_or_default();
                }
            }
            sleep(LOOK_EVERY).await;
        }
    }

    async fn document(&self, address: &str, validators: &Validators) -> Option<FetchedDocument> {
        let ask = FetchRequest { url: address, validators, subscribers: 0, feed_id: None };
        match self.fetch.get(ask).await.result {
            Ok(FetchResponse::Document(document)) => Some(*document),
            _ => None,
        }
    }
}

/// The target of the first link with this relation.
fn link(atom: &str, rel: &str) -> Option<String> {
    let rel = format!("rel=\"{rel}\"");
    let link = atom
        .split("<link ")
        .skip(1)
        .find(|link| link.split('>').next().is_some_and(|attributes| attributes.contains(&rel)))?;
    let href = link.split("href=\"").nth(1)?.split('"').next()?;
    Some(href.replace("&amp;", "&"))
}

/// Counts the lines of changes.xml that contain each address, as that of the web site or of the
/// feed.
fn weblogs(document: &[u8]) -> HashMap<String, usize> {
    let mut lines = HashMap::new();
    let root = xml::read(document).unwrap_or_default();
    for weblog in root.children_named("weblog") {
        let addresses = [weblog.attribute("url"), weblog.attribute("rssUrl")];
        let feed = addresses.into_iter().flatten().next_back();
        *lines.entry(feed.unwrap_or_default().to_owned()).or_default() += 1;
    }
    lines
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn links_are_found_by_their_relation() {
        let atom = "<link rel=\"self\" href=\"a\"/><link href=\"b?x=1&amp;y=2\" rel=\"hub\"/>";
        assert_eq!(link(atom, "hub").as_deref(), Some("b?x=1&y=2"));
        assert_eq!(link(atom, "prev-archive"), None);
    }

    #[test]
    fn lines_are_counted_by_feed() {
        let changes = "<weblogUpdates version=\"2\"><weblog name=\"\" url=\"http://a.test/feed\"/>\
            <weblog name=\"A\" url=\"http://a.test/\" rssUrl=\"http://a.test/feed\"/></weblogUpdates>";
        assert_eq!(weblogs(changes.as_bytes())["http://a.test/feed"], 2);
    }
}
