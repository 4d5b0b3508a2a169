//! A publisher: serves pages, gets conditional requests right, and remembers who
//! fetched what.

use std::collections::HashMap;
use std::sync::{Arc, Mutex};

use bytes::Bytes;
use http::StatusCode;
use http::header::{CONTENT_TYPE, ETAG, HeaderValue};
use tokio::sync::watch;
use tokio::time::timeout;

use super::PATIENCE;
use super::server::{Answer, ReceivedRequest, Server, say};

/// Serves what it was given, with an `ETag` that changes when the page does.
pub(crate) struct Publisher {
    server: Server,
    pages: Arc<Mutex<HashMap<String, Page>>>,
    fetches: watch::Sender<Vec<Fetch>>,
}

#[derive(Clone)]
struct Page {
    status: StatusCode,
    content_type: String,
    body: Bytes,
    version: u32,
}

/// A fetch as the publisher saw it.
#[derive(Clone, Debug)]
pub(crate) struct Fetch {
    /// The request.
    pub(crate) request: ReceivedRequest,
    /// The status code of the answer.
    pub(crate) status: StatusCode,
}

impl Publisher {
    /// Starts one without pages.
    pub(crate) async fn start() -> Publisher {
        let pages: Arc<Mutex<HashMap<String, Page>>> = Arc::default();
        let fetches = watch::Sender::new(Vec::new());
        let (held, seen) = (Arc::clone(&pages), fetches.clone());
        let server = Server::start(move |request| {
            let page = held.lock().unwrap().get(&request.path).cloned();
            let answer = answer(&request, page);
            let status = answer.status();
            seen.send_modify(|fetches| fetches.push(Fetch { request, status }));
            async move { answer }
        })
        .await;
        Publisher { server, pages, fetches }
    }

    /// The address of a page.
    pub(crate) fn url(&self, path: &str) -> String {
        self.server.url(path)
    }

    /// Publishes `body` at `path`.
    pub(crate) fn put(&self, path: &str, content_type: &str, body: impl Into<Bytes>) {
        self.change(path, |page| {
            page.status = StatusCode::OK;
            content_type.clone_into(&mut page.content_type);
            page.body = body.into();
        });
    }

    /// Publishes an RSS feed at `path`.
    pub(crate) fn put_rss(&self, path: &str, body: impl Into<Bytes>) {
        self.put(path, "application/rss+xml", body);
    }

    /// Answers with this status code from now on.
    pub(crate) fn fail(&self, path: &str, status: StatusCode) {
        self.change(path, |page| page.status = status);
    }

    fn change(&self, path: &str, change: impl FnOnce(&mut Page)) {
        let mut pages = self.pages.lock().unwrap();
        let page = pages.entry(path.to_owned()).or_insert_with(|| Page {
            status: StatusCode::OK,
            content_type: String::new(),
            body: Bytes::new(),
            version: 0,
        });
        change(page);
        page.version += 1;
    }

    /// The fetches of this page so far.
    pub(crate) fn fetches(&self, path: &str) -> Vec<Fetch> {
        let fetches = self.fetches.borrow();
        fetches.iter().filter(|fetch| fetch.request.path == path).cloned().collect()
    }

    /// Waits until this page was fetched `times` times.
    pub(crate) async fn fetched(&self, path: &str, times: usize) {
        let of_page = |fetch: &&Fetch| fetch.request.path == path;
        let mut fetches = self.fetches.subscribe();
        let enough = fetches.wait_for(|all| all.iter().filter(of_page).count() >= times);
        if timeout(PATIENCE, enough).await.is_err() {
            let codes: Vec<_> = self.fetches(path).iter().map(|fetch| fetch.status).collect();
            panic!("{path} was not fetched {times} times: {codes:?}");
        }
    }
}

fn answer(request: &ReceivedRequest, page: Option<Page>) -> Answer {
    let Some(page) = page else { return say(StatusCode::NOT_FOUND, "no such page\n") };
    if page.status != StatusCode::OK {
        return say(page.status, "");
    }
    let etag = format!("\"v{}\"", page.version);
    let mut answer = if request.header("if-none-match") == Some(etag.as_str()) {
        say(StatusCode::NOT_MODIFIED, "")
    } else {
        say(StatusCode::OK, page.body)
    };
    let headers = answer.headers_mut();
    headers.insert(ETAG, HeaderValue::try_from(etag).unwrap());
    if !page.content_type.is_empty() {
        headers.insert(CONTENT_TYPE, HeaderValue::try_from(page.content_type).unwrap());
    }
    answer
}
