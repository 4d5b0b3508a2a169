//! Whether it is we who are cut off, and not everybody else (rule P32).
//!
//! When our own line or resolver fails, every fetch fails in the same way. That says
//! nothing of the resources: none may count it as a failure of its own.

use std::collections::{HashMap, VecDeque};

use chrono::{DateTime, TimeDelta, Utc};

use super::resource_id::ResourceId;
use super::schedule::FailureClass;

/// What is looked back upon.
const WITHIN: TimeDelta = TimeDelta::minutes(2);
/// So many different hosts must have been asked: a few may fail together by chance.
const LEAST_HOSTS: usize = 20;
/// The most fetches that are looked back upon.
const MOST: usize = 50_000;

/// The fetches of one node in the last minutes.
#[derive(Debug, Default)]
pub struct OutageDetector {
    recent: VecDeque<FetchOutcome>,
    down: Option<FailureClass>,
}

/// One fetch that has ended.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct FetchOutcome {
    /// When.
    pub at: DateTime<Utc>,
    /// From whom.
    pub host: String,
    /// Of what.
    pub resource: ResourceId,
    /// What went wrong, if anything did.
    pub failed: Option<FailureClass>,
}

/// What a fetch made known.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum OutageChange {
    /// We are cut off. These failed before that was known, and lately.
    CutOff(Vec<ResourceId>),
    /// We are not any more.
    Back,
}

impl OutageDetector {
    /// Takes in a fetch that has ended, and judges.
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

    /// Whether a failure of this class is ours for now.
    pub fn explains(&self, class: FailureClass) -> bool {
        self.down == Some(class)
    }

    /// Whether more than half of the hosts that were asked, and no fewer than `least`
    /// hosts at all, failed like this when they were last asked. Hosts and not fetches are
    /// counted, so that one with many resources does not decide.
    fn most_fail(&self, class: FailureClass, least: usize) -> bool {
        let mut last: HashMap<&str, bool> = HashMap::new();
        for fetch in &self.recent {
            last.insert(&fetch.host, fetch.failed == Some(class));
        }
        let failing = last.values().filter(|failed| **failed).count();
        last.len() >= least && failing * 2 > last.len()
    }
}

/// Whether something may go wrong like this because we are cut off.
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
