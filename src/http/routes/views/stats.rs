//! `/stats.json` and the numbers of `/stats`: all counted, none estimated. Names that readers
//! of deployed servers know mean here what they mean there; the others are ours.
//!
//! Numbers under `node` are what this process counted since it began; all others are the
//! whole gateway's, however many nodes it has.

use std::collections::HashSet;
use std::collections::hash_map::DefaultHasher;
use std::hash::{Hash, Hasher};

use chrono::{DateTime, TimeDelta, Utc};
use serde_json::{Map, Value, json};

use super::document::{Document, Press};
use super::subscriptions::moment;
use super::{Audience, TITLE_CHARS, page};
use crate::byte_cache::ByteSize;
use crate::http::kit::html;
use crate::http::state::Gateway;
use crate::jobs::runner;
use feedgate_core::ports::{Gauges, StoreError, SubscriberGroup, WatchedResource};
use feedgate_core::redaction;
use feedgate_core::resource::ResourceId;
use feedgate_core::subscription::SubscriptionId;

/// The feeds with the most subscribers, as deployed servers list them: with those that have
/// as many as the last of them.
const TOP: usize = 10;
/// Those and the next, as far as they are listed at all.
const MOST_LISTED: usize = 100;
/// What has changed within so many days counts as lively.
pub(super) const WINDOW_DAYS: i64 = 7;
const JSON: &str = "application/json; charset=utf-8";

/// How subscribers are told, in the words of rssCloud, in the order in which they are shown.
pub(super) const PROTOCOLS: [&str; 5] = ["http-post", "https-post", "xml-rpc", "soap", "websub"];

/// What is shown of the numbers.
pub(super) struct Stats {
    /// `/stats.json`
    pub(super) json: Document,
    /// `/stats`
    pub(super) page: Document,
}

impl ByteSize for Stats {
    fn byte_size(&self) -> usize {
        self.json.byte_size() + self.page.byte_size()
    }
}

impl Stats {
    /// Counts, and shows what came of it. The node began at `began`.
    pub(super) async fn print(
        gateway: &Gateway,
        audience: Audience,
        began: DateTime<Utc>,
    ) -> Result<Stats, StoreError> {
        let now = runner::now();
        let tally = Tally::count(gateway, audience, (began, now)).await?;
        let (mut json, mut text) = (Press::new(), Press::new());
        json.push(&format!("{:#}\n", tally.json()));
        let page = page::page(&tally);
        text.push(&page.document());
        let page = text.finish(html::MEDIA_TYPE, now).allowed(page.interaction.policy());
        Ok(Stats { json: json.finish(JSON, now), page })
    }
}

/// The numbers.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct Tally {
    /// When it was counted.
    pub(super) at: DateTime<Utc>,
    /// When this node began.
    pub(super) began: DateTime<Utc>,
    /// What the store knows at once.
    pub(super) gauges: Gauges,
    /// Resources that somebody subscribes to.
    pub(super) watched: u64,
    /// Those that changed lately.
    pub(super) changed: u64,
    /// Those with the most subscribers that may be shown, in this order.
    pub(super) top: Vec<WatchedResource>,
    /// Subscriptions by protocol, in the order of [`PROTOCOLS`].
    pub(super) by_protocol: [u64; PROTOCOLS.len()],
    /// Those that are no account's.
    pub(super) open: u64,
    /// Those whose last attempt failed.
    pub(super) failing: u64,
    /// Hosts of callbacks.
    pub(super) aggregators: u64,
    /// Pings listed in the last hour, and received ever.
    pub(super) pings: (u64, u64),
    /// Attempts of this node to deliver that went well, and those that did not.
    pub(super) deliveries: (u64, u64),
}

impl Tally {
    async fn count(
        gateway: &Gateway,
        audience: Audience,
        (began, at): (DateTime<Utc>, DateTime<Utc>),
    ) -> Result<Tally, StoreError> {
        let store = &gateway.store;
        let gauges = store.gauges(at).await?;
        let last_hour = store.pings_since(at - TimeDelta::hours(1)).await?;
        let (_, pings) = store.newest_change().await?;
        let deliveries = gateway.metrics.deliveries();
        let pings = (last_hour, pings);
        let mut tally = Tally { at, began, gauges, pings, deliveries, ..Tally::default() };
        tally.count_resources(gateway, audience).await?;
        tally.count_subscriptions(gateway).await?;
        Ok(tally)
    }

    async fn count_resources(
        &mut self,
        gateway: &Gateway,
        audience: Audience,
    ) -> Result<(), StoreError> {
        let lately = self.at - TimeDelta::days(WINDOW_DAYS);
        let mut after = ResourceId(0);
        loop {
            let some = gateway.store.watched(after).await?;
            let Some(last) = some.last() else { break };
            after = last.id;
            self.watched += some.len() as u64;
            let changed = some.iter().filter(|watched| watched.changed_at >= Some(lately));
            self.changed += changed.count() as u64;
            self.top.extend(some.into_iter().filter(|watched| audience.sees(&watched.topic)));
            self.top.sort_by_key(|watched| (u32::MAX - watched.subscribers, watched.id));
            self.top.truncate(MOST_LISTED);
        }
        Ok(())
    }

    async fn count_subscriptions(&mut self, gateway: &Gateway) -> Result<(), StoreError> {
        // Hashes, because there may be very many hosts. That two of a million are taken for one
        // happens once in thirty million counts.
        let mut hosts = HashSet::new();
        let mut after = SubscriptionId { resource: ResourceId(0), number: 0 };
        loop {
            let counted = gateway.store.count_some(after, self.at).await?;
            for group in &counted.groups {
                self.add(group);
                let host = group.host.rsplit_once(':').map_or(group.host.as_str(), |(h, _)| h);
                let mut hash = DefaultHasher::new();
                host.hash(&mut hash);
                hosts.insert(hash.finish());
            }
            match counted.next {
                Some(next) => after = next,
                None => break,
            }
        }
        self.aggregators = hosts.len() as u64;
        Ok(())
    }

    fn add(&mut self, group: &SubscriberGroup) {
        let word = match group.protocol.as_str() {
            "http-post" if group.is_https => "https-post",
            word => word,
        };
        if let Some(place) = PROTOCOLS.iter().position(|protocol| *protocol == word) {
            self.by_protocol[place] += group.many;
        }
        self.open += if group.is_open { group.many } else { 0 };
        self.failing += group.failing;
    }

    /// Subscriptions in all.
    pub(super) fn subscriptions(&self) -> u64 {
        self.by_protocol.iter().sum()
    }

    /// For how long this node has been running, in seconds.
    pub(super) fn uptime_s(&self) -> u64 {
        (self.at - self.began).num_seconds().max(0).unsigned_abs()
    }

    /// How many of those at the top are the first ten, with those that have as many.
    fn first(&self) -> usize {
        let last = self.top.get(TOP - 1).map_or(0, |watched| watched.subscribers);
        self.top.iter().take_while(|watched| watched.subscribers >= last).count()
    }

    fn json(&self) -> Value {
        let (top, more) = self.top.split_at(self.first());
        let feeds = |list: &[WatchedResource]| list.iter().map(feed).collect::<Vec<_>>();
        let protocols = PROTOCOLS.iter().zip(self.by_protocol);
        let protocols = protocols.map(|(word, many)| ((*word).to_owned(), many.into()));
        json!({
            "generatedAt": moment(self.at),
            "version": env!("CARGO_PKG_VERSION"),
            "feedsChangedLastWindow": self.changed,
            "windowDays": WINDOW_DAYS,
            // What older servers call it.
            "feedsChangedLast7Days": self.changed,
            "feedsWithSubscribers": self.watched,
            "feedsFailing": self.gauges.failing,
            "uniqueAggregators": self.aggregators,
            "totalActiveSubscriptions": self.subscriptions(),
            "openSubscriptions": self.open,
            "accountSubscriptions": self.subscriptions() - self.open,
            "failingSubscriptions": self.failing,
            "subscriptionsDue": self.gauges.due,
            "oldestDueSeconds": self.gauges.oldest_due_s,
            "protocolBreakdown": protocols.collect::<Map<String, Value>>(),
            "pings": { "lastHour": self.pings.0, "total": self.pings.1 },
            "node": {
                "startedAt": moment(self.began),
                "uptimeSeconds": self.uptime_s(),
                "deliveries": { "ok": self.deliveries.0, "failed": self.deliveries.1 },
            },
            "topFeeds": feeds(top),
            "moreFeeds": feeds(more),
        })
    }
}

fn feed(watched: &WatchedResource) -> Value {
    let title =
        Some(redaction::line(&watched.title, TITLE_CHARS)).filter(|title| !title.is_empty());
    json!({
        "url": watched.topic,
        "subscriberCount": watched.subscribers,
        "whenLastUpdate": watched.changed_at.map(moment),
        "feedTitle": title,
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use feedgate_core::resource::ResourceKind;

    #[test]
    fn those_that_tie_with_the_tenth_are_at_the_top_too() {
        let watched = |n: i64, subscribers: u32| WatchedResource {
            id: ResourceId(n),
            topic: format!("https://a.test/{n}"),
            title: String::new(),
            site_url: None,
            kind: ResourceKind::Feed,
            subscribers,
            fetched_at: None,
            changed_at: None,
        };
        #[rustfmt::skip]
        let cases: [(&[u32], usize); 4] = [
            (&[],                                     0),
            (&[3, 2, 1],                              3),
            (&[9, 9, 9, 9, 9, 5, 5, 5, 5, 2, 2, 2, 1], 12),
            (&[9, 9, 9, 9, 9, 5, 5, 5, 5, 2, 1, 1],    10),
        ];
        for (subscribers, want) in cases {
            let top = subscribers.iter().enumerate().map(|(n, many)| watched(n as i64, *many));
            let tally = Tally { top: top.collect(), ..Tally::default() };
            assert_eq!(tally.first(), want, "{subscribers:?}");
        }
    }
}
