//! What a node has counted since it last stored it.

use std::borrow::Borrow;
use std::collections::BTreeMap;
use std::time::Duration;

use super::{DeliveryClass, PollClass, TrafficCounts};
use crate::account::AccountId;
use crate::resource_id::ResourceId;

/// The most feeds, the most hosts and the most accounts with counts of their own: some megabytes of memory, and as
/// many rows in a minute. What is beyond is in the totals only.
const MOST_SUBJECTS: usize = 4_096;

/// What a node has counted since it last stored it: of the gateway, and of feeds, hosts of callbacks and accounts.
#[derive(Clone, Debug, Default)]
pub struct TrafficBatch {
    /// Everything.
    pub total: TrafficCounts,
    /// By feed.
    pub feeds: SubjectCounts<ResourceId>,
    /// By the host and port of the callback.
    pub hosts: SubjectCounts<String>,
    /// By the account of the subscription.
    pub accounts: SubjectCounts<AccountId>,
}

/// An attempt to deliver that ended.
#[derive(Clone, Copy, Debug)]
pub struct CountedDelivery<'d> {
    /// The feed.
    pub feed: ResourceId,
    /// The host and port of the callback.
    pub host: &'d str,
    /// The account of the subscription.
    pub account: Option<AccountId>,
    /// How it ended.
    pub class: DeliveryClass,
    /// How long the oldest entry had waited, if it was accepted and had not been sent before.
    pub delay: Option<Duration>,
}

impl TrafficBatch {
    /// Counts a poll, and the entries that it brought.
    pub fn add_poll(&mut self, feed: ResourceId, class: PollClass, entries: u64) {
        let count = |counts: &mut TrafficCounts| {
            counts.add_poll(class);
            counts.add_entries(entries);
        };
        count(&mut self.total);
        if matches!(class, PollClass::New | PollClass::Failed) {
            match self.feeds.admit(&feed, false) {
                Some(counts) => count(counts),
                None => self.total.add_left_out(),
            }
        }
    }

    /// Counts entries that a hub or cloud sent.
    pub fn add_pushed(&mut self, feed: ResourceId, entries: u64) {
        self.total.add_entries(entries);
        if entries > 0 {
            match self.feeds.admit(&feed, false) {
                Some(counts) => counts.add_entries(entries),
                None => self.total.add_left_out(),
            }
        }
    }

    /// Counts an attempt to deliver.
    pub fn add_delivery(&mut self, delivery: &CountedDelivery<'_>) {
        let CountedDelivery { feed, host, account, class, delay } = *delivery;
        let is_of_account = account.is_some();
        let count = |counts: &mut TrafficCounts| {
            counts.add_delivery(class);
            delay.into_iter().for_each(|delay| counts.add_delay(delay));
        };
        count(&mut self.total);
        let subjects = [
            Some(self.feeds.admit(&feed, is_of_account)),
            Some(self.hosts.admit(host, is_of_account)),
            account.map(|account| self.accounts.admit(&account, true)),
        ];
        for subject in subjects.into_iter().flatten() {
            match subject {
                Some(counts) => count(counts),
                None => self.total.add_left_out(),
            }
        }
    }
}

/// The counts of many subjects of one kind, up to a limit. Half of them are for those that accounts subscribe to.
#[derive(Clone, Debug)]
pub struct SubjectCounts<K> {
    counts: BTreeMap<K, TrafficCounts>,
    /// How many were first counted without an account.
    anonymous: usize,
}

impl<K> Default for SubjectCounts<K> {
    fn default() -> SubjectCounts<K> {
        SubjectCounts { counts: BTreeMap::new(), anonymous: 0 }
    }
}

impl<K: Ord> SubjectCounts<K> {
    /// Returns the counts of a subject; `None` if there are too many.
    fn admit<Q>(&mut self, subject: &Q, is_of_account: bool) -> Option<&mut TrafficCounts>
    where
        K: Borrow<Q>,
        Q: Ord + ToOwned<Owned = K> + ?Sized,
    {
        if !self.counts.contains_key(subject) {
            let is_full = self.counts.len() >= MOST_SUBJECTS;
            if is_full || (!is_of_account && self.anonymous >= MOST_SUBJECTS / 2) {
                return None;
            }
            self.anonymous += usize::from(!is_of_account);
            self.counts.insert(subject.to_owned(), TrafficCounts::default());
        }
        self.counts.get_mut(subject)
    }

    /// Returns the counts, in the order of the subjects.
    pub fn into_counts(self) -> impl Iterator<Item = (K, TrafficCounts)> {
        self.counts.into_iter()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn c02_subjects_are_limited_and_what_is_beyond_is_in_the_totals() {
        let mut batch = TrafficBatch::default();
        let mut deliver = |feed: i64, account| {
            let host = format!("h{feed}.test:443");
            let (feed, class) = (ResourceId(feed), DeliveryClass::Accepted);
            let delay = Some(Duration::from_secs(1));
            batch.add_delivery(&CountedDelivery { feed, host: &host, account, class, delay });
        };
        let most = MOST_SUBJECTS as i64;
        (0..most).for_each(|feed| deliver(feed, None));
        (0..most).for_each(|feed| deliver(feed + most, Some(AccountId(1))));
        deliver(0, None); // is counted already
        assert_eq!(batch.total.deliveries(DeliveryClass::Accepted), 2 * most as u64 + 1);
        // Of the feed and of the host: half of those without an account, and half of those of the account.
        assert_eq!(batch.total.left_out(), 2 * most as u64);
        let feeds: Vec<_> = batch.feeds.into_counts().collect();
        assert_eq!(feeds.len(), MOST_SUBJECTS);
        assert_eq!(feeds[0].1.deliveries(DeliveryClass::Accepted), 2);
        let accounts: Vec<_> = batch.accounts.into_counts().collect();
        assert_eq!(accounts[0].1.deliveries(DeliveryClass::Accepted), most as u64);
    }

    #[test]
    fn c02_polls_that_find_nothing_are_in_the_totals_only() {
        let mut batch = TrafficBatch::default();
        for outcome in ["not_modified", "ok_same", "ok_new", "timed_out"] {
            batch.add_poll(ResourceId(7), PollClass::from_outcome(outcome), 0);
        }
        batch.add_pushed(ResourceId(7), 2);
        let (_, counts) = batch.feeds.into_counts().next().unwrap();
        assert_eq!((counts.polls(PollClass::New), counts.polls(PollClass::Failed)), (1, 1));
        assert_eq!((counts.polls(PollClass::NotModified), counts.entries()), (0, 2));
        assert_eq!(batch.total.polls(PollClass::NotModified), 1);
    }
}
