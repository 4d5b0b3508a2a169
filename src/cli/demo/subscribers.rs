//! The subscribers of the demo: callbacks of every protocol on one port.
//!
//! Protocols that send entries have a callback `/{way}/{sample}`. An rssCloud notification only
//! names the changed resource, so its callbacks are `/{way}`, and the entries are read from the
//! archive afterwards.

use std::time::Instant;

use bytes::Bytes;
use http::StatusCode;
use tokio::sync::mpsc::UnboundedSender;
use warp::Filter;
use warp::filters::BoxedFilter;
use warp::reply::{Reply, Response};

use feedgate_protocol::{soap, xmlrpc};

use super::samples::numbers_in;
use super::tally::{Channel, DemoEvent, Received};

/// A call that a callback received.
#[derive(Debug)]
pub(super) enum ReceivedCall {
    /// A notification with entries.
    Entries(Received),
    /// An rssCloud notification: the resource `topic` has changed.
    Changed {
        /// The channel of the notification.
        way: Channel,
        /// When it arrived.
        at: Instant,
        /// The URL of the resource in the notification.
        topic: String,
    },
}

/// The channels that end in a callback, with the first segment of their paths.
const CALLBACKS: [(&str, Channel); 5] = [
    ("websub", Channel::WebSub),
    ("superfeedr", Channel::Superfeedr),
    ("http-post", Channel::HttpPost),
    ("xml-rpc", Channel::XmlRpc),
    ("soap", Channel::Soap),
];

/// The path of a callback; `sample` for protocols that send entries.
pub(super) fn path(way: Channel, sample: Option<usize>) -> String {
    let (word, _) = CALLBACKS.iter().find(|(_, held)| *held == way).copied().unwrap_or(("", way));
    sample.map_or(format!("/{word}"), |sample| format!("/{word}/{sample}"))
}

/// The routes of all callbacks, which send what they receive to `calls`.
pub(super) fn routes(calls: UnboundedSender<ReceivedCall>) -> BoxedFilter<(Response,)> {
    let challenge = warp::get()
        .and(warp::query::raw().or(warp::any().map(String::new)).unify())
        .map(|query: String| prove(&query));
    let notification = warp::post()
        .and(warp::path::param())
        .and(warp::path::param().map(Some).or(warp::any().map(|| None)).unify())
        .and(warp::path::end())
        .and(warp::body::bytes())
        .map(move |way: String, sample: Option<usize>, body: Bytes| {
            let at = Instant::now();
            let Some((_, way)) = CALLBACKS.iter().find(|(word, _)| *word == way) else {
                return StatusCode::NOT_FOUND.into_response();
            };
            if let Some(event) = read(*way, sample, at, &body) {
                calls.send(event).unwrap_or_default(); // the demo is over
            }
            StatusCode::OK.into_response()
        });
    challenge.or(notification).unify().boxed()
}

/// Confirms a subscription: WebSub and rssCloud expect their challenge in the response.
fn prove(query: &str) -> Response {
    let mut pairs = url::form_urlencoded::parse(query.as_bytes());
    let challenge = pairs.find(|(name, _)| matches!(name.as_ref(), "hub.challenge" | "challenge"));
    match challenge {
        Some((_, challenge)) => challenge.into_owned().into_response(),
        None => StatusCode::BAD_REQUEST.into_response(),
    }
}

fn read(way: Channel, sample: Option<usize>, at: Instant, body: &[u8]) -> Option<ReceivedCall> {
    let topic = match way {
        Channel::HttpPost => {
            let mut form = url::form_urlencoded::parse(body);
            form.find(|(name, _)| name == "url")?.1.into_owned()
        }
        Channel::XmlRpc => xmlrpc::read_call(body).ok()?.params.first()?.text()?,
        Channel::Soap => soap::read_call(body).ok()?.param(&["url"], 0)?.text().to_owned(),
        _ => {
            let event = DemoEvent::Entries(numbers_in(&String::from_utf8_lossy(body)));
            return Some(ReceivedCall::Entries(Received { way, sample: sample?, at, event }));
        }
    };
    Some(ReceivedCall::Changed { way, at, topic })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_protocol_names_what_changed() {
        let topic = "http://a.test/feed?a=1&b=2";
        let form = "url=http%3A%2F%2Fa.test%2Ffeed%3Fa%3D1%26b%3D2".to_owned();
        let cases = [
            (Channel::HttpPost, form),
            (Channel::XmlRpc, xmlrpc::call("river.changed", topic)),
            (Channel::Soap, soap::call("changed", topic)),
        ];
        for (way, body) in cases {
            let told = read(way, None, Instant::now(), body.as_bytes());
            let named =
                matches!(&told, Some(ReceivedCall::Changed { topic: named, .. }) if named == topic);
            assert!(named, "{told:?}");
        }
    }
}
