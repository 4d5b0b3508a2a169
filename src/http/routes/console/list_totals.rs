//! How many feeds and subscriptions there are, as pages say it.

use super::visit::Visit;
use crate::http::kit::html::parts::grouped;
use crate::http::kit::rejection::Rejection;
use feedgate_core::store::{Gauges, ListCounts};

/// The totals of the lists that somebody may see.
pub(super) struct ListTotals {
    counts: ListCounts,
    /// The gauges, which are up to a minute old, if the lists are those of the whole gateway.
    gauges: Option<Gauges>,
}

impl ListTotals {
    /// Counts the feeds and subscriptions.
    pub(super) async fn read(visit: &Visit) -> Result<ListTotals, Rejection> {
        let (store, account) = (&visit.gateway.store, visit.visible_account()?);
        let counts = store.list_counts(account).await;
        let gauges = match account {
            Some(_) => None,
            None => Some(visit.gateway.gauges.get(store).await),
        };
        let unavailable = |err| Rejection::unavailable(&err);
        let gauges = gauges.transpose().map_err(unavailable)?.map(|counted| counted.gauges);
        Ok(ListTotals { counts: counts.map_err(unavailable)?, gauges })
    }

    /// Returns the gauges, if the lists are those of the whole gateway.
    pub(super) fn gauges(&self) -> Option<&Gauges> {
        self.gauges.as_ref()
    }

    /// Returns whether there are no feeds.
    pub(super) fn is_empty(&self) -> bool {
        self.counts.feeds == 0
    }

    /// Returns the number of feeds.
    pub(super) fn feeds(&self) -> String {
        self.total(self.counts.feeds, |gauges| gauges.resources)
    }

    /// Returns the number of feeds that fail.
    pub(super) fn failing_feeds(&self) -> String {
        self.total(self.counts.failing_feeds, |gauges| gauges.failing)
    }

    /// Returns the number of subscriptions.
    pub(super) fn subscriptions(&self) -> String {
        match self.gauges {
            Some(_) => self.total(self.counts.subscriptions, |gauges| gauges.subscriptions),
            None => grouped(self.counts.subscriptions),
        }
    }

    /// Returns the number of subscriptions that fail.
    pub(super) fn failing_subscriptions(&self) -> String {
        self.total(self.counts.failing_subscriptions, |_| 0)
    }

    /// Returns a number: what was counted now, or of many what was counted last.
    fn total(&self, counted: u64, gauge: fn(&Gauges) -> u64) -> String {
        let most = ListCounts::MOST;
        match self.gauges.as_ref().map(gauge) {
            _ if counted < most => grouped(counted),
            Some(many) if many >= most => grouped(many),
            _ => format!("{}+", grouped(most)),
        }
    }
}
