//! The callbacks at which clouds and hubs verify subscriptions and deliver notifications. Each
//! feed has a callback of its own: `/0`, `/1` and so on.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use bytes::Bytes;
use http::{HeaderMap, StatusCode, header};
use tokio::sync::mpsc::error::TrySendError;
use tokio::sync::mpsc::{Permit, Sender};
use warp::Filter;
use warp::filters::BoxedFilter;
use warp::reply::{Reply, Response};

use crate::http::kit::body::{self, BodyReservation};
use feedgate_protocol::form::Form;
use feedgate_protocol::xmlrpc::XmlRpcValue;
use feedgate_protocol::{soap, xmlrpc};

/// The longest notification read: hubs send whole documents.
const BODY_LIMIT_BYTES: usize = 10 * 1024 * 1024;

/// The requests that the callbacks accept.
#[derive(Debug)]
pub(super) struct ExpectedCallback {
    topics: Vec<String>,
    is_asking: AtomicBool,
    is_leaving: AtomicBool,
}

impl ExpectedCallback {
    /// Accepts notifications of these topics.
    pub(super) fn to(topics: Vec<String>) -> ExpectedCallback {
        ExpectedCallback {
            topics,
            is_asking: AtomicBool::new(false),
            is_leaving: AtomicBool::new(false),
        }
    }

    /// Sets whether a subscription request is in progress, during which a notification may be a
    /// test of the callback.
    pub(super) fn set_asking(&self, is_asking: bool) {
        self.is_asking.store(is_asking, Ordering::SeqCst);
    }

    /// Accepts from now on only verifications of unsubscriptions.
    pub(super) fn set_leaving(&self) {
        self.is_leaving.store(true, Ordering::SeqCst);
    }
}

/// What happened at the callback of the feed `n`.
#[derive(Debug)]
pub(super) enum ListenEvent {
    /// The subscription was verified, with the lease if a hub granted it.
    Verified { n: usize, lease_s: Option<u64> },
    /// A hub denied the subscription.
    Denied { n: usize, reason: String },
    /// The unsubscription was verified.
    Left { n: usize },
    /// A notification arrived.
    Notification(ReceivedNotification),
}

impl ListenEvent {
    /// The number of the feed.
    pub(super) fn n(&self) -> usize {
        match self {
            ListenEvent::Verified { n, .. }
            | ListenEvent::Denied { n, .. }
            | ListenEvent::Left { n } => *n,
            ListenEvent::Notification(received) => received.n,
        }
    }
}

/// A notification as it was received.
#[derive(Debug)]
pub(super) struct ReceivedNotification {
    /// The number of the feed.
    pub(super) n: usize,
    /// Whether the notification arrived during a registration.
    pub(super) is_test: bool,
    /// The URL named by an rssCloud notification; `None` for a document.
    pub(super) named: Option<String>,
    /// The headers.
    pub(super) headers: HeaderMap,
    /// The body.
    pub(super) body: Bytes,
}

/// The routes of the callbacks, which send to `events` what happens.
pub(super) fn routes(
    events: Sender<ListenEvent>,
    agreed: &Arc<ExpectedCallback>,
) -> BoxedFilter<(Response,)> {
    let (expected, at_post) = (Arc::clone(agreed), Arc::clone(agreed));
    let sent = events.clone();
    let ask = warp::path!(usize)
        .and(warp::get())
        .and(warp::query::raw().or(warp::any().map(String::new)).unify())
        .map(move |n, query: String| {
            let query = Form::from_urlencoded(query.as_bytes()).unwrap_or_default();
            let Some(place) = place(&sent) else { return busy() };
            let (reply, event) = answer_verification(&expected, n, &query);
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
            let (events, expected) = (events.clone(), Arc::clone(&at_post));
            async move {
                // The place is reserved before the body is read, which bounds the bodies in memory.
                let Some(place) = place(&events) else { return busy() };
                let mut memory = BodyReservation::unlimited();
                let read = body::read(body, BODY_LIMIT_BYTES, None, &mut memory);
                let body = match read.await {
                    Ok(body) => body,
                    Err(unread) => return unread.rejection.to_response(),
                };
                let is_test = expected.is_asking.load(Ordering::SeqCst);
                let (reply, named) = read_notification(&headers, &body);
                if let Some(place) = place {
                    place.send(ListenEvent::Notification(ReceivedNotification {
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

/// Reserves a place in the queue of events. Returns `None` if the queue is full, and `Some(None)`
/// if it is closed.
fn place(events: &Sender<ListenEvent>) -> Option<Option<Permit<'_, ListenEvent>>> {
    match events.try_reserve() {
        Ok(place) => Some(Some(place)),
        Err(TrySendError::Closed(())) => Some(None),
        Err(TrySendError::Full(())) => None,
    }
}

fn busy() -> Response {
    let reply = warp::reply::with_status(
        "Too many notifications at the same time.\n",
        StatusCode::SERVICE_UNAVAILABLE,
    );
    warp::reply::with_header(reply, header::RETRY_AFTER, "10").into_response()
}

/// Responds to a hub or a cloud that verifies a subscription or its end.
fn answer_verification(
    agreed: &ExpectedCallback,
    n: usize,
    query: &Form,
) -> (Response, Option<ListenEvent>) {
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

/// Reads a notification. Returns the response in its own protocol, and the URL that it names.
fn read_notification(headers: &HeaderMap, body: &Bytes) -> (Response, Option<String>) {
    let typed = |text: String, content_type: &'static str| {
        warp::reply::with_header(text, header::CONTENT_TYPE, content_type).into_response()
    };
    if soap::is_envelope(body)
        && let Ok(call) = soap::read_call(body)
    {
        let named = call.param(&["url"], 0).map(|url| url.text().to_owned());
        let answer_verification = soap::response(call.version, &call.method, true);
        return (typed(answer_verification, call.version.content_type()), named);
    }
    if let Ok(call) = xmlrpc::read_call(body) {
        let named = call.params.first().and_then(XmlRpcValue::text);
        let answer_verification = xmlrpc::response(&XmlRpcValue::Boolean(true));
        return (typed(answer_verification, "text/xml; charset=utf-8"), named);
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
            answer_verification(&agreed, n, &query).0.status().as_u16()
        };
        let ours = "http%3A%2F%2Fa.test%2F";
        let subscribe = format!("hub.mode=subscribe&hub.topic={ours}&hub.challenge=c");
        let unsubscribe = format!("hub.mode=unsubscribe&hub.topic={ours}&hub.challenge=c");
        let (challenge, cancel) =
            (format!("url={ours}&challenge=c"), format!("url={ours}&cancel=c"));
        assert_eq!(status(0, "hub.mode=subscribe&hub.topic=http%3A%2F%2Fb.test%2F"), 404);
        for (leaving, wants) in [(false, [200, 404, 200, 404]), (true, [404, 200, 404, 200])] {
            if leaving {
                agreed.set_leaving();
            }
            let got = [&subscribe, &unsubscribe, &challenge, &cancel].map(|query| status(0, query));
            assert_eq!(got, wants, "leaving: {leaving}");
            assert_eq!(status(1, &subscribe), 404);
        }
    }

    #[test]
    fn only_so_much_is_held_that_nobody_has_read_yet() {
        let (events, mut received) = tokio::sync::mpsc::channel(1);
        let first = place(&events).flatten().unwrap();
        assert!(place(&events).is_none());
        first.send(ListenEvent::Left { n: 0 });
        assert!(place(&events).is_none());
        assert!(received.try_recv().is_ok());
        assert!(place(&events).flatten().is_some());
        drop(received);
        assert!(place(&events).unwrap().is_none(), "it is taken and dropped");
    }
}
