//! What docs/delivery.md promises once nothing fails any more: everybody has everything within seconds,
//! although nothing new is published and nobody retries anything.
//!
//! What is published next would make a delivery due that was lost, and so would a retry. So this looks first
//! at what the nodes list as owed.

use std::collections::{HashMap, HashSet};
use std::time::Duration;

use http::StatusCode;
use tokio::time::{Instant, sleep};

use super::cast::{Answered, BEHIND_NETWORK, Cast};
use super::listing::Listed;
use super::lives::Life;
use super::stalls::Stalls;
use crate::support::until;

/// How long it may take until everybody has everything: until a claim of a node that was killed expires,
/// requests that are in progress reach their time limit, and what would have waited for them is claimed
/// again.
const WITHIN: Duration = Duration::from_secs(25);
/// Between two looks at what is owed.
const EVERY: Duration = Duration::from_millis(100);
/// How much earlier than it is received a notification may have been sent, on a machine that is not
/// stalled.
const ON_THE_WIRE: Duration = Duration::from_millis(100);

/// Everybody, after what failed has recovered.
pub(super) struct Calm<'a> {
    pub(super) cast: &'a Cast,
    pub(super) stalls: &'a Stalls,
    pub(super) lives: HashMap<String, &'a Life>,
}

impl Calm<'_> {
    /// Checks what is promised. Returns how long it took until everybody had what could be sent.
    pub(super) async fn comes(&self) -> Duration {
        let begun = Instant::now();
        self.wait("a_clock_that_is_set_delays_nothing", Listed::is_put_off).await;
        self.nothing_is_lost().await;
        let took = begun.elapsed();
        for listed in self.cast.list().await.iter().filter(|listed| listed.is_owed()) {
            self.what_was_being_sent_delays_nothing(listed);
        }
        self.retries_are_made_at_once().await;
        self.subscriptions_last_until_they_are_ended().await;
        took
    }

    async fn subscriptions_last_until_they_are_ended(&self) {
        let listed: HashSet<_> =
            self.cast.list().await.into_iter().map(|listed| listed.callback).collect();
        let lost = |(callback, life): &(&String, &&Life)| {
            life.is_subscribed() && !listed.contains(*callback)
        };
        if let Some((_, life)) = self.lives.iter().find(lost) {
            let trace = life.trace(&self.cast.callbacks.received(&life.path));
            panic!("a_subscription_lasts_until_it_is_ended: it is not listed\n{trace}");
        }
    }

    /// Retries what waits for it, which everybody accepts now.
    pub(super) async fn retries_are_made_at_once(&self) {
        for listed in self.cast.list().await.iter().filter(|listed| listed.is_owed()) {
            self.retry(listed).await;
        }
        self.wait("a_retry_is_made_at_once", Listed::is_owed).await;
    }

    /// Waits until everybody has everything but what waits for a retry.
    pub(super) async fn nothing_is_lost(&self) {
        self.wait("nothing_is_lost", |listed| listed.is_owed() && !listed.awaits_retry()).await;
    }

    /// Waits until this holds for no subscription.
    async fn wait(&self, promise: &str, holds: impl Fn(&Listed) -> bool) {
        let begun = Instant::now();
        loop {
            let listed = self.cast.list().await;
            let Some(first) = listed.iter().find(|listed| holds(listed)) else { return };
            let stalled = self.stalls.between(begun, Instant::now());
            assert!(
                begun.elapsed() < WITHIN + stalled,
                "{promise}: {} of {} wait in vain since {:?}, such as {first:?}\n{}",
                listed.iter().filter(|listed| holds(listed)).count(),
                listed.len(),
                begun.elapsed(),
                self.trace(first)
            );
            sleep(EVERY).await;
        }
    }

    fn what_was_being_sent_delays_nothing(&self, listed: &Listed) {
        // What is sent through a network that fails is not received.
        let Some(life) = self.lives.get(&listed.callback) else { return };
        if life.host == BEHIND_NETWORK {
            return;
        }
        let Some(change) = life.last_change() else { return };
        let received = self.cast.callbacks.received(&life.path);
        let is_sent = received.iter().any(|one| one.at + ON_THE_WIRE > change.answered);
        assert!(
            is_sent || self.cast.is_any_absent_since(change.begun),
            "what_was_being_sent_delays_nothing: nothing was sent after {:?}, but {listed:?}\n{}",
            change.verb,
            self.trace(listed)
        );
    }

    /// Makes a delivery due that waits for its retry.
    async fn retry(&self, listed: &Listed) {
        let form = [
            ("hub.mode", "retry"),
            ("hub.topic", listed.topic.as_str()),
            ("hub.callback", listed.callback.as_str()),
        ];
        let is_accepted = async || {
            let answered = self.cast.call(listed.account, 0, &form).await;
            let nothing_is_owed = Answered::With(StatusCode::UNPROCESSABLE_ENTITY);
            answered == Answered::With(StatusCode::NO_CONTENT) || answered == nothing_is_owed
        };
        until("a retry is accepted", is_accepted).await;
    }

    fn trace(&self, listed: &Listed) -> String {
        let life = self.lives.get(&listed.callback);
        life.map(|life| life.trace(&self.cast.callbacks.received(&life.path))).unwrap_or_default()
    }
}
