//! What pages call events. Programs read the kind and the outcome of an event in the words of the API.

use serde_json::{Value, json};

use feedgate_core::event::{Event, EventKind, EventOutcome};
use feedgate_protocol::Protocol;

/// Returns what happened, in one to three words.
pub(crate) fn described(event: &Event) -> String {
    match event.outcome {
        EventOutcome::Ok => past(event.kind).to_owned(),
        outcome => format!("{} {}", noun(event.kind), outcome.as_str()),
    }
}

/// Returns what the events of a kind are about.
pub(crate) fn noun(kind: EventKind) -> &'static str {
    match kind {
        EventKind::Subscribe => "subscription",
        EventKind::Renew => "renewal",
        EventKind::Unsubscribe => "unsubscription",
        EventKind::Verify => "verification",
        EventKind::Notify => "delivery",
        EventKind::Drop => "removal",
        EventKind::Expire => "expiry",
        EventKind::Ping | EventKind::Fetch | EventKind::Backfill => kind.as_str(),
        EventKind::Request | EventKind::Log => kind.as_str(),
    }
}

/// Returns what happened if an event of a kind ended well.
fn past(kind: EventKind) -> &'static str {
    match kind {
        EventKind::Subscribe => "subscribed",
        EventKind::Renew => "renewed",
        EventKind::Unsubscribe => "unsubscribed",
        EventKind::Verify => "verified",
        EventKind::Ping => "pinged",
        EventKind::Fetch => "fetched",
        EventKind::Backfill => "backfilled",
        EventKind::Notify => "delivered",
        EventKind::Drop => "removed",
        EventKind::Expire => "expired",
        EventKind::Request | EventKind::Log => noun(kind),
    }
}

/// Returns the words of each kind as JSON, for the script that adds rows.
pub(crate) fn as_json() -> String {
    let words = EventKind::ALL.iter().map(|kind| {
        let words = json!({ "past": past(*kind), "noun": noun(*kind) });
        (kind.as_str().to_owned(), words)
    });
    Value::Object(words.collect()).to_string()
}

/// Returns by what something happened. Webhooks of accounts are sent as those of WebSub subscribers are. The script
/// does the same.
pub(crate) fn via(event: &Event) -> &str {
    let is_webhook = event.kind != EventKind::Ping && event.via == Protocol::WebSub.as_str();
    if is_webhook { "webhook" } else { &event.via }
}

/// Returns how often something happened, by what, why it failed and how long it took. A line breaks between these.
pub(crate) fn details(event: &Event) -> String {
    let is_ok = event.outcome == EventOutcome::Ok;
    let details = [
        (event.many > 1).then(|| format!("{}\u{a0}times", event.many)),
        Some(via(event).to_owned()),
        (!is_ok).then(|| event.code.to_string()),
        event.took.map(|took| format!("{}\u{a0}ms", took.as_millis())),
    ];
    let details = details.into_iter().flatten().filter(|detail| !detail.is_empty());
    details.collect::<Vec<_>>().join("\u{a0}· ")
}
