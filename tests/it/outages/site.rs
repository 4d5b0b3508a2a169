//! A site that answers each path as a test says, and counts what it is asked.

use std::collections::HashMap;
use std::sync::{Arc, Mutex};
use std::time::{SystemTime, UNIX_EPOCH};

use http::StatusCode;
use http::header::{HeaderName, HeaderValue};
use tokio::sync::watch;
use tokio::time::timeout;

use crate::support::PATIENCE;
use crate::support::server::{Answer, Server, say};

/// What is answered at each path.
type Pages = HashMap<String, Page>;

#[derive(Clone)]
struct Page {
    status: StatusCode,
    headers: Vec<(HeaderName, HeaderValue)>,
    body: String,
}

/// The site.
pub(super) struct Site {
    server: Server,
    pages: Arc<Mutex<Pages>>,
    requested: watch::Sender<Vec<String>>,
}

impl Site {
    /// Starts one without pages.
    pub(super) async fn start() -> Site {
        let pages: Arc<Mutex<Pages>> = Arc::default();
        let requested = watch::Sender::new(Vec::new());
        let (held, seen) = (Arc::clone(&pages), requested.clone());
        let server = Server::start(move |request| {
            let page = held.lock().unwrap().get(&request.path).cloned();
            seen.send_modify(|requested: &mut Vec<String>| requested.push(request.path.clone()));
            async move { page.map_or_else(|| say(StatusCode::NOT_FOUND, ""), answer) }
        })
        .await;
        Site { server, pages, requested }
    }

    /// The address of a path.
    pub(super) fn url(&self, path: &str) -> String {
        self.server.url(path)
    }

    /// Answers with this from now on.
    pub(super) fn say(&self, path: &str, code: u16, headers: &[(&'static str, &str)], body: &str) {
        let headers = headers.iter().map(|(name, value)| {
            (HeaderName::from_static(name), HeaderValue::from_str(value).unwrap())
        });
        let page = Page {
            status: StatusCode::from_u16(code).unwrap(),
            headers: headers.collect(),
            body: body.to_owned(),
        };
        self.pages.lock().unwrap().insert(path.to_owned(), page);
    }

    /// Answers with a feed from now on.
    pub(super) fn feed(&self, path: &str, feed: String) {
        self.say(path, 200, &[("content-type", "application/rss+xml")], &feed);
    }

    /// How often a path was asked for.
    pub(super) fn fetches(&self, path: &str) -> usize {
        self.requested.borrow().iter().filter(|request| *request == path).count()
    }

    /// Waits until a path was asked for so often.
    pub(super) async fn fetched(&self, path: &str, times: usize) {
        let mut requested = self.requested.subscribe();
        let enough = requested.wait_for(|requested| {
            requested.iter().filter(|target| *target == path).count() >= times
        });
        let is_enough = timeout(PATIENCE, enough).await.is_ok();
        assert!(is_enough, "{path} was not fetched {times} times: {}", self.fetches(path));
    }
}

fn answer(page: Page) -> Answer {
    let mut answer = say(page.status, page.body);
    answer.headers_mut().extend(page.headers);
    answer
}

/// The time in seconds since 1970.
pub(super) fn now_s() -> i64 {
    SystemTime::now().duration_since(UNIX_EPOCH).unwrap().as_secs().cast_signed()
}
