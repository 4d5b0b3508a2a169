//! Summarizes many similar events in a few lines.
//!
//! Events of one feed with the same kind, outcome, code and protocol are a burst as long as
//! they follow each other closely: a fan-out, a hundred thousand leases that end together.
//! The first of a burst are lines of their own, because somebody who debugs a subscription looks
//! for them; the rest are counted. Failures have more lines than successes.

use std::borrow::Cow;
use std::time::Duration;

use foldhash::HashMap;
use tokio::time::Instant;

use feedgate_core::event::{Event, EventKind, EventOutcome};

/// Lines of their own in one burst of what went well.
const FEW_GOOD: u64 = 25;
/// Lines of their own in one burst of what did not.
const FEW_BAD: u64 = 100;
/// A burst is over after this long without an event.
const QUIET: Duration = Duration::from_secs(1);
/// How long the rest of a burst is counted before it becomes a line.
const LONGEST: Duration = Duration::from_secs(10);

/// What a burst is one of.
type Key = (EventKind, EventOutcome, Cow<'static, str>, Cow<'static, str>, String);

/// The bursts that go on now.
#[derive(Debug, Default)]
pub(super) struct Bursts {
    open: HashMap<Key, Burst>,
    looked: Option<Instant>,
}

#[derive(Debug)]
struct Burst {
    alone: u64,
    last: Instant,
    /// The events that are counted together, and since when.
    rest: Option<(Event, Instant)>,
}

impl Bursts {
    /// Adds an event; returns it if it is a line of its own.
    pub(super) fn add(&mut self, event: Event, now: Instant) -> Option<Event> {
        let key =
            (event.kind, event.outcome, event.code.clone(), event.via.clone(), event.feed.clone());
        self.looked.get_or_insert(now);
        let burst = self.open.entry(key).or_insert(Burst { alone: 0, last: now, rest: None });
        burst.last = now;
        let few = if event.outcome == EventOutcome::Ok { FEW_GOOD } else { FEW_BAD };
        if burst.alone < few {
            burst.alone += 1;
            return Some(event);
        }
        match &mut burst.rest {
            Some((rest, _)) => {
                rest.at = event.at;
                rest.many += event.many;
                rest.took = rest.took.max(event.took);
            }
            None => burst.rest = Some((anonymous(event), now)),
        }
        None
    }

    /// When to look again; `None` while nothing goes on.
    pub(super) fn next_look(&self) -> Option<Instant> {
        self.looked.map(|looked| looked + QUIET)
    }

    /// Ends the bursts that are over. Returns the lines of what was counted long enough.
    pub(super) fn end_quiet(&mut self, now: Instant) -> Vec<Event> {
        let mut lines = Vec::new();
        self.open.retain(|_, burst| {
            let is_over = now.saturating_duration_since(burst.last) >= QUIET;
            let since = |since: Instant| now.saturating_duration_since(since);
            if let Some((rest, begun)) = burst.rest.take() {
                if is_over || since(begun) >= LONGEST {
                    lines.push(counted(rest));
                } else {
                    burst.rest = Some((rest, begun));
                }
            }
            !is_over
        });
        self.looked = (!self.open.is_empty()).then_some(now);
        lines
    }

    /// Ends them all.
    pub(super) fn end(&mut self) -> Vec<Event> {
        let open = std::mem::take(&mut self.open).into_values();
        open.filter_map(|burst| burst.rest).map(|(rest, _)| counted(rest)).collect()
    }
}

/// An event that also stands for others. Strangers know of it if they know of the event.
fn anonymous(event: Event) -> Event {
    Event {
        callback: String::new(),
        is_unlisted: event.is_unlisted || event.account.is_some(),
        account: None,
        detail: String::new(),
        private_detail: String::new(),
        ..event
    }
}

fn counted(rest: Event) -> Event {
    let detail = format!("and {} more like it", rest.many);
    Event { detail, ..rest }
}

#[cfg(test)]
mod tests {
    use chrono::DateTime;

    use super::*;

    fn event(outcome: EventOutcome, feed: &str, n: u64) -> Event {
        let event = Event::new(EventKind::Notify, DateTime::UNIX_EPOCH + Duration::from_secs(n));
        Event { outcome, ..event.about_feed(feed).to(&format!("https://reader.test/{n}")) }
    }

    #[test]
    fn a_large_fan_out_is_few_lines_that_count_all_of_it() {
        let (mut bursts, began) = (Bursts::default(), Instant::now());
        let mut lines = Vec::new();
        for n in 0..100_000 {
            let now = began + Duration::from_micros(300 * n);
            lines.extend(bursts.add(event(EventOutcome::Ok, "https://a.test/", n), now));
            if n % 1_000 == 0 {
                lines.extend(bursts.end_quiet(now));
            }
        }
        lines.extend(bursts.end_quiet(began + Duration::from_secs(40)));
        assert!(lines.len() < 30, "{} lines", lines.len());
        assert_eq!(lines.iter().map(|line| line.many).sum::<u64>(), 100_000);
        assert_eq!(lines.last().unwrap().callback, "", "nobody in particular");
        assert_eq!(bursts.next_look(), None, "it is over");
    }

    #[test]
    fn what_differs_is_told_apart() {
        let (mut bursts, now) = (Bursts::default(), Instant::now());
        for n in 0..FEW_GOOD {
            assert!(bursts.add(event(EventOutcome::Ok, "https://a.test/", n), now).is_some());
        }
        assert!(bursts.add(event(EventOutcome::Ok, "https://a.test/", 99), now).is_none());
        assert!(bursts.add(event(EventOutcome::Ok, "https://b.test/", 99), now).is_some());
        for n in 0..FEW_BAD {
            assert!(bursts.add(event(EventOutcome::Failed, "https://a.test/", n), now).is_some());
        }
        assert_eq!(bursts.end_quiet(now + QUIET).len(), 1);
        let later = now + QUIET + QUIET;
        assert!(bursts.add(event(EventOutcome::Ok, "https://a.test/", 1), later).is_some());
    }
}
