//! `/stats.json` and `/stats`: the totals as JSON and as a page. Names that readers of deployed
//! servers know have the same meaning here; the others are feedgate's own.
//!
//! Numbers under `node` are those of this process since it started; all others are those of the
//! whole gateway.

use chrono::{DateTime, Utc};
use serde_json::{Map, Value, json};

use super::document::{DocumentWriter, ViewDocument};
use super::subscriptions::timestamp;
use super::totals::{PROTOCOLS, StatsTotals, WINDOW_DAYS};
use super::{TITLE_CHARS, page};
use crate::byte_cache::ByteSize;
use crate::http::kit::html;
use crate::http::kit::viewer_access::ViewerAccess;
use crate::http::state::Gateway;
use crate::jobs::runner;
use feedgate_core::redaction;
use feedgate_core::store::{StoreError, WatchedResource};

const JSON: &str = "application/json; charset=utf-8";

/// The statistics, in both forms.
pub(super) struct Stats {
    /// The document at `/stats.json`.
    pub(super) json: ViewDocument,
    /// The document at `/stats`.
    pub(super) page: ViewDocument,
}

impl ByteSize for Stats {
    fn byte_size(&self) -> usize {
        self.json.byte_size() + self.page.byte_size()
    }
}

impl Stats {
    /// Counts the totals and renders them. The node started at `started_at`.
    pub(super) async fn render(
        gateway: &Gateway,
        access: ViewerAccess,
        started_at: DateTime<Utc>,
    ) -> Result<Stats, StoreError> {
        let now = runner::now();
        let totals = StatsTotals::count(gateway, access, started_at, now).await?;
        let (mut json, mut text) = (DocumentWriter::new(), DocumentWriter::new());
        json.push(&format!("{:#}\n", totals_json(&totals)));
        let page = page::page(&totals);
        text.push(&page.document());
        let page = text.finish(html::MEDIA_TYPE, now).with_policy(page.interaction.policy());
        Ok(Stats { json: json.finish(JSON, now), page })
    }
}

fn totals_json(totals: &StatsTotals) -> Value {
    let (top, more) = totals.top.split_at(totals.first());
    let feeds = |list: &[WatchedResource]| list.iter().map(feed).collect::<Vec<_>>();
    let protocols = PROTOCOLS.iter().zip(totals.by_protocol);
    let protocols = protocols.map(|(word, many)| ((*word).to_owned(), many.into()));
    json!({
        "generatedAt": timestamp(totals.at),
        "version": env!("CARGO_PKG_VERSION"),
        "feedsChangedLastWindow": totals.changed,
        "windowDays": WINDOW_DAYS,
        // The name of the same number on older servers.
        "feedsChangedLast7Days": totals.changed,
        "feedsWithSubscribers": totals.watched,
        "feedsFailing": totals.gauges.failing,
        "uniqueAggregators": totals.subscriber_hosts,
        "totalActiveSubscriptions": totals.subscriptions(),
        "openSubscriptions": totals.open,
        "accountSubscriptions": totals.subscriptions() - totals.open,
        "failingSubscriptions": totals.failing,
        "subscriptionsDue": totals.gauges.due,
        "oldestDueSeconds": totals.gauges.oldest_due.deliveries_s,
        "protocolBreakdown": protocols.collect::<Map<String, Value>>(),
        "pings": { "lastHour": totals.pings.0, "total": totals.pings.1 },
        "node": {
            "startedAt": timestamp(totals.started_at),
            "uptimeSeconds": totals.uptime_s(),
            "deliveries": { "ok": totals.deliveries.0, "failed": totals.deliveries.1 },
        },
        "topFeeds": feeds(top),
        "moreFeeds": feeds(more),
    })
}

fn feed(watched: &WatchedResource) -> Value {
    let title =
        Some(redaction::line(&watched.title, TITLE_CHARS)).filter(|title| !title.is_empty());
    json!({
        "url": watched.topic.as_str(),
        "subscriberCount": watched.subscribers,
        "whenLastUpdate": watched.changed_at.map(timestamp),
        "feedTitle": title,
    })
}
