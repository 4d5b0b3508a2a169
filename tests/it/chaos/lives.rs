//! What is known of one callback: which calls its owner made, and what it received.

use std::fmt::Write;

use tokio::time::Instant;

use super::callbacks::Received;

/// What a call does with a subscription.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Verb {
    /// It creates it.
    Subscribe,
    /// It renews it with the secret that it has.
    Renew,
    /// It renews it with a new secret; the previous one signs as well.
    Rotate,
    /// It renews it with a new secret, after the previous one was disclosed.
    Revoke,
    Pause,
    Resume,
    Unsubscribe,
    /// It sends so many entries again.
    Replay(u8),
    Retry,
}

/// A call that was answered with success.
#[derive(Clone, Copy, Debug)]
pub(super) struct Call {
    pub(super) verb: Verb,
    pub(super) begun: Instant,
    pub(super) answered: Instant,
    /// The number of the secret that signs from then on.
    pub(super) secret: usize,
    /// How many entries the feed had when it was answered.
    pub(super) published: usize,
}

/// A callback from its first subscription on.
#[derive(Clone, Debug)]
pub(super) struct Life {
    pub(super) feed: usize,
    /// The number of the host of the callback.
    pub(super) host: usize,
    pub(super) path: String,
    pub(super) calls: Vec<Call>,
    /// Since when it is not known what the subscription is like: a call had no answer, or the callback has
    /// answered with 410.
    pub(super) unknown_since: Option<Instant>,
}

impl Life {
    /// The secret of this number.
    pub(super) fn secret(&self, number: usize) -> String {
        format!("secret {number} of {}", self.path)
    }

    /// The secret that a notification should be signed with now.
    pub(super) fn newest_secret(&self) -> usize {
        self.calls.last().map_or(0, |call| call.secret)
    }

    pub(super) fn is_subscribed(&self) -> bool {
        self.calls.last().is_some_and(|call| call.verb != Verb::Unsubscribe)
    }

    /// Whether whatever is published is sent to it, as far as is known.
    pub(super) fn is_to_be_notified(&self) -> bool {
        self.is_subscribed() && !self.is_paused() && self.unknown_since.is_none()
    }

    pub(super) fn is_paused(&self) -> bool {
        let ends = [Verb::Pause, Verb::Resume, Verb::Unsubscribe];
        let last = self.calls.iter().rev().find(|call| ends.contains(&call.verb));
        last.is_some_and(|call| call.verb == Verb::Pause)
    }

    /// The call that can be made in its state: a subscription that is ended can be created, and one that is
    /// paused is resumed before anything of it is sent.
    pub(super) fn possible(&self, verb: Verb) -> Verb {
        if !self.is_subscribed() {
            Verb::Subscribe
        } else if self.is_paused() && matches!(verb, Verb::Pause | Verb::Replay(_) | Verb::Retry) {
            Verb::Resume
        } else {
            verb
        }
    }

    /// The last time that it was created, if it has not ended since.
    pub(super) fn current(&self) -> Option<&Call> {
        let created = self.calls.iter().rev().find(|call| call.verb == Verb::Subscribe);
        created.filter(|_| self.is_subscribed())
    }

    /// The last call after which what was being sent before may delay nothing.
    pub(super) fn last_change(&self) -> Option<&Call> {
        let is_change = |call: &&Call| !matches!(call.verb, Verb::Pause | Verb::Unsubscribe);
        self.calls.iter().rev().find(is_change)
    }

    /// All that happened, by the time since the first call in milliseconds.
    pub(super) fn trace(&self, received: &[Received]) -> String {
        let Some(first) = self.calls.first() else { return String::new() };
        let ms = |at: Instant| at.saturating_duration_since(first.begun).as_millis();
        let mut lines: Vec<(Instant, String)> = Vec::new();
        for Call { verb, begun, answered, secret, published } in &self.calls {
            let text = format!(
                "{:7} {verb:?} answered at {}: secret {secret}, {published} entries",
                ms(*begun),
                ms(*answered)
            );
            lines.push((*begun, text));
        }
        for notification in received {
            let seq = notification.request.header("x-feedgate-seq").unwrap_or("status");
            let replays = notification.request.header("x-feedgate-replay-of");
            let (at, ids) = (notification.at, &notification.ids);
            let replays = replays.map(|seq| format!(", replays {seq}")).unwrap_or_default();
            lines.push((at, format!("{:7}   received {seq}{replays}: {ids:?}", ms(at))));
        }
        lines.sort_by_key(|(at, _)| *at);
        let mut trace = format!("{} of feed {}:\n", self.path, self.feed);
        lines.iter().for_each(|(_, line)| writeln!(trace, "{line}").unwrap());
        if let Some(unknown) = self.unknown_since {
            writeln!(trace, "{:7} a call without an answer, or an answer with 410", ms(unknown))
                .unwrap();
        }
        trace
    }
}
