//! The documents of notifications.

use feedgate_core::record::{Record, RecordKind, Seq};
use feedgate_core::resource::Resource;
use feedgate_core::stored_entry::{parts, read_back};
use feedgate_core::subscription::Format;
use feedgate_feed::model::Link;
use feedgate_feed::render::{self, StatusReport};

/// Removes records of an entry that a newer record replaces. JSON has no form for a deleted entry.
pub(super) fn leave_out_replaced(records: &mut Vec<Record>, format: Format) {
    let replaced: Vec<Seq> = records.iter().filter_map(|record| record.predecessor).collect();
    let says = |record: &Record| format != Format::Json || record.kind != RecordKind::Deleted;
    records.retain(|record| !replaced.contains(&record.seq) && says(record));
}

/// Renders the entries as an Atom document.
pub(super) fn document(
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
pub(super) fn json(
    resource: &Resource,
    status: StatusReport<'_>,
    topic: &str,
    atom: &str,
) -> String {
    let feed = read_back(resource, atom);
    render::json::document(&feed, topic, status).to_string()
}
