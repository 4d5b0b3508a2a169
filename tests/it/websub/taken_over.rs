//! Requests that a worker takes over while the subscriber waits for the verification.

use std::collections::HashSet;
use std::sync::{Arc, Mutex};

use http::StatusCode;

use super::SYNC;
use crate::store::on_both_stores;
use crate::support::feeds::rss;
use crate::support::gateway::Gateway;
use crate::support::postgres::Database;
use crate::support::server::{ReceivedRequest, Server, say};
use crate::support::subscriber::challenge;

on_both_stores! {
    e01_a_request_that_a_worker_took_over_is_answered_when_it_is_carried_out,
}

/// The claim of a request is lost, as when the database stops for longer than it lasts.
async fn e01_a_request_that_a_worker_took_over_is_answered_when_it_is_carried_out(
    database: Database,
) {
    let database = Arc::new(database);
    let gateway = Gateway::start(&database, &[]).await;
    let origin = Server::start(|_| async { say(StatusCode::OK, rss("t", 1..2)) }).await;
    let (held, modes) = (Arc::clone(&database), Arc::new(Mutex::new(HashSet::new())));
    let callback = Server::start(move |request: ReceivedRequest| {
        let held = Arc::clone(&held);
        let mode = request.query("hub.mode").map(str::to_owned);
        let is_first = mode.is_some_and(|mode| modes.lock().unwrap().insert(mode));
        async move {
            if is_first {
                held.run("update intents set claim_token = claim_token + 1, due_at = 1").await;
            }
            say(StatusCode::OK, challenge(&request).unwrap_or("ok").to_owned())
        }
    })
    .await;
    let (topic, callback) = (origin.url("/feed"), callback.url("/cb"));
    for mode in ["subscribe", "unsubscribe"] {
        let form = [("hub.mode", mode), ("hub.topic", &topic), ("hub.callback", &callback), SYNC];
        let (status, text) = gateway.post("/hub", &form).await;
        assert_eq!(status, StatusCode::NO_CONTENT, "{mode}: {text}");
    }
}
