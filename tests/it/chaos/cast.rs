//! Those who take part: publishers, callbacks, accounts, and whoever calls the nodes.

use std::sync::Mutex;
use std::time::Duration;

use feedgate_core::account::{NewToken, Scopes, TokenHash};
use http::StatusCode;
use http::header::CONTENT_TYPE;
use tokio::time::{Instant, sleep};
use url::form_urlencoded;

use super::callbacks::Callbacks;
use super::lives::Life;
use super::origins::{Answers, Origins};
use crate::support::gateway::{LOGIN, TOKEN};
use crate::support::postgres::Database;
use crate::support::random::Random;
use crate::support::server::client;
use crate::support::tcp_proxy::{Condition, TcpProxy};
use feedgate::jobs::runner;

/// The feeds whose origins answer badly at times.
pub(super) const FEEDS: usize = 8;
/// The feed that changes faster than its subscribers can be notified.
pub(super) const CROWDED_FEED: usize = FEEDS;
/// The feed of a neighbour who behaves.
pub(super) const NEIGHBOUR_FEED: usize = FEEDS + 1;
/// All feeds.
pub(super) const ALL_FEEDS: usize = FEEDS + 2;
/// The accounts; the first one is subscribed to every feed.
pub(super) const ACCOUNTS: usize = 4;
/// The account of the neighbour.
pub(super) const NEIGHBOUR: usize = ACCOUNTS - 1;
/// The host of callbacks that a network separates from the nodes, which can fail.
pub(super) const BEHIND_NETWORK: usize = 2;

/// The most entries of a feed that are published one after the other.
const LONGEST_BURST: u64 = 4;
/// The longest pause between two entries of a burst, and between two bursts.
const PAUSE_MS: u64 = 150;
const BURST_PAUSE_MS: u64 = 600;
/// How long a call to a node may take: it may be stopped, or cut off from its database.
const CALL_TIMEOUT: Duration = Duration::from_secs(2);

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
    pub(super) origins: Origins,
    pub(super) callbacks: Callbacks,
    /// The network between the nodes and some callbacks.
    pub(super) network: TcpProxy,
    /// When a node was killed or suspended, and until when it could do nothing.
    absences: Mutex<Vec<(Instant, Instant)>>,
}

impl Cast {
    /// Starts everybody; the feeds have one entry.
    pub(super) async fn gather(nodes: Vec<String>) -> Cast {
        let callbacks = Callbacks::start().await;
        let network = TcpProxy::start(callbacks.address(BEHIND_NETWORK)).await;
        let origins = Origins::start(FEEDS, ALL_FEEDS - FEEDS).await;
        (0..ALL_FEEDS).for_each(|feed| origins.publish(feed));
        Cast { nodes, origins, callbacks, network, absences: Mutex::default() }
    }

    /// Calls the API of a node for an account.
    pub(super) async fn call(
        &self,
        account: usize,
        node: usize,
        form: &[(&str, &str)],
    ) -> Answered {
        let body = form_urlencoded::Serializer::new(String::new()).extend_pairs(form).finish();
        let request = client().post(self.node(node)).body(body);
        let request = request.header(CONTENT_TYPE, "application/x-www-form-urlencoded");
        let request =
            request.basic_auth(login(account), Some(token(account))).timeout(CALL_TIMEOUT);
        answered(request).await
    }

    /// Tells a node that a feed has changed. Returns whether the node has accepted it.
    pub(super) async fn ping(&self, node: usize, feed: usize) -> bool {
        let topic = self.origins.topic(feed);
        let form = [("hub.mode", "publish"), ("hub.url", topic.as_str())];
        self.call(0, node, &form).await == Answered::With(StatusCode::NO_CONTENT)
    }

    /// Tells a node without an account that a feed has changed.
    async fn ping_anonymously(&self, node: usize, feed: usize) {
        let form = [("hub.mode", "publish"), ("hub.url", &self.origins.topic(feed))];
        let body = form_urlencoded::Serializer::new(String::new()).extend_pairs(form).finish();
        let request = client().post(format!("{}/hub", self.node(node))).body(body);
        let request = request.header(CONTENT_TYPE, "application/x-www-form-urlencoded");
        answered(request.timeout(CALL_TIMEOUT)).await;
    }

    pub(super) fn node(&self, node: usize) -> &str {
        &self.nodes[node % self.nodes.len()]
    }

    /// Publishes bursts of entries of random feeds, and tells random nodes.
    pub(super) async fn publish_until(&self, until: Instant, mut random: Random) {
        while Instant::now() < until {
            let feed = random.below(FEEDS as u64 + 1) as usize;
            for _ in 0..=random.below(LONGEST_BURST) {
                self.origins.publish(feed);
                let node = random.below(self.nodes.len() as u64) as usize;
                let pause = Duration::from_millis(random.below(PAUSE_MS));
                tokio::join!(self.ping(node, feed), sleep(pause));
            }
            sleep(Duration::from_millis(random.below(BURST_PAUSE_MS))).await;
        }
    }

    /// Lets somebody without an account say all the while that feeds have changed.
    pub(super) async fn ping_anonymously_until(&self, until: Instant, mut random: Random) {
        while Instant::now() < until {
            let feed = random.below(ALL_FEEDS as u64) as usize;
            let node = random.below(self.nodes.len() as u64) as usize;
            let pause = Duration::from_millis(random.below(PAUSE_MS));
            tokio::join!(self.ping_anonymously(node, feed), sleep(pause));
        }
    }

    /// Notes that a node could do nothing since then, until now.
    pub(super) fn note_absence(&self, since: Instant) {
        self.absences.lock().unwrap().push((since, Instant::now()));
    }

    /// Whether a node was absent at some time after this.
    pub(super) fn is_any_absent_since(&self, at: Instant) -> bool {
        self.absences.lock().unwrap().iter().any(|(_, until)| *until >= at)
    }

    /// The address of a callback.
    pub(super) fn callback(&self, life: &Life) -> String {
        match life.host {
            BEHIND_NETWORK => format!("http://{}{}", self.network.address(), life.path),
            host => self.callbacks.url(host, &life.path),
        }
    }

    /// Ends all failures of origins and of the network to callbacks.
    pub(super) fn recover(&self) {
        self.network.set(Condition::Open);
        (0..FEEDS).for_each(|feed| self.origins.set(feed, Answers::Well));
    }
}

async fn answered(request: reqwest::RequestBuilder) -> Answered {
    match request.send().await {
        Ok(answer) if answer.status().is_server_error() => Answered::Unknown,
        Ok(answer) if answer.status().is_client_error() => {
            let status = answer.status();
            let reason = answer.text().await.unwrap_or_default();
            eprintln!("{status}: {reason}"); // for whoever reads why a run has failed
            Answered::With(status)
        }
        Ok(answer) => Answered::With(answer.status()),
        Err(err) if err.is_connect() && !err.is_timeout() => Answered::NotReached,
        Err(_) => Answered::Unknown,
    }
}

/// The login of an account.
pub(super) fn login(account: usize) -> String {
    if account == 0 { LOGIN.to_owned() } else { format!("owner{account}") }
}

/// The token of an account.
pub(super) fn token(account: usize) -> String {
    if account == 0 { TOKEN.to_owned() } else { format!("{TOKEN} of {account}") }
}

/// Creates the accounts that a gateway of the tests does not have anyway.
pub(super) async fn create_accounts(database: &Database) {
    let store = database.open().await;
    for account in 1..ACCOUNTS {
        let (login, name, scopes) = (login(account), "chaos".to_owned(), Scopes::all());
        let hash = TokenHash::from_token(&token(account));
        let token = NewToken { login, name, scopes, hash, expires_at: None };
        store.create_token(&token, runner::now()).await.unwrap();
    }
    store.close().await;
}
