//! What everybody has in the end.

use std::collections::HashSet;
use std::fmt;
use std::time::Duration;

use tokio::time::Instant;

use super::cast::{Cast, FEEDS, Subscribed};
use crate::support::feeds::entry_ids;
use crate::support::gateway::Gateway;
use crate::support::reader::Reader;
use crate::support::server::ReceivedRequest;

/// Between two requests to repeat failed deliveries, which would otherwise wait for their time.
const RETRY_EVERY: Duration = Duration::from_secs(1);

/// The counts of a run in which nothing was lost.
#[derive(Debug, Default)]
pub(super) struct Outcome {
    entries: usize,
    subscribers: usize,
    gone: usize,
    received: usize,
    duplicates: usize,
}

impl Cast {
    /// Waits until every living subscriber has every entry. Fails if one has them in another order, or
    /// if an archive does not have each entry once.
    pub(super) async fn outcome(&self, gateway: &Gateway) -> Outcome {
        let subscribed = self.subscribed.lock().unwrap().clone();
        let mut outcome = Outcome {
            entries: (0..FEEDS).map(|feed| self.count(feed)).sum(),
            subscribers: subscribed.len(),
            gone: subscribed.iter().filter(|one| one.is_gone).count(),
            ..Outcome::default()
        };
        for one in subscribed.iter().filter(|one| !one.is_gone) {
            let want = self.entries(one.feed, one.since);
            let got = self.wait_for(one, &want).await;
            let (mut seen, mut first) = (HashSet::new(), Vec::new());
            for id in &got {
                if seen.insert(id) {
                    first.push(id);
                }
            }
            outcome.received += first.len();
            outcome.duplicates += got.len() - first.len();
            let wanted: HashSet<&String> = want.iter().collect();
            first.retain(|id| wanted.contains(id));
            assert_eq!(first, want.iter().collect::<Vec<_>>(), "{}", one.path);
        }
        for feed in 0..FEEDS {
            let mut reader = Reader::default();
            reader.catch_up(&gateway.archive_of(&self.topic(feed))).await.unwrap();
            assert_eq!(reader.processed, self.entries(feed, 0), "the archive of feed {feed}");
        }
        outcome
    }

    /// Makes everything due now that waits for its retry: a callback may have received what it has not
    /// acknowledged.
    pub(super) async fn retry_all(&self) {
        let subscribed = self.subscribed.lock().unwrap().clone();
        for one in &subscribed {
            self.retry(one).await;
        }
    }

    async fn retry(&self, one: &Subscribed) {
        self.retry_at(one.feed, &self.callback(&one.path)).await;
    }

    /// Makes a failed delivery to this callback due now.
    pub(super) async fn retry_at(&self, feed: usize, callback: &str) {
        let topic = self.topic(feed);
        let retry = [("hub.mode", "retry"), ("hub.topic", &topic), ("hub.callback", callback)];
        self.call(0, &retry).await;
    }

    /// Waits until a subscriber has these entries. Returns all that it received, in order.
    async fn wait_for(&self, one: &Subscribed, want: &[String]) -> Vec<String> {
        let has_all = |received: &[&ReceivedRequest]| {
            let got: HashSet<String> =
                received.iter().flat_map(|request| entry_ids(&request.text())).collect();
            want.iter().all(|id| got.contains(id))
        };
        let deadline = Instant::now() + self.patience;
        while !self.subscriber.hears(&one.path, Instant::now() + RETRY_EVERY, has_all).await {
            if Instant::now() > deadline {
                let received = self.subscriber.notified(&one.path);
                let got = received.iter().flat_map(|request| entry_ids(&request.text()));
                let got: HashSet<String> = got.collect();
                let missing: Vec<_> = want.iter().filter(|id| !got.contains(*id)).collect();
                panic!("{one:?} never had {missing:?} of {}", want.len());
            }
            self.retry(one).await;
        }
        let received = self.subscriber.notified(&one.path);
        // The newest entry of a notification comes first.
        received.iter().flat_map(|request| entry_ids(&request.text()).into_iter().rev()).collect()
    }
}

impl fmt::Display for Outcome {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Outcome { entries, subscribers, gone, received, duplicates } = self;
        writeln!(
            f,
            "  {entries:5} entries published, {subscribers} subscribers, {gone} of them gone"
        )?;
        write!(f, "  {received:5} entries received, 0 lost, {duplicates} received again")
    }
}
