//! What happened in a minute or an hour: polls and deliveries by their ends, new entries, delays of deliveries, and
//! the ages of queues.
//!
//! All of it is numbers under keys, so that what several nodes have counted adds up, and a period is stored in few
//! bytes. A later version only adds keys: nodes of an earlier one add up those that they do not know.

mod batch;
mod delays;

use std::collections::BTreeMap;
use std::time::Duration;

use chrono::{DateTime, TimeDelta, Utc};

use crate::account::AccountId;
use crate::resource_id::ResourceId;

pub use batch::{CountedDelivery, SubjectCounts, TrafficBatch};

/// How long the minutes of the gateway are kept: those of a day, and an hour for maintenance to run.
pub const MINUTES_RETENTION: TimeDelta = TimeDelta::hours(25);
/// How long the hours of the gateway are kept: a month.
pub const HOURS_RETENTION: TimeDelta = TimeDelta::days(31);
/// How long the hours of feeds, hosts and accounts are kept: a week and the day in progress.
pub const SUBJECT_RETENTION: TimeDelta = TimeDelta::days(8);
/// The most hours that are kept of all feeds, of all hosts, and of all accounts: 200 MB of each at most, unless most
/// of them have delays of all lengths.
pub const MOST_SUBJECT_HOURS: usize = 2_000_000;

/// How a poll ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum PollClass {
    /// There was something new.
    New,
    /// The document was sent, and nothing in it was new.
    Same,
    /// The server replied that the document has not changed.
    NotModified,
    /// The document could not be fetched or read.
    Failed,
}

impl PollClass {
    /// Returns the class of a poll with this outcome, a word of the metrics.
    pub fn from_outcome(outcome: &str) -> PollClass {
        match outcome {
            "ok_new" => PollClass::New,
            "ok_same" => PollClass::Same,
            "not_modified" => PollClass::NotModified,
            _ => PollClass::Failed,
        }
    }

    fn key(self) -> u16 {
        match self {
            PollClass::New => 1,
            PollClass::Same => 2,
            PollClass::NotModified => 3,
            PollClass::Failed => 4,
        }
    }
}

/// How an attempt to deliver ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum DeliveryClass {
    /// The callback accepted the notification.
    Accepted,
    /// The callback responded with another status than 2xx.
    Refused,
    /// The callback did not respond.
    Unanswered,
}

impl DeliveryClass {
    /// Returns the class of an attempt with this result, a word of the metrics.
    pub fn from_result(result: &str) -> DeliveryClass {
        match result {
            "ok" => DeliveryClass::Accepted,
            "redirect" | "gone" | "http_4xx" | "http_5xx" => DeliveryClass::Refused,
            _ => DeliveryClass::Unanswered,
        }
    }

    fn key(self) -> u16 {
        match self {
            DeliveryClass::Accepted => 17,
            DeliveryClass::Refused => 18,
            DeliveryClass::Unanswered => 19,
        }
    }
}

/// How long the first item of each queue has been due, in seconds; 0 if nothing is due.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct QueueAges {
    /// Polls.
    pub polls_s: u64,
    /// Deliveries.
    pub deliveries_s: u64,
}

const ENTRIES: u16 = 32;
const LEFT_OUT: u16 = 33;
/// The keys of numbers of which the greatest counts, instead of the sum.
const AGES: std::ops::Range<u16> = 48..64;
const AGE_OF_POLLS: u16 = 48;
const AGE_OF_DELIVERIES: u16 = 49;
/// The first key of the delays of deliveries: each bucket has its own.
const DELAYS: u16 = 1_000;

/// What happened in some time.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct TrafficCounts {
    counts: BTreeMap<u16, u64>,
}

impl TrafficCounts {
    /// Counts a poll.
    pub fn add_poll(&mut self, class: PollClass) {
        self.add_count(class.key(), 1);
    }

    /// Returns the number of polls of a class.
    pub fn polls(&self, class: PollClass) -> u64 {
        self.count(class.key())
    }

    /// Counts new entries.
    pub fn add_entries(&mut self, many: u64) {
        self.add_count(ENTRIES, many);
    }

    /// Returns the number of new entries.
    pub fn entries(&self) -> u64 {
        self.count(ENTRIES)
    }

    /// Counts an attempt to deliver.
    pub fn add_delivery(&mut self, class: DeliveryClass) {
        self.add_count(class.key(), 1);
    }

    /// Returns the number of attempts of a class.
    pub fn deliveries(&self, class: DeliveryClass) -> u64 {
        self.count(class.key())
    }

    /// Counts the delay of an accepted delivery: from the discovery of the entry to the response.
    pub fn add_delay(&mut self, delay: Duration) {
        self.add_count(DELAYS.saturating_add(delays::bucket(delay)), 1);
    }

    /// Returns the delay that this share of the deliveries did not exceed, to 2 %; `None` if there were none.
    /// `percent` is 1 to 100.
    pub fn delay(&self, percent: u64) -> Option<Duration> {
        let buckets = || self.counts.range(DELAYS..);
        let total: u64 = buckets().map(|(_, count)| count).sum();
        let wanted = total.saturating_mul(percent).div_ceil(100);
        let mut counted = 0;
        let found = buckets().find(|(_, count)| {
            counted += **count;
            counted >= wanted
        });
        found.map(|(key, _)| delays::delay(key - DELAYS))
    }

    /// Notes the ages of the queues at one time.
    pub fn note_ages(&mut self, ages: QueueAges) {
        self.add_count(AGE_OF_POLLS, ages.polls_s);
        self.add_count(AGE_OF_DELIVERIES, ages.deliveries_s);
    }

    /// Returns the greatest ages of the queues.
    pub fn ages(&self) -> QueueAges {
        QueueAges { polls_s: self.count(AGE_OF_POLLS), deliveries_s: self.count(AGE_OF_DELIVERIES) }
    }

    /// Counts something that is not in the counts of its feed, host or account, because there were too many.
    pub fn add_left_out(&mut self) {
        self.add_count(LEFT_OUT, 1);
    }

    /// Returns how much is missing in the counts of feeds, hosts and accounts.
    pub fn left_out(&self) -> u64 {
        self.count(LEFT_OUT)
    }

    /// Adds what happened in another time, or on another node.
    pub fn add(&mut self, other: &TrafficCounts) {
        for (key, count) in &other.counts {
            self.add_count(*key, *count);
        }
    }

    /// Returns whether nothing happened.
    pub fn is_empty(&self) -> bool {
        self.counts.is_empty()
    }

    /// Returns the bytes that are stored: keys, each as the distance to the one before, and numbers, all in LEB128.
    pub fn encode(&self) -> Vec<u8> {
        let (mut bytes, mut before) = (Vec::new(), 0);
        for (key, count) in &self.counts {
            write_number(&mut bytes, u64::from(key - before));
            write_number(&mut bytes, *count);
            before = *key;
        }
        bytes
    }

    /// Reads what [`encode`](Self::encode) returned; `None` if these are other bytes.
    pub fn decode(mut bytes: &[u8]) -> Option<TrafficCounts> {
        let (mut counts, mut key) = (BTreeMap::new(), 0_u16);
        while !bytes.is_empty() {
            key = key.checked_add(u16::try_from(read_number(&mut bytes)?).ok()?)?;
            counts.insert(key, read_number(&mut bytes)?);
        }
        Some(TrafficCounts { counts })
    }

    fn count(&self, key: u16) -> u64 {
        self.counts.get(&key).copied().unwrap_or(0)
    }

    fn add_count(&mut self, key: u16, count: u64) {
        if count == 0 {
            return;
        }
        let sum = self.counts.entry(key).or_default();
        *sum = match AGES.contains(&key) {
            true => count.max(*sum),
            false => sum.saturating_add(count),
        };
    }
}

fn write_number(bytes: &mut Vec<u8>, mut number: u64) {
    while number >= 0x80 {
        bytes.push((number & 0x7f) as u8 | 0x80);
        number >>= 7;
    }
    bytes.push(number as u8);
}

fn read_number(bytes: &mut &[u8]) -> Option<u64> {
    let mut number = 0;
    for shift in (0..u64::BITS).step_by(7) {
        let (byte, rest) = bytes.split_first()?;
        *bytes = rest;
        number |= u64::from(byte & 0x7f) << shift;
        if byte & 0x80 == 0 {
            return Some(number);
        }
    }
    None
}

/// The length of a period.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum TrafficUnit {
    /// A minute.
    Minute,
    /// An hour.
    Hour,
}

impl TrafficUnit {
    /// Returns the length in seconds.
    pub fn secs(self) -> i64 {
        match self {
            TrafficUnit::Minute => 60,
            TrafficUnit::Hour => 3_600,
        }
    }

    /// Returns the beginning of the period in UTC that a time is in.
    pub fn beginning(self, at: DateTime<Utc>) -> DateTime<Utc> {
        let begun = at.timestamp().div_euclid(self.secs()) * self.secs();
        DateTime::from_timestamp(begun, 0).unwrap_or(at)
    }
}

/// What the counts are of.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum TrafficSubject {
    /// The whole gateway, in minutes or hours.
    Gateway(TrafficUnit),
    /// A feed, in hours. Of its polls, only those that brought something or failed are counted: most polls find
    /// nothing, and would be a write each.
    Feed(ResourceId),
    /// The host and port of callbacks, in hours.
    CallbackHost(String),
    /// The subscriptions of an account, in hours.
    Account(AccountId),
}

/// What happened in one period.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TrafficPeriod {
    /// When the period begins.
    pub at: DateTime<Utc>,
    /// What happened.
    pub counts: TrafficCounts,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn c02_what_was_counted_adds_up_and_is_read_as_it_was_written() {
        let mut one = TrafficCounts::default();
        one.add_poll(PollClass::from_outcome("ok_new"));
        one.add_poll(PollClass::from_outcome("timed_out"));
        one.add_entries(3);
        one.add_delivery(DeliveryClass::from_result("http_5xx"));
        one.add_delay(Duration::from_millis(80));
        one.note_ages(QueueAges { polls_s: 0, deliveries_s: 7 });
        let mut other = TrafficCounts::decode(&one.encode()).unwrap();
        assert_eq!(other, one);
        other.note_ages(QueueAges { polls_s: 2, deliveries_s: 5 });
        one.add(&other);
        assert_eq!((one.polls(PollClass::New), one.polls(PollClass::Failed)), (2, 2));
        assert_eq!((one.entries(), one.deliveries(DeliveryClass::Refused)), (6, 2));
        assert_eq!(one.ages(), QueueAges { polls_s: 2, deliveries_s: 7 });
        assert!(one.encode().len() < 20, "{:?}", one.encode());
        for wrong in [&[1_u8][..], &[0x80; 12], &[0xff, 0xff, 0x7f, 1]] {
            assert_eq!(TrafficCounts::decode(wrong), None, "{wrong:?}");
        }
        // A key of a later version.
        assert_eq!(TrafficCounts::decode(&[40, 9]).unwrap().encode(), [40, 9]);
    }
}
