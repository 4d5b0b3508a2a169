//! Owners of subscriptions, who change them at random while everything fails.

use std::time::Duration;

use http::StatusCode;
use tokio::time::{Instant, sleep};

use super::callbacks::Behaviour;
use super::cast::{Answered, Cast, FEEDS};
use super::counts::Counts;
use super::deeds::{Deed, Life, Verb};
use crate::support::random::Random;
use crate::support::until;

/// How many owners there are.
pub(super) const OWNERS: usize = 8;
/// The longest pause between two calls of an owner.
const LONGEST_PAUSE_MS: u64 = 600;
/// The pause after a call without an answer: the node may be out for a while.
const AFTER_UNKNOWN: Duration = Duration::from_millis(500);
/// How long an owner waits for a notification that it answers with 410 only after it has renewed.
const IN_FLIGHT: Duration = Duration::from_millis(800);

/// The owner of one subscription at a time: whoever does not know what became of a call leaves the
/// callback as it is, and begins with another one.
pub(super) struct Owner<'a> {
    cast: &'a Cast,
    random: Random,
    number: usize,
    lives: Vec<Life>,
    counts: Counts,
}

impl<'a> Owner<'a> {
    pub(super) fn new(cast: &'a Cast, number: usize, random: Random) -> Owner<'a> {
        let mut owner =
            Owner { cast, random, number, lives: Vec::new(), counts: Counts::default() };
        owner.begin();
        owner
    }

    /// Changes the subscription until then. Returns the owner.
    pub(super) async fn act_until(mut self, end: Instant) -> Owner<'a> {
        while Instant::now() < end {
            sleep(Duration::from_millis(self.random.below(LONGEST_PAUSE_MS))).await;
            if self.random.below(3) == 0 {
                self.change_behaviour().await;
            }
            let verb = self.choose();
            if self.life().is_subscribed() && self.random.below(4) == 0 {
                self.end_in_flight(verb).await;
            } else {
                self.call(verb).await;
            }
        }
        self
    }

    /// Resumes what is paused, and answers well, now that nothing fails any more. Subscriptions of which
    /// nothing is known are ended. Returns what is known of all of them, and how often each thing happened.
    pub(super) async fn end(mut self) -> (Vec<Life>, Counts) {
        for life in &self.lives {
            self.cast.callbacks.set(&life.path, Behaviour::Accepting);
        }
        while self.life().is_paused() {
            self.call(Verb::Resume).await;
        }
        for life in self.lives.iter().filter(|life| life.unknown_since.is_some()) {
            let form = form(self.cast, life, Verb::Unsubscribe, 0);
            let ended = async || matches!(self.ask(0, &form).await, Answered::With(_));
            until("a subscription is ended", ended).await;
        }
        (self.lives, self.counts)
    }

    fn life(&self) -> &Life {
        self.lives.last().unwrap()
    }

    /// Begins with a new callback.
    fn begin(&mut self) {
        let path = format!("/owner/{}/{}", self.number, self.lives.len());
        let feed = self.number % FEEDS;
        self.lives.push(Life { feed, path, deeds: Vec::new(), unknown_since: None });
    }

    /// Answers in another way from now on. Whoever answers well again asks for what has failed.
    async fn change_behaviour(&mut self) {
        const BAD: [Behaviour; 7] = [
            Behaviour::Hanging,
            Behaviour::Dripping,
            Behaviour::Late(Duration::from_millis(700)),
            Behaviour::Late(Duration::from_secs(9)),
            Behaviour::Redirecting,
            Behaviour::Failing(503),
            Behaviour::Failing(500),
        ];
        let is_bad = self.random.below(3) == 0;
        let behaviour = if is_bad { *self.random.one_of(&BAD) } else { Behaviour::Accepting };
        self.counts.count(format!("{behaviour:?} callbacks"));
        self.cast.callbacks.set(&self.life().path, behaviour);
        if !is_bad && self.life().is_subscribed() {
            self.call(Verb::Retry).await;
        }
    }

    fn choose(&mut self) -> Verb {
        let count = 1 + self.random.below(5) as u8;
        let life = self.lives.last().unwrap();
        if !life.is_subscribed() {
            Verb::Subscribe
        } else if life.is_paused() {
            use Verb::{Renew, Resume, Revoke, Rotate, Unsubscribe};
            *self.random.one_of(&[Resume, Resume, Resume, Renew, Rotate, Revoke, Unsubscribe])
        } else {
            use Verb::{Pause, Renew, Replay, Retry, Revoke, Rotate, Unsubscribe};
            let replay = Replay(count);
            *self.random.one_of(&[
                Pause,
                Pause,
                Renew,
                Rotate,
                Revoke,
                replay,
                Retry,
                Retry,
                Retry,
                Unsubscribe,
            ])
        }
    }

    /// Lets a notification wait for its answer, changes the subscription, and answers with 410 then: that
    /// ends only what there was before the change.
    async fn end_in_flight(&mut self, verb: Verb) {
        let path = self.life().path.clone();
        let Some(held) = self.cast.callbacks.hold(&path, IN_FLIGHT).await else { return };
        let is_renewed = match verb {
            Verb::Unsubscribe => self.call(verb).await && self.call(Verb::Subscribe).await,
            Verb::Renew | Verb::Rotate | Verb::Revoke => self.call(verb).await,
            _ => self.call(Verb::Renew).await,
        };
        if is_renewed && self.life().path == path {
            self.counts.count("answers with 410 to what was sent before a renewal");
            held.answer("410 Gone");
        } else {
            held.answer("200 OK");
        }
    }

    /// Returns whether a change was made. A call that reaches nobody is repeated.
    async fn call(&mut self, verb: Verb) -> bool {
        let secret = self.life().newest_secret();
        let is_new = match verb {
            Verb::Rotate | Verb::Revoke => true,
            Verb::Subscribe => self.random.below(2) == 0,
            _ => false,
        };
        let secret = if is_new { secret + 1 } else { secret };
        let form = form(self.cast, self.life(), verb, secret);
        let first = self.random.below(self.cast.nodes.len() as u64) as usize;
        let begun = Instant::now();
        let answered = self.ask(first, &form).await;
        let (now, published) = (Instant::now(), self.cast.count(self.life().feed));
        match answered {
            Answered::With(StatusCode::NO_CONTENT) => {
                let deed = Deed { verb, begun, answered: now, secret, published };
                self.lives.last_mut().unwrap().deeds.push(deed);
                let name = format!("{verb:?}");
                self.counts.count(format!("{} answered", name.split('(').next().unwrap()));
                true
            }
            // There was nothing to retry.
            Answered::With(StatusCode::UNPROCESSABLE_ENTITY) if verb == Verb::Retry => true,
            Answered::With(status) => {
                let trace = self.life().trace(&self.cast.callbacks.received(&self.life().path));
                panic!("a_subscription_lasts_until_it_is_ended: {verb:?}: {status}\n{trace}")
            }
            Answered::NotReached => false,
            Answered::Unknown => {
                self.counts.count("calls of owners without an answer");
                self.lives.last_mut().unwrap().unknown_since = Some(begun);
                self.begin();
                sleep(AFTER_UNKNOWN).await;
                false
            }
        }
    }

    /// Asks the nodes in turn, from this one on, until one is reached.
    async fn ask(&self, first: usize, form: &[(&'static str, String)]) -> Answered {
        let form: Vec<_> = form.iter().map(|(name, value)| (*name, value.as_str())).collect();
        for node in 0..self.cast.nodes.len() {
            let answered = self.cast.ask(first + node, &form).await;
            if answered != Answered::NotReached {
                return answered;
            }
        }
        Answered::NotReached
    }
}

/// The parameters of a request.
fn form(cast: &Cast, life: &Life, verb: Verb, secret: usize) -> Vec<(&'static str, String)> {
    let mode = match verb {
        Verb::Subscribe | Verb::Renew | Verb::Rotate | Verb::Revoke => "subscribe",
        Verb::Pause => "pause",
        Verb::Resume => "resume",
        Verb::Unsubscribe => "unsubscribe",
        Verb::Replay(_) => "replay",
        Verb::Retry => "retry",
    };
    let mut form = vec![
        ("hub.mode", mode.to_owned()),
        ("hub.topic", cast.topic(life.feed)),
        ("hub.callback", cast.callbacks.url(&life.path)),
    ];
    if let Verb::Replay(count) = verb {
        form.push(("count", count.to_string()));
    }
    if mode == "subscribe" {
        form.push(("format", "json".to_owned()));
        form.push(("hub.secret", life.secret(secret)));
        if verb == Verb::Revoke {
            form.push(("secret_overlap_seconds", "0".to_owned()));
        }
        if secret.is_multiple_of(2) {
            form.push(("hub.verify", "sync".to_owned()));
        }
    }
    form
}
