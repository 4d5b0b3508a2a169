//! The totals of the statistics: everything is counted, nothing is estimated.
//!
//! `deliveries` counts what this process did since it started; all others are totals of the
//! whole gateway, however many nodes it has.

use std::collections::HashSet;
use std::collections::hash_map::DefaultHasher;
use std::hash::{Hash, Hasher};

use chrono::{DateTime, TimeDelta, Utc};

use crate::http::kit::viewer_access::ViewerAccess;
use crate::http::state::Gateway;
use feedgate_core::resource::ResourceId;
use feedgate_core::store::{Gauges, StoreError, SubscriberGroup, WatchedResource};
use feedgate_core::subscription::SubscriptionId;

/// How many feeds deployed servers list as those with the most subscribers. Feeds with as many
/// subscribers as the last one are listed too.
const TOP: usize = 10;
/// How many feeds are listed at all.
const MAX_LISTED: usize = 100;
/// A feed that changed within this many days counts as changed lately.
pub(super) const WINDOW_DAYS: i64 = 7;

/// The protocols of notifications, in the words of rssCloud and in the order of the page.
pub(super) const PROTOCOLS: [&str; 5] = ["http-post", "https-post", "xml-rpc", "soap", "websub"];

/// The totals.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct StatsTotals {
    /// When the totals were counted.
    pub(super) at: DateTime<Utc>,
    /// When this node started.
    pub(super) started_at: DateTime<Utc>,
    /// The gauges of the store.
    pub(super) gauges: Gauges,
    /// Resources with subscribers.
    pub(super) watched: u64,
    /// Resources with subscribers that changed lately.
    pub(super) changed: u64,
    /// The resources with the most subscribers, in this order, without hidden ones.
    pub(super) top: Vec<WatchedResource>,
    /// Subscriptions by protocol, in the order of [`PROTOCOLS`].
    pub(super) by_protocol: [u64; PROTOCOLS.len()],
    /// Subscriptions that belong to no account.
    pub(super) open: u64,
    /// Subscriptions whose last delivery failed.
    pub(super) failing: u64,
    /// Hosts of callbacks.
    pub(super) subscriber_hosts: u64,
    /// Pings of the last hour, and in total.
    pub(super) pings: (u64, u64),
    /// Deliveries by this node that succeeded, and that failed.
    pub(super) deliveries: (u64, u64),
}

impl StatsTotals {
    /// Counts everything. The node started at `started_at`.
    pub(super) async fn count(
        gateway: &Gateway,
        access: ViewerAccess,
        started_at: DateTime<Utc>,
        at: DateTime<Utc>,
    ) -> Result<StatsTotals, StoreError> {
        let store = &gateway.store;
        let gauges = store.gauges(at).await?;
        let last_hour = store.pings_since(at - TimeDelta::hours(1)).await?;
        let (_, pings) = store.newest_change().await?;
        let deliveries = gateway.metrics.deliveries();
        let pings = (last_hour, pings);
        let mut totals =
            StatsTotals { at, started_at, gauges, pings, deliveries, ..StatsTotals::default() };
        totals.count_resources(gateway, access).await?;
        totals.count_subscriptions(gateway).await?;
        Ok(totals)
    }

    async fn count_resources(
        &mut self,
        gateway: &Gateway,
        access: ViewerAccess,
    ) -> Result<(), StoreError> {
        let lately = self.at - TimeDelta::days(WINDOW_DAYS);
        let (mut after, listed) = (ResourceId(0), gateway.settings.listed);
        loop {
            let some = gateway.store.watched(after).await?;
            let Some(last) = some.last() else { break };
            after = last.id;
            self.watched += some.len() as u64;
            let changed = some.iter().filter(|watched| watched.changed_at >= Some(lately));
            self.changed += changed.count() as u64;
            self.top.extend(some.into_iter().filter(|watched| access.lists(watched, listed)));
            self.top.sort_by_key(|watched| (u32::MAX - watched.subscribers, watched.id));
            self.top.truncate(MAX_LISTED);
        }
        Ok(())
    }

    async fn count_subscriptions(&mut self, gateway: &Gateway) -> Result<(), StoreError> {
        // Hashes, because there may be very many hosts. Two of a million hosts have the same hash
        // once in thirty million counts.
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
        self.subscriber_hosts = hosts.len() as u64;
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

    /// Returns all subscriptions.
    pub(super) fn subscriptions(&self) -> u64 {
        self.by_protocol.iter().sum()
    }

    /// Returns for how long this node has been running, in seconds.
    pub(super) fn uptime_s(&self) -> u64 {
        (self.at - self.started_at).num_seconds().max(0).unsigned_abs()
    }

    /// Returns how many of `top` are the first ten, with those that have as many subscribers.
    pub(super) fn first(&self) -> usize {
        let last = self.top.get(TOP - 1).map_or(0, |watched| watched.subscribers);
        self.top.iter().take_while(|watched| watched.subscribers >= last).count()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use feedgate_core::resource::ResourceKind;
    use feedgate_core::topic::Topic;

    #[test]
    fn those_that_tie_with_the_tenth_are_at_the_top_too() {
        let watched = |n: i64, subscribers: u32| WatchedResource {
            id: ResourceId(n),
            topic: Topic::parse(format!("https://a.test/{n}")).unwrap(),
            title: String::new(),
            site_url: None,
            kind: ResourceKind::Feed,
            subscribers,
            fetched_at: None,
            changed_at: None,
            exposure: Default::default(),
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
            let totals = StatsTotals { top: top.collect(), ..StatsTotals::default() };
            assert_eq!(totals.first(), want, "{subscribers:?}");
        }
    }
}
