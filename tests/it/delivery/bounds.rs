//! How many deliveries are in hand at once, and whom a slow callback keeps waiting.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use http::StatusCode;
use tokio::sync::Semaphore;

use super::{Node, told};
use crate::store::{on_both_stores, on_one_store};
use crate::support::postgres::Database;
use crate::support::server::{Server, say};
use crate::support::subscriber::{Behavior, Subscriber};

on_both_stores!(a_host_has_no_more_in_hand_than_its_bound);

on_one_store!(
    a_slow_host_keeps_nobody_else_waiting,
    the_same_body_goes_to_all_who_are_owed_the_same,
);

async fn a_slow_host_keeps_nobody_else_waiting(database: Database) {
    let node = Node::bounded(&database, 8, 4).await;
    let (slow, quick) = (Subscriber::start().await, Subscriber::start().await);
    let mut resource = None;
    for n in 0..30 {
        let path = format!("/{n}");
        slow.set(&path, Behavior::Hanging);
        resource = Some(node.subscribe(&slow.url(&path), |_| {}).await.id.resource);
        node.subscribe(&quick.url(&path), |_| {}).await;
    }
    node.append(resource.unwrap(), 1..=1).await;
    // Nobody slow has answered when everybody quick has been told.
    for n in 0..30 {
        node.until(&quick.url(&format!("/{n}")), told(1)).await;
    }
    node.stop.cancel();
    node.worker.abort(); // the hanging ones would be waited for
}

async fn a_host_has_no_more_in_hand_than_its_bound(database: Database) {
    const SUBSCRIBERS: usize = 40;
    const PER_HOST: usize = 6;
    let node = Node::bounded(&database, 64, PER_HOST).await;
    let (in_hand, most) = (Arc::new(AtomicUsize::new(0)), Arc::new(AtomicUsize::new(0)));
    let go_on = Arc::new(Semaphore::new(0));
    let (counted, greatest, wait) = (Arc::clone(&in_hand), Arc::clone(&most), Arc::clone(&go_on));
    let server = Server::start(move |_| {
        greatest.fetch_max(counted.fetch_add(1, Ordering::SeqCst) + 1, Ordering::SeqCst);
        let (counted, wait) = (Arc::clone(&counted), Arc::clone(&wait));
        async move {
            wait.acquire().await.unwrap().forget();
            counted.fetch_sub(1, Ordering::SeqCst);
            say(StatusCode::OK, "")
        }
    })
    .await;
    let mut resource = None;
    for n in 0..SUBSCRIBERS {
        let callback = server.url(&format!("/{n}"));
        resource = Some(node.subscribe(&callback, |_| {}).await.id.resource);
    }
    node.append(resource.unwrap(), 1..=1).await;
    go_on.add_permits(SUBSCRIBERS);
    for n in 0..SUBSCRIBERS {
        node.until(&server.url(&format!("/{n}")), told(1)).await;
    }
    let most = most.load(Ordering::SeqCst);
    assert!((1..=PER_HOST).contains(&most), "{most} at once");
    node.stop().await;
}

async fn the_same_body_goes_to_all_who_are_owed_the_same(database: Database) {
    let node = Node::start(&database).await;
    let subscriber = Subscriber::start().await;
    let mut resource = None;
    for n in 0..20 {
        let callback = subscriber.url(&format!("/{n}"));
        resource = Some(node.subscribe(&callback, |_| {}).await.id.resource);
    }
    node.append(resource.unwrap(), 1..=3).await;
    for n in 0..20 {
        node.until(&subscriber.url(&format!("/{n}")), told(3)).await;
        let notified = subscriber.notified(&format!("/{n}"));
        assert_eq!(notified.len(), 1, "told once");
        assert_eq!(notified[0].body, subscriber.notified("/0")[0].body);
    }
    node.stop().await;
}
