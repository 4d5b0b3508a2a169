//! What clouds and hubs ask of an aggregator, and what it answers: to each feed belongs an
//! address of its own, `/0`, `/1` and so on.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use bytes::Bytes;
use http::{HeaderMap, StatusCode, header};
use tokio::sync::mpsc::error::TrySendError;
use tokio::sync::mpsc::{Permit, Sender};
use warp::Filter;
use warp::filters::BoxedFilter;
use warp::reply::{Reply, Response};

use crate::http::kit::body;
use feedgate_protocol::form::Form;
use feedgate_protocol::xmlrpc::XmlRpcValue;
use feedgate_protocol::{soap, xmlrpc};

/// The longest notification read: hubs send whole documents.
const BODY_LIMIT_BYTES: usize = 10 * 1024 * 1024;

/// What we agree to.
#[derive(Debug)]
pub(super) struct ExpectedCallback {
    topics: Vec<String>,
    is_asking: AtomicBool,
    is_leaving: AtomicBool,
}

impl ExpectedCallback {
    /// To being told of these.
    pub(super) fn to(topics: Vec<String>) -> ExpectedCallback {
        ExpectedCallback {
            topics,
            is_asking: AtomicBool::new(false),
            is_leaving: AtomicBool::new(false),
        }
    }

    /// Whether a request of ours is in hand: what comes now may be a test.
    pub(super) fn asks(&self, is_asking: bool) {
        self.is_asking.store(is_asking, Ordering::SeqCst);
    }

    /// From now on, to being told no more.
    pub(super) fn leaves(&self) {
        self.is_leaving.store(true, Ordering::SeqCst);
    }
}

/// What happened at the address of the feed `n`.
#[derive(Debug)]
pub(super) enum ListenEvent {
    /// We proved that we asked; a hub says for how long.
    Verified { n: usize, lease_s: Option<u64> },
    /// A hub says that it will not tell us.
    Denied { n: usize, reason: String },
    /// We agreed to be told no more.
    Left { n: usize },
    /// We were told something.
    Notification(Notification),
}

impl ListenEvent {
    /// Of which feed.
    pub(super) fn n(&self) -> usize {
        match self {
            ListenEvent::Verified { n, .. }
            | ListenEvent::Denied { n, .. }
            | ListenEvent::Left { n } => *n,
            ListenEvent::Notification(told) => told.n,
        }
    }
}

/// A notification.
#[derive(Debug)]
pub(super) struct Notification {
    /// Of which feed.
    pub(super) n: usize,
    /// Whether it came while we were registering.
    pub(super) is_test: bool,
    /// What one of rssCloud's names; `None` for a document.
    pub(super) named: Option<String>,
    /// Its headers.
    pub(super) headers: HeaderMap,
    /// Its body.
    pub(super) body: Bytes,
}

/// All there is to ask; what is told goes to `events`.
pub(super) fn routes(
    events: Sender<ListenEvent>,
    agreed: &Arc<ExpectedCallback>,
) -> BoxedFilter<(Response,)> {
    let (asked, told) = (Arc::clone(agreed), Arc::clone(agreed));
    let sent = events.clone();
    let ask = warp::path!(usize)
        .and(warp::get())
        .and(warp::query::raw().or(warp::any().map(String::new)).unify())
        .map(move |n, query: String| {
            let query = Form::from_urlencoded(query.as_bytes()).unwrap_or_default();
            let Some(place) = place(&sent) else { return busy() };
            let (reply, event) = answer(&asked, n, &query);
            if let Some((place, event)) = place.zip(event) {
                place.send(event);
            }
            reply
        });
    let tell = warp::path!(usize)
        .and(warp::post())
        .and(warp::header::headers_cloned())
        .and(warp::body::stream())
        .then(move |n, headers, body| {
            let (events, told) = (events.clone(), Arc::clone(&told));
            async move {
                // Before it is read: so much may be in memory, and no more.
                let Some(place) = place(&events) else { return busy() };
                let body = match body::read(body, BODY_LIMIT_BYTES, None).await {
                    Ok(body) => body,
                    Err(unread) => return unread.rejection.to_response(),
                };
                let is_test = told.is_asking.load(Ordering::SeqCst);
                let (reply, named) = take(&headers, &body);
                if let Some(place) = place {
                    place.send(ListenEvent::Notification(Notification {
                        n,
                        is_test,
                        named,
                        headers,
                        body,
                    }));
                }
                reply
            }
        });
    let nothing = warp::any().map(|| StatusCode::NOT_FOUND.into_response());
    ask.or(tell).unify().or(nothing).unify().boxed()
}

/// A place for an event; `None` if there is none now. It leads nowhere if nobody listens any
/// more.
fn place(events: &Sender<ListenEvent>) -> Option<Option<Permit<'_, ListenEvent>>> {
    match events.try_reserve() {
        Ok(place) => Some(Some(place)),
        Err(TrySendError::Closed(())) => Some(None),
        Err(TrySendError::Full(())) => None,
    }
}

fn busy() -> Response {
    let reply = warp::reply::with_status("Too much at once.\n", StatusCode::SERVICE_UNAVAILABLE);
    warp::reply::with_header(reply, header::RETRY_AFTER, "10").into_response()
}

/// A hub or a cloud asks whether we want what we asked for.
fn answer(agreed: &ExpectedCallback, n: usize, query: &Form) -> (Response, Option<ListenEvent>) {
    let echo = |name| query.get_verbatim(name).unwrap_or_default().to_owned().into_response();
    let no = || (StatusCode::NOT_FOUND.into_response(), None);
    let Some(topic) = agreed.topics.get(n) else { return no() };
    let is_about = |name| query.get_verbatim(name) == Some(topic.as_str());
    let is_leaving = agreed.is_leaving.load(Ordering::SeqCst);
    match query.get("hub.mode") {
        Some("subscribe") if is_about("hub.topic") && !is_leaving => {
            let lease_s = query.get("hub.lease_seconds").and_then(|text| text.parse().ok());
            (echo("hub.challenge"), Some(ListenEvent::Verified { n, lease_s }))
        }
        Some("unsubscribe") if is_about("hub.topic") && is_leaving => {
            (echo("hub.challenge"), Some(ListenEvent::Left { n }))
        }
        Some("denied") => {
            let reason = query.get("hub.reason").unwrap_or_default().to_owned();
            (StatusCode::OK.into_response(), Some(ListenEvent::Denied { n, reason }))
        }
        Some(_) => no(),
        None if query.has("challenge") && is_about("url") && !is_leaving => {
            (echo("challenge"), Some(ListenEvent::Verified { n, lease_s: None }))
        }
        None if query.has("cancel") && is_about("url") && is_leaving => (echo("cancel"), None),
        None => no(),
    }
}

/// Takes a notification: the answer in its own protocol, and what it names.
fn take(headers: &HeaderMap, body: &Bytes) -> (Response, Option<String>) {
    let typed = |text: String, content_type: &'static str| {
        warp::reply::with_header(text, header::CONTENT_TYPE, content_type).into_response()
    };
    if soap::is_envelope(body)
        && let Ok(call) = soap::read_call(body)
    {
        let named = call.param(&["url"], 0).map(|url| url.text().to_owned());
        let answer = soap::response(call.version, &call.method, true);
        return (typed(answer, call.version.content_type()), named);
    }
    if let Ok(call) = xmlrpc::read_call(body) {
        let named = call.params.first().and_then(XmlRpcValue::text);
        let answer = xmlrpc::response(&XmlRpcValue::Boolean(true));
        return (typed(answer, "text/xml; charset=utf-8"), named);
    }
    let content_type = headers.get(header::CONTENT_TYPE).and_then(|value| value.to_str().ok());
    let is_form = content_type.is_some_and(|value| value.contains("form-urlencoded"));
    let form = Form::from_urlencoded(body).ok().filter(|_| is_form);
    let named = form.and_then(|form| form.get("url").map(str::to_owned));
    (StatusCode::OK.into_response(), named)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_what_was_asked_for_is_agreed_to() {
        let agreed = ExpectedCallback::to(vec!["http://a.test/".to_owned()]);
        let status = |n, query: &str| {
            let query = Form::from_urlencoded(query.as_bytes()).unwrap();
            answer(&agreed, n, &query).0.status().as_u16()
        };
        let ours = "http%3A%2F%2Fa.test%2F";
        let subscribe = format!("hub.mode=subscribe&hub.topic={ours}&hub.challenge=c");
        let unsubscribe = format!("hub.mode=unsubscribe&hub.topic={ours}&hub.challenge=c");
        let (challenge, cancel) =
            (format!("url={ours}&challenge=c"), format!("url={ours}&cancel=c"));
        assert_eq!(status(0, "hub.mode=subscribe&hub.topic=http%3A%2F%2Fb.test%2F"), 404);
        for (leaving, wants) in [(false, [200, 404, 200, 404]), (true, [404, 200, 404, 200])] {
            if leaving {
                agreed.leaves();
            }
            let got = [&subscribe, &unsubscribe, &challenge, &cancel].map(|query| status(0, query));
            assert_eq!(got, wants, "leaving: {leaving}");
            assert_eq!(status(1, &subscribe), 404);
        }
    }

    #[test]
    fn only_so_much_is_held_that_nobody_has_read_yet() {
        let (events, mut heard) = tokio::sync::mpsc::channel(1);
        let first = place(&events).flatten().unwrap();
        assert!(place(&events).is_none());
        first.send(ListenEvent::Left { n: 0 });
        assert!(place(&events).is_none());
        assert!(heard.try_recv().is_ok());
        assert!(place(&events).flatten().is_some());
        drop(heard);
        assert!(place(&events).unwrap().is_none(), "it is taken and dropped");
    }
}
