//! Composing what a subscription is owed as a body, rendered once for all subscriptions that are
//! owed the same.
//!
//! Invariant: the body of a delivery depends on nothing but its [`BodyKey`] and the log. However
//! many deliveries need it at the same time, one of them renders it and the others wait for it,
//! because a change of a popular resource is due to all its subscribers at once. The bodies take a
//! bounded number of bytes.

mod again;
mod body_key;

use std::sync::Arc;

use bytes::Bytes;
use chrono::{DateTime, Utc};
use tokio::sync::Semaphore;
use url::Url;

use crate::byte_cache::{ByteCache, ByteSize};
use feedgate_core::ports::{OwedRange, Store, StoreError};
use feedgate_core::record::{Record, RecordKind, Seq};
use feedgate_core::resource::{Resource, ResourceKind};
use feedgate_core::stored_entry::{parts, read_back};
use feedgate_core::subscription::{DueSubscription, Format, Subscription};
use feedgate_feed::model::Link;
use feedgate_feed::render::{self, StatusReport};

use body_key::BodyKey;
pub(crate) use body_key::LogRange;

/// The most records in one delivery; the rest is due again at once (rule D2).
const MOST_RECORDS: usize = 100;
/// The bytes of records that end a delivery, which has at least one record; the rest is due again at
/// once as well.
const MAX_RECORD_BYTES: usize = 1 << 20;
/// The most bodies that are rendered at the same time.
const CONCURRENT_RENDERINGS: usize = 8;
/// The capacity for all cached bodies together.
const CAPACITY_BYTES: usize = 32 * 1024 * 1024;
/// The media type of JSON, which has no charset parameter (RFC 8259 `#section-11`). `Content-Type`
/// of Atom has none either, because clients compare it whole; the document declares its encoding.
const JSON: &str = "application/json";
const ATOM: &str = "application/atom+xml";
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
}

impl Payload {
    /// Whether the payload has the status of the resource, and neither entries nor a body.
    pub(super) fn is_status_only(&self) -> bool {
        matches!(self.status, StatusInclusion::Only(_))
    }
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
    /// No record in the range is for these subscribers. This result is final, because records are
    /// only appended behind the range.
    NothingOwed,
    /// The resource or its body is missing, so there is nothing to send at the moment.
    NothingStored,
}

impl ByteSize for Composed {
    fn byte_size(&self) -> usize {
        match self {
            Composed::Payload(payload) => payload.content_type.len() + payload.body.len(),
            Composed::NothingOwed | Composed::NothingStored => 0,
        }
    }
}

/// A cache of the recently composed bodies.
type ComposedBodies = ByteCache<BodyKey, Composed>;

/// Composes bodies.
pub(crate) struct Composer {
    store: Arc<dyn Store>,
    public_url: Url,
    bodies: ComposedBodies,
    renderings: Semaphore,
}

impl Composer {
    pub(crate) fn new(store: Arc<dyn Store>, public_url: Url) -> Composer {
        let renderings = Semaphore::new(CONCURRENT_RENDERINGS);
        Composer { store, public_url, bodies: ComposedBodies::new(CAPACITY_BYTES), renderings }
    }

    /// Returns what `due` is owed, or `None` if there is nothing to send after all.
    pub(super) async fn compose(
        &self,
        due: &DueSubscription,
    ) -> Result<Option<Payload>, StoreError> {
        let subscription = &due.subscription;
        if subscription.protocol.is_rsscloud() {
            return Ok(Some(Payload {
                content_type: String::new(),
                body: Bytes::new(),
                first: Seq(subscription.cursor.0 + 1),
                last: due.owed,
                entries: 0,
                waiting_since: None,
                status: StatusInclusion::None,
            }));
        }
        let is_behind = subscription.cursor < due.owed;
        let is_status_owed = due.status > subscription.status_told;
        if is_behind || !is_status_owed {
            let entries = self.payload(due, false).await?;
            if entries.is_some() || !is_status_owed {
                return Ok(entries);
            }
        }
        self.payload(due, true).await
    }

    /// Returns the body of the notification of a part of a log, and the last record that it covers.
    /// The body is `None` if no record of that part is sent to anybody.
    pub(crate) async fn compose_range(
        &self,
        range: LogRange,
    ) -> Result<(Option<Bytes>, Seq), StoreError> {
        let upto = range.upto;
        Ok(match self.composed(&BodyKey::from_range(range)).await? {
            Composed::Payload(payload) => (Some(payload.body), payload.last),
            Composed::NothingOwed | Composed::NothingStored => (None, upto),
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
            Composed::NothingOwed | Composed::NothingStored => None,
        })
    }

    /// Returns the payload that `due` is owed: entries or bodies, or only the status.
    async fn payload(
        &self,
        due: &DueSubscription,
        is_status_only: bool,
    ) -> Result<Option<Payload>, StoreError> {
        Ok(match self.composed(&BodyKey::new(due, is_status_only)).await? {
            Composed::Payload(payload) => Some(payload),
            Composed::NothingOwed | Composed::NothingStored => None,
        })
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
        }))
    }

    /// Returns the new entries, newest first, each in its newest version (row N-16).
    async fn entries(&self, key: &BodyKey, resource: &Resource) -> Result<Composed, StoreError> {
        let (mut after, limit) = (key.after, MOST_RECORDS);
        let (records, last) = loop {
            let max_bytes = MAX_RECORD_BYTES;
            let owed = OwedRange { after, upto: key.owed, least: key.least, limit, max_bytes };
            let mut records = self.store.owed(key.resource, &owed).await?;
            // Records in between that are not sent count as delivered with them.
            let bytes: usize = records.iter().map(|record| record.atom.len()).sum();
            let is_all = records.len() < limit && bytes < max_bytes;
            let last = records.last().filter(|_| !is_all).map_or(key.owed, |record| record.seq);
            leave_out_replaced(&mut records, key.format);
            if is_all || !records.is_empty() {
                break (records, last);
            }
            after = last;
        };
        let Some(waiting_since) = records.first().map(|record| record.at) else {
            return Ok(Composed::NothingOwed);
        };
        let status = StatusReport { is_digest: key.is_digest, ..resource.status.report() };
        let atom = document(resource, status, &records, &self.links(key), key.is_sanitized);
        let (content_type, body) = match key.format {
            Format::Json => (JSON, json(resource, status, &key.topic, &atom)),
            Format::Atom | Format::Fitting | Format::Raw => (ATOM, atom),
        };
        Ok(Composed::Payload(Payload {
            content_type: content_type.to_owned(),
            body: body.into(),
            first: Seq(key.after.0 + 1),
            last,
            entries: records.len(),
            waiting_since: Some(waiting_since),
            status: StatusInclusion::WithEntries(key.statuses.version(&resource.status)),
        }))
    }

    /// Returns the status of the resource, without entries (rule P33).
    fn status_only(&self, key: &BodyKey, resource: &Resource) -> Payload {
        let status = resource.status.report();
        let atom = document(resource, status, &[], &self.links(key), key.is_sanitized);
        let (content_type, body) = match key.format {
            Format::Json => {
                let feed = read_back(resource, &atom);
                let json = render::json::status_only(&feed, &key.topic, status);
                (JSON, json.to_string())
            }
            Format::Atom | Format::Fitting | Format::Raw => (ATOM, atom),
        };
        Payload {
            content_type: content_type.to_owned(),
            body: body.into(),
            first: Seq(key.after.0 + 1),
            last: key.after.max(key.owed),
            entries: 0,
            waiting_since: None,
            status: StatusInclusion::Only(key.statuses.version(&resource.status)),
        }
    }

    /// Returns the links of the document itself, as in the `Link` header.
    fn links(&self, key: &BodyKey) -> Vec<Link> {
        let hub = super::hub_url::hub_url(&self.public_url, key.is_open);
        let link = |rel: &str, href: &str| Link {
            href: href.to_owned(),
            rel: rel.to_owned(),
            ..Link::default()
        };
        vec![link("self", &key.topic), link("hub", hub.as_str())]
    }
}

/// Removes records of an entry that a newer record replaces. JSON has no form for a deleted entry.
fn leave_out_replaced(records: &mut Vec<Record>, format: Format) {
    let replaced: Vec<Seq> = records.iter().filter_map(|record| record.predecessor).collect();
    let says = |record: &Record| format != Format::Json || record.kind != RecordKind::Deleted;
    records.retain(|record| !replaced.contains(&record.seq) && says(record));
}

fn document(
    resource: &Resource,
    status: StatusReport<'_>,
    records: &[Record],
    links: &[Link],
    is_sanitized: bool,
) -> String {
    let (head, entries) = parts(resource, records.iter().rev(), is_sanitized);
    let entries: Vec<&str> = entries.iter().map(AsRef::as_ref).collect();
    render::atom::document(&render::atom::AtomDocument {
        head: &head,
        topic: resource.topic.as_str(),
        status: Some(status),
        links,
        entries: &entries,
    })
}

/// Renders the entries as JSON from the Atom document, of which it is a view.
fn json(resource: &Resource, status: StatusReport<'_>, topic: &str, atom: &str) -> String {
    let feed = read_back(resource, atom);
    render::json::document(&feed, topic, status).to_string()
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;
    use std::path::Path;
    use std::time::Duration;

    use feedgate_core::change_detection::{Candidate, FeedDocument};
    use feedgate_core::host_groups::HostGroups;
    use feedgate_core::page::PageLimits;
    use feedgate_core::ping_forwarding::PingForwarding;
    use feedgate_core::resource::ResourceId;
    use feedgate_core::signing::Signing;
    use feedgate_core::subscription::{Statuses, SubscriptionId, Updates};
    use feedgate_core::topic::{Callback, Topic};
    use feedgate_protocol::Protocol;
    use futures_util::future::join_all;

    use super::*;
    use feedgate_core::claim::ClaimToken;

    const TOPIC: &str = "https://tides.test/feed";

    /// Returns a composer on a store with one resource.
    async fn composer(folder: &Path) -> (Arc<Composer>, ResourceId) {
        let settings = feedgate_store::StoreSettings {
            url: format!("sqlite:{}", folder.join("feedgate.db").display()),
            connections: 4,
            groups: HostGroups::new(Duration::ZERO),
            cut: PageLimits::default(),
            forwarding: PingForwarding::default(),
            anonymous_bytes_per_day: 256 << 20,
            account_bytes_per_day: 32 << 30,
            claim_clock: Default::default(),
            cells: 1,
            secret_keys: Default::default(),
        };
        let store = feedgate_store::open(&settings).await.unwrap();
        let topic = Topic::parse(TOPIC).unwrap();
        let id = store.ensure(&topic, DateTime::UNIX_EPOCH).await.unwrap().id;
        let public_url = Url::parse("https://gateway.test/").unwrap();
        (Arc::new(Composer::new(store, public_url)), id)
    }

    /// Returns a subscription that is owed the status in this version.
    fn due(resource: ResourceId, number: i64, status: i64) -> DueSubscription {
        let subscription = Subscription {
            id: SubscriptionId { resource, number },
            account: None,
            topic: Topic::parse(TOPIC).unwrap(),
            callback: Callback::parse(format!("https://reader.test/{number}")).unwrap(),
            protocol: Protocol::WebSub,
            format: Format::Json,
            updates: Updates::default(),
            statuses: Statuses::default(),
            is_sanitized: false,
            status_told: 0,
            signing: Signing::default(),
            cursor: Seq(0),
            failures: 0,
            failing_since: None,
            lease_until: DateTime::UNIX_EPOCH,
            created_at: DateTime::UNIX_EPOCH,
        };
        DueSubscription {
            subscription,
            claim: ClaimToken::NONE,
            batch: None,
            owed: Seq(0),
            newest: Seq(0),
            status,
            told_before: Seq(0),
            replays: 0,
            is_digest: false,
            acknowledged: 0,
            hops: 0,
        }
    }

    #[tokio::test(flavor = "multi_thread", worker_threads = 4)]
    async fn what_many_subscriptions_are_owed_at_the_same_time_is_rendered_once() {
        let folder = tempfile::tempdir().unwrap();
        let (composer, id) = composer(folder.path()).await;
        let deliveries = (0..512).map(|number| {
            let (composer, due) = (Arc::clone(&composer), due(id, number, 1 + number % 2));
            tokio::spawn(async move { composer.compose(&due).await.unwrap().unwrap() })
        });
        let payloads: Vec<Payload> =
            join_all(deliveries).await.into_iter().map(Result::unwrap).collect();
        // Each rendering keeps its own memory while all are alive.
        let rendered: BTreeSet<_> = payloads.iter().map(|payload| payload.body.as_ptr()).collect();
        assert_eq!(rendered.len(), 2, "once for each version of the status");
        assert_eq!(composer.bodies.len(), 2);
    }

    #[tokio::test]
    async fn what_is_missing_is_looked_for_again() {
        let folder = tempfile::tempdir().unwrap();
        let (composer, id) = composer(folder.path()).await;
        let mut raw = due(id, 1, 0);
        (raw.subscription.format, raw.owed) = (Format::Raw, Seq(1));
        let mut entries = raw.clone();
        entries.subscription.format = Format::Atom;
        let gone = due(ResourceId(id.0 + 1), 1, 1);
        for (due, stored) in [(&raw, 0), (&gone, 0), (&entries, 1)] {
            assert_eq!(composer.compose(due).await.unwrap(), None);
            assert_eq!(composer.bodies.len(), stored);
        }
    }

    /// Row S-14.
    #[tokio::test]
    async fn a_digest_says_that_it_is_one() {
        let folder = tempfile::tempdir().unwrap();
        let (composer, id) = composer(folder.path()).await;
        let key = BodyKey::new(&DueSubscription { is_digest: true, ..due(id, 1, 1) }, false);
        let entry = Candidate::of_id("1", "<entry><id>1</id></entry>".to_owned());
        let document = FeedDocument { candidates: vec![entry], ..FeedDocument::default() };
        composer.store.push(id, document, DateTime::UNIX_EPOCH).await.unwrap();
        let marks =
            [(Format::Json, r#""digest":true"#), (Format::Atom, r#"superfeedr:digest="true""#)];
        for (format, mark) in marks {
            for is_digest in [true, false] {
                let key = BodyKey { format, is_digest, owed: Seq(1), ..key.clone() };
                let Composed::Payload(payload) = composer.composed(&key).await.unwrap() else {
                    panic!("an entry is owed");
                };
                let body = String::from_utf8(payload.body.to_vec()).unwrap();
                assert_eq!(body.contains(mark), is_digest, "{body}");
            }
        }
    }

    #[tokio::test]
    async fn the_bodies_take_no_more_than_their_capacity() {
        let folder = tempfile::tempdir().unwrap();
        let (composer, id) = composer(folder.path()).await;
        for number in 0..20 {
            let payload = Payload {
                content_type: ATOM.to_owned(),
                body: Bytes::from(vec![0; CAPACITY_BYTES / 6]),
                first: Seq(1),
                last: Seq(1),
                entries: 1,
                waiting_since: None,
                status: StatusInclusion::None,
            };
            let key = BodyKey::new(&due(id, 1, number), true);
            composer.bodies.insert(key.clone(), Composed::Payload(payload));
            assert!(composer.bodies.bytes() <= CAPACITY_BYTES);
            assert!(composer.bodies.get(&key).is_some(), "the newest is there");
        }
        assert!(composer.bodies.len() >= 4);
    }
}
