//! A subscription that is changed while its delivery waits for its host (fault E1).

use std::sync::{Arc, Mutex};
use std::time::Duration;

use feedgate::jobs::runner;
use feedgate_core::account::AccountId;
use feedgate_core::signing::{Secret, SecretOverlap, SigningRequest};
use feedgate_core::subscription::SubscriptionRequest;
use http::StatusCode;
use tokio::sync::watch;
use tokio::time::sleep;

use super::{Node, told};
use crate::store::on_both_stores;
use crate::support::postgres::Database;
use crate::support::server::{Asked, Server, say};
use crate::support::subscriber::is_signed;

on_both_stores!(e01_a_pause_an_end_and_a_new_secret_hold_for_what_waits);

/// A delivery that has waited longer than this is read again before it is sent.
const FRESH_FOR: Duration = Duration::from_millis(500);

/// A server whose callback `/first` responds once it is let to, and what all of them were sent.
struct Callbacks {
    server: Server,
    received: Arc<Mutex<Vec<Asked>>>,
    go_on: watch::Sender<bool>,
}

impl Callbacks {
    async fn start() -> Callbacks {
        let (received, go_on) = (Arc::<Mutex<Vec<Asked>>>::default(), watch::Sender::new(false));
        let (receiving, waiting) = (Arc::clone(&received), go_on.clone());
        let server = Server::start(move |request: Asked| {
            let mut waiting = waiting.subscribe();
            let is_first = request.path == "/first";
            receiving.lock().unwrap().push(request);
            async move {
                if is_first {
                    waiting.wait_for(|go_on| *go_on).await.unwrap();
                }
                say(StatusCode::OK, "")
            }
        })
        .await;
        Callbacks { server, received, go_on }
    }

    fn received(&self, path: &str) -> Vec<Asked> {
        let received = self.received.lock().unwrap();
        received.iter().filter(|request| request.path == path).cloned().collect()
    }
}

/// Requests signatures with `secret` alone.
fn signed(secret: &str) -> impl FnOnce(&mut SubscriptionRequest) {
    let secret = Secret::new(secret.to_owned()).ok();
    move |request| {
        request.account = Some(AccountId(7));
        let overlap = SecretOverlap::from_secs(0);
        request.signing = SigningRequest { secret, overlap, ..SigningRequest::default() };
    }
}

async fn e01_a_pause_an_end_and_a_new_secret_hold_for_what_waits(database: Database) {
    let node = Node::bounded(&database, 8, 1).await;
    let callbacks = Callbacks::start().await;
    let url = |path: &str| callbacks.server.url(path);
    let mut ids = Vec::new();
    for path in ["/first", "/paused", "/ended", "/renewed", "/other"] {
        ids.push(node.subscribe(&url(path), signed("disclosed")).await.id);
    }
    node.append(ids[0].resource, 1..=1).await;
    while callbacks.received("/first").is_empty() {
        sleep(Duration::from_millis(5)).await;
    }
    node.store.pause(ids[1], runner::now()).await.unwrap();
    let ended = node.now(&url("/ended")).await.unwrap();
    let account = Some(AccountId(7));
    assert!(node.store.unsubscribe(account, &ended.topic, &ended.callback, None).await.unwrap());
    node.subscribe(&url("/renewed"), signed("new")).await;
    // All of them were claimed together.
    sleep(FRESH_FOR).await;
    callbacks.go_on.send_replace(true);

    for path in ["/first", "/renewed", "/other"] {
        node.until(&url(path), told(1)).await;
        assert_eq!(callbacks.received(path).len(), 1, "{path}");
    }
    assert!(is_signed(&callbacks.received("/renewed")[0], "new"));
    assert!(callbacks.received("/paused").is_empty() && callbacks.received("/ended").is_empty());
    node.store.resume(ids[1], runner::now()).await.unwrap();
    node.until(&url("/paused"), told(1)).await;
    node.stop().await;
    assert!(callbacks.received("/ended").is_empty());
}
