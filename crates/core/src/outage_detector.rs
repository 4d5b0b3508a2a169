//! Detects whether this node has lost its own network connection (P32).
//!
//! When the connection or the resolver of the node fails, every fetch fails in the same way. Such
//! failures must not count as failures of the resources.

use std::collections::{HashMap, VecDeque};

use chrono::{DateTime, TimeDelta, Utc};

use super::resource_id::ResourceId;
use super::schedule::FailureClass;

/// The time span that is considered.
const WITHIN: TimeDelta = TimeDelta::minutes(2);
/// The minimum number of hosts, because a few hosts may fail together by chance.
const LEAST_HOSTS: usize = 20;
/// The maximum number of fetches that are considered.
const MOST: usize = 50_000;

/// The recent fetches of one node.
///
/// Each fetch costs the same, however many are considered: how the last fetch of each host ended is
/// counted as fetches come in and drop out.
#[derive(Debug, Default)]
pub struct OutageDetector {
    recent: VecDeque<FetchOutcome>,
    hosts: HashMap<String, RecentHost>,
    /// The number of hosts whose last fetch failed, by class.
    failing: HashMap<FailureClass, usize>,
    down: Option<FailureClass>,
}

/// The recent fetches from one host.
#[derive(Debug)]
struct RecentHost {
    fetches: usize,
    /// The class of the failure, if the last of them failed.
    failed: Option<FailureClass>,
}

/// A fetch that has ended.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct FetchOutcome {
    /// When it ended.
    pub at: DateTime<Utc>,
    /// The host.
    pub host: String,
    /// The resource.
    pub resource: ResourceId,
    /// Whether the resource was read before. Failures of what nobody could ever read say nothing about
    /// this node, and anybody may name any number of it.
    pub was_read: bool,
    /// The class of the failure, if it failed.
    pub failed: Option<FailureClass>,
}

/// The change in connectivity that a fetch revealed.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum OutageChange {
    /// The node is offline. Holds the resources that failed recently, before this was known.
    CutOff(Vec<ResourceId>),
    /// The node is online again.
    Back,
}

impl OutageDetector {
    /// Records a fetch that has ended, and returns whether the connectivity has changed.
    pub fn saw(&mut self, fetch: FetchOutcome) -> Option<OutageChange> {
        if fetch.failed.is_some() && !fetch.was_read {
            return None;
        }
        let (now, failed) = (fetch.at, fetch.failed.filter(|class| is_ours(*class)));
        self.add(fetch);
        while self.recent.front().is_some_and(|first| first.at < now - WITHIN)
            || self.recent.len() > MOST
        {
            self.drop_oldest();
        }
        match (self.down, failed) {
            (None, Some(class)) if self.most_fail(class, LEAST_HOSTS) => {
                self.down = Some(class);
                let alike = self.recent.iter().filter(|fetch| fetch.failed == Some(class));
                Some(OutageChange::CutOff(alike.map(|fetch| fetch.resource).collect()))
            }
            (Some(class), None) if !self.most_fail(class, 1) => {
                self.down = None;
                Some(OutageChange::Back)
            }
            _ => None,
        }
    }

    /// Whether a failure of this class is currently attributed to the node.
    pub fn explains(&self, class: FailureClass) -> bool {
        self.down == Some(class)
    }

    /// Whether more than half of the hosts, and at least `least`, failed in this way at their last
    /// fetch. Hosts are counted instead of fetches, so that a host with many resources does not
    /// decide.
    fn most_fail(&self, class: FailureClass, least: usize) -> bool {
        let failing = self.failing.get(&class).copied().unwrap_or_default();
        self.hosts.len() >= least && failing * 2 > self.hosts.len()
    }

    /// Adds a fetch to the recent ones.
    fn add(&mut self, fetch: FetchOutcome) {
        let before = match self.hosts.get_mut(&fetch.host) {
            Some(host) => {
                host.fetches += 1;
                std::mem::replace(&mut host.failed, fetch.failed)
            }
            None => {
                let host = RecentHost { fetches: 1, failed: fetch.failed };
                self.hosts.insert(fetch.host.clone(), host);
                None
            }
        };
        self.recount(before, fetch.failed);
        self.recent.push_back(fetch);
    }

    /// Drops the oldest fetch, and its host if that was the only fetch from it.
    fn drop_oldest(&mut self) {
        let Some(oldest) = self.recent.pop_front() else { return };
        let Some(host) = self.hosts.get_mut(&oldest.host) else { return };
        host.fetches -= 1;
        if host.fetches == 0 {
            let failed = host.failed;
            self.hosts.remove(&oldest.host);
            self.recount(failed, None);
        }
    }

    /// Counts a host whose last fetch failed as `now`, and before that as `before`.
    fn recount(&mut self, before: Option<FailureClass>, now: Option<FailureClass>) {
        if let Some(failing) = before.and_then(|class| self.failing.get_mut(&class)) {
            *failing -= 1;
        }
        if let Some(class) = now {
            *self.failing.entry(class).or_default() += 1;
        }
    }
}

/// Whether a lost connection can cause failures of this class.
fn is_ours(class: FailureClass) -> bool {
    matches!(
        class,
        FailureClass::Network | FailureClass::Lookup | FailureClass::NoName | FailureClass::Tls
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    fn fetch(secs: i64, host: usize, failed: Option<FailureClass>) -> FetchOutcome {
        FetchOutcome {
            at: DateTime::UNIX_EPOCH + TimeDelta::seconds(secs),
            host: format!("{host}.test:443"),
            resource: ResourceId(host as i64),
            was_read: true,
            failed,
        }
    }

    /// The change that these fetches lead to, the last one deciding.
    fn after(
        fetches: impl IntoIterator<Item = FetchOutcome>,
    ) -> (OutageDetector, Option<OutageChange>) {
        let mut detector = OutageDetector::default();
        let mut change = None;
        for fetch in fetches {
            change = detector.saw(fetch).or(change);
        }
        (detector, change)
    }

    #[test]
    fn p32_most_of_many_hosts_failing_alike_is_our_own_outage() {
        let lookup = Some(FailureClass::Lookup);
        let every = |secs: i64, many: usize, failed| (0..many).map(move |n| fetch(secs, n, failed));
        #[rustfmt::skip]
        let cases: [(&str, Vec<FetchOutcome>, bool); 9] = [
            ("all of twenty",             every(0, 20, lookup).collect(), true),
            ("all of nineteen",           every(0, 19, lookup).collect(), false),
            ("half of them",              (0..40).map(|n| fetch(0, n, lookup.filter(|_| n % 2 == 0))).collect(), false),
            ("in different ways",         (0..40).map(|n| fetch(0, n, Some([FailureClass::Lookup, FailureClass::Network, FailureClass::Tls][n % 3]))).collect(), false),
            ("at different times",        (0..40).map(|n| fetch(n as i64 * 10, n, lookup)).collect(), false),
            ("one host with many feeds",  (0..99).map(|n| fetch(0, n % 5, lookup)).collect(), false),
            ("h03: never read before",    every(0, 40, lookup).map(|fetch| FetchOutcome { was_read: false, ..fetch }).collect(), false),
            ("servers in trouble",        every(0, 40, Some(FailureClass::Server)).collect(), false),
            ("good before, failing now",  every(0, 30, None).chain(every(60, 30, lookup)).collect(), true),
        ];
        for (why, fetches, want) in cases {
            let (detector, change) = after(fetches);
            assert_eq!(matches!(change, Some(OutageChange::CutOff(_))), want, "{why}");
            assert_eq!(detector.explains(FailureClass::Lookup), want, "{why}");
            assert!(!detector.explains(FailureClass::Server), "{why}");
        }
    }

    #[test]
    fn p32_it_is_over_when_answers_come_again() {
        let down = (0..30).map(|n| fetch(0, n, Some(FailureClass::Network)));
        let (mut detector, change) = after(down);
        let Some(OutageChange::CutOff(failed)) = change else { panic!("{change:?}") };
        assert_eq!(failed.len(), 20, "those that failed before it was known");
        for n in 0..9 {
            assert_eq!(detector.saw(fetch(60, n, None)), None, "some answer: not yet");
        }
        let mut back = None;
        for n in 9..30 {
            back = back.or(detector.saw(fetch(60, n, None)).map(|change| (n, change)));
        }
        assert_eq!(back, Some((14, OutageChange::Back)), "half of them");

        let (mut quiet, _) = after((0..30).map(|n| fetch(0, n, Some(FailureClass::Network))));
        assert_eq!(quiet.saw(fetch(500, 1, Some(FailureClass::Network))), None);
        assert!(quiet.explains(FailureClass::Network), "nothing else is known");
        assert_eq!(quiet.saw(fetch(501, 2, None)), Some(OutageChange::Back), "one of two");
    }

    /// What the detector counts, counted anew from all recent fetches.
    fn counted(detector: &OutageDetector) -> (usize, HashMap<FailureClass, usize>) {
        let mut last = HashMap::new();
        for fetch in &detector.recent {
            last.insert(&fetch.host, fetch.failed);
        }
        let mut failing = HashMap::new();
        for class in last.values().flatten() {
            *failing.entry(*class).or_default() += 1;
        }
        (last.len(), failing)
    }

    #[test]
    fn p32_hosts_are_counted_right_as_fetches_come_in_and_drop_out() {
        let outcomes =
            [None, Some(FailureClass::Lookup), Some(FailureClass::Server), Some(FailureClass::Tls)];
        let mut detector = OutageDetector::default();
        for n in 0..5_000_usize {
            let failed = outcomes[n * n / 7 % outcomes.len()];
            detector.saw(fetch((n / 9) as i64, n * 31 % 77, failed));
            if n % 50 == 0 {
                let mut failing = detector.failing.clone();
                failing.retain(|_, hosts| *hosts > 0);
                assert_eq!((detector.hosts.len(), failing), counted(&detector), "after {n}");
            }
        }
        assert!(detector.recent.len() < 5_000, "some have dropped out");
        detector.saw(fetch(100_000, 1, None));
        assert_eq!((detector.hosts.len(), detector.recent.len()), (1, 1), "all others have");
    }
}
