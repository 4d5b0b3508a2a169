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
#[derive(Debug, Default)]
pub struct OutageDetector {
    recent: VecDeque<FetchOutcome>,
    down: Option<FailureClass>,
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
        let (now, failed) = (fetch.at, fetch.failed.filter(|class| is_ours(*class)));
        self.recent.push_back(fetch);
        while self.recent.front().is_some_and(|first| first.at < now - WITHIN)
            || self.recent.len() > MOST
        {
            self.recent.pop_front();
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
        let mut last: HashMap<&str, bool> = HashMap::new();
        for fetch in &self.recent {
            last.insert(&fetch.host, fetch.failed == Some(class));
        }
        let failing = last.values().filter(|failed| **failed).count();
        last.len() >= least && failing * 2 > last.len()
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
        let cases: [(&str, Vec<FetchOutcome>, bool); 8] = [
            ("all of twenty",             every(0, 20, lookup).collect(), true),
            ("all of nineteen",           every(0, 19, lookup).collect(), false),
            ("half of them",              (0..40).map(|n| fetch(0, n, lookup.filter(|_| n % 2 == 0))).collect(), false),
            ("in different ways",         (0..40).map(|n| fetch(0, n, Some([FailureClass::Lookup, FailureClass::Network, FailureClass::Tls][n % 3]))).collect(), false),
            ("at different times",        (0..40).map(|n| fetch(n as i64 * 10, n, lookup)).collect(), false),
            ("one host with many feeds",  (0..99).map(|n| fetch(0, n % 5, lookup)).collect(), false),
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
}
