//! Callbacks that hang or take long delay no other, neither at the same host nor at another.
//!
//! No request that hangs ends during these tests: whatever else is delivered, is delivered beside them.

use std::collections::HashSet;
use std::future::pending;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use feedgate_core::account::AccountId;
use feedgate_core::resource::ResourceId;
use feedgate_core::topic::Topic;
use http::StatusCode;

use super::{Node, told};
use crate::store::on_both_stores;
use crate::support::postgres::Database;
use crate::support::server::{Server, say};
use crate::support::until;

on_both_stores!(
    e04_callbacks_that_hang_do_not_delay_another_at_the_same_host,
    e05_hundreds_of_slow_hosts_do_not_delay_a_quick_subscriber,
);

/// Longer than any test.
const NEVER: Duration = Duration::from_secs(3_600);

/// Callbacks at all addresses of this machine; those below `/hang` never answer.
struct Callbacks {
    server: Server,
    /// The requests that hang, by host and path.
    hanging: Arc<Mutex<HashSet<String>>>,
}

impl Callbacks {
    async fn start() -> Callbacks {
        let hanging: Arc<Mutex<HashSet<String>>> = Arc::default();
        let held = Arc::clone(&hanging);
        let server = Server::start_everywhere(move |request| {
            let hangs = request.path.starts_with("/hang");
            if hangs {
                let host = request.header("host").unwrap().to_owned();
                held.lock().unwrap().insert(host + &request.path);
            }
            async move {
                match hangs {
                    true => pending().await,
                    false => say(StatusCode::OK, ""),
                }
            }
        })
        .await;
        Callbacks { server, hanging }
    }

    /// A callback at the address `127.0.0.1`, or another below `127.0`.
    fn url(&self, (third, fourth): (usize, usize), path: &str) -> String {
        format!("http://127.0.{third}.{fourth}:{}{path}", self.server.port())
    }

    fn hang_count(&self) -> usize {
        self.hanging.lock().unwrap().len()
    }
}

async fn subscribe(node: &Node, topic: &str, callback: &str, account: Option<i64>) -> ResourceId {
    let subscription = node.subscribe(callback, |request| {
        request.topic = Topic::parse(format!("https://{topic}.test/feed")).unwrap();
        request.account = account.map(AccountId);
    });
    subscription.await.id.resource
}

async fn kill(node: Node) {
    node.stop.cancel();
    node.worker.abort(); // the hanging ones would be waited for
}

async fn e04_callbacks_that_hang_do_not_delay_another_at_the_same_host(database: Database) {
    let node = Node::with_timeout(&database, NEVER, |settings| {
        (settings.concurrency, settings.per_host) = (64, 32);
    })
    .await;
    let callbacks = Callbacks::start().await;
    let here = (0, 1);
    let mut harm = None;
    for n in 0..20 {
        let callback = callbacks.url(here, &format!("/hang/{n}"));
        harm = Some(subscribe(&node, "harm", &callback, None).await);
    }
    let good = callbacks.url(here, "/good");
    let tides = subscribe(&node, "tides", &good, None).await;
    node.append(harm.unwrap(), 1..=1).await;
    until("the host is full of requests that hang", async || callbacks.hang_count() >= 8).await;
    for n in 1..=5 {
        node.append(tides, n..=n).await;
        node.until(&good, told(n as i64)).await;
        node.append(harm.unwrap(), n + 1..=n + 1).await;
    }
    assert!(callbacks.hang_count() < 20, "the host is spared");
    kill(node).await;
}

async fn e05_hundreds_of_slow_hosts_do_not_delay_a_quick_subscriber(database: Database) {
    const CONCURRENCY: usize = 16;
    let node = Node::with_timeout(&database, NEVER, |settings| {
        (settings.concurrency, settings.per_host) = (CONCURRENCY, 8);
    })
    .await;
    let callbacks = Callbacks::start().await;
    let (good, other) = (callbacks.url((0, 1), "/good"), callbacks.url((0, 2), "/other"));
    let tides = subscribe(&node, "tides", &good, None).await;
    node.append(tides, 1..=1).await;
    node.until(&good, told(1)).await;
    for n in 0..300 {
        let callback = callbacks.url((1 + n / 100, 1 + n % 100), "/hang");
        subscribe(&node, "tides", &callback, None).await;
    }
    // Those that hang are owed the same as the good one, and are more than wait in memory.
    for n in 2..=5 {
        node.append(tides, n..=n).await;
        node.until(&good, told(n as i64)).await;
        let enough = CONCURRENCY / 2;
        until("others hang", async || callbacks.hang_count() >= enough).await;
    }
    // An account that nobody knows yet has the other half.
    let owned = subscribe(&node, "tides", &other, Some(1)).await;
    node.append(owned, 6..=6).await;
    node.until(&other, |held| held.is_some_and(|held| held.cursor.0 >= 6)).await;
    let hanging = callbacks.hang_count();
    assert!(hanging <= CONCURRENCY + CONCURRENCY / 2, "{hanging} of {} at once", 2 * CONCURRENCY);
    kill(node).await;
}
