//! What docs/delivery.md promises to the owners of subscriptions: each promise is a function, whose name
//! is in the message if it is broken.

use std::collections::{HashMap, HashSet};
use std::time::Duration;

use tokio::time::{Instant, sleep};

use super::callbacks::Received;
use super::cast::{ALL_FEEDS, Cast};
use super::lives::{Call, Life, Verb};
use super::origins::name;
use super::signatures::{is_hub_signature, webhook_signature, webhook_signatures};
use super::stalls::Stalls;
use crate::support::PATIENCE;
use crate::support::feeds::entry_id;

/// How long after its answer a change may not hold yet.
const HOLDS_WITHIN: Duration = Duration::from_secs(1);
/// Between two looks at what was received.
const EVERY: Duration = Duration::from_millis(100);

/// What is known in the end.
pub(super) struct Promises<'a> {
    pub(super) cast: &'a Cast,
    pub(super) stalls: &'a Stalls,
    pub(super) lives: Vec<&'a Life>,
}

impl Promises<'_> {
    /// Waits until everybody has everything, and checks all promises. Returns how many notifications the
    /// owners received.
    pub(super) async fn are_kept(&self) -> usize {
        for life in &self.lives {
            self.nothing_is_lost(life).await;
        }
        self.are_not_broken()
    }

    /// Checks all promises about what was sent. Returns how many notifications the owners received.
    pub(super) fn are_not_broken(&self) -> usize {
        let received: HashMap<&str, Vec<Received>> = self
            .lives
            .iter()
            .map(|life| (life.path.as_str(), self.cast.callbacks.received(&life.path)))
            .collect();
        let first = self.first_received(&received);
        for life in &self.lives {
            let received = &received[life.path.as_str()];
            self.nothing_is_sent_after_a_pause_or_an_end(life, received);
            self.no_replaced_secret_signs(life, received);
            self.entries_are_in_order(life, received);
            self.no_entry_is_from_before_the_subscription(life, received, &first);
        }
        let followed = self.cast.callbacks.followed();
        assert!(followed.is_empty(), "redirects_are_not_followed: {followed:?}");
        received.values().map(Vec::len).sum()
    }

    async fn nothing_is_lost(&self, life: &Life) {
        let Some(created) = life.current().filter(|_| life.unknown_since.is_none()) else { return };
        let want = self.cast.origins.entries(life.feed, created.published);
        let deadline = Instant::now() + PATIENCE;
        loop {
            let received = self.cast.callbacks.received(&life.path);
            let since = received.iter().filter(|one| one.at >= created.begun);
            let got: HashSet<String> = since.flat_map(|one| one.ids.clone()).collect();
            let missing: Vec<_> = want.iter().filter(|id| !got.contains(*id)).collect();
            if missing.is_empty() {
                return;
            }
            let trace = || life.trace(&received);
            assert!(Instant::now() < deadline, "nothing_is_lost: {missing:?}\n{}", trace());
            sleep(EVERY).await;
        }
    }

    /// Whether something came so late after the answer that it must not have been sent any more.
    fn is_late(&self, at: Instant, answered: Instant) -> bool {
        at > answered + HOLDS_WITHIN + self.stalls.between(answered, at)
    }

    fn nothing_is_sent_after_a_pause_or_an_end(&self, life: &Life, received: &[Received]) {
        for (n, call) in life.calls.iter().enumerate() {
            let again = match call.verb {
                Verb::Pause => [Verb::Resume, Verb::Unsubscribe],
                Verb::Unsubscribe => [Verb::Subscribe, Verb::Subscribe],
                _ => continue,
            };
            let next = life.calls[n + 1..].iter().find(|call| again.contains(&call.verb));
            let until = next.map(|call| call.begun).or(life.unknown_since);
            let wrong = received.iter().find(|one| {
                until.is_none_or(|until| one.at < until) && self.is_late(one.at, call.answered)
            });
            let Some(wrong) = wrong else { continue };
            panic!(
                "nothing_is_sent_after_a_pause_or_an_end: {} ms after {:?} was answered\n{}",
                (wrong.at - call.answered).as_millis(),
                call.verb,
                life.trace(received)
            );
        }
    }

    fn no_replaced_secret_signs(&self, life: &Life, received: &[Received]) {
        for one in received.iter().filter(|one| self.is_known(life, one)) {
            let (newest, others) = self.secrets(life, one.at);
            let secret = |number: &usize| life.secret(*number);
            let is_signed = newest.iter().map(secret).any(|it| is_hub_signature(&one.request, &it));
            let allowed: Vec<_> = newest
                .iter()
                .chain(&others)
                .map(secret)
                .map(|secret| webhook_signature(&one.request, &secret))
                .collect();
            let signatures = webhook_signatures(&one.request);
            let are_allowed = signatures.iter().all(|it| allowed.iter().any(|want| want == it));
            assert!(
                is_signed && are_allowed && !signatures.is_empty(),
                "no_replaced_secret_signs: after {} ms, only {newest:?} and {others:?} may\n{}",
                (one.at - life.calls[0].begun).as_millis(),
                life.trace(received)
            );
        }
    }

    /// Whether it came before a call of which nothing is known.
    fn is_known(&self, life: &Life, one: &Received) -> bool {
        life.unknown_since.is_none_or(|since| one.at < since)
    }

    /// The numbers of the secrets that may sign as the newest at this moment, and of those that may sign
    /// beside it. While a change is being made, there are those from before it and those from after it.
    fn secrets(&self, life: &Life, at: Instant) -> (Vec<usize>, Vec<usize>) {
        let (mut newest, mut others) = (Vec::new(), Vec::new());
        let mut calls = life.calls.iter().peekable();
        while let Some(call) = calls.next_if(|call| call.begun <= at) {
            let holds = self.is_late(at, call.answered);
            let before = newest.last().copied();
            if holds {
                match call.verb {
                    Verb::Subscribe | Verb::Revoke => {
                        newest.clear();
                        others.clear();
                    }
                    Verb::Rotate => {
                        others = before.into_iter().collect();
                        newest.clear();
                    }
                    _ => {}
                }
            } else if call.verb == Verb::Rotate {
                others.extend(before);
            }
            if newest.last() != Some(&call.secret) {
                newest.push(call.secret);
            }
        }
        (newest, others)
    }

    fn entries_are_in_order(&self, life: &Life, received: &[Received]) {
        let created = life.calls.iter().filter(|call| call.verb == Verb::Subscribe);
        for created in created {
            let want: HashSet<String> =
                self.cast.origins.entries(life.feed, created.published).into_iter().collect();
            let end = life
                .calls
                .iter()
                .find(|call| call.verb == Verb::Unsubscribe && call.begun > created.begun);
            let end = end.map(|call| call.begun).or(life.unknown_since);
            let within = received
                .iter()
                .filter(|one| one.at >= created.begun && end.is_none_or(|end| one.at < end));
            let (mut seen, mut first) = (HashSet::new(), Vec::new());
            for id in within.flat_map(|one| one.ids.iter().rev().cloned()) {
                if want.contains(&id) && seen.insert(id.clone()) {
                    first.push(id);
                }
            }
            let all = self.cast.origins.entries(life.feed, created.published);
            assert_eq!(
                first,
                all[..first.len()],
                "entries_are_in_order, and none is left out:\n{}",
                life.trace(received)
            );
        }
    }

    fn no_entry_is_from_before_the_subscription(
        &self,
        life: &Life,
        received: &[Received],
        first: &HashMap<String, Instant>,
    ) {
        let mut ended: Option<&Call> = None;
        for call in &life.calls {
            match call.verb {
                Verb::Unsubscribe => ended = Some(call),
                Verb::Subscribe => {
                    let old = |id: &String| first.get(id).is_some_and(|at| *at < call.begun);
                    let later = life
                        .calls
                        .iter()
                        .find(|end| end.verb == Verb::Unsubscribe && end.begun > call.begun);
                    let wrong = received.iter().find(|one| {
                        one.at > call.begun
                            && later.is_none_or(|later| one.at < later.begun)
                            && ended.is_none_or(|ended| self.is_late(one.at, ended.answered))
                            && one.request.header("x-feedgate-replay-of").is_none()
                            && one.ids.iter().any(old)
                    });
                    assert!(
                        wrong.is_none(),
                        "no_entry_is_from_before_the_subscription: {:?}\n{}",
                        wrong.map(|one| &one.ids),
                        life.trace(received)
                    );
                }
                _ => {}
            }
        }
    }

    /// When somebody was sent each entry for the first time, or one after it.
    fn first_received(&self, received: &HashMap<&str, Vec<Received>>) -> HashMap<String, Instant> {
        let mut first: HashMap<String, Instant> = HashMap::new();
        for life in &self.lives {
            for one in &received[life.path.as_str()] {
                for id in &one.ids {
                    let at = first.entry(id.clone()).or_insert(one.at);
                    *at = (*at).min(one.at);
                }
            }
        }
        for feed in 0..ALL_FEEDS {
            let mut next: Option<Instant> = None;
            for n in (1..=self.cast.origins.count(feed)).rev() {
                let id = entry_id(&name(feed), n);
                let earliest = first.get(&id).copied().into_iter().chain(next).min();
                next = earliest;
                if let Some(at) = earliest {
                    first.insert(id, at);
                }
            }
        }
        first
    }
}
