//! Those who take part: a publisher, subscribers, and whoever calls the nodes.

use std::sync::Mutex;
use std::time::Duration;

use http::StatusCode;
use http::header::CONTENT_TYPE;
use tokio::time::{Instant, sleep};
use url::form_urlencoded;

use super::callbacks::Callbacks;
use crate::support::feeds::entry_id;
use crate::support::gateway::{LOGIN, TOKEN};
use crate::support::publisher::Publisher;
use crate::support::random::Random;
use crate::support::server::client;
use crate::support::subscriber::{Behavior, Subscriber};
use crate::support::tcp_proxy::{Condition, TcpProxy};
use crate::support::{PATIENCE, until};
use feedgate::jobs::runner;

pub(super) const FEEDS: usize = 4;
/// The subscribers of each feed from the beginning.
const FIRST: usize = 4;
/// The longest pause between two entries.
const LONGEST_PAUSE_MS: u64 = 250;
/// How long a call to a node may take: it may be stopped, or cut off from its database.
const CALL_TIMEOUT: Duration = Duration::from_secs(2);

/// A subscription that a node has confirmed.
#[derive(Clone, Debug)]
pub(super) struct Subscribed {
    pub(super) feed: usize,
    /// The path of the callback.
    pub(super) path: String,
    /// How many entries of the feed there may have been before: they need not be sent.
    pub(super) since: usize,
    /// Whether the callback has responded with 410.
    pub(super) is_gone: bool,
}

/// What became of a call.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Answered {
    /// It was answered with this status.
    With(StatusCode),
    /// It did not reach the node.
    NotReached,
    /// It may have been carried out, or may still be.
    Unknown,
}

/// Everybody but the nodes.
pub(super) struct Cast {
    pub(super) nodes: Vec<String>,
    pub(super) publisher: Publisher,
    pub(super) subscriber: Subscriber,
    /// The callbacks of owners, which no network separates from the nodes.
    pub(super) callbacks: Callbacks,
    /// The network between the nodes and the subscribers.
    pub(super) network: TcpProxy,
    /// When the entries of each feed were published.
    published: Vec<Mutex<Vec<String>>>,
    pub(super) subscribed: Mutex<Vec<Subscribed>>,
    /// How long to wait for an entry in the end.
    pub(super) patience: Duration,
}

impl Cast {
    /// Starts everybody; the feeds have one entry. A clock is off by `most_seconds_off` at most: a pause
    /// that a clock began which was ahead lasts so much longer.
    pub(super) async fn gather(nodes: Vec<String>, most_seconds_off: u64) -> Cast {
        let subscriber = Subscriber::start().await;
        let network = TcpProxy::start(format!("127.0.0.1:{}", subscriber.port())).await;
        let published = (0..FEEDS).map(|_| Mutex::default()).collect();
        let publisher = Publisher::start().await;
        let (subscribed, callbacks) = (Mutex::default(), Callbacks::start().await);
        let patience = PATIENCE + Duration::from_secs(2 * most_seconds_off);
        #[rustfmt::skip]
        let cast = Cast {
            nodes, publisher, subscriber, callbacks, network, published, subscribed, patience,
        };
        (0..FEEDS).for_each(|feed| cast.publish(feed));
        cast
    }

    /// Subscribes to every feed, before anything fails. On a busy machine even then a call or a
    /// verification may take longer than this run allows it.
    pub(super) async fn subscribe_first(&self) {
        for number in 0..FEEDS * FIRST {
            let subscribe =
                async || self.subscribe(number % self.nodes.len(), number % FEEDS, number).await;
            until("the first subscriptions are confirmed", subscribe).await;
        }
    }

    /// Subscribes to a feed, and returns whether that was confirmed: only then it counts.
    pub(super) async fn subscribe(&self, node: usize, feed: usize, number: usize) -> bool {
        let path = format!("/{feed}/{number}");
        let callback = self.callback(&path);
        let format = if number.is_multiple_of(2) { "atom" } else { "json" };
        let topic = self.topic(feed);
        let form = [
            ("hub.mode", "subscribe"),
            ("hub.topic", topic.as_str()),
            ("hub.callback", callback.as_str()),
            ("format", format),
        ];
        let is_confirmed = self.call(node, &form).await == Some(StatusCode::NO_CONTENT);
        if is_confirmed {
            let since = self.count(feed);
            let subscribed = Subscribed { feed, path, since, is_gone: false };
            self.subscribed.lock().unwrap().push(subscribed);
        }
        is_confirmed
    }

    /// Calls the API of a node; `None` if there is no answer.
    pub(super) async fn call(&self, node: usize, form: &[(&str, &str)]) -> Option<StatusCode> {
        match self.ask(node, form).await {
            Answered::With(status) => Some(status),
            Answered::NotReached | Answered::Unknown => None,
        }
    }

    /// Calls the API of a node.
    pub(super) async fn ask(&self, node: usize, form: &[(&str, &str)]) -> Answered {
        let body = form_urlencoded::Serializer::new(String::new()).extend_pairs(form).finish();
        let request = client().post(&self.nodes[node % self.nodes.len()]).body(body);
        let request = request.header(CONTENT_TYPE, "application/x-www-form-urlencoded");
        let request = request.basic_auth(LOGIN, Some(TOKEN)).timeout(CALL_TIMEOUT);
        match request.send().await {
            Ok(answer) if answer.status().is_server_error() => Answered::Unknown,
            Ok(answer) => Answered::With(answer.status()),
            Err(err) if err.is_connect() && !err.is_timeout() => Answered::NotReached,
            Err(_) => Answered::Unknown,
        }
    }

    /// Tells a node that a feed has changed. Returns whether the node has accepted it.
    pub(super) async fn ping(&self, node: usize, feed: usize) -> bool {
        let topic = self.topic(feed);
        let form = [("hub.mode", "publish"), ("hub.url", topic.as_str())];
        self.call(node, &form).await == Some(StatusCode::NO_CONTENT)
    }

    /// Publishes entries of random feeds, and tells random nodes.
    pub(super) async fn publish_until(&self, until: Instant, mut random: Random) {
        while Instant::now() < until {
            let feed = random.below(FEEDS as u64) as usize;
            self.publish(feed);
            let node = random.below(self.nodes.len() as u64) as usize;
            let pause = Duration::from_millis(random.below(LONGEST_PAUSE_MS));
            tokio::join!(self.ping(node, feed), sleep(pause));
        }
    }

    /// Publishes the next entry of a feed, which keeps all it ever had. Entries are dated: of many that
    /// are not, and appear together after a pause, only the newest are sent (rule N5).
    pub(super) fn publish(&self, feed: usize) {
        let mut published = self.published[feed].lock().unwrap();
        published.push(runner::now().to_rfc2822());
        self.publisher.put_rss(&path(feed), dated_rss(&name(feed), &published));
    }

    /// How many entries of a feed were published.
    pub(super) fn count(&self, feed: usize) -> usize {
        self.published[feed].lock().unwrap().len()
    }

    /// The ids of the entries of a feed after the first `since`.
    pub(super) fn entries(&self, feed: usize, since: usize) -> Vec<String> {
        (since + 1..=self.count(feed)).map(|n| entry_id(&name(feed), n)).collect()
    }

    pub(super) fn topic(&self, feed: usize) -> String {
        self.publisher.url(&path(feed))
    }

    /// The address of a callback, behind the network.
    pub(super) fn callback(&self, path: &str) -> String {
        format!("http://{}{path}", self.network.address())
    }

    /// Ends all failures.
    pub(super) fn recover(&self) {
        self.network.set(Condition::Open);
        for subscribed in self.subscribed.lock().unwrap().iter().filter(|one| !one.is_gone) {
            self.subscriber.set(&subscribed.path, Behavior::Accepting);
        }
    }
}

/// An RSS feed with an item for each date, newest first.
fn dated_rss(name: &str, dates: &[String]) -> String {
    let items = dates.iter().enumerate().rev().map(|(n, date)| {
        let (n, id) = (n + 1, entry_id(name, n + 1));
        format!(
            "<item><title>Item {n}</title><guid isPermaLink=\"false\">{id}</guid>\
             <pubDate>{date}</pubDate></item>\n"
        )
    });
    let items: String = items.collect();
    format!("<rss version=\"2.0\"><channel><title>{name}</title>\n{items}</channel></rss>\n")
}

pub(super) fn name(feed: usize) -> String {
    format!("feed{feed}")
}

/// The path of a feed at its publisher.
pub(super) fn path(feed: usize) -> String {
    format!("/{}.xml", name(feed))
}
