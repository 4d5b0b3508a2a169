//! A stand-in for Superfeedr: the part of its API that a client needs who leaves. It is busy now and then,
//! and counts the requests that come nevertheless.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use http::header::{HeaderValue, RETRY_AFTER};
use http::{Method, StatusCode};
use serde_json::{Value, json};
use tokio::time::Instant;

use super::server::{Answer, ReceivedRequest, Server, say};

/// The login and the token of its only account.
pub(crate) const ACCOUNT: &str = "ann:t0ken";
/// For how long it asks to be left alone.
const BUSY_FOR: Duration = Duration::from_secs(1);

/// The service. It ends when dropped.
pub(crate) struct Superfeedr {
    server: Server,
    state: Arc<Mutex<State>>,
}

/// A subscription of its account.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Subscribed {
    pub(crate) topic: String,
    pub(crate) endpoint: String,
    pub(crate) format: &'static str,
    pub(crate) secret: Option<&'static str>,
}

#[derive(Default)]
struct State {
    subscriptions: Vec<Subscribed>,
    /// The ids of the entries of each topic, newest first.
    entries: BTreeMap<String, Vec<String>>,
    /// Of so many requests, the last one is told to come back later.
    busy_every: usize,
    busy_until: Option<Instant>,
    /// Whether no entries can be retrieved.
    is_unreadable: bool,
    requests: usize,
    /// Requests that came since it was busy for the last time, while it was.
    early: usize,
    most_early: usize,
    open: usize,
    most_open: usize,
}

impl Superfeedr {
    /// Starts one that nobody is subscribed at.
    pub(crate) async fn start() -> Superfeedr {
        let state: Arc<Mutex<State>> = Arc::default();
        let held = Arc::clone(&state);
        let server = Server::start(move |request| {
            let state = Arc::clone(&held);
            async move {
                let answer = state.lock().unwrap().begin(&request);
                // Others that are sent at the same time are received before this one is over.
                for _ in 0..8 {
                    tokio::task::yield_now().await;
                }
                state.lock().unwrap().open -= 1;
                answer
            }
        })
        .await;
        Superfeedr { server, state }
    }

    /// The address of its API.
    pub(crate) fn url(&self) -> String {
        self.server.url("/")
    }

    /// Subscribes somebody.
    pub(crate) fn subscribe(&self, subscribed: Subscribed) {
        self.state.lock().unwrap().subscriptions.push(subscribed);
    }

    /// What the account is subscribed to.
    pub(crate) fn subscriptions(&self) -> Vec<Subscribed> {
        self.state.lock().unwrap().subscriptions.clone()
    }

    /// Makes a topic have these entries, newest first.
    pub(crate) fn put(&self, topic: &str, ids: Vec<String>) {
        self.state.lock().unwrap().entries.insert(topic.to_owned(), ids);
    }

    /// Answers that entries cannot be retrieved, from now on or no longer.
    pub(crate) fn be_unreadable(&self, is_unreadable: bool) {
        self.state.lock().unwrap().is_unreadable = is_unreadable;
    }

    /// Answers one of so many requests with 429.
    pub(crate) fn be_busy_every(&self, requests: usize) {
        self.state.lock().unwrap().busy_every = requests;
    }

    /// The most requests that came while it had asked to be left alone, some of which were on their way
    /// before; and the most that were open at the same time.
    pub(crate) fn impoliteness(&self) -> (usize, usize) {
        let state = self.state.lock().unwrap();
        (state.most_early, state.most_open)
    }
}

impl State {
    fn begin(&mut self, request: &ReceivedRequest) -> Answer {
        self.open += 1;
        self.most_open = self.most_open.max(self.open);
        self.requests += 1;
        if self.busy_until.is_some_and(|until| Instant::now() < until) {
            self.early += 1;
            self.most_early = self.most_early.max(self.early);
        }
        if self.busy_every > 0 && self.requests.is_multiple_of(self.busy_every) {
            self.early = 0;
            self.busy_until = Some(Instant::now() + BUSY_FOR);
            let mut answer = say(StatusCode::TOO_MANY_REQUESTS, "not so fast");
            answer.headers_mut().insert(RETRY_AFTER, HeaderValue::from(BUSY_FOR.as_secs()));
            return answer;
        }
        self.answer(request)
    }

    fn answer(&mut self, request: &ReceivedRequest) -> Answer {
        let basic = format!("Basic {}", STANDARD.encode(ACCOUNT));
        if request.header("authorization") != Some(&*basic) {
            return say(StatusCode::UNAUTHORIZED, "unauthorized");
        }
        let is_post = request.method == Method::POST;
        let value = |name: &str| match is_post {
            true => request.form(name),
            false => request.query(name).map(str::to_owned),
        };
        let text = |name: &str| value(name).unwrap_or_default();
        match (is_post, &*text("hub.mode")) {
            (false, "list") => self.list(&text("page"), &text("by_page")),
            (false, "retrieve") => self.retrieve(&text("hub.topic"), &text("count")),
            (true, "unsubscribe") => self.unsubscribe(&text("hub.topic"), &text("hub.callback")),
            (_, mode) => say(StatusCode::UNPROCESSABLE_ENTITY, format!("{mode} is not supported")),
        }
    }

    fn list(&self, page: &str, by_page: &str) -> Answer {
        let (page, by_page): (usize, usize) = (page.parse().unwrap(), by_page.parse().unwrap());
        assert!((1..=500).contains(&by_page), "{by_page}");
        let listed = self.subscriptions.iter().skip((page - 1) * by_page).take(by_page);
        let listed = listed.map(|held| {
            json!({ "subscription": {
                "format": held.format,
                "endpoint": held.endpoint,
                "secret": held.secret,
                "feed": { "title": null, "url": held.topic },
            } })
        });
        say(StatusCode::OK, Value::from_iter(listed).to_string())
    }

    fn retrieve(&self, topic: &str, count: &str) -> Answer {
        if self.is_unreadable {
            return say(StatusCode::NOT_FOUND, "this feed cannot be retrieved now");
        }
        if !self.subscriptions.iter().any(|held| held.topic == topic) {
            return say(StatusCode::NOT_FOUND, "you are not subscribed to this feed");
        }
        let ids = self.entries.get(topic).map(Vec::as_slice).unwrap_or_default();
        let items = ids.iter().take(count.parse().unwrap()).map(|id| json!({ "id": id }));
        let document = json!({ "status": { "code": 200 }, "items": Value::from_iter(items) });
        say(StatusCode::OK, document.to_string())
    }

    fn unsubscribe(&mut self, topic: &str, callback: &str) -> Answer {
        let before = self.subscriptions.len();
        self.subscriptions.retain(|held| (&*held.topic, &*held.endpoint) != (topic, callback));
        match self.subscriptions.len() < before {
            true => say(StatusCode::NO_CONTENT, ""),
            false => say(StatusCode::UNPROCESSABLE_ENTITY, "there is no such subscription"),
        }
    }
}
