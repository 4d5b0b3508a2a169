//! What is known of one callback: what its owner asked for, and what it received.

use std::fmt::Write;

use tokio::time::Instant;

use super::callbacks::Received;
use crate::support::feeds::entry_ids;

/// What an owner asks a node to do with its subscription.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Verb {
    /// To create it.
    Subscribe,
    /// To renew it with the secret that it has.
    Renew,
    /// To renew it with a new secret; the previous one signs as well.
    Rotate,
    /// To renew it with a new secret, after the previous one was disclosed.
    Revoke,
    Pause,
    Resume,
    Unsubscribe,
    /// To send so many entries again.
    Replay(u8),
    Retry,
}

/// Something that was asked for and done.
#[derive(Clone, Copy, Debug)]
pub(super) struct Deed {
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
    pub(super) path: String,
    pub(super) deeds: Vec<Deed>,
    /// Since when it is not known what the subscription is like: a call had no answer.
    pub(super) unknown_since: Option<Instant>,
}

impl Life {
    /// The secret of this number.
    pub(super) fn secret(&self, number: usize) -> String {
        format!("secret {number} of {}", self.path)
    }

    /// The secret that a notification should be signed with now.
    pub(super) fn newest_secret(&self) -> usize {
        self.deeds.last().map_or(0, |deed| deed.secret)
    }

    pub(super) fn is_subscribed(&self) -> bool {
        self.deeds.last().is_some_and(|deed| deed.verb != Verb::Unsubscribe)
    }

    pub(super) fn is_paused(&self) -> bool {
        let ends = [Verb::Pause, Verb::Resume, Verb::Unsubscribe];
        let last = self.deeds.iter().rev().find(|deed| ends.contains(&deed.verb));
        last.is_some_and(|deed| deed.verb == Verb::Pause)
    }

    /// The last time that it was created, if it has not ended since.
    pub(super) fn current(&self) -> Option<&Deed> {
        let created = self.deeds.iter().rev().find(|deed| deed.verb == Verb::Subscribe);
        created.filter(|_| self.is_subscribed())
    }

    /// All that happened, by the time since the first call in milliseconds.
    pub(super) fn trace(&self, received: &[Received]) -> String {
        let Some(first) = self.deeds.first() else { return String::new() };
        let ms = |at: Instant| at.saturating_duration_since(first.begun).as_millis();
        let mut lines: Vec<(Instant, String)> = Vec::new();
        for Deed { verb, begun, answered, secret, published } in &self.deeds {
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
            let (at, ids) = (notification.at, entry_ids(&notification.text()));
            let replays = replays.map(|seq| format!(", replays {seq}")).unwrap_or_default();
            lines.push((at, format!("{:7}   received {seq}{replays}: {ids:?}", ms(at))));
        }
        lines.sort_by_key(|(at, _)| *at);
        let mut trace = format!("{} of feed {}:\n", self.path, self.feed);
        lines.iter().for_each(|(_, line)| writeln!(trace, "{line}").unwrap());
        if let Some(unknown) = self.unknown_since {
            writeln!(trace, "{:7} a call without an answer", ms(unknown)).unwrap();
        }
        trace
    }
}
