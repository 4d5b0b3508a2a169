//! What the tests share: feedgate itself, and the other people it talks to.
//!
//! feedgate, its databases and every socket are real; only publishers and subscribers
//! are made up. Whoever waits, waits for a condition, and gives up after [`PATIENCE`].

pub(crate) mod browser;
pub(crate) mod cases;
pub(crate) mod changed;
pub(crate) mod claiming_store;
pub(crate) mod clock;
pub(crate) mod feeds;
pub(crate) mod gateway;
pub(crate) mod nginx;
pub(crate) mod origin;
pub(crate) mod pages;
pub(crate) mod ports;
pub(crate) mod postgres;
pub(crate) mod publisher;
pub(crate) mod random;
pub(crate) mod reader;
pub(crate) mod rss_validator;
pub(crate) mod server;
pub(crate) mod shell;
pub(crate) mod subscriber;
pub(crate) mod superfeedr;
pub(crate) mod tcp_proxy;
pub(crate) mod tracked;
pub(crate) mod transfer;
pub(crate) mod validator;
pub(crate) mod world;

use std::time::Duration;

use tokio::time::{sleep, timeout};

/// How long anything is waited for before the test fails: far longer than it can take,
/// since a machine that builds at the same time is slow, and longer than the first pause
/// of a callback that did not answer in time on such a machine (rule D6).
pub(crate) const PATIENCE: Duration = Duration::from_secs(150);

/// Waits until something holds that no event tells of, because it happens in another process.
pub(crate) async fn until(what: &str, mut holds: impl AsyncFnMut() -> bool) {
    let wait = async {
        while !holds().await {
            sleep(Duration::from_millis(20)).await;
        }
    };
    assert!(timeout(PATIENCE, wait).await.is_ok(), "{what}: it never came to that");
}
