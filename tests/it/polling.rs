//! How feedgate fetches: each rule that concerns a single fetch, against a server that
//! plays its answers byte for byte. The rules are in `docs/contributing/polling.md`, and each test is
//! named for its own.

mod answers;
mod calls;
mod command;
mod conditional;
mod egress;
mod limits;
mod redirects;
mod tls;
mod watchers;

use std::time::Duration;

use feedgate::net::{
    FetchRequest, FetchResponse, Fetched, FetchedDocument, HttpClient, NetworkSettings,
};
use feedgate_core::poll::Validators;

use crate::support::origin::{Step, answer};

const ATOM: &str = "<feed xmlns=\"http://www.w3.org/2005/Atom\"><title>Tides</title></feed>";

/// Settings that allow requests to the test's own server, with short timeouts.
fn settings() -> NetworkSettings {
    NetworkSettings {
        user_agent: "feedgate/0.0 (+https://gateway.test/".to_owned(),
        allow_topics: vec!["127.0.0.0/8".parse().unwrap()],
        allow_callbacks: vec!["127.0.0.0/8".parse().unwrap()],
        fetch_timeout: Duration::from_secs(30),
        callback_timeout: Duration::from_secs(10),
        body_limit_bytes: 10 * 1024 * 1024,
        host_spacing: Duration::ZERO,
        fetch_concurrency: 64,
        document_memory_bytes: 1 << 30,
    }
}

/// Timeouts that strike soon, for servers that never finish.
fn hasty() -> NetworkSettings {
    NetworkSettings {
        fetch_timeout: Duration::from_millis(600),
        callback_timeout: Duration::from_millis(300),
        ..settings()
    }
}

async fn get(url: &str) -> Fetched {
    get_with(&HttpClient::new(settings()), url, &Validators::default()).await
}

async fn get_with(fetch: &HttpClient, url: &str, validators: &Validators) -> Fetched {
    fetch.get(FetchRequest { url, validators, subscribers: 0, feed_id: None }).await
}

fn document(fetched: Fetched) -> FetchedDocument {
    match fetched.result {
        Ok(FetchResponse::Document(document)) => *document,
        other => panic!("no document: {other:?}"),
    }
}

fn code(fetched: &Fetched) -> &'static str {
    match &fetched.result {
        Ok(_) => "ok",
        Err(err) => err.code(),
    }
}

fn redirect(status: &str, to: &str) -> Step {
    answer(status, &[&format!("Location: {to}")], "moved")
}

/// Validators that came from `url`.
fn held(url: &str, etag: &[u8]) -> Validators {
    Validators { url: url.to_owned(), etag: Some(etag.to_vec()), last_modified: None }
}
