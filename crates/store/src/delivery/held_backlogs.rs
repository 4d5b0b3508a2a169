//! The backlogs that this node has claimed: how far its passes are, and which subscriptions are in its hands.
//!
//! A claim belongs to a backlog and not to a subscription, so only the node knows which subscriptions it
//! delivers to. If it dies, its claims expire, and another node finds in the cursors what is still owed.
//!
//! Invariants:
//!
//! * A subscription is in hand from its claim to its result or release, and is not claimed again meanwhile.
//! * A claim ends when nothing of its backlog is in hand: at the end of a pass, or before it if nothing more
//!   was claimed in time. The next claim goes on where this one stopped.
//! * While something is in hand at the end of a pass, as of a callback that is slow, another pass may begin.
//! * A pass passes over what is in hand, which its result tells of when it is owed more. A result that is being
//!   stored meanwhile may have been stored before the change that the pass is for: then another pass follows.

mod held_backlog;

use std::sync::atomic::AtomicBool;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use chrono::{DateTime, TimeDelta, Utc};
use foldhash::{HashMap, HashSet};

use crate::delivery::backlogs::{BacklogId, EndedClaim};
use crate::delivery::portions::{Portion, ReadPortion};
use feedgate_core::claim::ClaimToken;
use feedgate_core::resource::ResourceId;
use feedgate_core::subscription::SubscriptionId;
use held_backlog::HeldBacklog;

/// The most backlogs at the end of their passes that are all looked at again for each claim.
const FEW: usize = 256;
/// How long some subscriptions of a backlog have been in hand after its pass came to its end, if it is looked
/// at again although there are many, and how often.
const LONG: TimeDelta = TimeDelta::milliseconds(250);

/// The claimed backlogs of one node.
#[derive(Debug, Default)]
pub(crate) struct HeldBacklogs {
    state: Mutex<State>,
    /// Whether the worker will be woken because resources were being written.
    pub(super) is_pausing: AtomicBool,
}

#[derive(Debug, Default)]
struct State {
    backlogs: HashMap<BacklogId, HeldBacklog>,
    /// The backlog of each subscription in hand.
    in_hand: HashMap<SubscriptionId, BacklogId>,
    /// Claims under which nothing is in hand any more.
    ended: Vec<EndedClaim>,
    /// The number of transactions that are storing results.
    storing: usize,
    /// The subscriptions whose results are being stored; true: a pass has passed over it meanwhile.
    being_stored: HashMap<SubscriptionId, bool>,
    /// When many backlogs were looked at again.
    looked_at: Option<DateTime<Utc>>,
}

/// Results that were stored.
#[derive(Clone, Copy, Debug)]
pub(crate) struct StoredResults<'a> {
    /// The subscriptions that are owed more.
    pub(crate) owed_more: &'a [SubscriptionId],
    /// The subscriptions that are tried again, and when.
    pub(crate) retries: &'a [(SubscriptionId, DateTime<Utc>)],
}

/// Portions that are being read. They can be read again once this is dropped.
#[derive(Debug)]
pub(crate) struct ContinuedPortions {
    pub(crate) portions: Vec<Portion>,
    held: Arc<HeldBacklogs>,
}

impl Drop for ContinuedPortions {
    fn drop(&mut self) {
        let mut state = self.held.state();
        self.portions.iter().for_each(|portion| state.end_reading(portion.id, portion.held));
    }
}

/// Backlogs of which another pass may begin. Their claims can end once this is dropped.
#[derive(Debug)]
pub(crate) struct BacklogsAtEnd {
    pub(crate) claims: Vec<(BacklogId, ClaimToken)>,
    held: Arc<HeldBacklogs>,
}

impl Drop for BacklogsAtEnd {
    fn drop(&mut self) {
        let mut state = self.held.state();
        self.claims.iter().for_each(|(id, token)| state.end_reading(*id, Some(*token)));
    }
}

impl HeldBacklogs {
    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Returns portions of the held backlogs at the hosts for which `most` returns more than 0, each with up
    /// to that many subscriptions, of at most `limit` in all.
    pub(crate) fn continue_passes(
        self: &Arc<Self>,
        limit: usize,
        now: DateTime<Utc>,
        most: impl Fn(&str) -> usize,
    ) -> ContinuedPortions {
        let (mut state, mut portions, mut left) = (self.state(), Vec::new(), limit);
        let State { backlogs, being_stored, .. } = &mut *state;
        for (id, backlog) in backlogs.iter_mut().filter(|(_, held)| held.until > now) {
            if backlog.is_being_read || !backlog.goes_on(now) {
                continue;
            }
            let most = most(&backlog.host).min(left);
            if most == 0 {
                continue;
            }
            left -= most;
            backlog.is_being_read = true;
            let resource = ResourceId(id.resource);
            for number in backlog.in_hand.keys().copied().filter(|number| *number > backlog.after) {
                let passed_over = being_stored.get_mut(&SubscriptionId { resource, number });
                passed_over.into_iter().for_each(|is_passed_over| *is_passed_over = true);
            }
            portions.push(Portion {
                id: *id,
                host: backlog.host.clone(),
                held: Some(backlog.token),
                after: backlog.after,
                most,
                without: backlog.in_hand.keys().chain(backlog.given_back.keys()).copied().collect(),
                next_retry: None,
            });
        }
        ContinuedPortions { portions, held: Arc::clone(self) }
    }

    /// Returns the backlogs whose passes have come to the end while some subscriptions are still in hand: all
    /// if they are few, otherwise once in a while those of which some have been in hand for long. Their claims
    /// do not end while they are looked at.
    pub(crate) fn at_end(self: &Arc<Self>, now: DateTime<Utc>) -> BacklogsAtEnd {
        let mut state = self.state();
        let at_end = state.backlogs.iter().filter_map(|(id, backlog)| {
            let since = backlog.at_end_since?;
            let is_left = !backlog.is_repeated && !backlog.is_being_read && backlog.until > now;
            is_left.then_some((since, (*id, backlog.token)))
        });
        let mut at_end: Vec<_> = at_end.collect();
        if at_end.len() > FEW {
            if state.looked_at.is_some_and(|at| now - at < LONG) {
                at_end.clear();
            } else {
                state.looked_at = Some(now);
                at_end.retain(|(since, _)| now - *since >= LONG);
            }
        }
        at_end.sort_unstable_by_key(|(_, (id, _))| *id);
        for (_, (id, _)) in &at_end {
            if let Some(backlog) = state.backlogs.get_mut(id) {
                backlog.is_being_read = true;
            }
        }
        let claims = at_end.into_iter().map(|(_, claim)| claim).collect();
        BacklogsAtEnd { claims, held: Arc::clone(self) }
    }

    /// Notes that other passes of these backlogs begin.
    pub(crate) fn begin_passes(&self, ids: impl IntoIterator<Item = BacklogId>) {
        let mut state = self.state();
        for id in ids {
            if let Some(backlog) = state.backlogs.get_mut(&id) {
                backlog.is_repeated = true;
            }
        }
    }

    /// Notes what was read under claims from `now` to `until`, or under earlier ones, and that it is in hand.
    pub(crate) fn add(&self, read: Vec<ReadPortion>, (now, until): (DateTime<Utc>, DateTime<Utc>)) {
        let mut state = self.state();
        for read in read {
            let ReadPortion { id, host, token, after, is_at_end, .. } = read;
            let ReadPortion { is_unreadable, next_retry, claimed, .. } = read;
            if state.backlogs.get(&id).is_some_and(|held| held.token != token) {
                state.forget(id); // that claim has expired
            }
            let new = || HeldBacklog::new(token, until, host);
            let backlog = state.backlogs.entry(id).or_insert_with(new);
            (backlog.after, backlog.at_end_since) = (after, is_at_end.then_some(now));
            backlog.unreadable_until = is_unreadable.then_some(until);
            backlog.note_retry(next_retry);
            backlog.in_hand.extend(claimed.iter().map(|number| (*number, false)));
            backlog.given_back.retain(|number, _| !backlog.in_hand.contains_key(number));
            let resource = ResourceId(id.resource);
            let ids = claimed.into_iter().map(|number| (SubscriptionId { resource, number }, id));
            state.in_hand.extend(ids);
            state.end_if_idle(id);
        }
    }

    /// Moves all times, because the clock was set.
    pub(crate) fn move_times(&self, by: TimeDelta) {
        let mut state = self.state();
        state.looked_at = None;
        for backlog in state.backlogs.values_mut() {
            backlog.move_times(by);
        }
        for ended in &mut state.ended {
            ended.move_times(by);
        }
    }

    /// Returns the claims that ended since the last call.
    pub(crate) fn take_ended(&self) -> Vec<EndedClaim> {
        std::mem::take(&mut self.state().ended)
    }

    /// Returns those of the claims that ended since the last call under which something was given back.
    pub(crate) fn take_given_back(&self) -> Vec<EndedClaim> {
        let mut state = self.state();
        let (given_back, others) =
            state.ended.drain(..).partition(|ended| ended.again_at.is_some());
        state.ended = others;
        given_back
    }

    /// Takes claims back whose end was not stored.
    pub(crate) fn put_back(&self, ended: Vec<EndedClaim>) {
        self.state().ended.extend(ended);
    }

    /// Returns the backlogs of subscriptions in hand.
    pub(crate) fn backlogs_of(
        &self,
        ids: impl Iterator<Item = SubscriptionId>,
    ) -> Vec<Option<BacklogId>> {
        let state = self.state();
        ids.map(|id| state.in_hand.get(&id).copied()).collect()
    }

    /// Returns the claims that ended since the last call, while the results of `claims` are stored, which end
    /// others.
    pub(crate) fn begin_storing(&self, claims: &[(SubscriptionId, ClaimToken)]) -> Vec<EndedClaim> {
        let mut state = self.state();
        state.storing += 1;
        state.being_stored.extend(claims.iter().map(|(id, _)| (*id, false)));
        std::mem::take(&mut state.ended)
    }

    /// Notes that the results of `claims` were stored; or that they were not, and claims have not ended.
    /// Subscriptions that are owed more, or may be, are claimed again in another pass. Returns whether others
    /// are storing results, and will end claims.
    pub(crate) fn end_storing(
        &self,
        claims: &[(SubscriptionId, ClaimToken)],
        stored: Result<StoredResults<'_>, Vec<EndedClaim>>,
    ) -> bool {
        let mut state = self.state();
        state.storing -= 1;
        let mut passed_over = Vec::new();
        for (id, _) in claims {
            passed_over.extend(state.being_stored.remove(id).filter(|it| *it).map(|_| *id));
        }
        match stored {
            Ok(StoredResults { owed_more, retries }) => {
                for (id, at) in retries {
                    if let Some(backlog) = state.backlog_of(*id) {
                        backlog.note_retry(Some(*at));
                    }
                }
                for id in owed_more.iter().chain(&passed_over) {
                    if let Some(backlog) = state.backlog_of(*id) {
                        backlog.is_repeated = true;
                    }
                }
                claims.iter().for_each(|(id, token)| state.take_out(*id, *token));
            }
            Err(ended) => state.ended.extend(ended),
        }
        state.storing > 0
    }

    /// Gives subscriptions back that were not sent anything. They are claimed again from `again_at` on.
    pub(crate) fn release(&self, claims: &[(SubscriptionId, ClaimToken)], again_at: DateTime<Utc>) {
        let mut state = self.state();
        for (id, token) in claims {
            if let Some(backlog) = state.backlog_of(*id).filter(|held| held.token == *token) {
                backlog.given_back.insert(id.number, again_at);
                state.take_out(*id, *token);
            }
        }
    }

    /// Makes what was given back due at `now`, whenever it was to be claimed again: another node goes on.
    pub(crate) fn end_given_back_pauses(&self, now: DateTime<Utc>) {
        for backlog in self.state().backlogs.values_mut() {
            backlog.given_back.values_mut().for_each(|at| *at = now.min(*at));
        }
    }

    /// Returns the claims that are held, in the order of their backlogs. What is in hand and neither among
    /// `known` now nor was at the last call is given back: the worker has lost it.
    pub(crate) fn claims(
        &self,
        known: &[(SubscriptionId, ClaimToken)],
        now: DateTime<Utc>,
    ) -> Vec<(BacklogId, ClaimToken)> {
        let known: HashSet<_> = known.iter().map(|(id, _)| *id).collect();
        let (mut state, mut lost) = (self.state(), Vec::new());
        for (id, backlog) in &mut state.backlogs {
            let resource = ResourceId(id.resource);
            for (number, was_unknown) in &mut backlog.in_hand {
                let id = SubscriptionId { resource, number: *number };
                let is_unknown = !known.contains(&id);
                if is_unknown && *was_unknown {
                    lost.push((id, backlog.token));
                }
                *was_unknown = is_unknown;
            }
        }
        drop(state);
        self.release(&lost, now);
        let state = self.state();
        let held = state.backlogs.iter().map(|(id, backlog)| (*id, backlog.token));
        let mut held: Vec<_> = held.collect();
        held.sort_unstable_by_key(|(id, _)| *id);
        held
    }

    /// Notes until when those of `claims` last that were `renewed`, and forgets the others. Returns which of
    /// `known` are still held.
    pub(crate) fn renewed(
        &self,
        claims: &[(BacklogId, ClaimToken)],
        (renewed, until): (&[BacklogId], DateTime<Utc>),
        known: &[(SubscriptionId, ClaimToken)],
    ) -> Vec<SubscriptionId> {
        let renewed: HashSet<_> = renewed.iter().collect();
        let mut state = self.state();
        for (id, token) in claims {
            match state.held_under(*id, Some(*token)) {
                Some(backlog) if renewed.contains(id) => backlog.until = until,
                Some(_) => state.forget(*id),
                None => {}
            }
        }
        let mut held = known.to_vec();
        held.retain(|(id, token)| state.backlog_of(*id).is_some_and(|held| held.token == *token));
        held.into_iter().map(|(id, _)| id).collect()
    }
}

impl State {
    fn held_under(&mut self, id: BacklogId, token: Option<ClaimToken>) -> Option<&mut HeldBacklog> {
        self.backlogs.get_mut(&id).filter(|held| Some(held.token) == token)
    }

    fn end_reading(&mut self, id: BacklogId, token: Option<ClaimToken>) {
        if let Some(backlog) = self.held_under(id, token) {
            backlog.is_being_read = false;
            self.end_if_idle(id);
        }
    }

    /// Returns the backlog of a subscription in hand.
    fn backlog_of(&mut self, id: SubscriptionId) -> Option<&mut HeldBacklog> {
        self.backlogs.get_mut(self.in_hand.get(&id)?)
    }

    /// Takes a subscription out of the hands of the node that was claimed under this token.
    fn take_out(&mut self, id: SubscriptionId, token: ClaimToken) {
        let Some(backlog_id) = self.in_hand.get(&id).copied() else { return };
        if let Some(backlog) = self.held_under(backlog_id, Some(token)) {
            backlog.in_hand.remove(&id.number);
            self.in_hand.remove(&id);
            self.end_if_idle(backlog_id);
        }
    }

    /// Ends the claim of a backlog of which nothing is in hand or being read.
    fn end_if_idle(&mut self, id: BacklogId) {
        let Some(backlog) = self.backlogs.get(&id) else { return };
        if backlog.is_being_read || !backlog.in_hand.is_empty() {
            return;
        }
        self.ended.push(backlog.end_claim(id));
        self.backlogs.remove(&id);
    }

    fn forget(&mut self, id: BacklogId) {
        if let Some(backlog) = self.backlogs.remove(&id) {
            let resource = ResourceId(id.resource);
            for number in backlog.in_hand.into_keys() {
                self.in_hand.remove(&SubscriptionId { resource, number });
            }
        }
    }
}

#[cfg(test)]
mod tests;
