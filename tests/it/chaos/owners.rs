//! Owners of subscriptions, who change them at random while everything fails.

use std::time::Duration;

use http::StatusCode;
use tokio::time::{Instant, sleep};

use super::callbacks::Behaviour;
use super::cast::{Answered, Cast};
use super::counts::Counts;
use super::lives::{Call, Life, Verb};
use super::requests::parameters;
use crate::support::random::Random;
use crate::support::until;

/// The longest pause between two calls of an owner.
const LONGEST_PAUSE_MS: u64 = 600;
/// The pause after a call without an answer: the node may be out for a while.
const AFTER_UNKNOWN: Duration = Duration::from_millis(500);
/// How long an owner waits for a notification that it answers with 410 only after it has renewed.
const IN_FLIGHT: Duration = Duration::from_millis(1_200);
/// How long such a notification has been there when the subscription is changed: it cannot be taken for one
/// that was sent after the change.
const LONG_BEFORE: Duration = Duration::from_millis(200);
/// How callbacks answer badly. Late ones are accepted, or come after the time limit.
const BAD: [Behaviour; 9] = [
    Behaviour::Hanging,
    Behaviour::Hanging,
    Behaviour::Dripping,
    Behaviour::Late(Duration::from_millis(700)),
    Behaviour::Late(Duration::from_millis(2_000)),
    Behaviour::Late(Duration::from_secs(9)),
    Behaviour::Redirecting,
    Behaviour::Failing(503),
    Behaviour::Failing(500),
];

/// Where the subscriptions of an owner are.
#[derive(Clone, Copy, Debug)]
pub(super) struct Place {
    pub(super) account: usize,
    /// The number of the host of the callbacks.
    pub(super) host: usize,
    /// The feeds, in turn.
    pub(super) feeds: &'static [usize],
    /// How many subscriptions there are at a time.
    pub(super) count: usize,
}

/// The owner of a few subscriptions at a time: whoever does not know what became of a call leaves the
/// callback as it is, and begins with another one.
pub(super) struct Owner<'a> {
    cast: &'a Cast,
    random: Random,
    number: usize,
    place: Place,
    lives: Vec<Life>,
    /// The lives that are not abandoned, by the feed that they take their turn in.
    current: Vec<usize>,
    pub(super) counts: Counts,
}

impl<'a> Owner<'a> {
    pub(super) fn new(cast: &'a Cast, number: usize, place: Place, random: Random) -> Owner<'a> {
        let counts = Counts::default();
        let (lives, current) = (Vec::new(), Vec::new());
        let mut owner = Owner { cast, random, number, place, lives, current, counts };
        for slot in 0..place.count {
            owner.current.push(slot);
            owner.begin(slot);
        }
        owner
    }

    /// Subscribes everything, before anything fails. On a busy machine even then a call or a
    /// verification may take longer than this run allows it.
    pub(super) async fn subscribe_all(&mut self) {
        for slot in 0..self.current.len() {
            while !self.life(slot).is_subscribed() {
                self.call(slot, Verb::Subscribe).await;
            }
        }
    }

    /// Changes subscriptions, and how callbacks answer, until then.
    pub(super) async fn act_until(&mut self, end: Instant) {
        while Instant::now() < end {
            sleep(Duration::from_millis(self.random.below(LONGEST_PAUSE_MS))).await;
            let slot = self.random.below(self.current.len() as u64) as usize;
            match self.random.below(12) {
                0..=2 => self.change_behaviour(slot).await,
                3 => self.change_all_behaviours(),
                4 => self.change_all().await,
                5 => self.end_by_410(slot),
                6..=7 if self.life(slot).is_subscribed() => self.end_in_flight(slot).await,
                _ => {
                    let verb = self.choose();
                    self.call(slot, verb).await;
                }
            }
        }
    }

    /// Changes how callbacks answer, and nothing else, until then.
    pub(super) async fn misbehave_until(&mut self, end: Instant) {
        while Instant::now() < end {
            sleep(Duration::from_millis(self.random.below(LONGEST_PAUSE_MS))).await;
            let slot = self.random.below(self.current.len() as u64) as usize;
            self.change_behaviour(slot).await;
        }
    }

    /// Accepts everything from now on, and ends the subscriptions of which nothing is known.
    pub(super) async fn calm_down(&mut self) {
        for life in &self.lives {
            self.cast.callbacks.set(&life.path, Behaviour::Accepting);
        }
        for life in self.lives.iter().filter(|life| life.unknown_since.is_some()) {
            let form = parameters(self.cast, life, Verb::Unsubscribe, 0);
            let ended = async || matches!(self.send(0, &form).await, Answered::With(_));
            until("a subscription is ended", ended).await;
        }
    }

    /// Resumes what is paused, now that nothing fails any more.
    pub(super) async fn resume_all(&mut self) {
        for slot in 0..self.current.len() {
            while self.life(slot).is_paused() {
                self.call(slot, Verb::Resume).await;
            }
        }
    }

    /// All subscriptions that it ever had.
    pub(super) fn lives(&self) -> &[Life] {
        &self.lives
    }

    fn life(&self, slot: usize) -> &Life {
        &self.lives[self.current[slot]]
    }

    /// Begins with a new callback in the place of another one.
    fn begin(&mut self, slot: usize) {
        let Place { host, feeds, .. } = self.place;
        let (number, feed) = (self.lives.len(), feeds[slot % feeds.len()]);
        let path = format!("/owner/{}/{number}", self.number);
        self.current[slot] = number;
        let calls = Vec::new();
        self.lives.push(Life { feed, host, path, calls, unknown_since: None });
    }

    /// Lets a callback answer in another way from now on. Whoever answers well again retries what has
    /// failed.
    async fn change_behaviour(&mut self, slot: usize) {
        let is_bad = self.random.below(2) == 0;
        let behaviour = if is_bad { *self.random.one_of(&BAD) } else { Behaviour::Accepting };
        self.set_behaviour(slot, behaviour);
        if !is_bad && self.life(slot).is_subscribed() && !self.life(slot).is_paused() {
            self.call(slot, Verb::Retry).await;
        }
    }

    /// Lets all callbacks answer late or not at all for a while: so many requests are open then that others
    /// wait for them.
    fn change_all_behaviours(&mut self) {
        const LATE: [Behaviour; 4] = [
            Behaviour::Hanging,
            Behaviour::Late(Duration::from_millis(700)),
            Behaviour::Late(Duration::from_millis(2_000)),
            Behaviour::Accepting,
        ];
        let behaviour = *self.random.one_of(&LATE);
        (0..self.current.len()).for_each(|slot| self.set_behaviour(slot, behaviour));
    }

    fn set_behaviour(&mut self, slot: usize, behaviour: Behaviour) {
        self.counts.count(format!("{behaviour:?} callbacks"));
        self.cast.callbacks.set(&self.life(slot).path, behaviour);
    }

    /// Lets a callback answer the next notification with 410, and leaves it.
    fn end_by_410(&mut self, slot: usize) {
        self.set_behaviour(slot, Behaviour::Failing(410));
        self.lives[self.current[slot]].unknown_since = Some(Instant::now());
        self.begin(slot);
    }

    fn choose(&mut self) -> Verb {
        use Verb::{Pause, Renew, Replay, Retry, Revoke, Rotate, Unsubscribe};
        let replay = Replay(1 + self.random.below(5) as u8);
        *self.random.one_of(&[
            Pause,
            Pause,
            Pause,
            Renew,
            Rotate,
            Revoke,
            replay,
            Retry,
            Retry,
            Unsubscribe,
        ])
    }

    /// Changes all subscriptions in the same way, one after the other.
    async fn change_all(&mut self) {
        use Verb::{Pause, Renew, Retry, Revoke, Unsubscribe};
        let verb = *self.random.one_of(&[Pause, Pause, Revoke, Unsubscribe, Renew, Retry]);
        self.change_all_by(verb).await;
    }

    /// Changes all subscriptions by this call, one after the other.
    pub(super) async fn change_all_by(&mut self, verb: Verb) {
        for slot in 0..self.current.len() {
            self.call(slot, verb).await;
        }
    }

    /// Changes some subscriptions while notifications of them wait for their answers.
    pub(super) async fn change_in_flight(&mut self) {
        for slot in 0..self.current.len() {
            if self.life(slot).is_to_be_notified() {
                self.end_in_flight(slot).await;
            }
        }
    }

    /// Lets a notification wait for its answer, changes the subscription, and answers with 410 or 500 then:
    /// that ends only what there was before the change, and delays nothing.
    async fn end_in_flight(&mut self, slot: usize) {
        let verb = self.choose();
        let path = self.life(slot).path.clone();
        let Some(held) = self.cast.callbacks.hold(&path, IN_FLIGHT).await else { return };
        sleep(LONG_BEFORE).await;
        let is_renewed = match verb {
            Verb::Unsubscribe => {
                self.call(slot, verb).await && self.call(slot, Verb::Subscribe).await
            }
            Verb::Renew | Verb::Rotate | Verb::Revoke => self.call(slot, verb).await,
            _ => self.call(slot, Verb::Renew).await,
        };
        if is_renewed && self.life(slot).path == path {
            let status = *self.random.one_of(&["410 Gone", "500 No"]);
            self.counts.count(format!("answers with {status} to what was sent before a renewal"));
            held.answer(status);
        } else {
            held.answer("200 OK");
        }
    }

    /// Returns whether a change was made. A call that reaches nobody is repeated.
    async fn call(&mut self, slot: usize, verb: Verb) -> bool {
        let verb = self.life(slot).possible(verb);
        let secret = self.life(slot).newest_secret();
        let is_new = match verb {
            Verb::Rotate | Verb::Revoke => true,
            Verb::Subscribe => self.random.below(2) == 0,
            _ => false,
        };
        let secret = if is_new { secret + 1 } else { secret };
        let form = parameters(self.cast, self.life(slot), verb, secret);
        let first = self.random.below(self.cast.nodes.len() as u64) as usize;
        let begun = Instant::now();
        let answered = self.send(first, &form).await;
        let (now, published) = (Instant::now(), self.cast.origins.count(self.life(slot).feed));
        let number = self.current[slot];
        match answered {
            Answered::With(StatusCode::NO_CONTENT) => {
                let call = Call { verb, begun, answered: now, secret, published };
                self.lives[number].calls.push(call);
                let name = format!("{verb:?}");
                self.counts.count(format!("{} answered", name.split('(').next().unwrap()));
                true
            }
            // A worker verifies it too: the claim of the request was lost while the database was stopped.
            Answered::With(StatusCode::ACCEPTED) if verb != Verb::Subscribe => {
                self.unknown(number, slot, begun).await
            }
            // There was nothing to retry.
            Answered::With(StatusCode::UNPROCESSABLE_ENTITY) if verb == Verb::Retry => true,
            Answered::With(status)
                if verb != Verb::Subscribe && !self.cast.is_any_absent_since(begun) =>
            {
                let life = self.life(slot);
                let trace = life.trace(&self.cast.callbacks.received(&life.path));
                panic!("a_subscription_lasts_until_it_is_ended: {verb:?}: {status}\n{trace}")
            }
            Answered::NotReached => false,
            // Whether it was made or not, the subscription is the same: who changes nothing stays subscribed.
            Answered::Unknown | Answered::With(_) if verb == Verb::Retry => true,
            // A verification may have failed because the node was suspended.
            Answered::Unknown | Answered::With(_) => self.unknown(number, slot, begun).await,
        }
    }

    /// Begins another life, because nobody knows whether the last change was made. Returns that it was not.
    async fn unknown(&mut self, number: usize, slot: usize, begun: Instant) -> bool {
        self.counts.count("calls of owners without an answer");
        self.lives[number].unknown_since = Some(begun);
        self.begin(slot);
        sleep(AFTER_UNKNOWN).await;
        false
    }

    /// Calls the nodes in turn, from this one on, until one is reached.
    async fn send(&self, first: usize, form: &[(&'static str, String)]) -> Answered {
        let form: Vec<_> = form.iter().map(|(name, value)| (*name, value.as_str())).collect();
        for node in 0..self.cast.nodes.len() {
            let answered = self.cast.call(self.place.account, first + node, &form).await;
            if answered != Answered::NotReached {
                return answered;
            }
        }
        Answered::NotReached
    }
}
