//! Which channel received which entry, and how long it took.
//!
//! Every entry is expected on every channel. An entry that a channel receives again does not
//! count, because delivery is at least once.

use std::time::{Duration, Instant};

/// The channels by which entries travel from the gateway.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Channel {
    /// A WebSub notification, unauthenticated and signed.
    WebSub,
    /// A Superfeedr webhook in JSON.
    Superfeedr,
    /// rssCloud, with a form.
    HttpPost,
    /// rssCloud, with an XML-RPC call.
    XmlRpc,
    /// rssCloud, with a SOAP call.
    Soap,
    /// A reader that follows the archive.
    Archive,
    /// A reader of changes.xml.
    Changes,
}

impl Channel {
    /// All channels, in the order of the table.
    pub(super) const ALL: [Channel; 7] = [
        Channel::WebSub,
        Channel::Superfeedr,
        Channel::HttpPost,
        Channel::XmlRpc,
        Channel::Soap,
        Channel::Archive,
        Channel::Changes,
    ];

    /// The name in the output.
    pub(super) fn name(self) -> &'static str {
        match self {
            Channel::WebSub => "WebSub",
            Channel::Superfeedr => "Superfeedr JSON",
            Channel::HttpPost => "rssCloud http-post",
            Channel::XmlRpc => "rssCloud xml-rpc",
            Channel::Soap => "rssCloud soap",
            Channel::Archive => "Simplefeed archive",
            Channel::Changes => "changes.xml",
        }
    }
}

/// What arrived on a channel.
#[derive(Debug)]
pub(super) struct Received {
    /// The channel.
    pub(super) way: Channel,
    /// The number of the sample.
    pub(super) sample: usize,
    /// When it arrived.
    pub(super) at: Instant,
    /// What arrived.
    pub(super) event: DemoEvent,
}

/// New entries, or a count of changes.
#[derive(Debug)]
pub(super) enum DemoEvent {
    /// Entries were received.
    Entries(Vec<u32>),
    /// The number of changes since the demo began.
    Times(usize),
}

struct Entry {
    sample: usize,
    published: Instant,
    received: [Option<Duration>; Channel::ALL.len()],
}

/// The entries published so far; the first has number 1.
#[derive(Default)]
pub(super) struct DeliveryTally {
    entries: Vec<Entry>,
}

impl DeliveryTally {
    /// Expects a new entry of `sample` from now on, and returns its number.
    pub(super) fn publish(&mut self, sample: usize, now: Instant) -> u32 {
        self.entries.push(Entry { sample, published: now, received: Default::default() });
        self.entries.len() as u32
    }

    /// Records what was received, and returns the entries that are new to the channel, with how
    /// long each took.
    pub(super) fn record(&mut self, received: &Received) -> Vec<(u32, Duration)> {
        let mut new_entries = Vec::new();
        let all = (1..).zip(&mut self.entries);
        let of_sample = all.filter(|(_, entry)| entry.sample == received.sample);
        for (nth, (number, entry)) in (1..).zip(of_sample) {
            let meant = match &received.event {
                DemoEvent::Entries(numbers) => numbers.contains(&number),
                DemoEvent::Times(times) => nth <= *times,
            };
            let slot = &mut entry.received[received.way as usize];
            if meant && slot.is_none() {
                let took = received.at.saturating_duration_since(entry.published);
                *slot = Some(took);
                new_entries.push((number, took));
            }
        }
        new_entries
    }

    /// The entries of `sample` that the channel `way` has received.
    pub(super) fn received(&self, way: Channel, sample: usize) -> Vec<u32> {
        let all = (1..).zip(&self.entries).filter(|(_, entry)| entry.sample == sample);
        all.filter(|(_, entry)| entry.received[way as usize].is_some()).map(|(n, _)| n).collect()
    }

    /// How many entries are still expected, over all channels.
    pub(super) fn missing(&self) -> usize {
        let slots = self.entries.iter().flat_map(|entry| entry.received);
        slots.filter(Option::is_none).count()
    }

    /// Formats a table of the delays of each channel.
    pub(super) fn table(&self) -> String {
        let mut table = format!(
            "{:20}{:>10}{:>9}{:>9}{:>9}{:>9}",
            "channel", "received", "missing", "p50", "p95", "max"
        );
        for way in Channel::ALL {
            let delays = self.entries.iter().filter_map(|entry| entry.received[way as usize]);
            let mut took: Vec<Duration> = delays.collect();
            took.sort_unstable();
            table.push_str(&format!(
                "\n{:20}{:>10}{:>9}{:>9}{:>9}{:>9}",
                way.name(),
                took.len(),
                self.entries.len() - took.len(),
                milliseconds(percentile(&took, 50)),
                milliseconds(percentile(&took, 95)),
                milliseconds(percentile(&took, 100)),
            ));
        }
        table
    }
}

/// The value that `percent` of the sorted values do not exceed.
fn percentile(sorted: &[Duration], percent: usize) -> Option<Duration> {
    let rank = (sorted.len() * percent).div_ceil(100);
    sorted.get(rank.saturating_sub(1)).copied()
}

/// A duration in milliseconds.
pub(super) fn milliseconds(took: Option<Duration>) -> String {
    took.map_or_else(|| "-".to_owned(), |took| format!("{} ms", took.as_millis()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_way_hears_of_an_entry_once() {
        let start = Instant::now();
        let later = |ms| start + Duration::from_millis(ms);
        let mut tally = DeliveryTally::default();
        let first = tally.publish(3, later(0));
        let second = tally.publish(3, later(100));
        let other = tally.publish(4, later(0));
        assert_eq!(tally.missing(), 3 * Channel::ALL.len());

        let received = |way, sample, at, event| Received { way, sample, at: later(at), event };
        let all = DemoEvent::Entries(vec![first, second, other]);
        let told = tally.record(&received(Channel::WebSub, 3, 150, all));
        assert_eq!(told, [(1, Duration::from_millis(150)), (2, Duration::from_millis(50))]);
        assert!(
            tally
                .record(&received(Channel::WebSub, 3, 200, DemoEvent::Entries(vec![first])))
                .is_empty()
        );
        let told = tally.record(&received(Channel::Changes, 3, 200, DemoEvent::Times(1)));
        assert_eq!(told, [(1, Duration::from_millis(200))]);
        assert_eq!(tally.missing(), 3 * Channel::ALL.len() - 3);
    }

    #[test]
    fn percentiles_are_values_that_occurred() {
        let took: Vec<_> = (1..=20).map(Duration::from_millis).collect();
        assert_eq!(percentile(&took, 50), Some(Duration::from_millis(10)));
        assert_eq!(percentile(&took, 95), Some(Duration::from_millis(19)));
        assert_eq!(percentile(&took, 100), Some(Duration::from_millis(20)));
        assert_eq!(percentile(&[], 95), None);
    }
}
