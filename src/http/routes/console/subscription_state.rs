//! The state of a subscription, in words for people.

use chrono::{DateTime, Utc};
use http::StatusCode;
use maud::{Markup, html};

use crate::http::kit::html::parts::{Tone, badge, counted, grouped, relative_time};
use feedgate_core::delivery_health::DeliveryState;
use feedgate_core::feed_state::FeedState;
use feedgate_core::resource::ResourceKind;
use feedgate_core::store::ListedSubscription;
use feedgate_core::subscription::{Subscription, SubscriptionId};
use feedgate_protocol::Protocol;

/// The section of the navigation.
pub(super) const SECTION: &str = "console/subscriptions";

/// Returns how a subscription is notified, in words. Webhooks of accounts are sent as those of the hub are.
pub(super) fn protocol_name(subscription: &Subscription) -> &'static str {
    match subscription.protocol {
        Protocol::WebSub if subscription.account.is_some() => "webhook",
        Protocol::WebSub => "WebSub",
        Protocol::HttpPost => "rssCloud",
        Protocol::XmlRpc { .. } => "rssCloud by XML-RPC",
        Protocol::Soap { .. } => "rssCloud by SOAP",
    }
}

/// Returns the state of a subscription as a badge.
pub(super) fn state_badge(listed: &ListedSubscription, now: DateTime<Utc>) -> Markup {
    let state = listed.delivery.state(&listed.subscription, now);
    let (tone, word) = match (state, unread_feed(listed, now)) {
        (DeliveryState::Ok, Some(FeedState::New)) => (Tone::Neutral, "feed not fetched yet"),
        (DeliveryState::Ok, Some(FeedState::Gone)) => (Tone::Bad, "feed gone"),
        (DeliveryState::Ok, Some(_)) => (Tone::Warning, "feed failing"),
        (state, _) => described(state),
    };
    badge(tone, word)
}

/// Returns the state of the feed, if nothing of it could be read yet, so that nothing can be sent.
fn unread_feed(listed: &ListedSubscription, now: DateTime<Utc>) -> Option<FeedState> {
    let resource = &listed.resource;
    let is_empty = resource.head.0 == 0 && resource.body_version == 0;
    let is_fetched = resource.kind != ResourceKind::Collection;
    let state = FeedState::from_resource(resource, now);
    let is_unread = [FeedState::New, FeedState::Failing, FeedState::Gone].contains(&state);
    (is_fetched && is_empty && is_unread).then_some(state)
}

fn described(state: DeliveryState) -> (Tone, &'static str) {
    match state {
        DeliveryState::Ok => (Tone::Good, "up to date"),
        DeliveryState::Delivering => (Tone::Good, "delivering"),
        DeliveryState::Pending => (Tone::Neutral, "pending"),
        DeliveryState::Paused => (Tone::Neutral, "paused"),
        DeliveryState::Suspended => (Tone::Bad, "suspended"),
        DeliveryState::Failing => (Tone::Warning, "retrying"),
    }
}

/// What happens next with a subscription.
enum NextStep {
    /// Nothing, until it is resumed; `true`: its callback failed for a month.
    Resumption(bool),
    /// An attempt at a time.
    Attempt(DateTime<Utc>),
    /// An attempt with the next change.
    Change,
    /// An attempt with new entries.
    Entries,
    /// Nothing: the feed no longer exists.
    Nothing,
    /// The first fetch that may find entries.
    Fetch(DateTime<Utc>),
}

impl NextStep {
    fn from_listed(listed: &ListedSubscription, now: DateTime<Utc>) -> NextStep {
        let ListedSubscription { subscription, resource, delivery, .. } = listed;
        match (delivery.paused_at, delivery.next_attempt(now), unread_feed(listed, now)) {
            (Some(_), ..) => NextStep::Resumption(delivery.is_suspended),
            (None, Some(at), _) => NextStep::Attempt(at),
            (None, None, _) if delivery.lag(subscription) > 0 => NextStep::Change,
            (None, None, None) => NextStep::Entries,
            (None, None, Some(FeedState::Gone)) => NextStep::Nothing,
            (None, None, Some(_)) => NextStep::Fetch(resource.next_fetch),
        }
    }
}

/// Returns what happens next, in a sentence.
pub(super) fn next_step(listed: &ListedSubscription, now: DateTime<Utc>) -> Markup {
    html! {
        @match NextStep::from_listed(listed, now) {
            NextStep::Resumption(true) => {
                "Its callback failed for a month. Nothing is sent until it is resumed."
            }
            NextStep::Resumption(false) => "Nothing is sent until it is resumed.",
            NextStep::Attempt(at) if at <= now => "The next attempt is due.",
            NextStep::Attempt(at) => { "Next attempt " (relative_time(at, now)) "." }
            NextStep::Change => "Waits for the next change.",
            NextStep::Entries => "Waits for new entries.",
            NextStep::Nothing => "Its publisher says that the feed no longer exists.",
            NextStep::Fetch(at) => { "Next fetch " (relative_time(at, now)) "." }
        }
    }
}

/// Returns what happens next, in two or three words.
pub(super) fn next_in_short(listed: &ListedSubscription, now: DateTime<Utc>) -> Markup {
    html! {
        @match NextStep::from_listed(listed, now) {
            NextStep::Resumption(_) => "when resumed",
            NextStep::Attempt(at) if at <= now => "attempt due",
            NextStep::Attempt(at) => { "attempt " (relative_time(at, now)) }
            NextStep::Change => "with a change",
            NextStep::Entries => "with new entries",
            NextStep::Nothing => span.absent { "nothing" },
            NextStep::Fetch(at) => { "fetch " (relative_time(at, now)) }
        }
    }
}

/// Returns a status with its reason, if that is known.
pub(super) fn status_in_words(status: u16) -> String {
    StatusCode::from_u16(status).map_or_else(|_| status.to_string(), |known| known.to_string())
}

/// Returns what is wrong with a subscription whose callback fails: since when, and how it goes on.
pub(super) fn failure_note(listed: &ListedSubscription, now: DateTime<Utc>) -> Markup {
    let ListedSubscription { subscription, delivery, .. } = listed;
    let lag = delivery.lag(subscription).unsigned_abs();
    let last = delivery.last_attempt.as_ref().and_then(|last| last.response.status);
    let answer = last.map_or_else(
        || "The callback does not respond".to_owned(),
        |status| format!("The callback responds with {}", status_in_words(status)),
    );
    html! {
        @if subscription.failures > 0 {
            p.failure {
                (answer) ": " (counted(subscription.failures.into(), "failed attempt")) " in a row"
                @if let Some(since) = subscription.failing_since {
                    ", the first " (relative_time(since, now))
                }
                "."
                @if lag > 0 { " It is " (grouped(lag)) " behind." }
                " " (next_step(listed, now))
            }
        }
    }
}

/// Returns the name of a subscription in addresses of the console.
pub(super) fn to_path(id: SubscriptionId) -> String {
    id.to_string()
}

/// Reads the name of a subscription.
pub(super) fn from_path(name: &str) -> Option<SubscriptionId> {
    SubscriptionId::parse(name)
}
