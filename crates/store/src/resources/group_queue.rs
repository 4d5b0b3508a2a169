//! The queue of resources that wait for one host group.
//!
//! A group is polled once per interval. If more of its resources are due than it can take, the
//! others wait for its next free times. The first few wait for the very next ones; all others get a
//! time of their own behind those that have one already (`hosts.queue_end`). So never more than a
//! few of a group become due at the same time, however far it is behind. A poll that ends while a
//! group is behind puts its resource at the end of the queue.

use std::collections::{BTreeMap, HashMap};
use std::time::Duration;

use chrono::{DateTime, Utc};

use crate::engine::sql::{Value, params};
use crate::engine::tx::Tx;
use feedgate_core::host_groups::HostGroups;
use feedgate_core::store::StoreError;

/// The number of resources of a group that wait for its very next free times.
const NEAR: u32 = 3;
/// The shortest time between two resources of a group, in microseconds, where a group has no
/// interval of its own: about as long as a poll takes.
const LEAST_STEP_US: i64 = 100_000;
/// The longest that the queue of a group is planned ahead, in microseconds: a day. Behind that,
/// times are assigned again from the beginning.
const LONGEST_LINE_US: i64 = 24 * 3_600 * 1_000_000;

/// The queue of one group, in microseconds since 1970.
#[derive(Clone, Copy, Debug)]
pub(crate) struct GroupQueue {
    now: i64,
    /// When the group may be polled next.
    free_at: i64,
    /// The interval between polls of the group.
    step: i64,
    /// The time until which polls of the group are planned.
    end: i64,
    taken: usize,
    near: u32,
    is_changed: bool,
}

/// A time at which a resource is due.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Slot {
    pub(crate) due_at: i64,
    /// Whether the slot is at the end of the queue, and not one of the very next.
    pub(crate) is_queued: bool,
}

/// The stored state of a group.
#[derive(Clone, Copy, Debug, Default)]
struct StoredGroup {
    next_fetch_at: i64,
    last_fetch_at: i64,
    fetch_interval: i64,
    backoff_until: i64,
    queue_end: i64,
}

impl GroupQueue {
    fn new(stored: StoredGroup, spacing: Duration, now: DateTime<Utc>) -> GroupQueue {
        let now = now.timestamp_micros();
        let spacing = i64::try_from(spacing.as_micros()).unwrap_or(LONGEST_LINE_US);
        let step = stored.fetch_interval.max(spacing).max(LEAST_STEP_US);
        let paced_until = (stored.last_fetch_at + stored.fetch_interval).max(stored.backoff_until);
        // While a poll runs, the group is claimed for longer than the poll will take.
        let is_in_hand = stored.next_fetch_at > paced_until && stored.next_fetch_at > now;
        let free_at = if is_in_hand { paced_until.max(now + step) } else { stored.next_fetch_at };
        GroupQueue {
            now,
            free_at,
            step,
            end: stored.queue_end,
            taken: 0,
            near: 0,
            is_changed: false,
        }
    }

    /// Returns whether the group can take one more poll now, if `per_host` may run at the same
    /// time, and counts it.
    pub(crate) fn admit_poll(&mut self, per_host: usize) -> bool {
        let is_free = self.taken < per_host && (self.taken > 0 || self.free_at <= self.now);
        if is_free {
            self.taken += 1;
        }
        is_free
    }

    /// Returns when the next resource that must wait is due. A resource that was pinged does not
    /// wait behind the others.
    pub(crate) fn next_slot(&mut self, is_pinged: bool) -> Slot {
        let is_free_now = self.taken > 0 || self.free_at <= self.now;
        let first = if is_free_now { self.now + self.step } else { self.free_at };
        if is_pinged || self.near < NEAR {
            // One microsecond earlier, so that it comes before resources that become due at that
            // time.
            let due_at = first + i64::from(self.near) * self.step - 1;
            self.near += 1;
            return Slot { due_at: due_at.max(self.now + 1), is_queued: false };
        }
        Slot { due_at: self.queue_behind(first + i64::from(NEAR) * self.step), is_queued: true }
    }

    /// Returns when a resource is due that was just polled, and whose schedule plans the next poll
    /// at `next_fetch`.
    pub(crate) fn slot_after_poll(&mut self, next_fetch: i64) -> Slot {
        if next_fetch >= self.end {
            return Slot { due_at: next_fetch, is_queued: false };
        }
        let due_at = self.queue_behind(self.now + self.step);
        Slot { due_at: due_at.max(next_fetch), is_queued: due_at > next_fetch }
    }

    /// Returns a time at the end of the queue, no sooner than `first`.
    fn queue_behind(&mut self, first: i64) -> i64 {
        self.end = (self.end + self.step).max(first);
        if self.end > self.now + LONGEST_LINE_US {
            self.end = first;
        }
        self.is_changed = true;
        self.end
    }

    /// Returns why a resource in the queue is polled late, for its status.
    pub(crate) fn reason(&self, group: &str) -> String {
        let name = group.trim_end_matches(":443").trim_end_matches(":80");
        let seconds = self.step as f64 / 1e6;
        format!("{name} gets one poll per {seconds} s for all of its resources, and many are due")
    }
}

/// Reads the queues of these groups.
pub(crate) async fn read(
    tx: &Tx<'_>,
    groups: &HostGroups,
    mut names: Vec<String>,
    now: DateTime<Utc>,
) -> Result<HashMap<String, GroupQueue>, StoreError> {
    const READ: &str = "
        select host, next_fetch_at, last_fetch_at, fetch_interval, coalesce(backoff_until, 0),
               queue_end
          from hosts
         where host in ({texts $1})";
    names.sort_unstable();
    names.dedup();
    let mut stored = HashMap::new();
    for mut row in tx.query(READ, &[Value::Texts(names.clone())]).await? {
        let name = row.text()?;
        let group = StoredGroup {
            next_fetch_at: row.int()?,
            last_fetch_at: row.int()?,
            fetch_interval: row.int()?,
            backoff_until: row.int()?,
            queue_end: row.int()?,
        };
        stored.insert(name, group);
    }
    let queue = |name: String| {
        let group = stored.get(&name).copied().unwrap_or_default();
        let queue = GroupQueue::new(group, groups.spacing(&name), now);
        (name, queue)
    };
    Ok(names.into_iter().map(queue).collect())
}

/// Reads the queues of those of these groups that are behind at `now`. Two nodes that read the same
/// end assign the same times, which does no harm.
pub(crate) async fn read_behind(
    tx: &Tx<'_>,
    names: Vec<String>,
    now: DateTime<Utc>,
) -> Result<HashMap<String, GroupQueue>, StoreError> {
    const READ: &str = "
        select host, fetch_interval, queue_end from hosts
         where host in ({texts $1}) and queue_end > $2";
    let rows = tx.query(READ, &[Value::Texts(names), now.into()]).await?;
    let queues = rows.into_iter().map(|mut row| {
        let name = row.text()?;
        let (fetch_interval, queue_end) = (row.int()?, row.int()?);
        let group = StoredGroup { fetch_interval, queue_end, ..StoredGroup::default() };
        Ok((name, GroupQueue::new(group, Duration::ZERO, now)))
    });
    queues.collect()
}

/// Stores the ends of the queues that have changed.
pub(crate) async fn save(
    tx: &Tx<'_>,
    queues: &HashMap<String, GroupQueue>,
) -> Result<(), StoreError> {
    const SAVE: &str = "
        update hosts set queue_end = {given queue_end} {from rows} where hosts.host = {given host}";
    // Groups are locked in the order in which they are claimed, or two nodes would wait for each
    // other.
    let changed = queues.iter().filter(|(_, queue)| queue.is_changed);
    let changed: BTreeMap<&String, i64> = changed.map(|(name, queue)| (name, queue.end)).collect();
    let columns = [
        ("host", Value::Texts(changed.keys().map(|&name| name.clone()).collect())),
        ("queue_end", Value::Ints(changed.values().copied().collect())),
    ];
    tx.execute_rows(SAVE, params![], &columns).await.map(drop)
}

#[cfg(test)]
mod tests {
    use super::*;

    const SECOND: i64 = 1_000_000;

    /// Returns the queue of a group with an interval of a minute that was polled at 0, at this
    /// second.
    fn line(seconds: i64) -> GroupQueue {
        let group = StoredGroup {
            next_fetch_at: 60 * SECOND,
            fetch_interval: 60 * SECOND,
            ..StoredGroup::default()
        };
        GroupQueue::new(group, Duration::ZERO, DateTime::from_timestamp(seconds, 0).unwrap())
    }

    fn minutes(slot: Slot) -> i64 {
        (slot.due_at + 1) / (60 * SECOND)
    }

    #[test]
    fn p41_those_that_wait_become_due_one_after_the_other() {
        let mut queue = line(10);
        assert!(!queue.admit_poll(1), "it was polled a moment ago");
        let slots: Vec<_> = (0..6).map(|_| minutes(queue.next_slot(false))).collect();
        assert_eq!(slots, [1, 2, 3, 4, 5, 6]);
        assert_eq!(minutes(queue.next_slot(true)), 4, "a ping does not wait behind the others");

        let mut free = line(600);
        assert!(free.admit_poll(1) && !free.admit_poll(1));
        assert_eq!(minutes(free.next_slot(false)), 11, "one is polled now");
    }

    #[test]
    fn p41_the_line_of_a_group_is_a_day_long_at_most() {
        let mut queue = line(0);
        let latest = (0..10_000).map(|_| queue.next_slot(false).due_at).max().unwrap();
        assert!(latest <= LONGEST_LINE_US && latest > LONGEST_LINE_US - 120 * SECOND, "{latest}");
    }

    #[test]
    fn p41_a_poll_that_ends_goes_to_the_end_of_the_line_if_there_is_one() {
        let mut queue = GroupQueue { end: 600 * SECOND, ..line(60) };
        assert_eq!(minutes(queue.slot_after_poll(300 * SECOND)), 11);
        assert_eq!(minutes(queue.slot_after_poll(300 * SECOND)), 12);
        let later = queue.slot_after_poll(3_600 * SECOND);
        assert_eq!(later, Slot { due_at: 3_600 * SECOND, is_queued: false }, "it is over by then");
    }
}
