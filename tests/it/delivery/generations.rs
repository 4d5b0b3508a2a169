//! A subscription that is changed while its delivery waits for its host (fault E1).

use std::collections::BTreeMap;
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
use crate::support::server::{ReceivedRequest, Server, say};
use crate::support::subscriber::is_signed;

on_both_stores!(e01_a_pause_an_end_and_a_new_secret_hold_for_what_waits);

/// A delivery that has waited longer than this is read again before it is sent.
const FRESH_FOR: Duration = Duration::from_millis(500);

/// A server whose callbacks respond once they are let to, and what they were sent.
struct Callbacks {
    server: Server,
    received: Arc<Mutex<Vec<ReceivedRequest>>>,
    go_on: watch::Sender<bool>,
}

impl Callbacks {
    async fn start() -> Callbacks {
        let (received, go_on) =
            (Arc::<Mutex<Vec<ReceivedRequest>>>::default(), watch::Sender::new(false));
        let (receiving, waiting) = (Arc::clone(&received), go_on.clone());
        let server = Server::start(move |request: ReceivedRequest| {
            let mut waiting = waiting.subscribe();
            receiving.lock().unwrap().push(request);
            async move {
                waiting.wait_for(|go_on| *go_on).await.unwrap();
                say(StatusCode::OK, "")
            }
        })
        .await;
        Callbacks { server, received, go_on }
    }

    fn received(&self, path: &str) -> Vec<ReceivedRequest> {
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
    let mut waiting: BTreeMap<_, _> = BTreeMap::new();
    for path in ["/a", "/b", "/c", "/d", "/e"] {
        waiting.insert(path.to_owned(), node.subscribe(&url(path), signed("disclosed")).await);
    }
    let resource = waiting["/a"].id.resource;
    node.append(resource, 1..=1).await;
    // All of them are claimed together, and sent one after the other.
    let first = loop {
        let received = callbacks.received.lock().unwrap().first().map(|first| first.path.clone());
        match received {
            Some(first) => break first,
            None => sleep(Duration::from_millis(5)).await,
        }
    };
    waiting.remove(&first);
    let mut waiting = waiting.into_iter();
    let [paused, ended, renewed, unchanged] = [(); 4].map(|()| waiting.next().unwrap());
    node.store.pause(paused.1.id, runner::now()).await.unwrap();
    let (topic, callback) = (&ended.1.topic, &ended.1.callback);
    assert!(node.store.unsubscribe(ended.1.account, topic, callback, None).await.unwrap());
    node.subscribe(&url(&renewed.0), signed("new")).await;
    sleep(FRESH_FOR).await;
    callbacks.go_on.send_replace(true);

    for path in [&first, &renewed.0, &unchanged.0] {
        node.until(&url(path), told(1)).await;
        assert_eq!(callbacks.received(path).len(), 1, "{path}");
    }
    assert!(is_signed(&callbacks.received(&renewed.0)[0], "new"));
    assert!(callbacks.received(&paused.0).is_empty() && callbacks.received(&ended.0).is_empty());
    node.store.resume(paused.1.id, runner::now()).await.unwrap();
    node.until(&url(&paused.0), told(1)).await;
    node.stop().await;
    assert!(callbacks.received(&ended.0).is_empty());
}
