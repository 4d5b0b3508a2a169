//! A document of retrieved entries, as Atom, JSON, RSS or JSON Feed.
//!
//! Atom is joined from stored pieces; the others are views of the same entries, made by reading that
//! Atom back.

use http::{StatusCode, header};
use serde_json::Value;
use warp::reply::Response;

use super::api_reply::ApiReply;
use super::entries_format::EntriesFormat;
use crate::http::kit::jsonp;
use crate::http::kit::reply::{sandboxed, set_header, with_content_type};
use crate::http::state::Gateway;
use feedgate_core::archive_identity::published_head;
use feedgate_core::record::Record;
use feedgate_core::resource::{Resource, ResourceKind};
use feedgate_core::stored_entry::{parts, read_back};
use feedgate_core::subscription::Format;
use feedgate_feed::model::Link;
use feedgate_feed::render::{atom, json};
use feedgate_protocol::form::Form;

/// The inputs of a document of entries.
pub(super) struct EntriesDocument<'a> {
    /// The resource whose status the document has.
    pub(super) resource: &'a Resource,
    /// The head of a document that combines several resources; `None` for the resource's own.
    pub(super) combined_head: Option<&'a str>,
    /// Whether the document has the id of the feed that this gateway publishes of the resource.
    pub(super) is_own_feed: bool,
    /// The records of the entries, newest first.
    pub(super) records: &'a [Record],
    /// The entity tag.
    pub(super) etag: &'a str,
    /// The format that was requested.
    pub(super) format: Option<EntriesFormat>,
    /// Whether the texts are sanitized.
    pub(super) is_sanitized: bool,
    /// The address of the document: `rel="self"`; empty if it has none.
    pub(super) address: &'a str,
    /// The address of the document with the entries that follow, if it is known.
    pub(super) next: Option<&'a str>,
}

impl EntriesDocument<'_> {
    /// Returns the reply with this document in the format that was requested.
    pub(super) fn to_reply(&self, gateway: &Gateway, form: &Form) -> ApiReply {
        if self.format == Some(EntriesFormat::Notification(Format::Json))
            && jsonp::function(form).is_some()
        {
            return ApiReply::Json(self.to_json(gateway));
        }
        let content_type = match self.format {
            Some(EntriesFormat::Notification(Format::Json)) => "application/json; charset=utf-8",
            Some(EntriesFormat::Reader(format)) => format.media_type(),
            // Exactly this type: the charset stands in the document (S-8).
            _ => "application/atom+xml",
        };
        let response = with_content_type(StatusCode::OK, content_type, self.body(gateway));
        ApiReply::Response(self.with_headers(response))
    }

    fn with_headers(&self, mut response: Response) -> Response {
        if let Some(next) = self.next {
            set_header(&mut response, header::LINK, &format!("<{next}>; rel=\"next\""));
        }
        with_caching_headers(response, self.etag)
    }

    /// Returns this document in the format that was requested, without headers.
    pub(super) fn body(&self, gateway: &Gateway) -> String {
        match self.format {
            Some(EntriesFormat::Notification(Format::Json)) => self.to_json(gateway).to_string(),
            Some(EntriesFormat::Reader(format)) => {
                let status = Some(&self.resource.status);
                format.convert(self.resource, self.to_atom(gateway), status)
            }
            _ => self.to_atom(gateway),
        }
    }

    fn to_atom(&self, gateway: &Gateway) -> String {
        let resource = self.resource;
        let (own_head, entries) = parts(resource, self.records.iter(), self.is_sanitized);
        let own_head = match self.is_own_feed {
            true => published_head(&resource.topic.displayed(), &own_head, &resource.status).into(),
            false => own_head,
        };
        let entries: Vec<&str> = entries.iter().map(AsRef::as_ref).collect();
        let link = |rel: &str, href: String| Link { rel: rel.to_owned(), href, ..Link::default() };
        // The document is the account's, and nobody can subscribe to it: it names no hub.
        let mut links = Vec::new();
        links.extend((!self.address.is_empty()).then(|| link("self", self.address.to_owned())));
        links.extend(self.next.map(|next| link("next", next.to_owned())));
        // The archive of a collection has an address of its own, and a track has none.
        if self.combined_head.is_none() && resource.kind != ResourceKind::Collection {
            let recent = gateway.public_url(&format!("feeds/{}/recent", resource.id));
            links.push(link("current", recent));
        }
        atom::document(&atom::AtomDocument {
            head: self.combined_head.unwrap_or(&own_head),
            topic: &resource.topic.displayed(),
            status: Some(resource.status.report()),
            links: &links,
            entries: &entries,
        })
    }

    fn to_json(&self, gateway: &Gateway) -> Value {
        let resource = self.resource;
        let mut feed = read_back(resource, &self.to_atom(gateway));
        // The order is that of the records, whatever the dates of the entries say.
        let order: Vec<&str> = self.records.iter().map(|record| record.entry_id.as_str()).collect();
        feed.entries.sort_by_key(|entry| order.iter().position(|id| *id == entry.id));
        let mut value =
            json::document(&feed, &resource.topic.displayed(), resource.status.report());
        if self.records.is_empty() {
            // A document without `items` would say that the feed is failing (N-13).
            value["items"] = Value::Array(Vec::new());
        }
        value
    }
}

/// Returns the end of the entity tag of a document that is sanitized.
pub(super) fn sanitized_mark(is_sanitized: bool) -> &'static str {
    if is_sanitized { "-sanitized" } else { "" }
}

/// Adds the headers of caching. The document is the account's, and carries third-party content.
pub(super) fn with_caching_headers(mut response: Response, etag: &str) -> Response {
    set_header(&mut response, header::ETAG, etag);
    set_header(&mut response, header::CACHE_CONTROL, "private, no-cache");
    set_header(&mut response, header::VARY, "Accept, Authorization");
    sandboxed(response)
}
