//! Composing what a subscription is owed as a body, rendered once for all subscriptions that are
//! owed the same.
//!
//! Invariant: the body of a delivery depends on nothing but its [`BodyKey`] and the log. However
//! many deliveries need it at the same time, one of them renders it and the others wait for it,
//! because a change of a popular resource is due to all its subscribers at once. The bodies take a
//! bounded number of bytes.

mod again;
mod body_key;
mod documents;
#[cfg(test)]
pub(super) mod tests;

use std::sync::Arc;

use bytes::Bytes;
use chrono::{DateTime, Utc};
use tokio::sync::Semaphore;
use tokio::task::yield_now;
use url::Url;

use crate::byte_cache::{ByteCache, ByteSize, CacheName};
use crate::net::{HttpClient, is_inner};
use feedgate_core::query::EntryMatcher;
use feedgate_core::record::{Record, Seq};
use feedgate_core::resource::{Resource, ResourceId, ResourceKind};
use feedgate_core::store::{OwedRange, StoreError};
use feedgate_core::subscription::{DueSubscription, Format, Subscription};
use feedgate_feed::render::StatusReport;
use feedgate_store::Store;

use body_key::BodyKey;
pub(crate) use body_key::LogRange;
pub(super) use documents::JSON;
use documents::leave_out_replaced;

/// The most records in one delivery; the rest is due again at once (rule D2).
const MOST_RECORDS: usize = 100;
/// The bytes of records that end a delivery, which has at least one record; the rest is due again at
/// once as well.
const MAX_RECORD_BYTES: usize = 1 << 20;
/// The most bodies that are rendered at the same time.
const CONCURRENT_RENDERINGS: usize = 8;
/// The capacity for all cached bodies together.
#[cfg(test)]
const CAPACITY_BYTES: usize = CacheName::Notifications.capacity_bytes();
/// The media type of a body whose server did not declare one.
const UNKNOWN: &str = "application/octet-stream";

/// The content of one delivery.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Payload {
    /// The value of `Content-Type`.
    pub(super) content_type: String,
    /// The body; empty for rssCloud, which only announces that something changed.
    pub(super) body: Bytes,
    /// The number of the first record in the payload.
    pub(super) first: Seq,
    /// The number of the last record in the payload.
    pub(super) last: Seq,
    /// The number of entries in the payload.
    pub(super) entries: usize,
    /// When the first of these records was appended.
    pub(super) waiting_since: Option<DateTime<Utc>>,
    /// The version of the resource's status that the payload includes.
    pub(super) status: StatusInclusion,
    /// The records before those of the payload that are no longer stored.
    pub(super) gap: Option<LogGap>,
}

/// Records that a reader is owed and that are no longer stored.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct LogGap {
    /// The number of the first one.
    pub(crate) from: Seq,
    /// The number of the last one.
    pub(crate) to: Seq,
}

/// A part of a log, composed for streams.
#[derive(Clone, Debug)]
pub(crate) struct ComposedRange {
    /// The body of the notification; `None` if no record of that part is sent to anybody.
    pub(crate) body: Option<Bytes>,
    /// The last record that it covers.
    pub(crate) last: Seq,
    /// The records of that part that are no longer stored.
    pub(crate) gap: Option<LogGap>,
}

impl Payload {
    /// Whether the payload has the status of the resource, and neither entries nor a body.
    pub(super) fn is_status_only(&self) -> bool {
        matches!(self.status, StatusInclusion::Only(_))
    }
}

/// What a subscription is owed.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum OwedContent {
    /// This payload.
    Payload(Payload),
    /// Nothing up to this number, as if it had been delivered.
    Nothing(Seq),
}

/// The status of the resource in a payload.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum StatusInclusion {
    /// The payload has no status.
    None,
    /// The status beside entries: its version, as `Statuses::version` counts.
    WithEntries(i64),
    /// The status and nothing else: its version.
    Only(i64),
}

/// The result of composing a body.
#[derive(Clone, Debug, PartialEq, Eq)]
enum Composed {
    /// A payload to send.
    Payload(Payload),
    /// No record up to `last` is for these subscribers, or none that is still stored. This result
    /// is final, because records are only appended behind the range.
    NothingOwed { last: Seq, gap: Option<LogGap> },
    /// The resource or its body is missing, so there is nothing to send at the moment.
    NothingStored,
}

impl ByteSize for Composed {
    fn byte_size(&self) -> usize {
        match self {
            Composed::Payload(payload) => payload.content_type.len() + payload.body.len(),
            Composed::NothingOwed { .. } | Composed::NothingStored => 0,
        }
    }
}

/// A cache of the recently composed bodies.
type ComposedBodies = ByteCache<BodyKey, Composed>;

/// Composes bodies.
pub(crate) struct Composer {
    store: Arc<Store>,
    public_url: Url,
    bodies: ComposedBodies,
    renderings: Semaphore,
    anonymous: AnonymousContents,
}

/// What those without an account are sent of what comes from inside private networks under names that
/// look public.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum AnonymousContents {
    /// Nothing, and no topic can lead there: only what was stored before is withheld.
    NothingLeadsInside,
    /// Nothing.
    Nothing,
    /// All of it: the operator lets everybody name private addresses.
    All,
}

impl AnonymousContents {
    /// Returns what the operator's networks imply.
    pub(crate) fn from_client(client: &HttpClient) -> AnonymousContents {
        match client.has_inner_topics_for_some() {
            _ if client.has_inner_addresses_for_all() => AnonymousContents::All,
            true => AnonymousContents::Nothing,
            false => AnonymousContents::NothingLeadsInside,
        }
    }
}

impl Composer {
    pub(crate) fn new(
        store: Arc<Store>,
        public_url: Url,
        anonymous: AnonymousContents,
    ) -> Composer {
        let renderings = Semaphore::new(CONCURRENT_RENDERINGS);
        let bodies = ComposedBodies::new(CacheName::Notifications);
        Composer { store, public_url, bodies, renderings, anonymous }
    }

    /// Returns what `due` is owed. It may be nothing after all.
    pub(super) async fn compose(&self, due: &DueSubscription) -> Result<OwedContent, StoreError> {
        let subscription = &due.subscription;
        if subscription.protocol.is_rsscloud() {
            if self.is_ping_withheld(subscription).await? {
                return Ok(OwedContent::Nothing(due.owed));
            }
            return Ok(OwedContent::Payload(Payload {
                content_type: String::new(),
                body: Bytes::new(),
                first: Seq(subscription.cursor.0 + 1),
                last: due.owed,
                entries: 0,
                waiting_since: None,
                status: StatusInclusion::None,
                gap: None,
            }));
        }
        let is_behind = subscription.cursor < due.owed;
        let is_status_owed = due.status > subscription.status_told;
        let mut key = BodyKey::new(due, !is_behind && is_status_owed);
        let mut composed = self.composed(&key).await?;
        // No entry goes with the status, so it is sent by itself.
        if is_status_owed && !matches!(composed, Composed::Payload(_)) {
            key = BodyKey::new(due, true);
            if let Composed::NothingOwed { last, .. } = composed {
                key.owed = last;
            }
            composed = self.composed(&key).await?;
        }
        Ok(match composed {
            Composed::Payload(payload) => OwedContent::Payload(payload),
            Composed::NothingOwed { last, .. } => OwedContent::Nothing(last),
            Composed::NothingStored => OwedContent::Nothing(due.owed),
        })
    }

    /// Returns the body of the notification of a part of a log, how far it goes, and which records
    /// in it are no longer stored.
    pub(crate) async fn compose_range(&self, range: LogRange) -> Result<ComposedRange, StoreError> {
        let upto = range.upto;
        Ok(match self.composed(&BodyKey::from_range(range)).await? {
            Composed::Payload(Payload { body, last, gap, .. }) => {
                ComposedRange { body: Some(body), last, gap }
            }
            Composed::NothingOwed { last, gap } => ComposedRange { body: None, last, gap },
            Composed::NothingStored => ComposedRange { body: None, last: upto, gap: None },
        })
    }

    /// Returns the payload of a test notification, which reports no change: the status of the
    /// resource without entries, or its body for a subscription that receives the body. It is not
    /// cached, because a body that is cached has the status of its version. `None` if there is no
    /// body.
    pub(super) async fn compose_test(
        &self,
        subscription: &Subscription,
    ) -> Result<Option<Payload>, StoreError> {
        let Some(resource) = self.store.get(subscription.id.resource).await? else {
            return Ok(None);
        };
        let is_body = match subscription.format {
            Format::Raw => true,
            Format::Fitting => resource.kind == ResourceKind::Other,
            Format::Atom | Format::Json => false,
        };
        let key = BodyKey::of_test(subscription, !is_body);
        Ok(match self.render(&key).await? {
            Composed::Payload(payload) => Some(payload),
            Composed::NothingOwed { .. } | Composed::NothingStored => None,
        })
    }

    /// Returns whether a ping is not sent because the resource lies inside a private network. Pings are not
    /// rendered, so that the resource is read for those only that may lead there.
    async fn is_ping_withheld(&self, subscription: &Subscription) -> Result<bool, StoreError> {
        let may_lead_inside = self.anonymous == AnonymousContents::Nothing
            && subscription.account.is_none()
            && !is_inner(&subscription.topic.fetch_url());
        if !may_lead_inside {
            return Ok(false);
        }
        let resource = self.store.get(subscription.id.resource).await?;
        Ok(resource.is_some_and(|held| !held.exposure.is_sent_without_account(&held.topic)))
    }

    /// Returns what is cached for `key`, or renders it.
    async fn composed(&self, key: &BodyKey) -> Result<Composed, StoreError> {
        let guard = match self.bodies.get_or_guard(key, |_| true).await {
            Ok(composed) => return Ok(composed),
            Err(guard) => guard,
        };
        let rendering = self.renderings.acquire().await.map_err(|_| StoreError::Closed)?;
        let composed = self.render(key).await?;
        drop(rendering);
        if composed != Composed::NothingStored {
            guard.fill(composed.clone());
        }
        Ok(composed)
    }

    async fn render(&self, key: &BodyKey) -> Result<Composed, StoreError> {
        let Some(resource) = self.store.get(key.resource).await? else {
            return Ok(Composed::NothingStored);
        };
        // What is stored of a resource never leaves a private network again, so this result is final.
        if key.is_open
            && self.anonymous != AnonymousContents::All
            && !resource.exposure.is_sent_without_account(&resource.topic)
        {
            return Ok(Composed::NothingOwed { last: key.owed, gap: None });
        }
        // The kind of a resource may change, so its format is chosen when there is something to
        // send.
        match (key.format, resource.kind) {
            _ if key.is_status_only => Ok(Composed::Payload(self.status_only(key, &resource))),
            (Format::Raw, _) => self.raw(key, true).await,
            (Format::Fitting, ResourceKind::Other) => self.raw(key, false).await,
            (Format::Atom | Format::Json | Format::Fitting, _) => {
                self.entries(key, &resource).await
            }
        }
    }

    /// Returns the newest body as it was received. `is_version` states whether the cursor runs over
    /// versions of the body, rather than over records.
    async fn raw(&self, key: &BodyKey, is_version: bool) -> Result<Composed, StoreError> {
        let Some((version, body)) = self.store.body(key.resource).await? else {
            return Ok(Composed::NothingStored);
        };
        let last = if is_version { Seq(version) } else { key.owed };
        Ok(Composed::Payload(Payload {
            content_type: body.content_type.unwrap_or_else(|| UNKNOWN.to_owned()),
            body: body.bytes.into(),
            first: Seq(key.after.0 + 1),
            last,
            entries: 0,
            waiting_since: None,
            status: StatusInclusion::None,
            gap: None,
        }))
    }

    /// Returns the new entries that the subscribers want, newest first, each in its newest version (rows
    /// N-16 and Q-5).
    async fn entries(&self, key: &BodyKey, resource: &Resource) -> Result<Composed, StoreError> {
        let own = self.own_feed(key, resource);
        let shows_versions = own.as_ref().is_some_and(|own| own.shows_versions);
        let (mut after, mut gap, limit) = (key.after, None, MOST_RECORDS);
        let (records, last) = loop {
            let max_bytes = MAX_RECORD_BYTES;
            let owed = OwedRange { after, upto: key.owed, least: key.least, limit, max_bytes };
            let mut records = self.store.owed(key.resource, &owed).await?;
            // Records in between that are not sent count as delivered with them.
            let bytes: usize = records.iter().map(|record| record.atom.len()).sum();
            let is_all = records.len() < limit && bytes < max_bytes;
            gap = gap.or(self.gap(key.resource, &owed, records.first()).await?);
            let last = records.last().filter(|_| !is_all).map_or(key.owed, |record| record.seq);
            leave_out_replaced(&mut records, key.format, shows_versions);
            if let Some(filter) = &key.filter {
                // The next delivery goes on behind records of which none matches, so that each compares a
                // bounded number.
                let matcher = filter.matcher();
                let matcher = matcher.map_err(|err| StoreError::Corrupt(err.to_string()))?;
                break (matching_records(&matcher, resource, records).await, last);
            }
            if is_all || !records.is_empty() {
                break (records, last);
            }
            after = last;
        };
        let Some(waiting_since) = records.first().map(|record| record.at) else {
            return Ok(Composed::NothingOwed { last, gap });
        };
        let records = match own {
            Some(own) => self.published(&own, resource, records).await?,
            None => records,
        };
        let status = StatusReport { is_digest: key.is_digest, ..resource.status.report() };
        let (content_type, body) = self.body(key, resource, status, &records);
        Ok(Composed::Payload(Payload {
            content_type: content_type.to_owned(),
            body: body.into(),
            first: Seq(key.after.0 + 1),
            last,
            entries: records.len(),
            waiting_since: Some(waiting_since),
            status: StatusInclusion::WithEntries(key.statuses.version(&resource.status)),
            gap,
        }))
    }

    /// Returns the records of a range before `first`, the first one read of it, that the log no
    /// longer stores. Others are missing because they have another audience.
    async fn gap(
        &self,
        id: ResourceId,
        range: &OwedRange,
        first: Option<&Record>,
    ) -> Result<Option<LogGap>, StoreError> {
        let from = Seq(range.after.0 + 1);
        let read = first.map_or(Seq(range.upto.0 + 1), |record| record.seq);
        if read == from {
            return Ok(None);
        }
        // Asked after the records were read, so that none of them can be dropped in between unseen.
        let stored = self.store.oldest_seq(id).await?.min(read);
        Ok((stored > from).then_some(LogGap { from, to: Seq(stored.0 - 1) }))
    }

    /// Returns the status of the resource, without entries (rule P33).
    fn status_only(&self, key: &BodyKey, resource: &Resource) -> Payload {
        let (content_type, body) = self.body(key, resource, resource.status.report(), &[]);
        Payload {
            content_type: content_type.to_owned(),
            body: body.into(),
            first: Seq(key.after.0 + 1),
            last: key.after.max(key.owed),
            entries: 0,
            waiting_since: None,
            status: StatusInclusion::Only(key.statuses.version(&resource.status)),
            gap: None,
        }
    }
}

/// Returns the records that match a filter.
pub(crate) async fn matching_records(
    matcher: &EntryMatcher,
    resource: &Resource,
    records: Vec<Record>,
) -> Vec<Record> {
    let mut matching = Vec::new();
    for record in records {
        if matcher.matches(resource, &record) {
            matching.push(record);
        }
        // Comparing an entry takes a fraction of a millisecond.
        yield_now().await;
    }
    matching
}
