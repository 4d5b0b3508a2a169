//! `hub.mode=search`: the stored entries that match a query, newest first. The query language
//! is that of tracks, and so are the results.
//!
//! The number of entries that are compared for one request is bounded (`entry_finder`); the document then
//! names the address at which the search continues.

use http::StatusCode;
use sha2::{Digest as _, Sha256};
use url::form_urlencoded::Serializer;

use super::address::has_credentials;
use super::api_reply::ApiReply;
use super::entries_document::{EntriesDocument, with_caching_headers};
use super::entries_format::EntriesFormat;
use super::params;
use crate::http::kit::conditional::etag_matches;
use crate::http::kit::rejection::Rejection;
use crate::http::kit::reply::empty;
use crate::http::kit::request::Request;
use crate::http::routes::entry_finder::{self, EntrySpan, FoundEntries};
use crate::http::state::Gateway;
use crate::jobs::runner;
use feedgate_core::account::Access;
use feedgate_core::query::{Query, QueryError};
use feedgate_core::record::{Record, Seq};
use feedgate_core::resource::{Resource, ResourceId, ResourceKind};
use feedgate_core::search::{PossibleMatch, SearchPosition};
use feedgate_core::status::Status;
use feedgate_core::stored_entry::sourced;
use feedgate_core::subscription::Format;
use feedgate_core::track::Track;
use feedgate_feed::model::{Feed, Text};
use feedgate_feed::render::atom;
use feedgate_protocol::form::Form;

/// Answers with the newest entries that match a query.
pub(super) async fn search(
    gateway: &Gateway,
    request: &Request,
    form: &Form,
    access: &Access,
) -> Result<ApiReply, Rejection> {
    entry_finder::require_index(gateway)?;
    let query = Query::parse(form.get("query").unwrap_or_default()).map_err(reject_query)?;
    let format = EntriesFormat::requested(request, form)?;
    if format == Some(EntriesFormat::Notification(Format::Raw)) {
        return Err(Rejection::unprocessable(
            "format must be atom, json, rss or json-feed, not raw.",
        ));
    }
    let count = params::count(form)?;
    let track = Track::new(&gateway.settings.public_url, query.clone()).map_err(reject_query)?;
    let span = EntrySpan { before: position(form, "before")?, after: position(form, "after")? };
    let found = entry_finder::find_entries(gateway, access.account, &query, span, count).await?;
    let etag = etag(&found, format);
    if etag_matches(&request.headers, &etag) {
        let response = with_caching_headers(empty(StatusCode::NOT_MODIFIED), &etag);
        return Ok(ApiReply::Response(response));
    }
    let address = address(gateway, form, form.get("before"));
    let next = found.continues_before.map(|before| before.to_string());
    let next = next.map(|before| self::address(gateway, form, Some(&before)));
    let head = head(&track, &address, &found.entries);
    let resource = described(track);
    let records: Vec<Record> = found.entries.into_iter().map(with_source).collect();
    let document = EntriesDocument {
        resource: &resource,
        combined_head: Some(&head),
        is_own_feed: false,
        records: &records,
        etag: &etag,
        format,
        is_sanitized: false,
        address: if has_credentials(form) { "" } else { &address },
        next: next.as_deref(),
    };
    Ok(document.to_reply(gateway, form))
}

/// Returns the entity tag, which is weak, because the status contains the time.
fn etag(found: &FoundEntries, format: Option<EntriesFormat>) -> String {
    let positions = found.entries.iter().map(|entry| entry.position);
    let positions = positions.chain(found.continues_before).map(|position| position.to_string());
    let digest = Sha256::digest(positions.collect::<Vec<_>>().join(" "));
    let format = format.map_or("atom", EntriesFormat::word);
    format!("W/\"search-{}-{format}\"", hex::encode(&digest[..8]))
}

fn reject_query(reason: QueryError) -> Rejection {
    let reason = format!("Please provide a valid query. ({reason}.)");
    Rejection::unprocessable(reason).with_code("bad_query")
}

/// Returns the position that a parameter gives.
fn position(form: &Form, name: &str) -> Result<Option<SearchPosition>, Rejection> {
    let Some(text) = form.get(name) else { return Ok(None) };
    SearchPosition::parse(text).map(Some).ok_or_else(|| {
        let reason = format!(
            "{name} must be a position in the search, as in the link to its next page, not {text}."
        );
        Rejection::unprocessable(reason)
    })
}

/// Returns the address of this search, continued at `before`. It contains no credentials.
fn address(gateway: &Gateway, form: &Form, before: Option<&str>) -> String {
    let mut query = Serializer::new(String::new());
    query.append_pair("hub.mode", "search");
    let kept = ["query", "format", "count", "after"];
    query.extend_pairs(kept.into_iter().filter_map(|name| Some((name, form.get(name)?))));
    query.extend_pairs(before.map(|before| ("before", before)));
    gateway.public_url(&format!("?{}", query.finish()))
}

/// Returns the head of the document.
fn head(track: &Track, address: &str, entries: &[PossibleMatch]) -> String {
    atom::head(&Feed {
        id: address.to_owned(),
        title: Some(Text::plain(track.title())),
        updated: entries.first().map(|entry| entry.record.at.fixed_offset()),
        ..Feed::default()
    })
}

/// Returns what the document is about: the track with the same query, to which a client can
/// subscribe, with the status of this search.
fn described(track: Track) -> Resource {
    let now = runner::now();
    let (title, last_fetch) = (track.title(), Some(now));
    let status =
        Status { http_code: 200, title, last_fetch, last_parse: last_fetch, ..Status::new(now) };
    Resource {
        id: ResourceId(0),
        fetch_url: track.topic.as_str().to_owned(),
        topic: track.topic,
        kind: ResourceKind::Collection,
        head: Seq::NONE,
        body_version: 0,
        feed_head: String::new(),
        next_fetch: now,
        status,
        polling: Default::default(),
        subscribers: 0,
        pushed_until: None,
        exposure: Default::default(),
    }
}

fn with_source(entry: PossibleMatch) -> Record {
    let atom = sourced(&entry.resource, &entry.record.atom);
    Record { atom, ..entry.record }
}
