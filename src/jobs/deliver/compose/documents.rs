//! The documents of notifications.

use super::super::hub_url::hub_url;
use super::Composer;
use super::body_key::BodyKey;
use feedgate_core::archive_identity::{archived_record, collected_record, published_head};
use feedgate_core::own_archive::ArchiveAddress;
use feedgate_core::record::{Record, RecordKind, Seq};
use feedgate_core::resource::{Resource, ResourceKind};
use feedgate_core::store::StoreError;
use feedgate_core::stored_entry::{parts, read_back};
use feedgate_core::subscription::Format;
use feedgate_feed::model::Link;
use feedgate_feed::render::{self, StatusReport};

/// The media type of JSON, which has no charset parameter (RFC 8259 `#section-11`). `Content-Type`
/// of feeds has none either, because clients compare it whole; the document declares its encoding.
pub(in crate::jobs::deliver) const JSON: &str = "application/json";

/// Removes records of an entry that a newer record replaces, unless the topic shows all versions. JSON has
/// no form for a deleted entry.
pub(super) fn leave_out_replaced(records: &mut Vec<Record>, format: Format, shows_versions: bool) {
    let replaced = records.iter().filter(|_| !shows_versions).filter_map(|it| it.predecessor);
    let replaced: Vec<Seq> = replaced.collect();
    let says = |record: &Record| format != Format::Json || record.kind != RecordKind::Deleted;
    records.retain(|record| !replaced.contains(&record.seq) && says(record));
}

impl Composer {
    /// Returns the address that was subscribed to, if it is that of a feed of this gateway: then the
    /// notification has the ids of that feed, and its format.
    pub(super) fn own_feed(&self, key: &BodyKey, resource: &Resource) -> Option<ArchiveAddress> {
        // A resource may be polled at such an address, if it is subscribed to as before there were any.
        let is_own =
            resource.kind == ResourceKind::Collection || key.topic != resource.topic.as_str();
        let address = is_own.then(|| ArchiveAddress::parse(&self.public_url, &key.topic));
        address.flatten()
    }

    /// Returns records as they are in a feed of this gateway.
    pub(super) async fn published(
        &self,
        own: &ArchiveAddress,
        resource: &Resource,
        records: Vec<Record>,
    ) -> Result<Vec<Record>, StoreError> {
        let publish = match (own.shows_versions, resource.kind) {
            (true, _) => archived_record,
            (false, ResourceKind::Collection) => collected_record,
            (false, ResourceKind::Unknown | ResourceKind::Feed | ResourceKind::Other) => {
                return Ok(records);
            }
        };
        let archived = self.store.archived(resource.id, records).await?;
        let topic = &*resource.topic.displayed();
        Ok(archived.into_iter().map(|held| publish(topic, held)).collect())
    }

    /// Returns the media type and the body of a notification with these records, or with the status only.
    pub(super) fn body(
        &self,
        key: &BodyKey,
        resource: &Resource,
        status: StatusReport<'_>,
        records: &[Record],
    ) -> (&'static str, String) {
        let own = self.own_feed(key, resource);
        let (links, is_sanitized, is_own_feed) = (self.links(key), key.is_sanitized, own.is_some());
        let links = &links[..];
        let notification =
            NotificationDocument { resource, status, records, links, is_sanitized, is_own_feed };
        let atom = notification.to_atom();
        if key.format == Format::Json {
            return (JSON, json(resource, status, key, &atom));
        }
        let format = own.filter(|_| key.is_converted).map(|own| own.format).unwrap_or_default();
        let body = format.convert(resource, atom, Some(&resource.status));
        (format.media_type(), body)
    }

    /// Returns the links of the document itself, as in the `Link` header.
    fn links(&self, key: &BodyKey) -> Vec<Link> {
        let hub = hub_url(&self.public_url, key.is_open);
        let link = |rel: &str, href: &str| Link {
            href: href.to_owned(),
            rel: rel.to_owned(),
            ..Link::default()
        };
        vec![link("self", &key.topic), link("hub", hub.as_str())]
    }
}

/// A notification, from which its document is rendered.
#[derive(Clone, Copy, Debug)]
struct NotificationDocument<'a> {
    /// The resource that it is about.
    resource: &'a Resource,
    /// The status that it includes.
    status: StatusReport<'a>,
    /// Its records, ascending.
    records: &'a [Record],
    /// The links of the document itself.
    links: &'a [Link],
    /// Whether its texts are sanitized.
    is_sanitized: bool,
    /// Whether the topic is the address of a feed of this gateway, whose head the document has.
    is_own_feed: bool,
}

impl NotificationDocument<'_> {
    /// Renders the document in Atom.
    fn to_atom(self) -> String {
        let resource = self.resource;
        let (head, entries) = parts(resource, self.records.iter().rev(), self.is_sanitized);
        let head = match self.is_own_feed {
            true => published_head(&resource.topic.displayed(), &head, &resource.status).into(),
            false => head,
        };
        let entries: Vec<&str> = entries.iter().map(AsRef::as_ref).collect();
        render::atom::document(&render::atom::AtomDocument {
            head: &head,
            topic: &resource.topic.displayed(),
            status: Some(self.status),
            links: self.links,
            entries: &entries,
        })
    }
}

/// Renders a notification as JSON from the Atom document, of which it is a view.
fn json(resource: &Resource, status: StatusReport<'_>, key: &BodyKey, atom: &str) -> String {
    let feed = read_back(resource, atom);
    let document = match key.is_status_only {
        true => render::json::status_only(&feed, &key.topic, status),
        false => render::json::document(&feed, &key.topic, status),
    };
    document.to_string()
}
