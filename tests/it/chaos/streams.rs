//! What docs/streams.md promises: clients that lose their connections, and resume at any node, have every
//! entry once and in order, and are told of no gap.

use std::time::Duration;

use http::header::ACCEPT;
use tokio::time::{Instant, timeout};
use url::form_urlencoded;

use super::cast::Cast;
use crate::support::feeds::entry_ids;
use crate::support::gateway::{LOGIN, TOKEN};
use crate::support::random::Random;
use crate::support::server::client;

/// How long a client stays connected at most, before it resumes at another node.
const LONGEST_MS: u64 = 3_000;
/// How long a node may take to answer.
const CONNECT: Duration = Duration::from_secs(2);

/// A client of the stream of one feed.
pub(super) struct StreamClient<'a> {
    cast: &'a Cast,
    feed: usize,
    random: Random,
    /// The id of the last event.
    position: Option<String>,
    /// The entries, in the order in which they came.
    received: Vec<String>,
    pub(super) connections: usize,
    /// What came of the last request.
    answer: String,
}

impl<'a> StreamClient<'a> {
    pub(super) fn new(cast: &'a Cast, feed: usize, random: Random) -> StreamClient<'a> {
        StreamClient {
            cast,
            feed,
            random,
            position: None,
            received: Vec::new(),
            connections: 0,
            answer: String::new(),
        }
    }

    /// Reads until then; loses its connection now and then, and resumes at another node.
    pub(super) async fn read_until(&mut self, end: Instant) {
        while Instant::now() < end {
            let stays = Duration::from_millis(200 + self.random.below(LONGEST_MS));
            let until = end.min(Instant::now() + stays);
            let node = self.random.below(self.cast.nodes.len() as u64) as usize;
            self.read_once(node, until, |_| false).await;
            tokio::time::sleep(Duration::from_millis(20)).await;
        }
    }

    /// Reads until the newest entry of the feed has come, and checks what has come.
    pub(super) async fn has_all(&mut self, within: Duration) {
        let want = self.cast.origins.entries(self.feed, 0);
        let deadline = Instant::now() + within;
        while self.received.last() != want.last() && Instant::now() < deadline {
            let is_last = |received: &[String]| received.last() == want.last();
            self.read_once(0, deadline, is_last).await;
            tokio::time::sleep(Duration::from_millis(20)).await;
        }
        let first = self.received.first();
        let from = want.iter().position(|id| Some(id) == first).unwrap_or_default();
        assert_eq!(
            self.received,
            want[from..],
            "a_stream_never_passes_over_entries: the stream of feed {}, at {:?}, after {}",
            self.feed,
            self.position,
            self.answer
        );
    }

    /// Reads over one connection, until then or until this holds of what has come.
    async fn read_once(
        &mut self,
        node: usize,
        until: Instant,
        is_done: impl Fn(&[String]) -> bool,
    ) {
        let topic = self.cast.origins.topic(self.feed);
        let query = form_urlencoded::Serializer::new(String::new())
            .extend_pairs([("hub.mode", "retrieve"), ("hub.topic", topic.as_str())])
            .finish();
        let mut request = client()
            .get(format!("{}/?{query}", self.cast.node(node)))
            .basic_auth(LOGIN, Some(TOKEN))
            .header(ACCEPT, "text/event-stream");
        if let Some(position) = &self.position {
            request = request.header("last-event-id", position);
        }
        let sent = timeout(CONNECT, request.send()).await;
        self.answer = format!("{sent:?}");
        let Ok(Ok(mut response)) = sent else { return };
        if !response.status().is_success() {
            return;
        }
        self.connections += 1;
        let mut text = String::new();
        while let Ok(Ok(Some(piece))) = tokio::time::timeout_at(until, response.chunk()).await {
            text.push_str(std::str::from_utf8(&piece).unwrap());
            while let Some((event, rest)) = text.split_once("\n\n") {
                self.receive(event);
                text = rest.to_owned();
            }
            if is_done(&self.received) {
                return;
            }
        }
    }

    fn receive(&mut self, event: &str) {
        let field = |name: &str| {
            let lines = event.lines().filter_map(|line| line.strip_prefix(name));
            lines.collect::<Vec<_>>().join("\n")
        };
        let (kind, id, data) = (field("event: "), field("id: "), field("data: "));
        assert_ne!(kind, "gap", "a_stream_never_passes_over_entries: {event}");
        if !id.is_empty() {
            let (before, now) = (self.position.as_deref().map(number), number(&id));
            assert!(before <= Some(now), "a_stream_never_goes_back: from {before:?} to {id}");
            self.position = Some(id);
        }
        self.received.extend(entry_ids(&data).into_iter().rev());
    }
}

/// The number of the record in the id of an event.
fn number(id: &str) -> u64 {
    id.rsplit('.').next().unwrap().parse().unwrap()
}
