//! Deliveries that are not sent, because this gateway is busy.

use std::io;
use std::net::IpAddr;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::time::Duration;

use async_trait::async_trait;
use feedgate::net::{HttpClient, Lookup, SystemLookup};
use feedgate_core::account::AccountId;
use feedgate_core::store::AttemptRange;

use super::{Node, told};
use crate::store::on_both_stores;
use crate::support::postgres::Database;
use crate::support::subscriber::Subscriber;

on_both_stores!(h13_a_delivery_that_this_gateway_is_too_busy_to_send_is_no_failure);

/// A resolver that looks up too many other names at first.
#[derive(Debug)]
struct Names {
    full: SystemLookup,
    is_full: AtomicBool,
    refused: AtomicUsize,
}

#[async_trait]
impl Lookup for Names {
    async fn lookup(&self, name: &str) -> io::Result<Vec<IpAddr>> {
        if !self.is_full.load(Ordering::SeqCst) {
            return Ok(vec![IpAddr::from([127, 0, 0, 1])]);
        }
        let answer = self.full.lookup(name).await;
        self.refused.fetch_add(1, Ordering::SeqCst);
        answer
    }
}

async fn h13_a_delivery_that_this_gateway_is_too_busy_to_send_is_no_failure(database: Database) {
    let full = SystemLookup::new(0).within(Duration::from_millis(10));
    let (is_full, refused) = (AtomicBool::new(true), AtomicUsize::new(0));
    let names = Arc::new(Names { full, is_full, refused });
    let lookup = Arc::clone(&names);
    let client = |settings| HttpClient::with_lookup(settings, lookup);
    let node = Node::with_client(&database, Duration::from_secs(10), client, |_| {}).await;
    let subscriber = Subscriber::start().await;
    let callback = format!("http://callbacks.example.org:{}/cb", subscriber.port());
    let account = Some(AccountId(7));
    let id = node.subscribe(&callback, |request| request.account = account).await.id;
    node.append(id.resource, 1..=1).await;
    node.until(&callback, |_| names.refused.load(Ordering::SeqCst) > 1).await;
    let held = node.now(&callback).await.unwrap();
    assert_eq!((held.failures, held.failing_since), (0, None));
    names.is_full.store(false, Ordering::SeqCst);
    node.until(&callback, told(1)).await;
    let attempts = loop {
        let range = AttemptRange { before: None, limit: 10 };
        let recorded = node.store.attempts(id, range).await.unwrap();
        if !recorded.is_empty() {
            break recorded;
        }
        tokio::task::yield_now().await;
    };
    assert_eq!(attempts.len(), 1, "nothing is recorded of what was not sent");
    assert_eq!(subscriber.requests_to("/cb").len(), 1);
    node.stop().await;
}
