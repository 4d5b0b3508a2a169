//! What a subscription is owed → a body, rendered once for all who are owed the same.

use std::collections::{HashMap, VecDeque};
use std::sync::{Arc, Mutex, PoisonError};

use bytes::Bytes;
use chrono::{DateTime, Utc};
use url::Url;

use feedgate_core::ports::{OwedRange, Store, StoreError};
use feedgate_core::record::{Audience, Record, RecordKind, Seq};
use feedgate_core::resource::{Resource, ResourceId, ResourceKind};
use feedgate_core::stored_entry::read_back;
use feedgate_core::subscription::{DueSubscription, Format, Statuses};
use feedgate_feed::model::Link;
use feedgate_feed::render;

/// The most records in one delivery (rule D2); what is left is due again at once.
const MOST_RECORDS: usize = 100;
/// The most bytes of rendered bodies that are kept.
const CACHE_BYTES: usize = 32 * 1024 * 1024;
/// JSON has no charset parameter (RFC 8259 `#section-11`), and `Content-Type` of Atom
/// goes without one because clients compare it whole; the document says what it is.
const JSON: &str = "application/json";
const ATOM: &str = "application/atom+xml";
/// What a body is called whose server did not say.
const UNKNOWN: &str = "application/octet-stream";

/// What is sent in one delivery.
#[derive(Clone, Debug)]
pub(super) struct Load {
    /// `Content-Type`.
    pub(super) content_type: String,
    /// The body; empty for rssCloud, which only says that something changed.
    pub(super) body: Bytes,
    /// The first number it brings.
    pub(super) first: Seq,
    /// The last.
    pub(super) last: Seq,
    /// When the first of its records was appended.
    pub(super) waiting_since: Option<DateTime<Utc>>,
    /// What it says of the status.
    pub(super) says: Says,
}

/// What a load says of the resource's status.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Says {
    /// Nothing.
    NoStatus,
    /// How it is, with what else there is: its version, as [`Statuses::version`] counts.
    Status(i64),
    /// How it is, and nothing else: its version.
    StatusOnly(i64),
}

/// Composes bodies.
pub(super) struct Composer {
    store: Arc<dyn Store>,
    public_url: Url,
    cache: Mutex<Cache>,
}

/// What a body depends on: whose log, from where to where, how, and to which kind of
/// subscriber.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
struct Key {
    resource: ResourceId,
    topic: String,
    after: Seq,
    owed: Seq,
    format: Format,
    least: Audience,
    is_open: bool,
    /// The version of the status that is owed at least; 0 where the body says none. What was
    /// made when the status was another is not sent as if it said this one (rule P33).
    status: i64,
    /// Which changes of the status that version counts.
    statuses: Statuses,
    /// Whether only the status is told.
    is_status_only: bool,
}

impl Composer {
    pub(super) fn new(store: Arc<dyn Store>, public_url: Url) -> Composer {
        Composer { store, public_url, cache: Mutex::default() }
    }

    /// What `due` is owed; `None` if there is nothing to bring after all.
    pub(super) async fn compose(&self, due: &DueSubscription) -> Result<Option<Load>, StoreError> {
        let subscription = &due.subscription;
        if subscription.protocol.is_rsscloud() {
            let first = Seq(subscription.cursor.0 + 1);
            let (content_type, body) = (String::new(), Bytes::new());
            let (last, waiting_since, says) = (due.owed, None, Says::NoStatus);
            return Ok(Some(Load { content_type, body, first, last, waiting_since, says }));
        }
        let is_behind = subscription.cursor < due.owed;
        let is_status_owed = due.status > subscription.status_told;
        if is_behind || !is_status_owed {
            let news = self.load(due, false).await?;
            if news.is_some() || !is_status_owed {
                return Ok(news);
            }
        }
        self.load(due, true).await
    }

    /// What `due` is owed: entries or bodies, or only the status.
    async fn load(
        &self,
        due: &DueSubscription,
        is_status_only: bool,
    ) -> Result<Option<Load>, StoreError> {
        let subscription = &due.subscription;
        let says_status = is_status_only || subscription.format != Format::Raw;
        let key = Key {
            status: if says_status { due.status } else { 0 },
            statuses: if says_status { subscription.statuses } else { Statuses::Never },
            is_status_only,
            resource: subscription.id.resource,
            topic: subscription.topic.as_str().to_owned(),
            after: subscription.cursor,
            owed: due.owed,
            format: subscription.format,
            least: subscription.updates.least(),
            is_open: subscription.account.is_none(),
        };
        if let Some(load) = self.cached(&key) {
            return Ok(Some(load));
        }
        let Some(resource) = self.store.get(key.resource).await? else { return Ok(None) };
        // What a resource is may change; what fits it is told when there is something to
        // send.
        let load = match (key.format, resource.kind) {
            _ if is_status_only => Some(self.status_only(&key, &resource)),
            (Format::Raw, _) => self.raw(&key, true).await?,
            (Format::Fitting, ResourceKind::Other) => self.raw(&key, false).await?,
            (Format::Atom | Format::Json | Format::Fitting, _) => {
                self.entries(&key, &resource).await?
            }
        };
        if let Some(load) = &load {
            self.lock().keep(key, load.clone());
        }
        Ok(load)
    }

    /// The newest body as it was received. `is_version` tells whether the cursor runs
    /// over versions of the body, rather than over records.
    async fn raw(&self, key: &Key, is_version: bool) -> Result<Option<Load>, StoreError> {
        let Some((version, body)) = self.store.body(key.resource).await? else {
            return Ok(None);
        };
        let last = if is_version { Seq(version) } else { key.owed };
        Ok(Some(Load {
            content_type: body.content_type.unwrap_or_else(|| UNKNOWN.to_owned()),
            body: body.bytes.into(),
            first: Seq(key.after.0 + 1),
            last,
            waiting_since: None,
            says: Says::NoStatus,
        }))
    }

    /// The new entries, newest first (row N-16), each as it was last said to be.
    async fn entries(&self, key: &Key, resource: &Resource) -> Result<Option<Load>, StoreError> {
        let (mut after, limit) = (key.after, MOST_RECORDS);
        let (records, last) = loop {
            let owed = OwedRange { after, upto: key.owed, least: key.least, limit };
            let mut records = self.store.owed(key.resource, &owed).await?;
            // What stands between records that are not sent is told with them.
            let is_all = records.len() < limit;
            let last = records.last().filter(|_| !is_all).map_or(key.owed, |record| record.seq);
            leave_out_replaced(&mut records, key.format);
            if is_all || !records.is_empty() {
                break (records, last);
            }
            after = last;
        };
        let Some(waiting_since) = records.first().map(|record| record.at) else {
            return Ok(None);
        };
        let atom = document(resource, &records, &self.links(key));
        let (content_type, body) = match key.format {
            Format::Json => (JSON, json(resource, &key.topic, &atom)),
            Format::Atom | Format::Fitting | Format::Raw => (ATOM, atom),
        };
        let (content_type, body) = (content_type.to_owned(), body.into());
        let (first, waiting_since) = (Seq(key.after.0 + 1), Some(waiting_since));
        let says = Says::Status(key.statuses.version(&resource.status));
        Ok(Some(Load { content_type, body, first, last, waiting_since, says }))
    }

    /// How the resource is, without entries (rule P33).
    fn status_only(&self, key: &Key, resource: &Resource) -> Load {
        let atom = document(resource, &[], &self.links(key));
        let (content_type, body) = match key.format {
            Format::Json => {
                let feed = read_back(resource, &atom);
                let json = render::json::status_only(&feed, &key.topic, resource.status.report());
                (JSON, json.to_string())
            }
            Format::Atom | Format::Fitting | Format::Raw => (ATOM, atom),
        };
        Load {
            content_type: content_type.to_owned(),
            body: body.into(),
            first: Seq(key.after.0 + 1),
            last: key.after.max(key.owed),
            waiting_since: None,
            says: Says::StatusOnly(key.statuses.version(&resource.status)),
        }
    }

    /// The links of the document itself, as in the `Link` header.
    fn links(&self, key: &Key) -> Vec<Link> {
        let hub = super::message::hub(&self.public_url, key.is_open);
        let link = |rel: &str, href: &str| Link {
            href: href.to_owned(),
            rel: rel.to_owned(),
            ..Link::default()
        };
        vec![link("self", &key.topic), link("hub", hub.as_str())]
    }

    fn cached(&self, key: &Key) -> Option<Load> {
        self.lock().loads.get(key).cloned()
    }

    fn lock(&self) -> std::sync::MutexGuard<'_, Cache> {
        // What a panic interrupted can only be an entry that is missing.
        self.cache.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Of an entry that stands there more than once the newest is enough. JSON has no word for
/// one that was taken back.
fn leave_out_replaced(records: &mut Vec<Record>, format: Format) {
    let replaced: Vec<Seq> = records.iter().filter_map(|record| record.predecessor).collect();
    let says = |record: &Record| format != Format::Json || record.kind != RecordKind::Deleted;
    records.retain(|record| !replaced.contains(&record.seq) && says(record));
}

fn document(resource: &Resource, records: &[Record], links: &[Link]) -> String {
    let entries: Vec<&str> = records.iter().rev().map(|record| record.atom.as_str()).collect();
    render::atom::document(&render::atom::AtomDocument {
        head: &resource.feed_head,
        topic: resource.topic.as_str(),
        status: Some(resource.status.report()),
        links,
        entries: &entries,
    })
}

/// JSON is a view of the same entries, so it is made from the same document.
fn json(resource: &Resource, topic: &str, atom: &str) -> String {
    let feed = read_back(resource, atom);
    render::json::document(&feed, topic, resource.status.report()).to_string()
}

/// Bodies made lately, the oldest forgotten first.
#[derive(Debug, Default)]
struct Cache {
    loads: HashMap<Key, Load>,
    order: VecDeque<Key>,
    bytes: usize,
}

impl Cache {
    fn keep(&mut self, key: Key, load: Load) {
        self.bytes += load.body.len();
        self.order.push_back(key.clone());
        if let Some(before) = self.loads.insert(key, load) {
            // Two who were owed the same made it at the same time.
            self.bytes -= before.body.len();
            self.order.pop_back();
        }
        while self.bytes > CACHE_BYTES {
            let Some(oldest) = self.order.pop_front() else { break };
            let load = self.loads.remove(&oldest);
            self.bytes -= load.map_or(0, |load| load.body.len());
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_cache_stays_within_its_bound() {
        let key = |n| Key {
            resource: ResourceId(n),
            topic: String::new(),
            after: Seq(0),
            owed: Seq(1),
            format: Format::Atom,
            least: Audience::Fresh,
            is_open: true,
            status: 0,
            statuses: Statuses::Never,
            is_status_only: false,
        };
        let load = |bytes| Load {
            content_type: ATOM.to_owned(),
            body: Bytes::from(vec![0; bytes]),
            first: Seq(1),
            last: Seq(1),
            waiting_since: None,
            says: Says::NoStatus,
        };
        let mut cache = Cache::default();
        for n in 0..8 {
            cache.keep(key(n), load(CACHE_BYTES / 4));
            cache.keep(key(n), load(CACHE_BYTES / 4));
        }
        assert_eq!(cache.bytes, CACHE_BYTES);
        assert_eq!((cache.loads.len(), cache.order.len()), (4, 4));
        assert!(cache.loads.contains_key(&key(7)) && !cache.loads.contains_key(&key(3)));
    }
}
