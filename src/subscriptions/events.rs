//! What is told of subscriptions and pings, in the words of the log page.

use chrono::{DateTime, Utc};

use super::{NotVerified, Refusal};
use feedgate_core::event::{Event, Kind, Outcome};
use feedgate_core::intent::{Intent, Mode};
use feedgate_core::ping::Ping;
use feedgate_core::ports::Came;
use feedgate_core::subscription::{Subscription, Wish};

/// What an account asks for comes by Superfeedr's API, whatever carries the notifications.
const SUPERFEEDR: &str = "superfeedr";

/// An event about what `wish` is about.
pub(super) fn about(kind: Kind, wish: &Wish, at: DateTime<Utc>) -> Event {
    let via = if wish.account.is_some() { SUPERFEEDR } else { wish.protocol.as_str() };
    let (topic, callback) = (wish.topic.as_str(), wish.callback.as_str());
    Event::new(kind, at).via(via).of(topic).to(callback).owned_by(wish.account)
}

fn kind(mode: Mode) -> Kind {
    match mode {
        Mode::Subscribe => Kind::Subscribe,
        Mode::Unsubscribe => Kind::Unsubscribe,
    }
}

/// It waits until the callback has been asked.
pub(super) fn pending(intent: &Intent, at: DateTime<Utc>) -> Event {
    let event = about(kind(intent.mode), &intent.wish, at);
    event.ended(Outcome::Pending, "", "the callback is asked next")
}

/// It was not carried out.
pub(super) fn refused(intent: &Intent, why: &Refusal, at: DateTime<Utc>) -> Event {
    not_done(about(kind(intent.mode), &intent.wish, at), why)
}

/// `event` with why it came to nothing.
pub(super) fn not_done(event: Event, why: &Refusal) -> Event {
    let words = match why {
        Refusal::Forbidden(_, err) => err.to_string(),
        Refusal::BadPart(err) => format!("{why}: {err}"),
        other => other.to_string(),
    };
    let outcome = match why {
        Refusal::NotVerified(_) | Refusal::Unreadable(_) => Outcome::Failed,
        _ => Outcome::Refused,
    };
    event.ended(outcome, why.code(), &words)
}

/// The callback was asked whether it agrees.
pub(super) fn verified(
    wish: &Wish,
    mode: &'static str,
    verified: &Result<(), NotVerified>,
    at: DateTime<Utc>,
) -> Event {
    judged(about(Kind::Verify, wish, at), mode, verified)
}

/// `event` with what the callback says to `mode`.
pub(super) fn judged(
    event: Event,
    mode: &'static str,
    verified: &Result<(), NotVerified>,
) -> Event {
    match verified {
        Ok(()) => event.saying(&format!("it agrees ({mode})")),
        Err(why) => {
            let event = event.ended(Outcome::Failed, why.code(), &format!("{mode}: {why}"));
            match why.excerpt() {
                Some(excerpt) => event.answered(excerpt),
                None => event,
            }
        }
    }
}

/// A subscription was kept.
pub(super) fn kept(wish: &Wish, held: &Subscription, now: DateTime<Utc>) -> Event {
    let kind = if held.created_at < now { Kind::Renew } else { Kind::Subscribe };
    lasting(about(kind, wish, now), wish)
}

/// An intent was settled.
pub(super) fn settled(intent: &Intent, came: Option<Came>, now: DateTime<Utc>) -> Event {
    let wish = &intent.wish;
    match came {
        Some(Came::Began) => lasting(about(Kind::Subscribe, wish, now), wish),
        Some(Came::Renewed) => lasting(about(Kind::Renew, wish, now), wish),
        Some(Came::Ended) => about(Kind::Unsubscribe, wish, now),
        Some(Came::Nothing) => {
            let why = "there is no such subscription";
            about(Kind::Unsubscribe, wish, now).ended(Outcome::Refused, "no_subscription", why)
        }
        None => refused(intent, &Refusal::Superseded, now),
    }
}

fn lasting(event: Event, wish: &Wish) -> Event {
    event.saying(&format!("for {} s", wish.lease.as_secs()))
}

/// A ping was taken.
pub(super) fn pinged(ping: &Ping, named: usize) -> Event {
    of_ping(ping).saying(match named {
        0 => "nobody is subscribed to it",
        _ => "it is read now",
    })
}

/// A ping that names nothing we could read.
pub(super) fn ping_refused(ping: &Ping, outcome: Outcome, code: &'static str, why: &str) -> Event {
    of_ping(ping).ended(outcome, code, why)
}

fn of_ping(ping: &Ping) -> Event {
    let url = ping.feed_url.as_ref().unwrap_or(&ping.url);
    Event::new(Kind::Ping, ping.at).via(ping.source.as_str()).of(url)
}
