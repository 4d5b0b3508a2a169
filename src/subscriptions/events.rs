//! Events of subscriptions and pings, in the words of the event log.

use chrono::{DateTime, Utc};

use super::{NotFollowed, NotValidated, NotVerified, SubscriptionRefusal};
use feedgate_core::event::{Event, EventKind, EventOutcome};
use feedgate_core::intent::{Intent, IntentMode};
use feedgate_core::ping::{Ping, PingSource};
use feedgate_core::store::EventArrival;
use feedgate_core::subscription::{Subscription, SubscriptionRequest};

/// The interface of requests with an account, whatever protocol their notifications use.
const SUPERFEEDR: &str = "superfeedr";

/// Creates an event about the subscription of `request`.
pub(super) fn about(kind: EventKind, request: &SubscriptionRequest, at: DateTime<Utc>) -> Event {
    let via = if request.account.is_some() { SUPERFEEDR } else { request.protocol.as_str() };
    let event = Event::new(kind, at).via(via).about_topic(&request.topic);
    event.to(request.callback.as_str()).owned_by(request.account)
}

fn kind(mode: IntentMode) -> EventKind {
    match mode {
        IntentMode::Subscribe => EventKind::Subscribe,
        IntentMode::Unsubscribe => EventKind::Unsubscribe,
    }
}

/// Creates the event of an intent that waits for the verification of its callback.
pub(super) fn pending(intent: &Intent, at: DateTime<Utc>) -> Event {
    let event = about(kind(intent.mode), &intent.request, at);
    event.ended(EventOutcome::Pending, "", "verification queued")
}

/// Creates the event of a refused intent.
pub(super) fn refused(intent: &Intent, why: &SubscriptionRefusal, at: DateTime<Utc>) -> Event {
    not_done(about(kind(intent.mode), &intent.request, at), why)
}

/// Returns `event` with the reason why the request was not carried out.
pub(super) fn not_done(event: Event, why: &SubscriptionRefusal) -> Event {
    let words = match why {
        SubscriptionRefusal::Forbidden(_, err) => err.to_string(),
        SubscriptionRefusal::BadPart(err) => format!("{why}: {err}"),
        other => other.to_string(),
    };
    let outcome = match why {
        SubscriptionRefusal::NotVerified(_)
        | SubscriptionRefusal::Unreadable(_)
        | SubscriptionRefusal::NotFollowed(NotFollowed::Unread(_)) => EventOutcome::Failed,
        _ => EventOutcome::Refused,
    };
    event.ended(outcome, why.code(), &words)
}

/// Creates the event of a verification of a callback.
pub(super) fn verified(
    request: &SubscriptionRequest,
    mode: &'static str,
    verified: &Result<(), NotVerified>,
    at: DateTime<Utc>,
) -> Event {
    with_verification(about(EventKind::Verify, request, at), mode, verified)
}

/// Returns `event` with the result of a verification for `mode`.
pub(super) fn with_verification(
    event: Event,
    mode: &'static str,
    verified: &Result<(), NotVerified>,
) -> Event {
    match verified {
        Ok(()) => event.saying(&format!("callback verified ({mode})")),
        Err(why) => {
            let event = event.ended(EventOutcome::Failed, why.code(), &format!("{mode}: {why}"));
            let event = Event { private_detail: why.private_detail(), ..event };
            match why.excerpt() {
                Some(excerpt) => event.answered(excerpt),
                None => event,
            }
        }
    }
}

/// Creates the event of a subscription that the publisher of its topic has not allowed.
pub(super) fn not_validated(intent: &Intent, why: &NotValidated, at: DateTime<Utc>) -> Event {
    let outcome = match why.is_transient() {
        true => EventOutcome::Failed,
        false => EventOutcome::Refused,
    };
    about(EventKind::Subscribe, &intent.request, at).ended(outcome, why.code(), &why.to_string())
}

/// Creates the event of a stored subscription.
pub(super) fn kept(
    request: &SubscriptionRequest,
    held: &Subscription,
    now: DateTime<Utc>,
) -> Event {
    let kind = if held.created_at < now { EventKind::Renew } else { EventKind::Subscribe };
    lasting(about(kind, request, now), request)
}

/// Creates the event of an intent that was carried out.
pub(super) fn settled(intent: &Intent, came: Option<EventArrival>, now: DateTime<Utc>) -> Event {
    let request = &intent.request;
    match came {
        Some(EventArrival::Began) => lasting(about(EventKind::Subscribe, request, now), request),
        Some(EventArrival::Renewed) => lasting(about(EventKind::Renew, request, now), request),
        Some(EventArrival::Ended) => about(EventKind::Unsubscribe, request, now),
        Some(EventArrival::Nothing) => {
            let why = "there is no such subscription";
            about(EventKind::Unsubscribe, request, now).ended(
                EventOutcome::Refused,
                "no_subscription",
                why,
            )
        }
        None => refused(intent, &SubscriptionRefusal::Superseded, now),
    }
}

fn lasting(event: Event, request: &SubscriptionRequest) -> Event {
    event.saying(&describe_lease(request.lease.as_secs()))
}

/// Creates the event of an accepted ping, which names so many resources that its sender may know. Readers may know
/// others, so the event gives no number.
pub(super) fn pinged(ping: &Ping, named: usize) -> Event {
    of_ping(ping).saying(match named {
        0 => "ping received",
        _ => "fetch started",
    })
}

/// Creates the event of content that a publisher sent.
pub(super) fn content_published(ping: &Ping, new: usize) -> Event {
    of_ping(ping).saying(&format!("content received, {new} new"))
}

/// Creates the event of a ping that names no usable resource, or whose content is not used.
pub(super) fn ping_refused(
    ping: &Ping,
    outcome: EventOutcome,
    code: &'static str,
    why: &str,
) -> Event {
    of_ping(ping).ended(outcome, code, why)
}

fn of_ping(ping: &Ping) -> Event {
    let url = ping.feed_url.as_ref().unwrap_or(&ping.url);
    let event = Event::new(EventKind::Ping, ping.at).via(ping.source.as_str()).about_feed(url);
    Event { is_unlisted: ping.source == PingSource::Console, ..event }
}

/// Returns the length of a lease as a clause for people.
fn describe_lease(seconds: u64) -> String {
    let (count, unit) = match seconds {
        172_800.. => (seconds / 86_400, "days"),
        7_200.. => (seconds / 3_600, "hours"),
        _ => (seconds, "seconds"),
    };
    format!("with a lease of {count} {unit}")
}
